//! One thread reads and unpacks, others analyse: each gets all bytes, and keeps its part of the connections.
//!
//! Blocks are shared, not copied, and few wait at a time: the slowest thread sets the pace, and memory stays bounded.

use super::input::{Source, display, progress, read_packets, unpacked};
use fullpipe_flow::capture::Packet;
use fullpipe_flow::{Analysis, Analyzer, Config, Shard};
use std::io::Read;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Bytes of a block, and blocks that may wait for a thread.
const BLOCK: usize = 1 << 18;
const WAITING: usize = 8;

#[derive(Clone)]
enum Message {
    Block(Arc<Vec<u8>>),
    /// The file cannot be read on.
    Failed(Arc<std::io::Error>),
    EndOfFile,
}

/// Analyses a capture with `count` threads; the result is that of one. Beside it, why a file was not read to its end.
pub fn analyze(source: &Source, config: &Config, count: usize) -> (Analysis, Result<(), String>) {
    std::thread::scope(|scope| {
        let (mut senders, mut workers) = (Vec::new(), Vec::new());
        for index in 0..count {
            let (sender, receiver) = sync_channel(WAITING);
            senders.push(sender);
            let config = Config { shard: Shard { index, count }, ..config.clone() };
            workers.push(scope.spawn(move || analyze_shard(source, config, receiver)));
        }
        for file in source.files() {
            give(file, &senders);
        }
        drop(senders);
        let (mut parts, mut problem) = (Vec::new(), Ok(()));
        for worker in workers {
            match worker.join() {
                Ok((part, read)) => {
                    parts.push(part);
                    // Every shard saw the same file end in the same place.
                    problem = problem.and(read);
                }
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        (Analysis::merge(parts), problem)
    })
}

/// Reads a file and gives its bytes to every thread.
fn give(file: &std::path::Path, senders: &[SyncSender<Message>]) {
    // A thread ends before its sender only by a panic, which the join tells.
    let send = |message: Message| senders.iter().for_each(|sender| drop(sender.send(message.clone())));
    let bar = progress(file);
    // Blocks that every thread is done with are used again: to map and unmap memory would cost more than to read.
    let mut blocks: Vec<Arc<Vec<u8>>> = Vec::new();
    let read = unpacked(file, &bar).and_then(|mut source| {
        loop {
            let free = blocks.iter().position(|block| Arc::strong_count(block) == 1);
            let mut block = free.map_or_else(Arc::default, |free| blocks.swap_remove(free));
            let bytes = Arc::make_mut(&mut block);
            bytes.clear();
            if (&mut source).take(BLOCK as u64).read_to_end(bytes)? == 0 {
                return Ok(());
            }
            send(Message::Block(block.clone()));
            blocks.push(block);
        }
    });
    if let Err(error) = read {
        send(Message::Failed(Arc::new(error)));
    }
    send(Message::EndOfFile);
    bar.finish_and_clear();
}

fn analyze_shard(source: &Source, config: Config, receiver: Receiver<Message>) -> (Analysis, Result<(), String>) {
    let mut analyzer = Analyzer::new(config);
    let mut problems = Vec::new();
    for file in source.files() {
        let mut blocks = Blocks { receiver: &receiver, block: Arc::default(), at: 0, ended: false };
        let mut packet = |packet: &Packet<'_>| {
            analyzer.push_packet(packet);
        };
        let read = read_packets(&mut blocks, &mut packet, &mut || {});
        problems.extend(read.err().map(|problem| format!("{}: {problem}", display(file))));
        blocks.pass();
    }
    (analyzer.finish(), if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) })
}

/// One file's bytes, as they come from the thread that reads.
struct Blocks<'a> {
    receiver: &'a Receiver<Message>,
    block: Arc<Vec<u8>>,
    at: usize,
    ended: bool,
}

impl Blocks<'_> {
    /// Lets the rest of the file go by, where it cannot be read on.
    fn pass(&mut self) {
        while !self.ended {
            self.ended = matches!(self.receiver.recv(), Ok(Message::EndOfFile) | Err(_));
        }
    }
}

impl Read for Blocks<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        while self.at == self.block.len() && !self.ended {
            match self.receiver.recv() {
                Ok(Message::Block(block)) => (self.block, self.at) = (block, 0),
                Ok(Message::Failed(error)) => return Err(std::io::Error::new(error.kind(), error.to_string())),
                Ok(Message::EndOfFile) | Err(_) => self.ended = true,
            }
        }
        let length = (self.block.len() - self.at).min(into.len());
        into[..length].copy_from_slice(&self.block[self.at..self.at + length]);
        self.at += length;
        Ok(length)
    }
}

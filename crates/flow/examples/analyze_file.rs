//! Analyses one capture and says what was found: `analyze_file FILE [SHARDS]`. Each shard is a thread that reads the file
//! and analyses its part of the connections.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people")]

use fullpipe_flow::connection::Label;
use fullpipe_flow::{Analysis, Analyzer, Config, Shard, capture};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(name) = arguments.next() else {
        eprintln!("usage: analyze_file FILE [SHARDS]");
        std::process::exit(2);
    };
    let count = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(1);
    let analysis = std::thread::scope(|scope| {
        let shard = |index| {
            let name = &name;
            scope.spawn(move || analyze(name, Shard { index, count }))
        };
        let threads: Vec<_> = (0..count).map(shard).collect();
        Analysis::merge(threads.into_iter().map(|thread| thread.join().expect("the thread ends")))
    });
    println!("{} packets, {} connections", analysis.packets, analysis.connections.len());
    for label in Label::ALL {
        let count = |c: &fullpipe_flow::connection::Connection| {
            c.client_to_server.labels.of(label) + c.server_to_client.labels.of(label)
        };
        println!("{:24} {}", label.name(), analysis.connections.iter().map(count).sum::<u64>());
    }
}

fn analyze(name: &str, shard: Shard) -> Analysis {
    let mut analyzer = Analyzer::new(Config { shard, ..Config::default() });
    let file = std::fs::File::open(name).unwrap_or_else(|error| panic!("{name}: {error}"));
    let end = capture::read(file, |packet| {
        analyzer.push_packet(&packet);
    });
    if let Err(error) = end {
        eprintln!("{name}: {error}");
    }
    analyzer.finish()
}

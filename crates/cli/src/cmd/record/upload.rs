//! Parts of the recording, to a store beside it.
//!
//! A thread of its own sends one part at a time, the oldest first, and the recorder only tells it
//! names. So whatever the store does, the recording goes on; parts that the ring removes meanwhile
//! are missed, counted and told.

use crate::cmd::past::not_read;
use crate::cmd::{get, pauses};
use crate::failure::{Failure, Kind};
use crate::sentence::{Sentence, either};
use crate::terminal::remark;
use fullpipe_host::history::{HistoryError, Unsent};
use fullpipe_kernel::host::clock;
use fullpipe_model::units::{Bytes, Duration, column};
use fullpipe_transfer::{Stop, Store, StoreAccess, StoreAddress, StoreError};
use indicatif::ProgressBar;
use serde::Serialize;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};

/// How long the end of a recording waits for what is left to be sent.
const GRACE: Duration = Duration::from_secs(10);

/// What was sent.
#[derive(Debug, Clone, Serialize)]
pub struct Uploaded {
    /// To where.
    to: String,
    /// Parts that are there, of this run.
    sent: u64,
    /// What they have together.
    #[serde(rename = "sent_bytes", with = "column::bytes")]
    size: Bytes,
    /// Parts that wait for the next run.
    waiting: usize,
    /// Parts that the ring removed before they were sent.
    missed: u64,
}

/// The thread that sends.
pub struct Uploader {
    names: Sender<String>,
    stop: Stop,
    done: Receiver<Uploaded>,
    thread: JoinHandle<()>,
}

impl Uploader {
    /// Begins to send the parts of the ring at `ring` to `address`.
    pub fn begin(
        address: &StoreAddress,
        ring: &Path,
        bar: &ProgressBar,
    ) -> Result<Uploader, Failure> {
        let access = StoreAccess::of(|name| std::env::var(name).ok());
        let store = Store::open(address.clone(), access, get::of_environment());
        let store = store.map_err(|error| {
            let kind = if error.is_final() { Kind::Usage } else { Kind::Run };
            Failure::new(kind, Sentence::from(&error).of("record"))
        })?;
        let unsent = Unsent::begin(ring, &store.place()).map_err(|cause| {
            let place = ring.display().to_string();
            not_read(HistoryError::Unreadable { place, cause })
        })?;
        let to = store.place();
        let (names, new) = channel();
        let (tell, done) = channel();
        let stop = Stop::new();
        let none = Uploaded { to, sent: 0, size: Bytes::ZERO, waiting: 0, missed: 0 };
        let bar = bar.clone();
        let mut sender = Sending { store, unsent, new, stop: stop.clone(), told: none, bar };
        let thread = Builder::new().name("upload".into()).spawn(move || {
            sender.run();
            // Whoever waited may have given up.
            let _ = tell.send(sender.told);
        });
        let thread = thread.map_err(|cause| {
            let told = Sentence::new(
                format!("record: start a thread for the upload: {cause}"),
                format!("record：启动上传线程：{cause}"),
            );
            Failure::new(Kind::Run, told)
        })?;
        Ok(Uploader { names, stop, done, thread })
    }

    /// A part of this name was written.
    pub fn add(&self, name: String) {
        // The thread ends after this.
        let _ = self.names.send(name);
    }

    /// Sends what is left, for ten seconds at most.
    pub fn finish(self) -> Option<Uploaded> {
        drop(self.names);
        let in_time = self.done.recv_timeout(GRACE.into());
        let uploaded = match in_time {
            Err(RecvTimeoutError::Timeout) => {
                self.stop.stop();
                self.done.recv().ok()
            }
            done => done.ok(),
        };
        let _ = self.thread.join();
        if let Some(Uploaded { waiting, .. }) = uploaded.as_ref().filter(|told| told.waiting > 0) {
            remark(&either(
                format!(
                    "parts that are not sent yet: {waiting}; the next run with the same --ring and \
                     --upload sends them"
                ),
                format!("还有 {waiting} 段尚未上传：下次以相同的 --ring 和 --upload 运行时会继续"),
            ));
        }
        uploaded
    }
}

/// What the thread has.
struct Sending {
    store: Store,
    unsent: Unsent,
    new: Receiver<String>,
    stop: Stop,
    told: Uploaded,
    bar: ProgressBar,
}

impl Sending {
    fn run(&mut self) {
        let mut hand: Option<(String, Vec<u8>)> = None;
        let (mut failures, mut is_last, mut missed_told) = (0, false, 0);
        while !self.stop.is_stopped() {
            is_last |= self.hear(Some(Duration::ZERO));
            let Some((name, bytes)) = hand.take().or_else(|| self.unsent.take()) else {
                self.store.rest();
                if is_last {
                    break;
                }
                is_last = self.hear(None);
                continue;
            };
            match self.store.put(&name, bytes.clone(), &self.stop) {
                Ok(()) => {
                    self.count(&name, bytes.len(), failures > 0, &mut missed_told);
                    failures = 0;
                }
                Err(error) => {
                    hand = Some((name, bytes));
                    if error.is_stop() {
                        break;
                    }
                    failures += 1;
                    if failures == 1 {
                        self.say_fails(&error);
                    }
                    // At the end each is tried once more.
                    if is_last {
                        break;
                    }
                    is_last = self.hear(Some(pauses::after(failures, Duration::ZERO)));
                }
            }
        }
        self.hear(Some(Duration::ZERO));
        self.told.waiting = self.unsent.waiting() + usize::from(hand.is_some());
        self.told.missed = self.unsent.missed();
        self.say_missed(&mut missed_told);
    }

    /// Takes the names of new parts for so long, or waits for one; whether there will be no more.
    fn hear(&mut self, pause: Option<Duration>) -> bool {
        let Some(pause) = pause else {
            return self.new.recv().map(|name| self.unsent.add(name)).is_err();
        };
        let end = clock::now() + pause;
        loop {
            match self.new.recv_timeout(end.since(clock::now()).into()) {
                Ok(name) => self.unsent.add(name),
                Err(RecvTimeoutError::Timeout) => return false,
                Err(RecvTimeoutError::Disconnected) => return true,
            }
        }
    }

    /// Counts a part that is there.
    fn count(&mut self, name: &str, size: usize, is_again: bool, missed_told: &mut u64) {
        self.told.sent += 1;
        self.told.size += Bytes::new(size as u64);
        // On a full disk the next run sends it again, and nothing else is the worse for it.
        let _ = self.unsent.sent(name);
        if is_again {
            let to = &self.told.to;
            self.say(either(format!("{to} takes parts again"), format!("{to} 恢复接收")));
        }
        self.say_missed(missed_told);
    }

    fn say_fails(&self, error: &StoreError) {
        let why = Sentence::from(error);
        let why = why.here();
        let most = pauses::PAUSE_MAX;
        self.say(either(
            format!(
                "{why}; the recording goes on, and it is tried again with longer and longer \
                 pauses, up to {most}"
            ),
            format!("{why}；记录继续，并以越来越长的间隔重试，最长 {most}"),
        ));
    }

    /// Says how many parts are missed, where they became more.
    fn say_missed(&self, told: &mut u64) {
        let missed = self.unsent.missed();
        if missed > *told {
            let more = missed - *told;
            *told = missed;
            self.say(either(
                format!("parts that the ring removed before they were sent: {more}; a larger --size keeps \
                     them for longer"),
                format!("有 {more} 段在上传之前已被环形存储删除；更大的 --size 可保留更久"),
            ));
        }
    }

    fn say(&self, text: String) {
        self.bar.suspend(|| remark(&text));
    }
}

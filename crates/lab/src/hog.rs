//! A CPU hog: a thread that never waits, on one CPU, with a given niceness. It starves whatever
//! shares that CPU.

use fullpipe_kernel::Refused;
use fullpipe_kernel::process::sched::Placement;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A running hog; it stops when dropped.
#[derive(Debug)]
pub struct Hog {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
    /// Why it does not have the requested niceness.
    pub not_nice: Option<Refused>,
}

impl Hog {
    /// Starts one on `cpu`. If `nice` is refused (a lower niceness without privilege), it runs
    /// without.
    pub fn start(cpu: u32, nice: i8) -> Result<Hog, Refused> {
        let stop = Arc::new(AtomicBool::new(false));
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("hog".into())
            .spawn({
                let stop = Arc::clone(&stop);
                move || {
                    let pinned = Placement { cpus: vec![cpu as usize], nice: None }.apply();
                    let pinned_well = pinned.is_ok();
                    let niced = Placement { cpus: Vec::new(), nice: Some(nice) }.apply();
                    let _ = tell.send(pinned.map(|()| niced.err()));
                    let mut spins = 0u64;
                    while pinned_well && !stop.load(Ordering::Relaxed) {
                        spins = std::hint::black_box(spins.wrapping_add(1));
                    }
                }
            })
            .map_err(|cause| Refused::new("start thread", "CPU hog", cause))?;
        match told.recv() {
            Ok(Ok(not_nice)) => Ok(Hog { stop, thread: Some(thread), not_nice }),
            Ok(Err(refused)) => Err(refused),
            Err(_) => Err(Refused::new(
                "start thread",
                "CPU hog",
                std::io::Error::other("it ended at once"),
            )),
        }
    }
}

impl Drop for Hog {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

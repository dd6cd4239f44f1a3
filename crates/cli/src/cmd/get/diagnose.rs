//! Watches the download's own socket beside it, and says what limits it.

use fullpipe_host::Following;
use fullpipe_host::watch::{Namespaces, Watch};
use fullpipe_kernel::run::sandbox::Interrupt;
use fullpipe_model::limit::Limit;
use fullpipe_model::units::{Duration, Rate};
use fullpipe_transfer::Diagnosis;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// A shorter download is over before a verdict would help.
const PATIENCE: Duration = Duration::from_millis(400);
/// The time between two verdicts; each is of the last second, or of less at the start.
const STEP: Duration = Duration::from_millis(300);

/// A thread that follows a connection, and another one after its end, until it is told to end. The
/// first is in its steady state while those that `--connections auto` adds still begin.
pub struct Diagnosing {
    /// `None` where the kernel does not tell about sockets: then there is no diagnosis.
    thread: Option<(Interrupt, JoinHandle<()>)>,
    ends: Sender<(SocketAddr, SocketAddr)>,
}

impl Diagnosing {
    /// Starts to follow what [`Diagnosing::look_at`] names.
    pub fn start(diagnosis: Diagnosis) -> Diagnosing {
        let (send, receive) = channel();
        let thread = Interrupt::new().ok().and_then(|interrupt| {
            let end = interrupt.clone();
            let name = std::thread::Builder::new().name("diagnosis".into());
            Some((interrupt, name.spawn(move || follow(&receive, &end, &diagnosis)).ok()?))
        });
        Diagnosing { thread, ends: send }
    }

    /// A connection of the download.
    pub fn look_at(&self, local: SocketAddr, peer: SocketAddr) {
        // Without a diagnosis nobody listens.
        let _ = self.ends.send((local, peer));
    }

    /// Ends the thread.
    pub fn end(self) {
        drop(self.ends);
        if let Some((interrupt, thread)) = self.thread {
            interrupt.set();
            // A panic of the diagnosis is no failure of the download.
            let _ = thread.join();
        }
    }
}

fn follow(ends: &Receiver<(SocketAddr, SocketAddr)>, end: &Interrupt, diagnosis: &Diagnosis) {
    let Ok(mut one) = ends.recv() else { return };
    if end.wait(Some(PATIENCE)).unwrap_or(true) {
        return;
    }
    let Ok(mut watch) = Watch::open(Namespaces::Own) else { return };
    while !end.is_set() {
        one = newest(ends).unwrap_or(one);
        let Ok(Some(mut following)) = Following::start(&mut watch, one.0, one.1) else {
            // It is gone; another may come.
            if end.wait(Some(STEP)).unwrap_or(true) {
                return;
            }
            continue;
        };
        while let Ok(Some(answer)) = following.answer(&mut watch, STEP, end) {
            // The last look is cut short by the end, and sees the end.
            if end.is_set() {
                return;
            }
            if answer.limit != Limit::Unknown {
                diagnosis.set(answer.limit);
            }
            // A redirect's connection may stay, with nothing to do.
            if answer.goodput == Rate::ZERO
                && let Some(newest) = newest(ends)
            {
                one = newest;
                break;
            }
        }
    }
}

/// The newest connection, if there is another than before.
fn newest(ends: &Receiver<(SocketAddr, SocketAddr)>) -> Option<(SocketAddr, SocketAddr)> {
    ends.try_iter().last()
}

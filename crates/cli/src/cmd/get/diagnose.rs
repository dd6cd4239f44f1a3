//! Watches the download's own socket beside it, and says what limits it.

use fullpipe_host::watch::{Namespaces, Watch};
use fullpipe_host::why_one;
use fullpipe_kernel::sandbox::Interrupt;
use fullpipe_model::limit::Limit;
use fullpipe_model::units::Duration;
use fullpipe_transfer::Diagnosis;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// A shorter download is over before a verdict would help.
const PATIENCE: Duration = Duration::from_millis(700);
/// How long the socket is followed for one verdict.
const SPAN: Duration = Duration::from_millis(900);

/// A thread that follows the newest connection until it is told to end.
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
            let work = move || follow(&receive, &end, &diagnosis);
            let name = std::thread::Builder::new().name("diagnosis".into());
            Some((interrupt, name.spawn(work).ok()?))
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
        // A redirect's connection is followed by that of the body.
        one = ends.try_iter().last().unwrap_or(one);
        let Ok(found) = why_one(&mut watch, one.0, one.1, SPAN, end, &mut |_| {}) else { return };
        let answer = found.followed.first().map(|followed| &followed.connection.answer);
        match answer {
            // The last look is cut short by the end, and sees the end.
            Some(answer) if !end.is_set() && answer.limit != Limit::Unknown => {
                diagnosis.set(answer.limit);
            }
            _ if end.wait(Some(SPAN)).unwrap_or(true) => return,
            _ => {}
        }
    }
}

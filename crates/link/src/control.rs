//! Communication with a running link: statistics, and a new path without stopping it.
//!
//! The threads that move packets share no lock with anybody. Each has a [`Mailbox`] that it checks
//! once in each turn (one relaxed load if it is empty), and others hold its [`Remote`]. An order is
//! stored before the thread is woken, so a real-time thread never spins for an order whose sender
//! waits for the CPU.

use super::direction::Change;
use super::ring::Ring;
use super::statistics::DirectionStatistics;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

/// An order to a thread of the link.
#[derive(Debug)]
pub(super) enum Order {
    /// Use another path from now on; answered when it is in force.
    Change(Box<Change>, Sender<()>),
    /// Report statistics so far.
    Statistics(Sender<DirectionStatistics>),
}

/// The thread's end of the mailbox.
#[derive(Debug)]
pub(super) struct Mailbox {
    pending: Arc<AtomicBool>,
    orders: Receiver<Order>,
    wake: UnixStream,
    /// Returns memory to be freed by another thread, because freeing takes time.
    superfluous: Sender<Ring>,
}

/// The other end, for everybody else.
#[derive(Debug)]
pub(super) struct Remote {
    pending: Arc<AtomicBool>,
    orders: Sender<Order>,
    wake: UnixStream,
    superfluous: Receiver<Ring>,
}

/// Makes a mailbox and its remote.
pub(super) fn mailbox() -> io::Result<(Mailbox, Remote)> {
    let (thread_wake, wake) = UnixStream::pair()?;
    thread_wake.set_nonblocking(true)?;
    wake.set_nonblocking(true)?;
    let (send, orders) = channel();
    let (superfluous, freed) = channel();
    let pending = Arc::new(AtomicBool::new(false));
    let mailbox = Mailbox { pending: Arc::clone(&pending), orders, wake: thread_wake, superfluous };
    Ok((mailbox, Remote { pending, orders: send, wake, superfluous: freed }))
}

impl Mailbox {
    /// The next order, if any.
    pub fn next(&self) -> Option<Order> {
        if !self.pending.load(Ordering::Relaxed) {
            return None;
        }
        // Cleared before the check, so an order that comes in between is seen now or sets it again.
        self.pending.store(false, Ordering::SeqCst);
        let order = self.orders.try_recv().ok()?;
        // There may be more behind it.
        self.pending.store(true, Ordering::SeqCst);
        Some(order)
    }

    /// Becomes readable when there is an order; call [`Mailbox::woken`] after that.
    pub fn wake(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Clears the wake-up.
    pub fn woken(&self) {
        let mut bytes = [0; 64];
        while matches!((&self.wake).read(&mut bytes), Ok(count) if count == bytes.len()) {}
    }

    /// Returns memory, to be freed by whoever next uses the remote.
    pub fn give_back(&self, ring: Ring) {
        let _ = self.superfluous.send(ring);
    }
}

impl Remote {
    /// Stores an order and wakes the thread.
    pub fn send(&self, order: Order) -> bool {
        // Frees memory that the thread returned.
        while self.superfluous.try_recv().is_ok() {}
        let sent = self.orders.send(order).is_ok();
        self.pending.store(true, Ordering::SeqCst);
        self.wake();
        sent
    }

    /// Ends the thread's wait.
    pub fn wake(&self) {
        // A full buffer wakes it too.
        let _ = (&self.wake).write(&[1]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_model::units::Duration;

    #[test]
    fn an_order_wakes_and_none_is_forgotten() {
        let (mailbox, remote) = mailbox().unwrap();
        assert!(mailbox.next().is_none());
        let (answer, answers) = channel();
        for _ in 0..3 {
            assert!(remote.send(Order::Statistics(answer.clone())));
        }
        let long = Some(Duration::from_secs(10));
        assert!(fullpipe_kernel::process::wait::readable(mailbox.wake(), long).unwrap());
        mailbox.woken();
        assert!(
            !fullpipe_kernel::process::wait::readable(mailbox.wake(), Some(Duration::ZERO))
                .unwrap()
        );
        for packets in 0..3 {
            let Some(Order::Statistics(to)) = mailbox.next() else { panic!("an order is missing") };
            to.send(DirectionStatistics { inside_packets: packets, ..Default::default() }).unwrap();
        }
        assert!(mailbox.next().is_none());
        assert_eq!(
            answers.try_iter().map(|answer| answer.inside_packets).collect::<Vec<_>>(),
            [0, 1, 2]
        );
        drop(mailbox);
        assert!(!remote.send(Order::Statistics(answer)), "a thread that has ended takes no orders");
    }
}

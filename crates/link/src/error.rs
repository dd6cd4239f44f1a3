//! Why a link cannot run, or has ended.

use super::netem::NetemLinkError;
use super::tap::CaptureError;
use fullpipe_kernel::network::port::PortError;
use fullpipe_model::units::{Bytes, Duration, Rate};

/// Why a link cannot run.
#[derive(Debug, thiserror::Error)]
pub enum EmulatorError {
    /// Not enough memory for the packets in flight.
    #[error(
        "emulate link: {rate} over {delay} with its queue needs {needed:#} of packet memory, {available:#} may be used; \
         lower the rate, the delay or the queue"
    )]
    Memory {
        /// The rate of the direction that does not fit.
        rate: Rate,
        /// The delay of that direction.
        delay: Duration,
        /// Memory for both directions.
        needed: Bytes,
        /// The bound.
        available: Bytes,
    },
    /// The thread of a direction has ended.
    #[error("{operation}: the thread that reads {device} has ended; stop the link to learn why")]
    Ended {
        /// The request.
        operation: &'static str,
        /// The port that it read.
        device: &'static str,
    },
    /// A capture failed.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// A thread could not be started.
    #[error("start thread of the link: {0}")]
    Thread(std::io::Error),
    /// Reading or waiting failed in a way that ends the link.
    #[error("read from {device} of the link: {cause}")]
    Port {
        /// The port.
        device: &'static str,
        /// The kernel's answer.
        cause: std::io::Error,
    },
}

/// Why there is no link between two ends.
#[derive(Debug, thiserror::Error)]
pub enum CarrierError {
    /// The devices for our own link could not be made.
    #[error(transparent)]
    Ports(#[from] PortError),
    /// Our own link failed.
    #[error(transparent)]
    Emulator(#[from] EmulatorError),
    /// netem failed.
    #[error(transparent)]
    Netem(#[from] NetemLinkError),
}

//! The [`Pacer`] driven by the clock and the runtime's timer.

use crate::pace::Pacer;
use fullpipe_model::units::{Bytes, Rate};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::time::{Sleep, sleep};

/// How an application writes that does not write as fast as it can.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WritePace {
    /// How fast.
    pub rate: Rate,
    /// How much at once; `None`: in small steps.
    pub block: Option<Bytes>,
    /// How much it writes before the rate holds.
    pub after: Bytes,
}

/// A pacer for use inside `poll` functions.
#[derive(Debug)]
pub(crate) struct Pacing {
    pacer: Pacer,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Pacing {
    /// At `rate`, in small steps or in blocks.
    pub(crate) fn new(rate: Rate, block: Option<Bytes>) -> Self {
        let now = crate::clock::now();
        let pacer =
            block.map_or_else(|| Pacer::new(rate, now), |block| Pacer::in_blocks(rate, block, now));
        Pacing { pacer, timer: None }
    }

    /// Ready with the amount that may pass now; otherwise wakes the task when it is time.
    pub(crate) fn poll_allowance(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        loop {
            if let Some(timer) = &mut self.timer {
                ready!(timer.as_mut().poll(cx));
                self.timer = None;
            }
            match self.pacer.allowance(crate::clock::now()) {
                Ok(amount) => return Poll::Ready(amount),
                Err(wait) => self.timer = Some(Box::pin(sleep(wait.into()))),
            }
        }
    }

    pub(crate) fn spend(&mut self, amount: Bytes) {
        self.pacer.spend(amount);
    }
}

//! What the trained judge looks at in samples: what it looks at in captures, and what only the
//! kernel knows.

use super::{SampleSpan, nothing_to_send, receiver_at};
use crate::limit::Interval;
use crate::limit::judge::{
    NONE, Traits, mean, part_by_limit, ratio, variation, variation_between_losses,
};
use crate::limit::percentiles::Sorted;
use crate::limit::verdict::limits_with_time;
use fullpipe_model::observe::{Sample, TcpInfo};
use fullpipe_model::units::{Duration, Rate};

/// The traits of `spans`. The rules judged them as `intervals`, one for each span.
pub(super) fn traits(
    spans: &[SampleSpan<'_>],
    intervals: &[Interval],
    receiver: &[Sample],
) -> Traits {
    let mut traits = Traits::default();
    traits.extend(part_by_limit(limits_with_time(intervals)));
    let socket = SenderSocket { spans };
    traits.extend(socket.of_path());
    traits.extend(socket.of_loss());
    traits.extend(socket.of_counters());
    traits.extend(socket.of_buffer());
    traits.extend(socket.of_windows());
    traits.extend(of_receiver(spans, receiver));
    traits
}

/// The median smoothed round trip as a multiple of the minimum.
pub(super) fn inflation_median(spans: &[SampleSpan<'_>]) -> f64 {
    SenderSocket { spans }.inflation().percentile(50)
}

/// The samples of the sender's socket.
struct SenderSocket<'a> {
    spans: &'a [SampleSpan<'a>],
}

impl SenderSocket<'_> {
    fn rates(&self) -> Vec<f64> {
        self.spans.iter().map(|span| span.goodput().as_f64()).collect()
    }

    /// The mean, weighted by time.
    fn over_time(&self, of: impl Fn(&SampleSpan<'_>) -> f64) -> f64 {
        let lengths = self.spans.iter().map(|span| span.length().as_secs_f64());
        let (sum, time) = self
            .spans
            .iter()
            .zip(lengths)
            .fold((0.0, 0.0), |(sum, time), (s, l)| (sum + of(s) * l, time + l));
        ratio(sum, time)
    }

    fn rate(&self) -> f64 {
        self.over_time(|span| span.goodput().as_f64())
    }

    /// The value of `of` for each sample that has one.
    fn each(&self, of: impl Fn(&Sample, &TcpInfo) -> Option<f64>) -> Vec<f64> {
        let infos = self.spans.iter().flat_map(SampleSpan::infos);
        infos.filter_map(|(sample, info)| of(sample, info)).collect()
    }

    fn part(&self, is_so: impl Fn(&TcpInfo) -> bool) -> f64 {
        mean(&self.each(|_, info| Some(f64::from(u8::from(is_so(info))))))
    }

    fn base(&self) -> f64 {
        let infos = self.spans.iter().flat_map(SampleSpan::infos);
        let least = infos.filter_map(|(_, info)| info.min_rtt).min();
        least.map_or(0.0, Duration::as_secs_f64)
    }

    fn inflation(&self) -> Sorted {
        let base = self.base();
        Sorted::new(self.each(|_, info| Some(ratio(info.rtt.as_secs_f64(), base))))
    }

    /// The rate that the path carried, and its round trips.
    fn of_path(&self) -> [f64; 9] {
        let rates = self.rates();
        let wide: Vec<f64> = rates.windows(4).map(mean).collect();
        let inflation = self.inflation();
        let varies = variation(&wide);
        let (early, late) = rates.split_at(rates.len() / 2);
        let course = ratio(mean(late), mean(early));
        let (rates, wide) = (Sorted::new(rates), Sorted::new(wide));
        [
            ratio(self.rate(), rates.percentile(95)),
            ratio(rates.percentile(10), rates.percentile(90)),
            varies,
            ratio(wide.percentile(10), wide.percentile(90)),
            inflation.percentile(50),
            inflation.percentile(10),
            inflation.percentile(90),
            course,
            (self.spans.len().max(1) as f64).log2(),
        ]
    }

    /// What was retransmitted, and when.
    fn of_loss(&self) -> [f64; 8] {
        let again: Vec<f64> = self.spans.iter().map(|span| span.retransmissions() as f64).collect();
        let ends = self.spans.first().zip(self.spans.last());
        let sent = ends.and_then(|(first, last)| {
            Some(f64::from(last.last.data_segs_out?.wrapping_sub(first.first.data_segs_out?)))
        });
        let loss = ratio(again.iter().sum(), sent.unwrap_or(0.0));
        let base = self.base();
        let lossy = self.spans.iter().filter(|span| span.retransmissions() > 0);
        let at_loss = lossy.map(|span| ratio(span.first.rtt.as_secs_f64(), base));
        let at_loss = Sorted::new(at_loss);
        let with_loss = again.iter().filter(|count| **count > 0.0).count() as f64;
        let passed = self.spans.iter().map(|span| {
            let bytes = span.goodput().over(span.length()).as_f64();
            (span.retransmissions() > 0, bytes, span.length().as_secs_f64())
        });
        [
            loss,
            ratio(with_loss, self.spans.len() as f64),
            variation(&again),
            loss.max(0.0).sqrt() * mean(&self.each(|_, info| Some(info.unacked.into()))),
            ratio(at_loss.percentile(50), self.inflation().percentile(50)),
            variation_between_losses(passed),
            self.part(|info| info.ca_state.repairs_loss()),
            mean(&self.each(|_, info| Some(ratio(info.lost.into(), info.snd_cwnd.into())))),
        ]
    }

    /// The kernel's counters.
    fn of_counters(&self) -> [f64; 6] {
        let rate = self.rate();
        let delivered = mean(&self.each(|_, info| info.delivery_rate.map(Rate::as_f64)));
        [
            self.over_time(|span| span.part(|info| info.busy_time)),
            self.over_time(|span| span.part(|info| info.rwnd_limited)),
            self.over_time(|span| span.part(|info| info.sndbuf_limited)),
            mean(&self.each(|_, info| Some(ratio(rate, info.pacing_rate?.as_f64())))),
            ratio(delivered, rate),
            self.part(|info| info.delivery_rate_app_limited),
        ]
    }

    /// What the application had written.
    fn of_buffer(&self) -> [f64; 4] {
        let queued = self.each(|sample, _| {
            let memory = sample.memory?;
            Some(ratio(memory.wmem_queued.as_f64(), memory.sndbuf.as_f64()))
        });
        let unsent = self.each(|sample, info| {
            Some(ratio(info.notsent_bytes?.as_f64(), sample.memory?.sndbuf.as_f64()))
        });
        let queued_mean = mean(&queued);
        let queued = Sorted::new(queued).percentile(80);
        [self.part(nothing_to_send), mean(&unsent), queued_mean, queued]
    }

    /// What was in flight, compared with what both windows allowed.
    fn of_windows(&self) -> [f64; 12] {
        let of_cwnd = self.each(|_, info| Some(ratio(info.unacked.into(), info.snd_cwnd.into())));
        let of_window = self
            .each(|_, info| Some(ratio(info.in_flight().as_f64(), info.snd_wnd?.bytes().as_f64())));
        let windows = self.each(|_, info| info.snd_wnd.map(|window| window.bytes().as_f64()));
        let widest = windows.iter().copied().fold(0.0, f64::max);
        let windows = Sorted::new(windows);
        let cwnds = Sorted::new(self.each(|_, info| Some(info.snd_cwnd.into())));
        let flights = self.each(|_, info| Some(info.in_flight().as_f64()));
        let flight_mean = mean(&flights);
        let flights = Sorted::new(flights);
        let of_cwnd_mean = mean(&of_cwnd);
        // Linux starts with a threshold that no window reaches.
        let of_threshold = self.each(|_, info| match info.snd_ssthresh {
            0x4000_0000.. => Some(NONE),
            threshold => Some(ratio(threshold.into(), info.snd_cwnd.into())),
        });
        [
            of_cwnd_mean,
            Sorted::new(of_cwnd).percentile(90),
            mean(&of_window),
            ratio(windows.percentile(50), widest),
            ratio(windows.percentile(10), windows.percentile(50)),
            ratio(cwnds.percentile(10), cwnds.percentile(90)),
            ratio(cwnds.percentile(50), cwnds.percentile(98)),
            cwnds.percentile(50).max(0.25).log2(),
            mean(&of_threshold),
            ratio(flights.percentile(50), flights.percentile(95)),
            ratio(flights.percentile(10), flights.percentile(90)),
            ratio(flight_mean, self.rate() * self.base() / 8.0),
        ]
    }
}

/// How much data the receiver's application had not read, where its socket was sampled.
fn of_receiver(spans: &[SampleSpan<'_>], receiver: &[Sample]) -> [f64; 3] {
    let far: Vec<&Sample> = spans.iter().flat_map(|span| receiver_at(receiver, span)).collect();
    let of_buffer = far.iter().filter_map(|sample| {
        Some(ratio(sample.memory?.rmem_alloc.as_f64(), sample.memory?.rcvbuf.as_f64()))
    });
    let of_window = far.iter().filter_map(|sample| {
        let window = sample.info.as_ref()?.rcv_wnd?.bytes().as_f64();
        Some(ratio(sample.rqueue.as_f64(), sample.rqueue.as_f64() + window))
    });
    [
        f64::from(u8::from(!receiver.is_empty())),
        mean(&of_buffer.collect::<Vec<f64>>()),
        mean(&of_window.collect::<Vec<f64>>()),
    ]
}

//! What the trained judge looks at in samples of the receiver's socket alone.

use super::{ReceiverSpan, received};
use crate::limit::Interval;
use crate::limit::judge::{
    Traits, mean, part_by_limit, ratio, variation, variation_between_losses,
};
use crate::limit::percentiles::Sorted;
use crate::limit::verdict::limits_with_time;
use fullpipe_model::observe::{Sample, TcpInfo};
use fullpipe_model::units::{Bytes, Duration};

/// The traits of `spans`. The rules judged them as `intervals`, one for each span. `base` is the
/// path's round trip.
pub(super) fn traits(
    spans: &[ReceiverSpan<'_>],
    intervals: &[Interval],
    base: Option<Duration>,
) -> Traits {
    let mut traits = Traits::default();
    traits.extend(part_by_limit(limits_with_time(intervals)));
    let socket = ReceiverSocket { spans, base: base.map_or(0.0, Duration::as_secs_f64) };
    traits.extend(socket.of_rate());
    traits.extend(socket.of_path());
    traits.extend(socket.of_order());
    traits.extend(socket.of_arrivals());
    traits.extend(socket.of_window());
    traits.extend(socket.of_unread());
    traits
}

/// The round trips that the receiver measured, as multiples of the path's.
pub(super) fn inflation(spans: &[ReceiverSpan<'_>], base: Option<Duration>) -> Sorted {
    ReceiverSocket { spans, base: base.map_or(0.0, Duration::as_secs_f64) }.inflation()
}

/// The samples of the receiver's socket.
struct ReceiverSocket<'a> {
    spans: &'a [ReceiverSpan<'a>],
    /// Seconds.
    base: f64,
}

impl ReceiverSocket<'_> {
    /// The value of `of` for each sample that has one.
    fn each(&self, of: impl Fn(&Sample, &TcpInfo) -> Option<f64>) -> Vec<f64> {
        let infos = self.spans.iter().flat_map(ReceiverSpan::infos);
        infos.filter_map(|(sample, info)| of(sample, info)).collect()
    }

    fn seconds(&self) -> f64 {
        self.spans.iter().map(|span| span.length().as_secs_f64()).sum()
    }

    fn bytes(&self) -> f64 {
        self.spans.iter().map(|span| span.bytes().as_f64()).sum()
    }

    /// Bytes a second.
    fn rate(&self) -> f64 {
        ratio(self.bytes(), self.seconds())
    }

    /// What arrived, and in how long, from each sample to the next: bytes and seconds.
    fn steps(&self) -> Vec<(f64, f64)> {
        let pairs = self.spans.iter().flat_map(|span| span.samples.windows(2));
        pairs
            .filter_map(|pair| {
                let [before, after] = pair else { return None };
                let (first, last) = (before.info.as_ref()?, after.info.as_ref()?);
                let arrived = received(last).saturating_sub(received(first)).as_f64();
                Some((arrived, after.at.since(before.at).as_secs_f64()))
            })
            .collect()
    }

    /// What arrived in each time of at least `seconds`, as a rate.
    fn rates_over(&self, seconds: f64) -> Vec<f64> {
        let mut rates = Vec::new();
        let (mut bytes, mut time) = (0.0, 0.0);
        for (arrived, length) in self.steps() {
            bytes += arrived;
            time += length;
            if time >= seconds {
                rates.push(bytes / time);
                (bytes, time) = (0.0, 0.0);
            }
        }
        rates
    }

    /// How even the rate was, by intervals.
    fn of_rate(&self) -> [f64; 7] {
        let rates: Vec<f64> = self.spans.iter().map(|span| span.goodput().as_f64()).collect();
        let wide: Vec<f64> = rates.windows(4).map(mean).collect();
        let varies = variation(&wide);
        let (early, late) = rates.split_at(rates.len() / 2);
        let course = ratio(mean(late), mean(early));
        let (rates, wide) = (Sorted::new(rates), Sorted::new(wide));
        [
            ratio(self.rate() * 8.0, rates.percentile(95)),
            ratio(rates.percentile(50), rates.percentile(98)),
            ratio(rates.percentile(10), rates.percentile(90)),
            varies,
            ratio(wide.percentile(10), wide.percentile(90)),
            course,
            (self.spans.len().max(1) as f64).log2(),
        ]
    }

    fn inflation(&self) -> Sorted {
        let measured = self.each(|_, info| {
            Some(info.rcv_rtt).filter(|rtt| *rtt > Duration::ZERO).map(Duration::as_secs_f64)
        });
        Sorted::new(measured.into_iter().map(|rtt| ratio(rtt, self.base)))
    }

    /// The round trips that the receiver measured, and what is in flight by them.
    fn of_path(&self) -> [f64; 5] {
        let inflation = self.inflation();
        let flight = ratio(self.rate() * self.base, self.segment());
        [
            inflation.percentile(50),
            inflation.percentile(10),
            inflation.percentile(90),
            flight.max(0.25).log2(),
            (self.base * 1000.0).max(0.1).log2(),
        ]
    }

    /// Payload of a full segment.
    fn segment(&self) -> f64 {
        self.spans.last().map_or(0.0, |span| span.last.rcv_mss.as_f64())
    }

    /// What arrived out of order, and when.
    fn of_order(&self) -> [f64; 6] {
        let late: Vec<f64> = self.spans.iter().map(|span| span.out_of_order() as f64).collect();
        let arrived: f64 = self.spans.iter().map(|span| span.segments().unwrap_or(0) as f64).sum();
        let fraction = ratio(late.iter().sum(), arrived);
        let with_late = late.iter().filter(|count| **count > 0.0).count() as f64;
        let passed = self.spans.iter().map(|span| {
            (span.out_of_order() > 0, span.bytes().as_f64(), span.length().as_secs_f64())
        });
        let disordered = self.spans.iter().filter(|span| span.out_of_order() > 0);
        let before = disordered.map(|span| ratio(span.first.rcv_rtt.as_secs_f64(), self.base));
        let before = Sorted::new(before);
        let most = late.iter().copied().fold(0.0, f64::max);
        [
            fraction,
            ratio(with_late, self.spans.len() as f64),
            variation(&late),
            variation_between_losses(passed),
            ratio(before.percentile(50), self.inflation().percentile(50)),
            ratio(most, late.iter().sum()),
        ]
    }

    /// How the data came: in bursts, at one rate, in whole segments.
    fn of_arrivals(&self) -> [f64; 10] {
        let (mut pauses, mut silent) = (0.0, 0.0);
        let shortest = Duration::from_secs_f64(self.base).max(Duration::from_millis(10));
        for span in self.spans {
            let length = span.length().as_secs_f64();
            let (paused, was_silent) = span.silence(shortest);
            pauses += paused * length;
            silent += was_silent * length;
        }
        let periods = self.spans.iter().filter_map(ReceiverSpan::burst_period);
        let periods = Sorted::new(periods.map(|period| ratio(period.as_secs_f64(), self.base)));
        let sizes = self.spans.iter().filter_map(|span| {
            let segments = span.segments().filter(|segments| *segments > 4)?;
            // A kernel counts segments that its card merged as one.
            let full = segments as f64 * span.last.rcv_mss.as_f64();
            Some(ratio(span.bytes().as_f64(), full).min(1.0))
        });
        let sizes = Sorted::new(sizes);
        let fine = Sorted::new(self.rates_over(0.0));
        let trips = self.rates_over(self.base.max(0.02));
        let varies = variation(&trips);
        let trips = Sorted::new(trips);
        [
            ratio(pauses, self.seconds()),
            ratio(silent, self.seconds()),
            periods.percentile(50),
            ratio(periods.percentile(10), periods.percentile(90)),
            sizes.percentile(50),
            sizes.percentile(10),
            ratio(fine.percentile(50), fine.percentile(95)),
            varies,
            ratio(trips.percentile(50), trips.percentile(98)),
            ratio(trips.percentile(10), trips.percentile(90)),
        ]
    }

    /// What a round trip carried, compared with the advertised window.
    fn of_window(&self) -> [f64; 7] {
        let carried = self.rate() * self.base;
        let windows = self.each(|_, info| window(info));
        let widest = windows.iter().copied().fold(0.0, f64::max);
        let windows = Sorted::new(windows);
        let of_window = self.spans.iter().filter_map(|span| {
            let rtt = span.infos().map(|(_, info)| info.rcv_rtt.as_secs_f64()).fold(0.0, f64::max);
            let window = span.window()?.bytes().as_f64();
            Some(ratio(span.goodput().as_f64() / 8.0 * rtt, window))
        });
        let of_window = Sorted::new(of_window);
        let space = self.each(|_, info| Some(ratio(info.rcv_space.as_f64(), window(info)?)));
        [
            ratio(carried, windows.percentile(50)),
            ratio(carried, windows.percentile(90)),
            of_window.percentile(50),
            of_window.percentile(90),
            ratio(windows.percentile(50), widest),
            ratio(windows.percentile(10), windows.percentile(50)),
            mean(&space),
        ]
    }

    /// What the application had not read.
    fn of_unread(&self) -> [f64; 3] {
        let fills = self.each(|sample, _| {
            let memory = sample.memory?;
            Some(ratio(memory.rmem_alloc.as_f64(), memory.rcvbuf.as_f64()))
        });
        let unread = self.each(|sample, info| {
            let window = info.rcv_wnd?.bytes().as_f64();
            Some(ratio(sample.rqueue.as_f64(), sample.rqueue.as_f64() + window))
        });
        let waits = self.each(|sample, _| Some(f64::from(u8::from(sample.rqueue > Bytes::ZERO))));
        [mean(&fills), mean(&unread), mean(&waits)]
    }
}

/// The advertised window in bytes.
fn window(info: &TcpInfo) -> Option<f64> {
    info.rcv_wnd.map(|window| window.bytes().as_f64())
}

//! What data and its acknowledgements change: numbers, labels, and what the limits are judged by.

use super::{CapturedSegment, Tracker};
use crate::capture::segment::{Flags, Segment, SequenceNumber};
use crate::config::Config;
use crate::connection::half::{SentData, SeriesData};
use crate::connection::relabel::{self, Relabelled, Repetition};
use crate::connection::{Label, LabelSet, stalls};
use crate::intake::HostPairSum;
use fullpipe_model::units::{Duration, Instant};

/// The data of a segment, and what was sent before it.
#[derive(Debug, Clone, Copy)]
struct SentAfter {
    /// The number after the highest sent before it, where there was one.
    next: Option<SequenceNumber>,
    sent: SentData,
    /// Its labels by Wireshark's definitions.
    labels: LabelSet,
}

impl Tracker {
    /// Notes the data of a segment: its numbers, then its labels, then what the limits are judged
    /// by. Each needs what is before it. Returns the labels, corrected by the evidence of SACK and
    /// gaps.
    pub(super) fn note_data(
        &mut self,
        config: &Config,
        captured: &CapturedSegment<'_>,
        from: usize,
        labels: LabelSet,
    ) -> Relabelled {
        let CapturedSegment { at, segment, .. } = *captured;
        let length = segment.payload_len();
        let half = &mut self.halves[from];
        if half.payload == 0 && length > 0 {
            half.begins = segment.payload_start;
        }
        half.payload += u64::from(length);
        half.payload_max = half.payload_max.max(length);
        // A probe repeats a byte or sends one that nobody may take: it moves no number.
        let is_probe = labels.contains(Label::KeepAlive) || labels.contains(Label::ZeroWindowProbe);
        if segment.end() == segment.seq || is_probe {
            return Relabelled::unchanged(labels);
        }
        let (sender, receiver) = self.pair(from);
        let next = sender.advance(at, segment, receiver.window_field());
        if length == 0 {
            // A SYN or FIN alone takes a number, and carries nothing to judge.
            return Relabelled::unchanged(labels);
        }
        receiver.note_answer(at, segment.ack);
        let mss = sender.manner.mss().into_iter().chain(receiver.manner.mss()).min();
        let sent = sender.note_payload(segment, next, mss);
        let relabelled =
            self.relabel_data(config, at, segment, from, SentAfter { next, sent, labels });
        self.note_features(config, captured, from, sent, relabelled.labels);
        relabelled
    }

    /// What the labels of data become by the evidence of SACK and gaps.
    fn relabel_data(
        &mut self,
        config: &Config,
        at: Instant,
        segment: &Segment,
        from: usize,
        data: SentAfter,
    ) -> Relabelled {
        let SentAfter { next, sent, labels } = data;
        let rtt = self.path_rtt(config);
        let (sender, receiver) = self.pair(from);
        let unchanged = Relabelled::unchanged(labels);
        let Some(next) = next else { return unchanged };
        if next.is_before(segment.seq) {
            let below_at = sender.last_data();
            sender.board().open_gap(at, below_at, next, segment);
            return unchanged;
        }
        // Data that begins where the last ended is new; one byte before that, it is the form of a
        // keep-alive, which repeats nothing that was lost.
        if !segment.seq.is_before(next) || next == segment.seq + 1 {
            return unchanged;
        }
        let repetition = Repetition {
            at,
            segment,
            new_bytes: sent.new_bytes,
            una: sent.una,
            duplicate_acks: receiver.memory.duplicate_acks(),
            silent: sender.manner.silent_for(at),
            rtt,
        };
        let relabelled = relabel::repeated(sender.board(), &repetition, labels);
        // An ACK may have prompted this segment a round trip ago, so the timer includes one.
        let timer = stalls::TIMER_LEAST + rtt.unwrap_or(Duration::ZERO);
        if relabelled.labels.contains(Label::Rto) && repetition.silent >= timer {
            sender.note_timeout(repetition.silent);
        }
        relabelled
    }

    /// Notes what the limits are judged by: what is in flight now, and the data in its series.
    fn note_features(
        &mut self,
        config: &Config,
        captured: &CapturedSegment<'_>,
        from: usize,
        sent: SentData,
        labels: LabelSet,
    ) {
        let CapturedSegment { at, segment, carried, .. } = *captured;
        let times = self.series_times(config, from);
        let (sender, receiver) = self.pair(from);
        let follows_gap = sender.recent.misses(segment);
        sender.recent.counts(sent.segments);
        sender.note_in_flight(config.labels, sent.una, segment.end());
        sender.note_data_time(at);
        let is_retransmission = labels.contains(Label::Retransmission);
        let window = receiver.known_window();
        // What is captured twice would count twice.
        let carried = if sender.is_captured_twice() { HostPairSum::default() } else { carried };
        let data = SeriesData { sent, is_retransmission, follows_gap, window, carried };
        sender.note_in_series(at, segment, data, times);
    }

    /// Notes what the segment acknowledges and which window it advertises. Returns whether its SACK
    /// blocks make it a duplicate ACK, and the round trip that it ends.
    pub(super) fn note_ack(
        &mut self,
        at: Instant,
        segment: &Segment,
        from: usize,
    ) -> (bool, Option<Duration>) {
        if !segment.flags.any(Flags::ACK) || segment.flags.any(Flags::RST) {
            return (false, None);
        }
        let (sender, receiver) = self.pair(from);
        let window = sender.note_window(segment);
        let has_new_sack = receiver.note_sack(at, segment);
        let carries_nothing = segment.end() == segment.seq;
        let is_duplicate = has_new_sack && receiver.una() == Some(segment.ack) && carries_nothing;
        let rtt = receiver.age_of(at, segment.ack);
        if let Some(ack) = receiver.note_acknowledged(at, segment.ack, rtt) {
            sender.manner.acknowledges(ack.bytes, ack.segment_size, ack.late);
            receiver.note_late_ack(at, segment, ack);
            if carries_nothing {
                receiver.note_bare_ack(at);
            }
        }
        receiver.note_ack_in_series(at, segment, window, rtt);
        (is_duplicate, rtt)
    }
}

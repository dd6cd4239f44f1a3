/* The law of crates/model/src/window_control.rs, in C: for the BPF program, and for the test that
 * compares the two (crates/agent/tests/law.rs). Names and order are the Rust file's, which also
 * says why. Bytes, nanoseconds for times, microseconds where a name ends in _us.
 * No signed division: clang 14 does not survive it on this target. */
#ifndef WINDOW_LAW_H
#define WINDOW_LAW_H

typedef unsigned long long u64;
typedef unsigned int u32;

#define KERNEL_LEADS 1000000000ULL
#define LEAST_RTT_SPAN 10000000000ULL
#define SETTLE_EVERY 5000000000ULL
#define SETTLE_ROUND_TRIPS 4
#define LEAST_EPOCH_US 1000ULL
#define LONGEST_RTT_US 0xffffffffULL
#define FLAT_EPOCHS 3
#define IDLE_ROUND_TRIPS 4
#define LEAST_STEP 4096ULL
#define LARGEST_SEGMENT 65535ULL
#define EPOCHS_OF_GROWTH 4

enum phase { PHASE_START, PHASE_HOLD, PHASE_STEADY };

struct law_settings {
	u64 threshold, threshold_us, step, least, most, keep, hold_round_trips;
};

struct look {
	u32 received, copied;
	u64 out_of_order, promised, rtt_us, own, segment;
};

struct law {
	u64 born, began, held_until, settles_at, span_ends;
	u64 rtt_now, rtt_before, settled_from;
	u64 queue, out_of_order, window, room, reads, fullest;
	/* What the last whole epoch showed; only to be shown. */
	u64 drained, drained_in_us, beyond_hole;
	u32 taken, phase, flat, epochs, stood, received, grown, two_segments;
};

static __inline__ u64 least_of(u64 a, u64 b) { return a < b ? a : b; }
static __inline__ u64 most_of(u64 a, u64 b) { return a > b ? a : b; }
static __inline__ u64 sum(u64 a, u64 b) { return a + b < a ? ~0ULL : a + b; }
/* The time passed; one that goes back counts as none. */
static __inline__ u64 since(u64 now, u64 then) { return now > then ? now - then : 0; }
/* Two segments: the least window with which the peer need not wait. */
static __inline__ u32 least_window_of(const struct look *look)
{
	return 2 * least_of(look->segment, LARGEST_SEGMENT);
}
/* Received and not yet read. */
static __inline__ u64 queue_of(const struct look *look)
{
	return (u32)(look->received - look->copied);
}
/* The next sequence number that would be read if no hole were there. */
static __inline__ u32 taken_of(const struct look *look)
{
	return look->copied + (u32)look->out_of_order;
}
/* From one sequence number to another, zero where it goes back. */
static __inline__ u64 advanced(u32 from, u32 to)
{
	u32 span = to - from;

	return span >> 31 ? 0 : span;
}
static __inline__ u64 believed_rtt(u64 rtt_us)
{
	return most_of(least_of(rtt_us, LONGEST_RTT_US), LEAST_EPOCH_US);
}

static __inline__ void law_least_rtt(struct law *law, u64 now, u64 rtt)
{
	law->rtt_now = rtt;
	law->rtt_before = rtt;
	law->span_ends = sum(now, LEAST_RTT_SPAN);
}

static __inline__ u64 law_seen(struct law *law, u64 now, u64 rtt)
{
	if (now >= law->span_ends) {
		law->rtt_before = law->rtt_now;
		law->rtt_now = rtt;
		law->span_ends = sum(now, LEAST_RTT_SPAN);
	}
	law->rtt_now = least_of(law->rtt_now, rtt);
	return least_of(law->rtt_now, law->rtt_before);
}

/* A window within the settings' bounds, and never below two segments. */
static __inline__ u64 bounded(u64 window, const struct law_settings *set, u64 two_segments)
{
	return most_of(least_of(most_of(window, set->least), set->most), two_segments);
}

static __inline__ void law_new(struct law *law, const struct law_settings *set, u64 now,
			       const struct look *first)
{
	u64 queue = queue_of(first);

	law->born = law->began = law->held_until = law->settles_at = now;
	law->taken = taken_of(first);
	law->received = first->received;
	law->queue = queue;
	law->out_of_order = first->out_of_order;
	law_least_rtt(law, now, believed_rtt(first->rtt_us));
	law->phase = PHASE_START;
	law->settled_from = law->fullest = law->reads = law->flat = law->epochs = law->stood = 0;
	law->grown = 0;
	law->drained = law->drained_in_us = law->beyond_hole = 0;
	law->two_segments = least_window_of(first);
	law->window = bounded(first->promised, set, law->two_segments);
	law->room = most_of(law->window, sum(queue, first->promised));
}

static __inline__ void law_hold(struct law *law, u64 now, u64 round_trips, u64 rtt)
{
	u64 span = least_of(round_trips * rtt, ~0ULL / 1000) * 1000;

	law->phase = PHASE_HOLD;
	law->grown = 0;
	law->held_until = sum(now, span);
}

static __inline__ void law_read_off(struct law *law, const struct law_settings *set, u64 threshold)
{
	u64 slack = least_of(threshold / 2, most_of(threshold / 4, set->step));

	law->window =
		most_of(since(sum(law->reads, slack), law->queue / 2), law->reads / 2);
}

/* The least growth: a quarter of a small window. */
static __inline__ u64 law_step(const struct law *law, const struct law_settings *set)
{
	return most_of(least_of(set->step, most_of(law->window / 4, LEAST_STEP)),
		       law->two_segments);
}

static __inline__ void law_double(struct law *law, const struct law_settings *set, u64 needed)
{
	law->window = most_of(law->window, 2 * needed + law_step(law, set));
}

static __inline__ void law_start(struct law *law, const struct law_settings *set, u64 needed)
{
	law_double(law, set, needed);
	if (needed > law->fullest + law->fullest / 4) {
		law->fullest = needed;
		law->flat = 0;
	} else if (++law->flat >= FLAT_EPOCHS) {
		law->phase = PHASE_STEADY;
	}
}

static __inline__ void law_follow(struct law *law, const struct law_settings *set, u64 needed,
				  int has_queue)
{
	if (needed + needed / 4 + law->two_segments > law->window) {
		u64 growth;

		if (has_queue)
			law->grown = 0;
		growth = law->window >> (4 - least_of(law->grown / EPOCHS_OF_GROWTH, 2));
		law->window = sum(law->window, most_of(law_step(law, set), growth));
		law->grown++;
		return;
	}
	law->grown = 0;
	if (law->window > 2 * (needed + set->step) && law->window > set->keep)
		law->window -= law->window / 16;
}

/* The decision at the end of an epoch; elapsed and rtt in microseconds, elapsed at least 1000. */
static __inline__ void law_decide(struct law *law, const struct law_settings *set, u64 now,
				  u64 bytes, u64 elapsed, u64 rtt, u64 least_rtt)
{
	u64 out_of_order = least_of(law->out_of_order, 0xffffffffULL);
	u64 threshold = set->threshold, needed, settled_from, filled;
	u32 stood = law->stood;

	if (elapsed / IDLE_ROUND_TRIPS > rtt && law->queue <= threshold)
		return;
	if (!bytes)
		return;
	needed = bytes * least_rtt / elapsed + out_of_order * least_rtt / rtt;
	threshold = least_of(threshold, most_of(needed / 2, LEAST_STEP));
	threshold = most_of(threshold, law->two_segments);
	threshold = most_of(threshold, bytes * least_of(set->threshold_us, LONGEST_RTT_US) / elapsed);
	law->stood = law->queue > threshold;
	if (law->queue > threshold) {
		if (!stood && bytes < law->queue / 4)
			return;
		law->reads = needed;
		law_read_off(law, set, threshold);
		law->settled_from = 0;
		law_hold(law, now, set->hold_round_trips, rtt);
		return;
	}
	if (law->phase == PHASE_HOLD && now < law->held_until) {
		if (law->reads)
			law_read_off(law, set, threshold);
		return;
	}
	law->reads = 0;
	if (law->phase == PHASE_START) {
		law_start(law, set, needed);
		return;
	}
	law->phase = PHASE_STEADY;
	settled_from = law->settled_from;
	law->settled_from = 0;
	filled = bytes * rtt / elapsed + out_of_order;
	if (settled_from && rtt >= settled_from - settled_from / 8) {
		law_least_rtt(law, now, rtt);
	} else if (now >= law->settles_at && filled >= law->window - law->window / 4 &&
		   rtt > least_rtt + least_rtt / 4) {
		law->window = most_of(needed, law->window / 2);
		law->settles_at = sum(now, SETTLE_EVERY);
		law->settled_from = rtt;
		law_hold(law, now, SETTLE_ROUND_TRIPS, rtt);
	} else {
		law_follow(law, set, needed, rtt > least_rtt + least_rtt / 8);
	}
}

/* Returns whether an epoch ended. */
static __inline__ int law_acknowledge(struct law *law, const struct law_settings *set, u64 now,
				      const struct look *look)
{
	u64 queue = queue_of(look), rtt = believed_rtt(look->rtt_us);
	u64 least_rtt = law_seen(law, now, rtt), elapsed = since(now, law->began) / 1000;
	u64 unread = since(queue, advanced(law->received, look->received));
	u64 bytes = advanced(law->taken, taken_of(look));
	int ended = elapsed >= rtt;

	law->queue = least_of(law->queue, unread);
	law->out_of_order = most_of(law->out_of_order, look->out_of_order);
	law->received = look->received;
	law->two_segments = least_window_of(look);
	if (ended) {
		law_decide(law, set, now, bytes, elapsed, rtt, least_rtt);
		law->drained = bytes;
		law->drained_in_us = elapsed;
		law->beyond_hole = law->out_of_order;
		law->began = now;
		law->taken = taken_of(look);
		law->queue = unread;
		law->out_of_order = look->out_of_order;
		law->epochs++;
	} else if (law->phase == PHASE_START && elapsed <= least_rtt) {
		law_double(law, set, bytes);
	}
	if (!law->reads && since(now, law->born) < KERNEL_LEADS)
		law->window = most_of(law->window, look->own);
	law->window = bounded(law->window, set, law->two_segments);
	law->room = most_of(least_of(sum(law->window, least_of(law->reads, law->window)),
				     most_of(set->most, law->window)),
			    least_of(law->room, sum(queue, look->promised)));
	return ended;
}
#endif

"""The limitation scores of M. Siekkinen, G. Urvoy-Keller, E. W. Biersack, D. Collange, "A root cause analysis toolkit
for TCP", Computer Networks 52(9), 2008, written anew from the paper's ideas.

First the connection is cut into periods in which the application held the data back, and bulk transfer periods; then
each of these has scores: how far its throughput is below the path's capacity (dispersion), how much was sent again,
how often the receive window was full, and how bursty it was (b-score). Thresholds on them name the cause.

It is not the authors' program, and the paper could not be read again on the machine on which this was written.
PUBLISHED stands at a value that we know from the paper, OPEN at one that it leaves open or that we do not know, where
this is our choice."""
import bisect
import collections
import math

# PUBLISHED: a bulk transfer period has at least so many packets of data.
PACKETS_MIN = 130
# PUBLISHED: the window is full where less than three segments of it are free.
WINDOW_SLACK = 3
# PUBLISHED: the four thresholds: of dispersion, retransmission, receive window and burstiness.
DISPERSION, REPEATED, WINDOW, BURSTY = 0.2, 0.01, 0.5, 0.25
# OPEN: neighbouring periods are put together while that keeps this part of their throughput.
KEEPS = 0.9
# OPEN: the application limits the connection if bulk transfer has less than this share of its time.
BULK_SHARE = 0.5
# OPEN: in place of PPrate, the capacity is the fastest rate between neighbouring packets that has this share of all
# pairs; rates are counted in steps of a tenth.
MODE, STEP = 0.1, math.log(1.1)


def answer(flow):
    """What limits the connection, and the scores of its largest bulk transfer period."""
    if len(flow.data) < PACKETS_MIN:
        return "too short", {"packets": len(flow.data)}
    bulk = bulk_periods(flow)
    time = flow.data[-1][0] - flow.data[0][0]
    share = sum(period_time(flow, one) for one in bulk) / time if time > 0 else 0.0
    if not bulk or share < BULK_SHARE:
        return "application", {"bulk_share": share}
    capacity = path_capacity(flow)
    votes, largest = collections.Counter(), {}
    for first, last in bulk:
        word, scores = cause(flow, first, last, capacity)
        votes[word] += last - first
        if last - first >= largest.get("packets", 0):
            largest = {"packets": last - first, **scores}
    return votes.most_common(1)[0][0], {"bulk_share": share, **largest}


def bulk_periods(flow):
    """First packet and the one after the last of each period of bulk transfer: between the silences of more than a
    round trip that follow a packet that is not full."""
    rtt = flow.rtt or 0.0
    cuts = [0]
    for index, ((at, begins, end), (then, _, _)) in enumerate(zip(flow.data, flow.data[1:])):
        if end - begins < flow.mss and then - at > rtt:
            cuts.append(index + 1)
    periods = list(zip(cuts, cuts[1:] + [len(flow.data)]))
    merged = periods[:1]
    for one in periods[1:]:
        both = (merged[-1][0], one[1])
        if throughput(flow, both) >= KEEPS * max(throughput(flow, merged[-1]), throughput(flow, one)):
            merged[-1] = both
        else:
            merged.append(one)
    return [one for one in merged if one[1] - one[0] >= PACKETS_MIN]


def period_time(flow, period):
    return flow.data[period[1] - 1][0] - flow.data[period[0]][0]


def throughput(flow, period):
    """Bytes a second; a period of one moment has none."""
    time = period_time(flow, period)
    carried = sum(end - begins for _, begins, end in flow.data[period[0]:period[1]])
    return carried / time if time > 0 else 0.0


def cause(flow, first, last, capacity):
    scores = {
        "dispersion": 1 - min(throughput(flow, (first, last)) / capacity, 1.0) if capacity else None,
        "retransmission": sum(flow.repeats[first:last]) / (last - first),
        "receive_window": window_score(flow, first, last),
        "burstiness": burstiness(flow, first, last),
    }
    if scores["dispersion"] is not None and scores["dispersion"] < DISPERSION:
        return "unshared bottleneck", scores
    if scores["receive_window"] > WINDOW:
        return ("receiver window" if scores["burstiness"] > BURSTY else "receiver window and bottleneck"), scores
    if scores["retransmission"] > REPEATED:
        return "shared bottleneck", scores
    return "unknown", scores


def window_score(flow, first, last):
    """The share of packets at which the receive window was full, as the sender saw it."""
    begins, end = (flow.data[place][0] - (flow.to_sender or 0) / 2 for place in (first, last - 1))
    full = [edge - flow.mss < WINDOW_SLACK * flow.mss
            for at, _, edge in flow.outstanding(at_sender=True) if begins <= at <= end]
    return sum(full) / len(full) if full else 0.0


def burstiness(flow, first, last):
    """How much of a round trip the packets of a window leave free: 0 where they fill it, 1 where they come at once."""
    if not flow.rtt:
        return 0.0
    gaps = sorted(after[0] - before[0] for before, after in zip(flow.data[first:last], flow.data[first + 1:last]))
    carried = throughput(flow, (first, last)) * flow.rtt / flow.mss
    return min(max(1 - gaps[len(gaps) // 2] * carried / flow.rtt, 0.0), 1.0)


def path_capacity(flow):
    """Bytes a second between neighbours: of the data behind the bottleneck, of their ACKs before it."""
    if flow.to_sender is not None and flow.rtt and flow.to_sender < flow.rtt / 2:
        events = [(at, number) for at, number, _ in flow.answers]
    else:
        events = [(at, end) for at, _, end in flow.data]
    rates = sorted(
        (later - number) / (then - at)
        for (at, number), (then, later) in zip(events, events[1:]) if then > at and later > number)
    if not rates:
        return None
    for low in reversed(rates):
        in_step = bisect.bisect_right(rates, low) - bisect.bisect_left(rates, low / math.exp(STEP))
        if in_step >= MODE * len(rates):
            return low
    return rates[-1]

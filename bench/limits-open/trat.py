"""The rules of T-RAT, written anew from the ideas of its paper: Y. Zhang, L. Breslau, V. Paxson, S. Shenker, "On the
Characteristics and Origins of Internet Flow Rates", SIGCOMM 2002, section 4.

T-RAT cuts what was sent into flights, of a round trip each, and names what limits the rate by their sizes. It needs one
direction only. It is not the authors' program, which was never published, and the paper could not be read again on the
machine on which this was written. PUBLISHED stands at a value that we know from the paper, OPEN at one that it leaves
open or that we do not know, where this is our choice."""
import bisect
import statistics

# PUBLISHED: candidates for the round trip, from 3 ms in steps of 1.3.
CANDIDATES = [0.003 * 1.3 ** step for step in range(27)]
# PUBLISHED: the next flight begins within this many candidate round trips of where this one began.
REACH = 1.7
# PUBLISHED: a flow of fewer segments has no time to be limited by anything else.
SEGMENTS_MIN = 13
# PUBLISHED: so many flights in a row within three segments of the largest window.
WINDOW_FLIGHTS, WINDOW_SLACK = 3, 3
# PUBLISHED: four flights in a row between the median less two and the 80th percentile and one; these two at most three
# segments apart.
SENDER_FLIGHTS, SENDER_SPREAD, SENDER_BELOW, SENDER_ABOVE = 4, 3, 2, 1
# PUBLISHED: of a link that is full, the 95th percentile of the times between packets is less than twice the 5th.
SPREAD = 2.0
# OPEN: how alike the flights before three losses must be to show a full link.
LOSSES, ALIKE = 3, 0.2
# OPEN: which growth of flights is slow start (delayed ACKs give 1.5, ACKs of each packet 2), which additive.
SLOW_START, ADDITIVE = (1.4, 2.1), (-1, 2)
# OPEN: the application limits the flow if it was waited for in this share of its time.
APPLICATION_SHARE = 0.5
# OPEN: the paper knows no handshake; a candidate below its round trip is left out, where a capture shows it.
BELOW_HANDSHAKE = 0.9


def answer(flow):
    """What limits the flow, and what that rests on."""
    rtt, sizes, last = round_trip(flow)
    found = {"rtt_s": rtt, "flights": len(sizes)}
    lulls = waited_for_application(flow, rtt)
    found["application_share"] = lulls
    if lulls >= APPLICATION_SHARE:
        return "application limited", found
    if flow.payload < SEGMENTS_MIN * flow.mss or starts_slowly(sizes, not any(flow.repeats)):
        return "opportunity limited", found
    window = max((window for _, _, window in flow.answers), default=0)
    if in_a_row(sizes, WINDOW_FLIGHTS, lambda size: size * flow.mss > window - WINDOW_SLACK * flow.mss):
        return "receiver window limited", found
    if is_paced(flow, rtt) or loses_alike(flow, sizes, last):
        return "bandwidth limited", found
    if any(flow.repeats):
        return "congestion limited", found
    if is_steady(sizes):
        return "sender window limited", found
    if grows(sizes):
        return "transport limited", found
    return "unknown", found


def round_trip(flow):
    """The candidate whose flights grow most often as TCP's do; their sizes, and the place of each one's last packet."""
    times, best = flow.times, None
    gaps = [0.0] + [after - before for before, after in zip(times, times[1:])]
    shortest = BELOW_HANDSHAKE * (flow.rtt or 0)
    candidates = [one for one in CANDIDATES if one >= shortest]
    # A path of less than 3 ms has none.
    if flow.rtt and flow.rtt < CANDIDATES[0]:
        candidates.insert(0, flow.rtt)
    for rtt in candidates:
        starts = flights(times, gaps, rtt)
        sizes = [after - before for before, after in zip(starts, starts[1:] + [len(times)])]
        known = sum(after for before, after in zip(sizes, sizes[1:]) if is_of_tcp(before, after))
        score = known / max(len(times), 1)
        if best is None or score > best[0]:
            best = score, rtt, sizes, [start - 1 for start in starts[1:] + [len(times)]]
    return best[1:] if best else (flow.rtt or 0.0, [], [])


def flights(times, gaps, rtt):
    """The first packet of each flight: behind the longest silence between one and 1.7 round trips from the last."""
    starts, place = [0], 0
    while True:
        low = bisect.bisect_right(times, times[place] + rtt)
        if low >= len(times):
            return starts
        high = bisect.bisect_right(times, times[place] + REACH * rtt)
        place = max(range(low, high), key=gaps.__getitem__) if high > low else low
        starts.append(place)


def is_of_tcp(before, after):
    return SLOW_START[0] <= after / before <= SLOW_START[1] or ADDITIVE[0] <= after - before <= ADDITIVE[1]


def starts_slowly(sizes, is_whole):
    """Whether all flights but the last grow as in slow start, and nothing was lost."""
    pairs = list(zip(sizes[:-1], sizes[1:-1]))
    return is_whole and bool(sizes) and all(SLOW_START[0] <= after / before <= SLOW_START[1] for before, after in pairs)


def waited_for_application(flow, rtt):
    """The share of the time in silences of more than a round trip behind a packet that is not full."""
    waited = 0.0
    for (at, begins, end), (then, _, _) in zip(flow.data, flow.data[1:]):
        if end - begins < flow.mss and then - at > rtt:
            waited += then - at
    time = flow.data[-1][0] - flow.data[0][0]
    return waited / time if time > 0 else 0.0


def in_a_row(sizes, count, holds):
    row = 0
    for size in sizes:
        row = row + 1 if holds(size) else 0
        if row >= count:
            return True
    return False


def is_paced(flow, rtt):
    """Whether packets come at nearly equal distances, without a pause."""
    times = flow.times
    gaps = sorted(after - before for before, after in zip(times, times[1:]))
    if len(gaps) < 20:
        return False
    low, high = gaps[len(gaps) // 20], gaps[len(gaps) * 19 // 20]
    return 0 < high < SPREAD * low and gaps[-1] < max(rtt, high)


def loses_alike(flow, sizes, last):
    """Whether the flights in which losses were repaired are alike, three in a row."""
    lost = []
    start = 0
    for size, end in zip(sizes, last):
        if any(flow.repeats[start:end + 1]):
            lost.append(size)
        start = end + 1
    rows = zip(*(lost[place:] for place in range(LOSSES)))
    return any(max(row) - min(row) <= ALIKE * max(row) for row in rows)


def is_steady(sizes):
    if len(sizes) < SENDER_FLIGHTS:
        return False
    middle = statistics.median(sizes)
    upper = sorted(sizes)[len(sizes) * 4 // 5]
    low, high = middle - SENDER_BELOW, upper + SENDER_ABOVE
    return upper < middle + SENDER_SPREAD and in_a_row(sizes, SENDER_FLIGHTS, lambda size: low <= size <= high)


def grows(sizes):
    pairs = list(zip(sizes, sizes[1:]))
    return bool(pairs) and sum(ADDITIVE[0] <= after - before <= ADDITIVE[1] for before, after in pairs) * 2 > len(pairs)

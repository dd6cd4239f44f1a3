"""The one-line rules that people use on a capture: they are in many blogs and runbooks, and no paper.

A full or shut receive window: the receiver. Else many retransmissions: the network. Else: the application.

Open parameters and what is taken: a window is "full" where less than a segment of it is free; it "limits" where it is
full at a tenth of the packets, or was shut; "many" retransmissions are more than 1 % of the packets."""

FULL_SHARE = 0.1
REPEATED_SHARE = 0.01


def answer(flow):
    """What the rules say, and the two numbers that they rest on."""
    free = [edge for _, _, edge in flow.outstanding()]
    full = sum(edge < 2 * flow.mss for edge in free) / max(len(free), 1)
    shut = any(window == 0 for _, _, window in flow.answers)
    repeated = sum(flow.repeats) / max(len(flow.repeats), 1)
    if shut or full >= FULL_SHARE:
        word = "receive window"
    elif repeated > REPEATED_SHARE:
        word = "network"
    else:
        word = "application"
    return word, {"window_full_share": full, "retransmission_share": repeated}

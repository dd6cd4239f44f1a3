"""A small reader of captures: the TCP headers of a pcap or pcapng file (plain or gzip), and the direction of a
connection that carried most, as the rules of others need it.

It reads IPv4 and IPv6 on Ethernet, Linux cooked captures, BSD loopback and raw IP. It checks no checksum, puts no
fragments together, and leaves out whatever it cannot read: a rule needs times, numbers and windows, no more."""
import bisect
import collections
import gzip
import ipaddress
import struct

FIN, SYN, RST, ACK = 1, 2, 4, 16
ETHERNET, RAW, COOKED, LOOPBACK, COOKED_2 = 1, 101, 113, 0, 276
# What DLT_RAW is called on some systems.
RAW_TOO = (12, 14, 228, 229)

Segment = collections.namedtuple(
    "Segment", "at source destination sequence acknowledged flags window length mss scale")


class CaptureError(Exception):
    """A file that is no capture, or ends within its header."""


def records(path):
    """Time in seconds since the second of the first packet, link type and bytes of each packet. A file that was cut in
    a packet ends before it."""
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(path, "rb") if packed else open(path, "rb") as file:
            data = file.read()
    except (OSError, EOFError) as error:
        raise CaptureError(f"read {path}: {error}") from error
    magic = data[:4]
    if magic in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1"):
        return pcap(data, "<", 1e-9 if magic[0] == 0x4D else 1e-6)
    if magic in (b"\xa1\xb2\xc3\xd4", b"\xa1\xb2\x3c\x4d"):
        return pcap(data, ">", 1e-9 if magic[3] == 0x4D else 1e-6)
    if magic == b"\x0a\x0d\x0d\x0a":
        return pcapng(data)
    raise CaptureError(f"read {path}: it is neither pcap nor pcapng; `editcap -F pcap` converts others")


def pcap(data, order, unit):
    if len(data) < 24:
        return
    link = struct.unpack_from(order + "I", data, 20)[0] & 0xFFFF
    header = struct.Struct(order + "IIII")
    place, zero = 24, None
    while place + 16 <= len(data):
        seconds, part, kept, _ = header.unpack_from(data, place)
        place += 16
        if place + kept > len(data):
            return
        # Seconds since 1970 leave a float too few digits for nanoseconds.
        zero = seconds if zero is None else zero
        yield seconds - zero + part * unit, link, data[place:place + kept]
        place += kept


def pcapng(data):
    order, links, place, zero = "<", [], 0, None
    while place + 12 <= len(data):
        if data[place:place + 4] == b"\x0a\x0d\x0d\x0a":
            order = "<" if data[place + 8:place + 12] == b"\x4d\x3c\x2b\x1a" else ">"
            links = []
        kind, length = struct.unpack_from(order + "II", data, place)
        if length < 12 or place + length > len(data):
            return
        body = data[place + 8:place + length - 4]
        if kind == 1 and len(body) >= 8:
            links.append((struct.unpack_from(order + "H", body)[0], resolution(body, order)))
        elif kind == 6 and len(body) >= 20:
            index, high, low, kept = struct.unpack_from(order + "IIII", body)
            if index < len(links) and 20 + kept <= len(body):
                link, unit = links[index]
                ticks, a_second = high << 32 | low, max(round(1 / unit), 1)
                zero = ticks // a_second if zero is None else zero
                yield (ticks - zero * a_second) * unit, link, body[20:20 + kept]
        place += length


def resolution(body, order):
    """The unit of an interface's times in seconds: its option if_tsresol."""
    place = 8
    while place + 4 <= len(body):
        code, length = struct.unpack_from(order + "HH", body, place)
        if code == 0:
            break
        if code == 9 and length >= 1 and place + 4 < len(body):
            value = body[place + 4]
            return 2.0 ** -(value & 0x7F) if value & 0x80 else 10.0 ** -value
        place += 4 + length + -length % 4
    return 1e-6


def network(link, frame):
    """Where the IP packet of a frame begins, or None."""
    if link == RAW or link in RAW_TOO:
        return 0
    if link == LOOPBACK:
        return 4
    place, kind = {ETHERNET: (12, 14), COOKED: (14, 16), COOKED_2: (0, 20)}.get(link, (None, None))
    if place is None or len(frame) < kind:
        return None
    name = frame[place:place + 2]
    while link == ETHERNET and name in (b"\x81\x00", b"\x88\xa8"):
        place, kind = place + 4, kind + 4
        name = frame[place:place + 2]
    return kind if name in (b"\x08\x00", b"\x86\xdd") else None


def segments(path):
    """The TCP segments of a capture in its order."""
    names = {}
    for at, link, frame in records(path):
        try:
            segment = of_frame(at, link, frame, names)
        except struct.error:
            # The packet was cut before the end of its TCP header.
            continue
        if segment:
            yield segment


def of_frame(at, link, frame, names):
    place = network(link, frame)
    if place is None or place >= len(frame):
        return None
    version = frame[place] >> 4
    if version == 4:
        header = (frame[place] & 15) * 4
        total, fragment = struct.unpack_from("!H2xH", frame, place + 2)
        if frame[place + 9] != 6 or fragment & 0x1FFF:
            return None
        ends = frame[place + 12:place + 16], frame[place + 16:place + 20]
        # A host that hands segments on unsplit leaves the length open.
        whole = (total or len(frame) - place) - header
        place += header
    elif version == 6:
        whole, following = struct.unpack_from("!HB", frame, place + 4)
        if following != 6:
            return None
        ends = frame[place + 8:place + 24], frame[place + 24:place + 40]
        place += 40
    else:
        return None
    from_port, to_port, sequence, acknowledged, offset, flags, window = struct.unpack_from("!HHIIBBH", frame, place)
    header = (offset >> 4) * 4
    mss, scale = options(frame[place + 20:place + header]) if flags & SYN else (None, None)
    source, destination = (
        (names.get(end) or names.setdefault(end, str(ipaddress.ip_address(end))), port)
        for end, port in zip(ends, (from_port, to_port)))
    return Segment(at, source, destination, sequence, acknowledged, flags, window, whole - header, mss, scale)


def options(data):
    mss, scale, place = None, None, 0
    while place < len(data):
        kind = data[place]
        if kind == 0:
            break
        if kind == 1:
            place += 1
            continue
        if place + 1 >= len(data) or data[place + 1] < 2:
            break
        length = data[place + 1]
        if kind == 2 and length == 4 and place + 4 <= len(data):
            mss = struct.unpack_from("!H", data, place + 2)[0]
        if kind == 3 and length == 3 and place + 3 <= len(data):
            scale = min(data[place + 2], 14)
        place += length
    return mss, scale


class Count:
    """Follows sequence numbers of 32 bits beyond their turn."""

    def __init__(self, first):
        self.first, self.last = first, 0

    def __call__(self, number):
        ahead = (number - self.first - self.last) & 0xFFFFFFFF
        value = self.last + (ahead if ahead < 1 << 31 else ahead - (1 << 32))
        self.last = max(self.last, value)
        return value


class Flow:
    """The direction of a connection that carried most: its data, and what the other end answered.

    `data` has a packet a line: time, number of its first byte, number after its last. What a host recorded in one
    piece that is larger than the segments that the ends agreed on stands there as the segments that it was sent in, all
    at its time: the rules are older than offloads, and count packets.
    `answers` has time, number acknowledged and window in bytes."""

    def __init__(self, client, server, sender, every):
        self.client, self.server, self.sender = client, server, sender
        self.by_client = sender == client
        agreed = [one.mss for one in every if one.flags & SYN and one.mss]
        sent = [one.length for one in every if one.source == sender]
        self.mss = min([max(sent), *agreed])
        # The option says what fits without options of TCP; what was sent says what fits with them.
        full = [length for length in sent if 0 < length <= self.mss]
        self.mss = max(full, default=self.mss)
        self.began, self.ended = every[0].at, max(one.at for one in every)
        self.handshake(every)
        self.data, self.answers = [], []
        scale = self.scale_of_receiver(every)
        first = next(one.sequence for one in every if one.source == sender)
        count_sent, count_heard = Count(first), Count(first)
        for one in every:
            if one.source == sender:
                begins = count_sent(one.sequence) + (1 if one.flags & SYN else 0)
                for place in range(0, one.length, self.mss):
                    end = begins + min(place + self.mss, one.length)
                    self.data.append((one.at, begins + place, end))
            elif one.flags & ACK and not one.flags & RST:
                # The window of a SYN is not scaled.
                window = one.window << (0 if one.flags & SYN else scale)
                self.answers.append((one.at, count_heard(one.acknowledged), window))
        self.label_repeats()

    def handshake(self, every):
        """The round trip of the handshake, and which part of it lies between the capture and the data's sender."""
        self.rtt = self.to_sender = None
        opening = [one for one in every if one.flags & SYN and not one.flags & ACK]
        answer = next((one for one in every if one.flags & SYN and one.flags & ACK), None)
        if not opening or not answer:
            return
        asked = max((one.at for one in opening if one.at <= answer.at), default=None)
        opens = next((one.at for one in every if one.source == self.client and one.at >= answer.at and one.flags & ACK), None)
        if asked is None or opens is None:
            return
        self.rtt = opens - asked
        self.to_sender = opens - answer.at if self.by_client else answer.at - asked

    def scale_of_receiver(self, every):
        scales = {one.source: one.scale for one in every if one.flags & SYN}
        if len(scales) == 2 and None not in scales.values():
            return next(scale for source, scale in scales.items() if source != self.sender)
        return 0

    def label_repeats(self):
        """Which packets carry what was seen before, or what came after it: `repeats` has a truth value a packet."""
        self.repeats, highest = [], 0
        for _, begins, end in self.data:
            self.repeats.append(end <= highest and end - begins > 1)
            highest = max(highest, end)
        self.payload = highest - min((begins for _, begins, _ in self.data), default=0)

    @property
    def times(self):
        return [at for at, _, _ in self.data]

    @property
    def name(self):
        return f"{self.client[0]}:{self.client[1]}-{self.server[0]}:{self.server[1]}"

    def outstanding(self, at_sender=False):
        """For each data packet: time, bytes unacknowledged with it, free window before it; `at_sender` moves the
        times to the sender's place by the handshake's round trip."""
        shift = (self.to_sender or 0) / 2 if at_sender else 0
        heard = [at + shift for at, _, _ in self.answers]
        acknowledged, edges = [], []
        for _, number, window in self.answers:
            acknowledged.append(max(number, acknowledged[-1] if acknowledged else number))
            edges.append(number + window)
        highest = 0
        for at, begins, end in self.data:
            index = bisect.bisect_right(heard, at - shift) - 1
            highest = max(highest, end)
            if index >= 0:
                yield at - shift, highest - acknowledged[index], edges[index] - begins


def flows(path):
    """The larger direction of each connection of a capture."""
    found = {}
    for segment in segments(path):
        key = min((segment.source, segment.destination), (segment.destination, segment.source))
        found.setdefault(key, []).append(segment)
    for (one, other), every in found.items():
        sent = collections.Counter()
        for segment in every:
            sent[segment.source] += segment.length
        if not sum(sent.values()):
            continue
        opener = next((s.source if not s.flags & ACK else s.destination for s in every if s.flags & SYN), None)
        # Where no SYN is there, the end with the smaller port serves.
        client = opener or max(one, other, key=lambda end: end[1])
        server = other if client == one else one
        yield Flow(client, server, max((one, other), key=lambda end: sent[end]), every)


def largest(path):
    """The flow that carried most, or None."""
    return max(flows(path), key=lambda flow: flow.payload, default=None)

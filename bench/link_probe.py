"""Both ends of a measurement through an emulated path: bench/link.py starts them, on either side of each emulator.

`serve PORT` answers one request a connection: `bulk SECONDS` (bytes as fast as they go), `echo` (each byte comes back)
or `count` (how many datagrams came to the same port). `bulk`, `echo`, `handshake` and `loss` ask, and print JSON lines; `bulk` says
`begin` and `end` of what it counts at the moment they happen, so that the emulator's CPU is read for the same span.
"""
import json
import socket
import sys
import threading
import time

WARM_UP = 1.5
# Bytes of a segment's payload and of its IP packet: 1500 with TCP timestamps.
PAYLOAD, PACKET = 1448, 1500


def say(**values):
    print(json.dumps(values), flush=True)


class Datagrams(threading.Thread):
    """Counts the distinct numbers in the datagrams that come to a port."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self.socket.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE: none may be lost here
        except PermissionError:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.socket.bind(("0.0.0.0", port))
        self.seen = set()
        self.start()

    def run(self):
        while True:
            self.seen.add(self.socket.recv(2048)[:8])


def answer(stream, datagrams):
    with stream:
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        words = stream.makefile("rb", buffering=0).readline().split()
        if not words:
            return  # Of a connection the handshake was wanted, and no more.
        if words[0] == b"bulk":
            chunk, end = bytes(256 << 10), time.monotonic() + float(words[1])
            try:
                stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
            except OSError:
                pass  # The machine's own, then.
            try:
                while time.monotonic() < end:
                    stream.sendall(chunk)
            except OSError:
                pass  # The other end has seen enough.
        elif words[0] == b"echo":
            while byte := stream.recv(1):
                stream.sendall(byte)
        elif words[0] == b"count":
            stream.sendall(b"%d\n" % len(datagrams.seen))


def serve(port):
    datagrams = Datagrams(port)
    listener = socket.create_server(("0.0.0.0", port))
    while True:
        stream, _ = listener.accept()
        threading.Thread(target=answer, args=(stream, datagrams), daemon=True).start()


def ask(address, request):
    """A connection on which `request` was said; the emulator or the server may take a moment to stand."""
    end = time.monotonic() + 10
    while True:
        try:
            stream = socket.create_connection(address, timeout=10)
            break
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    stream.sendall(request + b"\n")
    return stream


def bulk(address, seconds):
    stream = ask(address, b"bulk %f" % (WARM_UP + seconds + 5))
    chunk, start, begin, counted = bytearray(256 << 10), time.monotonic(), None, 0
    while True:
        count = stream.recv_into(chunk)
        now = time.monotonic()
        if not count:
            raise SystemExit("the server ended the transfer early")
        if begin is None:
            if now - start >= WARM_UP:
                begin = now
                say(event="begin")
        else:
            counted += count
            if now - begin >= seconds:
                say(event="end")
                sys.stdin.readline()  # Until the emulator's CPU was read: it ends when this does.
                say(bits_per_second=counted * 8 * PACKET / PAYLOAD / (now - begin), bits=counted * 8 * PACKET / PAYLOAD)
                return


def echo(address, times):
    stream, took = ask(address, b"echo"), []
    for _ in range(times + 10):
        start = time.perf_counter()
        stream.sendall(b"x")
        stream.recv(1)
        took.append(time.perf_counter() - start)
    # The first ones meet a cold path.
    say(rtts=took[10:])


def handshake(address, times):
    """Round-trip times by the kernel's own clock, from SYN to SYN-ACK: no program has to wake at either end."""
    ask(address, b"echo").close()
    took = []
    for _ in range(times):
        with socket.create_connection(address, timeout=10) as stream:
            # struct tcp_info: tcpi_rtt, microseconds.
            took.append(int.from_bytes(stream.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 72)[68:72], sys.byteorder) / 1e6)
    say(rtts=took)


def loss(address, number):
    """Datagrams of 100 bytes, 10,000 a second: well within any rate, so that only what was asked for is lost."""
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.connect(address)
    start = time.perf_counter()
    for i in range(number):
        while time.perf_counter() < start + i / 10_000:
            time.sleep(0.0005)
        sender.send(i.to_bytes(8, "big") + bytes(64))
    time.sleep(0.5)
    say(sent=number, arrived=int(ask(address, b"count").makefile().readline()))


if __name__ == "__main__":
    role = sys.argv[1]
    if role == "serve":
        serve(int(sys.argv[2]))
    to = (sys.argv[2], int(sys.argv[3]))
    {"bulk": lambda: bulk(to, float(sys.argv[4])), "echo": lambda: echo(to, int(sys.argv[4])),
     "handshake": lambda: handshake(to, int(sys.argv[4])), "loss": lambda: loss(to, int(sys.argv[4]))}[role]()

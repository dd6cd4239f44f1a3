#!/usr/bin/env python3
"""Attacks on the built product: `attack.py NAME PROGRAM SECONDS`, one attack each, as attack.sh lists them.

Each prints one line of what was tried, or fails. It talks only to loopback and to namespaces that fullpipe makes, ends
only processes that it started, and leaves nothing.
"""

import contextlib, gzip, hashlib, os, pathlib, queue, random, resource, signal, socket, struct, subprocess, sys
import tempfile, threading, time, urllib.request

program, seconds = sys.argv[2], float(sys.argv[3])
folder = pathlib.Path(tempfile.mkdtemp(prefix="attack-"))
file = folder / "upload"


def run(*words, **options):
    """The program's end; one that takes longer than a minute fails the attack."""
    return subprocess.run([program, *map(str, words)], capture_output=True, timeout=60, **options)


@contextlib.contextmanager
def service(*words):
    """The program as a service that is killed at the end."""
    with subprocess.Popen([program, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def eventually(what, within=10.0):
    """Asks until it is so, for some seconds."""
    end = time.monotonic() + within
    while True:
        try:
            found = what()
        except OSError:
            found = None
        if found:
            return found
        assert time.monotonic() < end, "not within %.0f s" % within
        time.sleep(0.1)


def hostile_captures():
    """Captures of the repository with bytes changed at random: each is analysed or refused (0 or 4)."""
    seeds = sorted(pathlib.Path("crates/flow/tests/lab/captures").rglob("*.pcap.gz"))
    assert seeds, "no captures to change"
    end, tried = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        seed = random.randrange(2**32)
        draw = random.Random(seed)
        data = bytearray(gzip.decompress(draw.choice(seeds).read_bytes())[:200_000])
        for _ in range(draw.randrange(1, 200)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        (folder / "hostile").write_bytes(data[: draw.randrange(1, len(data))])
        done = subprocess.run([program, "analyze", str(folder / "hostile")], capture_output=True, timeout=60)
        assert done.returncode in (0, 4), f"seed {seed}: exit code {done.returncode}: {done.stderr[-500:]}"
        tried += 1
    print(tried, "captures")


def random_kills():
    """Links of which a process chosen at random is killed (SIGKILL) at a random moment: soon nothing of them is left."""

    def of_link(mark):
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    alive = (entry / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
                    if alive and mark in (entry / "environ").read_bytes().split(b"\0"):
                        found.append(int(entry.name))
                except OSError:
                    pass
        return found

    end, tried = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        mark = f"ATTACK_MARK={os.getpid()}-{tried}"
        name, value = mark.split("=")
        link = subprocess.Popen([program, "link", "-q", "--rtt", "10ms", "--", "sleep", "20"],
                                env=dict(os.environ, **{name: value}), stderr=subprocess.DEVNULL)
        time.sleep(random.uniform(0, 1.5))
        victims = of_link(mark.encode())
        if victims:
            try:
                os.kill(random.choice(victims), signal.SIGKILL)
            except ProcessLookupError:
                pass
        else:
            link.kill()
        link.wait(60)
        limit = time.monotonic() + 30
        while left := of_link(mark.encode()):
            assert time.monotonic() < limit, f"processes {left} are left"
            time.sleep(0.05)
        tried += 1
    assert tried > 0
    print(tried, "links")


def hashed_uploads():
    """Uploads of random lengths over random paths with losses: each arrives as it was sent, or the link says so."""
    listener, arrived = socket.create_server(("127.0.0.1", 0)), queue.Queue()

    def serve():
        while True:
            connection, _ = listener.accept()
            digest = hashlib.sha256()
            while data := connection.recv(65536):
                digest.update(data)
            arrived.put(digest.hexdigest())
            connection.close()

    threading.Thread(target=serve, daemon=True).start()
    upload = f"cat {file} > /dev/tcp/$FULLPIPE_SERVER/{listener.getsockname()[1]}"
    end, tried, total = time.monotonic() + seconds, 0, 0
    while time.monotonic() < end:
        data = random.randbytes(random.choice([1, 1000, 20_000, 300_000, 2_000_000]))
        file.write_bytes(data)
        path = ["--rtt", f"{random.choice([0, 1, 20, 100])}ms", "--rate", f"{random.choice([20, 100, 1000])}mbit",
                "--loss", random.choice(["0%", "0.1%", "1%"])]
        done = subprocess.run([program, "link", "-q", *path, "--", "bash", "-c", upload], capture_output=True, timeout=120)
        assert done.returncode == 0, f"{path}, {len(data)} B: {done}"
        digest = arrived.get(timeout=30)
        assert digest == hashlib.sha256(data).hexdigest(), f"{path}, {len(data)} B: other bytes have arrived"
        tried, total = tried + 1, total + len(data)
    assert tried > 0
    print(tried, "uploads,", total, "bytes")


PCAP = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 0xFFFFFFFF, 101)


def segment(number, flags, at):
    """A record of a raw IPv4 packet of the connection `number`."""
    tcp = struct.pack(">HHIIBBHHH", 1024 + number % 60_000, 443, number, 0, 0x50, flags, 1000, 0, 0)
    ip = struct.pack(">BBHHHBBHII", 0x45, 0, 40, 1, 0, 64, 6, 0, 0x0A000000 + number // 60_000, 0x0B000001)
    return struct.pack("<IIII", 1_000_000 + at // 1_000_000, at % 1_000_000, 40, 40) + ip + tcp


def scans():
    """A million connections of one packet and of a SYN and a reset, in every form of output: at most 300 MB."""
    most = 0
    for kind, packets in [("opened", [0x02]), ("reset", [0x02, 0x04])]:
        capture = folder / kind
        with capture.open("wb") as out:
            out.write(PCAP)
            for begin in range(0, 1_000_000, 10_000):
                numbers = range(begin, begin + 10_000)
                out.write(b"".join(segment(n, flags, n * 10) for n in numbers for flags in packets))
        forms = [[], ["--json"], ["--jsonl"], ["--csv"], ["--parquet", folder / "rows.parquet"], ["--top", "5"]]
        for words in [["analyze", *form, capture] for form in forms] + [["report", "-o", folder / "r.html", capture]]:
            done = subprocess.Popen([program, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            _, status, usage = os.wait4(done.pid, 0)
            done.returncode = os.waitstatus_to_exitcode(status)
            assert done.returncode == 0, f"{words}: exit code {done.returncode}"
            assert usage.ru_maxrss <= 300_000, f"{words}: {usage.ru_maxrss} kB"
            most = max(most, usage.ru_maxrss)
            (folder / "rows.parquet").unlink(missing_ok=True)
    print("2 million connections, 7 forms,", most, "kB at most")


def bombs():
    """Captures that unpack to gigabytes of nothing, claim gigabytes, never end or are no file: at most 100 MB, an answer."""
    zeros = folder / "zeros.gz"
    with gzip.open(zeros, "wb", 1) as out:
        out.write(PCAP)
        for _ in range(200):
            out.write(bytes(1 << 20))
    long = folder / "long.pcap"
    long.write_bytes(PCAP + struct.pack("<IIII", 1, 0, 0xFFFFFFF0, 0xFFFFFFF0) + b"a" * 100)
    empty = folder / "empty"
    empty.write_bytes(b"")
    twice = folder / "twice.gz"
    twice.write_bytes(gzip.compress(zeros.read_bytes()))
    tried = [zeros, long, empty, twice, "/dev/zero", "/dev/urandom", folder, folder / "missing"]
    for one in tried:
        done = run("analyze", one, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30)))
        assert done.returncode in (0, 4), f"{one}: exit code {done.returncode}: {done.stderr[-500:]}"
    print(len(tried), "bombs")


def hostile_server(body):
    """A web server of answers that are wrong in one way each, by path; gives its port and the number of ways."""
    length = b"Content-Length: %d\r\n" % len(body)
    answers = {
        "short": length + b"\r\n" + body[:1000],
        "short-with-tag": length + b'ETag: "x"\r\nAccept-Ranges: bytes\r\n\r\n' + body[:1000],
        "negative": b"Content-Length: -5\r\n\r\n" + body[:100],
        "plus": b"Content-Length: +100\r\n\r\n" + body[:100],
        "two-lengths": b"Content-Length: 100\r\nContent-Length: 50\r\n\r\n" + body[:100],
        "huge": b"Content-Length: 18446744073709551615\r\n\r\n" + body[:100],
        "both": b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        "bad-chunk": b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nZZ\r\n",
        "big-chunk": b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nabc",
        "cut-chunk": b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "fields": b"X: y\r\n" * 100_000 + length + b"\r\n" + body,
    }

    def answer(connection):
        with connection, contextlib.suppress(OSError):
            path = connection.recv(65536).split(b" ")[1].decode().strip("/")
            status = b"206 Partial" if path == "unasked-range" else b"200 OK"
            connection.sendall(b"HTTP/1.1 %s\r\n" % status + answers.get(path, length + b"\r\n" + body[:1]))

    def accept():
        while True:
            threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()

    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1], [*answers, "unasked-range"]


def hostile_answers():
    """Answers that are short, cut, contradictory or endless, by one and by four connections: no file, and an error."""
    port, ways = hostile_server(random.randbytes(1 << 20))
    for way in ways:
        for connections in ("1", "4"):
            got = folder / "got"
            done = run("get", "--retry", "1", "--connections", connections, "-o", got, f"http://127.0.0.1:{port}/{way}")
            assert done.returncode == 1, f"{way}: {done}"
            assert not got.exists(), f"{way}: a file under the final name"
            for left in folder.glob("got*"):
                left.unlink()
    print(len(ways), "answers, twice each")


def foreign_parts():
    """`.part` files that are links, FIFOs or another's: none is followed, and the file is the server's."""
    body = random.randbytes(100_000)

    def answer(connection):
        with connection, contextlib.suppress(OSError):
            connection.recv(65536)
            connection.sendall(b'HTTP/1.1 200 OK\r\nETag: "v"\r\nContent-Length: %d\r\n\r\n' % len(body) + body)

    def accept():
        while True:
            threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()

    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    threading.Thread(target=accept, daemon=True).start()
    got, part, victim = folder / "got", folder / "got.part", folder / "victim"
    for kind in ("link", "fifo", "writable", "link of the record"):
        victim.write_bytes(b"precious")
        if kind == "link":
            part.symlink_to(victim)
        elif kind == "fifo":
            os.mkfifo(part)
        elif kind == "writable":
            part.write_bytes(bytes(1000))
            part.chmod(0o666)
        else:
            (folder / "got.part.json").symlink_to(victim)
        done = run("get", "-o", got, f"http://127.0.0.1:{listener.getsockname()[1]}/")
        assert victim.read_bytes() == b"precious", f"{kind}: the link was followed"
        assert done.returncode == 0, f"{kind}: {done}"
        assert got.read_bytes() == body and got.stat().st_uid == os.geteuid(), f"{kind}: another file"
        for left in folder.glob("got*"):
            left.unlink()
    print("4 kinds")


def silent_scrapers():
    """Clients that say nothing, half a request, or read nothing: a scraper is answered within 10 s."""
    port = free_port()
    with service("export", "--listen", f"127.0.0.1:{port}"):
        scrape = lambda: urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=3).read()
        eventually(scrape)
        for first in (b"", b"GET /metrics HTTP/1.1\r\nX: ", b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 200):
            with contextlib.ExitStack() as held:
                for _ in range(64):
                    client = held.enter_context(socket.create_connection(("127.0.0.1", port), timeout=3))
                    with contextlib.suppress(OSError):
                        client.send(first)
                eventually(scrape)
    print("3 kinds of 64 clients")


def strangers():
    """300 silent strangers from two addresses, and garbage: who comes from elsewhere is served within 10 s."""
    port = free_port()
    with service("serve", "--listen", f"127.0.0.1:{port}"):
        test = lambda: run("test", "--for", "1s", f"127.0.0.1:{port}").returncode == 0
        eventually(test, 30)
        with contextlib.ExitStack() as held:
            for number in range(300):
                source = (f"127.0.0.{2 + number % 2}", 0)
                with contextlib.suppress(OSError):
                    client = socket.create_connection(("127.0.0.1", port), timeout=3, source_address=source)
                    held.enter_context(client).send([b"", b"R", random.randbytes(500)][number % 3])
            eventually(test, 30)
    print("300 strangers")


def hostile_names():
    """File names with control characters: no byte of them that a terminal obeys is printed for people."""
    seed = sorted(pathlib.Path("crates/flow/tests/lab/captures").rglob("*.pcap.gz"))[0]
    named = folder / "a\x1b[2J\x07\u202eb.pcap.gz"
    named.write_bytes(seed.read_bytes())
    for words in (["analyze", named], ["analyze", "--top", "3", named], ["analyze", f"{named}x"], ["report", f"{named}x"]):
        done = run(*words)
        for output in (done.stdout, done.stderr):
            assert not {0x1B, 0x07} & set(output) and "\u202e".encode() not in output, f"{words}: {output[:200]}"
    print("4 commands")


def main():
    try:
        globals()[sys.argv[1]]()
    finally:
        subprocess.run(["rm", "-rf", str(folder)])


main()

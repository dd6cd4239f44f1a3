"""Measures emulators of a path beside each other; bench/link.sh finds them and calls this.

Every subject gets the same probe (link_probe.py) at both ends and the same path. CPU is what the emulator's own
processes ran (all threads, user and system, by the scheduler's count), between the probe's `begin` and `end`: neither
start, nor the probe, nor the stacks of the two ends as far as they run in the probe. Everything that makes devices runs
in a network namespace that ends with it.
"""
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
PROBE = [sys.executable, str(HERE / "link_probe.py")]
PORT = 5300
RATES = [("1 Mbit/s", 10**6), ("10 Mbit/s", 10**7), ("100 Mbit/s", 10**8), ("1 Gbit/s", 10**9), ("2.5 Gbit/s", 25 * 10**8),
         ("no limit", None)]
RTT_MS = 4
SECONDS = 2.5
ECHO_RTT_MS, ECHOES = 20, 300
LOSS, DATAGRAMS = 0.01, 20_000


class Cannot(Exception):
    """Why a cell has no figure."""


def queue_bytes(rate, rtt_ms):
    return max(64 * 1500, int(rate * rtt_ms / 1000 / 8))


class Fullpipe:
    name = "fullpipe link"

    def __init__(self, program):
        self.program = program

    def command(self, probe, rate=None, rtt_ms=0, loss=0.0):
        path = ["--rtt", f"{rtt_ms}ms"]
        if rate:
            path += ["--down-rate", f"{rate}bit", "--down-queue", f"{queue_bytes(rate, rtt_ms)}B"]
        if loss:
            path += ["--up-loss", f"{loss:.2%}"]
        server = " ".join([*PROBE, "serve", str(PORT)])
        role, *rest = probe
        return [self.program, "link", "-q", *path, "--server", server, "--", *PROBE, role, "{server}", str(PORT), *rest]


class Rattan:
    name = "rattan"

    def __init__(self, program):
        self.program = program

    def command(self, probe, rate=None, rtt_ms=0, loss=0.0):
        path = []
        if rate:
            # The same queue as ours; rattan's default has no end.
            path += ["--downlink-bandwidth", f"{rate}bps", "--downlink-queue", "droptail", "--downlink-queue-args",
                     json.dumps({"packet_limit": None, "byte_limit": queue_bytes(rate, rtt_ms)})]
        if rtt_ms:
            path += ["--uplink-delay", f"{rtt_ms * 500}us", "--downlink-delay", f"{rtt_ms * 500}us"]
        if loss:
            path += ["--uplink-loss", str(loss)]
        role, *rest = probe
        inner = " ".join([*PROBE, role, "$RATTAN_BASE", str(PORT), *rest])
        return [self.program, "link", *path, "--", "sh", "-c", inner]


class Toxiproxy:
    name = "toxiproxy"

    def __init__(self, program):
        self.program = program

    def prepare(self, role, rate=None, rtt_ms=0, loss=0.0):
        """The proxy's toxics, by its HTTP interface; runs in the proxy's own namespace."""
        if loss:
            raise Cannot("a proxy of streams has no packets to lose")
        if role == "handshake":
            raise Cannot("a proxy of streams answers handshakes itself")

        def post(path, body):
            request = urllib.request.Request("http://127.0.0.1:8474" + path, json.dumps(body).encode(),
                                             {"Content-Type": "application/json"})
            for attempt in range(100):
                try:
                    return urllib.request.urlopen(request, timeout=5).read()
                except urllib.error.HTTPError:
                    raise
                except OSError:
                    time.sleep(0.05)
            raise Cannot("its HTTP interface did not come up")

        post("/proxies", {"name": "p", "listen": f"127.0.0.1:{PORT + 1}", "upstream": f"127.0.0.1:{PORT}"})
        for stream in ("upstream", "downstream"):
            if rtt_ms:
                post("/proxies/p/toxics", {"type": "latency", "stream": stream, "attributes": {"latency": rtt_ms // 2}})
        if rate:
            post("/proxies/p/toxics", {"type": "bandwidth", "stream": "downstream", "attributes": {"rate": rate // 8000}})


def main_of_namespace(subject, probe, options):
    """Inside of a namespace of its own: the server, the emulator, the probe. Its children die with it."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    children = [subprocess.Popen([*PROBE, "serve", str(PORT)])]
    try:
        if isinstance(subject, Toxiproxy):
            children.append(subprocess.Popen([subject.program], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            subject.prepare(probe[0], **options)
            return subprocess.run([*PROBE, probe[0], "127.0.0.1", str(PORT + 1), *probe[1:]]).returncode
        return subprocess.run(subject.command(probe, **options)).returncode
    except Cannot as why:
        print(json.dumps({"cannot": str(why)}), flush=True)
        return 0
    finally:
        for child in children:
            child.kill()


def processes_of(program, root):
    """Descendants of `root` that run this program."""
    parents = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                stat = pathlib.Path(entry.path, "stat").read_text()
                parents[int(entry.name)] = int(stat.rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
    found = []
    for pid in parents:
        at = pid
        while at in parents and at != root:
            at = parents[at]
        try:
            if at == root and os.path.samefile(f"/proc/{pid}/exe", program):
                found.append(pid)
        except OSError:
            continue
    return found


def cpu(program, root):
    """Nanoseconds that the program's threads ran until now, by thread."""
    ran = {}
    for pid in processes_of(program, root):
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            try:
                ran[task.name] = int((task / "schedstat").read_text().split()[0])
            except OSError:
                continue
    return ran


def measure(subject, probe, **options):
    """What the probe said, as one dictionary, with the emulator's CPU seconds where it said when to count."""
    if isinstance(subject, Fullpipe):
        command = subject.command(probe, **options)
    else:
        # Mounts of its own, as rattan keeps names of namespaces below /run.
        command = ["unshare", "--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", sys.executable,
                   __file__, "inside", type(subject).__name__, subject.program, json.dumps([probe, options])]
    with tempfile.TemporaryFile("w+") as errors:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                                 text=True, start_new_session=True)
        said, marks = {}, []
        watchdog = subprocess.Popen(["sh", "-c", f"sleep 45; kill -TERM -{child.pid}"], start_new_session=True)
        try:
            for line in child.stdout:
                if not line.startswith("{"):
                    continue
                values = json.loads(line)
                event = values.pop("event", None)
                if event:
                    marks.append(cpu(subject.program, child.pid))
                if event == "end":
                    print(file=child.stdin, flush=True)
                said.update(values)
            code = child.wait()
        finally:
            os.killpg(watchdog.pid, signal.SIGKILL)
            watchdog.wait()
        if "cannot" in said:
            raise Cannot(said["cannot"])
        if code or not said:
            errors.seek(0)
            why = (errors.read().strip().splitlines() or ["said nothing"])[-1]
            raise Cannot(f"exit {code}: {why[:160]}")
    if len(marks) == 2:
        if not marks[1]:
            raise Cannot("its processes were not found")
        said["cpu"] = sum(ran - marks[0].get(task, 0) for task, ran in marks[1].items()) / 1e9
    return said


def quantile(values, part):
    return sorted(values)[min(len(values) - 1, math.ceil(part * len(values)) - 1)]


class Table:
    def __init__(self):
        self.notes = []

    def cell(self, subject, what, measured):
        try:
            return measured()
        except Cannot as why:
            self.notes.append(f"{subject}, {what}: {why}")
            print(f"CANNOT: {subject}, {what}: {why}", file=sys.stderr, flush=True)
            return None


def rates(table, subjects):
    print(f"| rate asked, {RTT_MS} ms RTT | emulator | delivered, Mbit/s | error | CPU s per Gbit |\n|---|---|--:|--:|--:|")
    for name, rate in RATES:
        for subject in subjects:
            got = table.cell(subject.name, name, lambda: subject.rate(rate) if isinstance(subject, Netem) else measure(
                subject, ["bulk", str(SECONDS)], rate=rate, rtt_ms=RTT_MS if rate else 0))
            if got is None:
                print(f"| {name} | {subject.name} | - | - | - |", flush=True)
                continue
            bits = got["bits_per_second"]
            error = f"{100 * (bits / rate - 1):+.2f} %" if rate else ""
            ran = f"{got['cpu'] / (got['bits'] / 1e9):.3f}" if "cpu" in got else "-"
            print(f"| {name} | {subject.name} | {bits / 1e6:.{3 if bits < 1e7 else 1}f} | {error} | {ran} |", flush=True)


def delays(table, subjects):
    print(f"\n| delay asked: {ECHO_RTT_MS} ms RTT | seen by | error p50, us | error p99, us | worst, us |\n|---|---|--:|--:|--:|")
    for subject in subjects:
        for role, seen_by in (("handshake", "the kernel"), ("echo", "a program")):
            got = table.cell(subject.name, f"delay seen by {seen_by}", lambda: subject.delay(role) if hasattr(
                subject, "delay") else measure(subject, [role, str(ECHOES)], rtt_ms=ECHO_RTT_MS))
            if got is None:
                print(f"| {subject.name} | {seen_by} | - | - | - |", flush=True)
                continue
            errors = [rtt * 1e6 - ECHO_RTT_MS * 1000 for rtt in got["rtts"]]
            print(f"| {subject.name} | {seen_by} | {quantile(errors, 0.5):+.0f} | {quantile(errors, 0.99):+.0f} | "
                  f"{max(errors):+.0f} |", flush=True)


def losses(table, subjects):
    print(f"\n| loss asked: {LOSS:.0%} | packets | lost | 99.9 % interval of what was asked |\n|---|--:|--:|--:|")
    for subject in subjects:
        got = table.cell(subject.name, "loss", lambda: subject.loss() if isinstance(subject, Netem) else measure(
            subject, ["loss", str(DATAGRAMS)], rtt_ms=RTT_MS, loss=LOSS))
        if got is None:
            print(f"| {subject.name} | - | - | - |", flush=True)
            continue
        sent, lost = got["sent"], got["sent"] - got["arrived"]
        wide = 3.29 * math.sqrt(LOSS * (1 - LOSS) / sent)
        print(f"| {subject.name} | {sent} | {lost / sent:.3%} | {LOSS - wide:.3%} to {LOSS + wide:.3%}"
              f"{'' if abs(lost / sent - LOSS) <= wide else ': outside'} |", flush=True)


class Netem:
    """The kernel's netem, in a guest whose time is virtual: exact, and its CPU is the simulation's, not netem's."""
    name = "netem (guest, virtual time)"

    def __init__(self, program):
        self.program = program

    def run(self, link, duration):
        with tempfile.TemporaryDirectory() as folder:
            scenario = pathlib.Path(folder, "netem.toml")
            sides = "".join(f'[hosts.{side}]\nsysctl = {{ "net.ipv4.tcp_{word}mem" = "4096 131072 67108864" }}\n'
                            for side, word in (("server", "w"), ("client", "r")))
            scenario.write_text(f'{sides}[link]\n{link}\n[transfer]\nsize = "1TB"\nduration = "{duration}s"\n')
            out = pathlib.Path(folder, "out")
            ran = subprocess.run([self.program, "lab", "run", str(scenario), "--engine", "virtual", "--no-cache", "--link-engine",
                                  "netem", "--keep-captures", "--out", str(out), "--json"], capture_output=True, text=True, timeout=120)
            if ran.returncode:
                raise Cannot((ran.stderr.strip().splitlines() or ["failed"])[-1][:160])
            edges = {side: next(out.rglob(f"{side}.pcap"), None) for side in ("server", "client")}
            packets = {side: list(packets_from_server(path)) for side, path in edges.items() if path}
            return json.loads(ran.stdout)["rows"][0], packets

    def rate(self, rate):
        if not rate:
            raise Cannot("without a rate a guest of virtual time would have no time pass")
        _, packets = self.run(f'rate = "{rate}bit"\nrtt = "{RTT_MS}ms"', 3 if rate < 10**9 else 1)
        arrived = packets.get("client") or []
        if not arrived:
            raise Cannot("no capture")
        # The second half: slow start is over.
        middle = (arrived[0][0] + arrived[-1][0]) / 2
        counted = [packet for packet in arrived if packet[0] >= middle]
        bits = sum(size for _, size in counted[1:]) * 8
        return {"bits_per_second": bits / (counted[-1][0] - counted[0][0]), "bits": bits}

    def delay(self, role):
        if role != "handshake":
            raise Cannot("no program echoes in a guest's scenario")
        row, _ = self.run(f'rtt = "{ECHO_RTT_MS}ms"\nrate = "1gbit"', 0.3)
        # SYN and SYN-ACK of 60 bytes take their time at the rate, too.
        return {"rtts": [row["handshake_rtt_us"] / 1e6 - 2 * 60 * 8 / 1e9]}

    def loss(self):
        _, packets = self.run(f'rtt = "1ms"\nrate = "100mbit"\nloss = "{LOSS:.2%}"', 3)
        if len(packets) < 2:
            raise Cannot("no captures")
        return {"sent": len(packets["server"]), "arrived": len(packets["client"])}


def packets_from_server(path):
    """Time and IP length of the packets in a capture that carry the transfer's data."""
    import struct
    data = path.read_bytes()
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    ticks = 1e9 if b"\x3c\xb2" in data[:4] or data[:4] == b"\xa1\xb2\x3c\x4d" else 1e6
    (link_type,) = struct.unpack(order + "I", data[20:24])
    skip, at = {1: 14, 101: 0, 113: 16, 228: 0}[link_type & 0xFFFF], 24
    while at + 16 <= len(data):
        seconds, part, kept, length = struct.unpack(order + "IIII", data[at:at + 16])
        ip = data[at + 16 + skip:at + 16 + kept]
        at += 16 + kept
        # Data only: the two sides' pure ACKs, and their handshakes, are small.
        if length - skip > 200 and ip[0] >> 4 == 4:
            yield seconds + part / ticks, length - skip


def main():
    subjects = [Fullpipe(os.environ["FULLPIPE"])]
    for variable, kind in (("RATTAN", Rattan), ("TOXIPROXY", Toxiproxy)):
        if os.environ.get(variable):
            subjects.append(kind(os.environ[variable]))
    if os.environ.get("NETEM_GUEST"):
        subjects.append(Netem(os.environ["FULLPIPE"]))
    table = Table()
    rates(table, subjects)
    delays(table, subjects)
    losses(table, subjects)
    if table.notes:
        print("\nNo figure:\n")
        for note in table.notes:
            print(f"- {note}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["inside"]:
        kind, program, asked = sys.argv[2:5]
        probe, options = json.loads(asked)
        sys.exit(main_of_namespace({"Rattan": Rattan, "Toxiproxy": Toxiproxy}[kind](program), probe, options))
    main()

#!/usr/bin/env bash
# How smoothly downloaders keep a limit, on the wire: each runs behind the emulated link (200 Mbit/s, 20 ms), whose
# capture at the client's edge is cut into slots of 100 ms. Printed are TCP's payload over the limit: mean, peak of a
# slot from the first second on, coefficient of variation, and the longest silence. Needs python3; curl, wget and pv
# where installed.
#   bench/limiter.sh [BINARY] [SECONDS] [LIMIT..]      limits in bytes a second
set -euo pipefail
cd "$(dirname "$0")/.."
exec python3 - "${1:-target/release/fullpipe}" "${2:-30}" "${@:3}" <<'PYTHON'
import os, shutil, signal, socket, struct, subprocess, sys, tempfile

binary, seconds = os.path.abspath(sys.argv[1]), int(sys.argv[2])
SLOT, FIRST = 0.1, 10
work = tempfile.mkdtemp(prefix="fullpipe-limiter-")
with open(f"{work}/file", "wb") as file:
    file.truncate(1 << 30)
free = socket.create_server(("127.0.0.1", 0))
port = free.getsockname()[1]
free.close()
server = subprocess.Popen(
    [sys.executable, "-u", "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", work],
    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
server.stdout.readline()

def packets(path):
    """Time and TCP payload of what comes from the server's port."""
    data = open(path, "rb").read()
    magic, = struct.unpack("<I", data[:4])
    scale = {0xa1b2c3d4: 1e-6, 0xa1b23c4d: 1e-9}[magic]
    link, = struct.unpack("<I", data[20:24])
    at, skip = 24, {1: 14, 101: 0, 228: 0}[link & 0xffff]
    while at + 16 <= len(data):
        sec, part, kept, _ = struct.unpack("<IIII", data[at:at + 16])
        ip = data[at + 16 + skip:at + 16 + kept]
        at += 16 + kept
        if len(ip) < 40 or ip[0] >> 4 != 4 or ip[9] != 6:
            continue
        head = (ip[0] & 15) * 4
        source, = struct.unpack(">H", ip[head:head + 2])
        total, = struct.unpack(">H", ip[2:4])
        payload = total - head - (ip[head + 12] >> 4) * 4
        if source == port and payload > 0:
            yield sec + part * scale, payload

def measure(name, limit, command):
    captures = tempfile.mkdtemp(dir=work)
    link = [binary, "link", "--rtt", "20ms", "--rate", "200mbit", "--capture", captures, "--"]
    subprocess.run([*link, "timeout", str(seconds), "sh", "-c", command],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=captures)
    seen = sorted(packets(f"{captures}/client.edge.pcap"))
    start, end = seen[0][0], seen[-1][0]
    slots = [0] * (int((end - start) / SLOT) + 1)
    for time, payload in seen:
        slots[int((time - start) / SLOT)] += payload
    steady = slots[FIRST:-1]
    mean = sum(steady) / len(steady)
    deviation = (sum((one - mean) ** 2 for one in steady) / len(steady)) ** 0.5
    times = [time for time, _ in seen if time - start >= FIRST * SLOT]
    silence = max((b - a for a, b in zip(times, times[1:])), default=0)
    slot = limit * SLOT
    # The mean is of the whole run: what a burst at the start brings counts.
    whole = sum(slots) / (end - start) / limit
    first = max(slots[:FIRST]) / slot
    print(f"{name:16} {limit // 1000:6} KB/s {whole:6.3f} {first:8.2f} {max(steady) / slot:8.2f} "
          f"{deviation / mean:6.2f} {silence * 1000:8.0f} ms", flush=True)
    shutil.rmtree(captures)

try:
    print(f"{'':16} {'limit':>11} {'mean':>6} {'1st s':>8} {'peak':>8} {'CoV':>6} {'silence':>11}")
    for limit in [int(word) for word in sys.argv[3:]] or [200_000, 1_000_000, 10_000_000]:
        url = f"http://{{server}}:{port}/file"
        commands = {
            "fullpipe": f"{binary} get -s -o - --limit-rate {limit} {url} > /dev/null",
            "fullpipe sleep": f"{binary} get -s -o - --limiter sleep --limit-rate {limit} {url} > /dev/null",
            "curl": f"curl -s --limit-rate {limit} -o /dev/null {url}",
            "wget": f"wget -q --limit-rate={limit} -O /dev/null {url}",
            "curl | pv": f"curl -s {url} | pv -q -L {limit} > /dev/null",
        }
        for name, command in commands.items():
            if name.startswith("fullpipe") or all(shutil.which(one) for one in name.split(" | ")):
                measure(name, limit, command)
finally:
    server.send_signal(signal.SIGTERM)
    server.wait()
    shutil.rmtree(work)
PYTHON

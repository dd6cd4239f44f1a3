#!/usr/bin/env bash
# CPU time a byte of `fullpipe test` and of iperf3 over loopback, both ends, in one run and in a network namespace of its
# own. Rounds take turns; the median of each is printed. Root; needs iperf3 and python3.
#   bench/test.sh [BINARY] [ROUNDS] [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/.."
binary=${1:-target/release/fullpipe} rounds=${2:-5} seconds=${3:-5}
exec unshare --net python3 - "$binary" "$rounds" "$seconds" <<'PYTHON'
import json, os, signal, statistics, subprocess, sys

binary, rounds, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)

def cpu(process):
    _, _, usage = os.wait4(process.pid, 0)
    return usage.ru_utime + usage.ru_stime

def measure(server, ready, client, count):
    """CPU nanoseconds a byte of both ends together, and Gbit/s."""
    far = subprocess.Popen(server, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in far.stdout:
        if ready in line:
            break
    near = subprocess.Popen(client, stdout=subprocess.PIPE, text=True)
    said = near.stdout.read()
    mine = cpu(near)
    # Popen.send_signal would reap a server that has ended, and its CPU time would be lost.
    os.kill(far.pid, signal.SIGTERM)
    far.stdout.read()
    theirs = cpu(far)
    total = count(json.loads(said))
    return (mine + theirs) * 1e9 / total, total * 8 / seconds / 1e9

def ours(way):
    return measure(
        [binary, "serve"], "serving tests",
        [binary, "test", "127.0.0.1", way, "--time", f"{seconds}s", "--json"],
        lambda document: document["runs"][0]["bytes"])

def iperf3(way):
    extra = ["--reverse"] if way == "--reverse" else []
    return measure(
        ["iperf3", "--server", "--one-off", "--forceflush"], "listening",
        ["iperf3", "--client", "127.0.0.1", "--time", str(seconds), "--json", *extra],
        lambda document: document["end"]["sum_received"]["bytes"])

for way in ["--forward", "--reverse"]:
    results = {"fullpipe test": [], "iperf3": []}
    for _ in range(rounds):
        results["fullpipe test"].append(ours(way))
        results["iperf3"].append(iperf3(way))
    for name, found in results.items():
        cost, rate = (statistics.median(column) for column in zip(*found))
        least, most = min(one[0] for one in found), max(one[0] for one in found)
        print(f"{way[2:]:8} {name:14} {cost:.3f} CPU ns a byte ({least:.3f} to {most:.3f}), {rate:.1f} Gbit/s")
PYTHON

#!/bin/bash
# Measures the cost and accuracy of a second of virtual time, with netem and our own link, into docs/src/link-engines.md:
#   bench/virtual.sh [ENGINE..]          netem own; with any named, the table is only printed
# Wall and CPU seconds are of whole runs: boot, transfer, analysis, power off; the row of one byte bounds the time from boot
# to the first packet. Needs a guest's kernel (fullpipe lab kernel build) and python3; FULLPIPE names the program. On a busy
# machine the CPU seconds are what to compare.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/machine.sh
program=${FULLPIPE:-${CARGO_TARGET_DIR:-target}/release/fullpipe}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT INT TERM
page=
[ $# -gt 0 ] || { page=docs/src/link-engines.md; set -- netem own; }

# run ENGINE RATE RTT DURATION: one row of the table.
run() {
    cat >"$folder/speed.toml" <<TOML
[hosts.server]
sysctl = { "net.ipv4.tcp_wmem" = "4096 16384 600000000" }
[hosts.client]
sysctl = { "net.ipv4.tcp_rmem" = "4096 131072 600000000" }
[link]
rate = "$2"
rtt = "$3"
[transfer]
size = "${5:-1TB}"
duration = "$4s"
TOML
    rm -rf "$folder/out"
    TIMEFORMAT='%R %U %S'
    times=$( { time "$program" lab run "$folder/speed.toml" --engine virtual --no-cache --link-engine "$1" \
        --out "$folder/out" --json >"$folder/row.json" 2>"$folder/errors"; } 2>&1) || { cat "$folder/errors"; exit 1; }
    python3 - "$folder/row.json" "$1" "$2" "$3" $times <<'PYTHON'
import json, re, sys

path, engine, rate, rtt, wall, user, system = sys.argv[1:]
row = json.load(open(path))["rows"][0]
virtual, wall, cpu = row["total_us"] / 1e6, float(wall), float(user) + float(system)
# SYN and SYN-ACK have 60 bytes each.
bits = row["rate_nominal_bps"]
exact = row["rtt_nominal_us"] + 2 * 60 * 8 / bits * 1e6
mbit = row["goodput_bps"] / 1e6
bytes = row["body_bytes"]
print(f"| {engine} | {rate} | {rtt} | {bytes} | {mbit:.0f} | {row['packets']} | {virtual:.2f} | {wall:.2f} | {cpu:.2f} "
      f"| {virtual / wall:.2f} | {virtual / cpu:.2f} | {row['handshake_rtt_us'] - exact:+.1f} |")
PYTHON
}

{
    echo "Made by \`bench/virtual.sh\`, $(made_on)."
    echo
    echo '| link | rate | RTT | bytes | goodput, Mbit/s | packets | virtual s | wall s | CPU s | virtual / wall | virtual / CPU | RTT error, µs |'
    echo '|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|'
    for engine; do
        # Ours costs more, so it runs for less.
        case $engine in netem) long=60 medium=4 short=2 ;; *) long=2 medium=1 short=0.6 ;; esac
        run "$engine" 1gbit 1ms 1 1B
        run "$engine" 100mbit 10ms "$long"
        run "$engine" 1gbit 40ms "$medium"
        run "$engine" 10gbit 40ms "$short"
        run "$engine" 25gbit 40ms "$short"
    done
} | tee "$folder/table"
[ -z "$page" ] || bench/page.py "$page" virtual-table <"$folder/table"

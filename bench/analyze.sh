#!/bin/sh
# What the analysis of a capture costs beside tcptrace and tshark (Debian packages), on one file, in one run:
#   bench/analyze.sh [PACKETS] [FILE]
# Without FILE one is made: connections with loss, SACK, reordering and duplicates, interleaved, the same bytes every
# time. CPU seconds (user and system) are the least of three runs, wall seconds the least of seven; a quiet machine is up
# to you, and the load is printed. Needs cargo, bash.
set -eu
cd "$(dirname "$0")/.."
packets=${1:-1000000}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT INT TERM
cargo build --quiet --release -p fullpipe-flow --examples
cargo build --quiet --release -p fullpipe-cli
program=${CARGO_TARGET_DIR:-target}/release/fullpipe
examples=${CARGO_TARGET_DIR:-target}/release/examples
file=${2:-$folder/mixed.pcap}
[ $# -ge 2 ] || "$examples/mixed_capture" "$file" "$packets"

# cpu COMMAND..: the least CPU seconds of three runs, and the most memory in KiB.
cpu() {
    for _ in 1 2 3; do
        bash -c 'TIMEFORMAT="%U %S"; time "$@" >/dev/null 2>/dev/null' cpu "$@" 2>&1
    done | awk '{ sum = $1 + $2; if (NR == 1 || sum < least) least = sum } END { printf "%.3f", least }'
}

# wall COMMAND..: the least wall seconds of seven runs.
wall() {
    for _ in 1 2 3 4 5 6 7; do
        bash -c 'TIMEFORMAT="%R"; time "$@" >/dev/null 2>/dev/null' wall "$@" 2>&1
    done | sort -n | head -n 1
}

say() { printf '%-44s %8s CPU-s %8s x\n' "$1" "$2" "$(awk -v a="$2" -v b="$ours" 'BEGIN { printf "%.1f", a / b }')"; }

ours=$(cpu "$examples/analyze_file" "$file")
say 'fullpipe: labels, limits, loss, one thread' "$ours"
say 'fullpipe analyze --threads 2, all together' "$(cpu "$program" analyze --threads 2 "$file")"
one=$(wall "$program" analyze "$file")
two=$(wall "$program" analyze --threads 2 "$file")
printf 'fullpipe analyze: one thread %s s, two %s s: %s times as fast (load %s on %s CPUs)\n' "$one" "$two" \
    "$(awk -v a="$one" -v b="$two" 'BEGIN { printf "%.2f", a / b }')" "$(cut -d ' ' -f 1 /proc/loadavg)" "$(nproc)"
if command -v tcptrace >/dev/null; then
    say 'tcptrace -n -lr' "$(cpu tcptrace -n -lr "$file")"
else
    echo 'SKIPPED: tcptrace: not installed'
fi
if command -v tshark >/dev/null; then
    say 'tshark -q -z expert' "$(cpu tshark -n -q -z expert -r "$file")"
    say 'tshark -T fields, analysis columns' "$(cpu tshark -n -r "$file" -T fields -e frame.number -e tcp.stream \
        -e tcp.analysis.flags -e tcp.analysis.retransmission -e tcp.analysis.out_of_order -e tcp.analysis.duplicate_ack \
        -e tcp.analysis.bytes_in_flight -e tcp.analysis.ack_rtt)"
else
    echo 'SKIPPED: tshark: not installed'
fi

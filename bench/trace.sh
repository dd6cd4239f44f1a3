#!/bin/sh
# Compares the cost of the graphs' points with tcptrace's (Debian package), into docs/src/analyze-figures.md:
#   bench/trace.sh build DIR      the programs and the captures, into DIR
#   bench/trace.sh measure DIR    ours and tcptrace by turns, REPEAT times (5)
#   bench/trace.sh table DIR      the table, into the page
# The captures: a million packets of one connection, and those of bench/analyze.sh, a million of 772 connections,
# interleaved. tcptrace writes 700 MB of graphs into DIR each time, which are deleted again. Use a quiet machine. Needs
# cargo, bash, python3, tcptrace.
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
what=${1:?build, measure or table}
mkdir -p "${2:?a folder for the capture and results}"
folder=$(cd "$2" && pwd)
examples=${CARGO_TARGET_DIR:-target}/release/examples

# timed NAME COMMAND..: appends a line to DIR/NAME: wall, user and system seconds. What it prints goes to DIR/output.
timed() {
    name=$1
    shift
    bash -c 'TIMEFORMAT="%R %U %S"; time "$@" >output 2>/dev/null' timed "$@" 2>>"$folder/$name"
}

case $what in
build)
    cargo build --quiet --release -p fullpipe-flow --examples
    cargo build --quiet --release -p fullpipe-cli
    cp "${CARGO_TARGET_DIR:-target}/release/fullpipe" "$examples/trace_file" "$folder"
    "$examples/mixed_capture" "$folder/one.pcap" 1000000 one
    "$examples/mixed_capture" "$folder/many.pcap" 1000000
    ;;
measure)
    cd "$folder"
    rm -rf cpu-* size-* graphs
    cat one.pcap many.pcap >/dev/null
    for _ in $(seq "${REPEAT:-5}"); do
        for capture in one many; do
            timed "cpu-analyze-$capture" ./fullpipe analyze "$capture.pcap"
            timed "cpu-trace-$capture" ./trace_file "$capture.pcap"
            wc -c <output >"size-trace-$capture"
            timed "cpu-report-$capture" ./fullpipe report --data "$capture.pcap"
            wc -c <output >"size-report-$capture"
            mkdir graphs
            (cd graphs && timed "cpu-tcptrace-$capture" tcptrace -n -S -R -T -N "../$capture.pcap")
            find graphs -name '*.xpl' -printf '%s\n' | awk '{ sum += $1 } END { print sum }' >"size-tcptrace-$capture"
            rm -r graphs output
        done
    done
    cd - >/dev/null
    made_on >"$folder/made-trace"
    ;;
table)
    python3 - "$folder" <<'PYTHON' | bench/page.py docs/src/analyze-figures.md trace-cost
import os, statistics, sys

folder = sys.argv[1]


def read(name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read().split("\n")[:-1]


def cpu(name):
    return [sum(map(float, line.split()[1:3])) for line in read("cpu-" + name)]


def both(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f})"


def times(a, b):
    return f"{statistics.median(a) / statistics.median(b):.1f} ({min(a) / min(b):.1f})"


print(f"Medians, and in parentheses the least, of {len(cpu('tcptrace-one'))} runs by turns. {read('made-trace')[0]}.\n")
print("| a million packets | CPU s | tcptrace's over it | bound | output MB | tcptrace's over it | bound |")
print("| --- | --: | --: | --: | --: | --: | --: |")
for capture, of in [("one", "one connection"), ("many", "772 connections")]:
    peer, size = cpu("tcptrace-" + capture), int(read("size-tcptrace-" + capture)[0])
    print(f"| {of}: `tcptrace -n -S -R -T -N` | {both(peer)} | | | {size / 1e6:.0f} | | |")
    worst = "" if capture == "one" else " of the 20 worst"
    for name, words, bounds in [
        ("trace", f"points of the graphs{worst}", ("≥ 20", "≥ 100")),
        ("report", "`fullpipe report --data`: facts and findings, too", ("", "")),
        ("analyze", "`fullpipe analyze`: no points", None),
    ]:
        own = cpu(f"{name}-{capture}")
        row = f"| {of}: {words} | {both(own)} | {times(peer, own)} |"
        if bounds:
            written = int(read(f"size-{name}-{capture}")[0])
            row += f" {bounds[0]} | {written / 1e6:.1f} | {size / written:.0f} | {bounds[1]} |"
        else:
            row += " | | | |"
        print(row)
PYTHON
    ;;
*)
    echo "bench/trace.sh: build, measure or table, not $what" >&2
    exit 2
    ;;
esac

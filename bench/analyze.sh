#!/bin/sh
# Compares the cost of the analysis with tcptrace and tshark (Debian packages), into docs/src/analyze-figures.md:
#   bench/analyze.sh build DIR          the programs and the captures, into DIR
#   bench/analyze.sh measure DIR        ours with one thread and two, in turns; REPEAT times (9)
#   bench/analyze.sh peers DIR          tcptrace and tshark, and ours beside each; PEERS times (3)
#   bench/analyze.sh connections DIR    CONNECTIONS (10000000) short connections through a pipe, as rows, once
#   bench/analyze.sh both DIR           two captures of the same connections beside one of them, REPEAT times
#   bench/analyze.sh table DIR          the table, into the page
# The captures: a million packets of connections with loss, SACK, reordering and duplicates, interleaved, the same bytes
# every time; once cut after their headers, once whole. Use a quiet machine. Needs cargo, bash, python3.
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
what=${1:?build, measure, peers, connections, both or table}
folder=${2:?a folder for captures and results}
program=$folder/fullpipe
examples=${CARGO_TARGET_DIR:-target}/release/examples
mkdir -p "$folder"

# timed NAME COMMAND..: appends a line to DIR/NAME: wall, user and system seconds.
timed() {
    name=$1
    shift
    bash -c 'TIMEFORMAT="%R %U %S"; time "$@" >/dev/null 2>/dev/null' timed "$@" 2>>"$folder/$name"
}

ours() { timed "$1" "$program" analyze --threads "$2" "$folder/$3"; }

case $what in
build)
    cargo build --quiet --release -p fullpipe-flow --examples
    cargo build --quiet --release -p fullpipe-cli
    cp "${CARGO_TARGET_DIR:-target}/release/fullpipe" "$program"
    "$examples/mixed_capture" "$folder/cut.pcap" 1000000
    "$examples/mixed_capture" "$folder/whole.pcap" 1000000 whole
    "$examples/mixed_capture" "$folder/cut-far.pcap" 1000000 far
    "$examples/mixed_capture" "$folder/one.pcap" 1000000 one
    "$examples/mixed_capture" "$folder/one-far.pcap" 1000000 one far
    ;;
measure)
    rm -f "$folder"/ours-*
    cat "$folder/cut.pcap" "$folder/whole.pcap" >/dev/null
    for _ in $(seq "${REPEAT:-9}"); do
        ours ours-cut-1 1 cut.pcap
        ours ours-cut-2 2 cut.pcap
        ours ours-whole-1 1 whole.pcap
        ours ours-whole-2 2 whole.pcap
    done
    made_on >"$folder/made-measure"
    ;;
peers)
    rm -f "$folder"/peer-*
    for _ in $(seq "${PEERS:-3}"); do
        timed peer-ours "$program" analyze "$folder/cut.pcap"
        timed peer-tcptrace tcptrace -n -lr "$folder/cut.pcap"
        timed peer-expert tshark -n -q -z expert -r "$folder/cut.pcap"
        timed peer-fields tshark -n -r "$folder/cut.pcap" -T fields -e frame.number -e tcp.stream -e tcp.analysis.flags \
            -e tcp.analysis.retransmission -e tcp.analysis.fast_retransmission -e tcp.analysis.spurious_retransmission \
            -e tcp.analysis.out_of_order -e tcp.analysis.lost_segment -e tcp.analysis.duplicate_ack \
            -e tcp.analysis.window_full -e tcp.analysis.zero_window -e tcp.analysis.bytes_in_flight -e tcp.analysis.ack_rtt
    done
    made_on >"$folder/made-peers"
    ;;
connections)
    count=${CONNECTIONS:-10000000}
    # GNU time: wall, user and system seconds, and the most memory in KiB.
    "$examples/short_connections" "$count" |
        /usr/bin/time -o "$folder/connections" -f "$count %e %U %S %M" "$program" analyze --csv --threads 2 - |
        wc -l >"$folder/connections-rows"
    made_on >"$folder/made-connections"
    ;;
both)
    rm -f "$folder"/both-*
    for _ in $(seq "${REPEAT:-9}"); do
        for kind in cut one; do
            ours "both-$kind-near" 1 "$kind.pcap"
            ours "both-$kind-far" 1 "$kind-far.pcap"
            # GNU time: wall, user and system seconds, and the most memory in KiB.
            /usr/bin/time -a -o "$folder/both-$kind-pair" -f "%e %U %S %M" \
                "$program" analyze --both "$folder/$kind.pcap" "$folder/$kind-far.pcap" >/dev/null
        done
    done
    python3 - "$folder" <<'PYTHON'
import statistics, sys


def median(name, value):
    with open(f"{sys.argv[1]}/both-{name}", encoding="utf-8") as file:
        return statistics.median(value(list(map(float, line.split()))) for line in file)


for kind in ["cut", "one"]:
    near, far, pair = (median(f"{kind}-{which}", lambda line: line[1] + line[2]) for which in ["near", "far", "pair"])
    memory = median(f"{kind}-pair", lambda line: line[3]) / 1024
    print(f"{kind}: CPU s {near:.3f} and {far:.3f} alone, {pair:.3f} as a pair ({2 * pair / (near + far):.2f} times one); "
          f"{memory:.0f} MiB")
PYTHON
    made_on
    ;;
table)
    cargo test --quiet -p fullpipe-flow --test memory -- --nocapture | grep 'bytes an open' >"$folder/open"
    python3 - "$folder" <<'PYTHON' | tee "$folder/table" | bench/page.py docs/src/analyze-figures.md analyze-cost
import os, statistics, sys

folder = sys.argv[1]


def read(name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return file.read().split("\n")[:-1]


def wall(name):
    return [float(line.split()[0]) for line in read(name)]


def cpu(name):
    return [sum(map(float, line.split()[1:3])) for line in read(name)]


def both(values, digits=3):
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f})"


def times(a, b, digits=1):
    return f"{statistics.median(a) / statistics.median(b):.{digits}f} ({min(a) / min(b):.{digits}f})"


def row(*cells):
    print("| " + " | ".join(cells) + " |")


one, two = "ours-cut-1", "ours-cut-2"
print(f"Medians, and in parentheses the least, of {len(wall(one))} runs of ours and {len(wall('peer-expert'))} of each peer "
      f"by turns with ours. {read('made-measure')[0]}; peers: {read('made-peers')[0]}.\n")
row("a million packets, cut behind their headers", "wall s", "CPU s", "CPU over ours", "bound")
row("---", "--:", "--:", "--:", "--:")
row("`fullpipe analyze`", both(wall(one)), both(cpu(one)), "1", "")
for name, words, bound in [
    ("peer-tcptrace", "`tcptrace -n -lr`", "≥ 1"),
    ("peer-expert", "`tshark -q -z expert`", "≥ 20"),
    ("peer-fields", "`tshark -T fields`, its analysis' columns", "≥ 50"),
]:
    row(words, both(wall(name)), both(cpu(name)), times(cpu(name), cpu("peer-ours")), bound)
row("`fullpipe analyze --threads 2`", both(wall(two)), both(cpu(two)), times(cpu(two), cpu(one), 2), "")

print()
row("what", "figure", "bound")
row("---", "--:", "--:")
# Runs beside each other share the machine's mood, which those minutes apart do not.
pairs = [a / b for a, b in zip(wall(one), wall(two))]
row("two threads, times as fast as one: median of runs beside each other (least, most)",
    f"{statistics.median(pairs):.2f} ({min(pairs):.2f}, {max(pairs):.2f})", "≥ 1.7")
row("the same of the medians, and of the least", times(wall(one), wall(two), 2), "")
size = os.path.getsize(os.path.join(folder, "whole.pcap")) / 1e9
for threads in "12":
    walls = wall(f"ours-whole-{threads}")
    row(f"full-size packets from the page cache ({size:.2f} GB), {threads} thread{'s' if threads == '2' else ''}",
        f"{size / statistics.median(walls):.2f} GB/s ({size / min(walls):.2f})", "≥ 1 GB/s")
row("memory of a connection that is open, with a request and its answer", read("open")[0].split()[0] + " bytes", "≤ 2048")
if os.path.exists(os.path.join(folder, "connections")):
    count, seconds, user, system, memory = read("connections")[0].split()
    rows = int(read("connections-rows")[0])
    assert rows == 2 * int(count) + 1, f"{rows} rows of {count} connections"
    used = (float(user) + float(system)) / int(count) * 1e6
    row(f"{int(count):,} short connections, a thousand in each second, as rows, two threads (once, {read('made-connections')[0]})",
        f"{float(seconds):.0f} s, {used:.1f} µs of CPU each", "")
    row("the most memory then; 240,000 linger at a time", f"{int(memory) / 1024:.0f} MiB", "")
PYTHON
    cat "$folder/table"
    ;;
*)
    echo "bench/analyze.sh: build, measure, peers, connections, both or table, not $what" >&2
    exit 2
    ;;
esac

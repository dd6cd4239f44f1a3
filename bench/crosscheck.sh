#!/bin/sh
# The same paths by netem and by our own link in virtual time, and by our own link in real time:
#   bench/crosscheck.sh [--real]
# Goodput, median round trip and loss of each, and how far they are apart. With --real the machine should be quiet. Needs
# a guest's kernel (fullpipe lab kernel build) and python3; FULLPIPE names the program.
set -eu
cd "$(dirname "$0")/.."
program=${FULLPIPE:-${CARGO_TARGET_DIR:-target}/release/fullpipe}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT INT TERM
run() {
    name=$1
    shift
    "$program" lab run bench/crosscheck.toml "$@" --out "$folder/$name" --json >"$folder/$name.json"
}
run netem --engine virtual --link-engine netem --no-cache
run own --engine virtual --link-engine own --no-cache
[ "${1:-}" = --real ] && run real --engine real --link-engine own
uptime
exec python3 - "$folder" <<'PYTHON'
import json, os, sys

names = [name for name in ("netem", "own", "real") if os.path.exists(f"{sys.argv[1]}/{name}.json")]
rows = {name: json.load(open(f"{sys.argv[1]}/{name}.json"))["rows"] for name in names}
columns = [("goodput, Mbit/s", "goodput_bps", 1e-6), ("RTT p50, ms", "rtt_p50_us", 1e-3)]

def apart(a, b):
    return f"{(b / a - 1) * 100:+.2f} %"

for title, key, scale in columns:
    print(f"\n| {title} | " + " | ".join(names) + " | " + " | ".join(f"{n} / netem" for n in names[1:]) + " |")
    print("|---|" + "---:|" * (2 * len(names) - 1))
    for index, first in enumerate(rows["netem"]):
        values = [rows[name][index][key] * scale for name in names]
        shown = [f"{value:.3f}" for value in values] + [apart(values[0], value) for value in values[1:]]
        print(f"| {first['name'].split('/')[-1]} | " + " | ".join(shown) + " |")
print("\n| packets lost at random + for want of room | " + " | ".join(names) + " |")
print("|---|" + "---:|" * len(names))
for index, first in enumerate(rows["netem"]):
    shown = [f"{rows[name][index]['lost']} + {rows[name][index]['queue_dropped']}" for name in names]
    print(f"| {first['name'].split('/')[-1]} | " + " | ".join(shown) + " |")
PYTHON

#!/bin/sh
# Measures what a buffer carries under both kernels, into docs/src/buffers.md:
#   bench/buffers.sh
# In virtual time the machine has no influence on the figures. Needs the guest kernels (fullpipe lab kernel build) and python3;
# FULLPIPE names the program.
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
program=${FULLPIPE:-${CARGO_TARGET_DIR:-target}/release/fullpipe}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT INT TERM
for engine in netem own; do
    "$program" lab run bench/buffers.toml --engine virtual --link-engine $engine --no-cache --out "$folder/$engine" --json \
        >"$folder/$engine.json"
done
MADE=$(made_on) python3 - "$folder" <<'PYTHON' | tee "$folder/table" | bench/page.py docs/src/buffers.md buffers-table
import json, os, sys

rows = {engine: json.load(open(f"{sys.argv[1]}/{engine}.json"))["rows"] for engine in ("netem", "own")}

def find(engine, end, buffer, kernel):
    for row in rows[engine]:
        if row["kernel"].startswith(kernel + ".") and f"/{end}={buffer}/" in row["name"] + "/":
            return row
    sys.exit(f"no row {end}={buffer} under {kernel}")

def buffers(end):
    found = {int(part.split("=")[1]) for row in rows["netem"] for part in row["name"].split("/") if part.startswith(end + "=")}
    return sorted(found)

kernels = sorted({row["kernel"] for row in rows["netem"]}, key=lambda release: [int(n) for n in release.split(".")])
short = [".".join(release.split(".")[:2]) for release in kernels]
print(f"Made by `bench/buffers.sh`, {os.environ['MADE']} (virtual time: no part of the figures); guests' kernels "
      f"{' and '.join(kernels)}; 1 Gbit/s, 50 ms, Reno, built-in ends.\n")
columns = [(engine, kernel) for kernel in short for engine in ("netem", "own")]

print("**Receive buffer to window**: the largest window advertised, over `tcp_rmem[2]`; and goodput times round trip over "
      "that window.\n")
print("| `tcp_rmem[2]` | " + " | ".join(f"{kernel}, {engine}" for engine, kernel in columns)
      + " | " + " | ".join(f"carried, {kernel}" for kernel in short) + " |")
print("|--:|" + "--:|" * (len(columns) + len(short)))
for buffer in buffers("receive"):
    shares = [find(engine, "receive", buffer, kernel)["window_max_bytes"] / buffer for engine, kernel in columns]
    carried = []
    for kernel in short:
        row = find("netem", "receive", buffer, kernel)
        carried.append(row["steady_goodput_bps"] / 8e6 * row["rtt_p50_us"] / row["window_max_bytes"])
    print(f"| {buffer} | " + " | ".join(f"{share:.3f}" for share in shares) + " | "
          + " | ".join(f"{share:.2f}" for share in carried) + " |")

print("\n**Send buffer to bytes in flight**: goodput times the path's round trip, in bytes, and over `tcp_wmem[2]`.\n")
print("| `tcp_wmem[2]` | " + " | ".join(f"{kernel}, {engine}" for engine, kernel in columns) + " | "
      + " | ".join(f"share, {kernel}" for kernel in short) + " | held by |")
print("|--:|" + "--:|" * (len(columns) + len(short)) + "---|")
for buffer in buffers("send"):
    flight = [find(engine, "send", buffer, kernel) for engine, kernel in columns]
    flight = [row["steady_goodput_bps"] / 8e6 * row["rtt_nominal_us"] for row in flight]
    shares = [value / buffer for value, (engine, _) in zip(flight, columns) if engine == "netem"]
    held = {find("netem", "send", buffer, kernel)["limited_by"].replace("_", " ") for kernel in short}
    print(f"| {buffer} | " + " | ".join(f"{value:.0f}" for value in flight) + " | "
          + " | ".join(f"{share:.2f}" for share in shares) + " | " + ", ".join(sorted(held)) + " |")
PYTHON
cat "$folder/table"

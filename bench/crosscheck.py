#!/usr/bin/env python3
"""The table of bench/crosscheck.sh: rows by netem, by our own link, and in real time, side by side."""
import json
import os
import sys

folder = sys.argv[1]
names = [name for name in ("netem", "own", "real") if os.path.exists(f"{folder}/{name}.json")]
rows = {name: json.load(open(f"{folder}/{name}.json"))["rows"] for name in names}
cases = [row["name"].split("/")[-1] for row in rows["netem"]]
for name in names:
    found = [row["name"].split("/")[-1] for row in rows[name]]
    if found != cases:
        sys.exit(f"crosscheck.py: {name} has the rows {found}, netem {cases}")


def apart(a: float, b: float) -> str:
    return f"{(b / a - 1) * 100:+.2f} %"


def table(title: str, values: dict[str, list[float]], digits: int, only: set[str] | None = None) -> None:
    print(f"\n| {title} | " + " | ".join(names) + " | " + " | ".join(f"{n} / netem" for n in names[1:]) + " |")
    print("|---|" + "--:|" * (2 * len(names) - 1))
    for index, case in enumerate(cases):
        if only is not None and case not in only:
            continue
        of_case = [values[name][index] for name in names]
        shown = [f"{value:.{digits}f}" for value in of_case] + [apart(of_case[0], value) for value in of_case[1:]]
        # Another congestion control is another experiment.
        for place, name in enumerate(names[1:], start=1):
            if rows[name][index]["congestion_control"] != rows["netem"][index]["congestion_control"]:
                shown[place] = shown[len(names) - 1 + place] = "-"
        print(f"| {case} | " + " | ".join(shown) + " |")


kernels = sorted({row["kernel"] for row in rows["netem"] + rows["own"]})
print(f"Virtual time: guest's kernel {', '.join(kernels)}, {open(folder + '/netem.made').read().strip()}.", end="")
if "real" in names:
    busy = [row["name"].split("/")[-1] for row in rows["real"] if not row["quiet"]]
    late = max(row["link_late_p99_us"] for row in rows["real"])
    other = {row["congestion_control"] for row, a in zip(rows["real"], rows["netem"])
             if row["congestion_control"] != a["congestion_control"]}
    print(f" Real time: {open(folder + '/real.made').read().strip()}; 99 % of the packets at most {late} us late; "
          f"not quiet: {', '.join(busy) or 'none'}.", end="")
    if other:
        print(f" Rows without a figure there ran with {', '.join(sorted(other))} and are not compared.", end="")
print()
table("goodput, Mbit/s", {name: [row["goodput_bps"] / 1e6 for row in rows[name]] for name in names}, 3)
table("RTT p50, ms", {name: [row["rtt_p50_us"] / 1e3 for row in rows[name]] for name in names}, 3)
held = {case for case, row in zip(cases, rows["netem"]) if row["limited_by"] == "receive_window"}
title = "largest window where it is the limit, bytes"
table(title, {name: [row["window_max_bytes"] for row in rows[name]] for name in names}, 0, held)
print("\n| packets lost at random + for want of room | " + " | ".join(names) + " |")
print("|---|" + "--:|" * len(names))
for index, case in enumerate(cases):
    shown = [f"{rows[name][index]['lost']} + {rows[name][index]['queue_dropped']}" for name in names]
    print(f"| {case} | " + " | ".join(shown) + " |")

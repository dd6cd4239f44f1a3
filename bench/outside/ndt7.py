#!/usr/bin/env python3
"""Compares what fullpipe says of M-Lab's ndt7 results with what this script reads in the same JSON.

  bench/outside/ndt7.py DIR [--program FILE] [--json]

DIR is what get.py fetched. The kernel's chronographs are the growth of BusyTime, RWndLimited and SndBufLimited between the
first and the last TCPInfo of a download, over that of ElapsedTime. fullpipe reads the same fields, so shares and rates only
check its reading. What it says where none of them has half of the time (a link, loss, slow start) is its own, and stands
beside a second opinion of other fields, which is no truth: `queue` where the median round trip is 25 % and 5 ms above the
least one, `loss` where 1 % was sent again."""
import collections
import gzip
import json
import pathlib
import statistics
import tarfile
import tempfile

import common

LEAST_LOOKS = 3
# Names of fullpipe for what each chronograph counts.
COUNTED = {"receive window": {"receive_window", "receiver_application"}, "send buffer": {"send_buffer"},
           "nothing to send": {"sender_application"}}
NETWORK = {"link", "congestion_window (loss)", "congestion_window (slow_start)"}


def files(fetched):
    """Name and content of each result, in archives too; one that is there twice is read once."""
    folder, seen = common.folder_of(fetched, "m-lab/etl"), set()
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".tgz":
            with tarfile.open(path) as archive:
                inner = [(one.name, archive.extractfile(one).read()) for one in archive if one.isfile()]
        elif path.suffix == ".json":
            inner = [(path.name, path.read_bytes())]
        else:
            continue
        for name, content in inner:
            content = gzip.decompress(content) if name.endswith(".gz") else content
            if name.removesuffix(".gz").endswith(".json") and content not in seen:
                seen.add(content)
                yield pathlib.PurePath(name).name.removesuffix(".gz"), content


def looks_of(test):
    found = [one["TCPInfo"] for one in test.get("ServerMeasurements") or [] if one.get("TCPInfo")]
    return sorted(found, key=lambda look: look["ElapsedTime"])


def account(looks):
    """What the fields say between the first look and the last."""
    first, last = looks[0], looks[-1]
    grown = {name: last.get(name, 0) - first.get(name, 0) for name in
             ("ElapsedTime", "BusyTime", "RWndLimited", "SndBufLimited", "BytesAcked", "BytesSent", "BytesReceived")}
    time = max(grown["ElapsedTime"], 1)
    shares = {"receive window": grown["RWndLimited"] / time, "send buffer": grown["SndBufLimited"] / time,
              "nothing to send": max(time - grown["BusyTime"], 0) / time}
    least = min(look["MinRTT"] for look in looks if look["MinRTT"]) if any(look["MinRTT"] for look in looks) else 0
    waits = statistics.median(look["RTT"] for look in looks) - least
    sent_again = (last["BytesRetrans"] if last.get("BytesRetrans") else 0) / max(last.get("BytesSent") or 1, 1)
    return {"looks": len(looks), "time_us": time, "grown": grown, "shares": shares, "min_rtt_us": least,
            "queue": least > 0 and waits >= 0.25 * least and waits >= 5000, "loss": sent_again >= 0.01}


def compared(name, result, connection, direction, looks):
    row = {"file": name, "direction": direction, **account(looks)}
    grown, time = row["grown"], row["time_us"]
    way = connection["server_to_client" if direction == "download" else "client_to_server"]
    moved = grown["BytesAcked" if direction == "download" else "BytesReceived"]
    goodput = way["goodput_bps"] or 0
    row["goodput_is_right"] = abs(goodput - moved * 8e6 / time) <= 0.02 * max(goodput, 1)
    row["goodput_bps"], row["moved_bps"] = goodput, moved * 8e6 / time
    row["bytes_are_right"] = way["unique_payload_bytes"] == moved
    row["rtt_is_right"] = direction == "upload" or (way["rtt"]["min_us"] or 0) == row["min_rtt_us"]
    limits = [one for one in connection["limits"] if one["direction"].startswith(
        "server" if direction == "download" else "client")]
    row["said"] = {common.limit_of(one): one["share"] for one in limits}
    findings = [one for one in connection["findings"] if one["direction"] in (limits[0]["direction"] if limits else "",)]
    row["first"] = common.limit_of(findings[0]) if findings else "unknown"
    row["confidence"] = findings[0].get("confidence") if findings else None
    row["errors"] = {what: sum(row["said"].get(one, 0) for one in names) - row["shares"][what]
                     for what, names in COUNTED.items()}
    ranked = max(row["shares"], key=row["shares"].get)
    counted = sum(row["shares"].values())
    row["kernel"] = ranked if row["shares"][ranked] > 0.5 else "the network" if counted < 0.5 else "mixed"
    return row


def everything(fetched, program):
    with tempfile.TemporaryDirectory() as scratch:
        for name, content in files(fetched):
            path = pathlib.Path(scratch) / name
            path.write_bytes(content)
            connections, problem = common.asked(program, ["--jsonl", str(path)])
            path.unlink()
            try:
                result = json.loads(content)
            except ValueError:
                yield {"file": name, "refused": problem, "is_valid": False}
                continue
            tests = [(way, looks_of(result[way.title()])) for way in ("download", "upload") if result.get(way.title())]
            tests = [(way, looks) for way, looks in tests if looks]
            if connections is None or not tests:
                yield {"file": name, "refused": problem or "", "is_valid": bool(tests), "answered": connections is not None}
                continue
            for number, (way, looks) in enumerate(tests):
                yield compared(name, result, connections[min(number, len(connections) - 1)], way, looks)


def summary(rows):
    read = [row for row in rows if "refused" not in row]
    refused = [row for row in rows if "refused" in row]
    print(f"{len(rows)} transfers in files; {len(read)} read, {len(refused)} refused, of which "
          f"{sum(row['is_valid'] for row in refused)} have a TCPInfo.\n")
    for row in refused:
        print(f"* refused: {row['file']}: {row['refused'][:300]}")
    down = [row for row in read if row["direction"] == "download" and row["looks"] >= LEAST_LOOKS]
    up = [row for row in read if row["direction"] == "upload"]
    print(f"\n{len(down)} downloads of {LEAST_LOOKS} looks and more (reading, the same fields):\n")
    print(f"* bytes equal: {sum(row['bytes_are_right'] for row in down)}; goodput within 2 %: {sum(row['goodput_is_right'] for row in down)}; least round trip equal: "
          f"{sum(row['rtt_is_right'] for row in down)}")
    for what in COUNTED:
        errors = [abs(row["errors"][what]) for row in down]
        print(f"* share of `{what}`: within 5 points in {sum(error <= 0.05 for error in errors)}, mean distance "
              f"{100 * statistics.mean(errors):.1f} points, largest {100 * max(errors):.0f}")
    print("\nThe first limit, beside what the kernel counted for more than half of the time:\n")
    names = [*COUNTED, "the network", "mixed"]
    said = collections.Counter((row["kernel"], row["first"]) for row in down)
    firsts = sorted({first for _, first in said}, key=lambda first: -sum(said[name, first] for name in names))
    common.table(("the kernel", "downloads", *[f"`{one}`" for one in firsts]),
                 [(name, sum(row["kernel"] == name for row in down), *[said[name, one] or "" for one in firsts])
                  for name in names])
    print("Where the kernel counted nothing for most of the time, beside the second opinion:\n")
    network = [row for row in down if row["kernel"] == "the network"]
    opinions = {(True, False): "queue, no loss", (True, True): "queue and loss", (False, True): "loss, no queue",
                (False, False): "neither"}
    cells = collections.Counter((row["queue"], row["loss"], row["first"]) for row in network)
    common.table(("other fields", "downloads", *[f"`{one}`" for one in firsts]),
                 [(text, sum(cells[(*key, one)] for one in firsts), *[cells[(*key, one)] or "" for one in firsts])
                  for key, text in opinions.items()])
    print(f"{len(up)} uploads (the server is the receiver): bytes equal: "
          f"{sum(row['bytes_are_right'] for row in up)}; goodput within 2 %: "
          f"{sum(row['goodput_is_right'] for row in up)}; no limit named: "
          f"{sum(row['first'] == 'unknown' for row in up)}\n")
    for row in down:
        wrong = row["kernel"] in COUNTED and row["first"] not in COUNTED[row["kernel"]]
        wrong = wrong or (row["kernel"] == "the network" and row["first"] not in NETWORK | {"unknown"})
        if wrong or not row["goodput_is_right"] or not row["rtt_is_right"]:
            shares = ", ".join(f"{what} {100 * share:.0f} %" for what, share in row["shares"].items())
            said = ", ".join(f"{what} {100 * share:.0f} %" for what, share in row["said"].items())
            print(f"* {row['file']}: kernel: {shares}; fullpipe: {said} (sure: {row['confidence']}); "
                  f"{row['goodput_bps'] / 1e6:.2f} and {row['moved_bps'] / 1e6:.2f} Mbit/s")


if __name__ == "__main__":
    common.tell(__doc__, everything, summary)

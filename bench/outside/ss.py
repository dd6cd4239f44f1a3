#!/usr/bin/env python3
"""Compares what fullpipe says of other people's logs of ss with what this script reads in the same lines.

  bench/outside/ss.py DIR [--program FILE] [--json]

DIR is what get.py fetched. HarshKapadia2's ten logs are of one to three iperf3 transfers through a router that forwards
1 Mbit/s with a queue of 100 kB (the report of that repository): where the transfers of a log carry 0.8 Mbit/s and more
together, that link is what limits each of them. sanielfishawy's is one look at twelve sockets, of which `rwnd_limited`
itself says for which part of the busy time the receive window held them. Control connections and the like, of less than
100 kB, have no right answer. Lines of ss are counted here and there, and shares and rates compared."""
import pathlib
import re
import statistics
import tempfile

import common

HARSH = "HarshKapadia2/tcp-version-performance-comparison"
ONE_LOOK = "sanielfishawy/mouse-elephant"
LEAST_BYTES, LINK_BPS = 100_000, 0.8e6
STAMP = re.compile(r"^\d{9,11}\.\d+ ")
STATES = {"ESTAB", "SYN-SENT", "SYN-RECV", "FIN-WAIT-1", "FIN-WAIT-2", "TIME-WAIT", "CLOSE-WAIT", "LAST-ACK", "CLOSING",
          "CLOSE"}


def number(details, name):
    found = re.search(rf"(?:^| ){name}:([0-9.]+)", details)
    return float(found[1]) if found else 0.0


def looks_of(text):
    """By the ends of each socket its looks: time, and what the fields of its second line say."""
    sockets, at, ends = {}, 0.0, None
    for line in text.splitlines():
        stamp = STAMP.match(line)
        if stamp:
            at, line = float(stamp[0]), line[stamp.end():]
        words = line.split()
        words = words[1:] if words[:1] == ["tcp"] else words
        if len(words) > 4 and words[0] in STATES:
            ends = (words[3], words[4])
        elif ends and line[:1] in " \t" and "rto:" in line:
            rtt = re.search(r" rtt:([0-9.]+)/", line)
            sockets.setdefault(ends, []).append({
                "at": at, "acked": number(line, "bytes_acked"), "busy": number(line, "busy"),
                "rwnd": number(line, "rwnd_limited"), "sndbuf": number(line, "sndbuf_limited"),
                "rtt": float(rtt[1]) if rtt else 0.0, "minrtt": number(line, "minrtt"),
                "sent_again": float(found[1]) if (found := re.search(r"retrans:\d+/(\d+)", line)) else 0.0})
            ends = None
    return sockets


def account(looks):
    first, last = looks[0], looks[-1]
    time = last["at"] - first["at"]
    busy = last["busy"] - (first["busy"] if len(looks) > 1 else 0)
    of = busy if len(looks) == 1 else time * 1000
    grown = {what: last[what] - (first[what] if len(looks) > 1 else 0) for what in ("rwnd", "sndbuf")}
    least = min((look["minrtt"] for look in looks if look["minrtt"]), default=0.0)
    return {"looks": len(looks), "time_s": time, "acked": last["acked"],
            "rate_bps": (last["acked"] - first["acked"]) * 8 / time if time > 0 else None,
            "rwnd_share": grown["rwnd"] / of if of else 0.0, "sndbuf_share": grown["sndbuf"] / of if of else 0.0,
            "rtt_over_least": statistics.median(look["rtt"] for look in looks) / least if least else None,
            "sent_again": last["sent_again"] - (first["sent_again"] if len(looks) > 1 else 0)}


def texts(fetched):
    folder = common.folder_of(fetched, HARSH)
    for path in sorted(folder.rglob("sender-ss.txt")):
        yield str(path.parent.relative_to(folder / "data")), path.read_text(encoding="utf-8")
    source = (common.folder_of(fetched, ONE_LOOK) / "test/seed.js").read_text(encoding="utf-8")
    yield "mouse-elephant", re.search(r"return `\n(.*?)`", source, re.DOTALL)[1]


def of_log(name, text, program):
    sockets = {ends: account(looks) for ends, looks in looks_of(text).items()}
    data = {ends: one for ends, one in sockets.items() if one["acked"] >= LEAST_BYTES}
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "ss.log"
        path.write_text(text, encoding="utf-8")
        connections, problem = common.asked(program, ["--json", str(path)])
    row = {"log": name, "sockets": len(sockets), "samples": sum(one["looks"] for one in sockets.values()),
           "refused": problem if connections is None else None, "data": []}
    if connections is None:
        row["data"] = [{"ends": ends, **one, "said": None} for ends, one in data.items()]
        return row
    row["fullpipe_samples"] = connections[0].get("samples")
    by_ends = {frozenset((one["client"], one["server"])): one for one in connections[0]["connections"]}
    together = sum(one["rate_bps"] or 0 for one in data.values())
    for ends, one in data.items():
        found = by_ends.get(frozenset(ends))
        said = found and [limit for limit in found["limits"]]
        findings = found["findings"] if found else []
        first = common.limit_of(findings[0]) if findings else "unknown"
        if one["looks"] == 1:
            right = "receive_window" if one["rwnd_share"] > 0.5 else None
        else:
            right = "link" if together >= LINK_BPS else None
        ways = [found[way]["goodput_bps"] or 0 for way in ("client_to_server", "server_to_client")] if found else [0]
        shares = {common.limit_of(limit): limit["share"] for limit in said or []}
        window = shares.get("receive_window", 0) + shares.get("receiver_application", 0)
        row["data"].append({"ends": ends, **one, "said": first if found else None, "shares": shares, "right": right,
                            "confidence": findings[0].get("confidence") if findings else None,
                            "goodput_bps": max(ways), "rwnd_error": window - one["rwnd_share"]})
    return row



def summary(rows):
    print(f"{sum(row['refused'] is None for row in rows)} of {len(rows)} logs read.\n")
    for row in rows:
        if row["refused"]:
            print(f"* refused: {row['log']}: {row['refused'][:300]}")
    lines = [(row, one) for row in rows for one in row["data"]]
    scored = [(row, one) for row, one in lines if one.get("right")]
    print(f"\nThe first limit is right for {sum(one['said'] == one['right'] for _, one in scored)} of {len(scored)} "
          f"sockets that have a right answer.\n")
    common.table(("log", "looks read", "transfers", "kernel: receive window", "rtt / least", "sent again", "right",
                  "fullpipe", "sure", "rate there and here"),
                 [(row["log"], f"{row.get('fullpipe_samples', 0)} of {row['samples']}", f"{one['ends'][0]}",
                   f"{100 * one['rwnd_share']:.1f} %", f"{one['rtt_over_least'] or 0:.1f}", int(one["sent_again"]),
                   one.get("right") or "-",
                   ", ".join(f"{what} {100 * share:.0f} %" for what, share in one.get("shares", {}).items()) or "-",
                   one.get("confidence") or "-",
                   f"{one['rate_bps'] / 1e6:.3f}, {one.get('goodput_bps', 0) / 1e6:.3f}" if one["rate_bps"] else "-")
                  for row, one in lines])


if __name__ == "__main__":
    common.tell(__doc__, lambda folder, program: [of_log(name, text, program) for name, text in texts(folder)], summary)

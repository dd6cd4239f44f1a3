#!/usr/bin/env python3
"""Compares what `fullpipe analyze` says of a log of ss with what it says of our own samples.

    fullpipe lab generate --seed 71 --count 100 --output set-71
    fullpipe lab run set-71/*.toml --engine virtual --output runs-71
    bench/ss_log.py target/debug/fullpipe runs-71/* --every 1

Of each run the samples of the sender's socket (every 10 ms) are printed as ss of iproute2 6.1 prints
them (ss.c, tcp_stats_print), one look every so many seconds, with the time before each; both files
are then analysed. A run that has fewer than three looks is left out.
"""

import argparse
import collections
import json
import pathlib
import subprocess
import tempfile


def milliseconds(micros):
    return "%g" % (micros / 1000)


def bandwidth(bits):
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "K")):
        if bits >= size:
            return f"{bits / size:.3g}{unit}bps"
    return f"{bits:.3g}bps"


def details(sample):
    """The second line of a socket."""
    info = sample["info"]
    words = [word for bit, word in ((1, "ts"), (2, "sack"), (8, "ecn")) if info["options"] & bit]
    words.append(sample.get("congestion_control") or "cubic")
    if info["options"] & 4:
        words.append(f"wscale:{info['snd_wscale']},{info['rcv_wscale']}")
    words.append(f"rto:{milliseconds(info['rto_us'])}")
    words.append(f"rtt:{milliseconds(info['rtt_us'])}/{milliseconds(info['rttvar_us'])}")
    named = [("mss", "snd_mss_bytes"), ("pmtu", "pmtu_bytes"), ("rcvmss", "rcv_mss_bytes"),
             ("advmss", "advmss_bytes"), ("cwnd", "snd_cwnd")]
    words += [f"{name}:{info[key]}" for name, key in named if info.get(key)]
    if info["snd_ssthresh"] < 0xFFFF:
        words.append(f"ssthresh:{info['snd_ssthresh']}")
    named = [("bytes_sent", "bytes_sent"), ("bytes_retrans", "bytes_retrans"), ("bytes_acked", "bytes_acked"),
             ("bytes_received", "bytes_received"), ("segs_out", "segs_out"), ("segs_in", "segs_in"),
             ("data_segs_out", "data_segs_out"), ("data_segs_in", "data_segs_in")]
    words += [f"{name}:{info[key]}" for name, key in named if info.get(key)]
    words += [f"lastsnd:{info['last_data_sent_us'] // 1000}", f"lastrcv:{info['last_data_recv_us'] // 1000}",
              f"lastack:{info['last_ack_recv_us'] // 1000}"]
    if info.get("pacing_rate_bps"):
        words += ["pacing_rate", bandwidth(info["pacing_rate_bps"])]
    if info.get("delivery_rate_bps"):
        words += ["delivery_rate", bandwidth(info["delivery_rate_bps"])]
    if info.get("delivered"):
        words.append(f"delivered:{info['delivered']}")
    if info["delivery_rate_app_limited"]:
        words.append("app_limited")
    busy = info["busy_time_us"] // 1000
    if info["busy_time_us"]:
        words.append(f"busy:{busy}ms")
        for name, key in (("rwnd_limited", "rwnd_limited_us"), ("sndbuf_limited", "sndbuf_limited_us")):
            if info[key]:
                words.append(f"{name}:{info[key] // 1000}ms({100 * info[key] / info['busy_time_us']:.1f}%)")
    if info["unacked"]:
        words.append(f"unacked:{info['unacked']}")
    if info["retrans"] or info["total_retrans"]:
        words.append(f"retrans:{info['retrans']}/{info['total_retrans']}")
    words += [f"{name}:{info[key]}" for name, key in
              (("lost", "lost"), ("sacked", "sacked"), ("dsack_dups", "dsack_dups"),
               ("reord_seen", "reord_seen")) if info.get(key)]
    words.append(f"rcv_space:{info['rcv_space_bytes']}")
    if info.get("notsent_bytes"):
        words.append(f"notsent:{info['notsent_bytes']}")
    if info.get("min_rtt_us"):
        words.append(f"minrtt:{milliseconds(info['min_rtt_us'])}")
    if info.get("snd_wnd_bytes"):
        words.append(f"snd_wnd:{info['snd_wnd_bytes']}")
    return "\t " + " ".join(words)


def memory(sample):
    parts = sample.get("memory")
    if not parts:
        return ""
    keys = (("r", "rmem_alloc"), ("rb", "rcvbuf"), ("t", "wmem_alloc"), ("tb", "sndbuf"), ("f", "fwd_alloc"),
            ("w", "wmem_queued"), ("o", "optmem"), ("bl", "backlog"))
    words = [f"{name}{parts[key + '_bytes']}" for name, key in keys] + [f"d{parts['drops']}"]
    return " skmem:(" + ",".join(words) + ")"


def log(samples, every, with_memory):
    """Looks at all sockets, each at the first sample after its time."""
    looks = collections.defaultdict(list)
    first = samples[0]["at_ns"]
    taken = set()
    for sample in samples:
        look = (sample["at_ns"] - first) // int(every * 1e9)
        ends = (sample["local"], sample["remote"])
        if sample.get("info") and (look, ends) not in taken:
            taken.add((look, ends))
            looks[look].append(sample)
    lines = []
    for _, of_look in sorted(looks.items()):
        lines.append("%.9f" % (1764464829 + of_look[0]["at_ns"] / 1e9))
        lines.append("State  Recv-Q  Send-Q  Local Address:Port  Peer Address:Port  Process")
        for sample in of_look:
            lines.append(f"ESTAB {sample['rqueue_bytes']} {sample['wqueue_bytes']} {sample['local']} {sample['remote']}")
            lines.append(details(sample) + (memory(sample) if with_memory else ""))
    return "\n".join(lines) + "\n", len(looks)


def analysed(program, path):
    """The limits of the connection that carried most, with their shares, and the confidence."""
    done = subprocess.run([program, "analyze", "--json", path], capture_output=True, text=True)
    if done.returncode not in (0, 4):
        raise SystemExit(f"{path}: {done.stderr}")
    connections = json.loads(done.stdout)["connections"]
    connections = [one for one in connections if one.get("limits")]
    if not connections:
        return None
    # Of both files the same: the one that moved most.
    most = max(connections, key=lambda one: one["client_to_server"]["unique_payload_bytes"]
               + one["server_to_client"]["unique_payload_bytes"])
    return most


def told(most):
    return most["limits"][0]["limit"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("runs", nargs="+", type=pathlib.Path)
    parser.add_argument("--every", type=float, default=1.0, help="seconds between looks")
    parser.add_argument("--memory", action="store_true", help="as ss -m prints, too")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for the logs")
    given = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for run in sorted(given.runs):
            path = run / "server.samples.jsonl"
            if not path.exists():
                continue
            samples = [json.loads(line) for line in path.open()]
            if not samples:
                continue
            text, looks = log(samples, given.every, given.memory)
            if looks < 3:
                continue
            kept = (given.keep or pathlib.Path(scratch)) / (run.name + ".log")
            kept.write_text(text)
            own, by_looks = analysed(given.program, path), analysed(given.program, kept)
            if own and by_looks:
                rows.append((run.name, own, by_looks))
    same, unknown = 0, 0
    causes = collections.Counter()
    for name, own, by_looks in rows:
        is_same = told(own) == told(by_looks)
        same += is_same
        unknown += told(by_looks) == "unknown"
        causes[(told(own), told(by_looks))] += 1
        shares = lambda one: " ".join(f"{part['limit']} {part['share']:.2f}" for part in one["limits"][:3])
        if not is_same:
            print(f"{name}: {shares(own)} | {shares(by_looks)}")
    print(f"{same} of {len(rows)} the same limit, {unknown} unknown")
    for (own, by_looks), count in sorted(causes.items()):
        print(f"  {own:24} {by_looks:24} {count}")


if __name__ == "__main__":
    main()

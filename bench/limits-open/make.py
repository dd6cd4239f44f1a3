#!/usr/bin/env python3
"""Makes labelled captures:

  bench/limits-open/make.py DIR [--count 1000] [--seed N] [--minutes 240]

needs root, the guests' kernels (`fullpipe lab kernel build`) and `cargo build --workspace`. DIR gets

  captures/       each transfer four times: at the server and at the client, clean and as a host records it, whose
                  network card sends and receives many segments as one
  labels.csv      a line a capture: its connection, what is right, how that was found, and the scene
  left-out.csv    what was run and has no right answer, and why
  runs/           what the lab kept of each run (`cargo xtask truth`)

Called again, it goes on where it ended. The same seed gives the same scenes, and, as far as the guests' processors
allow, the same packets."""
import argparse
import csv
import ctypes
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import time

import flows

ROOT = pathlib.Path(__file__).resolve().parents[2]
SERVER, CLIENT = "10.77.0.1", "10.77.0.2"
FORMS = ("clean", "host")
# Of what kind how many of the captures are, what `truth` calls it, and how many of its runs have a right answer, as a
# first guess.
KINDS = {
    "world": (0.4, ["--worlds"], 0.6),
    "drawn": (0.4, ["--counterfactual"], 0.9),
    "conversation": (0.2, ["--conversations"], 0.6),
}
# What says the same as the label: that the sending application is waited for, that the reading one does not read, that
# a SYN was lost at random.
SAME = {"server_thinks": ["sender_application"], "window_shut": ["receiver_application"]}
COLUMNS = ("capture", "connection", "question", "right", "cause", "also", "moments", "found_by", "gains", "transfer",
           "kind", "end", "form", "sender", "rate", "delay", "queue", "discipline", "loss", "mtu", "congestion_control",
           "kernel", "hindrance", "carried_bytes", "time_s")


class MakeError(Exception):
    """What could not be made, and why."""


class Clock:
    """How long it may take."""

    def __init__(self, minutes):
        self.end = time.monotonic() + 60 * minutes

    def left(self):
        return self.end - time.monotonic()


def ends_with_us():
    """Asks the kernel to end a child when we are killed, as nobody else could then."""
    ends_with_parent = 1
    ctypes.CDLL(None).prctl(ends_with_parent, signal.SIGTERM)


def run(command, clock):
    """Runs a program of ours, and ends it with all that it started if the time is over or we are ended."""
    # With a group of its own: what it starts ends with it.
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=ends_with_us)
    try:
        out, _ = child.communicate(timeout=max(clock.left(), 1))
    except BaseException as error:
        os.killpg(child.pid, signal.SIGTERM)
        child.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise MakeError("the time is over; call it again, and it goes on") from error
        raise
    if child.returncode:
        raise MakeError(f"{' '.join(map(str, command))} ended with {child.returncode}; it says above why")
    return out


def truth(given, kind, count, clock):
    """What is right for the first `count` of a kind: runs what is missing."""
    command = [given.xtask, "truth", "--labels", *KINDS[kind][1], "--seed", given.seed, "--count", count, "--runs",
               given.folder / "runs", "--program", given.program, "--jobs", given.jobs]
    return [json.loads(line) for line in run([str(word) for word in command], clock).splitlines()]


def labelled(given, kind, wanted, clock):
    """Enough lines with a right answer, and what was left out on the way."""
    _, _, part = KINDS[kind]
    count = math.ceil(wanted / len(FORMS) / 2 / part)
    while True:
        lines = sorted(truth(given, kind, count, clock), key=lambda line: (line["transfer"], line.get("end", "")))
        good = [line for line in lines if "right" in line]
        print(f"make.py: {len(good) * len(FORMS)} of {wanted} captures of kind {kind}", file=sys.stderr)
        if len(good) * len(FORMS) >= wanted:
            good = good[:math.ceil(wanted / len(FORMS))]
            last = good[-1]["transfer"] if good else ""
            return good, [line for line in lines if "right" not in line and line["transfer"] <= last]
        # By what was found, and some more.
        found = max(len(good) / (2 * count), 0.1)
        count = max(count + 1, math.ceil(wanted / len(FORMS) / 2 / found))


def make(given, line, clock):
    """The captures of a line, and their labels."""
    stem = line["transfer"].replace("/", "-")
    made = {}
    for form in FORMS:
        name = f"captures/{stem}.{line['end']}.{form}.pcap"
        made[form] = given.folder / name
        if not made[form].exists():
            part = made[form].with_suffix(".part")
            part.unlink(missing_ok=True)
            if form == "clean":
                copy(line["capture"], part)
            else:
                host = SERVER if line["end"] == "server" else CLIENT
                run([str(given.xtask), "recapture", line["capture"], str(part), "--as", "host", "--host", host], clock)
            os.replace(part, made[form])
    flow = flows.largest(made["clean"])
    if flow is None or not flow.data:
        return []
    shared = scene(line, flow)
    return [{**shared, "capture": str(path.relative_to(given.folder)), "form": form} for form, path in made.items()]


def copy(source, target):
    try:
        os.link(source, target)
    except OSError:
        target.write_bytes(pathlib.Path(source).read_bytes())


def scene(line, flow):
    """What is known of a capture, but for its name."""
    folder = pathlib.Path(line["folder"])
    asked = json.loads((folder / "scenario.json").read_text(encoding="utf-8"))
    path = asked["path"]["to_client"]
    right = list(line["right"])
    for limit in line["right"]:
        right += SAME.get(limit, [])
    if line.get("hindrance") == "loss" and "syn_repeated" in right:
        right.append("loss")
    return {
        "connection": flow.name,
        "question": line["question"],
        "right": "|".join(right),
        "cause": line["cause"],
        "also": line["also"] or "",
        "moments": json.dumps(moments(line, asked, flow)) if line["also"] else "",
        "found_by": line["found_by"],
        "gains": json.dumps({name: round(gain, 3) for name, gain in line["gains"].items()}),
        "transfer": line["transfer"],
        "kind": line["kind"],
        "end": line["end"],
        "sender": "client" if flow.by_client else "server",
        "rate": path.get("rate", ""),
        "delay": path.get("delay", ""),
        "queue": path.get("queue", ""),
        "discipline": path.get("discipline", ""),
        "loss": path.get("loss", ""),
        "mtu": asked["path"].get("mtu", ""),
        "congestion_control": asked["hosts"]["server"].get("congestion_control", ""),
        "kernel": asked.get("kernel", ""),
        "hindrance": line.get("hindrance", ""),
        "carried_bytes": flow.payload,
        "time_s": round(flow.ended - flow.began, 6),
    }


def moments(line, asked, flow):
    """Where the link binds first and then something else: from when to when each does, in seconds since the first
    packet."""
    after = asked["transfer"].get("write_rate_after")
    changes = asked["path"]["to_client"].get("changes")
    if after:
        bulk = int(after.removesuffix("B"))
        at = next((at for at, number, _ in flow.answers if number - flow.data[0][1] >= bulk), flow.ended) - flow.began
    elif isinstance(changes, str):
        # `2.5s rate=..`: the last step.
        at = seconds(changes.split(",")[-1].split()[0])
    else:
        return []
    then = line["also"] if line["cause"] == "link" else line["cause"]
    return [[0.0, round(at, 6), "link"], [round(at, 6), round(flow.ended - flow.began, 6), then]]


def seconds(text):
    for unit, size in (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)):
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * size
    raise MakeError(f"read a scenario: '{text}' is no time")


def write(path, columns, found):
    part = path.with_suffix(".part")
    with open(part, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(found)
    os.replace(part, path)


def all_kinds(given, clock):
    labels, left_out = [], []
    for kind, (part, _, _) in KINDS.items():
        good, without = labelled(given, kind, round(given.count * part), clock)
        left_out += without
        for number, line in enumerate(good, 1):
            labels += make(given, line, clock)
            if number % 20 == 0 or number == len(good):
                print(f"make.py: {number} of {len(good)} captures of kind {kind} in both forms", file=sys.stderr)
        write(given.folder / "labels.csv", COLUMNS, labels)
        write(given.folder / "left-out.csv", ("transfer", "kind", "end", "left_out"), left_out)
    return labels, left_out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--count", type=int, default=1000, help="how many captures")
    parser.add_argument("--seed", type=int, default=501, help="which set")
    parser.add_argument("--jobs", type=int, default=2, help="guests at once")
    parser.add_argument("--minutes", type=float, default=240, help="the longest that it may take")
    parser.add_argument("--xtask", type=pathlib.Path, default=ROOT / "target/debug/xtask")
    parser.add_argument("--program", type=pathlib.Path, default=ROOT / "target/debug/fullpipe", help="fullpipe")
    given = parser.parse_args()
    for program in (given.xtask, given.program):
        if not program.exists():
            sys.exit(f"make.py: there is no {program}; `cargo build --workspace` makes it")
    for asked_to_end in (signal.SIGTERM, signal.SIGINT):
        signal.signal(asked_to_end, lambda *_: sys.exit("make.py: ended; call it again, and it goes on"))
    given.folder = given.folder.resolve()
    (given.folder / "captures").mkdir(parents=True, exist_ok=True)
    try:
        labels, left_out = all_kinds(given, Clock(given.minutes))
    except (MakeError, OSError, flows.CaptureError) as error:
        sys.exit(f"make.py: {error}")
    # A world's run with a limit lifted is named after the world.
    without = {line["transfer"].split(".")[0] for line in left_out} - {line["transfer"] for line in labels}
    print(f"{len(labels)} captures of {len({line['transfer'] for line in labels})} transfers in {given.folder}; "
          f"{len(without)} transfers were left out")


if __name__ == "__main__":
    main()

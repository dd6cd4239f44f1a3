#!/usr/bin/env python3
"""How well `fullpipe prove` repeats what was measured, and how well it predicts.

    bench/prove.py run DIR --seed N --count N    generate, run, prove, apply, run again
    bench/prove.py table DIR                     the figures, from what is in DIR

Each scenario of `fullpipe lab generate` runs once with its captures kept. `fullpipe prove` gets the
capture of one end and nothing else. Each change that it tries is then made in the scenario itself,
and that runs too: its gain is the truth beside the predicted one. FULLPIPE names the program.
"""

import argparse
import copy
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tomllib

PROGRAM = os.environ.get("FULLPIPE", "fullpipe")
AGREES = 0.10
PREDICTS = 0.15


def call(*arguments):
    """The program's standard output; its exit code may be 1, which is an answer."""
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def toml(value):
    """A value as TOML; tables are written inline, so that one line holds any of them."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, str) else str(value)


def changed(scenario, changes, name, size):
    """The scenario with a trial's changes made; `size` is that of a transfer seen as a whole."""
    scenario = copy.deepcopy(scenario)
    scenario["name"] = name
    if size and scenario["transfer"].get("client") != "iperf3":
        scenario["transfer"]["size"] = str(size)
        scenario["transfer"].pop("duration", None)
    for change in changes:
        server = change["host"] == "sender"
        host = scenario.setdefault("hosts", {}).setdefault("server" if server else "client", {})
        transfer = scenario.setdefault("transfer", {})
        if change["kind"] == "sysctl":
            host.setdefault("sysctl", {})[change["setting"]] = change["to"]
            # A capture does not show who set a buffer. The report says that the sysctl helps only
            # where the application leaves it to the kernel, so that belongs to the change.
            if change["setting"] in ("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"):
                transfer.pop("send_buffer" if server else "receive_buffer", None)
        elif change["kind"] == "autotuning":
            transfer.pop("send_buffer" if server else "receive_buffer", None)
        elif change["kind"] == "congestion_control":
            host["congestion_control"] = change["name"]
        elif change["kind"] == "initial_window":
            host["initcwnd"] = change["segments"]
        else:
            sys.exit(f"{name}: unknown change {change}")
    return scenario


def rows(folder):
    """The rows of a folder of results by name, each with the folder of its run."""
    found = {}
    for run in sorted(folder.glob("[0-9]*")):
        row = json.loads((run / "row.json").read_text())
        found[row["name"]] = (row, run)
    return found


def run(folder, seed, count, end):
    sets = folder / "set"
    call("lab", "generate", "--seed", seed, "--count", count, "--out", sets)
    (folder / "made").write_text(
        f"Seed {seed}, {count} scenarios, capture at the {end}, virtual time, {datetime.date.today()}.\n"
    )
    texts = sorted(sets.glob("*.toml"))
    code, _, errors = call(
        "lab", "run", *texts, "--engine", "virtual", "--keep-captures", "--out", folder / "measured"
    )
    print(f"measured: exit {code} {errors}", file=sys.stderr)
    scenarios = {(text := tomllib.loads(path.read_text()))["name"]: text for path in texts}
    proofs = folder / "proofs"
    after = folder / "after-set"
    for made in (proofs, after):
        made.mkdir(parents=True)
    for name, (_, results) in rows(folder / "measured").items():
        code, out, errors = call("prove", results / f"{end}.pcap", "--json")
        short = name.rsplit("/", 1)[-1]
        answer = {"name": name, "exit": code, "errors": errors}
        if code in (0, 1) and out:
            answer["proof"] = json.loads(out)
            for number, trial in enumerate(answer["proof"]["trials"]):
                size = answer["proof"]["measured"].get("payload_bytes")
                made = changed(scenarios[name], trial["changes"], f"{name}.{number}", size)
                text = "".join(f"{json.dumps(k)} = {toml(v)}\n" for k, v in made.items())
                (after / f"{short}.{number}.toml").write_text(text)
        (proofs / f"{short}.json").write_text(json.dumps(answer, indent=1))
    texts = sorted(after.glob("*.toml"))
    code, _, errors = call("lab", "run", *texts, "--engine", "virtual", "--out", folder / "after")
    print(f"after: exit {code} {errors}", file=sys.stderr)


def goodput(row, whole):
    return row["goodput_bps"] if whole else row.get("steady_goodput_bps") or row["goodput_bps"]


def table(folder):
    measured, after = rows(folder / "measured"), rows(folder / "after")
    paths = agreeing = promised = kept = 0
    wrong = []
    lines = []
    for path in sorted((folder / "proofs").glob("*.json")):
        answer = json.loads(path.read_text())
        name = answer["name"]
        paths += 1
        if "proof" not in answer:
            lines.append(f"| {path.stem} | no proof: {answer['errors'].strip()} | | | |")
            continue
        proof = answer["proof"]
        ratio = proof["agreement"]["ratio"]
        near = abs(ratio - 1) <= AGREES
        agreeing += near
        agrees = proof["agreement"]["agrees"]
        truth = measured[name][0]
        whole = "payload_bytes" in proof["measured"]
        told = []
        for number, trial in enumerate(proof["trials"]):
            row = after.get(f"{name}.{number}")
            if row is None:
                told.append("failed")
                continue
            gain = goodput(row[0], whole) / goodput(truth, whole)
            told.append(f"{trial['gain']:.2f} / {gain:.2f}")
            if "expected_bps" not in trial:
                told[-1] = f"({told[-1]})"
            else:
                good = abs(trial["gain"] / gain - 1) <= PREDICTS
                promised += 1
                kept += good
                if not good:
                    wrong.append(f"{path.stem}.{number}")
        limit = proof["measured"]["limit"]
        lines.append(
            f"| {path.stem} | {limit} | {proof['measured']['goodput_bps'] / 1e6:.2f} | {ratio:.3f}"
            f" | {'yes' if agrees else 'no'} | {', '.join(told)} |"
        )
    print((folder / "made").read_text())
    print("| path | measured limit | Mbit/s | lab / measured | agrees | gains, predicted / true |")
    print("|---|---|---|---|---|---|")
    print("\n".join(lines))
    print(f"\nThe lab's goodput is within {AGREES:.0%} of the measured one on {agreeing} of {paths} paths.")
    told = f"{kept} of the {promised} gains that were promised are within {PREDICTS:.0%} of the true ones"
    print(f"{told}{'; not ' + ', '.join(wrong) if wrong else ''}. Gains in brackets were not promised.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["run", "table"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--end", choices=["server", "client"], default="server")
    options = parser.parse_args()
    if options.action == "run":
        run(options.folder, options.seed, options.count, options.end)
    table(options.folder)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Asks fullpipe about public captures whose authors published what was wrong, and scores its answers.

  bench/outside/captures.py DIR [--program FILE] [--json]

DIR is what get.py fetched. captures.csv has the published answers: `right` are the words of fullpipe that agree with one,
or, behind `!`, the ones that contradict it; the question is what took most of the connection's time, or what limited it, as
in bench/limits-open. `facts` are labels of packets (`8:fast_retransmission`) and counts of the connection."""
import argparse
import csv
import json
import pathlib
import sys

import common

sys.path.insert(0, str(common.HERE.parent / "limits-open"))
import ours  # noqa: E402: how the open benchmark asks fullpipe

COUNTS = {"retransmission": lambda way: way["labels"]["retransmission"],
          "lost_segments": lambda way: way["loss"]["lost_segments"]}
WAYS = ("client_to_server", "server_to_client")


def chosen(connections, name):
    """The connection of that name, either end first; without a name the one with most payload."""
    if name:
        ends = set(name.split("-"))
        return next((one for one in connections if {one["client"], one["server"]} == ends), None)
    return max(connections, key=lambda one: sum(one[way]["payload_bytes"] for way in WAYS), default=None)


def said_of(connection, question):
    if question == "time":
        return ours.first_part(connection["account"])
    way = max(WAYS, key=lambda way: connection[way]["unique_payload_bytes"])
    first = next((one for one in connection["findings"] if one["direction"] == way), None)
    return common.limit_of(first) if first else "unknown"


def is_right(said, right):
    if right.startswith("!"):
        return said not in right[1:].split("|")
    return said in right.split("|")


def wrong_facts(facts, connection, packets):
    for fact in facts.split():
        if ":" in fact:
            number, label = fact.split(":")
            packet = next((one for one in packets if one["number"] == int(number)), None)
            if packet is None or label not in packet["labels"]:
                yield f"packet {number} is {', '.join(packet['labels']) if packet and packet['labels'] else 'nothing'}, not {label}"
        else:
            name, count = fact.split("=")
            found = sum(COUNTS[name](connection[way]) for way in WAYS)
            if found != int(count):
                yield f"{found} {name}, not {count}"


def scored(row, fetched, program):
    path = common.folder_of(fetched, row["repository"]) / row["path"]
    connections, problem = common.asked(program, ["--jsonl", str(path)])
    connection = chosen(connections or [], row["connection"])
    if connection is None:
        return {**row, "said": f"nothing: {problem or 'no such connection'}", "is_right": False, "wrong_facts": []}
    packets, _ = common.asked(program, ["--packets", "--jsonl", str(path)]) if ":" in row["facts"] else ([], "")
    said = said_of(connection, row["question"]) if row["question"] else ""
    wrong = list(wrong_facts(row["facts"], connection, packets or []))
    agrees = not row["question"] or is_right(said, row["right"])
    return {**row, "said": said, "is_right": agrees and not wrong, "wrong_facts": wrong}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--program", default=common.PROGRAM, help="fullpipe")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with open(common.HERE / "captures.csv", newline="", encoding="utf-8") as file:
        rows = [scored(row, given.folder, given.program) for row in csv.DictReader(file)]
    if given.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{sum(row['is_right'] for row in rows)} of {len(rows)} captures as published.\n")
    common.table(("capture", "published", "fullpipe", ""), [
        (f"{row['repository']} `{pathlib.PurePath(row['path']).name}`", row["published"],
         "; ".join(filter(None, [f"`{row['said']}`" if row["said"] else "", *row["wrong_facts"]])) or "the same",
         "right" if row["is_right"] else "**wrong**") for row in rows])


if __name__ == "__main__":
    main()

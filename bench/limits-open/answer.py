#!/usr/bin/env python3
"""Answers of fullpipe and of others' rules about labelled captures:

  bench/limits-open/answer.py DIR [--tools fullpipe,rules,trat,siekkinen] [--program FILE]

reads DIR/labels.csv (for the names of the captures and the question, no label) and writes DIR/answers/TOOL.csv: capture,
connection, limit, confidence, and what the answer rests on. A capture that is answered already is not read again."""
import argparse
import csv
import json
import os
import pathlib
import sys

import flows
import ours
import rules
import siekkinen
import trat

HERE = pathlib.Path(__file__).resolve().parent
OTHERS = {"rules": rules.answer, "trat": trat.answer, "siekkinen": siekkinen.answer}
COLUMNS = ("capture", "connection", "limit", "confidence", "rests_on")


def asked(folder):
    """Capture and question of each label."""
    path = folder / "labels.csv"
    try:
        with open(path, newline="", encoding="utf-8") as file:
            return [(row["capture"], row["question"]) for row in csv.DictReader(file)]
    except (OSError, KeyError) as error:
        sys.exit(f"answer.py: read {path}: {error}; make.py writes it")


def there(path):
    """The answers that a file has, by capture."""
    if not path.exists():
        return {}
    with open(path, newline="", encoding="utf-8") as file:
        return {row["capture"]: row for row in csv.DictReader(file)}


def write(path, answers, captures):
    path.parent.mkdir(exist_ok=True)
    part = path.with_suffix(".part")
    with open(part, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(answers[capture] for capture in captures if capture in answers)
    os.replace(part, path)


def by_fullpipe(program, capture, question):
    found = ours.answer(program, capture, question)
    if found is None:
        return "", "unknown", None, ""
    return (*found, "")


def by_others(capture, tools):
    """The answer of each of these tools; the capture is read once."""
    flow = flows.largest(capture) if tools else None
    for tool in tools:
        if flow is None or not flow.data:
            yield tool, ("", "unknown", None, "")
            continue
        word, rests_on = OTHERS[tool](flow)
        yield tool, (flow.name, word, None, json.dumps(rests_on))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--tools", default=",".join(["fullpipe", *OTHERS]))
    parser.add_argument("--program", default=HERE.parents[1] / "target/debug/fullpipe", help="fullpipe")
    given = parser.parse_args()
    tools = given.tools.split(",")
    unknown = set(tools) - {"fullpipe", *OTHERS}
    if unknown:
        sys.exit(f"answer.py: there is no tool {', '.join(unknown)}; there are fullpipe, {', '.join(OTHERS)}")
    questions = asked(given.folder)
    captures = [capture for capture, _ in questions]
    files = {tool: given.folder / "answers" / f"{tool}.csv" for tool in tools}
    answers = {tool: there(path) for tool, path in files.items()}
    for number, (capture, question) in enumerate(questions, 1):
        missing = [tool for tool in tools if capture not in answers[tool]]
        try:
            found = dict(by_others(given.folder / capture, [tool for tool in missing if tool in OTHERS]))
            if "fullpipe" in missing:
                found["fullpipe"] = by_fullpipe(given.program, given.folder / capture, question)
        except (flows.CaptureError, ours.FullpipeError) as error:
            sys.exit(f"answer.py: {error}")
        for tool, (connection, limit, confidence, rests_on) in found.items():
            values = capture, connection, limit, "" if confidence is None else confidence, rests_on
            answers[tool][capture] = dict(zip(COLUMNS, values))
        if found and (number % 20 == 0 or number == len(questions)):
            print(f"answer.py: {number} of {len(questions)} captures", file=sys.stderr)
            for tool, path in files.items():
                write(path, answers[tool], captures)
    for tool, path in files.items():
        write(path, answers[tool], captures)


if __name__ == "__main__":
    main()

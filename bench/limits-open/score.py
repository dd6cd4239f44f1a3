#!/usr/bin/env python3
"""Scores answers about labelled captures:

  bench/limits-open/score.py LABELS.csv ANSWERS.csv.. [--json] [--detail] [--vocabularies FILE]

ANSWERS.csv has a header and the columns capture, connection, limit and, if the tool has one, confidence (0 to 1); its
name without `.csv` is the tool's. A capture without a row counts as silent, and so does the word `unknown`. An empty
connection means the only one that is asked for. The words are those of labels.csv, or the tool's own, with a line each
in vocabularies.csv: which limits a word stands for, and which of the four classes (sender application, receiver,
network, other). A word that stands for several limits is right if one of them is.

Intervals are Wilson's, 95 %. Captures of one transfer are alike, so where a row has several of each, the interval is
that of as many answers as there are transfers."""
import argparse
import collections
import csv
import json
import math
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
SURE = 0.9
OUTCOMES = ("right", "wrong", "silent")
# What is right in the coarse score: a tool that knows one application only is right with it where the other end's
# application is waited for, because the sending one has nothing to send then.
CLASSES = {
    "link": ("network",), "loss": ("network",), "syn_repeated": ("network",), "peer_gone": ("network",),
    "slow_start": ("other",), "send_buffer": ("other",),
    "receive_window": ("receiver",), "receiver_application": ("receiver",), "window_shut": ("receiver",),
    "sender_application": ("sender application",), "server_thinks": ("sender application",),
    "client_thinks": ("receiver", "sender application"), "turns": ("other", "sender application"),
}


class ScoreError(Exception):
    """What is wrong with a file, and what to try."""


def rows(path, needed):
    try:
        with open(path, newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            missing = [name for name in needed if name not in (reader.fieldnames or ())]
            if missing:
                raise ScoreError(f"read {path}: it has no column {', '.join(missing)}; its first line names its columns")
            return list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ScoreError(f"read {path}: {error}") from error


def connection(text):
    """A connection by its two ends, whichever is named first."""
    ends = text.strip().replace(" ", "").split("-")
    return frozenset(ends) if text.strip() else None


def read_labels(path):
    """The labels by capture."""
    labels = {}
    for row in rows(path, ("capture", "connection", "right", "cause", "transfer", "kind", "end", "form")):
        row["right"] = set(filter(None, row["right"].split("|")))
        unknown = row["right"] - CLASSES.keys()
        if unknown or not row["right"]:
            raise ScoreError(f"read {path}: {row['capture']} has the label {'|'.join(unknown) or 'of no limit'}; "
                             f"there are {', '.join(CLASSES)}")
        row["classes"] = {name for limit in row["right"] for name in CLASSES[limit]}
        labels[row["capture"]] = row
    if not labels:
        raise ScoreError(f"read {path}: it has no labels")
    return labels


def read_vocabularies(path):
    """For each vocabulary what its words stand for: limits, and a class."""
    words = collections.defaultdict(dict)
    for row in rows(path, ("vocabulary", "word", "limits", "class")):
        words[row["vocabulary"]][row["word"]] = set(filter(None, row["limits"].split("|"))), row["class"]
    return words


def read_answers(path, labels, vocabularies):
    """What a tool says of each capture: limits, class, confidence."""
    tool = pathlib.Path(path).stem
    words = {**vocabularies["own"], **vocabularies.get(tool, {})}
    answers = {}
    for number, row in enumerate(rows(path, ("capture", "connection", "limit")), 2):
        capture, word = row["capture"], (row["limit"] or "").strip()
        label = labels.get(capture)
        asked = label and connection(label["connection"])
        if not label or connection(row["connection"] or "") not in (None, asked):
            # Another capture or connection than was asked for.
            continue
        if word and word not in words:
            raise ScoreError(f"read {path}: line {number} says '{word}', which is no limit; there are "
                             f"{', '.join(words)}; give the word a line in vocabularies.csv (vocabulary {tool})")
        if capture in answers:
            raise ScoreError(f"read {path}: line {number} answers {capture} a second time; leave one answer")
        limits, name = words.get(word, (set(), ""))
        answers[capture] = limits, name, confidence(path, number, row.get("confidence"))
    return tool, answers


def confidence(path, number, text):
    if not (text or "").strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise ScoreError(f"read {path}: line {number} is '{text}' confident; say a number from 0 to 1, or nothing")
    return value


def outcome(said, right):
    if not said:
        return "silent"
    return "right" if said & right else "wrong"


def wilson(right, every):
    """The interval in which the true share is, with 95 %."""
    if not every:
        return 0.0, 1.0
    z, share = 1.959964, right / every
    middle = share + z * z / (2 * every)
    half = z * math.sqrt(share * (1 - share) / every + z * z / (4 * every * every))
    scale = 1 + z * z / every
    return max((middle - half) / scale, 0.0), min((middle + half) / scale, 1.0)


class Tally:
    """Answers of one kind."""

    def __init__(self):
        self.outcomes, self.transfers = collections.Counter(), set()
        self.sure = self.sure_right = 0

    def add(self, result, transfer, certainty):
        self.outcomes[result] += 1
        self.transfers.add(transfer)
        if certainty is not None and certainty >= SURE and result != "silent":
            self.sure += 1
            self.sure_right += result == "right"

    def row(self):
        every = sum(self.outcomes.values())
        share = self.outcomes["right"] / every
        low, high = wilson(share * len(self.transfers), len(self.transfers))
        return {"captures": every, "transfers": len(self.transfers), **{name: self.outcomes[name] for name in OUTCOMES},
                "share": share, "low": low, "high": high, "sure": self.sure, "sure_right": self.sure_right}


def groups(label):
    """The rows of the tables in which a capture counts."""
    yield "all", "all"
    yield "kind", label["kind"]
    yield "place and form", f"{label['end']}, {label['form']}"
    yield "cause", label["cause"]


def score(labels, answers):
    """For the limits and for the classes: by heading and name, how many answers are right, wrong and silent."""
    tallies = {"limits": {}, "classes": {}}
    for capture, label in labels.items():
        limits, name, certainty = answers.get(capture, (set(), "", None))
        results = {"limits": outcome(limits, label["right"]), "classes": outcome({name} - {""}, label["classes"])}
        for what, result in results.items():
            for group in groups(label):
                tallies[what].setdefault(group, Tally()).add(result, label["transfer"], certainty)
    return {what: {group: tally.row() for group, tally in found.items()} for what, found in tallies.items()}


def always(labels):
    """What a tool scores that says the same of every capture: the limit, and the class, that is right most often."""
    limits = collections.Counter(limit for label in labels.values() for limit in sorted(label["right"]))
    classes = collections.Counter(name for label in labels.values() for name in sorted(label["classes"]))
    (limit, _), (name, _) = limits.most_common(1)[0], classes.most_common(1)[0]
    return f"always '{limit}' ('{name}')", {capture: ({limit}, name, None) for capture in labels}


def cell(row):
    return f"{row['right']} of {row['captures']} ({row['share']:.0%}; {row['low']:.0%} to {row['high']:.0%})"


def heading(*names):
    return [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]


def table(scores, detail):
    lines = heading("tool", "limit right", "wrong", "silent", "of four classes right", "wrong", "silent", "90 % sure: right")
    for tool, result in scores.items():
        limit, coarse = (result[what]["all", "all"] for what in ("limits", "classes"))
        sure = f"{limit['sure_right']} of {limit['sure']}" if limit["sure"] else ""
        lines.append(f"| {tool} | {cell(limit)} | {limit['wrong']} | {limit['silent']} | {cell(coarse)} | "
                     f"{coarse['wrong']} | {coarse['silent']} | {sure} |")
    for what in ("limits", "classes") if detail else ():
        tools = list(scores)
        lines += ["", f"Right {'limits' if what == 'limits' else 'of the four classes'}, "
                      "and of the rest how many were silent:", "", *heading("", "captures", *tools)]
        for group in sorted(scores[tools[0]][what].keys() - {("all", "all")}):
            rows_ = [scores[tool][what][group] for tool in tools]
            cells = [f"{row['right']} ({row['share']:.0%}), {row['silent']}" for row in rows_]
            lines.append(f"| {group[0]}: {group[1]} | {rows_[0]['captures']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def plain(result):
    """A result for JSON, whose keys are texts."""
    return {what: [{"by": by, "name": name, **row} for (by, name), row in found.items()] for what, found in result.items()}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("labels", help="labels.csv, as make.py writes it")
    parser.add_argument("answers", nargs="+", help="a CSV file with a tool's answers")
    parser.add_argument("--json", action="store_true", help="print JSON in place of tables")
    parser.add_argument("--detail", action="store_true", help="print the scores by cause, kind, place and form, too")
    parser.add_argument("--vocabularies", default=HERE / "vocabularies.csv", help="what words stand for")
    given = parser.parse_args(arguments)
    try:
        labels, vocabularies = read_labels(given.labels), read_vocabularies(given.vocabularies)
        answered = [read_answers(path, labels, vocabularies) for path in given.answers]
    except ScoreError as error:
        sys.exit(f"score.py: {error}")
    scores = {tool: score(labels, answers) for tool, answers in [*answered, always(labels)]}
    print(json.dumps({tool: plain(result) for tool, result in scores.items()}) if given.json else table(scores, given.detail))


if __name__ == "__main__":
    main()

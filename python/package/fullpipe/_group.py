"""A group of captures: its rows become parts, and one line says that they are there."""

import hashlib
import json
import os
import tempfile

from ._native import write_group
from ._store import Found, Reader, Store, is_local

BYTES = 64 << 20
FILES = 256
"""A group is full when it has so much."""
KINDS = ("connections", "intervals", "findings", "spans", "packets")
"""The kinds of rows."""


def groups(captures):
    """Groups in order. A group ends by what is in it alone, so that whatever is left of an
    interrupted run has the groups that the whole had."""
    group, size = [], 0
    for found in captures:
        group.append(found)
        size += found.size
        if size >= BYTES or len(group) >= FILES:
            yield group
            group, size = [], 0
    if group:
        yield group


def word_of(group: list[Found]) -> str:
    """The name of a group's parts."""
    names = json.dumps([list(found) for found in group]).encode()
    return hashlib.sha256(names).hexdigest()[:20]


def opened(group: list[Found]):
    """For each capture its name, its size, and its path or what opens it. The first range of the
    next capture is asked for while this one is analysed."""
    ahead = None
    for found, following in zip(group, [*group[1:], None]):
        if is_local(found.url):
            yield found.url, found.size, found.url
            continue
        first = [ahead or Reader(found)]
        ahead = following and Reader(following)
        # Packets are read in a second pass.
        yield found.url, found.size, lambda: first.pop() if first else Reader(found)


def work(group: list[Found], out: str, kinds: list[str], options: dict) -> dict:
    """Analyses a group and commits it; returns what it did."""
    store, word = Store(out), word_of(group)
    parts, of_day = [], {}
    with tempfile.TemporaryDirectory(prefix="fullpipe-") as folder:
        done, files = write_group(opened(group), folder, kinds, **options)
        for kind, day, local, rows in files:
            place = f"{kind}/day={day}"
            number = of_day[place] = of_day.get(place, -1) + 1
            part = store.put(local, f"{place}/part-{word}-{number}.parquet")
            os.unlink(local)
            parts.append({**part, "rows": rows})
    captures = [{"file": found.url, "bytes": found.size, "rows": dict(zip(kinds, rows)),
                 "problem": problem} for found, (rows, problem) in zip(group, done)]
    # From here on the group counts.
    line = json.dumps({"captures": captures, "parts": parts}) + "\n"
    store.put_bytes(line.encode(), f"_manifest/{word}.json")
    return {"files": len(group), "bytes": sum(found.size for found in group)}

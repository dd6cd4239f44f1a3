"""A group of captures: its rows become parts, and one line says that they are there."""

import hashlib
import json
import os
import tempfile

import pyarrow
import pyarrow.compute
import pyarrow.parquet

from . import analyze
from ._store import Found, Reader, Store

BYTES = 64 << 20
FILES = 256
"""A group is full when it has so much."""
ROWS = 1 << 15
"""Rows that are gathered for a row group, whose cost is the same for few rows."""
DAY = 86_400_000_000_000
STARTS = {"connections": "start_ns", "intervals": "connection_start_ns",
          "findings": "connection_start_ns", "packets": "time_ns"}
"""By which column a row has its day; its keys are the kinds of rows."""


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


class Parts:
    """The rows of one kind, in a local file for each day."""

    def __init__(self, folder: str, kind: str):
        self.folder, self.kind = folder, kind
        self.open = {}
        self.gathered = {}
        self.rows = {}

    def add(self, batch: pyarrow.RecordBatch):
        days = pyarrow.compute.divide(batch.column(STARTS[self.kind]), pyarrow.scalar(DAY, "uint64"))
        for day in pyarrow.compute.unique(days).to_pylist():
            rows = batch.filter(pyarrow.compute.equal(days, day))
            gathered = self.gathered.setdefault(day, [])
            gathered.append(rows)
            self.rows[day] = self.rows.get(day, 0) + rows.num_rows
            if sum(one.num_rows for one in gathered) >= ROWS:
                self.write(day)

    def write(self, day: int):
        """Writes what was gathered as a row group."""
        if gathered := self.gathered.pop(day, None):
            table = pyarrow.Table.from_batches(gathered)
            if day not in self.open:
                name = os.path.join(self.folder, f"{self.kind}-{day}")
                self.open[day] = pyarrow.parquet.ParquetWriter(
                    name, table.schema, compression="zstd")
            self.open[day].write_table(table)

    def store(self, store: Store, word: str):
        """Puts the parts into the store; yields what is to be known of each."""
        import datetime

        for day in list(self.gathered):
            self.write(day)
        for day, writer in sorted(self.open.items()):
            writer.close()
            date = datetime.date(1970, 1, 1) + datetime.timedelta(days=day)
            local = os.path.join(self.folder, f"{self.kind}-{day}")
            part = store.put(local, f"{self.kind}/day={date}/part-{word}.parquet")
            os.unlink(local)
            yield {**part, "rows": self.rows[day]}


def work(group: list[Found], out: str, kinds: list[str], options: dict) -> dict:
    """Analyses a group and commits it; returns what it did."""
    store, word = Store(out), word_of(group)
    captures = [{"file": found.url, "bytes": found.size, "rows": {}, "problem": None}
                for found in group]
    parts = []
    with tempfile.TemporaryDirectory(prefix="fullpipe-") as folder:
        for kind in kinds:
            made = Parts(folder, kind)
            for found, capture in zip(group, captures):
                rows = analyze(Reader(found), rows=kind, name=found.url, problems="keep", **options)
                count = 0
                for batch in pyarrow.RecordBatchReader.from_stream(rows):
                    made.add(batch)
                    count += batch.num_rows
                capture["rows"][kind] = count
                capture["problem"] = next((problem for _, problem in rows.problems), None)
            parts.extend(made.store(store, word))
    # From here on the group counts.
    line = json.dumps({"captures": captures, "parts": parts}) + "\n"
    store.put_bytes(line.encode(), f"_manifest/{word}.json")
    return {"files": len(group), "bytes": sum(found.size for found in group)}

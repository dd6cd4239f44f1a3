from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Protocol, final

from . import lab as lab

SCHEMA_VERSION: int
"""The version of the columns; also in the metadata of each table."""
__version__: str

class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...

_Path = str | PathLike[str]
_Rows = Literal["connections", "intervals", "findings", "spans", "packets", "workloads"]

@final
class Rows:
    """Rows that are made when an Arrow library asks for them.

    pyarrow.table(rows), polars.DataFrame(rows), and DuckDB's SQL on a
    variable read it. Each of them analyses anew; a file object can be read
    once. Memory is bounded by a record batch and the open connections.
    """

    problems: list[tuple[str, str]]
    """Captures that were not read to their ends in the latest reading: file
    and problem."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class Column:
    """A column of a table."""

    name: str
    """Its name, with the unit at its end: _us, _ns, _bytes, _bps."""
    kind: Literal["text", "integer", "double", "boolean", "words", "texts", "objects"]
    """What its values are; words and texts are one text with separators,
    objects one text of JSON."""
    unit: str
    """µs, ns, bytes, bit/s, or empty."""
    null: str
    """When it is null; empty: never."""
    meaning: str

def analyze(
    source: _Path | Iterable[_Path] | bytes | _Readable,
    *,
    rows: _Rows = "connections",
    filter: str | None = None,
    capture_point: Literal["auto", "sender", "receiver"] = "auto",
    layer: Literal["inner", "outer"] = "inner",
    labels: Literal["sack", "wireshark"] = "sack",
    threads: int = 1,
    problems: Literal["raise", "keep"] = "raise",
    name: str | None = None,
) -> Rows:
    """Analyse captures: pcap, pcapng, snoop, or what `fullpipe why --record`
    wrote, plain or packed with gzip, zstd, xz or lz4.

    source: a path, paths (one capture after another), bytes, or a file that
        is open for reading bytes.
    rows: "connections": one for each direction of a connection; "intervals":
        one for each span of time of a direction, and what limited it;
        "findings": one for each limit, with what would change it; "spans": one
        for each stretch of time, with who had it and for what; "packets":
        one for each packet of a connection; "workloads": of parts that
        `record --sockets` keeps, what took the time of each workload in an
        hour, without the sites of peers.
    filter: which connections, as `analyze --filter`: "host 10.0.0.1 and port
        443".
    capture_point: at the sender or the receiver of the data, or guessed.
    layer: which packet of a tunnelled one.
    labels: whose definitions of the labels.
    threads: of the analysis; the rows do not depend on it.
    problems: "raise": what could not be read is an error at the end of the
        stream, so a short table never looks whole; "keep": it is in
        Rows.problems.
    name: of bytes or an open file, for the column `file` and for messages.

    Raises an OSError where the only file cannot be opened, a ValueError for
    an unknown word, and TypeError for a source of another type.
    """

def columns(rows: _Rows = "connections") -> list[Column]:
    """The columns of a kind of row, in order."""

class ProgramError(RuntimeError):
    """The program `fullpipe` failed; the message is its own."""

    code: int
    """1 the run failed, 3 a privilege or a tool is missing, 4 bad input."""

def calc(
    rate: str | None = None,
    rtt: str | Sequence[str] | None = None,
    *,
    buffer: str | int | None = None,
    kernel: str | None = None,
    loss: str | Sequence[str] | None = None,
    file: str | None = None,
    connections: int | None = None,
    memory: str | None = None,
    this_host: bool = False,
) -> Any:
    """What a path needs and what a buffer allows, as `fullpipe calc --json`:
    times in us, sizes in bytes, rates in bit/s, as names say.

    rate, rtt: with units: calc(rate="1gbit", rtt="50ms").

    Starts the program `fullpipe`: FileNotFoundError where it is not installed,
    ValueError for wrong options, ProgramError for what else fails.
    """

def plan(
    rate: str | None = None,
    rtt: str | None = None,
    *,
    role: Literal["sender", "receiver", "both"] | None = None,
    connections: int | None = None,
    memory: str | None = None,
    loss: str | None = None,
    pauses: bool = False,
    black_hole: bool = False,
) -> dict[str, Any]:
    """What falls short of a path on this machine, and why, as `fullpipe tune
    plan --json`. Changes nothing. Starts the program, as `calc` does.
    """

class Report:
    """A report that was written; a notebook shows it."""

    path: Path
    def __init__(self, path: Path) -> None: ...
    def _repr_html_(self) -> str: ...

def report(
    source: _Path | Iterable[_Path],
    out: _Path = "report.html",
    *,
    filter: str | None = None,
    as_one: bool = False,
) -> Report:
    """Write captures, samples or results of the lab as one HTML file with
    graphs. Starts the program, as `calc` does.
    """

from collections.abc import Iterable
from os import PathLike
from typing import Literal, Protocol, final

SCHEMA_VERSION: int
"""The version of the columns; also in the metadata of each table."""
__version__: str

class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...

_Path = str | PathLike[str]
_Rows = Literal["connections", "packets"]

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
    kind: Literal["text", "integer", "double", "boolean", "words", "texts"]
    """What its values are; words and texts are one text with separators."""
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
) -> Rows:
    """Analyse captures: pcap, pcapng, snoop, or what `fullpipe why --record`
    wrote, plain or packed with gzip, zstd, xz or lz4.

    source: a path, paths (one capture after another), bytes, or a file that
        is open for reading bytes.
    rows: "connections": one for each direction of a connection; "packets":
        one for each packet of a connection.
    filter: which connections, as `analyze --filter`: "host 10.0.0.1 and port
        443".
    capture_point: at the sender or the receiver of the data, or guessed.
    layer: which packet of a tunnelled one.
    labels: whose definitions of the labels.
    threads: of the analysis; the rows do not depend on it.
    problems: "raise": what could not be read is an error at the end of the
        stream, so a short table never looks whole; "keep": it is in
        Rows.problems.

    Raises an OSError where the only file cannot be opened, a ValueError for
    an unknown word, and TypeError for a source of another type.
    """

def columns(rows: _Rows = "connections") -> list[Column]:
    """The columns of a kind of row, in order."""

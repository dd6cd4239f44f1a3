"""What limited the TCP connections of captures, as Arrow tables.

>>> import fullpipe, polars
>>> table = polars.DataFrame(fullpipe.analyze("capture.pcap"))

``analyze`` gives an object with Arrow's PyCapsule interface, which pyarrow
(``pyarrow.table(rows)``), polars, pandas and DuckDB read. Names, types and
units of the columns are those of ``fullpipe analyze``: ``columns()`` has them.
"""

from ._native import SCHEMA_VERSION, Column, Rows, __version__, analyze, columns

__all__ = ["SCHEMA_VERSION", "Column", "Rows", "__version__", "analyze", "columns"]

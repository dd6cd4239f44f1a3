"""What limited the TCP connections of captures, as Arrow tables.

>>> import fullpipe, polars
>>> table = polars.DataFrame(fullpipe.analyze("capture.pcap"))

``analyze`` gives an object with Arrow's PyCapsule interface, which pyarrow
(``pyarrow.table(rows)``), polars, pandas and DuckDB read. Names, types and
units of the columns are those of ``fullpipe analyze``: ``columns()`` has them.

``calc``, ``plan``, ``report`` and ``lab.run`` start the program ``fullpipe``,
which must be installed beside the package. ``fullpipe.ray`` analyses an
archive, or runs a sweep of the lab, on a cluster.
"""

from . import lab
from ._native import SCHEMA_VERSION, Column, Rows, __version__, analyze, columns
from ._program import ProgramError, Report, calc, plan, report

__all__ = [
    "SCHEMA_VERSION", "Column", "ProgramError", "Report", "Rows", "__version__", "analyze", "calc",
    "columns", "lab", "plan", "report",
]

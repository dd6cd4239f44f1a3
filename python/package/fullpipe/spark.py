"""An archive of captures as a DataFrame of Spark.

>>> from fullpipe.spark import analyze
>>> rows = analyze(spark, "s3://caps/2026/*.pcap.zst")
>>> rows.where("problem is null").groupBy("server").sum("lost_us")

Names of captures are passed; each of Spark's workers opens its captures itself,
by fsspec, and returns Arrow. So no capture passes through Spark.
"""

from . import analyze as _analyze
from . import columns
from ._group import groups, opened
from ._listing import Listing

TYPES = {"integer": "bigint", "double": "double", "boolean": "boolean"}
"""Spark's types; it has no unsigned numbers. All else is text."""


def analyze(spark, paths, rows="connections", *, problems="rows", **options):
    """The rows of captures as a DataFrame, with the schema's columns and types.

    paths: captures, folders or patterns, as paths or URLs.
    rows: connections, intervals, findings, spans or packets.
    problems: "rows": a capture that was not read to its end has one row more,
        with its name in `file`, what is wrong in the last column, `problem`, and
        null elsewhere; in all other rows `problem` is null. "raise": Spark's job
        fails.
    options: filter, labels, layer and capture_point, as of fullpipe.analyze.

    Each action of Spark analyses anew; store the DataFrame to read it often.
    """
    if problems not in ("rows", "raise"):
        raise ValueError(f"analyze: problems={problems!r}: possible values: rows, raise")
    # What is wrong with the options is an error here, and not of a worker.
    _analyze([], rows=rows, **options)
    listed = Listing([paths] if isinstance(paths, str) else list(paths))
    tasks = [[list(found) for found in group] for group in groups(listed)]
    fields = [f"`{column.name}` {TYPES.get(column.kind, 'string')}" for column in columns(rows)]
    frame = spark.createDataFrame(
        [(task,) for task in tasks], "captures array<struct<url: string, size: bigint>>")
    work = Work(rows, problems, options)
    return frame.repartition(max(len(tasks), 1)).mapInArrow(
        work, ", ".join([*fields, "problem string"]))


class Work:
    """What a worker does with the captures that it is given."""

    def __init__(self, rows: str, problems: str, options: dict):
        self.rows, self.problems, self.options = rows, problems, options

    def __call__(self, batches):
        from ._store import Found

        for batch in batches:
            for task in batch.column("captures").to_pylist():
                group = [Found(found["url"], found["size"]) for found in task]
                for name, size, source in opened(group):
                    yield from self.capture(name, size, source)

    def capture(self, name: str, size: int, source):
        import pyarrow

        rows = _analyze([source] if isinstance(source, str) else source(), rows=self.rows,
                        problems="keep", **({} if isinstance(source, str) else {"name": name}),
                        **self.options)
        reader = pyarrow.RecordBatchReader.from_stream(rows)
        schema = spark_schema(reader.schema)
        for batch in reader:
            columns = [column.cast(field.type) for column, field in zip(batch.columns, schema)]
            nothing = pyarrow.nulls(batch.num_rows, pyarrow.string())
            yield pyarrow.RecordBatch.from_arrays([*columns, nothing], schema=schema)
        for _, problem in rows.problems:
            if self.problems == "raise":
                raise OSError(problem)
            cells = {"file": name, "problem": problem}
            yield pyarrow.RecordBatch.from_arrays(
                [pyarrow.array([cells.get(field.name)], field.type) for field in schema],
                schema=schema)


def spark_schema(schema):
    """The columns as Spark takes them."""
    import pyarrow

    fields = [pyarrow.field(field.name, pyarrow.int64() if field.type == pyarrow.uint64()
                            else field.type) for field in schema]
    return pyarrow.schema([*fields, pyarrow.field("problem", pyarrow.string())])

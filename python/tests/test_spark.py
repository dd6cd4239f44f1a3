"""An archive as a DataFrame of Spark: the rows of the package, whatever is among the captures."""

import importlib.util
import os
import pathlib
import shutil
import sys

import fullpipe
import pyarrow
import pytest

NEEDED = [name for name, there in [("Java", shutil.which("java")),
                                   ("pyspark", importlib.util.find_spec("pyspark"))] if not there]
if NEEDED:
    if os.environ.get("FULLPIPE_NO_SKIP"):
        raise RuntimeError(f"there is no {' and no '.join(NEEDED)}: .ci/run installs them")
    pytest.skip(f"SKIPPED: spark: there is no {' and no '.join(NEEDED)}", allow_module_level=True)

TYPES = {"integer": "bigint", "double": "double", "boolean": "boolean"}


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    from pyspark.sql import SparkSession

    # Its workers are otherwise of the python3 in $PATH.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    scratch = str(tmp_path_factory.mktemp("spark"))
    settings = {
        "spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1", "spark.sql.warehouse.dir": scratch,
        "spark.local.dir": scratch, "spark.driver.memory": "512m",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def caps(captures, tmp_path) -> pathlib.Path:
    """Captures, one that is cut and one that is none."""
    import gzip

    for number, path in enumerate(sorted(captures.rglob("*.pcap.gz"))[:5]):
        shutil.copy(path, tmp_path / f"{number}.pcap.gz")
    (tmp_path / "cut.pcap").write_bytes(gzip.decompress((captures / "three.pcap.gz").read_bytes())[:-3])
    (tmp_path / "none.pcap").write_bytes(b"no capture at all")
    return tmp_path


@pytest.mark.parametrize("rows", ["connections", "intervals", "findings", "spans", "packets"])
def test_rows_and_types_are_those_of_the_schema(spark, caps, rows):
    from fullpipe.spark import analyze

    frame = analyze(spark, f"{caps}/[0-9]*", rows=rows)
    assert frame.dtypes == [(column.name, TYPES.get(column.kind, "string"))
                            for column in fullpipe.columns(rows)] + [("problem", "string")]
    found = [row.asDict() for row in frame.drop("problem").collect()]
    paths = sorted(map(str, caps.glob("[0-9]*")))
    expected = pyarrow.table(fullpipe.analyze(paths, rows=rows))
    assert len(found) == expected.num_rows > 5
    assert sorted(map(repr, found)) == sorted(map(repr, expected.to_pylist()))


def test_a_bad_capture_is_a_row_and_the_others_are_read(spark, caps):
    from fullpipe.spark import analyze

    frame = analyze(spark, [str(caps)])
    problems = {pathlib.Path(row.file).name: row for row in frame.where("problem is not null").collect()}
    assert set(problems) == {"cut.pcap", "none.pcap"}
    assert "middle of a packet" in problems["cut.pcap"].problem
    assert problems["cut.pcap"].server is None
    good = frame.where("problem is null")
    assert {pathlib.Path(row.file).name for row in good.select("file").distinct().collect()} == {
        "cut.pcap", *(f"{number}.pcap.gz" for number in range(5))}
    with pytest.raises(Exception, match="middle of a packet|no capture"):
        analyze(spark, [str(caps)], problems="raise").count()


def test_names_with_a_scheme_are_opened_in_the_worker(spark, caps):
    from fullpipe.spark import analyze

    # A store that the worker's process has to open by its name.
    url = f"simplecache::file://{caps}/0.pcap.gz"
    frame = analyze(spark, url, filter="port 1")
    assert frame.count() == 0
    (first,) = analyze(spark, url).select("file").distinct().collect()
    assert first.file.endswith("0.pcap.gz")


def test_what_cannot_work_is_an_error_of_the_driver(spark, caps):
    from fullpipe.spark import analyze

    with pytest.raises(FileNotFoundError, match="there is nothing"):
        analyze(spark, f"{caps}/missing*")
    with pytest.raises(ValueError, match="possible values: connections, intervals"):
        analyze(spark, str(caps), rows="points")
    with pytest.raises(ValueError, match="possible values: rows, raise"):
        analyze(spark, str(caps), problems="keep")

"""The package gives what the command line gives, to every library that reads Arrow."""

import csv
import gzip
import io
import json
import pathlib
import signal
import struct
import subprocess
import sys
import threading

import duckdb
import fullpipe
import polars
import pyarrow
import pyarrow.parquet
import pytest


def table(*arguments, **options) -> pyarrow.Table:
    return pyarrow.table(fullpipe.analyze(*arguments, **options))


def syn(number: int) -> bytes:
    """A pcap record of a SYN; no other number has its client."""
    ip = struct.pack("!12B4s4s", 0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0,
                     struct.pack("!I", 0x0A000000 + number // 50_000), b"\x0a\xff\0\2")
    tcp = struct.pack("!HHIIBBHHH", 10_000 + number % 50_000, 80, 1, 0, 0x50, 2, 0xFFFF, 0, 0)
    return struct.pack("<IIII", 1_772_366_400 + number // 1000, number % 1000 * 1000, 40, 40) + ip + tcp


HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101)


KINDS = {"connections": 6, "intervals": None, "findings": None, "spans": None, "packets": 2203}


@pytest.mark.parametrize("rows", KINDS)
@pytest.mark.parametrize("threads", [1, 2])
def test_rows_are_those_of_the_command_line(three, tmp_path, fullpipe_cli, rows, threads):
    stored = tmp_path / "rows.parquet"
    kind = ["--packets"] if rows == "packets" else ["--rows", rows]
    fullpipe_cli("analyze", three, "--parquet", str(stored), *kind)
    expected = pyarrow.parquet.read_table(stored)
    found = table(three, rows=rows, threads=threads)
    assert found.num_rows == (KINDS[rows] or expected.num_rows) > 3
    assert found.to_pylist() == expected.to_pylist()
    assert found.schema.names == [column.name for column in fullpipe.columns(rows)]
    assert found.schema.metadata[b"fullpipe.schema_version"] == b"%d" % fullpipe.SCHEMA_VERSION


def test_every_library_reads_the_same(three):
    expected = table(three).to_pylist()
    assert polars.DataFrame(fullpipe.analyze(three)).to_dicts() == expected
    found = fullpipe.analyze(three)  # noqa: F841 - DuckDB finds the variable by its name
    columns = ", ".join(f'"{column.name}"' for column in fullpipe.columns())
    read = duckdb.sql(f"select {columns} from found").fetchall()
    assert read == [tuple(row.values()) for row in expected]


def test_paths_bytes_and_file_objects_are_one(three):
    expected = table(three).drop_columns("file").to_pylist()
    whole = pathlib.Path(three).read_bytes()
    with open(three, "rb") as file, gzip.open(three) as unpacked:
        sources = [pathlib.Path(three), whole, file, unpacked, io.BytesIO(whole), [three]]
        for source in sources:
            for threads in (1, 2):
                if threads == 2 and hasattr(source, "seek"):
                    source.seek(0)
                found = table(source, threads=threads)
                assert found.drop_columns("file").to_pylist() == expected, source
    named = table(whole, name="s3://caps/three")
    assert set(named.column("file").to_pylist()) == {"s3://caps/three"}
    with pytest.raises(ValueError, match="name= is for bytes"):
        fullpipe.analyze(three, name="another")
    assert table([three, pathlib.Path(three)]).num_rows == 2 * len(expected)


def test_a_stream_can_be_asked_for_again_but_a_file_object_is_read_once(three):
    rows = fullpipe.analyze(three)
    assert pyarrow.table(rows).equals(pyarrow.table(rows))
    with open(three, "rb") as file:
        rows = fullpipe.analyze(file)
        pyarrow.table(rows)
        with pytest.raises(RuntimeError, match="read already"):
            pyarrow.table(rows)


def test_options_are_those_of_the_command_line(three, fullpipe_cli):
    for option, value in [("filter", "not port 41892"), ("capture_point", "receiver"),
                          ("layer", "outer"), ("labels", "wireshark")]:
        name = "--" + option.replace("_", "-")
        lines = fullpipe_cli("analyze", three, "--csv", name, value).stdout.splitlines()
        expected = [row["retransmission"] for row in csv.DictReader(lines)]
        found = table(three, **{option: value}).column("retransmission").to_pylist()
        assert [str(count) for count in found] == expected, option
        assert len(found) == (4 if option == "filter" else 6)
    with pytest.raises(ValueError, match="possible values: auto, sender, receiver"):
        fullpipe.analyze(three, capture_point="somewhere")
    with pytest.raises(ValueError, match="possible values: connections, intervals, findings, spans, packets"):
        fullpipe.analyze(three, rows="points")
    with pytest.raises(ValueError, match="one or more"):
        fullpipe.analyze(three, threads=0)
    told = fullpipe_cli("analyze", three, "--filter", "port", code=2).stderr
    with pytest.raises(ValueError) as error:
        fullpipe.analyze(three, filter="port")
    assert str(error.value) in told


def test_what_cannot_be_read_is_an_error_with_the_words_of_the_command_line(tmp_path, fullpipe_cli):
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(HEADER + syn(1) + syn(2)[:-3])
    told = fullpipe_cli("analyze", str(cut), code=4).stderr.strip().removeprefix("fullpipe: ")
    assert "middle of a packet" in told
    with pytest.raises(Exception, match="middle of a packet") as error:
        table(str(cut))
    assert told in str(error.value)
    rows = fullpipe.analyze([str(cut), str(tmp_path / "missing")], problems="keep")
    assert pyarrow.table(rows).num_rows == 1
    assert [(name, told in problem) for name, problem in rows.problems] == [
        (str(cut), True), (str(tmp_path / "missing"), False)]
    with pytest.raises(FileNotFoundError, match="captures are files that tcpdump -w"):
        fullpipe.analyze(tmp_path / "missing")
    with pytest.raises(TypeError, match="give a path, paths, bytes"):
        fullpipe.analyze(7)
    with pytest.raises(Exception, match="mode 'rb'"):
        table(io.StringIO("text"))

    class Broken:
        def read(self, size):
            raise OSError("the store is away")

    with pytest.raises(Exception, match="the store is away"):
        table(Broken())


def test_intervals_and_findings_are_those_of_json(three, fullpipe_cli):
    for number in range(3):
        told = fullpipe_cli("analyze", three, "--json", "--connection", str(number)).stdout
        (connection,) = json.loads(told)["connections"]
        for rows in ("intervals", "findings"):
            found = [row for row in table(three, rows=rows).to_pylist()
                     if row["connection"] == connection["id"]]
            assert len(found) == len(connection[rows]) > 0
            for row, part in zip(found, connection[rows]):
                assert (row["client"], row["server"]) == (connection["client"], connection["server"])
                assert row["direction"] == part["direction"]
                if rows == "findings":
                    assert (row["limit"], row["claim"]) == (part["limit"], part["claim"])
                    assert json.loads(row["reasons"]) == part["reasons"]
                    assert row["goodput_bps"] == part["evidence"]["goodput_bps"]
                else:
                    first = part["candidates"][0]
                    assert (row["limit"], row["share"]) == (first["limit"], first["share"])
                    assert json.loads(row["candidates"]) == part["candidates"]
                    assert row["length_us"] == part["length_us"]


def test_spans_are_the_accounts_time_in_its_order(three, fullpipe_cli):
    told = fullpipe_cli("analyze", three, "--json").stdout
    spans = table(three, rows="spans").to_pylist()
    for connection in json.loads(told)["connections"]:
        own = [row for row in spans if row["connection"] == connection["id"]]
        at = connection["start_ns"]
        for row in own:
            assert abs(row["start_ns"] - at) < 2000
            at = row["start_ns"] + row["length_us"] * 1000
        account = connection["account"]
        assert sum(row["length_us"] for row in own) == pytest.approx(account["time_us"], abs=len(own))
        for part in account["parts"]:
            if "direction" not in part:
                same = sum(row["length_us"] for row in own
                           if (row["owner"], row["cause"]) == (part["owner"], part["cause"]))
                assert same == pytest.approx(part["time_us"], abs=len(own))


def test_nothing_is_a_table_without_rows():
    none = table(HEADER)
    assert (none.num_rows, none.num_columns) == (0, len(fullpipe.columns()))
    assert table([]).num_rows == 0


def test_memory_is_bounded_by_a_batch():
    """Twice as many packets, as batches: the peak hardly grows."""
    script = """
import resource, struct, pyarrow, fullpipe
import sys; sys.path.insert(0, sys.argv[1])
from test_analyze import HEADER, Synthetic
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
def read(packets):
    reader = pyarrow.RecordBatchReader.from_stream(fullpipe.analyze(Synthetic(packets), rows="packets"))
    return sum(batch.num_rows for batch in reader)
assert read(1_000_000) == 1_000_000
before = peak()
assert read(2_000_000) == 2_000_000
print(peak() - before)
"""
    done = subprocess.run([sys.executable, "-c", script, str(pathlib.Path(__file__).parent)],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    grown = int(done.stdout) * 1024
    # A round of 65 536 packets is in memory in both cases; a million rows more are some 200 MB.
    assert grown < 60 << 20, f"{grown} bytes more for twice the packets"


class Synthetic:
    """A capture of so many packets of ten connections, which is made as it is read."""

    def __init__(self, packets: int):
        self.parts = self.make(packets)

    @staticmethod
    def make(packets: int):
        yield HEADER
        for begin in range(0, packets, 1000):
            yield b"".join(syn(number % 10) for number in range(begin, begin + 1000))

    def read(self, size: int) -> bytes:
        return next(self.parts, b"")


def test_other_threads_run_meanwhile():
    """While the analysis reads from this file object, another thread has its turns: without
    releasing Python's lock the file object could not wait for it."""
    turns = threading.Semaphore(0)
    ended = threading.Event()

    def other():
        while not ended.is_set():
            turns.release()
            ended.wait(0.001)

    class Waiting(Synthetic):
        def read(self, size):
            turns.acquire(timeout=60)
            return super().read(size)

    thread = threading.Thread(target=other)
    thread.start()
    try:
        assert table(Waiting(20_000), rows="packets", threads=2).num_rows == 20_000
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize("problems", ["raise", "keep"])
def test_ctrl_c_ends_the_analysis_and_is_not_lost(problems):
    script = """
import signal, sys; sys.path.insert(0, sys.argv[1])
import pyarrow, fullpipe
from test_analyze import Synthetic
# Whoever runs the tests in the background of a script has them ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
class Endless(Synthetic):
    said = False
    def read(self, size):
        if not self.said:
            print("reading", flush=True)
            self.said = True
        return super().read(size)
try:
    pyarrow.table(fullpipe.analyze(Endless(1 << 40), filter="port 1", problems=sys.argv[2]))
except Exception:
    pass
for _ in range(1000):
    pass
print("went on")
"""
    child = subprocess.Popen([sys.executable, "-c", script, str(pathlib.Path(__file__).parent),
                              problems], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "reading\n"
        child.send_signal(signal.SIGINT)
        printed, told = child.communicate(timeout=240)
    finally:
        child.kill()
    assert (child.returncode, printed) == (-signal.SIGINT, ""), told
    assert "KeyboardInterrupt" in told


def test_columns_have_meanings_and_units():
    columns = {column.name: column for column in fullpipe.columns()}
    assert columns["handshake_rtt_us"].unit == "µs"
    assert columns["handshake_rtt_us"].null == "handshake not captured"
    for rows in KINDS:
        assert all(column.meaning for column in fullpipe.columns(rows))


def test_importing_is_quick_and_needs_no_other_package():
    script = """
import sys, time
before = time.process_time()
import fullpipe
print(time.process_time() - before)
print([name for name in ("pyarrow", "polars", "numpy") if name in sys.modules])
"""
    took = []
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
        seconds, others = done.stdout.splitlines()
        assert others == "[]", done
        took.append(float(seconds))
    # Of the processor: whatever else the machine does counts little.
    assert min(took) <= 0.05, took

"""An archive over Ray's workers: the rows of the command line, whatever is killed or fails."""

import concurrent.futures
import errno
import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import threading

import pyarrow.dataset
import pyarrow.parquet
import fullpipe.ray
import psutil
import pytest
import s3fs
from fullpipe._group import groups, word_of, work
from fullpipe._listing import Listing
from fullpipe._store import Found, Reader, Store
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

KINDS = ["connections", "intervals"]


def environment(home: pathlib.Path, **more) -> dict:
    """Ray keeps a token in the home folder; the tests leave nothing there."""
    own = {"HOME": str(home), "RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
           "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
           "AWS_DEFAULT_REGION": "us-east-1", "PYTHONPATH": str(pathlib.Path(__file__).parent)}
    return {**os.environ, **own, **more}


# Small groups, so that there are several, and two workers whatever the machine has.
DRIVER = """
import sys, fullpipe._group, fullpipe.ray, ray
ray.init(num_cpus=int(sys.argv[1]), include_dashboard=False, log_to_driver=False,
         object_store_memory=100 << 20)
fullpipe._group.BYTES = int(sys.argv[2])
sys.exit(fullpipe.ray.main(sys.argv[3:]))
"""


def driver(home, *arguments, workers=2, group=1, **more) -> subprocess.Popen:
    command = [sys.executable, "-c", DRIVER, str(workers), str(group), "analyze", *arguments]
    return subprocess.Popen(command, env=environment(home, **more), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def ends(process: subprocess.Popen, code: int = 0) -> tuple[str, str]:
    try:
        out, told = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == code, told
    return out, told


def digests(folder: pathlib.Path) -> dict[str, str]:
    """Every file of the rows, hidden ones too."""
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def caps(tmp_path_factory) -> pathlib.Path:
    """Captures, one of which is cut in the middle of a packet."""
    root = pathlib.Path(__file__).resolve().parents[2] / "crates/flow/tests/lab/captures"
    folder = tmp_path_factory.mktemp("caps")
    for number, path in enumerate(sorted(root.rglob("*.pcap.gz"))[:14]):
        shutil.copy(path, folder / f"{number:02}.pcap.gz")
    import gzip
    whole = gzip.decompress((root / "three.pcap.gz").read_bytes())
    (folder / "cut.pcap").write_bytes(whole[:-3])
    return folder


@pytest.fixture(scope="module")
def expected(caps, tmp_path_factory) -> dict[str, str]:
    """The files of a run that nothing disturbed."""
    home = tmp_path_factory.mktemp("home")
    out = tmp_path_factory.mktemp("expected") / "rows"
    told, _ = ends(driver(home, str(caps), str(out), "--rows", ",".join(KINDS)), code=4)
    assert json.loads(told)["problems"] == 1
    return {"out": out, "files": digests(out)}


def rows(folder: pathlib.Path, kind: str) -> list[dict]:
    table = pyarrow.dataset.dataset(folder / kind, partitioning="hive").to_table()
    return sorted(table.to_pylist(), key=lambda row: json.dumps(row, default=str))


def test_the_rows_are_those_of_the_command_line(caps, expected, tmp_path, fullpipe_cli):
    for kind in KINDS:
        stored = tmp_path / kind
        fullpipe_cli("analyze", str(caps), "--parquet", f"{stored}/", "--rows", kind, code=4)
        table = pyarrow.dataset.dataset(
            stored, partitioning="hive", exclude_invalid_files=True).to_table()
        own = sorted(table.to_pylist(), key=lambda row: json.dumps(row, default=str))
        assert rows(expected["out"], kind) == own
        assert len(own) > 20
    (problem,) = pyarrow.parquet.read_table(expected["out"] / "problems.parquet").to_pylist()
    assert problem["file"] == str(caps / "cut.pcap")
    assert "middle of a packet" in problem["problem"] and problem["stored_rows"] > 0
    whole = json.loads((expected["out"] / "_manifest/whole.json").read_text())
    assert whole["captures"] == 15


def kills_workers(process, most: int, chance: random.Random, over: threading.Event) -> list[int]:
    """Kills workers that have a task at random, until `most` are or the run is over."""
    killed = []
    while len(killed) < most and not over.wait(chance.uniform(0.02, 0.3)):
        try:
            children = psutil.Process(process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            break
        for child in children:
            try:
                # As Ray names a worker that has a task.
                if child.cmdline()[:1] == ["ray::work"]:
                    child.kill()
                    killed.append(child.pid)
                    break
            except psutil.Error:
                pass
    return killed


def test_workers_that_are_killed_lose_nothing(caps, expected, tmp_path):
    """Kills workers, twenty times or until the run ends. A quick run may end before one is found
    at work, so there are several."""
    chance = random.Random(17)
    for attempt in range(6):
        out = tmp_path / f"rows-{attempt}"
        process = driver(tmp_path, str(caps), str(out), "--rows", ",".join(KINDS))
        over = threading.Event()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            killed = pool.submit(kills_workers, process, 20, chance, over)
            try:
                ends(process, code=4)
            finally:
                over.set()
        assert digests(out) == expected["files"]
        if killed.result():
            return
    raise AssertionError("no worker was killed: the test shows nothing")


def test_a_driver_that_is_killed_is_gone_on_from(caps, expected, tmp_path):
    out = tmp_path / "rows"
    arguments = [str(caps), str(out), "--rows", ",".join(KINDS)]
    process = driver(tmp_path, *arguments, workers=1)
    try:
        # A group is done, others are not.
        assert any("1 of 15 captures" in line for line in process.stderr), "no group was done"
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
    # Both are refused before anything starts.
    with pytest.raises(FileExistsError, match="--resume"):
        fullpipe.ray.analyze(str(caps), str(out), rows=KINDS)
    with pytest.raises(ValueError, match="were made with"):
        fullpipe.ray.analyze(str(caps), str(out), rows=["packets"], resume=True)
    ends(driver(tmp_path, *arguments, "--resume"), code=4)
    assert digests(out) == expected["files"]


class Faulty:
    """Fails every tenth request, and cuts every tenth capture that it sends: of all answers, some
    one in fifty."""

    def __init__(self, app):
        self.app, self.count, self.lock = app, 0, threading.Lock()
        self.failed = self.sent = self.cut = 0
        self.is_on = False

    def __call__(self, environ, start):
        with self.lock:
            self.count += self.is_on
            fails = self.is_on and self.count % 10 == 0
            sends = not fails and environ["REQUEST_METHOD"] == "GET" and ".pcap" in environ["PATH_INFO"]
            self.sent += self.is_on and sends
            cuts = self.is_on and sends and self.sent % 10 == 0
            self.failed += fails
        if fails:
            start("500 Internal Server Error", [("Content-Length", "0")])
            return [b""]
        if not cuts:
            return self.app(environ, start)
        answer = {}
        body = b"".join(self.app(environ, lambda status, headers, *_: answer.update(
            status=status, headers=headers)))
        body = body[: len(body) // 2]
        with self.lock:
            self.cut += 1
        # As a store does that lost half of an object: the length fits what comes.
        headers = [(name, value) for name, value in answer["headers"]
                   if name.lower() not in ("content-length", "etag") and "checksum" not in name.lower()]
        start(answer["status"], [*headers, ("Content-Length", str(len(body)))])
        return [body]


@pytest.fixture
def store():
    faulty = Faulty(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, faulty, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", faulty
    finally:
        server.shutdown()
        thread.join()


def test_a_store_that_fails_and_cuts_gives_the_same_rows(caps, expected, tmp_path, store):
    address, faulty = store
    client = s3fs.S3FileSystem(key="test", secret="test", endpoint_url=address,
                               skip_instance_cache=True)
    client.mkdir("caps")
    client.mkdir("out")
    for path in sorted(caps.iterdir()):
        client.put_file(str(path), f"caps/{path.name}")
    faulty.is_on = True
    # Some captures a group: S3 has twenty requests for each.
    process = driver(tmp_path, "s3://caps/*.pcap*", "s3://out/rows", "--rows", ",".join(KINDS),
                     group=200_000, AWS_ENDPOINT_URL=address)
    ends(process, code=4)
    faulty.is_on = False
    assert faulty.failed > 10 and faulty.cut > 0, (faulty.failed, faulty.cut)
    client.get("out/rows", str(tmp_path / "rows"), recursive=True)
    for kind in KINDS:
        own = [{**row, "file": str(caps / pathlib.Path(row["file"]).name)}
               for row in rows(tmp_path / "rows", kind)]
        own.sort(key=lambda row: json.dumps(row, default=str))
        assert own == rows(expected["out"], kind)
    for line in (tmp_path / "rows/_manifest").glob("*.json"):
        for part in json.loads(line.read_text()).get("parts", []):
            content = (tmp_path / "rows" / part["part"]).read_bytes()
            assert hashlib.sha256(content).hexdigest() == part["sha256"]


def test_what_cannot_work_is_a_clear_error(tmp_path, capsys):
    """All of it is found before Ray starts."""
    out = str(tmp_path / "rows")
    assert fullpipe.ray.main(["analyze", str(tmp_path / "nothing*.pcap"), out]) == 1
    assert "there is nothing" in capsys.readouterr().err
    assert fullpipe.ray.main(["analyze", str(tmp_path), out, "--rows", "points"]) == 1
    assert "possible values: connections, intervals" in capsys.readouterr().err
    (tmp_path / "rows" / "mine").mkdir(parents=True)
    (tmp_path / "rows" / "mine" / "file").write_text("mine")
    shutil.rmtree(tmp_path / "rows" / "_manifest")
    assert fullpipe.ray.main(["analyze", str(tmp_path), out]) == 1
    assert "not empty" in capsys.readouterr().err


def test_a_capture_that_comes_short_every_time_is_an_error(tmp_path, monkeypatch):
    path = tmp_path / "short"
    path.write_bytes(bytes(100))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    whole = Reader(Found(str(path), 100))
    assert whole.read(60) + whole.read(60) == bytes(100) and whole.read(1) == b""
    with pytest.raises(OSError, match="100 bytes came of 101"):
        Reader(Found(str(path), 101)).read(10)


def test_the_groups_of_a_rest_are_those_of_the_whole():
    chance = random.Random(3)
    listed = [Found(f"{number:05}", chance.randrange(40 << 20)) for number in range(3000)]
    words = {word_of(group): group for group in groups(listed)}
    done = set(chance.sample(sorted(words), len(words) // 2))
    left = [found for word, group in words.items() if word not in done for found in group]
    assert {word_of(group) for group in groups(left)} == set(words) - done


def test_a_part_has_its_name_when_it_is_whole(tmp_path, monkeypatch):
    store = Store(str(tmp_path / "rows"))
    local = tmp_path / "local"
    local.write_bytes(bytes(1000))
    put = store.fs.put_file
    cut = iter([True, False])

    def sometimes_cut(source, target):
        put(source, target)
        if next(cut):
            os.truncate(target, 10)

    monkeypatch.setattr("time.sleep", lambda seconds: None)
    monkeypatch.setattr(store.fs, "put_file", sometimes_cut)
    part = store.put(str(local), "connections/part")
    assert (tmp_path / "rows" / part["part"]).read_bytes() == bytes(1000)


def test_a_full_disk_is_a_clear_error_and_the_group_does_not_count(caps, tmp_path, monkeypatch):
    """The store is full, and then the worker's own disk."""
    group = list(Listing([str(caps)]))[:3]
    monkeypatch.setattr("time.sleep", lambda seconds: None)

    def full(source, target):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as context:
        context.setattr(type(Store(str(tmp_path)).fs), "put_file", lambda self, *paths: full(*paths))
        with pytest.raises(OSError, match="write .*/rows/connections.*No space left on device"):
            work(group, str(tmp_path / "rows"), KINDS, {})
    assert not list(tmp_path.glob("rows/_manifest/*"))
    script = """
import resource, sys
from fullpipe._group import work
from fullpipe._listing import Listing
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
work(list(Listing([sys.argv[1]]))[:3], sys.argv[2], ["connections"], {})
"""
    done = subprocess.run([sys.executable, "-c", script, str(caps), str(tmp_path / "rows")],
                          capture_output=True, text=True, timeout=60)
    assert "OSError: write rows to" in done.stderr and "$TMPDIR" in done.stderr, done.stderr
    assert not list(tmp_path.glob("rows/_manifest/*"))

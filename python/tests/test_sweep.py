"""A sweep over Ray's workers: byte for byte what one machine makes, whatever is killed; and the
same command lines on a laptop and on a cluster of two nodes."""

import contextlib
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import fullpipe.ray
import psutil
import pytest
from fullpipe import _shard
from test_ray import digests, environment

ROOT = pathlib.Path(__file__).resolve().parents[2]
TWELVE = """
[link]
rate = "100mbit"
rtt = "10ms"
[transfer]
size = "500kB"
[matrix]
"link.loss" = ["0%", "0.5%", "1%"]
"link.seed" = [1, 2]
"hosts.server.congestion_control" = ["cubic", "reno"]
"""
FAILS = """
[link]
rate = "100mbit"
rtt = "10ms"
[transfer]
size = "100kB"
[matrix]
"hosts.server.congestion_control" = ["nothing", "cubic"]
"link.loss" = ["0%", "1%"]
"""
TRACED = """
[link]
rtt = "10ms"
changes = "trace file:{trace}"
[transfer]
size = "100kB"
"""

# The workers do not find what the driver has by its path, as on another machine.
HIDDEN = """
import sys, fullpipe._sweep, fullpipe.ray
needed, paths = fullpipe._sweep.needed, {}
def hidden(name, path):
    one = needed(name, path)
    paths[one.digest] = path
    return one._replace(found="/nowhere")
fullpipe._sweep.needed = hidden
fullpipe._sweep.Plan.content = lambda self, digest: open(paths[digest], "rb").read()
sys.exit(fullpipe.ray.main(sys.argv[1:]))
"""

# Both nodes are there.
JOINED = """
import ray, sys, time
ray.init(address=sys.argv[1], log_to_driver=False)
while ray.cluster_resources().get("CPU", 0) < 2:
    time.sleep(0.1)
"""


@pytest.fixture(scope="module")
def binary() -> str:
    return os.environ.get("FULLPIPE_BINARY", str(ROOT / "target/debug/fullpipe"))


@pytest.fixture(scope="module")
def cache(binary, tmp_path_factory):
    """A cache of the tests' own, with a guest kernel."""
    found = subprocess.run([binary, "lab", "kernel", "path", "6.12"], capture_output=True, text=True)
    if found.returncode:
        why = "no guest kernel is built: `fullpipe lab kernel build`, 10 minutes"
        if os.environ.get("FULLPIPE_KERNEL_BUILT") == "1":
            pytest.fail(why)
        pytest.skip(why)
    cache = tmp_path_factory.mktemp("cache")
    kernel = pathlib.Path(found.stdout.strip()).parent
    cache.chmod(0o700)
    (cache / "fullpipe/kernels").mkdir(mode=0o700, parents=True)
    shutil.copytree(kernel, cache / "fullpipe/kernels" / kernel.name)
    yield cache
    shutil.rmtree(cache)


class Lab:
    """Scenarios, an environment to run them in, and what one machine makes of them."""

    def __init__(self, folder: pathlib.Path, cache: pathlib.Path, binary: str):
        self.folder, self.binary = folder, binary
        (folder / "tmp").mkdir()
        # Files that name others are sent with these.
        for name in ("parts", "traces"):
            (folder / name).mkdir()
        (folder / "twelve.toml").write_text(TWELVE)
        (folder / "fails.toml").write_text('include = ["parts/fails.toml", "parts/traced.toml"]')
        (folder / "parts/fails.toml").write_text(FAILS)
        (folder / "parts/traced.toml").write_text(TRACED.format(trace="../traces/a"))
        (folder / "traces/a").write_text("\n".join(map(str, range(1, 1001))) + "\n")
        self.environment = environment(folder, XDG_CACHE_HOME=str(cache), FULLPIPE_BINARY=binary,
                                       TMPDIR=str(folder / "tmp"))
        self.expected = {}

    def one_machine(self, name: str) -> dict[str, str]:
        if name not in self.expected:
            subprocess.run(
                [self.binary, "lab", "run", f"{name}.toml", "--engine=virtual", "--no-cache",
                 f"--out=one-{name}"], cwd=self.folder, env=self.environment, capture_output=True)
            self.expected[name] = results(self.folder / f"one-{name}")
        return self.expected[name]

    def start(self, *arguments, hidden=False, **more) -> subprocess.Popen:
        program = ["-c", HIDDEN] if hidden else ["-m", "fullpipe.ray"]
        return subprocess.Popen(
            [sys.executable, *program, *arguments], cwd=self.folder,
            env={**self.environment, **more},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def running(self) -> list[psutil.Process]:
        """Programs that workers have started: their results are below the folder."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                words = process.cmdline()
                if any(word.startswith(f"--out={self.folder / 'tmp'}") for word in words):
                    found.append(process)
        return found


def results(folder: pathlib.Path) -> dict[str, str]:
    """Every file but the one that names machines."""
    files = digests(folder)
    assert files.pop("environment.json") and "rows.jsonl" in files
    return files


@pytest.fixture(scope="module")
def lab(cache, binary, tmp_path_factory) -> Lab:
    return Lab(tmp_path_factory.mktemp("lab"), cache, binary)


@pytest.fixture(scope="module")
def cluster(lab):
    """Two nodes with a processor each, and with caches of their own, in which no kernel is."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    ray = [str(pathlib.Path(sys.executable).parent / "ray"), "start", "--num-cpus=1", "--block",
           "--object-store-memory=300000000"]
    head = ["--head", f"--port={address.rpartition(':')[2]}", "--include-dashboard=false",
            "--node-ip-address=127.0.0.1"]
    caches, nodes = [lab.folder / "node-1", lab.folder / "node-2"], []
    try:
        for place, words in zip(caches, (head, [f"--address={address}"])):
            place.mkdir(mode=0o700)
            own = {**lab.environment, "XDG_CACHE_HOME": str(place)}
            nodes.append(subprocess.Popen([*ray, *words], env=own, stdout=subprocess.DEVNULL,
                                          stderr=subprocess.DEVNULL))
            wait("the head listens", lambda: reaches(address))
        subprocess.run([sys.executable, "-c", JOINED, address], env=lab.environment, check=True,
                       timeout=120, stderr=subprocess.DEVNULL)
        yield address, caches
    finally:
        for node in reversed(nodes):
            family = [node, *psutil.Process(node.pid).children(recursive=True)]
            node.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                node.wait(timeout=20)
            for process in family:
                with contextlib.suppress(psutil.Error, ProcessLookupError):
                    process.kill()
            node.wait()
        # Each has a copy of the program.
        for place in caches:
            shutil.rmtree(place, ignore_errors=True)


def ends(process: subprocess.Popen, code: int = 0) -> tuple[str, str]:
    # A worker that is replaced takes its time to start where the machine is busy.
    try:
        out, told = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == code, told
    return out, told


def reaches(address: str) -> bool:
    host, port = address.split(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
        return True
    return False


def wait(what: str, is_so, seconds: float = 60):
    until = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < until, f"{what}: not in {seconds} s"
        time.sleep(0.1)


def test_a_cluster_makes_what_one_machine_makes(lab, cluster):
    """The program and the kernel are sent to both nodes, whose workers do not have them."""
    address, caches = cluster
    process = lab.start("sweep", "twelve.toml", "--out", "cluster", "--address", address,
                        hidden=True, XDG_CACHE_HOME=lab.environment["XDG_CACHE_HOME"])
    out, told = ends(process)
    assert '"rows": 12, "failed": 0' in out and "12 of 12 rows" in told, (out, told)
    assert results(lab.folder / "cluster") == lab.one_machine("twelve")
    assert not (lab.folder / "cluster.shards").exists()
    for place in caches:
        sent = list((place / "fullpipe/sweeps/files").iterdir())
        assert len(sent) == 4, f"program, kernel with its release, scenario: {sent}"
    assert lab.running() == [] and list((lab.folder / "tmp").glob("fullpipe-sweep-*")) == []


def test_the_archive_on_a_cluster_is_that_of_a_laptop(lab, cluster):
    captures = sorted((ROOT / "crates/flow/tests/lab/captures").rglob("*.pcap.gz"))[:8]
    ends(lab.start("analyze", *map(str, captures), "laptop-rows"))
    ends(lab.start("analyze", *map(str, captures), "cluster-rows", "--address", cluster[0]))
    laptop, there = (digests(lab.folder / name) for name in ("laptop-rows", "cluster-rows"))
    assert laptop == there and len(laptop) > 3


def test_runs_that_fail_are_rows(lab, cluster):
    words = ["sweep", "fails.toml", "--out", "fails", "--address", cluster[0]]
    out, _ = ends(lab.start(*words), code=1)
    assert '"rows": 5, "failed": 2' in out
    assert results(lab.folder / "fails") == lab.one_machine("fails")
    # They are tried again, and the others are not.
    kept = {path: path.stat().st_mtime_ns for path in (lab.folder / "fails.shards").glob("*/0*")}
    out, told = ends(lab.start(*words, "--resume"), code=1)
    assert '"failed": 2' in out and "5 of 5 rows" in told and "1 of 5 rows" not in told
    assert results(lab.folder / "fails") == lab.one_machine("fails")
    assert kept and all(path.stat().st_mtime_ns == time for path, time in kept.items())


def test_workers_that_are_killed_lose_nothing(lab, cluster):
    process = lab.start("sweep", "twelve.toml", "--out", "killed", "--address", cluster[0])
    chance, killed, over = random.Random(17), 0, threading.Event()

    def kill():
        nonlocal killed
        while killed < 2 and not over.wait(chance.uniform(0.2, 0.6)):
            for running in lab.running()[:1]:
                with contextlib.suppress(psutil.Error):
                    # The worker is the first above it that is not the program.
                    for above in running.parents():
                        if above.cmdline()[0].startswith("ray::"):
                            above.kill()
                            killed += 1
                            break

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        ends(process)
    finally:
        over.set()
        killer.join()
    assert killed > 0, "no worker was killed: the test shows nothing"
    assert results(lab.folder / "killed") == lab.one_machine("twelve")
    wait("programs end with their workers", lambda: lab.running() == [], 20)


def test_a_driver_that_is_killed_is_gone_on_from(lab):
    """On a laptop, where its workers end too."""
    words = ["sweep", "twelve.toml", "--out", "driver"]
    process = lab.start(*words)
    try:
        assert any("1 of 12 rows" in line for line in process.stderr), "no shard was done"
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
    wait("programs end with their workers", lambda: lab.running() == [], 30)
    assert not (lab.folder / "driver").exists(), "half a result"
    done = {path: path.stat().st_mtime_ns for path in
            (lab.folder / "driver.shards").glob("*/rows.jsonl")}
    assert done
    _, told = ends(lab.start(*words), code=2)
    assert "--resume" in told
    out, told = ends(lab.start(*words, "--resume"))
    assert f"{len(done) + 1} of 12 rows" in told and "1 of 12 rows" not in told.split("\n"), told
    assert results(lab.folder / "driver") == lab.one_machine("twelve")


def test_what_cannot_work_is_a_clear_error(lab, capsys, monkeypatch):
    """All of it is found before Ray starts."""
    monkeypatch.chdir(lab.folder)
    for name, value in lab.environment.items():
        monkeypatch.setenv(name, value)
    pathlib.Path("bad.toml").write_text("[link]\nrate = \"1gb\"\n")
    pathlib.Path("whole.toml").write_text(TRACED.format(trace=lab.folder / "traces/a"))
    for words, code, why in [
        (["nothing", "--out", "x"], 2, "neither a file nor a preset"),
        (["nothing.toml", "--out", "x"], 4, "No such file"),
        (["whole.toml", "--out", "x"], 2, "use a relative name"),
        (["bad.toml", "--out", "x"], 4, "does not say bit or byte"),
        (["twelve.toml", "--out", "x", "--kernel", "2.4"], 3, "no kernel 2.4"),
    ]:
        assert fullpipe.ray.main(["sweep", *words]) == code
        assert why in capsys.readouterr().err
    assert not pathlib.Path("x").exists() and not pathlib.Path("x.shards").exists()
    pathlib.Path("mine").mkdir()
    pathlib.Path("mine/file").write_text("mine")
    assert fullpipe.ray.main(["sweep", "twelve.toml", "--out", "mine"]) == 2
    assert "--resume" in capsys.readouterr().err
    assert fullpipe.ray.main(["sweep", "twelve.toml", "--out", "mine", "--resume"]) == 1
    lab.one_machine("fails")
    assert fullpipe.ray.main(["sweep", "twelve.toml", "--out", "one-fails", "--resume"]) == 2
    assert "of other runs" in capsys.readouterr().err
    assert pathlib.Path("mine/file").read_text() == "mine"


def test_what_was_sent_is_found_and_what_is_damaged_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    content = b"a kernel"
    digest = _shard.hashlib.sha256(content).hexdigest()
    here = _shard.Needed("cache/fullpipe/kernels/6.12-a/linux", digest, "/nowhere")
    place = _shard.Place([here])
    assert place.missing() == [digest]
    with pytest.raises(ValueError, match="damaged"):
        place.keep(digest, b"half")
    place.keep(digest, content)
    assert place.missing() == []
    place.make()
    made = pathlib.Path(place.path)
    assert (made / here.name).read_bytes() == content
    for folder in (made, *(made / here.name).parents[:3]):
        assert folder.stat().st_mode & 0o022 == 0
    # The program's own cache is looked at too.
    own = tmp_path / "other/fullpipe/kernels/6.12-a"
    own.mkdir(parents=True)
    (own / "linux").write_bytes(content)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    other = _shard.Place([here])
    assert other.missing() == []
    # What nobody used for long goes when something new comes; what is in use stays.
    other.make()
    assert (pathlib.Path(other.path) / here.name).read_bytes() == content
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    os.utime(made, (1, 1))
    _shard.Place([here, here._replace(name="fullpipe")]).make()
    assert not made.exists()

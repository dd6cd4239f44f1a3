"""A sweep of the lab over the workers of Ray.

Each task runs a shard of the sweep in virtual time. What it made comes back to the driver, which
commits it under OUT.shards; when all shards are there, `fullpipe lab merge` puts them together.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import sys
import time

from ._program import ProgramError, arguments_of, program
from ._program import run as run_program
from ._shard import Needed, digest_of, run_shard

KILLS = 40
"""How many workers a shard may lose before it is given up."""
TASKS = 64
"""A sweep has so many tasks or more, for an even load, as far as it has rows."""
ROWS = 16
"""The most rows of a task: what a killed worker loses."""


def sweep(scenarios, out, *, resume=False, tell=None, address=None, **options) -> dict:
    """Runs scenarios in virtual time and writes their results into the folder `out`, as one
    machine does with `fullpipe lab run`; returns how many rows there are and how many failed.

    scenarios: scenario files or presets.
    resume: go on with what is there; rows that failed are run again.
    tell: called with a line of progress when a shard is done.
    address: of a running cluster; without it, and where Ray does not run yet, this machine.
    options: repeat, kernel, link_engine, guest_memory, guest_stall, keep_captures, truth, as of
        the command line.
    """
    given = [scenarios] if isinstance(scenarios, (str, os.PathLike)) else list(scenarios)
    names = [os.path.relpath(name) if os.path.exists(name) else os.fspath(name) for name in given]
    plan = Plan(names, options)
    with Shards(os.path.abspath(out), plan, resume) as shards:
        if waiting := shards.waiting():
            run(plan, shards, waiting, tell, address)
        return shards.merge()


class Plan:
    """Which runs there are, and what their results depend on."""

    def __init__(self, names: list[str], options: dict):
        self.words = [*arguments_of(options), "--", *names]
        told = json.loads(run_program(
            ["lab", "run", "--engine=virtual", "--dry-run", "--json", *self.words]))
        self.runs = told["runs"]
        self.digest = hashlib.sha256(json.dumps(self.runs).encode()).hexdigest()
        self.needed = [needed("fullpipe", program())]
        for kernel in told["kernels"]:
            folder = os.path.dirname(kernel["path"])
            for name in ("linux", "release"):
                self.needed.append(needed(f"cache/fullpipe/kernels/{kernel['key']}/{name}",
                                          os.path.join(folder, name)))
        absolute = [name for name in told["files"] if os.path.isabs(name)]
        if absolute:
            raise ValueError(f"send {absolute[0]} to the workers: a scenario names it by its whole "
                             "path, which another machine does not have; use a relative name")
        here = os.getcwd()
        above = os.path.commonpath([here, *map(os.path.abspath, told["files"])])
        self.inside = os.path.relpath(here, above)
        for name in told["files"]:
            path = os.path.abspath(name)
            self.needed.append(needed(f"work/{os.path.relpath(path, above)}", path))

    def content(self, digest: str) -> bytes:
        """What is to be sent."""
        path = next(one.found for one in self.needed if one.digest == digest)
        with open(path, "rb") as file:
            return file.read()


def needed(name: str, path: str) -> Needed:
    return Needed(name, digest_of(path), os.path.abspath(path))


class Shards:
    """OUT.shards: the shards that are done, each in a folder that is complete or not there."""

    def __init__(self, out: str, plan: Plan, resume: bool):
        self.out, self.plan, self.resume = out, plan, resume
        self.path = f"{out}.shards"
        self.of = len(plan.runs)
        self.has_lock = contextlib.ExitStack()

    def __enter__(self):
        whole = bool(os.path.isdir(self.out) and os.listdir(self.out))
        if not self.resume and (whole or os.path.exists(self.path)):
            there = self.out if whole else self.path
            raise FileExistsError(f"write into {self.out}: there is something in {there}; go on "
                                  "with --resume, or choose another folder")
        if whole:
            self.check_same(os.path.join(self.out, "sweep.json"))
        os.makedirs(self.path, mode=0o700, exist_ok=True)
        lock = self.has_lock.enter_context(open(os.path.join(self.path, "lock"), "wb"))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise FileExistsError(f"write into {self.path}: another sweep does; wait for it, or "
                                  "choose another folder") from None
        self.begin()
        return self

    def __exit__(self, *_):
        self.has_lock.close()

    def begin(self):
        """Reads into how many shards the sweep was divided, or divides it."""
        settings = os.path.join(self.path, "settings.json")
        if os.path.exists(settings):
            with open(settings, "rb") as file:
                told = json.load(file)
            if told["plan"] != self.plan.digest:
                self.refuse(self.path)
            self.of = told["shards"]
            return
        rows = len(self.plan.runs)
        self.of = max(min(rows, TASKS), -(-rows // ROWS))
        write(settings, json.dumps({"plan": self.plan.digest, "shards": self.of}).encode())

    def check_same(self, path: str):
        with open(path, "rb") as file:
            if json.load(file)["runs"] != self.plan.runs:
                self.refuse(self.out)

    def refuse(self, path: str):
        raise ValueError(f"resume {path}: it is of other runs; give the same scenarios, options, "
                         "kernel and build of fullpipe, or choose another folder")

    def rows_of(self, number: int) -> int:
        """How many rows the shard has, by the rule of the program."""
        rows, of = len(self.plan.runs), self.of
        return sum((place % of + place // of) % of == number - 1 for place in range(rows))

    def waiting(self) -> list[int]:
        """The shards that are to be run."""
        whole = os.path.join(self.out, "rows.jsonl")
        if os.path.exists(whole) and not has_failed(whole):
            return []
        for name in os.listdir(self.path):
            if name.endswith(".part"):
                shutil.rmtree(os.path.join(self.path, name))
        numbers = range(1, self.of + 1)
        return [number for number in numbers if not self.is_done(number)]

    def is_done(self, number: int) -> bool:
        rows = os.path.join(self.path, str(number), "rows.jsonl")
        return os.path.exists(rows) and not has_failed(rows)

    def commit(self, number: int, files: dict[str, bytes]):
        """From then on the shard is done."""
        if json.loads(files["sweep.json"])["runs"] != self.plan.runs:
            raise ValueError(f"keep shard {number}/{self.of}: a worker has made other runs")
        part = os.path.join(self.path, f"{number}.part")
        shutil.rmtree(part, ignore_errors=True)
        for name, content in files.items():
            path = os.path.join(part, name)
            os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
            write(path, content)
        there = os.path.join(self.path, str(number))
        shutil.rmtree(there, ignore_errors=True)
        os.rename(part, there)

    def merge(self) -> dict:
        """Puts the shards together; returns what there is."""
        rows = os.path.join(self.out, "rows.jsonl")
        if os.path.exists(rows) and not has_failed(rows):
            shutil.rmtree(self.path)
            return {"out": self.out, "rows": len(self.plan.runs), "failed": 0}
        replaces = os.path.exists(rows)
        to = f"{self.out}.new" if replaces else self.out
        if replaces:
            shutil.rmtree(to, ignore_errors=True)
        names = [os.path.join(self.path, str(number)) for number in range(1, self.of + 1)]
        told = json.loads(run_program(["lab", "merge", "--json", f"--out={to}", "--", *names]))
        if replaces:
            os.rename(self.out, os.path.join(self.path, "replaced.part"))
            os.rename(to, self.out)
        if not told["failed"]:
            # They are needed only to run again what failed.
            shutil.rmtree(self.path)
        return {"out": self.out, "rows": told["rows"], "failed": told["failed"]}


def write(path: str, content: bytes):
    """Writes a file that is on disk then."""
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def has_failed(path: str) -> bool:
    """Whether a run among these rows failed."""
    with open(path, "rb") as file:
        return any(json.loads(line).get("error") for line in file)


def run(plan: Plan, shards: Shards, waiting: list[int], tell, address):
    import ray

    with contextlib.ExitStack() as ends:
        if not ray.is_initialized():
            ray.init(address=address, log_to_driver=False)
            ends.callback(ray.shutdown)
        task = ray.remote(num_cpus=1, max_retries=KILLS)(run_shard)
        progress = Progress(len(plan.runs), sum(map(shards.rows_of, waiting)), tell)
        slots = max(2, 2 * int(ray.cluster_resources().get("CPU", 1)))
        left, running, sent = list(reversed(waiting)), {}, {}
        try:
            while left or running:
                while left and len(running) < slots:
                    number = left.pop()
                    running[task.remote(f"{number}/{shards.of}", shards.rows_of(number),
                                        plan.needed, sent, plan.words, plan.inside)] = number
                (ended,), _ = ray.wait(list(running), num_returns=1)
                number, told = running.pop(ended), ray.get(ended)
                if "missing" in told:
                    for digest in set(told["missing"]) - set(sent):
                        sent[digest] = ray.put(plan.content(digest))
                    left.append(number)
                elif "error" in told:
                    raise ProgramError(told["error"], told["code"])
                else:
                    shards.commit(number, told["files"])
                    progress.count(shards.rows_of(number))
        finally:
            for task_left in running:
                ray.cancel(task_left, force=True)


class Progress:
    """A line with what is done, the rate and the time left."""

    def __init__(self, total: int, waiting: int, tell):
        self.total, self.tell = total, tell
        self.before = total - waiting
        self.done = 0
        self.begun = time.monotonic()

    def count(self, rows: int):
        self.done += rows
        if self.tell is None:
            return
        rate = self.done / max(time.monotonic() - self.begun, 1e-3)
        left = self.total - self.before - self.done
        self.tell(f"{self.before + self.done} of {self.total} rows, {rate:.1f} rows/s, "
                  f"{left / rate:.0f} s left")


def add_command(commands):
    """Adds `sweep` to the command line."""
    command = commands.add_parser("sweep", help="run scenarios of the lab in virtual time")
    command.add_argument("scenarios", nargs="+", metavar="FILE|PRESET",
                         help="scenario files or presets, as for `fullpipe lab run`")
    command.add_argument("--out", required=True, metavar="DIR", help="the folder of the results")
    command.add_argument("--resume", action="store_true",
                         help="go on with what is there; rows that failed are run again")
    for name, value in OPTIONS.items():
        command.add_argument(f"--{name}", metavar=value, help="as `fullpipe lab run`")
    for name in SWITCHES:
        command.add_argument(f"--{name}", action="store_true", help="as `fullpipe lab run`")
    command.add_argument("--address", metavar="HOST:PORT",
                         help="a running cluster; without it, this machine")


OPTIONS = {"repeat": "N", "kernel": "RELEASE", "link-engine": "ENGINE", "guest-memory": "SIZE",
           "guest-stall": "TIME"}
SWITCHES = ("keep-captures", "truth")


def command(given, tell) -> int:
    """`sweep` of the command line; returns the exit code."""
    try:
        whole = sweep(given.scenarios, given.out, resume=given.resume, tell=tell,
                      address=given.address, **options_of(given))
    except (OSError, ValueError, ProgramError) as error:
        print(f"fullpipe.ray: {error}", file=sys.stderr)
        is_usage = isinstance(error, (ValueError, FileExistsError))
        return 2 if is_usage else getattr(error, "code", 1)
    print(json.dumps(whole))
    return 1 if whole["failed"] else 0


def options_of(given) -> dict:
    """What was given of the options of `fullpipe lab run`."""
    names = (name.replace("-", "_") for name in (*OPTIONS, *SWITCHES))
    return {name: value for name in names if (value := getattr(given, name))}

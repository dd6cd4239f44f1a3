"""A sweep of the lab over the workers of Ray.

Each task runs a shard of the sweep in virtual time. What it made comes back to the driver, which
commits it under OUT.shards; when all shards are there, `fullpipe lab merge` puts them together.
"""

import contextlib
import hashlib
import json
import os
import sys
import time

from ._program import ProgramError, arguments_of, program
from ._program import run as run_program
from ._results import Shards
from ._shard import Needed, digest_of, run_shard

KILLS = 40
"""How many workers a shard may lose before it is given up."""


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

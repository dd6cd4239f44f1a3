"""The results of a sweep over Ray: those of its shards while it goes on, and in the end the whole."""

import contextlib
import fcntl
import json
import os
import shutil

from ._program import run as run_program

TASKS = 64
"""A sweep has so many tasks or more, for an even load, as far as it has rows."""
ROWS = 16
"""The most rows of a task: what a killed worker loses."""


class Shards:
    """OUT.shards: the shards that are done, each in a folder that is complete or not there."""

    def __init__(self, out: str, plan, resume: bool):
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

"""A shard of a sweep on a worker: the program, the kernels and the files that its results depend
on are found there by their digests, or come from the driver; the program does the rest."""

import contextlib
import fcntl
import glob
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

UNUSED = 7 * 86_400
"""Seconds after which what was sent, and was not used since, is removed."""

# The program ends when the worker does, however that ends: prctl(PR_SET_PDEATHSIG, SIGTERM).
FOLLOW = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 15)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


CACHE = "cache/fullpipe/"
"""What in the place of a sweep is the cache of the program."""


class Needed(NamedTuple):
    """A file that results depend on."""

    name: str
    """Where it belongs in the place of the sweep."""
    digest: str
    found: str
    """Where it may be already, on any machine."""


def digest_of(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cache_folder() -> str:
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "fullpipe", "sweeps")


class Place:
    """Where the shards of a sweep run on this machine.

        sweeps/files/DIGEST           what was sent
        sweeps/SET/fullpipe           the program
        sweeps/SET/cache/fullpipe/kernels/KEY/linux
        sweeps/SET/work/..            scenarios and what they name

    A set has hard links to files; it is complete or not there.
    """

    def __init__(self, needed: list[Needed]):
        self.needed = needed
        listed = json.dumps([[one.name, one.digest] for one in needed])
        self.above = cache_folder()
        self.path = os.path.join(self.above, hashlib.sha256(listed.encode()).hexdigest()[:32])

    def missing(self) -> list[str]:
        """The digests of what has to be sent."""
        if os.path.isdir(self.path):
            os.utime(self.path)
            return []
        return [one.digest for one in self.needed if self.source(one) is None]

    def sent(self, digest: str) -> str:
        return os.path.join(self.above, "files", digest)

    def source(self, one: Needed) -> str | None:
        """Where it is on this machine."""
        own = shutil.which("fullpipe") or ""
        if one.name.startswith(CACHE):
            own = os.path.join(os.path.dirname(self.above), one.name.removeprefix(CACHE))
        for path in (self.sent(one.digest), one.found, own):
            with contextlib.suppress(OSError):
                if digest_of(path) == one.digest:
                    return path
        return None

    def keep(self, digest: str, content: bytes):
        """Keeps what was sent."""
        if hashlib.sha256(content).hexdigest() != digest:
            raise ValueError(f"keep {digest}: it came damaged")
        make_folder(os.path.join(self.above, "files"))
        part = f"{self.sent(digest)}.{os.getpid()}.part"
        with open(part, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), 0o755)
        os.replace(part, self.sent(digest))

    def make(self):
        """Puts together what is there."""
        if os.path.isdir(self.path):
            return
        make_folder(self.above)
        self.remove_unused()
        part = tempfile.mkdtemp(prefix=".part-", dir=self.above)
        try:
            for one in self.needed:
                source, target = self.source(one), os.path.join(part, one.name)
                if source is None:
                    raise FileNotFoundError(f"find {one.name}: it is gone that was there")
                make_folder(os.path.dirname(target))
                if source == self.sent(one.digest):
                    os.link(source, target)
                else:
                    # Somebody else's, who may write into it.
                    shutil.copy(source, target)
            # Another worker of this machine may have been sooner.
            with contextlib.suppress(OSError):
                os.rename(part, self.path)
        finally:
            shutil.rmtree(part, ignore_errors=True)

    def remove_unused(self):
        before = time.time() - UNUSED
        for path in glob.glob(os.path.join(self.above, "*")) + glob.glob(
                os.path.join(self.above, ".part-*")):
            # Another worker may name or remove it now.
            with contextlib.suppress(OSError):
                if os.path.basename(path) != "files" and os.stat(path).st_mtime < before:
                    shutil.rmtree(path, ignore_errors=True)
        for path in glob.glob(os.path.join(self.above, "files", "*")):
            with contextlib.suppress(OSError):
                told = os.stat(path)
                if told.st_nlink == 1 and told.st_mtime < before:
                    os.unlink(path)


def make_folder(path: str):
    """Makes a folder and those above it for this user alone, whatever the umask is: the program
    takes kernels from nowhere else."""
    if not os.path.isdir(path):
        make_folder(os.path.dirname(path))
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)


@contextlib.contextmanager
def scratch():
    """A folder that is removed; those of workers that were killed too."""
    above = tempfile.gettempdir()
    for lock in glob.glob(os.path.join(above, "fullpipe-sweep-*", "lock")):
        folder = os.path.dirname(lock)
        with contextlib.suppress(OSError):
            if os.lstat(folder).st_uid == os.geteuid():
                with open(lock, "rb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder)
    with tempfile.TemporaryDirectory(prefix="fullpipe-sweep-", dir=above) as folder:
        # It has its name when it is locked: what has no lock yet is nobody's to remove.
        lock = os.path.join(folder, "lock")
        with open(f"{lock}.part", "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            os.rename(f"{lock}.part", lock)
            yield folder


def run_shard(shard: str, rows: int, needed: list[Needed], sent: dict, words: list[str],
              inside: str) -> dict:
    """Runs a shard that has so many rows. Returns its files, or what is missing to run it, or
    why it could not be run.

    sent: references to what the driver has sent, by digest.
    words: options and scenarios; inside: the folder that their names start from.
    """
    import ray

    place = Place(needed)
    missing = place.missing()
    if not set(missing) <= set(sent):
        return {"missing": missing}
    for digest in missing:
        place.keep(digest, ray.get(sent[digest]))
    place.make()
    with scratch() as folder:
        out = os.path.join(folder, "out")
        work = os.path.normpath(os.path.join(place.path, "work", inside))
        make_folder(work)
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", FOLLOW, str(os.getpid()),
             os.path.join(place.path, "fullpipe"), "lab", "run", "--engine=virtual",
             "--no-cache", "--jobs=1", f"--shard={shard}", f"--out={out}", *words],
            cwd=work, env={**os.environ, "XDG_CACHE_HOME": os.path.join(place.path, "cache")},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            check=False)
        files = files_of(out)
        # Runs that failed are rows too; only what has no row ends the sweep.
        if files.get("rows.jsonl", b"").count(b"\n") < rows or done.returncode not in range(5):
            told = done.stderr.decode(errors="replace").strip().removeprefix("fullpipe: ")
            return {"error": told or f"fullpipe ended with {done.returncode}",
                    "code": done.returncode}
    return {"files": files}


def files_of(folder: str) -> dict[str, bytes]:
    """What is in a folder, by names from there."""
    files = {}
    for above, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(above, name)
            with open(path, "rb") as file:
                files[os.path.relpath(path, folder)] = file.read()
    return files

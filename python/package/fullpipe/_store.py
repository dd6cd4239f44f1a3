"""Captures and results where fsspec finds them: a disk, S3, GCS, HTTP."""

import concurrent.futures
import functools
import hashlib
import os
import time
import uuid
from typing import NamedTuple

import fsspec

BLOCK = 8 << 20
"""What is asked of a store at a time."""
ATTEMPTS = 8
"""How often a request is made before the store counts as away."""


class Found(NamedTuple):
    """A capture of a listing."""

    url: str
    size: int


def patiently(operation, what: str):
    """Does `operation` again where a store fails it; OSError in the end."""
    for attempt in range(ATTEMPTS):
        try:
            return operation()
        except (FileNotFoundError, PermissionError):
            raise
        except Exception as error:  # Each client of a store has errors of its own.
            last = error
            time.sleep(min(0.05 * 2**attempt, 2))
    raise OSError(f"{what}: failed {ATTEMPTS} times, last: {last}") from last


def is_local(url: str) -> bool:
    """Whether it is a file of this machine, which needs no client of a store."""
    return fsspec.utils.get_protocol(url) in ("file", "local")


@functools.cache
def fetchers() -> concurrent.futures.Executor:
    return concurrent.futures.ThreadPoolExecutor(2, thread_name_prefix="fullpipe-fetch")


class Reader:
    """Reads a file by ranges. A range that comes short is asked for again, so a transfer that was
    cut never looks like the end of the capture. The next range is on its way while one is used."""

    def __init__(self, found: Found):
        self.url, self.size = found
        self.at = 0
        self.block = b""
        self.fs, self.path = fsspec.core.url_to_fs(self.url)
        self.ask()

    def ask(self):
        """Asks for the next range."""
        begin, self.at = self.at, min(self.at + BLOCK, self.size)
        self.next = None
        if begin < self.size:
            self.next = fetchers().submit(patiently, functools.partial(self.fetch, begin, self.at),
                                          f"read {self.url}")

    def read(self, size: int) -> bytes:
        if not self.block and self.next:
            self.block = self.next.result()
            self.ask()
        if size >= len(self.block):
            taken, self.block = self.block, b""
            return taken
        taken, self.block = self.block[:size], self.block[size:]
        return taken

    def fetch(self, begin: int, end: int) -> bytes:
        got = self.fs.cat_file(self.path, start=begin, end=end)
        if len(got) != end - begin:
            raise OSError(f"{len(got)} bytes came of {end - begin} at {begin}")
        return got


class Store:
    """A folder of results. A file has its name when all of it is there."""

    def __init__(self, url: str):
        self.url = url.rstrip("/")
        self.fs, self.root = fsspec.core.url_to_fs(self.url)

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def put(self, local: str, name: str) -> dict:
        """Stores a local file under `name`; returns what is to be known of it."""
        with open(local, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = os.path.getsize(local)

        def attempt():
            temporary = self.path(f"_temporary/{uuid.uuid4().hex}")
            self.fs.makedirs(self.path("_temporary"), exist_ok=True)
            self.fs.put_file(local, temporary)
            self.expect(temporary, size)
            self.fs.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
            self.fs.mv(temporary, self.path(name))
            self.expect(self.path(name), size)

        patiently(attempt, f"write {self.url}/{name}")
        return {"part": name, "bytes": size, "sha256": digest}

    def expect(self, path: str, size: int):
        self.fs.invalidate_cache()
        there = self.fs.info(path)["size"]
        if there != size:
            raise OSError(f"{there} bytes of {size} are there")

    def put_bytes(self, content: bytes, name: str):
        import tempfile

        with tempfile.NamedTemporaryFile() as local:
            local.write(content)
            local.flush()
            self.put(local.name, name)

    def read(self, name: str) -> bytes | None:
        """A file's content; None where there is none. JSON files only, which end with a line end:
        that shows that nothing is missing."""

        def attempt():
            self.fs.invalidate_cache()
            try:
                content = self.fs.cat_file(self.path(name))
            except FileNotFoundError:
                return None
            if not content.endswith(b"\n"):
                raise OSError("it ends early")
            return content

        return patiently(attempt, f"read {self.url}/{name}")

    def names(self, under: str) -> list[str]:
        """The files below a folder."""

        def attempt():
            self.fs.invalidate_cache()
            if not self.fs.exists(self.path(under)):
                return []
            return self.fs.find(self.path(under))

        skipped = len(self.path(""))
        return sorted(name[skipped:] for name in patiently(attempt, f"list {self.url}/{under}"))

    def remove(self, name: str):
        patiently(lambda: self.fs.rm_file(self.path(name)), f"remove {self.url}/{name}")

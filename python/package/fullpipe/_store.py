"""Captures and results where fsspec finds them: a disk, S3, GCS, HTTP."""

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


class Reader:
    """Reads a file by ranges. A range that comes short is asked for again, so a transfer that was
    cut never looks like the end of the capture."""

    def __init__(self, found: Found):
        self.url, self.size = found
        self.at = 0
        self.block = memoryview(b"")
        self.fs, self.path = fsspec.core.url_to_fs(self.url)

    def read(self, size: int) -> bytes:
        if not self.block and self.at < self.size:
            end = min(self.at + BLOCK, self.size)
            self.block = memoryview(patiently(lambda: self.fetch(end), f"read {self.url}"))
            self.at = end
        taken, self.block = self.block[:size], self.block[size:]
        return bytes(taken)

    def fetch(self, end: int) -> bytes:
        got = self.fs.cat_file(self.path, start=self.at, end=end)
        if len(got) != end - self.at:
            raise OSError(f"{len(got)} bytes came of {end - self.at} at {self.at}")
        return got


def listing(sources: list[str]) -> list[Found]:
    """The captures of patterns, folders and files, sorted, each once."""
    found = {}
    for source in sources:
        fs, path = fsspec.core.url_to_fs(source)
        if fsspec.utils.get_protocol(source) in ("http", "https"):
            details = {path: patiently(lambda: fs.info(path), f"look at {source}")}
        elif fs.isdir(path):
            details = patiently(lambda: fs.find(path, detail=True), f"list {source}")
        else:
            details = patiently(lambda: fs.glob(path, detail=True), f"list {source}")
        if not details:
            raise FileNotFoundError(f"list {source}: there is nothing; give captures, a folder or "
                                    "a pattern such as 's3://caps/*.pcap.zst'")
        for name, detail in details.items():
            if detail["type"] != "file" or os.path.basename(name).startswith("."):
                continue
            if detail.get("size") is None:
                raise OSError(f"list {source}: the store does not say the size of {name}, without "
                              "which a capture that was cut could look whole")
            url = fs.unstrip_protocol(name).removeprefix("file://")
            found[url] = Found(url, int(detail["size"]))
    return [found[url] for url in sorted(found)]


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

"""The captures of an archive, in order, without holding all their names in memory."""

import glob
import os
import re
import sqlite3
from collections.abc import Iterator

import fsspec

from ._store import Found, is_local, patiently


class Listing:
    """Captures, each once, sorted by name. They are in a temporary database of this machine's
    disk, which goes when this goes."""

    def __init__(self, sources: list[str]):
        # SQLite's own temporary file: it has a few MB of memory, however large it becomes.
        self.database = sqlite3.connect("")
        self.database.execute("create table captures (url blob primary key, size int) without rowid")
        for source in sources:
            before = self.totals()
            # Names of a disk need not be UTF-8.
            rows = ((os.fsencode(found.url), found.size) for found in found_in(source))
            self.database.executemany("insert or ignore into captures values (?, ?)", rows)
            if self.totals() == before and not self.has_any(source):
                raise FileNotFoundError(
                    f"list {source}: there is nothing; give captures, a folder or a pattern such "
                    "as 's3://caps/*.pcap.zst'")

    def has_any(self, source: str) -> bool:
        """Whether the source has captures, which other sources had before it."""
        return next(found_in(source), None) is not None

    def discard(self, urls):
        """Leaves captures out."""
        self.database.executemany("delete from captures where url = ?",
                                  ((os.fsencode(url),) for url in urls))

    def totals(self) -> tuple[int, int]:
        """How many captures there are, and their bytes."""
        return self.database.execute("select count(*), total(size) from captures").fetchone()

    def __iter__(self) -> Iterator[Found]:
        for url, size in self.database.execute("select url, size from captures order by url"):
            yield Found(os.fsdecode(url), size)


def found_in(source: str) -> Iterator[Found]:
    """The captures of a pattern, a folder, or a file."""
    fs, path = fsspec.core.url_to_fs(source)
    if is_local(source):
        names = on_disk(path)
    elif fsspec.utils.get_protocol(source) in ("http", "https") or not is_many(fs, path, source):
        names = one(fs, path, source)
    else:
        names = in_store(fs, path)
    for name, size in names:
        if os.path.basename(name).startswith("."):
            continue
        if size is None:
            raise OSError(f"list {source}: the store does not say the size of {name}, without "
                          "which a capture that was cut could look whole")
        yield Found(fs.unstrip_protocol(name).removeprefix("file://"), int(size))


def is_many(fs, path: str, source: str) -> bool:
    return glob.has_magic(path) or patiently(lambda: fs.isdir(path), f"look at {source}")


def one(fs, path: str, source: str):
    try:
        detail = patiently(lambda: fs.info(path), f"look at {source}")
    except FileNotFoundError:
        return
    yield path, detail.get("size")


def on_disk(path: str):
    """Files of the disk; links to folders are not followed."""
    if "**" in path:
        # Python's own patterns would follow them, and never end in a circle.
        matches = matcher(path)
        yield from (file for file in below(root_of(path)) if matches(file[0]))
    elif glob.has_magic(path):
        yield from ((name, os.path.getsize(name)) for name in glob.iglob(path) if os.path.isfile(name))
    elif os.path.isfile(path):
        yield path, os.path.getsize(path)
    elif os.path.isdir(path):
        yield from below(path)


def matcher(pattern: str):
    return re.compile(fsspec.utils.glob_translate(pattern)).match


def root_of(pattern: str) -> str:
    """The folder that everything is in that the pattern means."""
    return pattern[: re.search(r"[*?[]", pattern).start()].rpartition("/")[0] or "/"


def below(folder: str):
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from below(entry.path)
            elif entry.is_file():
                yield entry.path, entry.stat().st_size


def in_store(fs, path: str):
    """Files of a folder or a pattern of a store, one folder after another: a store's client has
    all that it lists at a time in memory."""
    matches, deepest, root = None, None, path
    if glob.has_magic(path):
        matches, root = matcher(path), root_of(path)
        deepest = None if "**" in path else path.count("/")
    waiting = [root.rstrip("/")]
    while waiting:
        folder = waiting.pop()
        try:
            details = patiently(lambda: fs.ls(folder, detail=True), f"list {folder}")
        except FileNotFoundError:
            continue
        # Otherwise the client keeps what it listed.
        fs.invalidate_cache(folder)
        for detail in details:
            name = detail["name"].rstrip("/")
            if detail["type"] == "directory":
                is_hidden = os.path.basename(name).startswith(".")
                is_below = name != folder and (deepest is None or name.count("/") < deepest)
                if is_below and not is_hidden:
                    waiting.append(name)
            elif matches is None or matches(name):
                yield name, detail.get("size")

"""An archive of captures, or a sweep of the lab, over the workers of Ray.

    python -m fullpipe.ray analyze 's3://caps/*.pcap.zst' s3://out/
    python -m fullpipe.ray sweep sweep.toml --out results/

Names of captures are passed; each worker opens its files itself, by fsspec.
"""

import argparse
import json
import os
import sys
import time

from . import SCHEMA_VERSION, __version__
from ._group import KINDS, groups, work, word_of
from ._listing import Listing
from ._native import write_problems
from ._store import Store
from ._sweep import add_command, command as sweep_command, sweep

KILLS = 40
"""How many workers a group may lose before it is given up."""


def analyze(sources, out, *, rows=("connections",), resume=False, tell=None, **options) -> dict:
    """Analyses captures into a folder of rows; returns how many there are.

    sources: captures, folders or patterns, as paths or URLs.
    rows: which kinds: connections, intervals, findings, spans, packets.
    resume: go on with what is in the folder.
    tell: called with a line of progress when a group is done.
    options: filter, labels, layer and capture_point, as of fullpipe.analyze.
    """
    rows = list(dict.fromkeys(rows))
    unknown = [kind for kind in rows if kind not in KINDS]
    if unknown or not rows:
        raise ValueError(f"analyze: rows={unknown}: possible values: {', '.join(KINDS)}")
    sources = [sources] if isinstance(sources, str) else list(sources)
    if "://" not in out:
        # A worker has another working folder than the driver.
        out = os.path.abspath(out)
    store = Store(out)
    settings = {"fullpipe": __version__, "schema": SCHEMA_VERSION, "rows": list(rows),
                "options": options}
    begin(store, settings, resume)
    captures = Listing(sources)
    parts = set()
    for group in manifest(store):
        captures.discard(capture["file"] for capture in group["captures"])
        parts.update(part["part"] for part in group["parts"])
    remove_unfinished(store, parts)
    import ray

    if not ray.is_initialized():
        ray.init(log_to_driver=False)
    task = ray.remote(num_cpus=1, max_retries=KILLS)(work)
    progress = Progress(*captures.totals(), tell)
    waiting, running = groups(captures), {}
    slots = max(2, 2 * int(ray.cluster_resources().get("CPU", 1)))
    try:
        while True:
            while len(running) < slots and (group := next(waiting, None)):
                running[task.remote(group, out, list(rows), options)] = word_of(group)
            if not running:
                break
            (ended,), _ = ray.wait(list(running), num_returns=1)
            try:
                progress.count(ray.get(ended))
            except ray.exceptions.RayTaskError as error:
                # What the worker said, without the way that it took to here.
                raise error.cause from None
            del running[ended]
    finally:
        for task_left in running:
            ray.cancel(task_left, force=True)
    return end(store)


def begin(store: Store, settings: dict, resume: bool):
    """Says how the rows of a new folder are made, or compares with what an older one says."""
    # As they are read back.
    settings = json.loads(json.dumps(settings))
    there = store.read("_manifest/settings.json")
    if there is None:
        if store.names(""):
            raise FileExistsError(f"write into {store.url}: it is not empty and has no manifest; "
                                  "choose another folder")
        store.put_bytes(json.dumps(settings).encode() + b"\n", "_manifest/settings.json")
        return
    if not resume:
        raise FileExistsError(f"write into {store.url}: there are rows; go on with --resume, or "
                              "choose another folder")
    if json.loads(there) != settings:
        raise ValueError(f"resume {store.url}: its rows were made with {json.loads(there)}, not "
                         f"{settings}; choose another folder, or the same options")


def manifest(store: Store):
    """The groups that are done, one after another."""
    for name in store.names("_manifest"):
        if name not in ("_manifest/settings.json", "_manifest/whole.json"):
            yield json.loads(store.read(name))


def remove_unfinished(store: Store, parts: set[str]):
    """Removes what no group that counts has: halves of a run that was killed."""
    for name in store.names(""):
        if name.startswith("_manifest/") and name != "_manifest/whole.json":
            continue
        if name not in parts:
            store.remove(name)


def end(store: Store) -> dict:
    """Checks the parts, writes the problems, and says that the folder is whole."""
    import tempfile

    parts, problems = set(), []
    whole = {"captures": 0, "problems": 0, "rows": {}}
    for group in manifest(store):
        for part in group["parts"]:
            kind = part["part"].split("/")[0]
            whole["rows"][kind] = whole["rows"].get(kind, 0) + part["rows"]
            parts.add(part["part"])
        whole["captures"] += len(group["captures"])
        problems += [(one["file"], one["problem"], sum(one["rows"].values()))
                     for one in group["captures"] if one["problem"]]
    remove_unfinished(store, parts)
    missing = parts - set(store.names(""))
    if missing:
        raise OSError(f"end {store.url}: parts are gone that were written: {sorted(missing)}")
    whole["problems"] = len(problems)
    with tempfile.TemporaryDirectory(prefix="fullpipe-") as folder:
        local = os.path.join(folder, "problems")
        write_problems(local, sorted(problems))
        store.put(local, "problems.parquet")
    store.put_bytes(json.dumps(whole).encode() + b"\n", "_manifest/whole.json")
    return whole


class Progress:
    """A line with what is done, the rate and the time left."""

    def __init__(self, files: int, size: int, tell):
        self.files, self.size, self.tell = files, size, tell
        self.done_files = self.done_bytes = 0
        self.begun = time.monotonic()

    def count(self, did: dict):
        self.done_files += did["files"]
        self.done_bytes += did["bytes"]
        if self.tell is None:
            return
        rate = self.done_bytes / max(time.monotonic() - self.begun, 1e-3)
        left = (self.size - self.done_bytes) / max(rate, 1)
        self.tell(f"{self.done_files} of {self.files} captures, {rate / 1e6:.1f} MB/s, "
                  f"{left:.0f} s left")


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m fullpipe.ray",
        description="Analyse an archive of captures, or run a sweep of the lab, with Ray.",
        epilog="Examples: python -m fullpipe.ray analyze 's3://caps/*.pcap.zst' s3://out/ --resume; "
               "python -m fullpipe.ray sweep sweep.toml --out results/ --address head:6379")
    commands = parser.add_subparsers(required=True, dest="command")
    add_command(commands)
    command = commands.add_parser("analyze", help="write the rows of captures as Parquet")
    command.add_argument("sources", nargs="+", metavar="SOURCE",
                         help="captures, folders or patterns: paths or URLs that fsspec opens")
    command.add_argument("out", metavar="OUT", help="the folder of the rows")
    command.add_argument("--rows", default="connections", metavar="KINDS",
                         help=f"with commas between them: {', '.join(KINDS)} [connections]")
    command.add_argument("--resume", action="store_true",
                         help="go on with the rows in OUT: what is done is not done again")
    command.add_argument("--filter", metavar="FILTER", help="as `fullpipe analyze --filter`")
    command.add_argument("--labels", choices=["sack", "wireshark"],
                         help="whose definitions of the labels")
    command.add_argument("--address", metavar="HOST:PORT",
                         help="a running cluster; without it, this machine")
    given = parser.parse_args(arguments)
    is_terminal = sys.stderr.isatty()

    def tell(line):
        before, after = ("\r\x1b[K", "") if is_terminal else ("", "\n")
        print(f"{before}{line}", end=after, file=sys.stderr, flush=True)

    try:
        if given.command == "sweep":
            return sweep_command(given, tell)
        options = {name: value for name in ("filter", "labels") if (value := getattr(given, name))}
        if given.address:
            import ray

            ray.init(address=given.address, log_to_driver=False)
        whole = analyze(given.sources, given.out, rows=given.rows.split(","), resume=given.resume,
                        tell=tell, **options)
    except (OSError, ValueError) as error:
        print(f"fullpipe.ray: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("fullpipe.ray: interrupted; go on with the same command and --resume",
              file=sys.stderr)
        return 130
    print(json.dumps(whole))
    return 4 if whole["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())

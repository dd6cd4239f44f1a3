#!/usr/bin/env python3
"""Compares a sweep of 200 rows in virtual time over one and two workers of Ray with each other and with the command line:
  bench/sweep.py FULLPIPE DIR
FULLPIPE is a release build of the program. Prints seconds, of each the median, and whether all made the same bytes. Runs
with the Python that has the wheel and ray (`cargo xtask wheel --test` makes target/python). Use a quiet machine.
"""
import hashlib
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import time

REPEAT = int(os.environ.get("REPEAT", "3"))
"""How often each is measured, in turns."""
SWEEP = """
[link]
rate = "100mbit"
rtt = "20ms"
[transfer]
size = "{size}"
[matrix]
"link.loss" = {losses}
"link.seed" = {seeds}
"hosts.server.congestion_control" = ["cubic", "reno"]
"""


def worker(workers: int, out: str) -> None:
    """Sweeps with so many workers, and prints seconds without Ray's start and the workers' imports."""
    import ray
    import fullpipe.ray

    ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, object_store_memory=200 << 20)
    fullpipe.ray.sweep("warm.toml", f"{out}-warm")
    begun = time.monotonic()
    told = fullpipe.ray.sweep("sweep.toml", out)
    print(json.dumps({"wall": time.monotonic() - begun, **told}))


def digest(folder: pathlib.Path) -> str:
    """Of every file but the one that names machines."""
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != "environment.json":
            whole.update(f"{path.relative_to(folder)} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()


def main() -> None:
    if sys.argv[1] == "worker":
        worker(int(sys.argv[2]), sys.argv[3])
        return
    binary, folder = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2]).resolve()
    folder.mkdir(exist_ok=True)
    losses, seeds = ["0%", "0.1%", "0.3%", "0.5%", "1%"], list(range(1, 21))
    (folder / "sweep.toml").write_text(SWEEP.format(size="1MB", losses=losses, seeds=seeds))
    (folder / "warm.toml").write_text(SWEEP.format(size="10kB", losses=losses[:2], seeds=seeds[:2]))
    ours = {**os.environ, "FULLPIPE_BINARY": binary, "RAY_USAGE_STATS_ENABLED": "0"}
    took: dict[str, list[float]] = {}
    made = set()
    for _ in range(REPEAT):
        for number in (1, 2):
            for name in (f"lab run --jobs {number}", f"ray, workers: {number}"):
                shutil.rmtree(folder / "out", ignore_errors=True)
                shutil.rmtree(folder / "out-warm", ignore_errors=True)
                if name.startswith("lab"):
                    begun = time.monotonic()
                    subprocess.run([binary, "lab", "run", "sweep.toml", "--engine=virtual", "--no-cache", "--out=out",
                                    f"--jobs={number}", "--jsonl"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
                    wall = time.monotonic() - begun
                else:
                    command = [sys.executable, os.path.abspath(__file__), "worker", str(number), "out"]
                    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, env=ours)
                    wall = json.loads(done.stdout)["wall"]
                took.setdefault(name, []).append(wall)
                made.add(digest(folder / "out"))
                print(f"{name}: {wall:.1f} s, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    medians = {name: statistics.median(walls) for name, walls in took.items()}
    for name, wall in medians.items():
        print(f"{name}: {wall:.1f} s, {200 / wall:.2f} rows/s")
    for name in ("lab run --jobs", "ray, workers:"):
        print(f"{name} 2 of 1: {medians[f'{name} 1'] / medians[f'{name} 2']:.2f}x")
    print(f"different results: {len(made)}")


if __name__ == "__main__":
    main()

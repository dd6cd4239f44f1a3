#!/usr/bin/env python3
"""Compares fullpipe.ray with the command line, and with tshark, on the same captures:
  bench/archive.py FULLPIPE CAPTURE DIR [FILES]
FULLPIPE is a release build of the program, CAPTURE some MB of packets, of which DIR gets FILES (200) hard links. Prints
a line for each figure. Runs with the Python that has the wheel and ray (`cargo xtask wheel --test` makes
target/python). tshark and pcaptoparquet (of PyPI, in an environment of its own) are compared where they are in $PATH.
Use a quiet machine.
"""
import json
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

REPEAT = int(os.environ.get("REPEAT", "3"))
"""How often each is measured, in turns; the median is printed."""


def timed(command: list[str], **options) -> tuple[float, float]:
    """Wall and CPU seconds of a command and what it waits for."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **options)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return time.monotonic() - begun, cpu


def worker(caps: str, out: str, workers: int) -> None:
    """Analyses with so many workers of Ray, and prints seconds without Ray's start, and memory."""
    import ray
    import fullpipe._group
    import fullpipe.ray

    def peak() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    def cpu() -> float:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return used.ru_utime + used.ru_stime

    ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, object_store_memory=100 << 20)

    @ray.remote(num_cpus=1)
    def warm() -> tuple[float, float, int]:
        # Workers start, import and analyse a capture before the clock runs: that is half a second each.
        before = cpu()
        with tempfile.TemporaryDirectory() as scratch:
            fullpipe._group.work(list(fullpipe._listing.Listing([caps]))[:1], scratch, ["connections"], {})
        time.sleep(1)
        return before, cpu(), peak()

    before = ray.get([warm.remote() for _ in range(workers)])
    begun = time.monotonic()
    fullpipe.ray.analyze(caps, out)
    wall = time.monotonic() - begun
    after = ray.get([warm.remote() for _ in range(workers)])
    spent = sum(begin for begin, _, _ in after) - sum(end for _, end, _ in before)
    print(json.dumps({"wall": wall, "cpu": spent, "driver": peak(), "worker": max(most for _, _, most in after)}))


def main() -> None:
    if sys.argv[1] == "worker":
        worker(sys.argv[2], sys.argv[3], int(sys.argv[4]))
        return
    program, capture, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    files = int(sys.argv[4]) if len(sys.argv) > 4 else 200
    caps = folder / "caps"
    caps.mkdir(parents=True)
    shutil.copy(capture, caps / "00000.pcap")
    for number in range(1, files):
        os.link(caps / "00000.pcap", caps / f"{number:05}.pcap")
    told = subprocess.run([program, "analyze", "--json", capture], check=True, capture_output=True).stdout
    packets = sum(connection[direction]["packets"] for connection in json.loads(told)["connections"]
                  for direction in ("client_to_server", "server_to_client"))
    seconds, processor, peaks = {}, {}, {}
    for _ in range(REPEAT):
        for workers in (1, 2):
            out = str(folder / "rows")
            shutil.rmtree(out, ignore_errors=True)
            wall, cpu = timed([program, "analyze", str(caps), "--parquet", out + "/", "--threads", str(workers)])
            seconds.setdefault(f"program {workers}", []).append(wall)
            processor.setdefault(f"program {workers}", []).append(cpu)
            shutil.rmtree(out)
            done = subprocess.run([sys.executable, __file__, "worker", str(caps), out, str(workers)], check=True,
                                  stdout=subprocess.PIPE, env={**os.environ, "HOME": str(folder)})
            figures = json.loads(done.stdout)
            seconds.setdefault(f"ray {workers}", []).append(figures["wall"])
            processor.setdefault(f"ray {workers}", []).append(figures["cpu"])
            for which in ("driver", "worker"):
                peaks[which] = max(peaks.get(which, 0), figures[which])
    rate = {name: packets * files / statistics.median(all_) for name, all_ in seconds.items()}
    print(f"{files} captures of {os.path.getsize(capture) / 1e6:.1f} MB and {packets} packets; medians of {REPEAT}")
    for name, each in rate.items():
        print(f"{name}: {each / 1e6:.2f} million packets/s")
    print(f"one worker beside one thread of the program: {rate['ray 1'] / rate['program 1']:.3f}")
    # On a machine that is not quiet only these two can be compared.
    cost = {name: statistics.median(all_) / packets / files for name, all_ in processor.items()}
    print(f"by the CPU seconds of a packet: {cost['program 1'] / cost['ray 1']:.3f} "
          f"({cost['program 1'] * 1e9:.0f} ns, a worker {cost['ray 1'] * 1e9:.0f} ns)")
    print(f"two workers beside one: {rate['ray 2'] / rate['ray 1']:.2f}")
    print(f"most memory: driver {peaks['driver'] / 1e6:.0f} MB, worker {peaks['worker'] / 1e6:.0f} MB")
    imports = [timed([sys.executable, "-c", "import fullpipe"])[0] - timed([sys.executable, "-c", ""])[0]
               for _ in range(11)]
    print(f"import fullpipe: {statistics.median(imports) * 1000:.0f} ms")
    if shutil.which("tshark"):
        fields = [option for name in ("frame.time_epoch", "ip.src", "ip.dst", "tcp.stream", "tcp.seq", "tcp.ack", "tcp.len",
                                      "tcp.window_size", "tcp.analysis.flags") for option in ("-e", name)]
        cpu = timed(["tshark", "-r", capture, "-T", "fields", *fields], stderr=subprocess.DEVNULL)[1]
        ours = statistics.median(processor["program 1"]) / files
        print(f"tshark -T fields takes {cpu / ours:.0f} times the CPU seconds of the program")
    if shutil.which("pcaptoparquet"):
        theirs = timed(["pcaptoparquet", "-i", capture, "-o", str(folder / "theirs.parquet")])[1]
        ours = timed([program, "analyze", capture, "--packets", "--parquet", str(folder / "ours.parquet")])[1]
        connections = statistics.median(processor["program 1"]) / files
        print(f"pcaptoparquet takes {theirs / ours:.0f} times the CPU seconds of a row for each packet, and "
              f"{theirs / connections:.0f} times those of the connections")


main()

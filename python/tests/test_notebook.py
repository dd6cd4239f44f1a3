"""The guide's notebook goes from a bucket of S3's kind to a plot."""

import gzip
import json
import os
import pathlib
import subprocess
import sys

import pyarrow
import fullpipe
import pytest
import s3fs
from moto.server import ThreadedMotoServer

NOTEBOOK = pathlib.Path(__file__).resolve().parents[2] / "docs/src/archive.ipynb"

# As a kernel runs them, one after another in one space, with a small Ray.
RUN = """
import json, sys
import matplotlib
matplotlib.use("agg")
import ray
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100 << 20)
space = {}
cells = json.load(open(sys.argv[1]))["cells"]
for number, cell in enumerate(cells):
    if cell["cell_type"] == "code":
        exec(compile("".join(cell["source"]), f"cell {number}", "exec"), space)
bars = [(bar.get_label(), [patch.get_width() for patch in bar]) for bar in space["axes"].containers]
space["figure"].savefig("plot.png")
print(json.dumps({"done": space["done"], "whom": space["whom"], "bars": bars}))
"""


@pytest.fixture
def store():
    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@pytest.fixture
def bucket(captures, store, tmp_path) -> dict[str, bytes]:
    """Captures of the lab, each of other hosts, and one that is none. All servers of moto in a
    process have the same buckets."""
    files = {"none.pcap": b"no capture at all"}
    for number, path in enumerate(sorted((captures / "limits").glob("*/client.pcap.gz")), 1):
        packets = gzip.decompress(path.read_bytes())
        files[f"{number}.pcap"] = packets.replace(bytes([10, 77, 0]), bytes([10, 77, number]))
    client = s3fs.S3FileSystem(key="test", secret="test", endpoint_url=store, skip_instance_cache=True)
    client.mkdir("lab")
    for name, content in files.items():
        client.pipe_file(f"lab/{name}", content)
    return files


def test_the_notebook_plots_what_the_captures_say(bucket, store, tmp_path):
    own = {"HOME": str(tmp_path), "RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
           "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
           "AWS_DEFAULT_REGION": "us-east-1", "AWS_ENDPOINT_URL": store,
           "CAPTURES": "s3://lab/*.pcap*"}
    done = subprocess.run([sys.executable, "-c", RUN, str(NOTEBOOK)], cwd=tmp_path,
                          env={**os.environ, **own}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout.splitlines()[-1])
    assert shown["done"]["captures"] == len(bucket) and shown["done"]["problems"] == 1
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")

    expected = {}
    for name, content in bucket.items():
        if name == "none.pcap":
            continue
        for row in pyarrow.table(fullpipe.analyze(content, rows="intervals")).to_pylist():
            if row["limit"] is not None:
                end = row["server" if row["direction"] == "client_to_server" else "client"]
                key = end.rsplit(":", 1)[0], row["limit"]
                expected[key] = expected.get(key, 0) + row["length_us"] / 1e6
    assert {(who, limit): seconds for who, limit, seconds in shown["whom"]} == pytest.approx(expected)
    assert len({who for who, _ in expected}) >= 4 and len({limit for _, limit in expected}) >= 4
    # The bars are those seconds, all of them.
    plotted = {label.replace(" ", "_"): sum(widths) for label, widths in shown["bars"]}
    totals = {}
    for (_, limit), seconds in expected.items():
        totals[limit] = totals.get(limit, 0) + seconds
    assert plotted == pytest.approx(totals)

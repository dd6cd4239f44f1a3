"""The captures of an archive are found once each, in order, and not held in memory."""

import os
import pathlib
import subprocess
import sys

import fsspec
import pytest
from fullpipe._group import groups
from fullpipe._listing import Listing

SIMULATED = """
import resource, sys
import fsspec
from fullpipe._group import groups
from fullpipe._listing import Listing

class Simulated(fsspec.AbstractFileSystem):
    protocol = "simulated"
    folders = 0

    def isdir(self, path):
        return True

    def ls(self, path, detail=True):
        path = self._strip_protocol(path)
        if "/" not in path:
            return [{"name": f"{path}/day{n:04}", "size": 0, "type": "directory"}
                    for n in range(self.folders)]
        return [{"name": f"{path}/a-capture-of-an-edge-of-a-network-{n:06}.pcap.zst",
                 "size": 5_000_000, "type": "file"} for n in range(500)]

fsspec.register_implementation("simulated", Simulated)

def drive(folders):
    Simulated.folders = folders
    count = 0
    listing = Listing(["simulated://caps/day*/*.pcap.zst"])
    assert listing.totals() == (folders * 500, folders * 500 * 5_000_000)
    for group in groups(listing):
        count += len(group)
    assert count == folders * 500
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

few = drive(20)
print(drive(200) - few)
"""


def test_the_driver_has_the_same_memory_for_ten_thousand_and_a_hundred_thousand_captures():
    done = subprocess.run([sys.executable, "-c", SIMULATED], capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == 0, done.stderr
    # The names alone of 90,000 captures more are 6 MB, and as Python's objects four times that.
    assert int(done.stdout) < 5 << 20, f"{int(done.stdout)} bytes more"


def found(*sources) -> list[str]:
    listed = [(capture.url, capture.size) for capture in Listing(list(map(str, sources)))]
    assert all(size == 3 for _, size in listed)
    return [url for url, _ in listed]


def test_files_folders_and_patterns_are_one_list(tmp_path):
    names = ["b/2.pcap", "b/1.pcap", "a.pcap", "b/deep/3.pcap.zst", ".hidden", "b/.too/4.pcap",
             os.fsdecode(b"b/\xff.pcap")]
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"abc")
    (tmp_path / "b/again").symlink_to(tmp_path / "b")
    shown = sorted((str(tmp_path / name) for name in names if "/." not in "/" + name), key=os.fsencode)
    assert found(tmp_path) == shown
    assert found(tmp_path, tmp_path / "a.pcap", f"{tmp_path}/b/*.pcap", f"file://{tmp_path}/b") == shown
    assert found(f"{tmp_path}/b/?.pcap") == [name for name in shown if name[-6:-5] in "12\udcff"]
    assert found(f"{tmp_path}/**/*.zst") == [str(tmp_path / "b/deep/3.pcap.zst")]
    with pytest.raises(FileNotFoundError, match="there is nothing"):
        Listing([str(tmp_path / "a.pcap"), str(tmp_path / "missing")])


def test_a_store_is_listed_as_a_disk_is(tmp_path):
    store = fsspec.filesystem("memory")
    names = ["a.pcap", "b/1.pcap", "b/2.pcap.zst", "b/deep/3.pcap", "b/.hidden/4.pcap"]
    try:
        for name in names:
            store.pipe_file(f"/caps/{name}", b"abc")
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_bytes(b"abc")
        for pattern in ("", "/*.pcap", "/b/*", "/*/*.pcap", "/**/*.pcap", "/b/[12].pcap*", "/a.pcap"):
            in_store = [url.removeprefix("memory://") for url in found(f"memory://caps{pattern}")]
            on_disk = [url.replace(str(tmp_path), "/caps", 1) for url in found(f"{tmp_path}{pattern}")]
            assert in_store == on_disk != [], pattern
    finally:
        store.rm("/caps", recursive=True)


def test_what_is_done_is_left_out(tmp_path):
    for number in range(5):
        (tmp_path / f"{number}.pcap").write_bytes(b"abc")
    listing = Listing([str(tmp_path)])
    listing.discard([str(tmp_path / "1.pcap"), str(tmp_path / "9.pcap")])
    assert listing.totals() == (4, 12)
    (group,) = groups(listing)
    assert [pathlib.Path(capture.url).stem for capture in group] == list("0234")

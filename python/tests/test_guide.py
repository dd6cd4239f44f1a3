"""What the guide's page on archives shows runs as it is shown."""

import collections
import pathlib
import re
import shutil

import duckdb
import pyarrow.dataset
import pytest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/src/archive.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


@pytest.fixture
def archive(captures, tmp_path, monkeypatch, fullpipe_cli):
    """A folder of rows of the lab's captures, as an independent reader has it."""
    monkeypatch.chdir(tmp_path)
    found = sorted(captures.rglob("*.pcap.gz"))
    pathlib.Path("list").write_text("\n".join(map(str, found)))
    fullpipe_cli("analyze", "--files-from", "list", "--parquet", "rows/", "--threads", "2")
    fullpipe_cli("analyze", "--files-from", "list", "--parquet", "findings/", "--rows", "findings",
                 "--threads", "2")
    table = pyarrow.dataset.dataset("rows", partitioning="hive").to_table()
    assert len(set(table.column("file").to_pylist())) == len(found)
    return table.to_pylist()


def test_each_question_has_an_answer_that_another_reader_confirms(archive):
    worst, windows, hours, costs, scaling, waits, fixes = (
        duckdb.sql(query) for query in blocks("sql"))

    lost = collections.Counter()
    for row in archive:
        lost[row["server"]] += row["lost_us"]
    assert worst.columns == ["server", "directions", "lost_s"]
    found = worst.fetchall()
    assert {server: seconds for server, _, seconds in found} == pytest.approx(
        {server: micros / 1e6 for server, micros in lost.items()})
    assert [seconds for _, _, seconds in found] == sorted(
        (seconds for _, _, seconds in found), reverse=True)

    held, all_bytes = collections.Counter(), collections.Counter()
    for row in archive:
        if row["payload_bytes"] > 0:
            key = (str(row["day"]), row["client"].rsplit(".", 1)[0] + ".0/24")
            all_bytes[key] += row["payload_bytes"]
            held[key] += row["payload_bytes"] * (row["limited_by"] == "receive_window")
    found = {(str(day), prefix): share for day, prefix, share in windows.fetchall()}
    assert found == pytest.approx({key: held[key] / whole for key, whole in all_bytes.items()})
    assert any(0 < share for share in found.values()), "the question has no answer here"

    resent, packets = collections.Counter(), collections.Counter()
    for row in archive:
        hour = row["start_ns"] // 3_600_000_000_000 * 3600
        resent[hour] += row["retransmission"]
        packets[hour] += row["packets"]
    found = [share for _, share in hours.fetchall()]
    assert found == pytest.approx([resent[hour] / packets[hour] for hour in sorted(packets)])
    assert any(found)

    found = {tuple(row[:2]): row[2:] for row in costs.fetchall()}
    limits = collections.Counter(
        (row["limited_by"], row["limit_cause"]) for row in archive if row["limited_by"])
    assert {key: count for key, (count, _) in found.items()} == limits
    assert ("receive_window" in {limit for limit, _ in found})

    shifts = collections.defaultdict(list)
    for row in archive:
        if row["window_scale"] is not None:
            end = row["client" if row["direction"] == "client_to_server" else "server"]
            shifts[end.rsplit(":", 1)[0]].append(row["window_scale"])
    found = {host: (connections, share) for host, connections, share, _ in scaling.fetchall()}
    assert found == {host: (len(all_), all_.count(0) / len(all_)) for host, all_ in shifts.items()
                     if 0 in all_}
    assert found, "the question has no answer here"
    least = min(row["window_max_bytes"] for row in archive if row["window_scale"] == 0)
    assert least <= 65_535

    waited, turns = collections.Counter(), collections.Counter()
    for row in archive:
        if row["requests"]:
            waited[row["server"]] += row["server_wait_us"] / 1e6
            turns[row["server"]] += row["turns"]
    found = waits.fetchall()
    assert {row[0]: row[2] for row in found} == pytest.approx(waited)
    assert {row[0]: row[3] for row in found} == turns and any(turns.values())

    findings = pyarrow.dataset.dataset("findings", partitioning="hive").to_table().to_pylist()
    held, shown = collections.Counter(), collections.Counter()
    for row in findings:
        if row["limit"] not in ("link", "sender_application", "unknown"):
            key = row["limit"], row["cause"], row["remedy"]
            held[key] += row["time_us"] / 1e6
            elsewhere, here = row["elsewhere_bps"] or 0, row["goodput_bps"]
            shown[key] += row["time_us"] * (1 - here / elsewhere if elsewhere > here else 0) / 1e6
    rows = fixes.fetchall()
    assert {tuple(row[:3]): row[4] for row in rows} == pytest.approx(held)
    assert {tuple(row[:3]): row[5] for row in rows} == pytest.approx(shown)
    # No fix gives back more than the time for which its limit held.
    assert all(0 <= row[5] <= row[4] for row in rows) and any(row[5] for row in rows)


def test_the_package_does_what_its_section_shows(captures, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    # The first bytes decide, not the name.
    shutil.copy(captures / "three.pcap.gz", "capture.pcap.zst")
    (shown,) = blocks("python")
    exec(compile(shown, str(PAGE), "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out
    assert printed.splitlines()[0] == "2203", printed
    assert "receive_window" in printed and "2955884" in printed, printed

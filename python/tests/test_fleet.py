"""What the guide's page on fleets asks is answered rightly of hosts whose limits are known."""

import collections
import datetime
import os
import pathlib
import subprocess
import sys

import duckdb
import pyarrow.dataset
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import fleet  # noqa: E402

BINARY = os.environ.get("FULLPIPE_BINARY", str(fleet.PAGE.parents[2] / "target/debug/fullpipe"))
HOSTS, DAYS, HOURS = 10, 2, (3, 15)
MINUTE = 60
"""Each part has so many seconds."""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Each question's answer, by its heading, and all rows as an independent reader has them."""
    folder = tmp_path_factory.mktemp("fleet")
    fleet.rings(folder / "rings", HOSTS, DAYS, HOURS)
    (folder / "sites.csv").write_text(fleet.PREFIXES)
    for host in range(HOSTS):
        analyze(folder, f"rings/host-{host}", f"fleet/host=host-{host}/")
    with duckdb.connect() as database:
        database.execute(f"set file_search_path = '{folder}'")
        asked = {heading: database.sql(query).fetchall() for heading, query in fleet.questions()}
    rows = pyarrow.dataset.dataset(folder / "fleet", partitioning="hive").to_table().to_pylist()
    return folder, asked, rows


def analyze(folder, ring, target, *more):
    command = [BINARY, "analyze", ring, "--rows", "workloads", "--parquet", target, "--prefixes", "sites.csv", *more]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done
    return done


def planted(workload, days=range(DAYS), hosts=range(HOSTS)) -> float:
    """The seconds that a workload lost."""
    return sum(MINUTE * len(HOURS) * fleet.share(host, day, workload) for host in hosts for day in days)


def test_what_limits_whom_is_what_was_planted(answers):
    _, asked, rows = answers
    found = {tuple(row[:4]): row[4:] for row in asked["What limits whom"]}
    assert set(found) == {("backup.service", "iad2", "server_host", "send_buffer"),
                          ("web.service", "fra1", "client_host", "receive_window")}
    for (workload, *_), (lost_h, hosts, moved_gb) in found.items():
        assert lost_h * 3600 == pytest.approx(planted(workload), rel=0.03), workload
        assert hosts == HOSTS and moved_gb > 0
    # Every byte of every connection is in some row.
    moved = sum(row["io_bytes"] or 0 for row in rows)
    expected = 0
    for host in range(HOSTS):
        for day in range(DAYS):
            by_socket = collections.defaultdict(list)
            for line in fleet.part(host, day, fleet.FIRST_DAY):
                if "info" in line:
                    by_socket[line["local"]].append(line["info"]["bytes_acked"])
            expected += len(HOURS) * sum(acked[-1] - acked[0] for acked in by_socket.values())
    assert moved == expected


def test_lost_seconds_a_week_are_all_of_them(answers):
    _, asked, rows = answers
    found = {(week, cause): (lost, hosts) for week, cause, lost, hosts in asked["Lost seconds a week"]}
    by_cause = collections.Counter()
    for row in rows:
        by_cause[row["cause"] or "not kept"] += row["lost_us"] / 1e6
    week = fleet.FIRST_DAY.date() - datetime.timedelta(days=fleet.FIRST_DAY.weekday())
    assert {cause: lost for (_, cause), (lost, _) in found.items()} == pytest.approx(
        {cause: lost for cause, lost in by_cause.items() if lost})
    assert {str(begin)[:10] for begin, _ in found} == {str(week)}
    # A tenth of a second in each second is lost by what was not kept.
    not_kept, hosts = next(value for (_, cause), value in found.items() if cause == "not kept")
    assert not_kept == pytest.approx(0.1 * MINUTE * len(HOURS) * DAYS * HOSTS) and hosts == HOSTS


def test_hosts_that_got_worse_are_named_and_no_others(answers):
    _, asked, _ = answers
    found = asked["Which hosts regressed since yesterday"]
    worse = [host for host in range(HOSTS)
             if fleet.share(host, 1, "web.service") > fleet.share(host, 0, "web.service")]
    assert worse and {name for name, _, _ in found} == {f"host-{host}" for host in worse}
    for name, before, now in found:
        host = int(name.removeprefix("host-"))
        held = [sum(fleet.share(host, day, workload) for workload in fleet.WORKLOADS) + 0.1 for day in (0, 1)]
        assert [before, now] == pytest.approx(held, rel=0.03), name
    changed = [row for row in asked["What changed there"] if row[5] - row[4] > 60]
    assert {row[:4] for row in changed} == {
        (f"host-{host}", "web.service", "fra1", "receive_window") for host in worse}
    for *_, before, now in changed:
        assert [before, now] == pytest.approx([0.3 * 3600, 0.9 * 3600], rel=0.03)


def test_a_recorder_that_stood_still_is_told(answers):
    _, asked, rows = answers
    found = asked["Who does not record, or keeps too little"]
    # Two minutes of a day.
    assert [name for name, _, _ in found] == sorted(f"host-{host}" for host in range(HOSTS))
    assert all(watched == pytest.approx(2 * MINUTE / 86_400) for _, watched, _ in found)
    assert all(row["host_name"] == row["host"] for row in rows)
    hours = {row["hour_ns"] // 3_600_000_000_000 % 24 for row in rows}
    assert hours == set(HOURS) and all(row["hour_ns"] % 3_600_000_000_000 == 0 for row in rows)


def test_what_was_read_is_not_read_again_and_one_folder_of_all_says_the_same(answers):
    folder, _, rows = answers
    before = sorted((folder / "fleet/host=host-0").rglob("*.parquet"))
    for part in (folder / "rings/host-0").iterdir():
        # The ring dropped it.
        part.unlink()
    (folder / "rings/host-0/sockets-2026-11-25T03-00-00.000Z.jsonl.gz").write_bytes(
        next((folder / "rings/host-1").iterdir()).read_bytes())
    analyze(folder, "rings/host-0", "fleet/host=host-0/", "--resume")
    after = sorted((folder / "fleet/host=host-0").rglob("*.parquet"))
    assert set(before) < set(after) and len(after) == len(before) + 1
    fleet.rings(folder / "again", HOSTS, DAYS, HOURS)
    analyze(folder, "again", "all/", "--threads", "2")
    together = pyarrow.dataset.dataset(folder / "all", partitioning="hive").to_table().to_pylist()

    def sums(rows):
        by_key = collections.Counter()
        for row in rows:
            key = tuple(row[name] for name in ("host_name", "hour_ns", "workload", "peer_site", "owner", "cause"))
            by_key[key] += row["lost_us"]
        return by_key

    assert sums(together) == sums(rows)


def test_what_is_no_recording_is_a_problem_and_no_row(answers, captures):
    folder, *_ = answers
    done = subprocess.run([BINARY, "analyze", str(captures / "three.pcap.gz"), "--rows", "workloads", "--parquet", "none/"],
                          cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 4 and "three.pcap.gz" in done.stderr, done
    assert not list((folder / "none").rglob("*.parquet"))

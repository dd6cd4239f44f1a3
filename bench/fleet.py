#!/usr/bin/env python3
"""A fleet of simulated hosts, for the questions of docs/src/fleet.md:
  bench/fleet.py rings DIR [HOSTS] [DAYS]        what `record --sockets` of each host kept, in DIR/HOST
  bench/fleet.py rows FULLPIPE DIR [HOSTS] [DAYS]   folders of rows as `analyze --rows workloads` writes them, of
                                                 1,000 hosts for a week, and how long DuckDB takes for each question
  bench/fleet.py clickhouse DIR                  each question of DIR/fleet by DuckDB and by ClickHouse (the package
                                                 chdb): whether both answer the same, and how long each takes
Runs with a Python that has duckdb and pyarrow (`cargo xtask wheel --test` makes target/python). Rows have the columns
of a file that FULLPIPE wrote of a simulated host; their values are drawn with a fixed seed. python/tests/test_fleet.py
uses this file, too, and knows from `truth` what was planted.
"""
import datetime
import gzip
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

PAGE = pathlib.Path(__file__).resolve().parents[1] / "docs/src/fleet.md"
FIRST_DAY = datetime.datetime(2026, 11, 23, tzinfo=datetime.timezone.utc)
DUCKDB_FILES = "read_parquet('fleet/*/*/*.parquet', hive_partitioning = true)"
CLICKHOUSE_FILES = "file('fleet/*/*/*.parquet')"
PREFIXES = "prefix,site,provider,region\n192.0.2.0/25,fra1,Own,eu\n192.0.2.128/25,iad2,Own,us\n0.0.0.0/0,internet\n"
WORKLOADS = {
    # Its control group, its port, its peer, and what holds its data.
    "web.service": ("/system.slice/web.service", 443, "192.0.2.7", "receive_window"),
    "backup.service": ("/system.slice/backup.service", 8730, "192.0.2.200", "send_buffer"),
    "batch.service": ("/system.slice/batch.service", 9000, "198.51.100.9", None),
}
RATE = 1_300_000
"""Bytes a second of a connection while something holds it."""


def share(host: int, day: int, workload: str) -> float:
    """For which share of its time the workload's data is held on a day: two hosts get worse on the last."""
    if WORKLOADS[workload][3] is None:
        return 0.0
    return 0.9 if workload == "backup.service" or (host % 5 == 3 and day > 0) else 0.3


def is_held(second: int, part: float) -> bool:
    """Whether the data is held in this second, so that it is for a `part` of all of them."""
    return int(second * part) > int((second - 1) * part)


def sample(at: int, second: int, ends: tuple[str, str], held: str | None, part: float) -> dict:
    """A sender's socket, `second` s after its begin; its times are the kernel's own counters."""
    seconds_held = int(second * part) if held else 0
    micros, now = seconds_held * 1_000_000, held is not None and is_held(second, part)
    # In a second in which nothing holds its data, the program writes little of it.
    acked = seconds_held * RATE + (second - seconds_held) * RATE // 10
    info = {
        "state": "established", "ca_state": "open", "retransmits": 0, "probes": 0, "backoff": 0, "options": 7,
        "snd_wscale": 7, "rcv_wscale": 7, "delivery_rate_app_limited": not now, "rto_us": 250000, "ato_us": 40000,
        "snd_mss_bytes": 1448, "rcv_mss_bytes": 536, "unacked": 45 if now else 0, "sacked": 0, "lost": 0, "retrans": 0,
        "fackets": 0, "last_data_sent_us": 10000, "last_ack_sent_us": 0, "last_data_recv_us": 900000,
        "last_ack_recv_us": 10000, "pmtu_bytes": 1500, "rcv_ssthresh_bytes": 65495, "rtt_us": 50000, "rttvar_us": 1000,
        "snd_ssthresh": 2147483647, "snd_cwnd": 500, "advmss_bytes": 1448, "reordering": 3, "rcv_rtt_us": 0,
        "rcv_space_bytes": 14600, "total_retrans": 0, "bytes_acked": acked, "bytes_received": 0,
        "segs_out": acked // 1448, "segs_in": acked // 2896, "notsent_bytes": 400_000 if now else 0,
        "min_rtt_us": 50000, "data_segs_in": 0, "data_segs_out": acked // 1448,
        "busy_time_us": micros + (second - seconds_held) * 50_000,
        "rwnd_limited_us": micros if held == "receive_window" else 0,
        "sndbuf_limited_us": micros if held == "send_buffer" else 0, "delivered": acked // 1448, "bytes_sent": acked,
        "snd_wnd_bytes": 65536 if held == "receive_window" else 500_000,
    }
    return {"at_ns": at, "local": ends[0], "remote": ends[1], "state": "established", "rqueue_bytes": 0,
            "wqueue_bytes": 500_000 if now else 0, "info": info}


def part(host: int, day: int, begin: datetime.datetime, seconds: int = 60) -> list[dict]:
    """The lines of a part of a host's recording: a connection of each workload, and a look each second."""
    offset = 1_700_000_000_000_000_000
    start = int(begin.timestamp()) * 1_000_000_000 - offset
    at = [start + second * 1_000_000_000 for second in range(seconds + 1)]
    lines = [{"at_ns": start, "host": {"offset_ns": offset, "host": f"host-{host}", "boot": f"boot-{host}",
                                       "kernel": "6.12", "vendor": "", "counters": {}}}]
    # A tenth of a second of each is lost by what was not kept.
    lines += [{"at_ns": time, "look": {"length_us": 1_000_000 if number else 0, "connections": 900, "busy": 9,
                                       "kept": len(WORKLOADS), "lost_us": 0, "lost_unkept_us": 100_000 if number else 0}}
              for number, time in enumerate(at)]
    for number, (name, (group, port, peer, held)) in enumerate(WORKLOADS.items()):
        ends = (f"10.0.{host // 250}.{host % 250}:{port}", f"{peer}:{40_000 + number}")
        held_for = share(host, day, name)
        lines += [sample(time, 1 + second, ends, held, held_for) for second, time in enumerate(at)]
        process = {"pid": 100 + number, "name": name.split(".")[0], "command": name, "cgroup": group}
        socket = {"namespace": "host", "namespace_inode": 1, "cookie": int(begin.timestamp()) * 10 + number, "uid": 0,
                  "process": process}
        lines.append({"at_ns": at[-1], "local": ends[0], "remote": ends[1], "note": {"kernel": "6.12", "socket": socket}})
    return lines


def rings(folder: pathlib.Path, hosts: int, days: int, hours: tuple[int, ...] = (3, 15)) -> None:
    """A folder for each host, with a part of a minute in each of some hours of each day."""
    for host in range(hosts):
        place = folder / f"host-{host}"
        place.mkdir(parents=True)
        for day in range(days):
            for hour in hours:
                begin = FIRST_DAY + datetime.timedelta(days=day, hours=hour)
                name = begin.strftime("sockets-%Y-%m-%dT%H-%M-%S.000Z.jsonl.gz")
                text = "".join(json.dumps(line) + "\n" for line in part(host, day, begin))
                (place / name).write_bytes(gzip.compress(text.encode(), 1))


def questions() -> list[tuple[str, str]]:
    """The queries of the guide's page, each with the heading above it."""
    found = re.findall(r"^### (.*?)\n.*?```sql\n(.*?)```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    return [(heading, query) for heading, query in found]


def schema_of(fullpipe: str):
    """The columns of a file that the program wrote."""
    import pyarrow.parquet
    with tempfile.TemporaryDirectory() as scratch:
        base = pathlib.Path(scratch)
        rings(base / "rings", 1, 1)
        subprocess.run([fullpipe, "analyze", base / "rings/host-0", "--rows", "workloads", "--parquet", base / "rows/"],
                       check=True, stderr=subprocess.DEVNULL)
        return pyarrow.parquet.read_schema(next((base / "rows").rglob("*.parquet")))


def day_of_rows(schema, host: int, day: int, workloads: int):
    """The rows of a host's day: each hour the causes of some workloads and their peers, and the whole host's row."""
    import pyarrow
    draw = random.Random(f"{host} {day}")
    columns = {name: [] for name in schema.names}

    def add(**values) -> None:
        for name, column in columns.items():
            column.append(values.get(name))

    causes = [("client_host", "receive_window", 1), ("server_host", "send_buffer", 1), ("path", "loss", 1),
              ("path", "link", 0), ("server_application", "server_thinks", 1), ("nobody", "idle", 0)]
    start = int((FIRST_DAY + datetime.timedelta(days=day)).timestamp())
    for hour in range(24):
        common = {"schema": 2, "host_name": f"host-{host}", "hour_ns": (start + hour * 3600) * 1_000_000_000}
        add(**common, lost_us=draw.randrange(10**7), watched_us=3_600_000_000)
        for number in range(workloads):
            kind = (host + number) % 40
            for owner, cause, loses in draw.sample(causes, 4):
                time = draw.randrange(1, 3_600_000_000)
                add(**common, workload=f"service-{kind}.service", process_name=f"service-{kind}", server_port=8000 + kind,
                    peer_site=f"site-{draw.randrange(30)}", peer_provider="Own", peer_region=f"region-{kind % 5}",
                    role="sender", owner=owner, cause=cause, time_us=time, lost_us=time * loses,
                    io_bytes=draw.randrange(10**10))
    return pyarrow.table(columns, schema=schema)


def rows(fullpipe: str, folder: pathlib.Path, hosts: int, days: int) -> None:
    import duckdb
    import pyarrow.parquet
    schema = schema_of(fullpipe)
    fleet, count = folder / "fleet", 0
    for host in range(hosts):
        for day in range(days):
            place = fleet / f"host={host}" / f"day={FIRST_DAY.date() + datetime.timedelta(days=day)}"
            place.mkdir(parents=True, exist_ok=True)
            table = day_of_rows(schema, host, day, 12)
            pyarrow.parquet.write_table(table, place / "part-0.parquet", compression="snappy")
            count += table.num_rows
    size = sum(file.stat().st_size for file in fleet.rglob("*.parquet"))
    print(f"{count} rows of {hosts} hosts and {days} days in {hosts * days} files, {size / 1e6:.0f} MB")
    with duckdb.connect() as database:
        database.execute("set threads = 2")
        database.execute(f"set file_search_path = '{folder}'")
        for heading, query in questions():
            begun = time.monotonic()
            found = database.execute(query).fetchall()
            print(f"{time.monotonic() - begun:6.2f} s  {len(found):5} rows  {heading}")


def told(cell):
    """A cell of an answer, whichever engine gave it: days as text, numbers as far as sums of floats agree."""
    if isinstance(cell, datetime.date):
        return cell.isoformat()[:10]
    return float(f"{cell:.9g}") if isinstance(cell, float) else cell


def clickhouse(folder: pathlib.Path) -> None:
    import chdb
    import duckdb
    os.chdir(folder)
    for heading, query in questions():
        begun = time.monotonic()
        by_duckdb = [[told(cell) for cell in row] for row in duckdb.sql(query).fetchall()]
        between = time.monotonic()
        answer = chdb.query(query.replace(DUCKDB_FILES, CLICKHOUSE_FILES), "JSONCompact")
        by_clickhouse = [[told(cell) for cell in row] for row in json.loads(answer.data())["data"]]
        times = f"{between - begun:6.2f} s {time.monotonic() - between:6.2f} s"
        print(f"{times}  {len(by_duckdb):5} rows  {heading}")
        if by_duckdb != by_clickhouse:
            differ = [pair for pair in zip(by_duckdb, by_clickhouse) if pair[0] != pair[1]]
            sys.exit(f"{heading}: {len(by_duckdb)} and {len(by_clickhouse)} rows; first {differ[:1]}")


def main() -> None:
    kind, *rest = sys.argv[1:] or ["help"]
    if kind == "rings" and rest:
        hosts, days = (int(number) for number in (rest[1:] + ["100", "2"][len(rest) - 1:]))
        rings(pathlib.Path(rest[0]), hosts, days)
    elif kind == "rows" and len(rest) > 1:
        hosts, days = (int(number) for number in (rest[2:] + ["1000", "7"][len(rest) - 2:]))
        rows(rest[0], pathlib.Path(rest[1]), hosts, days)
    elif kind == "clickhouse" and rest:
        clickhouse(pathlib.Path(rest[0]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Real programs whose protocol has a window of its own, behind an emulated path, captured at both ends.

  bench/windows.py run DIR [RTTS]     makes the captures that are not there yet (root; openssh-server,
                                      rsync, nginx, nghttp2-client, postgresql-15; PYTHON has the
                                      packages h2 and grpcio)
  bench/windows.py score DIR [RTTS]   says for each what fullpipe finds: the layer, who must act, the size
  bench/windows.py false FOLDER..     names the captures in these folders in which a window above TCP is
                                      found, and counts them: where none is known to be, all are false

RTTS are three round trips in ms, such as 40,120,300. With others the set is another one.

Each case says what is right by construction: which layer holds the data, whose program has the
setting, and how large the window is. Some have none: the same programs where the path, or a buffer of
TCP, holds the data."""
import json, os, shutil, subprocess, sys, tempfile
from pathlib import Path
from windows_programs import KIB, MIB, PROGRAMS, SFTP_BLOCK

ROOT = Path(__file__).resolve().parent.parent
FULLPIPE = os.environ.get("FULLPIPE", str(ROOT / "target/release/fullpipe"))
RTTS = (40, 120, 300)
if len(sys.argv) > 3 and sys.argv[1] != "false":
    RTTS = tuple(int(rtt) for rtt in sys.argv[3].split(","))


def cases():
    """Name, what runs, round trip in ms, rate, and what is right: direction of the data, who has the
    setting, size in bytes; None where no window above TCP holds the data."""
    for rtt in sorted({max(60, RTTS[0]), RTTS[0] + 40, *RTTS[1:], sum(RTTS) // 3, RTTS[2] - 60}):
        # A packet of the channel is not split, so that up to one of them stays free.
        yield f"ssh-down-{rtt}", ("ssh", "down"), rtt, "800mbit", ("down", "client", 2 * MIB)
        yield f"ssh-up-{rtt}", ("ssh", "up"), rtt, "800mbit", ("up", "server", 2 * MIB)
    for rtt in RTTS:
        # 48 at 40 ms would be more than two processors encrypt.
        for requests in (8, 24, 48)[: 2 if rtt < 60 else 3]:
            size = requests * SFTP_BLOCK
            yield f"sftp-get-{requests}-{rtt}", ("sftp", "get", requests), rtt, "800mbit", ("down", "client", size)
            # A write more is under way when the first answer is waited for.
            size = (requests + 1) * SFTP_BLOCK
            yield f"sftp-put-{requests}-{rtt}", ("sftp", "put", requests), rtt, "800mbit", ("up", "client", size)
        for window in (65535, 256 * KIB, MIB):
            for tls in ("plain", "tls"):
                name = f"{window}-{tls}-{rtt}"
                yield f"h2-down-{name}", ("h2", "down", window, tls), rtt, "800mbit", ("down", "client", window)
                yield f"h2-up-{name}", ("h2", "up", window, tls), rtt, "800mbit", ("up", "server", window)
        for direction, owner in (("down", "client"), ("up", "server")):
            yield f"rsync-ssh-{direction}-{rtt}", ("rsync-ssh", direction), rtt, "800mbit", (direction, owner, 2 * MIB)
            for window in (256 * KIB, MIB):
                what = ("grpc", direction, window)
                yield f"grpc-{direction}-{window}-{rtt}", what, rtt, "800mbit", (direction, owner, window)
        for window in (128 * KIB, 512 * KIB):
            yield f"nginx-put-{window}-{rtt}", ("nginx", "put", window), rtt, "800mbit", ("up", "server", window)
        for window in (256 * KIB - 1, MIB - 1):
            what = ("nginx", "nghttp", window)
            yield f"nginx-nghttp-{window}-{rtt}", what, rtt, "800mbit", ("down", "client", window)
        for window in (128 * KIB, MIB):
            yield f"psql-{window}-{rtt}", ("psql", window), rtt, "800mbit", ("down", "client", window)
    # The same where something else holds the data.
    for rtt in RTTS:
        yield f"ssh-down-link-{rtt}", ("ssh", "down"), rtt, f"{round(6000 / rtt)}mbit", None
        yield f"ssh-up-link-{rtt}", ("ssh", "up"), rtt, f"{round(6000 / rtt)}mbit", None
        yield f"ssh-down-receive-{rtt}", ("ssh", "down", "tcp_rmem"), rtt, "800mbit", None
        yield f"ssh-down-send-{rtt}", ("ssh", "down", "tcp_wmem"), rtt, "800mbit", None
        yield f"h2-down-link-{rtt}", ("h2", "down", 8 * MIB, "plain"), rtt, f"{round(6000 / rtt)}mbit", None
        for name, what in (("rsync", ("rsync",)), ("nginx-get", ("nginx", "get", None)), ("psql", ("psql", None))):
            yield f"{name}-link-{rtt}", what, rtt, f"{round(6000 / rtt)}mbit", None


def commands(what, rtt, truth, folder):
    """The commands of server and client. Transfers last some 30 round trips, and 3 s at least."""
    seconds = max(3.0, 30 * rtt / 1000)
    # A buffer of TCP that holds the data makes it slower than that.
    window = min(truth[2] if truth else MIB, 2 * MIB)
    return PROGRAMS[what[0]](what, int(window * seconds * 1000 / rtt), folder)


def run(folder):
    os.makedirs("/run/sshd", exist_ok=True)
    for name, what, rtt, rate, truth in cases():
        place = folder / name
        if place.exists():
            continue
        with tempfile.TemporaryDirectory() as work:
            server, client = commands(what, rtt, truth, Path(work))
            part = folder / f"{name}.part"
            shutil.rmtree(part, ignore_errors=True)
            link = [FULLPIPE, "link", "--rtt", f"{rtt}ms", "--rate", rate, "--capture", part]
            done = subprocess.run(
                ["timeout", "60", *link, "--server", server, "--", "sh", "-c", client],
                stdin=subprocess.DEVNULL, capture_output=True, text=True,
            )
            if done.returncode != 0:
                print(f"{name}: failed ({done.returncode}): {done.stderr.strip().splitlines()[-1:]}", flush=True)
                continue
            part.rename(place)
            print(name, flush=True)


def analyzed(capture, *options):
    return subprocess.run([FULLPIPE, "analyze", *options, capture], capture_output=True, text=True).stdout


def largest(capture):
    """The connection of a capture that carries most."""
    connections = json.loads(analyzed(capture, "--json"))["connections"]
    ways = ("client_to_server", "server_to_client")
    return max(connections, key=lambda one: sum(one[way]["payload_bytes"] for way in ways))


def window_found(capture, direction):
    """The window above TCP that is found in a direction: its size, who sets it, and what to change."""
    one = largest(capture)
    way = "server_to_client" if direction == "down" else "client_to_server"
    causes = [cause for cause in one["sub_causes"] if (cause["sub_cause"], cause["direction"]) == ("application_window", way)]
    parts = [part for part in one["account"]["parts"] if (part["cause"], part.get("direction")) == ("application_window", way)]
    size = causes[0]["amount_bytes"] if causes else None
    return size, parts[0]["owner"].removesuffix("_application") if parts else None, causes[0]["remedy_name"] if causes else None


def fetch_found(capture):
    """The same of a cursor, whose window is one fetch: what lost most is a round trip for each."""
    one = largest(capture)
    account = one["account"]
    worst = max(account["parts"], key=lambda part: part["lost_us"])["cause"]
    fetches = account["turns"] - CURSOR_TURNS
    if worst != "turns" or fetches < 1:
        return window_found(capture, "down")
    advice = analyzed(capture)
    return one["server_to_client"]["payload_bytes"] / fetches, "client", "ask_more_of_postgresql" if "FETCH_COUNT" in advice else None


# Round trips of a cursor beside its fetches: for TLS, the start-up, BEGIN, DECLARE, CLOSE and COMMIT.
CURSOR_TURNS = 6
REMEDIES = {
    "ssh": "leave_ssh_channel", "rsync-ssh": "leave_ssh_channel", "sftp": "ask_more_of_sftp",
    "h2": "grow_http2_window", "grpc": "grow_http2_window", "nginx": "grow_http2_window",
    "psql": "ask_more_of_postgresql",
}


def score(folder):
    right = {"server": [0, 0], "client": [0, 0]}
    false = {"server": [0, 0], "client": [0, 0]}
    for name, what, _, _, truth in cases():
        for end in ("server", "client"):
            capture = folder / name / f"{end}.edge.pcap"
            if not capture.exists():
                continue
            if truth and what[0] == "psql":
                size, owner, remedy = fetch_found(capture)
            else:
                direction = truth[0] if truth else ("up" if "-up-" in name else "down")
                size, owner, remedy = window_found(capture, direction)
            if truth is None:
                is_false = size is not None
                false[end][0] += is_false
                false[end][1] += 1
                if is_false:
                    print(f"{name} {end}: FALSE {size}")
                continue
            is_size = size is not None and abs(size / truth[2] - 1) <= 0.1
            is_right = is_size and owner == truth[1] and remedy == REMEDIES[what[0]]
            right[end][0] += is_right
            right[end][1] += 1
            if not is_right:
                print(f"{name} {end}: MISS {size} of {truth[2]}, {owner}, {remedy}")
    for end in ("server", "client"):
        print(f"{end}: {right[end][0]} of {right[end][1]} right, {false[end][0]} of {false[end][1]} false")


def false(folders):
    captures = [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file() and "cap" in path.name]
    read = found = 0
    for capture in captures:
        told = analyzed(capture, "--json")
        if not told.strip():
            continue
        connections = json.loads(told).get("connections", [])
        read += bool(connections)
        for one in connections:
            for cause in one["sub_causes"]:
                if cause["sub_cause"] == "application_window":
                    print(f"{capture}: {one['client']} {one['server']} {cause['direction']}: {cause['claim']}", flush=True)
        found += any(cause["sub_cause"] == "application_window" for one in connections for cause in one["sub_causes"])
    print(f"{found} of {read} captures with a connection")


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in ("run", "score", "false"):
        sys.exit(__doc__)
    if sys.argv[1] == "false":
        false([Path(folder) for folder in sys.argv[2:]])
    else:
        {"run": run, "score": score}[sys.argv[1]](Path(sys.argv[2]).resolve())

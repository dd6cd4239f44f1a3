#!/usr/bin/env python3
"""Real programs whose protocol has a window of its own, behind an emulated path, captured at both ends.

  bench/windows.py run DIR [RTTS]     makes the captures that are not there yet (root, openssh-server;
                                      PYTHON has the package h2)
  bench/windows.py score DIR [RTTS]   says for each what fullpipe finds: the layer, who must act, the size

RTTS are three round trips in ms, such as 40,120,300. With others the set is another one.

Each case says what is right by construction: which layer holds the data, whose program has the
setting, and how large the window is. Some have none: the same programs where the path, or a buffer of
TCP, holds the data."""
import json, os, shutil, subprocess, sys, tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FULLPIPE = os.environ.get("FULLPIPE", str(ROOT / "target/release/fullpipe"))
PYTHON = os.environ.get("PYTHON", sys.executable)
MIB, KIB = 1 << 20, 1 << 10
RTTS = tuple(int(rtt) for rtt in sys.argv[3].split(",")) if len(sys.argv) > 3 else (40, 120, 300)


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
            size = requests * 32 * KIB
            yield f"sftp-get-{requests}-{rtt}", ("sftp", "get", requests), rtt, "800mbit", ("down", "client", size)
            # A write more is under way when the first answer is waited for.
            size = (requests + 1) * 32 * KIB
            yield f"sftp-put-{requests}-{rtt}", ("sftp", "put", requests), rtt, "800mbit", ("up", "client", size)
        for window in (65535, 256 * KIB, MIB):
            for tls in ("plain", "tls"):
                name = f"{window}-{tls}-{rtt}"
                yield f"h2-down-{name}", ("h2", "down", window, tls), rtt, "800mbit", ("down", "client", window)
                yield f"h2-up-{name}", ("h2", "up", window, tls), rtt, "800mbit", ("up", "server", window)
    # The same where something else holds the data.
    for rtt in RTTS:
        yield f"ssh-down-link-{rtt}", ("ssh", "down"), rtt, f"{round(6000 / rtt)}mbit", None
        yield f"ssh-up-link-{rtt}", ("ssh", "up"), rtt, f"{round(6000 / rtt)}mbit", None
        yield f"ssh-down-receive-{rtt}", ("ssh", "down", "tcp_rmem"), rtt, "800mbit", None
        yield f"ssh-down-send-{rtt}", ("ssh", "down", "tcp_wmem"), rtt, "800mbit", None
        yield f"h2-down-link-{rtt}", ("h2", "down", 8 * MIB, "plain"), rtt, f"{round(6000 / rtt)}mbit", None


SETTINGS = {
    "tcp_rmem": "sysctl -qw net.ipv4.tcp_rmem='4096 131072 700000'; ",
    "tcp_wmem": "sysctl -qw net.ipv4.tcp_wmem='4096 16384 900000'; ",
}


def commands(what, rtt, folder):
    """The commands of server and client. Transfers last some 30 round trips, and 3 s at least."""
    seconds = max(3.0, 30 * rtt / 1000)
    if what[0] in ("ssh", "sftp"):
        config = folder / "sshd"
        key = folder / "key"
        for path in (key, folder / "host"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
        shutil.copy(f"{key}.pub", folder / "authorized")
        config.write_text(
            f"Port 2222\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\nPermitRootLogin yes\n"
            f"StrictModes no\nUsePAM no\nPidFile {folder}/pid\nSubsystem sftp internal-sftp\n"
        )
        options = f"-q -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -i {key}"
        server = f"/usr/sbin/sshd -D -f {config}"
        ssh = f"ssh {options} -p 2222 root@{{server}}"
        if what[0] == "ssh":
            size = int(2 * MIB * seconds * 1000 / rtt)
            setting = what[2] if len(what) > 2 else None
            if setting == "tcp_wmem":
                server = SETTINGS[setting] + "exec " + server
            client = SETTINGS[setting] if setting == "tcp_rmem" else ""
            if what[1] == "down":
                return server, client + f"{ssh} 'head -c {size} /dev/zero' > /dev/null"
            return server, client + f"head -c {size} /dev/zero | {ssh} 'cat > /dev/null'"
        size = int(what[2] * 32 * KIB * seconds * 1000 / rtt)
        source = folder / "source"
        with open(source, "wb") as file:
            file.truncate(size)
        verb = f"get {source} /dev/null" if what[1] == "get" else f"put {source} {folder}/arrived"
        return server, f"echo '{verb}' | sftp {options} -P 2222 -R {what[2]} -B 32768 -b - root@{{server}}"
    window, tls = what[2], what[3]
    size = int(min(window, 2 * MIB) * seconds * 1000 / rtt)
    talk = f"{PYTHON} {Path(__file__).with_name('windows_h2.py')}"
    if tls == "tls":
        subprocess.run(
            f"openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=example.net -days 2 -keyout {folder}/key.pem "
            f"-out {folder}/cert.pem", shell=True, check=True, stderr=subprocess.DEVNULL,
        )
    pem = f"{folder}" if tls == "tls" else "-"
    return f"{talk} server {pem} {what[1]} {window} {size}", f"{talk} client {pem} {what[1]} {window} {size} {{server}}"


def run(folder):
    os.makedirs("/run/sshd", exist_ok=True)
    for name, what, rtt, rate, _ in cases():
        place = folder / name
        if place.exists():
            continue
        with tempfile.TemporaryDirectory() as work:
            server, client = commands(what, rtt, Path(work))
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


def answer(capture, direction):
    """What is found of a capture's largest connection: the size of a window above TCP, and who sets it."""
    told = subprocess.run([FULLPIPE, "analyze", "--json", capture], capture_output=True, text=True)
    connections = json.loads(told.stdout)["connections"]
    ways = ("client_to_server", "server_to_client")
    one = max(connections, key=lambda one: sum(one[way]["payload_bytes"] for way in ways))
    way = "server_to_client" if direction == "down" else "client_to_server"
    causes = [cause for cause in one["sub_causes"] if (cause["sub_cause"], cause["direction"]) == ("application_window", way)]
    parts = [part for part in one["account"]["parts"] if (part["cause"], part.get("direction")) == ("application_window", way)]
    size = causes[0]["amount_bytes"] if causes else None
    return size, parts[0]["owner"].removesuffix("_application") if parts else None, causes[0]["remedy_name"] if causes else None


REMEDIES = {"ssh": "leave_ssh_channel", "sftp": "ask_more_of_sftp", "h2": "grow_http2_window"}


def score(folder):
    right = {"server": [0, 0], "client": [0, 0]}
    false = {"server": [0, 0], "client": [0, 0]}
    for name, what, _, _, truth in cases():
        for end in ("server", "client"):
            capture = folder / name / f"{end}.edge.pcap"
            if not capture.exists():
                continue
            size, owner, remedy = answer(capture, truth[0] if truth else ("up" if "-up-" in name else "down"))
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


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in ("run", "score"):
        sys.exit(__doc__)
    {"run": run, "score": score}[sys.argv[1]](Path(sys.argv[2]).resolve())

#!/usr/bin/env python3
"""HTTP/2 of real programs behind an emulated path, captured whole at both ends, and read with keys.

  bench/keys.py run DIR      makes the captures that are not there yet (root; nginx-light, curl, dumpcap,
                             openssl; PYTHON has the package h2)
  bench/keys.py score DIR    holds what fullpipe says of each to TShark's frames with the same keys: data of
                             each stream, to the byte, and the window that was waited for

What is planted: the window of the receiver, which holds the data where it is smaller than what the path
holds; and transfers that no window holds."""
import collections, json, os, subprocess, sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FULLPIPE = os.environ.get("FULLPIPE", str(ROOT / "target/release/fullpipe"))
PYTHON = os.environ.get("PYTHON", sys.executable)
H2 = ROOT / "bench/windows_h2.py"
SIZE = 4_000_000

NGINX = """daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log; user root;
events {{}}
http {{
  access_log off; client_body_temp_path {folder}/body; client_max_body_size 100m;
  server {{ listen 8443 ssl http2; ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;
    ssl_protocols TLSv1.2 TLSv1.3;
    location / {{ root {folder}/www; }}
    location /put {{ root {folder}; dav_methods PUT; create_full_put_path on; }} }}
}}
"""


def cases(folder):
    """Name, round trip, rate, server, client, and the window that is waited for, with its direction."""
    nginx = f"/usr/sbin/nginx -c {folder}/nginx.conf"
    curl = "curl -sk -o /dev/null --http2"
    url = "https://{server}:8443"
    for suite in ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"):
        name = suite.removeprefix("TLS_").lower()
        yield f"curl-get-{name}", 30, "100mbit", nginx, f"{curl} --tls13-ciphers {suite} {url}/big", None
        put = f"{curl} --tls13-ciphers {suite} -T {folder}/www/big {url}/put/x"
        # nginx grants all that the protocol allows where it buffers the whole request.
        yield f"curl-put-{name}", 50, "100mbit", nginx, put, None
    for suite in ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-CHACHA20-POLY1305"):
        put = f"{curl} --tls-max 1.2 --ciphers {suite} -T {folder}/www/big {url}/put/x"
        yield f"curl-put-{suite.lower()}", 50, "100mbit", nginx, put, None
    many = " ".join(f"{url}/{file} -o /dev/null" for file in ("small", "big", "small", "small"))
    yield "curl-parallel", 40, "100mbit", nginx, f"curl -skZ --http2 {many}", None
    for direction in ("down", "up"):
        for window in (65535, 262144, 8 << 20):
            for tls in ("plain", "tls"):
                pem = folder if tls == "tls" else "-"
                rate = "200mbit" if window < 1 << 20 else "20mbit"
                server = f"{PYTHON} {H2} server {pem} {direction} {window} {SIZE}"
                client = f"{PYTHON} {H2} client {pem} {direction} {window} {SIZE} {{server}}"
                held = (direction, window) if window < 1 << 20 else None
                yield f"h2-{direction}-{window}-{tls}", 60, rate, server, client, held


def captured(folder, name, side, command):
    """The command with dumpcap beside it, which has begun before it and ends behind it."""
    file = folder / name / f"{side}.pcapng"
    ends = "exit $?" if side == "server" else "S=$?; sleep 0.4; kill -INT $D; wait $D; exit $S"
    script = folder / name / f"{side}.sh"
    script.write_text(
        f"dumpcap -q -i any -w {file} 2>/dev/null & D=$!\n"
        f"until [ -s {file} ]; do sleep 0.05; done; sleep 0.3\n"
        f"export SSLKEYLOGFILE={folder / name}.keys\n"
        f"{'exec ' if side == 'server' else ''}{command.replace('{server}', '$1')}\n{ends}\n"
    )
    return f"bash {script}"


def run(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for place in ("www", "put", "body"):
        (folder / place).mkdir(exist_ok=True)
    (folder / "www/big").write_bytes(os.urandom(3_000_000))
    (folder / "www/small").write_bytes(os.urandom(200_000))
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder))
    if not (folder / "cert.pem").exists():
        subprocess.run(
            f"openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=example.net -days 2 -keyout {folder}/key.pem "
            f"-out {folder}/cert.pem", shell=True, check=True, stderr=subprocess.DEVNULL,
        )
    for name, rtt, rate, server, client, _ in cases(folder):
        if (folder / name).exists():
            continue
        (folder / name).mkdir()
        link = [FULLPIPE, "link", "--rtt", f"{rtt}ms", "--rate", rate]
        link += ["--server", captured(folder, name, "server", server)]
        link += ["--", *captured(folder, name, "client", client).split(), "{server}"]
        done = subprocess.run(["timeout", "100", *link], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            (folder / name).rename(folder / f"{name}.failed")
            print(f"{name}: failed ({done.returncode}): {done.stderr.strip().splitlines()[-1:]}", flush=True)
        else:
            print(name, flush=True)


def tshark(capture, keys):
    """Data of each direction and stream, by TShark, and how many frames it has."""
    command = ["tshark", "-n", "-r", capture, "-Y", "http2", "-T", "fields", "-E", "aggregator=,"]
    # Without this TShark stops at the first segment that is out of order.
    command += ["-o", "tcp.reassemble_out_of_order:TRUE"]
    command += ["-o", f"tls.keylog_file:{keys}"] if keys.exists() else ["-d", "tcp.port==8443,http2"]
    fields = ["tcp.srcport", "http2.type", "http2.streamid", "http2.length"]
    command += [part for field in fields for part in ("-e", field)]
    table = subprocess.run(command, capture_output=True, text=True).stdout
    data, frames = collections.Counter(), 0
    for row in table.splitlines():
        port, *cells = row.split("\t")
        for kind, stream, length in zip(*(cell.split(",") for cell in cells)):
            frames += 1
            if kind == "0" and int(length) > 0:
                data["server_to_client" if port == "8443" else "client_to_server", int(stream)] += int(length)
    return data, frames


def score(folder):
    right = wrong = 0
    for name, _, _, _, _, held in cases(folder):
        for side in ("client", "server"):
            capture, keys = folder / name / f"{side}.pcapng", folder / f"{name}.keys"
            if not capture.exists():
                continue
            command = [FULLPIPE, "analyze", "--json", capture] + (["--keys", keys] if keys.exists() else [])
            connections = json.loads(subprocess.run(command, capture_output=True, text=True).stdout)["connections"]
            one = max(connections, key=lambda one: one["duration_us"])
            theirs, frames = tshark(capture, keys)
            problems = []
            for way in ("client_to_server", "server_to_client"):
                own = one[way].get("http2")
                if own is None:
                    problems.append(f"{way}: not read ({one['warnings']})")
                    continue
                total = sum(size for (where, _), size in theirs.items() if where == way)
                if own["data_bytes"] != total:
                    problems.append(f"{way}: {own['data_bytes']} bytes, by TShark {total}")
                for stream in own["worst"]:
                    if stream["data_bytes"] != theirs[way, stream["stream"]]:
                        problems.append(f"{way}: stream {stream['stream']} has {stream['data_bytes']}")
            causes = [cause for cause in one["sub_causes"] if cause["sub_cause"] == "application_window"]
            found = [(("down" if cause["direction"] == "server_to_client" else "up"), cause["amount_bytes"]) for cause in causes]
            if found != ([held] if held else []):
                problems.append(f"window {found}, planted {held}")
            right, wrong = right + (not problems), wrong + bool(problems)
            says = causes[0]["claim"].split(": ", 1)[1].split(" times;")[0] if causes else "no window"
            print(f"{name} at the {side}: {frames} frames; {says}; {'; '.join(problems) or 'right'}", flush=True)
    print(f"{right} right, {wrong} wrong")
    return wrong


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("run", "score"):
        sys.exit(__doc__)
    sys.exit({"run": run, "score": score}[sys.argv[1]](Path(sys.argv[2]).resolve()) and 1)

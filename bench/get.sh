#!/usr/bin/env bash
# What `fullpipe get` carries and costs beside curl and aria2c, from nginx on this machine:
#   loopback   1 GiB over loopback: goodput, and CPU time for each GB
#   window     the client's receive buffer holds one connection's window to 256 KiB; 200 Mbit/s, 100 ms
#   full       one connection fills the link; 100 Mbit/s, 20 ms
#   collapse   a server whose rate falls to a quarter while more than 4 connections are open
# The paths are those of `fullpipe link`. Needs root, python3, nginx; curl and aria2c where installed.
#   bench/get.sh [BINARY] [PART..]
set -euo pipefail
cd "$(dirname "$0")/.."
exec python3 - "${1:-target/release/fullpipe}" "${@:2}" <<'PYTHON'
import http.server, json, os, re, shutil, signal, socket, subprocess, sys, tempfile, threading, time

signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
binary = os.path.abspath(sys.argv[1])
parts = sys.argv[2:] or ["loopback", "window", "full", "collapse"]
work = tempfile.mkdtemp(prefix="fullpipe-get-")
os.chmod(work, 0o755)
for name, size in (("gib", 1 << 30), ("large", 3_000_000_000), ("small", 250_000_000)):
    with open(f"{work}/{name}", "wb") as file:
        file.truncate(size)

def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]

def nginx():
    port = free_port()
    with open(f"{work}/nginx.conf", "w") as file:
        file.write(f"""daemon off; error_log {work}/error.log; pid {work}/pid; user root; worker_processes 1;
events {{}} http {{ access_log off; sendfile on; server {{ listen 0.0.0.0:{port}; root {work}; }} }}""")
    server = subprocess.Popen(["nginx", "-c", f"{work}/nginx.conf"], stderr=subprocess.DEVNULL)
    while server.poll() is None:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return server, port
        time.sleep(0.01)
    sys.exit("nginx does not start")

def run(command):
    """Seconds, CPU seconds of the program and its children, and its standard output."""
    before, begun = os.times(), time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, cwd=work)
    took, after = time.monotonic() - begun, os.times()
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return took, cpu, done.stdout

def ours(url, *options):
    return [binary, "get", "--json", *options, "-o", f"{work}/out", url]

def others(url, names):
    for name, command in names.items():
        if shutil.which(command[0]):
            yield name, [*command, url]

def tell(name, size, took, cpu, said=""):
    shown = f"{size * 8 / took / 1e6:9.1f} Mbit/s"
    shown += f" {cpu / size * 1e9:6.2f} s CPU/GB" if cpu is not None else ""
    print(f"  {name:24} {shown}  {said}", flush=True)
    for left in ("out", "out.part", "out.part.json", "out.aria2"):
        if os.path.exists(f"{work}/{left}"):
            os.unlink(f"{work}/{left}")

def steps(text):
    """The numbers of connections that were tried, and the one that stayed."""
    found = json.loads(text[text.index("{"):])["files"][0]
    tried = ", ".join(f"{step['connections']} {step['reason']}" for step in found["steps"])
    return f"{found['connections']} connections at most: {tried}"

def loopback(port):
    size, url = 1 << 30, f"http://127.0.0.1:{port}/gib"
    print("loopback, 1 GiB, the best of three")
    commands = {"fullpipe get": ours(url), **dict(others(url, {
        "curl": ["curl", "-s", "-o", f"{work}/out"],
        "aria2c": ["aria2c", "-q", "--file-allocation=none", "-d", work, "-o", "out"]}))}
    for name, command in commands.items():
        best = None
        for _ in range(3):
            took, cpu, _ = run(command)
            best = min(best or (took, cpu), (took, cpu))
            os.unlink(f"{work}/out")
        tell(name, size, *best)

def behind(rate, rtt, rmem, command):
    """The command behind a link, in a shell that sets the receive buffer first."""
    shell = f"sysctl -qw net.ipv4.tcp_rmem='4096 131072 {rmem}'; exec \"$@\""
    return [binary, "link", "--rate", rate, "--rtt", rtt, "--", "sh", "-c", shell, "sh", *command]

def path(title, size, port, rate, rtt, rmem, file):
    print(title)
    url = f"http://{{server}}:{port}/{file}"
    commands = {"fullpipe get, auto": ours(url, "--connections", "auto"), **dict(others(url, {
        "aria2c -x16": ["aria2c", "-q", "-x16", "-s16", "-k1M", "--file-allocation=none",
                        "-d", work, "-o", "out"]}))}
    for name, command in commands.items():
        took, _, out = run(behind(rate, rtt, rmem, command))
        tell(name, size, took, None, steps(out) if name.endswith("auto") else "")

class Collapsing(http.server.BaseHTTPRequestHandler):
    """10 Mbit/s for each of up to 4 connections; 10 Mbit/s for all of more."""
    protocol_version = "HTTP/1.1"
    size, running = 100_000_000, 0

    def do_GET(self):
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        start = int(asked[1]) if asked else 0
        last = int(asked[2]) if asked and asked[2] else self.size - 1
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {start}-{last}/{self.size}")
        for field, value in (("Content-Length", last + 1 - start), ("Accept-Ranges", "bytes"), ("ETag", '"a"')):
            self.send_header(field, value)
        self.end_headers()
        left, due = last + 1 - start, time.monotonic()
        Collapsing.running += 1
        try:
            while left > 0:
                piece = min(left, 12_500)
                self.wfile.write(bytes(piece))
                left -= piece
                part = 1 if self.running <= 4 else 1 / self.running
                due = max(due + piece * 8 / (10e6 * part), time.monotonic() - 0.1)
                time.sleep(max(0, due - time.monotonic()))
        except OSError:
            pass
        finally:
            Collapsing.running -= 1

    def log_message(self, *_):
        pass

def collapse():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Collapsing)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/file"
    print("a server that collapses above 4 connections, 100 MB")
    for name, count in (("fullpipe get, 4", "4"), ("fullpipe get, auto", "auto")):
        took, _, out = run(ours(url, "--connections", count))
        tell(name, Collapsing.size, took, None, steps(out) if count == "auto" else "")
    server.shutdown()

server, port = nginx()
try:
    if "loopback" in parts:
        loopback(port)
    if "window" in parts:
        path("windows of 256 KiB, 200 Mbit/s, 100 ms, 3 GB", 3_000_000_000, port, "200mbit", "100ms",
             524_288, "large")
    if "full" in parts:
        path("one connection fills it: 100 Mbit/s, 20 ms, 250 MB", 250_000_000, port, "100mbit", "20ms",
             6_291_456, "small")
    if "collapse" in parts:
        collapse()
finally:
    server.send_signal(signal.SIGTERM)
    server.wait()
    shutil.rmtree(work)
PYTHON

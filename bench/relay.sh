#!/usr/bin/env bash
# What `fullpipe relay` carries beside one direct connection, over emulated paths: a window of 256 KiB, random loss, and
# a path that one connection fills. curl downloads for SECONDS, directly and through a relay that is connected already;
# the relay's carriers are TLS. Payload in MB/s, and how many times the direct download. As root (it sets
# net.ipv4.tcp_rmem in the link's own namespace); needs python3 and curl.
#   bench/relay.sh [BINARY] [SECONDS] [CARRIERS]
set -euo pipefail
cd "$(dirname "$0")/.."
exec python3 - "${1:-target/release/fullpipe}" "${2:-15}" "${3:-1,8,16}" <<'PYTHON'
import json, os, socket, subprocess, sys, tempfile, time

binary, seconds = os.path.abspath(sys.argv[1]), int(sys.argv[2])
carriers = [int(count) for count in sys.argv[3].split(",")]
work = tempfile.mkdtemp(prefix="fullpipe-relay-")
with open(f"{work}/file", "wb") as file:
    file.truncate(4 << 30)

def free():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]

def key(name):
    made = subprocess.run([binary, "keygen", f"{work}/{name}.key", "--json"], capture_output=True, check=True)
    return json.loads(made.stdout)["public_key"]

origin, daemon = free(), free()
server_key = key("server")
with open(f"{work}/clients", "w") as file:
    file.write(key("client") + "\n")
processes = [
    subprocess.Popen([sys.executable, "-m", "http.server", str(origin), "--bind", "127.0.0.1", "--directory", work],
                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL),
    subprocess.Popen([binary, "serve", "--listen", f"127.0.0.1:{daemon}", "--key", f"{work}/server.key",
                      "--allow-key", f"{work}/clients", "--relay", "--allow", f"127.0.0.1:{origin}"],
                     stderr=subprocess.DEVNULL),
]
for port in (origin, daemon):
    while socket.socket().connect_ex(("127.0.0.1", port)):
        time.sleep(0.05)

SCRIPT = r"""
[ -z "$RMEM" ] || sysctl -qw net.ipv4.tcp_rmem="4096 131072 $RMEM"
url=http://$FULLPIPE_SERVER:$ORIGIN/file
if [ "$COUNT" != 0 ]; then
    "$BINARY" relay --server $FULLPIPE_SERVER:$DAEMON --key $WORK/client.key --server-key $SERVER_KEY \
        --listen 127.0.0.1:8080 --to 127.0.0.1:$ORIGIN --carriers $COUNT 2> $WORK/near & relay=$!
    until grep -q '^connected' $WORK/near; do sleep 0.1; done
    # Every carrier's handshake takes some round trips.
    sleep 3
    url=http://127.0.0.1:8080/file
fi
curl -s --max-time $SECONDS_EACH -o /dev/null -w '%{size_download} %{time_total} %{time_starttransfer}' $url
[ "$COUNT" = 0 ] || kill -9 $relay
"""

def measure(path, rmem, count):
    environment = {**os.environ, "RMEM": rmem, "COUNT": str(count), "BINARY": binary, "WORK": work,
                   "ORIGIN": str(origin), "DAEMON": str(daemon), "SERVER_KEY": server_key,
                   "SECONDS_EACH": str(seconds)}
    done = subprocess.run([binary, "link", *path, "--", "sh", "-c", SCRIPT], env=environment, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=seconds + 60)
    size, total, first = (float(word) for word in done.stdout.split())
    return size / (total - first) / 1e6

PATHS = [
    ("window", ["--rate", "200mbit", "--rtt", "100ms"], "262144"),
    ("loss", ["--rate", "200mbit", "--rtt", "150ms", "--loss", "0.5%"], ""),
    ("filled", ["--rate", "100mbit", "--rtt", "20ms"], ""),
]
try:
    for name, path, rmem in PATHS:
        direct = measure(path, rmem, 0)
        print(f"{name:8} {'direct':>12} {direct:8.2f} MB/s", flush=True)
        for count in carriers:
            rate = measure(path, rmem, count)
            print(f"{name:8} {count:3} carriers {rate:8.2f} MB/s {rate / direct:6.2f} x", flush=True)
finally:
    for process in processes:
        process.kill()
    subprocess.run(["rm", "-rf", work])
PYTHON

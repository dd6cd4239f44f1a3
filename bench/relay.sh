#!/usr/bin/env bash
# What `fullpipe relay` carries beside one direct connection, over emulated paths: a window of 256 KiB, random loss, and
# a path that one connection fills. Both ends are namespaces with TCP of their own, so that what a carrier's kernel holds is
# what it would hold on such a path. curl downloads for SECONDS, directly and through a relay that is connected already; the
# relay's carriers are TLS, every sender is CUBIC unless told otherwise, and CARRIERS may have `auto`. Payload in MB/s, and
# how many times the direct download. As root; needs python3 and curl.
#   bench/relay.sh [BINARY] [SECONDS] [CARRIERS] [CONGESTION]
set -euo pipefail
cd "$(dirname "$0")/.."
exec python3 - "${1:-target/release/fullpipe}" "${2:-15}" "${3:-1,8,16}" "${4:-cubic}" <<'PYTHON'
import json, os, subprocess, sys, tempfile

binary, seconds = os.path.abspath(sys.argv[1]), int(sys.argv[2])
carriers, congestion = sys.argv[3].split(","), sys.argv[4]
work = tempfile.mkdtemp(prefix="fullpipe-relay-")
with open(f"{work}/file", "wb") as file:
    file.truncate(4 << 30)

def key(name):
    made = subprocess.run([binary, "keygen", f"{work}/{name}.key", "--json"], capture_output=True, check=True)
    return json.loads(made.stdout)["public_key"]

server_key = key("server")
with open(f"{work}/clients", "w") as file:
    file.write(key("client") + "\n")

SERVER = r"""
set -e
# In a namespace the sysctl refuses what the machine does not allow to everyone; a route does not.
ip route change $(ip -o -4 route show | head -1) congctl $CONGESTION
python3 -m http.server 8000 --directory $WORK > /dev/null 2>&1 &
exec "$BINARY" serve --listen 0.0.0.0:5606 --key $WORK/server.key --allow-key $WORK/clients --relay --allow '*:8000' \
    2> $WORK/far
"""

CLIENT = r"""
[ -z "$RMEM" ] || sysctl -qw net.ipv4.tcp_rmem="4096 131072 $RMEM"
until curl -sI -o /dev/null http://$FULLPIPE_SERVER:8000/file; do sleep 0.1; done
url=http://$FULLPIPE_SERVER:8000/file
if [ "$COUNT" != 0 ]; then
    "$BINARY" relay --server $FULLPIPE_SERVER:5606 --key $WORK/client.key --server-key $SERVER_KEY \
        --listen 127.0.0.1:8080 --to $FULLPIPE_SERVER:8000 --carriers $COUNT 2> $WORK/near & relay=$!
    until grep -q '^connected' $WORK/near; do sleep 0.1; done
    # Every carrier's handshake takes some round trips.
    sleep 3
    url=http://127.0.0.1:8080/file
fi
curl -s --max-time $SECONDS_EACH -o /dev/null -w '%{size_download} %{time_total} %{time_starttransfer}' $url
[ "$COUNT" = 0 ] || kill -9 $relay
"""

def measure(path, rmem, count):
    environment = {**os.environ, "RMEM": rmem, "COUNT": count, "CONGESTION": congestion, "BINARY": binary, "WORK": work,
                   "SERVER_KEY": server_key, "SECONDS_EACH": str(seconds)}
    done = subprocess.run([binary, "link", *path, "--linger", "0s", "--server", SERVER, "--", "sh", "-c", CLIENT],
                          env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=seconds + 60)
    words = done.stdout.split()
    if len(words) != 3:
        sys.exit(f"no download: {done.stderr}")
    size, total, first = (float(word) for word in words)
    return size / (total - first) / 1e6

PATHS = [
    ("window", ["--rate", "200mbit", "--rtt", "100ms"], "262144"),
    ("loss", ["--rate", "200mbit", "--rtt", "150ms", "--loss", "0.5%"], ""),
    ("filled", ["--rate", "100mbit", "--rtt", "20ms"], ""),
]
try:
    for name, path, rmem in PATHS:
        direct = measure(path, rmem, "0")
        print(f"{name:8} {'direct':>13} {direct:8.2f} MB/s", flush=True)
        for count in carriers:
            rate = measure(path, rmem, count)
            print(f"{name:8} {count:>4} carriers {rate:8.2f} MB/s {rate / direct:6.2f} x", flush=True)
finally:
    subprocess.run(["rm", "-rf", work])
PYTHON

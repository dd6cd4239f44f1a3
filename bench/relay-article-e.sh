#!/usr/bin/env bash
# Article E's two tables (Tokyo and Houston, 52059880 bytes) through `fullpipe relay`: E1, one carrier and the receive buffers
# that the article set, 350 ms; E2, several carriers, 300 ms. Both ends are namespaces of an emulated path of 250 Mbit/s,
# somewhat more than the article ever reached. Each line is a relay of its own: curl fetches the file three times through it,
# the first time over cold carriers. Payload in MB/s, beside the article's median. As root; needs python3 and curl.
#   bench/relay-article-e.sh [BINARY]
set -euo pipefail
cd "$(dirname "$0")/.."
exec python3 - "${1:-target/release/fullpipe}" <<'PYTHON'
import json, os, subprocess, sys, tempfile

binary = os.path.abspath(sys.argv[1])
work = tempfile.mkdtemp(prefix="fullpipe-relay-")
with open(f"{work}/file", "wb") as file:
    file.truncate(52059880)

def key(name):
    made = subprocess.run([binary, "keygen", f"{work}/{name}.key", "--json"], capture_output=True, check=True)
    return json.loads(made.stdout)["public_key"]

server_key = key("server")
with open(f"{work}/clients", "w") as file:
    file.write(key("client") + "\n")

# The sender's buffer is no limit: the article changed the receiver's.
SERVER = r"""
set -e
sysctl -qw net.ipv4.tcp_wmem="4096 65536 400000000"
ip route change $(ip -o -4 route show | head -1) congctl cubic
python3 -m http.server 8000 --directory $WORK > /dev/null 2>&1 &
exec "$BINARY" serve --listen 0.0.0.0:5606 --key $WORK/server.key --allow-key $WORK/clients --relay --allow '*:8000' \
    2> $WORK/far
"""

CLIENT = r"""
sysctl -qw net.ipv4.tcp_rmem="4096 131072 $RMEM"
until curl -sI -o /dev/null http://$FULLPIPE_SERVER:8000/file; do sleep 0.1; done
"$BINARY" relay --server $FULLPIPE_SERVER:5606 --key $WORK/client.key --server-key $SERVER_KEY \
    --listen 127.0.0.1:8080 --to $FULLPIPE_SERVER:8000 --carriers $COUNT 2> $WORK/near & relay=$!
until grep -q '^connected' $WORK/near; do sleep 0.1; done
# Every carrier's handshake takes some round trips.
sleep 4
for turn in 1 2 3; do
    curl -s --max-time 60 -o /dev/null -w '%{size_download} %{time_total} ' http://127.0.0.1:8080/file
done
kill -9 $relay
"""

def measure(rtt, rmem, count):
    environment = {**os.environ, "RMEM": str(rmem), "COUNT": str(count), "BINARY": binary, "WORK": work,
                   "SERVER_KEY": server_key}
    path = ["--rate", "250mbit", "--rtt", rtt, "--linger", "0s"]
    done = subprocess.run([binary, "link", *path, "--server", SERVER, "--", "sh", "-c", CLIENT],
                          env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=240)
    words = [float(word) for word in done.stdout.split()]
    if len(words) != 6 or any(size != 52059880 for size in words[::2]):
        sys.exit(f"no download: {done.stdout} {done.stderr}")
    return [size / seconds / 1e6 for size, seconds in zip(words[::2], words[1::2])]

E1 = [(2194304, 2.83), (4194304, 4.80), (6194304, 6.16), (16388608, 15.01), (32388608, 21.24), (323886080, 21.30)]
E2 = [(1, 7.14), (5, 10.14), (10, 14.08), (20, None), (40, None)]
try:
    for rmem, theirs in E1:
        rates = " ".join(f"{rate:6.2f}" for rate in measure("350ms", rmem, 1))
        print(f"E1 rmem {rmem:9}  {rates} MB/s  article {theirs:.2f}", flush=True)
    for count, theirs in E2:
        rates = " ".join(f"{rate:6.2f}" for rate in measure("300ms", 6291456, count))
        print(f"E2 {count:2} carriers  {rates} MB/s" + (f"  article {theirs:.2f}" if theirs else ""), flush=True)
finally:
    subprocess.run(["rm", "-rf", work])
PYTHON

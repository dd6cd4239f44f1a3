#!/usr/bin/env bash
# Measures what `fullpipe record --sockets` costs beside 20,000 sockets (the second argument), in a
# network namespace of its own: CPU as a part of a core, the most memory, and what it writes. Of the
# sockets so many (the third argument) move some bytes several times a second. Root; python3, iproute2.
#   bench/sockets.sh target/release/fullpipe [sockets] [busy] [seconds]
set -euo pipefail
binary=$(realpath "$1") sockets=${2:-20000} busy=${3:-2000} seconds=${4:-180}
unshare --net bash -c '
  set -euo pipefail
  binary=$1 sockets=$2 busy=$3 seconds=$4
  ip link set lo up
  echo "1024 65535" > /proc/sys/net/ipv4/ip_local_port_range
  place=$(mktemp -d)
  # Several processes, because a process may have few descriptors.
  keepers=()
  trap "kill \${keepers[@]} 2>/dev/null; rm -rf \"$place\"" EXIT
  trap "exit 130" INT TERM
  for (( left = sockets, moving = busy; left > 0; left -= 800, moving -= 800 )); do
    exec {ready}< <(exec python3 -c "
import socket, sys, time
moving = max(0, min(800, int(sys.argv[1]))) // 2
listener = socket.socket(); listener.bind((\"127.0.0.1\", 0)); listener.listen(100)
kept = []
for _ in range(400):
    near = socket.create_connection(listener.getsockname()); far, _ = listener.accept()
    near.sendall(b\"x\"); far.recv(1); kept.append((near, far))
print(\"ready\", flush=True)
while True:
    for near, far in kept[:moving]:
        near.sendall(b\"x\" * 1000); far.recv(1000)
    time.sleep(0.3)" "$moving")
    keepers+=($!)
    read -r -u "$ready" _
  done
  sleep 5
  "$binary" record --sockets --ring "$place/ring" --size 1GB --for "${seconds}s" --json > "$place/out" &
  recorder=$!
  # In clock ticks of 10 ms; fields 14 and 15 of stat.
  ticks() { awk "{print \$14 + \$15}" "/proc/$recorder/stat"; }
  sleep 30
  first=$(ticks)
  sleep $(( seconds - 32 ))
  all=$(ticks)
  memory=$(awk "/VmHWM/ {print \$2}" "/proc/$recorder/status")
  wait "$recorder"
  awk -v first="$first" -v all="$all" -v s="$seconds" -v memory="$memory" "BEGIN {
    printf \"%.2f s of CPU in the first 30 s, \", first / 100
    printf \"then %.2f %% of a core, %.1f MB at most\n\", (all - first) / (s - 32), memory / 1000
  }"
  grep -E "parts|size_bytes" "$place/out"
  "$binary" why --at -60s --for 50s --ring "$place/ring" --loopback --json \
    | python3 -c "import json, sys; told = json.load(sys.stdin); print({key: told[key] for key in (\"total\", \"busy\")}, told[\"recorded\"][\"looks_each_us\"])"
  rm -r "$place"
' bash "$binary" "$sockets" "$busy" "$seconds"

#!/usr/bin/env bash
# Compares the CPU time of a look at 20,000 sockets with `ss -tin`, in one run and in a network
# namespace of its own. Root; needs python3 and iproute2. Prints CPU milliseconds a look.
set -euo pipefail
cd "$(dirname "$0")/.."
sockets=${1:-20000}
cargo build --quiet --release -p fullpipe-host --example look
look="${CARGO_TARGET_DIR:-target}/release/examples/look"
unshare --net bash -c '
  set -euo pipefail
  look=$1 sockets=$2
  ip link set lo up
  echo "1024 65535" > /proc/sys/net/ipv4/ip_local_port_range
  # Several processes, because a process may have few descriptors.
  keepers=()
  for (( left = sockets; left > 0; left -= 800 )); do
    exec {ready}< <(exec python3 -c "
import socket, time
listener = socket.socket(); listener.bind((\"127.0.0.1\", 0)); listener.listen(100)
kept = []
for _ in range(400):
    near = socket.create_connection(listener.getsockname()); far, _ = listener.accept()
    near.sendall(b\"x\"); far.recv(1); kept += [near, far]
print(\"ready\", flush=True)
time.sleep(120)")
    keepers+=($!)
    read -r -u "$ready" _
  done
  cpu() { local TIMEFORMAT="%U %S"; { time "$@" > /dev/null; } 2>&1 | tail -1 | awk "{print (\$1 + \$2) * 1000}"; }
  rounds=10
  ours=$(cpu "$look" $rounds | awk "{print \$1 / $rounds}")
  theirs=$(for _ in $(seq $rounds); do cpu ss -tin; done | awk "{sum += \$1} END {print sum / NR}")
  "$look" 2
  echo "fullpipe: $ours ms a look; ss -tin: $theirs ms; ratio $(awk "BEGIN {print $theirs / $ours}")"
  kill "${keepers[@]}"
' bash "$look" "$sockets"

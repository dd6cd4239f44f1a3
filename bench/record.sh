#!/usr/bin/env bash
# Records full-size TCP packets at a rate, headers only, and compares what is in the file with what
# was sent. A veth pair between two network namespaces of its own; the sender gives the kernel
# segments of 64 KB, which it cuts to packets of 1500 bytes. Root; needs iproute2 and python3.
#   bench/record.sh target/release/fullpipe [MBIT] [SECONDS]
set -euo pipefail
fullpipe=$(realpath "$1") mbit=${2:-1000} seconds=${3:-10}
bench=$(realpath "$(dirname "$0")")
unshare --net bash -c '
  set -euo pipefail
  far=""; trap "kill \$far" EXIT
  unshare --net sleep $(($4 + 60)) & far=$!
  until [ "$(readlink /proc/self/ns/net)" != "$(readlink /proc/$far/ns/net)" ]; do :; done
  ip link add near type veth peer name far netns "$far"
  ip link set near gso_max_size 2000; ip link set near up
  nsenter --target "$far" --net ip link set far up
  python3 "$1/record.py" "$2" "$far" "$3" "$4"
' bash "$bench" "$fullpipe" "$mbit" "$seconds"

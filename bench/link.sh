#!/bin/bash
# Compares the link with other emulators in one run: requested and measured rate, delay and loss, and what
# each costs. Prints Markdown.
#   bench/link.sh [PEER..]               rattan toxiproxy netem
# rattan comes from crates.io and toxiproxy from the Go module proxy, once, into ~/.cache/fullpipe/bench; RATTAN and
# TOXIPROXY name programs to take instead, FULLPIPE ours (built otherwise). netem runs in a guest of `fullpipe lab
# kernel build`. A missing peer is named, with the reason. Needs root, python3, iproute2, unshare; some three minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo 'bench/link.sh: needs root, for the network namespaces of the peers' >&2; exit 3; }
[ $# -gt 0 ] || set -- rattan toxiproxy netem
cache=${XDG_CACHE_HOME:-$HOME/.cache}/fullpipe/bench
log=$(mktemp)
trap 'rm -f "$log"' EXIT INT TERM
mkdir -p "$cache"

if [ -z "${FULLPIPE:-}" ]; then
    cargo build --quiet --release
    FULLPIPE=${CARGO_TARGET_DIR:-target}/release/fullpipe
fi
export FULLPIPE

missing() { printf 'MISSING: %s: %s\n' "$1" "$2" | tee -a /dev/stderr; }

# have NAME PROGRAM COMMAND..: PROGRAM, made by COMMAND where it is not there yet.
have() {
    [ -x "$2" ] && return
    echo "$1: building it once, which may take minutes" >&2
    "${@:3}" >"$log" 2>&1 && [ -x "$2" ] && return
    missing "$1" "$(tail -n 1 "$log")"
    return 1
}

for peer; do
    case $peer in
    rattan)
        : "${RATTAN:=$cache/bin/rattan}"
        have rattan "$RATTAN" env -u CARGO_TARGET_DIR cargo install rattan --version 0.1.1 --locked --root "$cache" &&
            export RATTAN || unset RATTAN ;;
    toxiproxy)
        : "${TOXIPROXY:=$cache/bin/server}"
        have toxiproxy "$TOXIPROXY" env GOBIN="$cache/bin" go install github.com/Shopify/toxiproxy/v2/cmd/server@v2.5.0 &&
            export TOXIPROXY || unset TOXIPROXY ;;
    netem)
        if "$FULLPIPE" lab kernel list 2>/dev/null | grep -q .; then
            export NETEM_GUEST=1
        else
            missing netem 'no guest kernel; fullpipe lab kernel build makes one'
        fi ;;
    *) echo "bench/link.sh: no peer '$peer': rattan, toxiproxy, netem" >&2; exit 2 ;;
    esac
done

echo "$(date -u '+%Y-%m-%d %H:%M') UTC, Linux $(uname -r), $(nproc) CPUs ($(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1))"
echo "Load before (1, 5, 15 minutes): $(cut -d ' ' -f 1-3 /proc/loadavg)"
echo "Versions: $("$FULLPIPE" --version), ${RATTAN:+$("$RATTAN" --version | head -n 1), }${TOXIPROXY:+toxiproxy 2.5.0, }$(git describe --always --dirty)"
echo
python3 bench/link.py
echo
echo "Load after: $(cut -d ' ' -f 1-3 /proc/loadavg)"

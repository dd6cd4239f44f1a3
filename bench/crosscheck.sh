#!/bin/sh
# Runs the same paths with netem and with our own link in virtual time, and with our own link in real time:
#   bench/crosscheck.sh virtual DIR      runs both in virtual time (minutes, even on a busy machine)
#   bench/crosscheck.sh real DIR         runs ours in real time (4 minutes; the machine should be quiet)
#   bench/crosscheck.sh table DIR        writes goodput, median round trip and loss of each, and their differences, into
#                                        docs/src/link-engines.md
# Needs a guest's kernel (fullpipe lab kernel build) and python3; FULLPIPE names the program.
set -eu
cd "$(dirname "$0")/.."
. bench/machine.sh
program=${FULLPIPE:-${CARGO_TARGET_DIR:-target}/release/fullpipe}
[ $# -eq 2 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
what=$1 folder=$2
mkdir -p "$folder"
run() {
    name=$1
    shift
    made_on >"$folder/$name.made"
    rm -rf "$folder/$name"
    "$program" lab run bench/crosscheck.toml "$@" --out "$folder/$name" --json >"$folder/$name.json.part"
    mv "$folder/$name.json.part" "$folder/$name.json"
}
case $what in
virtual)
    run netem --engine virtual --link-engine netem --no-cache
    run own --engine virtual --link-engine own --no-cache
    ;;
real) run real --engine real --link-engine own ;;
table)
    python3 bench/crosscheck.py "$folder" >"$folder/table"
    bench/page.py docs/src/link-engines.md crosscheck-table <"$folder/table"
    cat "$folder/table"
    ;;
*) echo "bench/crosscheck.sh: '$what' is none of virtual, real, table" >&2; exit 2 ;;
esac

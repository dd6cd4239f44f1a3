#!/bin/sh
# Regenerates the captures of crates/flow/tests/lab/captures in virtual time; needs `fullpipe lab kernel build`.
set -eu
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT INT TERM
cargo build --quiet -p fullpipe-cli
cargo build --quiet -p fullpipe-flow --example headers_only
programs=${CARGO_TARGET_DIR:-target}/debug
own=crates/flow/tests/lab/captures
for suite in limits losses path tails order shared granted applications; do
    # Only our own link writes a truth log and has policers.
    case "$suite" in
        path | tails | order) engine=own ;;
        *) engine=netem ;;
    esac
    "$programs/fullpipe" lab run "$own/$suite.toml" --engine virtual --link-engine "$engine" --out "$folder/$suite" --keep-captures
    rm -rf "${own:?}/$suite"
    for run in "$folder/$suite"/*-"$suite"-*; do
        name=${run##*-"$suite"-}
        mkdir -p "$own/$suite/$name"
        for end in server client; do
            "$programs/examples/headers_only" "$run/$end.pcap" "$own/$suite/$name/$end.pcap.gz"
        done
        [ "$suite" != path ] || gzip -9nc "$run/link.log" > "$own/$suite/$name/link.log.gz"
    done
done
# Several connections in one capture, for the guide's samples.
three=
for limit in congestion_window_loss congestion_window_slow_start receive_window; do
    three="$three $own/limits/$limit/server.pcap.gz"
done
# shellcheck disable=SC2086 # a list of paths without blanks
"$programs/examples/headers_only" $three "$own/three.pcap.gz"

#!/usr/bin/env bash
# Moves much data through the relay on loopback and compares every byte: streams both ways whose carriers are cut all the
# time, and a download whose near and far end are killed and started again by turns. CI does it with 7GB (21 GB in all);
# the default here is 1 TB in all, which takes some two hours on two cores. It needs no disk.
#   bench/soak.sh [SIZE]      what each way and the download carry [334GB]
set -euo pipefail
cd "$(dirname "$0")/.."
export FULLPIPE_RELAY_SOAK="${1:-334GB}"
for trial in relay_carriers::a_long_stream relay_killed; do
  cargo test --release --package fullpipe-cli --test e2e -- "$trial"
done

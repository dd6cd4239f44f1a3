#!/bin/sh
# Attacks the built product for some minutes: one line for each attack, and "N passed, N failed" at the end. Talks only
# to loopback and to namespaces that fullpipe makes. FULLPIPE names the program, SECONDS_EACH bounds the random attacks.
# TRIALS=no leaves out the trials of the test-suite, which are built first.
set -u
cd "$(dirname "$0")/.."
fullpipe=${FULLPIPE:-${CARGO_TARGET_DIR:-target}/debug/fullpipe}
seconds=${SECONDS_EACH:-30}
output=$(mktemp)
trap 'rm -f "$output"' EXIT INT TERM
passed=0
failed=0

# Runs "$@" and tells how it went; what it printed is shown where it failed.
attack() {
    name=$1
    shift
    if "$@" > "$output" 2>&1; then
        passed=$((passed + 1))
        echo "passed  $name: $(tail -1 "$output")"
    else
        failed=$((failed + 1))
        echo "FAILED  $name"
        tail -20 "$output"
    fi
}

for name in hostile_captures scans bombs hostile_names hostile_answers foreign_parts silent_scrapers strangers \
    random_kills hashed_uploads; do
    attack "$name" timeout 600 python3 bench/attack.py "$name" "$fullpipe" "$seconds"
done
if [ "${TRIALS:-yes}" != no ]; then
    for group in bad_input cleanup link window_control; do
        attack "trials: $group" timeout 900 cargo test --quiet -p fullpipe-cli --test e2e -- "$group"
    done
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

#!/bin/sh
# Attacks the built product, for some minutes: one line an attack, and "N passed, N failed" at the end. Talks to nothing
# but loopback and namespaces that fullpipe makes. FULLPIPE names the program, SECONDS_EACH bounds the raw attacks.
# TRIALS=no leaves out the trials of the test-suite, which are built first.
set -u
cd "$(dirname "$0")/.."
fullpipe=${FULLPIPE:-${CARGO_TARGET_DIR:-target}/debug/fullpipe}
seconds=${SECONDS_EACH:-30}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT INT TERM
passed=0
failed=0

# Runs "$@" and tells how it went; what it printed is shown where it failed.
attack() {
    name=$1
    shift
    if "$@" > "$folder/out" 2>&1; then
        passed=$((passed + 1))
        echo "passed  $name"
    else
        failed=$((failed + 1))
        echo "FAILED  $name"
        tail -20 "$folder/out"
    fi
}

# Captures of the repository with bytes changed at random: each is analysed or refused (0 or 4), never a panic or a hang.
hostile_captures() {
    python3 - "$fullpipe" "$seconds" "$folder" <<'PYTHON'
import gzip, pathlib, random, subprocess, sys, time
program, seconds, folder = sys.argv[1], float(sys.argv[2]), pathlib.Path(sys.argv[3])
seeds = sorted(pathlib.Path("crates/flow/tests/lab/captures").rglob("*.pcap.gz"))
assert seeds, "no captures to change"
end, tried = time.monotonic() + seconds, 0
while time.monotonic() < end:
    seed = random.randrange(2**32)
    draw = random.Random(seed)
    data = bytearray(gzip.decompress(draw.choice(seeds).read_bytes())[:200_000])
    for _ in range(draw.randrange(1, 200)):
        data[draw.randrange(len(data))] = draw.randrange(256)
    (folder / "hostile").write_bytes(data[: draw.randrange(1, len(data))])
    done = subprocess.run([program, "analyze", str(folder / "hostile")], capture_output=True, timeout=60)
    assert done.returncode in (0, 4), f"seed {seed}: exit code {done.returncode}: {done.stderr[-500:]}"
    tried += 1
print(tried, "captures")
PYTHON
}

attack "hostile captures for $seconds s" hostile_captures
if [ "${TRIALS:-yes}" != no ]; then
    for group in bad_input cleanup link::; do
        attack "trials: $group" timeout 900 cargo test --quiet -p fullpipe-cli --test e2e -- "$group"
    done
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

#!/bin/sh
# Attacks the built product for a few minutes: one line for each attack, and "N passed, N failed" at the end. Talks only
# to loopback and to namespaces that fullpipe makes. FULLPIPE names the program, SECONDS_EACH bounds the raw attacks.
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
        echo "passed  $name: $(tail -1 "$folder/out")"
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

# Links of which a process chosen at random is killed (SIGKILL) at a random moment: soon nothing of them is left.
random_kills() {
    python3 - "$fullpipe" "$seconds" <<'PYTHON'
import os, pathlib, random, signal, subprocess, sys, time
program, seconds = sys.argv[1], float(sys.argv[2])

def of_link(mark):
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                alive = (entry / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
                if alive and mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                pass
    return found

end, tried = time.monotonic() + seconds, 0
while time.monotonic() < end:
    mark = f"ATTACK_MARK={os.getpid()}-{tried}"
    name, value = mark.split("=")
    link = subprocess.Popen([program, "link", "-q", "--rtt", "10ms", "--", "sleep", "20"],
                            env=dict(os.environ, **{name: value}), stderr=subprocess.DEVNULL)
    time.sleep(random.uniform(0, 1.5))
    victims = of_link(mark.encode())
    if victims:
        try:
            os.kill(random.choice(victims), signal.SIGKILL)
        except ProcessLookupError:
            pass
    else:
        link.kill()
    link.wait(60)
    limit = time.monotonic() + 30
    while left := of_link(mark.encode()):
        assert time.monotonic() < limit, f"processes {left} are left"
        time.sleep(0.05)
    tried += 1
assert tried > 0
print(tried, "links")
PYTHON
}

# Uploads of random lengths over random paths with losses: each arrives as it was sent, or the link says that it did not.
hashed_uploads() {
    python3 - "$fullpipe" "$seconds" "$folder" <<'PYTHON'
import hashlib, pathlib, queue, random, socket, subprocess, sys, threading, time
program, seconds, file = sys.argv[1], float(sys.argv[2]), pathlib.Path(sys.argv[3]) / "upload"
listener, arrived = socket.create_server(("127.0.0.1", 0)), queue.Queue()

def serve():
    while True:
        connection, _ = listener.accept()
        digest = hashlib.sha256()
        while data := connection.recv(65536):
            digest.update(data)
        arrived.put(digest.hexdigest())
        connection.close()

threading.Thread(target=serve, daemon=True).start()
upload = f"cat {file} > /dev/tcp/$FULLPIPE_SERVER/{listener.getsockname()[1]}"
end, tried, total = time.monotonic() + seconds, 0, 0
while time.monotonic() < end:
    data = random.randbytes(random.choice([1, 1000, 20_000, 300_000, 2_000_000]))
    file.write_bytes(data)
    path = ["--rtt", f"{random.choice([0, 1, 20, 100])}ms", "--rate", f"{random.choice([20, 100, 1000])}mbit",
            "--loss", random.choice(["0%", "0.1%", "1%"])]
    done = subprocess.run([program, "link", "-q", *path, "--", "bash", "-c", upload], capture_output=True, timeout=120)
    assert done.returncode == 0, f"{path}, {len(data)} B: {done}"
    digest = arrived.get(timeout=30)
    assert digest == hashlib.sha256(data).hexdigest(), f"{path}, {len(data)} B: other bytes have arrived"
    tried, total = tried + 1, total + len(data)
assert tried > 0
print(tried, "uploads,", total, "bytes")
PYTHON
}

attack "hostile captures for $seconds s" hostile_captures
attack "kills at random for $seconds s" random_kills
attack "hashed uploads for $seconds s" hashed_uploads
if [ "${TRIALS:-yes}" != no ]; then
    for group in bad_input cleanup link; do
        attack "trials: $group" timeout 900 cargo test --quiet -p fullpipe-cli --test e2e -- "$group"
    done
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

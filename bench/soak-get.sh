#!/usr/bin/env bash
# A soak of `fullpipe get`: files of random bytes from nginx over loopback, whose server is killed (SIGKILL) at random
# while they arrive, and started again. Each file is fetched with 1, 4 or auto connections, at full speed or limited,
# and must have its SHA-256; a run that gives up is started again and must continue. Prints what was moved.
# Needs python3 and nginx, and twice a file's size in the folder for temporary files.
#   bench/soak-get.sh [BINARY] [GB] [SEED]
set -euo pipefail
cd "$(dirname "$0")/.."
exec python3 - "${1:-target/release/fullpipe}" "${2:-20}" "${3:-1}" <<'PYTHON'
import hashlib, json, os, random, shutil, signal, socket, subprocess, sys, tempfile, threading, time

signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
binary, goal, numbers = os.path.abspath(sys.argv[1]), float(sys.argv[2]) * 1e9, random.Random(int(sys.argv[3]))
work = tempfile.mkdtemp(prefix="fullpipe-soak-")
os.chmod(work, 0o755)
SIZE = 500_000_000

digest = hashlib.sha256()
with open(f"{work}/file", "wb") as file:
    for _ in range(SIZE // 1_000_000):
        block = numbers.randbytes(1_000_000)
        digest.update(block)
        file.write(block)
with socket.create_server(("127.0.0.1", 0)) as one:
    port = one.getsockname()[1]
with open(f"{work}/nginx.conf", "w") as file:
    file.write(f"""daemon off; master_process off; error_log {work}/error.log; pid {work}/pid; user root;
events {{}} http {{ access_log off; sendfile on; server {{ listen 127.0.0.1:{port} reuseport; root {work}; }} }}""")

def start():
    return subprocess.Popen(["nginx", "-c", f"{work}/nginx.conf"], stderr=subprocess.DEVNULL)

ended, kills = threading.Event(), 0

def kill_at_random():
    """Kills the server every 0.1 to 2 s; it is away for up to 0.3 s."""
    global kills
    server = start()
    while not ended.wait(numbers.uniform(0.1, 2.0)):
        server.kill()
        server.wait()
        kills += 1
        time.sleep(numbers.uniform(0.0, 0.3))
        server = start()
    server.kill()
    server.wait()

killer = threading.Thread(target=kill_at_random)
killer.start()
moved = files = runs = retries = 0
begun = time.monotonic()
try:
    while moved < goal:
        options = ["--connections", numbers.choice(["1", "4", "auto"]), "--retry", "3", "--sha256", digest.hexdigest()]
        if numbers.random() < 0.2:
            options += ["--limit-rate", "200M"]
        for _ in range(50):
            runs += 1
            got = subprocess.run([binary, "get", "--json", *options, "-o", f"{work}/out",
                                  f"http://127.0.0.1:{port}/file"], capture_output=True, text=True, timeout=300)
            if got.returncode == 0:
                break
            if os.path.exists(f"{work}/out"):
                sys.exit(f"a file under its final name after: {got.stderr}")
            if got.returncode != 1:
                sys.exit(f"exit code {got.returncode}: {got.stderr}")
        else:
            sys.exit(f"no file after 50 runs: {got.stderr}")
        retries += json.loads(got.stdout)["files"][0]["retries"]
        with open(f"{work}/out", "rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != digest.hexdigest():
                sys.exit(f"wrong bytes with {options}")
        left = sorted(name for name in os.listdir(work) if name.startswith("out"))
        if left != ["out"]:
            sys.exit(f"left behind: {left}")
        os.unlink(f"{work}/out")
        moved, files = moved + SIZE, files + 1
    print(f"{moved / 1e9:.1f} GB in {files} files, every hash right, in {time.monotonic() - begun:.0f} s: "
          f"the server was killed {kills} times, {retries} requests of the last runs were tried again, "
          f"{runs - files} runs gave up and were continued")
finally:
    ended.set()
    killer.join()
    shutil.rmtree(work)
PYTHON

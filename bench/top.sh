#!/usr/bin/env bash
# What `fullpipe top` and `fullpipe export` cost: share of one core at one look a second, with SOCKETS connections of
# which each sends every second. Everything happens in a network namespace of its own; needs root and Python.
#   bench/top.sh [BINARY] [SOCKETS] [SECONDS]
set -euo pipefail
cd "$(dirname "$0")/.."
binary=${1:-target/release/fullpipe} sockets=${2:-1000} seconds=${3:-30}
exec unshare --net --mount-proc --pid --fork python3 - "$binary" "$sockets" "$seconds" <<'PYTHON'
import fcntl, os, pty, resource, select, socket, struct, subprocess, sys, termios, threading, time

binary, pairs, seconds = sys.argv[1], int(sys.argv[2]) // 2, int(sys.argv[3])
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
resource.setrlimit(resource.RLIMIT_NOFILE, (2 * pairs + 100, 2 * pairs + 100))
listener = socket.create_server(("127.0.0.1", 5001), backlog=1024)
ends = []
for _ in range(pairs):
    client = socket.create_connection(listener.getsockname())
    ends.append((client, listener.accept()[0]))

def traffic():
    block = b"x" * 1400
    while True:
        for client, server in ends:
            client.send(block)
            server.recv(4096)
        time.sleep(0.9)

threading.Thread(target=traffic, daemon=True).start()

def cpu(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

def measure(name, arguments, ready):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    child = subprocess.Popen([binary, *arguments], stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    seen = b""
    while ready not in seen:
        seen += os.read(master, 65536)
    end = time.monotonic() + 3  # its processes are found once
    drain(master, end)
    start, before = time.monotonic(), cpu(child.pid)
    drain(master, start + seconds)
    share = (cpu(child.pid) - before) / (time.monotonic() - start)
    child.terminate()
    drain(master, time.monotonic() + 0.5)
    child.wait()
    print(f"{name}: {2 * pairs} busy sockets, {seconds} s at 1 Hz: {100 * share:.2f} % of a core", flush=True)

def drain(fd, end):
    while (left := end - time.monotonic()) > 0:
        if select.select([fd], [], [], left)[0]:
            os.read(fd, 65536)

measure("top", ["top", "--interval", "1s"], b"fullpipe top")
if "export" in subprocess.run([binary, "--help"], capture_output=True, text=True).stdout:
    measure("export", ["export", "--listen", "127.0.0.1:0"], b"serving")
PYTHON

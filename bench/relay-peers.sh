#!/usr/bin/env bash
# `fullpipe relay` beside toxiproxy and frp on loopback: CPU time and goodput of a download, the round trip of 100 bytes, and
# the memory of 1,000 idle streams. Toxiproxy is one process without toxics, frp and the relay are two each. Peers that are
# not there are said and left out; they are built outside this repository:
#   GOPATH=/tmp/peers go install github.com/Shopify/toxiproxy/v2/cmd/server@latest
#   git clone https://github.com/fatedier/frp, then `make` there
#   bench/relay-peers.sh [BINARY] [GIGABYTES] [TOXIPROXY-SERVER] [FOLDER-OF-FRP]
set -euo pipefail
cd "$(dirname "$0")/.."
exec python3 - "${1:-target/release/fullpipe}" "${2:-4}" "${3:-/tmp/peers/bin/server}" "${4:-/tmp/peers/bin}" <<'PYTHON'
import http.client, json, os, signal, socket, subprocess, sys, tempfile, threading, time

binary, gigabytes = os.path.abspath(sys.argv[1]), int(sys.argv[2])
toxiproxy, frp = sys.argv[3], sys.argv[4]
servers = []
work = tempfile.mkdtemp(prefix="fullpipe-peers-")
LENGTH = gigabytes * 10**9
TICK = os.sysconf("SC_CLK_TCK")

with open(f"{work}/file", "wb") as file:
    file.truncate(LENGTH)

def serve(answer):
    """A server on a free port, in a process of its own; `answer` has each of its connections, on a thread."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    if child := os.fork():
        servers.append(child)
        return listener.getsockname()[1]
    while True:
        stream, _ = listener.accept()
        threading.Thread(target=answer, args=(stream,), daemon=True).start()

def download(stream):
    stream.recv(1)
    with open(f"{work}/file", "rb") as file:
        try:
            stream.sendfile(file)
        except OSError:
            pass
    stream.close()

def echo(stream):
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        while data := stream.recv(4096):
            stream.sendall(data)
    except OSError:
        pass
    stream.close()

DOWNLOAD, ECHO = serve(download), serve(echo)

def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]

def key(name):
    made = subprocess.run([binary, "keygen", f"{work}/{name}.key", "--json"], capture_output=True, check=True)
    return json.loads(made.stdout)["public_key"]

def start(*words):
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=work)

def until_open(port):
    for _ in range(200):
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.05)
    sys.exit(f"nothing listens on port {port}")

def relay(to, carriers, keys):
    far, near = free_port(), free_port()
    far_keys = ["--key", f"{work}/server.key", "--allow-key", f"{work}/clients"] if keys else []
    near_keys = ["--key", f"{work}/client.key", "--server-key", server_key] if keys else []
    ends = [start(binary, "serve", "--listen", f"127.0.0.1:{far}", "--relay", "--allow", "127.0.0.0/8:*", *far_keys)]
    until_open(far)
    ends += [start(binary, "relay", "--server", f"127.0.0.1:{far}", "--listen", f"127.0.0.1:{near}",
                   "--to", f"127.0.0.1:{to}", "--carriers", str(carriers), *near_keys)]
    return near, ends

def toxi(to):
    api, near = free_port(), free_port()
    ends = [start(toxiproxy, "-port", str(api))]
    until_open(api)
    connection = http.client.HTTPConnection("127.0.0.1", api)
    proxy = {"name": "x", "listen": f"127.0.0.1:{near}", "upstream": f"127.0.0.1:{to}", "enabled": True}
    connection.request("POST", "/proxies", json.dumps(proxy))
    assert connection.getresponse().status == 201
    return near, ends

def frp_pair(to):
    far, near = free_port(), free_port()
    with open(f"{work}/frps.toml", "w") as file:
        file.write(f'bindAddr = "127.0.0.1"\nbindPort = {far}\nproxyBindAddr = "127.0.0.1"\n')
    with open(f"{work}/frpc.toml", "w") as file:
        file.write(f'serverAddr = "127.0.0.1"\nserverPort = {far}\n[[proxies]]\nname = "x"\ntype = "tcp"\n'
                   f'localIP = "127.0.0.1"\nlocalPort = {to}\nremotePort = {near}\n')
    ends = [start(f"{frp}/frps", "-c", f"{work}/frps.toml")]
    until_open(far)
    return near, ends + [start(f"{frp}/frpc", "-c", f"{work}/frpc.toml")]

def cpu(ends):
    total = 0
    for end in ends:
        with open(f"/proc/{end.pid}/stat") as file:
            words = file.read().rsplit(")", 1)[1].split()
        total += (int(words[11]) + int(words[12])) / TICK
    return total

def resident(ends):
    pages = 0
    for end in ends:
        with open(f"/proc/{end.pid}/statm") as file:
            pages += int(file.read().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

def stop(ends):
    for end in ends:
        end.kill()
        end.wait()

def fetch(port):
    stream = socket.create_connection(("127.0.0.1", port))
    stream.sendall(b"x")
    buffer, got, begun = bytearray(1 << 20), 0, time.monotonic()
    while count := stream.recv_into(buffer):
        got += count
    if got != LENGTH:
        sys.exit(f"{got} of {LENGTH} bytes")
    return got / (time.monotonic() - begun) / 1e6

def round_trip(port):
    stream = socket.create_connection(("127.0.0.1", port))
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    times = []
    for _ in range(3000):
        begun = time.monotonic()
        stream.sendall(bytes(100))
        got = 0
        while got < 100:
            got += len(stream.recv(100))
        times.append(time.monotonic() - begun)
    return sorted(times)[len(times) // 2] * 1e6

def measure(name, make):
    port, ends = make(DOWNLOAD)
    until_open(port)
    time.sleep(1)
    before = cpu(ends)
    rates = sorted(fetch(port) for _ in range(3))
    seconds = (cpu(ends) - before) / (3 * gigabytes)
    stop(ends)
    port, ends = make(ECHO)
    until_open(port)
    time.sleep(1)
    trip = round_trip(port)
    before = resident(ends)
    idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(1000)]
    for stream in idle:
        stream.sendall(b"x")
    for stream in idle:
        stream.recv(1)
    memory = resident(ends) - before
    stop(ends)
    cost = f"{seconds:10.3f}" if ends else " " * 10
    held = f"{memory:13.1f}" if ends else ""
    print(f"{name:32}{cost} s/GB {rates[1]:8.0f} MB/s {trip:9.0f} us {held}", flush=True)
    return seconds

server_key = key("server")
with open(f"{work}/clients", "w") as file:
    file.write(key("client") + "\n")
print(f"{'':32}  CPU a GB       goodput    100 bytes   1000 idle: MiB")
try:
    measure("direct", lambda to: (to, []))
    ours = [measure(f"relay, {count} carriers{', TLS' * keys}", lambda to: relay(to, count, keys))
            for count in (1, 4) for keys in (False, True)]
    theirs = {}
    if os.access(toxiproxy, os.X_OK):
        theirs["toxiproxy"] = measure("toxiproxy", toxi)
    if os.access(f"{frp}/frps", os.X_OK):
        theirs["frp"] = measure("frp (TLS, its default)", frp_pair)
    for name in {"toxiproxy", "frp"} - set(theirs):
        print(f"SKIPPED: {name} is not there")
    plain, tls = min(ours[::2]), min(ours[1::2])
    for name, seconds in theirs.items():
        mine = tls if name == "frp" else plain
        print(f"{name} takes {seconds / mine:.2f} times our CPU time")
finally:
    for server in servers:
        os.kill(server, signal.SIGKILL)
    subprocess.run(["rm", "-rf", work])
PYTHON

#!/usr/bin/env python3
"""Captures how real programs begin to speak: the captures of crates/flow/tests/greetings.

  bench/greetings.py DIR     as root, with openssh-server, nginx, curl, rsync, postgresql, nodejs,
                             golang, openssl, tshark

Each program has its own capture, on the loopback of a network namespace whose packets are of 1500
bytes, so that a ClientHello of 1,800 takes two. The test compares what fullpipe reads in them with
what TShark reads, and with the versions that the programs themselves print.
"""

import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

GO_CLIENT = """package main

import (
\t"crypto/tls"
\t"os"
)

func main() {
\tconnection, err := tls.Dial("tcp", os.Args[1], &tls.Config{
\t\tInsecureSkipVerify: true, ServerName: "go.example.test", NextProtos: []string{"h2", "http/1.1"},
\t})
\tif err != nil {
\t\tpanic(err)
\t}
\tconnection.Close()
}
"""

NODE_CLIENT = """const http2 = require('http2');
const client = http2.connect('http://127.0.0.1:8081', {settings: {initialWindowSize: 1048576}});
const request = client.request({':method': 'POST', ':path': '/a.B/C', 'content-type': 'application/grpc',
  'te': 'trailers'});
request.on('response', () => {});
request.on('error', () => {});
request.on('close', () => client.close());
request.resume();
request.end();
"""

NGINX = """pid {dir}/nginx.pid;
error_log {dir}/error.log;
daemon off;
user root;
events {{}}
http {{
  access_log off;
  client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/fcgi;
  uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
  server {{ listen 8080; root {dir}/www; }}
  server {{ listen 8081 http2; root {dir}/www; }}
  server {{ listen 8443 ssl http2; root {dir}/www;
    ssl_certificate {dir}/cert.pem; ssl_certificate_key {dir}/key.pem; ssl_protocols TLSv1.2 TLSv1.3; }}
}}
"""


def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: exit code {done.returncode}")
    return done.stdout


def wait_for(port):
    """Returns when somebody listens there."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    sys.exit(f"nobody listens on port {port}")


class Capture:
    """The packets of one port, from before its first to after its last."""

    def __init__(self, folder, name, port):
        self.path = folder / f"{name}.pcap"
        # TShark says that it captures when it does.
        self.process = subprocess.Popen(
            ["tshark", "-n", "-i", "lo", "-s", "0", "-F", "pcap", "-w", self.path, "-f", f"tcp port {port}"],
            stderr=subprocess.PIPE, text=True, env={**os.environ, "HOME": str(folder)})
        for line in self.process.stderr:
            if "Capturing on" in line:
                break
        time.sleep(1)

    def end(self):
        time.sleep(1)
        self.process.send_signal(signal.SIGINT)
        self.process.wait()
        with gzip.GzipFile(f"{self.path}.gz", "wb", mtime=0) as packed:
            packed.write(self.path.read_bytes())
        self.path.unlink()


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if os.environ.get("GREETINGS_INSIDE") is None:
        os.environ["GREETINGS_INSIDE"] = "1"
        os.execvp("unshare", ["unshare", "--net", "--mount", sys.executable, __file__, sys.argv[1]])
    out = pathlib.Path(sys.argv[1]).absolute()
    out.mkdir(parents=True, exist_ok=True)
    run("ip", "link", "set", "lo", "up", "mtu", "1500", "gso_max_segs", "1")
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        scratch.chmod(0o755)
        running = []
        try:
            capture_all(out, scratch, running)
        finally:
            for process in running:
                process.terminate()
                process.wait()


def capture_all(out, scratch, running):
    (scratch / "www").mkdir()
    (scratch / "www/file").write_bytes(b"0123456789" * 10)
    run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=example.test",
        "-keyout", scratch / "key.pem", "-out", scratch / "cert.pem")
    ssh(out, scratch, running)
    nginx(out, scratch, running)
    rsync(out, scratch, running)
    postgresql(out, scratch, running)
    programs = {
        "openssh": re.search(r"OpenSSH_[0-9.p]+", run("sh", "-c", "ssh -V 2>&1")).group(),
        "nginx": re.search(r"nginx/[0-9.]+", run("sh", "-c", "nginx -v 2>&1")).group(),
        "curl": "curl/" + run("curl", "--version").split()[1],
        "rsync": re.search(r"protocol version (\d+)", run("rsync", "--version")).group(1) + ".0",
        "postgresql": run("postgres", "--version").split()[2],
    }
    (out / "programs.json").write_text(json.dumps(programs, indent=2) + "\n")


def ssh(out, scratch, running):
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", scratch / "host")
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", scratch / "user")
    os.makedirs("/run/sshd", exist_ok=True)
    (scratch / "sshd.conf").write_text(
        f"Port 2222\nListenAddress 127.0.0.1\nHostKey {scratch}/host\nStrictModes no\nUsePAM no\n"
        f"AuthorizedKeysFile {scratch}/user.pub\nPidFile none\n")
    running.append(subprocess.Popen([shutil.which("sshd"), "-D", "-f", scratch / "sshd.conf"]))
    wait_for(2222)
    capture = Capture(out, "openssh", 2222)
    run("ssh", "-p", "2222", "-i", scratch / "user", "-o", "StrictHostKeyChecking=no", "-F", "none",
        "-o", "UserKnownHostsFile=/dev/null", "127.0.0.1", "true")
    capture.end()


def nginx(out, scratch, running):
    (scratch / "nginx.conf").write_text(NGINX.format(dir=scratch))
    running.append(subprocess.Popen(["nginx", "-c", scratch / "nginx.conf"]))
    for port in (8080, 8081, 8443):
        wait_for(port)
    resolve = ["--resolve", "curl.example.test:8443:127.0.0.1"]
    url = "https://curl.example.test:8443/file"
    for name, options in [("curl-tls13-h2", []), ("curl-tls12-h2", ["--tls-max", "1.2"]),
                          ("curl-tls12-http1", ["--tls-max", "1.2", "--http1.1"])]:
        capture = Capture(out, name, 8443)
        run("curl", "-sk", "-o", "/dev/null", *resolve, *options, url)
        capture.end()
    capture = Capture(out, "curl-http1", 8080)
    run("curl", "-s", "-o", "/dev/null", "http://127.0.0.1:8080/file")
    capture.end()
    capture = Capture(out, "curl-http2", 8081)
    run("curl", "-s", "--http2-prior-knowledge", "-o", "/dev/null", "http://127.0.0.1:8081/file")
    capture.end()
    capture = Capture(out, "node-grpc", 8081)
    (scratch / "client.js").write_text(NODE_CLIENT)
    run("node", scratch / "client.js")
    capture.end()
    (scratch / "client.go").write_text(GO_CLIENT)
    go = {**os.environ, "GOCACHE": str(scratch / "go"), "HOME": str(scratch), "PATH": os.environ["PATH"] + ":/usr/local/go/bin"}
    run("go", "build", "-o", scratch / "client", scratch / "client.go", env=go)
    capture = Capture(out, "go-tls13", 8443)
    run(scratch / "client", "127.0.0.1:8443")
    capture.end()


def rsync(out, scratch, running):
    (scratch / "rsyncd.conf").write_text(f"use chroot = no\n[www]\npath = {scratch}/www\n")
    running.append(subprocess.Popen(
        ["rsync", "--daemon", "--no-detach", "--port=8730", f"--config={scratch}/rsyncd.conf"]))
    wait_for(8730)
    capture = Capture(out, "rsync", 8730)
    run("rsync", "rsync://127.0.0.1:8730/www/")
    capture.end()


def postgresql(out, scratch, running):
    base = scratch / "base"
    base.mkdir()
    shutil.chown(base, "nobody")
    postgres = pathlib.Path(shutil.which("postgres")).resolve()
    (base / "password").write_text("secret\n")
    run("runuser", "-u", "nobody", "--", postgres.parent / "initdb", "-A", "scram-sha-256", "-U", "me", "-D",
        base / "data", f"--pwfile={base}/password")
    for name in ("cert.pem", "key.pem"):
        shutil.copy(scratch / name, base / name)
        shutil.chown(base / name, "nobody")
        (base / name).chmod(0o600)
    running.append(subprocess.Popen(
        ["runuser", "-u", "nobody", "--", postgres, "-D", base / "data", "-p", "5433", "-k", base, "-c", "ssl=on",
         "-c", f"ssl_cert_file={base}/cert.pem", "-c", f"ssl_key_file={base}/key.pem"]))
    wait_for(5433)
    time.sleep(2)
    to = "host=db.example.test hostaddr=127.0.0.1 port=5433 user=me password=secret dbname=postgres"
    for name, mode in [("postgresql", "disable"), ("postgresql-tls", "require")]:
        capture = Capture(out, name, 5433)
        run("psql", "-c", "select 1", f"{to} sslmode={mode}")
        capture.end()


main()

"""The servers and clients of `bench/windows.py`: real programs, each with the window that is asked for.

A function is given the transfer (a tuple: program, direction, size of the window or setting, ..), the
bytes to move in all, and an empty folder. It answers with the command of the server and of the client, in
which {server} is the server's address."""
import os, shutil, subprocess, sys
from pathlib import Path

PYTHON = os.environ.get("PYTHON", sys.executable)
MIB, KIB = 1 << 20, 1 << 10
SFTP_BLOCK = 32 * KIB
# A row of PostgreSQL is 11 bytes longer than its text.
ROW = KIB

SETTINGS = {
    "tcp_rmem": "sysctl -qw net.ipv4.tcp_rmem='4096 131072 700000'; ",
    "tcp_wmem": "sysctl -qw net.ipv4.tcp_wmem='4096 16384 900000'; ",
}


def script(name):
    return f"{PYTHON} {Path(__file__).with_name(name)}"


def source_of(size, folder):
    source = folder / "source"
    with open(source, "wb") as file:
        file.truncate(size)
    return source


def certificate(folder):
    subprocess.run(
        f"openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=example.net -days 2 -keyout {folder}/key.pem "
        f"-out {folder}/cert.pem", shell=True, check=True, stderr=subprocess.DEVNULL,
    )


def sshd(folder):
    """A server of SSH, and the options of its clients."""
    for path in (folder / "key", folder / "host"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    shutil.copy(folder / "key.pub", folder / "authorized")
    config = folder / "sshd"
    config.write_text(
        f"Port 2222\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\nPermitRootLogin yes\n"
        f"StrictModes no\nUsePAM no\nPidFile {folder}/pid\nSubsystem sftp internal-sftp\n"
    )
    options = f"-q -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -i {folder / 'key'}"
    return f"/usr/sbin/sshd -D -f {config}", options


def ssh(what, size, folder):
    server, options = sshd(folder)
    setting = what[2] if len(what) > 2 else None
    if setting == "tcp_wmem":
        server = SETTINGS[setting] + "exec " + server
    before = SETTINGS[setting] if setting == "tcp_rmem" else ""
    client = f"ssh {options} -p 2222 root@{{server}}"
    if what[1] == "down":
        return server, before + f"{client} 'head -c {size} /dev/zero' > /dev/null"
    return server, before + f"head -c {size} /dev/zero | {client} 'cat > /dev/null'"


def sftp(what, size, folder):
    server, options = sshd(folder)
    source = source_of(size, folder)
    verb = f"get {source} /dev/null" if what[1] == "get" else f"put {source} {folder}/arrived"
    return server, f"echo '{verb}' | sftp {options} -P 2222 -R {what[2]} -B {SFTP_BLOCK} -b - root@{{server}}"


def rsync_ssh(what, size, folder):
    server, options = sshd(folder)
    ends = [f"root@{{server}}:{source_of(size, folder)}", f"{folder}/arrived"]
    if what[1] == "up":
        ends = [f"{folder}/source", f"root@{{server}}:{folder}/arrived"]
    return server, f"rsync --whole-file -e 'ssh {options} -p 2222' {' '.join(ends)}"


def rsync_daemon(_what, size, folder):
    source_of(size, folder)
    config = folder / "rsyncd.conf"
    config.write_text(f"port = 8730\nuse chroot = no\nuid = 0\ngid = 0\n[all]\npath = {folder}\nread only = yes\n")
    server = f"rsync --daemon --no-detach --config={config} < /dev/null"
    return server, f"rsync --whole-file rsync://{{server}}:8730/all/source {folder}/arrived"


def h2(what, size, folder):
    _, direction, window, tls = what
    if tls == "tls":
        certificate(folder)
    talk, pem = script("windows_h2.py"), folder if tls == "tls" else "-"
    common = f"{pem} {direction} {window} {size}"
    return f"{talk} server {common}", f"{talk} client {common} {{server}}"


def grpc(what, size, _folder):
    _, direction, window = what
    talk = script("windows_grpc.py")
    return f"{talk} server {direction} {window} {size}", f"{talk} client {direction} {window} {size} {{server}}"


NGINX = """daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log; user root;
events {{}}
http {{
  access_log off; client_max_body_size 0; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  server {{ listen 8443 ssl http2; ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;
    client_body_buffer_size {window}; proxy_request_buffering off; proxy_http_version 1.1;
    location / {{ root {folder}; }}
    location /put/ {{ proxy_pass http://unix:{folder}/behind.sock; }} }}
  server {{ listen unix:{folder}/behind.sock; location / {{ root {folder}; dav_methods PUT; create_full_put_path on; }} }}
}}
"""


def nginx(what, size, folder):
    """Uploads by curl to an nginx that passes them on as they come, with a buffer of that size;
    downloads by nghttp, whose windows are one byte less than a power of two, or by curl, which has a
    window that nothing here fills."""
    _, client, window = what
    certificate(folder)
    source = source_of(size, folder)
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, window=window if client == "put" else "128k"))
    url = "https://{server}:8443"
    bits = (window or 1).bit_length()
    commands = {
        "put": f"curl -sk --http2 -o /dev/null -T {source} {url}/put/arrived",
        "get": f"curl -sk --http2 -o /dev/null {url}/source",
        "nghttp": f"nghttp -n -w {bits} -W {bits} {url}/source",
    }
    return f"/usr/sbin/nginx -c {config}", commands[client]


POSTGRES = "/usr/lib/postgresql/15/bin"
AS_POSTGRES = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]


def psql(what, size, folder):
    """A cursor that fetches so many rows at a time, or all of them at once."""
    folder.chmod(0o755)
    data = folder / "pg"
    data.mkdir()
    shutil.chown(data, "postgres", "postgres")
    making = [*AS_POSTGRES, f"{POSTGRES}/initdb", "-D", data, "-U", "postgres", "-A", "trust", "-N", "--no-instructions"]
    subprocess.run(making, check=True, stdout=subprocess.DEVNULL, cwd="/")
    with open(data / "pg_hba.conf", "a") as access:
        access.write("host all all 0.0.0.0/0 trust\n")
    server = " ".join(AS_POSTGRES) + f" {POSTGRES}/postgres -D {data} -h 0.0.0.0 -k '' -c fsync=off"
    query = f"SELECT repeat('x', {ROW - 11}) FROM generate_series(1, {size // ROW})"
    fetch = f"-v FETCH_COUNT={what[1] // ROW} " if what[1] else ""
    to = "-h {server} -U postgres"
    return server, f"until pg_isready -q {to}; do sleep 0.2; done; psql -XqAt {to} {fetch}-o /dev/null -c \"{query}\""


PROGRAMS = {
    "ssh": ssh, "sftp": sftp, "rsync-ssh": rsync_ssh, "rsync": rsync_daemon, "h2": h2, "grpc": grpc,
    "nginx": nginx, "psql": psql,
}

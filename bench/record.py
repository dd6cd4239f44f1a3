"""Sends full-size TCP packets at a rate through the device `near` while fullpipe records them at its
other end: see record.sh."""

import json
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

fullpipe, far, mbit, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
SEGMENT, SEGMENTS = 1460, 44
PAYLOAD = SEGMENT * SEGMENTS

# virtio_net_hdr: a checksum is to be filled in, TCP over IPv4, headers of 54 bytes.
OFFLOAD = struct.pack("<BBHHHH", 1, 1, 54, SEGMENT, 34, 16)
ETHERNET = b"\xff" * 6 + b"\x02" * 6 + b"\x08\x00"
# To an address that nobody has, so that no kernel answers.
ENDS = socket.inet_aton("10.77.0.1") + socket.inet_aton("10.77.0.2")
IP = struct.pack(">BBHHHBBH", 0x45, 0, 40 + PAYLOAD, 0, 0x4000, 64, 6, 0) + ENDS
DATA = b"x" * PAYLOAD


def super_packet(number):
    tcp = struct.pack(">HHIIBBHHH", 40000, 5001, number * PAYLOAD & 0xFFFFFFFF, 1, 0x50, 0x10, 1000, 0, 0)
    return OFFLOAD + ETHERNET + IP + tcp + DATA


folder = tempfile.mkdtemp()
words = ["nsenter", "--target", far, "--net", fullpipe, "record", "--port", "5001", "--json"]
recorder = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
assert "Ctrl-C" in recorder.stderr.readline()

sender = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sender.setsockopt(263, 15, 1)  # SOL_PACKET, PACKET_VNET_HDR
sender.bind(("near", 0x0800))
wire = SEGMENTS * 1500 * 8
start, sent = time.monotonic(), 0
while (now := time.monotonic() - start) < seconds:
    if sent * wire > now * mbit * 1e6:
        time.sleep(0.0005)
        continue
    sender.send(super_packet(sent))
    sent += 1
took = time.monotonic() - start

recorder.send_signal(signal.SIGINT)
out, err = recorder.communicate()
assert recorder.returncode == 0, err
recorded = json.loads(out)["recorded"]
used = resource.getrusage(resource.RUSAGE_CHILDREN)
packets = sent * SEGMENTS
print(f"{sent * wire / took / 1e6:.0f} Mbit/s for {took:.1f} s, {packets / took:.0f} packets a second")
print(f"{packets} packets sent, {recorded['packets']} recorded, {recorded['dropped']} dropped")
print(f"{recorded['size_bytes'] / 1e6:.1f} MB; {used.ru_utime + used.ru_stime:.2f} s of CPU with the answer")
os.remove(os.path.join(folder, "recording.pcapng"))
os.rmdir(folder)

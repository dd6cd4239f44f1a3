#!/usr/bin/env python3
"""Both ends of an HTTP/2 transfer with a window of a chosen size (`bench/windows.py`).

  windows_h2.py server PEM down|up WINDOW SIZE
  windows_h2.py client PEM down|up WINDOW SIZE ADDRESS

PEM is a folder with key.pem and cert.pem, or - for no TLS. The receiver of the data grants WINDOW to
the stream and to the connection."""
import socket, ssl, sys
import h2.config, h2.connection, h2.events, h2.exceptions, h2.settings

PORT = 8443
FRAME = 16384


def connected(role, pem, address):
    if role == "client":
        plain = socket.create_connection((address, PORT))
        if pem == "-":
            return plain
        context = ssl.create_default_context(cafile=f"{pem}/cert.pem")
        context.check_hostname = False
    else:
        listener = socket.create_server(("0.0.0.0", PORT))
        plain, _ = listener.accept()
        if pem == "-":
            return plain
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{pem}/cert.pem", f"{pem}/key.pem")
    context.set_alpn_protocols(["h2"])
    return context.wrap_socket(plain, server_side=role == "server")


class Peer:
    def __init__(self, role, pem, direction, window, size, address=None):
        self.sends = (direction == "down") == (role == "server")
        self.role, self.left, self.window = role, size, window
        self.socket = connected(role, pem, address)
        self.h2 = h2.connection.H2Connection(h2.config.H2Configuration(client_side=role == "client"))
        self.h2.initiate_connection()
        if not self.sends:
            self.h2.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: window})
            if window > 65535:
                self.h2.increment_flow_control_window(window - 65535)
        self.stream = None
        if role == "client":
            self.stream = 1
            method = "GET" if direction == "down" else "PUT"
            fields = [(":method", method), (":path", "/"), (":scheme", "https"), (":authority", "example.net")]
            self.h2.send_headers(1, fields, end_stream=direction == "down")
        self.flush()

    def flush(self):
        data = self.h2.data_to_send()
        if data:
            self.socket.sendall(data)

    def send(self):
        while self.stream and self.left:
            room = min(self.h2.local_flow_control_window(self.stream), FRAME, self.left)
            if room <= 0:
                break
            self.left -= room
            self.h2.send_data(self.stream, bytes(room), end_stream=self.left == 0)
            self.flush()

    def talk(self):
        block = bytearray(1 << 16)
        taken = 0
        while True:
            count = self.socket.recv_into(block)
            if not count:
                return
            for event in self.h2.receive_data(bytes(block[:count])):
                if isinstance(event, h2.events.RequestReceived):
                    self.stream = event.stream_id
                    if self.sends:
                        self.h2.send_headers(self.stream, [(":status", "200")])
                elif isinstance(event, h2.events.DataReceived):
                    # Half of the window is granted again at a time, as most programs do.
                    taken += event.flow_controlled_length
                    if taken * 2 >= self.window:
                        self.h2.increment_flow_control_window(taken)
                        try:
                            self.h2.increment_flow_control_window(taken, event.stream_id)
                        except h2.exceptions.StreamClosedError:
                            pass  # That was all.
                        taken = 0
                elif isinstance(event, h2.events.StreamEnded):
                    if self.sends:
                        continue
                    if self.role == "server":
                        self.h2.send_headers(event.stream_id, [(":status", "200")], end_stream=True)
                    self.flush()
                    if self.role == "client":
                        return
                elif isinstance(event, h2.events.ResponseReceived) and self.sends:
                    return
            self.flush()
            if self.sends:
                self.send()


if __name__ == "__main__":
    role, pem, direction, window, size, *address = sys.argv[1:]
    peer = Peer(role, pem, direction, int(window), int(size), *address)
    peer.talk()
    peer.socket.close()

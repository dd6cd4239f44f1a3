#!/usr/bin/env python3
"""Both ends of a stream of gRPC whose window has a chosen size (`bench/windows.py`).

  windows_grpc.py server down|up WINDOW SIZE
  windows_grpc.py client down|up WINDOW SIZE ADDRESS

The estimator of the path is off at both ends, so that WINDOW is what the receiver of the data grants."""
import sys, threading
from concurrent import futures
import grpc

PORT = 50051
MESSAGE = 8192


def options(window):
    """Messages are smaller than any window: gRPC grants a message that it waits for as a whole."""
    return [("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", window)]


def messages(size):
    return (bytes(MESSAGE) for _ in range(-(-size // MESSAGE)))


def whole(message):
    return message


def serve(window, size):
    is_done = threading.Event()

    def down(_request, context):
        context.add_callback(is_done.set)
        return messages(size)

    def up(requests, context):
        context.add_callback(is_done.set)
        for _ in requests:
            pass
        return b""

    methods = {"down": grpc.unary_stream_rpc_method_handler(down), "up": grpc.stream_unary_rpc_method_handler(up)}
    server = grpc.server(futures.ThreadPoolExecutor(2), options=options(window))
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("windows", methods)])
    server.add_insecure_port(f"0.0.0.0:{PORT}")
    server.start()
    is_done.wait()
    server.stop(grace=5).wait()


def ask(direction, window, size, address):
    with grpc.insecure_channel(f"{address}:{PORT}", options=options(window)) as channel:
        if direction == "up":
            channel.stream_unary("/windows/up", whole, whole)(messages(size))
        else:
            for _ in channel.unary_stream("/windows/down", whole, whole)(b""):
                pass


if __name__ == "__main__":
    role, direction, window, size, *address = sys.argv[1:]
    if role == "server":
        serve(int(window), int(size))
    else:
        ask(direction, int(window), int(size), *address)

"""What fullpipe says of a capture: the first limit that `analyze` names for the direction that carried most; where the
question is what took the time, the first part of the account."""
import json
import subprocess

# What one program does slowly is one part of the account, as in `flow::account`.
KIN = ({"sender_application", "paused"}, {"receiver_application", "window_shut"})


class FullpipeError(Exception):
    """The program failed."""


def connections(program, capture, patience=300):
    """Its line for each connection of a capture."""
    try:
        done = subprocess.run([program, "analyze", "--jsonl", str(capture)], capture_output=True, text=True,
                              timeout=patience, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FullpipeError(f"analyse {capture} with {program}: {error}") from error
    if done.returncode not in (0, 4):
        said = done.stderr.strip().splitlines() or ["it said nothing"]
        raise FullpipeError(f"analyse {capture} with {program}: {said[-1]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def answer(program, capture, question):
    """The connection, the limit in fullpipe's words, and how sure it is; None where there is no connection."""
    ways = [(one[way]["unique_payload_bytes"], one, way)
            for one in connections(program, capture) for way in ("server_to_client", "client_to_server")]
    if not ways:
        return None
    _, one, way = max(ways, key=lambda found: found[0])
    name = f"{one['client']}-{one['server']}"
    if question == "time":
        return name, first_part(one["account"]), None
    first = next((finding for finding in one["findings"] if finding["direction"] == way), None)
    if first is None:
        return name, "unknown", None
    cause = f" ({first['cause']})" if first.get("cause") else ""
    return name, f"{first['limit']}{cause}", first.get("confidence")


def first_part(account):
    """The part of the account that lost most; the longest, where none lost a tenth of the time."""
    if not account:
        return "unknown"
    parts = []
    for part in account["parts"]:
        same = next((one for one in parts if is_kin(one, part)), None)
        if same:
            same["time_us"] += part["time_us"]
            same["lost_us"] += part["lost_us"]
        else:
            parts.append(dict(part))
    if not parts:
        return "unknown"
    most = max(parts, key=lambda part: part["lost_us"])
    if most["lost_us"] == 0 or most["lost_us"] * 10 < account["time_us"]:
        most = max(parts, key=lambda part: part["time_us"])
    return most["cause"]


def is_kin(one, other):
    return one["owner"] == other["owner"] and any({one["cause"], other["cause"]} <= kin for kin in KIN)

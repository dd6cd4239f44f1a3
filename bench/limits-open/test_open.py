"""Tests of the open benchmark: `python3 -m unittest` in this folder; CI runs it as a trial of the program's tests, with
FULLPIPE naming the program."""
import csv
import gzip
import io
import json
import os
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import types
import unittest
from contextlib import redirect_stdout

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import flows  # noqa: E402
import make  # noqa: E402
import ours  # noqa: E402
import rules  # noqa: E402
import score  # noqa: E402
import siekkinen  # noqa: E402
import trat  # noqa: E402

CAPTURES = HERE.parents[1] / "crates/flow/tests/lab/captures"
MSS = 1000


def lacks(what):
    """Skips, unless CI says that everything must be there."""
    if os.environ.get("FULLPIPE_NO_SKIP"):
        raise AssertionError(f"{what} is not there, and FULLPIPE_NO_SKIP is set")
    raise unittest.SkipTest(f"{what} is not there")


def committed(case, end="server"):
    return CAPTURES / "limits" / case / f"{end}.pcap.gz"


class Sender:
    """Writes the capture of a transfer, at its sender: what is sent when is the caller's."""

    def __init__(self, rtt, window):
        self.rtt, self.window, self.packets, self.sent = rtt, window, [], 1
        self.put(0.0, True, 0, syn=True)
        self.put(rtt, False, 0, syn=True)
        self.put(rtt, True, 0)
        self.now = rtt

    def put(self, at, by_client, length, syn=False, number=None):
        """A segment of the client, which sends the data, or an ACK of the server."""
        ends = (10, 77, 0, 2), (10, 77, 0, 1)
        source, target = ends if by_client else ends[::-1]
        ports = (4000, 80) if by_client else (80, 4000)
        acknowledges = 0 if syn and by_client else 1 if by_client else (number if number is not None else 1)
        begins = 0 if syn else (number if by_client and number is not None else 1)
        options = b"\x02\x04" + struct.pack("!H", MSS) if syn else b""
        flags = flows.SYN * syn | flows.ACK * (not (syn and by_client))
        tcp = struct.pack("!HHIIBBHHH", *ports, begins, acknowledges, (20 + len(options)) * 4, flags,
                          65535 if by_client else self.window, 0, 0) + options
        whole = 20 + len(tcp) + length
        ip = struct.pack("!BBHHHBBH4B4B", 0x45, 0, whole, 0, 0, 64, 6, 0, *source, *target)
        self.packets.append((at, whole, ip + tcp))

    def send(self, at, count=1, length=MSS, again=False):
        """Segments at a time; each is acknowledged a round trip later."""
        for _ in range(count):
            number = self.sent - length if again else self.sent
            self.put(at, True, length, number=number)
            self.sent = number + length
            self.put(at + self.rtt, False, 0, number=self.sent)

    def flow(self):
        with tempfile.NamedTemporaryFile(suffix=".pcap") as file:
            file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, flows.RAW))
            for at, whole, data in sorted(self.packets, key=lambda packet: packet[0]):
                file.write(struct.pack("<IIII", int(at), round(at % 1 * 1e9), len(data), whole) + data)
            file.flush()
            return flows.largest(file.name)


def flights(sizes, window, rtt=0.1):
    """A transfer in flights of these sizes, a round trip each."""
    sender = Sender(rtt, window)
    for place, size in enumerate(sizes, 1):
        for packet in range(size):
            sender.send(place * rtt + packet * 1e-4)
    return sender.flow()


class Reader(unittest.TestCase):
    def facts_of_tshark(self, path):
        if not shutil.which("tshark"):
            lacks("tshark")
        fields = ("ip.src", "tcp.len", "tcp.options.mss_val", "tcp.analysis.initial_rtt", "tcp.window_size",
                  "tcp.flags.reset", "tcp.analysis.retransmission", "tcp.analysis.out_of_order")
        words = [word for field in fields for word in ("-e", field)]
        said = subprocess.run(["tshark", "-r", path, "-T", "fields", "-E", "separator=,", *words],
                              capture_output=True, text=True, check=True, timeout=60).stdout
        return [dict(zip(fields, line.split(","))) for line in said.splitlines()]

    def test_what_is_read_is_what_tshark_reads(self):
        for case in ("link", "congestion_window_loss", "receive_window"):
            for end in ("server", "client"):
                path = committed(case, end)
                flow, facts = flows.largest(path), self.facts_of_tshark(path)
                sent = [one for one in facts if one["ip.src"] == flow.sender[0]]
                heard = [one for one in facts if one["ip.src"] != flow.sender[0]]
                lengths = [int(one["tcp.len"]) for one in sent if int(one["tcp.len"])]
                self.assertEqual([end - begins for _, begins, end in flow.data], lengths)
                self.assertEqual(flow.mss, max(lengths))
                rtt = next(float(one["tcp.analysis.initial_rtt"]) for one in facts if one["tcp.analysis.initial_rtt"])
                self.assertAlmostEqual(flow.rtt, rtt, delta=2e-6)
                # The client's first segment asks for the connection and acknowledges nothing.
                windows = [int(one["tcp.window_size"]) for one in heard if one["tcp.flags.reset"] == "0"][1:]
                self.assertEqual([window for _, _, window in flow.answers], windows)

    def test_a_repeated_segment_is_one_to_tshark_too(self):
        path = committed("congestion_window_loss")
        # At the server nothing is out of order: what tshark calls so was sent again soon.
        names = "tcp.analysis.retransmission", "tcp.analysis.out_of_order"
        repeated = sum(any(one[name] for name in names) for one in self.facts_of_tshark(path))
        self.assertGreater(repeated, 10)
        self.assertEqual(sum(flows.largest(path).repeats), repeated)

    def test_pcapng_says_what_pcap_says(self):
        if not shutil.which("editcap"):
            lacks("editcap")
        path = committed("link")
        with tempfile.TemporaryDirectory() as folder:
            other = pathlib.Path(folder) / "other.pcapng"
            subprocess.run(["editcap", "-F", "pcapng", path, other], check=True, capture_output=True, timeout=60)
            one, two = flows.largest(path), flows.largest(other)
        self.assertEqual([data[1:] for data in one.data], [data[1:] for data in two.data])
        for (at, *_), (then, *_) in zip(one.data, two.data):
            self.assertAlmostEqual(at - one.began, then - two.began, delta=1e-6)

    def test_any_bytes_are_read_or_refused(self):
        with gzip.open(committed("receive_window")) as file:
            whole = file.read()[:6000]
        dice = random.Random(35)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "x"
            for _ in range(300):
                data = bytearray(whole[:dice.randrange(len(whole))])
                for _ in range(dice.randrange(8)):
                    if data:
                        data[dice.randrange(len(data))] = dice.randrange(256)
                path.write_bytes(data)
                try:
                    for flow in flows.flows(path):
                        for tool in (rules, trat, siekkinen):
                            tool.answer(flow)
                except flows.CaptureError:
                    pass

    def test_what_a_host_merged_counts_as_the_segments_that_it_was(self):
        sender = Sender(0.1, 65535)
        sender.put(0.2, True, 5 * MSS + 1, number=1)
        sizes = [end - begins for _, begins, end in sender.flow().data]
        self.assertEqual(sizes, [MSS] * 5 + [1])


class Rules(unittest.TestCase):
    def test_captures_whose_limit_is_built_in(self):
        expected = {
            "receive_window": ("receive window", "receiver window limited", "receiver window"),
            "congestion_window_loss": ("network", "congestion limited", "shared bottleneck"),
            "congestion_window_slow_start": ("application", "opportunity limited", "unknown"),
        }
        for case, words in expected.items():
            flow = flows.largest(committed(case))
            self.assertEqual(tuple(tool.answer(flow)[0] for tool in (rules, trat, siekkinen)), words, case)
        self.assertEqual(siekkinen.answer(flows.largest(committed("link")))[0], "unshared bottleneck")

    def test_flights_of_the_window_are_the_window_and_of_less_the_sender(self):
        self.assertEqual(trat.answer(flights([20] * 20, 20 * MSS))[0], "receiver window limited")
        self.assertEqual(trat.answer(flights([20] * 20, 65535))[0], "sender window limited")

    def test_flights_that_grow_by_one_are_congestion_avoidance_and_that_double_too_short(self):
        self.assertEqual(trat.answer(flights(range(8, 30), 65535))[0], "transport limited")
        self.assertEqual(trat.answer(flights([2, 4, 8, 16, 3], 65535))[0], "opportunity limited")

    def test_the_round_trip_is_among_the_candidates(self):
        answer, found = trat.answer(flights([20] * 20, 65535))
        self.assertAlmostEqual(found["rtt_s"], 0.1, delta=0.03, msg=answer)

    def test_equal_distances_are_a_full_link(self):
        sender = Sender(0.05, 65535)
        for packet in range(400):
            sender.send(0.05 + packet * 2e-3)
        flow = sender.flow()
        self.assertEqual(trat.answer(flow)[0], "bandwidth limited")
        word, found = siekkinen.answer(flow)
        self.assertEqual(word, "unshared bottleneck")
        self.assertLess(found["dispersion"], siekkinen.DISPERSION)

    def test_silence_behind_a_segment_that_is_not_full_is_the_application(self):
        sender = Sender(0.01, 65535)
        for block in range(40):
            sender.send(0.01 + block * 0.2, 4)
            sender.send(0.01 + block * 0.2, 1, length=100)
        flow = sender.flow()
        self.assertEqual(trat.answer(flow)[0], "application limited")
        self.assertEqual(siekkinen.answer(flow)[0], "application")

    def test_what_was_sent_again_is_the_network(self):
        sender = Sender(0.1, 65535)
        for place in range(1, 40):
            # What is lost leaves flights of different sizes.
            sender.send(place * 0.1, 5 + place * 7 % 11)
            sender.send(place * 0.1 + 1e-3, again=place % 3 == 0)
        flow = sender.flow()
        self.assertEqual(rules.answer(flow)[0], "network")
        self.assertIn(trat.answer(flow)[0], ("congestion limited", "bandwidth limited"))
        self.assertEqual(siekkinen.answer(flow)[0], "shared bottleneck")


class Scorer(unittest.TestCase):
    LABELS = [
        ("a", "1.2.3.4:5-6.7.8.9:80", "link", "link", "t1"),
        ("b", "1.2.3.4:5-6.7.8.9:80", "send_buffer", "send_buffer", "t1"),
        ("c", "1.2.3.4:5-6.7.8.9:80", "receive_window|receiver_application", "receive_window", "t2"),
        ("d", "1.2.3.4:5-6.7.8.9:80", "client_thinks", "client_thinks", "t3"),
        ("e", "1.2.3.4:5-6.7.8.9:80", "loss", "loss", "t4"),
    ]

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        columns = ("capture", "connection", "right", "cause", "transfer", "kind", "end", "form")
        with open(self.folder / "labels.csv", "w", newline="") as file:
            csv.writer(file).writerows([columns, *((*label, "world", "server", "clean") for label in self.LABELS)])

    def score(self, tool, *answers):
        path = self.folder / f"{tool}.csv"
        with open(path, "w", newline="") as file:
            csv.writer(file).writerows([("capture", "connection", "limit", "confidence"), *answers])
        printed = io.StringIO()
        with redirect_stdout(printed):
            score.main([str(self.folder / "labels.csv"), str(path), "--json"])
        rows = json.loads(printed.getvalue())[tool]
        return {what: {(row["by"], row["name"]): row for row in rows[what]} for what in rows}

    def test_right_wrong_and_silent_are_counted_and_add_up(self):
        there, back = "1.2.3.4:5-6.7.8.9:80", "6.7.8.9:80-1.2.3.4:5"
        scores = self.score("mine", ("a", there, "link", "0.95"), ("b", back, "link", "0.91"),
                            ("c", "", "receiver_application", "0.2"), ("d", there, "unknown", ""),
                            ("e", "9.9.9.9:1-6.7.8.9:80", "loss", ""), ("not asked", "", "link", ""))
        every = scores["limits"]["all", "all"]
        self.assertEqual([every[name] for name in score.OUTCOMES], [2, 1, 2])
        self.assertEqual((every["captures"], every["transfers"]), (5, 4))
        self.assertEqual((every["sure"], every["sure_right"]), (2, 1))
        self.assertEqual(scores["limits"]["cause", "send_buffer"]["wrong"], 1)
        # A link is of the network, a send buffer is not.
        self.assertEqual([scores["classes"]["all", "all"][name] for name in score.OUTCOMES], [2, 1, 2])

    def test_the_words_of_others_stand_for_limits_and_classes(self):
        answers = [("a", "", "congestion limited"), ("b", "", "sender window limited"),
                   ("c", "", "receiver window limited"), ("d", "", "application limited"), ("e", "", "transport limited")]
        scores = self.score("trat", *((*answer, "") for answer in answers))
        limits, classes = (scores[what]["all", "all"] for what in ("limits", "classes"))
        self.assertEqual([limits[name] for name in score.OUTCOMES], [4, 0, 1])
        self.assertEqual([classes[name] for name in score.OUTCOMES], [4, 1, 0])

    def test_a_word_that_only_names_a_class_is_silent_about_limits(self):
        scores = self.score("mine", *((capture, "", "network", "") for capture in "abcde"))
        self.assertEqual(scores["limits"]["all", "all"]["silent"], 5)
        self.assertEqual(scores["classes"]["all", "all"]["right"], 2)

    def test_what_cannot_be_scored_is_refused_and_says_why(self):
        for answers, why in (((("a", "", "lnik", ""),), "lnik"),
                             ((("a", "", "link", ""), ("a", "", "loss", "")), "second time"),
                             ((("a", "", "link", "2"),), "confident"),
                             ((("a", "", "link", "nan"),), "confident")):
            with self.assertRaises(SystemExit) as refused:
                self.score("mine", *answers)
            self.assertIn(why, str(refused.exception))

    def test_every_word_has_known_limits_and_one_of_four_classes(self):
        classes = {name for names in score.CLASSES.values() for name in names}
        self.assertEqual(len(classes), 4)
        for words in score.read_vocabularies(HERE / "vocabularies.csv").values():
            for word, (limits, name) in words.items():
                self.assertLessEqual(limits, score.CLASSES.keys(), word)
                self.assertIn(name, {*classes, ""}, word)

    def test_the_interval_is_wilsons(self):
        # Agresti and Coull (The American Statistician, 1998) give the formula; these are its values for 8 of 10.
        low, high = score.wilson(8, 10)
        self.assertAlmostEqual(low, 0.4902, delta=1e-4)
        self.assertAlmostEqual(high, 0.9433, delta=1e-4)
        self.assertEqual(score.wilson(0, 0), (0.0, 1.0))
        for right in range(11):
            low, high = score.wilson(right, 10)
            self.assertTrue(0 <= low <= right / 10 + 1e-9 and right / 10 - 1e-9 <= high <= 1)

    def test_every_word_of_the_tools_is_in_their_vocabulary(self):
        words = score.read_vocabularies(HERE / "vocabularies.csv")
        for tool in ("rules", "trat", "siekkinen"):
            source = (HERE / f"{tool}.py").read_text()
            for word in words[tool]:
                self.assertIn(f'"{word}"', source, tool)


class Page(unittest.TestCase):
    def test_the_guide_has_the_scores_of_the_answers_that_are_committed(self):
        folder = HERE / "entries/501"
        answers = sorted(str(path) for path in folder.glob("*.csv") if path.name != "labels.csv")
        printed = io.StringIO()
        with redirect_stdout(printed):
            score.main([str(folder / "labels.csv"), *answers, "--detail"])
        page = (HERE.parents[1] / "docs/src/benchmark.md").read_text(encoding="utf-8")
        between = page.split("<!-- open-scores: begin", 1)[1].split("<!-- open-scores: end", 1)[0]
        self.assertEqual(between.split("-->\n", 1)[1].strip(), printed.getvalue().strip())
        self.assertGreater(len(answers), 3)


class Maker(unittest.TestCase):
    def test_two_causes_have_their_moments(self):
        flow = types.SimpleNamespace(began=1.0, ended=9.0, data=[(1.5, 1, 1001)],
                                     answers=[(2.0, 500, 0), (4.5, 2001, 0), (6.0, 4000, 0)])
        asked = {"transfer": {"write_rate_after": "2000B"}, "path": {"to_client": {}}}
        line = {"cause": "sender_application", "also": "link"}
        self.assertEqual(make.moments(line, asked, flow), [[0.0, 3.5, "link"], [3.5, 8.0, "sender_application"]])
        asked = {"transfer": {}, "path": {"to_client": {"changes": "1ms rate 1mbit, 2500ms rate 9mbit"}}}
        line = {"cause": "link", "also": "send_buffer"}
        self.assertEqual(make.moments(line, asked, flow), [[0.0, 2.5, "link"], [2.5, 8.0, "send_buffer"]])

    def test_fullpipe_says_what_was_built_in(self):
        program = os.environ.get("FULLPIPE")
        if not program:
            lacks("FULLPIPE, which names the program,")
        for case, limit in (("receive_window", "receive_window"), ("link", "link"),
                            ("congestion_window_loss", "congestion_window (loss)")):
            name, said, sure = ours.answer(program, committed(case), "limit")
            self.assertEqual((name, said), (flows.largest(committed(case)).name, limit))
            self.assertGreater(sure, 0.5)

    def test_kin_of_an_account_are_one_part(self):
        parts = [{"owner": "server_application", "cause": cause, "time_us": time, "lost_us": lost}
                 for cause, time, lost in (("server_thinks", 50, 40), ("paused", 30, 30), ("sender_application", 25, 20))]
        self.assertEqual(ours.first_part({"time_us": 105, "parts": parts}), "paused")
        self.assertEqual(ours.first_part({"time_us": 1000, "parts": parts}), "paused")
        self.assertEqual(ours.first_part(None), "unknown")


if __name__ == "__main__":
    unittest.main()

"""calc, plan, report and lab.run give what the program gives."""

import json
import os
import pathlib

import fullpipe
import pytest
from fullpipe import _program


@pytest.fixture(autouse=True)
def binary(monkeypatch):
    root = pathlib.Path(__file__).resolve().parents[2]
    found = os.environ.get("FULLPIPE_BINARY", str(root / "target/debug/fullpipe"))
    monkeypatch.setenv("FULLPIPE_BINARY", found)


def test_calc_is_that_of_the_command_line(fullpipe_cli):
    told = json.loads(fullpipe_cli("calc", "--rate", "1gbit", "--rtt", "50ms", "--json").stdout)
    assert fullpipe.calc(rate="1gbit", rtt="50ms") == told
    assert told["bdp_bytes"] == 6_250_000
    several = fullpipe.calc(rate="1gbit", rtt=["1ms", "20ms"], loss=["0.01%", "0.1%"])
    assert several == json.loads(fullpipe_cli(
        "calc", "--rate", "1gbit", "--rtt", "1ms,20ms", "--loss", "0.01%,0.1%", "--json").stdout)


def test_plan_is_that_of_this_machine():
    plan = fullpipe.plan(rate="1gbit", rtt="146ms", role="receiver")
    assert (plan["role"], plan["bdp_bytes"]) == ("receiver", 18_250_000)


def test_errors_have_the_words_of_the_program(monkeypatch, tmp_path):
    with pytest.raises(ValueError, match="--rtt"):
        fullpipe.calc(rate="1gbit", rtt="5 apples")
    with pytest.raises(fullpipe.ProgramError, match="missing.pcap") as error:
        fullpipe.report(tmp_path / "missing.pcap", tmp_path / "report.html")
    assert error.value.code == 4
    monkeypatch.setenv("FULLPIPE_BINARY", str(tmp_path / "nothing"))
    with pytest.raises(FileNotFoundError, match="FULLPIPE_BINARY"):
        fullpipe.calc(rate="1gbit", rtt="50ms")


def test_a_report_is_written_and_shown(three, tmp_path):
    report = fullpipe.report(three, tmp_path / "report.html", filter="port 41892")
    written = report.path.read_text()
    assert "three.pcap" in written
    shown = report._repr_html_()
    assert shown.startswith("<iframe") and len(shown) > len(written)


def test_an_unknown_scenario_is_an_error_of_the_program(tmp_path):
    with pytest.raises((ValueError, fullpipe.ProgramError), match="no such thing"):
        fullpipe.lab.run("no such thing", engine="real")
    assert list(tmp_path.iterdir()) == []


def test_the_program_that_came_with_the_package_outranks_the_path(monkeypatch, tmp_path):
    beside, before = tmp_path / "scripts", tmp_path / "path"
    for folder in (beside, before):
        folder.mkdir()
        (folder / "fullpipe").touch(mode=0o755)
    monkeypatch.delenv("FULLPIPE_BINARY")
    monkeypatch.setenv("PATH", str(before))
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(beside))
    assert _program.program() == str(beside / "fullpipe")
    (beside / "fullpipe").unlink()
    assert _program.program() == str(before / "fullpipe")
    monkeypatch.setenv("FULLPIPE_BINARY", str(tmp_path / "nothing"))
    with pytest.raises(FileNotFoundError, match="a wheel of a release has it"):
        _program.program()

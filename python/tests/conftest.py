"""Captures of the repository, and the command line to compare with."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CAPTURES = ROOT / "crates/flow/tests/lab/captures"


@pytest.fixture
def captures() -> pathlib.Path:
    return CAPTURES


@pytest.fixture
def three() -> str:
    """Three connections, 2203 packets."""
    return str(CAPTURES / "three.pcap.gz")


@pytest.fixture
def fullpipe_cli():
    """Runs the command line; `cargo xtask wheel --test` says where it is."""
    binary = os.environ.get("FULLPIPE_BINARY", str(ROOT / "target/debug/fullpipe"))

    def run(*arguments: str, code: int = 0) -> subprocess.CompletedProcess:
        done = subprocess.run([binary, *arguments], capture_output=True, text=True, timeout=300)
        assert done.returncode == code, done
        return done

    return run

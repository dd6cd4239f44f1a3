from collections.abc import Iterable
from os import PathLike
from typing import Any, Literal

def run(
    scenario: str | PathLike[str] | Iterable[str | PathLike[str]],
    *,
    engine: Literal["virtual", "real", "auto"] = "virtual",
    out: str | PathLike[str] | None = None,
    resume: bool = False,
    jobs: int | None = None,
    repeat: int | None = None,
    no_cache: bool = False,
    keep_captures: bool = False,
    kernel: str | None = None,
) -> list[dict[str, Any]]:
    """Run scenarios and return a row for each run, as `fullpipe lab run --json`
    prints them: times in us, sizes in bytes, rates in bit/s, as names say.

    scenario: scenario files or presets, such as "articles/b2".
    engine: "virtual" needs a guest kernel (`fullpipe lab kernel build`).
    out: a folder for the results; without it they are not kept.

    A run that failed among others is a row with `error` and without figures;
    a single run that failed raises ProgramError.
    """

"""Experiments in the lab, run by the program ``fullpipe``, which must be installed."""

from ._program import arguments_of, json_of, paths_of

__all__ = ["run"]


def run(scenario, *, engine="virtual", out=None, **options):
    import contextlib
    import os
    import tempfile

    with contextlib.ExitStack() as stack:
        if out is None:
            # The program wants a new or empty folder.
            above = stack.enter_context(tempfile.TemporaryDirectory(prefix="fullpipe-lab-"))
            out = os.path.join(above, "results")
        given = arguments_of({"engine": engine, "out": out, **options})
        told = json_of(["lab", "run", "--json", *given, *paths_of(scenario)], takes_failed_runs=True)
    return told["rows"]

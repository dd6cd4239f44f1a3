"""What the program ``fullpipe`` does, called from Python: it is started, and its JSON is read."""

import os
import pathlib


class ProgramError(RuntimeError):
    """The program failed; the message is the program's own.

    code: its exit code: 1 the run failed, 3 a privilege or a tool is missing,
        4 bad input.
    """

    def __init__(self, message: str, code: int):
        super().__init__(message)
        self.code = code


def program() -> str:
    """Where the program is: $FULLPIPE_BINARY, the one that came with this package, or
    ``fullpipe`` in $PATH."""
    import shutil
    import sysconfig

    named = os.environ.get("FULLPIPE_BINARY")
    if named:
        found = shutil.which(named)
    else:
        found = shutil.which("fullpipe", path=sysconfig.get_path("scripts"))
        found = found or shutil.which("fullpipe")
    if found is None:
        raise FileNotFoundError(
            f"find the program {named or 'fullpipe'}: there is none; a wheel of a release has it, one "
            "that was built from source has not: install it into $PATH or name it in $FULLPIPE_BINARY"
        )
    return found


def arguments_of(options: dict) -> list[str]:
    """Keywords as options of the command line; None and False are left out."""
    given = []
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            given.append(option)
        elif isinstance(value, (list, tuple)):
            given.append(f"{option}={','.join(map(str, value))}")
        else:
            given.append(f"{option}={value}")
    return given


def run(arguments: list[str], takes_failed_runs: bool = False) -> bytes:
    """The standard output of the program."""
    import subprocess

    done = subprocess.run(
        [program(), *arguments], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    if done.returncode == 0 or (takes_failed_runs and done.returncode == 1 and done.stdout):
        return done.stdout
    told = done.stderr.decode(errors="replace").strip().removeprefix("fullpipe: ")
    if done.returncode == 2:
        raise ValueError(told)
    if done.returncode in (130, -2):
        raise KeyboardInterrupt
    raise ProgramError(told or f"fullpipe ended with {done.returncode}", done.returncode)


def json_of(arguments: list[str], takes_failed_runs: bool = False):
    import json

    return json.loads(run(arguments, takes_failed_runs))


def paths_of(what) -> list[str]:
    """A path or paths, none of which is taken for an option."""
    many = [what] if isinstance(what, (str, os.PathLike)) else list(what)
    return ["--", *map(os.fspath, many)]


def calc(rate=None, rtt=None, **options):
    return json_of(["calc", "--json", *arguments_of({"rate": rate, "rtt": rtt, **options})])


def plan(rate=None, rtt=None, **options):
    return json_of(["tune", "plan", "--json", *arguments_of({"rate": rate, "rtt": rtt, **options})])


class Report:
    def __init__(self, path: pathlib.Path):
        self.path = path

    def __repr__(self) -> str:
        return f"Report({str(self.path)!r})"

    def _repr_html_(self) -> str:
        import html

        page = html.escape(self.path.read_text(encoding="utf-8"), quote=True)
        return (
            f'<iframe title="fullpipe report" srcdoc="{page}" sandbox="allow-scripts" '
            'style="width: 100%; height: 800px; border: 0"></iframe>'
        )


def report(source, out="report.html", **options) -> Report:
    path = pathlib.Path(out)
    run(["report", *arguments_of({"output": path, **options}), *paths_of(source)])
    return Report(path)

"""What the scripts of outside truth share: the files that were fetched, and the program that is asked."""
import argparse
import csv
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = HERE.parents[1] / "target/debug/fullpipe"


def repositories():
    """Repository, commit and patterns of paths of each source."""
    with open(HERE / "sources.csv", newline="", encoding="utf-8") as file:
        return [(row["repository"], row["commit"], row["paths"].split()) for row in csv.DictReader(file)]


def folder_of(fetched, repository):
    """Where `get.py` puts a repository's files."""
    folder = fetched / repository.replace("/", "+")
    if not folder.is_dir():
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: {folder} is not there; bench/outside/get.py {fetched} fetches it")
    return folder


def asked(program, arguments, patience=300):
    """What `fullpipe analyze` prints as JSON, and what it says otherwise; the lines are None where it refuses."""
    try:
        done = subprocess.run([program, "analyze", *arguments], capture_output=True, text=True, timeout=patience,
                              check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        sys.exit(f"ask {program} about {arguments[-1]}: {error}")
    said = done.stderr.strip().splitlines()
    if done.returncode not in (0, 4) or (done.returncode == 4 and not done.stdout.strip()):
        return None, " ".join(said) or f"exit code {done.returncode}"
    if "--json" in arguments:
        return [json.loads(done.stdout)], " ".join(said)
    return [json.loads(line) for line in done.stdout.splitlines()], " ".join(said)


def limit_of(finding):
    cause = f" ({finding['cause']})" if finding.get("cause") else ""
    return f"{finding['limit']}{cause}"


def table(head, rows):
    """A table in Markdown."""
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    print()


def tell(about, rows_of, summary):
    """Asks for the folder that was fetched, and tells what was found in it: as a table, or as JSON."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--program", default=PROGRAM, help="fullpipe")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows = list(rows_of(given.folder, given.program))
    if given.json:
        print(json.dumps(rows, indent=1))
    else:
        summary(rows)

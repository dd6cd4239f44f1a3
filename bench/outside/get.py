#!/usr/bin/env python3
"""Fetches the public files that outside truth is scored on; nothing of them is part of this repository.

  bench/outside/get.py DIR [--mirrors FOLDER]

Of each line of sources.csv the files at that commit go to DIR/OWNER+NAME/. They come from GitHub, or, with --mirrors,
from the git directories FOLDER/OWNER+NAME/repo. Files that are there already are left as they are."""
import argparse
import fnmatch
import os
import pathlib
import subprocess
import sys
import tempfile

import common


def git(directory, *arguments):
    done = subprocess.run(["git", "--git-dir", directory, *arguments], capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"get.py: git {' '.join(arguments)} in {directory}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_bytes(content)
    os.replace(part, path)


def take(directory, commit, patterns, folder):
    """Writes the files of a commit that fit, and says how many there are."""
    names = git(directory, "ls-tree", "-r", "-z", "--name-only", commit).decode().split("\0")
    wanted = [name for name in names if any(fnmatch.fnmatchcase(name, one) and name.count("/") == one.count("/")
                                            for one in patterns)]
    left_out = 0
    for name in wanted:
        if (folder / name).exists():
            continue
        # A mirror may lack the largest files.
        done = subprocess.run(["git", "--git-dir", directory, "cat-file", "blob", f"{commit}:{name}"],
                              capture_output=True, check=False)
        if done.returncode:
            left_out += 1
            continue
        write(folder / name, done.stdout)
    return len(wanted) - left_out, left_out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--mirrors", type=pathlib.Path, help="git directories to take instead of GitHub's")
    given = parser.parse_args()
    for repository, commit, patterns in common.repositories():
        name = repository.replace("/", "+")
        with tempfile.TemporaryDirectory() as scratch:
            if given.mirrors:
                directory = given.mirrors / name / "repo"
            else:
                directory = pathlib.Path(scratch) / "git"
                subprocess.run(["git", "init", "-q", "--bare", directory], check=True)
                git(directory, "fetch", "-q", "--depth", "1", f"https://github.com/{repository}", commit)
            files, left_out = take(directory, commit, patterns, given.folder / name)
        missing = f", {left_out} not to be had" if left_out else ""
        print(f"{repository} at {commit[:12]}: {files} files{missing}")


if __name__ == "__main__":
    main()

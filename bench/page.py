#!/usr/bin/env python3
"""Puts standard input into a page of the guide, in place of what stands between two marks:
  bench/page.py PAGE NAME < text
The marks are the lines `<!-- NAME: begin .. -->` and `<!-- NAME: end -->`; around them the page is people's.
"""
import pathlib
import re
import sys


def main() -> None:
    page, name = pathlib.Path(sys.argv[1]), sys.argv[2]
    text = page.read_text(encoding="utf-8")
    marks = re.compile(rf"(<!-- {re.escape(name)}: begin[^\n]*-->\n).*?(<!-- {re.escape(name)}: end -->)", re.DOTALL)
    if len(marks.findall(text)) != 1:
        sys.exit(f"bench/page.py: {page} has no one pair of marks '{name}: begin' and '{name}: end'")
    new = sys.stdin.read().strip()
    if not new:
        sys.exit(f"bench/page.py: nothing to put into {page}")
    page.write_text(marks.sub(lambda found: f"{found[1]}{new}\n{found[2]}", text), encoding="utf-8")


main()

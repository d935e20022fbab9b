#!/usr/bin/env python3
"""Checks what git has, run in the root of the tree: each file is a text of at most 1 MB, but those that are named here.

So that no wheel, archive or program is committed by accident, which a clone has for ever. A file with a zero byte is no text.
"""

import fnmatch
import pathlib
import shutil
import subprocess
import sys

BINARY = ("docs/*.png", "tests/train/checkpoint_of_one_rank.h5")
LARGE = ()
MOST_BYTES = 1_000_000


def problems_of(name):
    data = pathlib.Path(name).read_bytes()
    if b"\0" in data and not any(fnmatch.fnmatch(name, pattern) for pattern in BINARY):
        yield f"{name}: is no text; one that must be there is named in scripts/check_files.py"
    if len(data) > MOST_BYTES and name not in LARGE:
        yield f"{name}: has {len(data)} bytes; one that must be so large is named in scripts/check_files.py"


def main():
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True) if shutil.which("git") else None
    if listed is None or listed.returncode != 0:
        print("files: not a clone of git; skipped")
        return 0
    names = [name for name in listed.stdout.split("\0") if pathlib.Path(name).is_file()]
    problems = [problem for name in names for problem in problems_of(name)]
    print("\n".join(problems) if problems else "files ok")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

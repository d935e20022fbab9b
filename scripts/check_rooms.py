#!/usr/bin/env python3
"""Checks the rooms of the source: check_rooms.py ROOM... (in reading order).

A file of room R (include/espalier/R, src/R) may include headers of R and of rooms before R; only comm/ may name MPI or NCCL;
only app/ may test whether CUDA was built; every folder is a room; a file name stands in one room.
"""

import pathlib
import re
import sys

FORBIDDEN = [(re.compile(r"\b(MPI_[A-Z]\w+|nccl[A-Z]\w+)"), "comm", "names MPI or NCCL"),
             (re.compile(r"#\s*if.*ESPALIER_WITH_CUDA"), "app", "tests whether CUDA was built")]


TOPS = ("include/espalier", "src")


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def problems_of(path, room, rooms):
    text = without_comments(path.read_text())
    for line, content in enumerate(text.splitlines(), 1):
        included = re.match(r'\s*#\s*include\s+"espalier/(\w+)/', content)
        if included and rooms.index(included.group(1)) > rooms.index(room):
            yield f"{path}:{line}: room {room}/ includes {included.group(1)}/, which comes after it"
        for pattern, owner, what in FORBIDDEN:
            if room != owner and pattern.search(content):
                yield f"{path}:{line}: {what}; only {owner}/ may"


def main():
    rooms = sys.argv[1:]
    problems = []
    for top in TOPS:
        for folder in sorted(pathlib.Path(top).iterdir()):
            if folder.name not in rooms:
                problems.append(f"{folder}: not one of the rooms: {' '.join(rooms)}")
                continue
            for path in sorted(folder.rglob("*.[ch]*")):
                problems += problems_of(path, folder.name, rooms)
    room_of = {}
    for path in sorted(path for top in TOPS for path in pathlib.Path(top).glob("*/*.[ch]*")):
        other = room_of.setdefault(path.name, path.parent.name)
        if other != path.parent.name:
            problems.append(f"{path}: {other}/ has a file of that name too")
    print("\n".join(problems) if problems else "rooms ok")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

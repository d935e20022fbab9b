#!/usr/bin/env python3
"""Checks the rooms of the source: check_rooms.py ROOM... (in reading order).

A file of room R (include/espalier/R, src/R) may include headers of R and of rooms before R; only comm/ may name MPI or NCCL;
only job/, library/ and app/ may test whether CUDA was built; only base/ and comm/ have types of their own for GPUs (Device...), as what composes
kernels is one template for all spaces; every folder is a room; a file name stands in one room; the table of keys
(base/config_keys.cpp) is the only list of keys: no other file names more than two, nor compares how a key begins; no room that
trains calls exponentials and logarithms of the C library; what a training step is made of (pipeline, trainer, network, checkpoint,
report) names none of its parts (train/step_hook.hpp); no two headers have a type of one name in one namespace, of which the
linker would keep either; a header opens with what it is, and so does a file that has no header of its name.
Of job/, library/ and app/, .cpp files may, and headers NAME_on_gpu.hpp that only these and .cpp files include: by that the
Makefile knows which files a program with CUDA compiles once more.
include/espalier.h is C: it includes nothing of ours, and only library/, whose functions it declares, includes it.

What a job is refused for stands in one table, src/job/job_check.cpp: in the rooms where jobs run no other file may ask the checks
of a graph's data or memory, or say that splits, labels, features or memory are not as a job needs them.
"""

import pathlib
import re
import sys

TESTS_CUDA = re.compile(r"#\s*(el)?if.*ESPALIER_WITH_CUDA")
FORBIDDEN = [(re.compile(r"\b(MPI_[A-Z]\w+|nccl[A-Z]\w+)"), "comm", "names MPI or NCCL"),
             (re.compile(r'#\s*include "espalier\.h"'), "library", "includes the header of C functions"),
             (TESTS_CUDA, ("job", "library", "app"), "tests whether CUDA was built")]
JOB_CHECK = "job_check.cpp"
JOB_ROOMS = ("feature", "nn", "history", "train", "infer", "plan", "job", "library", "app")
NO_JOBS = ("import.cpp", "digest.cpp", "info.cpp", "generate.cpp", "partition.cpp", "info_pages.cpp")  # commands that look at files alone
DATA_CHECK = re.compile(r"^(?!void ).*\b(check_(splits|labels|edge_features|sampler_keys|model_keys|history)|memory_error)\(")
OWN_CHECK = re.compile(r"\.check = check_\w+")  # a task answers for its labels; the table asks it
ABOUT_DATA = re.compile(r"\b(usage|input|memory)_error\(\s*\"[^;]*(/split/|/edges|/nodes/features|does not fit: |edge weights)")
TYPE = re.compile(r"^(?:struct|class|enum class) (\w+)(?: final)?(?: : [^;{]*)? \{|^using (\w+) =", re.M)
DEVICE_TYPE = re.compile(r"\b(class|struct|using) Device\w+")

# What trains has functions of its own (base/elementary.hpp): the C library's give other last bits on other machines. Predictions
# of work, from which nothing is learnt, may call those.
TRAINING_ROOMS = ("dense", "feature", "nn", "infer", "history", "train")
LIBRARY_FUNCTION = re.compile(r"(?<![\w:])(?:std::)?(?:exp2?|expm1|log|log2|log10|log1p|pow|erfc?|sin|cos|tanh)f?\(")

# The seam: files through which every step goes, and words of the mechanisms that are parts of it, beside their names in the table
# of parts. Checkpoints call the list of past epochs "history", which is a name in their files; a network has running statistics.
PART_TABLE = pathlib.Path("src/train/step_hooks.inl.hpp")
SEAM = {"train": ("step_pipeline", "trainer", "trainer_restart", "checkpoint", "report", "training_state"), "nn": ("network",)}
PART_WORDS = r"(?i)histor(y|ies)|variate|embedd|prun(e|ing)|learnt|clip|average_"
# Those that judge a job and plan it ask the same parts (train/planned_hooks.hpp).
PLANNING_SEAM = {"plan": ("memory", "peak_memory", "memory_verdict", "planned_job", "stage_model"), "job": ("job", "job_check", "job_plan"), "app": ("job_in_words", "plan")}
PLANNED_WORDS = r"(?i)histor(y|ies)|prun(e|ing)|clip_|average_"
EPOCHS_IN_FILE = '"history"'
OF_NETWORKS = "running_statistics"

C_HEADER = pathlib.Path("include/espalier.h")
KEY_TABLE = pathlib.Path("src/base/config_keys.cpp")
KEY_DICTIONARY = pathlib.Path("src/base/other_names.cpp")  # from the names that other systems use
MOST_KEYS = 2

TOPS = ("include/espalier", "src")


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def names_of_parts():
    """What matches a part of the table by its name."""
    names = re.findall(r"^  part\((\w+),", PART_TABLE.read_text(), re.M) if PART_TABLE.exists() else []
    return "".join(rf"|\b(?:make_)?{name}(?:_hook)?\b" for name in names if name != OF_NETWORKS)


def problems_of(path, room, rooms, part_words, planned_words):
    text = without_comments(path.read_text())
    for line, content in enumerate(text.splitlines(), 1):
        included = re.match(r'\s*#\s*include\s+"espalier/(\w+)/', content)
        if included and rooms.index(included.group(1)) > rooms.index(room):
            yield f"{path}:{line}: room {room}/ includes {included.group(1)}/, which comes after it"
        for pattern, owner, what in FORBIDDEN:
            if room not in ([owner] if isinstance(owner, str) else owner) and pattern.search(content):
                yield f"{path}:{line}: {what}; only {owner}/ may"
        if room not in ("base", "comm") and DEVICE_TYPE.search(content):
            yield f"{path}:{line}: a type for GPUs alone; make it a template over the space"
        if path.suffix != ".hpp" and checks_a_job(path, room) and DATA_CHECK.search(content):
            yield f"{path}:{line}: a check of a job outside of the table in {JOB_CHECK}"
        if room in TRAINING_ROOMS and not path.stem.endswith("_work") and LIBRARY_FUNCTION.search(content):
            yield f"{path}:{line}: a function of the C library, whose bits differ between machines; base/elementary.hpp has our own"
        if path.name.partition(".")[0] in SEAM.get(room, ()) and (word := part_words.search(content.replace(EPOCHS_IN_FILE, ""))):
            yield f"{path}:{line}: names {word.group()}, a hook of a step; ask all parts (train/step_hook.hpp)"
        if path.name.partition(".")[0] in PLANNING_SEAM.get(room, ()) and (word := planned_words.search(content)):
            yield f"{path}:{line}: names {word.group()}, a hook of a step; ask all parts (train/planned_hooks.hpp)"
        if hides_cuda(path, content):
            yield f"{path}:{line}: hides a test of whether CUDA was built; only .cpp files and their NAME_on_gpu.hpp may"


def second_list_of_keys(path, keys):
    """Does a file list keys, which only their table may?"""
    words = re.findall(r'"((?:[^"\\\n]|\\.)*)"', without_comments(path.read_text()))
    beginnings = {key.partition(".")[0] + "." for key in keys}
    named = sorted(set(words) & keys) + sorted(word for word in set(words) if word in beginnings)
    if path not in (KEY_TABLE, KEY_DICTIONARY) and (len(named) > MOST_KEYS or set(named) & beginnings):
        yield f"{path}: a list of keys ({', '.join(named)}); ask {KEY_TABLE} what a key changes or needs"


def checks_a_job(path, room):
    """May a job be judged here, where it must not be?"""
    return room in JOB_ROOMS and path.name != JOB_CHECK and not (room == "app" and path.name in NO_JOBS)


def refusals_of(path, room):
    """Messages about the data of a job that stand elsewhere."""
    if not checks_a_job(path, room):
        return
    text = without_comments(path.read_text())
    if OWN_CHECK.search(text):
        return
    for found in ABOUT_DATA.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield f"{path}:{line}: refuses a job for its data outside of the table in {JOB_CHECK}"


def untold(path):
    """Has a file neither an opening nor a header of its name that tells what it is?"""
    name = path.name.partition(".")[0]
    headers = [file for top in TOPS for file in pathlib.Path(top, path.parent.name).glob(name + "*.hpp") if re.fullmatch(rf"{name}(_on_gpu)?(\.\w+)?\.hpp", file.name)]
    if path.read_text().startswith("//") or path.suffix != ".hpp" and headers:
        return
    yield f"{path}: opens with nothing, and no header of its name says what it is"


def hides_cuda(path, line):
    """Does a line of a header make those that include it depend on whether CUDA was built, unseen?"""
    if path.suffix == ".cpp" or path.suffix.startswith(".cu"):
        return False
    if path.name.endswith("_on_gpu.hpp"):
        return False
    return TESTS_CUDA.search(line) or re.match(r'\s*#\s*include\s+".*_on_gpu\.hpp"', line)


def main():
    rooms = sys.argv[1:]
    problems = []
    of_parts = [re.compile(words + names_of_parts()) for words in (PART_WORDS, PLANNED_WORDS)]
    keys = set(re.findall(r'Key\{"(\w+\.\w+)"', KEY_TABLE.read_text())) if KEY_TABLE.exists() else set()
    for top in TOPS:
        for folder in sorted(pathlib.Path(top).iterdir()):
            if folder.name not in rooms:
                problems.append(f"{folder}: not one of the rooms: {' '.join(rooms)}")
                continue
            for path in sorted(folder.rglob("*.[ch]*")):
                problems += problems_of(path, folder.name, rooms, *of_parts)
                problems += second_list_of_keys(path, keys)
                problems += refusals_of(path, folder.name)
                problems += untold(path)
    if C_HEADER.exists() and (ours := re.search(r'#\s*include "(.*)"', C_HEADER.read_text())):
        problems.append(f"{C_HEADER}: includes {ours[1]}; it is C, and whole by itself")
    room_of, header_of = {}, {}
    for path in sorted(path for top in TOPS for path in pathlib.Path(top).glob("*/*.hpp")):
        text = path.read_text()
        for name in {a or b for a, b in TYPE.findall(text)}:
            space = re.search(r"^namespace ([\w:]+)", text, re.M)
            other = header_of.setdefault((space and space[1], name), path)
            if other != path:
                problems.append(f"{path}: {other} has a type {name} too")
    for path in sorted(path for top in TOPS for path in pathlib.Path(top).glob("*/*.[ch]*")):
        other = room_of.setdefault(path.name, path.parent.name)
        if other != path.parent.name:
            problems.append(f"{path}: {other}/ has a file of that name too")
    print("\n".join(problems) if problems else "rooms ok")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

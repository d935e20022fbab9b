"""Runs programs, and keeps what came of each part."""

import concurrent.futures
import json
import math
import os
import pathlib
import re
import subprocess
import tempfile
import threading
import time

from .places import ROOT
from .record import as_text, count_states, kept_lines, show

GOALS = {"epoch seconds": 0.5, "edges/s": 5e8, "SpMM over copy": 0.7, "times faster than PyTorch": 5}
OPEN_MPI = {  # one node, possibly fewer cores than ranks, possibly root
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "self,vader", "OMPI_MCA_plm": "isolated", "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
}


class Skip(Exception):
    """What a part raises where it cannot run here."""


class Failure(Exception):
    """What a part raises where it found an error; its text ends in what the program printed."""


class TimeIsUp(Exception):
    """The minutes ended while a part ran."""


class Check:
    """`before`: the place of --against, or None."""

    def __init__(self, options, place, folder, gpu=None, before=None):
        self.options, self.place, self.folder, self.gpu, self.before = options, place, folder, gpu, before
        self.files = [options.json or place.results]
        if options.record and gpu:
            self.files.append(ROOT / "bench/results" / (re.sub(r"\W+", "_", gpu["name"]) + ".json"))
        self.lines, self.lock, self.graphs, self.products = [], threading.Lock(), {}, threading.Lock()
        self.done, self.failed_before = set(), {}  # names of lines, with --resume
        self.end = time.monotonic() + 60 * options.minutes if options.minutes else math.inf
        self.env = dict(os.environ, **{key: os.environ.get(key, value) for key, value in OPEN_MPI.items()})

    def about(self):
        """Of whom a record is."""
        return {"gpu": self.gpu, "commit": self.place.commit(), "against": self.before and self.before.commit(),
                "quick": self.options.quick}

    def resume(self):
        """Takes over the lines of the record that is there."""
        self.lines, self.failed_before = kept_lines(self.files[0], self.about())
        self.done = {line["name"] for line in self.lines}

    def own_folder(self):
        return pathlib.Path(tempfile.mkdtemp(dir=self.folder))

    def seconds_left(self):
        return self.end - time.monotonic()

    def run(self, *command, ranks=1, timeout=280, good=(0,), place=None):
        """What a program of the place, else of this one, printed; Failure when it does not end well."""
        place = place or self.place
        command = [str(word) for word in command]
        if ranks > 1:
            command = [*place.mpirun, "-q", "-np", str(ranks)] + command
        else:
            command = place.commands + command
        return self.run_here(*command, timeout=timeout, good=good)

    def run_here(self, *command, timeout=280, good=(0,)):
        """The same of a command as it stands, by the machine's own libraries."""
        command = [str(word) for word in command]
        if self.seconds_left() <= 0:
            raise TimeIsUp("the minutes ended before it did")
        timeout = min(timeout, self.seconds_left())
        try:
            done = subprocess.run(command, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  errors="replace", timeout=timeout)
        except subprocess.TimeoutExpired:
            if self.seconds_left() <= 0:
                raise TimeIsUp("the minutes ended before it did")
            raise Failure(f"no end after {timeout:.0f} s: {' '.join(command)}")
        except FileNotFoundError as missing:
            raise Failure(f"not built: {missing.filename}")
        if done.returncode not in good:
            raise Failure(f"exit code {done.returncode}: {' '.join(command)}\n{done.stdout[-4000:]}")
        return done.stdout

    def part(self, name, work, seconds=0):
        """Runs work() and notes what came of it: work returns figures. Not where the record has it, or where the seconds that are
        expected of it are not left."""
        if self.is_open(name, seconds):
            start = time.time()
            self.note(name, work, lambda: time.time() - start)

    def is_open(self, name, seconds):
        """Is this part still to be run? One that does not fit into the time that is left is noted as left out."""
        if name in self.done:
            return False
        if seconds <= self.seconds_left():
            return True
        self.leave_out(name, seconds)
        return False

    def leave_out(self, name, seconds):
        self.add({"name": name, "state": "left out", "figures": {}, "seconds": 0.0,
                  "reason": f"takes {seconds:.0f} s, and {max(self.seconds_left(), 0):.0f} are left"})

    def note(self, name, work, seconds):
        line = {"name": name, "state": "passed", "figures": {}}
        try:
            line["figures"] = work() or {}
            line["state"] = line["figures"].pop("state", "passed")
        except Skip as reason:
            line.update(state="skipped", reason=str(reason))
        except TimeIsUp as reason:
            line.update(state="left out", reason=str(reason))
        except Failure as failure:
            line.update(state="failed", reason=str(failure))
        if name in self.failed_before:
            line["figures"]["failed before"] = self.failed_before[name]
        line["seconds"] = round(seconds(), 2)
        self.add(line)

    def add(self, line):
        with self.lock:
            self.lines.append(line)
            show(line)
            self.write()

    def write(self):
        """The file of results; how many lines are in which state."""
        counts = count_states(self.lines)
        about = {**self.about(), "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "goals": GOALS, **counts}
        for path in self.files:
            path.parent.mkdir(parents=True, exist_ok=True)
            beside = path.with_suffix(".part")  # what cuts the run off does not cut the file
            beside.write_text(as_text(about, self.lines))
            beside.replace(path)
        return counts

    def parts_at_once(self, works, seconds=0):
        """part() of each (name, work), some at a time."""
        with concurrent.futures.ThreadPoolExecutor(self.options.at_once) as pool:
            for done in [pool.submit(self.part, name, work, seconds) for name, work in works]:
                done.result()

    def parts_of_one(self, expected, work):
        """part() of each name of {name: seconds}, which all come from one call of work(names): it gives {name: figures, or the
        Failure or Skip of that part}."""
        names = [name for name in expected if name not in self.done]
        while names and sum(expected[name] for name in names) > self.seconds_left():
            last = names.pop()  # is worth least
            self.leave_out(last, expected[last])
        if not names:
            return
        start = time.time()
        try:
            found = work(names)
        except (Failure, Skip, TimeIsUp) as wrong:
            found = dict.fromkeys(names, wrong)
        share = (time.time() - start) / len(names)
        for name in names:
            self.note(name, lambda: figures_or_raise(found[name]), lambda: share)


def figures_or_raise(found):
    if isinstance(found, Exception):
        raise found
    return found


# ---- Graphs and jobs -------------------------------------------------------------------------------------------------


def generate(check, name, *arguments, ranks=1):
    """The path of a graph, which is made where none has yet been."""
    with check.lock:
        lock = check.graphs.setdefault(name, threading.Lock())
    graph = check.folder / name
    with lock:
        if not graph.exists():
            made = graph.with_suffix(".part.h5")
            check.run(check.place.cpu_program, "-q", "generate", *arguments, "-o", made, "--overwrite", ranks=ranks, timeout=550)
            made.rename(graph)
    return graph


JOB = "[model]\nhidden = 64\n[train]\nepochs = 1\neval_every = 1\n[sampler]\nbatch_size = 256\n"


def train(check, program, graph, *keys, ranks=1, timeout=280, wrap=(), folder=None, place=None):
    """(The report of a training run, what it printed)"""
    folder = folder or check.own_folder()
    config, out = folder / "job.toml", folder / "out"
    config.write_text(JOB)
    printed = check.run(*wrap, program, "-q", "train", config, f"graph.file={graph}", f"output.dir={out}", "run.threads=4",
                        *keys, ranks=ranks, timeout=timeout, place=place)
    return json.loads((out / "report.json").read_text()), printed

"""Runs programs, and keeps what came of each part."""

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import tempfile
import threading
import time

from .places import ROOT

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


class Check:
    def __init__(self, options, place, folder, gpu=None):
        self.options, self.place, self.folder, self.gpu = options, place, folder, gpu
        self.files = [options.json or place.results]
        if options.record and gpu:
            self.files.append(ROOT / "bench/results" / (re.sub(r"\W+", "_", gpu["name"]) + ".json"))
        self.lines, self.lock, self.graphs, self.products = [], threading.Lock(), {}, threading.Lock()
        self.env = dict(os.environ, **{key: os.environ.get(key, value) for key, value in OPEN_MPI.items()})

    def own_folder(self):
        return pathlib.Path(tempfile.mkdtemp(dir=self.folder))

    def run(self, *command, ranks=1, timeout=280, good=(0,)):
        """What the program printed; Failure when it does not end well."""
        command = [str(word) for word in command]
        if ranks > 1:
            command = [*self.place.mpirun, "-q", "-np", str(ranks)] + command
        else:
            command = self.place.commands + command
        try:
            done = subprocess.run(command, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  errors="replace", timeout=timeout)
        except subprocess.TimeoutExpired:
            raise Failure(f"no end after {timeout} s: {' '.join(command)}")
        except FileNotFoundError as missing:
            raise Failure(f"not built: {missing.filename}")
        if done.returncode not in good:
            raise Failure(f"exit code {done.returncode}: {' '.join(command)}\n{done.stdout[-4000:]}")
        return done.stdout

    def part(self, name, work):
        """Runs work() and notes what came of it: work returns figures."""
        start, line = time.time(), {"name": name, "state": "passed", "figures": {}}
        try:
            line["figures"] = work() or {}
            line["state"] = line["figures"].pop("state", "passed")
        except Skip as reason:
            line.update(state="skipped", reason=str(reason))
        except Failure as failure:
            line.update(state="failed", reason=str(failure))
        line["seconds"] = round(time.time() - start, 2)
        with self.lock:
            self.lines.append(line)
            show(line)
            self.write()

    def write(self):
        """The file of results; how many lines are in which state."""
        counts = {state: sum(line["state"] == state for line in self.lines) for state in ("passed", "failed", "skipped")}
        about = {"gpu": self.gpu, "commit": self.place.commit(), "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                 "goals": GOALS, **counts}
        for path in self.files:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(as_text(about, self.lines, with_launches=path == self.files[0]))
        return counts

    def parts_at_once(self, works):
        """part() of each (name, work), some at a time."""
        with concurrent.futures.ThreadPoolExecutor(self.options.at_once) as pool:
            for done in [pool.submit(self.part, name, work) for name, work in works]:
                done.result()


def as_text(about, lines, with_launches):
    """JSON with a part, or a case or kernel of it, on a line of the file."""
    def text(line):
        figures = {key: value for key, value in line["figures"].items() if with_launches or key != "launches"}
        lists = {key: figures.pop(key) for key in ("cases", "kernels") if key in figures}
        head = json.dumps(dict(line, figures=figures))
        for key, rows in lists.items():
            rows = ",\n   ".join(map(json.dumps, rows))
            comma = ", " if figures else ""
            head = head.replace('"figures": {', f'"figures": {{"{key}": [\n   {rows}]{comma}', 1)
        return head

    return json.dumps(about)[:-1] + ', "parts": [\n ' + ",\n ".join(map(text, lines)) + "\n]}\n"


def show(line):
    figures = ", ".join(f"{key} {brief(value)}" for key, value in line["figures"].items()
                        if key not in ("cases", "kernels", "launches", "title", "gpu", "quick"))
    text = figures or line.get("reason", "").split("\n")[0]
    print(f"{line['name']:<44} {line['state']:<8} {line['seconds']:>7.1f} s  {text}", flush=True)
    for case in line["figures"].get("cases", []):
        print(f"    {case['name']:<44} {case['rate']:>10.4g} {case['unit']:<8} bound {case['bound']:>9.4g}  ratio "
              f"{case['ratio']:>5.2f}  #wrong {case['wrong']}", flush=True)
    for kernel in line["figures"].get("kernels", []):
        print(f"    {kernel['name']:<60.60} {kernel['launches']:>5} x {kernel['microseconds']:>9.1f} us {kernel['share']:>6.1%}  "
              f"{kernel['GB/s']:>7.1f} GB/s", flush=True)
    if line["state"] == "failed":
        print("    " + "\n    ".join(line["reason"].splitlines()), flush=True)


def brief(value):
    if isinstance(value, dict):
        return "(" + ", ".join(f"{key} {brief(inner)}" for key, inner in value.items()) + ")"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


# ---- Graphs and jobs -------------------------------------------------------------------------------------------------


def generate(check, name, *arguments, ranks=1):
    """The path of a graph, which is made where none has yet been."""
    with check.lock:
        lock = check.graphs.setdefault(name, threading.Lock())
    graph = check.folder / name
    with lock:
        if not graph.exists():
            check.run(check.place.cpu_program, "-q", "generate", *arguments, "-o", graph, ranks=ranks, timeout=550)
    return graph


def train(check, program, graph, *keys, ranks=1, timeout=280, wrap=(), folder=None):
    """(The report of a training run, what it printed)"""
    folder = folder or check.own_folder()
    config, out = folder / "job.toml", folder / "out"
    config.write_text("[model]\nhidden = 64\n[train]\nepochs = 1\neval_every = 1\n[sampler]\nbatch_size = 256\n")
    printed = check.run(*wrap, program, "-q", "train", config, f"graph.file={graph}", f"output.dir={out}", "run.threads=4",
                        *keys, ranks=ranks, timeout=timeout)
    return json.loads((out / "report.json").read_text()), printed

#!/usr/bin/env python3
"""A cluster on one machine: what schedules, orders, caches and overlap are worth where links have a rate (docs/cluster.md).

    bench/cluster/measure.py [--graph FILE] [--cases most] [--hosts 4] [--rates 0.1,1] [--repeats 3] [KEY=VALUE ...]
    bench/cluster/measure.py --peers build/peers/venv        dgl.distributed on the same hosts, too (bench/peers/setup.sh)
    bench/cluster/measure.py --list                          the cases

Makes N hosts (hosts.py), each with a link of so many Gbit/s in each direction, and trains or samples on them, a rank of one
thread on each. Hosts share the cores of this machine: with four on two cores a host computes at half a core, and its link
weighs less than it would; 0.1 Gbit/s is then the honest price.

First the law: every case once on every number of hosts, links without a limit, two epochs, gradients in fixed point, equally
many batches a step and groups everywhere. Digests and losses must be those of one rank without a network. Digests of what
is measured are held to the same law.

Then all cases of a number of hosts and a rate in turn, so many times. Seconds are medians over epochs behind the first one,
then over repeats, evaluation left out; a stage's seconds are its slowest rank's. MB are those that report.json counts, of all
ranks in an epoch; `on links` is what the hosts' ports counted of the same; `link s` is how long the fullest direction of a link
takes for its part at its rate, which no load changes, `busy` the share of an epoch that this is; x is the baseline's time
over the case's (--list says which one that is). Of dgl.distributed `fetched` is what its servers' requests and answers
held, sampling included.

Where there can be no such hosts (not root, no `ip` or `tc`) it says so and ends with 0. Exit codes: 0 done or skipped, 1 a run
failed or broke the law, 2 usage, 130 interrupted; hosts are gone in any case.
"""

import argparse
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(pathlib.Path(__file__).resolve().parent), str(ROOT / "bench/peers")]
import cases as table_of_cases  # noqa: E402
import figures  # noqa: E402
import peers  # noqa: E402
import processes  # noqa: E402
from hosts import Broken, Hosts, mpi_environment, reason_to_skip  # noqa: E402

LIMIT = 900  # seconds, for one run
LINE_OF_EPOCH = re.compile(r"(?:.*\r)?epoch +\d+  (loss|digest) ")


def numbers(kind):
    def parse(words):
        found = [kind(word) for word in words.split(",")]
        if min(found) <= 0:
            raise argparse.ArgumentTypeError(f"{words!r}: numbers above 0 with commas")
        return found
    return parse


def parse_arguments(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/cpu/espalier")
    parser.add_argument("--graph", help="a graph file, or a folder in OGB's layout (data/debian.h5 where it is, else an R-MAT)")
    parser.add_argument("--cases", default="most", help="names with commas, `most` or `all`")
    parser.add_argument("--hosts", type=numbers(int), default=[4], help="(4)")
    parser.add_argument("--rates", type=numbers(float), default=[0.1, 1.0], help="Gbit/s of a link in each direction (0.1,1)")
    parser.add_argument("--ranks-per-host", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=5, help="of a run; the first is warm-up")
    parser.add_argument("--repeats", type=int, default=3, help="(3; 0: the law alone)")
    parser.add_argument("--peers", metavar="VENV", help="dgl.distributed of this environment as well")
    parser.add_argument("--mca", action="append", default=[], metavar="NAME=VALUE", help="a parameter of Open MPI")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("build/cluster"))
    parser.add_argument("--no-law", action="store_true", help="measure at once")
    parser.add_argument("--list", action="store_true", help="print the cases")
    parser.add_argument("keys", nargs="*", metavar="KEY=VALUE", help="of every run's config")
    options = parser.parse_intermixed_args(arguments)
    try:
        options.cases = table_of_cases.chosen(options.cases)
    except ValueError as error:
        parser.error(str(error))
    wrong = [word for word in options.keys if not re.match(r"[a-z]+\.[a-z0-9_]+=", word)]
    wrong += [word for word in options.mca if "=" not in word]
    if wrong:
        parser.error(f"{wrong[0]} is no section.key=value")
    if options.epochs < 3:
        parser.error("--epochs: 3 at least, as the first is warm-up and the last ends with an evaluation")
    return options


# ---- What runs are given ---------------------------------------------------------------------------------------------


class Inputs:
    """The program, a graph, its order and the input file."""

    def __init__(self, options):
        self.options, self.folder = options, options.output.absolute()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.program = os.path.abspath(options.program)
        self.graph = self.find_graph()
        self.order = None
        if any(table_of_cases.ORDER in case.keys for case in options.cases):
            self.order = self.made(f"{self.graph.stem}.order.h5", "partition", self.graph)
        self.config = self.folder / "job.toml"
        self.config.write_text(table_of_cases.config_text(self.graph, self.folder / "run"))

    def find_graph(self):
        graph = pathlib.Path(self.options.graph or ROOT / "data/debian.h5").absolute()
        if graph.is_dir():
            return self.made(f"{graph.name}.h5", "import", "ogb", graph, "--symmetrize",
                             *(["--split", "random_seed0"] if (graph / "split/random_seed0").exists() else []))
        if graph.exists():
            return graph
        if self.options.graph:
            raise processes.Failed(f"{graph}: no such graph file or folder")
        return self.made("rmat15.h5", "generate", "rmat", "--scale", 15, "--edge-factor", 16, "--symmetrize", "--drop-self-loops",
                         "--features", 128, "--classes", 16, "--seed", 0)

    def made(self, name, *command):
        """A file that the program makes once, and again where what it is made of has changed."""
        path = self.folder / name
        sources = [word for word in command if isinstance(word, pathlib.Path)]
        if not path.exists() or any(path.stat().st_mtime < source.stat().st_mtime for source in sources):
            unfinished = path.with_suffix(".part")
            processes.run([self.program, *command, "-o", unfinished, "--overwrite"], mpi_environment(), LIMIT)
            unfinished.rename(path)
        return path

    def command(self, case, groups, epochs, keys):
        of_epochs = ["--epochs", epochs] if case.command == "sample" else [f"train.epochs={epochs}"]
        return [self.program, case.command, self.config, "--overwrite", *case.keys_for(groups, self.order), *of_epochs,
                *self.options.keys, *keys]

    def report(self):
        return json.loads((self.folder / "run/report.json").read_text())


def run(command, environment, at_epoch):
    """Runs it; at_epoch() when the line of an epoch appears. Nothing of its session is left. Throws Failed."""
    said = []

    def read(lines):
        for line in lines:
            said.append(line)
            if LINE_OF_EPOCH.match(line):
                at_epoch()

    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        process = subprocess.Popen([str(word) for word in command], env=environment, stdout=subprocess.PIPE, stderr=errors,
                                   text=True, errors="replace", start_new_session=True)
        reader = threading.Thread(target=read, args=(process.stdout,), daemon=True)
        reader.start()
        try:
            process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            raise processes.Failed(f"no answer in {LIMIT} s") from None
        finally:
            processes.end_session(process)
        reader.join(10)
        errors.seek(0)
        if process.returncode != 0:
            raise processes.Failed(f"exit status {process.returncode}: {processes.last_words(errors.read(), ''.join(said))}")


def run_on(hosts, inputs, case, groups, epochs, keys=()):
    """A run as figures.py has it."""
    words, environment = hosts.mpirun(inputs.options.ranks_per_host, dict(word.split("=", 1) for word in inputs.options.mca))
    marks = []
    try:
        run([*words, *inputs.command(case, groups, epochs, keys)], environment,
            lambda: marks.append((time.monotonic(), hosts.carried(), time.monotonic())))
    except processes.Failed:
        hosts.end_processes()
        raise
    return {**figures.from_report(inputs.report(), marks, hosts.gigabits), "case": case.name, "hosts": hosts.count,
            "gigabits": hosts.gigabits, "groups": groups, "load": os.getloadavg()[0]}


# ---- The law, then the clock -----------------------------------------------------------------------------------------


def check_law(inputs, report):
    """Every case on one rank and on every number of hosts; what was found wrong."""
    options = inputs.options
    groups = max(options.hosts) * options.ranks_per_host
    runs, references = [], {}
    for case in options.cases:
        references.setdefault((case.command, case.losses_law()), case)
    keys = {"sample": [], "train": ["train.reproducible=true", f"train.batches_per_step={groups}"]}
    for case in references.values():
        free = [key for key in inputs.command(case, groups, 2, keys[case.command]) if not str(key).startswith("grid.")]
        processes.run(free, mpi_environment(), LIMIT)
        runs.append({**figures.from_report(inputs.report(), [], None), "case": case.name, "hosts": "no", "gigabits": None,
                     "groups": groups, "reproducible": case.command == "train"})
    for count in options.hosts:
        with Hosts(count) as hosts:
            for case in options.cases:
                if skips(case, count * options.ranks_per_host):
                    continue
                runs.append({**run_on(hosts, inputs, case, groups, 2, keys[case.command]), "reproducible": case.command == "train"})
                report(f"law    {figures.name_of(runs[-1])}")
    return runs


def skips(case, ranks):
    """As copies must divide ranks."""
    return any(key.startswith("grid.replication=") and ranks % int(key.partition("=")[2]) for key in case.keys)


def measure(inputs, hosts, peer, report):
    options, runs = inputs.options, []
    for repeat in range(options.repeats):
        for case in options.cases:
            if skips(case, hosts.count * options.ranks_per_host):
                continue
            runs.append(run_on(hosts, inputs, case, hosts.count * options.ranks_per_host, options.epochs))
            report(f"{repeat + 1}/{options.repeats}    {figures.name_of(runs[-1])}: {runs[-1]['total']:.3f} s, load {runs[-1]['load']:.1f}")
        for run_of_peer in peer.runs(hosts, options.epochs) if peer else []:
            runs.append(run_of_peer)
            report(f"{repeat + 1}/{options.repeats}    {figures.name_of(run_of_peer)}: {run_of_peer['total']:.3f} s, load {run_of_peer['load']:.1f}")
    return runs


def all_of_it(options, report):
    """(runs, what is wrong)"""
    inputs = Inputs(options)
    peer = peers.Peer(options.peers, inputs.graph, inputs.folder) if options.peers else None
    held = [] if options.no_law else check_law(inputs, report)
    runs, reached = [], {}
    for count in options.hosts:
        with Hosts(count) as hosts:
            for rate in options.rates if options.repeats else []:
                hosts.set_rate(rate)
                reached[f"{count} hosts, {rate:g} Gbit/s"] = hosts.reached()
                report(f"one stream has {reached[f'{count} hosts, {rate:g} Gbit/s']:.3f} of {rate:g} Gbit/s")
                runs += measure(inputs, hosts, peer, report)
    wrong = figures.broken_laws(held + [run for run in runs if "digests" in run], table_of_cases.BY_NAME)
    return inputs, runs, reached, wrong


def main():
    options = parse_arguments()
    if options.list:
        for case in table_of_cases.CASES:
            print(f"{case.name:<18} {case.command:<7} {' '.join(case.keys) or '-'}; x over {case.baseline}")
        return 0
    reason = reason_to_skip()
    if reason:
        print(f"cluster: {reason}; skipped")
        return 0
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit("measure.py: ended by a signal"))  # so that `with` takes the hosts down
    try:
        inputs, runs, reached, wrong = all_of_it(options, lambda line: print(line, file=sys.stderr, flush=True))
    except (processes.Failed, Broken) as failed:
        sys.exit(f"measure.py: {failed}")
    except KeyboardInterrupt:
        return 130
    baselines = {case.name: case.baseline for case in table_of_cases.CASES}
    rows = figures.rows_of(runs, {**baselines, **peers.BASELINES})
    summary = {"graph": inputs.graph.name, "cores": os.cpu_count(), "ranks_per_host": options.ranks_per_host, "keys": options.keys,
               "epochs": options.epochs, "repeats": options.repeats, "reached": reached, "wrong": wrong, "rows": rows, "runs": runs}
    (inputs.folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    print(figures.table(rows))
    print("\n".join(["", *wrong, f"law: {'broken' if wrong else 'not checked' if options.no_law else 'kept'}; "
                     f"measured: {os.path.relpath(inputs.folder / 'summary.json')}"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Trains by random configurations over all keys, on small random graphs of every kind, and looks whether the laws hold.

    python3 tests/faults/configs.py [--cases N | --minutes M] [--seed N] [--ranks 4] [--program build/cpu/espalier]

Laws of a case:
  words     a command ends with 0, or with 2, 3 or 4 and one message that names a key or a file, and leaves no result then
  config    what `train --dry-run` prints, read again, is printed again
  finite    what was learnt and scored is finite: weights, rows, and all of the report
  plan      `plan` refuses what `train` refuses, and nothing else
  bits      with train.reproducible one history, one digest: on other ranks, copies, schedules, threads, overlapped or not
  infer     `infer --metrics`, on other ranks, gives the scores of the report, and its predictions give the test accuracy
  restart   a run that was stopped and goes on, on other ranks where train.reproducible is set, ends as one that was not

What the program refuses is tried again without one of the keys that the message names. Each case is made from its number alone:
--seed N does number N again (and, with --cases, those after it), and says all it does. A graph may be odd: without edges, with
loops, or with weights of 0 and far below others. Ends with a table, and with 1 where a law is broken; the folder of a broken case
stays. KEPT has the numbers of cases that were broken once.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import random
import shutil
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from tests.app.program import PROGRAM  # noqa: E402
from tests.faults import random_graphs  # noqa: E402
from tests.faults.random_case import Case  # noqa: E402
from tests.faults.random_values import keys_of  # noqa: E402
from tests.launcher import LAUNCHER  # noqa: E402

LAWS = ("words", "config", "finite", "plan", "bits", "infer", "restart")
OUTCOMES = ("trained", "refused", *LAWS)
# Cases that were broken once: what it was.
KEPT = {
    5048: "run.cache_memory was not named where it, by the default of run.cache_policy, does not go with history.draw",
    96: "a checkpoint of a run that checked nothing (graph.verify) had the digest of an empty split: another graph, it was said",
    534998257: "all types have features of one width: those of the first were asked for rows of the others",
    1125410: "a checkpoint after an evaluation of links was refused: it has no filtered ranks where some candidates were drawn",
    77202: "infer refused weights where trainable embeddings were wider than the features that graph.feature_norm standardised",
    92057: "a network without tensors had the average of its first one read: a run that took a checkpoint up crashed",
    350997: "infer --metrics crashed without layers or trainable embeddings: the types of the graph were left out of the network's shape",
    2199: "a checkpoint was refused: of another type than the target were the features that graph.feature_norm standardised",
    95707669: "graph.features_on was not named where features on disk in fewer bits want run.spill",
    456459140: "the same, of a graph whose weights are far from each other",
}
# Made as they were before graphs could be odd and batches large.
OLDER = (5048, 96, 534998257, 1125410, 77202, 92057, 350997, 2199)


def try_case(number, options):
    """(number, kind of graph, outcome, what broke the law, runs, seconds)"""
    folder = pathlib.Path(tempfile.mkdtemp(prefix=f"espalier-case{number}-"))
    case, start = Case(number, folder, options), time.monotonic()
    outcome, why = case.outcome()
    if why:
        (folder / "log").write_text("\n".join([*case.log, why]) + "\n")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    if options.talk:
        print("\n".join(case.log))
    kind = case.graph.words if hasattr(case, "graph") else "no graph"
    return number, kind, outcome, why and f"seed {number}, {kind}: {why}\n  {folder}", case.runs, time.monotonic() - start


def numbers_of(options):
    end = time.monotonic() + 60 * options.minutes if options.minutes else float("inf")
    count = options.cases or (float("inf") if options.minutes else 1)
    number = options.seed
    while number < options.seed + count and time.monotonic() < end:
        yield number
        number += 1


def try_cases(options, numbers=None):
    """({kind of graph: {outcome: cases}}, [what broke the laws], cases, runs)"""
    table, broken, cases, runs = collections.defaultdict(collections.Counter), [], 0, 0
    keys_of(options.program)
    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        waiting, numbers = set(), iter(numbers if numbers is not None else numbers_of(options))
        while True:
            waiting |= {pool.submit(try_case, number, options) for _, number in zip(range(options.workers - len(waiting)), numbers)}
            if not waiting:
                return table, broken, cases, runs
            done, waiting = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
            for one in done:
                number, kind, outcome, why, count, seconds = one.result()
                table[kind][outcome] += 1
                cases, runs = cases + 1, runs + count
                if options.talk or why:
                    print(why or f"seed {number}, {kind}: {outcome}, {count} runs in {seconds:.1f} s", flush=True)
                broken += [why] if why else []


def arguments(words=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--cases", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--ranks", type=int, default=4, help="at most")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="cases at a time")
    parser.add_argument("--slow", type=float, default=1, help="how many times longer a run may take")
    parser.add_argument("--program", default=PROGRAM)
    options = parser.parse_args(words)
    options.talk = not options.cases and not options.minutes
    options.older = OLDER
    random_graphs.generate.program = options.program
    return options


def main():
    options = arguments()
    os.environ.update(LAUNCHER.environment)
    print(f"seed {options.seed}", flush=True)
    table, broken, cases, runs = try_cases(options)
    print(f"{'graph':<48}" + "".join(f"{word:>10}" for word in OUTCOMES))
    for kind, counts in sorted(table.items()):
        print(f"{kind:<48}" + "".join(f"{counts[word]:>10}" for word in OUTCOMES))
    print(f"{cases} cases, {runs} runs, {len(broken)} broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

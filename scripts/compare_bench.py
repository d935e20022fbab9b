#!/usr/bin/env python3
"""One table of what benches measured, and what changed since an earlier one.

    compare_bench.py [--summary build/bench/summary.json] [--baseline OLD_SUMMARY] MEASURED.json...

MEASURED.json is what a bench writes with --benchmark_out=FILE: rate, bound and ratio = rate / bound of every
repetition. Its name, ROOM_OP.json, begins the names of its cases. The summary has, for each case, medians, the lowest
and highest ratio, #wrong, threads, and the load of the machine while it was measured (processes that ran or waited, mean
of a minute).

Rates of different days differ with what else the machine did; a ratio was measured within a second or so, so ratios are
compared. A change is marked where the ranges lowest .. highest of the two do not meet: `better` or `worse`. Exit code: 1
if anything was wrong, 2 for files that cannot be read, else 0, whatever changed.
"""

import argparse
import json
import os
import statistics
import sys


class Unreadable(Exception):
    """A file that is not there, or not what it should be."""


def read_json(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path} cannot be read: {error}") from None


def cases_of(path):
    """{name: case} of one bench, in the order they were measured."""
    bench = os.path.splitext(os.path.basename(path))[0].replace("_", "/", 1)
    runs = {}
    try:
        for run in read_json(path)["benchmarks"]:
            if run["run_type"] == "iteration":
                name = " ".join(run["run_name"].split("/iterations:")[0].split())
                runs.setdefault(f"{bench}: {name}", []).append(run)
        return {name: summarize(repetitions) for name, repetitions in runs.items()}
    except (KeyError, TypeError) as error:
        raise Unreadable(f"{path} is not what a bench writes: {error!r}") from None


def summarize(repetitions):
    def middle(key):
        return round_to_digits(statistics.median(run[key] for run in repetitions))

    ratios = [run["ratio"] for run in repetitions]
    return {"rate": middle("rate"), "bound": middle("bound"), "unit": repetitions[0].get("label", ""),
            "ratio": middle("ratio"), "low": round_to_digits(min(ratios)), "high": round_to_digits(max(ratios)),
            "wrong": int(max(run["wrong"] for run in repetitions)), "threads": int(repetitions[0]["threads"]),
            "load": round(statistics.median(run["load"] for run in repetitions), 2),
            "repetitions": len(repetitions)}


def round_to_digits(x, digits=4):
    return float(f"{x:.{digits}g}")


def change(old, new):
    """(change of the median ratio in %, what to call it) of one case."""
    percent = 100 * (new["ratio"] / old["ratio"] - 1) if old["ratio"] else float("nan")
    if new["low"] > old["high"]:
        return percent, "better"
    if new["high"] < old["low"]:
        return percent, "worse"
    return percent, ""


def width_of(names):
    return max([len(name) for name in names] + [4]) + 2


def print_table(cases):
    width = width_of(cases)
    print(f"\n{'':<{width}}{'rate':>10}{'bound':>10} {'':<9}{'ratio':>7}{'(low..high)':>16}{'load':>6}{'#wrong':>8}")
    for name, case in cases.items():
        spread = f"({case['low']:.3f}..{case['high']:.3f})"
        print(f"{name:<{width}}{case['rate']:>10.4g}{case['bound']:>10.4g} {case['unit']:<9}{case['ratio']:>7.3f}"
              f"{spread:>16}{case['load']:>6.1f}{case['wrong']:>8}")


def print_comparison(old, new, path):
    width = width_of(list(old) + list(new))
    print(f"\n# ratios, against {path}\n{'':<{width}}{'old':>8}{'new':>8}{'change':>9}")
    for name, case in new.items():
        if name not in old:
            print(f"{name:<{width}}{'-':>8}{case['ratio']:>8.3f}{'':>9}  new case")
            continue
        percent, verdict = change(old[name], case)
        print(f"{name:<{width}}{old[name]['ratio']:>8.3f}{case['ratio']:>8.3f}{percent:>+8.1f}%  {verdict}".rstrip())
    for name in [name for name in old if name not in new]:
        print(f"{name:<{width}}{old[name]['ratio']:>8.3f}{'-':>8}{'':>9}  not measured now")


def baseline_of(path):
    cases = read_json(path)
    try:
        cases = cases["cases"]
        if all({"ratio", "low", "high"} <= set(case) for case in cases.values()):
            return cases
    except (KeyError, TypeError, AttributeError):
        pass
    raise Unreadable(f"{path} is not a summary of benches")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--summary", help="write it here")
    parser.add_argument("--baseline", help="an earlier summary")
    parser.add_argument("measured", nargs="+")
    options = parser.parse_args()
    try:
        old = baseline_of(options.baseline) if options.baseline else None  # may be the file that is written below
        new = {}
        for path in options.measured:
            new.update(cases_of(path))
    except Unreadable as error:
        print(f"compare_bench: {error}", file=sys.stderr)
        return 2
    print_table(new)
    if options.summary:
        with open(options.summary, "w", encoding="utf-8") as file:
            json.dump({"cores": os.cpu_count(), "cases": new}, file, indent=1)
            file.write("\n")
    if old is not None:
        print_comparison(old, new, options.baseline)
    wrong = sum(case["wrong"] for case in new.values())
    print(f"\n{len(new)} cases, #wrong {wrong}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

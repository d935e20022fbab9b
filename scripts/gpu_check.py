#!/usr/bin/env python3
"""make gpu-check: everything that is proved on a GPU, in one table and one JSON file.

    scripts/gpu_check.py [--parts tests,jobs,epoch,profile,bench,peer,sanitizer] [--at-once N] [--json FILE] [--record] [--quick]

Parts, in this order; each line of the table is passed, failed or skipped, with its seconds and what was measured:

    tests      every tests/ROOM/OP_test.cu at each of its rank counts, as nvcc compiled it
    jobs       `espalier verify` on 1, 2 and 4 ranks that share the GPU; one epoch by each sampler on the GPU and on the CPU: sample
               digests equal, losses within LOSS_TOLERANCE; the same on two ranks; a job that goes from one device to the other
               and back, on 1, 2 and 1 ranks
    epoch      an epoch as large as ogbn-products' (2.4 M vertices, 124 M edges, 196 batches of 1024), by stage
    profile    every kernel of such an epoch's first window and steps by Nsight Compute: its share of their time, bytes/s
    bench      every bench/ROOM/OP_bench.cu: fails where #wrong is not 0
    peer       the same model in PyTorch on the same GPU and graph, where `import torch` sees it
    sanitizer  compute-sanitizer: memcheck and initcheck of a small job, racecheck of tests with barriers

Tests, jobs and the sanitizer share the GPU, --at-once at a time; what is timed runs alone. The file is written anew after each
line, so a run that is cut off leaves what it found.

Without a GPU it says so and reports every part as skipped. Exit code 1 if anything failed. Runs in the source tree (after
make cuda and the CUDA tests and benches: `make gpu-check` does it) and in the bundle of `make bundle`; needs no Python package,
but the epoch's graph is cut to 196 batches by h5py where it is (otherwise a longer epoch is measured and scaled).
"""

import argparse
import os
import pathlib
import sys
import tempfile
import threading

from gpu import fast, right
from gpu.check import Check, Skip
from gpu.places import ROOT, Bundle, SourceTree, describe_gpu

CHECKS = {"tests": right.check_tests, "jobs": right.check_jobs, "epoch": fast.check_epoch, "profile": fast.check_profile,
          "bench": fast.check_benches, "peer": fast.check_peer, "sanitizer": right.check_sanitizer}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(CHECKS))
    parser.add_argument("--at-once", type=int, default=max(1, min(8, (os.cpu_count() or 1) // 2)), help="tests and jobs at a time")
    parser.add_argument("--scale", type=int, help="log2 of the vertices of the samplers' bench; else 20 and 22")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--record", action="store_true", help="also write bench/results/GPU_NAME.json")
    parser.add_argument("--quick", action="store_true", help="small sizes: does everything start?")
    parser.add_argument("--emulated", action="store_true", help=argparse.SUPPRESS)  # to test this script
    options = parser.parse_args()
    options.parts = options.parts.split(",")
    unknown = sorted(set(options.parts) - set(CHECKS))
    if unknown:
        parser.error(f"no part {', '.join(unknown)}; the parts are {', '.join(CHECKS)}")
    return options


def skip_all(check, why):
    def skip():
        raise Skip("no GPU")

    print(f"no GPU: {why}; nothing is checked here", flush=True)
    for part in check.options.parts:
        check.part(part, skip)


def report_results(check):
    counts = check.write()
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped; {check.files[-1]}")
    return 1 if counts["failed"] else 0


def main():
    options = parse_arguments()
    place = Bundle() if (ROOT / "manifest.json").exists() else SourceTree()
    if options.emulated:
        place.program = ROOT / "build/emulated/espalier"
        place.tests = lambda: ((name, ranks, ROOT / "build/emulated/tests" / name) for name, ranks, _ in SourceTree().tests())
        place.benches = lambda: ((name, ROOT / "build/emulated/bench" / name) for name, _ in SourceTree().benches())
        gpu, why = {"name": "emulated"}, None
    else:
        gpu, why = describe_gpu()
    with tempfile.TemporaryDirectory(prefix="espalier-gpu-") as folder:
        check = Check(options, place, pathlib.Path(folder), gpu)
        if gpu is None:
            skip_all(check, why)
        else:
            print(f"{gpu['name']}, commit {place.commit()}", flush=True)
            if {"epoch", "profile", "peer"} & set(options.parts):  # it takes a while: beside the first parts
                threading.Thread(target=lambda: fast.products_graph(check), daemon=True).start()
            for part in CHECKS:
                if part in options.parts:
                    CHECKS[part](check)
        return report_results(check)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""make gpu-check: everything that is proved on a GPU, in one table and one JSON file.

    scripts/gpu_check.py [--parts machine,tests,...] [--minutes N] [--against BUNDLE [--digests-differ]] [--resume]
                         [--at-once N] [--json FILE] [--record] [--quick]

Parts, in this order, which is that of their worth; each line of the table is passed, failed, skipped or left out, with its seconds
and what was measured:

    machine    clocks, power, bus, driver, cuBLAS, and what the bus carries from and to pinned memory
    tests      every tests/ROOM/OP_test.cu at each of its rank counts, as nvcc compiled it
    jobs       `espalier verify` on 1, 2 and 4 ranks that share the GPU; one epoch by each sampler on the GPU and on the CPU: sample
               digests equal, losses within LOSS_TOLERANCE; the same on two ranks; a job that goes from one device to the other
               and back, on 1, 2 and 1 ranks
    repeats    two runs of the same epochs: samples and losses equal to the last bit
    against    with --against: epochs and benches of the program of another bundle and of this one in turn, medians, ratios and
               their spread; sample digests equal, unless --digests-differ says that they are meant to differ
    epoch      an epoch as large as ogbn-products' (2.4 M vertices, 124 M edges, 196 batches of 1024), by stage
    profile    every kernel of such an epoch's first window and steps by Nsight Compute: its share of their time, bytes/s; in TF32,
               too, and of sampling alone
    sanitizer  compute-sanitizer: memcheck of a small job with every sampler and network, initcheck, racecheck of tests with barriers
    bench      every bench/ROOM/OP_bench.cu: fails where #wrong is not 0
    skewed     epochs of an R-MAT, whose hubs have most neighbours
    peer       the same model in PyTorch on the same GPU and graph, where `import torch` sees it

Tests, jobs and the sanitizer share the GPU, --at-once at a time; what is timed runs alone. The file is written anew after each
line, so a run that is cut off leaves what it found: --resume goes on from it. With --minutes a part whose expected seconds are not
left is left out, and named.

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

from gpu import against, epoch, fast, machine, profile, right
from gpu.check import Check, Skip
from gpu.places import ROOT, Bundle, SourceTree, describe_gpu, open_bundle

CHECKS = {"machine": machine.check_machine, "tests": right.check_tests, "jobs": right.check_jobs, "repeats": epoch.check_repeats,
          "against": against.check_against, "epoch": epoch.check_epoch, "profile": profile.check_profile,
          "sanitizer": right.check_sanitizer, "bench": fast.check_benches, "skewed": epoch.check_skewed, "peer": fast.check_peer}
OF_PRODUCTS = {"repeats", "against", "epoch", "profile", "peer"}  # use its graph


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(CHECKS))
    parser.add_argument("--minutes", type=float, help="that there are: what does not fit is left out")
    parser.add_argument("--against", type=pathlib.Path, metavar="BUNDLE", help="the folder or archive of a bundle built before")
    parser.add_argument("--digests-differ", action="store_true", help="from that bundle's, as they are meant to")
    parser.add_argument("--benches", metavar="ROOMS", help="of --against: rooms or benches, with commas; else all")
    parser.add_argument("--resume", action="store_true", help="goes on from the file of a run that was cut off")
    parser.add_argument("--at-once", type=int, default=max(1, min(8, (os.cpu_count() or 1) // 2)), help="tests and jobs at a time")
    parser.add_argument("--scale", type=int, help="log2 of the vertices of the samplers' bench; else 20 and 22")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--record", action="store_true", help="also write bench/results/GPU_NAME.json")
    parser.add_argument("--quick", action="store_true", help="small sizes: does everything start?")
    parser.add_argument("--emulated", action="store_true", help=argparse.SUPPRESS)  # to test this script
    options = parser.parse_args()
    options.parts = options.parts.split(",")
    if options.minutes is not None and not options.minutes > 0:
        parser.error(f"--minutes {options.minutes}: more than 0")
    if (options.digests_differ or options.benches) and options.against is None:
        parser.error("--digests-differ and --benches are of --against")
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
    left_out = f", {counts['left out']} left out" if counts["left out"] else ""
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped{left_out}; {check.files[-1]}")
    return 1 if counts["failed"] else 0


def run_parts(check):
    for part in CHECKS:
        if part in check.options.parts:
            CHECKS[part](check)
        if part == "machine" and OF_PRODUCTS & set(check.options.parts):  # it takes a while: beside the parts that are not timed
            threading.Thread(target=lambda: epoch.products_graph(check), daemon=True).start()


def main():
    options = parse_arguments()
    place = Bundle() if (ROOT / "manifest.json").exists() else SourceTree()
    if options.emulated:
        place.program = ROOT / "build/emulated/espalier"
        place.epochs = ROOT / "build/emulated/bench/train/epochs"
        place.tests = lambda: ((name, ranks, ROOT / "build/emulated/tests" / name) for name, ranks, _ in SourceTree().tests())
        place.benches = lambda: ((name, ROOT / "build/emulated/bench" / name) for name, _ in SourceTree().benches())
        gpu, why = {"name": "emulated"}, None
    else:
        gpu, why = describe_gpu()
    with tempfile.TemporaryDirectory(prefix="espalier-gpu-") as folder:
        try:
            before = open_bundle(options.against, pathlib.Path(folder)) if options.against else None
            check = Check(options, place, pathlib.Path(folder), gpu, before)
            if options.resume:
                check.resume()
        except ValueError as wrong:
            print(f"gpu_check.py: {wrong}", file=sys.stderr)
            return 2
        if gpu is None:
            skip_all(check, why)
        else:
            print(f"{gpu['name']}, commit {place.commit()}", flush=True)
            run_parts(check)
        return report_results(check)


if __name__ == "__main__":
    sys.exit(main())

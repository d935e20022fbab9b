"""How fast is it? Benches, and PyTorch beside an epoch."""

import json
import sys

from .check import Skip
from .epoch import products_graph

# ---- Benches ---------------------------------------------------------------------------------------------------------

BENCH_SECONDS = {"dense/spmm_bench": 22, "dense/gemm_bench": 13, "dense/gather_bench": 9, "sample/samplers_bench": 9}  # on an H100


def bench_seconds(name):
    return BENCH_SECONDS.get(name, 3)


def check_benches(check):
    for name, program in check.place.benches():
        check.part(f"bench {name}", lambda: run_bench(check, program), seconds=bench_seconds(name))


def run_bench(check, program, place=None):
    out = check.folder / "bench.json"
    out.unlink(missing_ok=True)
    check.run(program, "--out", out, *(["--quick"] if check.options.quick else []),
              *(["--scale", check.options.scale] if check.options.scale else []), timeout=550, place=place)
    return json.loads(out.read_text())


# ---- PyTorch on the same GPU -----------------------------------------------------------------------------------------


def check_peer(check):
    check.part("PyTorch on the same graph", lambda: measure_peer(check), seconds=30)


def measure_peer(check):
    graph = products_graph(check)
    printed = check.run_here(sys.executable, check.place.peer, graph, *(["--quick"] if check.options.quick else []), timeout=580)
    figures = json.loads([line for line in printed.splitlines() if line.startswith("{")][-1])  # beside warnings
    if "missing" in figures:
        raise Skip(figures["missing"])
    ours = {line["name"].rpartition(", ")[2]: line["figures"]["seconds"]["total"] for line in check.lines
            if line["name"].startswith("epoch like") and line["state"] == "passed"}
    precisions = {name: "tf32" if name.endswith("tf32") else "fp32" for name in figures}
    figures["ours is faster by"] = {name: figures[name]["seconds"]["total"] / ours[precision]
                                    for name, precision in precisions.items() if "seconds" in figures[name] and precision in ours}
    return figures

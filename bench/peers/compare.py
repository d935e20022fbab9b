#!/usr/bin/env python3
"""Espalier beside its peers: the same graph files, fanouts, batches, network and threads; one table, and peers.json.

    bash bench/peers/setup.sh                  # PyG, DGL, SciPy into build/peers/venv; a peer it cannot install is
                                               # named as missing in the table
    python3 bench/peers/compare.py --program build/cpu/espalier [--graph FILE ...] [--quick]

sample    neighbour sampling 15,10,5 on a symmetrised R-MAT, batches of 1024, without a network. Epochs of equal length:
          the training split of all tools is cut to the same vertices. Two threads: a peer's better way, two threads
          within an operation or two sampling processes; the remark says which.
labor     the same by LABOR, where a frontier shares its draws and needs fewer rows; on a smaller R-MAT in batches of 256
          and on the real graphs too. A vertex has as many picks as its fanout on average only.
ladies    512 vertices for each of 3 layers, one thread, against the authors' algorithm in SciPy. Espalier's mode
          `reference` draws and weights as they do, `debiased` is its default.
train     3 layers of W_self h + W_neighbour mean(h), ReLU and dropout between them, Adam, Glorot weights, features
          standardised; an epoch without evaluation. Accuracy is exact (all neighbours), after equally many epochs; an
          R-MAT's labels are independent of its edges, its accuracies say nothing. Sampling processes are tried on the
          first graph and stay where they are faster. bf16: products in bfloat16, a peer's by torch.autocast. LABOR: with
          that sampler instead.
distributed
          The same on 2 and 4 processes of one thread, `threads` counts them: ours are MPI ranks with graph.order,
          DistDGL's trainers with a server each (distdgl_peer.py). A step averages a batch of 1024 from every process.
          DistDGL's trainers draw from their parts; so does Espalier with local batches, as many groups as ranks: x is
          over that row. DistDGL is tried with and without a sampling process beside each trainer, on every graph. Moved
          MB are those of sampling and fetching in an epoch, gradients not counted. The remark says how long the parts
          took to make, for Espalier the whole command, for DistDGL without loading the graph.

One row is a tool's own process. Times are medians over epochs after one warm-up; `x` is the time per seed over
Espalier's of the same task and graph (ladies: over its mode `reference`, distributed: over `local`). MB is the peak
of resident memory while drawing or training, for a peer with its interpreter and libraries (some 500 MB) and the
proportional set of its sampling processes; Espalier's is that of the whole run, loading and, in training, exact
evaluation included, and the sum over its ranks. DistDGL's is the proportional set of all its processes after the last
epoch. B/edge is the graph's memory: what is resident after loading it and drawing one batch, less the empty
interpreter with its imports, over the edges of the file. For Espalier, the peak of a run with one batch in bulk less
that of a run on a graph of 16 vertices.

How edges are counted. Espalier, DGL, GraphBolt and PyG's layered sampler draw one block per layer, in which all
vertices met so far draw anew, and count the entries of all blocks. PyG's NeighborLoader lets a vertex draw once only,
with the fanout of the hop at which it is met, and counts the edges of that one subgraph: fewer edges for the same
seeds, so seeds/s is the fairer rate; in training each of its layers computes on the whole subgraph. In `ladies`
entries of A + I count, the diagonal too. Espalier keeps a frontier vertex that was not drawn in the next frontier,
SciPy's next frontier is the draws and the batch: more edges per batch for the same numbers.

#wrong counts, in batches checked against the file: picks that are no in-neighbours or come twice, vertices without
exactly min(fanout, in-degree) picks (ladies: entries that A + I lacks or the block lacks). Espalier's samples are
verified edge by edge in bench/sample; here it counts epochs whose digest depends on the number of threads or ranks.

Exit codes: 0 done, 1 something was wrong or failed, 2 usage. What is merely missing is no failure.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import sys
import time

try:
    import graph_file
except ImportError:
    sys.exit("compare.py: this python3 has no h5py and numpy; install python3-h5py or run it with /usr/bin/python3")
import processes
from processes import Failed
from table import Table, seconds_of

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HERE = pathlib.Path(__file__).resolve().parent
FOLDER = ROOT / "build/bench/peers"
TIME_LIMIT = 400  # seconds, for one process

FANOUT, LADIES_FANOUT, BATCH = "15,10,5", "512,512,512", 1024
NEARLY_A_BATCH = 1000  # a group of local batches may be larger than others by a little, yet must not need one more
NETWORK = {"hidden": 256, "dropout": 0.5, "learning_rate": 0.003}

# tool: script, packages whose absence explains its own, flags
PYG, GRAPHBOLT = ("torch", "torch-geometric", "torch-scatter", "torch-sparse"), ("torch", "dgl", "graphbolt")
LABOR, AUTOCAST = {"sampler": "labor"}, {"autocast": True}
PEERS = {
    "PyG": ("pyg_peer.py", PYG, {}),
    "PyG layered": ("pyg_peer.py", PYG, {"variant": "layered"}),
    "PyG layered bf16": ("pyg_peer.py", PYG, {"variant": "layered", **AUTOCAST}),
    "DGL": ("dgl_peer.py", ("torch", "dgl"), {}),
    "DGL bf16": ("dgl_peer.py", ("torch", "dgl"), AUTOCAST),
    "DGL LABOR": ("dgl_peer.py", ("torch", "dgl"), LABOR),
    "DGL LABOR bf16": ("dgl_peer.py", ("torch", "dgl"), {**LABOR, **AUTOCAST}),
    "GraphBolt": ("dgl_peer.py", GRAPHBOLT, {"variant": "graphbolt"}),
    "GraphBolt bf16": ("dgl_peer.py", GRAPHBOLT, {"variant": "graphbolt", **AUTOCAST}),
    "GraphBolt LABOR": ("dgl_peer.py", GRAPHBOLT, {"variant": "graphbolt", **LABOR}),
    "GraphBolt LABOR bf16": ("dgl_peer.py", GRAPHBOLT, {"variant": "graphbolt", **LABOR, **AUTOCAST}),
    "LADIES SciPy": ("ladies_scipy.py", ("scipy",), {}),
    "DistDGL": ("distdgl_peer.py", ("torch", "dgl"), {}),
    "DistDGL GraphBolt": ("distdgl_peer.py", GRAPHBOLT, {"variant": "graphbolt"}),
}
SAMPLERS, LABOR_SAMPLERS = ("PyG", "DGL", "GraphBolt"), ("DGL LABOR", "GraphBolt LABOR")
# Ours in training: keys beside those of every tool.
OURS = {"Espalier": (), "Espalier bf16": ('train.precision="bf16"',), "Espalier LABOR": ("sampler.kind=labor",),
        "Espalier LABOR bf16": ("sampler.kind=labor", 'train.precision="bf16"')}
TRAINERS = ("PyG", "PyG layered", "DGL", "GraphBolt")
TRAINERS_BF16 = ("PyG layered bf16", "DGL bf16", "GraphBolt bf16", "DGL LABOR", "DGL LABOR bf16", "GraphBolt LABOR bf16")
DISTRIBUTED = ("DistDGL", "DistDGL GraphBolt")

# One node, possibly root in a container; no network is searched for. Threads are run.threads.
ESPALIER_ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_pml": "ob1",
                        "OMPI_MCA_btl": "self,vader", "OMPI_MCA_plm": "isolated"}
MPIRUN = ("mpirun", "-q", "--oversubscribe", "--bind-to", "none", "-np")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/cpu/espalier")
    parser.add_argument("--graph", nargs="+", default=[], metavar="FILE",
                        help="train on these too, beside an R-MAT (default: data/debian.h5 where it is)")
    parser.add_argument("--sample-graph", metavar="FILE", help="sample from this (default: an R-MAT)")
    parser.add_argument("--venv", default="build/peers/venv", help="where setup.sh installed the peers")
    parser.add_argument("--narrow", metavar="PROGRAM", help="built with ARCH=x86-64-v3: sampling is timed with both")
    tasks = ["sample", "labor", "ladies", "train", "distributed"]
    parser.add_argument("--only", nargs="+", default=tasks, choices=tasks)
    parser.add_argument("--quick", action="store_true", help="smaller graphs, fewer epochs: does everything run?")
    options = parser.parse_args()
    if not os.access(options.program, os.X_OK):
        parser.error(f"{options.program}: no such program; `make` builds it")
    options.programs = {"Espalier": options.program}
    if options.narrow:
        options.programs["Espalier v3"] = options.narrow
    return options


class Sizes:
    """How much of everything."""

    def __init__(self, quick):
        self.sample_scale, self.sample_batches = (17, 10) if quick else (20, 30)
        self.train_scale, self.train_batches = (15, 4) if quick else (17, 8)
        self.sample_repeats, self.ladies_repeats, self.train_repeats = (3, 2, 2) if quick else (5, 3, 5)
        self.ladies_batches = 5 if quick else 10
        self.ladies_batch_sizes = (512,) if quick else (512, 1024)
        self.process_counts = (2,) if quick else (2, 4)


# ---- Processes -------------------------------------------------------------------------------------------------------


def run(command, environment):
    return processes.run(command, environment, TIME_LIMIT)


def run_espalier(program, command, graph, *keys, ranks=0):
    """report.json of a run, without mpirun or on so many ranks; keys are section.key=value."""
    output = FOLDER / "espalier"
    output.mkdir(parents=True, exist_ok=True)
    config = output / "job.toml"
    config.write_text(f'[graph]\nfile = "{graph}"\n\n[output]\ndir = "{output}"\n')
    run([*((*MPIRUN, ranks) if ranks else ()), program, command, config, "--overwrite", *keys], ESPALIER_ENVIRONMENT)
    return json.loads((output / "report.json").read_text())


def run_peer(options, tool, task, graph, threads, workers, **flags):
    """What the peer's script answers, or {"missing": reason}."""
    script, packages, own_flags = PEERS[tool]
    python = pathlib.Path(options.venv) / "bin/python"
    if not python.exists():
        return {"missing": "bash bench/peers/setup.sh installs it"}
    words = [python, HERE / script, task, graph, "--workers", workers]
    for name, value in (own_flags | flags).items():
        words += ["--" + name.replace("_", "-")] + ([] if value is True else [value])
    environment = {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": "1",
                   "DGLBACKEND": "pytorch", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        answer = json.loads(run(words, environment).splitlines()[-1])
    except Failed as failed:
        return {"failed": str(failed)}
    if "missing" in answer:
        notes = [pathlib.Path(options.venv) / "missing" / package for package in packages]
        reasons = [note.read_text().strip() for note in notes if note.exists()]
        answer["missing"] = (reasons or [answer["missing"]])[0]
    return answer


# ---- Graphs ----------------------------------------------------------------------------------------------------------


def make_rmat(program, scale, features, vertices, edge_factor=16):
    """An R-MAT with `vertices` training vertices, kept from run to run."""
    name = f"rmat{scale}" + (f"x{edge_factor}" if edge_factor != 16 else "")
    whole, cut = FOLDER / f"{name}-{features}.h5", FOLDER / f"{name}-{features}-{vertices}.h5"
    if not whole.exists():
        unfinished = whole.with_suffix(".part")
        run([program, "generate", "rmat", "--scale", scale, "--edge-factor", edge_factor, "--symmetrize",
             "--drop-self-loops", "--features", features, "--classes", 16, "--seed", 0, "-o", unfinished, "--overwrite"],
            ESPALIER_ENVIRONMENT)
        unfinished.rename(whole)
    if not cut.exists():
        unfinished = cut.with_suffix(".part")
        graph_file.cut_training_split(whole, unfinished, vertices)
        run([program, "digest", "--write", unfinished], ESPALIER_ENVIRONMENT)
        unfinished.rename(cut)
    return cut


def label_of(graph):
    return pathlib.Path(graph).stem.split("-")[0]


# ---- The comparisons -------------------------------------------------------------------------------------------------


def from_report(report, seeds, remark=""):
    """A report of Espalier's in the words of protocol.py; the first epoch is warm-up."""
    epochs = report["epochs"][1:]
    whole = "total" if report["command"] == "train" else "sample"
    answer = {"seconds": [epoch["seconds"][whole] - epoch["seconds"].get("evaluate", 0) for epoch in epochs],
              "edges": [epoch["sampled_edges"] for epoch in epochs], "batches": epochs[0]["batches"], "seeds": seeds,
              "memory": report["peak_memory_bytes"]["sum"], "wrong": 0, "remark": remark,
              "digests": [epoch["sample_digest"] for epoch in epochs]}
    if report["ranks"] > 1:
        answer["moved"] = [sum(epoch["bytes"][phase]["total"] for phase in ("sample", "fetch")) for epoch in epochs]
    if report["command"] == "train":
        answer.update({"losses": [epoch["loss"] for epoch in report["epochs"]],
                       "valid": report["epochs"][-1]["valid"]["accuracy"], "test": report["test"]["accuracy"]})
    return answer


def empty_espalier(program):
    """Peak bytes of a run on next to no graph."""
    tiny = FOLDER / "tiny.h5"
    run([program, "generate", "rmat", "--scale", 4, "--features", 1, "-o", tiny, "--overwrite"], ESPALIER_ENVIRONMENT)
    return run_espalier(program, "sample", tiny, "run.threads=1", "sampler.bulk=1")["peak_memory_bytes"]["max"]


def sample_by_espalier(options, sizes, task, graph, batch, table):
    keys = [f"sampler.fanout=[{FANOUT}]", f"sampler.batch_size={batch}",
            f"sampler.kind={'labor' if task.startswith('labor') else 'graphsage'}"]
    small = run_espalier(options.program, "sample", graph, *keys, "run.threads=1", "sampler.bulk=1")
    graph_bytes = small["peak_memory_bytes"]["max"] - empty_espalier(options.program)
    seeds = len(graph_file.read_split(graph, "train"))
    digests = None
    for name, program in options.programs.items():
        for threads in (1, 2):
            report = run_espalier(program, "sample", graph, *keys, f"run.threads={threads}",
                                  "--epochs", sizes.sample_repeats + 1)
            answer = from_report(report, seeds)
            digests = digests or answer["digests"]
            answer["wrong"] = sum(one != two for one, two in zip(digests, answer["digests"]))
            answer.update({"graph_bytes": graph_bytes, "graph_edges": report["graph"]["edges"]})
            table.add(task, label_of(graph), name, threads, answer)


def sample_by_peer(options, sizes, task, graph, batch, tool, table):
    flags = {"fanout": FANOUT, "batch": batch, "repeats": sizes.sample_repeats}
    table.add(task, label_of(graph), tool, 1, run_peer(options, tool, "sample", graph, 1, 0, **flags))
    if "raw" in table.rows[-1] and "missing" in table.rows[-1]["raw"]:
        return
    answers = {"2 threads": run_peer(options, tool, "sample", graph, 2, 0, **flags),
               "2 workers": run_peer(options, tool, "sample", graph, 1, 2, **flags)}
    table.add(task, label_of(graph), tool, 2, better_of(answers))


def better_of(answers):
    """The fastest, with its name and the others' seconds in the remark."""
    name = min(answers, key=lambda key: seconds_of(answers[key]))
    best = dict(answers[name])
    others = ", ".join(f"{other} {seconds_of(answers[other]):.3f} s" for other in answers if other != name)
    best["remark"] = "; ".join(word for word in (best.get("remark"), f"{name} ({others})") if word)
    best["way"] = name
    return best


def sampling_graph(options, sizes):
    return options.sample_graph or make_rmat(options.program, sizes.sample_scale, 4, sizes.sample_batches * BATCH)


def compare_sampling(options, sizes, table):
    graph = sampling_graph(options, sizes)
    sample_by_espalier(options, sizes, "sample", graph, BATCH, table)
    for tool in SAMPLERS:
        sample_by_peer(options, sizes, "sample", graph, BATCH, tool, table)


def compare_labor(options, sizes, table):
    """On the R-MAT of `sample`, on a smaller one in batches of 256, and on the real graphs."""
    smaller = make_rmat(options.program, sizes.sample_scale - 2, 4, sizes.sample_batches * 256)
    for graph, batch in ((sampling_graph(options, sizes), BATCH), (smaller, 256),
                         *((graph, BATCH) for graph in real_graphs(options))):
        sample_by_espalier(options, sizes, f"labor {batch}", graph, batch, table)
        for tool in LABOR_SAMPLERS:
            sample_by_peer(options, sizes, f"labor {batch}", graph, batch, tool, table)


def compare_ladies(options, sizes, table):
    graph = sampling_graph(options, sizes)
    seeds = len(graph_file.read_split(graph, "train"))
    for batch in sizes.ladies_batch_sizes:
        for mode in ("reference", "debiased"):
            report = run_espalier(options.program, "sample", graph, "sampler.kind=ladies", f"sampler.mode={mode}",
                                  f"sampler.fanout=[{LADIES_FANOUT}]", f"sampler.batch_size={batch}", "run.threads=1",
                                  "--epochs", sizes.ladies_repeats + 1)
            table.add(f"ladies {batch}", label_of(graph), f"Espalier {mode}", 1, from_report(report, seeds))
        table.add(f"ladies {batch}", label_of(graph), "LADIES SciPy", 1,
                  run_peer(options, "LADIES SciPy", "sample", graph, 1, 0, fanout=LADIES_FANOUT, batch=batch,
                           batches=sizes.ladies_batches, repeats=sizes.ladies_repeats))


def training_keys(sizes):
    return [f"sampler.fanout=[{FANOUT}]", f"sampler.batch_size={BATCH}", "model.kind=sage", "model.layers=3",
            f"model.hidden={NETWORK['hidden']}", f"model.dropout={NETWORK['dropout']}",
            f"train.learning_rate={NETWORK['learning_rate']}", "train.eval_every=0", "graph.feature_norm=standard",
            f"train.epochs={sizes.train_repeats + 1}"]


def train_by_espalier(options, sizes, graph, tool, table):
    report = run_espalier(options.program, "train", graph, "run.threads=2", "train.batches_per_step=1",
                          *training_keys(sizes), *OURS[tool])
    seeds = len(graph_file.read_split(graph, "train"))
    table.add("train", label_of(graph), tool, 2, from_report(report, seeds))


def fastest_way(ways, key, measure):
    """The answer of measure(sampling processes), for all numbers in ways[key]; the fastest stays there."""
    names = {f"{workers} worker{'s' * (workers > 1)}" if workers else "sampling in turn": workers
             for workers in ways[key]}
    answers = {}
    for name, workers in names.items():
        answers[name] = measure(workers)
        if "missing" in answers[name]:
            break
    if len(answers) > 1:
        best = better_of(answers)
        ways[key] = [names[best["way"]]]
    else:
        best = dict(next(iter(answers.values())))
        best["remark"] = "; ".join(word for word in (best.get("remark"), next(iter(answers))) if word)
    return best


def training_flags(sizes):
    return {"fanout": FANOUT, "batch": BATCH, "repeats": sizes.train_repeats, "standardise": True, **NETWORK}


def train_by_peer(options, sizes, graph, tool, ways, table):
    answer = fastest_way(ways, tool, lambda workers: run_peer(
        options, tool, "train", graph, 2, workers, **training_flags(sizes)))
    table.add("train", label_of(graph), tool, 2, answer)


def real_graphs(options):
    debian = ROOT / "data/debian.h5"
    if options.graph or options.quick:
        return options.graph
    if debian.exists():
        return [debian]
    print("compare.py: no data/debian.h5; `make run` makes it, or name graphs with --graph", file=sys.stderr)
    return []


def training_graphs(options, sizes, seeds):
    """An R-MAT with batches of so many seeds, and the real graphs."""
    return [make_rmat(options.program, sizes.train_scale, 128, sizes.train_batches * seeds), *real_graphs(options)]


def compare_training(options, sizes, table):
    """In float32, and by whoever can in bfloat16; with the sampler of all, and with LABOR."""
    tools = TRAINERS if options.quick else TRAINERS + TRAINERS_BF16
    ways = {tool: [0] if options.quick else [0, 2] for tool in tools}
    for graph in training_graphs(options, sizes, BATCH):
        for tool in OURS:
            train_by_espalier(options, sizes, graph, tool, table)
        for tool in tools:
            train_by_peer(options, sizes, graph, tool, ways, table)


# ---- On several processes --------------------------------------------------------------------------------------------


def make_order(program, graph):
    """The order that `espalier partition` makes of a graph, and how many seconds that takes."""
    order, begin = FOLDER / f"{pathlib.Path(graph).stem}.order.h5", time.perf_counter()
    run([program, "partition", graph, "-o", order, "--overwrite"], ESPALIER_ENVIRONMENT)
    return order, time.perf_counter() - begin


def distribute_by_espalier(options, sizes, graph, ranks, batches, order, seconds, table):
    """Training on so many ranks. Its epochs' digests must be those of sampling on one."""
    keys = [f'graph.order="{order}"', f"sampler.groups={ranks if batches == 'local' else 0}", "run.threads=1"]
    report = run_espalier(options.program, "train", graph, *keys, *training_keys(sizes),
                          f"train.batches_per_step={ranks}", ranks=ranks)
    alone = run_espalier(options.program, "sample", graph, *keys, f"sampler.fanout=[{FANOUT}]",
                         f"sampler.batch_size={BATCH}", "--epochs", sizes.train_repeats + 1)
    answer = from_report(report, len(graph_file.read_split(graph, "train")), f"order in {seconds:.1f} s")
    answer["wrong"] = sum(one["sample_digest"] != two["sample_digest"]
                          for one, two in zip(report["epochs"], alone["epochs"]))
    table.add("distributed", label_of(graph), f"Espalier {batches}", ranks, answer)


def distribute_by_peer(options, sizes, graph, tool, trainers, table):
    parts = FOLDER / f"{tool.lower().replace(' ', '-')}-{trainers}"
    shutil.rmtree(parts, ignore_errors=True)
    flags = {"processes": trainers, "parts": parts}
    made = run_peer(options, tool, "partition", graph, 1, 0, standardise=True, **flags)
    if "seconds" in made:
        ways = {tool: [0] if options.quick else [0, 1]}
        answer = fastest_way(ways, tool, lambda workers: run_peer(
            options, tool, "train", graph, 1, workers, **flags, **training_flags(sizes)))
        answer["remark"] = f"parts in {made['seconds']:.1f} s; {answer.get('remark', '')}"
        answer["parts_seconds"] = made["seconds"]
    else:
        answer = made
    table.add("distributed", label_of(graph), tool, trainers, answer)


def compare_distributed(options, sizes, table):
    for graph in training_graphs(options, sizes, NEARLY_A_BATCH):
        order, seconds = make_order(options.program, graph)
        for count in sizes.process_counts:
            for batches in ("local", "uniform"):
                distribute_by_espalier(options, sizes, graph, count, batches, order, seconds, table)
            for tool in DISTRIBUTED:
                distribute_by_peer(options, sizes, graph, tool, count, table)


def main():
    options = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("compare.py: ended by SIGTERM"))  # and with it what it runs
    FOLDER.mkdir(parents=True, exist_ok=True)
    sizes, table = Sizes(options.quick), Table()
    for task, compare in (("sample", compare_sampling), ("labor", compare_labor), ("ladies", compare_ladies),
                          ("train", compare_training), ("distributed", compare_distributed)):
        if task not in options.only:
            continue
        try:
            compare(options, sizes, table)
        except Failed as failed:
            table.add(task, "-", "Espalier", 1, {"failed": str(failed)})
    table.compare_with(("Espalier", "Espalier reference", "Espalier local"))
    output = FOLDER.parent / "peers.json"
    output.write_text(json.dumps({"quick": options.quick, "rows": table.rows}, indent=1) + "\n")
    print(table.text())
    print(f"\nmeasured: {os.path.relpath(output)}")
    bad = [row for row in table.rows if row.get("#wrong") or "failed" in row["raw"]]
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

"""How long does an epoch take, as large as ogbn-products', and of a graph with hubs? By stage, in every precision, with features
on the host."""

import json
import os
import statistics

from .check import GOALS, Failure, TimeIsUp, generate, train
from .machine import under_load

EPOCH_BATCHES = 196  # of 1024: the training vertices of ogbn-products
RANKS = max(1, min(8, (os.cpu_count() or 1) // 2))  # that make graphs
SEVERAL_EPOCHS = 6  # the first is warm-up

# ---- Graphs ----------------------------------------------------------------------------------------------------------


def products_graph(check):
    """A planted graph of ogbn-products' size; by h5py, where it is, with EPOCH_BATCHES batches of training vertices."""
    return graph_of_epochs(check, "products.h5", "planted", "--nodes", 20000 if check.options.quick else 2449029,
                           "--degree", 50.5, "--homophily", 0.8)


def skewed_graph(check):
    """R-MAT: few vertices have most neighbours, as in graphs that people make."""
    return graph_of_epochs(check, "skewed.h5", "rmat", "--scale", 14 if check.options.quick else 21, "--edge-factor", 29,
                           "--symmetrize")


def graph_of_epochs(check, name, *arguments):
    with check.products:
        graph = check.folder / name
        if not graph.exists():
            made = generate(check, f"made_{name}", *arguments, "--classes", 47, "--features", 100, "--seed", 0, ranks=RANKS)
            if cut_training_vertices(made, EPOCH_BATCHES * 1024):
                check.run(check.place.cpu_program, "-q", "digest", "--write", made)
            made.rename(graph)
        return graph


def cut_training_vertices(path, most):
    """Were there more? Without h5py they stay, and measured epochs are scaled."""
    try:
        import h5py
    except ImportError:
        return False
    with h5py.File(path, "r+") as file:
        train_ids = file["split/train"][:]
        if len(train_ids) <= most:
            return False
        del file["split/train"]
        file["split/train"] = train_ids[:: len(train_ids) // most][:most]
    return True


# ---- Runs ------------------------------------------------------------------------------------------------------------


def products_keys(device, epochs):
    return [f"run.device={device}", f"train.epochs={epochs}", "train.eval_every=0", "sampler.batch_size=1024",
            "sampler.fanout=[15,10,5]", "model.hidden=256", "model.layers=3", "train.batches_per_step=1"]


def run_variants(check, graph, variants, epochs, place=None, reads_once=True):
    """{name: report, or the Failure} of {name: keys}, by the program of the place, else of this one. Where it has bench/train/epochs,
    which `reads_once` allows, all are of one process, which reads the graph once."""
    place = place or check.place
    keys = products_keys("cuda", epochs)
    if not (reads_once and place.epochs.exists()):
        return {name: report_or_failure(check, graph, [*keys, *more], place) for name, more in variants.items()}
    out, words, wrong = check.own_folder() / "reports.json", [], None
    for name, more in variants.items():
        words += ["--variant", name, *more]
    try:
        check.run(place.epochs, "--out", out, f"graph.file={graph}", "run.threads=4", *keys, *words, timeout=550, place=place)
    except (Failure, TimeIsUp) as failure:  # of the variant that it came to; those before stand in the file
        wrong = failure
    reports = json.loads(out.read_text()) if out.exists() else {}
    return {name: report_of(reports.get(name), wrong) for name in variants}


def report_of(report, wrong):
    if report is None:
        return wrong or Failure("there is no report of it")
    return Failure(report["error"]) if "error" in report else report


def report_or_failure(check, graph, keys, place):
    try:
        return train(check, place.program, graph, *keys, timeout=550, place=place)[0]
    except Failure as failure:
        return failure


def is_report(found):
    return not isinstance(found, Exception)


# ---- The same epoch twice ----------------------------------------------------------------------------------------------


def check_repeats(check):
    check.part("the same epochs twice", lambda: expect_the_same_twice(check), seconds=14)


def expect_the_same_twice(check):
    """Samples and losses of two processes are equal to the last bit."""
    turns = [report_or_failure(check, products_graph(check), products_keys("cuda", 2), check.place) for _ in range(2)]
    for turn in turns:
        if not is_report(turn):
            raise turn
    expect_repeats("now", turns)
    return {"loss": turns[0]["epochs"][-1]["loss"], "digest": turns[0]["epochs"][-1]["sample_digest"]}


def expect_repeats(program, turns):
    first, *others = ([(epoch["sample_digest"], epoch["loss"]) for epoch in turn["epochs"]] for turn in turns)
    for turn, other in enumerate(others, 2):
        if other != first:
            raise Failure(f"the program {program} does not repeat itself: digests and losses {first} in turn 1, {other} in turn {turn}")


# ---- Epochs of one program -------------------------------------------------------------------------------------------

EPOCHS = {"fp32": [], "tf32": ["train.precision=tf32"], "bf16": ["train.precision=bf16"],
          "SpMM by cuSPARSE": ["train.sparse_products=cusparse"], "fp32, next samples beside": ["run.overlap=true"],
          "features of 16 bits on the host": ["graph.features_on=host", "graph.feature_bits=16"],
          "features on the host": ["graph.features_on=host"]}
SKEWED = {"fp32": [], "features on the host": ["graph.features_on=host"]}
EXPECTED = {"features of 16 bits on the host": 12, "features on the host": 16}  # seconds on an H100, where not 7


def check_epoch(check):
    measure_epochs(check, "epoch like ogbn-products", products_graph, EPOCHS)


def check_skewed(check):
    measure_epochs(check, "epoch of a graph with hubs", skewed_graph, SKEWED, of_graph=25)


def measure_epochs(check, title, graph, variants, of_graph=0):
    """`of_graph`: seconds that making the graph takes, where it was not made beside other parts."""
    def measure(lines):
        names = [line.partition(", ")[2] for line in lines]
        made = graph(check)
        with under_load() as load:
            reports = run_variants(check, made, {name: variants[name] for name in names}, SEVERAL_EPOCHS)
        return {line: figures_of(reports[name], load) if is_report(reports[name]) else reports[name]
                for line, name in zip(lines, names)}

    expected = {f"{title}, {name}": EXPECTED.get(name, 7) for name in variants}
    expected[next(iter(expected))] += of_graph
    check.parts_of_one(expected, measure)


def figures_of(report, load):
    """The median of the epochs after the first."""
    epochs = report["epochs"][1:]
    epoch = sorted(epochs, key=lambda one: one["seconds"]["total"])[len(epochs) // 2]
    if not epoch["loss"] > 0:
        return Failure(f"loss {epoch['loss']}")
    scale = EPOCH_BATCHES / epoch["batches"]
    return {"seconds": {stage: scale * value for stage, value in epoch["seconds"].items()},
            "lowest": scale * min(one["seconds"]["total"] for one in epochs),
            "highest": scale * max(one["seconds"]["total"] for one in epochs),
            "batches": epoch["batches"], "scaled by": scale, "loss": epoch["loss"], "sampled edges": epoch["sampled_edges"],
            "edges/s": epoch["sampled_edges"] / max(epoch["seconds"]["sample"], 1e-9), "edges": report["graph"]["edges"],
            "goal": GOALS["epoch seconds"], "under load": dict(load)}


def median_seconds(epochs, stage):
    return statistics.median(epoch["seconds"][stage] for epoch in epochs)

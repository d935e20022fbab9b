"""How fast is it? Benches, an epoch as large as ogbn-products', its kernels, PyTorch beside it."""

import collections
import csv
import json
import os
import shutil
import subprocess
import sys

from kernel_names import demangle, describe

from .check import GOALS, Failure, Skip, generate, train

EPOCH_BATCHES = 196  # of 1024: the training vertices of ogbn-products

# ---- Benches ---------------------------------------------------------------------------------------------------------


def check_benches(check):
    for name, program in check.place.benches():
        check.part(f"bench {name}", lambda: run_bench(check, program))


def run_bench(check, program):
    out = check.folder / "bench.json"
    out.unlink(missing_ok=True)
    check.run(program, "--out", out, *(["--quick"] if check.options.quick else []),
              *(["--scale", check.options.scale] if check.options.scale else []), timeout=550)
    return json.loads(out.read_text())


# ---- One epoch of products' size -------------------------------------------------------------------------------------


def products_graph(check):
    """A planted graph of ogbn-products' size; by h5py, where it is, with EPOCH_BATCHES batches of training vertices."""
    with check.products:
        graph = check.folder / "products.h5"
        if not graph.exists():
            made = generate(check, "made.h5", "planted", "--nodes", 20000 if check.options.quick else 2449029, "--classes", 47,
                            "--degree", 50.5, "--homophily", 0.8, "--features", 100, "--seed", 0,
                            ranks=max(1, min(8, (os.cpu_count() or 1) // 2)))
            if cut_training_vertices(made, EPOCH_BATCHES * 1024):
                check.run(check.place.cpu_program, "-q", "digest", "--write", made)
            made.rename(graph)
        return graph


def cut_training_vertices(path, most):
    """Were there more? Without h5py they stay, and measure_epoch scales."""
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


def products_keys(device, epochs):
    return [f"run.device={device}", f"train.epochs={epochs}", "train.eval_every=0", "sampler.batch_size=1024",
            "sampler.fanout=[15,10,5]", "model.hidden=256", "model.layers=3", "train.batches_per_step=1"]


EPOCHS = {"fp32": [], "tf32": ["train.precision=tf32"], "bf16": ["train.precision=bf16"],
          "SpMM by cuSPARSE": ["train.sparse_products=cusparse"], "fp32, next samples beside": ["run.overlap=true"],
          "features on the host": ["graph.features_on=host"],
          "features of 16 bits on the host": ["graph.features_on=host", "graph.feature_bits=16"]}


def check_epoch(check):
    for name, keys in EPOCHS.items():
        check.part(f"epoch like ogbn-products, {name}", lambda: measure_epoch(check, keys))


def measure_epoch(check, keys):
    graph = products_graph(check)
    report, _ = train(check, check.place.program, graph, *products_keys("cuda", 6), *keys, timeout=550)
    epochs = report["epochs"][1:]  # the first is warm-up
    epoch = sorted(epochs, key=lambda one: one["seconds"]["total"])[len(epochs) // 2]
    scale = EPOCH_BATCHES / epoch["batches"]
    seconds = {stage: scale * value for stage, value in epoch["seconds"].items()}
    figures = {"seconds": seconds, "batches": epoch["batches"], "scaled by": scale, "loss": epoch["loss"],
               "sampled edges": epoch["sampled_edges"],
               "edges/s": epoch["sampled_edges"] / max(epoch["seconds"]["sample"], 1e-9),
               "edges": report["graph"]["edges"], "goal": GOALS["epoch seconds"]}
    if not epoch["loss"] > 0:
        raise Failure(f"loss {epoch['loss']}")
    return figures


# ---- Where an epoch's time goes: its kernels -------------------------------------------------------------------------

PROFILED = 900  # launches: the sampling of the first window, and some ten steps
METRICS = {"gpu__time_duration.sum": 1e-9, "dram__bytes_read.sum": 1, "dram__bytes_write.sum": 1}  # in ns and bytes


def check_profile(check):
    check.part("kernels of an epoch", lambda: profile(check, shutil.which("ncu") or shutil.which("/usr/local/cuda/bin/ncu")))


def profile(check, tool):
    if tool is None:
        raise Skip("no Nsight Compute (ncu) here")
    log = check.folder / "profile.csv"
    wrap = [tool, "--csv", "--page", "raw", "--print-units", "base", "--print-kernel-base", "mangled", "--clock-control", "none",
            "--log-file", log, "--launch-count", PROFILED, "--metrics", ",".join(METRICS)]
    train(check, check.place.program, products_graph(check), *products_keys("cuda", 1), wrap=wrap, timeout=550)
    return kernel_times(log.read_text())


def kernel_times(text):
    """Of ncu's raw page: each kernel's launches, time, share of the time, and bytes per second; all launches in their order."""
    rows = csv.DictReader(text[text.index('"ID"'):].splitlines())
    next(rows)  # units
    launches = []
    for row in rows:
        seconds, *moved = (scale * float(row[name].replace(",", "")) for name, scale in METRICS.items())
        launches.append([row["Kernel Name"], row["Grid Size"], row["Block Size"], 1e6 * seconds, sum(moved)])
    sums = collections.defaultdict(lambda: [0, 0.0, 0.0])
    for name, _, _, microseconds, moved in launches:
        for place, amount in enumerate((1, microseconds, moved)):
            sums[name][place] += amount
    whole = sum(microseconds for _, microseconds, _ in sums.values())
    texts = demangle(list(sums)) if shutil.which("c++filt") else {name: name for name in sums}
    kernels = []
    for name, (count, microseconds, moved) in sorted(sums.items(), key=lambda item: -item[1][1]):
        function, arguments, where = describe(texts[name])
        kernels.append({"name": function + (f"<{', '.join(arguments)}>" if arguments else "") + where, "launches": count,
                        "microseconds": microseconds, "share": microseconds / whole, "GB/s": 1e-3 * moved / microseconds})
    return {"microseconds": whole, "kernels": kernels, "launches": launches}


# ---- PyTorch on the same GPU -----------------------------------------------------------------------------------------


def check_peer(check):
    check.part("PyTorch on the same graph", lambda: measure_peer(check))


def measure_peer(check):
    graph = products_graph(check)
    done = subprocess.run([sys.executable, str(check.place.peer), str(graph), *(["--quick"] if check.options.quick else [])],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=580)
    if done.returncode != 0:
        raise Failure(done.stderr[-4000:])
    figures = json.loads(done.stdout.splitlines()[-1])
    if "missing" in figures:
        raise Skip(figures["missing"])
    ours = {line["name"].rpartition(", ")[2]: line["figures"]["seconds"]["total"] for line in check.lines
            if line["name"].startswith("epoch") and line["state"] == "passed"}
    precisions = {name: "tf32" if name.endswith("tf32") else "fp32" for name in figures}
    figures["ours is faster by"] = {name: figures[name]["seconds"]["total"] / ours[precision]
                                    for name, precision in precisions.items() if "seconds" in figures[name] and precision in ours}
    return figures

"""Where does an epoch's time go? Its kernels by Nsight Compute, in float32 and TF32, and those of sampling alone."""

import collections
import csv
import shutil

from kernel_names import demangle, describe

from .check import Skip, train
from .epoch import products_graph, products_keys

PROFILED = 900  # launches: the sampling of the first window, and some ten steps
METRICS = {"gpu__time_duration.sum": 1e-9, "dram__bytes_read.sum": 1, "dram__bytes_write.sum": 1}  # in ns and bytes
PROFILES = {"kernels of an epoch": [], "kernels of an epoch, tf32": ["train.precision=tf32"], "kernels of sampling": None}


def check_profile(check):
    tool = shutil.which("ncu") or shutil.which("/usr/local/cuda/bin/ncu")
    for name, keys in PROFILES.items():
        check.part(name, lambda: profile(check, tool, keys), seconds=17)


def profile(check, tool, keys):
    """`keys` of training, or None: it only samples."""
    if tool is None:
        raise Skip("no Nsight Compute (ncu) here")
    log = check.own_folder() / "profile.csv"
    wrap = [tool, "--csv", "--page", "raw", "--print-units", "base", "--print-kernel-base", "mangled", "--clock-control", "none",
            "--log-file", log, "--launch-count", PROFILED, "--metrics", ",".join(METRICS)]
    graph = products_graph(check)
    if keys is None:
        sample(check, graph, wrap)
    else:
        train(check, check.place.program, graph, *products_keys("cuda", 1), *keys, wrap=wrap, timeout=550)
    return kernel_times(log.read_text())


def sample(check, graph, wrap):
    folder = check.own_folder()
    config = folder / "sample.toml"
    config.write_text("[sampler]\nbatch_size = 1024\nfanout = [15, 10, 5]\n[model]\nlayers = 3\n")
    check.run(*wrap, check.place.program, "-q", "sample", config, f"graph.file={graph}", f"output.dir={folder / 'out'}",
              "run.device=cuda", timeout=550)


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

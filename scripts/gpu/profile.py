"""Where does an epoch's time go? Its kernels by Nsight Compute, in float32 and TF32, and those of sampling alone.

A stage of training is a range of the profiler's timeline (base/stage_clock.hpp), so each kernel is known to be of one. What a stage
of a step takes beyond its kernels are copies, which Nsight Compute does not list, and gaps between launches.
"""

import collections
import csv
import re
import shutil

from kernel_names import demangle, describe

from .check import Skip, train
from .epoch import EPOCH_BATCHES, products_graph, products_keys

PROFILED = 900  # launches: the sampling of the first window, and some ten steps
METRICS = {"gpu__time_duration.sum": 1e-9, "dram__bytes_read.sum": 1, "dram__bytes_write.sum": 1}  # in ns and bytes
PROFILES = {"kernels of an epoch": [], "kernels of an epoch, tf32": ["train.precision=tf32"], "kernels of sampling": None}
EPOCH_OF = {"kernels of an epoch, tf32": "tf32"}  # whose seconds a profile is set beside; else fp32's
STAGES = ("sample", "fetch", "forward", "backward", "reduce", "optimizer")
LAST_OF_A_STEP = "optimizer"


def check_profile(check):
    tool = shutil.which("ncu") or shutil.which("/usr/local/cuda/bin/ncu")
    for name, keys in PROFILES.items():
        check.part(name, lambda: profile(check, tool, keys, wall_of_stages(check, EPOCH_OF.get(name, "fp32"))),
                   seconds=12 if keys is None else 34)


def wall_of_stages(check, name):
    """Seconds by stage of an epoch of this run that was measured without a profiler, if there is one."""
    return next((line["figures"]["seconds"] for line in check.lines
                 if line["name"] == f"epoch like ogbn-products, {name}" and line["state"] == "passed"), {})


def profile(check, tool, keys, wall):
    """`keys` of training, or None: it only samples. `wall`: seconds by stage of an epoch."""
    if tool is None:
        raise Skip("no Nsight Compute (ncu) here")
    log = check.own_folder() / "profile.csv"
    # The caches stay as the kernel before left them, as in a step.
    wrap = [tool, "--csv", "--page", "raw", "--nvtx", "--print-units", "base", "--print-kernel-base", "mangled",
            "--clock-control", "none", "--cache-control", "none", "--log-file", log, "--launch-count", PROFILED,
            "--metrics", ",".join(METRICS)]
    graph = products_graph(check)
    if keys is None:
        sample(check, graph, wrap)
    else:
        train(check, check.place.program, graph, *products_keys("cuda", 1), *keys, wrap=wrap, timeout=550)
    figures = kernel_times(log.read_text())
    figures["stages"] = stages_of_a_step(figures["launches"], wall) if keys is not None else whole_sampling(figures["launches"], wall)
    return figures


def sample(check, graph, wrap):
    folder = check.own_folder()
    config = folder / "sample.toml"
    config.write_text("[sampler]\nbatch_size = 1024\nfanout = [15, 10, 5]\n[model]\nlayers = 3\n")
    check.run(*wrap, check.place.program, "-q", "sample", config, f"graph.file={graph}", f"output.dir={folder / 'out'}",
              "run.device=cuda", timeout=550)


# ---- What ncu says ----------------------------------------------------------------------------------------------------


def kernel_times(text):
    """Of ncu's raw page: each kernel's launches, time, share of the time, and bytes per second; all launches in their order, as
    [place among the kernels, grid, block, microseconds, bytes, stage]."""
    rows = csv.DictReader(text[text.index('"ID"'):].splitlines())
    next(rows)  # units
    ranges = next((name for name in rows.fieldnames if "Push/Pop_Range" in name), None)
    launches = []
    for row in rows:
        seconds, *moved = (scale * float(row[name].replace(",", "")) for name, scale in METRICS.items())
        launches.append([row["Kernel Name"], row["Grid Size"], row["Block Size"], 1e6 * seconds, sum(moved), stage_of(row.get(ranges))])
    sums = collections.defaultdict(lambda: [0, 0.0, 0.0])
    for name, _, _, microseconds, moved, _ in launches:
        for place, amount in enumerate((1, microseconds, moved)):
            sums[name][place] += amount
    whole = sum(microseconds for _, microseconds, _ in sums.values())
    texts = demangle(list(sums)) if shutil.which("c++filt") else {name: name for name in sums}
    kernels, places = [], {}
    for name, (count, microseconds, moved) in sorted(sums.items(), key=lambda item: -item[1][1]):
        function, arguments, where = describe(texts[name])
        places[name] = len(kernels)
        kernels.append({"name": function + (f"<{', '.join(arguments)}>" if arguments else "") + where, "launches": count,
                        "microseconds": microseconds, "share": microseconds / whole, "GB/s": 1e-3 * moved / microseconds})
    return {"microseconds": whole, "kernels": kernels, "launches": [[places[name], *rest] for name, *rest in launches]}


def stage_of(ranges):
    """The first stage among the ranges that a launch was in: 97 "<default domain>:forward:none:none:none:none:none:none"."""
    names = re.findall(r">:([^:\"]+):", ranges or "")
    return next((name for name in names if name in STAGES), None)


def stages_of_a_step(launches, wall):
    """Launches and microseconds of kernels by stage, of a step: the mean over the whole steps behind the first, which end with the
    last launch of the optimizer. Nothing where no range was seen."""
    stages = [launch[-1] for launch in launches]
    ends = [k + 1 for k, stage in enumerate(stages) if stage == LAST_OF_A_STEP and stages[k + 1:k + 2] != [stage]]
    if ends and ends[-1] == len(launches):
        ends.pop()  # the profile may have ended within it
    if len(ends) < 2:
        return []
    steps, within = len(ends) - 1, launches[ends[0]:ends[-1]]
    return [row_of_stage(stage, [launch for launch in within if launch[-1] == stage], steps, 1e6 * wall.get(stage, 0) / EPOCH_BATCHES)
            for stage in STAGES if stage != "sample"]


def whole_sampling(launches, wall):
    """That of an epoch, unless the profile ended before."""
    whole = 1e6 * wall.get("sample", 0) if len(launches) < PROFILED else 0
    return [row_of_stage("sample", launches, 1, whole)]


def row_of_stage(stage, launches, steps, wall):
    kernels = sum(launch[3] for launch in launches) / steps
    beside = {"wall": wall, "copies and gaps": wall - kernels} if wall > 0 else {}
    return {"name": stage, "launches": len(launches) / steps, "kernels": kernels, **beside}

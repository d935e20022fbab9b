#!/usr/bin/env python3
"""Runs the points of the simulated scaling study and checks them (docs/scaling.md).

    bench/simulated/run.py smoke                        a small graph at p = 4 and 16, simulated, and at p = 4 for real
    bench/simulated/run.py all [-o FILE.csv]            every point of docs/scaling.md; points that FILE has are kept
    bench/simulated/run.py cut [-o FILE.csv]            block rows, as even in entries, and a vertex cut (docs/vertex-cut.md)
    bench/simulated/run.py list                         the points of `all`, without running them

A point is one run of bench/simulated/scaling. Checked: it printed "done" (smpirun exits 0 after a deadlock), no fetched value is
wrong, and all points of a graph have one sample digest, with an order and without, those by mpirun on this machine
included; with local batches another one.
Exit codes: 0 done, 1 a check or a run failed, 2 usage.
"""
import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import perlmutter

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SIMULATED = ROOT / "build/simulated/scaling"
MEASURED = ROOT / "build/cpu/bench/simulated/scaling"

# The data sets of Tripathy et al. 2024, table 3, at full size. Papers is directed: 1.6 billion entries in 111 million rows.
DATASETS = {
    "protein": {"nodes": 8.7e6, "degree": 149.4, "batches": 1024, "features": 128, "scale": 128},
    "papers": {"nodes": 111e6, "degree": 14.4, "batches": 1172, "features": 128, "scale": 256, "even_rows": True},
    "products": {"nodes": 2.4e6, "degree": 52.5, "batches": 196, "features": 100, "scale": 32},
    "small": {"nodes": 2.4e6, "degree": 52.5, "batches": 32, "features": 32, "scale": 512},
}
# The same with communities: so many edges stay near that 8 parts of the planted order have the cut that METIS's have on
# Debian's packages (docs/partitioning.md), 0.22.
NEAR = {"protein": 0.965, "papers": 0.893, "small": 0.94}
DATASETS.update({f"{graph}-planted": {**DATASETS[graph], "near": near} for graph, near in NEAR.items()})
# Larger: what of a batch's few seeds lies in which part fluctuates as one over the square root of their number.
DATASETS["protein-planted"]["scale"], DATASETS["papers-planted"]["scale"] = 32, 128
BATCH = 1024
GROUPS = 64  # of local batches, at any p

# An A100 (section 7.2: 1552.2 GB/s): the share of its memory bandwidth that reads at random places reach, a sector of 32
# bytes each, and the share that reads and writes in order reach; seconds of a kernel launch.
GPU_BYTES, GATHER_SHARE, STREAM_SHARE, SECTOR, LAUNCH = 1552.2e9, 0.25, 0.75, 32, 5e-6

# One algorithm for each collective of the library; the all-to-all-v is Communicator's own.
ALGORITHMS = {"alltoall": "bruck", "allreduce": "rdb", "bcast": "binomial_tree", "allgather": "rdb", "barrier": "mpich"}
OVERHEAD = 0.5e-6  # seconds of a processor for each message sent, and for each received
EAGER = 8192  # bytes up to which a message is sent without asking

FIELDS = ["graph", "scale", "speed", "latency", "placement", "in_flight", "machine", "p", "c", "topology", "schedule",
          "nodes", "entries", "batches", "batch", "features", "edges", "input_rows", "digest", "sample", "sample_charged", "sample_communication",
          "sample_communication_max", "sample_bytes", "sample_messages", "fetch", "fetch_bytes", "fetch_messages", "wrong",
          "wall", "order", "groups", "cut", "local_rows", "edges_max", "remote_max", "weighted"]
# What a row of before there were orders has for the last of FIELDS.
WITHOUT_ORDER = {"order": "none", "groups": "0", "cut": "", "local_rows": "", "edges_max": "", "remote_max": "", "weighted": "0"}
KEY = ["graph", "scale", "speed", "latency", "placement", "in_flight", "machine", "p", "c", "topology", "schedule", "features",
       "order", "groups", "weighted"]


def point(graph, p, c=1, schedule="push", topology="partitioned", features=0, machine="simulated", speed=1.0, latency=1.0,
          placement="block", scale=None, in_flight=0, order="none", groups=0, weighted=0):
    """features: 0 or 1, whether rows are fetched. groups: of local batches; 0: uniform ones. weighted: 0 or 1, are draws by weight."""
    return {"graph": graph, "p": p, "c": c, "schedule": schedule, "topology": topology, "machine": machine, "speed": speed,
            "latency": latency, "placement": placement, "scale": scale or DATASETS[graph]["scale"], "in_flight": in_flight,
            "features": DATASETS[graph]["features"] if features else 0, "order": order, "groups": groups, "weighted": weighted}


# Without an order, with one, and with local batches.
ORDERS = (("none", 0), ("planted", 0), ("planted", GROUPS))


def smoke_points():
    points = [point("small", p, c, schedule, features=schedule == "push")
              for p, c in ((4, 1), (16, 2)) for schedule in ("push", "pull", "staged", "staged-oblivious")]
    points += [point("small", 4, 2, topology="replicated", features=1)]
    points += [point("small", 4, 2, schedule, features=1, machine="measured") for schedule in ("push", "staged")]
    points += [point("small", 16, 2, features=1, order="planted")]
    for order, groups in ORDERS:
        points += [point("small-planted", p, c, topology=topology, features=1, order=order, groups=groups, machine=machine)
                   for p, c, topology, machine in ((4, 1, "partitioned", "simulated"), (16, 2, "partitioned", "simulated"),
                                                   (16, 4, "replicated", "simulated"), (4, 2, "partitioned", "measured"))]
    points += cut_points("small-planted", ((4, 1), (16, 2)))
    return points + [point("small-planted", 4, topology="vertex-cut", machine="measured", weighted=1)]


def cut_points(graph="protein-planted", grids=((8, 1), (64, 1)), scale=None):
    """A cut's block rows are 64 at most."""
    return [point(graph, p, c, topology=topology, order=order, weighted=weighted, scale=scale) for p, c in grids for weighted in (0, 1)
            for topology, order in (("partitioned", "none"), ("partitioned", "entries"), ("partitioned", "planted"), ("vertex-cut", "planted"))]


def all_points():
    points = []
    for graph in ("protein", "papers"):
        # Figure 7: the partitioned graph. c = p / 4 keeps the memory of a rank what it is at p = 4.
        for p, replications in ((4, (1,)), (16, (1, 2, 4)), (64, (2, 4, 8, 16)), (128, (8, 32))):
            points += [point(graph, p, c, schedule) for c in replications for schedule in ("push", "pull", "staged")
                       if schedule == "push" or c * c <= p]
        # Process columns inside of nodes, as far as they fit.
        points += [point(graph, p, c, schedule, placement="cyclic") for p, c in ((16, 4), (64, 4), (64, 16), (128, 8), (128, 32))
                   for schedule in ("push", "pull", "staged") if schedule == "push" or c * c <= p]
        points += [point(graph, 4, 1, schedule, machine="measured") for schedule in ("push", "staged")]
    for graph in ("protein", "papers", "products"):
        # Figures 4 and 6: the replicated graph, with and without copies of the features.
        points += [point(graph, p, c, topology="replicated", features=1)
                   for p in (4, 8, 16, 32, 64) for c in sorted({1, max(1, p // 8)})]
        points += [point(graph, p, c, topology="replicated", features=1, placement="cyclic")
                   for p in (8, 16, 32, 64) for c in (p // 8, p // 4)]
    points += [point("products", 4, 2, machine="measured")]
    for p, c in ((4, 1), (128, 8), (128, 32)):  # what the result depends on
        points += [point("protein", p, c, speed=speed) for speed in (2.0, 0.5, 0.25)]
        points += [point("protein", p, c, latency=2.0)]
    points += [point("protein", 128, 32, speed=speed, placement="cyclic") for speed in (2.0, 0.5, 0.25)]
    points += [point("protein", 128, 32, latency=2.0, placement="cyclic")]
    points += [point("protein", p, c, schedule, scale=256) for p, c in ((16, 2), (64, 4)) for schedule in ("push", "staged")]
    points += [point("protein", p, c, scale=32) for p, c in ((16, 2), (64, 4))]
    points += [point("protein", 64, 4, in_flight=8)]
    return points + order_points()


def order_points():
    """With an order and local batches beside without."""
    points = []
    for graph in ("protein", "papers"):
        planted = f"{graph}-planted"
        for order, groups in ORDERS:
            chosen = {"order": order, "groups": groups, "features": 1}
            points += [point(planted, 64, 8, **chosen)]
            if order == "none" or groups:  # an order alone changes neither samples nor how many bytes
                points += [point(planted, 64, 16, **chosen, placement="cyclic"), point(planted, 64, 4, **chosen)]
            points += [point(planted, 64, 8, **chosen, topology=topology, scale=DATASETS[graph]["scale"])
                       for topology in ("partitioned", "replicated")]
            points += [point(planted, 4, 2, order=order, groups=groups, machine="measured")]
            points += [point(graph, 64, 8, **chosen)]  # no communities
            if order != "none":
                points += [point(planted, 4, 1, **chosen)]
            if groups:
                points += [point(planted, 16, 4, **chosen)]
    return points


# ---- One point -------------------------------------------------------------------------------------------------------


def program_arguments(options):
    """Everything that grows with the graph is divided by the scale, and so are the rates: seconds stay."""
    data, scale = DATASETS[options["graph"]], options["scale"]
    rate = GPU_BYTES * options["speed"] / scale
    arguments = ["--nodes", round(data["nodes"] / scale), "--degree", data["degree"], "--batches", data["batches"],
                 "--batch", BATCH // scale, "--replication", options["c"], "--topology", options["topology"],
                 "--schedule", options["schedule"], "--features", options["features"],
                 "--bytes-per-second", rate * STREAM_SHARE, "--gathers-per-second", rate * GATHER_SHARE / SECTOR,
                 "--seconds-per-launch", LAUNCH]
    if options["order"] != "none":
        arguments += ["--order", options["order"], "--groups", options["groups"]]
    if options["weighted"]:
        arguments.append("--weighted")
    if "near" in data:
        arguments += ["--near", data["near"]]
    return [str(a) for a in arguments] + (["--even-rows"] if data.get("even_rows") else [])


def smpirun(options, folder):
    scale = options["scale"]
    xml, hosts = perlmutter.platform(options["p"], scale, options["latency"], options["placement"])
    (folder / "platform.xml").write_text(xml)
    (folder / "hosts").write_text(hosts)
    settings = {"smpi/simulate-computation": "no", "smpi/bw-factor": "0:0.92", "smpi/lat-factor": "0:1",
                "smpi/os": f"0:{OVERHEAD}:0", "smpi/or": f"0:{OVERHEAD}:0", "smpi/ois": f"0:{OVERHEAD}:0",
                "smpi/async-small-thresh": EAGER // scale, "smpi/send-is-detached-thresh": EAGER // scale,
                "network/TCP-gamma": 4194304 / scale, "network/weight-S": 8775 / scale, "network/crosstraffic": 0,
                # Max-min fair rates by another method: the same seconds to five digits, in a tenth of the time.
                "network/solver": "fairbottleneck"}
    settings.update({f"smpi/{name}": algorithm for name, algorithm in ALGORITHMS.items()})
    if options["in_flight"]:
        settings["maxmin/concurrency-limit"] = options["in_flight"]
    return ["smpirun", "-np", str(options["p"]), "-platform", str(folder / "platform.xml"), "-hostfile", str(folder / "hosts"),
            "--log=root.thres:error"] + [f"--cfg={key}:{value}" for key, value in settings.items()] + [str(SIMULATED)]


def mpirun(options):
    return ["mpirun", "-q", "--oversubscribe", "--bind-to", "none", "-np", str(options["p"]), str(MEASURED)]


def run(options, timeout):
    """The row of a point. Raises RuntimeError."""
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        launcher = mpirun(options) if options["machine"] == "measured" else smpirun(options, pathlib.Path(folder))
        try:
            done = subprocess.run(launcher + program_arguments(options), env=environment, timeout=timeout, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RuntimeError(str(error)) from error
    lines = [line for line in done.stdout.splitlines() if line.startswith("{") or line == "done"]
    if done.returncode != 0 or len(lines) != 2 or lines[1] != "done":
        raise RuntimeError(f"exit code {done.returncode}, no result:\n{done.stdout[-2000:]}")
    return {**options, **json.loads(lines[0]), "wall": round(time.monotonic() - began, 1)}


def sample_of(row):
    """Rows that agree in these have one digest: an order changes none, other batches do."""
    return row["graph"], str(row["scale"]), str(row["groups"]), str(row.get("weighted", 0))


def check(row, rows):
    """What is wrong with a row, or nothing."""
    if int(row["wrong"]) != 0:
        return f"{row['wrong']} fetched values are wrong"
    for other in rows:
        if sample_of(other) == sample_of(row) and other["digest"] != row["digest"]:
            return f"its sample digest is {row['digest']}, that of {in_words(other)} is {other['digest']}"
    return None


def in_words(options):
    words = f"{options['graph']:<9} {options['machine']:<9} p {options['p']:>3}  c {options['c']:>2}  "
    words += f"{options['schedule'] if options['topology'] == 'partitioned' else options['topology']:<16}"
    changed = [f"{name} {options[name]}" for name, usual in (("speed", 1.0), ("latency", 1.0), ("placement", "block"), ("in_flight", 0),
                                                            ("order", "none"), ("groups", 0), ("weighted", 0))
               if str(options[name]) != str(usual)]
    return words + " ".join(changed)


# ---- All of them -----------------------------------------------------------------------------------------------------


def key_of(row):
    return tuple(str({**WITHOUT_ORDER, **row}[name]) for name in KEY)


def read(path):
    if not path or not os.path.exists(path):
        return []
    with open(path, newline="") as file:
        return [{**WITHOUT_ORDER, **row} for row in csv.DictReader(file)]


def write(path, rows, mode="w"):
    if not path:
        return
    with open(path, mode, newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        if mode == "w":
            writer.writeheader()
        writer.writerows({name: row[name] for name in FIELDS} for row in rows)


def run_points(points, path, timeout):
    rows = read(path)
    write(path, rows)  # with all columns, also where FILE is of before there were orders
    known = {key_of(row) for row in rows}
    failed = 0
    for options in points:
        if key_of(options) in known:
            continue
        try:
            row = run(options, timeout)
            problem = check(row, rows)
        except RuntimeError as error:
            problem = str(error)
        if problem:
            failed += 1
            print(f"{in_words(options)}: FAILED: {problem}", flush=True)
            continue
        rows.append(row)
        write(path, [row], "a")
        fetch = f"  fetch {row['fetch'] * 1e3:9.2f} ms" if row["features"] else ""
        print(f"{in_words(options)}  sample {row['sample'] * 1e3:9.2f} ms{fetch}  digest {row['digest']}  ({row['wall']} s)", flush=True)
    print(f"{len(points) - failed} of {len(points)} points done, {failed} failed; "
          f"{len({(*sample_of(row), row['digest']) for row in rows})} digests of "
          f"{len({sample_of(row) for row in rows})} graphs and kinds of batches")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["smoke", "all", "cut", "list"])
    parser.add_argument("-o", "--output", help="CSV file to add rows to")
    parser.add_argument("--only", default="", help="points whose line begins with this")
    parser.add_argument("--timeout", type=int, default=900, help="seconds for a point")
    options = parser.parse_args()
    points = [p for p in {"smoke": smoke_points, "cut": lambda: cut_points(scale=128)}.get(options.what, all_points)() if in_words(p).startswith(options.only)]
    if options.what == "list":
        print("\n".join(in_words(p) for p in points))
        return 0
    return run_points(points, options.output, options.timeout)


if __name__ == "__main__":
    sys.exit(main())

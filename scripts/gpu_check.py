#!/usr/bin/env python3
"""make gpu-check: everything that is proved on a GPU, in one table and one JSON file.

    scripts/gpu_check.py [--parts tests,jobs,epoch,profile,bench,peer,sanitizer] [--at-once N] [--json FILE] [--record] [--quick]

Parts, in this order; each line of the table is passed, failed or skipped, with its seconds and what was measured:

    tests      every tests/ROOM/OP_test.cu at each of its rank counts, as nvcc compiled it
    jobs       `espalier verify` on 1, 2 and 4 ranks that share the GPU; one epoch by each sampler on the GPU and on the CPU: sample
               digests equal, losses within LOSS_TOLERANCE; the same on two ranks
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
import collections
import concurrent.futures
import csv
import ctypes
import glob
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from kernel_names import demangle, describe

ROOT = pathlib.Path(__file__).resolve().parent.parent
PARTS = ["tests", "jobs", "epoch", "profile", "bench", "peer", "sanitizer"]
LOSS_TOLERANCE = 1e-3   # relative; sums of float32 in another order, and what an epoch of steps makes of it
EPOCH_BATCHES = 196     # of 1024: the training vertices of ogbn-products
GOALS = {"epoch seconds": 0.5, "edges/s": 5e8, "SpMM over copy": 0.7, "times faster than PyTorch": 5}
OPEN_MPI = {  # one node, possibly fewer cores than ranks, possibly root
    "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "self,vader", "OMPI_MCA_plm": "isolated", "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
}


# ---- Where things are ------------------------------------------------------------------------------------------------


class SourceTree:
    """make's own folders."""

    commands = []  # what stands before a program
    mpirun = ["mpirun"]
    program, cpu_program = ROOT / "build/cuda/espalier", ROOT / "build/cpu/espalier"
    peer = ROOT / "bench/peers/gpu_peer.py"
    results = ROOT / "build/gpu_check.json"

    def tests(self):
        for source in sorted((ROOT / "tests").glob("*/*_test.cu")):
            head = "".join(source.read_text().splitlines(True)[:12])
            ranks = " ".join(re.findall(r"^// ranks:([ 0-9]+)", head, re.M) or ["1"]).split()
            name = source.relative_to(ROOT / "tests").with_suffix("")
            yield str(name), [int(n) for n in ranks], ROOT / "build/cuda/tests" / name

    def benches(self):
        for source in sorted((ROOT / "bench").glob("*/*_bench.cu")):
            name = source.relative_to(ROOT / "bench").with_suffix("")
            yield str(name), ROOT / "build/cuda/bench" / name

    def commit(self):
        return subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True).stdout.strip()


class Bundle:
    """What scripts/make_bundle.sh packed."""

    commands = [str(ROOT / "bin/run")]
    mpirun = [str(ROOT / "bin/mpirun")]
    program, cpu_program = ROOT / "programs/espalier", ROOT / "programs/espalier-cpu"
    peer = ROOT / "peers/gpu_peer.py"
    results = ROOT / "gpu_check.json"

    def __init__(self):
        self.manifest = json.loads((ROOT / "manifest.json").read_text())

    def tests(self):
        for name, ranks in self.manifest["tests"].items():
            yield name, ranks, ROOT / "tests" / name

    def benches(self):
        for name in self.manifest["benches"]:
            yield name, ROOT / "bench" / name

    def commit(self):
        return self.manifest["commit"]


def describe_gpu():
    """({name, driver, memory}, None), or (None, why there is none); asks the driver alone."""
    for library in ["libcuda.so.1", *glob.glob("/usr/local/nvidia/lib*/libcuda.so.1")]:
        try:
            driver = ctypes.CDLL(library)
            break
        except OSError as error:
            why = str(error)
    else:
        return None, f"no driver: {why}"
    count, version, memory, name = ctypes.c_int(), ctypes.c_int(), ctypes.c_size_t(), ctypes.create_string_buffer(256)
    code = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if code != 0 or count.value == 0:
        return None, f"the driver answers {code}, {count.value} devices"
    driver.cuDriverGetVersion(ctypes.byref(version))
    driver.cuDeviceGetName(name, 256, 0)
    driver.cuDeviceTotalMem_v2(ctypes.byref(memory), 0)
    return {"name": name.value.decode(), "driver_cuda": version.value / 1000, "memory_bytes": memory.value,
            "devices": count.value}, None


# ---- Running ---------------------------------------------------------------------------------------------------------


class Skip(Exception):
    """What a part raises where it cannot run here."""


class Failure(Exception):
    """What a part raises where it found an error; its text ends in what the program printed."""


class Check:
    def __init__(self, options, place, folder, gpu=None):
        self.options, self.place, self.folder, self.gpu = options, place, folder, gpu
        self.files = [options.json or place.results]
        if options.record and gpu:
            self.files.append(ROOT / "bench/results" / (re.sub(r"\W+", "_", gpu["name"]) + ".json"))
        self.lines, self.lock, self.graphs, self.products = [], threading.Lock(), {}, threading.Lock()
        self.env = dict(os.environ, **{key: os.environ.get(key, value) for key, value in OPEN_MPI.items()})

    def own_folder(self):
        return pathlib.Path(tempfile.mkdtemp(dir=self.folder))

    def run(self, *command, ranks=1, timeout=280, good=(0,)):
        """What the program printed; Failure when it does not end well."""
        command = [str(word) for word in command]
        if ranks > 1:
            command = [*self.place.mpirun, "-q", "-np", str(ranks)] + command
        else:
            command = self.place.commands + command
        try:
            done = subprocess.run(command, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                  errors="replace", timeout=timeout)
        except subprocess.TimeoutExpired:
            raise Failure(f"no end after {timeout} s: {' '.join(command)}")
        except FileNotFoundError as missing:
            raise Failure(f"not built: {missing.filename}")
        if done.returncode not in good:
            raise Failure(f"exit code {done.returncode}: {' '.join(command)}\n{done.stdout[-4000:]}")
        return done.stdout

    def part(self, name, work):
        """Runs work() and notes what came of it: work returns figures."""
        start, line = time.time(), {"name": name, "state": "passed", "figures": {}}
        try:
            line["figures"] = work() or {}
            line["state"] = line["figures"].pop("state", "passed")
        except Skip as reason:
            line.update(state="skipped", reason=str(reason))
        except Failure as failure:
            line.update(state="failed", reason=str(failure))
        line["seconds"] = round(time.time() - start, 2)
        with self.lock:
            self.lines.append(line)
            show(line)
            self.write()

    def write(self):
        """The file of results; how many lines are in which state."""
        counts = {state: sum(line["state"] == state for line in self.lines) for state in ("passed", "failed", "skipped")}
        result = {"gpu": self.gpu, "commit": self.place.commit(), "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                  "goals": GOALS, **counts, "parts": self.lines}
        for path in self.files:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(result, indent=1) + "\n")
            result["parts"] = [dict(line, figures={key: value for key, value in line["figures"].items() if key != "launches"})
                               for line in self.lines]  # every launch: in the first file alone
        return counts

    def parts_at_once(self, works):
        """part() of each (name, work), some at a time."""
        with concurrent.futures.ThreadPoolExecutor(self.options.at_once) as pool:
            for done in [pool.submit(self.part, name, work) for name, work in works]:
                done.result()


def show(line):
    figures = ", ".join(f"{key} {brief(value)}" for key, value in line["figures"].items()
                        if key not in ("cases", "kernels", "launches", "title", "gpu", "quick"))
    text = figures or line.get("reason", "").split("\n")[0]
    print(f"{line['name']:<44} {line['state']:<8} {line['seconds']:>7.1f} s  {text}", flush=True)
    for case in line["figures"].get("cases", []):
        print(f"    {case['name']:<44} {case['rate']:>10.4g} {case['unit']:<8} bound {case['bound']:>9.4g}  ratio "
              f"{case['ratio']:>5.2f}  #wrong {case['wrong']}", flush=True)
    for kernel in line["figures"].get("kernels", []):
        print(f"    {kernel['name']:<60.60} {kernel['launches']:>5} x {kernel['microseconds']:>9.1f} us {kernel['share']:>6.1%}  "
              f"{kernel['GB/s']:>7.1f} GB/s", flush=True)
    if line["state"] == "failed":
        print("    " + "\n    ".join(line["reason"].splitlines()), flush=True)


def brief(value):
    if isinstance(value, dict):
        return "(" + ", ".join(f"{key} {brief(inner)}" for key, inner in value.items()) + ")"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


# ---- Tests -----------------------------------------------------------------------------------------------------------


ALONE = ["AFullGpu", "FreedMemoryGoesBack"]  # in the names of tests that fill, or measure, the memory that all share


def check_tests(check):
    tests = [(name, ranks, program) for name, ranks_of_test, program in check.place.tests() for ranks in ranks_of_test]
    check.parts_at_once((f"test {name} np {ranks}", lambda program=program, ranks=ranks: run_test(check, program, ranks))
                        for name, ranks, program in tests)
    for name, ranks, program in tests:
        if program.exists() and any(word.encode() in program.read_bytes() for word in ALONE):
            check.part(f"test {name} np {ranks}, alone", lambda: run_test(check, program, ranks, ":".join(map("*{}*".format, ALONE))))


def run_test(check, program, ranks, tests="-*Long*:" + ":".join(map("*{}*".format, ALONE))):
    report = check.own_folder() / "gtest.json"
    output = check.run(program, f"--gtest_output=json:{report}", "--gtest_brief=1", f"--gtest_filter={tests}", ranks=ranks,
                       good=range(-255, 256))
    if not report.exists():
        raise Failure("it did not end by itself\n" + output[-4000:])
    tests = [test for suite in json.loads(report.read_text())["testsuites"] for test in suite["testsuite"]]
    failed = [f"{test['classname']}.{test['name']}" for test in tests if test.get("failures")]
    skipped = sum(test.get("result") == "SKIPPED" for test in tests)
    if failed:
        raise Failure(f"{', '.join(failed)}\n{output[-4000:]}")
    if tests and skipped == len(tests):
        raise Skip("its tests skipped themselves: " + (re.findall(r": Skipped\n(.+)", output) or ["?"])[0])
    return {"tests": len(tests) - skipped, **({"skipped": skipped} if skipped else {})}


# ---- Jobs: the GPU against the CPU -----------------------------------------------------------------------------------

JOBS = {
    "sage graphsage": [],
    "sage graphsage float16 features": ["@half"],
    "gcn graphsage": ["model.kind=gcn"],
    "sage labor": ["sampler.kind=labor"],
    "sage ladies": ["sampler.kind=ladies", "sampler.fanout=[256,256,256]"],
    "sage fastgcn": ["sampler.kind=fastgcn", "sampler.fanout=[256,256,256]"],
    "sage graphsage, batch norm": ["model.normalize=batch"],
    "sage graphsage, layer norm": ["model.normalize=layer"],
    "sage graphsage, features on the host": ["graph.features_on=host"],
}


def generate(check, name, *arguments, ranks=1):
    """The path of a graph, which is made where none has yet been."""
    with check.lock:
        lock = check.graphs.setdefault(name, threading.Lock())
    graph = check.folder / name
    with lock:
        if not graph.exists():
            check.run(check.place.cpu_program, "-q", "generate", *arguments, "-o", graph, ranks=ranks, timeout=550)
    return graph


def small_graph(check, half=False):
    size = 2000 if check.options.quick else 20000
    return generate(check, "half.h5" if half else "small.h5", "planted", "--nodes", size, "--classes", 8, "--degree", 12,
                    "--features", 50, "--seed", 1, *(["--half"] if half else []))


def train(check, program, graph, *keys, ranks=1, timeout=280, wrap=()):
    """(The report of a training run, what it printed)"""
    folder = check.own_folder()
    config, out = folder / "job.toml", folder / "out"
    config.write_text("[model]\nhidden = 64\n[train]\nepochs = 1\neval_every = 1\n[sampler]\nbatch_size = 256\n")
    printed = check.run(*wrap, program, "-q", "train", config, f"graph.file={graph}", f"output.dir={out}", "run.threads=4",
                        *keys,
                        ranks=ranks, timeout=timeout)
    return json.loads((out / "report.json").read_text()), printed


def check_jobs(check):
    check.parts_at_once([(f"verify np {ranks}", lambda ranks=ranks: verify(check, ranks)) for ranks in (1, 2, 4)] +
                        [(f"job {name} np {ranks}", lambda keys=keys, ranks=ranks: compare_devices(check, keys, ranks))
                         for name, keys in JOBS.items() for ranks in (1, 2) if ranks == 1 or not keys])


def verify(check, ranks):
    output = check.run(check.place.program, "verify", "--device", "cuda", ranks=ranks)
    return {"lines": int(re.search(r"^(\d+) lines, all as expected", output, re.M)[1])}


def compare_devices(check, keys, ranks):
    graph = small_graph(check, "@half" in keys)
    keys = [key for key in keys if not key.startswith("@")] + ["train.batches_per_step=2"]
    on_cpu, _ = train(check, check.place.cpu_program, graph, *[key for key in keys if "features_on" not in key], "run.device=cpu")
    on_gpu, _ = train(check, check.place.program, graph, *keys, "run.device=cuda", ranks=ranks)
    cpu, gpu = on_cpu["epochs"][0], on_gpu["epochs"][0]
    difference = abs(gpu["loss"] - cpu["loss"]) / abs(cpu["loss"])
    if gpu["sample_digest"] != cpu["sample_digest"]:
        raise Failure(f"sample digest {gpu['sample_digest']} on the GPU, {cpu['sample_digest']} on the CPU")
    if not difference <= LOSS_TOLERANCE:
        raise Failure(f"loss {gpu['loss']} on the GPU, {cpu['loss']} on the CPU: {difference:.2e} apart")
    return {"digest": gpu["sample_digest"], "loss": gpu["loss"], "loss off by": difference,
            "valid": gpu["valid"]["accuracy"], "valid on the CPU": cpu["valid"]["accuracy"]}


# ---- Sanitizer -------------------------------------------------------------------------------------------------------


def check_sanitizer(check):
    tool = shutil.which("compute-sanitizer") or shutil.which(
        os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin/compute-sanitizer"))
    works = [(f"{kind} of a small job", lambda kind=kind: sanitize_job(check, tool, kind)) for kind in ("memcheck", "initcheck")]
    for name, _, program in check.place.tests():
        if name in ("base/device_algorithms_test", "dense/column_sums_test", "dense/spmm_test"):
            works.append((f"racecheck of {name}", lambda program=program: sanitize(
                check, tool, "racecheck", program, "--gtest_brief=1", "--gtest_filter=-*AFullGpu*")))
    check.parts_at_once(works)


def sanitizer_command(tool, kind):
    if tool is None:
        raise Skip("no compute-sanitizer here")
    return [tool, "--tool", kind, "--error-exitcode", "86", "--target-processes", "application-only"]


def verdict(output):
    if "Device not supported" in output:
        raise Skip("compute-sanitizer does not support this device here")
    if "ERROR SUMMARY: 0 errors" not in output and "RACECHECK SUMMARY: 0 hazards displayed" not in output:
        raise Failure(output[-4000:])
    return {"errors": 0}


def sanitize(check, tool, kind, *command):
    return verdict(check.run(*sanitizer_command(tool, kind), *command, timeout=500, good=range(256)))


def sanitize_job(check, tool, kind):
    graph = generate(check, "tiny.h5", "planted", "--nodes", 600, "--classes", 4, "--features", 20, "--seed", 2)
    folder = check.own_folder()
    config = folder / "tiny.toml"
    config.write_text("[model]\nhidden = 32\n[train]\nepochs = 1\n[sampler]\nbatch_size = 128\n")
    return sanitize(check, tool, kind, check.place.program, "train", config, f"graph.file={graph}", f"output.dir={folder / 'out'}",
                    "run.device=cuda")


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


# ---- All -------------------------------------------------------------------------------------------------------------

CHECKS = {"tests": check_tests, "jobs": check_jobs, "sanitizer": check_sanitizer, "bench": check_benches,
          "epoch": check_epoch, "profile": check_profile, "peer": check_peer}


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--at-once", type=int, default=max(1, min(8, (os.cpu_count() or 1) // 2)), help="tests and jobs at a time")
    parser.add_argument("--scale", type=int, help="log2 of the vertices of the samplers' bench; else 20 and 22")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--record", action="store_true", help="also write bench/results/GPU_NAME.json")
    parser.add_argument("--quick", action="store_true", help="small sizes: does everything start?")
    parser.add_argument("--emulated", action="store_true", help=argparse.SUPPRESS)  # to test this script
    options = parser.parse_args()
    options.parts = options.parts.split(",")
    unknown = sorted(set(options.parts) - set(PARTS))
    if unknown:
        parser.error(f"no part {', '.join(unknown)}; the parts are {', '.join(PARTS)}")
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
                threading.Thread(target=lambda: products_graph(check), daemon=True).start()
            for part in PARTS:
                if part in options.parts:
                    CHECKS[part](check)
        return report_results(check)


if __name__ == "__main__":
    sys.exit(main())

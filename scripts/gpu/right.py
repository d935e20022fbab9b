"""Is what the GPU computes right? Tests, jobs beside the CPU's, compute-sanitizer."""

import json
import os
import re
import shutil

from .check import Failure, Skip, generate, train

LOSS_TOLERANCE = 1e-3  # relative; sums of float32 in another order, and what an epoch of steps makes of it

# ---- Tests -----------------------------------------------------------------------------------------------------------

ALONE = ["AFullGpu", "FreedMemoryGoesBack"]  # in the names of tests that fill, or measure, the memory that all share


def check_tests(check):
    tests = [(name, ranks, program) for name, ranks_of_test, program in check.place.tests() for ranks in ranks_of_test]
    check.parts_at_once(((f"test {name} np {ranks}", lambda program=program, ranks=ranks: run_test(check, program, ranks))
                        for name, ranks, program in tests), seconds=60)
    for name, ranks, program in tests:
        if program.exists() and any(word.encode() in program.read_bytes() for word in ALONE):
            check.part(f"test {name} np {ranks}, alone", lambda: run_test(check, program, ranks, ":".join(map("*{}*".format, ALONE))),
                       seconds=5)


def run_test(check, program, ranks, tests="-*.Long*:" + ":".join(map("*{}*".format, ALONE))):
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


def small_graph(check, half=False):
    size = 2000 if check.options.quick else 20000
    return generate(check, "half.h5" if half else "small.h5", "planted", "--nodes", size, "--classes", 8, "--degree", 12,
                    "--features", 50, "--seed", 1, *(["--half"] if half else []))


def check_jobs(check):
    check.parts_at_once([(f"verify np {ranks}", lambda ranks=ranks: verify(check, ranks)) for ranks in (1, 2, 4)] +
                        [("job on the GPU, on the CPU, on the GPU", lambda: change_devices(check))] +
                        [(f"job {name} np {ranks}", lambda keys=keys, ranks=ranks: compare_devices(check, keys, ranks))
                         for name, keys in JOBS.items() for ranks in (1, 2) if ranks == 1 or not keys], seconds=30)


def verify(check, ranks):
    output = check.run(check.place.program, "verify", "--device", "cuda", ranks=ranks)
    found = re.search(r"^(\d+) lines, all as expected", output, re.M)
    if not found:
        raise Failure(output[-4000:])
    return {"lines": int(found[1])}


def change_devices(check):
    """Each goes on from the checkpoint of the one before, with one epoch more."""
    folder, keys = check.own_folder(), ["train.batches_per_step=2"]
    for epochs, (program, device, ranks) in enumerate([(check.place.program, "cuda", 1), (check.place.cpu_program, "cpu", 2),
                                                       (check.place.program, "cuda", 1)], 1):
        report, _ = train(check, program, small_graph(check), *keys, f"run.device={device}", f"train.epochs={epochs}",
                          "run.restart=auto", ranks=ranks, folder=folder)
        if ("restart" in report) != (epochs > 1):
            raise Failure(f"the job of {epochs} epochs on {device} went on from {report.get('restart', 'no checkpoint')}")
    alone, _ = train(check, check.place.cpu_program, small_graph(check), *keys, "run.device=cpu", "train.epochs=3")
    expect_same_epochs(report["epochs"], alone["epochs"])
    return {"epochs": len(report["epochs"]), "loss": report["epochs"][-1]["loss"]}


def expect_same_epochs(found, expected):
    if len(found) != len(expected):
        raise Failure(f"{len(found)} epochs, not {len(expected)}")
    for epoch, (ours, cpu) in enumerate(zip(found, expected), 1):
        if ours["sample_digest"] != cpu["sample_digest"]:
            raise Failure(f"epoch {epoch}: sample digest {ours['sample_digest']}, {cpu['sample_digest']} on the CPU")
        difference = abs(ours["loss"] - cpu["loss"]) / abs(cpu["loss"])
        if not difference <= LOSS_TOLERANCE:
            raise Failure(f"epoch {epoch}: loss {ours['loss']}, {cpu['loss']} on the CPU: {difference:.2e} apart")
    return difference


def compare_devices(check, keys, ranks):
    graph = small_graph(check, "@half" in keys)
    keys = [key for key in keys if not key.startswith("@")] + ["train.batches_per_step=2"]
    on_cpu, _ = train(check, check.place.cpu_program, graph, *[key for key in keys if "features_on" not in key], "run.device=cpu")
    on_gpu, _ = train(check, check.place.program, graph, *keys, "run.device=cuda", ranks=ranks)
    cpu, gpu = on_cpu["epochs"][0], on_gpu["epochs"][0]
    difference = expect_same_epochs([gpu], [cpu])
    return {"digest": gpu["sample_digest"], "loss": gpu["loss"], "loss off by": difference,
            "valid": gpu["valid"]["accuracy"], "valid on the CPU": cpu["valid"]["accuracy"]}


# ---- Sanitizer -------------------------------------------------------------------------------------------------------


OVER_RELATIONS = ("rgcn", "rgat", "hgt")  # with authors, who have no features
NETWORKS = ("sage", "gcn", "gin", "gat", *OVER_RELATIONS)  # of model.kind
SAMPLERS = {"graphsage": [], "labor": [], "ladies": ["sampler.fanout=[64,64]"], "fastgcn": ["sampler.fanout=[64,64]"],
            "subgraph": ["sampler.fanout=[-1,-1]"]}


def check_sanitizer(check):
    tool = shutil.which("compute-sanitizer") or shutil.which(
        os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin/compute-sanitizer"))
    jobs = [("initcheck of a small job", "initcheck", [])]
    jobs += [(f"memcheck of {kind}", "memcheck", [f"model.kind={kind}", *(["model.embedding=16"] if kind in OVER_RELATIONS else [])])
             for kind in NETWORKS]
    jobs += [(f"memcheck of {kind}", "memcheck", [f"sampler.kind={kind}", *keys]) for kind, keys in SAMPLERS.items()]
    works = [(name, lambda kind=kind, keys=keys: sanitize_job(check, tool, kind, keys)) for name, kind, keys in jobs]
    for name, _, program in check.place.tests():
        if name in ("base/device_algorithms_test", "dense/column_sums_test", "dense/spmm_test"):
            works.append((f"racecheck of {name}", lambda program=program: sanitize(
                check, tool, "racecheck", program, "--gtest_brief=1", "--gtest_filter=-*AFullGpu*")))
    check.parts_at_once(works, seconds=40)


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


def sanitize_job(check, tool, kind, keys):
    graph = tiny_graph(check, any(f"model.kind={kind}" in keys for kind in OVER_RELATIONS))
    folder = check.own_folder()
    config = folder / "tiny.toml"
    config.write_text("[model]\nhidden = 32\nlayers = 2\n[train]\nepochs = 1\n[sampler]\nbatch_size = 128\nfanout = [5, 5]\n")
    figures = sanitize(check, tool, kind, check.place.program, "train", config, f"graph.file={graph}", f"output.dir={folder / 'out'}",
                       "run.device=cuda", *keys)
    if not (folder / "out/report.json").exists():  # nothing is wrong with a job that was refused, either
        raise Failure("the job did not come to its end")
    return figures


def tiny_graph(check, typed):
    shape = ["--types", "paper=400:20,author=200", "--relations", "author.writes.paper=1500,paper.cites.paper=1500"]
    return generate(check, "tiny_typed.h5" if typed else "tiny.h5", "planted", *(shape if typed else ["--nodes", 600, "--features", 20]),
                    "--classes", 4, "--seed", 2)

"""espalier plan and calibrate against the runs that they foretell.

Laws: a plan draws the minibatches of the run (equal digests), resolves "auto" as the run does, and its bytes are those that the run
counts, for every sampler, schedule and grid; its peak memory lies within 20 % of the run's. What does not fit ends with exit code 4 and
the plan; a wrong argument or machine file with one message.
"""

import itertools
import json
import os
import re
import unittest

import numpy as np

from tests.app.program import LONG, ROOT, ProgramTest, awkward_graph, job_text, read, weigh_edges, write_graph

JOB = ("sampler.fanout=[5, 3]", "sampler.batch_size=64", "model.hidden=32", "model.layers=2", "train.epochs=1", "run.threads=1")
SCHEDULES = ("pull", "push", "staged", "staged-oblivious", "auto")
LAYER_WISE = ("sampler.fanout=[48,48]",)
SAMPLERS = {"graphsage": ("sampler.kind=graphsage",), "labor": ("sampler.kind=labor",),
            "ladies": ("sampler.kind=ladies", *LAYER_WISE), "fastgcn": ("sampler.kind=fastgcn", *LAYER_WISE),
            "subgraph": ("sampler.kind=subgraph", "sampler.fanout=[-1,-1]")}


class PlanTest(ProgramTest):
    JOB = JOB
    scale, features = 11, 16

    def setUp(self):
        super().setUp()
        self.make_once(self.graph, ("generate", "rmat", "--scale", self.scale, "--edge-factor", 12, "--symmetrize", "--features", self.features,
                                    "--classes", 5, "--seed", 3))

    def planned(self, *overrides, ranks=1):
        """Whether it fits or not."""
        return super().planned(*overrides, ranks=ranks, codes=(0, 4))

    def both(self, command, *overrides, ranks=1, options=(), timeout=200):
        self.succeed("-q", command, self.config, *overrides, ranks=ranks, timeout=timeout)
        sampling = ("--sampling",) if command == "sample" else ()
        return self.report(self.output), self.planned(*overrides, *options, *sampling, ranks=ranks)


class Bytes(PlanTest):
    def check(self, command, sampler, *overrides, ranks):
        run, plan = self.both(command, *SAMPLERS[sampler], *overrides, ranks=ranks)
        what = (command, sampler, overrides, ranks)
        self.assertEqual(plan["epochs"][0]["sample_digest"], run["epochs"][0]["sample_digest"], what)
        self.assertEqual(plan["schedules"], run["schedules"], what)
        for field in ("batches", "sampled_edges", "input_rows"):
            self.assertEqual(plan["epochs"][0][field], run["epochs"][0][field], what)
        self.compare_bytes(run, plan, what, off=0.02)
        rounds = [{stage: volume["rounds"] for stage, volume in of["epochs"][0]["bytes"].items()} for of in (run, plan)]
        if sampler == "fastgcn":  # which may draw again, in some windows more often than in others
            self.assertLessEqual(abs(rounds[0].pop("sample") - (said := rounds[1].pop("sample"))), 0.1 * said, what)
        self.assertEqual(*rounds, what)
        return run, plan

    def test_sampling_by_every_schedule(self):
        # Two schedules for each sampler, two samplers for each schedule; product/cost_model_test has the formulas.
        pairs = itertools.product(enumerate(SAMPLERS), enumerate(SCHEDULES))
        for turn, sampler, schedule in [((i + k) % 5, sampler, schedule) for (i, sampler), (k, schedule) in pairs]:
            if turn > 1 and not LONG:
                continue
            ranks, copies = (4, 2) if turn != 1 else (3, 1)
            self.check("sample", sampler, f"grid.schedule={schedule}", f"grid.replication={copies}", "sampler.bulk=7", ranks=ranks)

    def test_training(self):
        for sampler, (job, ranks) in zip(itertools.cycle(SAMPLERS), (
                # Of several pieces that are reduced one by one (train/gradient_reduction.hpp).
                (("model.kind=sage", "grid.replication=2", "train.reproducible=true", "model.layers=3", "sampler.fanout=[4,3,2]",
                  "model.hidden=96"), 4),
                (("model.kind=gcn", "train.batches_per_step=3"), 2),
                (("model.normalize=batch", "grid.topology=replicated"), 2),
                (("model.kind=gcn", "model.normalize=layer", "run.memory_limit=2MB", "run.memory_check=warn", "grid.schedule=staged"), 3),
                (("model.kind=gcn", "grid.replication=2", "grid.topology=replicated", "sampler.batch_size=100"), 2))):
            run, _ = self.check("train", sampler, *job, ranks=ranks)
            self.assertGreater(run["epochs"][0]["bytes"]["reduce"]["total"], 0)

    def test_weighted_draws(self):
        weigh_edges(self.graph)
        for schedule, model in (("push", "sage"), ("pull", "rgcn"), ("auto", "gcn")):
            self.check("train", "graphsage", "sampler.weighted=true", f"grid.schedule={schedule}", f"model.kind={model}", ranks=3)

    def test_a_part_of_a_long_epoch_stands_for_all(self):
        for sampler, schedule, bulk in (("graphsage", "pull", "auto"), ("labor", "push", "8"), ("ladies", "staged", "8"),
                                        ("fastgcn", "auto", "auto"), ("subgraph", "staged", "8")):
            job = (*SAMPLERS[sampler], "sampler.batch_size=16", f"grid.schedule={schedule}", f"sampler.bulk={bulk}",
                   "grid.replication=2", "train.batches_per_step=16")
            run, plan = self.both("train", *job, ranks=4, options=("--draw", 24))
            batches, drawn = run["epochs"][0]["batches"], plan["plan"]["drawn"]
            self.assertGreater(batches, 60)
            self.assertLess(drawn, batches / 2)
            if sampler != "subgraph":  # whose batches have one size
                self.assertGreater(plan["plan"]["relative_error"], 0)
            self.assertNotIn("sample_digest", plan["epochs"][0])
            self.compare_bytes(run, plan, job)

    def test_degrees_alone_say_the_order_of_magnitude(self):
        pairs = itertools.product(enumerate(SAMPLERS), enumerate(("pull", "push", "staged")))
        for sampler, schedule in [(sampler, schedule) for (i, sampler), (k, schedule) in pairs if LONG or (i + k) % 3 < 1]:
            job = (*SAMPLERS[sampler], f"grid.schedule={schedule}")
            run, plan = self.both("train", *job, ranks=2, options=("--draw", 0))
            self.assertEqual(plan["plan"]["drawn"], 0)
            for stage, volume in run["epochs"][0]["bytes"].items():
                ratio = plan["epochs"][0]["bytes"][stage]["total"] / volume["total"]
                self.assertTrue(0.8 < ratio < 2, (job, stage, ratio))
        self.assertIn("estimated from the degrees", self.succeed("plan", self.config, "--ranks", 2, "--draw", 0))


class Memory(PlanTest):
    """At sizes where minibatches, activations and evaluation matter: at least as much again as the program itself."""

    scale, features = 14, 96

    def check(self, command, *job, ranks, timeout=200):
        job = (*job, "sampler.batch_size=256", "model.hidden=96")
        run, plan = self.both(command, *job, ranks=ranks, timeout=timeout)
        # The peak of one and the same job differs from run to run, by how the heap happens to be laid out: the median of three.
        peaks = [run["peak_memory_bytes"]["max"]]
        for _ in range(2):
            self.succeed("-q", command, self.config, *job, ranks=ranks, timeout=timeout)
            peaks.append(self.report(self.output)["peak_memory_bytes"]["max"])
        measured, said = sorted(peaks)[1], plan["peak_memory_bytes"]["max"]
        phases = plan["plan"]["memory"]
        self.assertAlmostEqual(said, max(sum(items.values()) for items in phases.values()), delta=20)
        self.assertLessEqual(abs(said - measured), 0.2 * measured, f"{command} {job} np {ranks}: measured {measured}, planned {said}")
        return measured

    def test_peaks(self):
        self.assertGreater(self.check("train", "model.kind=sage", "train.epochs=2", ranks=1), 60e6)
        self.check("train", "model.kind=gcn", "grid.replication=2", "sampler.kind=labor", ranks=2)
        self.check("sample", "sampler.fanout=[25,25]", ranks=2)

    @unittest.skipUnless(LONG, "long: every sampler, model, grid, topology")
    def test_long_peaks_and_bytes(self):
        for command, sampler, model, (ranks, copies, topology) in itertools.product(
                ("sample", "train"), SAMPLERS, ("sage", "gcn"),
                ((1, 1, "partitioned"), (2, 1, "partitioned"), (4, 1, "partitioned"), (4, 2, "partitioned"), (2, 2, "replicated"))):
            job = (*SAMPLERS[sampler], f"model.kind={model}", f"grid.replication={copies}", f"grid.topology={topology}", "train.epochs=2")
            self.check(command, *job, ranks=ranks)
            self.compare_bytes(*self.both(command, *job, ranks=ranks), (command, job, ranks))


class Choices(PlanTest):
    def test_auto_is_resolved_as_in_a_run(self):
        commands = ("sample", "train")
        jobs = (("run.memory_limit=8GB",), ("run.memory_limit=1MB",), ("run.memory_limit=900KB", "model.kind=gcn"),
                ("run.memory_limit=600KB", "sampler.batch_size=9", "sampler.kind=labor"))
        for command, job in itertools.product(commands, jobs) if LONG else zip(itertools.cycle(commands), jobs):
            job = (*job, "grid.replication=auto", "sampler.bulk=auto", "run.memory_check=warn")
            run, plan = self.both(command, *job, ranks=4)
            for section, key in (("grid", "replication"), ("sampler", "bulk"), ("train", "batches_per_step")):
                self.assertEqual(plan["config"][section][key], run["config"][section][key], (command, job, key))

    def test_what_does_not_fit_is_planned_and_refused(self):
        output = self.fail_with(4, ["does not fit", "has 20.0 MiB", "use more ranks", "grid.replication below 2"], "plan", self.config,
                                "--ranks", 4, "--memory-per-rank", "20MiB", "grid.replication=2")
        self.assertIn("DOES NOT FIT", output)
        self.assertIn("between ranks", output)
        self.assertFalse(json.loads((self.output / "plan.json").read_text())["plan"]["fits"])
        self.assertTrue(self.planned("grid.replication=2", "--memory-per-rank", "2GiB", ranks=4)["plan"]["fits"])

    def test_what_is_needed_is_one_number(self):
        self.make_once(self.graph, ("generate", "rmat", "--scale", 15, "--edge-factor", 8, "--symmetrize", "--features", 16))
        job = ("model.hidden=256", "sampler.fanout=[10,10]", "sampler.batch_size=512")

        def named(limit):
            output = self.fail_with(4, ["does not fit"], "plan", self.config, "--ranks", 1, "--draw", 0, "--memory-per-rank", round(limit), *job)
            return float(re.search("a rank needs ([0-9.]+) MiB", output).group(1)) * 2**20
        needs = named(8 << 20)
        for share in (0.5, 0.8, 0.95):
            self.assertAlmostEqual(named(share * needs), needs, delta=2e6)  # what a process has at its start varies
        for more in (1.05, 1.1, 1.2, 1.4, 2, 100):
            self.succeed("plan", self.config, "--ranks", 1, "--draw", 0, "--memory-per-rank", round(more * needs), *job)

    def test_one_number_says_what_fits(self):
        # Of a graph whose training vertices read half of it, degrees foretell too little.
        hubs, rows = self.folder / "hubs.h5", np.random.default_rng(3)
        write_graph(hubs, [sorted(rows.choice(6000, 3000, replace=False)) if v < 400 else [v - 1] for v in range(6000)],
                    np.zeros((6000, 4), np.float32), np.arange(6000) % 3, range(400), range(400, 500), range(500, 600))
        self.config.write_text(job_text(self.graph, self.output, *(line for line in JOB if not line.startswith("model."))))
        of_hubs = (f"graph.file={hubs}", "model.layers=1", "sampler.fanout=[-1]", "sampler.batch_size=50")
        job = (*of_hubs, "grid.replication=1", "sampler.bulk=8")
        free = self.planned(*job, ranks=2)
        counted, judged = free["peak_memory_bytes"]["max"], free["plan"]["judged_bytes"]
        self.assertGreater(counted - judged, 3e6)  # more than the program itself varies by
        for _ in range(2):  # with less memory, chunks of evaluation are smaller
            limit = (counted + judged) // 2
            page = self.succeed("plan", self.config, "--ranks", 2, "--memory-per-rank", limit, *job)
            whole = json.loads((self.output / "plan.json").read_text())
            plan, counted, judged = whole["plan"], whole["peak_memory_bytes"]["max"], whole["plan"]["judged_bytes"]
        self.assertTrue(plan["fits"], page)
        # All that is said of what fits goes by the number of the verdict.
        self.assertEqual(plan["peak_by_replication"]["1"], plan["judged_bytes"])
        fitting = [int(c) for c, peak in plan["peak_by_replication"].items() if peak <= limit]
        self.assertGreaterEqual(plan["largest_bulk"], 8, page)
        self.assertIn(f"largest that fits: grid.replication = {max(fitting, default='none')}, sampler.bulk = {plan['largest_bulk'] or 'none'}", page)
        self.assertIn("the verdict may be too kind", page)

    def test_the_largest_bulk_fits_and_the_next_does_not(self):
        # Of a size beside which the memory of the program itself, up to 1 MiB more or less from run to run, is little: all batches
        # take some 20 MiB more than two.
        self.make_once(self.graph, ("generate", "rmat", "--scale", 14, "--edge-factor", 12, "--symmetrize", "--features", 16))
        job, sampling = ("sampler.batch_size=64", "sampler.fanout=[40,40]"), ("--sampling",)
        few, all_of_them = (self.planned(*job, f"sampler.bulk={bulk}", *sampling, ranks=2)["plan"]["judged_bytes"] for bulk in (2, 1000))
        limited = (*sampling, "--memory-per-rank", (few + all_of_them) // 2)
        largest = 10
        for _ in range(3):  # a plan estimates at its own bulk and scales from there: the nearer, the better
            largest = self.planned(*job, f"sampler.bulk={largest}", *limited, ranks=2)["plan"]["largest_bulk"]
        batches = self.planned(*job, *sampling, ranks=2)["epochs"][0]["batches"]
        self.assertTrue(batches / 4 < largest < batches * 3 / 4, (largest, batches))
        self.assertTrue(self.planned(*job, f"sampler.bulk={largest * 2 // 3}", *limited, ranks=2)["plan"]["fits"])
        self.fail_with(4, ["does not fit", "sampler.bulk = "], "plan", self.config, "--ranks", 2, *limited, *job,
                       f"sampler.bulk={largest * 3 // 2}")


class Page(PlanTest):
    def test_it_is_a_page(self):
        output = self.succeed("plan", self.config, "--ranks", 16, "--machine", ROOT / "inputs/machines/perlmutter.toml",
                              "grid.replication=4", "run.device=cpu")
        lines = output.splitlines()
        self.assertLess(len(lines), 55)
        for line in lines:
            if str(self.folder) not in line:
                self.assertLessEqual(len(line), 100, line)
        for word in ("memory of a rank", "together", "fits", "staged-oblivious", "<- this job", "seconds of an epoch on"):
            self.assertIn(word, output)

    def test_the_json_has_the_fields_of_a_report(self):
        self.succeed("-q", "train", self.config, ranks=2)
        report = self.report(self.output)
        plan = self.planned("--machine", ROOT / "inputs/machines/laptop.toml", ranks=2)
        self.assertEqual(plan["command"], "plan")
        self.assertLessEqual(set(report) - {"train", "test", "best_epoch", "weights_digest", "confusion", "checkpoints"}, set(plan))
        self.assertEqual({key: plan[key] for key in ("ranks", "replication", "graph", "threads", "device")},
                         {key: report[key] for key in ("ranks", "replication", "graph", "threads", "device")})
        self.assertEqual(set(plan["epochs"][0]["seconds"]), set(report["epochs"][0]["seconds"]))
        self.assertAlmostEqual(plan["epochs"][0]["seconds"]["total"],
                               sum(s for stage, s in plan["epochs"][0]["seconds"].items() if stage != "total"))
        self.assertEqual(set(plan["epochs"][0]["bytes"]["fetch"]), set(report["epochs"][0]["bytes"]["fetch"]))
        self.assertIn("without graph.features_on", self.succeed("plan", self.config, "--ranks", 2, "graph.features_on=node"))
        elsewhere = self.folder / "deep" / "down.json"
        self.succeed("-q", "plan", self.config, "--ranks", 2, "-o", elsewhere)
        self.assertEqual(json.loads(elsewhere.read_text())["command"], "plan")


MACHINE = """format = "espalier-machine"
version = 1
name = "paper"
[node]
device = "cpu"
ranks = {ranks}
threads = 1
memory = "8GB"
device_memory = "none"
[network]
latency_us = 5.0
bandwidth_gbs = 2
[inside]
latency_us = 1.0
bandwidth_gbs = 10
[rates]
draws_m = 1e12
entries_m = 1e12
rows_gbs = 1e12
spmm_gbs = 1e12
gemm_gflops = {gemm}
elements_gbs = 1e12
parameters_m = 1e12
gradients_m = 1e12
"""


class Seconds(PlanTest):
    def seconds(self, *overrides, machine, ranks):
        path = self.folder / "machine.toml"
        path.write_text(machine)
        return self.planned(*overrides, "--machine", path, ranks=ranks)["epochs"][0]

    def test_they_follow_from_alpha_beta_and_gamma(self):
        for on_a_node, alpha, beta in ((1, 5e-6, 1 / 2e9), (4, 1e-6, 1 / 10e9), (2, (1 + 2 * 5) / 3 * 1e-6, (1 / 10e9 + 2 / 2e9) / 3)):
            epoch = self.seconds(machine=MACHINE.format(ranks=on_a_node, gemm="1e12"), ranks=4)
            reduce = epoch["bytes"]["reduce"]
            expected = alpha * reduce["messages"] / 4 + beta * reduce["max_rank"]
            self.assertAlmostEqual(epoch["seconds"]["reduce"] / expected, 1, places=6)
        epoch = self.seconds("model.layers=1", "model.hidden=256", "sampler.fanout=[1]", machine=MACHINE.format(ranks=1, gemm="1"), ranks=1)
        # One layer of sage that multiplies first: the input's rows by one matrix, the seeds' by another; backward two gradients.
        seeds = len(read(self.graph, "split/train"))
        flops = 2 * (epoch["input_rows"] + seeds) * self.features * 5
        self.assertAlmostEqual(epoch["seconds"]["forward"] / (flops / 1e9), 1, places=3)
        self.assertAlmostEqual(epoch["seconds"]["backward"] / (flops / 1e9), 1, places=3)

    def test_products_have_a_rate_for_each_precision(self):
        model = ("model.layers=1", "model.hidden=256", "sampler.fanout=[1]")

        def seconds(precision, rates):
            machine = MACHINE.format(ranks=1, gemm="1\n" + rates)
            return self.seconds(*model, f'train.precision="{precision}"', machine=machine, ranks=1)["seconds"]["forward"]

        float32 = seconds("fp32", "gemm_bf16_gflops = 4")
        self.assertAlmostEqual(float32 / seconds("bf16", "gemm_bf16_gflops = 4"), 4, places=3)
        self.assertAlmostEqual(float32 / seconds("bf16", "gemm_tf32_gflops = 4"), 1, places=3)

    def test_machine_files(self):
        path = self.folder / "machine.toml"
        good = MACHINE.format(ranks=1, gemm="1")
        for change, words in ((("version = 1", "version = 2"), ["version 2", "version 1"]),
                              (("espalier-machine", "toaster"), ["not a machine file", "calibrate"]),
                              (("draws_m", "drawz_m"), ["machine.toml:17", "unknown key rates.drawz_m", "rates.draws_m"]),
                              (("gemm_gflops = 1\n", ""), ["rates.gemm_gflops is missing"]),
                              (("gemm_gflops = 1", "gemm_gflops = 0"), ["rates.gemm_gflops", "above 0"]),
                              (("ranks = 1", "ranks = 0"), ["node.ranks", "at least 1"]),
                              (('"8GB"', '"lots"'), ["node.memory", "lots"]),
                              (('"cpu"', '"abacus"'), ["node.device", "cuda"]),
                              (("[rates]", "[rates"), ["machine.toml:16"])):
            path.write_text(good.replace(*change))
            self.fail_with(2, words, "plan", self.config, "--ranks", 2, "--machine", path)
        self.fail_with(2, ["machine file", "no such file", "nowhere.toml"], "plan", self.config, "--ranks", 2, "--machine", self.folder / "nowhere.toml")

    def test_calibrate_writes_what_plan_reads(self):
        path = self.folder / "here.toml"
        output = self.succeed("calibrate", "-o", path, "--name", "here", ranks=2, timeout=300)
        self.assertIn("latency_us", output)
        epoch = self.planned("--machine", path, ranks=2)
        self.assertEqual(epoch["plan"]["machine"], "here")
        self.assertIn("disk_gbs", path.read_text())
        self.assertRegex(path.read_text(), "(?m)^gemm_bf16_gflops = ")
        self.assertGreater(epoch["epochs"][0]["seconds"]["total"], 0)
        self.assertEqual(path.read_text().count("ranks = 2"), 1)
        if len(os.sched_getaffinity(0)) == 2:  # what ranks share is the cores' divisors
            self.assertRegex(output, r"(?m)^ranks x threads .*\n1 x 2 .*\n2 x 1 ")
            self.assertRegex(path.read_text(), r'(?m)^core_splits = "1x2 [0-9.e+]+, 2x1 [0-9.e+]+"')
        machine = re.sub("(?m)^core_splits.*\n", "", path.read_text())
        for splits, words in (("1x2 9, 2x1 6", "cores    2 x 1; fastest by the machine file: 1 rank a node x 2 threads, 1.50 times"), ("2x1 6", None),
                              ("1x8 2", "cores    2 x 1 was not measured by the machine file; fastest of what was: 1 rank a node x 8 threads")):
            path.write_text(machine.replace("threads =", f'core_splits = "{splits}"\nthreads =').replace("threads = 2", "threads = 1"))
            page = self.succeed("plan", self.config, "--ranks", 2, "--machine", path, "run.threads=1")
            self.assertIn(words, page) if words else self.assertNotIn("\ncores ", page)
        path.write_text(machine.replace("threads =", 'core_splits = "1 x 2"\nthreads ='))
        self.fail_with(2, ["node.core_splits", "1x8 4.25"], "plan", self.config, "--ranks", 2, "--machine", path)
        self.fail_with(2, ["--fastest", "a rank on each core"], "calibrate", "--fastest", timeout=300)
        self.fail_with(2, ["cannot write"], "calibrate", "-o", self.folder / "no" / "such" / "folder.toml", timeout=300)


class SmallTest(ProgramTest):
    JOB = JOB
    GENERATE = staticmethod(awkward_graph)


class BadInput(SmallTest):
    def test_arguments_and_files(self):
        for code, words, arguments in (
                (2, ["--ranks"], []),
                (2, ["--ranks -3"], ["--ranks=-3"]),
                (2, ["grid.replication = 2", "number of ranks, 3"], ["--ranks", 3, "grid.replication=2"]),
                (2, ["grid.replication = 8"], ["--ranks", 4, "grid.replication=8"]),
                (2, ["--memory-per-rank", "plenty"], ["--ranks", 2, "--memory-per-rank", "plenty"]),
                (2, ["run.device = cuda", "--machine"], ["--ranks", 2, "run.device=cuda"]),
                (3, ["missing.h5"], ["--ranks", 2, "graph.file=missing.h5"])):
            self.fail_with(code, words, "plan", self.config, *arguments)
        self.fail_with(2, ["one process", "--ranks"], "plan", self.config, "--ranks", 2, ranks=2)
        self.assertIn("fits", self.succeed("plan", self.config, "--ranks", 100))
        self.assertFalse((self.folder / "out" / "report.json").exists(), "a plan is no run")


class Documents(SmallTest):
    def test_the_machines_of_the_repository_are_read(self):
        machines = sorted((ROOT / "inputs" / "machines").glob("*.toml"))
        self.assertGreaterEqual(len(machines), 2)
        for machine in machines:
            self.assertIn("seconds of an epoch", self.succeed("plan", self.config, "--ranks", 8, "--machine", machine))

    def test_the_examples_of_help_work(self):
        self.succeed("generate", "planted", "--nodes", 3000, "--features", 8, "--classes", 4, "-o", self.graph, "--overwrite")
        lines = [line.split() for line in self.succeed("help", "plan").splitlines() if line.startswith("  espalier plan ")]
        self.assertEqual(len(lines), 1)
        self.succeed(*lines[0][1:], f"graph.file={self.graph}", f"output.dir={self.folder}", cwd=ROOT)
        self.assertIn("calibrate -o machine.toml", self.succeed("help", "calibrate"))

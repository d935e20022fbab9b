"""espalier sample and train as a user runs them.

Laws: one digest, and with train.reproducible one loss to the last bit, for every number of ranks, copies, topology, bulk, threads
and index width; report.json holds what the design says; a wrong input ends with one message and the right exit code.
"""

import csv
import itertools
import os
import unittest

import numpy as np

from tests.app.program import LONG, ROOT, SHARED_DATA, ProgramTest, awkward_graph, put, write_graph

JOB = ('graph.feature_norm="standard"', "sampler.fanout=[3, 2]", "sampler.batch_size=5", "model.hidden=8", "model.layers=2",
       "model.dropout=0.25", "train.epochs=2", "train.batches_per_step=4", "train.reproducible=true", "run.threads=1")


def divisors(p):
    return [c for c in range(1, p + 1) if p % c == 0]


class JobTest(ProgramTest):
    JOB = JOB
    GENERATE = staticmethod(awkward_graph)

    def sample(self, *overrides, **options):
        self.succeed("-q", "sample", self.config, *overrides, **options)
        return self.report(self.output)["epochs"][0]["sample_digest"]


class Sample(JobTest):
    def test_one_digest_for_every_grid(self):
        # sample/every_sampler_test has all grids, samplers and schedules, plan_test compares by each of them.
        expected = self.sample()
        for ranks, copies in ((6, 3), (5, 1), *(((3, 1), (2, 2), (4, 2), (8, 1)) if LONG else ())):
            self.assertEqual(self.sample(f"grid.replication={copies}", ranks=ranks), expected, f"p {ranks} c {copies}")
        for overrides in (("grid.topology=replicated", "sampler.bulk=3"), ("run.threads=2", "train.batches_per_step=2")):
            self.assertEqual(self.sample(*overrides, ranks=3), expected, overrides)
        self.assertNotEqual(self.sample("train.seed=1"), expected)

    def test_epochs_differ_and_the_report_has_them(self):
        self.succeed("sample", self.config, "--epochs", 3)
        report = self.report(self.output)
        self.assertEqual(report["command"], "sample")
        self.assertEqual([e["epoch"] for e in report["epochs"]], [1, 2, 3])
        self.assertEqual(len({e["sample_digest"] for e in report["epochs"]}), 3)
        self.assertEqual(report["epochs"][0]["batches"], 5)
        self.assertNotIn("loss", report["epochs"][0])
        self.assertGreater(report["epochs"][0]["sampled_edges"], 0)

    def test_the_digest_of_training_is_the_digest_of_sampling(self):
        expected = self.sample()
        self.succeed("-q", "train", self.config, ranks=2)
        self.assertEqual(self.report(self.output)["epochs"][0]["sample_digest"], expected)

    def test_the_report_counts_messages_and_bytes_by_step_beside_the_model(self):
        output = self.succeed("sample", self.config, "grid.schedule=staged", "grid.replication=2", ranks=4)
        self.assertIn("schedule staged, staged", output)
        self.assertEqual(self.report(self.output)["schedules"], ["staged", "staged"])
        epoch = self.report(self.output)["epochs"][0]
        stage, steps = epoch["bytes"]["sample"], epoch["steps"]
        self.assertEqual(set(steps), {"sample/ids", "sample/rows", "sample/reduction"})
        for field in ("total", "messages", "predicted"):
            self.assertAlmostEqual(stage[field], sum(step[field] for step in steps.values()), delta=2, msg=field)
        for volume in (stage, *steps.values()):
            self.assertLessEqual(volume["total"] / 4, volume["max_rank"])
            self.assertGreater(volume["predicted"], 0)
        for label in ("between ranks", "reduction", "MB predicted"):
            self.assertIn(label, output)

    @unittest.skipUnless(LONG, "long: LADIES on an R-MAT of scale 20")
    def test_long_ladies_holds_no_array_of_batches_times_vertices(self):
        graph = self.folder / "rmat.h5"
        self.succeed("generate", "rmat", "--scale", 20, "--edge-factor", 16, "--symmetrize", "--features", 1, "--classes", 2, "-o", graph)
        self.sample(f"graph.file={graph}", "sampler.kind=ladies", "sampler.fanout=[512,512,512]", "model.layers=3",
                    "sampler.batch_size=512", "sampler.bulk=64", timeout=600)
        report = self.report(self.output)
        resident = 8 * report["graph"]["edges"] + 8 * report["graph"]["nodes"]  # indices and values, indptr
        beyond = report["peak_memory_bytes"]["max"] - resident
        print(f"ladies, 64 batches in bulk: {beyond / 1e6:.0f} MB beyond the graph's {resident / 1e6:.0f} MB")
        self.assertLess(beyond, 64 * report["graph"]["nodes"] * 8, "as much as one array of batches x vertices")

    @unittest.skipUnless(LONG, "long: every grid, topology, bulk and thread count on debian and an R-MAT of scale 14")
    def test_long_one_digest_on_real_graphs(self):
        rmat, debian = self.folder / "rmat.h5", self.folder / "debian.h5"
        self.succeed("generate", "rmat", "--scale", 14, "--edge-factor", 16, "--features", 4, "--classes", 4, "--seed", 1,
                     "-o", rmat)
        graphs = [rmat]
        if SHARED_DATA.exists():
            self.succeed("import", "ogb", SHARED_DATA / "debian_bookworm", "--split", "random_seed0", "--symmetrize", "-o", debian)
            graphs.append(debian)
        for graph in graphs:
            job = [f"graph.file={graph}", "sampler.fanout=[15,10,5]", "model.layers=3", "sampler.batch_size=1024"]
            digests = {}
            for ranks, topology, bulk, threads in itertools.product((1, 2, 3, 4, 6, 8), ("partitioned", "replicated"),
                                                                    ("1", "3", "auto"), (1, 2)):
                for copies in divisors(ranks):
                    digest = self.sample(*job, f"grid.replication={copies}", f"grid.topology={topology}",
                                         f"sampler.bulk={bulk}", f"run.threads={threads}", ranks=ranks)
                    digests.setdefault(digest, []).append((ranks, copies, topology, bulk, threads))
            self.assertEqual(len(digests), 1, digests)


def best_by_loop(epochs, patience, metric="accuracy"):
    """The first best epoch, and the one behind which `patience` evaluations in a row had no gain; None: there is none."""
    best, waited, largest = 0, 0, -1.0
    for epoch in epochs:
        if "valid" in epoch:
            gain = epoch["valid"][metric] > largest
            best, largest, waited = (epoch["epoch"], epoch["valid"][metric], 0) if gain else (best, largest, waited + 1)
            if patience and waited == patience:
                return best, epoch["epoch"]
    return best, None


class Train(JobTest):
    def test_the_same_bits_for_every_grid(self):
        every_grid = [(ranks, copies) for ranks in (2, 3, 4, 8) for copies in divisors(ranks)]
        # train/trainer_test has all grids.
        for model, grids in ((("model.kind=sage",), ((3, 1), (4, 2))), (("model.kind=gcn", "sampler.weighted=true"), ((6, 3),)),
                             (("model.normalize=batch",), ((2, 2),)),
                             (("model.normalize=layer", "train.optimizer=sgd", "train.learning_rate=0.05"), ((3, 3),))):
            epochs = self.train("train.learning_rate=0.05", *model, "train.epochs=4", "model.dropout=0")["epochs"]
            self.assertLess(epochs[-1]["loss"], epochs[0]["loss"], "it learns")
            self.one_history(model, [(ranks, f"grid.replication={copies}") for ranks, copies in (every_grid if LONG else grids)]
                             + [(3, "grid.topology=replicated", "sampler.bulk=2")] * (LONG or "normalize" in model[0]))

    def test_nothing_is_read_that_was_freed(self):
        # A batch of a subgraph makes its own lists. Here what is freed is overwritten at once, by the C library.
        self.make_once(self.graph, ("generate", "planted", "--nodes", 900, "--features", 4, "--classes", 3))
        job = ("sampler.kind=subgraph", "sampler.fanout=[-1,-1]", "sampler.batch_size=300", "train.batches_per_step=2")
        overwritten = dict(os.environ, MALLOC_PERTURB_="85", GLIBC_TUNABLES="glibc.malloc.tcache_count=0")
        self.assertEqual(*map(self.history, (self.train(*job, ranks=2, env=overwritten), self.train(*job))))

    def test_float_reduction_agrees_to_rounding(self):
        self.compare_epochs(self.train("train.reproducible=false", ranks=3), self.train(), off=1e-4)

    def test_the_report_and_the_csv_hold_what_the_design_says(self):
        output = self.succeed("train", self.config, "grid.replication=2", ranks=4)
        self.assertIn("report: ", output)
        report = self.report(self.output)
        for key, value in (("espalier", "0.1.0"), ("command", "train"), ("ranks", 4), ("replication", 2), ("threads", 1),
                           ("device", "cpu")):
            self.assertEqual(report[key], value)
        graph = report["graph"]
        self.assertEqual(len(graph.pop("digest")), 16)
        self.assertEqual(len(graph.pop("digests")), 8)
        self.assertEqual(graph, {"nodes": 50, "edges": graph["edges"], "features": 6, "classes": 3, "verified": False})
        self.assertEqual(report["config"]["sampler"]["fanout"], [3, 2])
        self.assertEqual(report["config"]["sampler"]["bulk"], 5, "auto is resolved")
        self.assertIn('bulk = "auto"  # 5\n', (self.output / "config.toml").read_text())
        epoch = report["epochs"][-1]
        stages = ["total", "sample", "fetch", "forward", "backward", "reduce", "optimizer", "evaluate"]
        self.assertEqual(list(epoch["seconds"]), stages)
        self.assertLessEqual(max(epoch["seconds"][s] for s in stages[1:]), epoch["seconds"]["total"])
        for stage in ("sample", "fetch", "reduce"):
            self.assertGreater(epoch["bytes"][stage]["total"], 0)
            self.assertLessEqual(epoch["bytes"][stage]["max_rank"], epoch["bytes"][stage]["total"])
        self.assertRegex(epoch["sample_digest"], "^[0-9a-f]{16}$")
        self.assertEqual(epoch["batches"], 5)
        self.assertTrue(0 <= epoch["valid"]["accuracy"] <= 1)
        self.assertTrue({"accuracy", "macro_f1"} <= report["test"].keys())
        self.assertEqual(report["train"], report["epochs"][report["best_epoch"] - 1]["train"])
        self.assertIn(f'train accuracy {report["train"]["accuracy"]:.4f}, macro-F1 {report["train"]["macro_f1"]:.4f}', output)
        self.assertGreater(report["peak_memory_bytes"]["sum"], report["peak_memory_bytes"]["max"])
        rows = list(csv.DictReader((self.output / "metrics.csv").read_text().splitlines()))
        self.assertEqual([float(row["loss"]) for row in rows], [e["loss"] for e in report["epochs"]])
        self.assertEqual(list(rows[0])[-3:], ["bytes_evaluate", "train_accuracy", "train_macro_f1"], "new columns come last")
        for name in ("accuracy", "macro_f1"):
            self.assertEqual([float(row["train_" + name]) for row in rows], [e["train"][name] for e in report["epochs"]])

    def test_the_best_weights_stay_and_patience_counts_evaluations(self):
        noisy, met = ("train.learning_rate=0.5", "train.epochs=9", "model.normalize=batch"), set()
        for k, every in enumerate((1, 2, 0)):
            job = (*noisy, f"train.eval_every={every}")
            whole = self.train(*job)
            self.assertEqual([epoch["epoch"] for epoch in whole["epochs"] if "valid" in epoch],
                             [epoch for epoch in range(1, 10) if epoch == 9 or every and epoch % every == 0])
            for patience in (0, 1, 2) if every else (0,):
                best, end = best_by_loop(whole["epochs"], patience)
                report = self.train(*job, f"train.early_stop={patience}", ranks=1 + k)
                self.assertEqual((report["best_epoch"], len(report["epochs"])), (best, end or 9), (every, patience))
                until_best = self.train(*job, f"train.epochs={best}")
                self.assertEqual((report["weights_digest"], report["test"]), (until_best["weights_digest"], until_best["test"]))
                met |= {"best before the end"} if best < len(report["epochs"]) else set()
                met |= {"stopped early"} if end and end < 9 else set()
        self.assertIn("stopped early", self.succeed("train", self.config, *noisy, "train.epochs=200", "train.early_stop=1"))
        self.assertEqual(met, {"best before the end", "stopped early"}, "the case must have told something")
        report = self.train(*noisy, "train.metric=macro_f1")
        self.assertEqual(report["best_epoch"], best_by_loop(report["epochs"], 0, "macro_f1")[0])


class Defaults(ProgramTest):
    """What an input file of two lines gets."""

    JOB = ()
    GENERATE = ("planted", "--nodes", 1500, "--features", 4, "--classes", 3)
    small = ("sampler.batch_size=20", "model.hidden=8", "train.epochs=2")

    def run_small(self, *overrides, ranks):
        """Its history, and what it says."""
        output = self.succeed("train", self.config, *self.small, *overrides, ranks=ranks)
        return self.history(self.report(self.output)), output

    def test_reproducible_alone_gives_one_history(self):
        expected, _ = self.run_small("train.reproducible=true", ranks=1)
        self.assertEqual(self.report(self.output)["config"]["train"]["batches_per_step"], 2)  # 38 batches: 19 steps
        for ranks in (2, 3):
            found, output = self.run_small("train.reproducible=true", ranks=ranks)
            self.assertEqual(found, expected, ranks)
            self.assertNotIn("results change", output)
            self.assertEqual("1 of 3 ranks keep none; train.batches_per_step = 3 gives all of them work" in output, ranks == 3)

    def test_else_the_log_says_that_results_follow_the_ranks(self):
        first, output = self.run_small(ranks=3)
        self.assertIn("results change with the number of ranks; train.batches_per_step = 3 keeps them", output)
        again, output = self.run_small("train.batches_per_step=3", ranks=1)
        self.assertNotIn("results change", output)
        for found, expected in zip(again[:2], first[:2]):
            self.assertAlmostEqual(found[1], expected[1], delta=1e-4)

    def test_the_saved_config_is_what_was_asked_for(self):
        self.run_small("graph.verify=false", ranks=2)
        saved = (self.output / "config.toml").read_text()
        self.assertRegex(saved, r'(?m)^batches_per_step = "auto"  # 2$')
        self.assertRegex(saved, r'(?m)^threads = "auto"  # \d+$')
        self.assertIn("verify = false\n", saved)
        self.infer_to("rows.h5", config=self.output / "config.toml")

    def test_a_finished_run_is_not_replaced_in_silence(self):
        self.run_small(ranks=1)
        before = {path: path.read_bytes() for path in self.output.rglob("*") if path.is_file()}
        words = ["finished run", "report.json", "--overwrite"]
        for command in (("train", self.config, *self.small, "run.restart=never"), ("sample", self.config)):
            for ranks in (1, 2):
                self.fail_with(2, words, *command, ranks=ranks, overwrite=False)
        self.fail_with(2, ["train.seed", "--overwrite"], "train", self.config, *self.small, "train.seed=1", overwrite=False)
        self.assertEqual({path: path.read_bytes() for path in self.output.rglob("*") if path.is_file()}, before)
        output = self.succeed("train", self.config, *self.small, overwrite=False)
        self.assertIn("nothing is left to train", output)
        self.succeed("-q", "train", self.config, *self.small, "train.seed=1")
        self.assertEqual(self.report(self.output)["config"]["train"]["seed"], 1)
        self.assertEqual({path.name for path in (self.output / "checkpoints").iterdir()}, {"latest", "epoch-0003-step-000000.h5"})

    def test_overwrite_does_not_lose_a_run_that_was_cut_off(self):
        expected, _ = self.run_small("train.reproducible=true", f"output.dir={self.output}", ranks=1)
        for path in self.output.rglob("*.h5"):
            path.unlink()
        (self.output / "checkpoints/latest").unlink()
        (self.output / "report.json").unlink()
        self.stopped_run("train", self.config, *self.small, "train.reproducible=true")
        found, output = self.run_small("train.reproducible=true", ranks=2)
        self.assertRegex(output, "restart .* of epoch 1 done")
        self.assertEqual(found, expected)

    def test_a_run_without_checkpoints_says_so(self):
        self.assertNotIn("no checkpoints", self.run_small(ranks=1)[1])
        self.assertIn("no checkpoints", self.run_small("run.checkpoint_minutes=0", ranks=1)[1])
        self.assertIn('checkpoint_minutes = 30.0\n', (self.output / "config.toml").read_text().replace("= 0.0", "= 30.0"))


class OddGraphs(JobTest):
    """More ranks than vertices, batches or edges: the same bits as on one rank, and no waiting."""

    def test_tiny_graphs_on_many_ranks(self):
        features = np.arange(12).reshape(4, 3) / 7.0
        grids = itertools.cycle((((5, 1),), ((3, 1),), ((6, 3),)) if not LONG else (((5, 1), (6, 3)),))
        kinds = (("model.kind=sage",), ("model.kind=gcn",), ("model.kind=gcn", "sampler.kind=ladies", "grid.schedule=push"),
                 ("sampler.kind=fastgcn", "grid.schedule=staged"), ("sampler.kind=labor", "grid.schedule=staged-oblivious"))
        turns = itertools.cycle(kinds)  # each of them for a graph
        for name, rows, labels, train, valid, test in (("no edges", [[], [], [], []], [0, 1, 0, 1], [0, 1], [2], [3]),
                                                       ("loops only", [[0], [1], [2], [3]], [0, 1, 0, 1], [0, 1, 3], [], [2]),
                                                       ("one to train", [[1, 2, 3], [0], [], [0, 3]], [0, 1, 2, -1], [1], [], []),
                                                       ("one class", [[1], [0], [1], [2]], [0, 0, 0, 0], [0, 2], [1], [3])):
            write_graph(self.graph, rows, features, labels, train, valid, test)
            for kind in kinds if LONG else itertools.islice(turns, 2 if name == "no edges" else 1):
                runs = []
                for ranks, copies in ((1, 1), *next(grids)):
                    runs.append(self.history(self.train(*kind, "sampler.batch_size=1", "sampler.bulk=2", "train.batches_per_step=3",
                                                        f"grid.replication={copies}", ranks=ranks, timeout=60)))
                self.assertEqual(runs[1:], runs[:1] * (len(runs) - 1), (name, kind))


class BadInput(JobTest):
    def test_what_is_refused(self):
        # Of keys one of each kind; base/config_test has every message.
        blocked, long_name = self.folder / "file", self.folder / ("x" * 300)
        blocked.write_text("not a folder")
        train, sample = ("train", self.config), ("sample", self.config)
        for code, ranks, words, command in (
                (2, 1, ["unknown key train.epoch", "did you mean train.epochs?"], (*train, "train.epoch=3")),
                (2, 1, ["train.epochs", "whole number", "1.5"], (*train, "train.epochs=1.5")),
                (2, 1, ["train.epochs", "least"], (*train, "train.epochs=0")),
                (2, 1, ["model.kind", "not one of sage | gcn | gat | gin"], (*train, "model.kind=gta")),
                (2, 1, ["train.lr_step = 3", "train.lr_schedule to \"step\""], (*train, "train.lr_step=3")),
                (2, 1, ["sampler.fanout", "model.layers"], (*train, "sampler.fanout=[3]")),
                (2, 1, ["sampler.bulk"], (*train, "sampler.bulk=0")),
                (2, 1, ["sampler.kind = ladie", "did you mean ladies?", "fastgcn"], (*train, "sampler.kind=ladie")),
                (2, 1, ["sampler.mode", "debiased"], (*train, "sampler.mode=best")),
                (2, 1, ["grid.schedule", "push"], (*train, "grid.schedule=shove")),
                (2, 1, ["grid.bandwidth_gbs was removed", "grid.schedule"], (*train, "grid.bandwidth_gbs=5")),
                (2, 1, ["run.device", "without CUDA", "cpu"], (*train, "run.device=cuda")),
                (2, 3, ["grid.replication = 2", "number of ranks, 3"], (*train, "grid.replication=2")),
                (2, 2, ["grid.replication = 99999999999"], (*train, "grid.replication=99999999999")),
                # Keys that a sampler, or another key, would ignore.
                (2, 1, ["sampler.weighted", "labor"], (*sample, "sampler.kind=labor", "sampler.weighted=true")),
                (2, 1, ["sampler.draw = race", "sampler.weighted = false", "sampler.weighted = true"], (*sample, "sampler.draw=race")),
                (2, 1, ["sampler.draw = race", "labor", "graphsage"], (*sample, "sampler.kind=labor", "sampler.draw=race")),
                (2, 1, ["sampler.draw = race", "ladies"], (*sample, "sampler.kind=ladies", "sampler.weighted=true", "sampler.draw=race")),
                (2, 1, ["sampler.draw", "its | race"], (*sample, "sampler.weighted=true", "sampler.draw=racing")),
                (2, 1, ["sampler.mode = paper", "graphsage"], (*sample, "sampler.kind=graphsage", "sampler.mode=paper")),
                (2, 1, ["sampler.mode = reference", "labor"], (*sample, "sampler.kind=labor", "sampler.mode=reference")),
                (2, 2, ["sampler.share_batches = 2", "ladies", "labor"], (*sample, "sampler.kind=ladies", "sampler.share_batches=2")),
                (2, 1, ["sampler.fanout has 5", "subgraph", "write -1 for each layer"], (*sample, "sampler.kind=subgraph", "sampler.fanout=[-1,5]")),
                (2, 1, ["sampler.mode = paper", "subgraph"], (*sample, "sampler.kind=subgraph", "sampler.fanout=[-1,-1]", "sampler.mode=paper")),
                (2, 1, ["sampler.weighted", "fastgcn", "gcn"], (*sample, "sampler.kind=fastgcn", "model.kind=gcn", "sampler.weighted=true")),
                (2, 2, ["grid.schedule", "has no meaning with grid.topology"], (*sample, "grid.topology=replicated", "grid.schedule=staged")),
                (2, 1, ["job.toml:", "model.hidden", "model.layers = 1"], (*train, "model.layers=1", "sampler.fanout=[3]")),
                (4, 2, ["run.memory_limit"], (*train, "run.memory_limit=1KB")),
                (4, 2, ["model.hidden"], (*train, "model.hidden=1000000000000", "run.memory_limit=1TB")),
                # Commands and paths.
                (2, 1, ["trian", "train"], ("trian", self.config)), (2, 1, ["CONFIG"], ("train",)), (2, 1, ["FILE"], ("partition",)),
                (2, 1, ["frobnicate"], ("help", "frobnicate")),
                (2, 2, ["output.dir"], (*train, f"output.dir={blocked}/out")),
                (3, 2, ["missing.h5"], (*train, "graph.file=missing.h5")),
                (2, 2, ["config file"], ("train", long_name)), (3, 2, ["graph file"], (*train, f"graph.file={long_name}")),
                (3, 2, [long_name.name], ("import", "ogb", long_name, "--split", "x", "-o", self.folder / "g.h5"))):
            with self.subTest(command=command):
                self.fail_with(code, words, *command, ranks=ranks)
                self.assertFalse(self.output.exists(), "nothing is written for a run that cannot start")

    def test_config_file(self):
        self.fail_with(2, ["config file", "no such file", "nothing.toml"], "train", self.folder / "nothing.toml", ranks=2)
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        for path, words in ((self.folder, "is a folder"), (pipe, "is a pipe"), (self.graph, "is a graph file")):
            self.fail_with(2, [f"config file {path}: {words}"], "train", path, ranks=2, timeout=20)
        self.fail_with(2, [f"machine file {pipe}: is a pipe"], "plan", self.config, "--ranks", 2, "--machine", pipe, timeout=20)
        # The config's own mistakes are base/config_test's.
        for text, words in (("# nothing\n", ["job.toml: graph.file is missing"]), ("\n", ["job.toml: is empty, and graph.file is missing"]),
                            ("[train]\nepochs = 3\nseed = = 4\n", ["job.toml:3"]),
                            ("[train]\nepochs = 3\n[modle]\nkind = 'gcn'\n", ["job.toml:4", "modle.kind", "model.kind"])):
            self.config.write_text(text)
            self.fail_with(2, words, "train", self.config)

    def test_graph_file_that_is_cut_off(self):
        whole = self.graph.read_bytes()
        self.graph.write_bytes(whole[:len(whole) // 2])
        self.fail_with(3, ["graph.h5"], "train", self.config, ranks=2)

    def test_what_a_user_may_not_have_meant_is_said(self):
        for overrides, ranks, words in ((("train.batches_per_step=1",), 3, "2 of 3 ranks keep none"),
                                        (("sampler.kind=ladies", "sampler.fanout=[1,1]"), 1, "few seeds will have a neighbour")):
            self.assertIn(words, self.succeed("sample", self.config, *overrides, ranks=ranks))
        self.assertIn("graph.features_on = host has no meaning on the CPU",
                      self.succeed("train", self.config, "graph.features_on=host", "run.device=cpu", ranks=2))
        for words, overrides in ((["warning", "blocks of ladies in mode paper"], ("sampler.kind=ladies", "sampler.mode=paper", "sampler.fanout=[4,4]")),
                                 (["warning", "blocks of fastgcn in mode reference"], ("sampler.kind=fastgcn", "sampler.mode=reference", "sampler.fanout=[40,40]")),
                                 (["attention of gat, over the neighbours drawn"], ("model.kind=gat",)),
                                 (["the largest, of the neighbours drawn"], ("model.aggregator=max",)),
                                 (["rows of history, of earlier steps"], ("history.kind=replace", "history.t_stale=3"))):
            output = self.succeed("train", self.config, *overrides)
            for said in ("biased", *words):
                self.assertIn(said, output)
        for overrides in ((), ("sampler.kind=labor", "model.kind=gcn"), ("model.kind=gat", "sampler.fanout=[-1,-1]")):
            self.assertNotIn("biased", self.succeed("train", self.config, *overrides))
        self.assertNotIn("warning", self.succeed("sample", self.config, "sampler.kind=ladies", "sampler.fanout=[4,4]", ranks=2))

    def test_early_stop_without_vertices_to_validate_on(self):
        put(self.graph, {"split/valid": None})
        self.assertIn("train.early_stop = 3 never stops", self.succeed("train", self.config, "train.early_stop=3"))
        self.assertEqual(self.report(self.output)["best_epoch"], 2, "the last weights stay")

    def test_as_many_as_there_are(self):
        largest = 2**63 - 1
        self.succeed("-q", "train", self.config, f"sampler.batch_size={largest}", f"train.batches_per_step={largest}",
                     f"sampler.bulk={largest}", ranks=2)
        epoch = self.report(self.output)["epochs"][0]
        self.assertEqual(epoch["batches"], 1)
        self.assertGreater(epoch["loss"], 0)

    def test_a_failed_run_leaves_no_result_of_an_earlier_one(self):
        self.succeed("-q", "train", self.config)
        self.fail_with(6, ["not finite", "learning_rate"], "train", self.config, "train.learning_rate=1e30", "train.optimizer=sgd", ranks=2)
        self.assertIn("diverged", self.report(self.output))
        self.assertFalse((self.output / "weights.h5").exists())


class Documents(ProgramTest):
    def test_every_input_is_read(self):
        inputs = sorted((ROOT / "inputs").glob("*.toml"))
        self.assertGreaterEqual(len(inputs), 4)
        for path in inputs:
            self.assertIn("[sampler]", self.succeed("train", path, "--dry-run"))

    def test_help_has_an_example_for_every_command(self):
        for command in ("import", "generate", "info", "sample", "train", "infer", "plan", "calibrate", "report", "sweep", "verify", "help",
                        "version"):
            self.assertIn("espalier " + command, self.succeed("help", command))
        self.assertIn("sampler.fanout", self.succeed("help", "config"))
        self.assertIn("0.1.0", self.succeed("version"))

    def test_generated_examples_of_help_work(self):
        self.succeed("generate", "planted", "--nodes", 2000, "--classes", 8, "--degree", 12, "--homophily", 0.8, "--features", 32,
                     "--seed", 1, "-o", self.folder / "planted.h5")
        self.succeed("info", self.folder / "planted.h5", "--ranks", 64, "--replication", 4)
        self.succeed("-q", "train", ROOT / "inputs" / "debian.toml", f"graph.file={self.folder / 'planted.h5'}", "train.epochs=3",
                     f"output.dir={self.folder / 'out'}", ranks=2)
        self.assertGreater(self.report(self.folder / "out")["test"]["accuracy"], 0.5)
        example = next(line for line in self.succeed("help", "infer").splitlines() if "espalier infer inputs" in line).split()
        weights, rows = example.index("--checkpoint") + 1, example.index("-o") + 1
        example[weights], example[rows] = self.folder / "out" / "weights.h5", self.folder / "rows.h5"
        self.succeed(*example[example.index("espalier") + 1:], f"graph.file={self.folder / 'planted.h5'}", ranks=2, cwd=ROOT)
        self.assertTrue((self.folder / "rows.h5").exists())

"""Jobs on graphs with types.

Laws: samples, losses and weights are the same to the bit on every grid, by every schedule, on a grid gone on from; a graph of one
type and one relation is a graph without types; plan foretells the bytes; the emulated GPU draws the same samples.
"""

import json
import os
import unittest

import h5py

from tests.app.gpu_test import PROGRAM as EMULATED
from tests.app.program import ProgramTest

CONFIG = """
[graph]
file = "{graph}"
[sampler]
fanout = [4, 3]
batch_size = 100
[model]
kind = "rgcn"
layers = 2
hidden = 16
bases = 3
dropout = 0.2
[train]
epochs = 2
learning_rate = 0.01
batches_per_step = 4
reproducible = true
[run]
threads = 1
[output]
dir = "{output}"
"""
# On eight ranks some own no field.
TYPES = ("--types", "paper=1500:12,author=900,field=5",
         "--relations", "author.writes.paper=4000,paper.cites.paper=6000,paper.about.field=1500", "--classes", 5)
SAMPLERS = [("sampler.kind=graphsage",), ("sampler.kind=labor",),
            ("sampler.kind=ladies", "sampler.fanout=[200,300]"), ("sampler.kind=fastgcn", "sampler.fanout=[300,300]")]
GRIDS = ((1, 1), (2, 1), (3, 1), (4, 2), (4, 4), (6, 2), (8, 1))


class TypedTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.graph, self.output, self.config = self.folder / "graph.h5", self.folder / "out", self.folder / "job.toml"
        self.succeed("-q", "generate", "planted", *TYPES, "-o", self.graph)
        self.config.write_text(CONFIG.format(graph=self.graph, output=self.output))

    def train(self, *overrides, ranks=1, command="train"):
        self.succeed("-q", command, self.config, "run.restart=never", *overrides, ranks=ranks)
        return self.report(self.output)

    def history(self, report):
        return [(epoch["sample_digest"], epoch.get("loss"), epoch.get("valid")) for epoch in report["epochs"]] + [
            report.get("weights_digest"), report.get("test")]

    def test_one_history_on_every_grid_by_every_schedule(self):
        schedules = ("auto", "push", "pull", "staged", "staged-oblivious")
        for sampler in SAMPLERS:
            expected = None
            for k, (ranks, copies) in enumerate(GRIDS):
                with self.subTest(sampler=sampler, ranks=ranks, copies=copies):
                    found = self.history(self.train(*sampler, f"grid.replication={copies}",
                                                    f"grid.schedule={schedules[k % 5]}", f"run.overlap={str(k % 2 == 1).lower()}",
                                                    ranks=ranks))
                    expected = expected or found
                    self.assertEqual(found, expected)

    def test_models_that_ignore_types_too(self):
        for kind in ("sage", "gcn", "gat"):
            with self.subTest(kind=kind):
                job = (f"model.kind={kind}", "train.epochs=1", "model.bases=8")
                self.assertEqual(self.history(self.train(*job)), self.history(self.train(*job, "grid.replication=2", ranks=4)))

    def test_it_learns_through_relations(self):
        alone = ('sampler.relation_fanout=["writes=0", "rev_writes=0", "cites=0", "rev_cites=0", "about=0", "rev_about=0"]',
                 "train.epochs=12")
        self.assertGreater(self.train("train.epochs=12")["test"]["accuracy"], self.train(*alone)["test"]["accuracy"] + 0.1)

    def test_goes_on_on_another_grid(self):
        expected = self.history(self.train("train.epochs=3"))
        self.train("run.checkpoint_every=1", ranks=3)
        self.succeed("-q", "train", self.config, "train.epochs=3", "grid.replication=2", ranks=4)
        self.assertEqual(self.history(self.report(self.output)), expected)

    def test_infer_on_another_grid(self):
        self.train("train.epochs=1")
        logits = []
        for ranks in (1, 3):
            to = self.folder / f"logits{ranks}.h5"
            self.succeed("-q", "infer", self.config, "--checkpoint", self.output / "weights.h5", "-o", to, ranks=ranks)
            with h5py.File(to) as file:
                logits.append(file["logits"][:])
        self.assertEqual(logits[0].shape, (2405, 5))
        self.assertEqual(logits[0].tobytes(), logits[1].tobytes())

    def test_only_another_type_has_features(self):
        types = ("--relations", "author.writes.paper=3000,paper.cites.paper=2000", "--classes", 3, "-o", self.graph, "--overwrite")
        self.succeed("-q", "generate", "planted", "--types", "paper=1000,author=500:8", *types)
        expected = self.history(self.train())
        self.assertEqual(self.history(self.train("grid.topology=replicated", ranks=3)), expected)
        self.succeed("-q", "infer", self.config, "--checkpoint", self.output / "weights.h5", "-o", self.folder / "logits.h5")
        self.succeed("-q", "generate", "planted", "--types", "paper=1000,author=500", *types)
        self.fail_with(3, ["no vertex type has features"], "train", self.config, "run.restart=never")

    def test_plan_foretells_the_bytes(self):
        report = self.train("train.epochs=1", ranks=4)
        self.succeed("-q", "plan", self.config, "--ranks", 4)
        plan = json.loads((self.output / "plan.json").read_text())
        measured = report["epochs"][0]["bytes"]
        for label in ("sample", "fetch", "evaluate"):
            self.assertAlmostEqual(plan["epochs"][0]["bytes"][label]["total"] / measured[label]["total"], 1, delta=0.01, msg=label)

    def test_one_type_and_one_relation_is_a_graph_without_types(self):
        self.succeed("-q", "generate", "planted", "--types", "vertex=1500:12", "--relations", "vertex.edge.vertex=6000",
                     "--no-inverse", "--classes", 5, "-o", self.graph, "--overwrite")
        typed = {kind: self.history(self.train(f"model.kind={kind}", "model.bases=8", ranks=2)) for kind in ("sage", "rgcn")}
        plain = self.folder / "plain.h5"
        with h5py.File(self.graph) as old, h5py.File(plain, "w") as new:
            for name, value in old.attrs.items():
                if name != "digest":
                    new.attrs[name] = value
            new.attrs["version"] = 1
            for name in ("indptr", "indices"):
                new["graph/" + name] = old["graph/" + name][:]
            for name in ("features", "labels"):
                new["nodes/" + name] = old["nodes/vertex/" + name][:]
            for name in ("train", "valid", "test"):
                new["split/" + name] = old["split/vertex/" + name][:]
        for kind, expected in typed.items():
            found = self.train(f"graph.file={plain}", f"model.kind={kind}", "model.bases=8", ranks=2)
            self.assertEqual(self.history(found), expected, kind)

    @unittest.skipUnless(os.path.exists(EMULATED), "the emulated program was not built: make emulated")
    def test_the_emulated_gpu_draws_the_same_samples(self):
        for sampler in SAMPLERS:
            for ranks in (1, 3):
                job = (self.config, *sampler, "run.restart=never")
                env = dict(os.environ, ESPALIER_EMULATED_GPUS="3")
                reports = []
                for device in ("cpu", "cuda"):
                    self.succeed("-q", "train", *job, f"run.device={device}", ranks=ranks, env=env, program=EMULATED)
                    reports.append(self.report(self.output))
                cpu, gpu = reports
                self.assertEqual(gpu["device"], "cuda")
                for ours, theirs in zip(gpu["epochs"], cpu["epochs"], strict=True):
                    for key in ("sample_digest", "sampled_edges", "input_rows", "bytes"):
                        self.assertEqual(ours[key], theirs[key], key)
                    self.assertAlmostEqual(ours["loss"], theirs["loss"], delta=1e-4 * theirs["loss"])

    def test_what_is_refused(self):
        def refuse(code, words, *overrides):
            self.fail_with(code, words, "train", self.config, *overrides)
        refuse(3, ["graph.target", "tree", "paper, author, field"], "graph.target=tree")
        refuse(3, ["graph.target", "author", "no labels"], "graph.target=author")
        refuse(2, ["sampler.relation_fanout", "reads", "author.writes.paper"], 'sampler.relation_fanout=["reads=3"]')
        refuse(2, ["twice", "author.writes.paper"], 'sampler.relation_fanout=["writes=3", "author.writes.paper=2"]')
        refuse(2, ["3 numbers", "2 layers"], 'sampler.relation_fanout=["writes=3,2,1"]')
        refuse(2, ["RELATION=N"], 'sampler.relation_fanout=["writes"]')
        refuse(2, ["left out of all layers"], 'sampler.relation_fanout=["writes=3,0"]')
        refuse(2, ["model.kind = sage"], "model.kind=sage", "model.bases=8", 'sampler.relation_fanout=["writes=3"]')
        refuse(2, ["model.bases", "rgcn"], "model.kind=sage")
        ladies = ("sampler.kind=ladies", "sampler.fanout=[50, 50]")
        refuse(2, ["ladies", "all relations together"], *ladies, 'sampler.relation_fanout=["writes=3"]')
        refuse(2, ["reference", "self loops"], *ladies, "sampler.mode=reference")


if __name__ == "__main__":
    unittest.main()

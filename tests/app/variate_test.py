"""Training with control variates from history (history.kind = variate).

Laws: samples are those without it, nothing is pruned; where nothing can hit, so are weights; with weights that stand still sums become
exact, however few neighbours are drawn; one history of losses and weights on every grid, schedule and depth of prefetching, in each
scope, also where a job is cut and goes on elsewhere; what it moves is foretold; what it cannot correct is refused.
"""

import os
import shutil
import unittest

from tests.app.gpu_test import PROGRAM as EMULATED
from tests.app.planted_job import PlantedJobTest
from tests.app.program import espalier, weigh_edges

ON = ("history.kind=variate", "history.t_stale=8", "sampler.fanout=[2,2,2]")
GRIDS = ((2, 1, ("run.overlap=true",)), (3, 1, ("run.threads=2", "grid.schedule=pull", "run.overlap=true")),
         (4, 2, ("grid.topology=replicated",)), (6, 3, ("sampler.bulk=7",)), (4, 1, ("grid.schedule=staged", "run.overlap=true", "sampler.bulk=5")))


class VariateTest(PlantedJobTest):
    NODES = 2000

    def test_one_history_on_every_grid(self):
        for job in ((), ("history.scope=lane",), ("model.kind=gcn", "sampler.kind=labor", "history.stored=fp16", "history.entries=2500")):
            expected = self.history(self.train(*ON, *job))
            self.assertGreater(expected[1][3]["hits"], expected[1][3]["needed_rows"] / 5)
            for ranks, copies, more in GRIDS if not job else GRIDS[::2]:
                with self.subTest(job=job, ranks=ranks, copies=copies, more=more):
                    self.assertEqual(self.history(self.train(*ON, *job, f"grid.replication={copies}", *more, ranks=ranks)), expected)

    def test_prefetching_within_the_lag(self):
        job = (*ON, "history.lag=3")
        expected = self.history(self.train(*job))
        self.assertEqual(self.history(self.train(*job, "run.overlap=true", "run.prefetch_steps=2", "sampler.bulk=6", ranks=3)), expected)

    def test_where_nothing_can_hit_weights_are_those_without(self):
        expected = self.train(ON[-1])["weights_digest"]
        for job in (("history.t_stale=0",), ("history.t_stale=1",), ("history.start=100000",)):
            self.assertEqual(self.train(*ON, *job, ranks=2)["weights_digest"], expected, job)
        # Two steps, and none sees what the other has written.
        short = ("sampler.batch_size=150", "train.epochs=1", ON[-1])
        without, found = (self.train(*short, *more) for more in ((), (*ON, "history.lag=5", "run.overlap=false")))
        self.assertEqual(found["epochs"][0]["history"]["hits"], 0)
        self.assertGreater(found["epochs"][0]["history"]["written"], 1000)
        self.assertEqual(found["weights_digest"], without["weights_digest"])

    def test_samples_stay_and_nothing_is_pruned(self):
        without, found = (self.train(*job) for job in ((ON[-1],), ON))
        for a, b in zip(without["epochs"], found["epochs"], strict=True):
            self.assertEqual(a["sample_digest"], b["sample_digest"])
            history = b["history"]
            self.assertEqual((history["input_rows"], history["edges"]), (a["input_rows"], a["sampled_edges"]))
            self.assertEqual((history["input_rows_of_sample"], history["edges_of_sample"]), (a["input_rows"], a["sampled_edges"]))
        self.assertNotEqual(without["weights_digest"], found["weights_digest"])

    def test_with_weights_that_stand_still_sums_become_exact(self):
        self.succeed("-q", "generate", "planted", "--nodes", 400, "--degree", 4, "--features", 8, "--classes", 4, "-o", self.graph, "--overwrite")
        still = ("train.learning_rate=0", "model.layers=2", "model.dropout=0", "train.epochs=40", "train.eval_every=0", "sampler.batch_size=100")
        weigh_edges(self.graph)
        for kind, sampler, weighted in (("sage", "graphsage", "false"), ("sage", "graphsage", "true"), ("gcn", "labor", "false")):
            job = (*still, f"model.kind={kind}", f"sampler.kind={sampler}", f"sampler.weighted={weighted}")
            exact = self.train(*job, "sampler.fanout=[-1,-1]")["epochs"][-1]["loss"]
            sampled = [epoch["loss"] for epoch in self.train(*job, "sampler.fanout=[2,-1]")["epochs"]]
            corrected = [epoch["loss"] for epoch in self.train(*job, *ON, "sampler.fanout=[2,-1]", "history.t_stale=100000", ranks=2)["epochs"]]
            self.assertGreater(sorted(abs(loss - exact) for loss in sampled)[20], 1e-3 * exact)
            self.assertLess(abs(corrected[-1] - exact), 2e-6 * exact, kind)

    def test_bytes_are_foretold(self):
        for epoch in self.train(*ON, "grid.replication=1", ranks=4)["epochs"]:
            fetch = epoch["bytes"]["fetch"]
            self.assertAlmostEqual(fetch["total"] / fetch["predicted"], 1, delta=0.03)
            self.assertGreater(epoch["steps"]["fetch/history/rows"]["total"], 0)

    def test_typed_graphs(self):
        self.succeed("-q", "generate", "planted", "--types", "paper=1500:12,author=900,field=5", "--relations",
                     "author.writes.paper=4000,paper.cites.paper=6000,paper.about.field=1500", "--classes", 5, "-o", self.graph, "--overwrite")
        job = (*ON, "model.embedding=4", "model.normalize=layer", "model.residual=true")
        expected = self.history(self.train(*job))
        self.assertGreater(expected[1][3]["hits"], 0)
        self.assertEqual(self.history(self.train(*job, "grid.replication=2", "run.overlap=true", ranks=4)), expected)

    @unittest.skipUnless(os.path.exists(EMULATED), "the emulated program was not built: make emulated")
    def test_on_the_emulated_gpu(self):
        env = dict(os.environ, ESPALIER_EMULATED_GPUS="3")
        for job in ((), ("history.scope=lane", "model.kind=gcn", "sampler.kind=labor")):
            cpu, gpu = (self.train(*ON, *job, f"run.device={device}", "run.overlap=true", ranks=3, env=env, program=EMULATED)
                        for device in ("cpu", "cuda"))
            for ours, theirs in zip(gpu["epochs"], cpu["epochs"], strict=True):
                self.assertEqual(ours["sample_digest"], theirs["sample_digest"])
                self.assertEqual(ours["history"], theirs["history"], "what is kept hangs on no bits")
                self.assertAlmostEqual(ours["loss"], theirs["loss"], delta=1e-4 * theirs["loss"])

    def test_cut_anywhere_and_gone_on_with_elsewhere(self):
        layouts = ((1,), (3, "run.overlap=true", "run.prefetch_steps=2"), (2, "grid.topology=replicated"), (4, "grid.replication=2", "run.overlap=true"))
        for scope in ("grid", "lane"):
            job = (*ON, "history.lag=3", f"history.scope={scope}", "history.stored=uint8", "sampler.batch_size=150", "history.entries=3000",
                   "train.epochs=3")
            expected = self.history(self.train(*job))
            self.assertGreater(expected[2][3]["hits"], 0)
            shutil.rmtree(self.output)
            for cut in range(30):
                ranks, *layout = layouts[cut % len(layouts)]
                code, output = espalier("train", self.config, *job, *layout, "run.restart=auto", "run.max_minutes=1e-9", ranks=ranks)
                self.assertNotIn("begins empty", output)
                if code != 5:
                    break
            self.assertEqual(code, 0, output)
            self.assertGreater(cut, 5)
            self.assertEqual(self.history(self.report(self.output)), expected, scope)

    def test_what_is_refused(self):
        def refuse(words, *overrides):
            self.fail_with(2, words, "train", self.config, *ON, *overrides)
        refuse(["history.p_grad", "history.kind", "replace"], "history.p_grad=0.5")
        refuse(["variate", "ladies", "graphsage or labor"], "sampler.kind=ladies", "sampler.fanout=[50,50,50]")
        for kind in ("gat", "gin", "rgcn", "rgat", "hgt"):
            refuse(["variate", f'model.kind = "{kind}"', "sage"], f"model.kind={kind}")
        refuse(["variate", "aggregator", "max"], "model.aggregator=max")
        refuse(["variate", "sampler.share_batches = 4"], "sampler.kind=labor", "sampler.share_batches=4")
        refuse(["model.normalize", "batch"], "model.normalize=batch")
        refuse(["model.jumping"], "model.jumping=max")
        refuse(["model.layers is 1"], "model.layers=1", "model.hidden=256", "model.dropout=0.5", "sampler.fanout=[5]")
        refuse(["history.lag = 0", "run.overlap", "1"], "history.lag=0", "run.overlap=true")


if __name__ == "__main__":
    unittest.main()

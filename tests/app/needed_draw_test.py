"""Training that draws only what history leaves (history.draw = needed).

Laws: losses, weights and hits are those of a sample that is drawn whole and then pruned, on every grid, also where a job is cut and goes
on elsewhere; the digest is of what was drawn, the same on every grid; sampling moves less.
"""

from tests.app.planted_job import PlantedJobTest
from tests.app.program import LONG, needs_emulation, on_gpus

ON = ("history.kind=replace", "history.t_stale=8")
NEEDED = (*ON, "history.draw=needed")


def without_sample(history):
    """What does not say how much was drawn."""
    *epochs, weights, test = history
    kept = [(loss, valid, {name: value for name, value in of.items() if not name.endswith("_of_sample")}) for _, loss, valid, of in epochs]
    return kept + [weights, test]


class NeededDrawTest(PlantedJobTest):
    NODES = 1200

    def test_it_is_the_pruned_sample(self):
        jobs = (("sampler.kind=graphsage",), ("sampler.kind=labor", "history.scope=lane", "sampler.share_batches=4", "history.recompute=0.3"),
                ("model.kind=gcn", "history.start=4", "history.stored=fp16", "history.recompute=0.5"))
        layouts = ((2, 1, ("run.overlap=true",)), (3, 1, ("run.threads=2", "grid.schedule=pull")),
                   (4, 2, ("grid.topology=replicated", "run.overlap=true")), (6, 3, ("sampler.bulk=7",)))
        for k, job in enumerate(jobs):
            whole = self.history(self.train(*ON, *job))
            # history/needed_sample_test has every grid.
            expected = self.one_history((*NEEDED, *job), ((ranks, f"grid.replication={copies}", *more) for ranks, copies, more in (
                layouts if k == 0 or LONG else layouts[k:k + 1])))
            self.assertEqual(without_sample(expected), without_sample(whole))
            self.assertNotEqual(expected[1][0], whole[1][0], "less was drawn")
            self.assertNotIn("edges_of_sample", expected[1][3])

    def test_epochs_report_what_was_drawn(self):
        whole, found = (self.train(*job, "grid.replication=1", "train.epochs=3", ranks=4) for job in (ON, NEEDED))
        for a, b in zip(whole["epochs"], found["epochs"], strict=True):
            self.assertEqual(b["sampled_edges"], b["history"]["edges"])
            self.assertEqual(b["input_rows"], b["history"]["input_rows"])
            self.assertEqual(b["history"]["edges"], a["history"]["edges"])
            self.assertGreater(a["saved"]["pruned"], 0)
            self.assertEqual(set(b["saved"]), {"kept", "history"}, "nobody knows what was not drawn")
        last = [report["epochs"][-1]["bytes"]["sample"] for report in (whole, found)]
        self.assertLess(last[1]["total"], 0.8 * last[0]["total"])
        for stage in ("sample", "fetch"):
            of = found["epochs"][-1]["bytes"][stage]
            self.assertAlmostEqual(of["total"] / of["predicted"], 1, delta=0.03, msg=stage)

    def test_beside_kept_feature_rows_and_types(self):
        job = ("run.cache_memory=1MiB",)
        expected = without_sample(self.history(self.train(*ON)))
        self.assertEqual(without_sample(self.history(self.train(*NEEDED, *job, "run.overlap=true", ranks=3))), expected)
        self.make_typed()
        for kind in ("rgcn", "hgt"):
            job = (f"model.kind={kind}", "model.embedding=4", "model.heads=4")
            expected = without_sample(self.history(self.train(*ON, *job)))
            self.assertEqual(without_sample(self.history(self.train(*NEEDED, *job, "grid.replication=2", "run.overlap=true", ranks=4))), expected)

    @needs_emulation
    def test_on_the_emulated_gpu(self):
        self.make(1000)
        for scope in ("grid", "lane"):
            job = (f"history.scope={scope}", "train.epochs=1", "sampler.batch_size=20", "run.device=cuda", "run.overlap=true")
            whole, found = (self.history(self.train(*drawn, *job, ranks=3, **on_gpus(3))) for drawn in (ON, NEEDED))
            self.assertEqual(without_sample(found), without_sample(whole), scope)
            self.assertGreater(found[0][3]["hits"], 0, scope)

    def test_cut_anywhere_and_gone_on_with_elsewhere(self):
        self.check_cuts(*NEEDED, "history.recompute=0.4", "sampler.batch_size=70", "train.epochs=3", "history.start=2", most=9,
                        layouts=((1,), (3, "run.overlap=true"), (2, "grid.topology=replicated"), (4, "grid.replication=2")))

    def test_what_is_refused(self):
        def refuse(words, *overrides):
            self.fail_with(2, words, "train", self.config, "history.draw=needed", *overrides)
        refuse(["history.draw", "history.kind"])
        refuse(["history.draw", "ladies", "graphsage"], *ON, "sampler.kind=ladies", "sampler.fanout=[60,80,100]")
        refuse(["history.draw", "run.cache_policy", "degree"], *ON, "run.cache_memory=1MiB", "run.cache_policy=belady")

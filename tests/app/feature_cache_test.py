"""Copies of feature rows that other ranks own (run.cache_memory).

Laws: whatever is kept, and by which rule, losses and weights are those without; what is kept is not sent, and no more than
run.cache_memory of it and of history's rows together; what is sent is foretold.
"""

from tests.app.planted_job import PlantedJobTest
from tests.app.program import LONG, needs_emulation, on_gpus

RULES = ("degree", "belady")
MORE_RANKS = (("belady", 5, 1, 20, ("grid.topology=replicated",)), ("degree", 6, 2, 1 << 10, ("sampler.bulk=1",)),
              ("belady", 7, 1, 30, ("sampler.bulk=3",)), ("belady", 8, 2, 20, ("run.overlap=true", "run.prefetch_steps=2")))
REPLACE = ("history.kind=replace", "history.t_stale=5")


def without_depth(keys):
    """History takes steps that begin one early, no more."""
    return tuple(key for key in keys if not key.startswith("run.prefetch_steps"))


class FeatureCacheTest(PlantedJobTest):
    def test_it_changes_no_bit(self):
        # Half of them without history, half with it; feature/row_cache_test has every grid.
        ways = (("degree", 1, 1, 20, ()), ("belady", 2, 1, 20, ()), ("belady", 4, 1, 40, ("run.overlap=true", "run.prefetch_steps=2")),
                ("belady", 3, 1, 1 << 20, ("sampler.bulk=7", "run.overlap=true")), ("degree", 6, 3, 30, ("run.overlap=true",)),
                ("degree", 4, 2, 1, ()), ("belady", 3, 1, 20, ("grid.topology=replicated",)), ("degree", 4, 2, 1 << 10, ("sampler.bulk=1",)))
        for of_history in ((), (*REPLACE, "history.entries=300")):
            expected = self.history(self.train(*of_history))
            for rule, ranks, copies, memory, more in (*ways, *MORE_RANKS) if LONG else ways[bool(of_history)::2]:
                memory *= 30 if of_history and memory > 1 else 1  # what steps have written is of history, too
                more = without_depth(more) if of_history else more
                with self.subTest(history=of_history, rule=rule, ranks=ranks, copies=copies, memory=memory, more=more):
                    found = self.train(*of_history, f"run.cache_memory={memory}KiB", f"run.cache_policy={rule}", f"grid.replication={copies}",
                                       *more, ranks=ranks)
                    self.assertEqual(self.history(found), expected)
                    served = found["epochs"][-1]["feature_cache"]["served"]
                    self.assertEqual(served > 0, ranks > copies and memory > 1)

    def test_what_is_kept_is_not_sent(self):
        self.make(2500)
        without = self.train("grid.replication=1", ranks=4)
        rows = [epoch["dealing"]["remote_rows"] for epoch in without["epochs"]]
        served = {}
        for rule in RULES:
            found = self.train("grid.replication=1", "run.cache_memory=24KiB", f"run.cache_policy={rule}", ranks=4)
            served[rule] = 0
            for k, (epoch, before) in enumerate(zip(found["epochs"], without["epochs"])):
                cache = epoch["feature_cache"]
                self.assertEqual(cache["needed"], rows[k])
                self.assertEqual(epoch["dealing"]["remote_rows"], rows[k] - cache["served"])
                # Of a row 8 numbers of 4 bytes, and its id.
                self.assertEqual(before["bytes"]["fetch"]["total"] - epoch["bytes"]["fetch"]["total"], 36 * cache["served"])
                self.assertAlmostEqual(epoch["bytes"]["fetch"]["total"] / epoch["bytes"]["fetch"]["predicted"], 1, delta=0.02)
                self.assertLessEqual(cache["bytes"], 24 * 1024)
                served[rule] += cache["served"]
            self.assertGreater(served[rule], 0.05 * sum(rows), rule)
        self.assertGreater(served["belady"], 1.1 * served["degree"])
        everything = self.train("grid.replication=1", "run.cache_memory=1GiB", "run.cache_policy=degree", ranks=4)
        self.assertLess(self.fetched(everything)[1], 0.2 * self.fetched(without)[1], "a row comes once")

    def test_saved_bytes_are_those_that_were_not_fetched(self):
        jobs = ((("run.cache_memory=24KiB",), ("kept",)), (REPLACE, ("pruned", "history")), ((*REPLACE, "history.scope=lane"), ("pruned",)),
                ((*REPLACE, "history.entries=300", "run.cache_memory=600KiB"), ("pruned", "kept", "history")))
        # Two jobs for each grid, two grids for each job.
        for k, (ranks, copies, more) in enumerate(((1, 1, ()), (2, 1, ("run.overlap=true",)), (4, 2, ("run.overlap=true", "run.prefetch_steps=2")),
                                                   (3, 1, ("grid.topology=replicated",)))):
            grid = (f"grid.replication={copies}", *more)
            without = self.train(*grid, ranks=ranks)
            for job, sources in jobs if LONG else jobs[k % 2::2]:
                with self.subTest(ranks=ranks, copies=copies, more=more, job=job):
                    found = self.train(*job, *(without_depth(grid) if "kind" in "".join(job) else grid), ranks=ranks)
                    self.check_saved(found, without, sources if ranks > copies else ())

    def test_half_features(self):
        self.make_once(self.graph, ("generate", "planted", "--nodes", 1500, "--degree", 8, "--features", 5, "--classes", 4, "--half"))
        expected = self.train("grid.replication=1", ranks=3)
        found = self.train("grid.replication=1", "run.cache_memory=20KB", ranks=3)
        self.assertEqual(self.history(found), self.history(expected))
        for a, b in zip(expected["epochs"], found["epochs"]):
            self.assertEqual(a["bytes"]["fetch"]["total"] - b["bytes"]["fetch"]["total"], 14 * b["feature_cache"]["served"])
            self.assertEqual(b["saved"], {"pruned": 0, "kept": 14 * b["feature_cache"]["served"], "history": 0})

    def test_typed_graphs(self):
        self.make_typed("paper=750:12,author=450:7,field=5")
        job = ("model.kind=rgcn", "model.embedding=4")
        # Of three tables, features of two widths and embeddings.
        without = self.train(*job, "grid.replication=1", ranks=3)
        self.check_saved(self.train(*job, *REPLACE, "history.entries=300", "run.cache_memory=600KiB", "grid.replication=1", ranks=3), without,
                         ("pruned", "kept", "history"))
        expected = self.history(self.train(*job))
        for rule, ranks in zip(RULES, (2, 4)):
            found = self.train(*job, "run.cache_memory=30KiB", f"run.cache_policy={rule}", "run.overlap=true", ranks=ranks)
            self.assertEqual(self.history(found), expected)
            self.assertGreater(found["epochs"][-1]["feature_cache"]["served"], 0)

    def test_history_comes_first(self):
        self.make(2500)
        job = ("grid.replication=1", "run.cache_memory=60KiB")
        alone, both = (self.train(*job, *more, ranks=2)["epochs"] for more in ((), REPLACE))
        self.assertGreater(alone[-1]["feature_cache"]["bytes"], 40 * 1024)
        self.assertLess(both[-1]["feature_cache"]["bytes"], 0.05 * alone[-1]["feature_cache"]["bytes"], "history has taken it")
        fewer = self.train(*job, *REPLACE, "run.cache_memory=72KiB", "history.stored=uint8", "history.entries=100", "sampler.batch_size=10", ranks=2)["epochs"]
        self.assertGreater(fewer[-1]["feature_cache"]["bytes"], 5 * 1024)
        self.assertLess(fewer[-1]["feature_cache"]["bytes"], 0.95 * alone[-1]["feature_cache"]["bytes"])
        self.assertGreater(fewer[-1]["feature_cache"]["served"], 0)
        of_history = fewer[-1]["feature_cache"]["history_bytes"]
        self.assertGreater(of_history, 50 * 24)  # half of the entries, of 24 bytes each
        # Both are the most of a rank, of which one may have more of the one and another of the other.
        self.assertLessEqual(fewer[-1]["feature_cache"]["bytes"] + of_history / 2, 72 * 1024)
        self.assertLessEqual(of_history, 72 * 1024)

    @needs_emulation
    def test_on_the_emulated_gpu(self):
        self.make(600)
        few = ("run.device=cuda", "train.epochs=1", "sampler.batch_size=20")
        without = self.train(*few, ranks=3, **on_gpus(3))
        for of_history in ((), (*REPLACE, "history.entries=300")):
            job = (*of_history, *few)
            expected = self.history(self.train(*job, ranks=3, **on_gpus(3)) if of_history else without)
            for rule, more in (("degree", ()), ("belady", ("run.overlap=true",)))[bool(of_history):]:
                found = self.train(*job, *more, f"run.cache_memory={300 if of_history else 12}KiB", f"run.cache_policy={rule}", ranks=3, **on_gpus(3))
                self.assertEqual(self.history(found), expected)
                self.assertGreater(found["epochs"][-1]["feature_cache"]["served"], 0)
                self.check_saved(found, without, ("pruned", "kept", "history") if of_history else ("kept",))

    def test_a_restart_may_have_another(self):
        self.check_cuts(most=4, layouts=((2, "run.cache_memory=20KiB"), (3,),
                                         (4, "run.cache_memory=1MiB", "run.cache_policy=belady", "run.overlap=true")))

    def test_plan_knows_the_memory(self):
        self.make(2500)
        def features(*overrides):
            return self.planned(*overrides, ranks=2)["plan"]["memory"]["step"].get("features of others", 0)

        self.assertEqual(features(), 0)
        self.assertEqual(features("run.cache_memory=20KiB"), 20 * 1024)
        # All that the other rank has, and what they are found by.
        self.assertEqual(features("run.cache_memory=1GiB"), 1250 * (32 + 32))
        self.assertEqual(features("run.cache_memory=20KiB", "history.kind=replace"), 0)

    def test_what_is_refused(self):
        for value, words in (("much", ["run.cache_memory", "size", "8GiB"]), ("-1", ["run.cache_memory"]), ("0.5", ["run.cache_memory"]),
                             ("3 cats", ["run.cache_memory"])):
            self.fail_with(2, words, "train", self.config, f"run.cache_memory={value}")
        self.fail_with(2, ["run.cache_policy", "run.cache_memory"], "train", self.config, "run.cache_policy=belady")
        self.fail_with(2, ["run.cache_policy", "fifo", "belady"], "train", self.config, "run.cache_memory=1MB", "run.cache_policy=fifo")

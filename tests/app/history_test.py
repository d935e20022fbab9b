"""Training with history (history.kind = replace).

Laws: samples are those without it; where nothing can hit, so are weights; where weights stand still and rows have all their neighbours a
kept row is what would be computed anew; one history of losses and weights on every grid, schedule and depth of prefetching, in each scope,
also where a job is cut and goes on elsewhere; what it moves is foretold.
"""

import re
import shutil

import numpy as np

from tests.app.planted_job import PlantedJobTest
from tests.app.program import LONG, arrays_of, needs_emulation, on_gpus

ON = ("history.kind=replace", "history.t_stale=5")
GRIDS = ((2, 1, ("grid.schedule=staged", "run.overlap=true")), (3, 1, ("run.threads=2", "grid.schedule=pull")), (4, 2, ("grid.topology=replicated",)),
         (6, 3, ("sampler.bulk=7",)), (8, 2, ("grid.schedule=staged", "run.overlap=true")))


class HistoryTest(PlantedJobTest):
    def test_one_history_on_every_grid(self):
        found_of_scope = {}
        for scope in ("grid", "lane"):
            job = (*ON, f"history.scope={scope}")
            # history/grid_history_test has every grid.
            found_of_scope[scope] = self.one_history(job, ((ranks, f"grid.replication={copies}", *more) for ranks, copies, more in (
                GRIDS if LONG else GRIDS[scope == "lane":4:2])))
        self.assertNotEqual(*(found[-2] for found in found_of_scope.values()))

    def test_kinds_samplers_and_what_is_stored(self):
        for k, job in enumerate((("model.kind=gcn", "history.stored=fp16"), ("model.kind=gat", "model.heads=2", "history.entries=700"),
                    ("model.kind=gin", "sampler.kind=labor", "history.stored=uint8"), ("model.normalize=layer", "model.residual=true"),
                    ("sampler.kind=ladies", "sampler.fanout=[60,80,100]", "history.scope=lane"))):
            expected = self.one_history((*ON, *job), ((2 + k % 2, "run.overlap=true"),))
            self.assertGreater(expected[1][3]["hits"], 0)

    def test_where_nothing_can_hit_weights_are_those_without(self):
        expected = self.train()["weights_digest"]
        for k, key in enumerate(("history.p_grad=0", "history.t_stale=0", "history.t_stale=1", "history.start=100000", "history.recompute=1")):
            self.assertEqual(self.train(*ON, key, ranks=2 - k % 2)["weights_digest"], expected, key)

    def test_of_standing_weights_rows_are_those_that_would_be_computed(self):
        standing = ("train.learning_rate=0", "sampler.fanout=[-1,-1,-1]", "model.dropout=0", "train.epochs=3")
        expected = [epoch["loss"] for epoch in self.train(*standing)["epochs"]]
        inputs = {}
        for scope, ranks, copies in (("grid", 1, 1), ("lane", 3, 1), ("grid", 4, 2)):
            epochs = self.train(*standing, *ON, f"history.scope={scope}", f"grid.replication={copies}", ranks=ranks)["epochs"]
            self.assertEqual([epoch["loss"] for epoch in epochs], expected, scope)
            spared = inputs[scope] = epochs[-1]["history"]["input_rows"]
            self.assertLess(spared, 0.8 * epochs[-1]["history"]["input_rows_of_sample"])
        self.assertLess(inputs["grid"], inputs["lane"], "one cache for all is hit more often")

    def test_what_is_warned_of(self):
        self.make(2500)
        def warned(*overrides):
            output = self.succeed("train", self.config, "history.kind=replace", "train.epochs=1", "run.restart=never", *overrides)
            return [line for line in output.splitlines() if "history." in line and "warn" in line.lower()]
        for key in ("history.t_stale=1", "history.p_grad=0", "history.start=100000", "history.recompute=1"):
            line, = warned("history.t_stale=5", key)
            self.assertIn("ever read", line)
            self.assertIn(key.replace("=", " = "), line)
        line, = warned()
        self.assertRegex(line, r"history.t_stale = 200 is \d+\.\d epochs of \d+ steps")
        self.assertEqual(warned("history.t_stale=5"), [])

    def test_it_spares_rows_and_bytes(self):
        without, found = (self.train(*job, "grid.replication=1", ranks=2) for job in ((), (*ON, "history.t_stale=20", "train.epochs=4")))
        for a, b in zip(without["epochs"], found["epochs"]):
            self.assertEqual(a["sample_digest"], b["sample_digest"])
            self.assertEqual(a["input_rows"], b["history"]["input_rows_of_sample"])
        spared = found["epochs"][-1]["history"]
        self.assertGreater(spared["hits"], spared["needed_rows"] / 3)
        self.assertLess(spared["input_rows"], 0.5 * spared["input_rows_of_sample"])
        self.assertLess(spared["edges"], 0.5 * spared["edges_of_sample"])
        for epoch in found["epochs"]:
            fetch = epoch["bytes"]["fetch"]
            self.assertAlmostEqual(fetch["total"] / fetch["predicted"], 1, delta=0.03)

    def test_counters_are_of_whole_epochs_wherever_history_starts(self):
        """In the last step of an epoch it has nothing to read yet: what is needed and left is what it was without."""
        def counters(report, *but):
            return [{key: value for key, value in epoch["history"].items() if key not in ("held", *but)} for epoch in report["epochs"]]
        steps = -(-self.train("train.epochs=1")["epochs"][0]["batches"] // 4)
        for job in (ON, (*ON, "history.draw=needed")):
            never = self.train(*job, f"history.start={2 * steps}")
            for epoch, counted in zip(never["epochs"], counters(never), strict=True):
                self.assertEqual((counted["input_rows"], counted["edges"]), (epoch["input_rows"], epoch["sampled_edges"]))
                self.assertEqual((counted["hits"], counted["needed_rows"] > 0), (0, True))
            for start in (1, steps - 1, steps + 1) if job is ON else (steps - 1,):
                late = self.train(*job, f"history.start={start}", ranks=2)
                if job is ON:
                    self.assertEqual(late["epochs"][0]["sample_digest"], never["epochs"][0]["sample_digest"])
                    self.assertEqual([epoch["input_rows"] for epoch in late["epochs"]], [epoch["input_rows_of_sample"] for epoch in counters(late)])
                if start == steps - 1:
                    but = ("written", "evicted", "input_rows_of_sample", "edges_of_sample")
                    self.assertEqual(counters(late, *but)[0], counters(never, *but)[0], job)
                    self.assertGreater(counters(late)[0]["written"], 0)
                if start == 1 and job is ON:
                    self.assertGreater(counters(late)[0]["hits"], 0)

    def test_a_share_of_hits_is_computed_anyway(self):
        plain, found = (self.train(*ON, *more)["epochs"][1]["history"] for more in ((), ("history.recompute=0.4",)))
        self.assertEqual(plain["recomputed"], 0)
        could = found["hits"] + found["recomputed"]
        self.assertAlmostEqual(found["recomputed"] / could, 0.4, delta=5 * (0.24 / could) ** 0.5)
        self.assertGreater(found["input_rows"], plain["input_rows"])

    def test_it_still_learns(self):
        job = ("train.epochs=20", "model.dropout=0")
        without, found = (self.train(*job, *more)["test"]["accuracy"] for more in ((), ON))
        self.assertGreater(found, without - 0.05)
        self.assertGreater(found, 0.5)

    def test_typed_graphs(self):
        self.make_typed()
        for kind, ranks, copies in (("rgcn", 4, 2), ("rgat", 3, 1), ("hgt", 2, 1)):
            expected = self.one_history((*ON, f"model.kind={kind}", "model.embedding=4", "model.heads=4"),
                                        ((ranks, f"grid.replication={copies}", "run.overlap=true"),))
            self.assertGreater(expected[1][3]["hits"], 0)

    @needs_emulation
    def test_on_the_emulated_gpu(self):
        for ranks, scope, *more in ((3, "grid"), (2, "lane", "history.recompute=0.3")):
            cpu, gpu = (self.train(*ON, f"history.scope={scope}", *more, f"run.device={device}", "train.epochs=1", ranks=ranks, **on_gpus(3))
                        for device in ("cpu", "cuda"))
            self.compare_devices(gpu, cpu, off=0.01)
            for ours, theirs in zip(gpu["epochs"], cpu["epochs"]):
                # Which rows are admitted hangs on the last bits of gradients.
                self.assertAlmostEqual(ours["history"]["hits"] / theirs["history"]["hits"], 1, delta=0.02)
                for some, same in zip(ours["history"]["held"], theirs["history"]["held"], strict=True):
                    self.assertEqual((some["layer"], some["ages"]), (same["layer"], same["ages"]))

    def checkpoint(self, *overrides, ranks=1):
        """What a checkpoint after each step, and one after two epochs, holds of history."""
        shutil.rmtree(self.output, ignore_errors=True)
        self.train(*overrides, "run.checkpoint_minutes=1e-9", ranks=ranks)
        return arrays_of(self.output / "checkpoints" / "latest", "history")

    def test_cut_anywhere_and_gone_on_with_elsewhere(self):
        layouts = ((1,), (3, "run.overlap=true"), (2, "grid.topology=replicated"),
                   (4, "grid.replication=2", "run.overlap=true"), (6, "grid.replication=3", "grid.schedule=push", "sampler.bulk=5"))
        for scope, stored in (("grid", "uint8"), ("lane", "fp32")):
            job = (*ON, f"history.scope={scope}", f"history.stored={stored}", "sampler.batch_size=80", "history.entries=1500", "history.t_stale=7")
            expected = self.history(self.train(*job))
            self.assertGreater(expected[1][3]["hits"], 0)
            cuts = [*self.cut_everywhere(*job, layouts=layouts if LONG or scope == "grid" else layouts[:3])]
            self.assertNotIn("begins empty", "".join([*cuts, self.said]))
            self.assertEqual(len(cuts), 7)
            self.assertEqual(self.history(self.report(self.output)), expected, scope)

    def test_saved_bytes_of_epochs_that_were_cut(self):
        # Without overlap no step is begun that a cut gives up.
        for scope, sources in (("grid", ("pruned", "history")), ("lane", ("pruned",))):
            job = (*ON, f"history.scope={scope}", "sampler.batch_size=80", "run.cache_memory=1")
            shutil.rmtree(self.output, ignore_errors=True)
            without, whole = (self.train(*some, ranks=2) for some in (job[3:4], job))
            self.check_saved(whole, without, sources)
            self.assertGreater(len([*self.cut_everywhere(*job, layouts=((2,),))]), 4)
            output, found = self.said, self.report(self.output)
            self.assertEqual([epoch["saved"] for epoch in found["epochs"]], [epoch["saved"] for epoch in whole["epochs"]])
            mb = {source: sum(abs(epoch["saved"][source]) for epoch in found["epochs"]) / 1e6 for source in ("pruned", "kept", "history")}
            self.assertIn(f"not fetched: {mb['pruned']:.3f} MB were pruned, {mb['kept']:.3f} MB kept here; history itself moved {mb['history']:.3f} MB",
                          output)

    def test_what_checkpoints_hold(self):
        for scope in ("grid", "lane"):
            job = (*ON, f"history.scope={scope}")
            expected = self.checkpoint(*job)
            counts, records, rows = (expected[f"{scope}-fp32/{name}"] for name in ("counts", "records", "rows"))
            self.assertEqual((records.dtype, rows.shape), (np.uint32, (len(records), 16)))
            self.assertEqual(counts.sum(), len(records))
            self.assertEqual(len(counts), 1024 if scope == "grid" else 4)
            kinds, ages = records[:, 0], records[:, 6]
            self.assertEqual(set(kinds), {0, 1, 2})
            self.assertEqual((ages[kinds == 0].min(), ages[kinds == 0].max()), (2, 5))
            self.assertEqual(set(ages[kinds > 0]), {1})
            self.assertTrue(np.isfinite(rows.view(np.float32)).all())
            self.assertTrue((rows[kinds == 2] == 0).all())
            self.assertGreater((rows[kinds == 0] != 0).any(axis=1).mean(), 0.9, "but for rows that ReLU closes")
            layouts = ((3, "run.overlap=true"), (4, "grid.replication=2", "run.overlap=true"))
            for ranks, *layout in layouts if LONG else layouts[scope == "grid":][:1]:
                found = self.checkpoint(*job, *layout, ranks=ranks)
                self.assertEqual(found.keys(), expected.keys())
                for name, values in expected.items():
                    np.testing.assert_array_equal(found[name], values, f"{name} {layout}")

    def test_of_another_kind_it_begins_empty_and_says_so(self):
        self.train(*ON, "run.checkpoint_every=1", "train.epochs=1")
        latest = f"run.restart={self.output}/checkpoints/latest"
        for change in ("history.scope=lane", "history.stored=fp16"):
            output = self.succeed("train", self.config, *ON, change, latest, f"output.dir={self.folder}/other", ranks=2)
            self.assertRegex(output, f"warning: .*has no history with .*{change.split('=')[1]}.* begins empty")
            self.assertEqual(len(self.report(self.folder / "other")["epochs"]), 2)

    def test_what_is_held(self):
        held = self.train(*ON, "history.t_stale=3")["epochs"][-1]["history"]["held"]
        self.assertEqual({line["layer"] for line in held}, {1, 2})
        self.assertEqual({tuple(line["ages"]) for line in held}, {(2, 3)}, "read 2 or 3 steps old")
        self.assertTrue(all(line.keys() == {"layer", "ages", "rows"} and line["rows"] > 0 for line in held), held)

    def test_plan_counts_without(self):
        output = self.succeed("plan", self.config, *ON, "--ranks", 2)
        self.assertIn("without history.kind", output)
        self.assertNotRegex(self.succeed("plan", self.config, "--ranks", 2), "(?m)^ +history ")

    def test_plan_knows_the_memory(self):
        self.make(2500)
        def most(*overrides):
            return self.planned(*ON, "model.hidden=200", *overrides, ranks=2)["plan"]["memory"]["step"]["history"]

        # As many rows as there are, kept and written: not fewer than 2 layers of 2,500 rows at 0.9 over 2 ranks, and room to grow.
        everything = most("history.t_stale=1000")
        self.assertGreater(everything, 0.9 * 2 * 2500 / 2 * 800)
        self.assertLess(everything, 3 * 2 * 2500 / 2 * 800)
        self.assertLess(most("history.t_stale=1000", "history.stored=uint8"), 0.4 * everything)
        self.assertLess(most("history.t_stale=1000", "history.entries=500"), 0.8 * everything)
        self.assertLess(most("history.t_stale=2"), everything)

    def test_the_check_before_a_job_counts_what_plan_counts(self):
        self.make(2500)
        def memory(*job):
            return self.planned(*job, ranks=2)["plan"]["memory"]["step"]

        for scope in ("grid", "lane"):
            for more in (("history.t_stale=20",), ("history.t_stale=3", "history.stored=uint8"), ("history.entries=300",)):
                job = ("history.kind=replace", f"history.scope={scope}", *more)
                self.assertGreater(memory(*job)["history"], 10e3)
        # The check before a job goes by that: beside a network of 30 MB it is most of what is left.
        job = ("history.kind=replace", "history.t_stale=1000", "history.scope=lane", "model.hidden=2000")
        bytes_ = memory(*job)["history"]
        output = self.fail_with(4, ["does not fit", "history "], "train", self.config, *job, "run.memory_limit=1KB", ranks=2)
        number, unit = re.search(r"history ([0-9.]+) (B|[KMG]iB)", output).groups()
        one = 1024 ** "BKMG".index(unit[0])
        self.assertAlmostEqual(float(number) * one, bytes_, delta=0.051 * one)
        self.assertGreater(memory("run.cache_memory=20KiB")["features of others"], 0)
        # Where nothing can hit nothing is kept.
        for never in (("history.t_stale=1",), ("history.p_grad=0",), ("history.start=10000",), ("history.recompute=1",)):
            self.assertNotIn("history", memory("history.kind=replace", *never))

    def test_history_that_does_not_fit_is_refused(self):
        self.make(2500)
        for scope, limit in (("grid", "1700KB"), ("lane", "2500KB")):
            job = ("model.hidden=32", f"run.memory_limit={limit}")
            wide = (*job, *ON, "history.t_stale=1000", f"history.scope={scope}")
            self.fail_with(4, ["does not fit", "(run.memory_limit)", "history.entries = N"], "train", self.config, *wide)
            self.fail_with(4, ["does not fit", "a smaller history.entries"], "train", self.config, *wide, "history.entries=10000")
            self.assertGreater(self.train(*wide, "run.memory_check=warn", "history.entries=100",
                                          "train.epochs=3")["epochs"][-1]["history"]["hits"], 0)
        for command in (("plan", self.config, "--ranks", 1), ("train", self.config)):
            self.fail_with(4, ["does not fit", "history.entries = N"], *command, *wide, "run.memory_limit=15MB", "model.hidden=2000")

    def test_what_is_refused(self):
        def refuse(words, *overrides):
            self.fail_with(2, words, "train", self.config, "history.kind=replace", *overrides)
        refuse(["history.p_grad", "1"], "history.p_grad=1.5")
        refuse(["history.t_stale", "0"], "history.t_stale=-1")
        refuse(["model.layers is 1"], "model.layers=1", "model.hidden=256", "model.dropout=0.5", "sampler.fanout=[5]")
        refuse(["run.prefetch_steps = 2", "history.kind", "use 1"], "run.overlap=true", "run.prefetch_steps=2")
        refuse(["model.normalize", "batch"], "model.normalize=batch")
        refuse(["model.jumping"], "model.jumping=max")
        refuse(["model.edge_features"], "model.edge_features=true", "model.kind=gat")
        self.fail_with(2, ["history.p_grad", "history.kind", "replace"], "train", self.config, "history.p_grad=0.5")

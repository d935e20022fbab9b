"""run.prefetch_steps: steps whose rows are under way while a step computes, across epochs and evaluations.

Laws: any depth, also one beyond an epoch, gives the bits of a run without overlap, on every grid, topology and order, and moves as
many bytes in each epoch; a run that is stopped within an epoch and goes on with another depth ends with the same weights.
"""

import json
import os
import re
import unittest

from tests.app.order_test import EMULATED, LOCAL, OrderTest
from tests.app.program import LONG, espalier

DEPTHS = [("run.overlap=true",), *(("run.overlap=true", f"run.prefetch_steps={k}") for k in (2, 4, 100))]


class Pipeline(OrderTest):
    def train(self, *overrides, **grid):
        report = self.run_job("train", "run.checkpoint_every=0", "train.epochs=3", "train.eval_every=2", *overrides, **grid)
        moved = [[epoch["bytes"][stage]["total"] for stage in ("sample", "fetch")] for epoch in report["epochs"]]
        return self.bits(report), moved

    def test_any_depth_gives_the_same_bits_and_bytes(self):
        order = self.order("metis")
        for ranks, c, overrides in ((1, 1, ()), (4, 2, (order, *LOCAL)), (3, 1, ("grid.topology=replicated",)),
                                    *LONG * ((8, 1, (order,)), (6, 2, ()), (4, 4, ()))):
            expected = self.train(*overrides, ranks=ranks, c=c)
            for depth in DEPTHS:
                self.assertEqual(self.train(*overrides, *depth, ranks=ranks, c=c), expected, (ranks, c, overrides, depth))

    def test_rows_shared_in_a_node_are_read_where_they_lie(self):
        share, order = "graph.share_features=true", self.order("random")
        expected = self.bits(self.run_job("train", "train.epochs=3", "train.eval_every=2"))
        for ranks, c, overrides in ((4, 2, ()), (3, 1, (order,)), (2, 1, ("grid.topology=replicated", *DEPTHS[1])), (2, 2, ())):
            bits, moved = self.train(share, *overrides, ranks=ranks, c=c)
            self.assertEqual(bits, expected, (ranks, c, overrides))
            self.assertEqual([fetch for _, fetch in moved], [0] * 3)
        # A checkpoint goes on with it and without, and infer reads its rows so.
        code, output = espalier("train", self.config, "run.restart=never", "run.max_minutes=1e-9", "train.epochs=3", ranks=2)
        self.assertEqual(code, 5, output)
        last = self.run_job("train", "train.epochs=3", "train.eval_every=2", share, ranks=3)
        self.assertEqual(self.bits(last), expected)
        rows = []
        for overrides in ((), (share,)):
            rows.append(self.folder / f"rows{len(rows)}.h5")
            self.succeed("-q", "infer", self.config, "--checkpoint", self.output / "weights.h5", "-o", rows[-1], *overrides, ranks=3)
        self.assertEqual(*(path.read_bytes() for path in rows))

    def test_rounds_are_those_of_the_formulas(self):
        # 2 layers; 3 epochs of so many windows of 8 batches and steps of 4. A fetch of two layers of rows would take no more rounds.
        def rounds(*overrides, **grid):
            report = self.run_job("train", "run.checkpoint_every=0", "sampler.bulk=8", "train.eval_every=0", *overrides, **grid)
            batches = report["epochs"][0]["batches"]
            self.assertGreater(batches, 16)
            return [[epoch["bytes"][stage]["rounds"] for stage in ("sample", "fetch")] for epoch in report["epochs"]], \
                -(-batches // 8), -(-batches // 4)

        for depth in ((), *DEPTHS[:2]):
            for schedule, each in (("push", 5), ("pull", 4)):
                counted, windows, steps = rounds(f"grid.schedule={schedule}", *depth, ranks=4, c=2)
                self.assertEqual(counted, [[each * 2 * windows, 3 * steps]] * 2, (schedule, depth))
            counted, _, steps = rounds("grid.topology=replicated", *depth, ranks=3)
            self.assertEqual(counted, [[0, 3 * steps]] * 2, depth)
        self.assertEqual(rounds(ranks=2, c=2)[0], [[0, 0]] * 2)

    def test_a_stopped_run_goes_on_with_another_depth(self):
        expected = self.bits(self.run_job("train", "train.epochs=2"))
        for depth, next_depth in ((DEPTHS[1], DEPTHS[3]), (DEPTHS[3], ())):
            (self.output / "report.json").unlink()
            for restart in ("never", "auto", "auto"):  # a step each
                code, output = espalier("train", self.config, f"run.restart={restart}", "run.max_minutes=1e-9", *depth, ranks=2)
                self.assertEqual(code, 5, output)
            last = self.run_job("train", *next_depth, ranks=3)
            self.assertEqual((last["restart"]["epoch"], last["restart"]["step"]), (1, 3))
            self.assertEqual(self.bits(last), expected)

    @unittest.skipUnless(os.path.exists(EMULATED), "the emulated program was not built: make emulated")
    def test_any_depth_on_the_emulated_gpu(self):
        gpus = dict(ranks=4, c=2, program=EMULATED, env=dict(os.environ, ESPALIER_EMULATED_GPUS="2"))
        expected = self.train(*LOCAL, self.order("metis"), "run.device=cuda", **gpus)
        for depth in DEPTHS[:3]:
            self.assertEqual(self.train(*LOCAL, self.order("metis"), "run.device=cuda", *depth, **gpus), expected, depth)

    def test_early_stopping_drops_what_was_begun(self):
        stopping = ("train.epochs=50", "train.eval_every=1", "train.early_stop=1", "train.learning_rate=0.5")
        expected = self.bits(self.run_job("train", *stopping))
        self.assertLess(len(expected[0]), 50)
        self.assertEqual(self.bits(self.run_job("train", *stopping, *DEPTHS[2], "run.restart=never", ranks=3)), expected)

    def test_the_plan_names_the_depth_that_fits(self):
        self.succeed("generate", "planted", "--nodes", 20000, "--degree", 12, "--features", 128, "-o", self.graph, "--overwrite")
        command = ("plan", self.config, "--ranks", 2, "sampler.batch_size=512", "train.batches_per_step=2", "run.overlap=true")

        def bytes_at(depth):
            self.succeed("-q", *command, f"run.prefetch_steps={depth}", "--memory-per-rank", "64GiB")
            return json.loads((self.output / "plan.json").read_text())["peak_memory_bytes"]["max"]

        low, high = bytes_at(1), bytes_at(200)
        self.assertGreater(high, low + (10 << 20))
        room = ("--memory-per-rank", f"{(low + high) // 2}B")
        output = self.fail_with(4, ["run.prefetch_steps = "], "-q", *command, "run.prefetch_steps=200", *room)
        depth = int(re.search(r"run.prefetch_steps = (\d+)", output)[1])
        self.succeed("-q", *command, f"run.prefetch_steps={depth}", *room)
        self.fail_with(4, ["run.prefetch_steps"], "-q", *command, f"run.prefetch_steps={depth + 1}", *room)

    def test_a_depth_without_overlap_is_refused(self):
        code, output = espalier("train", self.config, "run.prefetch_steps=2")
        self.assertEqual(code, 2, output)
        self.assertIn("run.overlap", output)


if __name__ == "__main__":
    unittest.main()

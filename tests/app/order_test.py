"""Jobs on a graph whose vertices are owned by an order (graph.order), and local batches.

Laws: an order moves bytes and never bits: digests, losses, weights, scores and the rows of infer are those without one, for every grid,
schedule and method, on the emulated GPU too, and a checkpoint goes on with another order. Local batches depend on the order and the
groups alone; they fetch less. The plan foretells the bytes of either. What does not fit together is refused in one message.
"""

import sys

import numpy as np

from tests.app.program import LONG, ROOT, ProgramTest, needs_emulation, on_gpus, read, set_at

sys.path.insert(0, str(ROOT / "bench" / "partition"))
import orders  # noqa: E402

METHODS = ("random", "block", "streaming", "metis", "multilevel", "degree", "bfs")
LOCAL = ("sampler.groups=8",)
GRIDS = [(1, 1), (3, 1), (4, 2), (8, 1)] + LONG * [(2, 1), (2, 2), (4, 1), (4, 4), (5, 1), (6, 2), (6, 3), (7, 1), (8, 2), (8, 4)]
GENERATE = ("planted", "--nodes", 1500, "--degree", 12, "--classes", 6, "--features", 8)


ORDERS = {}  # the bytes of each that was made


class OrderTest(ProgramTest):
    JOB = ('graph.feature_norm="standard"', "sampler.fanout=[5, 3]", "sampler.batch_size=32", "model.hidden=16", "model.layers=2",
           "train.epochs=2", "train.reproducible=true", "train.batches_per_step=4", "train.learning_rate=0.01", "run.threads=1",
           'run.device="cpu"')
    GENERATE = GENERATE

    def order(self, method, graph=None, seed=0):
        """Made once in a process, of a graph of these bytes; a test may change its own."""
        graph, path = graph or self.graph, self.folder / f"{method}{seed}.order.h5"
        key = (graph.read_bytes(), method, seed)
        if key not in ORDERS:
            self.make_order(method, graph, seed, path)
            ORDERS[key] = path.read_bytes()
        path.write_bytes(ORDERS[key])
        return f"graph.order={path}"

    def make_order(self, method, graph, seed, path):
        if method in orders.METHODS:
            orders.write_order(path, *orders.make_order(graph, method, 64, seed), method)
        else:
            self.succeed("-q", "partition", graph, "--method", method, "--clusters", 64, "--seed", seed, "-o", path, "--overwrite")

    def run_job(self, command, *overrides, ranks=1, c=1, **options):
        self.succeed("-q", command, self.config, f"grid.replication={c}", *overrides, ranks=ranks, **options)
        return self.report(self.output)


class BytesNotBits(OrderTest):
    def train(self, *overrides, **grid):
        return self.bits(self.run_job("train", *overrides, "run.checkpoint_every=0", **grid))

    def test_any_order_on_any_grid(self):
        expected = self.train()
        for number, (ranks, c) in enumerate(GRIDS):
            methods = METHODS if LONG else [METHODS[number % len(METHODS)]]
            for method in methods:
                self.assertEqual(self.train(self.order(method), ranks=ranks, c=c), expected, (method, ranks, c))

    def test_local_batches_are_the_orders(self):
        order, other = self.order("metis"), self.order("streaming")
        expected = self.train(order, *LOCAL)
        for ranks, c in GRIDS[1:] if LONG else GRIDS[1:3]:
            self.assertEqual(self.train(order, *LOCAL, ranks=ranks, c=c), expected, (ranks, c))
        self.assertNotEqual(self.train(other, *LOCAL)[0], expected[0])
        self.assertNotEqual(self.train()[0], expected[0])

    @needs_emulation
    def test_the_emulated_gpu(self):
        order = self.order("metis")
        for batches in ((), LOCAL):
            expected = self.run_job("train", order, *batches)
            got = self.run_job("train", order, *batches, "run.device=cuda", ranks=4, c=2, **on_gpus(2))
            self.compare_devices(got, expected, off=5e-5)

    def test_rows_of_infer(self):
        self.run_job("train")
        plain, ordered = (self.inferred("--predictions", "--metrics", *overrides, ranks=ranks)[0]
                          for overrides, ranks in (((), 1), ((self.order("block"), "grid.replication=2"), 4)))
        for name in plain:
            np.testing.assert_array_equal(plain[name], ordered[name])

    def test_a_checkpoint_goes_on_with_another_order(self):
        expected = self.train("train.epochs=3")
        saving = "run.checkpoint_every=1"
        self.run_job("train", self.order("block"), saving, "train.epochs=1", ranks=2)
        self.run_job("train", self.order("metis"), saving, "train.epochs=2", ranks=4, c=2, overwrite=False)
        last = self.run_job("train", saving, "train.epochs=3", ranks=3, overwrite=False)
        self.assertEqual(last["restart"]["epoch"], 3)
        self.assertEqual(self.bits(last), expected)

    def test_multi_label(self):
        self.make_once(self.graph, ("generate", *GENERATE, "--labels", 5))
        task = ("train.task=labels",)
        expected = self.train(*task)
        self.assertEqual(self.train(*task, self.order("block"), ranks=4, c=2), expected)


class BytesSaved(OrderTest):
    def both(self, *overrides, ranks, c=1):
        run = self.run_job("train", *overrides, "train.epochs=1", ranks=ranks, c=c)["epochs"][0]
        return run, self.planned(f"grid.replication={c}", "train.epochs=1", *overrides, ranks=ranks)["epochs"][0]

    def test_the_plan_follows_the_order(self):
        grids = ((4, 1), (6, 2))
        for overrides, some in (((self.order("metis"),), grids[1:]), ((self.order("metis"), *LOCAL), grids[1:]), ((self.order("block"),), grids[:1])):
            for ranks, c in grids if LONG else some:
                run, plan = self.both(*overrides, ranks=ranks, c=c)
                self.assertEqual(plan["sample_digest"], run["sample_digest"])
                for stage in ("sample", "fetch"):
                    said, counted = plan["bytes"][stage]["total"], run["bytes"][stage]["total"]
                    self.assertLessEqual(abs(said - counted), 0.02 * counted, (overrides, ranks, c, stage))

    def test_local_batches_fetch_less(self):
        order = self.order("metis")
        uniform, local = self.run_job("train", order, ranks=4), self.run_job("train", order, *LOCAL, ranks=4)
        bytes_of = lambda report: report["epochs"][0]["bytes"]["fetch"]["total"]
        self.assertLess(bytes_of(local), 0.7 * bytes_of(uniform))
        for report in (uniform, local):
            dealt = report["epochs"][0]["dealing"]
            self.assertEqual(dealt["input_rows"], report["epochs"][0]["input_rows"])
            self.assertAlmostEqual(dealt["local_input_rows"], 1 - dealt["remote_rows"] / dealt["input_rows"])
            self.assertGreaterEqual(dealt["sampled_edges_max_over_mean"], 1)
            self.assertGreaterEqual(dealt["remote_rows_max_over_mean"], 1)
        share = lambda report: report["epochs"][0]["dealing"]["local_input_rows"]
        self.assertGreater(share(local), share(uniform) + 0.2)


class Refused(OrderTest):
    def refuse(self, code, words, *overrides, command="train", ranks=1):
        self.fail_with(code, words, command, self.config, *overrides, ranks=ranks)
        self.assertFalse((self.output / "report.json").exists())

    def test_orders_of_other_graphs(self):
        other = self.folder / "other.h5"
        self.make_once(other, ("generate", *GENERATE, "--seed", 1))
        self.refuse(3, ["other edges", "espalier partition"], self.order("block", other), ranks=2)
        self.refuse(3, ["other edges", "espalier partition"], self.order("block", other), command="sample")
        self.succeed("generate", "planted", "--nodes", 1000, "-o", other, "--overwrite")
        self.refuse(3, ["1000 vertices", "1500", "espalier partition"], self.order("block", other), ranks=2)

    def test_what_is_no_order(self):
        self.refuse(3, [str(self.graph), "order"], f"graph.order={self.graph}", ranks=2)
        self.refuse(3, ["missing.h5"], f"graph.order={self.folder}/missing.h5")
        broken = self.order("block")
        set_at(broken.partition("=")[2], "cluster", 7, 64)
        self.refuse(3, ["block0.order.h5", "cluster"], broken)

    def test_local_batches_that_cannot_be(self):
        order = self.order("block")
        self.refuse(2, ["sampler.groups = 8", "graph.order"], "sampler.groups=8")
        self.refuse(2, ["sampler.groups = 65", "64 clusters"], order, "sampler.groups=65")
        training = len(read(self.graph, "split/train"))
        self.refuse(2, [f"sampler.groups = {training + 1}", f"{training} training vertices"], order, f"sampler.groups={training + 1}")

    def test_a_restart_with_other_groups(self):
        self.run_job("train", self.order("metis"), *LOCAL, "train.epochs=1", "run.checkpoint_every=1")
        (self.output / "report.json").unlink()
        self.refuse(2, ["digest of the groups"], self.order("streaming"), *LOCAL)

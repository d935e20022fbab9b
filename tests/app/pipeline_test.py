"""run.prefetch_steps: steps whose rows are under way while a step computes, across epochs and evaluations.

Laws: any depth, also one beyond an epoch, gives the bits of a run without overlap, on every grid, topology and order, and moves as
many bytes in each epoch; a run that is stopped within an epoch and goes on with another depth ends with the same weights. GPUs do the
same: by NCCL, through the host, and where one that samples ahead is full.
"""

import re

from tests.app.order_test import GENERATE, LOCAL, OrderTest
from tests.app.plan_test import MACHINE
from tests.app.program import LONG, espalier, needs_emulation, on_gpus

LADIES = ("sampler.kind=ladies", "sampler.fanout=[40,60]")
DEPTHS = [("run.overlap=true",), *(("run.overlap=true", f"run.prefetch_steps={k}") for k in (2, 4, 100))]


class PipelineTest(OrderTest):
    GENERATE = ("planted", "--nodes", 700, *GENERATE[3:])  # of which an epoch is three steps

    def train(self, *overrides, **grid):
        return self.found(self.run_job("train", "run.checkpoint_every=0", "train.epochs=3", "train.eval_every=2", *overrides, **grid))

    def found(self, report):
        """Bits, and of each epoch what stages and steps moved; what is foretold is a sum of fractions."""
        return self.bits(report), [{name: {key: of[key] for key in ("rounds", "messages", "total", "max_rank")}
                                    for name, of in {**epoch["bytes"], **epoch.get("steps", {})}.items()} for epoch in report["epochs"]]


class Pipeline(PipelineTest):
    def test_any_depth_gives_the_same_bits_and_bytes(self):
        order = self.order("metis")
        stops_early = ("train.epochs=50", "train.early_stop=1", "train.learning_rate=0.5")
        for k, (ranks, c, overrides) in enumerate(((1, 1, ()), (4, 2, (order, *LOCAL)), (2, 1, ("grid.topology=replicated",)),
                                                   (3, 1, ("sampler.bulk=3", "train.batches_per_step=1")),
                                                   (4, 1, ("sampler.bulk=1", "train.batches_per_step=3")), (3, 3, stops_early),
                                                   *LONG * ((8, 1, (order,)), (6, 2, ()), (4, 4, ())))):
            expected = self.train(*overrides, ranks=ranks, c=c)
            for depth in DEPTHS if LONG else (DEPTHS[0::3], DEPTHS[1::2], DEPTHS[2:3])[k % 3]:
                self.assertEqual(self.train(*overrides, *depth, ranks=ranks, c=c), expected, (ranks, c, overrides, depth))

    def test_rows_shared_in_a_node_are_read_where_they_lie(self):
        share, order = "graph.features_on=node", self.order("block")
        expected = self.bits(self.run_job("train", "train.epochs=3", "train.eval_every=2"))
        for ranks, c, overrides in ((4, 2, (order,)), (2, 1, ("grid.topology=replicated", *DEPTHS[1])),
                                    *LONG * ((4, 2, ()), (3, 1, (order,)), (2, 2, ()))):
            bits, moved = self.train(share, *overrides, ranks=ranks, c=c)
            self.assertEqual(bits, expected, (ranks, c, overrides))
            self.assertEqual([epoch["fetch"]["total"] for epoch in moved], [0] * 3)
        # A checkpoint goes on with it and without, and infer reads its rows so.
        self.stopped_run("train", self.config, "run.restart=never", "train.epochs=3", ranks=2)
        last = self.run_job("train", "train.epochs=3", "train.eval_every=2", share, ranks=3)
        self.assertEqual(self.bits(last), expected)
        without, shared = (self.inferred(*overrides, ranks=2)[0] for overrides in ((), (share,)))
        self.assertEqual(without["logits"].tobytes(), shared["logits"].tobytes())

    def test_rounds_are_those_of_the_formulas(self):
        # 2 layers; 3 epochs of so many windows of 8 batches and steps of 4. A fetch of two layers of rows would take no more rounds.
        def rounds(*overrides, **grid):
            report = self.run_job("train", "run.checkpoint_every=0", "sampler.batch_size=20", "sampler.bulk=8", "train.eval_every=0", *overrides,
                                  **grid)
            batches = report["epochs"][0]["batches"]
            self.assertGreater(batches, 16)
            return [[epoch["bytes"][stage]["rounds"] for stage in ("sample", "fetch")] for epoch in report["epochs"]], \
                -(-batches // 8), -(-batches // 4)

        for k, depth in enumerate(((), DEPTHS[1])):
            for schedule, each in (("push", 5), ("pull", 4)) if LONG else ((("push", 5), ("pull", 4))[k],):
                counted, windows, steps = rounds(f"grid.schedule={schedule}", *depth, ranks=4, c=2)
                self.assertEqual(counted, [[each * 2 * windows, 3 * steps]] * 2, (schedule, depth))
            if LONG or depth:
                counted, _, steps = rounds("grid.topology=replicated", *depth, ranks=2)
                self.assertEqual(counted, [[0, 3 * steps]] * 2, depth)
        self.assertEqual(rounds(ranks=2, c=2)[0], [[0, 0]] * 2)

    def test_the_plan_names_the_depth_that_fits(self):
        self.make_once(self.graph, ("generate", "planted", "--nodes", 20000, "--degree", 12, "--features", 128))
        job = ("sampler.batch_size=512", "train.batches_per_step=2", "run.overlap=true")
        command = ("plan", self.config, "--ranks", 2, *job)

        def bytes_at(depth):
            return self.planned(*job, f"run.prefetch_steps={depth}", "--memory-per-rank", "64GiB", ranks=2)["peak_memory_bytes"]["max"]

        low, high = bytes_at(1), bytes_at(200)
        self.assertGreater(high, low + (10 << 20))
        room = ("--memory-per-rank", f"{(low + high) // 2}B")
        output = self.fail_with(4, ["run.prefetch_steps = "], "-q", *command, "run.prefetch_steps=200", *room)
        depth = int(re.search(r"run.prefetch_steps = (\d+)", output)[1])
        self.succeed("-q", *command, f"run.prefetch_steps={depth}", *room)
        self.fail_with(4, ["run.prefetch_steps"], "-q", *command, f"run.prefetch_steps={depth + 1}", *room)

    def test_a_depth_without_overlap_is_refused(self):
        self.fail_with(2, ["run.overlap"], "train", self.config, "run.prefetch_steps=2")


@needs_emulation
class PipelineOnGpu(PipelineTest):
    def test_any_depth_gives_the_same_bits_and_bytes(self):
        order = self.order("metis")
        # A depth each, 1 or 4; one stops early, and leaves the window of the epoch that does not come.
        for k, (ranks, c, gpus, overrides) in enumerate((
                (1, 1, 1, ()), (4, 2, 2, (order, *LOCAL)), (2, 1, 2, LADIES), (2, 1, 2, ("grid.topology=replicated",)),
                (2, 1, 1, ("train.epochs=50", "train.early_stop=1", "train.learning_rate=0.5", "sampler.bulk=1000")),
                *LONG * ((4, 2, 4, LADIES), (4, 1, 4, (*LADIES, "grid.topology=replicated")), (2, 2, 1, LADIES), (4, 1, 4, ())))):
            where = dict(ranks=ranks, c=c, **on_gpus(gpus))
            overrides = ("train.epochs=2", "train.eval_every=1", *overrides)
            expected = self.train(*overrides, "run.device=cuda", **where)
            for depth in DEPTHS[:3:2] if LONG else (DEPTHS[0 if k in (1, 3) else 2],):
                self.assertEqual(self.train(*overrides, "run.device=cuda", *depth, **where), expected, (ranks, c, gpus, overrides, depth))

    def test_who_exchanges_samples_is_said(self):
        for ranks, overrides, words in ((2, (), "GPUs exchange by NCCL\n"), (2, DEPTHS[0], "by NCCL, samples by host buffers and MPI"),
                                        (2, (*DEPTHS[0], "grid.topology=replicated"), "GPUs exchange by NCCL\n")):
            output = self.succeed("train", self.config, "run.device=cuda", "train.epochs=1", *overrides, ranks=ranks, **on_gpus(2))
            self.assertIn(words, output)
            self.assertNotIn("hides fetching, not sampling", output)

    def test_gpus_that_share_links_exchange_in_rounds_with_the_same_bits_and_bytes(self):
        switches = on_gpus(4, ESPALIER_EMULATED_SWITCHES="0,0,1,1")
        one = on_gpus(4, ESPALIER_EMULATED_SWITCHES="0,0,0,0")
        found = []
        for links, words in ((switches, "GPUs exchange by NCCL, in 5 rounds over PCIe switches\n"), (one, "GPUs exchange by NCCL\n")):
            self.assertIn(words, self.succeed("train", self.config, "run.device=cuda", ranks=4, **links))
            bits, moved = self.found(self.report(self.output))
            found.append((bits, [{name: of["total"] for name, of in epoch.items()} for epoch in moved]))
        self.assertEqual(*found)

    def test_a_stopped_run_goes_on_with_another_depth(self):
        def goes_on_after_two_steps(device, ranks, *depth):
            for restart in ("never", "auto"):
                self.stopped_run("train", self.config, "run.device=cuda", f"run.restart={restart}", *depth, ranks=2, **on_gpus(2))
            last = self.run_job("train", f"run.device={device}", "run.restart=auto", *depth[:1], ranks=ranks, **on_gpus(3))
            self.assertEqual((last["device"], last["restart"]["epoch"], last["restart"]["step"]), (device, 1, 2))
            return self.bits(last)

        whole = self.bits(self.run_job("train", "run.device=cuda", **on_gpus(1)))
        self.assertEqual(goes_on_after_two_steps("cuda", 3, *DEPTHS[1]), whole)
        self.assertEqual(goes_on_after_two_steps("cpu", 2, *DEPTHS[1]), goes_on_after_two_steps("cpu", 1))

    def test_a_full_gpu_ends_the_run_with_one_message(self):
        self.make_once(self.graph, ("generate", "planted", "--nodes", 8000, "--degree", 12, "--features", 4))
        job = ("run.device=cuda", "train.epochs=1", "sampler.fanout=[15,15]", "model.hidden=4", *DEPTHS[0])
        peak = self.run_job("train", *job, "sampler.bulk=4", **on_gpus(1))["peak_device_memory_bytes"]["max"]
        window = self.run_job("train", *job, "sampler.bulk=1000", **on_gpus(1))["peak_device_memory_bytes"]["max"]
        self.assertGreater(window, peak + (8 << 20))
        # The first window, which the thread samples, finds no room.
        small = on_gpus(2, ESPALIER_EMULATED_MEMORY=str(peak + (1 << 20)))
        job = ("train", self.config, *job, "sampler.bulk=1000")
        self.fail_with(4, ["the GPU is full", "sampler.bulk"], *job, **small)
        code, output = espalier(*job, ranks=2, **small)
        self.assertEqual(code, 4, output)
        self.assertRegex(output, "espalier: rank [01] on .*: the GPU is full: .*sampler.bulk")

    def test_two_windows_take_what_one_took(self):
        free, wide = 12 << 20, ("run.device=cuda", "sampler.fanout=[15,15]")
        room = on_gpus(1, ESPALIER_EMULATED_MEMORY=str(free + (32 << 20) + 512))  # cuBLAS takes the rest
        machine = self.folder / "machine.toml"
        machine.write_text(MACHINE.format(ranks=1, gemm="1").replace('"cpu"', '"cuda"').replace('"none"', f'"{free}B"'))
        taken = []
        for depth in ((), DEPTHS[0]):
            bulk = self.run_job("train", *wide, "train.epochs=1", *depth, **room)["config"]["sampler"]["bulk"]
            self.assertEqual(self.planned("--machine", machine, *wide, *depth)["config"]["sampler"]["bulk"], bulk)
            taken.append(bulk)
        self.assertLess(taken[1], taken[0])
        self.assertAlmostEqual(taken[1], taken[0] / 2, delta=1)

"""Jobs whose entries of A lie by parts of edges (grid.topology = "vertex-cut"), on CPUs and GPUs.

Laws: a cut moves bytes and never bits: digests, losses, weights, scores and the rows of infer are those of block rows, for every grid,
schedule, sampler and cut, folded, uneven or with empty parts, of typed graphs, too; a checkpoint goes on with another. The plan foretells
the bytes. Who serves hubs has no more of the work than others. What does not fit together is refused in one message.
"""

import json
import re
import unittest

import h5py
import numpy as np

from tests.app.plan_test import MACHINE
from tests.app.program import LONG, SHARED_DATA, ProgramTest, needs_emulation, on_gpus, read, set_at, set_attributes, weigh_edges

DEBIAN = SHARED_DATA / "debian_bookworm"
GENERATE = ("planted", "--nodes", 1500, "--degree", 12, "--classes", 6, "--features", 8)
TYPED = ("planted", "--types", "author=300:4,paper=400:3", "--relations",
         "author.writes.paper=1200,paper.cites.paper=2500,paper.by.author=1500", "--classes", 3)
GRIDS = [(3, 1), (4, 2), (8, 1)] + LONG * [(2, 1), (2, 2), (4, 1), (4, 4), (6, 1), (6, 2), (6, 3), (8, 2), (8, 4)]


class CutTest(ProgramTest):
    JOB = ("sampler.fanout=[5, 3]", "sampler.batch_size=32", "model.hidden=16", "model.layers=2", "train.epochs=1", "train.reproducible=true",
           "train.batches_per_step=4", "run.threads=1", 'run.device="cpu"')
    GENERATE = GENERATE

    def cut(self, method="expansion", parts=16):
        """The keys of a job that is cut so: by the program, or at random, all in one part, or with empty ones."""
        path = self.folder / f"{method}{parts}.cut.h5"
        if not path.exists():
            made = method in ("expansion", "dne", "hdrf")
            self.succeed("-q", "partition", self.graph, "--edges", "--parts", parts, "--method", method if made else "expansion", "-o", path)
            if not made:
                self.replace(path, method, parts)
        return ("grid.topology=vertex-cut", f"graph.cut={path}")

    @staticmethod
    def replace(path, method, parts):
        random = np.random.default_rng(5)
        with h5py.File(path, "r+") as file:
            part, entries = file["part"], file["entries"]
            part[:] = {"random": random.integers(0, parts, len(part)), "one": np.full(len(part), parts - 1),
                       "empty": random.integers(0, parts // 2, len(part)) * 2}[method]
            entries[:] = np.bincount(part[:], minlength=parts)
            del part.attrs["digest"], entries.attrs["digest"]

    def run_job(self, *overrides, command="train", ranks=1, c=1, **options):
        self.succeed("-q", command, self.config, f"grid.replication={c}", *overrides, ranks=ranks, **options)
        return self.report(self.output)


class BytesNotBits(CutTest):
    CUTS = [("expansion", 16), ("random", 8), ("one", 9), ("empty", 300), ("hdrf", 8), ("dne", 40)]

    def test_any_cut_on_any_grid(self):
        expected = self.bits(self.run_job())
        for number, (ranks, c) in enumerate(GRIDS):
            for at in range(len(self.CUTS)) if LONG else (number, number + 3):
                for schedule in ("pull", "push", "auto") if LONG else (("pull", "push", "auto")[at % 3],):
                    cut = self.cut(*self.CUTS[at % len(self.CUTS)])
                    self.assertEqual(self.bits(self.run_job(*cut, f"grid.schedule={schedule}", ranks=ranks, c=c)), expected, (cut, ranks, c, schedule))

    def test_every_sampler_and_matrix(self):
        jobs = [("sampler.kind=labor",), ("sampler.kind=ladies", "sampler.fanout=[80, 60]"), ("model.kind=gcn", "sampler.kind=fastgcn", "sampler.fanout=[80, 60]"),
                ("model.kind=gcn",), ("model.kind=gin",), ("sampler.kind=subgraph", "sampler.fanout=[-1, -1]", "sampler.batch_size=300"),
                ("sampler.kind=ladies", "sampler.mode=reference", "sampler.fanout=[80, 60]"), ("model.kind=gat", "sampler.fanout=[-1, 3]")]
        for number, job in enumerate(jobs):
            expected = self.bits(self.run_job(*job))
            for schedule in ("pull", "push") if LONG else (("pull", "push")[number % 2],):
                got = self.bits(self.run_job(*job, *self.cut(), f"grid.schedule={schedule}", ranks=3))
                self.assertEqual(got, expected, (job, schedule))

    def test_weighted_draws(self):
        weigh_edges(self.graph)
        race = "sampler.draw=race"
        for job in ((), ("model.kind=gcn",), ("sampler.kind=ladies", "sampler.fanout=[80, 60]"), (race,), (race, "model.kind=gcn", "sampler.fanout=[-1, 3]")):
            expected = self.bits(self.run_job("sampler.weighted=true", *job))
            for schedule in ("pull", "push"):
                got = self.bits(self.run_job("sampler.weighted=true", *job, *self.cut(), f"grid.schedule={schedule}", ranks=3))
                self.assertEqual(got, expected, (job, schedule))

    def test_typed_graphs(self):
        self.make_once(self.graph, ("generate", *TYPED))
        for job in (("model.kind=rgat",), ("model.kind=hgt", 'sampler.relation_fanout=["paper.cites.paper=2"]'), ("model.kind=sage",), ("model.kind=gcn",)):
            expected = self.bits(self.run_job(*job))
            for schedule in ("pull", "push"):
                got = self.bits(self.run_job(*job, *self.cut(parts=12), f"grid.schedule={schedule}", ranks=4, c=1))
                self.assertEqual(got, expected, (job, schedule))

    def test_hooks_of_a_step(self):
        """Hidden rows of the past, rows kept by degree, windows ahead, an order beside the cut."""
        self.succeed("-q", "partition", self.graph, "--method", "streaming", "--clusters", 64, "-o", self.folder / "order.h5")
        jobs = (("history.kind=replace", "history.t_stale=5", "train.epochs=2"), ("run.overlap=true", "run.cache_memory=40KiB", "run.cache_policy=degree"),
                (f"graph.order={self.folder}/order.h5", "sampler.groups=4"))
        for job in jobs:
            self.assertEqual(self.bits(self.run_job(*job, *self.cut(), ranks=3)), self.bits(self.run_job(*job)), job)

    def test_links(self):
        self.make_once(self.graph, ("generate", *GENERATE), ("prepare", None, "--split-links", "0.8,0.1,0.1"))
        job = ("train.task=links", "train.batches_per_step=6")
        expected = self.bits(self.run_job(*job))
        for schedule in ("pull", "push"):
            self.assertEqual(self.bits(self.run_job(*job, *self.cut(), f"grid.schedule={schedule}", ranks=3)), expected, schedule)

    def test_infer_and_minibatches(self):
        self.run_job()
        plain, cut = (self.inferred("--predictions", "--metrics", *keys, ranks=ranks)[0] for keys, ranks in (((), 1), (self.cut(), 3)))
        for name in plain:
            np.testing.assert_array_equal(plain[name], cut[name])

    def test_a_checkpoint_goes_on_with_another_cut(self):
        expected = self.bits(self.run_job("train.epochs=3"))
        saving = "run.checkpoint_every=1"
        self.run_job(saving, "train.epochs=1", *self.cut(), ranks=3)
        self.run_job(saving, "train.epochs=2", *self.cut("random", 8), ranks=4, c=2, overwrite=False)
        last = self.run_job(saving, "train.epochs=3", ranks=2, overwrite=False)
        self.assertEqual(last["restart"]["epoch"], 3)
        self.assertEqual(self.bits(last), expected)


@needs_emulation
class OnGpus(CutTest):
    """Samples are those of block rows on the CPU, losses and weights those of one GPU; rows come by pull."""

    def on_gpus(self, *overrides, ranks, c=1):
        keys = (*overrides, 'run.device="cuda"')
        return self.run_job(*keys, *self.cut(parts=12), ranks=ranks, c=c, **on_gpus(ranks)), self.run_job(*keys, **on_gpus(1))

    def expect(self, *job, **grid):
        cpu = self.run_job(*job)
        cut, whole = self.on_gpus(*job, **grid)
        self.compare_devices(cut, cpu, same=("sample_digest", "sampled_edges", "input_rows"))
        self.assertEqual(set(cut["schedules"]), {"pull"})
        # Evaluation has chunks of another shape, so that cuBLAS may round otherwise: docs/gpu.md.
        self.assertEqual([epoch["loss"] for epoch in cut["epochs"]], [epoch["loss"] for epoch in whole["epochs"]], job)
        self.assertEqual(cut["weights_digest"], whole["weights_digest"])

    def test_every_sampler(self):
        jobs = [(), ("sampler.kind=labor",), ("sampler.kind=ladies", "sampler.fanout=[80, 60]"), ("model.kind=gcn", "sampler.kind=fastgcn", "sampler.fanout=[80, 60]"),
                ("sampler.kind=subgraph", "sampler.fanout=[-1, -1]", "sampler.batch_size=300"), ("run.overlap=true", "graph.features_on=host")]
        for number, job in enumerate(jobs):
            for ranks, c in ((2, 1), (3, 1), (4, 2), (4, 1)) if LONG else ([(3, 1), (4, 2)][number % 2],):
                self.expect(*job, ranks=ranks, c=c)

    def test_weighted_draws(self):
        weigh_edges(self.graph)
        for job in (("sampler.weighted=true",), ("sampler.weighted=true", "sampler.draw=race", "model.kind=gcn")):
            self.expect(*job, ranks=3)

    def test_typed_graphs(self):
        self.make_once(self.graph, ("generate", *TYPED))
        self.expect("model.kind=rgat", ranks=3)

    def test_links(self):
        self.make_once(self.graph, ("generate", *GENERATE), ("prepare", None, "--split-links", "0.8,0.1,0.1"))
        self.expect("train.task=links", "train.batches_per_step=6", ranks=2)

    def test_infer(self):
        self.run_job()
        whole, cut = (self.inferred("--predictions", *keys, ranks=ranks, **on_gpus(ranks))[0]
                      for keys, ranks in ((('run.device="cuda"',), 1), (('run.device="cuda"', *self.cut()), 3)))
        for name in whole:
            np.testing.assert_allclose(cut[name], whole[name], rtol=1e-4, atol=1e-5, err_msg=name)

    def test_push_is_refused(self):
        self.fail_with(2, ['grid.schedule = "push"', "vertex-cut", "which CPUs do", "grid.schedule=pull"], "train", self.config, *self.cut(),
                       'run.device="cuda"', "grid.schedule=push", ranks=2, **on_gpus(2))

    def test_the_plan_counts_holders_on_the_gpu(self):
        """A code of a byte and a mark of a quarter for each vertex, and where pieces begin in place of rows."""
        machine = self.folder / "gpus.toml"
        machine.write_text(MACHINE.format(ranks=4, gemm="1").replace('"cpu"', '"cuda"').replace('"none"', '"1GB"'))
        cut, said = self.cut(parts=4), {}
        for name, keys in (("rows", ()), ("cut", cut)):
            page = self.succeed("plan", self.config, "--ranks", 4, "--machine", machine, *keys, 'run.device="cuda"')
            said[name] = 1024 * float(re.search(r"of its GPU ([\d.]+) KiB", page)[1])
        plan = json.loads((self.output / "plan.json").read_text())
        self.assertEqual((set(plan["plan"]["sample_by_schedule"]), set(plan["schedules"])), ({"pull"}, {"pull"}))
        nodes, entries = len(read(self.graph, "graph/indptr")) - 1, read(self.folder / "expansion4.cut.h5", "entries")
        rows, pieces = entries.sum() + 2 * nodes, 4 * entries.max() + 8 * min(nodes, entries.max())
        self.assertAlmostEqual(said["cut"] - said["rows"], pieces - rows + 1.25 * nodes, delta=110)


class Costs(CutTest):
    def test_the_plan_counts_pieces(self):
        for schedule in ("pull", "push"):
            keys = (*self.cut(), f"grid.schedule={schedule}")
            run = self.run_job(*keys, command="sample", ranks=4)["epochs"][0]
            plan = self.planned(*keys, ranks=4)
            self.assertEqual(plan["epochs"][0]["sample_digest"], run["sample_digest"])
            said, counted = plan["epochs"][0]["bytes"]["sample"]["total"], run["bytes"]["sample"]["total"]
            self.assertLessEqual(abs(said - counted), 0.02 * counted, schedule)
            self.assertEqual(set(plan["plan"]["sample_by_schedule"]), {"pull", "push"})
            self.assertGreater(plan["plan"]["row_copies"], 1)

    def sampled_bytes(self, *keys):
        """Of an epoch by push: as planned, and as counted."""
        keys = (*keys, "grid.schedule=push")
        plan, run = self.planned(*keys, ranks=4), self.run_job(*keys, command="sample", ranks=4)
        return [report["epochs"][0]["bytes"]["sample"]["total"] for report in (plan, run)]

    def test_the_plan_knows_what_travels_whole(self):
        self.make_once(self.graph, ("generate", *TYPED))
        said, counted = self.sampled_bytes("model.kind=rgat", *self.cut(parts=12))
        self.assertLessEqual(abs(said - counted), 0.02 * counted)

    def test_a_race_sends_candidates(self):
        """Rows far longer than the fanout: a few entries of each piece travel, not all of them as where points below a sum are drawn."""
        self.make_once(self.graph, ("generate", "planted", "--nodes", 1500, "--degree", 150, "--classes", 6, "--features", 8))
        weigh_edges(self.graph)
        keys = ("sampler.weighted=true", *self.cut())
        said, counted = self.sampled_bytes("sampler.draw=race", *keys)
        self.assertLessEqual(abs(said - counted), 0.02 * counted)
        self.assertLess(counted, 0.4 * self.sampled_bytes(*keys)[1])

    def test_pieces_served_are_those_of_numpy(self):
        """Pull of one layer, all at once: distinct seeds, of which each holder is asked once by each rank that keeps some."""
        cut = self.cut("random", 4)
        served = self.run_job(*cut, "sampler.fanout=[5]", "model.layers=1", "model.hidden=256", "grid.schedule=pull", command="sample", ranks=4)
        indptr, train = read(self.graph, "graph/indptr", "split/train")
        part = read(self.folder / "random4.cut.h5", "part")
        rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        holders = np.zeros((len(indptr) - 1, 4), dtype=bool)
        holders[rows, part] = True
        holders[~holders.any(axis=1), 0] |= True
        of = served["epochs"][0]["served"]
        self.assertEqual(of["rows"]["total"], holders[train].sum())
        self.assertEqual(of["entries"]["total"], np.diff(indptr)[train].sum())

    def test_few_parts_for_a_block_row_are_a_warning(self):
        """Fewer than 4 for each of several block rows: one line, with the command that makes enough."""
        for parts, ranks, c, few in ((7, 2, 1, True), (8, 2, 1, False), (16, 4, 1, False), (15, 4, 1, True), (8, 4, 2, False), (7, 4, 2, True),
                                     (3, 1, 1, False)):
            for command in ("train", "sample") if parts == 7 else ("sample",):
                output = self.succeed("-q", command, self.config, *self.cut("random", parts), f"grid.replication={c}", "--overwrite", ranks=ranks)
                said = re.findall(r"^espalier: warning: (.*parts of edges.*)$", output, re.M)
                self.assertEqual(len(said), few, (parts, ranks, c, output))
                if few:
                    self.assertRegex(said[0], rf"has {parts} parts of edges for {ranks // c} block rows, .* mean .*--parts {4 * ranks // c}")

    @unittest.skipUnless(DEBIAN.exists(), f"{DEBIAN} is not there")
    def test_hubs_are_shared(self):
        """Entries that weighted draws scan, on Debian's packages with 8 parts: the most of a server over the mean."""
        self.succeed("import", "ogb", DEBIAN, "--split", "random_seed0", "--symmetrize", "-o", self.graph, "--overwrite")
        most = {}
        for name, keys in (("rows", ()), ("cut", self.cut(parts=8))):
            keys = (*keys, "grid.schedule=push", "sampler.fanout=[15, 10, 5]", "sampler.batch_size=256", "model.layers=3")
            most[name] = self.run_job(*keys, command="sample", ranks=8)["epochs"][0]["served"]["entries"]["max_over_mean"]
        self.assertLess(most["cut"], 1.25)
        self.assertLess(most["cut"], most["rows"])


class Refused(CutTest):
    def refuse(self, code, words, *overrides, ranks=1):
        self.fail_with(code, words, "train", self.config, *overrides, ranks=ranks)
        self.assertFalse((self.output / "report.json").exists())

    def test_keys(self):
        cut = self.cut()
        self.refuse(2, ["vertex-cut", "graph.cut, which is missing", "partition GRAPH --edges"], "grid.topology=vertex-cut")
        self.refuse(2, ["graph.cut", "grid.topology"], cut[1])
        self.refuse(2, ["grid.schedule", "staged", "pull"], *cut, "grid.schedule=staged", ranks=2)
        self.refuse(2, ["2 parts of edges for 3 block rows", "--parts 12"], *self.cut(parts=2), ranks=3)

    def test_files(self):
        cut = self.cut()
        path = self.folder / "expansion16.cut.h5"
        good = path.read_bytes()

        def refuse(*words, **attributes):
            if attributes:
                set_attributes(path, **attributes)
            self.refuse(3, [str(path), *words], *cut, ranks=2)
            path.write_bytes(good)

        refuse("is HDF5 but no edge parts", format=np.bytes_("espalier-order"))
        refuse("version 7", version=7)
        refuse("its attribute parts is", parts=0)
        refuse("other edges", "espalier partition", pattern=np.bytes_("0" * 16))
        set_at(path, "part", 5, lambda part: (part + 1) % 16)
        refuse("/part is not what was written")
        set_at(path, "part", 5, 16)
        refuse("entry 5 is in part 16 of 16")
        set_at(path, "entries", 3, 0)
        refuse("/entries is not what was written")
        path.write_bytes(good[: len(good) // 2])
        refuse()
        path.unlink()
        self.refuse(3, ["no such file"], *cut)

    def test_parts_of_another_graph(self):
        cut = self.cut()
        self.succeed("-q", "generate", *GENERATE, "--seed", 9, "-o", self.graph, "--overwrite")
        self.refuse(3, ["the parts are of a graph with", "edges, and", "partition --edges"], *cut)


if __name__ == "__main__":
    unittest.main()

"""Features in fewer bits (graph.feature_bits).

Law: a run has, bit for bit, the losses and weights of one without the key on a file whose numbers NumPy has rounded by the formula of
include/espalier/feature/quantised_rows.hpp: on every grid, with rows that are kept, shared or on the way while others compute, with several
types. What is fetched falls as it should, to the byte, and `plan` foresees it.
"""

import shutil

import numpy as np

from tests.app.planted_job import PlantedJobTest
from tests.app.program import LONG, arrays_of, forget_digests, needs_emulation, on_gpus, put, put_sparse, read

NODES, WIDTH = 500, 11
BITS = ("bf16", 16, 8, 4, 2, 1)
ROW_BYTES = {32: 44, "bf16": 22, 16: 22, 8: 12, 4: 6, 2: 4, 1: 2}
GRIDS = ((1, "run.threads=2"), (2, "run.overlap=true"), (4, "grid.replication=2"), (3, "run.cache_memory=4KiB", "run.cache_policy=belady"),
         (2, "graph.features_on=node"), (3, "grid.replication=3"), (2, "grid.topology=replicated", "run.cache_memory=4KiB"),
         (4, "grid.replication=2", "graph.features_on=node"))
TYPED = ("generate", "planted", "--types", "paper=500:7,author=300:7,venue=40:5,field=9", "--relations",
         "author.writes.paper=1500,paper.cites.paper=2000,paper.at.venue=500,paper.about.field=500", "--classes", 4)


def nearest_bfloat16(x):
    """Of float32: of the two numbers whose lower 16 bits are zeros, around each, the nearer one; of two as near the one whose last bit is 0."""
    inner = x.view(np.uint32) >> 16 << 16
    inner, outer = inner.view(np.float32), (inner + np.uint32(1 << 16)).view(np.float32)  # towards 0, and away from it
    to_inner, to_outer = np.abs(x.astype(np.float64) - inner), np.abs(x.astype(np.float64) - outer)
    odd = (inner.view(np.uint32) >> 16 & 1) == 1
    return np.where((to_outer < to_inner) | ((to_outer == to_inner) & odd), outer, inner)


def rounded(x, bits):
    """The rows of float32 that rows of so many bits stand for."""
    if bits == 16:
        return x.astype(np.float16).astype(np.float32)
    if bits == "bf16":
        return nearest_bfloat16(x)
    least, most = x.min(axis=0).astype(np.float64), x.max(axis=0).astype(np.float64)
    step = (most - least) / (2**bits - 1)
    code = np.rint((x - least) / np.where(step > 0, step, 1))
    return (least + code * step).astype(np.float32)


def by_row(x):
    sums = np.cumsum(np.abs(x.astype(np.float64)), axis=1)[:, -1:]  # one behind the other
    return (x / np.where(sums > 0, sums, 1)).astype(np.float32)


def rewrite(path, change, *names):
    """The features of a file become change(of them)."""
    put(path, {name: change for name in names or ("nodes/features",)})
    forget_digests(path)


def awkward(x):
    """A constant column, one of zeros of both signs, one far from 0, one of two numbers."""
    x = x.copy()
    x[:, 0], x[:, 1] = 0.3, 0 * x[:, 1]
    x[:, 2] = 1000 + x[:, 2]
    x[:, 3] = np.where(x[:, 3] > 0, 1, -0.25)
    return x


class FeatureBitsTest(PlantedJobTest):
    def make(self, nodes):
        self.make_once(self.graph, ("generate", "planted", "--nodes", NODES, "--degree", 8, "--features", WIDTH, "--classes", 4))
        rewrite(self.graph, awkward)

    def copy(self, change, *names):
        path = self.folder / "changed.h5"
        shutil.copyfile(self.graph, path)
        rewrite(path, change, *names)
        return f"graph.file={path}"


class Train(FeatureBitsTest):
    def test_it_is_a_run_on_rounded_numbers(self):
        for k, bits in enumerate(BITS):
            expected = self.history(self.train(self.copy(lambda x: rounded(x, bits))))
            grids = GRIDS if LONG else GRIDS[2 * k:2 * k + 2] or GRIDS[1:2]
            self.one_history((f"graph.feature_bits={bits}",), grids, expected)

    def test_ties_and_numbers_near_zero(self):
        """Half way between two bfloat16 numbers, a bit to either side, and below the least normal one: as NumPy's nearest ones."""
        bits = np.arange(NODES * WIDTH, dtype=np.uint32).reshape(NODES, WIDTH)
        near = (0x3F800000 + (bits // 3 << 16) % 0x800000 + 0x7FFF + bits % 3 | (bits % 2 << 31)).view(np.float32)
        least = (bits % 97 * 0x4000 | (bits % 2 << 31)).view(np.float32)
        given = lambda x: np.where(bits % 5 == 4, least, near).astype(np.float32)
        halves = given(None).view(np.uint32) & 0xFFFF
        self.assertTrue({0x7FFF, 0x8000, 0x8001, 0x4000, 0xC000} <= set(halves.ravel().tolist()))
        expected = self.history(self.train(self.copy(lambda x: nearest_bfloat16(given(x)))))
        self.assertNotEqual(self.history(self.train(self.copy(given))), expected)
        self.assertEqual(self.history(self.train(self.copy(given), "graph.feature_bits=bf16", ranks=2)), expected)

    def test_normalised_first(self):
        expected = self.history(self.train(self.copy(lambda x: rounded(by_row(x), 4))))
        self.one_history(("graph.feature_norm=row", "graph.feature_bits=4"), GRIDS[2:3], expected)
        # Of what is subtracted and divided by, the bits are in the weights.
        self.train("graph.feature_norm=standard", "graph.feature_bits=8")
        standard = arrays_of(self.output / "weights.h5", "features")
        x = self.copy(lambda x: rounded(((x - standard["mean"]) / standard["deviation"]).astype(np.float32), 8))
        expected = self.history(self.train(x))
        self.one_history(("graph.feature_norm=standard", "graph.feature_bits=8"), GRIDS[3:4], expected)

    def test_a_column_that_one_number_spoils_is_said(self):
        def spoil(x):
            x[:, 4] = np.arange(len(x)) % 199
            x[17, 4] = 1e9
            return x

        said = self.succeed("train", self.config, "graph.feature_bits=8", "run.restart=never", "train.epochs=1", self.copy(spoil), ranks=2)
        words = "graph.feature_bits = 8: 1 of 11 columns of features keep few of their numbers"
        self.assertEqual(said.count(words), 1, said)
        self.assertIn("column 4 keeps 2 of 200; clip", said)

    def test_a_file_of_halves(self):
        rewrite(self.graph, lambda x: x.astype(np.float16))
        self.assertEqual(self.history(self.train("graph.feature_bits=16")), self.history(self.train()))
        for bits, grid in ((2, GRIDS[1]), ("bf16", GRIDS[2])):
            expected = self.history(self.train(self.copy(lambda x: rounded(x.astype(np.float32), bits))))
            self.one_history((f"graph.feature_bits={bits}",), (grid,), expected)

    def test_each_type_has_columns_of_its_own(self):
        """Two types of one width, which without the key share a table."""
        self.make_once(self.graph, TYPED)
        names = [f"nodes/{type}/features" for type in ("paper", "author", "venue")]
        rewrite(self.graph, lambda x: 3 * x + 1, names[1])
        job = ("model.kind=rgcn", "model.bases=2", "model.embedding=4")
        for bits in (8, 16, 1, "bf16") if LONG else (4,):
            expected = self.history(self.train(*job, self.copy(lambda x: rounded(x, bits), *names)))
            self.one_history((*job, f"graph.feature_bits={bits}"), GRIDS[2:5] if LONG else GRIDS[2:4], expected)

    def test_infer_has_them_too(self):
        """Of another graph, the least and the largest are its own."""
        bits = "graph.feature_bits=2"
        self.train(bits)
        weights = self.folder / "weights.h5"
        shutil.copyfile(self.output / "weights.h5", weights)
        elsewhere = self.copy(lambda x: 2 * x[::-1] + 3)
        found = [self.inferred(bits, elsewhere, weights=weights, ranks=ranks)[0]["logits"] for ranks in (1, 3)]
        self.train(self.copy(lambda x: rounded(x, 2)))
        expected = self.inferred(self.copy(lambda x: rounded(2 * x[::-1] + 3, 2)))[0]["logits"]
        for logits in found:
            np.testing.assert_array_equal(logits, expected)
        self.fail_with(2, ["graph.feature_bits = 2 there and 8 here"], "infer", self.config, "graph.feature_bits=8", "--checkpoint", weights, "-o",
                       self.folder / "rows.h5", "--overwrite")

    def test_bytes_fall_as_foreseen(self):
        one, rows = ("grid.replication=1", "train.epochs=1"), None
        for bits in (32, *BITS) if LONG else (32, "bf16", 8, 1):
            job = (*one, f"graph.feature_bits={bits}")
            run = self.train(*job, ranks=2)
            fetched = run["epochs"][0]["bytes"]["fetch"]
            rows = rows or run["epochs"][0]["dealing"]["remote_rows"]
            overhead = fetched["total"] - rows * (4 + ROW_BYTES[bits])
            self.assertEqual(overhead % 8, 0)
            self.assertLess(overhead, 20000)  # counts
            expected = overhead if bits == 32 else expected
            self.assertEqual(overhead, expected)
            plan = self.planned(*job, ranks=2)
            self.compare_bytes(run, plan, ("fetch",), off=0.02)
            self.assertAlmostEqual(plan["epochs"][0]["bytes"]["fetch"]["total"] / fetched["total"], 1, delta=0.002)
            step = plan["plan"]["memory"]["step"]
            self.assertAlmostEqual(step["features"], NODES / 2 * ROW_BYTES[bits], delta=ROW_BYTES[bits])

    @needs_emulation
    def test_on_the_emulated_gpu(self):
        few = ("train.epochs=1", "run.device=cuda")
        for bits, ranks, *more in ((4, 2, "graph.features_on=host"), (1, 3, "run.cache_memory=4KiB"), (16, 1), ("bf16", 2)):
            expected = self.history(self.train(*few, self.copy(lambda x: rounded(x, bits)), **on_gpus(1)))
            self.assertEqual(self.history(self.train(*few, *more, f"graph.feature_bits={bits}", ranks=ranks, **on_gpus(ranks))), expected)


class Refused(FeatureBitsTest):
    def test_what_is_refused(self):
        for value, words in (("3", ("graph.feature_bits = 3", "32 | 16 | bf16 | 8 | 4 | 2 | 1")), ("64", ("graph.feature_bits = 64",)), ("0", ("graph.feature_bits = 0",)),
                             ('"8"', ('graph.feature_bits = "8"', "not one of 32 | 16 | bf16 | 8")), ('"bf8"', ('graph.feature_bits = "bf8"', "not one of")),
                             ("bf8", ('graph.feature_bits must be a whole number or a word in quotes',)),
                             ("8.0", ("graph.feature_bits must be a whole number or a word in quotes",))):
            self.fail_with(2, words, "train", self.config, f"graph.feature_bits={value}", ranks=2 if value == "3" else 1)
        self.fail_with(2, ("graph.feature_bits = 8", "run.spill = a folder"), "train", self.config, "graph.feature_bits=8", "graph.features_on=disk", ranks=2)
        rewrite(self.graph, lambda x: np.where(np.arange(len(x))[:, None] == 400, np.float32(7e4), x))
        self.fail_with(2, ("graph.feature_bits = 16", "70000", "65504", "use 32 or 8"), "train", self.config, "graph.feature_bits=16", ranks=2)
        rewrite(self.graph, lambda x: np.where(x == 7e4, np.float32(3.4e38), x))
        self.fail_with(2, ("graph.feature_bits = bf16", "3.4e+38", "3.3895314e+38", "use 32 or 8"), "train", self.config, "graph.feature_bits=bf16", ranks=2)
        rewrite(self.graph, lambda x: np.where(x > 3e38, np.float32(np.nan), x))
        self.fail_with(3, ("/nodes/features", "400", "finite"), "train", self.config, "graph.feature_bits=8", ranks=2)
        x = read(self.graph, "nodes/features")
        put(self.graph, {"nodes/features": None})
        self.fail_with(2, ("graph.feature_bits has no meaning", "no features"), "train", self.config, "graph.feature_bits=8", "model.embedding=4")
        put_sparse(self.graph, "nodes/features", np.eye(len(x), WIDTH, dtype=np.float32))
        self.fail_with(2, ("graph.feature_bits = 8", "sparse"), "train", self.config, "graph.feature_bits=8")

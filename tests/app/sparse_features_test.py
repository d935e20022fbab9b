"""Sparse features: a file that keeps them as entries gives what one gives that keeps all numbers.

Networks that make a matrix of the rows again give its bits; those that multiply entries give it but for rounding, and the same bits
on every grid. Damage is found and said.
"""

import shutil

import numpy as np

from tests.app.program import LONG, ProgramTest, arrays_of, forget_digests, needs_emulation, on_gpus, put, put_sparse, read, set_at, set_attributes

COLUMNS = 120
JOB = ("sampler.fanout=[4, 3]", "sampler.batch_size=50", "model.layers=2", "model.hidden=16", "model.dropout=0.2",
       "train.epochs=2", "train.learning_rate=0.01", "train.batches_per_step=4", "train.reproducible=true", "run.threads=1", 'run.device="cpu"')
GRIDS = ((2, "grid.replication=2"), (3, "run.overlap=true", "run.threads=2"), (4, "grid.replication=2", "grid.topology=replicated"),
         (3, "run.cache_memory=20KiB", "run.cache_policy=belady"))


def sparse_rows(rows, seed=1):
    """[rows, COLUMNS], a few numbers in each row, in some none, in one as many as 12."""
    random = np.random.default_rng(seed)
    x = np.zeros((rows, COLUMNS), np.float32)
    for row, count in enumerate(random.integers(0, 9, rows)):
        x[row, random.choice(COLUMNS, 12 if row == 7 else count, replace=False)] = random.normal(size=12 if row == 7 else count)
    return x


class SparseTest(ProgramTest):
    JOB = JOB
    GENERATE = ("planted", "--nodes", 800, "--degree", 8, "--features", 8, "--classes", 4)

    def setUp(self):
        super().setUp()
        self.dense = self.folder / "dense.h5"
        forget_digests(self.graph)
        shutil.copy(self.graph, self.dense)
        self.x = sparse_rows(800)
        self.x[np.arange(800), np.maximum(read(self.graph, "nodes/labels").reshape(-1), 0)] += 1  # something to learn
        put_sparse(self.graph, "nodes/features", self.x)
        put(self.dense, {"nodes/features": self.x})

    def both(self, *overrides):
        return self.train(*overrides), self.train(*overrides, f"graph.file={self.dense}")

    def bits(self, report):
        return self.history(report)[:-1]


class Train(SparseTest):
    def test_kinds_that_make_a_matrix_give_its_bits(self):
        for kind in (("model.kind=sage", "model.aggregator=max"), ("model.kind=gcn", "model.residual=true", f"model.hidden={COLUMNS}")):
            with self.subTest(kind=kind):
                sparse, dense = self.both(*kind)
                self.assertEqual(self.bits(sparse), self.bits(dense))

    def test_kinds_that_multiply_entries_differ_by_rounding(self):
        for kind in (("model.kind=sage",), ("model.kind=gcn", "model.input_dropout=0.3"), ("model.kind=gat", "model.residual=true")):
            with self.subTest(kind=kind):
                sparse, dense = self.both(*kind, "graph.feature_norm=row")
                self.compare_epochs(sparse, dense, off=1e-4)
                self.one_history((*kind, "graph.feature_norm=row"), GRIDS if LONG or kind[0] == "model.kind=sage" else GRIDS[:1],
                                 self.history(sparse))

    def test_rows_are_fetched_by_their_longest(self):
        grid = ("grid.replication=1",)
        run = self.train(*grid, ranks=4)
        self.compare_bytes(run, self.planned(*grid, ranks=4), ("fetch",), off=0.02)
        whole = self.train(*grid, f"graph.file={self.dense}", ranks=4)
        fetched = [report["epochs"][0]["bytes"]["fetch"]["total"] for report in (run, whole)]
        self.assertLess(fetched[0], 0.35 * fetched[1])

    def test_plan_knows_the_memory(self):
        """Of many more columns, none of which has a number: as a matrix 64 MB."""
        set_attributes(self.graph, "nodes/features/indices", columns=20000)
        run = self.train("sampler.batch_size=200")["peak_memory_bytes"]["max"]
        plan = self.planned("sampler.batch_size=200")["peak_memory_bytes"]["max"]
        self.assertTrue(0.75 < plan / run < 1.35, (plan, run))

    @needs_emulation
    def test_on_the_emulated_gpu(self):
        for kind in (("model.kind=sage", "model.input_dropout=0.2"), ("model.kind=gin", "train.precision=bf16")):
            cpu, gpu = self.train(*kind[:1], *kind[1:] if "precision" not in kind[1] else ()), self.train(
                *kind, "run.device=cuda", ranks=2, **on_gpus(2))
            self.compare_devices(gpu, cpu, off=0.02)

    def test_infer_reads_either(self):
        self.train()
        rows = []
        for file, ranks in ((self.graph, 1), (self.graph, 3), (self.dense, 2)):
            rows.append(self.inferred(f"graph.file={file}", ranks=ranks)[0]["logits"])
        np.testing.assert_array_equal(rows[0], rows[1])
        np.testing.assert_allclose(rows[0], rows[2], rtol=1e-4, atol=1e-5)


class File(SparseTest):
    def test_info_and_copies(self):
        numbers = np.count_nonzero(self.x)
        longest = np.count_nonzero(self.x, axis=1).max()
        self.assertIn(f"{COLUMNS} x float32, sparse: {numbers} numbers, {numbers / 800:.3g} in a row and {longest} at most",
                      self.succeed("info", self.graph, ranks=3))
        copies = []
        for ranks in (1, 3):
            copies.append(self.folder / f"links{ranks}.h5")
            self.succeed("-q", "prepare", self.graph, "--split-links", "0.8,0.1,0.1", "-o", copies[-1], ranks=ranks)
        first, second = (arrays_of(copy) for copy in copies)  # not bytes: HDF5 writes down the second it was made
        self.assertEqual(set(first), set(second))
        for name, values in first.items():
            np.testing.assert_array_equal(values, second[name], name)
        given = arrays_of(self.graph, "nodes/features")
        for name, values in arrays_of(copies[0], "nodes/features").items():
            np.testing.assert_array_equal(values, given[name])
        self.succeed("-q", "digest", copies[0])
        moved = self.folder / "moved.h5"
        self.succeed("-q", "prepare", self.graph, "--relabel", "random:3", "-o", moved, ranks=3)
        old, found = arrays_of(moved)["nodes/ids"], arrays_of(moved, "nodes/features")
        x = np.zeros_like(self.x)
        x[np.repeat(np.arange(800), np.diff(found["indptr"])), found["indices"]] = found["values"]
        np.testing.assert_array_equal(x, self.x[old])
        set_attributes(copies[0], "nodes/features/indices", columns=COLUMNS + 1)
        self.fail_with(3, ("its data sets are not those that were written",), "info", copies[0])

    def test_what_is_wrong_is_said(self):
        def change(name, place, value):
            return lambda: set_at(self.graph, f"nodes/features/{name}", place, value)

        def without(name):
            return lambda: put(self.graph, {f"nodes/features/{name}": None})

        def columns(value):
            return lambda: set_attributes(self.graph, "nodes/features/indices", columns=value)

        first = int(np.flatnonzero(np.count_nonzero(self.x, axis=1) > 1)[0])
        at = int(np.count_nonzero(self.x[:first]))
        for changed, words in ((change("indices", at + 1, 0), f"/nodes/features/indices: the columns of row {first} are not strictly ascending"),
                               (change("indices", at, COLUMNS), f"/nodes/features/indices: row {first} names column {COLUMNS}, but there are {COLUMNS}"),
                               (change("indices", at, -1), f"row {first} names column -1"),
                               (change("indptr", 0, 1), "/nodes/features/indptr starts with 1, not with 0"),
                               (change("indptr", 5, 1 << 40), "/nodes/features/indptr is not ascending"),
                               (change("indptr", -1, 3), "/nodes/features/indptr"),
                               (change("values", 4, np.nan), "/nodes/features/values: entry 4 is not a finite number"),
                               (without("indptr"), "there is no dataset /nodes/features/indptr"),
                               (without("values"), "there is no dataset /nodes/features/values"),
                               (columns(0), "its attribute columns is 0; sparse features have 1 to 16777216 columns"),
                               (columns(1 << 25), "sparse features have 1 to 16777216"),
                               (columns("many"), "its attribute columns is the text")):
            with self.subTest(words):
                put_sparse(self.graph, "nodes/features", self.x)
                changed()
                self.fail_with(3, (words,), "-q", "train", self.config, ranks=2 if "ascending" in words else 1)
        put_sparse(self.graph, "nodes/features", self.x)
        for override, words in (("graph.feature_norm=standard", "less their mean they would not be"),
                                ("graph.features_on=disk", "cannot stay on disk: they are sparse")):
            code = 2 if "norm" in override else 3
            self.fail_with(code, (words,), "-q", "train", self.config, override)

    def test_types_share_a_table(self):
        """Sparse of two lengths, and a matrix as wide."""
        generate = ("--types", "paper=300:8,author=200:8,venue=20:8", "--relations",
                    "author.writes.paper=900,paper.cites.paper=800,paper.at.venue=300", "--classes", 4)
        typed, dense = self.folder / "typed.h5", self.folder / "typed_dense.h5"
        for path in (typed, dense):
            self.make_once(path, ("generate", "planted", *generate))
            forget_digests(path)
        for name, rows, sparse in (("paper", 300, True), ("author", 200, True), ("venue", 20, False)):
            x = sparse_rows(rows, rows)
            if name == "author":
                x[x < 1] = 0
            features = f"nodes/{name}/features"
            put_sparse(typed, features, x) if sparse else put(typed, {features: x})
            put(dense, {features: x})
        job = ("model.kind=rgcn", "model.bases=2")
        self.one_history((*job, f"graph.file={typed}"), ((1,), (3, "run.overlap=true"), (4, "grid.replication=2")),
                         self.history(self.train(*job, f"graph.file={dense}")))

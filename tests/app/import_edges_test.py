"""espalier import edges and matrixmarket: what stands in a file of edges is what the graph file has.

Laws: rows are those of scipy's sparse matrix of the same lines, whatever separates and ends them and however the file is
packed; renumbered, ids are numpy.unique's; of a Matrix Market file they are those of scipy.io.mmread; arrays of vertices
come along, splits by the ids of the list; what is no edge is one sentence with file and line, and leaves no file.
"""

import gzip
import resource
import shutil
import unittest

import numpy as np
import scipy.io
import scipy.sparse

from tests.app.other_formats import zstd
from tests.app.program import ProgramTest, arrays_of, attributes_of, contents, difference, espalier, read

ENDS = ("\n", "\r\n", "\n\n", "\n  \n", " \n", "\n# comment\n", "\r\n%1 2\n")
BETWEEN = (" ", "\t", ",", ", ", " , ", "\t\t", "  ")


def in_parts(pack):
    """Two that follow each other in one file, cut anywhere."""
    return lambda data: pack(data[:len(data) // 3]) + pack(data[len(data) // 3:])


PACKINGS = [bytes, gzip.compress, in_parts(gzip.compress)]
if shutil.which("zstd"):
    PACKINGS += [zstd, in_parts(zstd)]


class EdgeFile(ProgramTest):
    KIND = "edges"
    JOB = ()

    def setUp(self):
        super().setUp()
        self.input, self.output = self.folder / "input", self.folder / "graph.h5"

    def put(self, text, pack=bytes):
        self.input.write_bytes(pack(text.encode() if isinstance(text, str) else bytes(text)))

    def put_array(self, name, array):
        np.save(self.folder / name, array)
        return self.folder / name

    def command(self, *options):
        return ("import", self.KIND, self.input, "-o", self.output, "--overwrite", *options)

    def imported(self, *options, **more):
        self.said = self.succeed(*self.command(*options), **more)
        return arrays_of(self.output)

    def matrix(self, *options, **more):
        """The matrix of the graph file."""
        data = self.imported(*options, **more)
        n = len(data["graph/indptr"]) - 1
        weights = data.get("graph/weights", np.ones(len(data["graph/indices"]), np.float32))
        return scipy.sparse.csr_matrix((weights, data["graph/indices"], data["graph/indptr"]), (n, n))

    def check_matrix(self, found, wanted):
        wanted = wanted.tocsr()
        wanted.sort_indices()
        np.testing.assert_array_equal(found.indptr, wanted.indptr)
        np.testing.assert_array_equal(found.indices, wanted.indices)
        np.testing.assert_allclose(found.data, wanted.data, rtol=1e-6)

    def refuse(self, words, *options, code=3):
        before = set(self.folder.iterdir())
        with self.subTest(words):
            output = self.fail_with(code, words, *self.command(*options), timeout=20)
            self.assertLess(len(output), 700, "a message of a few lines")
            self.assertEqual(set(self.folder.iterdir()), before, "nothing is left behind")

    def refuse_text(self, text, words, *options, pack=bytes):
        self.put(text, pack)
        self.refuse(words, *options)


class Edges(EdgeFile):
    def random_edges(self, n, count, random):
        return random.integers(0, n, (2, count)), random.integers(0, 1000, count) / 8

    def lines(self, random, sources, targets, weights=None):
        """As one writes them."""
        fields = (sources, targets) if weights is None else (sources, targets, weights)
        pick = lambda choices: choices[random.integers(len(choices))]
        text = pick(("", "# first\n", "\n", "\ufeff"))
        for values in zip(*(of.tolist() for of in fields)):
            text += pick(("", " ")) + str(values[0]) + "".join(pick(BETWEEN) + str(value) for value in values[1:]) + pick(ENDS)
        return text.rstrip() if pick((True, False)) else text

    def test_against_scipy(self):
        random = np.random.default_rng(3)
        for number in range(11):
            n = int(random.integers(1, 60))
            (sources, targets), weights = self.random_edges(n, int(random.integers(1, 300)), random)
            weighted, symmetrize = number % 2 == 1, number % 3 == 1
            self.put(self.lines(random, sources, targets, weights if weighted else None), PACKINGS[number % len(PACKINGS)])
            values = weights if weighted else np.ones(len(sources))
            wanted = scipy.sparse.coo_matrix((values, (targets, sources)), (n, n)).tocsr()  # sums; row: the target
            wanted = wanted + wanted.T if symmetrize else wanted
            if not weighted:
                wanted.data[:] = 1
            options = ("--vertices", n) + ("--weights",) * weighted + ("--symmetrize",) * symmetrize
            found = self.matrix(*options, ranks=1 + 2 * (number == 7))
            self.check_matrix(found, wanted)
            self.assertEqual(bool(attributes_of(self.output)["directed"]), (wanted.astype(bool) != wanted.T.astype(bool)).nnz > 0)

    def test_duplicates_and_loops(self):
        self.put("0 1 4\n1 1 2\n0 1 1\n1 0 8\n")
        for how, expected in (("sum", 5), ("max", 4), ("first", 4)):
            self.assertEqual(self.matrix("--weights", "--duplicates", how)[1, 0], expected)
        self.assertEqual(self.matrix("--weights", "--drop-self-loops").nnz, 2)
        self.assertIn("1 self loop dropped", self.said)
        self.assertEqual(self.matrix("--weights", "--symmetrize")[0, 1], 13)
        self.refuse(["input:3: repeats the edge of", "input:1;", "--duplicates sum"], "--weights", "--duplicates", "refuse")
        self.put("# title\n7 8\n\n8 7\n")
        self.refuse(["input:4: reverses the edge of", "input:2,", "--symmetrize"], "--duplicates", "refuse", "--symmetrize", "--renumber")
        self.assertIn("2 edges", self.succeed(*self.command("--duplicates", "refuse")))

    def test_weights_that_become_nothing(self):
        self.put("0 1 1e-50\n1 2 1e-45\n2 0 0\n0 2 3e-60\n")
        said = self.succeed("import", "edges", self.input, "--weights", "-o", self.output)
        self.assertEqual(said.count("weights    2 of 4 are too small for float32, which holds them as 0"), 1, said)
        self.assertEqual(np.count_nonzero(read(self.output, "graph/weights")), 1)

    def test_ids_that_are_sparse(self):
        random = np.random.default_rng(4)
        ids = np.unique(np.concatenate([random.integers(0, 2**63 - 1, 300), [0, 5, 2**63 - 1]]))
        for number in range(3):
            edges = random.choice(ids, (2, 900))
            self.put(self.lines(random, *edges), PACKINGS[number])
            data = self.imported("--renumber")
            there, places = np.unique(edges, return_inverse=True)
            np.testing.assert_array_equal(data["nodes/ids"], there)
            sources, targets = places.reshape(2, -1)
            wanted = scipy.sparse.coo_matrix((np.ones(900), (targets, sources)), (len(there),) * 2).tocsr()
            np.testing.assert_array_equal(data["graph/indices"], wanted.indices)
            np.testing.assert_array_equal(data["graph/indptr"], wanted.indptr)
        # The order of the lines says nothing.
        before = contents(self.output)
        self.put(self.lines(random, *edges[:, random.permutation(900)]))
        self.imported("--renumber")
        self.assertEqual(difference(contents(self.output), before), "")

    def test_who_says_how_many_vertices_there_are(self):
        self.put("1 3\n3 1\n")
        self.assertEqual(self.matrix().shape, (4, 4))
        self.assertNotIn("--renumber", self.said)
        self.assertEqual(self.matrix("--vertices", 9).shape, (9, 9))
        self.assertNotIn("--renumber", self.said)
        self.assertEqual(self.matrix("--features", self.put_array("x.npy", np.zeros((7, 2)))).shape, (7, 7))
        self.assertEqual(self.matrix("--labels", self.put_array("y.npy", np.zeros(6))).shape, (6, 6))
        self.refuse(["input:1: vertex 3 is out of range: --vertices says 3 vertices, 0 to 2"], "--vertices", 3)
        self.refuse(["input:1: vertex 3 is out of range:", "y.npy has 3 rows, 0 to 2"], "--labels", self.put_array("y.npy", np.zeros(3)))
        self.refuse(["y.npy: is 3, but there are 5 vertices"], "--labels", self.put_array("y.npy", np.zeros(3)), "--vertices", 5)
        self.refuse(["--renumber", "--vertices"], "--renumber", "--vertices", 4, code=2)
        # Before the memory is taken that so many would need.
        self.put("0 1\n2147483648 0\n1 0\n")
        self.refuse(["input:2: vertex 2147483648 makes 2147483649 vertices, of which 3 have an edge; --renumber", "--vertices 2147483649 says"])
        self.put("0 1\n")
        self.refuse(["y.npy: ", "label 1000000000 makes 1000000001 classes of 2 vertices"], "--labels", self.put_array("y.npy", np.array([10**9, 0])))
        self.put("1 4\n4 1\n")
        self.imported()
        self.assertIn("3 of the vertices 0 to 4 have no edge; --renumber", self.said)
        self.put("0 1\n1 2\n" * 3 + "5 5\n")
        self.imported()
        self.assertNotIn("--renumber", self.said)
        self.put("# no edge\n")
        self.assertEqual(self.matrix("--vertices", 4).nnz, 0)

    def test_what_is_known_of_vertices(self):
        features, labels = np.random.default_rng(6).normal(size=(6, 3)).astype(np.float32), np.array([0, 1, 2, 0, 1, -1])
        mask = np.array([False, True, False, False, True, False])
        good = {"features": features, "labels": np.where(labels < 0, np.nan, labels), "train": np.array([3, 0]), "valid": mask, "test": np.array([2], "int32")}

        def options(**changed):
            return [word for name, array in (good | changed).items() for word in (f"--{name}", self.put_array(f"{name}.npy", array))]
        self.put("0 1\n2 1\n3 4\n4 5\n")
        for of_labels in (good["labels"], labels):
            data = self.imported(*options(labels=of_labels))
            self.assertEqual([data["split/" + name].tolist() for name in ("train", "valid", "test")], [[0, 3], [1, 4], [2]])
            np.testing.assert_array_equal(data["nodes/labels"], labels)
            np.testing.assert_array_equal(data["nodes/features"], features)
        self.assertEqual(self.imported(*options(), "--half", ranks=3)["nodes/features"].dtype, np.float16)
        for words, changed in ((["train.npy: entry 1: vertex 7 is out of range: the graph has 6 vertices, 0 to 5"], {"train": np.array([3, 7])}),
                               (["train.npy: entry 1: vertex 5 has no label"], {"train": np.array([3, 5])}),
                               (["valid.npy: entry 4: vertex 4 is already in train"], {"train": np.array([3, 4])}),
                               (["train.npy: is 4, but there are 6 vertices"], {"train": mask[:4]}),
                               (["train.npy: has the number 18446744073709551615; numbers up to 2^63 - 1"], {"train": np.array([3, 2**64 - 1], "uint64")}),
                               # Of a mask in whole numbers, too.
                               (["train.npy: entry 2: vertex 0 is in train twice; a split lists its vertices, each once, and is no mask"],
                                {"train": np.array([0, 1, 0])}),
                               (["features.npy: ", "holds '|O'"], {"features": features.astype(object)}),
                               (["features.npy: ", "3 dimensions"], {"features": features[:, :, None]}),
                               (["features.npy: ", "holds records of several fields"], {"features": np.zeros(6, dtype=[("a", "<f4"), ("b", "<i8")])}),
                               (["features.npy: ", "column 0 is 1e+300, too large for float32"], {"features": np.full((6, 2), 1e300)})):
            self.refuse(words, *options(**changed))
        self.put("10 20\n30 20\n40 50\n50 60\n")
        data = self.imported("--renumber", *options(train=np.array([40, 10]), test=np.array([30], "int32")))
        self.assertEqual([data["split/" + name].tolist() for name in ("train", "valid", "test")], [[0, 3], [1, 4], [2]])
        self.refuse(["train.npy: entry 0: no edge has the vertex 3"], "--renumber", *options())

    def test_names_of_files_say_nothing(self):
        """An array is one whatever it is called, and a list, too."""
        self.input = self.folder / "list.npy"
        self.put("0 1\n1 2\n")
        wanted = self.imported("--labels", self.put_array("y.npy", [0, 1, 1]), "--train", self.put_array("train.npy", [0]))
        (self.folder / "y.npy").rename(self.folder / "y.csv")
        (self.folder / "train.npy").rename(self.folder / "train")
        found = self.imported("--labels", self.folder / "y.csv", "--train", self.folder / "train")
        self.assertEqual({name: of.tolist() for name, of in found.items()}, {name: of.tolist() for name, of in wanted.items()})

    def test_lines_that_are_no_edges(self):
        # graph/edge_import_test has many.
        for text, words in (("", ["input: has no edge"]), ("0 1\n-1 2\n", ["input:2: vertex -1 is negative"]),
                            ("1 2 3\n", ["input:1: has 3 fields, expected 2: source and target; --weights"]), ("0 1\0\n", ["zero byte"])):
            self.refuse_text(text, words)
        self.refuse_text("0 1 1\n0 1 inf\n", ["input:2: weight inf"], "--weights")

    def test_files_that_are_damaged(self):
        text = "".join(f"{u} {u + 1}\n" for u in range(20000))
        for pack in (gzip.compress, zstd) if zstd in PACKINGS else (gzip.compress,):
            whole = pack(text.encode())
            for cut in (len(whole) - 1, len(whole) // 2):
                self.refuse_text(whole[:cut], ["input: after line", "damaged or cut off"])
            spoilt = bytearray(whole)
            spoilt[len(whole) // 2] ^= 255
            self.put(spoilt)
            self.assertEqual(espalier(*self.command())[0], 3)
            self.refuse_text(whole + b"trailing", ["input: after line 20000: the compressed file is damaged"])
        self.put(text, lambda data: gzip.compress(data) + bytes(512))
        self.assertIn("20000 lines", self.succeed(*self.command()))
        self.refuse_text(b"\x1f\x8b", ["input: after line 0: the compressed file is damaged or cut off (it ends too early)"])
        self.input.unlink()
        self.refuse(["input"])
        self.input.mkdir()
        self.refuse(["is a folder, not a file"])

    def test_an_input_is_no_output(self):
        self.put("0 1\n")
        self.fail_with(2, ["-o", "is an input of this import"], "import", self.KIND, self.input, "--overwrite", "-o", self.input)
        self.assertEqual(self.input.read_text(), "0 1\n")

    def test_memory_for_ids_that_are_sparse(self):
        self.put(f"0 {2**39}\n")
        little = dict(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30)))
        said = f"{2**39 + 1} vertices, of which 2 have an edge"
        self.fail_with(3, [f"input:1: vertex {2**39} makes {said}", "--renumber"], *self.command(), **little)
        code, output = espalier(*self.command("--vertices", 2**39 + 1), **little)
        self.assertEqual(code, 4, output)
        self.assertRegex(output, f"warning: .*input: {said}; where rows begin takes 4398.0 GB")


class MatrixMarket(EdgeFile):
    KIND = "matrixmarket"

    def write(self, matrix, pack=bytes, **options):
        """Returns what SciPy reads."""
        path = self.folder / "matrix.mtx"
        scipy.io.mmwrite(path, matrix, **options)
        self.put(path.read_bytes(), pack)
        return scipy.io.mmread(path)

    def test_against_scipy(self):
        random = np.random.default_rng(8)
        for number in range(10):
            n = int(random.integers(1, 40))
            matrix = scipy.sparse.random(n, n, 0.2, random_state=number)
            matrix.data = np.round(matrix.data * 64) + (0.5 if number % 2 else 0)
            symmetry = "symmetric" if number % 3 == 0 else "general"
            if symmetry == "symmetric":
                matrix = matrix + matrix.T
            field = ("real", "integer", "pattern")[number % 3 if number % 2 == 0 else 0]
            wanted = self.write(matrix.tocoo() if field != "integer" else matrix.astype(int).tocoo(), PACKINGS[number % len(PACKINGS)], field=field, symmetry=symmetry,
                                comment="of\na test")
            self.check_matrix(self.matrix(), wanted)
            self.assertEqual("graph/weights" in arrays_of(self.output), field != "pattern")

    def test_a_matrix_by_hand(self):
        self.put("%%matrixmarket MATRIX Coordinate Real SYMMETRIC\r\n% c\n\n3 3 4\n1 1 2\n\n2 1 3.5\n%c\n3 2 1e1\n2 1 .5")
        found = self.matrix()
        np.testing.assert_array_equal(found.toarray(), [[2, 4, 0], [4, 0, 10], [0, 10, 0]])
        self.assertIn("2 entries repeat an earlier one", self.said)
        self.assertEqual(self.imported("--no-weights").get("graph/weights"), None)
        self.refuse(["--symmetrize", "says that it is symmetric"], "--symmetrize", code=2)
        self.refuse(["input:10: repeats the edge of", "input:7;"], "--duplicates", "refuse")
        self.put("%%MatrixMarket matrix coordinate pattern general\n3 3 1\n3 1\n")
        data = self.imported()
        self.assertEqual((data["graph/indptr"].tolist(), data["graph/indices"].tolist()), ([0, 0, 0, 1], [0]))  # an edge from 0 to 2
        self.assertEqual(self.matrix("--symmetrize").nnz, 2)
        self.put("%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 -3\n")
        self.refuse(["input:3: weight -3 is not a finite number of at least 0; --no-weights"])
        self.assertEqual(self.matrix("--no-weights").nnz, 1)

    def test_files_that_are_something_else(self):
        good = "%%MatrixMarket matrix coordinate real general\n"
        self.refuse_text("1 2\n", ["input:1: a Matrix Market file begins with", "import edges"])
        self.refuse_text(good + "3 4 1\n1 1 1\n", ["input:2: the matrix is 3 x 4", "square"])
        self.refuse_text(gzip.compress((good + "3 3 1\n1 1 1\n").encode())[:-4], ["damaged or cut off"])

    def test_memory_for_a_header_that_lies(self):
        little = dict(preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30)))
        for entries, code in ((2**60, 3), (1, 4)):
            self.put(f"%%MatrixMarket matrix coordinate pattern general\n{2**39} {2**39} {entries}\n1 1\n")
            found, output = espalier(*self.command(), **little)
            self.assertEqual(found, code, output)
        self.assertIn(f"{2**39} vertices, of which 1 has an edge", output)


class OnSeveralRanks(EdgeFile):
    """A text of 2 MiB and more is read by all: nothing differs but seconds."""

    def check_ranks(self, *options):
        return self.one_answer(self.command(*options), self.output)

    def test_all_read(self):
        random = np.random.default_rng(5)
        lines = [f"{u} {v} {w:.3f}" for u, v, w in zip(*random.integers(0, 30000, (2, 480000)), random.random(480000))]
        for k in random.integers(0, len(lines), 2000):
            lines[k] += ENDS[k % len(ENDS)].rstrip("\n")
        self.put("\n".join(lines))
        self.assertGreater(self.input.stat().st_size, 7 << 20)
        self.assertEqual(self.check_ranks("--weights")[0], 0)
        self.check_ranks("--weights", "--symmetrize", "--drop-self-loops", "--duplicates", "mean")
        self.check_ranks("--weights", "--renumber", "--duplicates", "last")
        lines[400000] = lines[250000] = "7 eight 1"
        self.put("\n".join(lines))
        line = "\n".join(lines[:250000]).count("\n") + 2
        self.assertEqual(self.check_ranks("--weights")[1], [f"espalier: error: {self.input}:{line}: 'eight' is not a whole number"])

    def test_the_only_repeat_is_far_behind_the_first_part(self):
        lines = [f"{k} {k + 1} 1.0" for k in range(480000)]
        self.put("\n".join([*lines, lines[300000], lines[7]]))
        code, said, _ = self.check_ranks("--weights", "--duplicates", "refuse")
        self.assertEqual(code, 3)
        for line in (480001, 300001):
            self.assertRegex(said[0], f"{self.input}:{line}\\b")

    def test_a_matrix(self):
        self.KIND = "matrixmarket"
        random = np.random.default_rng(9)
        lines = [f"{u} {v} {w:.3f}" for u, v, w in zip(*random.integers(1, 30001, (2, 400000)), random.random(400000))]
        for kind, options in (("general", ()), ("symmetric", ("--duplicates", "mean")), ("general", ("--no-weights", "--symmetrize"))):
            head = f"%%MatrixMarket matrix coordinate real {kind}\n% {'a comment' * 1000}\n30000 30000 400000\n"
            self.put(head + "\n".join(lines))
            self.assertEqual(self.check_ranks(*options)[0], 0)
        self.assertGreater(self.input.stat().st_size, 6 << 20)
        lines[399999] = lines[250000]
        self.put(head + "\n".join(lines))
        self.assertIn(f"{self.input}:", self.check_ranks("--duplicates", "refuse")[1][0])
        for text, words in ((lines[1:], ": has 399999 entries, but its header announces 400000; is the download complete?"),
                            (["7 7 1", *lines], ":400004: one entry too many: the header announces 400000"),
                            ([*lines[:300000], "0 7 1", *lines[300001:-1]], ":300004: row 0 is out of range: 1 to 30000")):
            self.put(head + "\n".join(text))
            self.assertEqual(self.check_ranks()[1], [f"espalier: error: {self.input}{words}"])


if __name__ == "__main__":
    unittest.main()

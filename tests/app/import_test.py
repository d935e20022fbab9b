"""espalier import on folders that are not as one would wish: edges listed twice, bytes that are no numbers, too little memory.

Laws: with --duplicates sum, max, first the weights are those of numpy on the same lines, with and without --symmetrize, for every
number of ranks; what was merged is counted, lines and directions apart; refuse names the first duplicate of the file; every
damage is one sentence with file and line that ends in time.
"""

import gzip
import json
import os
import resource

import numpy as np

from tests.app.plain_graph import PAIR, read_graph
from tests.app.program import ProgramTest, arrays_of, espalier

COMBINE = {"sum": lambda group: np.float32(np.sum(group, dtype=float)), "mean": lambda group: np.float32(np.mean(group, dtype=float)),
           "max": max, "first": lambda group: group[0], "last": lambda group: group[-1], "count": len}


def lines_of_digits(digits):
    """Rows of many numbers from 0 to 9 as a file has them."""
    text = np.full((len(digits), 2 * digits.shape[1]), ord(","), np.uint8)
    text[:, ::2], text[:, -1] = digits + ord("0"), ord("\n")
    return text.tobytes()


class OgbFolder(ProgramTest):
    LAYOUT = "ogb"
    READ = staticmethod(arrays_of)

    def setUp(self):
        super().setUp()
        self.ogb, self.output = self.folder / "ogb", self.folder / "graph.h5"
        (self.ogb / "raw").mkdir(parents=True)

    def put(self, name, text):
        path = self.ogb / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = text if isinstance(text, bytes) else text.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)

    def put_edges(self, edges, weights=None, nodes=None):
        self.put("raw/num-node-list.csv", f"{nodes or 1 + max(map(max, edges))}\n")
        self.put("raw/edge.csv", "".join(f"{u},{v}\n" for u, v in edges))
        (self.ogb / "raw/edge-feat.csv").unlink(missing_ok=True)
        if weights is not None:
            self.put("raw/edge-feat.csv", "".join(f"{w}\n" for w in weights))

    def command(self, *options):
        return ("import", self.LAYOUT, self.ogb, "-o", self.output, "--overwrite", *options)

    def imported(self, *options, **more):
        self.said = self.succeed(*self.command(*options), **more)
        return self.READ(self.output)

    def refuse(self, code, words, *options, **more):
        """In a few lines, in time, and nothing is left behind."""
        self.output.unlink(missing_ok=True)
        output = self.fail_with(code, words, *self.command(*options), timeout=20, **more)
        self.assertLess(len(output), 700, "a message of a few lines")
        self.assertEqual([path for path in self.folder.iterdir() if path != self.ogb], [], "nothing is left behind")

    def refuse_contents(self, path, *cases):
        """(content of the file, words)"""
        for content, words in cases:
            path.write_bytes(content)
            with self.subTest(words):
                self.refuse(3, words)

    def entries(self):
        """{(row, column): weight} of the graph file; weight 1 where it has none."""
        of = read_graph(self.output).edges[PAIR]
        weights = np.ones(len(of.sources)) if of.weights is None else of.weights
        return dict(zip(zip(of.targets.tolist(), of.sources.tolist()), weights.tolist(), strict=True))


def merged(edges, weights, symmetrize, how):
    """The same by a dictionary of lists."""
    groups = {}
    for (u, v), weight in zip(edges, weights):
        groups.setdefault((v, u), []).append(np.float32(weight))
        if symmetrize:
            groups.setdefault((u, v), []).append(np.float32(weight))
    return {place: float(COMBINE[how](group)) for place, group in groups.items()}


class Duplicates(OgbFolder):
    def test_against_numpy(self):
        random = np.random.default_rng(13)
        edges = [tuple(pair) for pair in random.integers(0, 9, (150, 2)).tolist()]
        weights = random.integers(0, 64, 150) / 10
        self.put_edges(edges, weights, nodes=9)
        for how in COMBINE:
            for flags in ((), ("--symmetrize",)):
                for ranks in (1, 3) if how == "first" and flags else (1,):
                    self.succeed(*self.command("--edge-weight", 0, "--duplicates", how, *flags), ranks=ranks)
                    self.assertEqual(self.entries(), merged(edges, weights, bool(flags), how), (how, flags, ranks))
        self.succeed(*self.command("--edge-weight", 0, "--symmetrize"))
        self.assertEqual(self.entries(), merged(edges, weights, True, "sum"), "sum is the default")
        for ranks in (1, 2):
            self.succeed(*self.command("--duplicates", "count", "--no-edge-features"), ranks=ranks)
            self.assertEqual(self.entries(), merged(edges, weights, False, "count"), "without weights, too")

    def test_what_is_said_and_becomes_of_weights(self):
        self.assertIn("self loop", self.succeed("help", "import").partition("A + A^T")[2])
        weighted, both = ("--edge-weight", 0), ("--edge-weight", 0, "--symmetrize")
        # 0,1 three times; 1,0 once; 2,3 once; 3,2 twice; 4,4 twice; 4,0 once.
        repeats = [(0, 1), (0, 1), (1, 0), (0, 1), (2, 3), (3, 2), (3, 2), (4, 4), (4, 4), (4, 0)], range(1, 11)
        mirrored, partly = ([(0, 1), (1, 0), (1, 2), (2, 1)], [3, 3, 5, 5]), ([(0, 1), (1, 0), (1, 2), (0, 2)], [3, 4, 5, 5])
        looped, plain = ([(0, 1), (2, 2)], [3, 5]), ("--symmetrize", "--no-edge-features")
        for (edges, *weights), options, said, unsaid, entries in (
                (repeats, weighted, ["4 lines repeat an earlier one; weights are summed"], "both directions are", {}),
                (repeats, (*both, "--duplicates", "max"), ["4 lines repeat an earlier one, 2 pairs of vertices are listed in both directions",
                                                           "1 self loop meets its own reverse", "the largest weight stays"], "warning", {}),
                (repeats, ("--symmetrize", "--duplicates", "first"), ["no weights"], "warning",
                 {place: 1 for edge in repeats[0] for place in (edge, edge[::-1])}),
                (mirrored, both, ["warning", "2 pairs", "2 of them with one weight twice",
                                  "add up", "leave out --symmetrize", "--duplicates max"], "self loop", {(0, 1): 6}),
                (mirrored, weighted, [], "warning", {(0, 1): 3}),
                (mirrored, (*both, "--duplicates", "max"), [], "warning", {(0, 1): 3}),
                (partly, both, ["warning", "1 pair of vertices is listed", "0 of them with one weight twice", "--duplicates max"], "leave out", {}),
                (looped, both, ["1 self loop counts twice", "--drop-self-loops", "--duplicates max"], "symmetric already", {(2, 2): 10}),
                (looped, (*both, "--duplicates", "max"), [], "counts twice", {(2, 2): 5}),
                (looped, (*both, "--drop-self-loops"), [], "counts twice", {(2, 2): None}),
                (looped, weighted, [], "counts twice", {(2, 2): 5}),
                (looped, plain, [], "counts twice", {}),
                (([(0, 1), (1, 0), (2, 2)],), ("--symmetrize",), ["symmetric already: --symmetrize changes nothing"], "warning", {}),
                (([(0, 1), (1, 0), (2, 1)],), ("--symmetrize",), [], "symmetric already", {}),
                (([(0, 1), (1, 2), (2, 1), (3, 3)],), (), ["1 of 4 entries have no reverse"], "warning", {}),
                (([(0, 1), (1, 2)],), (), ["no edge is listed in both directions"], "warning", {})):
            with self.subTest(edges=edges, options=options):
                self.put_edges(edges, *weights)
                output = self.succeed(*(("-q",) if "warning" in said else ()), *self.command(*options))
                for words in said:
                    self.assertIn(words, output)
                self.assertNotIn(unsaid, output)
                found = self.entries()
                self.assertEqual({place: found.get(place) for place in entries}, entries)

    def test_refuse_names_the_first(self):
        for edges, options, words in (
                ([(0, 1), (2, 3), (3, 2), (4, 4), (0, 1), (2, 3)], (), ["edge.csv:5: repeats the edge of ", "edge.csv:1; ", "--duplicates"]),
                ([(0, 1), (2, 3), (3, 2), (4, 4), (0, 1)], ("--symmetrize",), ["edge.csv:3: reverses the edge of ", "edge.csv:2, ", "--symmetrize"]),
                ([(1, 0), (2, 2), (0, 1), (1, 0)], (), ["edge.csv:4: repeats the edge of ", "edge.csv:1; "]),
                ([(0, 1), (4, 4), (1, 2)], ("--symmetrize",), []), ([(0, 1), (1, 0), (1, 2)], (), []),
                ([(4, 4), (4, 4), (1, 2)], ("--drop-self-loops",), [])):
            self.put_edges(edges)
            options = ("--duplicates", "refuse", *options)
            with self.subTest(edges=edges):
                self.refuse(3, words, *options, ranks=2) if words else self.succeed(*self.command(*options))
        for words, *options in ((["--duplicates", "sum", "first", "refuse"], "--duplicates", "most"),
                                (["--duplicate-features max", "kept, first"], "--duplicate-features", "max"),
                                (["--duplicate-features sum: ", "--duplicates"], "--duplicate-features", "sum", "--duplicates", "refuse"),
                                (["--duplicate-features sum: ", "--no-edge-features"], "--duplicate-features", "sum", "--no-edge-features")):
            self.fail_with(2, words, *self.command(*options))


class Directions(OgbFolder):
    """What meta.json says of the edges, against what the edges say."""

    def test_one_direction_stored(self):
        self.put_edges([(0, 1), (1, 2), (2, 1)])
        for meta in ({"add_inverse_edge": "True"}, {"is_directed": False}, {"directed": "false"}):
            self.put("meta.json", json.dumps(meta))
            output = self.succeed("-q", *self.command())
            for words in ("warning", "meta.json", next(iter(meta)), "1 of 3", "--symmetrize"):
                self.assertIn(words, output)
        self.assertNotIn("warning", self.succeed(*self.command("--symmetrize")))
        for meta in ({"add_inverse_edge": "False", "directed": True}, {"directed": "yes", "is_directed": 7}, [], {"add_inverse_edge": None}):
            self.put("meta.json", json.dumps(meta))
            self.assertNotIn("warning", self.succeed(*self.command()))

    def test_both_directions_stored(self):
        self.put_edges([(0, 1), (1, 0)])
        self.put("meta.json", '{"directed": false, "add_inverse_edge": "False"}')
        self.assertNotIn("warning", self.succeed(*self.command()))


class Damage(OgbFolder):
    def test_ids_that_are_no_plain_numbers(self):
        self.put("raw/num-node-list.csv", "6000\n")
        for text, words in (("0,1\n1e3,2\n", ("edge.csv:2: '1e3'", "plain digits")), ("+5,1\n", ("edge.csv:1: '+5'", "plus")),
                            ("0x10,1\n", ("'0x10' is not a whole number",)), ("5.0,1\n", ("'5.0'", "plain digits")),
                            (",1\n", ("edge.csv:1: an empty field",)), ("99999999999999999999,1\n", ("out of range",)),
                            ("5 5,1\n", ("'5 5' is not a whole number",)), ('"5",1\n', ("is not a whole number",)),
                            ("0,1\n1\0,2\n", ("edge.csv:2: ", "zero byte")), (b"\xff\xfe0\x00,\x001\x00\n\x00", ("edge.csv:1: ", "UTF-16")),
                            ("x" * 1000 + ",1\n", ("x" * 60 + "...'",)), ("\x1b[2J,1\n", ("'?[2J'",))):
            self.put("raw/edge.csv", text)
            self.refuse(3, words)

    def test_blanks_and_the_mark_of_utf8_are_passed_over(self):
        self.put("raw/num-node-list.csv", b"\xef\xbb\xbf6\r\n")
        self.put("raw/edge.csv", b"\xef\xbb\xbf 5 ,\t1 \r\n0, 2\n")
        self.succeed(*self.command())
        self.assertEqual(set(self.entries()), {(1, 5), (2, 0)})
        self.put("raw/edge.csv", b"5,1\n\xef\xbb\xbf0,2\n")
        self.refuse(3, ["edge.csv:2: "])

    def test_each_line(self):
        """Of a folder with everything one line is wrong at a time."""
        good = {"raw/num-node-list.csv": "5\n", "raw/num-edge-list.csv": "6\n", "raw/edge.csv": "0,1\n3,1\n1,0\n0,1\n2,2\n4,1\n",
                "raw/edge-feat.csv": "9,0.5\n9,1\n9,2\n9,0.25\n9,4\n9,0\n", "raw/node-feat.csv": "1,0\n0.5,-2\n1e-3,7\n3,4\n0,0\n",
                "raw/node-label.csv": "2\n0\nnan\n1.0\n0\n", "split/time/train.csv": "4\n0\n", "split/time/valid.csv": "1\n",
                "split/time/test.csv": "3\n"}
        for name, text in good.items():
            self.put(name, text)
        for k, (name, text, words) in enumerate((
                ("raw/edge.csv", "0,1\n3,x\n1,0\n0,1\n2,2\n4,1\n", "edge.csv:2: 'x' is not a whole number"),
                ("raw/edge.csv", "0,1\n3,1\n1,0\n0,1\n2,5\n4,1\n", "edge.csv:5: vertex 5 is out of range"),
                ("raw/edge.csv", "0,1\n3,1\n-1,0\n0,1\n2,5\n4,1\n", "edge.csv:3: vertex -1 is out of range"),
                ("raw/edge.csv", "0,1\n3\n1,0\n0,1\n2,2\n4,1\n", "edge.csv:2: has only 1 fields"),
                ("raw/edge.csv", "0,1,7\n3,1\n1,0\n0,1\n2,2\n4,1\n", "edge.csv:1: has 3 fields, too many"),
                ("raw/edge.csv", "0,1\n\n1,0\n0,1\n2,2\n4,1\n", "edge.csv:2: is empty"),
                ("raw/edge.csv", "0,1\n3,1\n1,0\n", "has 3 lines, but there are 6 edges"),
                ("raw/node-feat.csv", "1,0\n0.5\n1,7\n3,4\n0,0\n", "node-feat.csv:2: has 1 fields, the first line has 2"),
                ("raw/node-feat.csv", "1,0\n0,nan\n1,7\n3,4\n0,0\n", "node-feat.csv:2: column 1 is nan"),
                ("raw/node-feat.csv", "1,0\n1,1\n1,7\n3,4\n", "has 4 lines, but there are 5 vertices"),
                ("raw/node-feat.csv", "1,0\n1,1\n1,7\n3,4\n1,1\n1,1\n", "node-feat.csv:6: one line too many"),
                ("raw/node-label.csv", "2\n0\nnan\n1.5\n0\n", "node-label.csv:4: label 1.5 is not a whole number"),
                ("raw/node-label.csv", "2\n-1\nnan\n1\n0\n", "node-label.csv:2: label -1"),
                ("raw/node-label.csv", "1,0\n1,2\n1,0\n0,0\n1,1\n", "node-label.csv:2: label 2 is not 0 or 1, nor nan"),
                ("raw/node-label.csv", "1,0\n1,0\n1,0\n0,255\n1,1\n", "node-label.csv:4: label 255 is not 0 or 1, nor nan"),
                ("split/time/train.csv", "4\n5\n", "train.csv:2: vertex 5 is out of range"),
                ("split/time/train.csv", "4\n2\n", "train.csv:2: vertex 2 has no label"),
                ("split/time/valid.csv", "1\n4\n", "valid.csv:2: vertex 4 is already in train"),
                ("raw/num-node-list.csv", "5\n5\n", "a second graph"))):
            with self.subTest(words):
                self.put(name, text)
                self.refuse(3, [words], ranks=1 + k % 3)
            self.put(name, good[name])
        (self.ogb / "raw/edge.csv.gz").write_bytes(gzip.compress(("1,2\n3,0\n" * 9000).encode())[:-20])
        self.refuse(3, ["damaged or cut off"], ranks=2)
        (self.ogb / "raw/edge.csv.gz").unlink()
        self.succeed(*self.command())

    def test_lines_without_end(self):
        self.put("raw/num-node-list.csv", "6\n")
        self.put("raw/edge.csv", "5" * 50_000_000 + ",1\n")
        self.refuse(3, ["edge.csv:1: '" + "5" * 60 + "...'"])
        self.put("raw/edge.csv", "1,2\n" + "1," * 25_000_000 + "\n")
        self.refuse(3, ["edge.csv:2: has 25000001 fields, too many"])
        (self.ogb / "raw" / "edge.csv").unlink()
        with gzip.open(self.ogb / "raw" / "edge.csv.gz", "wb", compresslevel=1) as file:
            for _ in range(300):
                file.write(bytes(1 << 20))
        self.refuse(3, ["edge.csv.gz:1: ", "longer than 64 MiB"])

    def test_what_is_no_file(self):
        self.put("raw/num-node-list.csv", "6\n")
        pipe = self.ogb / "raw" / "edge.csv.gz"
        os.mkfifo(pipe)
        self.refuse(3, ["edge.csv.gz is a pipe, not a file"])
        pipe.unlink()
        pipe.mkdir()
        self.refuse(3, ["edge.csv.gz is a folder, not a file"])
        pipe.rmdir()
        pipe.symlink_to("/dev/zero")
        self.refuse(3, ["edge.csv.gz is a device, not a file"])
        pipe.unlink()
        self.put("raw/edge.csv", "1,2\n")
        os.mkfifo(self.ogb / "meta.json")
        self.succeed(*self.command(), timeout=20)

    def test_weights_of_other_edges(self):
        for weights in ([1], [1, 2, 3]):
            self.put_edges([(0, 1), (1, 0)], weights)
            self.refuse(3, [f"edge-feat.csv: has {len(weights)} lines, but there are 2 edges"], "--edge-weight", 0, "--no-edge-features")

    def test_a_column_of_weights_that_is_not_there_is_found_before_the_edges_are_read(self):
        self.put_edges([(0, 1), (1, 0)], [1, 2])
        self.put("raw/edge.csv", "not an edge\n")
        self.fail_with(2, ["--edge-weight 1", "has 1 column"], *self.command("--edge-weight", 1))
        for column in ("-1", "x", "99999999999999999999", "1.5"):
            self.fail_with(2, [f"--edge-weight {column}", "number of a column"], *self.command("--edge-weight", column))


class Memory(OgbFolder):
    """Too little memory: exit code 4 and words that fit the command."""

    def short_of_memory(self, *command, most=1 << 30):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
        code, output = espalier(*command, preexec_fn=limit)
        self.assertEqual(code, 4, output)
        self.assertIn("out of memory", output)
        for key in ("sampler.", "model.", "grid."):
            self.assertNotIn(key, output, "words that help here")
        return output

    def test_import(self):
        self.put("raw/num-node-list.csv", "500000000\n")
        self.put("raw/edge.csv", "1,2\n")
        output = self.short_of_memory(*self.command())
        for words in ("one rank", "more memory", "--half"):
            self.assertIn(words, output)

    def test_import_triples(self):
        with gzip.open(self.ogb / "train.txt.gz", "wb", compresslevel=1) as file:
            for _ in range(10):
                file.write(b"a\tr\tb\n" * 1000000)
        output = self.short_of_memory("import", "triples", "--train", self.ogb / "train.txt.gz", "-o", self.output, most=1 << 28)
        self.assertIn("one rank", output)
        self.assertNotIn("--half", output)

    def test_generate(self):
        output = self.short_of_memory("generate", "planted", "--nodes", 1000000, "--features", 1000, "-o", self.output)
        for words in ("more ranks", "--features", "--half"):
            self.assertIn(words, output)

"""Ids and names of classes that a user gave: kept from file to file, asked for by infer, written by it.

Laws: what copies a graph copies them; --nodes means the vertices that have these ids, or says that it does not know; --csv has a line for
each prediction, ascending, with the softmax of the logits that infer writes, and the same bytes on any number of ranks.
"""

import csv
import shutil

import numpy as np

from tests.app.infer_test import CLASSES, JOB, VERTICES, InferTest
from tests.app.program import ProgramTest, arrays_of, job_text, put, set_at

NUMBERS = np.random.default_rng(3).permutation(VERTICES) * 7 - 90  # some of them are numbers of other vertices
TEXTS = np.array([f'p "{v}", x' if v % 2 else f"two\nlines {v}" if v % 20 == 0 else f"p{v}" for v in range(VERTICES)], "S")
NAMES = np.array(["cat, black", 'the "dog"', "eel", "ünze".encode()], "S")


def softmax(logits):
    share = np.exp(logits.astype(np.float64) - logits.max(1, keepdims=True))
    return (share.max(1) / share.sum(1)).tolist()


def lines_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


class Kept(ProgramTest):
    def check_copied(self, arrays, ranks):
        """Prepare copies these arrays."""
        put(self.graph, arrays)
        said = self.succeed("digest", self.graph, "--write")
        for name in arrays:
            self.assertIn(f"  /{name}\n", said)
        output = self.succeed("prepare", self.graph, "--split-links", "0.8,0.1,0.1", "-o", self.folder / "links.h5", ranks=ranks)
        self.assertNotIn("not copied", output)
        found = arrays_of(self.folder / "links.h5")
        for name, values in arrays.items():
            np.testing.assert_array_equal(found[name], values)
            self.assertEqual(found[name].dtype.kind, values.dtype.kind)

    def test_without_types(self):
        self.succeed("-q", "generate", "planted", "--nodes", VERTICES, "--classes", CLASSES, "-o", self.graph)
        self.check_copied({"nodes/ids": NUMBERS, "labels/names": NAMES}, ranks=3)
        said = self.succeed("info", self.folder / "links.h5", ranks=2).splitlines()
        self.assertIn(f"ids          numbers, {NUMBERS[0]} to {NUMBERS[-1]}", said)
        self.assertIn('class names  "cat, black", "the ""dog""", eel, ünze', said)

    def test_with_types(self):
        self.succeed("-q", "generate", "planted", "--types", "paper=60:4,author=30,field=5", "--relations", "author.writes.paper=200",
                     "--classes", 3, "-o", self.graph)
        self.check_copied({"types/paper/ids": np.arange(60) * -5, "types/author/ids": TEXTS[:30], "labels/paper/names": NAMES[:3]}, ranks=1)
        self.assertIn("ids          paper: numbers, 0 to -295", self.succeed("info", self.folder / "links.h5", ranks=2))


class Asked(InferTest):
    def name(self, ids=None, names=None):
        """Another file of the same graph, with these."""
        self.named = self.folder / "named.h5"
        shutil.copy(self.graph, self.named)
        put(self.named, {"nodes/ids": ids, "labels/names": names})
        return f"graph.file={self.named}"

    def refused(self, *arguments, **run):
        self.rows.unlink(missing_ok=True)
        super().refused(*arguments, **run)

    def nodes(self, *lines):
        path = self.folder / "nodes.txt"
        path.write_bytes(b"".join((line if isinstance(line, bytes) else str(line).encode()) + b"\n" for line in lines))
        return path


class Trained(Asked):
    def test_names_that_nobody_read_hide_no_other_graph(self):
        self.name(NUMBERS, NAMES)
        config = self.folder / "job.toml"
        config.write_text(job_text(self.named, self.folder / "out", *JOB, "run.checkpoint_every=1"))
        self.succeed("-q", "train", config, "train.epochs=1")
        self.name(TEXTS)  # other names are no other graph
        restart = f"run.restart={self.folder / 'out' / 'checkpoints' / 'latest'}"
        self.succeed("-q", "train", config, "train.epochs=2", restart, ranks=2)
        set_at(self.named, "nodes/features", (3, 0), lambda value: value + 1)
        self.fail_with(2, ["on another graph", "other data in /nodes/features"], "train", config, "train.epochs=3", restart)


class Nodes(Asked):
    def asked(self, *options, ranks=1):
        return self.inferred(*options, ranks=ranks)[0]["ids"].tolist()

    def test_by_texts(self):
        graph = self.name(TEXTS)
        nodes = self.nodes(TEXTS[599], TEXTS[4], b"", TEXTS[17] + b"\r", TEXTS[4])
        self.assertEqual(self.asked(graph, "--nodes", nodes, ranks=3), [4, 17, 599])
        self.assertEqual(self.asked(graph, "--nodes", self.nodes(599, " 4 "), "--named-by", "numbers"), [4, 599])
        self.refused(3, ["nodes.txt:2", "no vertex of the graph has the id '17'", "--named-by numbers"], graph, "--nodes", self.nodes(TEXTS[5], 17))

    def test_by_numbers(self):
        graph = self.name(NUMBERS)
        nodes = self.nodes(NUMBERS[500], NUMBERS[3])
        self.assertEqual(self.asked(graph, "--nodes", nodes, "--named-by", "ids", ranks=3), [3, 500])
        self.assertEqual(self.asked(graph, "--nodes", self.nodes(5, 9), "--named-by", "numbers"), [5, 9])
        self.refused(2, ["--nodes", "nodes.txt", "--named-by ids", "--named-by numbers"], graph, "--nodes", nodes, ranks=2)
        self.refused(3, ["nodes.txt:2", "no vertex", "'-91'"], graph, "--nodes", self.nodes(NUMBERS[3], -91), "--named-by", "ids")

    def test_ids_of_several_and_of_none(self):
        twice = NUMBERS.copy()
        twice[400] = twice[30]
        graph = self.name(twice)
        self.assertEqual(self.asked(graph, "--nodes", self.nodes(twice[31]), "--named-by", "ids"), [31])
        self.refused(3, ["nodes.txt:1", "2 vertices of the graph have the id", f"'{twice[30]}'"], graph, "--nodes", self.nodes(twice[30]),
                     "--named-by", "ids", ranks=3)
        self.refused(2, ["--named-by ids", "has no ids"], "--nodes", self.nodes(3), "--named-by", "ids")
        self.refused(2, ["--named-by", "--nodes or --links"], "--named-by", "ids")

    def test_wrong_files(self):
        for words, ids, names in ((["/nodes/ids has 599 rows", "600"], NUMBERS[:-1], None), (["/nodes/ids holds no texts"], NUMBERS * 0.5, None),
                                  (["/nodes/ids holds no texts"], NUMBERS.astype(np.uint64), None), (["/nodes/ids has 2 dim"], TEXTS.reshape(1, -1), None),
                                  (["/labels/names has 3 names", "4 classes"], None, NAMES[:3]), (["/labels/names holds no texts"], None, np.arange(4))):
            self.refused(3, ["named.h5", *words], self.name(ids, names))


class Predictions(Asked):
    def check(self, ids, names, *options, chosen=None):
        """The lines of one rank are numpy's, and those of three are the same."""
        texts = []
        for ranks, more in ((1, ()), (3, (self.order(),))):
            path = self.folder / f"{ranks}.csv"
            found, _ = self.inferred("--predictions", "--csv", path, *options, *more, ranks=ranks)
            texts.append(path.read_bytes())
        self.assertEqual(texts[0], texts[1])
        head, *lines = lines_of(path)
        self.assertEqual(head, ["id", "class", "probability"])
        vertices = range(VERTICES) if chosen is None else chosen
        self.assertEqual([line[0] for line in lines], [ids[v] for v in vertices])
        self.assertEqual([line[1] for line in lines], [names[c] for c in found["predictions"]])
        np.testing.assert_allclose([float(line[2]) for line in lines], softmax(found["logits"]), rtol=1e-8)

    def test_with_and_without_names(self):
        texts, names = [text.decode() for text in TEXTS], [name.decode() for name in NAMES]
        numbers = list(map(str, range(VERTICES)))
        self.check(numbers, numbers)
        self.check(texts, names, self.name(TEXTS, NAMES))
        graph, chosen = self.name(NUMBERS, NAMES), [0, 17, 599]
        self.check(list(map(str, NUMBERS)), names, graph, "--nodes", self.nodes(*NUMBERS[[599, 0, 17]]), "--named-by", "ids", chosen=chosen)
        self.inferred("--layer", 1, "--csv", self.folder / "layer.csv", graph, "--half")
        self.assertEqual(len(lines_of(self.folder / "layer.csv")), 1 + VERTICES)

    def test_places(self):
        path = self.folder / "out.csv"
        path.write_text("precious")
        self.refused(2, ["out.csv exists already", "--overwrite"], "--csv", path, ranks=2)
        self.assertEqual(path.read_text(), "precious")
        self.refused(2, ["is the file of -o"], "--csv", self.rows)
        self.refused(2, ["--csv", "is an input"], "--csv", self.graph, "--overwrite")
        self.refused(2, ["--csv", "--links"], "--csv", self.rows, "--links", self.nodes(3))


class SeveralLabels(ProgramTest):
    JOB = ("sampler.fanout=[3]", "model.layers=1", 'train.task="labels"', "train.epochs=3", "train.learning_rate=0.1")

    def test_a_line_for_each_label(self):
        self.succeed("-q", "generate", "planted", "--nodes", 300, "--classes", 4, "--labels", 3, "-o", self.graph)
        self.put({"labels/names": NAMES[:3]})
        self.train()
        path = self.folder / "labels.csv"
        texts = []
        for ranks in (1, 3):
            logits = self.inferred("--csv", path, ranks=ranks)[0]["logits"].astype(np.float64)
            texts.append(path.read_bytes())
        self.assertEqual(*texts)
        lines = lines_of(path)[1:]
        places = np.argwhere(logits > 0)
        self.assertEqual([(int(v), name) for v, name, _ in lines], [(v, NAMES[c].decode()) for v, c in places])
        np.testing.assert_allclose([float(line[2]) for line in lines], 1 / (1 + np.exp(-logits[logits > 0])), rtol=1e-8)
        self.assertTrue(0 < len(places) < logits.size)

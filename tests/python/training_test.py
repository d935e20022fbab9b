"""From arrays to accuracy: what write_graph writes the program reads, and what it writes comes
back.

Laws: the accuracy of predictions that were read is that of report.json and of infer; ids and names
of classes are the user's own; the same by one rank and two; a network learns from features of the
neighbours, so it sees the edges the right way round.
"""

import numpy as np

from tests.app.program import ProgramTest
from tests.python import DataTest

import espalier

NAMES = ["cat", "dog, or so", "eel\nor", "fox"]


def planted(vertices=300, edges=1500, seed=3):
    """Vertices of a class have edges from one another, and features that tell it with much
    noise."""
    random = np.random.default_rng(seed)
    classes = random.integers(0, 4, vertices)
    targets = random.integers(0, vertices, edges)
    sources = np.array(
        [
            random.choice(np.flatnonzero(classes == classes[v]))
            if random.random() < 0.9
            else random.integers(vertices)
            for v in targets
        ]
    )
    return (
        np.stack([sources, targets]),
        np.eye(4)[classes] + random.normal(0, 1, (vertices, 4)),
        classes,
        random.random(vertices),
    )


class Training(DataTest, ProgramTest):
    JOB = (
        "model.layers=2",
        "model.hidden=16",
        "model.dropout=0.0",
        "sampler.fanout=[10,10]",
        "sampler.batch_size=40",
        "train.learning_rate=0.05",
        "train.epochs=8",
        "train.batches_per_step=2",
        "run.threads=1",
    )

    def setUp(self):
        super().setUp()
        self.edges, self.x, self.classes, part = planted()
        self.splits = {
            "train": part < 0.5,
            "valid": (part >= 0.5) & (part < 0.7),
            "test": np.flatnonzero(part >= 0.7),
        }
        self.ids = [f"v{v}é" for v in range(300)]

    def write(self, y=None, **options):
        """The graph; of no labels it has texts."""
        y = np.array(NAMES)[self.classes] if y is None else y
        return espalier.write_graph(self.graph, self.edges, self.x, y, **self.splits, **options)

    def train_and_read(self, ranks):
        self.succeed("-q", "train", self.config, ranks=ranks)
        rows = self.infer_to("rows.h5", "--predictions", ranks=ranks)
        return espalier.read_predictions(rows), espalier.read_report(self.output)

    def test_arrays_to_accuracy(self):
        said = self.write(ids=self.ids, name="planted", directed=False)
        page = self.succeed("info", self.graph)
        for words in (
            f"{said.vertices}\n",
            f"{said.edges}, undirected (each both ways)",
            "labels       4 classes, 300 of 300",
            "name         planted",
        ):
            self.assertIn(words, page)
        for ranks in (1, 2):
            found, report = self.train_and_read(ranks)
            for split in ("train", "test"):
                self.assertEqual(found.accuracy(split), report[split]["accuracy"])
            self.assertGreater(found.accuracy("test"), 0.75)
            self.assertEqual(found.ids.tolist(), self.ids)
            self.assertEqual(found.names.tolist(), [NAMES[k] for k in found.classes])
            self.assertEqual(found.labels.tolist(), self.classes.tolist())
            self.assertEqual(
                np.flatnonzero(found.split == "test").tolist(), self.splits["test"].tolist()
            )
            self.assertTrue((0.25 <= found.probability).all() and (found.probability <= 1).all())

    def test_splits_with_names(self):
        """A job on one of them is scored by it, here too."""
        order = np.random.default_rng(3).permutation(300)
        other = dict(zip(("train", "valid", "test"), np.split(order, [120, 200])))
        y = np.array(NAMES)[self.classes]
        splits = {"first": self.splits, "other": other}
        espalier.write_graph(self.graph, self.edges, self.x, y, splits=splits, directed=False)
        self.write_job('graph.split="other"')
        found, report = self.train_and_read(2)
        self.assertEqual(found.accuracy("test"), report["test"]["accuracy"])
        self.assertEqual(np.flatnonzero(found.split == "test").tolist(), sorted(other["test"]))

    def test_a_message_comes_from_the_source(self):
        """Only sources have features that tell a class; turned round there is nothing to learn."""
        random = np.random.default_rng(0)
        half = np.arange(150)
        edges, classes = np.stack([half, half + 150]), np.tile(random.integers(0, 4, 150), 2)
        x = np.where(np.arange(300)[:, np.newaxis] < 150, np.eye(4)[classes], 0)
        is_target, in_train = np.arange(300) >= 150, random.random(300) < 0.5
        splits = {"train": is_target & in_train, "test": is_target & ~in_train}
        accuracy = []
        for way in (edges, edges[::-1]):
            espalier.write_graph(self.graph, way, x, classes, **splits, overwrite=True)
            accuracy.append(self.train_and_read(1)[0].accuracy("test"))
        self.assertEqual(accuracy[0], 1)
        self.assertLess(accuracy[1], 0.5)

    def test_types(self):
        users = np.repeat(np.arange(60), 10) % 60
        items = np.arange(600) % 300
        espalier.write_graph(
            self.graph,
            {("user", "buys", "item"): [users, items], ("item", "like", "item"): self.edges},
            {"item": self.x},
            {"item": np.array(NAMES)[self.classes]},
            **{name: {"item": ids} for name, ids in self.splits.items()},
            ids={"item": self.ids, "user": np.arange(60) * 7},
            directed=False,
        )
        self.assertIn("item.rev_buys.user", self.succeed("info", self.graph, ranks=2))
        self.write_job('model.kind="rgcn"')
        found, report = self.train_and_read(2)
        self.assertEqual(found.accuracy("test"), report["test"]["accuracy"])
        self.assertGreater(found.accuracy("test"), 0.7)
        self.assertEqual(found.ids.tolist(), self.ids)

    def test_some_vertices_alone(self):
        self.write(ids=np.arange(300)[::-1] * 11)
        whole, _ = self.train_and_read(1)
        asked = self.folder / "asked.txt"
        asked.write_text("".join(f"{(299 - v) * 11}\n" for v in (3, 299, 17)))
        few = espalier.read_predictions(
            self.infer_to("few.h5", "--predictions", "--nodes", asked, "--named-by", "ids")
        )
        self.assertEqual(few.vertices.tolist(), [3, 17, 299])
        for name, column in few.columns().items():
            self.assertEqual(column.tolist(), whole.columns()[name][[3, 17, 299]].tolist())
        self.assertEqual(few.ids.tolist(), [(299 - v) * 11 for v in (3, 17, 299)])

"""Several splits in one graph file, /split/NAME/train and so on, and the key graph.split.

Laws: training by graph.split = x is, to the last bit and for every number of ranks, training on the file whose only split is x, with a
name or without; a file without names is read as ever; an order, links and digests keep all splits; every bad input is one message, with
the names that are there.
"""

import numpy as np

from tests.app.import_test import OgbFolder
from tests.app.program import ProgramTest, arrays_of, attributes_of, awkward_graph, contents, forget_digests, put, set_at

PARTS = ("train", "valid", "test")
SPLITS = ("", "first", "second.2")


def split_of(vertices, seed):
    """Three parts of some of the vertices."""
    ids = np.random.default_rng(seed).permutation(vertices)
    sizes = np.cumsum([vertices // 3 + seed, vertices // 5, vertices // 4 - seed])
    return dict(zip(PARTS, map(np.sort, np.split(ids, sizes)[:3])))


class SplitNames(ProgramTest):
    JOB = ("sampler.fanout=[4, 3]", "sampler.batch_size=8", "model.layers=2", "model.hidden=8", "train.epochs=2", "train.learning_rate=0.01",
           "train.batches_per_step=2", "train.reproducible=true", "run.threads=1", 'run.device="cpu"', "run.checkpoint_every=1")

    def generate(self, *typed):
        """A graph of 50 vertices; with types one that the program makes."""
        if typed:
            return self.succeed("-q", "generate", "planted", *typed, "--classes", 3, "-o", self.graph, "--overwrite")
        return awkward_graph(self.graph)

    def put_splits(self, path, splits, within="", vertices=50):
        """In place of those that are there; {name: seed}. The file has no digest then."""
        forget_digests(path)
        put(path, {f"split/{within}".rstrip("/"): None, **{
            f"split/{within}{name + '/' if name else ''}{part}": ids
            for name, seed in splits.items() for part, ids in split_of(vertices, seed).items()}})

    def plain(self, splits=dict(zip(SPLITS, range(3)))):
        self.generate()
        self.put_splits(self.graph, splits)

    def trained(self, *keys, ranks=1):
        """All that a training says of itself, but for times, and its weights."""
        report = self.train(*keys, ranks=ranks)
        return self.history(report) + [[epoch.get("train") for epoch in report["epochs"]], {
            name: array.tolist() for name, array in arrays_of(self.output / "weights.h5").items()}]


class Laws(SplitNames):
    def check_law(self, within="", vertices=50, keys=()):
        self.put_splits(self.graph, dict(zip(SPLITS, range(3))), within, vertices)
        named = self.trained(*keys, "graph.split=first")
        self.assertEqual(self.report(self.output)["graph"]["split"], "first")
        self.assertEqual(self.trained(*keys, "graph.split=first", ranks=2), named)
        without = self.trained(*keys)
        self.assertNotIn("split", self.report(self.output)["graph"])
        self.assertNotEqual(named, without)
        for alone, seed, run in (("", 0, without), ("first", 1, named), ("", 1, named)):
            self.put_splits(self.graph, {alone: seed}, within, vertices)
            self.assertEqual(self.trained(*keys, ranks=1 + seed), run, (alone, seed))

    def test_a_split_by_name_is_that_split_alone(self):
        self.generate()
        self.check_law()

    def test_and_of_a_type(self):
        self.generate("--types", "paper=90:5,author=70", "--relations", "author.writes.paper=200,paper.cites.paper=300")
        self.check_law("paper/", 90, ("model.kind=rgcn", "model.bases=2", "model.embedding=3"))

    def test_all_commands_know_the_split(self):
        self.plain()
        keys = (self.config, "graph.split=first")
        sizes = [len(ids) for ids in split_of(50, 1).values()]
        self.assertIn(f"{sizes[0]} / {sizes[1]} / {sizes[2]} vertices to train / validate / test of split first", self.succeed("train", *keys))
        self.assertIn(f"{sizes[0]} to train of split first", self.succeed("plan", *keys, "--ranks", 2))
        self.assertEqual(self.planned("graph.split=first", ranks=2)["graph"]["split"], "first")
        sampled = self.report(self.output)["epochs"][0]["sample_digest"]
        self.assertIn("of 8 of split first", self.succeed("sample", *keys))
        self.assertEqual(self.report(self.output)["epochs"][0]["sample_digest"], sampled)
        self.assertIn(f"of {sizes[2]} vertices of split first", self.succeed(*self.infer_words("graph.split=first", "--metrics")))
        about = attributes_of(self.folder / "rows.h5")
        self.assertEqual((about["split"], about["test_vertices"]), (b"first", sizes[2]))

    def test_an_inference_needs_it_only_to_judge(self):
        self.plain()
        keys = ("graph.split=first", self.order(clusters=8), "sampler.groups=2")
        self.train(*keys)
        self.put_splits(self.graph, {"other": 1})
        self.fail_with(2, ['no split "first"', "other"], *self.infer_words(*keys, "--metrics"))
        self.infer_to("rows.h5", *keys)
        put(self.graph, {"split": None})
        self.infer_to("rows.h5", *keys)

    def test_info_lists_them(self):
        self.plain()
        lines = [line.split(None, 1)[1] for line in self.succeed("info", self.graph, ranks=2).splitlines() if line.startswith("splits")]
        sizes = [tuple(map(len, split_of(50, seed).values())) for seed in range(3)]
        self.assertEqual(lines, [f"{name + ': ' if name else ''}train {a}, valid {b}, test {c}" for name, (a, b, c) in zip(SPLITS, sizes)])
        self.generate("--types", "paper=90:5,author=70", "--relations", "author.writes.paper=200")
        self.put_splits(self.graph, {"first": 1, "other": 2}, "paper/", 90)
        output = self.succeed("info", self.graph)
        for name, seed in (("first", 1), ("other", 2)):
            a, b, c = map(len, split_of(90, seed).values())
            self.assertIn(f"splits       paper: {name}: train {a}, valid {b}, test {c}", output)

    def test_orders_and_links_keep_all_of_them(self):
        self.plain()
        order, links = self.folder / "order.h5", self.folder / "links.h5"
        self.succeed("-q", "partition", self.graph, "-o", order, "--clusters", 8, ranks=2)
        union = {v for seed in range(3) for v in split_of(50, seed)["train"]}
        self.assertIn(f"splits       train {len(union)},", self.succeed("info", order))
        key = "graph.split=second.2"
        self.assertEqual(self.trained(key, f"graph.order={order}", ranks=2), self.trained(key))
        seen = []
        for ranks in (1, 3):
            self.succeed("-q", "prepare", self.graph, "--split-links", "0.8,0.1,0.1", "-o", links, "--overwrite", ranks=ranks)
            self.assertEqual({name: ids.tolist() for name, ids in arrays_of(links, "split").items()},
                             {name: ids.tolist() for name, ids in arrays_of(self.graph, "split").items()})
            seen.append(contents(links))
        self.assertEqual(*seen)

    def test_links_are_of_none(self):
        """Not even of the only one."""
        self.plain({"first": 1})
        links = self.folder / "links.h5"
        self.succeed("-q", "prepare", self.graph, "--split-links", "0.8,0.1,0.1", "-o", links)
        keys = (f"graph.file={links}", "train.task=links", "train.epochs=1")
        said = self.succeed("train", self.config, *keys, "run.restart=never")
        said += self.succeed(*self.infer_words(*keys, "--metrics"))
        self.assertNotIn("split first", said)
        self.assertNotIn("split", self.report(self.output)["graph"])
        self.assertNotIn("split", attributes_of(self.folder / "rows.h5"))


class Refusals(SplitNames):
    def refuse(self, code, words, *keys, command="train", ranks=1):
        self.fail_with(code, [str(self.graph), *words], "-q", command, self.config, *keys, ranks=ranks)

    def test_names(self):
        self.plain()
        for command in ("train", "sample"):
            self.refuse(2, ['no split "third"', "first, second.2"], "graph.split=third", command=command, ranks=2)
        self.fail_with(2, ["graph.split", "train.task"], "train", self.config, "train.task=links", "graph.split=first")
        self.plain({"first": 1, "second.2": 2})
        self.refuse(2, ["graph.split", "first, second.2"])
        self.fail_with(2, ["graph.split", "first, second.2"], "plan", self.config, "--ranks", 2)
        self.plain({"": 1})
        self.refuse(2, ['no split "first"', "none there has a name"], "graph.split=first")

    def test_what_is_in_them(self):
        for name, value, words in (
                ("b/train", [3, 2], ["/split/b/train", "ascending"]), ("b/test", [0, 50], ["/split/b/test", "50"]),
                ("b/valid", np.array([True] * 50), ["/split/b/valid", "mask"]), ("b/test", [0, 1], ["/split/b/train", "/split/b/test"]),
                ("b/test", [7], ["vertex 7", "/split/b/test", "no label"]), ("a b/train", [3], ['"a b"', "letters"]),
                ("test/train", [3], ['"test"', "not train"]), ("b/c/train", [3], ["/split/b/c/train", "/split/train"])):
            with self.subTest(name=name, value=value):
                self.plain({"a": 1})
                set_at(self.graph, "nodes/labels", 7, -1)
                put(self.graph, {**dict.fromkeys((f"split/a/{part}" for part in PARTS), lambda ids: ids[ids != 7]),
                                 **({"split/b/train": [0, 2]} if name == "b/test" else {}), f"split/{name}": value})
                self.refuse(3, words, "graph.split=a")

    def test_damage_is_noticed_in_splits_that_do_not_count(self):
        self.plain()
        self.succeed("-q", "digest", self.graph, "--write")
        parts = {part: set(ids.tolist()) for part, ids in arrays_of(self.graph, "split/first").items()}
        free = min(set(range(50)).difference(*parts.values()))
        set_at(self.graph, "split/first/test", ..., sorted(parts["test"] - {max(parts["test"])} | {free}))
        self.refuse(3, ["/split/first/test"])
        self.fail_with(3, ["/split/first/test"], "digest", self.graph)

    def test_a_checkpoint_of_another_split(self):
        self.plain()
        self.succeed("-q", "train", self.config, "graph.split=first")
        (self.output / "report.json").unlink()
        restart = ("-q", "train", self.config, "train.epochs=3")
        for keys, here in (((), '""'), (("graph.split=second.2",), "second.2"), ((f"run.restart={self.output}",), '""')):
            self.fail_with(2, ["graph.split = ", "first", "there and", here, "Put the key back"], *restart, *keys, overwrite=False)
        self.succeed(*restart, "graph.split=first", overwrite=False)


class Imports(OgbFolder):
    def setUp(self):
        super().setUp()
        self.put_edges([(0, 1), (2, 3), (3, 0)], nodes=4)
        self.put("raw/node-label.csv", "1\n0\n1\n0\n")
        self.splits = {"one": ([0, 2], [1], [3]), "two": ([3], [0], [1, 2])}
        for name, parts in self.splits.items():
            for part, ids in zip(PARTS, parts):
                self.put(f"split/{name}/{part}.csv", "".join(f"{v}\n" for v in ids))

    def imported(self, split, **more):
        output = self.succeed(*self.command("--split", split), **more)
        return output, {name: ids.tolist() for name, ids in arrays_of(self.output, "split").items()}

    def test_several_keep_their_names(self):
        for ranks in (1, 2):
            output, found = self.imported("two,one", ranks=ranks)
            self.assertEqual(found, {f"{name}/{part}": ids for name, parts in self.splits.items() for part, ids in zip(PARTS, parts)})
            self.assertIn("splits     two: 1 train, 1 valid, 2 test", output)
        self.assertEqual(self.imported("two")[1], dict(zip(PARTS, self.splits["two"])))

    def test_refusals(self):
        self.refuse(3, ["--split three: no such folder", "there is one, two"], "--split", "one,three")
        self.refuse(2, ["--split one,one", "twice"], "--split", "one,one")
        self.refuse(2, ["--split one,", "name"], "--split", "one,")
        self.refuse(2, ["--split one,a b", "letters"], "--split", "one,a b")
        self.refuse(2, ["--split one,.", "letters"], "--split", "one,.")

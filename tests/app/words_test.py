"""What the program says where a person errs or should look twice.

Laws: a key of another system is answered by its meaning; a command that wants a kind lists its kinds; a mask in place of ids
and metrics without labels are named for what they are, with what to write; a loss that grows names the keys that are set beyond what is
usual; what an import merged has a line of its own; one of a thing is singular.
"""

import re

import numpy as np

from tests.app.program import PROGRAM, ProgramTest, awkward_graph, espalier, put, read, set_at, write_graph

N = 50


class Words(ProgramTest):
    JOB = ("sampler.fanout=[2]", "model.layers=1", "train.epochs=2", 'run.restart="never"', 'run.device="cpu"', "sampler.batch_size=8")
    GENERATE = staticmethod(awkward_graph)

    def said(self, *keys, **more):
        """By a training."""
        return self.succeed("train", self.config, *keys, **more)


class Names(Words):
    def test_keys_of_other_systems(self):
        # base/config_test has the names; here is where they may stand.
        for name, key in (("train.lr", "train.learning_rate"), ("num-layers", "model.layers"), ("BS", "sampler.batch_size"),
                          ("grid.scheduel", "grid.schedule")):
            self.fail_with(2, [f"unknown key {name}; did you mean {key}?"], "train", self.config, f"{name}=1")
        self.fail_with(2, ["unknown key nodes; the launcher says how many ranks there are: mpirun -np N"], "train", self.config, "nodes=4")
        for text, place in (("lr = 0.1\n", "job.toml:1: unknown key lr"), ("[optim]\nlr = 0.1\n", "job.toml:2: unknown key optim.lr")):
            self.config.write_text(text)
            self.fail_with(2, [f"{place}; did you mean train.learning_rate?"], "train", self.config)

    def test_kinds_of_import_and_generate(self):
        self.fail_with(2, ["import csv: there is no such kind; import knows `ogb` (a folder in", "`mag240m` (", "`espalier help import`"],
                       "import", "csv", "edges.csv", "-o", self.folder / "new.h5")
        self.fail_with(2, ["import: name a kind; import knows `ogb` (", "`triples` ("], "import")
        self.fail_with(2, ["generate erdos: there is no such kind; generate knows `rmat` (", "`planted` ("], "generate", "erdos")
        self.fail_with(2, ["import knows `ogb` (", "`mag240m` ("], "import", self.folder, "-o", self.folder / "new.h5")

    def test_pages_of_help(self):
        self.fail_with(2, ["there is no command 'confg'; did you mean 'config'?"], "help", "confg")
        self.fail_with(2, ["there is no command 'confg'; did you mean 'info'?"], "confg")

    def test_a_log_has_no_line_that_rewrites_itself(self):
        """Nor where a shell, `time` or `numactl` stands between the launcher and the program."""
        for between in ((), ("/bin/sh", "-c", '"$@"; exit $?', "sh")):
            code, output = espalier(*between[1:], *((PROGRAM,) if between else ()), "train", self.config, "--overwrite", overwrite=False,
                                    program=between[0] if between else PROGRAM)
            self.assertEqual(code, 0, output)
            self.assertNotIn("\r\x1b", output)
            self.assertNotIn(": step ", output)


class Data(Words):
    def test_links_beside_no_labels(self):
        for types in ((), ("--types", "paper=60:4,author=40:2", "--relations", "paper.cites.paper=200,author.writes.paper=90")):
            whole = self.folder / "whole.h5"
            self.succeed("-q", "generate", "planted", *(types or ("--nodes", 60, "--features", 4)), "--classes", 2, "-o", whole, "--overwrite")
            self.succeed("-q", "prepare", whole, "--split-links", "0.8,0.1,0.1", "-o", self.graph, "--overwrite")
            self.put({"nodes/paper/labels" if types else "nodes/labels": None, "split": None})
            self.fail_with(3, ["so there is nothing to learn but its links: train.task = \"links\""], "train", self.config)
        words = self.succeed("train", self.config, "train.task=links", "model.kind=rgcn", "model.bases=1")
        self.assertRegex(words, r"(?m)^graph .* edges, 4 features of paper, 2 of author, ")

    def test_where_no_message_arrives(self):
        said = "the network sees no neighbours"
        self.assertNotIn(said, self.said())
        # Every edge leads away from what is trained on.
        write_graph(self.graph, [[]] * 10 + [[v] for v in range(10)], np.eye(20, 3, dtype=np.float32), np.arange(20) % 2, range(10), [10], [11])
        for keys, ranks in (((), 1), (("model.kind=gcn",), 3)):  # gcn hears itself
            self.assertEqual(self.said(*keys, ranks=ranks).count(f"no edge leads to any of the 10 vertices to train on: {said}"), 1)
        self.assertIn("no in-edge   10 vertices, 10 of 10 to train\n", self.succeed("info", self.graph, ranks=2))
        typed = ("--types", "paper=30:4,author=20:2", "--relations", "paper.by.author=60", "--classes", 2, "-o", self.graph, "--overwrite")
        self.succeed("-q", "generate", "planted", *typed, "--no-inverse")
        self.assertIn(f"no relation leads to type paper, which is trained on: {said}", self.said("model.kind=rgcn", "model.bases=1"))
        self.assertIn(" to train; no relation leads to them\n", self.succeed("info", self.graph))
        self.succeed("-q", "generate", "planted", *typed)
        self.assertNotIn(said, self.said("model.kind=rgcn", "model.bases=1"))

    def test_masks_in_a_split(self):
        mask = np.arange(N) % 3 == 0
        for kind, wanted in ((bool, mask), (np.uint8, ~mask), (np.int64, np.zeros(N)), (np.int64, mask)):
            put(self.graph, {"split/train": wanted.astype(kind)})
            self.fail_with(3, ["/split/train", "a mask", "write numpy.flatnonzero(mask)"], "train", self.config, ranks=2)
        for ids in ([0, 0, 1], [1, 0]):
            put(self.graph, {"split/train": ids})
            self.assertNotIn("mask", self.fail_with(3, ["not strictly ascending"], "train", self.config))

    def test_metrics_without_labels(self):
        self.said()
        put(self.graph, {"nodes/labels": None})
        self.fail_with(3, ["--metrics: ", "has no labels (/nodes/labels) to judge by; leave --metrics out"], *self.infer_words("--metrics"), ranks=2)
        self.assertFalse((self.folder / "rows.h5").exists())
        self.infer_to("rows.h5")

    def test_edges_that_were_merged(self):
        raw = self.folder / "ogb" / "raw"
        raw.mkdir(parents=True)
        (raw / "num-node-list.csv").write_text("3\n")
        (raw / "edge.csv").write_text("0,1\n0,1\n1,2\n")
        output = self.succeed("import", "ogb", self.folder / "ogb", "-o", self.folder / "new.h5")
        self.assertRegex(output, r"(?m)^espalier: warning: duplicates 1 line repeats an earlier one; .*To keep how often .*--duplicates count$")
        self.assertRegex(output, r"(?m)^edges      3 lines in .* s, 0 reversed edges added, 0 self loops dropped, 1 duplicate merged: 2 entries$")
        (raw / "edge-feat.csv").write_text("1\n1\n1\n")
        output = self.succeed("import", "ogb", self.folder / "ogb", "-o", self.folder / "new.h5", "--overwrite", "--edge-weight", 0)
        self.assertNotIn("To keep", output)
        self.assertEqual(read(self.folder / "new.h5", "graph/weights").tolist(), [2, 1])


class Losses(Words):
    def diverge(self, words, *keys):
        return self.fail_with(6, [" is not finite in epoch ", *words], "train", self.config, "train.epochs=30",
                              "model.layers=2", "sampler.fanout=[2,2]", *keys)

    def test_the_key_that_is_set_unusually_is_named(self):
        self.diverge(["; lower train.learning_rate (1e+30; 1 is a lot)"], "train.optimizer=sgd", "train.learning_rate=1e30")
        output = self.diverge(["; lower train.weight_decay (1e+30; 0.1 is a lot)"], "train.optimizer=sgd", "train.weight_decay=1e30")
        self.assertNotIn("train.learning_rate", output)
        self.diverge(["; lower train.weight_decay (1e+30; 0.1 is a lot), then lower train.learning_rate (20; 1 is a lot)"],
                     "train.optimizer=sgd", "train.weight_decay=1e30", "train.learning_rate=20.0")

    def test_embeddings(self):
        put(self.graph, {"nodes/features": None})
        output = self.diverge(["; lower train.embedding_rate (1e+38; 0.1 is a lot)"], "model.embedding=4", "train.embedding_rate=1e38")
        self.assertNotIn("train.learning_rate", output)

    def test_features_that_are_huge(self):
        set_at(self.graph, "nodes/features", ..., 3e38)
        self.diverge(["lower train.learning_rate (0.003), or normalise the features (graph.feature_norm)"])

    def test_a_loss_that_ends_above_where_it_began(self):
        said = re.compile(r"warning: the loss of epoch (\d+), [0-9.]+, is above that of epoch 1, [0-9.]+; (.*)")
        set_at(self.graph, "nodes/features", ..., 1)
        output = self.said("train.optimizer=sgd", "train.learning_rate=30.0", "train.lr_warmup=8", "train.epochs=8")
        found = said.search(output)
        self.assertTrue(found, output)
        self.assertEqual(found.groups(), ("8", "lower train.learning_rate (30; 1 is a lot), or normalise the features (graph.feature_norm)"))
        self.assertGreater(output.index(found.group(0)), output.index("test accuracy"))
        self.assertLessEqual(len(output[output.index(found.group(0)):].splitlines()), 3, output)
        self.assertNotRegex(self.said("train.epochs=8"), said)
        self.assertNotRegex(self.said("train.epochs=1", "train.learning_rate=30.0"), said)


class Numbers(Words):
    ONES = re.compile(r"\b1 (?:block |input |training |reversed )?(?:ranks|rows|copies|layers|batches|steps|epochs|threads|features|classes|labels|edges|"
                      r"nodes|vertices|evaluations|clusters|parameters|lines|entries|relations|types|columns|minutes)\b")

    def check(self, output):
        self.assertNotRegex(output, self.ONES)
        return output

    def test_one_of_a_thing(self):
        output = self.check(self.said("train.epochs=1", "sampler.batch_size=50"))
        self.assertIn("grid    1 rank as 1 block row x 1 copy, ", output)
        self.assertIn("job     1 layer of sage, ", output)
        output = self.check(self.succeed("sample", self.config, "sampler.batch_size=50"))
        self.assertIn("1 rank as 1 block row x 1 copy", output)
        self.assertIn("  1 batch  ", output)
        self.assertIn("4 ranks as 2 block rows x 2 copies", self.said("grid.replication=2", ranks=4))
        self.assertIn("2 ranks as 1 block row x 2 copies", self.said("grid.replication=2", ranks=2))
        self.check(self.succeed("plan", self.config, "--ranks", 1, "sampler.batch_size=50", "train.epochs=1"))
        self.check(self.said("train.epochs=5", "train.early_stop=1", "train.learning_rate=1e-30"))

    def test_a_graph_of_one_of_each(self):
        write_graph(self.graph, [[0]], np.ones((1, 1), np.float32), [0], [0], [], [])
        self.assertIn("1 node, 1 edge, 1 feature, 1 class;", self.check(self.said()))
        for command in (("info", self.graph), ("info", self.graph, "--ranks", 1),
                        ("partition", self.graph, "--method", "block", "--clusters", 1), ("info", self.folder / "graph.order.h5"),
                        self.infer_words("--metrics")):
            self.check(self.succeed(*command))
        self.check(self.succeed("generate", "planted", "--types", "a=2:1", "--relations", "a.r.a=1", "--no-inverse", "--classes", 1, "--homophily", 1,
                                "-o", self.folder / "one.h5"))
        self.check(self.succeed("info", self.folder / "one.h5"))

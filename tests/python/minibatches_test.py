"""Minibatches that the program writes and Python reads.

Laws: a batch is a function of (seed, epoch, batch), to the last bit, whatever ranks, replication,
bulk, schedule and order wrote it; its edges are the graph's, a row has min(fanout, degree) of them,
and all of them are those that the report counts; labels and features are the graph file's; a folder
is finished or it is none; what cannot be written or read is refused in one line, and nothing stays.
"""

import json
import os
import pickle

import h5py
import numpy as np

from tests.app.program import (
    ROOT, ProgramTest, awkward_graph, needs_emulation, on_gpus, put, read, run_python, small_files, write_graph,
)  # fmt: skip
from tests.python import DataTest, needs
from tests.python.loops import entries_of_file

import espalier

GRIDS = (
    (1, "sampler.bulk=1"),
    (2, 'grid.schedule="pull"'),
    (2, "grid.replication=2"),
    (4, "grid.replication=2", "sampler.bulk=3", 'graph.order="order.h5"'),
)


def bits(minibatch):
    """All that a batch is."""
    arrays = [minibatch.seeds, minibatch.vertices, minibatch.y]
    arrays += list(minibatch.x.values()) if minibatch.types else [minibatch.x]
    arrays += [places for _, places in sorted((minibatch.types or {}).items())]
    for block in minibatch.blocks:
        arrays += [block.indptr, block.indices, block.values, block.shape, block.relations]
    return (minibatch.epoch, minibatch.batch) + tuple(
        None if array is None else (np.asarray(array).dtype.str, np.asarray(array).tobytes())
        for array in arrays
    )


def link_bits(minibatch):
    links = [(of.dtype.str, of.shape, of.tobytes()) for of in vars(minibatch.links).values()]
    return (*bits(minibatch), *links)


class Written(DataTest, ProgramTest):
    JOB = (
        "model.layers=2",
        "sampler.fanout=[3,2]",
        "sampler.batch_size=4",
        "train.seed=3",
        "run.threads=1",
    )

    def setUp(self):
        super().setUp()
        awkward_graph(self.graph)
        self.batches = self.folder / "batches"

    def write(self, *options, to=None, epochs=1, **run):
        to = to or self.batches
        return self.succeed(
            "-q", "sample", self.config, "--write", to, "--epochs", epochs, *options, **run
        )

    def read(self, **options):
        return espalier.Minibatches(self.batches, **options)

    def all_bits(self, of=bits):
        return [of(batch) for batch in self.read(rows=True)]

    def planted(self, *words, to=None):
        self.succeed("-q", "generate", "planted", "-o", to or self.graph, "--overwrite", *words)


class Laws(Written):
    def test_bits_do_not_depend_on_the_grid(self):
        self.succeed(
            "-q", "partition", self.graph, "-o", self.folder / "order.h5", "--clusters", 5
        )
        self.write(epochs=2)
        expected = self.all_bits()
        self.assertEqual(len(set(expected)), 12)
        for ranks, *grid in GRIDS:
            self.write(*grid, epochs=2, ranks=ranks, cwd=self.folder)
            self.assertEqual(self.all_bits(), expected, (ranks, grid))
        report = self.report(self.output)
        self.assertEqual(
            self.read().about["sample_digests"],
            [epoch["sample_digest"] for epoch in report["epochs"]],
        )
        self.succeed("-q", "sample", self.config, "--epochs", 2)
        for with_folder, without in zip(report["epochs"], self.report(self.output)["epochs"]):
            self.assertEqual(with_folder["sample_digest"], without["sample_digest"])

    def test_a_graph_without_edges_has_batches_and_is_learnt(self):
        # sample/every_sampler_test has what their blocks say of values and relations.
        features, labels = np.arange(12).reshape(4, 3) / 7.0, [0, 1, 0, 1]
        for k, kind in enumerate(("graphsage", "labor", "ladies", "fastgcn", "subgraph")):
            weights = [] if k % 2 else None
            write_graph(self.graph, [[]] * 4, features, labels, [0, 1], [2], [3], weights)
            fanout = "[-1,-1]" if kind == "subgraph" else "[3,2]"
            job = (f"sampler.kind={kind}", f"sampler.fanout={fanout}", "sampler.batch_size=1")
            self.write(*job, ranks=1 + k % 2)
            for batch in self.read():
                self.assertEqual([block.values.tolist() for block in batch.blocks], [[], []])
            self.succeed("-q", "train", self.config, *job, "train.epochs=1", ranks=2 - k % 2)

    def test_a_batch_is_a_sample_of_the_graph(self):
        self.write(epochs=2, ranks=2)
        indptr, indices, labels, train, features = read(
            self.graph, "graph/indptr", "graph/indices", "nodes/labels", "split/train", "nodes/features"
        )
        rows = [indices[begin:end].tolist() for begin, end in zip(indptr, indptr[1:])]
        source, report = self.read(rows=True), self.report(self.output)
        self.assertEqual((source.epochs, source.batches, len(source)), (2, 6, 12))
        for epoch in (1, 2):
            seen, edges = [], 0
            for k in source.of_epoch(epoch):
                batch = source[k]
                self.assertEqual((batch.epoch, batch.batch), (epoch, k % 6))
                seen += batch.seeds.tolist()
                self.assertEqual(batch.y.tolist(), labels[batch.seeds].tolist())
                np.testing.assert_array_equal(batch.x, features[batch.vertices])
                self.assertEqual(len(set(batch.vertices.tolist())), len(batch.vertices))
                self.assertEqual(batch.blocks[0].shape[1], len(batch.vertices))
                self.assertEqual(batch.blocks[1].shape[0], len(batch.seeds))
                self.assertEqual(batch.blocks[0].shape[0], batch.blocks[1].shape[1])
                for block, fanout in zip(batch.blocks, (2, 3)):
                    edges += len(block.indices)
                    for row in range(block.shape[0]):
                        place = slice(block.indptr[row], block.indptr[row + 1])
                        picked = batch.vertices[block.indices[place]].tolist()
                        of = rows[batch.vertices[row]]
                        self.assertEqual(len(picked), min(fanout, len(of)))
                        self.assertLessEqual(set(picked), set(of))
                        self.assertEqual(len(set(picked)), len(picked))
                        for value in block.values[place]:
                            self.assertEqual(value, np.float32(1 / len(picked)))
            self.assertEqual(sorted(seen), sorted(train))
            self.assertEqual(edges, report["epochs"][epoch - 1]["sampled_edges"])

    def test_what_is_not_learnt_has_no_label(self):
        """Batches of random sets of all vertices."""
        self.write('sampler.kind="subgraph"', "sampler.fanout=[-1,-1]", ranks=2)
        labels, train = read(self.graph, "nodes/labels", "split/train")
        known = np.full(len(labels), -1)
        known[train] = labels[train]
        batches = list(self.read())
        self.assertEqual(sum(len(batch.seeds) for batch in batches), len(labels))
        for batch in batches:
            self.assertEqual(batch.y.tolist(), known[batch.seeds].tolist())

    @needs_emulation
    def test_gpus_write_the_same(self):
        self.type_graph()
        self.write(*self.TYPED)
        expected = self.all_bits()
        self.write(*self.TYPED, "run.device=cuda", ranks=2, **on_gpus(2))
        self.assertEqual(self.report(self.output)["device"], "cuda")
        self.assertEqual(self.all_bits(), expected)

    TYPED = ("sampler.batch_size=8", 'model.kind="rgcn"', "model.embedding=4")

    def type_graph(self):
        self.planted("--types", "a=40:3,b=30:2,c=9", "--relations", "b.to.a=90,a.on.a=80,c.of.a=50")

    def test_types_and_relations(self):
        self.type_graph()
        self.write(*self.TYPED, ranks=4)
        expected = self.all_bits()
        self.write(*self.TYPED)
        self.assertEqual(self.all_bits(), expected)
        source = self.read(rows=True)
        names = source.about["relations"]
        begin = {of["name"]: of["begin"] for of in source.about["types"]}
        edges = {name: entries_of_file(self.graph, name) for name in names}
        met = set()
        labels = read(self.graph, "nodes/a/labels")
        features = {kind: read(self.graph, f"nodes/{kind}/features") for kind in "ab"}
        for batch in source:
            self.assertEqual(batch.y.tolist(), labels[batch.seeds - begin["a"]].tolist())
            self.assertEqual(set(batch.x), {"a", "b"})
            for kind, rows in batch.x.items():
                ids = batch.vertices[batch.types[kind]] - begin[kind]
                np.testing.assert_array_equal(rows, features[kind][ids])
            for block in batch.blocks:
                of = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
                for row, column, relation in zip(of, block.indices, block.relations):
                    into, out_of = names[relation].split(".")[2], names[relation].split(".")[0]
                    edge = batch.vertices[row] - begin[into], batch.vertices[column] - begin[out_of]
                    self.assertIn(edge, edges[names[relation]])
                    met.add(names[relation])
        self.assertEqual(met, set(names))

    def test_several_labels_and_none(self):
        classes = read(self.graph, "nodes/labels")
        several = np.stack([classes == 0, np.ones_like(classes)], axis=1).astype(np.uint8)
        several[::7, 0] = 255
        put(self.graph, {"nodes/labels": several})
        self.write('train.task="labels"', ranks=2)
        for batch in self.read():
            np.testing.assert_array_equal(batch.y, several[batch.seeds])
        self.fail_with(3, ["wants one"], "sample", self.config, "--write", self.folder / "other")
        self.assertFalse((self.folder / "other").exists())
        put(self.graph, {"nodes/labels": None})
        self.write()
        self.assertIsNone(self.read()[0].y)


class Refusals(Written):
    def refuse(self, words, *options, code=2, **run):
        return self.fail_with(
            code, words, "sample", self.config, "--write", self.batches, *options, **run
        )

    def test_finished_minibatches_need_overwrite(self):
        self.write()
        (self.batches / "minibatches-notes.bin").write_text("mine\n")
        before = {path: path.read_bytes() for path in self.batches.iterdir()}
        self.refuse(
            [str(self.batches), "holds finished minibatches", "--overwrite"],
            f'output.dir="{self.folder / "out2"}"',
            overwrite=False,
            ranks=2,
        )
        self.assertEqual({path: path.read_bytes() for path in self.batches.iterdir()}, before)
        self.write(ranks=2)
        self.write()
        self.assertEqual(
            sorted(path.name for path in self.batches.iterdir()),
            ["minibatches-00000.bin", "minibatches-notes.bin", "minibatches.json"],
        )

    def test_into_output_dir_by_more_ranks_than_batches(self):
        self.batches = self.output
        self.write("sampler.batch_size=50", ranks=3)
        self.assertEqual([len(batch.seeds) for batch in self.read()], [21])

    def test_what_cannot_be_written_leaves_nothing(self):
        self.batches.write_text("a file\n")
        self.refuse(["cannot make the folder --write", str(self.batches)], ranks=2)
        self.fail_with(2, ["name the folder"], "sample", self.config, "--write", "")
        self.batches.unlink()

        (self.batches / "minibatches-00001.bin" / "in the way").mkdir(parents=True)
        self.refuse(["minibatches-00001.bin", "Is a directory", "nothing"], ranks=2)
        self.assertEqual([path.name for path in self.batches.iterdir()], ["minibatches-00001.bin"])
        self.refused("has no minibatches.json", self.read)

    def test_a_full_disk(self):
        self.write()
        self.refuse(
            ["minibatches-00000.bin", "File too large", "nothing of --write"],
            "--epochs", 20,
            preexec_fn=small_files(2**13),
        )
        self.assertFalse(self.batches.exists() and list(self.batches.iterdir()))

    def test_without_layers_there_is_nothing_to_write(self):
        self.refuse(
            ["--write: with model.layers = 0"],
            "model.layers=0", "sampler.fanout=[]", "model.embedding=4", 'train.task="links"',
        )  # fmt: skip
        self.assertFalse(self.batches.exists())


class Links(Written):
    JOB = (*Written.JOB[:2], "sampler.batch_size=40", "train.seed=3", 'train.task="links"',
           "train.negatives=3", "model.hidden=4", "train.reproducible=true")  # fmt: skip

    def setUp(self):
        super().setUp()
        whole = self.folder / "whole.h5"
        self.planted("--nodes", 200, "--degree", 6, "--features", 5, "--classes", 3, to=whole)
        self.succeed(
            "-q", "prepare", whole, "--split-links", "0.8,0.1,0.1", "-o", self.graph, "--overwrite"
        )

    def test_bits_do_not_depend_on_the_grid_and_are_those_of_training(self):
        for mode in ("uniform", "in-batch"):
            self.write(f"train.negatives_mode={mode}", epochs=2)
            expected = self.all_bits(link_bits)
            digests = self.read().about["sample_digests"]
            for ranks, *grid in GRIDS[1:3]:
                self.write(f"train.negatives_mode={mode}", *grid, epochs=2, ranks=ranks)
                self.assertEqual(self.all_bits(link_bits), expected, (ranks, grid))
            self.succeed(
                "-q", "train", self.config, f"train.negatives_mode={mode}", "train.epochs=2",
                "run.restart=never", ranks=2,
            )  # fmt: skip
            trained = self.report(self.output)["epochs"]
            self.assertEqual([epoch["sample_digest"] for epoch in trained], digests)

    def test_links_of_the_split_each_with_others(self):
        self.write(epochs=2, ranks=2)
        ends = read(self.graph, "links/train/head", "links/train/tail")
        known = sorted(zip(*(of.tolist() for of in ends)))
        source = self.read()
        self.assertEqual((source.about["labels"], source.about["negatives"]), ("links", 3))
        for epoch in (1, 2):
            seen = []
            for batch in (source[k] for k in source.of_epoch(epoch)):
                links, ends = batch.links, batch.seeds
                self.assertIsNone(batch.y)
                heads, tails = ends[links.heads], ends[links.tails]
                seen += zip(heads.tolist(), tails.tolist())
                self.assertEqual(links.negative_tails.shape, (len(heads), 3))
                of_heads, of_tails = ends[links.negative_heads], ends[links.negative_tails]
                same_head, same_tail = of_heads == heads[:, None], of_tails == tails[:, None]
                self.assertTrue((same_head | same_tail).all(), "one end is replaced, not both")
                used = [links.heads, links.tails, links.negative_heads, links.negative_tails]
                used = np.concatenate([of.ravel() for of in used])
                self.assertEqual(set(used.tolist()), set(range(len(ends))), "seeds are the ends")
                own = set(zip(heads.tolist(), tails.tolist()))
                for block in batch.blocks:
                    rows = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
                    pairs = zip(batch.vertices[block.indices].tolist(), batch.vertices[rows].tolist())
                    for source_of, target in pairs:
                        self.assertNotIn((source_of, target), own, "what is asked is not told")
                        self.assertNotIn((target, source_of), own)
            self.assertEqual(sorted(seen), known)

    def test_relations_have_their_names(self):
        train, valid = self.folder / "train.txt", self.folder / "valid.txt"
        train.write_text("".join(f"e{k % 7}\tr{k % 2}\te{k * 3 % 7}\n" for k in range(40)))
        valid.write_text("e1\tr1\te2\n")
        self.succeed(
            "-q", "import", "triples", "--train", train, "--valid", valid, "-o", self.graph,
            "--overwrite",
        )  # fmt: skip
        self.write('model.kind="rgcn"', "model.embedding=4", "train.score=distmult")
        source = self.read()
        self.assertEqual(source.about["link_relations"], ["r0", "r1"])
        self.assertEqual({int(r) for batch in source for r in batch.links.relations}, {0, 1})


class Reader(Written):
    def test_places_and_pickles(self):
        self.write(ranks=2)
        source = self.read(rows=True)
        self.assertEqual(bits(source[-1]), bits(source[5]))
        self.assertEqual(bits(source[np.int64(2)]), bits(pickle.loads(pickle.dumps(source))[2]))
        for k in (6, -7):
            with self.assertRaisesRegex(IndexError, f"batch {k}: .* has 6"):
                source[k]
        with self.assertRaisesRegex(IndexError, "epochs 1 to 1"):
            source.of_epoch(2)
        source[0].vertices[0] = 0  # one's own

    def test_features_in_pieces(self):
        self.write()
        expected = self.all_bits()
        with h5py.File(self.graph, "a") as file:
            features = file["nodes/features"][()]
            del file["nodes/features"]
            file.create_dataset("nodes/features", data=features, compression="gzip", chunks=(7, 6))
        self.assertEqual(self.all_bits(), expected)

    def test_a_folder_is_whole_or_none(self):
        self.write(ranks=2)
        index, part = self.batches / "minibatches.json", self.batches / "minibatches-00001.bin"
        about, whole = index.read_text(), part.read_bytes()
        wrong = bytearray(whole)
        wrong[200] ^= 1
        part.write_bytes(wrong)
        self.refused("minibatches-00001.bin is damaged: the checksum", list, self.read())
        part.write_bytes(whole[:-8])
        words = f"is damaged: it has {len(whole) - 8} bytes, and minibatches.json says"
        self.refused(words, self.read)
        part.unlink()
        self.refused("minibatches-00001.bin is not there", self.read)
        part.write_bytes(whole)
        changed = json.loads(about)
        changed["parts"] = changed["parts"][:1]
        for text, words in (
            (json.dumps(changed), "do not have each of 6 batches once"),
            (about[:-30], "is damaged"),
            ("{}", "is no list of minibatches"),
            (about.replace('"version": 1', '"version": 3'), "has version 3"),
        ):
            index.write_text(text)
            self.refused(words, self.read)
        index.unlink()
        self.refused("has no minibatches.json, which is written last", self.read)
        self.refused("is no folder with", espalier.Minibatches, self.folder / "nowhere")

    def test_another_graph(self):
        self.write()
        other = self.folder / "other.h5"
        self.graph.rename(other)
        self.refused("which is not there; say where it is: graph=", self.read, rows=True)
        self.assertEqual(self.read(rows=True, graph=other)[0].x.shape[1], 6)
        awkward_graph(self.graph, half=True)
        put(self.graph, {"nodes/features": None})
        self.refused("has no features", self.read, rows=True)
        put(self.graph, {"graph/indptr": [0, 1]})
        self.refused("is not the graph of", self.read, rows=True)


class Example(Written):
    @needs("torch")
    def test_pytorch(self):
        self.planted("--nodes", 600, "--classes", 3, "--degree", 8, "--features", 5)
        self.write("sampler.batch_size=64", epochs=8)
        paths = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
        example = ROOT / "examples" / "python" / "train_pytorch.py"
        done = run_python(example, self.batches, env=dict(os.environ, PYTHONPATH=paths))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        losses = [
            float(line.split()[3]) for line in done.stdout.splitlines() if line.startswith("epoch")
        ]
        self.assertEqual(len(losses), 8, done.stdout)
        self.assertLess(losses[-1], 0.8 * losses[0], done.stdout)

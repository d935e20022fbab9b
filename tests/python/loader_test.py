"""Minibatches of a loader, in Python, on ranks of their own.

Laws: batches are those that `espalier sample --write` writes, to the last bit, on any number of
ranks, and stay as they are while others are drawn; every rank gets as many; the digests sum to the
program's, scaled losses of each step to the number of ranks; a split's vertices come once, in order, with
all their neighbours; a loop that ended early, or on other ranks, goes on where it was told.
"""

import os
import unittest.mock

import h5py
import numpy as np

from tests.app.feature_bits_test import nearest_bfloat16
from tests.app.program import awkward_graph, put, read
from tests.python import LIBRARY, ON_GPUS, needs, needs_library, needs_library_on_gpus
from tests.python.loops import entries_of_file
from tests.python.minibatches_test import Written, bits, link_bits
from tests.python.on_ranks import examples, run_on

import espalier


@needs_library
class OnRanks(Written):
    JOB = (*Written.JOB, "train.batches_per_step=5", "train.epochs=2")
    LIBRARY = LIBRARY

    def on(self, ranks, name, *words):
        environment = dict(os.environ, ESPALIER_LIBRARY=str(self.LIBRARY))
        code, said, found = run_on(ranks, name, self.folder, *words, env=environment)
        self.assertEqual((code, len(found)), (0, ranks), said)
        return found

    def written(self, of=bits):
        """Of two epochs what a folder has, and the digests that the program prints."""
        self.write(epochs=2)
        source = self.read(rows=True)
        return [of(batch) for batch in source], [
            int(of, 16) for of in source.about["sample_digests"]
        ]

    def drawn_on(self, ranks, expected, digests, of=bits, name="draw"):
        """Of all ranks the batches are those; as many on each."""
        found = self.on(ranks, name)
        batches, steps, size, items = found[0]["facts"]
        self.assertEqual((steps, items), (-(-batches // size), steps * -(-size // ranks)))
        real = [batch for rank in found for batch in rank["batches"] if batch.batch >= 0]
        real.sort(key=lambda batch: (batch.epoch, batch.batch))
        self.assertEqual([of(batch) for batch in real], expected)
        for epoch in (0, 1):
            self.assertEqual(sum(rank["digests"][epoch] for rank in found) % 2**64, digests[epoch])
        for rank in found:
            self.assertTrue(rank["alone"])
            self.assertEqual((rank["len"], len(rank["batches"])), (2 * items, 2 * items))
            np.testing.assert_allclose(rank["scaled"], np.full((2, steps), ranks), rtol=1e-6)
            ends = [(batch.epoch, batch.step) for batch in rank["batches"] if batch.ends_step]
            self.assertEqual(ends, [(epoch, step) for epoch in (1, 2) for step in range(steps)])
            for batch in rank["batches"]:
                if batch.batch < 0:
                    self.assertEqual(
                        (len(batch.seeds), len(batch.vertices), batch.digest or 0), (0, 0, 0)
                    )
                    self.assertEqual([block.shape for block in batch.blocks], [(0, 0)] * 2)
                    self.assertEqual(
                        arrays_of(batch), arrays_of(real[0]), "arrays as all others, of no rows"
                    )
        return real


def arrays_of(batch):
    """Which arrays a batch has, and their kinds and widths."""
    found = {
        "y": batch.y,
        **{
            f"{name} {k}": of
            for k, block in enumerate(batch.blocks)
            for name, of in vars(block).items()
        },
    }
    found |= {"x": batch.x} if batch.types is None else batch.x
    found |= vars(batch.links) if batch.links else {}
    return {name: (of.dtype, of.shape[1:]) for name, of in found.items() if hasattr(of, "dtype")}


class Laws(OnRanks):
    def test_batches_are_those_of_the_program(self):
        expected, digests = self.written()
        for ranks in (1, 2, 4):
            with self.subTest(ranks=ranks):
                self.drawn_on(ranks, expected, digests)

    def test_features_are_written_to_memory_that_is_pinned(self):
        self.write_job("sampler.batch_size=5")
        found, used, lie_there, left = self.on(1, "pinned")[0]
        drawn = [of for of in self.on(1, "draw")[0]["batches"] if of.epoch == 1]
        expected = [(batch.vertices.tolist(), batch.x.tolist()) for batch in drawn]
        self.assertEqual(found, expected)
        self.assertEqual((used, lie_there, left), (len(drawn), True, 0))

    def test_an_interrupt_of_one_rank_stops_all_before_the_same_step(self):
        expected, _ = self.written()
        for ranks in (2, 4):
            found = self.on(ranks, "interrupted_together")
            places = {(of["state"]["epoch"], of["state"]["step"]) for of in found}
            self.assertEqual(len(places), 1, places)
            self.assertNotEqual(places, {(1, 0)})
            self.assertTrue(all(of["restored"] for of in found))
            self.assertEqual(self.joined([of["seen"] + of["rest"] for of in found]), expected)

    def test_an_interrupt_when_all_is_drawn_stops_all_at_the_end(self):
        expected, _ = self.written()
        for of in (found := self.on(2, "interrupted_at_the_end")):
            self.assertEqual((of["said"], of["state"]["epoch"], of["state"]["step"]), (True, 3, 0))
            self.assertTrue(of["restored"])
        self.assertEqual(self.joined([of["seen"] for of in found]), expected)
        self.assertEqual(self.joined([of["again"] for of in found]), expected)

    def test_loops_begin_where_they_are_told(self):
        self.write_job("train.batches_per_step=2")
        expected, _ = self.written()
        for ranks in (1, 2, 4):
            found = self.on(ranks, "loops")
            of_ranks = {name: [rank[name] for rank in found] for name in found[0]}
            places = [[place for rank in of_ranks["places"] for place in rank[k]] for k in (0, 1)]
            self.assertLessEqual(set(of_ranks["opened"]), {2, 3}, "those that went were closed")
            self.assertEqual(set(places[0]), {(1, 0)})
            self.assertEqual(set(places[1]), {(2, 0), (2, 1), (2, 2)})
            for name, first, last in (("whole", 0, 12), ("second", 0, 6)):
                self.assertEqual(self.joined(of_ranks[name]), expected[first:last])
            for k in range(len(found[0]["rest"])):  # of runs on fewer ranks
                self.assertEqual(self.joined([rank[k] for rank in of_ranks["rest"]]), expected[8:])
        self.assertEqual(len(found[0]["rest"]), 2)

    @needs("mpi4py")
    def test_where_one_thread_alone_may_speak(self):
        self.drawn_on(2, *self.written(), name="without_threads")
        said = [
            [words for words in of["said"] if "without MPI_THREAD_MULTIPLE" in words]
            for of in self.on(2, "without_threads")
        ]
        self.assertEqual([len(of) for of in said], [1, 0])

    @needs("mpi4py")
    def test_communicators_of_mpi4py(self):
        digest = self.written()[1][0]
        found = self.on(4, "communicators")
        ranks = [(0, 4, 0, 2), (1, 4, 0, 2), (2, 4, 1, 2), (3, 4, 1, 2)]
        self.assertEqual([of["ranks"] for of in found], ranks)
        self.assertEqual(sum(of["digests"][0] for of in found) % 2**64, digest)
        for half in (found[::2], found[1::2]):
            self.assertEqual(sum(of["digests"][1] for of in half) % 2**64, digest)

    def test_rows_of_a_disk_a_cache_and_parts_of_an_order(self):
        expected, digests = self.written()
        self.write_job('graph.features_on="disk"', 'run.cache_memory="300"')
        self.drawn_on(2, expected, digests)
        self.succeed("-q", "partition", self.graph, "-o", self.folder / "order.h5", "--clusters", 5)
        order = f'graph.order="{self.folder / "order.h5"}"'
        self.write_job(
            order,
            "grid.replication=2",
            'grid.schedule="pull"',
            "run.overlap=true",
            "run.prefetch_steps=3",
        )
        self.drawn_on(4, expected, digests)

    def joined(self, of_ranks):
        real = [batch for rank in of_ranks for batch in rank if batch.batch >= 0]
        return [bits(batch) for batch in sorted(real, key=lambda batch: (batch.epoch, batch.batch))]

    def test_vertices_once_in_order_with_whole_rows(self):
        with h5py.File(self.graph) as file:
            labels, features = (file[name][()] for name in ("nodes/labels", "nodes/features"))
            wanted = {name: sorted(file[f"split/{name}"][()]) for name in ("valid", "train")}
        edges = entries_of_file(self.graph)
        wanted |= {"given": [7, 3, 1, 49, 0], "none": []}
        for ranks in (1, 3):
            found = self.on(ranks, "each_once")
            for name, vertices in wanted.items():
                batches = [batch for rank in found for batch in rank[name] if batch.batch >= 0]
                batches.sort(key=lambda batch: batch.batch)
                self.assertEqual(
                    len({len(rank[name]) for rank in found}), 1, "as many on each rank"
                )
                self.assertEqual([v for batch in batches for v in batch.seeds.tolist()], vertices)
                for batch in batches:
                    self.assertEqual(len(batch.blocks), 3 if name == "train" else 2)
                    y = None if batch.y is None else batch.y.tolist()
                    self.assertEqual(y, None if name == "given" else labels[batch.seeds].tolist())
                    np.testing.assert_array_equal(batch.x, features[batch.vertices])
                    for block in batch.blocks:
                        self.assert_whole(batch, block, edges)

    def test_rows_of_bfloat16(self):
        features = read(self.graph, "nodes/features")
        self.write_job('graph.feature_bits="bf16"', "grid.replication=1")
        batches = [batch for rank in self.on(2, "each_once") for batch in rank["valid"]]
        for batch in batches:
            np.testing.assert_array_equal(batch.x, nearest_bfloat16(features[batch.vertices]))
        rows = np.concatenate([batch.x for batch in batches])
        self.assertTrue((rows != np.concatenate([features[of.vertices] for of in batches])).any())

    def assert_whole(self, batch, block, edges):
        sources, targets = batch.vertices[block.edge_index]
        rows = set(batch.vertices[: block.shape[0]].tolist())
        of_rows = {(row, column) for row, column in edges if row in rows}
        self.assertEqual(set(zip(targets.tolist(), sources.tolist())), of_rows)


class Kinds(OnRanks):
    """Of other graphs and tasks, on one and three ranks."""

    def drawn(self, of=bits):
        expected, digests = self.written(of)
        found = [self.drawn_on(ranks, expected, digests, of) for ranks in (1, 3)]
        return found[0]

    def test_types_and_relations(self):
        self.planted("--types", "a=40:3,b=30:2", "--relations", "b.to.a=90,a.on.a=80,a.of.b=50")
        self.write_job('model.kind="rgcn"')
        for batch in self.drawn():
            self.assertEqual(set(batch.types), {"a", "b"})
            self.assertEqual(
                {kind: rows.shape[1] for kind, rows in batch.x.items()}, {"a": 3, "b": 2}
            )

    def test_several_labels(self):
        classes = read(self.graph, "nodes/labels")
        several = np.stack([classes == 0, np.ones_like(classes)], axis=1).astype(np.uint8)
        several[::7, 0] = 255
        put(self.graph, {"nodes/labels": several})
        self.write_job('train.task="labels"')
        self.assertEqual({batch.y.shape[1] for batch in self.drawn()}, {2})

    def test_links_with_negatives(self):
        whole = self.folder / "whole.h5"
        self.planted("--nodes", 200, "--degree", 6, "--features", 5, "--classes", 3, to=whole)
        self.succeed(
            "-q", "prepare", whole, "--split-links", "0.8,0.1,0.1", "-o", self.graph, "--overwrite"
        )
        self.write_job('train.task="links"', "train.negatives=3", "sampler.batch_size=40")
        for batch in self.drawn(link_bits):
            self.assertIsNone(batch.y)
            self.assertEqual(batch.links.negative_tails.shape, (examples(batch), 3))

    def test_features_of_edges(self):
        random = np.random.default_rng(1)
        ends, features = random.integers(0, 60, (2, 300)), random.random((300, 2), np.float32)
        ends, first = np.unique(ends, axis=1, return_index=True)
        x, y = random.random((60, 3), np.float32), np.arange(60) % 3
        espalier.write_graph(
            self.graph,
            ends,
            x,
            y,
            train=np.arange(40),
            valid=[50],
            edge_features=features[first],
            overwrite=True,
        )
        self.write_job('model.kind="gat"', "model.edge_features=true")
        of_edge = dict(zip(zip(*ends.tolist()), features[first].tolist()))
        for batch in self.drawn():
            for block in batch.blocks:
                sources, targets = batch.vertices[block.edge_index[:, block.edge_entries]]
                found = zip(zip(sources.tolist(), targets.tolist()), block.edge_features.tolist())
                self.assertEqual(len(block.edge_entries), len(block.indices))
                for edge, row in found:
                    self.assertEqual(row, of_edge[edge])


@needs_library_on_gpus
class KindsOnGpus(Kinds):
    """Drawn on a GPU, brought to the host."""

    LIBRARY = ON_GPUS

    def test_torch_is_given_what_lies_on_the_gpu(self):
        """Each rank on a GPU of its own, whose default stream is not that of the thread's GPU."""
        self.write_job("sampler.batch_size=5")  # no batch is short
        with unittest.mock.patch.dict(os.environ, ESPALIER_EMULATED_GPUS="2"):
            given, drawn = self.on(2, "claimed"), self.on(2, "draw")
        for rank, (found, of_rank) in enumerate(zip(given, drawn, strict=True)):
            first = [batch for batch in of_rank["batches"] if batch.epoch == 1]
            self.assertEqual(sum(digest for digest, _, _ in found), of_rank["digests"][0])
            for (_, arrays, kinds), batch in zip(found, first, strict=True):
                expected = [batch.vertices, batch.x, batch.y]
                for block in batch.blocks:
                    expected += [block.indptr, block.indices, block.values]
                there = [of for of in expected if of.size]
                self.assertEqual((arrays, len(kinds)), (len(expected), len(there)))
                for of, kind in zip(there, kinds, strict=True):
                    self.assertEqual(kind, (of.shape, of.dtype.str, True, f"cuda:{rank}"))

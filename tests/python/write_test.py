"""write_graph: what stands in the file is what was given.

Laws: entry (target, source) for each edge, each once, as a loop over edges makes them; the same
file from every width, byte order and memory order; ids, names, splits and labels come back; whole
or not at all.
"""

import itertools
import pathlib

import numpy as np

from tests.app.program import FolderTest, arrays_of, attributes_of
from tests.python import SEED, DataTest, all_warnings
from tests.python.loops import entries_by_loop, entries_of_file

import espalier
from espalier.graph_file import replaced


class WriteTest(DataTest, FolderTest):
    def setUp(self):
        super().setUp()
        self.random, self.path = np.random.default_rng(SEED), self.folder / "graph.h5"

    def write(self, *arguments, **options):
        espalier.write_graph(self.path, *arguments, overwrite=True, **options)
        return arrays_of(self.path)


class Edges(WriteTest):
    def test_a_message_flows_from_source_to_target_and_the_target_is_the_row(self):
        arrays = self.write([[0, 0, 2], [1, 2, 1]])
        np.testing.assert_array_equal(arrays["graph/indptr"], [0, 0, 2, 3])
        np.testing.assert_array_equal(arrays["graph/indices"], [0, 2, 0])

    def test_no_edge_is_needed(self):
        for directed in (True, False):
            arrays = self.write(np.zeros((2, 0)), np.eye(3), directed=directed)
            self.assertEqual(arrays["graph/indptr"].tolist(), [0] * 4)
            self.assertEqual(arrays["graph/indices"].tolist(), [])

    def test_as_a_loop_over_edges(self):
        hows = ("sum", "mean", "max", "first", "last", "count")
        of_features = itertools.cycle(("kept", "first", "kept", "last", "sum", "kept", "mean"))
        for case, how, both_ways, weighted in itertools.product(
            range(4), hows, (False, True), (False, True)
        ):
            of = next(of_features)
            with self.subTest(
                seed=SEED, case=case, how=how, both_ways=both_ways, weighted=weighted, of=of
            ):
                vertices, edges = int(self.random.integers(1, 12)), int(self.random.integers(1, 60))
                ends = self.random.integers(0, vertices, (2, edges))
                weights = self.random.integers(0, 5, edges) / 4 if weighted else None
                features = self.random.integers(0, 99, (edges, 2)).astype(np.float32)
                self.write(
                    ends,
                    num_nodes=vertices,
                    edge_weight=weights,
                    edge_features=features,
                    duplicates=how,
                    duplicate_features=of,
                    directed=False if both_ways else None,
                )
                self.assertEqual(
                    entries_of_file(self.path),
                    entries_by_loop(*ends, weights, features, how, both_ways, of),
                )

    def test_features_that_add_up_to_too_much(self):
        for kind, value in ((np.float32, 3e38), (np.float16, 6e4)):
            features = np.array([[0, value], [1, 2], [3, value]], dtype=kind)
            edges, words = [[0, 1, 0], [1, 0, 1]], "edge_features: column 1 of edge 0 "
            options = {"edge_features": features, "duplicate_features": "sum"}
            said = self.refused(words, self.write, edges, **options)
            self.assertIn(" duplicate_features=", said)
            self.write(edges, **options | {"duplicate_features": "mean"})

    def test_relations_as_loops_over_edges(self):
        for case, both_ways in itertools.product(range(6), (False, True)):
            with self.subTest(seed=SEED, case=case, both_ways=both_ways):
                counts = {name: int(self.random.integers(1, 9)) for name in "abc"}
                keys = [("a", "to", "b"), ("b", "to", "b"), ("a", "on", "b"), ("c", "to", "a")]
                edges = {
                    key: np.stack([self.random.integers(0, counts[key[end]], 20) for end in (0, 2)])
                    for key in keys
                }
                weights = {keys[1]: self.random.integers(1, 9, 20) / 2}
                features = {keys[0]: self.random.integers(0, 99, (20, 3)).astype(np.float32)}
                self.write(
                    edges,
                    num_nodes=counts,
                    edge_weight=weights,
                    edge_features=features,
                    directed=False if both_ways else None,
                )
                for key in keys:
                    of = entries_by_loop(*edges[key], weights.get(key), features.get(key))
                    self.assertEqual(entries_of_file(self.path, ".".join(key)), of)
                    turned = {(column, row): held for (row, column), held in of.items()}
                    symmetric = key[0] == key[2] and set(of) == set(turned)
                    if both_ways and not symmetric:
                        name = f"{key[2]}.rev_{key[1]}.{key[0]}"
                        self.assertEqual(entries_of_file(self.path, name), turned)

    def test_inverses_are_known_where_their_edges_are_the_same(self):
        edges = {
            ("a", "to", "b"): [[0, 1], [2, 0]],
            ("b", "rev_to", "a"): [[2, 0], [0, 1]],
            ("b", "on", "a"): [[0], [0]],
            ("a", "rev_on", "b"): [[1], [0]],
        }
        self.assertEqual(self.write(edges)["relations/inverse"].tolist(), [1, 0, -1, -1])

    def test_inverses_of_other_names_are_declared(self):
        edges = {
            ("user", "buys", "item"): [[0, 1], [2, 0]],
            ("item", "bought_by", "user"): [[2, 0], [0, 1]],
            ("user", "knows", "user"): [[0, 1], [1, 0]],
            ("user", "led_by", "user"): [[0], [1]],
        }
        for directed, inverse, expected in (
            (None, {"buys": "bought_by", "knows": "knows"}, [1, 0, 2, -1]),
            (None, {("item", "bought_by", "user"): ("user", "buys", "item"), "knows": "knows"}, [1, 0, 2, -1]),
            (False, {"buys": "bought_by"}, [1, 0, -1, 4, 3]),
        ):
            arrays = self.write(edges, inverse=inverse, directed=directed)
            self.assertEqual(arrays["relations/inverse"].tolist(), expected)

    def test_the_same_file_of_every_width_and_order(self):
        ends, x = self.random.integers(0, 100, (2, 300)), self.random.integers(0, 9, (100, 4))

        def written(**options):
            arrays = self.write(*(np.array(of, **options) for of in (ends, x)))
            return {name: (array.dtype, array.tolist()) for name, array in arrays.items()}

        expected = written()
        for kind in ("<i1", "u1", "<i2", ">i2", "<u4", ">u4", "<i8", ">i8", "<u8", ">u8"):
            for order in "CF":
                self.assertEqual(written(dtype=kind, order=order), expected, kind)
        for floats in (">f8", ">f4", "<f8"):
            np.testing.assert_array_equal(self.write(ends, x.astype(floats))["nodes/features"], x)
        self.assertEqual(self.write(ends, x.astype(np.float16))["nodes/features"].dtype, np.float16)
        self.assertEqual(
            self.write(ends, x[::-1][::-1, ::-1][:, ::-1])["nodes/features"].tolist(), x.tolist()
        )

    def test_what_became_one_is_warned_of_in_the_line_of_the_user(self):
        with all_warnings() as caught:
            espalier.write_graph(self.path, [[0, 0, 0, 1], [1, 1, 1, 1]])
        words = "edge_index: 2 of 4 edges are listed before; those became one"
        self.assertEqual([str(item.message) for item in caught], [words])
        self.assertEqual(caught[0].filename, __file__)

    def test_what_stays_of_those_that_became_one_is_what_is_said(self):
        """The words, out of what stands in the file."""
        weights, features, times = [1, 3, 2], [[10], [20], [40]], [8, 7, 9]
        of = ("the first", "the one with the largest weight", "the last")
        said_of_weights = {6: "the sum of theirs", 2: "the mean of theirs"}
        for how, of_features, of_times, weighted in itertools.product(
            ("sum", "mean", "max", "first", "last", "count"),
            ("kept", "first", "last", "sum", "mean"),
            ("first", "last"),
            (True, False),
        ):
            with (
                self.subTest(how=how, of_features=of_features, times=of_times, weighted=weighted),
                all_warnings() as caught,
            ):
                arrays = self.write(
                    [[0, 0, 0], [1, 1, 1]],
                    edge_weight=weights if weighted else None,
                    edge_features=features,
                    edge_time=times,
                    duplicates=how,
                    duplicate_features=of_features,
                    duplicate_times=of_times,
                )
                feature, time = arrays["edges/features"][0, 0], arrays["edges/time"][0]
                self.assertEqual(time, {"first": 7, "last": 9}[of_times])
                words = f"the {of_features} of theirs"
                if [feature] in features:
                    words = f"those of {of[features.index([feature])]}"
                self.assertEqual(len(caught), 1)
                said = str(caught[0].message)
                end = f"features are {words}, time is the {'earliest' if time == 7 else 'latest'}"
                self.assertTrue(said.endswith(end), said)
                if weighted and how in ("sum", "mean"):
                    self.assertIn(said_of_weights[arrays["graph/weights"][0]], said)

    def test_weights_that_float32_cannot_hold_are_counted(self):
        with all_warnings() as caught:
            arrays = self.write(
                [[0, 1, 2, 3], [1, 2, 3, 0]], edge_weight=np.array([1e-46, 0, 1e-45, 1e-300])
            )
        self.assertEqual(np.count_nonzero(arrays["graph/weights"]), 1)
        self.assertEqual(
            [str(item.message).split(",")[0] for item in caught],
            ["edge_weight: 2 of 4 weights are too small for float32"],
        )
        self.assertEqual(pathlib.Path(caught[0].filename).name, "write_test.py")

    def test_a_loop_is_not_listed_before_by_its_own_reverse(self):
        with all_warnings() as caught:
            arrays = self.write([[0, 1], [0, 0]], directed=False, duplicates="refuse")
        self.assertEqual((arrays["graph/indices"].tolist(), caught), ([0, 1, 0], []))

    def test_times_stand_beside_their_edges(self):
        dates = np.array(["1969-12-31T23:59:58", "1970-01-01", "2000-01-01"], dtype="datetime64[s]")
        arrays = self.write([[2, 0, 1], [0, 1, 0]], edge_time=dates)
        self.assertEqual(arrays["graph/indices"].tolist(), [1, 2, 0])
        self.assertEqual(arrays["edges/time"].tolist(), [946684800, -2, 0])
        arrays = self.write([[2, 0, 1], [0, 1, 0]], time=dates)
        self.assertEqual(arrays["nodes/time"].tolist(), [-2, 0, 946684800])
        for wrong in (dates[:2], [0.5, 1, 2], np.zeros((3, 1), int)):
            said = self.refused("time", self.write, [[2, 0, 1], [0, 1, 0]], time=wrong)
            self.assertTrue(said.startswith("time"), said)

    def test_features_in_pieces(self):
        x = self.random.normal(size=(70001, 1)).astype(np.float32)
        np.testing.assert_array_equal(self.write([[0], [70000]], x)["nodes/features"], x)

    def test_vertices_that_have_large_ids_are_numbered_as_the_refusal_says(self):
        edges = np.array([[10**15, 7, 10**15], [7, 8, 8]])
        self.refused("numbers.reshape", self.write, edges)
        ids, numbers = np.unique(edges, return_inverse=True)
        arrays = self.write(numbers.reshape(2, -1), ids=ids)
        rows = np.repeat(arrays["nodes/ids"], np.diff(arrays["graph/indptr"]))
        columns = arrays["nodes/ids"][arrays["graph/indices"]]
        self.assertEqual(set(zip(columns, rows)), set(zip(*edges)))


class Vertices(WriteTest):
    def splits(self, *arguments, **options):
        """{name: ids} of those that stand in the file."""
        arrays = self.write(*arguments, **options)
        named = {name.partition("/"): ids.tolist() for name, ids in arrays.items()}
        return {name: ids for (group, _, name), ids in named.items() if group == "split"}

    def test_splits_by_mask_and_by_ids(self):
        mask = self.random.random(50) < 0.5
        ids = self.random.permutation(np.flatnonzero(~mask))
        splits = {"train": mask, "valid": ids[:9].tolist(), "test": ids[9:].astype(np.uint16)}
        self.assertEqual(
            self.splits([[0], [1]], num_nodes=50, **splits),
            {"train": np.flatnonzero(mask).tolist(), "valid": sorted(ids[:9]), "test": sorted(ids[9:])},
        )

    def test_splits_with_names(self):
        parts = np.split(self.random.permutation(50), [20, 30])
        splits = {
            "seed.0": dict(zip(("train", "valid", "test"), parts)),
            "seed-1": {"train": self.random.random(50) < 0.5},
        }
        self.assertEqual(
            self.splits([[0], [1]], num_nodes=50, splits=splits, train=[7, 3]),
            {f"seed.0/{name}": sorted(ids) for name, ids in splits["seed.0"].items()}
            | {"seed-1/train": np.flatnonzero(splits["seed-1"]["train"]).tolist(), "train": [3, 7]},
        )
        typed = self.splits(
            {("a", "to", "b"): [[0], [1]]},
            num_nodes={"a": 4, "b": 5},
            splits={"x": {"train": {"b": [4, 0], "a": [1]}, "test": {"b": [2]}}},
        )
        self.assertEqual(typed, {"b/x/train": [0, 4], "a/x/train": [1], "b/x/test": [2]})

    def test_labels_that_are_texts_become_classes_with_names(self):
        given = ["b,c", "a\nb", None, "b,c", "ä"]
        arrays = self.write([[0], [1]], y=np.array(given, dtype=object))
        names = [name.decode() for name in arrays["labels/names"]]
        self.assertEqual(names, ["a\nb", "b,c", "ä"])
        self.assertEqual([None if k < 0 else names[k] for k in arrays["nodes/labels"]], given)
        arrays = self.write([[0], [1]], y=["x", float("nan"), None])  # numpy would make "nan" of it
        self.assertEqual(arrays["nodes/labels"].tolist(), [0, -1, -1])
        arrays = self.write([[0], [1]], y=["x", "y"], class_names=["y", "none", "x"])
        self.assertEqual(arrays["nodes/labels"].tolist(), [2, 0])
        self.assertEqual(attributes_of(self.path, "nodes/labels")["classes"], 3)

    def test_labels_that_are_numbers(self):
        """One a vertex, or several."""
        for given, kept, kind in (
            ([0, 2, -1], [0, 2, -1], np.int32),
            ([[0], [2], [1]], [0, 2, 1], np.int32),
            ([1.0, np.nan, 0.0], [1, -1, 0], np.int32),
            ([True, False, True], [1, 0, 1], np.int32),
            (np.array([7, 0, 3], dtype=">u8"), [7, 0, 3], np.int32),
            (np.array([[1, 0], [np.nan, 1], [-1, 0]]), [[1, 0], [255, 1], [255, 0]], np.uint8),
        ):
            labels = self.write([[0], [1]], y=given)["nodes/labels"]
            self.assertEqual((labels.tolist(), labels.dtype), (kept, kind))

    def test_own_ids(self):
        for given in (["b", "ä" * 9, "a b"], [7, -3, 2**62], np.array([5, 1, 3], dtype=">i4")):
            kept = self.write([[0], [1]], x=np.ones((3, 1)), ids=given)["nodes/ids"]
            self.assertEqual(
                [item.decode() if isinstance(item, bytes) else item for item in kept.tolist()],
                list(given),
            )

    def test_types_have_their_own(self):
        arrays = self.write(
            {("user", "buys", "item"): [[0, 3], [1, 0]]},
            {"item": np.eye(2)},
            {"item": ["b", "a"]},
            train={"item": [1]},
            num_nodes={"user": 5},
            ids={"user": list("vwxyz"), "item": [8, 9]},
            class_names={"item": ["a", "b", "c"]},
        )
        self.assertEqual(arrays["types/offset"].tolist(), [0, 2, 7])
        self.assertEqual(arrays["types/name"].tolist(), [b"item", b"user"])
        self.assertEqual(arrays["nodes/item/labels"].tolist(), [1, 0])
        self.assertEqual(arrays["labels/item/names"].tolist(), [b"a", b"b", b"c"])
        self.assertEqual(arrays["split/item/train"].tolist(), [1])
        self.assertEqual(
            (arrays["types/user/ids"].tolist(), arrays["types/item/ids"].tolist()),
            ([b"v", b"w", b"x", b"y", b"z"], [8, 9]),
        )


class Whole(WriteTest):
    def test_a_file_is_kept_unless_it_may_be_replaced(self):
        self.path.write_text("mine")
        self.refused("exists; say overwrite=True", espalier.write_graph, self.path, [[0], [1]])
        self.assertEqual(self.path.read_text(), "mine")

    def test_what_somebody_else_wrote_meanwhile_is_kept(self):
        def both_write():
            with replaced(str(self.path), overwrite=False) as temporary:
                pathlib.Path(temporary).write_text("ours")
                self.path.write_text("theirs")

        self.refused("was written by somebody else meanwhile", both_write)
        self.assertEqual(self.path.read_text(), "theirs")
        self.assertEqual([path.name for path in self.folder.iterdir()], ["graph.h5"])

    def test_a_link_stays_one(self):
        link = self.folder / "link.h5"
        link.symlink_to("graph.h5")
        espalier.write_graph(link, [[0], [1]])
        espalier.write_graph(link, [[0], [1]], num_nodes=5, overwrite=True)
        self.assertTrue(link.is_symlink())
        self.assertEqual(len(arrays_of(self.path)["graph/indptr"]), 6)

    def test_what_fails_leaves_nothing_behind_and_the_old_file(self):
        self.write([[0], [1]])
        before = self.path.read_bytes()
        # Noticed while features are written.
        self.refused("row 1, column 0 is inf", self.write, [[0], [1]], x=[[1.0], [np.inf]])
        self.assertEqual(self.path.read_bytes(), before)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["graph.h5"])

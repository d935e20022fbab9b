"""Files of version 2 that h5py wrote, as they should be and damaged: `info` and `digest`.

Laws: a file of h5py reads as one of ours; each damage is exit code 3 and one message that names the place; one changed value in any data
set is refused by the name of the data set, whatever the number of ranks; --write takes what is there.
"""

import unittest

import h5py
import numpy as np

from tests.app.digest_test import dataset_digest, mix, names_of, stated
from tests.app.program import ProgramTest

# Two authors (0, 1), three papers (2 to 4), nobody of type editor, one journal (5). Relations: writes, cites, rev_writes, in, edits.
# Row:                    0: rev_writes | 1: rev_writes | 2: writes, cites | 3: writes     | 4: nothing | 5: in
INDPTR = [0, 2, 3, 6, 8, 8, 11]
INDICES = [2, 3, 3, 0, 3, 4, 0, 1, 2, 3, 4]
SEGMENT_PTR = [0, 1, 2, 4, 5, 5, 6]
SEGMENT_RELATION = [2, 2, 0, 1, 0, 3]
SEGMENT_BEGIN = [0, 2, 3, 4, 6, 8]


def texts(*names):
    return np.array(names, dtype="S")


def write_typed(path, **changed):
    """With other values for data sets (graph__indices=...), None for one that is missing, or other attributes."""
    arrays = {
        "types/name": texts("author", "paper", "editor", "journal"), "types/offset": np.array([0, 2, 5, 5, 6]),
        "relations/name": texts("writes", "cites", "rev_writes", "in", "edits"),
        "relations/source": np.array([0, 1, 1, 1, 2], np.int32), "relations/target": np.array([1, 1, 0, 3, 3], np.int32),
        "relations/inverse": np.array([2, -1, 0, -1, -1], np.int32),
        "graph/indptr": np.array(INDPTR), "graph/indices": np.array(INDICES, np.int32),
        "graph/weights": np.arange(11, dtype=np.float32) / 4,
        "graph/segment_ptr": np.array(SEGMENT_PTR), "graph/segment_relation": np.array(SEGMENT_RELATION, np.uint8),
        "graph/segment_begin": np.array(SEGMENT_BEGIN),
        "nodes/author/features": np.arange(4, dtype=np.float32).reshape(2, 2),
        "nodes/paper/features": np.arange(9, dtype=np.float16).reshape(3, 3), "nodes/paper/labels": np.array([1, 0, 1], np.int32),
        "nodes/journal/labels": np.array([[0, 1]], np.uint8),
        "split/paper/train": np.array([0, 2]), "split/paper/valid": np.array([1]),
    }
    attributes = {"format": "espalier-graph", "version": 2, "name": "typed", "source": "a test"}
    for name, value in changed.items():
        if name in attributes:
            attributes[name] = value
        else:
            arrays[name.replace("__", "/")] = value
    with h5py.File(path, "w") as file:
        for name, value in attributes.items():
            file.attrs[name] = value
        for name, value in arrays.items():
            if value is not None:
                file[name] = value


def but(values, place, value, kind=np.int64):
    """The values with another one at a place."""
    changed = np.array(values, kind)
    changed[place] = value
    return changed


class TypedFile(ProgramTest):
    def setUp(self):
        super().setUp()
        self.graph = self.folder / "graph.h5"

    def refuse(self, words, ranks=(1, 3)):
        for count in ranks:
            output = self.fail_with(3, [words, str(self.graph)], "digest", self.graph, ranks=count)
            self.assertNotIn("HDF5-DIAG", output)


class Read(TypedFile):
    def test_a_file_of_h5py(self):
        write_typed(self.graph)
        for ranks in (1, 2, 6):
            self.assertIn("the file has no digest", self.succeed("digest", self.graph, ranks=ranks))

    def test_other_spellings_of_the_same(self):
        seen = set()
        for spelling in (dict(), dict(graph__segment_relation=np.array(SEGMENT_RELATION, np.uint16)),
                         dict(graph__indices=np.array(INDICES, np.int64)), dict(types__offset=np.array([0, 2, 5, 5, 6], np.int16)),
                         dict(types__name=np.array(["author", "paper", "editor", "journal"], "S31")),
                         dict(relations__inverse=np.array([2, -1, 0, -1, -1], np.int8)),
                         dict(graph__segment_begin=np.array(SEGMENT_BEGIN, np.uint32))):
            write_typed(self.graph, **spelling)
            seen.add(self.succeed("digest", self.graph).splitlines()[-2])
        self.assertEqual(len(seen), 1)

    def test_what_the_digests_are(self):
        write_typed(self.graph)
        self.succeed("digest", self.graph, "--write", ranks=2)
        with h5py.File(self.graph) as file:
            for name in names_of(file):
                values = file[name][()]
                if values.dtype.kind == "S":
                    values = np.array([hash_of(text) for text in values], np.uint64).view(np.int64)
                self.assertEqual(stated(file[name]), f"{dataset_digest(values):016x}", name)
        self.assertIn("holds what its digests say", self.succeed("digest", self.graph, ranks=3))


def hash_of(text):
    state = 0
    for letter in text:
        state = mix(state ^ letter)
    return mix(state)


class Refuse(TypedFile):
    def test_versions(self):
        write_typed(self.graph, version=3)
        self.refuse("has format version 3, but this program reads versions 1 and 2")

    def test_data_sets_that_are_missing_or_of_another_shape(self):
        for name in ("types/name", "types/offset", "relations/name", "relations/source", "relations/target", "relations/inverse",
                     "graph/segment_ptr", "graph/segment_relation", "graph/segment_begin"):
            write_typed(self.graph, **{name.replace("/", "__"): None})
            self.refuse(f"there is no dataset /{name}", ranks=(1,))
            write_typed(self.graph, **{name.replace("/", "__"): np.zeros((2, 2), np.int64)})
            self.refuse(f"/{name} has 2 dimensions, expected 1", ranks=(1,))
        for name in ("types/offset", "relations/source", "graph/segment_ptr", "graph/segment_begin"):
            write_typed(self.graph, **{name.replace("/", "__"): np.zeros(5)})
            self.refuse(f"/{name} does not hold integers", ranks=(1,))

    def test_lengths(self):
        cases = [(dict(types__offset=np.array([0, 2, 5, 6])), "/types/offset has 4 entries for 4 types"),
                 (dict(relations__source=np.zeros(4, np.int32)), "/relations/source has 4 entries for 5 relations"),
                 (dict(relations__target=np.zeros(6, np.int32)), "/relations/target has 6 entries for 5 relations"),
                 (dict(relations__inverse=np.zeros(1, np.int32)), "/relations/inverse has 1 entries for 5 relations"),
                 (dict(graph__segment_ptr=np.array(SEGMENT_PTR[:-1])), "/graph/segment_ptr has 6 entries, but the graph has 6 vertices"),
                 (dict(graph__segment_begin=np.array(SEGMENT_BEGIN[:-1])),
                  "/graph/segment_begin has 5 entries, but /graph/segment_relation has 6"),
                 (dict(nodes__paper__features=np.zeros((6, 3), np.float32)), "/nodes/paper/features has 6 rows, but the type has 3 vertices"),
                 (dict(nodes__paper__labels=np.zeros(2, np.int32)), "/nodes/paper/labels has 2 rows, but the type has 3 vertices"),
                 (dict(split__paper__train=np.arange(4)), "/split/paper/train has 4 ids, but the type has 3 vertices")]
        for changed, words in cases:
            write_typed(self.graph, **changed)
            self.refuse(words, ranks=(1,))

    def test_names(self):
        many = texts(*(f"t{k}" for k in range(257)))
        cases = [(dict(types__name=texts("author", "paper", "author", "journal")), "two vertex types are called author"),
                 (dict(types__name=texts("author", "paper", "a.b", "journal")), 'the vertex type "a.b"'),
                 (dict(types__name=texts("author", "paper", "", "journal")), "a vertex type without a name"),
                 (dict(relations__name=texts("writes", "writes", "x", "in", "in"), relations__source=np.array([0, 1, 1, 1, 1], np.int32)),
                  "two relations are called paper.in.journal"),
                 (dict(types__name=np.arange(4)), "/types/name is no list of texts of fixed length"),
                 (dict(relations__name=np.array(["a", "b", "c", "d", "e"], object)), "/relations/name is no list of texts of fixed length"),
                 (dict(types__name=many), "/types/name has 257 names, expected 1 to 256"),
                 (dict(relations__name=many[:0]), "/relations/name has 0 names, expected 1 to 256"),
                 (dict(relations__name=np.array(["a", "b", "c", "d", "e" * 1025], "S")), "the names in /relations/name have 1025 letters")]
        for changed, words in cases:
            write_typed(self.graph, **changed)
            self.refuse(words, ranks=(1,))
        write_typed(self.graph, types__name=texts("author", "paper", "author", "journal"))
        self.refuse("two vertex types are called author", ranks=(3,))

    def test_types_and_relations_that_do_not_fit(self):
        cases = [(dict(types__offset=np.array([0, 2, 5, 5, 7])), "/types/offset ends with 7, but the graph has 6 vertices"),
                 (dict(types__offset=np.array([1, 2, 5, 5, 6])), "the vertices of type author are [1, 2), but 0 is the next"),
                 (dict(types__offset=np.array([0, 2, 5, 4, 6])), "the vertices of type editor are [5, 4), but 5 is the next"),
                 (dict(relations__source=np.array([0, 1, 4, 1, 2])), "relation rev_writes is of type 4, of 4"),
                 (dict(relations__target=np.array([1, 1, 2**40, 3, 3])), "relation rev_writes is of type 2147483647, of 4"),
                 (dict(relations__target=np.array([1, -1, 0, 3, 3])), "relation cites is of type -1, of 4"),
                 (dict(relations__inverse=np.array([2, -1, 0, 5, -1])), "the inverse of relation paper.in.journal is 5, of 5"),
                 (dict(relations__inverse=np.array([2, -3, 0, -1, -1])), "the inverse of relation paper.cites.paper is -3, of 5"),
                 (dict(relations__inverse=np.array([2, -1, -1, -1, -1])),
                  "relation paper.rev_writes.author cannot be the inverse of author.writes.paper"),
                 (dict(relations__inverse=np.array([1, 0, -1, -1, -1])),
                  "relation paper.cites.paper cannot be the inverse of author.writes.paper")]
        for changed, words in cases:
            write_typed(self.graph, **changed)
            self.refuse(words, ranks=(1,))

    def test_segments(self):
        relation, begin, ptr = SEGMENT_RELATION, SEGMENT_BEGIN, SEGMENT_PTR
        cases = [(dict(graph__segment_ptr=but(ptr, 0, 1)), "/graph/segment_ptr starts with 1, not with 0"),
                 (dict(graph__segment_ptr=but(ptr, 6, 5)), "/graph/segment_ptr ends with 5, but /graph/segment_relation has 6 entries"),
                 (dict(graph__segment_ptr=but(ptr, 3, 1)), "/graph/segment_ptr is not ascending within [0, 6]: entry 3 is 1 after 2"),
                 (dict(graph__segment_ptr=but(ptr, 2, 99)), "/graph/segment_ptr is not ascending within [0, 6]: entry 2 is 99"),
                 (dict(graph__segment_ptr=but(ptr, 4, 4)), "/graph/segment_ptr: row 3 has 2 entries, but no segment"),
                 (dict(graph__segment_ptr=but(ptr, 5, 6), graph__segment_relation=but(relation, 5, 0)),
                  "the last segment of row 4 begins at entry 8, but the row ends at 8"),
                 (dict(graph__segment_relation=but(relation, 5, 5)), "/graph/segment_relation: row 5 has relation 5, of 5"),
                 (dict(graph__segment_relation=but(relation, 5, -1)), "/graph/segment_relation: row 5 has relation -1, of 5"),
                 (dict(graph__segment_relation=but(relation, [2, 3], [1, 0])),
                  "the relations of row 2 are not strictly ascending (0 after 1)"),
                 (dict(graph__segment_relation=but(relation, 3, 0)), "the relations of row 2 are not strictly ascending (0 after 0)"),
                 (dict(graph__segment_relation=but(relation, 4, 2)),
                  "/graph/segment_relation: row 3 is of type paper, but has an edge of relation paper.rev_writes.author"),
                 (dict(graph__segment_begin=but(begin, 0, 1)), "/graph/segment_begin: segment 0 of row 0 begins at entry 1, not at 0"),
                 (dict(graph__segment_begin=but(begin, 2, 2)), "segment 0 of row 2 begins at entry 2, not at 3"),
                 (dict(graph__segment_begin=but(begin, 3, 3)), "segment 1 of row 2 begins at entry 3, not after 3"),
                 (dict(graph__segment_begin=but(begin, 3, 6)), "the last segment of row 2 begins at entry 6, but the row ends at 6"),
                 (dict(graph__segment_begin=but(begin, 3, 9)), "the last segment of row 2 begins at entry 9, but the row ends at 6"),
                 (dict(graph__segment_begin=but(begin, 5, -8)), "segment 0 of row 5 begins at entry -8, not at 8")]
        for changed, words in cases:
            write_typed(self.graph, **changed)
            self.refuse(words)

    def test_sources(self):
        cases = [(4, 1, "row 2 names vertex 1, but the source type of its relation has vertices 2 to 4"),
                 (7, 2, "row 3 names vertex 2, but the source type of its relation has vertices 0 to 1"),
                 (3, -1, "row 2 names vertex -1"), (10, 6, "row 5 names vertex 6"),
                 (5, 3, "/graph/indices: the columns of row 2 are not strictly ascending (3 after 3)"),
                 (8, 4, "/graph/indices: the columns of row 5 are not strictly ascending (3 after 4)")]
        for place, value, words in cases:
            write_typed(self.graph, graph__indices=but(INDICES, place, value))
            self.refuse(words)
        write_typed(self.graph, graph__segment_relation=but(SEGMENT_RELATION, 5, 4))
        self.refuse("/graph/indices: row 5 names vertex 2, but the source type of its relation has none")

    def test_vertices_of_types(self):
        features = np.zeros((3, 3), np.float32)
        features[2, 1] = np.inf
        cases = [(dict(nodes__paper__features=features), "/nodes/paper/features: row 2, column 1 is not a finite number"),
                 (dict(nodes__paper__labels=np.array([1, -4, 1])), "/nodes/paper/labels: vertex 1 has label -4"),
                 (dict(nodes__journal__labels=np.array([[0, 7]], np.uint8)), "/nodes/journal/labels: row 0 holds 7"),
                 (dict(split__paper__valid=np.array([3])), "/split/paper/valid: entry 0 is 3, but the type has vertices 0 to 2"),
                 (dict(split__paper__train=np.array([2, 0])), "/split/paper/train: ids are not strictly ascending"),
                 (dict(split__paper__valid=np.array([2])), "vertex 2 is in /split/paper/train and in /split/paper/valid"),
                 (dict(nodes__paper__labels=np.array([1, -1, 1])), "vertex 1 of /split/paper/valid has no label (-1)")]
        for changed, words in cases:
            write_typed(self.graph, **changed)
            self.refuse(words, ranks=(2,))


class Damage(TypedFile):
    """One value is changed, to one that every other check allows."""

    CHANGES = {"/types/name": (1, b"papers"), "/types/offset": (2, 4), "/relations/name": (4, b"x"), "/relations/source": (4, 3),
               "/relations/target": (4, 1), "/relations/inverse": (1, 1), "/graph/indptr": (4, 7), "/graph/indices": (5, 3),
               "/graph/weights": (10, 0.125), "/graph/segment_ptr": (3, 3), "/graph/segment_relation": (5, 2),
               "/graph/segment_begin": (3, 5), "/nodes/author/features": ((1, 1), 0.5), "/nodes/paper/features": ((2, 0), 1),
               "/nodes/paper/labels": (0, 0), "/nodes/journal/labels": ((0, 0), 255), "/split/paper/train": (1, 1),
               "/split/paper/valid": (0, 0)}

    def test_one_changed_value_is_refused_by_name(self):
        write_typed(self.graph, types__name=np.array(["author", "paper", "editor", "journal"], "S9"),
                    graph__indices=but(INDICES, 4, 2))  # row 2 cites 2 and 4, so that 3 in place of 4 is allowed
        self.succeed("digest", self.graph, "--write")
        with h5py.File(self.graph) as file:
            self.assertEqual(set(names_of(file)), set(self.CHANGES))
        whole = self.graph.read_bytes()
        for name, (place, value) in self.CHANGES.items():
            self.graph.write_bytes(whole)
            with h5py.File(self.graph, "r+") as file:
                values = file[name][()]
                values[place] = value
                self.assertFalse(np.array_equal(values, file[name][()]), name)
                file[name][...] = values
            for ranks in (1, 3):
                self.fail_with(3, [f": {name} does not hold what was written there"], "digest", self.graph, ranks=ranks)

    def test_a_data_set_that_is_gone_or_new(self):
        write_typed(self.graph)
        self.succeed("digest", self.graph, "--write")
        with h5py.File(self.graph, "r+") as file:
            del file["nodes/author/features"]
        self.refuse("its data sets are not those that were written")

    def test_write_takes_what_is_there(self):
        write_typed(self.graph)
        self.succeed("digest", self.graph, "--write")
        with h5py.File(self.graph, "r+") as file:
            file["relations/name"][1] = b"mends"
        self.refuse("/relations/name does not hold what was written there", ranks=(2,))
        self.succeed("digest", self.graph, "--write", ranks=2)
        self.assertIn("holds what its digests say", self.succeed("digest", self.graph))


if __name__ == "__main__":
    unittest.main()

"""write_graph: bad input is one DataError that says what, where first and what to do, and leaves no
file."""

import itertools

import numpy as np

from tests.app.program import FolderTest
from tests.python import DataTest

import espalier

EDGES, N = np.array([[0, 1, 2], [1, 2, 3]]), 4
X = np.arange(8.0).reshape(4, 2)
TYPED = {("a", "to", "a"): EDGES}


def changed(array, at, value):
    array = np.array(array)
    array[at] = value
    return array


# One argument that is wrong in a call: words of the message, and what is given for it.
WRONG_BY_ITSELF = {
    "x": [
        ("x: row 2, column 1 is nan, but features are finite", changed(X, (2, 1), np.nan)),
        ("x: row 0, column 0 is -inf, but features are finite", changed(X, (0, 0), -np.inf)),
        ("x: row 1, column 0 is 1e+39, which is too large for float32", changed(X, (1, 0), 1e39)),
        ("x: row 70000, column 0 is nan", changed(np.zeros((70001, 1)), (70000, 0), np.nan)),
        ("x[0, 0] is masked; say by .filled", np.ma.masked_less(X, 1)),
        ("x has 3 dimensions", X.reshape(4, 2, 1)),
        ("x has no columns", X[:, :0]),
        (
            "x[1, 1] is 'a', a Python object; give numbers",
            np.array([[1, 2], [3, "a"], [1, 1], [1, 1]], dtype=object),
        ),
        ("x is an array of Python objects; give numbers", X.astype(object)),
        ("x holds <U3", [["1.0"], ["2.0"], ["3.0"], ["4.0"]]),
        ("x holds complex128", X * 1j),
        ("x is no array", [[1], [2, 3], [1], [1]]),
        ("x is a dictionary by type, but edge_index is not", {"a": X}),
    ],
    "y": [
        ("y[0] is True; give texts", [True, "a", "b", "c"]),
        ("y[2] is 1000000000, which makes 1000000001 classes of", changed(np.zeros(N), 2, 10**9)),
        ("y has the shape [3], but there are 4 vertices", [0, 1, 2]),
        ("y[1] is -2; labels are -1 (none) or classes from 0", [0, -2, 1, 1]),
        ("y[2] is 0.5; labels are classes", [0, 1, 0.5, 1]),
        ("y[3] is 4294967296", [0, 1, 1, 2**32]),
        ("y[2, 1] is 2; labels are 0, 1, or -1", [[0, 1], [1, 1], [1, 2], [0, 0]]),
        ("y[2] is 7; give texts", np.array(["a", "b", 7, "c"], dtype=object)),
    ],
    "edge_index": [
        (
            "edge_index[1][2] is 4, but the graph has the vertices 0 to 3; ids count from 0",
            changed(EDGES, (1, 2), 4),
        ),
        (
            "edge_index[1][2] is 9, but the graph has the vertices 0 to 3; say num_nodes=",
            changed(EDGES, (1, 2), 9),
        ),
        ("edge_index[0][1] is -1, but the graph has the vertices 0 to 3", changed(EDGES, (0, 1), -1)),
        (
            "edge_index holds floats (float64), the first is 0.0; give whole numbers: "
            "edge_index.astype(numpy.int64)",
            EDGES.astype(float),
        ),
        ("edge_index holds bool", EDGES.astype(bool)),
        ("edge_index holds <U1", EDGES.astype("U1")),
        ("edge_index has the shape [3, 2]; give its transpose", EDGES.T),
        ("edge_index has the shape [3]", EDGES[0]),
        ("edge_index has 3 sources, but 2 targets", (EDGES[0], EDGES[1, :2])),
        (
            "edge_index[0, 1] is 18446744073709551615, which does not fit 64 bits",
            changed(EDGES.astype(np.uint64), (0, 1), 2**64 - 1),
        ),
        ("edge_index[1][1] is 36893488147419103232, which does not fit 64 bits", [[0, 1], [1, 2**65]]),
        ("edge_index[0, 1] is None, a Python object; give whole numbers", np.array([[0, None], [1, 2]])),
        ("edge_index is None", None),
        ("x is no dictionary, but edge_index is one", TYPED),
    ],
    "edge_weight": [
        ("edge_weight[1] is -2.0; weights are not negative", [1, -2, 3]),
        ("edge_weight: row 2, column 0 is nan, but weights are", [1, 2, np.nan]),
        ("edge_weight has 2 rows, but there are 3 edges", [1, 2]),
        ("edge_weight has 2 columns", np.ones((3, 2))),
    ],
    "edge_features": [
        ("edge_features has 4 rows, but there are 3 edges", np.ones((4, 1))),
        ("edge_features: row 2, column 0 is inf", [[1], [2], [np.inf]]),
    ],
    "edge_time": [
        ("edge_time[1] is no date", np.array(["2000-01-01", "NaT", "2000-01-01"], dtype="datetime64[s]")),
        ("edge_time has the shape [2], but there are 3 edges", [1, 2]),
    ],
    "train": [
        ("train is a mask of 3 entries, but there are 4 vertices", [True, False, True]),
        ("train[1] is 4, but the graph has the vertices 0 to 3", [0, 4]),
        ("train[2] is 0, as train[0] is; name each vertex once", [0, 1, 0]),
        ("train has an entry of 0 or 1 for each vertex, as a mask has", [0, 1, 1, 0]),
        ("train holds floats (float64), the first is 0.0", [0.0, 1.0]),
    ],
    "splits": [
        ("splits is [0]; give {name:", [0]),
        ("splits['a'] is [0]; give a dictionary of train", {"a": [0]}),
        ("splits['a'] is {'trial': [0]}", {"a": {"trial": [0]}}),
        ("the split 'a/b': its name holds letters", {"a/b": {"train": [0]}}),
        ("the split 'test': its name", {"test": {"train": [0]}}),
        ("the split '.': its name", {".": {"train": [0]}}),
        ("splits['a']['train'][1] is 4, but the graph", {"a": {"train": [0, 4]}}),
        (
            "vertex 1 is in splits['a']['train'] and in splits['a']['test']",
            {"a": {"train": [0, 1], "test": [1]}, "b": {"train": [1]}},
        ),
        (
            "splits['a']['train'] is a dictionary by type, but edge_index is not",
            {"a": {"train": {"paper": [0]}}},
        ),
    ],
    "ids": [
        ("ids has the shape [3], but there are 4 vertices", list("abc")),
        ("ids[3] is 'a', as ids[0] is", list("abca")),
        ("ids[2] is 5, as ids[0] is", [5, 6, 5, 7]),
        ("ids holds floats", [1.0, 2.0, 3.0, 4.0]),
        ("ids[1] is empty", ["a", "", "b", "c"]),
        ("ids[1] holds a null byte", ["a", "b\0c", "b", "c"]),
        ("ids[1] has 1025 bytes; at most 1024 are kept", ["a", "b" * 1025, "b", "c"]),
        ("ids[1] is '\\ud800', which UTF-8 cannot say", ["a", "\ud800", "b", "c"]),
        ("ids[1] is None; give texts", np.array(["a", None, "b", "c"], dtype=object)),
    ],
}
RELATIONS = {
    ("a", "to", "b"): [[0, 1], [1, 0]],
    ("b", "of", "a"): [[1], [0]],
    ("b", "on", "a"): [[1, 0], [0, 1]],
    ("a", "by", "a"): [[0], [1]],
}
WRONG_INVERSES = [
    ("inverse is 'to'; give {relation: its inverse}", "to"),
    ("inverse names 'from', which is no relation", {"to": "from"}),
    ("inverse: 'to' and 'by' join other types", {"to": "by"}),
    ("inverse: 'to' has the edge 1 to 0, but 'of' has not 0 to 1; leave it out", {"to": "of"}),
    ("inverse: 'to' has the edge 1 to 0, but 'of' has not 0 to 1", {"of": "to"}),
    ("'of' and 'to', but one of them has the inverse 'on'", {"to": "on", "of": "to"}),
]
# Words of the message, and what is wrong in a call.
WRONG = [
    *((words, {name: given}) for name, cases in WRONG_BY_ITSELF.items() for words, given in cases),
    ("matrix_rows is 'rows'; say", {"matrix_rows": "rows"}),
    ("directed is 'no'; give a bool", {"directed": "no"}),
    ("inverse is of a graph with types", {"inverse": {}}),
    ("duplicates is 'most'; say one of sum, mean, max, first, last", {"duplicates": "most"}),
    ("duplicate_features is 'max'; say one of kept, first", {"duplicate_features": "max"}),
    ("class_names names classes, but there is no y", {"class_names": ["a"]}),
    ("valid has the shape [4, 3]; give one split, a column of it", {"valid": np.ones((4, 3), dtype=bool)}),
    ("num_nodes is 4.0; give a whole number", {"num_nodes": 4.0}),
    ("the folder /nowhere is not there", {"path": "/nowhere/graph.h5"}),
    (
        "edge_features: row 2, column 1 is inf",
        {"edge_index": EDGES[:, ::-1], "edge_features": changed(np.ones((3, 2)), (2, 1), np.inf)},
    ),
    *((words, {"edge_index": RELATIONS, "x": None, "inverse": inverse}) for words, inverse in WRONG_INVERSES),
    ("x has 3 rows, but there are 4 vertices", {"x": X[:3], "num_nodes": 4}),
    ("the graph is empty: it has no vertices", {"edge_index": np.zeros((2, 0)), "x": None}),
    (
        "edge_index has the key (1, 'to', 1); give (source, relation, target)",
        {"edge_index": {(1, "to", 1): EDGES, ("a", "to", "a"): EDGES}, "x": None},
    ),
    (
        "edges name the vertex 900719925474099, but there are few of them: number the vertices",
        {"edge_index": changed(EDGES, (0, 1), 900719925474099), "x": None},
    ),
    (
        "edge_index: edge 3 (1 to 2) is listed before, as edge 1; say duplicates=",
        {"edge_index": np.array([[0, 1, 2, 1], [1, 2, 3, 2]]), "duplicates": "refuse"},
    ),
    (
        "edge_index: edge 3 (2 to 1) is listed before, as edge 1, the other way round",
        {"edge_index": np.array([[0, 1, 2, 2], [1, 2, 3, 1]]), "duplicates": "refuse", "directed": False},
    ),
    (
        "duplicate_features is 'sum', but duplicates=\"refuse\" leaves none",
        {"duplicates": "refuse", "duplicate_features": "sum"},
    ),
    (
        "the weights of 1 to 2 add up to more than float32 holds",
        {"edge_index": np.array([[0, 1, 1], [1, 2, 2]]), "edge_weight": [1, 3e38, 3e38]},
    ),
    ("y[1] is 'b', which is none of class_names", {"y": list("abca"), "class_names": ["a", "c"]}),
    (
        "y[1] is 2; labels are -1 (none) or 0 to 1, as there are 2 class_names",
        {"y": [0, 2, 1, 1], "class_names": ["a", "b"]},
    ),
    ("class_names has 'a' twice", {"y": [0, 0, 0, 0], "class_names": ["a", "b", "a"]}),
    ("class_names[1] is empty", {"y": [0, 0, 0, 0], "class_names": ["a", ""]}),
    ("vertex 2 is in train and in test; splits share no vertex", {"train": [0, 2], "test": [3, 2]}),
    ("vertex 2 of train has no label", {"train": [0, 2], "y": [0, 1, -1, 0]}),
    ("vertex 2 of test has no label", {"test": [2], "y": ["a", "b", None, "b"]}),
    (
        "edge_index has the key 'to'; give (source, relation, target)",
        {"edge_index": {"to": EDGES}, "x": None},
    ),
    ("x names the type 'b', but edge_index has only ['a']", {"edge_index": TYPED, "x": {"a": X, "b": X}}),
    (
        "edge_weight names ('a', 'on', 'a'), which edge_index has not",
        {"edge_index": TYPED, "x": {"a": X}, "edge_weight": {("a", "on", "a"): [1, 1, 1]}},
    ),
    ("the type 'a b': names hold letters, digits", {"edge_index": {("a b", "to", "a b"): EDGES}, "x": None}),
    (
        "the relation 'to.b': names hold letters, digits",
        {"edge_index": {("a", "to.b", "a"): EDGES}, "x": None},
    ),
    (
        "edge_index[('a', 'to', 'b')][1][1] is 2, but the type b has the vertices 0 to 1",
        {"edge_index": {("a", "to", "b"): EDGES}, "x": {"a": X}, "num_nodes": {"b": 2}},
    ),
    ("x['a']: row 3, column 0 is nan", {"edge_index": TYPED, "x": {"a": changed(X, (3, 0), np.nan)}}),
    ("257 relations", {"edge_index": {("a", f"to{k}", "a"): EDGES for k in range(257)}, "x": None}),
]


JUNK = [
    3, 2.5, True, "x", b"x", float("nan"), 2**70, object(), iter([1]), {1: 2}, {"a": 1}, set(),
    [], [[]], [[], []], [None], ["a", None], [object()], [True, "a", 3, 4], [2**70, 1, 1, 1],
    np.array("x"), np.array(5), np.zeros(0), np.zeros((4, 0)), np.zeros((0, 4)),
    np.zeros((2, 2, 2)),
    np.array([1j]), np.array(["NaT"], dtype="datetime64[s]"), np.array([1], dtype="timedelta64[s]"),
    np.zeros(4, dtype=[("a", int)]), np.array([[1, 2], [3]], dtype=object), np.array([b"\xff"] * 4),
    np.ma.masked_array([1, 2, 3, 4], [0, 1, 0, 0]), {("a", "b", "c"): None},
]  # fmt: skip
PARTS = (
    "splits",
    "edge_index", "x", "y", "train", "num_nodes", "edge_weight", "edge_features", "edge_time",
    "ids", "class_names", "directed", "inverse", "matrix_rows", "duplicates", "duplicate_features", "name",
)  # fmt: skip


class Refusal(DataTest, FolderTest):
    def test_each_in_its_words(self):
        for words, wrong in WRONG:
            arguments = {"path": self.folder / "graph.h5", "edge_index": EDGES, "x": X} | wrong
            self.refused(words, espalier.write_graph, **arguments)
            self.assertEqual(list(self.folder.iterdir()), [])

    def test_junk_is_taken_or_refused(self):
        """Whatever stands for an argument: no exception but DataError, and then no file."""
        path = self.folder / "graph.h5"
        for typed, part, junk in itertools.product((False, True), PARTS, JUNK):
            key = ("a", "to", "a") if part.startswith("edge") else "a"
            given = {"edge_index": TYPED, "x": {"a": X}, "y": {"a": [0, 1, 0, 1]}}
            if not typed:
                given = {name: next(iter(value.values())) for name, value in given.items()}
            of_kind = typed and part not in ("directed", "inverse", "matrix_rows", "duplicates", "duplicate_features", "name")
            given[part] = {key: junk} if of_kind else junk
            with self.subTest(part=part, typed=typed, junk=repr(junk)):
                try:
                    espalier.write_graph(path, **given)
                    path.unlink()
                except espalier.DataError as refused:
                    self.assertNotIn("\n", str(refused).replace(repr(junk), ""))
                    self.assertEqual(list(self.folder.iterdir()), [])

    def test_the_right_ones_are_taken(self):
        """So that no refusal above is of something else."""
        options = {"edge_weight": [1, 2, 3], "ids": list("abcd"), "class_names": ["no", "yes"]}
        path = self.folder / "graph.h5"
        said = espalier.write_graph(path, EDGES, X, [0, 1, 1, 0], train=[0, 2], **options)
        self.assertEqual(said.edges, 3)

    def test_a_data_error_is_a_value_error(self):
        self.assertTrue(issubclass(espalier.DataError, ValueError))

"""Files of version 2: those that h5py wrote, as they should be and damaged, and those of `generate planted --types`.

Laws: a file of h5py reads as one of ours, and `info` counts in it what can be counted by hand; each damage is exit code 3 and one message
that names the place; one changed value in any data set is refused by the name of the data set, whatever the number of ranks; --write
takes what is there; a generated file is the same for any number of ranks.
"""

import numpy as np

from tests.app.digest_test import dataset_digest, mix, stated
from tests.app.program import LONG, ProgramTest, arrays_of, awkward_graph, espalier, put, read, set_at, set_attributes, write_file

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
        "edges/author.writes.paper/features": np.arange(6, dtype=np.float32).reshape(3, 2) - 1,
        "edges/paper.in.journal/features": np.array([[1], [0], [2]], np.float16),
    }
    attributes = {"format": "espalier-graph", "version": 2, "name": "typed", "source": "a test"}
    arrays |= {name.replace("__", "/"): value for name, value in changed.items() if name not in attributes}
    write_file(path, {name: changed.get(name, value) for name, value in attributes.items()}, arrays)


def but(values, place, value, kind=np.int64):
    """The values with another one at a place."""
    changed = np.array(values, kind)
    changed[place] = value
    return changed


class TypedFile(ProgramTest):
    def refuse(self, words, ranks=(1, 3)):
        self.damaged(words, "digest", ranks)

    def refuse_each(self, cases, ranks=3):
        """The first of them on one rank, too, and every second on one alone."""
        for number, (changed, words) in enumerate(cases):
            with self.subTest(words):
                write_typed(self.graph, **changed)
                self.refuse(words, {1, ranks} if number == 0 or LONG else (ranks if number % 2 == 0 else 1,))


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
        for name, values in arrays_of(self.graph).items():
            if values.dtype.kind == "S":
                values = np.array([hash_of(text) for text in values], np.uint64).view(np.int64)
            self.assertEqual(stated(self.graph, name), f"{dataset_digest(values):016x}", name)
        self.assertIn("holds what its digests say", self.succeed("digest", self.graph, ranks=3))


def hash_of(text):
    state = 0
    for letter in text:
        state = mix(state ^ letter)
    return mix(state)


class Info(TypedFile):
    """`info` on a graph with types: what the file of h5py above holds, counted by hand."""

    def lines(self, *arguments, ranks=1):
        return [line.split() for line in self.succeed("info", self.graph, *arguments, ranks=ranks).splitlines()]

    def test_types_and_relations(self):
        write_typed(self.graph)
        for ranks in (1, 2, 8):
            lines = self.lines(ranks=ranks)
            for wanted in ("vertices 6, of 4 types", "edges 11, of 5 relations, weighted, 32-bit ids", "self loops 0",
                           "isolated 0 vertices without any edge",
                           "author 2 2 x float32 none 0 0 0", "paper 3 3 x float16 2 classes 2 1 0", "editor 0 none none 0 0 0",
                           "journal 1 none 2 labels 0 0 0",
                           "author.writes.paper 3 1.000 2 paper.rev_writes.author", "paper.cites.paper 2 0.667 2 none",
                           "edge features author.writes.paper: 3 x 2 float32, from -1 to 4, 83.3 % not zero",
                           "edge features paper.in.journal: 3 x 1 float16, from 0 to 2, 66.7 % not zero",
                           "paper.rev_writes.author 3 1.500 2 author.writes.paper", "paper.in.journal 3 3.000 3 none",
                           "editor.edits.journal 0 0.000 0 none",
                           "target several types have labels: graph.target says which one is meant",
                           "features author: 2 x float32, from 0 to 3, 75.0 % not zero",
                           "features paper: 3 x float16, from 0 to 8, 88.9 % not zero",
                           "labels paper: 2 classes, 3 of 3 vertices labelled; class 0 has least (1), class 1 most (2)",
                           "labels journal: 2 per vertex, 0 or 1, 0.500 of them 1; label 0 has least (0), label 1 most (1)"):
                self.assertIn(wanted.split(), lines)

    def test_other_files(self):
        fewer = dict(graph__indptr=np.array([0, 2, 3, 6, 8, 8, 8]), graph__indices=np.array([2, 3, 3, 0, 2, 3, 0, 1], np.int32),
                     graph__segment_ptr=np.array([0, 1, 2, 4, 5, 5, 5]), graph__segment_relation=np.array([2, 2, 0, 1, 0], np.uint8),
                     graph__segment_begin=np.array([0, 2, 3, 4, 6]), graph__weights=None, **{"edges__paper.in.journal__features": None})
        for changed, *wanted in ((dict(nodes__journal__labels=None), "target paper"),
                                 (dict(nodes__journal__labels=None, nodes__paper__labels=None), "target none: no type has labels"),
                                 (fewer, "isolated 2 vertices without any edge", "edges 8, of 5 relations, unweighted, 32-bit ids"),
                                 (dict(graph__indices=but(INDICES, 4, 2)), "self loops 1"),
                                 (dict(graph__indices=but(INDICES, 1, 4)),
                                  "author.writes.paper 3 1.000 2 paper.rev_writes.author, wrongly: it has other edges")):
            write_typed(self.graph, **changed)
            for ranks in (1, 3):
                lines = self.lines(ranks=ranks)
                for line in wanted:
                    self.assertIn(line.split(), lines)

    def test_random_columns(self):
        self.make_once(self.graph, ("generate", "planted", "--types", "paper=300:5,author=70:3", "--relations", "author.writes.paper=160",
                                    "--no-inverse", "--classes", 4, "--labels", 3, "--edge-features", 2, "--seed", 3))
        papers, authors, edges, labels, train, indptr = read(
            self.graph, "nodes/paper/features", "nodes/author/features", "edges/author.writes.paper/features", "nodes/paper/labels",
            "split/paper/train", "graph/indptr")

        def facts(of):
            return f"float32, from {of.min():.4g} to {of.max():.4g}, {100 * (of != 0).mean():.1f} % not zero"
        ones, unreached = (labels == 1).sum(0), np.diff(indptr)[:300] == 0
        for ranks in (1, 3):
            lines = self.lines(ranks=ranks)
            for wanted in (f"features paper: 5 x {facts(papers)}", f"features author: 3 x {facts(authors)}",
                           f"edge features author.writes.paper: {len(edges)} x 2 {facts(edges)}",
                           f"labels paper: 3 per vertex, 0 or 1, {ones.sum() / labels.size:.3f} of them 1, {(labels == 255).sum()} unknown; "
                           f"label {ones.argmin()} has least ({ones.min()}), label {ones.argmax()} most ({ones.max()})",
                           f"no in-edge paper: {unreached.sum()} vertices, {unreached[train].sum()} of {len(train)} to train",
                           "no in-edge author: 70 vertices; no relation leads to them"):
                self.assertIn(wanted.split(), lines)

    def test_memory_adds_the_types_up(self):
        self.succeed("generate", "planted", "--types", "a=30000:7,b=20000,c=10000:3", "--relations", "a.x.b=7000,b.y.c=5000",
                     "-o", self.graph)
        topology, features = 4 * len(read(self.graph, "graph/indices")) + 8 * 60000, 4 * (7 * 30000 + 3 * 10000)
        output = self.succeed("info", self.graph, "--ranks", 8, "--replication", 2)
        for rows, name in ((4, "partitioned"), (1, "replicated")):
            wanted = [f"{x / 1024:.1f} KiB" for x in (topology / rows, features / 4)]
            row = next(line for line in output.splitlines() if line.split()[:1] == [name])
            self.assertEqual(row.split()[1:5], " ".join(wanted).split())


class Generate(TypedFile):
    TYPES = ("--types", "paper=400:6,author=300,field=40:3", "--relations", "author.writes.paper=1500,paper.about.field=900")

    def test_what_it_says(self):
        output = self.succeed("generate", "planted", *self.TYPES, "-o", self.graph)
        self.assertRegex(output, r"wrote +\S+: 740 vertices of 3 types, \d+ edges of 4 relations, 8 classes, in ")
        output = self.succeed("generate", "planted", *self.TYPES, "--no-inverse", "--labels", 3, "--half", "-o", self.graph, "--overwrite")
        self.assertRegex(output, r"740 vertices of 3 types, \d+ edges of 2 relations, 3 labels, in ")
        features, labels, inverse = read(self.graph, "nodes/paper/features", "nodes/paper/labels", "relations/inverse")
        self.assertEqual((features.dtype, labels.shape, inverse.tolist()), (np.float16, (400, 3), [-1, -1]))

    def test_the_example_of_the_help(self):
        text = self.succeed("help", "generate").replace("\\\n", "")
        line = next(line for line in text.splitlines() if "--types paper" in line)
        self.succeed(*line.split()[1:-1], self.graph)
        self.assertIn("32300, of 3 types", self.succeed("info", self.graph))

    def test_options_that_do_not_go_together(self):
        for extra, words in ((("--nodes", 10), "--nodes"), (("--degree", 3), "--degree"), (("--features", 3), "--features"),
                             (("--types", ""), "--types")):
            self.fail_with(2, [words], "generate", "planted", *self.TYPES, *extra, "-o", self.graph)
        for alone in (self.TYPES[:2], self.TYPES[2:], ("--no-inverse",)):
            self.fail_with(2, ["requires --"], "generate", "planted", *alone, "-o", self.graph)
        self.assertEqual(espalier("generate", "rmat", *self.TYPES, "-o", self.graph)[0], 2)

    def test_words_that_make_no_sense(self):
        def refuse(words, types, relations, ranks=1):
            self.fail_with(2, [words], "generate", "planted", "--types", types, "--relations", relations, "-o", self.graph, ranks=ranks)
        refuse("there is no type book; --types has a, b", "a=100,b=100", "a.x.book=3", ranks=3)
        refuse("--types b: give NAME=VERTICES[:FEATURES]", "a=100,b", "a.x.b=3")  # graph/planted_types_test has more
        self.assertEqual(list(self.folder.iterdir()), [])


class Refuse(TypedFile):
    def test_data_sets_that_are_missing_or_of_another_shape(self):
        numbers = ("types/offset", "relations/source", "graph/segment_ptr", "graph/segment_begin")
        names = ("types/name", "relations/name", "relations/target", "relations/inverse", "graph/segment_relation", *numbers)
        cases = [(name, value, words) for name in names for value, words in ((None, "there is no dataset /{}"),
                                                                             (np.zeros((2, 2), np.int64), "/{} has 2 dimensions, expected 1"))]
        cases += [(name, np.zeros(5), "/{} does not hold integers") for name in numbers]
        self.refuse_each([({name.replace("/", "__"): value}, words.format(name)) for name, value, words in cases], ranks=1)

    def test_types_and_relations(self):
        """Lengths; names, of which graph/schema_test has what there may be; of what does not fit one of each kind, and what only a file can be."""
        many = texts(*(f"t{k}" for k in range(257)))
        cases = [(dict(types__offset=np.array([0, 2, 5, 6])), "/types/offset has 4 entries for 4 types"),
                 (dict(relations__source=np.zeros(4, np.int32)), "/relations/source has 4 entries for 5 relations"),
                 (dict(relations__target=np.zeros(6, np.int32)), "/relations/target has 6 entries for 5 relations"),
                 (dict(relations__inverse=np.zeros(1, np.int32)), "/relations/inverse has 1 entries for 5 relations"),
                 (dict(graph__segment_ptr=np.array(SEGMENT_PTR[:-1])), "/graph/segment_ptr has 6 entries, but the graph has 6 vertices"),
                 (dict(graph__segment_begin=np.array(SEGMENT_BEGIN[:-1])),
                  "/graph/segment_begin has 5 entries, but /graph/segment_relation has 6"),
                 (dict(nodes__paper__features=np.zeros((6, 3), np.float32)), "/nodes/paper/features has 6 rows, but the type has 3 vertices"),
                 (dict(nodes__paper__labels=np.zeros(2, np.int32)), "/nodes/paper/labels has 2 rows, but the type has 3 vertices"),
                 (dict(nodes__paper__time=np.zeros(2, np.int64)), "/nodes/paper/time has 2 rows, but the type has 3 vertices"),
                 (dict(nodes__paper__time=np.zeros(3)), "/nodes/paper/time does not hold integers"),
                 (dict(split__paper__train=np.arange(4)), "/split/paper/train has 4 ids, but the type has 3 vertices"),
                 (dict(types__name=texts("author", "paper", "author", "journal")), "two vertex types are called author"),
                 (dict(types__name=np.arange(4)), "/types/name is no list of texts of fixed length"),
                 (dict(relations__name=np.array(["a", "b", "c", "d", "e"], object)), "/relations/name is no list of texts of fixed length"),
                 (dict(types__name=many), "/types/name has 257 names, expected 1 to 256"),
                 (dict(relations__name=many[:0]), "/relations/name has 0 names, expected 1 to 256"),
                 (dict(relations__name=np.array(["a", "b", "c", "d", "e" * 1025], "S")), "the names in /relations/name have 1025 letters"),
                 (dict(types__offset=np.array([0, 2, 5, 5, 7])), "/types/offset ends with 7, but the graph has 6 vertices"),
                 (dict(types__offset=np.array([1, 2, 5, 5, 6])), "the vertices of type author are [1, 2), but 0 is the next"),
                 (dict(relations__target=np.array([1, 1, 2**40, 3, 3])), "relation rev_writes is of type 2147483647, of 4"),
                 (dict(relations__inverse=np.array([2, -1, 0, 5, -1])), "the inverse of relation paper.in.journal is 5, of 5"),
                 (dict(relations__inverse=np.array([2, -1, -1, -1, -1])),
                  "relation paper.rev_writes.author cannot be the inverse of author.writes.paper")]
        self.refuse_each(cases, ranks=1)
        write_typed(self.graph, types__name=texts("author", "paper", "author", "journal"))
        self.refuse("two vertex types are called author", ranks=(3,))

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
        self.refuse_each(cases)

    def test_sources(self):
        cases = [(4, 1, "row 2 names vertex 1, but the source type of its relation has vertices 2 to 4"),
                 (7, 2, "row 3 names vertex 2, but the source type of its relation has vertices 0 to 1"),
                 (3, -1, "row 2 names vertex -1"), (10, 6, "row 5 names vertex 6"),
                 (5, 3, "/graph/indices: the columns of row 2 are not strictly ascending (3 after 3)"),
                 (8, 4, "/graph/indices: the columns of row 5 are not strictly ascending (3 after 4)")]
        self.refuse_each([(dict(graph__indices=but(INDICES, place, value)), words) for place, value, words in cases]
                         + [(dict(graph__segment_relation=but(SEGMENT_RELATION, 5, 4)),
                             "/graph/indices: row 5 names vertex 2, but the source type of its relation has none")])

    def test_features_of_edges(self):
        name, numbers = "edges__author.writes.paper__features", np.zeros((3, 2), np.float32)
        holes = but(numbers, (1, 0), np.nan, np.float32)
        called = "features of edges are called /edges/SOURCE.RELATION.TARGET/features"
        cases = [({name: numbers[:2]}, "/edges/author.writes.paper/features has 2 rows, but the relation has 3 edges"),
                 ({name: np.zeros((4, 2))}, "/edges/author.writes.paper/features has 4 rows, but the relation has 3 edges"),
                 ({name: np.zeros((12, 2))}, "/edges/author.writes.paper/features has 12 rows, but all relations together have 11 edges"),
                 ({name: numbers[:, 0]}, "/edges/author.writes.paper/features has 1 dimensions, expected 2"),
                 ({name: np.full((3, 2), "a", "S1")}, "/edges/author.writes.paper/features does not hold numbers"),
                 ({name: holes}, "/edges/author.writes.paper/features: row 1, column 0 is not a finite number"),
                 ({"edges__writes__features": numbers}, "there is a dataset /edges/writes/features, but " + called),
                 ({"edges__features": numbers}, "there is a dataset /edges/features, but " + called),
                 ({"edges__author.owns.paper__features": numbers}, "there is a dataset /edges/author.owns.paper/features, but " + called)]
        self.refuse_each(cases)
        self.fail_with(3, [cases[-1][1]], "info", self.graph, ranks=2)
        write_typed(self.graph, **{name: np.zeros((3, 0), np.float32)})
        self.assertNotIn("writes.paper: 3 x", self.succeed("info", self.graph))
        # Of the only relation.
        self.make_once(self.graph, ("generate", "planted", "--types", "page=40", "--relations", "page.links.page=90", "--edge-features", 1, "--no-inverse"))
        name = "edges/page.links.page/features"
        edges = len(read(self.graph, name))
        for rows in (edges - 1, edges + 1):
            put(self.graph, {name: np.zeros((rows, 1), np.float32)})
            self.refuse(f"/{name} has {rows} rows, but the graph has {edges} edges")

    def test_what_is_of_no_type(self):
        numbers, types = np.zeros((3, 2), np.float32), "none of the vertex types author, paper, editor, journal"
        for name, value in (("nodes/papers/features", numbers), ("nodes/papers/labels", np.zeros(3, np.int32)), ("nodes/time", np.arange(6)), ("split/papers/train", np.arange(2)),
                            ("nodes/features", numbers), ("nodes/labels", np.zeros(6, np.int32)), ("split/test", np.arange(2))):
            write_typed(self.graph, **{name: value})
            self.refuse(f"there is a dataset /{name}, but it is of {types}", ranks=(1, 3) if name == "nodes/papers/features" else (1,))
        write_typed(self.graph, **{"nodes/paper/time": np.array([3, -5, 2**40])})
        set_attributes(self.graph, "nodes/paper/time", unit="days")
        self.assertIn(f"times        paper: -5 to {2**40} days\n", self.succeed("info", self.graph, ranks=2))
        write_typed(self.graph, **{"nodes/papers/titles": np.arange(3), "nodes/paper/years": np.arange(3)})
        self.succeed("info", self.graph)
        awkward_graph(self.graph)
        put(self.graph, {"nodes/paper/features": numbers})
        self.refuse("there is a dataset /nodes/paper/features, but in a file without types it is called /nodes/features", ranks=(1,))

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
        self.refuse_each(cases, ranks=2)


class Damage(TypedFile):
    """One value is changed, to one that every other check allows."""

    CHANGES = {"/types/name": (1, b"papers"), "/types/offset": (2, 4), "/relations/name": (4, b"x"), "/relations/source": (4, 3),
               "/relations/target": (4, 1), "/relations/inverse": (1, 1), "/graph/indptr": (4, 7), "/graph/indices": (5, 3),
               "/graph/weights": (10, 0.125), "/graph/segment_ptr": (3, 3), "/graph/segment_relation": (5, 2),
               "/graph/segment_begin": (3, 5), "/nodes/author/features": ((1, 1), 0.5), "/nodes/paper/features": ((2, 0), 1),
               "/nodes/paper/labels": (0, 0), "/nodes/journal/labels": ((0, 0), 255), "/split/paper/train": (1, 1),
               "/split/paper/valid": (0, 0), "/edges/author.writes.paper/features": ((2, 1), 3.5),
               "/edges/paper.in.journal/features": ((1, 0), 0.25)}

    def test_one_changed_value_is_refused_by_name(self):
        write_typed(self.graph, types__name=np.array(["author", "paper", "editor", "journal"], "S9"),
                    graph__indices=but(INDICES, 4, 2))  # row 2 cites 2 and 4, so that 3 in place of 4 is allowed
        self.succeed("digest", self.graph, "--write")
        self.assertEqual({f"/{name}" for name in arrays_of(self.graph)}, set(self.CHANGES))
        self.each_change_is_refused(((name, *change) for name, change in self.CHANGES.items()), lambda number: [("digest", 1 + 2 * (number % 2))])

    def test_write_takes_what_is_there(self):
        write_typed(self.graph)
        self.succeed("digest", self.graph, "--write")
        set_at(self.graph, "relations/name", 1, b"mends")
        self.refuse("/relations/name does not hold what was written there", ranks=(2,))
        self.succeed("digest", self.graph, "--write", ranks=2)
        self.assertIn("holds what its digests say", self.succeed("digest", self.graph))

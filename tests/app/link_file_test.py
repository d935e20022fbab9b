"""Links in graph files: those that h5py wrote, as they should be and damaged.

Laws: `info` and `digest` take a file with links and nothing else; each damage is exit code 3 and one message that names the place; a task
that wants labels refuses such a file for want of them; one changed value is refused by the name of its data set.
"""

import itertools

import h5py
import numpy as np

from tests.app.program import LONG, ProgramTest, put, read, set_at, set_attributes, write_file
from tests.app.typed_file_test import but, texts, write_typed

# Six vertices, edges both ways between 0 and 1, 1 and 2, 3 and 4.
INDPTR, INDICES = [0, 1, 3, 4, 5, 6, 6], [1, 0, 2, 1, 4, 3]
LINKS = {
    "train/head": np.array([0, 1, 3]), "train/tail": np.array([1, 2, 4]), "train/relation": np.array([0, 1, 0], np.int32),
    "valid/head": np.array([4, 5]), "valid/tail": np.array([5, 0]), "valid/relation": np.array([1, 1], np.int32),
    "valid/negative_tails": np.array([[0, 1, 2], [3, 4, 5]]), "valid/negative_heads": np.array([[0], [1]]),
    "test/head": np.array([2]), "test/tail": np.array([5]), "test/relation": np.array([0], np.int32),
    "relations": texts("likes", "knows"),
}


def add_links(path, attributes=None, **changed):
    """With other values (train__head=...), or None for one that is missing."""
    with h5py.File(path, "a") as file:
        about = {"version": 1, "directed": np.uint8(1), **(attributes or {})}
        file.create_group("links").attrs.update({name: value for name, value in about.items() if value is not None})
    put(path, {f"links/{name.replace('__', '/')}": value for name, value in {**LINKS, **changed}.items()})


def write_pairs(path, **ids):
    write_file(path, {"format": "espalier-graph", "version": 1}, {
        "graph/indptr": np.array(INDPTR), "graph/indices": np.array(INDICES, np.int32), **{f"nodes/{name}": value for name, value in ids.items()}})


class LinkFile(ProgramTest):
    JOB = ()

    def setUp(self):
        super().setUp()
        self.turn = itertools.cycle((2, 1))

    def write(self, attributes=None, **changed):
        write_pairs(self.graph)
        add_links(self.graph, attributes, **changed)

    def refuse(self, words, command="digest", ranks=None):
        """On one rank or two by turns, with --long on both, or on those that are named."""
        self.damaged(words, command, ranks or ((1, 2) if LONG else (next(self.turn),)))


class Read(LinkFile):
    def test_what_info_says(self):
        self.write()
        for ranks in (1, 4):
            lines = self.succeed("info", self.graph, ranks=ranks).splitlines()
            for wanted in ("links        train 3, valid 2, test 1, directed", "of relations 2: likes, knows; they are no relations of the graph",
                           "negatives    valid: 1 head and 3 tails for each link"):
                self.assertIn(wanted, lines)

    def test_pairs_that_are_no_links(self):
        one = dict(relations=None, train__relation=None, valid__relation=None, test__relation=None, valid__negative_tails=None,
                   valid__negative_heads=None)
        self.write(**one, valid__non_links=np.array([[0, 3], [2, 5], [4, 0]]))
        for ranks in (1, 4):
            self.assertIn("negatives    valid: 3 pairs for all links", self.succeed("info", self.graph, ranks=ranks).splitlines())
        for wrong, words in ((dict(valid__non_links=np.array([0, 3])), "/links/valid/non_links has 1 dimensions, expected 2"),
                             (dict(valid__non_links=np.zeros((3, 3), int)), "/links/valid/non_links has 3 columns, not two: head and tail"),
                             (dict(valid__non_links=np.array([[0, 3], [2, 6]])), "/links/valid/non_links: row 1 names vertex 6"),
                             (dict(train__non_links=np.zeros((3, 2), int)), "/links/train/non_links, but links to train on"),
                             (dict(valid__non_links=np.zeros((3, 2), int), valid__negative_tails=np.zeros((2, 3), int)), "beside negatives of each link")):
            self.write(**{**one, **wrong})
            self.fail_with(3, [words], "info", self.graph, ranks=2)
        self.write(valid__non_links=np.zeros((3, 2), int), valid__negative_tails=None, valid__negative_heads=None)
        self.fail_with(3, ["/links/valid/non_links, but links have 2 relations"], "info", self.graph)

    def test_links_that_are_edges(self):
        # Of the edges 0-1, 1-2, 3-4 in both directions.
        self.write(valid__head=np.array([4, 1]), valid__tail=np.array([3, 3]), test__head=np.array([1, 1, 5]), test__tail=np.array([0, 2, 1]),
                   test__relation=np.zeros(3, int))
        for ranks in (1, 4):
            lines = self.succeed("info", self.graph, ranks=ranks).splitlines()
            self.assertIn("leak         1 of 2 links of valid are edges of the graph, too", lines)
            self.assertIn("leak         2 of 3 links of test are edges of the graph, too", lines)
        self.write(valid__head=np.array([4, 1]), valid__tail=np.array([2, 3]))
        self.assertNotIn("leak", self.succeed("info", self.graph, ranks=2))
        # The other way round counts where links have no direction: 4 -> 3 is there, 3 -> 4 is not; 0 - 1 in both directions is one link.
        for directed, leaks in ((1, 1), (0, 2)):
            self.write({"directed": np.uint8(directed)}, test__head=np.array([3, 0, 5]), test__tail=np.array([4, 1, 1]),
                       test__relation=np.zeros(3, int), valid__head=np.array([4, 1]), valid__tail=np.array([2, 3]))
            set_at(self.graph, "graph/indices", 5, 5)
            lines = self.succeed("info", self.graph, ranks=3).splitlines()
            self.assertIn(f"leak         {leaks} of 3 links of test are edges of the graph, too", lines)

    def test_links_that_are_edges_of_a_relation(self):
        links = dict(train__head=np.array([0, 1, 2]), train__tail=np.array([2, 3, 5]), valid__head=np.array([3, 4]), valid__tail=np.array([4, 2]),
                     test__head=np.array([0, 3]), test__tail=np.array([2, 2]), test__relation=np.array([0, 1]), train__relation=np.zeros(3, int))
        write_typed(self.graph)
        add_links(self.graph, **links)  # of any relation: paper 3 cites 2, 4 cites 2, author 0 writes 2
        lines = self.succeed("info", self.graph, ranks=3)
        self.assertIn("leak         1 of 2 links of valid", lines)
        self.assertIn("leak         2 of 2 links of test", lines)
        write_typed(self.graph)
        links |= dict(valid__negative_tails=np.array([[5], [5]]), valid__negative_heads=np.array([[2], [4]]))
        add_links(self.graph, **{**links, "valid__tail": np.array([5, 5]), "valid__relation": np.array([1, 1]), "test__relation": np.array([0, 0]),
                                 "test__head": np.array([0, 1]), "train__relation": np.array([0, 0, 1]), "graph_relations": np.array([0, 3])})
        lines = self.succeed("info", self.graph, ranks=2)  # 3 and 4 are in journal 5, author 0 writes 2, author 1 does not
        self.assertIn("leak         2 of 2 links of valid", lines)
        self.assertIn("leak         1 of 2 links of test", lines)
        set_at(self.graph, "graph/indices", 3, 1)  # author 1 writes 2 in place of author 0, whom the inverse still has
        self.assertIn("leak         2 of 2 links of test", self.succeed("info", self.graph, ranks=3))

    def test_links_of_one_relation_without_direction(self):
        self.write({"directed": False}, relations=None, train__relation=None, valid__relation=None, test__relation=None,
                   valid__negative_tails=None, valid__negative_heads=None, train__head=np.array([0, 1, 3], np.int32))
        output = self.succeed("info", self.graph, ranks=2)
        self.assertIn("links        train 3, valid 2, test 1, undirected", output.splitlines())
        self.assertNotIn("negatives", output)
        self.assertNotIn("of relations", output)

    def test_a_split_alone(self):
        self.write(**{name.replace("/", "__"): None for name in LINKS if not name.startswith("test")}, test__relation=None)
        self.assertIn("train 0, valid 0, test 1", self.succeed("info", self.graph, ranks=2))

    def test_digests(self):
        self.write()
        self.succeed("digest", self.graph, "--write", ranks=2)
        self.assertIn("holds what its digests say", self.succeed("digest", self.graph, ranks=3))
        for name in ("train/head", "valid/tail", "test/relation", "valid/negative_tails", "valid/negative_heads"):
            values = read(self.graph, f"links/{name}")
            changed = values.copy()
            changed.flat[0] = 1 - min(changed.flat[0], 1)
            set_at(self.graph, f"links/{name}", ..., changed)
            for command in ("digest", "info"):
                self.refuse(f"/links/{name} does not hold what was written", command)
            next(self.turn)  # each command on one rank and on two
            set_at(self.graph, f"links/{name}", ..., values)
        set_attributes(self.graph, "links", directed=np.uint8(0))
        for command in ("digest", "info"):
            self.refuse("its data sets are not those that were written", command, ranks=(2,))

    def test_classes_are_not_learnt_without_labels(self):
        self.write()
        for command in (("train", self.config), ("plan", self.config, "--ranks", 2)):
            self.fail_with(3, ["the graph has no labels", "train.task = \"links\""], *command)

    def test_names_of_vertices(self):
        write_pairs(self.graph, ids=texts("a", "b", "c", "d", "e", "f"))
        self.succeed("digest", self.graph, "--write", ranks=2)
        self.assertIn("/nodes/ids", self.succeed("digest", self.graph, ranks=3))
        for ids in (texts("a", "b"), ["a", "b", "c", "d", "e", "f"], texts(*"abcdef").reshape(2, 3), np.zeros(6, "S1025"), np.zeros(6)):
            write_pairs(self.graph, ids=ids)
            self.refuse("/nodes/ids")
        # Names that came into a file with digests are nobody's until these are written again.
        write_pairs(self.graph)
        self.succeed("digest", self.graph, "--write")
        put(self.graph, {"nodes/ids": texts(*"abcdef")})
        self.assertNotIn("/nodes/ids", self.succeed("digest", self.graph))
        self.succeed("digest", self.graph, "--write")
        self.assertIn("/nodes/ids", self.succeed("digest", self.graph))
        set_attributes(self.graph, "nodes/ids", digest=None)
        self.refuse("its data sets are not those that were written", ranks=(2,))


class Damaged(LinkFile):
    def test_attributes_shapes_and_names(self):
        for changed, words in ((dict(attributes={"version": 2}), "the attribute version of /links is 2, but this program reads version 1"),
                               (dict(attributes={"version": None}), "the attribute version of /links is absent"),
                               (dict(attributes={"directed": None}), "the attribute directed of /links is absent, not 0 or 1"),
                               (dict(attributes={"directed": "yes"}), 'the attribute directed of /links is the text "yes"'),
                               (dict(attributes={"directed": 2}), "the attribute directed of /links is 2, not 0 or 1"),
                               (dict(train__tail=None), "there is no dataset /links/train/tail"),
                               (dict(train__tail=np.array([1, 2])), "/links/train/tail has 2 rows, but its split has 3 links"),
                               (dict(test__relation=np.zeros(2, np.int32)), "/links/test/relation has 2 rows, but its split has 1 links"),
                               (dict(train__head=np.array([0., 1, 3])), "/links/train/head does not hold integers"),
                               (dict(train__head=np.array([[0], [1], [3]])), "/links/train/head has 2 dimensions, expected 1"),
                               (dict(valid__negative_tails=np.array([0, 1])), "/links/valid/negative_tails has 1 dimensions, expected 2"),
                               (dict(valid__negative_tails=np.zeros((3, 2), int)), "/links/valid/negative_tails has 3 rows, but its split has 2 links"),
                               (dict(valid__negative_heads=np.zeros((2, 0), int)), "/links/valid/negative_heads has no columns"),
                               (dict(train__negative_tails=np.zeros((3, 2), int)), "/links/train/negative_tails, but links to train on"),
                               (dict(valid__negatives=np.zeros((3, 2), int)), "there is a dataset /links/valid/negatives, but links have"),
                               (dict(relations=np.array([1, 2])), "/links/relations holds no texts of fixed length"),
                               (dict(relations=texts()), "/links/relations has 0 names"),
                               (dict(relations=texts("likes", "likes")), "/links/relations: entries 0 and 1 are both 'likes'"),
                               (dict(graph_relations=np.array([0, 0])), "/links/graph_relations, but the graph has no relations"),
                               ({name.replace("/", "__"): None for name in LINKS}, "there is a group /links, but no link in it")):
            self.write(**changed)
            self.refuse(words)

    def test_sizes_that_no_file_has(self):
        for name, shape, kind, words in (("links/test/negative_heads", (1, 2**40), np.int64, f"has 1 rows of {2**40}, which a graph of 6 vertices"),
                                         ("links/relations", (2**17,), "S1024", "has 131072 names of 1024 letters, together more than 64 MiB")):
            self.write(relations=None)
            with h5py.File(self.graph, "a") as file:
                file.create_dataset(name, shape, kind, chunks=(1, 1024)[-len(shape):])
            self.refuse(words)

    def test_values(self):
        for changed, words in ((dict(train__head=np.array([0, 1, 6])), "/links/train/head: entry 2 names vertex 6, but the graph has vertices 0 to 5"),
                               (dict(valid__tail=np.array([-1, 0])), "/links/valid/tail: entry 0 names vertex -1"),
                               (dict(train__head=np.array([0, 1, 2**63 + 5], np.uint64)), "/links/train/head: entry 2 names vertex"),
                               (dict(train__relation=np.array([0, 2, 0])), "/links/train/relation: entry 1 is 2, but links have relations 0 to 1"),
                               (dict(train__relation=np.array([0, -1, 0])), "/links/train/relation: entry 1 is -1"),
                               (dict(relations=None), "/links/train/relation: entry 1 is 1, but links have relations 0 to 0"),
                               (dict(valid__negative_tails=np.array([[0, 1, 2], [3, 9, 5]])),
                                "/links/valid/negative_tails: row 1 names vertex 9, but the graph has vertices 0 to 5"),
                               (dict(valid__negative_heads=np.array([[0], [-4]])), "/links/valid/negative_heads: entry 1 names vertex -4")):
            self.write(**changed)
            for command, ranks in (("digest", 3), ("info", 1)):
                self.refuse(words, command, (1, 3) if LONG else (ranks,))

    def test_relations_of_a_graph_with_types(self):
        links = dict(train__head=np.array([0, 1, 2]), train__tail=np.array([2, 3, 5]), valid__head=np.array([3, 4]), valid__tail=np.array([5, 5]),
                     test__head=np.array([0]), test__tail=np.array([4]), graph_relations=np.array([0, 3], np.int32),
                     train__relation=np.array([0, 0, 1]), valid__negative_tails=np.array([[5], [5]]), valid__negative_heads=np.array([[2, 4], [3, 2]]))
        write_typed(self.graph)
        add_links(self.graph, **links)
        self.assertIn("of relations 2: likes, knows\n", self.succeed("info", self.graph, ranks=2))
        # Whose only journal is the tail of every link.
        self.fail_with(2, ["train.negatives = 1", "1 vertex that can stand at an end of a link of knows", "leave the relation out"],
                       "train", self.config, "model.embedding=4", "train.task=links")
        for changed, words in ((dict(graph_relations=np.array([0, 5])), "/links/graph_relations: entry 1 is 5, but the graph has relations 0 to 4"),
                               (dict(graph_relations=np.array([0])), "/links/graph_relations has 1 entries for 2 relations"),
                               (dict(train__head=np.array([0, 2, 2])), "/links/train/head: entry 1 names vertex 2, but its relation "
                                "author.writes.paper wants one of type author, 0 to 1"),
                               (dict(valid__negative_heads=np.array([[2, 4], [3, 1]])), "/links/valid/negative_heads: row 1 names vertex 1, but its "
                                "relation paper.in.journal wants one of type paper, 2 to 4"),
                               (dict(valid__negative_tails=np.array([[4], [5]])), "/links/valid/negative_tails: row 0 names vertex 4"),
                               (dict(valid__tail=but([5, 5], 1, 4)), "/links/valid/tail: entry 1 names vertex 4, but its relation "
                                "paper.in.journal wants one of type journal, 5 to 5")):
            write_typed(self.graph)
            add_links(self.graph, **{**links, **changed})
            self.refuse(words)

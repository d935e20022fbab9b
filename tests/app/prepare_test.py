"""espalier prepare --split-links: links chosen among the edges, and the graph without those to be found.

Laws, with numpy and h5py as the oracle: the links of the three splits are the edges of the original (pairs, where each edge has its
reverse), each once, with shares of each relation rounded down; A has no link of valid or test, nor its entry in an inverse, nor the reverse
where every edge has one, and all other edges with their weights, features and times; all else is copied; every number of ranks writes the same;
by time no link, by the latest entry that stands for it, is later than one of a later split, and those of one moment are together; every bad input is one message.
"""

import itertools
import re
import unittest

import h5py
import numpy as np

import tests.python  # noqa: F401  # where the package is
from tests.app.plain_graph import read_graph
from tests.app.program import LONG, ProgramTest, arrays_of, attributes_of, awkward_graph, contents, put, read, weigh_edges, write_file
from tests.app.program import espalier as run_espalier
from tests.app.typed_file_test import but, write_typed

import espalier

SPLITS = ("train", "valid", "test")


def entries_of(path):
    """{(row, relation, column): (weight, features and time)} of a graph file, relation 0 of one without types; columns are vertices."""
    graph, found = read_graph(path), {}
    begins = dict(zip(graph.vertices, np.cumsum([0, *(of.count for of in graph.vertices.values())])))
    for r, ((head, _, tail), of) in enumerate(graph.edges.items()):
        weights = np.ones(len(of.sources)) if of.weights is None else of.weights
        tables = [table.reshape(len(weights), -1).tolist() for table in (of.features, of.times) if table is not None]
        for v, u, w, *values in zip((of.targets + begins[tail]).tolist(), (of.sources + begins[head]).tolist(), weights.tolist(), *tables):
            found[v, r, u] = w, tuple(itertools.chain(*values))
    return dict(sorted(found.items()))


def links_of(path):
    """{split: [(head, relation, tail)]}; relations by their place in the graph, where they are there."""
    with h5py.File(path) as file:
        links, found = file["links"], {}
        for split in SPLITS:
            if split not in links:
                found[split] = []
                continue
            heads, tails = links[split]["head"][()], links[split]["tail"][()]
            relations = links[split]["relation"][()] if "relation" in links[split] else np.zeros(len(heads), int)
            if "graph_relations" in links:
                relations = links["graph_relations"][()][relations]
            found[split] = list(zip(heads.tolist(), relations.tolist(), tails.tolist()))
    return found


def split_by_time(edges, turned, within, shares):
    """{split: (links, are they pairs?)} of {(source, target): time}, by loops. A link's time is the latest of what stands for it, its entry in
    the inverse, `turned`, too; those of one moment stay together, and a border goes to the nearer end of one."""
    pairs = within and all((v, u) in edges for u, v in edges)
    when = {}
    for (u, v), time in edges.items():
        if not within or u != v:
            link = (min(u, v), max(u, v)) if pairs else (u, v)
            when[link] = max(time, when.get(link, time), turned.get((v, u), time))
    latest_first = sorted(when.values(), reverse=True)
    borders = [k for k in range(len(when) + 1) if k in (0, len(when)) or latest_first[k - 1] != latest_first[k]]
    parts = [int(len(when) * share + 1e-6) for share in shares]
    test, hidden = (min(borders, key=lambda border: (abs(border - wanted), -border)) for wanted in (parts[2], parts[2] + parts[1]))
    found = {split: ([], pairs) for split in SPLITS}
    for link, time in when.items():
        later = sum(other > time for other in latest_first)
        found["test" if later < test else "valid" if later < hidden else "train"][0].append(link)
    return found


class PrepareTest(ProgramTest):
    """From `graph` to `new`."""

    def setUp(self):
        super().setUp()
        self.new = self.folder / "new.h5"

    def prepare(self, *options, ranks=1):
        return self.succeed("prepare", self.graph, "-o", self.new, "--overwrite", *options, ranks=ranks)

    def same_on_all_ranks(self, *options, ranks=(1, 3), **more):
        return self.same_on_ranks(lambda ranks: self.prepare(*options, ranks=ranks, **more), self.new, ranks)

    def refuse_to_prepare(self, code, words, *options, ranks=1):
        self.fail_with(code, words, "prepare", self.graph, "-o", self.folder / "none.h5", *options, ranks=ranks)
        self.assertFalse((self.folder / "none.h5").exists())


class Prepare(PrepareTest):
    def prepare(self, *options, shares="0.8,0.1,0.1", ranks=1):
        return super().prepare("--split-links", shares, *options, ranks=ranks)

    def check_rest(self, reverse=-1):
        """All edges are left but those of valid and test, with their inverses. `reverse`: relation 0, if each edge of a graph without types
        has its reverse. Returns entries before and after, and links."""
        before, after, links = entries_of(self.graph), entries_of(self.new), links_of(self.new)
        inverse = arrays_of(self.graph).get("relations/inverse", [reverse])
        hidden = {(t, r, h) for split in ("valid", "test") for h, r, t in links[split]}
        hidden |= {(h, int(inverse[r]), t) for t, r, h in hidden if inverse[r] >= 0}
        self.assertEqual(after, {place: value for place, value in before.items() if place not in hidden})
        return before, after, links

    def check_copied(self, but_for=("graph", "links", "edges")):
        before, after = contents(self.graph), contents(self.new)
        for name, value in before.items():
            if name != "attributes" and not name.startswith(but_for):
                self.assertEqual(value, after[name], name)

    def check_sizes(self, links, candidates, shares):
        """Shares of each relation, rounded down."""
        for split, share in zip(SPLITS[1:], shares[1:]):
            self.assertEqual(len(links[split]), sum(int(np.floor(count * share + 1e-6)) for count in candidates.values()), split)
        self.assertEqual(sum(map(len, links.values())), sum(candidates.values()))


class WithoutTypes(Prepare):
    def test_pairs_of_a_graph_without_direction(self):
        self.succeed("generate", "planted", "--nodes", 300, "--degree", 6, "--edge-features", 3, "--labels", 3, "--seed", 2, "-o", self.graph)
        weigh_edges(self.graph)
        self.put({"nodes/ids": np.array([f"vertex {v}" for v in range(300)], "S")})
        self.same_on_all_ranks("--seed", 1)
        before, _, links = self.check_rest(reverse=0)
        pairs = {(u, v) for v, _, u in before if u < v}
        self.assertEqual({(min(h, t), max(h, t)) for of in links.values() for h, _, t in of}, pairs)
        self.check_sizes(links, {0: len(pairs)}, (0.8, 0.1, 0.1))
        for split in SPLITS:  # written from either end
            self.assertAlmostEqual(np.mean([h < t for h, _, t in links[split]]), 0.5, delta=2 / np.sqrt(len(links[split])))
        self.check_copied()
        directed, about = attributes_of(self.new, "links")["directed"], attributes_of(self.new)
        self.assertEqual((directed, directed.dtype, bool(about["directed"])), (0, np.uint8, False))
        self.assertNotIn("relations", arrays_of(self.new, "links"))
        self.assertIn(b"prepare --split-links 0.8,0.1,0.1 --seed 1", about["source"])

    def test_what_it_says(self):
        self.succeed("generate", "planted", "--nodes", 300, "--degree", 2, "--seed", 2, "-o", self.graph)
        output = self.prepare("--seed", 1, ranks=2)
        before, after, links = self.check_rest(reverse=0)
        isolated = 300 - len({v for v, _, u in after} | {u for v, _, u in after})
        for words in (f"train {len(links['train'])}, valid {len(links['valid'])}, test {len(links['test'])}, each pair of vertices once",
                      f"{len(after)} of {len(before)} are left; {isolated} vertices are without an edge"):
            self.assertIn(words, output)
        self.assertNotIn("have their reverse", output)
        info = self.succeed("info", self.new, ranks=2)
        self.assertIn(f"train {len(links['train'])}, valid {len(links['valid'])}, test {len(links['test'])}, undirected", info)
        self.assertNotIn("leak", info)

    def test_edges_of_a_graph_with_direction(self):
        awkward_graph(self.graph)  # has self loops, too
        self.same_on_all_ranks("--seed", 3, shares="0.6,0.29,0.11", ranks=(1, 3))
        before, _, links = self.check_rest()
        edges = {(u, v) for v, _, u in before if u != v}
        self.assertEqual(sorted((h, t) for of in links.values() for h, _, t in of), sorted(edges))
        self.check_sizes(links, {0: len(edges)}, (0.6, 0.29, 0.11))
        both = sum((v, u) in edges for u, v in edges)
        self.assertIn(f"{both} of {len(edges)} edges have their reverse; a link and its reverse may be in different splits", self.prepare(ranks=2))
        self.check_copied()
        self.assertEqual(attributes_of(self.new, "links")["directed"], 1)

    def test_one_reverse_that_is_missing_makes_a_direction(self):
        for k, (rows, directed) in enumerate((([[1, 2], [0], [0]], 0), ([[1, 2], [0], [0], []], 0), ([[1, 2], [0], []], 1),
                                              ([[1, 2, 3], [0], [0], [0, 3]], 0), ([[], [0], [0], [0]], 1))):
            write_file(self.graph, {"format": "espalier-graph", "version": 1}, {
                "graph/indptr": np.cumsum([0] + [len(row) for row in rows]), "graph/indices": np.array([u for row in rows for u in row], np.int64)})
            for ranks in (1, 2, 4) if LONG else ((4, 2)[k % 2],):
                output = self.prepare(shares="1,0,0", ranks=ranks)
                self.assertIn(f"train {sum(u != v for v, row in enumerate(rows) for u in row if directed or u < v)}, valid 0, test 0", output)
                self.assertEqual("have their reverse" in output, rows == [[1, 2], [0], []])

    def test_a_share_of_0_is_a_split_that_is_not_there(self):
        self.make_once(self.graph, ("generate", "planted", "--nodes", 300, "--degree", 6))
        pairs = len(entries_of(self.graph)) // 2
        for shares, there in ((("0.7", "0.3", "0"), ["train", "valid"]), (("0.7", "0", "0.3"), ["test", "train"])):
            self.same_on_all_ranks(shares=",".join(shares), ranks=(3,))
            self.check_sizes(links_of(self.new), {0: pairs}, [float(share) for share in shares])
            self.assertEqual(sorted({name.split("/")[0] for name in arrays_of(self.new, "links")}), there)

    def test_seeds_differ_and_hold(self):
        self.make_once(self.graph, ("generate", "planted", "--nodes", 300, "--degree", 6))
        found = []
        for seed in (1, 1, 2):
            self.prepare("--seed", seed)
            found.append(links_of(self.new))
        self.assertEqual(found[0], found[1])
        self.assertNotEqual(found[0], found[2])
        shared = set(found[0]["test"]) & set(found[2]["test"])
        self.assertLess(len(shared), len(found[0]["test"]) / 2)

    def test_half_features_wide_ids_and_empty_rows(self):
        awkward_graph(self.graph, index_type=np.int64, half=True)
        self.same_on_all_ranks(ranks=(1, 3))
        self.check_copied()
        self.assertEqual([of.dtype for of in read(self.new, "graph/indices", "nodes/features")], [np.int64, np.float16])


class WithTypes(Prepare):
    TYPES = ("--types", "paper=200:6,author=150,field=20:3", "--relations",
             "author.writes.paper=700,paper.about.field=300,paper.cites.paper=500", "--edge-features", 2, "--seed", 4)

    def check(self, relations, shares):
        before, _, links = self.check_rest()
        chosen = [read(self.graph, "relations/name").tolist().index(name.encode()) for name in relations]
        wanted = [(u, r, v) for v, r, u in before if r in chosen and u != v]
        self.assertEqual(sorted(link for of in links.values() for link in of), sorted(wanted))
        self.check_sizes(links, {r: sum(link[1] == r for link in wanted) for r in chosen}, shares)
        self.check_copied()

    def test_all_relations(self):
        self.make_once(self.graph, ("generate", "planted", *self.TYPES))
        self.same_on_all_ranks("--seed", 7, ranks=(1, 2, 3))
        self.check(("writes", "about", "cites"), (0.8, 0.1, 0.1))
        self.assertEqual(attributes_of(self.new, "links")["directed"], 1)
        self.assertEqual(read(self.new, "links/relations").tolist(), [b"writes", b"about", b"cites"])
        self.assertEqual(read(self.new, "links/graph_relations").dtype, np.int32)

    def test_some_relations_and_no_inverses(self):
        self.succeed("generate", "planted", *self.TYPES, "--no-inverse", "-o", self.graph)
        self.same_on_all_ranks("--relations", "paper.cites.paper,author.writes.paper", ranks=(1, 3))
        self.check(("writes", "cites"), (0.8, 0.1, 0.1))

    def test_an_inverse_that_is_asked_for(self):
        self.make_once(self.graph, ("generate", "planted", *self.TYPES))
        self.prepare("--relations", "rev_writes", ranks=2)
        self.check(("rev_writes",), (0.8, 0.1, 0.1))
        self.assertEqual(sorted(arrays_of(self.new, "links/train")), ["head", "tail"])

    def test_a_relation_in_which_each_edge_has_its_reverse(self):
        # Ten people in a circle know each other: both directions of a pair are in one split.
        people, pairs = 10, [(v, (v + 1) % 10) for v in range(10)]
        edges = sorted([(a, b) for a, b in pairs] + [(b, a) for a, b in pairs])
        write_file(self.graph, {"format": "espalier-graph", "version": 2}, {
            "types/name": np.array(["person"], "S"), "types/offset": np.array([0, people]), "relations/name": np.array(["knows"], "S"),
            **{f"relations/{name}": np.array([value], np.int32) for name, value in (("source", 0), ("target", 0), ("inverse", -1))},
            "graph/indptr": np.arange(0, 21, 2), "graph/indices": np.array([u for _, u in edges], np.int32), "graph/segment_ptr": np.arange(people + 1),
            "graph/segment_begin": np.arange(0, 20, 2), "graph/segment_relation": np.zeros(people, np.uint8)})
        self.same_on_all_ranks(shares="0.6,0.2,0.2", ranks=(1, 2))
        links, after = links_of(self.new), entries_of(self.new)
        self.assertEqual([len(links[split]) for split in SPLITS], [12, 4, 4])
        for split in SPLITS:
            self.assertEqual({(h, t) for h, _, t in links[split]}, {(t, h) for h, _, t in links[split]})
        self.assertEqual({(h, t) for h, _, t in links["train"]}, {(u, v) for v, _, u in after})


class ByTime(Prepare):
    def add_times(self, most, least=-3):
        """A time of every edge, few enough that many are the same."""
        random = np.random.default_rng(5)
        self.put({f"edges/{'.'.join(name) + '/' if any(name) else ''}time": random.integers(least, most, len(of.sources))
                  for name, of in read_graph(self.graph).edges.items()})

    def check_times(self, shares):
        """Of the links by time; each edge with its time, of one type by pairs where each has its reverse."""
        graph, links = read_graph(self.graph), links_of(self.new)
        begins = dict(zip(graph.vertices, np.cumsum([0, *(of.count for of in graph.vertices.values())])))
        places = list(graph.edges)
        timed = {}
        for (head, name, tail), of in graph.edges.items():
            if of.times is not None:
                ends = (of.sources + begins[head]).tolist(), (of.targets + begins[tail]).tolist()
                timed[head, name, tail] = dict(zip(zip(*ends), of.times.tolist()))
        expected = {split: [] for split in SPLITS}
        for name in graph.relations:
            r, turned = places.index(name), timed.get(graph.edges[name].inverse, {})
            for split, (of_split, pairs) in split_by_time(timed[name], turned, name[0] == name[2], shares).items():
                expected[split] += [(u, r, v) for u, v in of_split]
                expected[split] += [(v, r, u) for u, v in of_split] if pairs and graph.typed else []
        if not graph.typed:  # written from either end
            links = {split: [(min(h, t), r, max(h, t)) for h, r, t in of] for split, of in links.items()}
        self.assertEqual({split: sorted(of) for split, of in links.items()}, {split: sorted(of) for split, of in expected.items()})

    def test_pairs(self):
        self.succeed("generate", "planted", "--nodes", 200, "--degree", 6, "--edge-features", 2, "--seed", 2, "-o", self.graph)
        self.add_times(60)
        self.same_on_all_ranks("--by-time", "--seed", 1)
        shares = re.search(r"shares     train (\S+), valid (\S+), test (\S+):", self.prepare("--by-time", "--seed", 1))
        links = self.check_rest(reverse=0)[2]
        self.assertEqual([float(share) for share in shares.groups()],
                         [round(len(links[split]) / sum(map(len, links.values())), 4) for split in SPLITS])
        self.check_times((0.8, 0.1, 0.1))
        self.assertIn("edge times", self.succeed("info", self.new))

    def test_relations_and_their_inverses(self):
        self.make_once(self.graph, ("generate", "planted", *WithTypes.TYPES))
        self.add_times(40)
        self.same_on_all_ranks("--by-time", shares="0.6,0.2,0.2")
        self.check_rest()
        self.check_times((0.6, 0.2, 0.2))

    def random_graph(self, random):
        """Of a relation with an inverse of other times, or of none; of one type with each reverse, and with some."""
        likes, cites = (np.stack(np.nonzero(random.random(shape) < 0.3)) for shape in ((9, 7), (9, 9)))
        knows = np.stack(np.nonzero(np.tril(random.random((9, 9)) < 0.3)))
        edges = {("a", "likes", "b"): likes, ("b", "liked_by", "a"): likes[::-1], ("a", "cites", "a"): cites,
                 ("a", "knows", "a"): np.unique(np.concatenate([knows, knows[::-1]], 1), axis=1)}
        moments = random.integers(3, 43)
        times = {name: random.integers(-5, moments - 5, of.shape[1]) for name, of in edges.items()}
        if random.random() < 0.5:
            del times["b", "liked_by", "a"]
        espalier.write_graph(self.graph, edges, num_nodes={"a": 9, "b": 7}, edge_time=times, inverse={"likes": "liked_by"}, overwrite=True)

    def test_random_relations(self):
        split = 0
        for seed in range(40 if LONG else 8):
            shares = ((0.5, 0.25, 0.25), (0.7, 0.2, 0.1))[seed % 2]
            with self.subTest(seed=seed):
                self.random_graph(np.random.default_rng(seed))
                code, output = run_espalier("prepare", self.graph, "-o", self.new, "--overwrite", "--by-time", "--split-links",
                                            ",".join(map(str, shares)), ranks=1 + seed % 4)
                if code == 2:
                    self.assertIn("those of one moment stay together", output)
                    continue
                self.assertEqual(code, 0, output)
                self.check_rest()
                self.check_times(shares)
                split += 1
        self.assertGreater(split, 3)

    def test_bad_times(self):
        self.succeed("generate", "planted", "--nodes", 60, "--degree", 4, "-o", self.graph)
        prepare = ("prepare", self.graph, "-o", self.new, "--split-links", "0.8,0.1,0.1", "--by-time")
        self.fail_with(3, ["its edges have no times (/edges/time)"], *prepare, ranks=2)
        self.add_times(1, least=0)
        self.fail_with(2, ["none is for valid", "one moment stay together"], *prepare)
        times = read(self.graph, "edges/time") + 2**62
        self.put({"edges/time": times})
        self.fail_with(3, ["beyond 2^61"], *prepare, ranks=3)
        for wrong, words in ((times[1:], "/edges/time has"), (times.astype(float), "does not hold integers"), (times[:, None], "dimension")):
            put(self.graph, {"edges/time": wrong})
            self.fail_with(3, [words], *prepare)


class BadInput(Prepare):
    def setUp(self):
        super().setUp()
        self.make_once(self.graph, ("generate", "planted", "--nodes", 60, "--degree", 4))
        self.turn = itertools.cycle((3, 1))

    def refuse(self, code, words, *options, shares="0.8,0.1,0.1", output=None):
        for ranks in (1, 3) if LONG else (next(self.turn),):
            self.fail_with(code, [words], "prepare", self.graph, "-o", output or self.new, "--split-links", shares, *options, ranks=ranks)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir() if path.name != "new.h5"), ["graph.h5"])

    def test_shares(self):
        for shares, words in (("0.8,0.1", "give three numbers"), ("0.8,0.1,x", "give three numbers"), ("0.8,0.1,0.1,", "give three numbers"),
                              ("0.8,0.2,0.2", "they sum to 1.2, not to 1"), ("1.1,-0.2,0.1", "a share is negative"),
                              ("nan,0.1,0.1", "a share is negative"), ("0,0.5,0.5", "there is nothing to train on"),
                              ("", "give three numbers")):
            self.refuse(2, words, shares=shares)
        self.fail_with(2, ["nothing to train on"], "prepare", self.folder / "nowhere.h5", "-o", self.new, "--split-links", "0,0.5,0.5")
        self.refuse(2, "none is for valid", shares="0.9,0.001,0.099")

    def test_relations_of_a_graph_without(self):
        for option, names in (("--relations", "cites"), ("--also", "cites"), ("--inverse", "cites=cited")):
            self.refuse(2, f"{option}: {self.graph} has no relations; leave it out", option, names)

    def test_links_already(self):
        self.prepare()
        self.graph.unlink()
        self.new.rename(self.graph)
        self.refuse(3, "has links already (/links)")

    def test_the_file_that_is_read(self):
        self.refuse(2, "is the file that is read", output=self.graph)
        self.refuse(2, "is the file that is read", "--overwrite", output=self.graph)
        self.new.write_text("somebody's")
        self.refuse(2, "exists")

    def test_relations_of_a_graph_with_types(self):
        self.graph.unlink()
        self.succeed("generate", "planted", "--types", "a=30:2,b=20", "--relations", "a.x.b=90,b.x.a=60,a.y.b=0", "-o", self.graph)
        for code, words, relations in ((2, "has no such relation, or several; its relations are a.x.b, b.x.a", "z"), (2, "has no such relation, or several", "x"),
                                       (2, "are the same edges, in either direction", "a.x.b,b.rev_x.a"), (2, "is named twice", "a.x.b,a.x.b"),
                                       (3, "relation a.y.b has no edges", "y")):
            self.refuse(code, words, "--relations", relations)

    def test_an_inverse_with_other_edges(self):
        write_typed(self.graph, graph__indices=but([2, 3, 3, 0, 3, 4, 0, 1, 2, 3, 4], 1, 4, np.int32))
        self.refuse(3, "paper.rev_writes.author is called the inverse of author.writes.paper, but has other edges", shares="0.4,0.3,0.3")
        # No author writes, but papers are written.
        write_typed(self.graph, graph__indptr=np.array([0, 2, 3, 5, 5, 5, 8]), graph__indices=np.array([2, 3, 3, 3, 4, 2, 3, 4], np.int32),
                    graph__weights=None, graph__segment_ptr=np.array([0, 1, 2, 3, 3, 3, 4]), graph__segment_begin=np.array([0, 2, 3, 5]),
                    graph__segment_relation=np.array([2, 2, 1, 3], np.uint8), **{"edges__author.writes.paper__features": None})
        self.refuse(3, "paper.rev_writes.author is called the inverse of author.writes.paper, but has other edges", shares="0.4,0.3,0.3")

    def test_a_graph_without_edges(self):
        write_file(self.graph, {"format": "espalier-graph", "version": 1}, {"graph/indptr": np.zeros(4, int), "graph/indices": np.zeros(0, np.int32)})
        self.refuse(2, "graph.h5 has no edge that can be a link")

    def test_data_sets_that_nobody_knows(self):
        put(self.graph, {"nodes/colour": np.zeros(60), "nodes/ids": np.array(["of another", "length"], "S")})
        output = self.prepare(ranks=2)
        for name in ("colour", "ids"):
            self.assertEqual(output.count(f"/nodes/{name} of"), 1, output)


if __name__ == "__main__":
    unittest.main()

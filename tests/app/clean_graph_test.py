"""espalier prepare without links: a raw graph made fit.

Laws, with NumPy and SciPy as the oracle, on random graphs whose rows are in any order and repeat their edges: loops go; of repeated edges
weights and features are the first, the last, sums, means or counts; after --symmetrise the pattern is that of A + A^T and nothing else has
changed; the largest component is SciPy's, and features, labels, splits, ids and links of its vertices follow; every number of ranks writes the
same; what is written is a graph file that info and train take; every bad input is one message.
"""

import h5py
import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

from tests.app.plain_graph import read_graph
from tests.app.prepare_test import PrepareTest, entries_of, links_of
from tests.app.program import arrays_of, attributes_of, awkward_graph, contents, put, read, set_at, write_file

TABLES = ("weights", "features", "time")
HOW = {"first": lambda rows: rows[0], "last": lambda rows: rows[-1], "sum": lambda rows: rows.astype(float).sum(axis=0),
       "mean": lambda rows: rows.astype(float).mean(axis=0)}


def raw_graph(path, seed, n=23, edges=150, tables=TABLES, half=False, wide=False, ids=None, **more):
    """A random file: rows in no order, with loops, repeats and vertices without edges."""
    random = np.random.default_rng(seed)
    rows = np.sort(random.choice(np.arange(1, n, 2) if seed % 2 else np.arange(n), edges))
    columns = np.where(random.random(edges) < 0.1, rows, np.minimum(random.geometric(0.15, edges), n - 1))
    labels = np.where(random.random(n) < 0.9, random.integers(0, 3, n), -1)
    known = random.permutation(np.flatnonzero(labels >= 0))
    features = random.integers(-8, 8, (edges, 3)).astype(np.float16 if half else np.float32) / 4
    write_file(path, {"format": "espalier-graph", "version": 1, "name": "raw", **more}, {
        "graph/indptr": np.searchsorted(rows, np.arange(n + 1)), "graph/indices": columns.astype(np.int64 if wide else np.int32),
        "graph/weights": (random.integers(0, 20, edges) / 8).astype(np.float32) if "weights" in tables else None,
        "edges/features": features if "features" in tables else None, "edges/time": random.integers(-9, 9, edges) if "time" in tables else None,
        "nodes/features": random.normal(size=(n, 4)).astype(np.float16 if half else np.float32), "nodes/labels": labels.astype(np.int32),
        "nodes/ids": None if ids is None else ids(n), "labels/names": np.array(["cat", "dog", "eel"], "S"),
        "nodes/time": random.integers(-2**62, 2**62, n),
        "split/train": np.sort(known[:7]), "split/valid": np.sort(known[7:10]), "split/other/test": np.sort(known[3:9])})
    with h5py.File(path, "a") as file:
        for name in ("nodes/time", "edges/time"):
            if name in file:
                file[name].attrs["unit"] = f"days of {name}"


def raw_entries(path):
    """[(row, column, {table: value})] in the order of the file."""
    with h5py.File(path) as file:
        rows = np.repeat(np.arange(len(file["graph/indptr"]) - 1), np.diff(file["graph/indptr"][()]))
        tables = {name: file[where][()] for name, where in (("weights", "graph/weights"), ("features", "edges/features"), ("time", "edges/time"))
                  if where in file}
        return [(int(v), int(u), {name: table[e] for name, table in tables.items()}) for e, (v, u) in enumerate(zip(rows, file["graph/indices"][()]))]


def merged(entries, how, times=min):
    """{(row, column): {table: value}} by another way than the program's: a dictionary of lists."""
    groups = {}
    for v, u, values in entries:
        groups.setdefault((v, u), []).append(values)
    found = {}
    for place, group in groups.items():
        found[place] = {}
        for name in group[0]:
            of = np.array([values[name] for values in group])
            rule = times if name == "time" else HOW["first" if how == "count" else how]
            found[place][name] = np.asarray(rule(of)).astype(of.dtype)
        if how == "count":
            found[place]["weights"] = np.float32(len(group))
    return found


def with_reverses(edges):
    return {(u, v): values for (v, u), values in edges.items()} | edges


def renumbered(edges, vertices):
    """The edges among these vertices, the k-th of which is k."""
    number = {int(v): k for k, v in enumerate(vertices)}
    return {(number[v], number[u]): values for (v, u), values in edges.items() if v in number and u in number}


def largest_component(edges, n):
    places = np.array(sorted(edges)).reshape(-1, 2).T
    of = scipy.sparse.csgraph.connected_components(scipy.sparse.coo_matrix((np.ones(places.shape[1]), places), (n, n)))[1]
    sizes = np.bincount(of)[of]
    return np.flatnonzero(of == of[np.argmax(sizes)]), sizes, of


class CleanTest(PrepareTest):
    def check_edges(self, wanted):
        """The file has these entries, ascending, with these values."""
        found = raw_entries(self.new)
        self.assertEqual([(v, u) for v, u, _ in found], sorted(wanted))
        for v, u, values in found:
            self.assertEqual(values.keys(), wanted[v, u].keys())
            for name, value in values.items():
                np.testing.assert_array_equal(value, wanted[v, u][name], f"{name} of {v}, {u}")

    def check_vertices(self, vertices, ids=True):
        """The k-th of the new file is vertices[k] of the old one."""
        vertices = np.asarray(vertices)
        number = {int(v): k for k, v in enumerate(vertices)}
        with h5py.File(self.graph) as before, h5py.File(self.new) as after:
            for name in ("nodes/time", "edges/time"):
                if name in before:
                    self.assertEqual(after[name].attrs["unit"], f"days of {name}".encode())
            for name in ("nodes/features", "nodes/labels", "nodes/ids", "nodes/time"):
                if name in before:
                    np.testing.assert_array_equal(after[name][()], before[name][()][vertices], name)
            if "nodes/ids" not in before and ids:
                np.testing.assert_array_equal(after["nodes/ids"][()], vertices)
                self.assertEqual(after["nodes/ids"].dtype, np.int64)
            self.assertEqual(after["labels/names"][()].tolist(), before["labels/names"][()].tolist())
            for name, of in arrays_of(self.graph, "split").items():
                name, kept = f"split/{name}", sorted(number[v] for v in of.tolist() if v in number)
                self.assertEqual(after[name][()].tolist() if name in after else [], kept, name)


class Edges(CleanTest):
    def test_repeated_edges(self):
        for seed, (how, half, wide, tables) in enumerate((("first", False, False, TABLES), ("last", True, False, TABLES), ("sum", False, True, TABLES),
                                                          ("mean", True, False, TABLES), ("count", False, False, ("features",)),
                                                          ("count", False, False, ("weights",)), (None, False, False, ()))):
            raw_graph(self.graph, seed, tables=tables, half=half, wide=wide)
            ranks = (2 + seed % 3,) if seed % 2 else (1, 2 + seed % 3)
            latest = ("--duplicate-times", "last") if seed % 2 else ()
            output = self.same_on_all_ranks("--drop-duplicates", *(("--duplicates", how) if how else ()), *latest, ranks=ranks)
            entries, wanted = raw_entries(self.graph), merged(raw_entries(self.graph), how or "first", max if latest else min)
            self.check_edges(wanted)
            self.check_vertices(np.arange(23), ids=False)
            places = len(wanted) - sum(1 for place in wanted if sum(place == of[:2] for of in entries) == 1)
            self.assertIn(f"duplicates {len(entries) - len(wanted)} edges repeat an earlier one, {places} edges are there several times; ", output)
            times = f"of times the {'latest' if latest else 'earliest'} stay"
            self.assertEqual(times in output, bool(tables) and "time" in tables, output)
            arrays = arrays_of(self.new)
            self.assertEqual(arrays["graph/indices"].dtype, np.int64 if wide else np.int32)
            self.assertNotIn("nodes/ids", arrays)

    def test_loops(self):
        awkward_graph(self.graph)
        output = self.same_on_all_ranks("--drop-loops", ranks=(1, 4))
        self.check_edges(merged([of for of in raw_entries(self.graph) if of[0] != of[1]], "first"))
        self.assertIn("self loops 2 left out", output)
        self.assertIn("self loops   0", self.succeed("info", self.new))

    def test_reverses(self):
        for seed, ranks in enumerate(((1, 4), (3,), (2,))):
            raw_graph(self.graph, seed, directed=True)
            output = self.same_on_all_ranks("--drop-duplicates", "--duplicates", "mean", "--symmetrise", ranks=ranks)
            before = merged(raw_entries(self.graph), "mean")
            wanted = with_reverses(before)
            self.check_edges(wanted)
            self.assertIn(f"reverses   {len(wanted) - len(before)} added", output)
            rows, columns = np.array(list(before)).T
            pattern = scipy.sparse.coo_matrix((np.ones(len(rows)), (rows, columns)), (23, 23))
            self.assertEqual(sorted(wanted), sorted(zip(*(pattern + pattern.T).nonzero())))
            info = self.succeed("info", self.new, ranks=1 + seed % 2)
            self.assertIn(f"{len(wanted)}, undirected (each both ways), weighted", info)
            self.assertNotIn("wrongly", info)
        self.graph.unlink()
        self.new.rename(self.graph)
        self.assertIn("0 added: each edge has its reverse already", self.prepare("--symmetrise", ranks=3))
        self.assertEqual(raw_entries(self.graph)[3][:2], raw_entries(self.new)[3][:2])

    def test_direction_is_found(self):
        """Of a file that says nothing, or anything."""
        for directed in (None, True, False):
            write_file(self.graph, {"format": "espalier-graph", "version": 1, "directed": directed},
                       {"graph/indptr": np.array([0, 2, 3, 3]), "graph/indices": np.array([0, 1, 0], np.int32)})
            self.prepare("--drop-loops", ranks=2)
            self.assertFalse(attributes_of(self.new)["directed"])

    def test_sums_that_are_no_numbers(self):
        for ranks, name, table, word in ((1, "graph/weights", np.full(2, 3e38, np.float32), "/graph/weights"),
                                         (2, "edges/features", np.full((2, 1), 6e4, np.float16), "features of edges")):
            write_file(self.graph, {"format": "espalier-graph", "version": 1},
                       {"graph/indptr": np.array([0, 2]), "graph/indices": np.array([0, 0], np.int32), name: table})
            self.refuse_to_prepare(3, [f"{word}: the sum of repeated edges is too large; give --duplicates mean, first or last"],
                                   "--drop-duplicates", "--duplicates", "sum", ranks=ranks)
            self.prepare("--drop-duplicates", "--duplicates", "mean")
            self.assertEqual(len(raw_entries(self.new)), 1)


class LargestComponent(CleanTest):
    def test_vertices_and_edges_follow(self):
        for seed, (ranks, ids) in enumerate((((1, 4), None), ((3,), lambda n: np.arange(n) * 7 % 23 + 100),
                                             ((2, 3), lambda n: np.array([f"vertex {v * v}" for v in range(n)], "S")))):
            raw_graph(self.graph, seed, n=23, edges=26, half=seed == 1, ids=ids)
            output = self.same_on_all_ranks("--drop-duplicates", "--largest-component", ranks=ranks)
            edges = merged(raw_entries(self.graph), "first")
            vertices, _, of = largest_component(edges, 23)
            self.assertLess(len(vertices), 23)
            self.check_edges(renumbered(edges, vertices))
            self.check_vertices(vertices)
            self.assertIn(f"components {of.max() + 1}; the largest has {len(vertices)} of 23 vertices", output)
            self.assertEqual("ids        the old numbers" in output, ids is None)
            self.assertIn(f"{len(vertices)}", self.succeed("info", self.new, ranks=3 if seed == 0 else 1))

    def test_of_as_large_ones_that_with_the_least_vertex(self):
        write_file(self.graph, {"format": "espalier-graph", "version": 1},
                   {"graph/indptr": np.array([0, 0, 0, 1, 1, 2, 2]), "graph/indices": np.array([5, 1], np.int32),
                    "nodes/labels": np.arange(6, dtype=np.int32)})
        for ranks in (1, 2, 3):
            self.prepare("--largest-component", ranks=ranks)
            self.assertEqual([of.tolist() for of in read(self.new, "nodes/ids", "graph/indptr", "graph/indices")], [[1, 4], [0, 0, 1], [0]])

    def test_a_long_path_and_a_star(self):
        """Many vertices between two, and one that is beside all: FastSV needs few rounds of both."""
        n = 3000
        order = np.random.default_rng(3).permutation(n)
        path = [(order[k], order[k + 1]) for k in range(n // 2)]
        star = [(order[n // 2 + 1], order[k]) for k in range(n // 2 + 2, n)]
        rows, columns = np.array(sorted(path + star)).T
        write_file(self.graph, {"format": "espalier-graph", "version": 1},
                   {"graph/indptr": np.searchsorted(rows, np.arange(n + 1)), "graph/indices": columns.astype(np.int32)})
        self.same_on_all_ranks("--drop-duplicates", "--largest-component", ranks=(1, 4))
        self.assertEqual(read(self.new, "nodes/ids").tolist(), sorted(order[:n // 2 + 1].tolist()))


class Together(CleanTest):
    JOB = ("sampler.fanout=[3,2]", "sampler.batch_size=5", "model.hidden=4", "model.layers=2", "train.epochs=1", 'run.device="cpu"')

    def test_a_job_trains_on_what_is_written(self):
        raw_graph(self.graph, 4, edges=60)
        self.same_on_all_ranks("--drop-loops", "--drop-duplicates", "--duplicates", "sum", "--symmetrise", "--largest-component", ranks=(1, 2))
        edges = with_reverses(merged([of for of in raw_entries(self.graph) if of[0] != of[1]], "sum"))
        vertices = largest_component(edges, 23)[0]
        self.check_edges(renumbered(edges, vertices))
        self.check_vertices(vertices)
        self.train(f"graph.file={self.new}", ranks=2)
        self.assertEqual(attributes_of(self.new)["source"],
                         b"espalier prepare --drop-loops --drop-duplicates --duplicates sum --symmetrise --largest-component")

    def test_links_of_what_was_cleaned(self):
        raw_graph(self.graph, 4, edges=90)
        clean = ("--drop-loops", "--drop-duplicates", "--symmetrise", "--largest-component")
        links = ("--split-links", "0.6,0.2,0.2", "--seed", "3")
        self.prepare(*clean, ranks=2)
        once = self.folder / "once.h5"
        self.succeed("prepare", self.new, "-o", once, *links)
        output = self.same_on_all_ranks(*clean, *links, ranks=(1, 3))
        self.assertEqual(contents(once), contents(self.new))
        self.assertIn("each pair of vertices once", output)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir() if path.is_file()), ["graph.h5", "job.toml", "new.h5", "once.h5"])

    def test_links_that_are_there(self):
        awkward_graph(self.graph)
        with h5py.File(self.graph, "a") as file:  # they are told from edges by nothing but the file
            file.create_group("links").attrs.update({"version": 1, "directed": np.uint8(1)})
            for split, pairs in (("train", [(0, 5), (7, 0)]), ("test", [(9, 11)])):
                file[f"links/{split}/head"], file[f"links/{split}/tail"] = np.array(pairs).T
            file["links/test/non_links"] = np.array([(3, 4), (30, 20), (8, 49)])
        self.same_on_all_ranks("--drop-loops", ranks=(1, 3))
        before, after = contents(self.graph), contents(self.new)
        self.assertEqual(before["attributes"]["links"], after["attributes"]["links"])
        self.assertEqual(*({name: value for name, value in of.items() if name.startswith("links")} for of in (before, after)))
        # Nobody hears of vertex 1, nor it of anybody.
        set_at(self.graph, "graph/indices", ..., lambda columns: np.where(columns == 1, 0, columns))
        largest = ("--drop-duplicates", "--largest-component")
        self.same_on_all_ranks(*largest)
        kept = [v for v in range(50) if v != 1]
        self.assertEqual(links_of(self.new), {split: [(kept.index(h), r, kept.index(t)) for h, r, t in of] for split, of in links_of(self.graph).items()})
        self.assertEqual(read(self.new, "links/test/non_links").tolist(), [[2, 3], [29, 19], [7, 48]])
        set_at(self.graph, "links/test/non_links", (1, 1), 1)
        self.refuse_to_prepare(3, ["1 end of its links is not in the largest component, so links cannot follow"], *largest, ranks=3)
        self.refuse_to_prepare(2, ["--symmetrise:", "has links (/links)", "--symmetrise and --split-links together"], "--drop-duplicates", "--symmetrise")


class WithTypes(CleanTest):
    def raw(self, inverse=-1):
        """Authors write papers; papers cite papers, some of them twice and themselves; rows of relations are in no order."""
        random = np.random.default_rng(5)
        entries = sorted([(random.integers(3, 8), 1, random.integers(3, 8), k) for k in range(30)]
                         + [(v, 0, u, 0) for v in range(3, 8) for u in range(3) if (u + v) % 2], key=lambda of: of[:2])
        if inverse >= 0:
            entries = sorted(entries + [(u, 2, v, 0) for v, r, u, _ in entries if r == 0], key=lambda of: of[:2])
        rows, relations, columns, values = np.array(entries).T
        runs = np.flatnonzero(np.append(True, (np.diff(rows) != 0) | (np.diff(relations) != 0)))
        names = ["writes", "cites"] + ["rev_writes"] * (inverse >= 0)
        cites = values[relations == 1]
        write_file(self.graph, {"format": "espalier-graph", "version": 2}, {
            "types/name": np.array(["author", "paper"], "S"), "types/offset": np.array([0, 3, 8]),
            "relations/name": np.array(names, "S"), "relations/source": np.array([0, 1, 1][:len(names)], np.int32),
            "relations/target": np.array([1, 1, 0][:len(names)], np.int32),
            "relations/inverse": np.array([2, -1, 0] if inverse >= 0 else [-1, -1], np.int32),
            "graph/indptr": np.searchsorted(rows, np.arange(9)), "graph/indices": columns.astype(np.int32),
            "graph/segment_ptr": np.searchsorted(rows[runs], np.arange(9)), "graph/segment_begin": runs,
            "graph/segment_relation": relations[runs].astype(np.uint8),
            "edges/paper.cites.paper/features": cites.reshape(-1, 1).astype(np.float32), "nodes/paper/labels": np.array([0, 1, 0, 1, 0], np.int32),
            "types/author/ids": np.array([30, 10, 20])})
        return [(int(v), int(r), int(u), float(x)) for v, r, u, x in entries]

    def check(self, wanted):
        """{(row, relation, column): features of one that cites}"""
        found = entries_of(self.new)
        self.assertEqual(list(found), sorted(wanted))
        for place, (_, features) in found.items():
            self.assertEqual(features, (wanted[place],) if place[1] == 1 else (), place)

    def test_loops_repeats_and_reverses(self):
        wanted = {}
        for v, r, u, value in self.raw(inverse=2):
            if v != u:
                wanted[v, r, u] = wanted.get((v, r, u), 0) + value
        drop = ("--drop-loops", "--drop-duplicates", "--duplicates", "sum")
        self.same_on_all_ranks(*drop)
        self.check(wanted)
        self.same_on_all_ranks(*drop, "--symmetrise")
        self.check({(u, r, v): value for (v, r, u), value in wanted.items() if r == 1} | wanted)
        self.assertEqual(list(map(".".join, read_graph(self.new).edges)), ["author.writes.paper", "paper.cites.paper", "paper.rev_writes.author"])
        self.assertEqual(read(self.new, "types/author/ids").tolist(), [30, 10, 20])
        self.assertIn("vertices", self.succeed("info", self.new, ranks=2))

    def test_what_is_refused(self):
        self.raw()
        for words, *option in ((["--symmetrise: author.writes.paper joins two types", "import the graph with inverse relations"], "--symmetrise"),
                               (["--largest-component: ", "has vertex types", "--drop-loops, --drop-duplicates and --symmetrise are possible"], "--largest-component"),
                               (["--relabel: ", "has vertex types", "--drop-loops, --drop-duplicates and --symmetrise are possible"], "--relabel", "degree")):
            self.refuse_to_prepare(2, words, "--drop-duplicates", *option, ranks=2)
        self.succeed("generate", "planted", "--types", "a=30:2,b=20", "--relations", "a.x.b=90", "-o", self.graph, "--overwrite")
        self.refuse_to_prepare(2, ["--symmetrise: each relation of", "leave it out"], "--symmetrise")


class BadInput(CleanTest):
    def test_words_and_options(self):
        awkward_graph(self.graph)
        for k, (code, options, words) in enumerate((
                (2, (), ["nothing is asked for", "--drop-loops, --drop-duplicates, --symmetrise"]),
                (2, ("--duplicates", "sum"), ["--duplicates sum: says what repeated edges become; give --drop-duplicates, too"]),
                (2, ("--drop-loops", "--duplicates", "first"), ["give --drop-duplicates, too"]),
                (2, ("--drop-loops", "--duplicate-times", "last"), ["--duplicate-times last: is of repeated edges; give --drop-duplicates, too"]),
                (2, ("--drop-duplicates", "--duplicate-times", "mean"), ["--duplicate-times mean: give first, the earliest, or last"]),
                (2, ("--drop-duplicates", "--duplicates", "max"), ["--duplicates max: not one of first, last, sum, mean, count"]),
                (2, ("--drop-duplicates", "--duplicates", "meen"), ["did you mean mean?"]),
                (2, ("--drop-duplicates", "--duplicates", ""), ["--duplicates : not one of"]),
                (2, ("--drop-loops", "--seed", "3"), ["--seed: is of links; give --split-links, too, or leave it out"]),
                (2, ("--drop-loops", "--by-time"), ["--by-time: is of links"]),
                (2, ("--symmetrise", "--relations", "cites"), ["--relations: is of links"]),
                (2, ("--drop-loops", "--split-links", ""), ["give three numbers"]))):
            self.refuse_to_prepare(code, words, *options, ranks=1 + k % 2)
        self.fail_with(2, ["is the file that is read"], "prepare", self.graph, "-o", self.graph, "--overwrite", "--drop-loops")

    def test_raw_files_say_what_helps(self):
        raw_graph(self.graph, 2)
        words = ["not strictly ascending", "`espalier prepare --drop-duplicates` sorts rows and merges what is repeated"]
        self.fail_with(3, words, "info", self.graph, ranks=2)
        self.refuse_to_prepare(3, words, "--drop-loops", ranks=2)
        set_at(self.graph, "graph/indices", 4, 23)
        self.refuse_to_prepare(3, ["names vertex 23"], "--drop-duplicates", ranks=2)
        raw_graph(self.graph, 2)
        put(self.graph, {"edges/features": lambda features: features[:-1]})
        self.refuse_to_prepare(3, ["/features has 149 rows"], "--drop-duplicates", ranks=2)

"""espalier prepare --relabel: the same graph, its vertices in another order.

Laws, with NumPy as the oracle: the new order is NumPy's lexsort of (degree), (cluster), (cluster, degree), or (component); it is a
permutation, under which edges with their weights, features and times, features, labels, splits, ids and links are the old ones; every number of
ranks writes the same; ids speak of the same vertices in what infer writes; a job trains; every bad input is one message.
"""

import csv

import numpy as np

from tests.app.clean_graph_test import CleanTest, largest_component, merged, raw_entries, raw_graph, renumbered, with_reverses
from tests.app.prepare_test import links_of
from tests.app.program import LONG, arrays_of, awkward_graph, contents, read

N = 23


def in_order(*keys):
    """Vertices, least keys first; of as large ones the least first."""
    return np.lexsort((np.arange(len(keys[0])), *reversed(keys)))


class Relabel(CleanTest):
    JOB = ("sampler.fanout=[50,50]", "model.hidden=6", "model.layers=2", "train.epochs=1", 'run.device="cpu"')

    def setUp(self):
        super().setUp()
        self.order = self.folder / "order.h5"

    def clusters(self, count=6):
        self.succeed("partition", self.graph, "--method", "streaming", "--clusters", count, "-o", self.order, "--overwrite")
        return read(self.order, "cluster").astype(int)

    def clean_raw(self, seed, **more):
        """A graph that other commands take."""
        raw_graph(self.graph, seed, **more)
        self.prepare("--drop-duplicates")
        self.graph.unlink()
        self.new.rename(self.graph)
        return merged(raw_entries(self.graph), "first")

    def test_orders(self):
        edges = self.clean_raw(1, half=True)
        degrees = np.bincount([v for v, _ in edges], minlength=N)
        clusters = self.clusters()
        _, sizes, component = largest_component(edges, N)
        least = np.array([np.flatnonzero(component == of)[0] for of in component])
        for relabel, order in (("degree", in_order(-degrees)), (f"order:{self.order}", in_order(clusters)),
                               (f"order-degree:{self.order}", in_order(clusters, -degrees)), ("component", in_order(-sizes, least))):
            output = self.same_on_all_ranks("--relabel", relabel, ranks=(1, 2, 3, 4) if LONG else (1, 4) if "-" in relabel else (1, 3))
            self.check_edges(renumbered(edges, order))
            self.check_vertices(order)
            self.assertIn("ids        the old numbers, as the file had none", output)
            self.assertIn("numbers    ", output)

    def test_at_random_and_back(self):
        edges = self.clean_raw(2, ids=lambda n: np.array([f"vertex {v}" for v in range(n)], "S"), wide=True)
        seen = []
        for seed, ranks in ((1, (1, 3)), (1, (1,)), (2, (3,))):
            output = self.same_on_all_ranks("--relabel", f"random:{seed}", ranks=ranks)
            self.assertNotIn("the old numbers", output)
            ids = arrays_of(self.new)["nodes/ids"].tolist()
            order = [int(name.split()[1]) for name in ids]
            self.check_edges(renumbered(edges, order))
            self.check_vertices(order)
            seen.append(order)
        self.assertEqual(seen[0], seen[1])
        self.assertNotEqual(seen[0], seen[2])
        self.assertEqual(sorted(seen[2]), list(range(N)))

    def test_with_all_else(self):
        """Degrees and components are those of the cleaned graph; clusters those of the file."""
        raw_graph(self.graph, 4, edges=60)
        edges = with_reverses(merged([of for of in raw_entries(self.graph) if of[0] != of[1]], "mean"))
        degrees = np.bincount([v for v, _ in edges], minlength=N)
        clean = ("--drop-loops", "--drop-duplicates", "--duplicates", "mean", "--symmetrise")
        stays = largest_component(edges, N)[0]
        self.same_on_all_ranks(*clean, "--largest-component", "--relabel", "degree")
        order = [v for v in in_order(-degrees) if v in stays]
        self.check_edges(renumbered(edges, order))
        self.check_vertices(order)

    def test_links_follow(self):
        awkward_graph(self.graph)
        self.succeed("prepare", self.graph, "-o", self.new, "--split-links", "0.6,0.2,0.2")
        self.graph.unlink()
        self.new.rename(self.graph)
        self.same_on_all_ranks("--relabel", "random:5")
        order = arrays_of(self.new)["nodes/ids"]
        self.assertEqual(links_of(self.graph), {split: [(order[h], r, order[t]) for h, r, t in of] for split, of in links_of(self.new).items()})
        self.assertEqual(self.succeed("info", self.graph).count("leak"), self.succeed("info", self.new).count("leak"))

    def test_predictions_speak_of_the_same_vertices(self):
        """With every neighbour drawn, or none left to chance, a network's rows are those of the old numbers, to rounding."""
        self.make_once(self.graph, ("generate", "planted", "--nodes", 120, "--degree", 4, "--features", 5, "--seed", 2))
        self.train(ranks=2)
        self.prepare("--relabel", "degree", ranks=3)
        found = {}
        for graph in (self.graph, self.new):
            lines = self.folder / "found.csv"
            self.infer_to("rows.h5", "--csv", lines, f"graph.file={graph}")
            with open(lines) as file:
                found[graph] = {row["id"]: (row["class"], round(float(row["probability"]), 4)) for row in csv.DictReader(file)}
        self.assertEqual(found[self.graph], found[self.new])
        # What it draws differs, as draws go by numbers; it trains all the same.
        self.train(f"graph.file={self.new}", "train.reproducible=true", ranks=2)

    def test_an_order_serves_the_file_it_is_of(self):
        edges = self.clean_raw(3)
        self.clusters()
        before = contents(self.graph)
        self.prepare("--relabel", f"order:{self.order}")
        self.assertEqual(contents(self.graph), before)
        self.new.rename(self.graph)
        self.refuse_to_prepare(3, [f"{self.order}: the order is of a graph with other edges than", "`espalier partition`"],
                               "--relabel", f"order:{self.order}", ranks=2)
        raw_graph(self.graph, 3, n=N + 1)
        self.refuse_to_prepare(3, [f"the order is of a graph with {N} vertices, and", f"has {N + 1}"],
                               "--drop-duplicates", "--relabel", f"order-degree:{self.order}", ranks=2)
        self.assertGreater(len(edges), 0)

    def test_bad_words(self):
        awkward_graph(self.graph)
        for options, words in ((("--relabel", "degrees"), ["--relabel degrees: not one of degree, component, order, order-degree, random; did you mean degree?"]),
                               (("--relabel", "degree:3"), ["degree takes nothing behind a colon"]),
                               (("--relabel", "component:"), ["takes nothing behind a colon"]),
                               (("--relabel", "order"), ["give a file of `espalier partition` behind a colon, as order:graph.order.h5"]),
                               (("--relabel", "order-degree:"), ["as order-degree:graph.order.h5"]),
                               (("--relabel", "random"), ["give a seed behind a colon, as random:7"]),
                               (("--relabel", "random:x"), ["give a whole number of at least 0"]),
                               (("--relabel", "random:-1"), ["give a whole number of at least 0"]),
                               (("--relabel", ""), ["--relabel : not one of"]),
                               (("--relabel", "component", "--largest-component"), ["there is one component; leave one of them out"])):
            self.refuse_to_prepare(2, words, *options, ranks=2)
        for path in (self.folder / "nowhere.h5", self.graph):
            self.refuse_to_prepare(3, [path.name], "--relabel", f"order:{path}", ranks=2)

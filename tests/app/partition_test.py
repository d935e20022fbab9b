"""espalier partition: orders of graphs, as a user makes them.

Laws: the same bytes on any number of ranks; what the table says is what numpy counts; the targets on the Debian graph: of 8 parts a cut
of 0.24 and balances of 1.05, and of 2 to 9 parts vertices and train within 1.08, edges within 1.20; everything that cannot be is
refused in one message.
"""

import re
import unittest

import numpy as np

from tests.app.program import LONG, ROOT, SHARED_DATA, ProgramTest, attributes_of, awkward_graph, read, run_python, small_files
from tests.app.typed_file_test import write_typed

KINDS = ["vertices", "edges", "train", "valid", "test"]
SLACK = np.array([1, 2.5, 1, 2.5, 2.5])
METHODS = ["metis", "streaming", "block"]
# What the usual typed file has and ours does not.
EMPTY = dict.fromkeys(["nodes__author__features", "nodes__paper__features", "nodes__paper__labels", "nodes__journal__labels",
                       "split__paper__train", "split__paper__valid", "edges/author.writes.paper/features",
                       "edges/paper.in.journal/features"])


class Order:
    """An order and its graph."""

    def __init__(self, path, graph):
        self.cluster, self.weights = read(path, "cluster", "weights")
        self.attributes = attributes_of(path)
        self.indptr, self.columns, *self.splits = read(graph, "graph/indptr", "graph/indices", *(f"split/{name}" for name in KINDS[2:]))
        self.rows = np.repeat(np.arange(len(self.cluster)), np.diff(self.indptr))

    def counted_weights(self):
        count = lambda clusters: np.bincount(clusters, minlength=len(self.weights))
        return np.stack([count(self.cluster), count(self.cluster[self.rows])] + [count(self.cluster[s]) for s in self.splits], 1)

    def excess(self, begin, end, parts):
        return np.max(((self.prefix[end] - self.prefix[begin]) * parts / self.prefix[-1] - 1) / SLACK)

    def least_excess(self, parts):
        """Of the largest part, over all cuts of the sequence: by filling part after part."""
        self.prefix = np.vstack([np.zeros(5, np.int64), np.cumsum(self.weights, axis=0)])

        def suffices(excess):
            end, most = 0, np.floor(self.prefix[-1] / parts * (1 + excess * SLACK))
            for _ in range(parts):
                end = min(np.searchsorted(self.prefix[:, k], self.prefix[end, k] + most[k], "right") - 1 for k in range(5))
            return end == len(self.weights)

        low, high = 0.0, float(parts)
        while high - low > 1e-4:
            middle = (low + high) / 2
            low, high = (low, middle) if suffices(middle) else (middle, high)
        return high


def table(output):
    """{parts: [cut, replication, five balances]} as the command prints it."""
    return {int(line.split()[0]): [float(x) for x in line.split()[1:]] for line in output.splitlines()
            if re.fullmatch(r" +\d+( +[\d.]+){7} *", line)}


class Partition(ProgramTest):
    def planted(self, nodes=1500):
        self.make_once(self.graph, ("generate", "planted", "--nodes", nodes, "--features", 1, "--seed", 3))

    def has_metis(self):
        return "by metis" in self.succeed("partition", self.graph, "--clusters", 1, "-o", self.folder / "probe.h5")

    def partition(self, name, *flags, **options):
        path = self.folder / name
        return path, self.succeed("partition", self.graph, "-o", path, *flags, **options)

    def test_the_same_bytes_on_any_ranks(self):
        self.planted()
        for method, ranks in (("metis", 3), ("streaming", 4)) if self.has_metis() else (("streaming", 4),):
            flags = ("--method", method, "--clusters", 32)
            (one, output), (many, again) = (self.partition(f"{method}{p}.h5", *flags, ranks=p) for p in (1, ranks))
            self.assertEqual(one.read_bytes(), many.read_bytes(), f"{method} on {ranks} ranks")
            self.assertEqual(table(output), table(again))

    def test_says_what_numpy_counts(self):
        self.planted()
        for method in METHODS if self.has_metis() else METHODS[1:]:
            path, output = self.partition(f"{method}.h5", "--method", method, "--clusters", 40)
            self.assertIn(f"40 clusters by {method}, {path.stat().st_size} bytes", output)
            order = Order(path, self.graph)
            np.testing.assert_array_equal(order.weights, order.counted_weights())
            self.assertEqual(order.attributes["method"], method.encode())
            for parts, row in table(output).items():
                self.assertLess(max((np.array(row[2:]) - 1) / SLACK), order.least_excess(parts) + 1e-3)
            self.assertEqual(list(table(output)), [2, 4, 8, 16, 32])

    def test_orders_to_compare_with(self):
        self.planted()
        for method in ("bfs", "degree", "random"):
            path = self.folder / f"{method}.h5"
            done = run_python(ROOT / "bench/partition/orders.py", self.graph, "--method", method, "--clusters", 40, "-o", path)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(f"40 clusters by {method}", self.succeed("info", path))
            order = Order(path, self.graph)
            np.testing.assert_array_equal(order.weights, order.counted_weights())
            self.assertLess(order.least_excess(8), {"bfs": 0.5, "degree": 0.06, "random": 0.15}[method])
            cut = float(re.search(r" 8 parts  cut (.*)", done.stdout)[1])
            part = order.cluster.astype(int) * 8 // 40
            self.assertAlmostEqual(cut, (part[order.rows] != part[order.columns]).mean(), 3)
            self.fail_with(2, [f"--method {method} was removed", "bench/partition/orders.py"], "partition", self.graph, "--method", method)

    def test_cut_and_replication_of_directed_relations(self):
        """Three relations with the same edges: one entry each of what is cut; who reads a vertex wants it."""
        random = np.random.default_rng(3)
        n, rows = 200, []
        for v in range(n):
            rows.append(sorted(random.choice(n, 1 + v % 6, replace=False).tolist()))
        ends = np.cumsum([0] + [3 * len(row) for row in rows])
        starts = [start + k * len(row) for start, row in zip(ends, rows) for k in range(3)]
        write_typed(self.graph, types__name=np.array(["node"], "S"), types__offset=np.array([0, n]),
                    relations__name=np.array(["a", "b", "c"], "S"), relations__source=np.zeros(3, np.int32),
                    relations__target=np.zeros(3, np.int32), relations__inverse=np.full(3, -1, np.int32),
                    graph__indptr=ends, graph__indices=np.concatenate([row * 3 for row in rows]).astype(np.int32),
                    graph__weights=None, graph__segment_ptr=3 * np.arange(n + 1), graph__segment_relation=np.tile([0, 1, 2], n).astype(np.uint8),
                    graph__segment_begin=np.array(starts), **EMPTY)
        path, output = self.partition("order.h5", "--method", "block", "--clusters", 2, ranks=2)
        cluster = read(path, "cluster")
        pairs = {(u, v) for v, row in enumerate(rows) for u in row if u != v}
        wanted = {(u, cluster[v]) for u, v in pairs} | set(enumerate(cluster))
        cut, replication = table(output)[2][:2]
        self.assertAlmostEqual(cut, np.mean([cluster[u] != cluster[v] for u, v in pairs]), 4)
        self.assertAlmostEqual(cut, 0.5, 1)
        self.assertAlmostEqual(replication, len(wanted) / n, 3)

    def test_default_name_and_method(self):
        awkward_graph(self.graph)
        output = self.succeed("partition", self.graph)
        order = self.folder / "graph.order.h5"
        self.assertIn(f"{order}: 50 clusters by", output)
        self.assertIn("the graph is directed", output)
        self.assertIn("the graph is directed", self.partition("streamed.h5", "--method", "streaming")[1])
        self.fail_with(2, [str(order), "--overwrite"], "partition", self.graph)
        self.succeed("partition", self.graph, "--overwrite", "--fast")

    def test_info(self):
        self.planted()
        graph_page = self.succeed("info", self.graph)
        self.assertIn("in-degree", graph_page)
        path, output = self.partition("order.h5", "--method", "block", "--clusters", 16)
        page = self.succeed("info", path, ranks=2)
        for words in ("16 clusters by block", "vertices     1500", "digest of its edges"):
            self.assertIn(words, page)
        balances = {int(line.split()[0]): line.split()[1:] for line in page.splitlines() if re.fullmatch(r" +\d+( +[\d.]+){5} *", line)}
        self.assertEqual(balances, {parts: [f"{x:.3f}" for x in row[2:]] for parts, row in table(output).items()})
        whole = path.read_bytes()
        path.write_bytes(whole[:len(whole) // 2])
        self.fail_with(3, [str(path), "espalier partition"], "info", path)

    def test_what_is_refused(self):
        awkward_graph(self.graph)
        self.fail_with(2, ["--clusters 51", "50 vertices"], "partition", self.graph, "--clusters", 51)
        self.fail_with(2, ["--clusters", "65536"], "partition", self.graph, "--clusters", 70000)
        self.fail_with(2, ["--method metiss", "did you mean metis?", "block"], "partition", self.graph, "--method", "metiss", ranks=2)
        self.fail_with(2, ["--seed 3", "block"], "partition", self.graph, "--method", "block", "--seed", 3)
        self.fail_with(2, ["--fast", "block"], "partition", self.graph, "--method", "block", "--fast")
        if not self.has_metis():
            self.fail_with(2, ["libmetis-dev"], "partition", self.graph, "--method", "metis", ranks=2)
        (self.folder / "probe.h5").unlink()
        order, _ = self.partition("order.h5", "--method", "block")
        self.fail_with(3, [str(order), "not an espalier graph"], "partition", order)
        self.fail_with(3, ["nothing.h5", "no such file"], "partition", self.folder / "nothing.h5")
        self.fail_with(2, ["nowhere"], "partition", self.graph, "-o", self.folder / "nowhere" / "order.h5")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["graph.h5", "order.h5"])

    def test_a_full_disk(self):
        self.planted()
        self.fail_with(2, ["order.h5", "is the disk full?"], "partition", self.graph, "--method", "block", "-o", self.folder / "order.h5",
                       preexec_fn=small_files(2**11))
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["graph.h5"])

    def debian(self):
        if not SHARED_DATA.exists():
            self.skipTest(f"{SHARED_DATA} is not there")
        self.succeed("-q", "import", "ogb", SHARED_DATA / "debian_bookworm", "--split", "random_seed0", "--symmetrize", "-o", self.graph)
        if not self.has_metis():
            self.skipTest("the program was built without METIS")

    def check_targets(self, *flags, most=0.24):
        path, output = self.partition("order.h5", *flags)
        cut, _, *balances = table(output)[8]
        self.assertLessEqual(cut, most, flags)
        self.assertLessEqual(max(balances), 1.05, flags)
        order = Order(path, self.graph)
        for parts in range(2, 10):  # so vertices and train are within 1.08, edges within 1 + 2.5 * 0.08
            self.assertLessEqual(order.least_excess(parts), 0.08, f"{parts} parts {flags}")
        return cut

    def test_debian(self):
        self.debian()
        self.check_targets()

    @unittest.skipUnless(LONG, "long: other seeds, and fewer attempts")
    def test_long_debian_again(self):
        self.debian()
        cuts = [self.check_targets("--seed", seed, "--overwrite", most=0.26) for seed in range(1, 6)]
        self.assertLessEqual(np.mean(cuts), 0.24)
        fast = [table(self.partition("order.h5", "--fast", "--seed", seed, "--overwrite")[1])[8][0] for seed in range(1, 6)]
        self.assertLessEqual(np.mean(fast), 1.1 * np.mean(cuts))
        print(f"\nnote: debian, 8 parts: cuts {min(cuts):.4f} to {max(cuts):.4f}, fast {min(fast):.4f} to {max(fast):.4f}")

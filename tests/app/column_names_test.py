"""What the columns of features are called, kept from file to file.

Laws: what copies a graph copies names and scales; a file whose names do not fit its features is refused, by whatever reads it; digests of
other data sets do not see names.
"""

import h5py
import numpy as np

from tests.app.program import ProgramTest, arrays_of

NAMES = ["age", "country=FR", "country=DÉ", "a, b", "x" * 70, "last"]
SCALES = np.arange(30.0).reshape(6, 5) - np.array([np.nan, 0, 1, 2, 3])


def texts(names):
    return np.array([name.encode() for name in names])


def put(path, group, names, scales=None):
    """In place of those that stand there."""
    with h5py.File(path, "a") as file:
        for name, values in (("feature_names", names), ("feature_scales", scales)):
            file.pop(f"{group}/{name}", None)
            if values is not None:
                file[f"{group}/{name}"] = texts(values) if isinstance(values, list) else values


class Kept(ProgramTest):
    def check_copied(self, places, *options, ranks=1):
        """Prepare copies what stands in these groups, and the digests of all else stay."""
        before = self.succeed("digest", self.graph, "--write")
        for group, (names, scales) in places.items():
            put(self.graph, group, names, scales)
        said = self.succeed("digest", self.graph, "--write")
        for line in before.splitlines():
            if "  /" in line:
                self.assertIn(line.split()[-1], said)
        output = self.succeed("prepare", self.graph, *options, "-o", self.folder / "copy.h5", ranks=ranks)
        self.assertNotIn("not copied", output)
        found = arrays_of(self.folder / "copy.h5")
        for group, (names, scales) in places.items():
            self.assertEqual(found[f"{group}/feature_names"].tolist(), texts(names).tolist())
            self.assertEqual(f"{group}/feature_scales" in found, scales is not None)
            if scales is not None:
                self.assertEqual(found[f"{group}/feature_scales"].tobytes(), scales.tobytes())
        return self.succeed("info", self.folder / "copy.h5", ranks=2).splitlines()

    def test_without_types(self):
        self.succeed("-q", "generate", "planted", "--nodes", 90, "--features", 6, "--edge-features", 2, "-o", self.graph)
        places = {"nodes": (NAMES, SCALES), "edges": (["kind=a", "kind=b"], None)}
        for options, ranks in ((("--split-links", "0.8,0.1,0.1"), 3), (("--drop-loops", "--relabel", "degree"), 2)):
            said = self.check_copied(places, *options, ranks=ranks)
            (self.folder / "copy.h5").unlink()
        self.assertIn(f'columns      6, age, country=FR, country=DÉ, "a, b", {"x" * 15}', "\n".join(said))
        self.assertIn("edge columns 2, kind=a, kind=b", said)

    def test_with_types(self):
        self.succeed("-q", "generate", "planted", "--types", "paper=60:6,author=30", "--relations", "author.writes.paper=200",
                     "--edge-features", 2, "-o", self.graph)
        said = self.check_copied({"nodes/paper": (NAMES, SCALES), "edges/author.writes.paper": (["é", "e"], SCALES[:2])},
                                 "--split-links", "0.8,0.1,0.1")
        self.assertIn("edge columns author.writes.paper: 2, é, e; filled or scaled", said)

    def test_wrong_files(self):
        self.succeed("-q", "generate", "planted", "--nodes", 90, "--features", 6, "-o", self.graph)
        with h5py.File(self.graph, "a") as file:
            file.attrs.pop("digest")
        put(self.graph, "nodes", NAMES, SCALES)
        self.succeed("-q", "info", self.graph)
        for names, scales, *words in (
            (NAMES[:5], None, "/nodes/feature_names has 5 names", "/nodes/features has 6 columns"),
            ([*NAMES[:5], "age"], None, "/nodes/feature_names names two columns age"),
            (np.arange(6), None, "/nodes/feature_names holds no texts"),
            (texts(NAMES).reshape(2, 3), None, "/nodes/feature_names has 2 dimensions"),
            ([*NAMES[:5], "n" * 1025], None, "1025 letters"),
            (None, SCALES, "there is /nodes/feature_scales, but no /nodes/feature_names"),
            (NAMES, SCALES[:5], "/nodes/feature_scales is 5 x 5, expected 6 x 5"),
            (NAMES, SCALES[:, :4], "/nodes/feature_scales is 6 x 4, expected 6 x 5"),
            (NAMES, SCALES[0], "/nodes/feature_scales has 1 dimensions"),
            (NAMES, texts(NAMES), "/nodes/feature_scales has 1 dimensions"),
            (NAMES, np.ones((6, 5), int), "/nodes/feature_scales does not hold floating-point"),
        ):
            with self.subTest(words=words):
                put(self.graph, "nodes", names, scales)
                for ranks in (1, 2):
                    self.fail_with(3, ["graph.h5", *words], "info", self.graph, ranks=ranks)
        put(self.graph, "nodes", None)
        put(self.graph, "edges", ["a"])
        self.fail_with(3, ["/edges/feature_names has 1 names", "/edges/features has 0 columns"], "info", self.graph)

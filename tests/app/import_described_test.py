"""espalier import GRAPH.toml: a description of arrays and texts becomes a graph file.

Laws: random graphs, each part in another form (arrays of any width, byte order and shape, members of archives, texts, plain and packed), make the
file that the Python package makes of the same arrays, by its digest, on one rank and on three; times are those that a loop over edges finds, in
the package's file, too; what does not fit is one message with the file and the key, and leaves no file.
"""

import gzip
import itertools
import shutil
import unittest
import warnings

import h5py
import numpy as np

import tests.python  # noqa: F401  # where the package is
from tests.app.other_formats import FORMATS, zstd
from tests.app.plain_graph import read_graph
from tests.app.program import ProgramTest, arrays_of, attributes_of
from tests.app.round_trip_test import generated

import espalier as package

TYPES = {"item": 40, "customer": 30, "shop": 7}
RELATIONS = {"buys": ("customer", "item", 200), "knows": ("customer", "customer", 90), "sells": ("shop", "item", 60), "near": ("shop", "shop", 25)}
SPLITS = ("train", "valid", "test")
PACKS = [("", bytes), (".gz", gzip.compress)] + ([(".zst", zstd)] if shutil.which("zstd") else [])
WAYS = ("sum", "mean", "max", "first", "last", "count")


def toml(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(of)}" for key, of in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)


def as_text(sections):
    """Keys without a section first: {"": {..}, "types.item": {..}}."""
    return "".join((f"[{name}]\n" if name else "") + "".join(f"{key} = {toml(value)}\n" for key, value in keys.items())
                   for name, keys in sections.items())


def time_by_loop(edges, times, latest=False, both_ways=False):
    """{(target, source): time} of a list of (source, target): the earliest of those listed in that direction, else of the others."""
    found = {}
    for turned in (False, True)[: 1 + both_ways]:
        of_turn = {}
        for (source, target), time in zip(edges, times):
            place = (source, target) if turned else (target, source)
            of_turn[place] = (max if latest else min)(of_turn.get(place, time), time)
        found = {**of_turn, **found}
    return found


class Described(ProgramTest):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(7)
        self.description, self.wanted, self.files = self.folder / "graph.toml", self.folder / "wanted.h5", itertools.count()
        self.turn = itertools.cycle((1,) * 7 + (2,))

    # ---- files ----

    def put_npy(self, array, form=None):
        """As some array of numpy's; returns what a description calls it."""
        name, form = f"a{next(self.files)}", form or self.random.choice(["npy", "npz", "swapped", "fortran"])
        if form == "swapped" and array.dtype.kind in "iuf":
            array = array.astype(array.dtype.newbyteorder(">"))
        if form == "npz":
            np.savez_compressed(self.folder / f"{name}.npz", other=[1], of_it=array)
            return f"{name}.npz:of_it"
        np.save(self.folder / f"{name}.npy", np.asfortranarray(array) if form == "fortran" else array)
        return f"{name}.npy"

    def put_text(self, lines):
        ending, pack = PACKS[self.random.integers(len(PACKS))]
        name = f"t{next(self.files)}.txt{ending}"
        (self.folder / name).write_bytes(pack("".join(f"{line}\n" for line in lines).encode()))
        return name

    def put(self, array):
        if self.random.random() < 0.6:
            return self.put_npy(array)
        rows = array.astype(str).tolist() if array.dtype.kind in "SU" else array.tolist()
        return self.put_text([",".join(map(repr, row)) if isinstance(row, list) else row for row in rows])

    def put_edges(self, edges, columns):
        """[2, m] of whole numbers; `columns`: weights and times, beside them or within a text. Returns keys of the relation."""
        keys = {}
        if self.random.random() < 0.5:
            ids = edges.astype(self.random.choice(["i1", "<i4", ">i8", "u2"]))
            keys["edges"] = self.put_npy(ids.T if self.random.random() < 0.5 and ids.shape[1] > 2 else ids)
            for key, column in columns.items():
                keys["weights" if key == "weight" else key] = self.put(column)
            return keys
        table = {"source": edges[0], "target": edges[1], **columns}
        names = self.random.permutation(list(table)).tolist()
        between = self.random.choice([" ", "\t", ", "])
        lines = [between.join(repr(table[name][k].item()) for name in names) for k in range(edges.shape[1])]
        cuts = sorted({0, len(lines), *self.random.integers(1, len(lines), 2).tolist()})
        files = [self.put_text(["# lines", *lines[a:b]]) for a, b in zip(cuts, cuts[1:])]
        return {"edges": {"files": files, "columns": names}}

    # ---- both programs ----

    def describe(self, sections):
        self.description.write_text(as_text(sections))

    def check(self, sections, *arguments, links=None, ranks=(1, 3), **more):
        """The digest of the package's file, at 1 and 3 ranks."""
        self.describe(sections)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            package.write_graph(self.wanted, *arguments, overwrite=True, **more)
        if links:
            with h5py.File(self.wanted, "a") as file:
                group = file.create_group("links")
                group.attrs["version"], group.attrs["directed"] = 1, np.uint8(links.pop("directed", True))
                for name, values in links.items():
                    group[name] = values
        self.succeed("-q", "digest", self.wanted, "--write")
        for count in ranks:
            self.succeed("-q", "import", self.description, "-o", self.graph, "--overwrite", ranks=count)
            found, wanted = arrays_of(self.graph), arrays_of(self.wanted)
            self.assertEqual(sorted(found), sorted(wanted))
            for name, array in wanted.items():
                np.testing.assert_array_equal(found[name], array, name)
            one, other = map(attributes_of, (self.graph, self.wanted))
            self.assertEqual((one["digest"], one["version"]), (other["digest"], other["version"]))

    def random_vertices(self, count, splits=True):
        """(keys of a type, arguments of write_graph)"""
        labels = self.random.integers(-1, 4, count) if self.random.random() < 0.7 else self.random.integers(0, 2, (count, 3)).astype(float)
        kind = self.random.choice([np.float32, np.float16, np.float64])
        ids = self.random.permutation(10**6)[:count] - 500
        given = {"x": self.random.normal(size=(count, 3)).astype(kind), "y": labels, "ids": self.random.choice([
            lambda: ids, lambda: np.array([f"v {k}, ä😀" for k in ids]), lambda: np.array([f"€{k}" for k in ids]).astype(">U9"), lambda: np.array([f"w{k}" for k in ids]).astype("S")])()}
        keys = {"features": self.put_npy(given["x"]) if kind == np.float16 else self.put(given["x"].astype(np.float32)),
                "labels": self.put(given["y"]), "ids": self.put(given["ids"]) if given["ids"].dtype.kind != "S" else self.put_npy(given["ids"])}
        if self.random.random() < 0.5:
            given["time"] = self.random.integers(-2**40, 2**40, count)
            keys["time"] = self.put(given["time"])
        if not splits:
            return keys, given
        may = np.flatnonzero(labels >= 0) if labels.ndim == 1 else np.arange(count)
        keys["splits"], given["splits"] = {}, {}
        for name in ("", "other.one"):
            parts = dict(zip(SPLITS[: self.random.integers(1, 4)], np.array_split(self.random.permutation(may), 4)))
            written = {part: self.put_npy(np.isin(np.arange(count), of)) if self.random.random() < 0.3 else self.put(of) for part, of in parts.items()}
            keys["splits"] |= {f'"{name}"': written} if name else written
            given["splits"][name] = parts
        return keys, given

    def random_edges(self, sources, targets, count):
        """(keys of a relation, arguments of write_graph), with repeats and loops."""
        edges = np.stack([self.random.integers(0, sources, count), self.random.integers(0, targets, count)])
        edges = np.concatenate([edges, edges[:, : count // 5], edges[::-1, : count // 9] if sources == targets else edges[:, :2]], 1)
        count = edges.shape[1]
        given, columns = {"edge_index": edges}, {}
        if self.random.random() < 0.6:
            given["edge_weight"] = columns["weight"] = self.random.integers(0, 9, count) / 4
        if self.random.random() < 0.6:
            given["edge_time"] = columns["time"] = self.random.integers(-2**62, 2**62, count)
        keys = self.put_edges(edges, columns)
        if self.random.random() < 0.6:
            given["edge_features"] = self.random.normal(size=(count, 2)).astype(np.float32)
            keys["features"] = self.put(given["edge_features"])
        return keys, given

    def options(self):
        """(keys, arguments): what becomes of repeated edges."""
        chosen = {"duplicates": str(self.random.choice(WAYS)), "duplicate_features": str(self.random.choice(["kept", "first", "last", "sum", "mean"])),
                  "duplicate_times": str(self.random.choice(["first", "last"]))}
        return chosen


class Graphs(Described):
    def test_without_types(self):
        for _ in range(6):
            vertices, given = self.random_vertices(40)
            edges, of_edges = self.random_edges(40, 40, 150)
            options, directed = self.options(), bool(self.random.random() < 0.5)
            splits = given.pop("splits")
            keys = options if directed else options | {"directed": False}
            self.check({"": keys, "types.v": vertices, "relations.r": {"source": "v", "target": "v", **edges}},
                       **of_edges, **given, **splits.pop(""), splits=splits, **options, directed=directed)

    def test_with_types(self):
        for seed in range(6):
            self.random = np.random.default_rng(seed)
            options, inverses = self.options(), bool(self.random.random() < 0.5)
            sections, given = {"": options | ({"directed": False} if inverses else {})}, {"num_nodes": TYPES}
            for name, count in TYPES.items():
                if name == "shop":
                    sections["types.shop"] = {"count": count}
                    continue
                sections[f"types.{name}"], of_type = self.random_vertices(count)
                splits = of_type.pop("splits")
                for part, ids in splits.pop("").items():
                    given.setdefault(part, {})[name] = ids
                for split, parts in splits.items():
                    for part, ids in parts.items():
                        given.setdefault("splits", {}).setdefault(split, {}).setdefault(part, {})[name] = ids
                for part, values in of_type.items():
                    given.setdefault(part, {})[name] = values
            for name, (source, target, count) in RELATIONS.items():
                edges, of_edges = self.random_edges(TYPES[source], TYPES[target], count)
                sections[f"relations.{name}"] = {"source": source, "target": target, **edges}
                for part, values in of_edges.items():
                    given.setdefault(part, {})[source, name, target] = values
            self.check(sections, **given, **options, directed=not inverses)

    def test_both_ways_within_a_relation(self):
        """The list with each edge's reverse behind it."""
        for how, of_features in itertools.product(WAYS, ("kept", "last", "first", "mean")):
            edges = self.random.integers(0, 5, (2, 40))
            weights, features = self.random.integers(0, 9, 40) / 8, self.random.normal(size=(40, 2)).astype(np.float32)
            twice = np.stack([edges, edges[::-1]], 2).reshape(2, -1)
            if of_features == "mean" or how == "max":  # of a loop once
                features = np.round(features * 4)
            self.check({"": {"duplicates": how, "duplicate_features": of_features, "loops": "drop"}, "types.v": {"count": 5},
                        "relations.r": {"source": "v", "target": "v", "edges": self.put_npy(edges), "weights": self.put(weights),
                                        "features": self.put(features), "directed": False},
                        "relations.s": {"source": "v", "target": "v", "edges": self.put_npy(edges[:, :3] * 0 + [[1], [2]])}},
                       {("v", "r", "v"): twice[:, twice[0] != twice[1]], ("v", "s", "v"): [[1] * 3, [2] * 3]}, num_nodes={"v": 5},
                       edge_weight={("v", "r", "v"): np.repeat(weights, 2)[twice[0] != twice[1]]},
                       edge_features={("v", "r", "v"): np.repeat(features, 2, axis=0)[twice[0] != twice[1]]},
                       duplicates=how, duplicate_features=of_features, ranks=(1, 4))

    def test_a_loop_both_ways_is_no_repeat(self):
        sections = {"": {"duplicates": "refuse"}, "types.v": {"count": 5}, "relations.r": {
            "source": "v", "target": "v", "edges": self.put_text(["0 0", "1 2", "3 3"]), "directed": False},
            "relations.s": {"source": "v", "target": "v", "edges": self.put_text(["0 1"])}}
        self.describe(sections)
        self.succeed("-q", "import", self.description, "-o", self.graph)
        sections["relations.r"]["edges"] = name = self.put_text(["0 0", "1 2", "3 3", "2 1"])
        self.describe(sections)
        self.fail_with(3, [f"{name}:4: repeats {self.folder / name}:2; choose duplicates = sum, max"], "import", self.description, "-o", self.graph, "--overwrite")

    def test_links(self):
        """Ids within the types of the relations, and of the whole graph where links are of none of its relations."""
        h, t, r = (self.random.integers(0, n, 20) for n in (30, 30, 2))
        begins = {"item": 0, "customer": 40}
        head, tail = begins["customer"] + h, np.where(r == 0, 0, begins["customer"]) + t
        candidates = self.random.integers(0, 30, (20, 4))
        edges = {("customer", name, end): self.random.integers(0, 30, (2, 50)) for name, end in (("buys", "item"), ("knows", "customer"))}
        of_split = {"head": self.put(h), "tail": self.put(t), "relation": self.put(r)}
        sections = {"types.item": {"count": 40}, "types.customer": {"count": 30},
                    **{f"relations.{name}": {"source": "customer", "target": end, "edges": self.put_npy(of)} for (_, name, end), of in edges.items()},
                    "links": {"relations": ["buys", "knows"], "train": of_split, "valid": {
                        **of_split, "negative_tails": self.put(candidates), "negative_heads": self.put(candidates[:, :1])}}}
        links = {"relations": np.array([b"buys", b"knows"]), "graph_relations": np.array([0, 1], np.int32)}
        for split in ("train", "valid"):
            links |= {f"{split}/head": head, f"{split}/tail": tail, f"{split}/relation": r.astype(np.int32)}
        links |= {"valid/negative_tails": np.where(r == 0, 0, 40)[:, np.newaxis] + candidates, "valid/negative_heads": 40 + candidates[:, :1]}
        self.check(sections, edges, num_nodes={"item": 40, "customer": 30}, links=links)
        ids, pairs = self.random.integers(0, 70, (2, 9)), self.random.integers(0, 70, (6, 2))
        sections["links"] = {"directed": False, "test": {"head": self.put(ids[0]), "tail": self.put(ids[1]), "non_links": self.put(pairs)}}
        self.check(sections, edges, num_nodes={"item": 40, "customer": 30},
                   links={"directed": False, "test/head": ids[0], "test/tail": ids[1], "test/non_links": pairs})
        plain = {"types.v": {"count": 70}, "relations.r": {"source": "v", "target": "v", "edges": self.put_npy(pairs.T)}, "links": sections["links"]}
        self.check(plain, pairs.T, num_nodes=70, links={"directed": False, "test/head": ids[0], "test/tail": ids[1], "test/non_links": pairs})

    def test_an_error_is_caught(self):
        """The check itself."""
        edges = self.random.integers(0, 7, (2, 30))
        sections = {"types.v": {"count": 7}, "relations.r": {"source": "v", "target": "v", "edges": self.put_npy(edges)}}
        with self.assertRaises(AssertionError):
            self.check(sections, edges[::-1], num_nodes=7)
        with self.assertRaises(AssertionError):
            self.check(sections, edges, num_nodes=8)


class Times(Described):
    def test_by_a_loop(self):
        """Of the program, and of the package."""
        for latest, both_ways, typed in itertools.product((False, True), repeat=3):
            edges = self.random.integers(0, 6, (2, 40))
            times = self.random.integers(-9, 9, 40)
            wanted = time_by_loop(edges.T.tolist(), times.tolist(), latest, both_ways)
            keys = {"duplicate_times": "last"} if latest else {}
            relation = {"source": "v", "target": "v", **self.put_edges(edges, {"time": times}), **({"directed": False} if both_ways else {})}
            sections = {"": keys, "types.v": {"count": 6}, "relations.r": relation}
            if typed:
                sections["relations.s"] = {"source": "v", "target": "v", "edges": self.put_npy(edges)}
            self.describe(sections)
            for ranks in (1, 3)[: 1 + (latest == typed)]:
                self.succeed("-q", "import", self.description, "-o", self.graph, "--overwrite", ranks=ranks)
                found = next(iter(read_graph(self.graph).edges.values()))
                self.assertEqual(dict(zip(zip(found.targets.tolist(), found.sources.tolist()), found.times.tolist())), wanted)
            if typed:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                package.write_graph(self.wanted, edges, num_nodes=6, edge_time=times, directed=not both_ways, overwrite=True,
                                    duplicate_times="last" if latest else "first")
            found = next(iter(read_graph(self.wanted).edges.values()))
            self.assertEqual(dict(zip(zip(found.targets.tolist(), found.sources.tolist()), found.times.tolist())), wanted)


class OnSeveralRanks(Described):
    """Plain texts and arrays of more than one part are read by all: nothing differs but seconds."""

    def check_ranks(self, sections):
        self.describe(sections)
        return self.one_answer(("import", self.description, "-o", self.graph, "--overwrite"), self.graph)

    def put_lines(self, edges, weights):
        (self.folder / "e.txt").write_text("".join(f"{u} {w} {v}\n" for u, v, w in zip(*edges.tolist(), weights.tolist())))
        return {"file": "e.txt", "columns": ["source", "weight", "target"]}

    def test_all_read(self):
        edges, weights = self.random.integers(0, 3000, (2, 400000), "i4"), self.random.integers(1, 1000, 400000) / 8
        sections = {"": {"duplicates": "mean"}, "types.a": {"count": 3000}, "types.b": {"count": 4000},
                    "relations.t": {"source": "a", "target": "b", "inverse": "rev_t", "edges": self.put_lines(edges, weights)},
                    "relations.f": {"source": "b", "target": "a", "edges": self.put_npy(edges[:, ::-1], "fortran"),
                                    "features": self.put_npy(weights, "npy")},
                    "relations.s": {"source": "a", "target": "a", "directed": False, "edges": self.put_npy(edges.T, "npy")},
                    "relations.w": {"source": "b", "target": "b", "edges": self.put_npy(edges[:, 7::2].astype("i8"), "swapped")}}
        self.assertGreater((self.folder / "e.txt").stat().st_size, 5 << 20)
        self.assertEqual(self.check_ranks(sections)[0], 0)
        self.assertEqual(self.check_ranks(sections | {"": {"duplicates": "last", "loops": "drop"}})[0], 0)
        self.assertEqual(self.check_ranks({"types.a": {"count": 3000}, "relations.f": {**sections["relations.f"], "source": "a"}})[0], 0)
        said = self.check_ranks(sections | {"": {"duplicates": "refuse"}})[1][0]
        self.assertRegex(said, r"e.txt:\d+: repeats .*e.txt:\d+; choose")
        edges[1, 399990] = edges[1, 300001] = 3000
        sections["relations.w"]["edges"] = sections["relations.s"]["edges"] = self.put_npy(edges, "npy")
        self.assertRegex(self.check_ranks(sections)[1][0], "a[0-9].npy: edge 300001: vertex 3000 is out of range: the graph has 3000 vertices of type a")
        edges[0, 20] = -1
        sections["relations.t"]["edges"] = self.put_lines(edges, weights)
        self.assertRegex(self.check_ranks(sections)[1][0], "e.txt:21: vertex -1 is negative")


class Layouts(Described):
    """--describe prints what means the same, and writes nothing."""

    def through(self, command, ranks=1):
        """The description of a command, whose graph has the digest of the command's own."""
        self.succeed("-q", *command, "-o", self.wanted, "--overwrite")
        before = sorted(self.folder.rglob("*"))
        text = self.succeed(*command, "--describe", ranks=ranks)
        self.assertEqual(sorted(self.folder.rglob("*")), before)
        self.description.write_text(text)
        self.succeed("-q", "import", self.description, "-o", self.graph, "--overwrite")
        self.assertEqual(*(attributes_of(path)["digest"] for path in (self.wanted, self.graph)), text)
        return text

    def test_each_layout(self):
        met = set()
        for path in generated(self.folder).values():
            graph = read_graph(path)
            for name, form in FORMATS.items():
                folder = self.folder / f"{path.stem} {name}"
                folder.mkdir()
                command = form.write(graph, folder, folder / "made.h5") if form.takes(graph) else None
                if not command or command[1] not in ("ogb", "edges", "mag240m") or "--renumber" in command:
                    continue
                with self.subTest(graph=path.stem, format=name):
                    self.through(command)
                    met.add(name)
        self.assertLessEqual({"OGB, csv", "OGB, arrays", "OGB with types, csv", "OGB with types, arrays", "MAG240M", "edge list", "edge list, one way"}, met)

    def test_options(self):
        raw = self.folder / "set" / "raw"
        raw.mkdir(parents=True)
        edges = self.random.integers(0, 5, (40, 2))
        (raw / "num-node-list.csv").write_text("5\n")
        np.savetxt(raw / "edge.csv", edges, "%d", ",")
        np.savetxt(raw / "edge-feat.csv", self.random.integers(0, 9, (40, 3)), "%d", ",")
        np.savetxt(raw / "node-feat.csv", self.random.random((5, 2)), "%.5f", ",")
        for options in ((), ("--symmetrize", "--drop-self-loops", "--edge-weight", 1), ("--duplicates", "count", "--no-edge-features"),
                        ("--duplicate-features", "mean", "--half", "--edge-weight", 2), ("--duplicates", "last", "--symmetrize")):
            self.assertIn("splits = { train = [], valid = [], test = [] }", self.through(("import", "ogb", raw.parent, *options), ranks=2))
        np.savetxt(self.folder / "list.txt", np.c_[edges, edges[:, 0] / 4], "%g")
        np.save(self.folder / "train.npy", [1, 2])
        for options in ((), ("--symmetrize",), ("--vertices", 9, "--train", self.folder / "train.npy")):
            self.through(("import", "edges", self.folder / "list.txt", "--weights", *options))

    def test_relations_of_one_name(self):
        raw = self.folder / "set" / "raw"
        for triplet in ("a,to,b", "b,to,a", "a,to,a"):
            folder = raw / "relations" / triplet.replace(",", "___")
            folder.mkdir(parents=True)
            np.savetxt(folder / "edge.csv", self.random.integers(0, 4, (9, 2)), "%d", ",")
        (raw / "num-node-dict.csv").write_text("a,b\n4,5\n")
        (raw / "triplet-type-list.csv").write_text("a,to,b\nb,to,a\na,to,a\n")
        self.assertIn('[relations."b.to.a"]\nname = "to"', self.through(("import", "ogb", raw.parent)))
        self.through(("import", "ogb", raw.parent, "--no-inverse"))

    def test_what_has_none(self):
        (self.folder / "list.txt").write_text("1 2\n")
        (self.folder / "list.npy").write_text("1 2\n")
        np.save(self.folder / "y.npy", [0, 1, 1])
        (self.folder / "y.npy").rename(self.folder / "y")
        edges = ("edges", self.folder / "list.txt")
        for words, *command in ((["--describe: a description does not number vertices anew"], *edges, "--renumber"),
                                (["list.npy is a text, but"], "edges", self.folder / "list.npy"),
                                (["y is an array, which a description knows by its name"], *edges, "--labels", self.folder / "y"),
                                (["--describe: a description takes ids from 0", "m = scipy.io.mmread(FILE)"], "matrixmarket", self.folder / "list.txt"),
                                (["--describe: a description numbers vertices, and triples name them; espalier-tables takes names"],
                                 "triples", "--train", self.folder / "list.txt"),
                                (["--describe: FILE is a description"], self.folder / "list.toml")):
            self.fail_with(2, words, "import", *command, "--describe", ranks=next(self.turn))
        self.fail_with(2, ["--output is required"], "import", *edges)


class Refusals(Described):
    """One message with the file and the key; no file."""

    def setUp(self):
        super().setUp()
        for name, array in {"x": np.eye(4), "x5": np.eye(5), "y": np.arange(4), "e": np.array([[0, 1], [1, 2], [2, 3]]), "w": np.ones(3),
                            "w2": np.ones(2), "objects": np.array([{}, 1]), "two": np.array(["a", "b", "a", "c"]), "h": np.array([0, 4]),
                            "h2": np.array([0, 1])}.items():
            np.save(self.folder / f"{name}.npy", array, allow_pickle=True)
        whole = (self.folder / "x.npy").read_bytes()
        (self.folder / "cut.npy").write_bytes(whole[:-8])
        (self.folder / "long.npy").write_bytes(whole + b"12345678")
        (self.folder / "e.txt").write_text("0 1\n1 2\n3 2\n")
        (self.folder / "far.txt").write_text("0 1\n1 4\n")
        (self.folder / "names.txt").write_text("source target\n0 1\n")
        (self.folder / "none.txt").write_text("# nothing\n")
        (self.folder / "x.csv").write_text("1,2\n3,4\n5,6\n")
        np.savez(self.folder / "a.npz", x=np.eye(4))

    def refuse(self, words, code=3, raw=None, **changed):
        """`changed`: sections, by names with __ for dots; of None a key is left out."""
        sections = {"": {}, "types.item": {"features": "x.npy"}, "relations.likes": {"source": "item", "target": "item", "edges": "e.npy"}}
        for name, keys in changed.items():
            sections[name.replace("__", ".").strip(".")] = {key: value for key, value in {**sections.get(name.replace("__", "."), {}), **keys}.items()
                                                            if value is not None}
        self.description.write_text(as_text(sections) if raw is None else raw)
        self.fail_with(code, words, "import", self.description, "-o", self.graph, ranks=next(self.turn))
        self.assertFalse(self.graph.exists())
        self.assertEqual([path for path in self.folder.iterdir() if "partial" in path.name or ".h5" in path.name], [])

    def test_the_good_one(self):
        self.describe({"types.item": {"features": "x.npy"}, "relations.likes": {"source": "item", "target": "item", "edges": "e.npy"}})
        self.succeed("import", self.description, "-o", self.graph)
        self.succeed("import", "toml", self.description, "-o", self.graph, "--overwrite")

    def test_keys(self):
        self.refuse([f"{self.description}:2: unknown key types.item.feature; did you mean features?"], types__item={"feature": "x.npy", "features": None})
        self.refuse(["unknown key relation; did you mean relations?"], **{"": {"relation": 1}})
        self.refuse(["unknown key relations.likes.edge; did you mean edges?"], relations__likes={"edge": "e.npy"})
        self.refuse(["links.train.tails; did you mean tail?"], links={"train": {"head": "h.npy", "tails": "h.npy"}})
        self.refuse(["links.train.negative_tails"], links={"train": {"head": "h.npy", "tail": "h.npy", "negative_tails": "h.npy"}})
        self.refuse([':3: types.item.count is no whole number of at least 0'], types__item={"count": -1})
        self.refuse(["half is neither true nor false"], **{"": {"half": 1}})
        self.refuse(['duplicates is "add"; give one of sum, mean'], **{"": {"duplicates": "add"}})
        self.refuse(["duplicate_features means nothing with"], **{"": {"duplicates": "refuse", "duplicate_features": "sum"}})
        self.refuse(['columns has "wait"; did you mean weight?'], relations__likes={"edges": {"file": "e.txt", "columns": ["source", "target", "wait"]}})
        self.refuse(['columns has no "target"'], relations__likes={"edges": {"file": "e.txt", "columns": ["source", "time"]}})
        self.refuse(["time is a column of edges, too"], relations__likes={"time": "w.npy", "edges": {"file": "e.txt", "columns": ["source", "target", "time"]}})
        self.refuse(["edges has file or files"], relations__likes={"edges": {"columns": ["source", "target"]}})
        self.refuse(["columns is of texts"], relations__likes={"edges": {"file": "e.npy", "columns": ["source", "target"]}})
        self.refuse(["directed = false is of a relation within one type"], types__shop={"count": 4}, relations__at={
            "source": "item", "target": "shop", "edges": "e.npy", "directed": False})
        self.refuse(["relations.likes.source is missing"], relations__likes={"source": None})
        self.refuse(["relations.likes has no edges"], relations__likes={"edges": None})
        self.refuse(["is neither train, valid or test"], types__item={"splits": {"training": "h.npy"}})
        self.refuse(["types is missing"], raw="")
        self.refuse(["links has neither train, valid nor test"], links={"directed": True})
        self.refuse(["links.train.relation is missing"], links={"relations": ["a", "b"], "train": {"head": "h.npy", "tail": "h.npy"}})
        self.refuse(["some of the graph and others"], links={"relations": ["likes", "b"], "train": {"head": "h.npy", "tail": "h.npy", "relation": "h.npy"}})

    def test_what_is_espalier_tables(self):
        tables = f"which espalier-tables {self.description} reads"
        for key in ("file", "id", "label", "split"):
            self.refuse([f"types.item.{key} is of tables with headers, {tables}"], types__item={key: "x"})
        self.refuse([f"types.item.numbers is of tables with headers, {tables}"], types__item={"numbers": ["x"]})
        self.refuse([f"types.item.labels is a list of columns, {tables}"], types__item={"labels": ["a", "b"]})
        self.refuse([tables, "of an array or a text it is weights"], relations__likes={"weight": "pieces"})
        self.refuse([f"missing is of tables with headers, {tables}"], **{"": {"missing": "mean"}})
        self.refuse(["relations.likes.source names a column", "espalier-tables"], relations__likes={"source": {"type": "item", "column": "a"}})
        self.refuse([f"{self.folder / 'names.txt'}:1: 'source' is not a whole number", f"espalier-tables {self.description} reads"], relations__likes={"edges": "names.txt"})

    def test_types_and_relations(self):
        self.refuse([f"{self.description}:2: ", "item"], raw="[types.item]\n[types.item]\n")
        self.refuse([f'{self.description}:4: relations.likes.source is "itm", which is no type; did you mean item?'], relations__likes={"source": "itm"})
        self.refuse(["rev_likes", "has the name that the inverse", "give another name as its inverse"], relations__likes={"inverse": "rev_likes"},
                    relations__rev_likes={"source": "item", "target": "item", "edges": "e.npy"})
        self.refuse(["names hold", "a b"], types__shop={"count": 1}, **{'types."a b"': {"count": 1}})

    def test_files(self):
        self.refuse(["graph.toml:2: types.item.features: ", "there.npy"], types__item={"features": "there.npy"})
        self.refuse(["relations.likes.edges: ", "there.txt"], relations__likes={"edges": "there.txt"})
        self.refuse(["an archive of arrays; say which"], types__item={"features": "a.npz"})
        self.refuse(["a.npz: z: is not in the archive"], types__item={"features": "a.npz:z"})
        self.refuse(["types.item.features: ", "objects.npy: holds '|O'"], types__item={"features": "objects.npy"})
        self.refuse(["types.item.features: ", "cut.npy: has 248 bytes, but its header announces 256"], types__item={"features": "cut.npy"})
        self.refuse(["types.item.features: ", "long.npy: has 264 bytes, but its header announces 256"], types__item={"features": "long.npy"})
        self.refuse(["edges.files: ", "none.txt has no edge; leave it out"], relations__likes={"edges": {"files": ["e.txt", "none.txt"]}})
        self.fail_with(3, ["no such file"], "import", self.folder / "other.toml", "-o", self.graph)
        self.refuse(["my--half.npy: cannot be read"], types__item={"features": "my--half.npy"})  # no option
        self.describe({"types.item": {"features": "x.npy"}, "relations.likes": {"source": "item", "target": "item", "edges": "e.npy"}})
        for name in ("x.npy", "graph.toml"):
            before = (self.folder / name).read_bytes()
            self.fail_with(2, ["is an input of this import"], "import", self.description, "-o", self.folder / name, "--overwrite")
            self.assertEqual((self.folder / name).read_bytes(), before)

    def test_lengths(self):
        """Both are named, with their lengths."""
        self.refuse(["x5.npy has 5 rows, but ", "x.npy has 4"], types__item={"labels": "x5.npy"})
        self.refuse(["x.npy has 4 rows, but count is 5"], types__item={"count": 5})
        self.refuse(["x.csv: has 3 lines, but there are 4 vertices by ", "y.npy"], types__item={"features": "x.csv", "labels": "y.npy"})
        self.refuse(["w2.npy has 2 rows, but ", "e.npy has 3 edges"], relations__likes={"weights": "w2.npy"})
        self.refuse(["x.npy has 4 rows, but ", "e.npy has 3 edges"], relations__likes={"features": "x.npy"})
        self.refuse(["w2.npy has 2 numbers, but ", "e.txt has 3 edges"], relations__likes={"edges": "e.txt", "weights": "w2.npy"})
        self.refuse(["y.npy has 4 numbers, but ", "e.txt has 3 edges"], relations__likes={"edges": "e.txt", "time": "y.npy"})
        self.refuse(["x.npy: is 4 x 4, but there are 3 edges by ", "e.txt"], relations__likes={"edges": "e.txt", "features": "x.npy"})
        self.refuse(["nothing says how many vertices there are"], types__item={"features": None})
        self.refuse(["y.npy has 4 rows, but ", "h2.npy has 2"], links={"train": {"head": "h2.npy", "tail": "y.npy"}})

    def test_ids(self):
        self.refuse(["far.txt:2: vertex 4 is out of range", "0 to 3"], relations__likes={"edges": "far.txt"})
        self.refuse(["e.npy: edge 2: vertex 3 is out of range", "0 to 2"], types__item={"features": "x.csv"})
        self.refuse(["h.npy: entry 1: vertex 4 is out of range"], types__item={"splits": {"train": "h.npy"}})
        self.refuse(["two.npy: entry 2: the id is that of entry 0"], types__item={"ids": "two.npy"})
        self.refuse(["x.npy: holds numbers of 8 bytes with a fraction, not whole ones"], types__item={"time": "x.npy"})
        self.refuse(["h.npy: row 1: vertex 4 is out of range", "0 to 3"], links={"train": {"head": "h.npy", "tail": "h.npy"}})


if __name__ == "__main__":
    unittest.main()

"""from_tables: descriptions of arrays and texts, as `espalier import GRAPH.toml` reads them, and of
both kinds.

Laws: of random descriptions that both can read `espalier import` makes the same data sets, with the
same types; a table in place of a type's or a relation's arrays makes the same graph; what does not
fit is one message with the file and the key.
"""

import gzip

import h5py
import numpy as np

from tests.app.import_described_test import RELATIONS, TYPES, Described
from tests.app.program import arrays_of
from tests.python import SEED, DataTest
from tests.python.tables import text_of

import espalier

SPLITS = ("train", "valid", "test")


def texts(ids):
    return [of.decode() if isinstance(of, bytes) else str(of) for of in ids.tolist()]


class Read(DataTest, Described):
    def put_text(self, lines):
        """Plain, or by gzip."""
        packed = self.random.random() < 0.5
        name = f"t{next(self.files)}.txt{'.gz' * packed}"
        content = "".join(f"{line}\n" for line in lines).encode()
        (self.folder / name).write_bytes(gzip.compress(content) if packed else content)
        return name

    def read(self, sections):
        """What the package makes of a description."""
        self.describe(sections)
        espalier.from_tables(self.description, self.wanted, overwrite=True)
        return arrays_of(self.wanted)

    def same(self, found, wanted):
        self.assertEqual(sorted(found), sorted(wanted))
        for name, array in wanted.items():
            self.assertEqual(found[name].dtype, array.dtype, name)
            np.testing.assert_array_equal(found[name], array, name)


class AsImport(Read):
    def check(self, sections):
        found = self.read(sections)
        self.succeed("-q", "import", self.description, "-o", self.graph, "--overwrite")
        self.same(found, arrays_of(self.graph))
        with h5py.File(self.wanted) as one, h5py.File(self.graph) as other:
            for name in ("version", "directed"):
                self.assertEqual(one.attrs[name], other.attrs[name], name)
            for name, array in found.items():
                if "classes" in other[name].attrs:
                    self.assertEqual(one[name].attrs["classes"], other[name].attrs["classes"], name)

    def random_type(self, count):
        return {"count": count} if self.random.random() < 0.2 else self.random_vertices(count)[0]

    def random_relation(self, sources, targets, count, within):
        """With its own word on the other way, or none."""
        keys, _ = self.random_edges(sources, targets, count)
        said = self.random.choice(["", "inverse", "directed", "both ways"][: 3 + within])
        return keys | {"inverse": {"inverse": f"back{count}"}, "directed": {"directed": True},
                       "both ways": {"directed": False}}.get(said, {})  # fmt: skip

    def options(self):
        more = {"loops": str(self.random.choice(["keep", "drop"])), "directed": bool(self.random.random() < 0.5)}
        return super().options() | {key: more[key] for key in more if self.random.random() < 0.7}

    def test_without_types(self):
        for seed in range(SEED, SEED + 8):
            with self.subTest(seed=seed):
                self.random = np.random.default_rng(seed)
                relation = self.random_edges(20, 20, 90)[0] | {"source": "v", "target": "v"}
                if self.random.random() < 0.3:
                    relation["directed"] = bool(self.random.random() < 0.5)
                self.check({"": self.options(), "types.v": self.random_type(20), "relations.r": relation})

    def test_with_types(self):
        """In any order; also one relation alone, whose inverse makes types of it."""
        for seed in range(SEED, SEED + 12):
            with self.subTest(seed=seed):
                self.random = np.random.default_rng(seed)
                names = self.random.permutation(list(TYPES)).tolist()
                sections = {"": self.options()} | {f"types.{name}": self.random_type(TYPES[name]) for name in names}
                for name in self.random.permutation(list(RELATIONS))[: self.random.integers(1, 5)].tolist():
                    source, target, count = RELATIONS[name]
                    edges = self.random_relation(TYPES[source], TYPES[target], count, source == target)
                    sections[f"relations.{name}"] = {"source": source, "target": target, **edges}
                self.check(sections)

    def test_what_random_ones_seldom_are(self):
        """Relations that are each other's reverse; repeated loops that are dropped; no edges; one edge."""
        ends = {"source": "v", "target": "v"}
        edges, one = self.put_npy(np.array([[0, 1, 1], [2, 3, 1]])), self.put_npy(np.array([[1], [0]]))
        back = self.put_npy(np.array([[2, 3, 1], [0, 1, 1]]))
        types = {"types.v": {"count": 4}, "types.alone": {"count": 2}}
        self.check(types | {"relations.r": {**ends, "edges": edges}, "relations.rev_r": {**ends, "edges": back}})
        for name in (self.put_text(["1 1", "0 1", "1 1"]), self.put_npy(np.zeros((2, 0), int)), one):
            self.check({"": {"duplicates": "refuse", "loops": "drop"}} | types | {"relations.r": {**ends, "edges": name}})


class Mixed(Read):
    """Each type and each relation by arrays or by a table."""

    def put_table(self, columns):
        name = f"c{next(self.files)}.csv"
        rows = zip(*([repr(cell) if isinstance(cell, float) else cell for cell in column] for column in columns.values()))
        (self.folder / name).write_text(text_of([columns, *rows]), encoding="utf-8")
        return name

    def numbers(self, rows):
        """Columns of a table, and the key of a description that names them."""
        rows = rows.astype(np.float32)
        return {f"n{k}": column.astype(float).tolist() for k, column in enumerate(rows.T)}

    def type_of_table(self, given, count):
        x, labels, ids = self.numbers(given["x"]), given["y"], texts(given["ids"])
        keys = {"id": "id", "numbers": list(x), "split": {}}
        columns = {"id": ids, **x}
        if labels.ndim == 1:
            columns["y"], keys["label"] = ["" if of < 0 else of for of in labels.tolist()], "y"
        else:
            columns |= {f"y{k}": column.tolist() for k, column in enumerate(labels.T)}
            keys["labels"] = [f"y{k}" for k in range(labels.shape[1])]
        if "time" in given:
            columns["when"], keys["time"] = given["time"].tolist(), "when"
        if "part" in given:
            columns["part"], keys["split"] = given["part"].tolist(), {"column": "part"}
        return {"file": self.put_table(columns), **keys}

    def relation_of_table(self, given, ids):
        """`ids`: of both ends."""
        columns = {end: [names[k] for k in of] for end, names, of in zip("st", ids, given["edge_index"])}
        keys = {}
        for key, column in (("weight", "edge_weight"), ("time", "edge_time")):
            if column in given:
                columns[key], keys[key] = given[column].tolist(), key
        if "edge_features" in given:
            x = self.numbers(given["edge_features"])
            columns, keys["numbers"] = columns | x, list(x)
        return {"file": self.put_table(columns), **keys}

    def test_tables_in_place_of_arrays(self):
        kinds = set()
        for seed in range(SEED, SEED + 12):
            with self.subTest(seed=seed):
                self.random = np.random.default_rng(seed)
                options = self.options() | ({"directed": False} if seed % 2 else {})
                arrays, mixed, ids = {"": options}, {"": options}, {}
                for name, count in TYPES.items():
                    keys, given = self.random_vertices(count, splits=False)
                    keys["features"] = self.put_npy(given["x"].astype(np.float32))
                    if given["y"].ndim == 1:  # of a class that none has a table knows nothing
                        given["y"][:4] = range(4)
                        keys["labels"] = self.put(given["y"])
                    given["part"] = np.where(given["y"].reshape(count, -1).min(axis=1) < 0, "", self.random.choice(["", *SPLITS], count))
                    keys["splits"] = {part: self.put(np.flatnonzero(given["part"] == part)) for part in SPLITS}
                    if self.random.random() < 0.3:
                        del keys["ids"]
                        given["ids"] = np.arange(count)
                    ids[name] = texts(given["ids"])
                    arrays[f"types.{name}"] = keys
                    mixed[f"types.{name}"] = self.random.choice([lambda: keys, lambda: self.type_of_table(given, count)])()
                for name, (source, target, count) in RELATIONS.items():
                    edges, given = self.random_edges(TYPES[source], TYPES[target], count)
                    arrays[f"relations.{name}"] = {"source": source, "target": target, **edges}
                    mixed[f"relations.{name}"] = arrays[f"relations.{name}"]
                    if self.random.random() < 0.5:
                        ends = {end: {"type": of, "column": end[0]} for end, of in (("source", source), ("target", target))}
                        mixed[f"relations.{name}"] = self.relation_of_table(given, (ids[source], ids[target])) | ends
                wanted, found = self.read(arrays), self.read(mixed)
                named = [name for name in found if name not in wanted]
                self.assertTrue(all(name.endswith(("names", "ids")) for name in named), named)
                self.same({name: array for name, array in found.items() if name not in named}, wanted)
                again = self.folder / "again.h5"
                if named and any("feature_names" in name for name in named):
                    espalier.from_tables(self.description, again, like=self.wanted, overwrite=True)
                    self.same(arrays_of(again), found)
                kinds |= {(name[:4], "file" in keys) for name, keys in mixed.items() if name}
        self.assertEqual(len(kinds), 4)

    def test_labels_that_are_texts(self):
        kinds = np.array(["toy", "book", "toy"])
        arrays = self.read({"types.v": {"labels": self.put_npy(kinds)}, "relations.r": {
            "source": "v", "target": "v", "edges": self.put_npy(np.array([[0], [1]]))}})
        self.assertEqual(arrays["labels/names"][arrays["nodes/labels"]].astype(str).tolist(), kinds.tolist())


class Refusals(Read):
    """One line with the file and the key; no file."""

    GOOD = {"types.item": {"features": "x.npy"}, "relations.likes": {"source": "item", "target": "item", "edges": "e.npy"}}

    def setUp(self):
        super().setUp()
        for name, array in {"x": np.eye(4), "x5": np.eye(5), "e": np.array([[0, 1], [1, 2], [2, 3]]), "w": np.ones(3), "w2": np.ones(2),
                            "objects": np.array([{}, 1]), "far": np.array([0, 4]), "cube": np.zeros((4, 1, 1)), "wide": np.ones((4, 4), int)}.items():
            np.save(self.folder / f"{name}.npy", array, allow_pickle=True)
        (self.folder / "cut.npy").write_bytes((self.folder / "x.npy").read_bytes()[:-8])
        np.savez(self.folder / "a.npz", x=np.eye(4))
        for name, text in {"e.txt": "0 1\n1 2\n3 2\n", "names.txt": "source target\n0 1\n", "none.txt": "# nothing\n", "half.txt": "0 1\n1 2.5\n",
                           "wide.txt": "0 1\n1 2 3\n", "z.csv": "id\n7\n8\n", "z.txt.zst": "(\udcb5/\udcfd.."}.items():
            (self.folder / name).write_bytes(text.encode(errors="surrogateescape"))

    def refuse(self, words, **changed):
        """`changed`: keys of a section, whose name has __ for a dot; of None a key is left out."""
        sections = {"": {}} | {name: dict(keys) for name, keys in self.GOOD.items()}
        for name, keys in changed.items():
            section = sections.setdefault(name.replace("__", ".").strip("."), {})
            section |= keys
            for key in [key for key, value in keys.items() if value is None]:
                del section[key]
        said = self.refused(words[0], self.read, sections)
        self.assertEqual(said.count("\n"), 0)
        for word in words:
            self.assertIn(word, said)
        self.assertFalse(self.wanted.exists())

    def test_each_in_its_words(self):
        self.read(self.GOOD)
        self.wanted.unlink()
        item, likes = (f"{self.description}, [{section}]: " for section in ("types.item", "relations.likes"))
        # Keys
        self.refuse([item + "there is no key 'feature'; did you mean 'features'?"], types__item={"feature": "x.npy"})
        self.refuse([likes + "there is no key 'edge'; did you mean 'edges'?"], relations__likes={"edge": "e.npy"})
        self.refuse([f"{self.description}: loops is 'sum'; say one of keep, drop"], __={"loops": "sum"})
        for key, value in (("links", {"directed": True}), ("half", True), ("typed", True), ("name", "x")):
            self.refuse([f"{key} is for `espalier import {self.description}`"], __={key: value})
        self.refuse([likes + f"weights is {{'file': 'w.npy', 'column': 0}}; give a file (one column of it is for `espalier import {self.description}`)"],
                    relations__likes={"weights": {"file": "w.npy", "column": 0}})
        self.refuse([item + "['features'] is of arrays, ['file'] of a table"], types__item={"file": "z.csv", "id": "id"})
        self.refuse([likes + "['edges'] is of arrays, ['weight'] of a table"], relations__likes={"weight": "pieces"})
        self.refuse([likes + "say which table it is: file ="], relations__likes={"edges": None})
        self.refuse([likes + "has inverse and directed"], relations__likes={"inverse": "liked", "directed": True})
        self.refuse([f"{self.description}, [relations.at]: directed = false is of a relation within one type"], types__shop={"count": 4},
                    relations__at={"source": "item", "target": "shop", "edges": "e.npy", "directed": False})
        self.refuse(["'rev_likes' is there"], __={"directed": False}, relations__rev_likes={"source": "item", "target": "item", "edges": "e.npy"})
        self.refuse([likes + "edges is {'columns': "], relations__likes={"edges": {"columns": ["source", "target"]}})
        self.refuse([likes + "edges is {'file': 'e.txt', 'columns': ['source', 'wait']}; give"], relations__likes={"edges": {"file": "e.txt", "columns": ["source", "wait"]}})
        self.refuse([likes + "edges.columns is of texts, but e.npy is"], relations__likes={"edges": {"file": "e.npy", "columns": ["source", "target"]}})
        self.refuse([likes + "time is a column of edges, too"], relations__likes={
            "time": "w.npy", "edges": {"file": "e.txt", "columns": ["source", "target", "time"]}})
        self.refuse([item + "splits.training is 'far.npy'"], types__item={"splits": {"training": "far.npy"}})
        self.refuse([item + "nothing says how many; give one of count, features"], types__item={"features": None, "splits": {}})
        self.refuse(["nothing says how many vertices ['shop'] has"], types__shop={}, relations__likes={"target": "shop"})
        # Files
        self.refuse([item + "features, ", "there.npy: [Errno 2] No such file"], types__item={"features": "there.npy"})
        self.refuse([likes + "edges, ", "there.txt: [Errno 2] No such file"], relations__likes={"edges": "there.txt"})
        self.refuse([item + "features, ", "a.npz: ", "'z is not a file in the archive'"], types__item={"features": "a.npz:z"})
        self.refuse([item + "features, ", "a.npz: ", "is not a file in the archive"], types__item={"features": "a.npz"})
        self.refuse([item + "features, ", "objects.npy: Object arrays cannot be loaded"], types__item={"features": "objects.npy"})
        self.refuse([item + "features, ", "cut.npy: "], types__item={"features": "cut.npy"})
        self.refuse([item + "features, ", "cube.npy, has 3 dimensions"], types__item={"features": "cube.npy"})
        self.refuse([likes + "edges, ", "z.txt.zst: is packed by zstd, which only `espalier import` reads"], relations__likes={"edges": "z.txt.zst"})
        self.refuse([likes + "edges, none.txt, has no edge; leave it out"], relations__likes={"edges": {"files": ["e.txt", "none.txt"]}})
        self.refuse([likes + "edges, ", "names.txt: could not convert string 'source'", "a table with a header is file =, not edges ="], relations__likes={"edges": "names.txt"})
        self.refuse([likes + "edges, ", "half.txt: could not convert string '2.5'"], relations__likes={"edges": "half.txt"})
        self.refuse([likes + "edges, ", "wide.txt: ", "columns"], relations__likes={"edges": "wide.txt"})
        # Lengths and ids
        self.refuse([item + "rows are not as many: features 4, labels 5"], types__item={"labels": "x5.npy"})
        self.refuse([item + "rows are not as many: count 5, features 4"], types__item={"count": 5})
        self.refuse([likes + "rows are not as many: edges 3, weights 2"], relations__likes={"weights": "w2.npy"})
        self.refuse([likes + "edges, wide.npy, has the shape [4, 4]"], relations__likes={"edges": "wide.npy"})
        self.refuse([item + "time holds floats"], types__item={"time": "x.npy", "features": None})
        self.refuse([item + "train[1] is 4, but the graph has the vertices 0 to 3"], types__item={"splits": {"train": "far.npy"}})
        self.refuse([likes + "edges[0][2] is 2"], types__item={"features": None, "count": 2})

    def test_inputs_stay(self):
        """Neither an array nor the description is written to."""
        self.describe(self.GOOD)
        for name in ("x.npy", "e.npy", "graph.toml"):
            before = (self.folder / name).read_bytes()
            arguments = self.description, self.folder / name
            self.refused(f"{name} is one of the files", espalier.from_tables, *arguments, overwrite=True)
            self.assertEqual((self.folder / name).read_bytes(), before)

"""espalier import of folders that hold numpy's arrays: OGB's binary layouts, with types and without, and MAG240M's folder.

Laws, beside those of round_trip_test: numbers of all kinds become features, to the bit; more edges than are read at a time
are all there; the pickles that come with them are what scripts/mag240m_pickles.py makes
of them; an array that is cut off, damaged or of another kind is one sentence that names it, and leaves no file.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import numpy as np
import scipy.sparse

from tests.app.import_test import OgbFolder
from tests.app.import_typed_test import TypedFile, turned
from tests.app.program import ROOT, espalier

SCRIPT = ROOT / "scripts" / "mag240m_pickles.py"
TYPES = {"paper": 300, "author": 40, "institution": 7}
TRIPLETS = (("author", "affiliated_with", "institution"), ("author", "writes", "paper"), ("paper", "cites", "paper"))


def random_edges(random, head, tail, count):
    """[2, m], no column twice"""
    pairs = np.unique(np.stack([random.integers(0, TYPES[head], count), random.integers(0, TYPES[tail], count)]), axis=1)
    return pairs[:, random.permutation(pairs.shape[1])]


def with_bit(content, place, bit):
    return content[:place] + bytes([content[place] ^ bit]) + content[place + 1:]


class ArrayFolder(OgbFolder):
    READ = TypedFile

    def setUp(self):
        super().setUp()
        self.input = self.ogb
        self.random = np.random.default_rng(5)
        self.edges = {triplet: random_edges(self.random, triplet[0], triplet[2], 500) for triplet in TRIPLETS}
        self.features = self.random.normal(size=(TYPES["paper"], 9)).astype(np.float32)
        self.labels = self.random.integers(0, 6, TYPES["paper"])
        order = self.random.permutation(TYPES["paper"])
        self.parts = {"train": order[:100], "valid": order[100:150], "test": order[150:240]}
        self.put_folder()

    def check_edges(self, file):
        for head, name, tail in TRIPLETS:
            pairs = sorted(zip(*self.edges[head, name, tail].tolist()))
            self.assertEqual(sorted(file.edges[head, name, tail]), pairs)
            self.assertEqual(sorted(file.edges[tail, "rev_" + name, head]), turned(pairs))

    def check_vertices(self, file):
        np.testing.assert_array_equal(file.data["nodes/paper/labels"], self.labels)
        for name, part in self.parts.items():
            self.assertEqual(file.data["split/paper/" + name].tolist(), sorted(part.tolist()))

    def convert(self):
        done = subprocess.run([sys.executable, SCRIPT, self.input], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def torch(self):
        try:
            import torch
        except ImportError:
            self.skipTest("this python3 has no PyTorch")
        return torch


class OgbBinary(ArrayFolder):
    def put_archive(self, name, arrays, save=np.savez_compressed):
        path = self.input / "raw" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        save(path, **arrays)

    def put_folder(self):
        self.put_archive("num_nodes_dict.npz", {name: np.array([size]) for name, size in TYPES.items()})
        self.put_archive("edge_index_dict.npz", {"___".join(triplet): edges for triplet, edges in self.edges.items()})
        self.put_archive("num_edges_dict.npz", {"___".join(triplet): np.array([edges.shape[1]]) for triplet, edges in self.edges.items()})
        self.put_archive("node_feat_dict.npz", {"paper": self.features})
        self.put_archive("node_year.npz", {"paper": np.arange(TYPES["paper"])})
        self.put_archive("node-label.npz", {"paper": self.labels[:, np.newaxis]})
        for name, part in self.parts.items():
            path = self.input / "split" / "time" / "paper" / (name + ".csv")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(f"{v}\n" for v in part))

    def test_numbers_of_all_kinds_in_either_order_become_features(self):
        os.unlink(self.input / "raw" / "node_feat_dict.npz")
        for number, kind in enumerate(("<f2", ">f2", "<f4", ">f4", "<f8", "i1", "u1", "<i2", ">u4", ">i8", "<u8", "?")):
            values = self.random.integers(0, 2 if kind == "?" else 100, (300, 3)).astype(kind)
            self.put_archive("node_feat.npz", {"paper": np.asfortranarray(values), "author": np.ascontiguousarray(values[:40])},
                             (np.savez, np.savez_compressed)[number % 2])
            data = self.imported().data
            for name, expected in (("paper", values), ("author", values[:40])):
                np.testing.assert_array_equal(data[f"nodes/{name}/features"], expected.astype(np.float32))
                self.assertEqual(data[f"nodes/{name}/features"].dtype, np.float16 if "f2" in kind else np.float32)

    def test_damage_in_the_order_of_fortran(self):
        path = self.input / "raw" / "node_feat_dict.npz"
        self.put_archive("node_feat_dict.npz", {"paper": np.asfortranarray(self.features)}, np.savez)
        path.write_bytes(path.read_bytes().replace(self.features.T.tobytes()[400:800], b"x" * 400))
        self.refuse(3, ["node_feat_dict.npz"])

    def test_splits_that_are_a_pickle(self):
        torch = self.torch()
        folder = self.input / "split" / "time"
        shutil.rmtree(folder / "paper")
        torch.save({name: {"paper": part} for name, part in self.parts.items()}, folder / "split_dict.pt")
        self.refuse(3, ["split_dict.pt: is a pickle", "scripts/mag240m_pickles.py"])
        self.assertEqual(self.convert()[0], 0)
        self.check_vertices(self.imported())

    def damaged(self, name, arrays, words, save=np.savez_compressed):
        path = self.input / "raw" / name
        good = path.read_bytes()
        self.put_archive(name, arrays, save)
        with self.subTest(words):
            self.refuse(3, words)
        path.write_bytes(good)

    def test_damage(self):
        edges = {"___".join(triplet): pairs for triplet, pairs in self.edges.items()}
        cites = edges["paper___cites___paper"].copy()
        cites[1, 77] = 300
        self.damaged("edge_index_dict.npz", {**edges, "paper___cites___paper": cites},
                     ["edge_index_dict.npz: paper___cites___paper: edge 77: vertex 300 is out of range: the graph has 300 vertices of type paper, 0 to 299"])
        cites[1, 77] = -1
        self.damaged("edge_index_dict.npz", {**edges, "paper___cites___paper": np.asfortranarray(cites)}, ["edge 77: vertex -1 is out of range"])
        self.damaged("edge_index_dict.npz", {**edges, "paper___cites___paper": cites[:1]}, ["cites___paper: is 1 x", "not 2 x edges"])
        self.damaged("edge_index_dict.npz", {**edges, "paper___cites___paper": cites[:, :-1]}, ["but there are", "by num_edges_dict.npz"])
        self.damaged("edge_index_dict.npz", {**edges, "paper___cites___paper": cites.astype(float)}, ["with a fraction, not whole ones"])
        self.damaged("edge_index_dict.npz", {**edges, "paper___cites": cites}, ["the array paper___cites is not called HEAD___RELATION___TAIL"])
        self.damaged("edge_index_dict.npz", {**edges, "paper___in___venue": cites}, ['names the vertex type "venue"; there is paper, author, institution'])
        self.damaged("edge_index_dict.npz", {name: edges[name] for name in list(edges)[:2]}, ["num_edges_dict.npz: names the triplet paper___cites___paper"])
        self.damaged("num_nodes_dict.npz", {**{name: np.array([size]) for name, size in TYPES.items()}, "paper": np.array([300, 300])},
                     ["num_nodes_dict.npz: paper: counts 2 graphs"])
        self.damaged("node_feat_dict.npz", {"paper": self.features[:-1]}, ["node_feat_dict.npz: paper: is 299 x 9, but there are 300 vertices"])
        self.damaged("node_feat_dict.npz", {"venue": self.features}, ['node_feat_dict.npz: there is no vertex type "venue"'])
        self.damaged("node_feat_dict.npz", {"paper": self.features.astype(object)}, ["node_feat_dict.npz: paper: holds '|O', not numbers"])
        self.damaged("node_feat_dict.npz", {"paper": self.features[:, :, np.newaxis]}, ["has 3 dimensions"])
        holes = self.features.copy()
        holes[4, 2] = np.inf
        self.damaged("node_feat_dict.npz", {"paper": holes}, ["node_feat_dict.npz: paper: row 4: column 2 is inf"])
        self.damaged("node-label.npz", {"paper": self.labels + 0.5}, ["node-label.npz: paper: row 0: label", "is not a whole number"])
        self.damaged("node-label.npz", {"author": self.labels[:40]}, ["paper has a split, but no labels"])
        self.check_edges(self.imported())
        self.assertIn("type       paper: 300 vertices, 9 features; labels: 300 vertices, 0 without one; 100 train", self.said)

    def test_archives_that_are_damaged(self):
        path = self.input / "raw" / "node_feat_dict.npz"
        packed = path.read_bytes()
        np.savez(path, paper=self.features)
        plain = path.read_bytes()
        self.refuse_contents(path, (packed[:-30], ["node_feat_dict.npz as an archive"]), (b"", ["node_feat_dict.npz"]),
                             (with_bit(packed, len(packed) // 2, 4), ["node_feat_dict.npz: paper"]),
                             # A mantissa: only the archive's sum can tell.
                             (with_bit(plain, len(plain) // 2, 1), ["node_feat_dict.npz: paper: the archive is damaged", "CRC"]))
        for name, text, words in (("readme.txt", "nothing", "holds readme.txt, which is no array"),
                                  ("paper.npy", "nothing at all", "node_feat_dict.npz: paper: is no array of numpy")):
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr(name, text)
            self.refuse(3, [words])
        path.unlink()
        os.mkfifo(path)
        self.refuse(3, ["is a pipe, not a file"])


class OgbData(OgbFolder):
    """The binary layout of graphs without types."""

    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(9)
        self.n, self.m = 120, 50000  # more edges than are read at a time
        self.edges = self.random.integers(0, self.n, (2, self.m))
        self.features = self.random.normal(size=(self.n, 5)).astype(np.float32)
        self.edge_features = np.round(self.random.random((self.m, 2)).astype(np.float32), 2)
        self.labels = self.random.integers(0, 4, (self.n, 1)).astype(np.float32)
        self.labels[50:] = np.nan
        self.parts = {"train": np.arange(20, 40), "valid": np.arange(10), "test": np.arange(40, 50)}
        self.put_data()
        np.savez_compressed(self.ogb / "raw" / "node-label.npz", node_label=self.labels)
        for name, part in self.parts.items():
            self.put(f"split/time/{name}.csv.gz", "".join(f"{v}\n" for v in part))

    def put_data(self, save=np.savez_compressed, **arrays):
        known = {"edge_index": self.edges, "node_feat": self.features, "num_nodes_list": np.array([self.n]),
                 "num_edges_list": np.array([self.m]), "node_year": np.arange(self.n)}
        save(self.ogb / "raw" / "data.npz", **{name: array for name, array in (known | arrays).items() if array is not None})

    def expected(self, weights=None):
        """Rows are targets."""
        values = np.ones(self.m) if weights is None else weights
        return scipy.sparse.coo_matrix((values, (self.edges[1], self.edges[0])), (self.n, self.n)).tocsr()

    def check(self, data, wanted):
        np.testing.assert_array_equal(data["graph/indptr"], wanted.indptr)
        np.testing.assert_array_equal(data["graph/indices"], wanted.indices)

    def test_weights_and_features_of_edges(self):
        self.put_data(edge_feat=self.edge_features, num_edges_list=None)
        data = self.imported("--edge-weight", 1, ranks=2)
        wanted = self.expected(self.edge_features[:, 1])
        self.check(data, wanted)
        np.testing.assert_allclose(data["graph/weights"], wanted.data, rtol=1e-5)
        first = {}
        for e, pair in enumerate(zip(self.edges[1].tolist(), self.edges[0].tolist())):
            first.setdefault(pair, e)
        rows = np.repeat(np.arange(self.n), np.diff(wanted.indptr)).tolist()
        places = [first[pair] for pair in zip(rows, wanted.indices.tolist())]
        np.testing.assert_array_equal(data["edges/features"], self.edge_features[places, :1])
        np.testing.assert_array_equal(self.imported()["edges/features"], self.edge_features[places])
        data = self.imported("--no-edge-features", "--symmetrize")
        self.assertNotIn("edges/features", data)
        self.check(data, self.expected() + self.expected().T)
        self.fail_with(2, ["--edge-weight 2", "edge_feat has 2 columns"], *self.command("--edge-weight", 2))
        self.edge_features[333, 1] = np.inf
        self.put_data(edge_feat=self.edge_features)
        self.refuse(3, ["data.npz: edge_feat: row 333: weight inf is not a finite number"], "--edge-weight", 1)

    def test_splits_as_arrays(self):
        folder = self.ogb / "split" / "time"
        for name, part in self.parts.items():
            (folder / f"{name}.csv.gz").unlink()
            np.save(folder / f"{name}.npy", part[::-1])
        self.assertEqual(self.imported()["split/train"].tolist(), self.parts["train"].tolist())
        np.save(folder / "valid.npy", np.arange(self.n) == 7)
        self.assertEqual(self.imported()["split/valid"].tolist(), [7])
        np.save(folder / "valid.npy", np.array([60]))
        self.refuse(3, ["valid.npy: entry 0: vertex 60 has no label"])

    def test_damage(self):
        edges = self.edges.copy()
        edges[1, 40007] = self.n
        for arrays, words in (
                ({"edge_index": edges}, ["data.npz: edge_index: edge 40007: vertex 120 is out of range: num_nodes_list says 120 vertices, 0 to 119"]),
                ({"edge_index": np.asfortranarray(edges)}, ["edge_index: edge 40007: vertex 120"]), ({"edge_index": -edges}, ["edge 0: vertex -"]),
                ({"edge_index": edges[:, :-1]}, ["has 49999 edges, but there are 50000 by num_edges_list"]),
                ({"edge_index": edges.T}, ["edge_index: is 50000 x 2, not 2 x edges"]), ({"edge_index": edges.astype(float)}, ["with a fraction"]),
                ({"edge_index": edges.astype(object)}, ["holds '|O', not numbers"]), ({"edge_index": None}, ["data.npz: edge_index: is not in the archive"]),
                ({"num_nodes_list": None}, ["num_nodes_list: is not in the archive"]), ({"num_nodes_list": np.array([120, 7])}, ["counts 2 graphs"]),
                ({"num_nodes_list": np.array([-1])}, ["-1 is not a number of things"]), ({"num_nodes_list": np.array([0])}, ["no vertex"]),
                ({"num_nodes_list": np.array([2**50])}, []),
                ({"node_feat": self.features[1:]}, ["node_feat: is 119 x 5, but there are 120 vertices"])):
            self.put_data(**arrays)
            with self.subTest(words):
                self.refuse(3, words) if words else self.assertIn(espalier(*self.command())[0], (3, 4))
        self.put_data(np.savez)
        path = self.ogb / "raw" / "data.npz"
        whole = path.read_bytes()
        at = whole.index(self.edges.tobytes())
        # Another source or target, perhaps: only the archive's sum can tell.
        self.refuse_contents(path, (whole[:-50], ["data.npz as an archive"]),
                             *((with_bit(whole, at + part * self.m * 4, 1), ["data.npz: edge_index"]) for part in (1, 3)))
        self.put_data()
        np.savez(self.ogb / "raw" / "node-label.npz", label=self.labels)
        self.refuse(3, ["node-label.npz: node_label: is not in the archive"])
        np.savez(self.ogb / "raw" / "node-label.npz", node_label=self.labels + 0.5)
        self.refuse(3, ["node-label.npz: node_label: row 0: label", "is not a whole number"])


class Mag240m(ArrayFolder):
    LAYOUT = "mag240m"

    def put_array(self, name, array):
        path = self.input / "processed" / (name + ".npy")
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, array)

    def put_folder(self):
        self.put_array("paper/node_feat", self.features.astype(np.float16))
        self.put_array("paper/node_label", self.labels.astype(np.float32))
        self.put_array("paper/node_year", self.labels.astype(np.int16))
        for triplet, edges in self.edges.items():
            self.put_array("___".join(triplet) + "/edge_index", edges)
        self.put_tables()

    def put_tables(self):
        (self.input / "num-node-dict.csv").write_text(",".join(TYPES) + "\n" + ",".join(map(str, TYPES.values())) + "\n")
        (self.input / "split").mkdir(exist_ok=True)
        for name, part in self.parts.items():
            np.save(self.input / "split" / (name + ".npy"), part)

    def test_a_mask_in_place_of_ids(self):
        mask = np.zeros(TYPES["paper"], bool)
        mask[self.parts["train"]] = True
        np.save(self.input / "split" / "train.npy", mask)
        self.check_vertices(self.imported())
        np.save(self.input / "split" / "train.npy", mask[:-1])
        self.refuse(3, ["train.npy: is 299, but there are 300 vertices"])

    def test_hidden_labels_of_the_test_set(self):
        labels = self.labels.astype(np.float32)
        labels[self.parts["test"]] = np.nan
        labels[299] = np.nan if 299 not in set(self.parts["train"]) | set(self.parts["valid"]) else labels[299]
        self.put_array("paper/node_label", labels)
        data = self.imported().data
        self.assertIn("none of the 90 vertices of test has a label", self.said)
        np.testing.assert_array_equal(data["nodes/paper/labels"], np.nan_to_num(labels, nan=-1))
        self.assertEqual([data["split/paper/" + name].size for name in self.parts], [100, 50, 0])
        labels[self.parts["train"][3]] = np.nan
        self.put_array("paper/node_label", labels)
        self.refuse(3, [f"train.npy: entry 3: vertex {self.parts['train'][3]} has no label"])

    def test_the_pickles(self):
        torch = self.torch()
        expected = {path.name: path.read_bytes() for path in (self.input / "num-node-dict.csv", *(self.input / "split").iterdir())}
        test = np.sort(self.parts["test"])
        tensors = {name: torch.from_numpy(part) for name, part in {**self.parts, "test": test}.items()}
        for number, split in enumerate(({**self.parts, "test": test}, {**self.parts, "test-whole": test},
                                        {**self.parts, "test-dev": test[::2], "test-challenge": test[1::2]},
                                        tensors, {name: part[:] for name, part in tensors.items()})):
            if number in (1, 2):
                del split["test"]
            shutil.rmtree(self.input / "split")
            (self.input / "num-node-dict.csv").unlink(missing_ok=True)
            self.refuse(3, ["num-node-dict.csv: no such file", "scripts/mag240m_pickles.py"])
            torch.save({**TYPES, "num_classes": 6}, self.input / "meta.pt")
            torch.save(split, self.input / "split_dict.pt", _use_new_zipfile_serialization=number % 2 == 0)
            code, words = self.convert()
            self.assertEqual(code, 0, words)
            self.assertEqual((self.input / "num-node-dict.csv").read_bytes(), expected["num-node-dict.csv"])
            self.check_vertices(self.imported())

    def test_pickles_that_are_something_else(self):
        torch = self.torch()
        torch.save({**TYPES, "num_classes": 6}, self.input / "meta.pt")
        (self.input / "split_dict.pt").write_bytes(b"nothing")
        self.assertEqual(self.convert()[0], 3)
        proof = self.folder / "proof"

        class Program:
            def __reduce__(self):
                return os.mkdir, (str(proof),)
        torch.save({"train": Program()}, self.input / "split_dict.pt")
        code, words = self.convert()
        self.assertEqual(code, 3, words)
        self.assertIn("posix.mkdir", words)
        self.assertFalse(proof.exists(), "no program of a pickle runs")
        for split, words in (({"train": [1]}, "no valid set"), ({"train": [1], "valid": [2]}, "no test set"),
                             ({"train": [1.5], "valid": [2], "test": [3]}, "train is float64"), ([1], "no dictionary")):
            torch.save(split, self.input / "split_dict.pt")
            code, output = self.convert()
            self.assertEqual(code, 3, output)
            self.assertIn(words, output)
        shutil.rmtree(self.input)
        self.assertEqual(self.convert()[0], 3)

    def test_damage(self):
        for name, array, words in (
                ("paper/node_feat", self.features[:299].astype(np.float16), ["paper/node_feat.npy: is 299 x 9, but there are 300 vertices"]),
                ("paper/node_label", self.labels - 1, ["paper/node_label.npy: row", "label -1"]),
                ("author___writes___paper/edge_index", self.edges[TRIPLETS[2]], ["author___writes___paper/edge_index.npy: edge", "out of range: the graph has 40 vertices of type author"]),
                ("paper___in___venue/edge_index", self.edges[TRIPLETS[2]], ["paper___in___venue", 'names the vertex type "venue"']),
                ("author/node_label", np.zeros(40), ["paper and author have labels"])):
            path = self.input / "processed" / (name + ".npy")
            good = path.read_bytes() if path.exists() else None
            self.put_array(name, array)
            with self.subTest(words):
                self.refuse(3, words)
            if good is None:
                shutil.rmtree(path.parent) if "___" in name else path.unlink()
            else:
                path.write_bytes(good)
        self.put_tables()
        np.save(self.input / "split" / "valid.npy", np.array([self.parts["valid"][0], self.parts["train"][0]]))
        self.refuse(3, ["valid.npy: entry 1: vertex", "is already in train"])
        np.save(self.input / "split" / "valid.npy", np.array([300]))
        self.refuse(3, ["valid.npy: entry 0: vertex 300 is out of range"])
        self.put_tables()
        (self.input / "processed" / "paper___cites___paper" / "edge_index.npy").unlink()
        self.refuse(3, ["paper___cites___paper/edge_index.npy"])

    def test_a_file_that_is_cut_off(self):
        path = self.input / "processed" / "paper" / "node_feat.npy"
        whole = path.read_bytes()
        self.refuse_contents(path, (whole[:-1], ["node_feat.npy: has", "its header announces", "is the download complete?"]),
                             (whole[:30], ["node_feat.npy: ends too early"]),
                             (whole.replace(b"(300, 9)", b"(-1, 99)"), ["node_feat.npy: its header says the shape (-1, 99)"]))

    def test_duplicates_and_outputs(self):
        edges = self.edges[TRIPLETS[2]].copy()
        edges[:, 9] = edges[:, 4]
        self.put_array("paper___cites___paper/edge_index", edges)
        self.refuse(3, ["paper___cites___paper/edge_index.npy: edge 9: repeats", "edge_index.npy: edge 4"], "--duplicates", "refuse")
        self.imported()
        self.assertIn("1 line repeats an earlier one", self.said)
        self.fail_with(2, ["-o"], "import", "mag240m", self.input, "--overwrite", "-o", self.input / "processed" / "paper" / "node_feat.npy")
        self.assertNotEqual(pathlib.Path(self.input / "processed" / "paper" / "node_feat.npy").stat().st_size, 0)

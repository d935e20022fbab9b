"""from_tables: a damaged table and whatever stands in a description are taken, or refused by
DataError, never by another exception; what was read stays as it was.
"""

import contextlib
import copy
import datetime
import itertools
import tomllib
import unittest.mock

import numpy as np

from tests.python import SEED
from tests.python.table_refusals_test import GOOD, SHOP, ShopTest

import espalier
from espalier.tables import description

JUNK = [
    3, -1, 2.5, True, "x", "", ".", [], {}, ["x"], [1], ["price", "price"], "sku", "items.csv",
    datetime.date(2000, 1, 1), float("nan"), {"a": 1}, {"type": 1, "column": 2}, {"column": 3},
    {"type": "item", "column": ["price"]}, {"shares": ["a", 1, 2]}, {"shares": [1, 0, 0]},
    {"time": "added", "valid": 1, "test": "x"}, {"time": "price", "valid": 1, "test": 2},
    "e.npy", "e.txt", {"file": "e.txt", "columns": [{}, "time"]}, {"files": ["e.txt", 1]}, {"train": {"train": []}},
]  # fmt: skip
LEFT_OUT = (
    "seed", "directed", "duplicates", "types.item.labels", "types.item.missing",
    "relations.buys.unknown", "relations.buys.numbers", "relations.buys.categories",
)  # fmt: skip
ARRAYS = """
loops = "drop"
[types.item]
features = "x.npy"
ids = "ids.txt"
splits = { train = "train.npy", other = { test = [] } }
[types.shop]
count = 3
[relations.sells]
source = "shop"
target = "item"
edges = { files = ["e.txt"], columns = ["source", "target"] }
weights = "w.npy"
inverse = "sold_by"
"""
LEFT_OUT_OF_ARRAYS = (
    "directed", "types.item.count", "types.item.labels", "types.item.time", "relations.sells.time",
    "relations.sells.features", "relations.sells.directed", "relations.sells.edges.file",
)  # fmt: skip


def paths_of(sections, before=()):
    """Of every key, and of every section."""
    for key, value in sections.items():
        yield (*before, key)
        if isinstance(value, dict):
            yield from paths_of(value, (*before, key))


class Junk(ShopTest):
    def test_junk_in_the_description(self):
        """Whatever stands for a value: no exception but DataError."""
        self.make({})
        self.assertGreater(self.taken_with_junk(tomllib.loads(SHOP), LEFT_OUT), 20)
        for name, content in GOOD.items():
            self.assertEqual((self.folder / name).read_text(), content)

    def test_junk_in_the_description_of_arrays(self):
        self.make({})
        for name, array in {"x": np.eye(2), "train": [1], "e": [[0, 1, 2], [0, 1, 1]], "w": np.ones(3)}.items():
            np.save(self.folder / f"{name}.npy", array)
        (self.folder / "e.txt").write_text("0 0\n1 1\n2 1\n")
        (self.folder / "ids.txt").write_text("a\nb\n")
        self.assertGreater(self.taken_with_junk(tomllib.loads(ARRAYS), LEFT_OUT_OF_ARRAYS), 8)

    def taken_with_junk(self, base, left_out):
        """How many descriptions were taken."""
        taken = 0
        places = [*paths_of(base), *((*name.split("."),) for name in left_out)]
        for path, junk in itertools.product(places, JUNK):
            described = copy.deepcopy(base)
            section = described
            for key in path[:-1]:
                section = section[key]
            section[path[-1]] = junk
            with (
                self.subTest(path=path, junk=junk),
                unittest.mock.patch.object(
                    description.tomllib, "loads", lambda text, described=described: described
                ),
            ):
                with contextlib.suppress(espalier.DataError):
                    espalier.from_tables(self.folder / "shop.toml", overwrite=True)
                    taken += 1
        return taken

    def test_random_damage(self):
        """A byte of a table that is another one, is gone, or is there twice."""
        random, taken = np.random.default_rng(SEED), 0
        for case in range(150):
            name = ("items.csv", "customers.csv", "orders.csv")[case % 3]
            content = bytearray(GOOD[name].encode())
            at = int(random.integers(len(content)))
            content[at : at + 1] = [
                b"",
                content[at : at + 1] * 2,
                bytes(random.integers(0, 256, 1, dtype=np.uint8)),
                b'"',
                b",",
                b"\n",
            ][random.integers(6)]
            with self.subTest(seed=SEED, case=case, name=name, content=bytes(content)):
                try:
                    self.make({name: bytes(content)})
                    taken += 1
                except espalier.DataError as refused:
                    self.assertNotIn("\n", str(refused))
        self.assertGreater(taken, 0)

"""from_tables: the graph file holds what the tables say.

Laws: ids, features, labels and splits of the rows in their order, edges as a loop over the rows
makes them; the same graph whatever the line ends, the quotes, the order of columns, the size of
pieces, CSV or Parquet; splits by share depend on the seed alone; what is scaled has mean 0 and
deviation 1, to float32; what is left out is as the page says.
"""

import csv
import datetime
import gzip
import os
import time
import unittest.mock

import numpy as np

from tests.app.program import arrays_of
from tests.python import all_warnings, needs
from tests.python.loops import entries_by_loop, entries_of_file
from tests.python.tables import TablesTest, described, text_of as table

import espalier
from espalier.tables import reading

SHOP = """
graph = "shop.h5"
[types.item]
file = "items.csv"
id = "sku"
numbers = ["price", "weight"]
dates = ["added"]
categories = ["colour"]
missing = "mean"
label = "kind"
split = { column = "part" }
[types.customer]
[relations.buys]
file = "orders.csv"
source = { type = "customer", column = "who" }
target = { type = "item", column = "sku" }
numbers = ["amount"]
weight = "pieces"
"""
HEADER = ["sku", "price", "weight", "added", "colour", "kind", "part"]
ITEMS = [
    ["a,1", "1.5", "2", "1970-01-02", "red", "toys, new", "train"],
    ['b"2', "-3e2", "", "1969-12-31", "", "books\nold", "valid"],
    ["c\n3", "", "4", "1960-01-01T12:00:00+06:00", "blue", "", "test"],
    ["ä", "0", "6", "2000-02-29", "red", "toys, new", ""],
]
OF_ORDERS = ["who", "sku", "amount", "pieces"]
ORDERS = [
    ["7", "ä", "2.5", "3"],
    ["-1", "a,1", "1", "1"],
    ["7", "c\n3", "0", "2"],
    ["7", "ä", "9", "4"],
]
SPLITS = ("train", "valid", "test")


def texts(names):
    return [name.decode() for name in names]


class TableTest(TablesTest):
    def shop(self, description=SHOP, items=(HEADER, *ITEMS), orders=(OF_ORDERS, *ORDERS)):
        """The arrays of the file that the tables make, texts or rows."""
        return self.made({"shop.toml": description, "items.csv": items, "orders.csv": orders})

    def items(self, **columns):
        """The rows of items with other cells in these columns."""
        rows = [dict(zip(HEADER, row)) for row in ITEMS]
        for name, cells in columns.items():
            for row, cell in zip(rows, cells):
                row[name] = cell
        return [HEADER, *(list(row.values()) for row in rows)]

    def same(self, one, other):
        self.assertEqual(
            {name: (array.shape, array.tobytes()) for name, array in one.items()},
            {name: (array.shape, array.tobytes()) for name, array in other.items()},
        )


class Shop(TableTest):
    def test_what_stands_in_the_file(self):
        arrays = self.shop()
        self.assertEqual(texts(arrays["types/item/ids"]), [row[0] for row in ITEMS])
        self.assertEqual(arrays["types/customer/ids"].tolist(), [7, -1])
        np.testing.assert_allclose(
            arrays["nodes/item/features"],
            [  # price, weight, days since 1970, blue, red
                [1.5, 2, 1, 0, 1],
                [-300, 4, -1, 0, 0],
                [-99.5, 4, -3652.75, 1, 0],
                [0, 6, 11016, 0, 1],
            ],
            rtol=1e-6,
        )
        self.assertEqual(texts(arrays["labels/item/names"]), ["books\nold", "toys, new"])
        self.assertEqual(arrays["nodes/item/labels"].tolist(), [1, 0, -1, 1])
        self.assertEqual(
            [arrays[f"split/item/{name}"].tolist() for name in SPLITS], [[0], [1], []]
        )  # c has no label
        self.assertEqual(
            entries_of_file(self.folder / "shop.h5", "customer.buys.item"),
            entries_by_loop([0, 1, 0, 0], [3, 0, 2, 3], [3, 1, 2, 4], [[2.5], [1], [0], [9]]),
        )

    def test_what_is_said_names_the_table(self):
        with all_warnings() as caught:
            self.shop()
        [said] = [str(item.message) for item in caught]
        self.assertTrue(said.startswith(f"{self.folder / 'orders.csv'}: edges: 1 of 4 edges"), said)

    def test_a_table_without_rows_is_a_relation_without_edges(self):
        arrays = self.shop(orders=[OF_ORDERS])
        self.assertEqual(arrays["graph/indptr"].tolist(), [0] * 5)
        self.assertEqual(arrays["types/name"].tolist(), [b"item", b"customer"])

    def test_line_ends_quotes_marks_and_order_of_columns(self):
        expected = self.shop()
        plain = table([HEADER, *ITEMS])
        for items in (
            table([HEADER, *ITEMS], "\r\n"),
            table([HEADER, *ITEMS], quoting=csv.QUOTE_ALL),
            plain.removesuffix("\n"),
            "\ufeff" + plain,
            plain + "\n\n",
            table([HEADER, *ITEMS[:2]], "\r\n") + table(ITEMS[2:], "\n"),
            table([["more", *HEADER[::-1]], *[["", *row[::-1]] for row in ITEMS]]),
        ):
            self.same(self.shop(items=items), expected)

    def test_pieces_of_any_size(self):
        expected = self.shop()
        for rows in (1, 2, 3):
            with unittest.mock.patch.object(reading.pieces, "__defaults__", (rows,)):
                self.same(self.shop(), expected)

    def test_packed_and_by_tabs(self):
        expected = self.shop()
        by_tabs = table([HEADER, *ITEMS], delimiter="\t", quoting=csv.QUOTE_ALL)
        self.put({"items.tsv.gz": gzip.compress(by_tabs.encode())})
        self.same(self.shop(SHOP.replace("items.csv", "items.tsv.gz")), expected)

    def test_dates_are_the_same_in_every_time_zone(self):
        """Without a zone they are UTC; parts of a second before 1970 are rounded down, as after."""
        description = SHOP.replace('weight = "pieces"', 'time = "pieces"')
        orders = [
            OF_ORDERS,
            ["7", 'b"2', "1", "1969-12-31T23:59:59.5"],
            ["7", "ä", "1", "1970-01-01T09:00:00.5+09:00"],
        ]
        self.addCleanup(time.tzset)
        for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
            with unittest.mock.patch.dict(os.environ, TZ=zone):
                time.tzset()
                arrays = self.shop(description, orders=orders)
                self.assertEqual(arrays["edges/customer.buys.item/time"].tolist(), [-1, 0])
                days = arrays["nodes/item/features"][:, 2].tolist()
                self.assertEqual(days, [1, -1, -3652.75, 11016])

    def test_a_graph_without_types(self):
        files = {
            "graph.toml": """
            directed = false
            [types.page]
            file = "pages.csv"
            id = "page"
            numbers = ["length"]
            [relations.links]
            file = "links.csv"
            source = { type = "page", column = "from" }
            target = { type = "page", column = "to" }
            time = "when"
            """,
            "pages.csv": "page,length\n10,1\n5,2\n7,3\n",
            "links.csv": "from,to,when\n5,7,1969-12-31T23:59:59\n10,5,-5\n",
        }
        self.put(files)
        said = espalier.from_tables(self.folder / "graph.toml", self.folder / "g.h5")
        self.assertIn("3 vertices, 4 edges, 1 features", str(said))
        arrays = arrays_of(self.folder / "g.h5")
        self.assertEqual(arrays["nodes/ids"].tolist(), [10, 5, 7])
        entries = entries_of_file(self.folder / "g.h5")
        self.assertEqual(entries.keys(), {(1, 2), (2, 1), (0, 1), (1, 0)})
        self.assertEqual(
            dict(zip(arrays["graph/indices"].tolist()[1:3], arrays["edges/time"].tolist()[1:3])),
            {0: -5, 2: -1},
        )

    def test_numbers_as_classes_keep_their_order(self):
        arrays = self.shop(items=self.items(kind=["10", "9", "", "-2"], part=[""] * 4))
        self.assertEqual(texts(arrays["labels/item/names"]), ["-2", "9", "10"])
        self.assertEqual(arrays["nodes/item/labels"].tolist(), [2, 1, -1, 0])

    def test_several_labels(self):
        said = SHOP.replace('label = "kind"', 'labels = ["price", "weight"]')
        said = said.replace('numbers = ["price", "weight"]', "")
        cells = {"price": ["1", "0", "", ""], "weight": ["0", "", "1", ""], "part": ["train"] * 4}
        arrays = self.shop(said, items=self.items(**cells))
        labels = arrays["nodes/item/labels"].tolist()
        self.assertEqual(labels, [[1, 0], [0, 255], [255, 1], [255, 255]])
        self.assertEqual(arrays["split/item/train"].tolist(), [0, 1, 2])

    def test_ids_that_no_table_has_may_be_skipped(self):
        """All that the relation has of those rows goes with them."""
        more = 'time = "when"\ncategories = ["way"]\nunknown = "skip"\n'
        rows = [[*row, str(at), way] for at, (row, way) in enumerate(zip(ORDERS, "xyxz"))]
        nobody = ["1", "nobody", "1", "1", "9", "x"]
        orders = [[*OF_ORDERS, "when", "way"], nobody, *rows]
        with all_warnings() as caught:
            arrays = self.shop(SHOP + more, orders=orders)
        self.assertIn("1 rows name ids that no table has", str(caught[0].message))
        within = "edges/customer.buys.item"
        self.assertEqual(
            arrays[f"{within}/features"].tolist(), [[1, 0, 1, 0], [0, 1, 0, 0], [2.5, 1, 0, 0]]
        )
        self.assertEqual(arrays[f"{within}/time"].tolist(), [1, 2, 0])

    def test_ids_stay_as_they_are_written(self):
        """Whole numbers are such only where all are, written as numbers are."""
        for given in (
            ["1", "01", "2", "3"],
            ["1", "+2", "3", "4"],
            ["1", "x", "2", "3"],
            ["1", "2", "3", str(2**63)],
        ):
            orders = [OF_ORDERS, ["5", given[1], "1", "1"]]
            arrays = self.shop(items=self.items(sku=given), orders=orders)
            self.assertEqual(texts(arrays["types/item/ids"]), given)

    @needs("pyarrow")
    def test_parquet_is_as_csv(self):
        import pyarrow
        import pyarrow.parquet

        expected = self.shop()

        def moment(text):
            said, utc = datetime.datetime.fromisoformat(text), datetime.timezone.utc
            return said.astimezone(utc) if said.tzinfo else said.replace(tzinfo=utc)

        kinds = {
            "price": float, "weight": float, "added": moment, "who": int, "amount": float, "pieces": int
        }  # fmt: skip
        for file, names, rows in (("items", HEADER, ITEMS), ("orders", OF_ORDERS, ORDERS)):
            columns = {
                name: [None if cell == "" else kinds.get(name, str)(cell) for cell in cells]
                for name, cells in zip(names, zip(*rows))
            }
            pyarrow.parquet.write_table(pyarrow.table(columns), self.folder / f"{file}.parquet")
        self.same(self.shop(SHOP.replace(".csv", ".parquet")), expected)
        words = "orders.parquet, row 0, column 'sku': 'ä' is no id of item"
        said = SHOP.replace("orders.csv", "orders.parquet")
        self.refused(words, self.shop, said, items=[HEADER, *ITEMS[:3]])


class Scale(TableTest):
    """scale = "standard"."""

    def scaled(self, columns, said="", **options):
        """Features of a table of these columns, {name: cells}."""
        names = list(columns)
        rows = [["id", *names], *[[k, *row] for k, row in enumerate(zip(*columns.values()))]]
        said = f'{said}\nscale = "standard"\n{described(f"numbers = {names}")}'
        with unittest.mock.patch.object(reading.pieces, "__defaults__", (options.get("rows", 7),)):
            arrays = self.made({"g.toml": said, "v.csv": rows, "e.csv": "s,t\n0,1\n"})
        return arrays["nodes/features"]

    def test_mean_and_deviation(self):
        """Of columns that float32 or a sum of squares would lose, too; a constant column is 0."""
        random = np.random.default_rng(1)
        plain = random.normal(3, 20, 1000)
        columns = {
            "plain": plain,
            "clock": 1.7e9 + random.random(1000),  # seconds of today
            "small": 1e-200 * random.normal(size=1000),
            "large": 3e38 * random.uniform(-1, 1, 1000),
            "steep": 10 ** random.uniform(-30, 30, 1000),
            "constant": [0.1] * 1000,
        }
        cells = {name: [repr(float(value)) for value in of] for name, of in columns.items()}
        found = self.scaled(cells)
        self.assertEqual(found.dtype, np.float32)
        for at, (name, of) in enumerate(columns.items()):
            with self.subTest(name):
                exact = np.asarray(of, np.longdouble)
                away = exact - exact.mean()
                expected = away / (1 if name == "constant" else np.sqrt((away**2).mean()))
                expected = expected.astype(float) * (name != "constant")
                np.testing.assert_allclose(found[:, at], expected, rtol=2e-7, atol=1e-7)
        self.assertEqual(found.tobytes(), self.scaled(cells, rows=64).tobytes())

    def test_what_is_empty_is_filled_first(self):
        cells = ["1", "", "3", "", "5"]
        root = 1.6**0.5
        for missing, expected in (
            ('"mean"', np.array([-2, 0, 0, 0, 2]) / root),
            ("3", np.array([-2, 0, 0, 0, 2]) / root),
            ("-4", np.array([0.8, -4.2, 2.8, -4.2, 4.8]) / (np.var([1, -4, 3, -4, 5]) ** 0.5)),
        ):
            found = self.scaled({"x": cells}, f"missing = {missing}")
            np.testing.assert_allclose(found[:, 0], expected, rtol=1e-6)

    def test_categories_stay_and_edges_have_it_too(self):
        """Dates are scaled; of relations the rows that stay; a section's own word counts there."""
        said = 'scale = "standard"\nmissing = 0\n' + SHOP.replace('missing = "mean"\n', "")
        orders = [OF_ORDERS, *ORDERS[:3], ["7", "nobody", "1e6", "1"]]
        arrays = self.shop(said + 'unknown = "skip"\n', orders=orders)
        items = arrays["nodes/item/features"]
        self.assertEqual(items[:, 3:].tolist(), [[0, 1], [0, 0], [1, 0], [0, 1]])
        np.testing.assert_allclose(items[:, :3].mean(axis=0), 0, atol=1e-6)
        np.testing.assert_allclose(items[:, :3].std(axis=0), 1, rtol=1e-6)
        amounts = np.sort(arrays["edges/customer.buys.item/features"][:, 0])
        expected = (np.array([0, 1, 2.5]) - 3.5 / 3) / np.std([0, 1, 2.5])
        np.testing.assert_allclose(amounts, expected, rtol=1e-6)
        raw = 'scale = "standard"\n' + SHOP.replace('label = "kind"', 'scale = "none"')
        arrays = self.shop(raw)
        self.assertEqual(arrays["nodes/item/features"][0, :3].tolist(), [1.5, 2, 1])


class LeftOut(TableTest):
    """What a description need not say."""

    def test_columns_of_ends(self):
        """Called as the id in the type's table, or as the type where it has no table."""
        expected = self.shop()
        short = SHOP.replace('{ type = "item", column = "sku" }', '"item"')
        self.same(self.shop(short), expected)
        orders = [["customer", *OF_ORDERS[1:]], *ORDERS]
        short = short.replace('{ type = "customer", column = "who" }', '{ type = "customer" }')
        self.same(self.shop(short, orders=orders), expected)

    def test_the_file_has_the_name_of_its_description(self):
        self.shop()
        again = self.made({"again.toml": SHOP.replace('graph = "shop.h5"', "")})
        self.same(again, arrays_of(self.folder / "shop.h5"))


class Splits(TableTest):
    ROWS = [[f"v{k}", str(k % 3) if k % 4 else "", f"{1950 + k}-06-01"] for k in range(100)]

    def split(self, said, seed=0):
        split = f"split = {said}" if said else ""
        said = f'graph = "t.h5"\nseed = {seed}\n' + described(f'label = "y"\n{split}')
        rows = [["id", "y", "born"], *self.ROWS]
        arrays = self.made({"t.toml": said, "v.csv": rows, "e.csv": "s,t\nv1,v2\n"})
        return [arrays[f"split/{name}"].tolist() for name in SPLITS if f"split/{name}" in arrays]

    def test_by_share(self):
        one, again, other = (self.split("{ shares = [0.6, 0.2, 0.1] }", seed) for seed in (1, 1, 2))
        self.assertEqual(one, again)
        self.assertNotEqual(one, other)
        self.assertEqual([len(ids) for ids in one], [45, 15, 8])
        self.assertEqual(len(set(sum(one, []))), sum(map(len, one)))
        self.assertTrue(all(k % 4 for k in sum(one, [])))  # those have a label

    def test_of_those_with_a_label_where_none_is_described(self):
        self.assertEqual(self.split(""), self.split("{ shares = [0.6, 0.2, 0.2] }"))
        self.assertEqual(self.split("{}"), [])

    def test_by_time(self):
        self.assertEqual(
            self.split('{ time = "born", valid = 1969-06-01, test = 1971-06-01T12:00:00Z }'),
            [[k for k in range(19) if k % 4], [19, 21], [k for k in range(22, 100) if k % 4]],
        )

    def test_when_vertices_were(self):
        self.split("{}")
        said = (self.folder / "t.toml").read_text().replace('id = "id"', 'id = "id"\ntime = "born"')
        arrays = self.made({"t.toml": said})
        dates = np.array([born for _, _, born in self.ROWS], "datetime64[s]").astype(np.int64)
        np.testing.assert_array_equal(arrays["nodes/time"], dates)

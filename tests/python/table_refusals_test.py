"""from_tables: what is wrong in a table or its description is one DataError with file, line and
column, and leaves no file.

Laws: each of these in its words; `espalier-tables` says them in one line and exits with 3.
"""

import gzip
import importlib.util
import unittest

from tests.python.tables import TablesTest

import espalier

SHOP = """
graph = "shop.h5"
[types.item]
file = "items.csv"
id = "sku"
numbers = ["price"]
dates = ["added"]
categories = ["colour"]
label = "kind"
split = { column = "part" }
[types.customer]
file = "customers.csv"
id = "who"
[relations.buys]
file = "orders.csv"
source = { type = "customer", column = "who" }
target = { type = "item", column = "sku" }
weight = "pieces"
time = "when"
"""
ITEMS = """\
sku,price,added,colour,kind,part
a,1.5,2000-01-01,red,toys,train
b,2,1969-07-20,blue,books,test
"""
CUSTOMERS = "who\n1\n2\n"
ORDERS = "who,sku,pieces,when\n1,a,2,2020-01-01\n2,b,1,2020-01-02\n"
GOOD = {"shop.toml": SHOP, "items.csv": ITEMS, "customers.csv": CUSTOMERS, "orders.csv": ORDERS}


def with_text(file, old, new):
    assert old in GOOD[file], old
    return {file: GOOD[file].replace(old, new, 1)}


def item(line):
    return {"items.csv": ITEMS + line + "\n"}


def order(line):
    return {"orders.csv": ORDERS + line + "\n"}


WRONG = [
    ("items.csv is empty; its first line names the columns", {"items.csv": ""}),
    ("items.csv is empty", {"items.csv": "\n\n"}),
    (
        "items.csv has no rows below its first line; the type item would be empty",
        {"items.csv": ITEMS.splitlines()[0] + "\n"},
    ),
    (
        "items.csv has no column 'price'; it has 'sku', 'cost'",
        with_text("items.csv", "price", "cost"),
    ),
    ("items.csv has 2 columns 'price'", {"items.csv": ITEMS.replace("colour", "price")}),
    ("items.csv, line 4: has 3 cells, but the first line names 6 columns", item("c,1,2000-01-01")),
    ("items.csv, line 4: has 7 cells", item("c,1,2000-01-01,red,toys,train,more")),
    (
        "items.csv, line 4, column 'sku': is empty; an id is a text or a whole number",
        item(",1,2000-01-01,red,toys,train"),
    ),
    (
        "items.csv, line 4, column 'sku': 'a' is the id of an earlier row, too",
        item("a,1,2000-01-01,red,toys,train"),
    ),
    (
        "items.csv, line 4, column 'sku': has more than 1024 bytes",
        item("x" * 1025 + ",1,2000-01-01,red,toys,train"),
    ),
    (
        "items.csv, line 4, column 'price': 'much' is no number",
        item("c,much,2000-01-01,red,toys,train"),
    ),
    (
        "items.csv, line 4, column 'price': '1,5' is no number",
        item('c,"1,5",2000-01-01,red,toys,train'),
    ),
    (
        "items.csv, line 4, column 'price': 'nan' is no finite number",
        item("c,nan,2000-01-01,red,toys,train"),
    ),
    (
        "items.csv, line 4, column 'price': '-Infinity' is no finite number",
        item("c,-Infinity,2000-01-01,red,toys,train"),
    ),
    (
        "items.csv, line 4, column 'price': '1e39' is too large for float32",
        item("c,1e39,2000-01-01,red,toys,train"),
    ),
    (
        "items.csv, line 4, column 'price': is empty; fill it, or say missing = \"mean\"",
        item("c,,2000-01-01,red,toys,train"),
    ),
    (
        "items.csv, line 4, column 'added': '2001-02-29' is no date; write 2020-01-31",
        item("c,1,2001-02-29,red,toys,train"),
    ),
    (
        "items.csv, line 4, column 'added': '20010203' is no date",
        item("c,1,20010203,red,toys,train"),
    ),
    (
        "items.csv, line 4, column 'added': '-5000-01-01' is no date",
        item("c,1,-5000-01-01,red,toys,train"),
    ),
    (
        "items.csv, line 4, column 'part': 'trial' is no split; write train, valid, test, or "
        "nothing",
        item("c,1,2000-01-01,red,toys,trial"),
    ),
    (
        "items.csv, line 6, column 'price': 'x' is no number",
        item('c,1,2000-01-01,"red\nor so",toys,train\nd,x,2000-01-01,red,toys,train'),
    ),
    ("items.csv, line 4: unexpected end of data", item('c,1,2000-01-01,"red,toys,train')),
    ("items.csv, line 4: ',' expected after '\"'", item('c,1,2000-01-01,"red"dish,toys,train')),
    (
        "items.csv, after line 1: is not UTF-8",
        {"items.csv": ITEMS.replace("red", "r\xe9d").encode("latin-1")},
    ),
    (
        "customers.csv, line 3, column 'who': '1' is the id of an earlier row, too",
        {"customers.csv": "who\r\n1\r1\n"},
    ),
    ("customers.csv, line 3, column 'who': holds a null byte", {"customers.csv": "who\n1\n2\0\n"}),
    (
        "orders.csv, line 4, column 'who': '3' is no id of customer, whose table is",
        order("3,a,1,2020-01-01"),
    ),
    ("orders.csv, line 4, column 'who': '-1' is no id of customer", order("-1,a,1,2020-01-01")),
    ("orders.csv, line 4, column 'who': '01' is no id of customer", order("01,a,1,2020-01-01")),
    (
        "orders.csv, line 4, column 'who': '36893488147419103233' is no id of customer",
        order(f"{2**65 + 1},a,1,2020-01-01"),
    ),
    ("orders.csv, line 4, column 'who': '1.0' is no id of customer", order("1.0,a,1,2020-01-01")),
    ("orders.csv, line 4, column 'sku': is empty", order("1,,1,2020-01-01")),
    (
        "orders.csv, line 4, column 'pieces': '-1' is negative; a weight is not",
        order("1,a,-1,2020-01-01"),
    ),
    (
        "orders.csv, line 4, column 'pieces': is empty; give each edge a weight",
        order("1,a,,2020-01-01"),
    ),
    ("orders.csv, line 4, column 'when': is empty; give each a time", order("1,a,1,")),
    ("orders.csv, line 4, column 'when': 'soon' is no time", order("1,a,1,soon")),
    (
        "orders.csv, line 4, column 'when': '36893488147419103233' is no time",
        order(f"1,a,1,{2**65 + 1}"),
    ),
    (
        "edge 2 (0 to 0) is listed before, as edge 0",
        order("1,a,1,2020-01-01") | {"shop.toml": 'duplicates = "refuse"\n' + SHOP},
    ),
    ("orders.csv is not there", {"orders.csv": None}),
    ("items.csv is one of the files", with_text("shop.toml", "shop.h5", "items.csv")),
    (
        "items.csv.gz, after line 1: Not a gzipped file",
        with_text("shop.toml", "items.csv", "items.csv.gz") | {"items.csv.gz": ITEMS},
    ),
    (
        "items.csv.gz, after line 3: Compressed file ended before",
        with_text("shop.toml", "items.csv", "items.csv.gz")
        | {"items.csv.gz": gzip.compress(ITEMS.encode())[:-9]},
    ),
    ("shop.toml is not there", {"shop.toml": None}),
    ("shop.toml is no TOML: ", {"shop.toml": "types = "}),
    ("shop.toml: wants a [types.NAME] and a [relations.NAME]", {"shop.toml": "seed = 1"}),
    ("shop.toml: there is no key 'sead'; did you mean 'seed'?", {"shop.toml": "sead = 1\n" + SHOP}),
    ("shop.toml: seed is '1'; give int", {"shop.toml": 'seed = "1"\n' + SHOP}),
    ("shop.toml: directed is 1; give bool", {"shop.toml": "directed = 1\n" + SHOP}),
    ("shop.toml: duplicates is 'most'", {"shop.toml": 'duplicates = "most"\n' + SHOP}),
    ("shop.toml: duplicate_features is 'max'", {"shop.toml": 'duplicate_features = "max"\n' + SHOP}),
    (
        "[types.item]: there is no key 'nombers'; did you mean 'numbers'?",
        with_text("shop.toml", "numbers", "nombers"),
    ),
    (
        "[types.item]: numbers is 'price'; give a list of columns",
        with_text("shop.toml", '["price"]', '"price"'),
    ),
    ("[types.item]: missing is 'zero'", with_text("shop.toml", "label", 'missing = "zero"\nlabel')),
    ("shop.toml: missing is 'zero'", {"shop.toml": 'missing = "zero"\n' + SHOP}),
    ("shop.toml: scale is 'robust'", {"shop.toml": 'scale = "robust"\n' + SHOP}),
    (
        "[types.item]: scale is 'unit'; say one of 'none', 'standard'",
        with_text("shop.toml", "label", 'scale = "unit"\nlabel'),
    ),
    (
        "items.csv: all of 'price' is empty; it has no mean",
        with_text("shop.toml", "label", 'scale = "standard"\nmissing = "mean"\nlabel')
        | {"items.csv": ITEMS.replace("1.5", "").replace("b,2", "b,")},
    ),
    ("[types.item]: says columns, but no file", with_text("shop.toml", 'file = "items.csv"\n', "")),
    ("[types.item]: say which column is the id", with_text("shop.toml", 'id = "sku"\n', "")),
    (
        "[types.item]: has label and labels",
        with_text("shop.toml", "label", 'labels = ["price"]\nlabel'),
    ),
    (
        "[types.item]: split is {'part': 'x'}; say column, shares, or time",
        with_text("shop.toml", '{ column = "part" }', '{ part = "x" }'),
    ),
    (
        "[types.item]: split.shares is [0.5, 0.6, 0.2]; give three",
        with_text("shop.toml", '{ column = "part" }', "{ shares = [0.5, 0.6, 0.2] }"),
    ),
    (
        "[types.item]: split by time wants test = a date",
        with_text("shop.toml", '{ column = "part" }', '{ time = "added", valid = 2000-01-01 }'),
    ),
    (
        "split.valid is later than split.test",
        with_text(
            "shop.toml",
            '{ column = "part" }',
            '{ time = "added", valid = 2001-01-01, test = 2000-01-01 }',
        ),
    ),
    (
        "[relations.buys]: say source = { type = .., column = .. }",
        with_text("shop.toml", "source", "# source"),
    ),
    (
        "[relations.buys]: source.type is 'custom'; [types] has ['customer', 'item']",
        with_text("shop.toml", 'type = "customer"', 'type = "custom"'),
    ),
    (
        "[relations.buys]: target.type is 'itm'; [types] has ['customer', 'item']",
        with_text("shop.toml", '{ type = "item", column = "sku" }', '"itm"'),
    ),
    (
        "[relations.buys]: say target = { type = .., column = .. }",
        with_text("shop.toml", '{ type = "item", column', '{ tipe = "item", column'),
    ),
    (
        "orders.csv has no column 'name'; it has 'who'",
        with_text("customers.csv", "who", "name")
        | {
            "shop.toml": SHOP.replace('{ type = "customer", column = "who" }', '"customer"').replace(
                'id = "who"', 'id = "name"'
            )
        },
    ),
    (
        "[relations.buys]: say which table it is",
        with_text("shop.toml", 'file = "orders.csv"\n', ""),
    ),
    (
        '[relations.buys]: unknown is not "refuse" or "skip"',
        {"shop.toml": SHOP + 'unknown = "drop"\n'},
    ),
    (
        "the relation 'buys.it': names hold letters",
        with_text("shop.toml", "relations.buys", 'relations."buys.it"'),
    ),
    (
        "categories 'colour' has more than 1000 values; make it a type of its own",
        {
            "items.csv": ITEMS
            + "".join(f"c{k},1,2000-01-01,colour{k},toys,train\n" for k in range(1000))
        },
    ),
    (
        "items.parquet is no Parquet"
        if importlib.util.find_spec("pyarrow")
        else "Parquet wants pyarrow",
        with_text("shop.toml", "items.csv", "items.parquet") | {"items.parquet": ITEMS},
    ),
]


class ShopTest(TablesTest):
    def make(self, files):
        for path in self.folder.iterdir():
            path.unlink()
        self.put(GOOD | files)
        return espalier.from_tables(self.folder / "shop.toml")


class Refusals(ShopTest):
    def test_each_in_its_words(self):
        self.assertEqual(self.make({}).edges, 2)  # so that no refusal is of something else
        for words, files in WRONG:
            self.refused(words, self.make, files)
            self.assertEqual([path.name for path in self.folder.glob("shop.h5*")], [])

    def test_the_command(self):
        shop = self.folder / "shop.toml"
        self.make(order("1,a,1,2020-01-01"))
        code, out, errors = self.run_tables(shop)
        self.assertEqual((code, out), (3, ""))
        self.assertRegex(
            errors, r"^espalier-tables: error: \S+shop.h5 exists; say --overwrite[^\n]*\n$"
        )
        code, out, errors = self.run_tables(shop, "--overwrite")
        self.assertEqual((code, out.count("\n")), (0, 1))
        self.assertIn(
            "shop.h5: 4 vertices, 2 edges, 4 features of item, 2 classes of item; 1 to train; "
            "0 to valid; 1 to test",
            out,
        )
        self.assertIn("warning: ", errors)
        self.assertIn("1 of 3 edges are listed before", errors)
        self.assertEqual(self.run_tables(shop, "-o", self.folder / "other.h5")[0], 0)
        self.assertTrue((self.folder / "other.h5").exists())


if __name__ == "__main__":
    unittest.main()

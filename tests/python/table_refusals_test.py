"""from_tables: what is wrong in a table or its description is one DataError with file, line and
column, and leaves no file.

Laws: each of these in its words; `espalier-tables` says them in one line and exits with 3.
"""

import gzip
import importlib.util

from tests.python.tables import TablesTest, text_of

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


# A row that is put below those of its table.
NEW = {
    "items.csv": {"sku": "c", "price": "1", "added": "2000-01-01", "colour": "red", "kind": "toys", "part": "train"},
    "orders.csv": {"who": "1", "sku": "a", "pieces": "1", "when": "2020-01-01"},
}


def with_text(file, old, new):
    assert old in GOOD[file], old
    return {file: GOOD[file].replace(old, new, 1)}


def said(old, new):
    return with_text("shop.toml", old, new)


def first(line):
    return {"shop.toml": f"{line}\n{SHOP}"}


def item(line):
    return {"items.csv": ITEMS + line + "\n"}


# Cells of a new row: what is said of them.
CELLS = [
    ("items.csv", "sku", "", "is empty; an id is a text or a whole number"),
    ("items.csv", "sku", "a", "'a' is the id of an earlier row, too"),
    ("items.csv", "sku", "x" * 1025, "has more than 1024 bytes"),
    ("items.csv", "price", "much", "'much' is no number"),
    ("items.csv", "price", "1,5", "'1,5' is no number"),
    ("items.csv", "price", "nan", "'nan' is no finite number"),
    ("items.csv", "price", "-Infinity", "'-Infinity' is no finite number"),
    ("items.csv", "price", "1e39", "'1e39' is too large for float32"),
    ("items.csv", "price", "", 'is empty; fill it, or say missing = "mean"'),
    ("items.csv", "added", "2001-02-29", "'2001-02-29' is no date; write 2020-01-31"),
    ("items.csv", "added", "20010203", "'20010203' is no date"),
    ("items.csv", "added", "-5000-01-01", "'-5000-01-01' is no date"),
    ("items.csv", "part", "trial", "'trial' is no split; write train, valid, test, or nothing"),
    ("orders.csv", "who", "3", "'3' is no id of customer, whose table is"),
    ("orders.csv", "who", "-1", "'-1' is no id of customer"),
    ("orders.csv", "who", "01", "'01' is no id of customer"),
    ("orders.csv", "who", f"{2**65 + 1}", "'36893488147419103233' is no id of customer"),
    ("orders.csv", "who", "1.0", "'1.0' is no id of customer"),
    ("orders.csv", "sku", "", "is empty"),
    ("orders.csv", "pieces", "-1", "'-1' is negative; a weight is not"),
    ("orders.csv", "pieces", "", "is empty; give each edge a weight"),
    ("orders.csv", "when", "", "is empty; give each a time"),
    ("orders.csv", "when", "soon", "'soon' is no time"),
    ("orders.csv", "when", f"{2**65 + 1}", "'36893488147419103233' is no time"),
]


def with_cell(file, column, cell):
    return {file: GOOD[file] + text_of([(NEW[file] | {column: cell}).values()])}


PARTS = '{ column = "part" }'
PARQUET = "items.parquet is no Parquet" if importlib.util.find_spec("pyarrow") else "Parquet wants pyarrow"
BY_TIME = '{ time = "added", valid = 2001-01-01, test = 2000-01-01 }'
NO_MEAN = ITEMS.replace("1.5", "").replace("b,2", "b,")
# A relation whose column of customers is named as their id, which it has not.
BY_NAME = SHOP.replace('{ type = "customer", column = "who" }', '"customer"').replace('id = "who"', 'id = "name"')
COLOURS = "".join(f"c{k},1,2000-01-01,colour{k},toys,train\n" for k in range(1000))
WRONG = [
    *((f"{file}, line 4, column '{column}': {words}", with_cell(file, column, cell)) for file, column, cell, words in CELLS),
    ("items.csv is empty; its first line names the columns", {"items.csv": ""}),
    ("items.csv is empty", {"items.csv": "\n\n"}),
    ("items.csv has no rows below its first line; the type item would be empty", {"items.csv": ITEMS.splitlines()[0] + "\n"}),
    ("items.csv has no column 'price'; it has 'sku', 'cost'", with_text("items.csv", "price", "cost")),
    ("items.csv has 2 columns 'price'", {"items.csv": ITEMS.replace("colour", "price")}),
    ("items.csv, line 4: has 3 cells, but the first line names 6 columns", item("c,1,2000-01-01")),
    ("items.csv, line 4: has 7 cells", item("c,1,2000-01-01,red,toys,train,more")),
    (
        "items.csv, line 6, column 'price': 'x' is no number",
        item('c,1,2000-01-01,"red\nor so",toys,train\nd,x,2000-01-01,red,toys,train'),
    ),
    ("items.csv, line 4: unexpected end of data", item('c,1,2000-01-01,"red,toys,train')),
    ("items.csv, line 4: ',' expected after '\"'", item('c,1,2000-01-01,"red"dish,toys,train')),
    ("items.csv, after line 1: is not UTF-8", {"items.csv": ITEMS.replace("red", "r\xe9d").encode("latin-1")}),
    ("customers.csv, line 3, column 'who': '1' is the id of an earlier row, too", {"customers.csv": "who\r\n1\r1\n"}),
    ("customers.csv, line 3, column 'who': holds a null byte", {"customers.csv": "who\n1\n2\0\n"}),
    (
        "edge 2 (0 to 0) is listed before, as edge 0",
        with_cell("orders.csv", "who", "1") | first('duplicates = "refuse"'),
    ),
    ("orders.csv is not there", {"orders.csv": None}),
    ("items.csv is one of the files", said("shop.h5", "items.csv")),
    ("items.csv.gz, after line 1: Not a gzipped file", said("items.csv", "items.csv.gz") | {"items.csv.gz": ITEMS}),
    (
        "items.csv.gz, after line 3: Compressed file ended before",
        said("items.csv", "items.csv.gz") | {"items.csv.gz": gzip.compress(ITEMS.encode())[:-9]},
    ),
    ("shop.toml is not there", {"shop.toml": None}),
    ("shop.toml is no TOML: ", {"shop.toml": "types = "}),
    ("shop.toml: wants a [types.NAME] and a [relations.NAME]", {"shop.toml": "seed = 1"}),
    ("shop.toml: there is no key 'sead'; did you mean 'seed'?", first("sead = 1")),
    ("shop.toml: seed is '1'; give int", first('seed = "1"')),
    ("shop.toml: directed is 1; give bool", first("directed = 1")),
    ("shop.toml: duplicates is 'most'", first('duplicates = "most"')),
    ("shop.toml: duplicate_features is 'max'", first('duplicate_features = "max"')),
    ("[types.item]: there is no key 'nombers'; did you mean 'numbers'?", said("numbers", "nombers")),
    ("[types.item]: numbers is 'price'; give a list of columns", said('["price"]', '"price"')),
    ("[types.item]: missing is 'zero'", said("label", 'missing = "zero"\nlabel')),
    ("shop.toml: missing is 'zero'", first('missing = "zero"')),
    ("shop.toml: scale is 'robust'", first('scale = "robust"')),
    ("[types.item]: scale is 'unit'; say one of 'none', 'standard'", said("label", 'scale = "unit"\nlabel')),
    (
        "items.csv: all of 'price' is empty; it has no mean",
        said("label", 'scale = "standard"\nmissing = "mean"\nlabel') | {"items.csv": NO_MEAN},
    ),
    ("[types.item]: says columns, but no file", said('file = "items.csv"\n', "")),
    ("[types.item]: say which column is the id", said('id = "sku"\n', "")),
    ("[types.item]: has label and labels", said("label", 'labels = ["price"]\nlabel')),
    ("[types.item]: split is {'part': 'x'}; say column, shares, or time", said(PARTS, '{ part = "x" }')),
    ("[types.item]: split.shares is [0.5, 0.6, 0.2]; give three", said(PARTS, "{ shares = [0.5, 0.6, 0.2] }")),
    ("[types.item]: split by time wants test = a date", said(PARTS, '{ time = "added", valid = 2000-01-01 }')),
    ("split.valid is later than split.test", said(PARTS, BY_TIME)),
    ("[relations.buys]: say source = { type = .., column = .. }", said("source", "# source")),
    (
        "[relations.buys]: source.type is 'custom'; [types] has ['customer', 'item']",
        said('type = "customer"', 'type = "custom"'),
    ),
    (
        "[relations.buys]: target.type is 'itm'; [types] has ['customer', 'item']",
        said('{ type = "item", column = "sku" }', '"itm"'),
    ),
    (
        "[relations.buys]: say target = { type = .., column = .. }",
        said('{ type = "item", column', '{ tipe = "item", column'),
    ),
    (
        "orders.csv has no column 'name'; it has 'who'",
        with_text("customers.csv", "who", "name") | {"shop.toml": BY_NAME},
    ),
    ("[relations.buys]: say which table it is", said('file = "orders.csv"\n', "")),
    ('[relations.buys]: unknown is not "refuse" or "skip"', {"shop.toml": SHOP + 'unknown = "drop"\n'}),
    ("the relation 'buys.it': names hold letters", said("relations.buys", 'relations."buys.it"')),
    (
        "categories 'colour' has more than 1000 values; make it a type of its own",
        {"items.csv": ITEMS + COLOURS},
    ),
    (PARQUET, said("items.csv", "items.parquet") | {"items.parquet": ITEMS}),
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
        self.make(with_cell("orders.csv", "who", "1"))
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

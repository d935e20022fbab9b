"""Columns have names, and --like makes tonight's as the training's were.

Laws: the names say what each column is, also where columns are called strangely; with --like its own
graph the same tables give the same file, to the last byte; a row that stayed as it was has the
features that it had, whatever rows, values and empty cells came beside it, and in whatever order the
description lists columns; a category that the training did not know is zeros, and is counted; other
columns are refused with both lists. The nightly story: after a night in which a country was renamed
and another came, infer refuses the graph and names the column; with --like it gives customers that
did not change, and whose neighbours did not, the logits that they had, bit for bit.
"""

import math
import unittest

import h5py
import numpy as np

from tests.app.program import FolderTest, ProgramTest, arrays_of
from tests.python import SEED, DataTest, all_warnings
from tests.python.tables import TablesTest, described

import espalier
from espalier.tables.features import measured, name_of, scaled

STRANGE = ["a", "a=b", "a=b=c", "a\\", "a\\=b", "ä", " ", "=", "\\", "n" * 900, "a,b", "two\nlines"]


class LikeTest(TablesTest):
    def make(self, name, like=None):
        """(arrays of the graph, what was warned of)."""
        with all_warnings() as caught:
            espalier.from_tables(
                self.folder / "g.toml", self.folder / name, like=like and self.folder / like,
                overwrite=True,
            )  # fmt: skip
        said = [str(of.message) for of in caught if "training" in str(of.message)]
        return arrays_of(self.folder / name), said

    def refused(self, words, *arguments):
        """By the command, in one line, and no file."""
        output = self.folder / "tonight.h5"
        output.unlink(missing_ok=True)
        code, _, said = self.run_tables(self.folder / "g.toml", "-o", output, *arguments)
        self.assertEqual(code, 3, said)
        last = said.splitlines()[-1]
        for word in words:
            self.assertIn(word, last)
        self.assertFalse(output.exists())


def random_tables(random, count):
    """Description of the features, and the rows of a table: {column: cells}."""
    names = [str(name) for name in random.permutation(STRANGE)[: random.integers(2, 9)]]
    kinds = random.choice(["numbers", "dates", "categories"], len(names))
    kinds[0] = random.choice(["numbers", "dates"])
    of = {
        kind: [name for name, its in zip(names, kinds) if its == kind]
        for kind in ("numbers", "dates", "categories")
    }
    missing = random.choice(['"mean"', "2.5", '"refuse"'])
    shares = {"numbers": 0.2, "dates": 0.2, "categories": random.choice([0.2, 1])}
    cells = {}
    for name, kind in zip(names, kinds):
        column = {
            "numbers": [repr(float(of)) for of in random.choice([1, 1e7]) * random.normal(size=count)],
            "dates": [str(np.datetime64("2020-01-01") + day) for day in random.integers(0, 900, count)],
            "categories": [f"{random.choice(['', 'v=', '='])}{of}" for of in random.integers(1, 6, count)],
        }[kind]
        if kind == "numbers" and random.random() < 0.2:
            column = ["7.1"] * count
        empty = random.random(count) < shares[kind] * (missing != '"refuse"' or kind == "categories")
        empty[0] = empty[0] and kind == "categories"
        cells[name] = ["" if none else cell for none, cell in zip(empty, column)]
    scale = random.choice(['"none"', '"standard"'])
    return f"missing = {missing}\nscale = {scale}\n", of, cells


class Same(LikeTest):
    def put(self, random, said, of, cells, edges, of_edges, typed):
        """Columns in a random order."""
        lists = "".join(
            f"{kind} = [{', '.join(quoted(name) for name in random.permutation(names))}]\n"
            for kind, names in of.items()
        )
        more = '[types.u]\n[relations.f]\nfile = "f.csv"\nsource = { type = "u", column = "u" }\ntarget = "v"\n'
        (self.folder / "g.toml").write_text(
            f'directed = {random.choice(["true", "false"])}\n{described(said + lists)}'
            'numbers = ["amount"]\ncategories = ["kind"]\nmissing = "mean"\n' + more * typed,
            encoding="utf-8",
        )
        count = len(next(iter(cells.values())))
        self.assertEqual(len(edges), len(of_edges))
        super().put({
            "v.csv": [["id", *cells], *([k, *row] for k, row in enumerate(zip(*cells.values())))],
            "e.csv": [["s", "t", "amount", "kind"], *([*ends, *row] for ends, row in zip(edges, of_edges))],
            "f.csv": [["u", "id"], *[[k % 3, k] for k in range(0, count, 5)]],
        })  # fmt: skip

    def test_its_own_graph_gives_the_same_bytes(self):
        for seed in range(SEED, SEED + 40):
            with self.subTest(seed=seed):
                random = np.random.default_rng(seed)
                said, of, cells = random_tables(random, 20)
                edges = random.integers(0, 20, (30, 2)).tolist()
                of_edges = [[random.choice(["", "1.5", "3"]), random.choice(["x", "y", ""])] for _ in edges]
                of_edges[0] = ["2", "x"]
                self.put(random, said, of, cells, edges, of_edges, seed % 2)
                first, _ = self.make("first.h5")
                again, warned = self.make("again.h5", like="first.h5")
                self.assertEqual(warned, [])
                self.assertEqual(list(first), list(again))
                for name, array in first.items():
                    self.assertEqual((array.dtype, array.tobytes()), (again[name].dtype, again[name].tobytes()), name)
                group = "nodes/v/" if seed % 2 else "nodes/"
                if f"{group}feature_names" in first:
                    self.check_names(first, group, of, cells)

    def check_names(self, arrays, group, of, cells):
        """A column of a category is 1 where the cell is that, found by splitting its name."""
        names = [name.decode() for name in arrays[f"{group}feature_names"]]
        features = arrays[f"{group}features"]
        self.assertEqual(len(set(names)), features.shape[1])
        expected = {name_of(column): None for kind in ("numbers", "dates") for column in of[kind]}
        for column in of["categories"]:
            for value in set(cells[column]) - {""}:
                short = column.replace("\\", "\\\\").replace("=", "\\=")
                if len(short) < 500:
                    self.assertIn(f"{short}={value}", names)
                expected[name_of(column, value)] = [cell == value for cell in cells[column]]
        self.assertEqual(set(names), set(expected))
        for at, name in enumerate(names):
            if expected[name] is not None:
                self.assertEqual(features[:, at].tolist(), expected[name])

    def test_a_row_that_stayed_has_its_features(self):
        for seed in range(SEED, SEED + 40):
            with self.subTest(seed=seed):
                random = np.random.default_rng(seed)
                said, of, cells = random_tables(random, 20)
                edges = [[k, (k * 7) % 20] for k in range(20)]
                of_edges = [[repr(k * 1.7), "xyz"[k % 3]] for k in range(20)]
                of_edges[3] = ["", ""]
                self.put(random, said, of, cells, edges, of_edges, seed % 2)
                before, _ = self.make("before.h5")
                tonight, unknown = {name: list(column) for name, column in cells.items()}, {}
                for name, column in tonight.items():
                    kind = next(kind for kind, names in of.items() if name in names)
                    known = sorted(set(column) - {""})
                    column += {"numbers": ["1e9", "-5"], "dates": ["1950-01-01"] * 2, "categories": ["new", known[0] if known else ""]}[kind]
                    if kind != "categories" and '"refuse"' not in said:
                        column[-1] = ""
                    if kind == "categories" and known:
                        unknown[name] = 1
                    elif kind == "categories":
                        column[-2] = ""  # where nothing is known, nothing may come
                self.put(random, said, of, tonight, [*edges, [20, 21]], [*of_edges, ["1e6", "w"]], seed % 2)
                found, warned = self.make("tonight.h5", like="before.h5")
                group = "v/" if seed % 2 else ""
                if f"nodes/{group}features" not in before:
                    continue
                for name in ("feature_names", "feature_scales"):
                    if f"nodes/{group}{name}" in before:
                        self.assertEqual(found[f"nodes/{group}{name}"].tobytes(), before[f"nodes/{group}{name}"].tobytes())
                then, now = (arrays[f"nodes/{group}features"] for arrays in (before, found))
                self.assertEqual(now[:20].tobytes(), then.tobytes())
                self.assertEqual(len(warned), len(unknown) + 1, warned)
                for name in unknown:
                    self.assertEqual(sum(f": 1 rows have a {name!r} that" in words and "('new')" in words for words in warned), 1, warned)
                    of_column = [at for at, of in enumerate(found[f"nodes/{group}feature_names"]) if of.decode().startswith(name_of(name) + "=")]
                    self.assertEqual(now[20, of_column].tolist(), [0] * len(of_column))


def at_once(values):
    """Less their mean, divided by their deviation, in one go: what versions without names did."""
    away = values - math.fsum(values.tolist()) / len(values)
    away -= math.fsum(away.tolist()) / len(values)
    away /= np.abs(away).max()
    return away / math.sqrt(math.fsum((away * away).tolist()) / len(values))


class Scaled(unittest.TestCase):
    def test_in_two_steps_as_at_once(self):
        random = np.random.default_rng(SEED)
        for values in (
            random.normal(3, 20, 1000), 1.7e9 + random.random(1000), 1e-200 * random.normal(size=1000),
            3e38 * random.uniform(-1, 1, 1000), 10 ** random.uniform(-30, 30, 1000), np.array([0.1, 0.1, np.nextafter(0.1, 1)]),
        ):  # fmt: skip
            found = scaled(values, np.array(measured(values)))
            self.assertEqual(found.tobytes(), at_once(values).tobytes())


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


TOML = described('numbers = ["age"]\ndates = ["born"]\ncategories = ["country"]\nmissing = "mean"\n')
ROWS = "id,age,born,country,land\n0,1,2000-01-01,FR,x\n1,,2001-01-01,DE,y\n2,5,2002-01-01,,x\n"


class Refused(LikeTest):
    def setUp(self):
        super().setUp()
        self.put()
        self.make("before.h5")

    def put(self, toml=TOML, rows=ROWS):
        super().put({"g.toml": toml, "v.csv": rows, "e.csv": "s,t\n0,1\n1,2\n"})

    def like(self):
        return ("--like", self.folder / "before.h5")

    def test_what_the_file_says(self):
        arrays = arrays_of(self.folder / "before.h5")
        self.assertEqual(arrays["nodes/feature_names"].tolist(), [b"age", b"born", b"country=DE", b"country=FR"])
        self.assertEqual(
            arrays["nodes/feature_scales"][:2].tolist(), [[3, 0, 0, 1, 1], [(10957 + 11323 + 11688) / 3, 0, 0, 1, 1]]
        )
        self.assertTrue(np.isnan(arrays["nodes/feature_scales"][2:, 0]).all())
        self.put(TOML.replace('missing = "mean"\n', ""), ROWS.replace(",,2001", ",3,2001"))
        self.assertNotIn("nodes/feature_scales", self.make("plain.h5")[0])

    def test_other_columns(self):
        for old, new, *words in (
            ('["age"]', '["age", "land"]', "only here: land", "there: age, born, country="),
            ('["age"]', "[]", "only there: age", "here: born, country="),
            ('["country"]', '["land"]', "only there: country=; only here: land="),
            ('["country"]', '["country", "land"]', "only here: land="),
            ('numbers = ["age"]\ndates = ["born"]\ncategories = ["country"]\n', "", "here: none"),
        ):
            with self.subTest(words=words):
                toml = TOML.replace(old, new)
                self.assertNotEqual(toml, TOML)
                rows = ROWS.replace(",x", ",1").replace(",y", ",2") if "land" in new and "categ" not in old else ROWS
                self.put(toml, rows)
                self.refused(["v.csv: its columns are not those of the training", *words], *self.like())

    def test_other_types(self):
        self.put(TOML + '[types.w]\n[relations.f]\nfile = "e.csv"\nsource = { type = "w", column = "s" }\ntarget = { type = "v", column = "t" }\n')
        self.refused(["v.csv: its columns are not those of the training", "there: none"], *self.like())

    def test_a_column_that_was_constant_stays_nothing(self):
        toml = TOML.replace('"mean"', '"mean"\nscale = "standard"')
        self.put(toml, ROWS.replace("2,5,", "2,1,"))
        self.make("before.h5")
        self.put(toml)
        arrays, _ = self.make("tonight.h5", like="before.h5")
        self.assertEqual(arrays["nodes/features"][:, 0].tobytes(), np.zeros(3, np.float32).tobytes())
        self.assertEqual(arrays["nodes/feature_scales"][0].tolist(), [1, 1, 0, 1, 0])

    def test_an_empty_cell_where_none_was_to_be(self):
        self.put(TOML.replace('missing = "mean"\n', ""), ROWS.replace(",,2001", ",3,2001"))
        self.make("before.h5")
        self.put()
        self.refused(["v.csv, line 3, column 'age'", "no cell of the training was to be"], *self.like())

    def test_files_that_say_nothing(self):
        self.refused(["not there"], "--like", self.folder / "nothing.h5")
        self.refused(["g.toml is no file of HDF5"], "--like", self.folder / "g.toml", "-o", self.folder / "tonight.h5")
        damaged = self.folder / "weights.h5"
        damaged.write_bytes(b"espalier-weights 1\nbytes 600\ncrc32 0\n".ljust(600, b"\0"))
        self.refused(["weights.h5 is damaged"], "--like", damaged)
        with h5py.File(self.folder / "old.h5", "w") as file:
            file["nodes/features"] = np.zeros((3, 2))
        self.refused(["old.h5 has no names of columns"], "--like", self.folder / "old.h5")

    def test_the_weights_are_never_the_output(self):
        before = (self.folder / "before.h5").read_bytes()
        self.refused(["is one of the files that are read"], *self.like(), "-o", self.folder / "before.h5", "--overwrite")
        self.assertEqual((self.folder / "before.h5").read_bytes(), before)

    def test_a_column_that_is_named_twice(self):
        self.put(TOML.replace('["age"]', '["age", "age"]'))
        self.refused(["its column 'age' is described twice"])


class OfArrays(DataTest, FolderTest):
    """write_graph(feature_names=, edge_feature_names=)."""

    def test_plain_and_typed(self):
        path = self.folder / "g.h5"
        espalier.write_graph(path, [[0, 1], [1, 0]], np.eye(2), feature_names=["x", "y"], edge_features=[[1], [2]], edge_feature_names=["z"])
        arrays = arrays_of(path)
        self.assertEqual(arrays["nodes/feature_names"].tolist(), [b"x", b"y"])
        self.assertEqual(arrays["edges/feature_names"].tolist(), [b"z"])
        key = ("a", "to", "b")
        espalier.write_graph(
            path, {key: [[0, 1], [1, 0]]}, {"a": np.eye(2)}, feature_names={"a": ["x", "ü"]}, edge_features={key: [[1], [2]]},
            edge_feature_names={key: ["z"]}, directed=False, overwrite=True,
        )  # fmt: skip
        arrays = arrays_of(path)
        self.assertEqual(arrays["nodes/a/feature_names"].tolist(), [b"x", "ü".encode()])
        for name in ("a.to.b", "b.rev_to.a"):
            self.assertEqual(arrays[f"edges/{name}/feature_names"].tolist(), [b"z"])

    def test_refusals(self):
        for words, wrong in (
            ("feature_names has 1 names, but there are 2 columns", {"feature_names": ["x"]}),
            ("feature_names has 'x' twice", {"feature_names": ["x", "x"]}),
            ("feature_names[1] is empty", {"feature_names": ["x", ""]}),
            ("feature_names[0] has 1025 bytes", {"feature_names": ["x" * 1025, "y"]}),
            ("feature_names[0] is 1; give texts", {"feature_names": [1, 2]}),
            ("feature_names names columns, but there is no x", {"x": None, "feature_names": ["x"], "num_nodes": 2}),
            ("edge_feature_names names columns, but there is no edge_features", {"edge_feature_names": ["x"]}),
        ):
            self.refused(words, espalier.write_graph, self.folder / "g.h5", [[0], [1]], **{"x": np.eye(2)} | wrong)


SHOP = """
directed = false
scale = "standard"
[types.customer]
file = "customers.csv"
id = "who"
numbers = ["age"]
dates = ["joined"]
categories = ["country"]
missing = "mean"
label = "segment"
[types.item]
file = "items.csv"
id = "sku"
numbers = ["price"]
categories = ["colour"]
[relations.buys]
file = "orders.csv"
source = { type = "customer", column = "who" }
target = { type = "item", column = "sku" }
"""
CUSTOMER = ["who", "age", "joined", "country", "segment"]
COUNTRIES = ["FR", "DE", "IT"]


class Night(TablesTest, ProgramTest):
    """Customers of three countries; at night DE is called Germany, one moves to PL, others come,
    some buy."""

    JOB = (
        'model.kind="rgcn"', "model.layers=2", "model.hidden=16", "sampler.fanout=[10,10]", "sampler.batch_size=40",
        "train.epochs=6", "train.learning_rate=0.03", "run.threads=1", 'graph.target="customer"',
    )  # fmt: skip

    def setUp(self):
        super().setUp()
        random = np.random.default_rng(SEED)
        self.customers = [
            [f"c{k}", "" if k % 9 == 0 else str(random.integers(18, 90)), f"20{k % 20:02}-03-0{1 + k % 9}", COUNTRIES[k % 3 if k % 11 else 0],
             "ab"[int(random.random() < (0.85 if k % 3 else 0.2))]]
            for k in range(400)
        ]  # fmt: skip
        self.items = [[f"i{k}", repr(float(random.lognormal())), "red blue green".split()[k % 3]] for k in range(300)]
        self.orders = [[f"c{random.integers(400)}", f"i{random.integers(300)}"] for _ in range(500)]

    def tables(self, name, *arguments):
        """Runs the command; what it says."""
        items, orders = [["sku", "price", "colour"], *self.items], [["who", "sku"], *self.orders]
        self.put({"shop.toml": SHOP, "customers.csv": [CUSTOMER, *self.customers], "items.csv": items, "orders.csv": orders})
        code, _, said = self.run_tables(self.folder / "shop.toml", "-o", self.folder / name, *arguments)
        self.assertEqual(code, 0, said)
        return said

    def nearby(self):
        """{customer: what a network of two layers sees of it}."""
        rows = {row[0]: tuple(row) for row in [*self.customers, *self.items]}
        beside = {}
        for who, sku in sorted(set(map(tuple, self.orders))):
            beside.setdefault(who, []).append(sku)
            beside.setdefault(sku, []).append(who)

        def near(one, steps):
            others = beside.get(one, [])
            return rows[one], tuple(near(other, steps - 1) for other in others) if steps else len(others)

        return {row[0]: near(row[0], 2) for row in self.customers}

    def a_rename(self):
        """As many columns as before."""
        for row in self.customers:
            row[3] = "Germany" if row[3] == "DE" else row[3]

    def a_night(self):
        for row in self.customers[60:]:  # only some are renamed
            row[3] = "DE" if row[3] == "Germany" else row[3]
        self.customers[60][3] = "PL"
        self.customers[200][1] = "33"
        self.customers[100:100] = [[f"n{k}", str(k), "2024-01-01", ["FR", "PL", ""][k % 3], "a"] for k in range(30)]
        self.customers += [["n99", "", "1990-01-01", "IT", ""]]
        self.items[50:50] = [["new", "1e6", "red"]]
        self.orders[250:250] = [["n3", "i3"], ["n99", "new"], ["n99", "i7"], ["c300", "new"]]

    def logits(self, graph):
        """{customer: bits}."""
        rows = self.infer_to("rows.h5", f'graph.file="{graph}"', "--predictions", ranks=2)
        found = espalier.read_rows(rows)
        ids = arrays_of(graph)["types/customer/ids"]
        return {ids[v].decode(): bits.tobytes() for v, bits in zip(found.vertices, found.values)}

    def test_the_nightly_story(self):
        self.tables("graph.h5")
        self.assertIn("columns      customer: 5, age, joined, country=DE, country=FR, country=IT; filled or scaled", self.succeed("info", self.graph))
        self.succeed("-q", "train", self.config)
        weights = self.output / "weights.h5"
        before, seen = self.logits(self.graph), self.nearby()
        self.assertEqual(self.logits(self.graph), before)

        tonight = self.folder / "tonight.h5"
        for night, words in (
            (self.a_rename, ["column 2 is country=DE there and country=FR here", "country=IT (5 columns)"]),
            (self.a_night, ["column 4 is country=IT there and country=Germany here", "country=PL (7 columns)"]),
        ):
            night()
            self.tables("tonight.h5", "--overwrite")
            self.fail_with(
                3, ["tonight.h5: /nodes/customer/features has other columns", *words, f"--like {weights}",
                    "there: age, joined, country=DE, country=FR, country=IT (5 columns)"],
                "infer", self.config, f'graph.file="{tonight}"', "--checkpoint", weights, "-o", self.folder / "refused.h5", ranks=2,
            )  # fmt: skip
        self.assertFalse((self.folder / "refused.h5").exists())

        said = self.tables("tonight.h5", "--like", weights, "--overwrite")
        lost = [row[3] for row in self.customers if row[3] in ("Germany", "PL")]
        self.assertIn(f"{len(lost)} rows have a 'country' that the training did not know ('Germany', 'PL')", said)
        for name in ("customer", "item"):
            for what in ("feature_names", "feature_scales"):
                of = [arrays_of(path)[f"nodes/{name}/{what}"].tobytes() for path in (tonight, self.graph, weights)]
                self.assertEqual(len(set(of)), 1)
        after, now_seen = self.logits(tonight), self.nearby()
        self.assertEqual(set(after), {row[0] for row in self.customers})
        unchanged = [who for who in before if seen[who] == now_seen[who]]
        self.assertGreater(len(unchanged), 150)
        self.assertGreater(sum(row[1] == "" and row[0] in unchanged for row in self.customers), 10)  # filled
        self.assertEqual([who for who in unchanged if before[who] != after[who]], [])
        changed = [who for who in before if seen[who][0] != now_seen[who][0]]
        self.assertGreater(sum(before[who] != after[who] for who in changed), len(changed) // 2)

        """A graph file says it as well as weights do."""
        bytes_of = {name: array.tobytes() for name, array in arrays_of(tonight).items()}
        self.tables("again.h5", "--like", self.graph)
        self.assertEqual({name: array.tobytes() for name, array in arrays_of(self.folder / "again.h5").items()}, bytes_of)
        self.assertEqual(*(self.succeed("digest", path).replace(str(path), "") for path in (tonight, self.folder / "again.h5")))

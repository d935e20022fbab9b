"""The page of a run, and of several, holds what report.json has, and needs nothing besides itself.

Laws: means and deviations are NumPy's; every number in a table of a run is one of its report, or that
in MB; texts end inside of their chart; nothing is asked for from outside; reports that are not there,
are half written or another program's are refused.
"""

import contextlib
import io
import json
import re
import xml.etree.ElementTree as xml

import numpy as np

from tests.app.program import FolderTest
from tests.python import SEED, DataTest

import espalier
from espalier import charts, report

NAMES = "a name that is far too long for the place that a legend has for it, so it is cut"


def random_report(random, seed, hidden=16, epochs=3):
    def scores():
        return {"accuracy": random.random(), "macro_f1": random.random()}

    return {
        "espalier": "0.1.0",
        "command": "train",
        "ranks": 2,
        "device": "cpu",
        "config": {
            "train": {"seed": seed},
            "model": {"hidden": hidden},
            "output": {"dir": f"run{seed}<&"},
        },
        "graph": {"nodes": 3000, "digest": "671dcc9ff85f333e"},
        "epochs": [
            {
                "epoch": k + 1,
                "loss": random.random() * 10.0 ** random.integers(-3, 4),
                "valid": scores(),
                "seconds": {"total": 2.0, "sample": random.random(), "forward": random.random()},
                "bytes": {"fetch": {"total": int(random.integers(10**9)), "predicted": 12345678}},
                "dealing": {"remote_rows_max_over_mean": random.random()},
            }
            for k in range(epochs)
        ],
        "test": scores(),
        "best_epoch": 2,
        "peak_memory_bytes": {"max": int(random.integers(10**9)), "sum": 2 * 10**9},
        "confusion": random.integers(0, 99, (3, 3)).tolist(),
    }


def numbers_of(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for of in value for number in numbers_of(of)]
    return [] if value is None else [value]


def outside(svg):
    """Texts that leave their chart, each letter as wide as the widest that is reckoned with."""
    *_, width, height = map(float, svg.get("viewBox").split())
    found = []
    for of in svg.iter("text"):
        long = charts.LETTER * len(of.text)
        start = float(of.get("x")) - {"start": 0, "middle": long / 2, "end": long}[of.get("text-anchor")]
        if start < 0 or start + long > width or not 10 <= float(of.get("y")) <= height:
            found.append(of.text)
    return found


class Pages(DataTest, FolderTest):
    def setUp(self):
        DataTest.setUp(self)
        FolderTest.setUp(self)
        self.random = np.random.default_rng(SEED)

    def write(self, name, content):
        folder = self.folder / name
        folder.mkdir()
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / "report.json").write_text(text)
        return str(folder)

    def page(self, *runs):
        report.write_report(runs, self.folder / "page.html")
        return (self.folder / "page.html").read_text()

    def check_charts(self, page, count):
        svgs = [xml.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]
        self.assertEqual(len(svgs), count)
        for svg in svgs:
            self.assertEqual(outside(svg), [])
            self.assertIn("epoch", [of.text for of in svg.iter("text")])
            self.assertTrue(svg.find("text[@class='title']").text)
        for asks in ("http", "<script", "src=", "href=", "url(", "@import"):
            self.assertNotIn(asks, page)

    def test_a_run(self):
        written = random_report(self.random, 0)
        page = self.page(self.write("run", written))
        self.check_charts(page, 3)
        self.assertIn("seconds (s), of the slowest rank", page)
        known = numbers_of(written)
        known += [value / 1e6 for value in known if isinstance(value, int)] + [0, 1, 2]
        known = {report.cell(value) for value in known}
        shown = re.findall(r"<td>(-?[0-9.]+(?:e[-+]?\d+)?)</td>", page)
        self.assertGreater(len(shown), 20)
        self.assertEqual([value for value in shown if value not in known], [])

    def test_several_runs(self):
        runs = [
            self.write(f"{NAMES} {hidden} {seed} <&", random_report(self.random, seed, hidden))
            for hidden in (16, 32)
            for seed in range(3)
        ]
        page = self.page(*runs)
        self.check_charts(page, 2)
        for words in ("model.hidden", "test accuracy deviation", "<th>n</th>", "&lt;&amp;"):
            self.assertIn(words, page)

    def test_mean_and_deviation(self):
        reports = [random_report(self.random, seed, h) for h in (16, 32) for seed in range(4)]
        reports.append(random_report(self.random, 0, 64))
        runs = [self.write(f"run{k}", of) for k, of in enumerate(reports)]
        rows = espalier.compare(runs, over="train.seed").rows
        self.assertEqual([(row["model.hidden"], row["n"]) for row in rows], [(16, 4), (32, 4), (64, 1)])
        for row, of in zip(rows, (reports[:4], reports[4:8])):
            values = [one["test"]["macro_f1"] for one in of]
            self.assertAlmostEqual(row["test macro_f1"], np.mean(values))
            self.assertAlmostEqual(row["test macro_f1 deviation"], np.std(values, ddof=1))
        self.assertIsNone(rows[2]["test macro_f1 deviation"])
        self.refused("no run has the key 'train.sed'", espalier.compare, runs, over="train.sed")

    def test_what_is_no_report(self):
        good = random_report(self.random, 0)
        half = {"epochs": [{"epoch": 1}]}
        for name, content, words in (
            ("half", json.dumps(good)[:300], "is no report"),
            ("foreign", {"loss": 1}, "is no report of espalier"),
            ("bare", {"espalier": "0.1.0"}, "without the config"),
            ("epochs", good | half, "epochs are not whole"),
        ):
            run = self.write(name, content)
            self.refused(words, espalier.compare, [run])
            with contextlib.redirect_stderr(io.StringIO()) as said:
                self.assertEqual(report.main([run]), 3)
            self.assertIn(words, said.getvalue())
        self.refused("is not there", espalier.compare, [self.folder / "none"])
        other = self.write("good", good)
        for key, content in (("confusion", [1, 2]), ("graph", 5), ("test", 5), ("peak_memory_bytes", {"max": "x"})):
            run = self.write(f"kind of {key}", good | {key: content})
            for runs in ([run], [run, other]):
                with contextlib.redirect_stderr(io.StringIO()) as said:
                    code = report.main([*runs, "-o", str(self.folder / "page.html")])
                self.assertIn(code, (0, 3), key)  # of several some are not on the page
                self.assertTrue(code == 0 or "of another kind" in said.getvalue(), said.getvalue())
            with contextlib.redirect_stderr(io.StringIO()):
                self.assertEqual(report.main([run]), 3, key)

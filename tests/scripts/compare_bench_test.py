"""scripts/compare_bench.py on benches of a few numbers.

Laws: medians of repetitions, not of the medians that Google Benchmark adds; a change counts where the two ranges do not
meet; changes never fail, wrong results always do; the baseline may be the file that is written.
"""

import json

from tests.app.program import ROOT, FolderTest, run_python


def runs(name, ratios, bound=2.0, wrong=0, threads=1):
    """What Google Benchmark writes of one case: its repetitions, then aggregates that must not count."""
    repetitions = [{"name": f"{name}/iterations:2/manual_time", "run_name": f"{name}/iterations:2/manual_time",
                    "run_type": "iteration", "label": "GB/s", "rate": ratio * bound, "bound": bound, "ratio": ratio,
                    "wrong": wrong, "threads": threads, "load": 1.5} for ratio in ratios]
    return repetitions + [dict(repetitions[0], run_type="aggregate", ratio=99.0)]


class CompareBench(FolderTest):
    def write(self, name, *cases):
        path = self.folder / name
        path.write_text(json.dumps({"context": {}, "benchmarks": [run for case in cases for run in case]}))
        return path

    def run_script(self, *arguments):
        return run_python(ROOT / "scripts/compare_bench.py", *arguments)

    def summarize(self, *cases, name="dense_spmm.json", baseline=None):
        """The script's answer, and the cases of the summary."""
        options = ["--baseline", baseline] if baseline else []
        done = self.run_script("--summary", self.folder / "summary.json", *options, self.write(name, *cases))
        return done, json.loads((self.folder / "summary.json").read_text())["cases"]

    def line(self, done, name, after=""):
        text = done.stdout[done.stdout.index(after):]
        return next(line for line in text.splitlines() if line.startswith(name))

    def test_a_case_is_the_median_of_its_repetitions(self):
        done, cases = self.summarize(runs("B X  f=64 1 thr", [0.5, 0.75, 0.25], threads=2))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(cases, {"dense/spmm: B X f=64 1 thr": {
            "rate": 1.0, "bound": 2.0, "unit": "GB/s", "ratio": 0.5, "low": 0.25, "high": 0.75, "wrong": 0, "threads": 2,
            "load": 1.5, "repetitions": 3}})
        self.assertEqual(self.line(done, "dense/spmm").split()[-7:], ["1", "2", "GB/s", "0.500", "(0.250..0.750)", "1.5", "0"])

    def test_cases_of_all_files_in_their_order(self):
        files = [self.write("sparse_sum_rows.json", runs("b", [1.0]), runs("a", [1.0])),
                 self.write("dense_gemm.json", runs("a", [1.0]))]
        done = self.run_script(*files)
        names = [line.split("  ")[0] for line in done.stdout.splitlines() if ": " in line]
        self.assertEqual(names, ["sparse/sum_rows: b", "sparse/sum_rows: a", "dense/gemm: a"])
        self.assertIn("3 cases, #wrong 0", done.stdout)

    def test_changes_beyond_both_ranges_are_marked(self):
        self.summarize(runs("faster", [0.4, 0.5, 0.6]), runs("slower", [0.4, 0.5, 0.6]), runs("noise", [0.4, 0.5, 0.6]),
                       runs("gone", [1.0]))
        done, _ = self.summarize(runs("faster", [0.7, 0.75, 0.8]), runs("slower", [0.2, 0.25, 0.3]),
                                 runs("noise", [0.55, 0.75, 0.9]), runs("fresh", [1.0]), baseline=self.folder / "summary.json")
        self.assertEqual(done.returncode, 0)
        found = {name: self.line(done, f"dense/spmm: {name}", "# ratios").split()[2:]
                 for name in ("faster", "slower", "noise", "fresh", "gone")}
        self.assertEqual(found, {"faster": ["0.500", "0.750", "+50.0%", "better"],
                                 "slower": ["0.500", "0.250", "-50.0%", "worse"],
                                 "noise": ["0.500", "0.750", "+50.0%"],
                                 "fresh": ["-", "1.000", "new", "case"],
                                 "gone": ["1.000", "-", "not", "measured", "now"]})

    def test_wrong_results_fail(self):
        done, cases = self.summarize(runs("a", [1.0], wrong=3), runs("b", [1.0]))
        self.assertEqual((done.returncode, cases["dense/spmm: a"]["wrong"]), (1, 3))
        self.assertIn("2 cases, #wrong 3", done.stdout)

    def test_files_that_are_something_else(self):
        good = self.write("dense_gemm.json", runs("a", [1.0]))
        bad, empty = self.folder / "bad.json", self.folder / "empty.json"
        bad.write_text("no")
        empty.write_text("{}")
        for arguments in ((bad,), (empty,), (self.folder / "absent",), ("--baseline", good, good), ("--baseline", bad, good)):
            done = self.run_script(*arguments)
            self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stderr)
            self.assertTrue(done.stderr.startswith("compare_bench: "), done.stderr)

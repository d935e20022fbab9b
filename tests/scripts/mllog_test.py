"""scripts/mllog.py: a training run in the lines that MLPerf's tools read.

Laws: they pass the compliance checker of MLPerf Training for its benchmark of graph networks, open division, whatever the graph and the
grid; the checker refuses them when one is wrong or missing. What they say is what report.json says. A run that goes on from a checkpoint
has the epochs that it did. What is no training that is done is refused.
"""

import importlib.util
import json
import unittest

from tests.app.job_test import JobTest
from tests.app.program import ROOT, run_python

HAS_CHECKER = importlib.util.find_spec("mlperf_logging") is not None
NO_CHECKER = "this python3 has no mlperf_logging (pip install mlperf-logging)"
RULES = ("5.1.0", "5.0.0")  # from 6.0.0 on no benchmark is of graphs


class MlLogTest(JobTest):
    def train(self, *overrides, **options):
        self.succeed("-q", "train", self.config, *overrides, **options)
        return self.events()

    def mllog(self, *arguments):
        return run_python(ROOT / "scripts/mllog.py", *arguments)

    def lines(self):
        done = self.mllog(self.output)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def events(self, text=None):
        lines = (text or self.lines()).splitlines()
        for line in lines:
            self.assertTrue(line.startswith(":::MLLOG {"), line)
        return [json.loads(line.removeprefix(":::MLLOG ")) for line in lines]

    def values(self, events):
        return {event["key"]: event["value"] for event in events}


class Lines(MlLogTest):
    def test_they_say_what_the_report_says(self):
        events = self.train("train.eval_every=2", "train.learning_rate=0.01", "train.seed=7", ranks=3)
        report = self.report(self.output)
        evaluated = [epoch for epoch in report["epochs"] if "valid" in epoch]
        found = [(event["metadata"]["epoch_num"], event["value"]) for event in events if event["key"] == "eval_accuracy"]
        self.assertEqual(found, [(epoch["epoch"], epoch["valid"]["accuracy"]) for epoch in evaluated])
        for key, epochs in (("epoch_start", report["epochs"]), ("epoch_stop", report["epochs"]), ("eval_start", evaluated),
                            ("eval_stop", evaluated)):
            self.assertEqual([event["metadata"]["epoch_num"] for event in events if event["key"] == key],
                             [epoch["epoch"] for epoch in epochs], key)
        values = self.values(events)
        for key, value in (("global_batch_size", 20), ("gradient_accumulation_steps", 2), ("train_samples", 21), ("eval_samples", 9),
                           ("opt_name", "adam"), ("opt_base_learning_rate", 0.01), ("seed", 7), ("submission_division", "open"),
                           ("submission_benchmark", "rgat"), ("cache_clear", False)):
            self.assertEqual(values[key], value, key)
        self.assertEqual(events[-1]["key"], "run_stop")
        self.assertEqual(events[-1]["metadata"]["status"], "success")

    def test_times_are_in_order_and_are_those_of_the_run(self):
        events = self.train("train.epochs=3")
        times = [event["time_ms"] for event in events]
        self.assertEqual(times, sorted(times))
        at = {event["key"]: event["time_ms"] for event in events}
        seconds = sum(epoch["seconds"]["total"] for epoch in self.report(self.output)["epochs"])
        self.assertGreaterEqual(at["run_stop"] - at["run_start"] + 5, 1e3 * seconds)
        self.assertEqual({event["event_type"] for event in events}, {"POINT_IN_TIME", "INTERVAL_START", "INTERVAL_END"})

    def test_a_run_that_went_on_has_its_own_epochs(self):
        job = ("train", self.config, "run.checkpoint_every=1", "train.epochs=3")
        self.stopped_run(*job, ranks=2)
        self.assertEqual(self.mllog(self.output).returncode, 3, "it is not done")
        self.succeed(*job, ranks=3)
        events = self.events()
        start = next(event for event in events if event["key"] == "run_start")
        self.assertEqual((start["metadata"]["resumed_epoch"], start["metadata"]["resumed_step"]), (1, 1))
        self.succeed("-q", *job[:-1], "train.epochs=4", overwrite=False)
        epochs = [event["metadata"]["epoch_num"] for event in self.events() if event["key"] == "epoch_start"]
        self.assertEqual(epochs, [4])

    def test_what_is_no_training_is_refused(self):
        self.succeed("-q", "sample", self.config)
        for arguments, code, words in (((self.output,), 3, "espalier sample"), ((self.folder / "nowhere",), 3, "report.json"), ((), 2, "folder")):
            done = self.mllog(*arguments)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(words, done.stderr)

    def test_the_graph_may_have_moved(self):
        self.train()
        elsewhere = self.folder / "elsewhere.h5"
        self.graph.rename(elsewhere)
        self.assertEqual(self.mllog(self.output).returncode, 3)
        self.assertIn('"train_samples"', self.mllog(self.output, "--graph", elsewhere).stdout)


@unittest.skipUnless(HAS_CHECKER, NO_CHECKER)
class Checked(MlLogTest):
    def check(self, text=None, rules=RULES[0]):
        """Whether the checker passes it, and its words."""
        path = self.folder / "checked.txt"
        path.write_text(self.lines() if text is None else text)
        done = run_python("-m", "mlperf_logging.compliance_checker", "--usage", "training", "--ruleset", rules, "--werror", "--log_output",
                          self.folder / "checker.log", path)
        return done.returncode == 0, done.stdout + done.stderr

    def changed(self, name, /, text=None, **changes):
        lines = self.events(text)
        for event in lines:
            if event["key"] == name:
                event.update(changes)
        return "".join(f":::MLLOG {json.dumps(event)}\n" for event in lines)

    def test_a_run_passes_on_every_grid(self):
        for ranks, overrides in ((1, ()), (4, ("grid.replication=2", "train.optimizer=sgd")), (3, ("run.overlap=true", "train.eval_every=2"))):
            self.train("train.epochs=2", "run.restart=never", *overrides, ranks=ranks)
            for rules in RULES:
                passes, words = self.check(rules=rules)
                self.assertTrue(passes, words)

    def test_a_run_that_went_on_passes(self):
        self.stopped_run("train", self.config, ranks=2)
        self.train(ranks=3)
        passes, words = self.check()
        self.assertTrue(passes, words)

    def test_what_is_wrong_is_refused(self):
        self.train("train.epochs=2")
        for key, changes in (("eval_accuracy", {"metadata": {}}), ("eval_accuracy", {"value": 1.5}), ("run_stop", {"metadata": {}}),
                             ("run_start", {"key": "run_starts"}), ("train_samples", {"value": ""}), ("init_stop", {"time_ms": 9e15}),
                             ("submission_org", {"value": ""}), ("epoch_start", {"metadata": {}})):
            passes, words = self.check(self.changed(key, **changes))
            self.assertFalse(passes, (key, changes))
            self.assertIn("FAILED", words)

    def test_the_closed_division_asks_for_its_accuracy_and_for_nothing_that_is_not_there(self):
        self.train("train.epochs=2")
        lines = self.lines().replace('"value":"open"', '"value":"closed"')
        best = max(event["value"] for event in self.events() if event["key"] == "eval_accuracy")
        passes, words = self.check(lines)
        self.assertEqual(passes, 0.72 <= best < 1, words)
        passes, words = self.check(self.changed("eval_accuracy", lines, value=0.73))
        self.assertTrue(passes, words)
        passes, words = self.check(self.changed("eval_accuracy", lines, value=0.7))
        self.assertIn("Failed checks for eval_accuracy", words)
        self.assertFalse(passes)

"""Numbers that are not finite: in training, in what `infer` is given, and in what it computes.

Laws, for classes, labels and links: nothing that is not finite leaves the program as a score, a row or a weight. A training that diverges
ends on all ranks with exit code 6 and one message that says where and what to change; report.json says it too, and the best weights of
before are there, those of a run that ended with that epoch. A training that is killed has left its best weights so far; a finished one
is touched by no command that trains nothing more.
"""

import json
import shutil
import signal

import h5py
import numpy as np

from tests.app.program import ProgramTest, arrays_of, attributes_of, not_finite, seal
from tests.app.restart_test import ONE_STEP, RestartTest

TASKS = {"classes": (), "labels": ('train.task="labels"',), "links": ('train.task="links"', "train.ranked_against=20")}
# One step and an evaluation: the weights are far too large then.
AT_ONCE = ("train.optimizer=sgd", "train.learning_rate=1e38", "train.epochs=1", "train.batches_per_step=1000", "model.normalize=none")
# Every step multiplies the weights by -999, until they overflow.
LATER = ("train.optimizer=sgd", "train.learning_rate=1.0", "train.weight_decay=1e3", "train.epochs=40", "train.batches_per_step=1000",
         "model.normalize=none")


class DivergenceTest(ProgramTest):
    JOB = ("sampler.fanout=[3, 2]", "sampler.batch_size=16", "model.hidden=8", "model.layers=2", "train.epochs=3", "train.reproducible=true",
           "train.batches_per_step=2", "run.threads=1", 'run.device="cpu"', "run.checkpoint_minutes=0")

    def make(self, task):
        options = {"classes": (), "labels": ("--labels", 3), "links": ()}[task]
        generate = ("generate", "planted", "--nodes", 200, "--degree", 5, "--features", 6, "--classes", 3, "--seed", 2, *options)
        prepare = (("prepare", None, "--split-links", "0.8,0.1,0.1"),) if task == "links" else ()
        self.make_once(self.graph, generate, *prepare)
        self.write_job(*TASKS[task])


class Training(DivergenceTest):
    def diverge(self, *keys, **options):
        """Exit code 6; (the report, all of whose numbers are finite, and so are those of the weights, if there are any)."""
        output = self.fail_with(6, ["is not finite in epoch ", "; lower train.", f"its report is {self.output}/report.json"], "train", self.config,
                                *keys, **options)
        report = self.report(self.output)
        self.assertEqual(not_finite(report, "report"), "")
        weights = self.output / "weights.h5"
        self.assertEqual(weights.exists(), "best_epoch" in report)
        if weights.exists():
            self.assertEqual(not_finite(arrays_of(weights), "weights.h5"), "")
        self.assertIn(report["diverged"]["message"], output)
        return report

    def test_one_update_that_overflows(self):
        for task, ranks in (("classes", 3), ("labels", 1), ("links", 2)):
            with self.subTest(task=task):
                self.make(task)
                report = self.diverge(*AT_ONCE, ranks=ranks, timeout=60)
                self.assertEqual((report["diverged"]["what"], report["diverged"]["epoch"], report["epochs"]), ("evaluation", 1, []))
                self.assertFalse({"best_epoch", "weights_digest", "test", "train", "confusion"} & set(report))
                self.assertEqual(len((self.output / "metrics.csv").read_text().splitlines()) if (self.output / "metrics.csv").exists() else 0, 0)

    def test_the_best_weights_of_before_stay(self):
        for task, ranks in (("classes", 1), ("links", 3)):
            with self.subTest(task=task):
                self.make(task)
                report = self.diverge(*LATER, "run.overlap=true", ranks=ranks, timeout=60)
                best, last = report["best_epoch"], len(report["epochs"])
                self.assertGreaterEqual(last, 2)
                self.assertEqual(report["diverged"]["epoch"], last + 1)
                weights, digest = arrays_of(self.output / "weights.h5"), report["weights_digest"]
                found = self.train(*LATER, f"train.epochs={best}")
                self.assertEqual((found["weights_digest"], found["test"]), (digest, report["test"]))
                for name, values in arrays_of(self.output / "weights.h5").items():
                    self.assertEqual(values.tobytes(), weights[name].tobytes(), name)

    def test_no_checkpoint_holds_what_is_not_finite(self):
        self.make("classes")
        report = self.diverge(*LATER, "run.checkpoint_every=1", "train.eval_every=100")
        self.assertNotIn("best_epoch", report)
        for path in (self.output / "checkpoints").glob("*.h5"):
            self.assertEqual(not_finite(arrays_of(path, "weights"), path), "")
        # The same command goes on from there, and arrives at the same place.
        output = self.fail_with(6, [report["diverged"]["message"]], "train", self.config, *LATER, "run.checkpoint_every=1",
                                "train.eval_every=100", overwrite=False, ranks=2)
        self.assertIn("restart ", output)


class Inferring(DivergenceTest):
    def changed(self, change):
        """The weights of a run with others in their place."""
        weights = self.folder / "weights.h5"
        shutil.copy(self.output / "weights.h5", weights)
        with h5py.File(weights, "r+") as file:
            change(file["weights"])
        seal(weights)
        return weights

    def refused(self, code, words, *options, **run):
        before = sorted(self.folder.rglob("*"))
        self.fail_with(code, words, *self.infer_words(*options, weights=self.folder / "weights.h5"), **run)
        self.assertEqual(sorted(self.folder.rglob("*")), before)

    def test_weights_and_rows(self):
        self.make("classes")
        self.succeed("-q", "train", self.config)
        last = [f"layer2.{name}" for name in ("self", "neighbour", "bias")]

        def spoil(weights):
            weights["layer1.self"][2, 3] = np.nan
        self.changed(spoil)
        self.refused(3, ["weights.h5", "weights/layer1.self has nan in row 2, column 3"], ranks=2)

        def overflow(weights):
            weights["layer2.self"][...] *= np.float32(1e38)
        self.changed(overflow)
        words = ["layer 2 gives vertex ", "weights.h5", "not finite"]
        self.refused(6, words, ranks=3)
        self.refused(6, words, "--layer", 1, "--csv", self.folder / "x.csv", "--metrics", "--predictions")
        # Hidden rows are as they should be.
        self.infer_to("rows.h5", "--layer", 1, weights=self.folder / "weights.h5")

        # float16 ends at 65504, to which what is below 65520 is rounded.
        largest = np.abs(self.inferred()[0]["logits"]).max()
        for factor, fits in ((65000, True), (65519, True), (65521, False), (130000, False)):
            def enlarge(weights, by=np.float32(factor / largest)):
                for name in last:
                    weights[name][...] *= by
            weights = self.changed(enlarge)
            rows = self.inferred(weights=weights)[0]["logits"]
            if fits:
                np.testing.assert_array_equal(self.inferred("--half", weights=weights)[0]["logits"], rows.astype(np.float16))
            (self.folder / "rows.h5").unlink()
        self.refused(2, ["row ", "of /logits: column ", "too large for float16", "65504", "--half"], "--half", ranks=2)

    def test_scores_of_links_that_overflow(self):
        self.make("links")
        self.succeed("-q", "train", self.config)

        def enlarge(weights):
            for name in ("self", "neighbour", "bias"):
                weights[f"layer2.{name}"][...] *= np.float32(1e25)
        self.changed(enlarge)
        (self.folder / "asked.txt").write_text("".join(f"{k},{k + 1}\n" for k in range(50)))
        (self.folder / "heads.txt").write_text("".join(f"{k}\n" for k in range(5)))
        words = ["a link of relation 0 scores ", "weights.h5"]
        self.refused(6, words, "--links", self.folder / "asked.txt", ranks=2)
        self.refused(6, words, "--links", self.folder / "heads.txt", "--top", 3)
        self.refused(6, words, "--metrics", ranks=2)


class Left(RestartTest):
    def test_a_killed_run_has_left_its_best_weights(self):
        self.make_it_last(120)
        expected = self.uncut()
        job = self.under_way(ranks=2)
        weights = self.output / "weights.h5"
        job.wait_for(weights.exists, "weights")
        job.signal(signal.SIGKILL, 0)
        job.end()
        self.assertGreater(attributes_of(weights)["epoch"], 0)
        self.assertFalse((self.output / "report.json").exists())
        self.infer_to("rows.h5")
        self.succeed("-q", "train", self.config)
        self.assertEqual(self.outcome(), expected)
        self.assertEqual(attributes_of(weights)["epoch"], expected["best"])

    def contents(self):
        return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(self.output.rglob("*")) if path.is_file()}

    def test_a_finished_run_is_not_touched(self):
        self.succeed("-q", "train", self.config, "run.checkpoint_every=1")
        before = self.contents()
        for ranks, *keys in ((1, "train.epochs=2"), (3, "train.epochs=1", ONE_STEP), (2,)):
            output = self.succeed("train", self.config, *keys, ranks=ranks, overwrite=False)
            self.assertRegex(output, "^restart .*all 3 epochs are done, nothing is left to train; raise train.epochs, or give --overwrite.*\n$")
            self.assertEqual(self.contents(), before)
        # What is missing of its results is made again.
        report, weights = before[self.output / "report.json"][0], arrays_of(self.output / "weights.h5")
        (self.output / "weights.h5").unlink()
        self.fail_with(2, ["after 3 epochs, and train.epochs = 2", "raise train.epochs"], "train", self.config, "train.epochs=2", overwrite=False)
        self.succeed("-q", "train", self.config, "run.checkpoint_every=1", overwrite=False)
        for name, values in arrays_of(self.output / "weights.h5").items():
            self.assertEqual(values.tobytes(), weights[name].tobytes(), name)
        self.assertEqual(json.loads(report)["weights_digest"], self.report(self.output)["weights_digest"])
        self.succeed("-q", "train", self.config, "train.epochs=4", overwrite=False)
        self.assertEqual(len(self.report(self.output)["epochs"]), 4)

    def test_nor_is_one_that_stopped_early(self):
        keys = ("train.early_stop=1", "train.epochs=50", "run.checkpoint_every=1")
        self.succeed("-q", "train", self.config, *keys)
        before, epochs = self.contents(), len(self.report(self.output)["epochs"])
        self.assertLess(epochs, 50)
        output = self.succeed("train", self.config, *keys, overwrite=False)
        self.assertRegex(output, f"^restart .*all {epochs} epochs are done, nothing is left to train; raise train.early_stop, or .*\n$")
        self.assertEqual(self.contents(), before)

    def test_one_that_was_cut_behind_the_epochs_that_are_asked_for(self):
        self.cut(5)
        before = self.contents()
        self.fail_with(2, ["after 1 epoch and 1 step, and train.epochs = 1"], "train", self.config, "train.epochs=1", ranks=2)
        self.assertEqual(self.contents(), before)

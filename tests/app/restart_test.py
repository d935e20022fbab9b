"""espalier train as a batch job: stopped by signals and limits, gone on with, its checkpoints damaged, moved and refused.

Laws: a job that is cut anywhere and gone on with, on any number of ranks, copies, schedule, topology and bulk, ends with the weights,
losses, samples, metrics and report of the uncut one, to the last bit; exit codes and messages say how to go on; under the name of a
checkpoint there is never a part of one, and h5py reads what is there; what does not belong to the job is refused with a reason.

run.max_minutes=1e-9 lets a run do one step, or one evaluation: with it a job is cut at every moment it has.
"""

import csv
import json
import os
import random
import re
import shutil
import signal
import time
import unittest
import zlib

import h5py
import numpy as np

from tests.app.program import LONG, ProgramTest, attributes_of, awkward_graph, espalier, not_finite, put, read, set_at
from tests.app.running import Running

SEED = int(os.environ.get("ESPALIER_SEED", random.randrange(1 << 30)))

# Per epoch 3 steps of 2, 2 and 1 batches, and an evaluation.
JOB = ('graph.feature_norm="standard"', "sampler.fanout=[3, 2]", "sampler.batch_size=5", "model.hidden=8", "model.layers=2",
       "model.dropout=0.25", 'model.normalize="batch"', "train.epochs=3", "train.batches_per_step=2", "train.reproducible=true",
       "train.learning_rate=0.05", "run.threads=1", 'run.device="cpu"', "run.checkpoint_minutes=0")
ONE_STEP = "run.max_minutes=1e-9"
MOMENTS = [(epoch, step) for epoch in (1, 2, 3) for step in (1, 2, 3, 4)]
MOMENTS = [(epoch + 1, 0) if step == 4 else (epoch, step) for epoch, step in MOMENTS]


def damage_of(path):
    """Why the bytes of this file are no whole checkpoint; None when they are one. By what checkpoint.hpp says, and h5py."""
    content = path.read_bytes()
    head = content[:512].rstrip(b"\0").decode(errors="replace").splitlines()
    if head != ["espalier-checkpoint 1", f"bytes {len(content)}", f"crc32 {zlib.crc32(content[512:]):08x}"]:
        return f"{path}: {len(content)} bytes, {head}"
    return None if attributes_of(path)["format"] == "espalier-checkpoint" else f"{path}: not the format"


class RestartTest(ProgramTest):
    JOB = JOB
    GENERATE = staticmethod(awkward_graph)

    def setUp(self):
        super().setUp()
        self.checkpoints, self.metrics = self.output / "checkpoints", self.output / "metrics.csv"

    def make_it_last(self, epochs):
        """The job takes seconds."""
        self.make_once(self.graph, ("generate", "planted", "--nodes", 1800, "--classes", 4, "--degree", 10, "--features", 16))
        self.write_job("sampler.batch_size=64", "sampler.fanout=[5, 5]", "model.hidden=32", f"train.epochs={epochs}")

    def under_way(self, *arguments, ranks=1):
        """A job that has done some epochs."""
        self.metrics.unlink(missing_ok=True)
        job = Running("train", "--overwrite", self.config, *arguments, ranks=ranks)
        self.addCleanup(self.kill, job)
        job.wait_for(lambda: self.metrics.exists() and self.metrics.read_text().count("\n") >= 3, "epoch")
        return job

    def kill(self, job):
        """Where a test has failed: a rank that was stopped would stay."""
        if job.process.poll() is None:
            for rank in range(job.ranks):
                job.signal(signal.SIGKILL, rank)
            job.end()

    def outcome(self, folder=None):
        """All that must not depend on cuts and grids."""
        folder = folder or self.output
        report = self.report(folder)
        of_a_run = ("seconds", "bytes", "steps", "dealing", "served", "resumed_step")
        epochs = [{key: value for key, value in epoch.items() if key not in of_a_run} for epoch in report["epochs"]]
        rows = [{key: value for key, value in row.items() if not key.startswith(("seconds", "bytes"))}
                for row in csv.DictReader((folder / "metrics.csv").read_text().splitlines())]
        return {"weights": report["weights_digest"], "test": report["test"], "best": report["best_epoch"], "epochs": epochs, "rows": rows}

    def arrives(self, job, expected):
        """What a job under way says, which ends as one that nothing happened to."""
        code, output = job.end()
        self.assertEqual(code, 0, output)
        self.assertEqual(self.outcome(), expected)
        return output

    def uncut(self, *overrides, ranks=1):
        folder = self.folder / "uncut"
        self.succeed("-q", "train", self.config, f"output.dir={folder}", *overrides, ranks=ranks)
        outcome = self.outcome(folder)
        self.assertEqual([row["epoch"] for row in outcome["rows"]], [str(e["epoch"]) for e in outcome["epochs"]])
        self.assertEqual({"loss", "sample_digest", "batches", "sampled_edges", "input_rows", "epoch", "valid"} - set(outcome["epochs"][-1]), set())
        return outcome

    def stopped(self, words, *overrides, ranks=1, config=None):
        """A run that ends with code 5 and one line that says why and how to go on."""
        code, output = espalier("train", config or self.config, *overrides, ranks=ranks)
        self.assert_stopped(code, output, words)
        return output

    def assert_stopped(self, code, output, words):
        self.assertEqual(code, 5, output)
        lines = [line for line in output.splitlines() if "stopped by" in line]
        self.assertEqual(len(lines), 1, output)
        for word in (*words, "saved", "goes on from there"):
            self.assertIn(word, lines[0])
        self.assertFalse((self.output / "report.json").exists(), "of a run that has not ended")
        self.assertIsNone(damage_of(self.checkpoints / "latest"))

    def names(self):
        return sorted(path.name for path in self.checkpoints.iterdir())

    def files(self):
        return sorted(self.checkpoints.glob("epoch-*.h5"))

    def cut(self, times, *overrides):
        for _ in range(times):
            self.stopped([], ONE_STEP, *overrides)


class Cut(RestartTest):
    def test_at_every_moment_on_other_grids_and_schedules(self):
        expected = self.uncut()
        layouts = ((1,), (2, "grid.schedule=push", "sampler.bulk=1"), (4, "grid.replication=2", "grid.schedule=staged"),
                   (3, "grid.topology=replicated", "sampler.bulk=2"), (4, "run.threads=2", "grid.schedule=staged-oblivious"),
                   (2, "grid.replication=2", "sampler.bulk=3"), (2, "run.overlap=true"), (3, "run.overlap=true", "run.prefetch_steps=2"))
        ranks_before = None
        for k, (epoch, step) in enumerate(MOMENTS[:-1]):
            ranks, *layout = layouts[k % len(layouts)]
            output = self.stopped(["run.max_minutes = 1e-09", f"{step} step", f"of epoch {epoch} done", "the same command"],
                                  ONE_STEP, *layout, ranks=ranks)
            if ranks_before:
                self.assertRegex(output, "(?m)^restart .*checkpoints/epoch-")
            with h5py.File(self.checkpoints / "latest") as file:
                self.assertEqual((file.attrs["epoch"], file.attrs["step"], file.attrs["ranks"]), (epoch, step, ranks))
                self.assertEqual(len(file["losses"]), min(2 * step, 5))
                self.assertEqual([e["epoch"] for e in json.loads(file.attrs["history"])], list(range(1, epoch)))
                self.assertIn("batches_per_step = 2", file.attrs["config"])
                self.assertEqual(not_finite(file["weights"]), "")
                self.assertEqual("best" in file, epoch > 1)
                self.assertEqual(file.attrs["optimizer_steps"], 3 * (epoch - 1) + step)
            self.assertEqual(len(self.files()), min(k + 1, 2), "the last two are kept")
            self.assertEqual(len(self.names()), min(k + 1, 2) + 1)
            ranks_before = ranks
        output = self.succeed("train", self.config, ONE_STEP, ranks=3)
        self.assertEqual(self.outcome(), expected)
        report = self.report(self.output)
        self.assertEqual(report["restart"]["ranks"], ranks_before)
        self.assertEqual((report["restart"]["epoch"], report["restart"]["step"]), MOMENTS[-2])
        self.assertEqual(report["epochs"][-1]["resumed_step"], MOMENTS[-2][1])

    def test_on_the_same_ranks_without_reproducible_sums(self):
        job = ("train.reproducible=false", "train.optimizer=sgd", "grid.schedule=pull")
        expected = self.uncut(*job, ranks=2)
        for _ in range(6 if LONG else 3):
            self.stopped([], *job, ONE_STEP, ranks=2)
        self.assertNotIn("agree to rounding", self.succeed("train", self.config, *job, ranks=2))
        self.assertEqual(self.outcome(), expected)

    def test_on_other_ranks_without_reproducible_sums_it_is_said(self):
        self.cut(1, "train.reproducible=false")
        self.assertIn("agree to rounding", self.succeed("train", self.config, "train.reproducible=false", ranks=2))

    def test_automatic_batches_per_step_stay_those_of_the_first_run(self):
        auto = ("train.batches_per_step=auto", "train.reproducible=false")
        self.uncut(*auto, ranks=3)
        expected = self.report(self.folder / "uncut")
        self.assertEqual(expected["config"]["train"]["batches_per_step"], 3)
        self.stopped([], *auto, ONE_STEP, ranks=3)
        self.stopped([], *auto, ONE_STEP, ranks=1)
        self.succeed("-q", "train", self.config, *auto, ranks=2)
        found = self.report(self.output)
        self.assertEqual(found["config"]["train"]["batches_per_step"], 3)
        np.testing.assert_allclose([e["loss"] for e in found["epochs"]], [e["loss"] for e in expected["epochs"]], rtol=1e-4)

    def test_early_stop_and_another_sampler(self):
        job = ("train.epochs=40", "train.early_stop=2", "train.learning_rate=0.2", "train.lr_schedule=cosine", "sampler.kind=labor",
               "sampler.share_batches=3")
        expected = self.uncut(*job)
        for k in range(7 if LONG else 4):
            self.stopped([], *job, ONE_STEP, ranks=1 + k % 3)
        self.succeed("-q", "train", self.config, *job, ranks=2)
        self.assertEqual(self.outcome(), expected)


    def test_steps_of_any_size_other_schedules_and_few_evaluations(self):
        for keys in (("train.batches_per_step=1",), ("train.batches_per_step=100", "train.optimizer=sgd", "model.normalize=layer"),
                     ("train.eval_every=0", "train.lr_schedule=cosine", "run.overlap=true"), ()):
            if not keys:
                put(self.graph, {"split/valid": None, "split/test": None})
            job = (*keys, "train.epochs=2")
            expected = self.history(self.train(*job))
            shutil.rmtree(self.output)
            for count in range(30):
                code, output = espalier("train", self.config, *job, ONE_STEP, f"sampler.bulk={1 + count % 4}", ranks=1 + count % 3)
                if code != 5:
                    break
            self.assertEqual(code, 0, output)
            self.assertGreater(count, 2)
            self.assertEqual(self.history(self.report(self.output)), expected, keys)


class Named(RestartTest):
    def test_never_begins_anew(self):
        expected = self.uncut()
        self.cut(5)
        self.succeed("-q", "train", self.config, "run.restart=never", "run.checkpoint_every=1")
        self.assertEqual(self.outcome(), expected)
        self.assertNotIn("restart", self.report(self.output))
        self.assertEqual(self.report(self.output)["checkpoints"]["saved"], 3)
        self.stopped(["with 1 step of epoch 1 done", 'run.restart = "auto" goes on from there'], ONE_STEP, "run.restart=never")

    def test_never_removes_the_checkpoints_of_the_run_before(self):
        self.succeed("-q", "train", self.config, "run.checkpoint_every=1", "train.epochs=4")
        self.succeed("-q", "train", self.config, "run.restart=never", "train.epochs=2")
        anew = self.outcome()
        self.assertEqual(self.names(), [])
        self.succeed("-q", "train", self.config, "train.epochs=2")
        self.assertEqual(self.outcome(), anew, "it does not go on from the run before")

    def test_a_checkpoint_in_the_folder_that_is_named_stays(self):
        self.cut(3)
        older = self.files()[0]
        self.succeed("-q", "train", self.config, f"run.restart={older}", "run.checkpoint_minutes=1e-9")
        self.assertTrue(older.exists())
        self.assertEqual(len(self.files()), 3)

    def test_a_file_and_a_folder_by_path(self):
        expected = self.uncut()
        self.cut(3)
        older, newer = self.files()
        elsewhere = self.folder / "elsewhere"
        before = {path: path.read_bytes() for path in (older, newer)}
        for path, used in ((older, older), (newer, newer), (self.checkpoints, newer), (self.checkpoints / "latest", self.checkpoints / "latest"),
                           (self.output, newer)):
            self.succeed("-q", "train", self.config, f"run.restart={path}", f"output.dir={elsewhere}", ranks=2)
            self.assertEqual(self.outcome(elsewhere), expected, path)
            self.assertEqual(self.report(elsewhere)["restart"]["checkpoint"], str(used))
        self.assertEqual({path: path.read_bytes() for path in self.files()}, before, "what others go on from stays")

    def test_the_last_two_are_kept_however_the_one_gone_on_from_is_named(self):
        for path in (self.checkpoints / "latest", self.output / "." / "checkpoints" / "latest", self.checkpoints):
            self.cut(1)
            used = (self.checkpoints / "latest").resolve()
            self.stopped([], ONE_STEP, f"run.restart={path}")
            self.assertEqual(len(self.files()), 2, f"{path} {self.names()}")
            self.assertIn(used.name, self.names())

    def test_paths_to_nothing_or_to_something_else(self):
        self.fail_with(2, ["run.restart", "nothing.h5", "no such file"], "train", self.config, f"run.restart={self.folder}/nothing.h5", ranks=2)
        empty = self.folder / "empty"
        empty.mkdir()
        self.fail_with(2, ["run.restart", "no checkpoint in that folder"], "train", self.config, f"run.restart={empty}")
        self.fail_with(3, [str(self.graph), "is no checkpoint"], "train", self.config, f"run.restart={self.graph}", ranks=2)
        os.mkfifo(empty / "pipe")
        self.fail_with(3, ["pipe: is a pipe, not a file"], "train", self.config, f"run.restart={empty}/pipe", timeout=20)
        (empty / "epoch-0001-step-000001.h5").write_bytes(b"")
        self.fail_with(3, ["empty", "is whole"], "train", self.config, f"run.restart={empty}")
        self.assertFalse(self.output.exists(), "nothing is written for a run that cannot start")


class Refused(RestartTest):
    def test_another_graph(self):
        self.cut(2)
        latest = self.checkpoints / "latest"
        other = self.folder / "other.h5"
        shutil.copy(self.graph, other)
        put(other, {"split/train": lambda train: train[:-1]})
        self.fail_with(2, ["another graph", "50 nodes", "21 training", str(other), "20"], "train", self.config, f"graph.file={other}", ranks=2)
        self.fail_with(2, ["another graph"], "train", self.config, f"graph.file={other}", f"run.restart={latest}")
        self.graph.rename(self.folder / "moved.h5")
        self.stopped([], ONE_STEP, f"graph.file={self.folder}/moved.h5")

    def test_the_mean_and_deviation_of_features_stand_beside_the_weights(self):
        standard = "graph.feature_norm=standard"
        self.succeed("-q", "train", self.config, standard, "run.checkpoint_every=1", "train.epochs=2", ranks=2)
        features = read(self.graph, "nodes/features").astype(np.float64)
        for name, wanted in (("mean", features.mean(axis=0)), ("deviation", features.std(axis=0))):
            found = read(self.checkpoints / "latest", f"features/{name}")
            self.assertEqual(found.dtype, np.float64)
            np.testing.assert_allclose(found[0], wanted, rtol=1e-9, atol=1e-12)
        self.succeed("-q", "train", self.config, standard, "train.epochs=3", ranks=3, overwrite=False)
        set_at(self.graph, "nodes/features", ..., features + np.eye(features.shape[1])[4])
        self.fail_with(2, ["features"], "train", self.config, standard, "train.epochs=4", ranks=2, overwrite=False)

    def test_a_named_checkpoint_may_go_on_otherwise_but_not_within_an_epoch_with_other_batches(self):
        self.cut(2)
        latest = self.checkpoints / "latest"
        elsewhere = f"output.dir={self.folder}/elsewhere"
        output = self.succeed("train", self.config, f"run.restart={latest}", "train.learning_rate=0.01", elsewhere)
        self.assertRegex(output, "warning: .*train.learning_rate = 0.05 there and 0.01 here")
        for override in ("sampler.batch_size=6", "train.batches_per_step=3", "train.seed=7"):
            self.fail_with(2, [override.partition("=")[0], "within an epoch"], "train", self.config, f"run.restart={latest}", override, elsewhere)
        self.cut(2)  # an epoch is done
        self.succeed("-q", "train", self.config, f"run.restart={latest}", "sampler.batch_size=6", elsewhere)
        self.assertEqual(self.report(self.folder / "elsewhere")["epochs"][1]["batches"], 4)


class Damaged(RestartTest):
    def flip(self, path, at):
        content = bytearray(path.read_bytes())
        content[at] ^= 32
        path.write_bytes(content)

    def test_the_one_before_a_damaged_one_is_used(self):
        expected = self.uncut()
        self.cut(3)
        undamaged = self.folder / "undamaged"
        self.checkpoints.rename(undamaged)
        # Other harm is train/checkpoint_test's and faults/flips_test's.
        for k, harm in enumerate((lambda path: self.flip(path, path.stat().st_size // 2), lambda path: path.write_bytes(b""))):
            shutil.rmtree(self.checkpoints, ignore_errors=True)
            shutil.copytree(undamaged, self.checkpoints, symlinks=True)
            older, newer = self.files()
            harm(newer)
            self.assertIsNotNone(damage_of(newer))
            output = self.succeed("train", self.config, "run.checkpoint_every=1", ranks=1 + k % 2, overwrite=False)
            self.assertRegex(output, f"warning: {re.escape(str(newer))}: is .*; trying the checkpoint before it")
            self.assertEqual(self.outcome(), expected, k)
            self.assertEqual(self.report(self.output)["restart"]["checkpoint"], str(older))
            self.assertEqual([damage_of(path) for path in self.files()], [None, None])

    def test_a_whole_one_follows_a_damaged_one_of_the_same_name(self):
        self.cut(3)
        older, newer = self.files()
        self.flip(newer, 4000)
        self.cut(1)
        self.assertEqual(self.files(), [older, newer])
        self.assertIsNone(damage_of(newer))

    def test_where_none_is_whole_it_is_an_error(self):
        self.cut(2)
        for path in self.files():
            self.flip(path, 1000)
        self.fail_with(3, [str(self.checkpoints), "is whole", 'run.restart = "never"'], "train", self.config, ranks=2)
        for path in self.files():
            self.fail_with(3, [str(path), "damaged"], "train", self.config, f"run.restart={path}", ranks=2)

    def test_a_checkpoint_that_cannot_be_written_is_a_warning_on_the_way_and_an_error_at_the_stop(self):
        expected = self.uncut()
        self.output.mkdir()
        self.checkpoints.write_text("a file")
        output = self.succeed("train", self.config, "run.checkpoint_minutes=1e-9", ranks=2)
        self.assertEqual(len(re.findall("warning: cannot save the checkpoint .*; training goes on without it", output)), len(MOMENTS))
        self.assertEqual(self.outcome(), expected)
        self.fail_with(2, ["cannot save the checkpoint", str(self.checkpoints), "output.dir"], "train", self.config, ONE_STEP, ranks=2)
        self.assertEqual(self.checkpoints.read_text(), "a file")


class Signals(RestartTest):
    """On a graph whose training takes seconds."""

    def setUp(self):
        super().setUp()
        self.make_it_last(40)

    def test_a_signal_to_one_rank_stops_all_and_the_same_command_goes_on(self):
        expected = self.uncut()
        for number, ranks, rank in ((signal.SIGTERM, 1, 0), (signal.SIGINT, 3, 2), (signal.SIGUSR2, 2, 1)):
            job = self.under_way(ranks=ranks)
            job.signal(number, rank)
            code, output = job.end()
            self.assert_stopped(code, output, [f"stopped by {number.name}", "the same command"])
            if rank == 0:
                self.assertRegex(output, rf"(?m)^espalier: rank 0 on \S+: {number.name} has come: "
                                         "waiting for the step to end$")
            self.assertRegex(output, f"(?m)^{number.name}: all ranks stop here; saving a checkpoint$")
            self.assertEqual(len(self.files()), 1)
            self.succeed("-q", "train", self.config, ranks=ranks % 3 + 1)
            self.assertEqual(self.outcome(), expected, number.name)
            self.assertGreater(self.report(self.output)["restart"]["epoch"], 2)
            for path in self.checkpoints.iterdir():
                path.unlink()

    def test_sigusr1_saves_once_and_changes_nothing(self):
        expected = self.uncut()
        job = self.under_way(ranks=2)
        self.assertFalse(self.checkpoints.exists())
        job.signal(signal.SIGUSR1, 1)
        job.wait_for(lambda: (self.checkpoints / "latest").exists(), "checkpoint")
        first = (self.checkpoints / "latest").resolve()
        self.assertIsNone(job.process.poll(), "it goes on")
        self.assertIsNone(damage_of(first))
        self.arrives(job, expected)
        self.assertEqual(self.report(self.output)["checkpoints"]["saved"], 2, "this one and the end")
        self.assertIn(first, self.files())
        (self.checkpoints / "latest").unlink()
        (self.files()[-1]).unlink()
        self.succeed("-q", "train", self.config)
        self.assertEqual(self.outcome(), expected, "it is one to go on from")

    def test_a_second_sigterm_ends_at_once_and_leaves_the_last_checkpoint(self):
        # Rank 1 stands still, so rank 0 finishes no step.
        job = Running("train", "--overwrite", self.config, "run.checkpoint_minutes=1e-9", "train.epochs=100000", ranks=2)
        job.wait_for(lambda: (self.checkpoints / "latest").exists(), "checkpoint")
        job.signal(signal.SIGSTOP, 1)
        job.let_it_work(0.5)  # which is more than a step takes
        before = {path: path.read_bytes() for path in self.files()}
        job.signal(signal.SIGTERM, 0)
        job.signal(signal.SIGTERM, 0)  # the same, by another way
        time.sleep(2.1)
        self.assertIsNone(job.process.poll(), "it finishes its step")
        job.signal(signal.SIGTERM, 0)
        code, output = job.end()
        self.assertEqual(code, 128 + signal.SIGTERM, output)
        said = [line for line in output.splitlines() if line.startswith("espalier: ")]
        self.assertEqual(len(said), 2, output)
        self.assertRegex(said[0], r"rank 0 on \S+: SIGTERM has come: waiting for the step to end$")
        self.assertRegex(said[1], r"rank 0 on \S+: SIGTERM while training: the job ends at once; "
                                  "the same command goes on from its last checkpoint")
        self.assertNotIn("stopped by", output)
        self.assertEqual({path: path.read_bytes() for path in self.files()}, before)
        self.assertIsNone(damage_of(self.checkpoints / "latest"))

    def kill_while_saving(self, kills):
        chosen = random.Random(SEED)
        save_all = ("run.checkpoint_minutes=1e-9", "train.epochs=1000000")
        partial = 0
        for attempt in range(kills):
            job = Running("train", "--overwrite", self.config, *save_all)
            latest = self.checkpoints / "latest"
            before = latest.resolve().name if latest.exists() else ""
            job.wait_for(lambda: latest.exists() and latest.resolve().name != before, f"checkpoint of attempt {attempt}, seed {SEED}")
            time.sleep(chosen.uniform(0, 0.2))
            job.process.kill()
            job.end()
            partial += any(name.endswith(".partial") for name in self.names())
            for path in [*self.files(), latest]:
                self.assertIsNone(damage_of(path), f"attempt {attempt}, seed {SEED}")
            self.assertIn(len(self.files()), (1, 2, 3), "a kill may come before the oldest goes")
        return partial

    def test_kills_while_saving_leave_whole_files_only(self):
        self.kill_while_saving(5)
        expected = self.uncut()
        # The job that went on through all kills goes on to the end it would have had.
        about = attributes_of(self.checkpoints / "latest")
        done, history = int(about["epoch"]), json.loads(about["history"])
        self.assertEqual([e["epoch"] for e in history], list(range(1, done)))
        for epoch, there in zip(expected["epochs"], history):
            self.assertEqual((there["loss"], there["sample_digest"]), (epoch["loss"], epoch["sample_digest"]), epoch["epoch"])
        self.stopped([], ONE_STEP, "train.epochs=1000000")
        self.assertEqual([name for name in self.names() if name.endswith(".partial")], [])

    @unittest.skipUnless(LONG, "long: 100 kills")
    def test_long_kills_while_saving_leave_whole_files_only(self):
        self.assertGreater(self.kill_while_saving(100), 0, "none came while a file was half-written")

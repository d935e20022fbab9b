#!/usr/bin/env python3
"""Job scripts on a real SLURM with four virtual nodes on this machine (`make test-slurm`; some ten minutes, most of it waiting for limits).

Laws: training by srun over several nodes gives the bits of one process; a job that its limit cuts, and one whose node dies, come back
and end with the same loss and the same weights as one that nothing happened to; a job that is cancelled stays away; requeues are bounded;
SLURM takes every script of slurm/.

Where there can be no such cluster (not root, no apt) all is skipped, saying why. Closes with `N passed, N failed, N skipped`.
`tests/slurm/run.py NAME...` runs those tests only.
"""

import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.slurm.cluster import NODES, reason_to_skip, start_cluster  # noqa: E402

PROGRAM = ROOT / os.environ.get("ESPALIER", "build/cpu/espalier")
RANKS = 4  # in every job; where they run differs
LONG_SECONDS = 60  # of an uncut job: a limit of one minute acts after 60 to 90 s, its warning 5 to 35 s after the start

CONFIG = """
[graph]
file = "{folder}/graph.h5"
feature_norm = "standard"
[sampler]
fanout = [10, 10]
batch_size = 256
[model]
hidden = 64
layers = 2
dropout = 0.3
[train]
epochs = 3
eval_every = 10
learning_rate = 0.003
lr_schedule = "cosine"
batches_per_step = 4
reproducible = true
[run]
threads = 1
[output]
dir = "{folder}/out"
"""


def result_of(folder):
    """(loss of the last epoch, digest of the weights, test accuracy) of a run."""
    report = json.loads((pathlib.Path(folder) / "report.json").read_text())
    return report["epochs"][-1]["loss"], report["weights_digest"], report["test"]["accuracy"]


def epochs_by_start(output):
    """The epochs that each start of a job printed: [[1, 2, 3], [3, 4]]."""
    return [[int(epoch) for epoch in re.findall(r"^epoch +(\d+) ", part, re.M)]
            for part in re.split(r"^job \d+, start \d+", output, flags=re.M)[1:]]


class JobsTest(unittest.TestCase):
    """A folder with a graph and an input file, which all tests share; jobs are submitted from it."""

    reference = None  # (epochs, result, seconds) of the long job that nothing happens to

    @classmethod
    def setUpClass(cls):
        if reason_to_skip():
            return
        cls.cluster = start_cluster()
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="espalier-jobs-", dir="/tmp"))
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.config = cls.folder / "job.toml"
        cls.config.write_text(CONFIG.format(folder=cls.folder))
        (cls.folder / "slurm").symlink_to(ROOT / "slurm")  # scripts are submitted from the folder that has slurm/
        cls.cluster.run(PROGRAM, "generate", "planted", "--nodes", 40000, "--classes", 8, "--degree", 12, "--homophily", 0.6,
                        "--features", 64, "--seed", 1, "-o", cls.folder / "graph.h5")

    def setUp(self):
        if reason_to_skip():
            self.skipTest(reason_to_skip())
        self.cluster.up()  # a node may be dead

    def srun(self, name, *keys, timeout=400):
        """Trains by srun on four nodes, a rank each; returns the folder of the output."""
        output = self.folder / name
        start = time.monotonic()
        said = self.cluster.run("srun", f"--nodes={NODES}", f"--ntasks={RANKS}", "--kill-on-bad-exit=0", "--wait=10",
                                "sh", "-c", 'echo "on $(hostname)"; exec "$0" "$@"', PROGRAM, "train", self.config,
                                f"output.dir={output}", *keys, timeout=timeout).stdout
        self.assertEqual(sorted(re.findall(r"^on (\S+)", said, re.M)), [f"node{n + 1}" for n in range(NODES)])
        return output, time.monotonic() - start

    def uncut(self):
        """The long job without any accident: (epochs, result); run once. Its length is measured by a short one."""
        if JobsTest.reference is None:
            short, seconds = self.srun("measure", "train.epochs=10")
            report = json.loads((short / "report.json").read_text())
            epoch = sum(line["seconds"]["total"] for line in report["epochs"][2:]) / 8
            epochs = max(20, int(LONG_SECONDS / epoch))
            output, seconds = self.srun("uncut", f"train.epochs={epochs}")
            print(f"\n    uncut: {epochs} epochs in {seconds:.0f} s, {result_of(output)}", flush=True)
            JobsTest.reference = epochs, result_of(output)
        return JobsTest.reference

    def submit_training(self, *options, keys=(), script="train.sbatch", **environment):
        """Submits slurm/train.sbatch itself; what a user edits is given on sbatch's command line."""
        return self.cluster.submit("--account=anybody", "--partition=batch", "--cpus-per-task=1", "--hint=multithread", *options,
                                   ROOT / "slurm" / script, self.config, *keys, cwd=self.folder, ESPALIER=str(PROGRAM), **environment)

    def output_of(self, job):
        return self.folder / "output" / f"espalier-{job.number}"

    def restarts(self, job):
        return int(job.field("Restarts"))

    # ---- The laws ----

    def test_every_script_is_accepted(self):
        scripts = sorted((ROOT / "slurm").glob("*.sbatch"))
        self.assertGreaterEqual({script.name for script in scripts},
                                {"train.sbatch", "perlmutter.sbatch", "perlmutter-cpu.sbatch", "sample.sbatch"})
        for script in scripts:
            with self.subTest(script=script.name):
                done = self.cluster.run("sbatch", "--test-only", "--partition=batch", script, check=False)
                self.assertEqual(done.returncode, 0, done.stdout)
                self.assertRegex(done.stdout, r"Job \d+ to start at")
        # It would say so: more GPUs than a node has.
        done = self.cluster.run("sbatch", "--test-only", "--gpus-per-node=5", ROOT / "slurm" / "perlmutter.sbatch", check=False)
        self.assertNotEqual(done.returncode, 0, done.stdout)

    def test_four_nodes_by_srun_give_the_bits_of_one_process(self):
        output, _ = self.srun("four_nodes")
        self.cluster.run(PROGRAM, "train", self.config, f"output.dir={self.folder}/alone", timeout=200)
        self.assertEqual(result_of(output), result_of(self.folder / "alone"))

    def test_mpirun_inside_an_allocation(self):
        job = self.cluster.submit("--nodes=2", "--ntasks-per-node=2", "--time=5", "--wrap",
                                  f"mpirun sh -c 'echo on $(hostname)' && mpirun {PROGRAM} train {self.config} output.dir={self.folder}/mpirun",
                                  cwd=self.folder)
        self.assertEqual(job.wait_for_end(120), "COMPLETED", job.output())
        output, _ = self.srun("by_srun")
        self.assertEqual(result_of(self.folder / "mpirun"), result_of(output))

    def test_a_job_cut_by_its_limit_comes_back_and_ends_as_if_uncut(self):
        epochs, expected = self.uncut()
        job = self.submit_training("--nodes=4", "--ntasks-per-node=1", "--time=1", "--signal=B:USR1@25", keys=[f"train.epochs={epochs}"])
        self.assertEqual(job.wait_for_end(600), "COMPLETED", job.output())
        starts = epochs_by_start(job.output())
        print(f"\n    {self.restarts(job)} requeues; epochs by start: {[(s[0], s[-1]) if s else () for s in starts]}", flush=True)
        self.assertGreaterEqual(self.restarts(job), 1, job.output())
        self.assertEqual(len(starts), self.restarts(job) + 1, job.output())
        self.assertRegex(job.output(), r"saved and stopped; requeueing, number \d")
        self.assertGreater(starts[-1][0], 1, "the last start began anew:\n" + job.output())
        self.assertEqual(result_of(self.output_of(job)), expected)

    def check_that_a_job_survives_the_death_of_a_node(self, which):
        epochs, expected = self.uncut()
        job = self.submit_training("--nodes=2", "--ntasks-per-node=2", "--time=30",
                                   keys=[f"train.epochs={epochs}", f"run.checkpoint_every={max(2, epochs // 10)}"])
        job.wait_for("checkpoint", (self.output_of(job) / "checkpoints" / "latest").exists, 120)
        time.sleep(2)  # some work beyond the checkpoint, which is lost
        dead = job.nodes()[which]
        self.cluster.kill_node(dead)
        self.assertEqual(job.wait_for_end(400), "COMPLETED", job.output())
        starts = epochs_by_start(job.output())
        print(f"\n    {dead} died; epochs by start: {[(s[0], s[-1]) if s else () for s in starts]}", flush=True)
        self.assertEqual(self.restarts(job), 1, job.output())
        self.assertIn("down", self.cluster.state_of_node(dead))
        self.assertNotIn(dead, job.nodes())
        self.assertGreater(starts[-1][0], 1, "the last start began anew:\n" + job.output())
        self.assertEqual(result_of(self.output_of(job)), expected)

    def test_a_job_whose_node_dies_comes_back_and_ends_as_if_nothing_had_happened(self):
        self.check_that_a_job_survives_the_death_of_a_node(-1)

    def test_a_job_whose_first_node_dies_comes_back_too(self):
        """The batch script runs there, and rank 0, which writes the checkpoints."""
        self.check_that_a_job_survives_the_death_of_a_node(0)

    def test_a_killed_rank_ends_the_run_and_the_job_comes_back(self):
        job = self.submit_training("--nodes=2", "--ntasks-per-node=2", "--time=30", keys=["train.epochs=10000", "run.checkpoint_every=1"])
        job.wait_for_output(r"^epoch +3 ", 60)
        ranks = self.cluster.processes(PROGRAM, f"output.dir=output/espalier-{job.number}")
        self.assertEqual(len(ranks), RANKS)
        os.kill(ranks[-1], 9)
        start = time.monotonic()
        job.wait_for_output(r"the run died with exit code \d+, having saved a checkpoint since it started; requeueing, number 1", 60)
        self.assertLess(time.monotonic() - start, 15, job.output())
        job.wait_for("second start", lambda: len(epochs_by_start(job.output())) == 2 and epochs_by_start(job.output())[1], 90)
        self.assertGreaterEqual(epochs_by_start(job.output())[1][0], 3, job.output())
        job.cancel()
        job.wait_for_end(60)

    def test_requeues_are_bounded(self):
        job = self.submit_training("--nodes=1", "--ntasks-per-node=2", "--time=30", keys=["train.epochs=10000"], MAX_REQUEUES="0")
        job.wait_for_output(r"^epoch +2 ", 60)
        job.signal_batch_shell("USR1")
        self.assertEqual(job.wait_for_end(60), "FAILED", job.output())
        self.assertEqual((job.field("ExitCode"), self.restarts(job)), ("5:0", 0), job.output())
        self.assertIn(f"submit it again with output.dir=output/espalier-{job.number}", job.output())
        self.assertTrue((self.output_of(job) / "checkpoints" / "latest").exists(), job.output())

    def test_a_cancelled_job_stays_away(self):
        job = self.submit_training("--nodes=2", "--ntasks-per-node=1", "--time=30", keys=["train.epochs=10000"])
        job.wait_for_output(r"^epoch +2 ", 60)
        job.cancel()
        job.wait_for_output(r"exit code \d+; output in", 60)
        self.assertEqual(job.wait_for_end(60), "CANCELLED", job.output())
        time.sleep(3)
        self.assertEqual((job.field("JobState"), self.restarts(job)), ("CANCELLED", 0), job.output())

    def test_a_wrong_key_is_not_tried_again(self):
        job = self.submit_training("--nodes=2", "--ntasks-per-node=1", "--time=30", keys=["train.epoch=3"])
        self.assertEqual(job.wait_for_end(60), "FAILED", job.output())
        self.assertEqual((job.field("ExitCode"), self.restarts(job)), ("2:0", 0), job.output())
        self.assertIn("train.epochs", job.output())


def main():
    names = [f"JobsTest.{name}" for name in sys.argv[1:]]
    loader = unittest.defaultTestLoader
    tests = loader.loadTestsFromNames(names, sys.modules[__name__]) if names else loader.loadTestsFromTestCase(JobsTest)
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2).run(tests)
    failed = len({test.id().split(" ")[0] for test, _ in result.failures + result.errors})
    skipped = len(result.skipped)
    print(f"{max(result.testsRun - failed - skipped, 0)} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or result.testsRun == 0 else 0


if __name__ == "__main__":
    sys.exit(main())

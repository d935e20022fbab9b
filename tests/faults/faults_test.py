"""Ranks that die, stall, run out of memory or fail alone: the job ends within seconds, with a message, and goes on from its
last checkpoint to the very weights of a run that nothing happened to.

Moments are random; the seed is printed, and taken from ESPALIER_SEED. With --long: 20 moments.
"""

import os
import random
import re
import signal
import subprocess
import sys
import time
import unittest

from tests.app.program import LONG, PROGRAM, ProgramTest
from tests.app.restart_test import damage_of
from tests.app.running import LAUNCHER_HUNG, Job
from tests.launcher import LAUNCHER

PATIENCE = 10  # seconds that a job may take to end after one of its ranks did
EPOCHS = 16
SEED = int(os.environ.get("ESPALIER_SEED", random.randrange(1 << 30)))

JOB = ("sampler.fanout=[5, 5]", "sampler.batch_size=50", "model.hidden=64", "model.layers=2", 'model.normalize="batch"', f"train.epochs={EPOCHS}",
       "train.batches_per_step=4", "train.reproducible=true", "run.threads=1", 'run.device="cpu"', "run.checkpoint_minutes=0.0005")

UNDISTURBED = []  # what came of it


class FaultTest(ProgramTest):
    JOB = JOB
    GENERATE = ("planted", "--nodes", 20000 if LONG else 6000, "--degree", 8, "--classes", 5, "--features", 16)

    def undisturbed(self):
        """(weights digest, seconds that the job takes), of one run in a process."""
        if not UNDISTURBED:
            UNDISTURBED.append(self.run_undisturbed())
        return UNDISTURBED[0]

    def run_undisturbed(self):
        job = Job("train", self.config, f"output.dir={self.folder}/undisturbed", "run.checkpoint_minutes=0")
        code, text, seconds = job.end(200)
        self.assertEqual(code, 0, text)
        return self.report(self.folder / "undisturbed")["weights_digest"], seconds


class Killed(FaultTest):
    def assert_whole(self, folder):
        """All ranks were writing them: what has the name of a checkpoint is one all the same."""
        for path in folder.glob("epoch*.h5"):
            self.assertIsNone(damage_of(path), f"seed {SEED}")

    def kill_and_restart(self, moments, wait):
        """`wait(job, random, seconds)` waits for the moment to kill, in a job that would take so many seconds."""
        expected, seconds = self.undisturbed()
        chosen = random.Random(SEED)
        print(f"\nnote: ESPALIER_SEED={SEED}: {moments} moments in {seconds:.1f} s", file=sys.stderr)
        killed = restarted = hung = 0
        longest = 0.0
        for attempt in range(moments):
            output = self.folder / f"out{attempt}"
            arguments = ["train", self.config, f"output.dir={output}"]
            job = Job(*arguments)
            wait(job, chosen, seconds)
            hit = job.signal_one(signal.SIGKILL, chosen.choice)
            code, text, waited = job.end(PATIENCE if hit else 200)
            self.assertIsNotNone(code, f"seed {SEED}, attempt {attempt}: hangs {PATIENCE} s after a rank was killed\n{text}")
            if code == LAUNCHER_HUNG:
                hung += 1
            else:
                longest = max(longest, waited)
            killed += hit and code != 0
            self.assert_whole(output / "checkpoints")
            if code != 0:
                self.assertFalse((output / "report.json").exists(), text)
                code, text, _ = Job(*arguments).end(200)
                self.assertEqual(code, 0, f"seed {SEED}, attempt {attempt}: {text}")
                restarted += bool(re.search("^restart ", text, re.M))
            report = self.report(output)
            self.assertEqual(report["weights_digest"], expected, f"seed {SEED}, attempt {attempt}")
            self.assertEqual([epoch["epoch"] for epoch in report["epochs"]], list(range(1, EPOCHS + 1)))
        print(f"note: {killed} jobs killed, {restarted} of them went on from a checkpoint; the longest end took {longest:.2f} s; "
              f"mpirun itself hung {hung} times after its ranks had ended", file=sys.stderr)
        return killed, restarted

    def test_one_rank_killed_and_restarted_gives_the_same_weights(self):
        def wait(job, chosen, seconds):
            job.wait_for_epoch(chosen.randrange(4, EPOCHS // 2))
            time.sleep(chosen.uniform(0, 0.2 * seconds / EPOCHS))

        killed, restarted = self.kill_and_restart(2, wait)
        self.assertEqual((killed, restarted), (2, 2))

    @unittest.skipUnless(LONG, "heavy: --long")
    def test_Long_20_moments(self):
        killed, restarted = self.kill_and_restart(20, lambda job, chosen, seconds: time.sleep(chosen.uniform(0, seconds)))
        self.assertGreaterEqual(killed, 10)  # others hit the job before its ranks started, or after its end
        self.assertGreaterEqual(restarted, 5)

    def test_killed_again_and_again_by_other_grids_it_still_arrives(self):
        expected, seconds = self.undisturbed()
        chosen = random.Random(SEED + 1)
        arguments = ["train", self.config, f"output.dir={self.folder}/out"]
        steps = []
        for ranks, copies in ((4, 2), (3, 1), (2, 2)):
            job = Job(*arguments, f"grid.replication={copies}", ranks=ranks)
            time.sleep(chosen.uniform(0.2, 0.6) * seconds)
            job.signal_one(signal.SIGKILL, chosen.choice)
            code, text, _ = job.end(PATIENCE)
            self.assertIsNotNone(code, f"seed {SEED}: hangs {PATIENCE} s after a rank was killed\n{text}")
            self.assert_whole(self.folder / "out" / "checkpoints")
            steps.append(sorted(path.name for path in (self.folder / "out" / "checkpoints").glob("epoch*.h5")))
        code, text, _ = Job(*arguments, ranks=4).end(200)
        self.assertEqual(code, 0, text)
        self.assertEqual(self.report(self.folder / "out")["weights_digest"], expected, f"seed {SEED}: {steps}")


class Stalled(FaultTest):
    def test_the_watchdog_says_where_ranks_are_and_ends_the_job(self):
        job = Job("train", self.config, "run.stall_minutes=0.03", "train.epochs=100000", ranks=3)
        job.wait_for_epoch(1)
        stopped = job.rank_pids()[-1]
        os.kill(stopped, signal.SIGSTOP)
        code, text, seconds = job.end(30)
        try:
            os.kill(stopped, signal.SIGKILL)  # a stopped process does not hear that its job has ended
        except ProcessLookupError:
            pass
        self.assertEqual(code, 1, text)
        places = re.findall(r"rank (\d) on .*: no step has finished for .* minutes: epoch (\d+), step (\d+) of \d+, "
                            r"(?:stage \S+, )?inside of (.+) \"\S*\" of \d ranks for \d+ s", text)
        # The one that stands still says nothing before the others end the job (which wakes it).
        self.assertEqual({rank for rank, *_ in places[:2]}, {"0", "1"}, text)
        self.assertIn("run.stall_minutes = 0.03", text)
        self.assertLess(seconds, PATIENCE)

    def test_a_job_that_moves_is_left_alone(self):
        for minutes in (0.02, 0.1, 0.8):  # the later ones where a machine is so busy that a step takes longer than that
            code, text, _ = Job("train", self.config, f"run.stall_minutes={minutes}", f"run.max_minutes={2.5 * minutes}",
                                "train.epochs=100000", "run.restart=never", ranks=2).end(200)
            if "no step has finished" not in text:
                break
        self.assertEqual(code, 5, text)
        self.assertNotIn("no step has finished", text)


# As users have it: the launcher ends the ranks with SIGTERM, and kills them a second later.
AS_USERS_HAVE_IT = dict(os.environ, **LAUNCHER.patient)


class LastWords(FaultTest):
    def lines_of(self, text):
        return [line for line in text.splitlines() if line.startswith("espalier: ")]

    @unittest.skipIf(LAUNCHER.silences_survivors, f"{LAUNCHER.kind.name} kills those beside a killed rank at once")
    def test_survivors_name_a_killed_rank(self):
        for which in (0, 3):
            job = Job("train", self.config, "train.epochs=100000", "run.checkpoint_minutes=0",
                      env=AS_USERS_HAVE_IT)
            job.wait_for_epoch(1)
            killed = LAUNCHER.pids_of_ranks(job.process.pid)[which]
            os.kill(killed, signal.SIGKILL)
            code, text, seconds = job.end(PATIENCE)
            self.assertEqual(code, 128 + signal.SIGKILL, text)
            lines = self.lines_of(text)
            self.assertEqual(len(lines), 1, text)
            self.assertRegex(lines[0], rf"rank \d on \S+: rank {which} \(process {killed}\) of this node "
                             "has died while training: the job ends at once; the same command goes on "
                             "from its last checkpoint, if it saved one$")
            self.assertLess(seconds, PATIENCE)

    def test_an_error_stands_alone(self):
        """mpirun sends SIGTERM to all when one has left: no reason for the others to say more."""
        for _ in range(20 if LONG else 4):
            done = subprocess.run(LAUNCHER.command(4, PROGRAM, "train", self.config, "graph.file=nothing.h5"), stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=60, env=AS_USERS_HAVE_IT)
            self.assertEqual(done.returncode, 3, done.stdout)
            self.assertRegex(done.stdout, r"\Aespalier: error: graph file nothing.h5: no such file.*\n\Z")


class FailingAlone(FaultTest):
    def run_in_child_process(self, command_of_last, *arguments):
        """Three ranks, the last of them started by another command."""
        start = time.monotonic()
        done = subprocess.run(LAUNCHER.parts((2, [PROGRAM, *arguments]), (1, command_of_last)),
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        return done.returncode, done.stdout, time.monotonic() - start

    def test_a_rank_out_of_memory_ends_the_job_with_its_message(self):
        arguments = ["train", self.config, "model.hidden=6000", "model.layers=3", "sampler.fanout=[2,2,2]"]
        limited = ["bash", "-c", 'ulimit -v 900000; exec "$@"', "-", PROGRAM, *arguments]
        code, text, seconds = self.run_in_child_process(limited, *arguments)
        self.assertEqual(code, 4, text)
        self.assertRegex(text, r"rank 2 on \S+: out of memory; use more ranks")
        self.assertLess(seconds, 20)

    def test_a_rank_with_an_error_of_its_own_does_not_leave_the_others_waiting(self):
        code, text, seconds = self.run_in_child_process([PROGRAM, "train", self.config, "train.epochs=none"], "train", self.config)
        self.assertEqual(code, 2, text)
        self.assertRegex(text, r"rank 2 on \S+: .*train.epochs")
        self.assertLess(seconds, 2 * PATIENCE)

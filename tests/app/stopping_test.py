"""Jobs that are stopped before there is anything to save: while they load, import, generate, plan or sample.

Laws: SIGTERM, SIGINT and SIGUSR2, to one rank or to all, end the job at once with 128 + the signal's
number and exactly one line, which says which signal it was, what was being done, and what that
means; SIGUSR1 ends nothing, and is obeyed when training begins. Whatever ends a job, signals to any
rank, a rank that is killed, memory that runs out, nothing is left beside the file it was writing.
"""

import os
import pathlib
import re
import signal
import subprocess
import tempfile
import unittest

import numpy as np

from tests.app.other_formats import ogb_csv
from tests.app.plain_graph import PAIR, Edges, PlainGraph, Vertices
from tests.app.program import PROGRAM, ProgramTest, espalier
from tests.app.running import Running
from tests.launcher import LAUNCHER

ENVIRONMENT = dict(os.environ, **LAUNCHER.patient)


class StoppedTest(ProgramTest):
    def start(self, *arguments, ranks=1):
        run = Running(*arguments, ranks=ranks, env=ENVIRONMENT)
        self.addCleanup(run.process.kill)
        return run

    def end(self, run):
        code, output = run.end(120)
        return code, [line for line in output.splitlines() if line.startswith("espalier: ")], output

    def assert_stopped(self, run, number, words, then):
        code, lines, output = self.end(run)
        self.assertIn(code, (-number, 128 + number), output)
        self.assertEqual(len(lines), 1, output)
        self.assertRegex(lines[0], rf"rank \d on \S+: {number.name} while {words}: the job ends at once{then}$")


def write_ogb(folder, edges, nodes=1000):
    """A folder to import, with so many random edges; the words of its import."""
    random = np.random.default_rng(1)
    vertices = Vertices(nodes, random.random((nodes, 1)).round(3), labels=random.integers(4, size=nodes))
    return ogb_csv(PlainGraph({"": vertices}, {PAIR: Edges(*random.integers(nodes, size=(2, edges)))}), folder, None)


class Writing(StoppedTest):
    """import and generate, while their file is half written."""

    @classmethod
    def setUpClass(cls):
        shared = tempfile.TemporaryDirectory(prefix="espalier-test-")
        cls.addClassCleanup(shared.cleanup)
        cls.ogb = write_ogb(pathlib.Path(shared.name) / "ogb", 300_000)

    def setUp(self):
        super().setUp()
        self.out = self.folder / "out"
        self.out.mkdir()
        self.importing = [*self.ogb, "-o", self.out / "x.h5"]
        self.generating = ["generate", "planted", "--nodes", 400_000, "--degree", 8, "--features", 64,
                           "-o", self.out / "x.h5"]

    def half_written(self, *arguments, ranks=1):
        run = self.start(*arguments, ranks=ranks)
        partial = re.compile(r"x\.h5\.partial-\d+")
        run.wait_for(lambda: any(partial.fullmatch(path.name) for path in self.out.iterdir()), "file that is half written")
        return run

    def assert_stopped(self, run, number, words):
        super().assert_stopped(run, number, words, "; no graph file was written")
        self.assertEqual(list(self.out.iterdir()), [])

    def test_signals_to_one_process(self):
        for arguments, words, number in ((self.importing, "importing", signal.SIGTERM), (self.importing, "importing", signal.SIGINT),
                                         (self.generating, "generating", signal.SIGUSR2)):
            run = self.half_written(*arguments)
            run.signal(number, 0)
            self.assert_stopped(run, number, words)

    def test_a_signal_to_one_of_three_ranks(self):
        for arguments, words, rank in ((self.importing, "importing", 2),
                                       (self.generating, "generating", 1)):
            run = self.half_written(*arguments, ranks=3)
            run.signal(signal.SIGTERM, rank)
            self.assert_stopped(run, signal.SIGTERM, words)

    def test_a_signal_to_mpirun(self):
        run = self.half_written(*self.generating, ranks=3)
        run.process.send_signal(signal.SIGUSR2)
        self.assert_stopped(run, signal.SIGUSR2, "generating")

    @unittest.skipIf(LAUNCHER.silences_survivors, f"{LAUNCHER.kind.name} kills those beside a killed rank at once")
    def test_ranks_that_are_killed(self):
        for killed in ((0,), (0, 1)):
            run = self.half_written(*self.generating, ranks=3)
            for rank in killed:
                run.signal(signal.SIGKILL, rank)
            code, lines, output = self.end(run)
            self.assertEqual(code, 137, output)
            self.assertEqual(len(lines), 1, output)
            self.assertRegex(lines[0], rf"rank [12] on \S+: rank [{max(killed)}0] \(process \d+\) of this node has died "
                                       "while generating: the job ends at once")
            self.assertEqual(list(self.out.iterdir()), [])

    def test_memory_that_runs_out(self):
        for ranks in (1, 2):
            limited = ["bash", "-c", 'ulimit -v 900000; exec "$@"', "-", PROGRAM, "generate", "planted",
                       "--nodes", "400000", "--degree", "8", "--features", "1000",
                       "-o", str(self.out / "x.h5")]
            done = subprocess.run(LAUNCHER.command(ranks, *limited), stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=60, env=ENVIRONMENT)
            self.assertEqual(done.returncode, 4, done.stdout)
            self.assertIn("out of memory", done.stdout)
            self.assertEqual(list(self.out.iterdir()), [])


class Loading(StoppedTest):
    """train, sample, plan and info, while they read a graph that takes a second."""

    JOB = ("sampler.fanout=[2, 2]", "sampler.batch_size=5000", "model.hidden=4", "model.layers=2", "train.epochs=1", "run.threads=1",
           'run.device="cpu"')

    @classmethod
    def setUpClass(cls):
        shared = tempfile.TemporaryDirectory(prefix="espalier-test-")
        cls.addClassCleanup(shared.cleanup)
        cls.large = pathlib.Path(shared.name) / "graph.h5"
        code, output = espalier("-q", "generate", "planted", "--nodes", 150_000, "--degree", 8,
                                "--features", 256, "--half", "-o", cls.large)
        if code != 0:
            raise AssertionError(output)

    def setUp(self):
        super().setUp()
        self.graph = self.large
        self.write_job()

    def reads(self, pid):
        """Has this process opened the graph?"""
        files = pathlib.Path(f"/proc/{pid}/fd")
        try:
            return any(os.readlink(file) == str(self.graph) for file in files.iterdir())
        except OSError:
            return False

    def loading(self, *arguments, ranks=1):
        """A job that is reading the graph."""
        run = self.start(*arguments, ranks=ranks)

        def all_read():
            run.pids = run.pids_of_ranks()
            return len(run.pids) == ranks and all(map(self.reads, run.pids.values()))

        run.wait_for(all_read, "graph that all ranks read")
        return run

    def assert_stopped(self, run, number, then):
        super().assert_stopped(run, number, "[a-z ,]+", then)

    def test_train_says_that_nothing_is_lost(self):
        run = self.loading("train", self.config)
        run.signal(signal.SIGTERM, 0)
        self.assert_stopped(run, signal.SIGTERM, "; nothing is lost; the same command starts again")
        self.succeed("-q", "train", self.config, "run.checkpoint_every=1")
        run = self.loading("train", self.config, "train.epochs=2", ranks=3)
        run.signal(signal.SIGUSR2, 2)
        self.assert_stopped(run, signal.SIGUSR2, "; nothing is lost; the same command goes on from its checkpoint")
        output = self.succeed("train", self.config, "train.epochs=2", overwrite=False)
        self.assertRegex(output, "(?m)^restart .*1 epoch done")

    def test_other_commands(self):
        for arguments, number in ((["sample", self.config], signal.SIGINT),
                                  (["plan", self.config, "--ranks", 4], signal.SIGTERM),
                                  (["info", self.graph], signal.SIGTERM)):
            run = self.loading(*arguments)
            run.signal(number, 0)
            self.assert_stopped(run, number, "")

    def test_what_a_killed_job_left_taken_holds_nobody_up(self):
        # Open MPI can name a semaphore of the node after the file: one killed at the wrong moment leaves it at 0.
        graph = self.folder / f"taken-{os.getpid()}.h5"
        taken = pathlib.Path("/dev/shm") / f"sem.OMPIO_{graph.name}"
        if not os.access(taken.parent, os.W_OK):
            self.skipTest("no /dev/shm")
        self.succeed("-q", "generate", "planted", "--nodes", 100, "--degree", 4, "-o", graph)
        self.addCleanup(taken.unlink, missing_ok=True)
        taken.write_bytes(bytes(32))
        for ranks in (1, 2):
            self.succeed("sample", self.config, f"graph.file={graph}", ranks=ranks, timeout=30)

    def test_a_checkpoint_that_is_asked_for_is_saved_when_training_begins(self):
        run = self.loading("train", self.config, ranks=2)
        run.signal(signal.SIGUSR1, 1)
        code, _, output = self.end(run)
        self.assertEqual(code, 0, output)
        self.assertRegex(output, "(?m)^saved .*/epoch-0001-step-000001.h5")

    def test_a_stall(self):
        stalled = []
        elsewhere = f"output.dir={self.folder}/elsewhere"
        for arguments, key in ((["train", self.config], "run.stall_minutes"),
                               (["sample", self.config, elsewhere], "run.stall_minutes"),
                               (["info", self.graph], "--stall-minutes")):
            run = self.loading(*arguments, f"{key}=0.05", ranks=2)
            run.signal(signal.SIGSTOP, 1)
            stalled.append((run, key))
        for run, key in stalled:
            code, lines, output = self.end(run)
            self.assertEqual(code, 1, output)
            # The other may wake up and speak too.
            lines = [line for line in lines if line.startswith("espalier: rank 0 ")]
            self.assertEqual(len(lines), 2, output)
            self.assertRegex(lines[0], r"nothing has moved for \S+ minutes: [a-z ,]+, "
                                       r"(inside|out) of .+ \"[^\"]*\" of 2 ranks for \d+ s")
            self.assertIn(f"({key} = 0.05); the job ends", lines[1])

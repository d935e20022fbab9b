"""A job in Python: its own network is the program's; what cannot be done is refused in one line; a
rank that fails ends the others.
"""

import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np

from tests.app.program import (
    EMULATED,
    PROGRAM,
    ROOT,
    ProgramTest,
    arrays_of,
    awkward_graph,
    run_python,
)
from tests.launcher import LAUNCHER
from tests.python import LIBRARY, ON_GPUS, DataTest, needs_library, needs_library_on_gpus
from tests.python.on_ranks import run_on

import espalier


@needs_library
class Jobs(DataTest, ProgramTest):
    JOB = (
        "model.layers=2",
        "model.hidden=8",
        "sampler.fanout=[3,2]",
        "sampler.batch_size=4",
        "train.epochs=2",
        "train.batches_per_step=4",
        "train.reproducible=true",
        "run.threads=1",
    )
    GENERATE = staticmethod(awkward_graph)


class OwnNetwork(Jobs):
    def test_it_is_the_programs(self):
        self.is_that_of(PROGRAM, LIBRARY, "cpu")

    @needs_library_on_gpus
    def test_on_gpus(self):
        self.is_that_of(EMULATED, ON_GPUS, "cuda:0")

    def is_that_of(self, program, library, device):
        self.succeed("-q", "train", self.config, ranks=2, program=program)
        report, weights = self.report(self.output), espalier.read_weights(self.output)[0]
        rows, trained = self.folder / "rows.h5", self.output / "weights.h5"
        self.succeed(
            "-q", "infer", self.config, "--checkpoint", trained, "-o", rows, program=program
        )
        logits = arrays_of(rows)["logits"]
        environment = dict(os.environ, ESPALIER_LIBRARY=str(library))
        for ranks in (1, 3):
            code, said, found = run_on(ranks, "own_network", self.folder, env=environment)
            self.assertEqual(code, 0, said)
            self.assertEqual({of["device"] for of in found}, {device})
            for rank, of in enumerate(found):
                for epoch, expected in zip(of["epochs"], report["epochs"], strict=True):
                    self.assertEqual(
                        (epoch.epoch, epoch.loss), (expected["epoch"], expected["loss"])
                    )
                    self.assertEqual(epoch.digest, int(expected["sample_digest"], 16))
                losses = [epoch["loss"] for epoch in of["trained"]]
                self.assertEqual(losses, [report["epochs"][0]["loss"]])
                self.assertEqual(set(of["weights"]), set(weights))
                for name, values in weights.items():
                    np.testing.assert_array_equal(of["weights"][name].ravel(), values.ravel(), name)
                self.assertEqual(of["epochs"][-1].best_epoch, report["best_epoch"])
                scores = {name: report[name]["accuracy"] for name in ("train", "test")}
                best = report["epochs"][report["best_epoch"] - 1]
                self.assertEqual(of["evaluated"], {**scores, "valid": best["valid"]["accuracy"]})
                asked = logits[7 * np.arange(rank, 50, ranks) % 50]
                # cuBLAS sums a row in an order that depends on how many rows there are.
                np.testing.assert_allclose(of["rows"], asked, rtol=0 if device == "cpu" else 1e-6)
                self.assertEqual(of["without"].shape, (rank == 0, 3))
                self.assertEqual(np.abs(of["without"]).sum(), 0)

    def test_train_sample_and_infer_of_the_program(self):
        trained = espalier.train(self.config, ranks=2, train={"epochs": 1})
        self.assertEqual((trained["ranks"], len(trained["epochs"])), (2, 1))
        self.succeed("-q", "train", self.config, "train.epochs=1")
        losses = [epoch["loss"] for epoch in self.report(self.output)["epochs"]]
        self.assertEqual([epoch["loss"] for epoch in trained["epochs"]], losses)
        batches, rows = self.folder / "batches", self.folder / "rows.h5"
        drawn = espalier.sample(self.config, epochs=2, write=batches, **{"train.seed": 4})
        self.assertEqual(
            drawn["epochs"][1]["sample_digest"],
            espalier.Minibatches(batches).about["sample_digests"][1],
        )
        self.succeed("-q", "train", self.config)
        weights = self.output / "weights.h5"
        found = espalier.read_rows(
            espalier.infer(self.config, weights, rows, "--predictions", ranks=2)
        )
        self.assertEqual(found.values.shape, (50, 3))
        self.refused(
            "ended with 2", espalier.train, self.config, ranks=1, model={"kind": "nothing"}
        )


class Library(Jobs):
    CODE = "import espalier; print(espalier.open(%r).ranks)"

    def said(self, **environment):
        environment = {"PYTHONPATH": str(ROOT / "python"), **environment}
        for name, value in os.environ.items():
            if name != "ESPALIER_LIBRARY":
                environment.setdefault(name, value)
        done = run_python("-c", self.CODE % str(self.config), env=environment)
        return done.stdout + done.stderr.strip().rpartition("\n")[2]

    def test_where_it_is_looked_for(self):
        self.assertEqual(self.said(), "1\n")
        self.assertIn("cannot load nowhere.so", self.said(ESPALIER_LIBRARY="nowhere.so"))
        other, source = self.folder / "libespalier.so", self.folder / "other.c"
        source.write_text('const char* espalier_version(void) { return "9.9"; }\n')
        subprocess.run(["cc", "-shared", "-fPIC", source, "-o", other], check=True)
        self.assertIn(
            "has version 9.9, and this package is of", self.said(ESPALIER_LIBRARY=str(other))
        )
        self.assertIn("is no library of Espalier", self.said(ESPALIER_LIBRARY="libm.so.6"))

    def test_installed(self):
        """PREFIX/lib/python3/espalier finds PREFIX/lib; without one it says what to build."""
        package = shutil.copytree(ROOT / "python/espalier", self.folder / "lib/python3/espalier")
        own = {"PYTHONPATH": str(package.parent)}
        self.assertIn("`make` in a checkout builds it", self.said(**own))
        (self.folder / "lib/libespalier.so").symlink_to(LIBRARY)
        self.assertEqual(self.said(**own), "1\n")

    def test_torchrun(self):
        words = self.said(WORLD_SIZE="4", RANK="1")
        self.assertIn("start them by `mpirun --bind-to none -np 4 python -c`", words)


class Ranks(Jobs):
    def ends(self, how, code, *words):
        begin = time.monotonic()
        ended, said, _ = run_on(2, "fails", self.folder, how)
        self.assertEqual(ended, code, said)
        self.assertLess(time.monotonic() - begin, 60)
        for word in words:
            self.assertRegex(said, word)
        return said

    def test_a_rank_that_fails_ends_all(self):
        for how in ("with", "bare"):
            said = self.ends(how, 1, "Traceback", "KeyError: 'of one rank'", "rank 1")
            self.assertEqual(said.count("Traceback"), 1, said)

    def test_what_all_ranks_are_refused_is_said_once(self):
        for how, word in (("agreed", "nowhere"), ("config", "model.kind")):
            said = self.ends(how, 1, word)
            self.assertEqual(said.count("Traceback"), 1, said)

    def test_interrupted_in_a_loop_that_is_left(self):
        said = self.ends("left", 130, "KeyboardInterrupt", "rank 1")
        self.assertEqual(said.count("Traceback"), 1, said)

    def test_interrupted_while_it_waits(self):
        command = LAUNCHER.command(
            2, sys.executable, "-m", "tests.python.on_ranks", "fails", self.folder, "interrupted"
        )
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        with subprocess.Popen(command, cwd=ROOT, **pipes) as process:
            self.addCleanup(process.kill)
            self.assertIn("rank 1 sleeps", process.stdout.readline())
            time.sleep(1)
            os.kill(LAUNCHER.pids_of_ranks(process.pid)[0], signal.SIGINT)
            begin = time.monotonic()
            said = process.stdout.read()
        self.assertLess(time.monotonic() - begin, 20)
        self.assertIn("KeyboardInterrupt", said)
        self.assertNotEqual(process.returncode, 0)

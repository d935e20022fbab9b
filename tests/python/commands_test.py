"""espalier report and sweep are the package's, by the program that was called; without the package one error says what to do."""

import os
import sys

from tests.app.program import ROOT, ProgramTest, espalier
from tests.python import DataTest

KEYS = ("train.epochs=2", "run.threads=1")


class Commands(DataTest, ProgramTest):
    GENERATE = ("planted", "--nodes", 600, "--classes", 4, "--features", 8, "--seed", 1)
    JOB = ("model.hidden=8", "model.layers=2", "sampler.fanout=[3, 3]", "sampler.batch_size=64")

    def setUp(self):
        super().setUp()
        self.env = dict(os.environ, PYTHONPATH=str(ROOT / "python"))
        self.env["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), self.env["PATH"]])

    def test_a_sweep_trains_by_the_program_that_was_called_and_ends_with_its_page(self):
        folder = self.folder / "sweep"
        output = self.succeed("sweep", self.config, "train.seed=0..1", *KEYS, "-o", folder, "-n", 2, env=self.env)
        runs = sorted(path.parent for path in folder.glob("*/report.json"))
        self.assertEqual([(run["ranks"], run["config"]["train"]["seed"]) for run in map(self.report, runs)], [(2, 0), (2, 1)])
        self.assertTrue(output.endswith(f"{folder / 'report.html'}\n"), output)
        page = self.folder / "page.html"
        self.assertEqual(self.succeed("report", *runs, "-o", page, env=self.env), f"{page}\n")
        self.assertEqual(page.read_text(), (folder / "report.html").read_text())

    def test_errors_and_their_exit_codes(self):
        self.fail_with(3, ["report.json"], "-q", "report", self.folder / "nothing", env=self.env)
        code, said = espalier("report", env=self.env)
        self.assertEqual((code, said.splitlines()[0].startswith("usage: espalier report")), (2, True), said)
        bare = self.folder / "bare"
        bare.mkdir()
        self.script("bare/python3", f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')  # finds no package
        self.fail_with(2, ["pip install ./python"], "report", self.folder, env={**self.env, "PATH": str(bare)})
        self.fail_with(2, ["needs python3"], "sweep", self.config, env={**self.env, "PATH": str(self.folder)})

    def test_help_names_them(self):
        for name in ("report", "sweep"):
            self.assertIn("pip install ./python", self.succeed("help", name))

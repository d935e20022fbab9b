"""A sweep runs every combination of its values once, and reports those that end well.

A program that copies a report stands in for training; the third run fails where it is told to.
"""

import contextlib
import io
import itertools
import json

import numpy as np

from tests.app.program import FolderTest
from tests.python import SEED, DataTest
from tests.python.report_test import random_report

from espalier import sweep

PROGRAM = """#!/bin/sh
# train CONFIG KEYS.. output.dir=DIR
echo "$*" >> calls
for of; do :; done
case "$*" in *train.seed=2*) exit %d;; esac
mkdir -p "${of#output.dir=}" && cp given.json "${of#output.dir=}/report.json"
"""


class Sweeps(DataTest, FolderTest):
    def setUp(self):
        DataTest.setUp(self)
        FolderTest.setUp(self)
        written = random_report(np.random.default_rng(SEED), 0)
        (self.folder / "given.json").write_text(json.dumps(written))

    def run_sweep(self, third, *keys):
        program = self.script("program", PROGRAM % third)
        with (
            contextlib.chdir(self.folder),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()) as said,
        ):
            code = sweep.sweep([str(program)], "job.toml", keys, self.folder)
        return code, said.getvalue(), (self.folder / "calls").read_text().splitlines()

    def test_every_combination(self):
        code, said, calls = self.run_sweep(0, "train.seed=0..1", "model.hidden=8,16")
        self.assertEqual((code, said), (0, ""))
        keys = [" ".join(call.split()[2:4]) for call in calls]
        wanted = itertools.product((0, 1), (8, 16))
        self.assertEqual(keys, [f"train.seed={s} model.hidden={h}" for s, h in wanted])
        self.assertEqual(len({call.split()[-1] for call in calls}), 4)

    def test_a_third_run_that_fails(self):
        code, said, calls = self.run_sweep(4, "train.seed=0..4")
        self.assertEqual((code, len(calls)), (4, 5))
        self.assertIn("train.seed=2 ended with exit code 4", said)
        page = (self.folder / "report.html").read_text()
        self.assertIn("<h1>4 runs</h1>", page)
        self.assertNotIn("seed=2", page)

    def test_values(self):
        for text, values in (
            ("-1..1", ["-1", "0", "1"]),
            ("[5,5],[10,10]", ["[5,5]", "[10,10]"]),
            ('"a,b",0.5', ['"a,b"', "0.5"]),
        ):
            self.assertEqual(sweep.values_of(text), values)
        for text, words in (
            ("train.seed=4..0", "is no range"),
            ("train.seed=1,,2", "has a value that is empty"),
            ("train.seed=1,1", "one twice"),
            ("seed=1", "is no key with values"),
            ("output.dir=a,b", "is the sweep's own"),
        ):
            self.refused(words, sweep.combinations, [text])
        self.refused("are 1000000 runs", sweep.combinations, ["a.b=1..1000", "a.c=1..1000"])

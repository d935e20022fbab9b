"""tests/run.py counts the tests of the GPU: emulated ones pass or fail, those on the GPU are skipped where there is none."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from unittest import mock

from tests import run

GPU = bool(list(pathlib.Path("/dev").glob("nvidia[0-9]*")))
RUNNER = pathlib.Path(__file__).resolve().parents[1] / "run.py"

# Stands for a GoogleTest program with two tests: lists them, or writes the report of a run.
PROGRAM = """\
#!{python}
import json, sys
if "--gtest_list_tests" in sys.argv:
    print("Suite.\\n  One\\n  Two")
    sys.exit(0)
report = next(a.split(":", 1)[1] for a in sys.argv if a.startswith("--gtest_output"))
tests = [{tests}, {tests}]
json.dump({{"testsuites": [{{"testsuite": tests}}]}}, open(report, "w"))
print({output!r})
sys.exit({code})
"""
PASSES = dict(tests='{"result": "COMPLETED"}', output="", code=0)
SKIPS = dict(tests='{"result": "SKIPPED"}', output="x.hpp:9: Skipped\nno GPU: no driver\n\nx.hpp:9: Skipped\nno GPU: no driver\n",
             code=0)
FAILS = dict(tests='{"result": "COMPLETED", "failures": [1]}', output="what went wrong", code=1)


class RunTest(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="espalier-test-"))
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
        self.write("tests/run.py", RUNNER.read_text())
        self.write("tests/room/op_test.cu", "// ranks: 1\n")

    def write(self, path, text):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def program(self, build, behaviour):
        self.write(f"build/{build}/tests/room/op_test",
                   textwrap.dedent(PROGRAM.format(python=sys.executable, **behaviour)))

    def run_tests(self, *options, **environment):
        done = subprocess.run([sys.executable, "tests/run.py", *options], cwd=self.root, stdout=subprocess.PIPE, text=True,
                              env=dict(os.environ, **environment))
        return done.returncode, done.stdout

    def test_without_a_gpu_tests_skip_themselves_and_the_reason_is_shown_once(self):
        self.program("emulated", PASSES)
        self.program("cuda", SKIPS)
        code, output = self.run_tests()
        self.assertEqual((code, output.splitlines()[-1]), (0, "2 passed, 0 failed, 2 skipped"))
        self.assertRegex(output, r"room/op_test emulated np 1 +2 passed  ")
        self.assertRegex(output, r"room/op_test cuda np 1 +0 passed, 2 skipped ")
        self.assertEqual(output.count("no GPU: no driver (2)"), 1)

    def test_without_a_gpu_one_rank_skips_for_all(self):
        self.write("tests/room/op_test.cu", "// ranks: 1 3\n")
        self.write("bin/mpirun", f'#!/bin/sh\necho "$@" >> {self.root}/started\nshift 3\nexec "$@"\n')
        self.program("emulated", PASSES)
        self.program("cuda", SKIPS)
        code, output = self.run_tests(PATH=f"{self.root}/bin:{os.environ['PATH']}")
        self.assertEqual((code, output.splitlines()[-1]), (0, "4 passed, 0 failed, 4 skipped"))
        self.assertRegex(output, r"room/op_test cuda np 3 +0 passed, 2 skipped ")
        started = lambda: [line.split()[3].split("/")[-4] for line in (self.root / "started").read_text().splitlines()]
        self.assertEqual([line for line in started() if line != "emulated"], [] if not GPU else ["cuda"])
        # What did not skip itself for want of a GPU runs on all ranks.
        self.program("cuda", dict(SKIPS, output="x.hpp:9: Skipped\nno GPU: no driver\n\nx.hpp:9: Skipped\nanother reason\n"))
        self.run_tests(PATH=f"{self.root}/bin:{os.environ['PATH']}")
        self.assertEqual(started().count("cuda"), 2 if GPU else 1)

    def test_what_nvcc_did_not_build_is_skipped_test_by_test_and_rank_count_by_rank_count(self):
        self.write("tests/room/op_test.cu", "// ranks: 1 1\n")  # as if it were two
        self.program("emulated", PASSES)
        code, output = self.run_tests()
        self.assertEqual((code, output.splitlines()[-1]), (0, "4 passed, 0 failed, 4 skipped"))
        self.assertIn("skipped: not built: no nvcc", output)

    def test_on_a_gpu_they_pass_or_fail(self):
        self.program("emulated", PASSES)
        self.program("cuda", FAILS)
        code, output = self.run_tests()
        self.assertEqual((code, output.splitlines()[-1]), (1, "2 passed, 2 failed, 0 skipped"))
        self.assertIn("what went wrong", output)

    def test_an_emulated_test_that_is_not_built_is_a_failure(self):
        code, output = self.run_tests()
        self.assertEqual(code, 1, output)
        self.assertRegex(output, r"emulated np 1 +0 passed, 1 FAILED")

    def test_on_a_busy_machine_a_test_has_longer(self):
        with mock.patch.object(run, "share_of_a_core", lambda: 0):
            self.assertEqual(run.run(["sh", "-c", "echo begun; sleep 3; echo done"], os.environ, 1), (0, "begun\ndone\n"))
        begun = self.root / "begun"
        with mock.patch.object(run, "share_of_a_core", begun.exists):
            code, output = run.run(["sh", "-c", f"echo begun; touch {begun}; exec sleep 600"], os.environ, 1)
        self.assertEqual((code, output.splitlines()[0]), (124, "begun"))
        self.assertIn("no answer in 1 s", output)

    def test_the_share_of_a_core(self):
        count = 4 * os.cpu_count()
        busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(count)]
        try:
            end = time.monotonic() + 60
            while run.share_of_a_core() > 0.25:
                self.assertLess(time.monotonic(), end)
                time.sleep(0.005)
        finally:
            for process in busy:
                process.kill()
                process.wait()

    def test_one_file_or_one_rank_count(self):
        self.write("tests/room/other_test.cu", "// ranks: 1\n")
        self.program("emulated", PASSES)
        self.program("cuda", SKIPS)
        self.assertIn("2 passed, 0 failed, 2 skipped", self.run_tests("--only", "room/op")[1])
        self.assertEqual(self.run_tests("--only", "room/op", "--np", "2")[1], "0 passed, 0 failed, 0 skipped\n")


if __name__ == "__main__":
    unittest.main()

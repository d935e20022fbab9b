"""tests/run.py counts the tests of the GPU: emulated ones, and those that nvcc compiled, pass or fail."""

import os
import pathlib
import subprocess
import sys
import time
import unittest
from unittest import mock

from tests import run
from tests.app.program import ROOT, FolderTest, run_python

GPU = bool(list(pathlib.Path("/dev").glob("nvidia[0-9]*")))

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
# The same with a test that is long and one that only has the word in its name, as GoogleTest filters them.
LONG = """\
#!{python}
import fnmatch, json, sys
arguments = dict(a[2:].split("=", 1) for a in sys.argv[1:] if "=" in a)
left_out = arguments.get("gtest_filter", "-").removeprefix("-")
tests = [dict(result="COMPLETED") for name in ("Suite.LongCase", "Suite.IsNotTooLong") if not fnmatch.fnmatch(name, left_out)]
json.dump(dict(testsuites=[dict(testsuite=tests)]), open(arguments["gtest_output"].split(":", 1)[1], "w"))
"""
PASSES = dict(tests='{"result": "COMPLETED"}', output="", code=0)
SKIPS = dict(tests='{"result": "SKIPPED"}', output="x.hpp:9: Skipped\nno GPU: no driver\n\nx.hpp:9: Skipped\nno GPU: no driver\n",
             code=0)
FAILS = dict(tests='{"result": "COMPLETED", "failures": [1]}', output="what went wrong", code=1)


class RunTest(FolderTest):
    def setUp(self):
        super().setUp()
        for name in ("tests/run.py", "tests/watched.py", "tests/launcher.py", "tests/__init__.py", "scripts/kernel_names.py"):
            self.script(name, (ROOT / name).read_text())
        self.script("tests/room/op_test.cu", "// ranks: 1\n")

    def program(self, build, behaviour):
        self.script(f"build/{build}/tests/room/op_test", PROGRAM.format(python=sys.executable, **behaviour))

    def run_tests(self, *options, **environment):
        done = run_python("tests/run.py", *options, cwd=self.folder, env=dict(os.environ, **environment))
        return done.returncode, done.stdout

    def ends_with(self, code, line, *options):
        """What a run prints that ends so."""
        found, output = self.run_tests(*options)
        self.assertEqual((found, output.splitlines()[-1]), (code, line), output)
        return output

    @unittest.skipIf(GPU, "there is a GPU")
    def test_without_a_gpu_kernels_run_as_they_were_asked_for(self):
        self.program("emulated", PASSES)
        self.program("ptx", PASSES)
        self.program("cuda", FAILS)
        output = self.ends_with(0, "2 passed, 0 failed, 0 skipped")
        self.assertRegex(output, r"room/op_test emulated np 1 +2 passed  ")
        self.assertIn("not as nvcc does", output)
        output = self.ends_with(0, "2 passed, 0 failed, 0 skipped", "--kernels", "as-compiled")
        self.assertRegex(output, r"room/op_test as compiled np 1 +2 passed  ")
        self.assertNotIn("not as nvcc does", output)
        self.ends_with(0, "4 passed, 0 failed, 0 skipped", "--kernels", "emulated,as-compiled")

    def test_what_nvcc_compiled_fails_by_itself(self):
        self.program("emulated", PASSES)
        self.program("ptx", FAILS)
        code, output = self.run_tests("--kernels", "emulated,as-compiled")
        self.assertEqual(code, 1)
        self.assertRegex(output, r"room/op_test as compiled np 1 +0 passed, 2 FAILED")
        self.assertIn("what went wrong", output)

    def test_python_tests_get_the_program_of_the_first_kind(self):
        self.script("tests/__init__.py", "")
        self.script("tests/room/__init__.py", "")
        self.script("tests/room/door_test.py", "import os, unittest\nclass T(unittest.TestCase):\n"
                   "    def test(self): print('\\nnote:', os.environ['ESPALIER_EMULATED'])\n")
        for kinds, build in (("emulated,as-compiled", "emulated"), ("as-compiled", "ptx")):
            output = self.run_tests("--kernels", kinds, "--only", "room/door")[1]
            self.assertIn(f"note: {self.folder.resolve()}/build/{build}/espalier", output)

    @unittest.skipUnless(GPU, "no GPU")
    def test_on_a_gpu_they_pass_or_fail(self):
        self.program("emulated", PASSES)
        self.program("cuda", FAILS)
        output = self.ends_with(1, "2 passed, 2 failed, 0 skipped")
        self.assertIn("what went wrong", output)

    @unittest.skipIf(GPU, "there is a GPU")
    def test_why_a_test_skipped_itself_is_shown_once(self):
        self.program("emulated", SKIPS)
        output = self.ends_with(0, "0 passed, 0 failed, 2 skipped")
        self.assertEqual(output.count("no GPU: no driver (2)"), 1)

    def test_an_emulated_test_that_is_not_built_is_a_failure(self):
        code, output = self.run_tests()
        self.assertEqual(code, 1, output)
        self.assertRegex(output, r"emulated np 1 +0 passed, 1 FAILED")

    @unittest.skipIf(GPU, "there is a GPU")
    def test_a_test_is_long_when_its_name_begins_so(self):
        self.script("build/emulated/tests/room/op_test", LONG.format(python=sys.executable))
        for options, passed in (((), 1), (("--long",), 2)):
            self.assertRegex(self.run_tests(*options)[1], rf"room/op_test emulated np 1 +{passed} passed  ")

    def test_on_a_busy_machine_a_test_has_longer(self):
        with mock.patch.object(run, "share_of_a_core", lambda: 0):
            self.assertEqual(run.run(["sh", "-c", "echo begun; sleep 3; echo done"], os.environ, 1), (0, "begun\ndone\n"))
        begun = self.folder / "begun"
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
        self.script("tests/room/other_test.cu", "// ranks: 1\n")
        self.program("emulated", PASSES)
        self.assertIn("2 passed, 0 failed, 0 skipped", self.run_tests("--only", "room/op")[1])
        self.assertEqual(self.run_tests("--only", "room/op", "--np", "2")[1], "0 passed, 0 failed, 0 skipped\n")

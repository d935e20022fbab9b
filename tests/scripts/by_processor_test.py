"""scripts/espalier_by_processor.sh, with programs that say their names and processors that are files.

Laws: the program of the highest level that the processor has and that is there is started, with all words and its exit code; one
level named wins; where none can run one line says why, with code 2.
"""

import shutil
import subprocess

from tests.app.program import ROOT, FolderTest
from tests.elsewhere.instruction_sets_test import FLAGS

BASE = "fpu sse sse2 sse4_2 avx xsave"
V3 = " ".join([BASE, *sorted(FLAGS["x86-64-v3"])])
V4 = " ".join([V3, *sorted(FLAGS["x86-64-v4"])])


class ByProcessor(FolderTest):
    def setUp(self):
        super().setUp()
        self.script("builds/espalier", (ROOT / "scripts/espalier_by_processor.sh").read_text())
        for level in ("x86-64-v3", "x86-64-v4"):
            self.script(f"builds/espalier-{level}", f'#!/bin/sh\nprintf "%s:" {level} "$@"\nexit 5\n')

    def run_on(self, flags, *words, program="builds/espalier", **variables):
        cpuinfo = self.folder / "cpuinfo"
        cpuinfo.write_text(f"processor\t: 0\nmodel name\t: one\nflags\t\t: {flags}\nbugs\t:\n\nprocessor\t: 1\nflags\t\t: none\n")
        env = {"PATH": "/usr/bin:/bin", "ESPALIER_CPUINFO": str(cpuinfo), **variables}
        return subprocess.run([self.folder / program, *words], env=env, capture_output=True, text=True, timeout=60)

    def test_what_the_processor_has(self):
        for flags, level in ((V4, "x86-64-v4"), (V3, "x86-64-v3"), (V3 + " avx512f", "x86-64-v3"), (V4.replace("avx512vl", ""), "x86-64-v3")):
            done = self.run_on(flags, "train", "a b", "key=[1, 2]")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (5, f"{level}:train:a b:key=[1, 2]:", ""), flags)
        (self.folder / "link").symlink_to(self.folder / "builds/espalier")
        self.assertEqual(self.run_on(V4, program="link").stdout, "x86-64-v4:")

    def test_what_is_there(self):
        self.assertEqual(self.run_on(V4, ESPALIER_LEVEL="x86-64-v3").stdout, "x86-64-v3:")
        (self.folder / "builds/espalier-x86-64-v4").unlink()
        self.assertEqual(self.run_on(V4).stdout, "x86-64-v3:")
        self.assertRegex(self.run_on(V4, ESPALIER_LEVEL="x86-64-v4").stderr, "^espalier: error: .*espalier-x86-64-v4 is not there: make by-processor\n$")
        shutil.copy("/bin/true", self.folder / "builds/espalier-x86-64-v4")
        self.assertEqual(self.run_on(V4).returncode, 0)

    def test_no_program_for_it(self):
        for flags in (BASE, V3.replace("avx2", ""), V3.replace("fma", "fma4"), ""):
            done = self.run_on(flags)
            self.assertEqual((done.returncode, done.stdout), (2, ""), flags)
            self.assertRegex(done.stderr, "^espalier: error: this processor .* has no AVX2, .*\n$")

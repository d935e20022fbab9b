"""For processors with AVX2 and with AVX-512, as their levels name them: the bits of the native build."""

import pathlib
import platform
import unittest

from tests.app.program import LONG
from tests.elsewhere.other_build import Elsewhere, OtherBuild

FLAGS = {"x86-64-v3": {"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"},
         "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}}


@unittest.skipUnless(LONG, "long: builds for other processors")
class LongInstructionSets(Elsewhere):
    def expect_the_same_for(self, level):
        if platform.machine() != "x86_64":
            self.skipTest(f"{level}: this machine is {platform.machine()}")
        flags = next(line for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags"))
        missing = FLAGS[level] - set(flags.split())
        if missing:
            self.skipTest(f"{level}: this machine has no {' '.join(sorted(missing))}")
        build = OtherBuild(level, f"ARCH={level}")
        build.make_program()
        self.expect_the_same_bits(build)

    def test_long_avx2(self):
        self.expect_the_same_for("x86-64-v3")

    def test_long_avx512(self):
        self.expect_the_same_for("x86-64-v4")

"""For processors with AVX2 and with AVX-512, as their levels name them: the bits of the native build, also where half of the ranks
are of one and half of the other, as on nodes that differ.
"""

import os
import pathlib
import platform
import unittest

from tests.app.program import LONG, ROOT, arrays_of
from tests.elsewhere.other_build import Elsewhere, OtherBuild, output_of
from tests.launcher import LAUNCHER

FLAGS = {"x86-64-v3": {"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"},
         "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}}


@unittest.skipUnless(LONG, "long: builds for other processors")
class LongInstructionSets(Elsewhere):
    GENERATE = ("planted", "--nodes", 3000, "--degree", 12, "--classes", 5, "--features", 32)
    JOB = ("model.hidden=48", "model.layers=2", "sampler.fanout=[6, 4]", "sampler.batch_size=64", "train.epochs=3", "train.batches_per_step=4",
           "train.reproducible=true", "run.threads=1", 'run.device="cpu"')

    def need(self, level):
        if platform.machine() != "x86_64":
            self.skipTest(f"{level}: this machine is {platform.machine()}")
        flags = next(line for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags"))
        missing = FLAGS[level] - set(flags.split())
        if missing:
            self.skipTest(f"{level}: this machine has no {' '.join(sorted(missing))}")

    def expect_the_same_for(self, level):
        self.need(level)
        build = OtherBuild(level, f"ARCH={level}")
        build.make_program()
        self.expect_the_same_bits(build)

    def test_long_avx2(self):
        self.expect_the_same_for("x86-64-v3")

    def test_long_avx512(self):
        self.expect_the_same_for("x86-64-v4")

    def trained(self, *levels):
        """(digests, losses, weights) of four ranks, which take turns at these levels, started by scripts/espalier_by_processor.sh."""
        program = ["build/by_processor/espalier", "-q", "train", self.config, "--overwrite"]
        words = [(1, ["env", f"ESPALIER_LEVEL={levels[rank % len(levels)]}", *program]) for rank in range(4)]
        output_of(LAUNCHER.parts(*words), "training", cwd=ROOT, env={**os.environ, **LAUNCHER.environment}, timeout=300)
        epochs = self.report(self.output)["epochs"]
        weights = {name: array.tobytes() for name, array in arrays_of(self.output / "weights.h5", "weights").items()}
        return [(epoch["sample_digest"], epoch["loss"]) for epoch in epochs], weights

    def test_long_nodes_that_differ(self):
        for level in FLAGS:
            self.need(level)
        env = {key: value for key, value in os.environ.items() if not key.startswith("MAKE") and key != "MFLAGS"}
        output_of(["make", f"-j{os.cpu_count()}", "by-processor"], "no build", cwd=ROOT, env=env)
        expected = self.trained("x86-64-v3")
        self.assertTrue(expected[1])
        for levels in (("x86-64-v4",), ("x86-64-v3", "x86-64-v4"), ("x86-64-v4", "x86-64-v3", "x86-64-v3")):
            self.assertEqual(self.trained(*levels), expected, levels)

"""With MPICH, on which Cray's and Intel's MPI are built: the same bits at 1, 2 and 4 ranks, and the tests."""

import unittest

from tests.app.program import LONG
from tests.elsewhere.other_build import Elsewhere, OtherBuild, cached, need

# What of app/ is not for it: they start the emulated GPU's program, which is built with the other MPI.
OF_THE_GPU = ("as_compiled_test", "gpu_test")


@unittest.skipUnless(LONG, "long: a build with MPICH")
class LongMpich(Elsewhere):
    def setUp(self):
        super().setUp()
        need("mpich", "libmpich-dev", "libhdf5-mpich-dev")
        # Debian's CombBLAS is for Open MPI.
        self.build = OtherBuild("mpich", "MPICXX=mpicxx.mpich", "PKG=hdf5-mpich fmt spdlog zlib libzip libzstd", "COMBBLAS=",
                                launcher="mpirun.mpich", compiled_with={"MPICH_CXX": cached("g++")})
        self.build.make_program()

    def test_long_bits(self):
        self.expect_the_same_bits(self.build)

    def test_long_tests_of_cxx(self):
        self.build.make_tests()
        self.assertRegex(self.build.run_tests("--np", "1,2,4"), r"(?m)^[1-9]\d+ passed, 0 failed, ")

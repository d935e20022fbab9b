"""By clang, on which the compilers of Cray, AMD and Intel are built: the program without a warning, and its bits."""

import unittest

from tests.app.program import LONG
from tests.elsewhere.other_build import Elsewhere, OtherBuild, cached, need


@unittest.skipUnless(LONG, "long: a build by clang")
class LongClang(Elsewhere):
    def test_long_warnings_are_errors_and_the_bits_the_same(self):
        need("clang-16", "libomp-16-dev")
        build = OtherBuild("clang", "WERROR=1", compiled_with={"OMPI_CXX": cached("clang++-16")})
        build.make_program()
        self.expect_the_same_bits(build)

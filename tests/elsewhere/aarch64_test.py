"""For ARM, cross-compiled and run by QEMU, ranks by this machine's own mpirun: the bits of the native build at 1, 2 and 4 ranks, and
the C++ tests at one. Those that need what qemu-user lacks (threads in a child of fork, a limit of memory) skip themselves.
"""

import platform
import unittest

from tests.app.program import LONG
from tests.elsewhere.other_build import Elsewhere, OtherBuild, cached, need, root_of

PACKAGES = ("libopenmpi-dev libhdf5-openmpi-dev libtomlplusplus-dev libcli11-dev libspdlog-dev libfmt-dev zlib1g-dev libzip-dev libzstd-dev "
            "libmetis-dev liburing-dev libcombblas-dev librandom123-dev nlohmann-json3-dev libgtest-dev libeigen3-dev").split()


@unittest.skipUnless(LONG, "long: a build for ARM")
class LongAarch64(Elsewhere):
    def setUp(self):
        super().setUp()
        if platform.machine() == "aarch64":
            self.skipTest("this machine is one")
        need("g++-aarch64-linux-gnu", "qemu-user")
        root = root_of("arm64", *PACKAGES)
        libraries = root / "usr/lib/aarch64-linux-gnu"
        compiler = cached(f"aarch64-linux-gnu-g++ --sysroot={root} -isystem {libraries}/openmpi/include "
                          f"-L{libraries}/openmpi/lib -lmpi")
        self.build = OtherBuild(
            "aarch64", "ARCH=armv8.2-a", f"MPICXX={compiler}", "TEST_LINKER=",
            compiled_with={"PKG_CONFIG_SYSROOT_DIR": str(root), "PKG_CONFIG_SYSTEM_INCLUDE_PATH": f"{root}/usr/include",
                           "PKG_CONFIG_LIBDIR": f"{libraries}/pkgconfig:{root}/usr/share/pkgconfig"},
            run_with={"OMPI_MCA_btl_vader_single_copy_mechanism": "none"},  # QEMU has no process_vm_readv
            under=["qemu-aarch64", "-L", str(root)])
        self.build.make_program()

    def test_long_bits(self):
        self.expect_the_same_bits(self.build)

    def test_long_tests_of_cxx(self):
        self.build.make_tests()
        self.assertRegex(self.build.run_tests("--np", "1"), r"(?m)^[1-9]\d+ passed, 0 failed, ")

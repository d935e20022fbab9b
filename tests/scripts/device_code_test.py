"""Device code calls no algorithm of the standard library: by the flags of the Makefile nvcc calls it an error in a kernel, in a
function that the CPU and the GPU share, in a template, in a lambda, and in what system headers have for GPUs alone. (What those
have for both, nvcc does not say.) Needs nvcc, no GPU."""

import os
import re
import subprocess

from tests.app.program import ROOT, FolderTest

SYSTEM_HEADER = """#pragma once
#include <iterator>
template <class T> __device__ const T* of_system(const T* a, long n) { return std::next(a, n); }
"""

HEADER = """#pragma once
#include <algorithm>
#include <bit>
#include <numeric>
#include "espalier/base/host_device.hpp"
namespace espalier {
#if defined(PLANTED)
ESPALIER_HD inline long in_shared(const int* a, long n, int x) { return std::lower_bound(a, a + n, x) - a; }
template <class T>
ESPALIER_HD inline long in_template(const T* a, long n, T x) { return std::upper_bound(a, a + n, x) - a; }
ESPALIER_HD constexpr int in_constexpr(const int* a, long n) { return std::accumulate(a, a + n, 0); }
struct Searched {
  const int* a;
  ESPALIER_HD float in_member() const { return std::bit_cast<float>(a[0]); }
};
#else
ESPALIER_HD inline long in_shared(const int* a, long n, int x) { return count_below(a, n, x); }
#endif
}
"""

KERNELS = """#include "planted.hpp"
#include "espalier/base/launch.hpp"
#include <system_header.hpp>
using namespace espalier;
__global__ void kernel(const int* a, long n, int x, long* out) {
  out[0] = in_shared(a, n, x);
#if defined(PLANTED)
  out[1] = std::lower_bound(a, a + n, x) - a;  // in_kernel
  out[2] = in_template(a, n, x) + in_constexpr(a, n) + static_cast<long>(Searched{a}.in_member()) + *of_system(a, n);
#endif
}
void host(const Cuda& cuda, const int* a, long n, long* out) {
  for_each(cuda, "of the GPU", n, [=] __device__(long k) {
    out[k] = count_below(a, n, static_cast<int>(k));
#if defined(PLANTED)
    out[k] = std::lower_bound(a, a + n, static_cast<int>(k)) - a;  // in_device_lambda
#endif
  });
  for_each(cuda, "of both", n, [=] ESPALIER_HD(long k) {
    out[k] = in_shared(a, n, static_cast<int>(k));
#if defined(PLANTED)
    out[k] = *std::next(a, k);  // in_shared_lambda
#endif
  });
}
"""

PLACES = {"planted.hpp": ("in_shared", "in_template", "in_constexpr", "in_member"),
          "kernels.cu": ("in_kernel", "in_device_lambda", "in_shared_lambda"), "system_header.hpp": ("of_system",)}


def variables(*names):
    """Of the Makefile, as a build of kernels for one kind of GPU has them."""
    asked = "\n".join(f"\t@echo '$({name})'" for name in names)
    env = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
    return subprocess.run(["make", "-s", "--no-print-directory", f"--eval=print-them:\n{asked}", "print-them"], cwd=ROOT, text=True,
                          stdout=subprocess.PIPE, check=True, env=dict(env, GENCODE="-arch=sm_90")).stdout.splitlines()


class DeviceCode(FolderTest):
    def setUp(self):
        super().setUp()
        nvcc, *flags = variables("NVCC", "CPPFLAGS", "MPI_INCLUDES", "NVCCFLAGS")
        if not nvcc:
            self.skipTest("no nvcc")
        self.files = {"planted.hpp": HEADER, "kernels.cu": KERNELS, "system_header.hpp": SYSTEM_HEADER}
        (self.folder / "system").mkdir()
        for name, text in self.files.items():
            (self.folder / ("system" if name.startswith("system") else "") / name).write_text(text)
        self.command = [nvcc, *" ".join(flags).split(), f"-I{self.folder}", "-isystem", f"{self.folder}/system", "-ptx",
                        "-o", f"{self.folder}/kernels.ptx", f"{self.folder}/kernels.cu"]

    def compile(self, *options):
        done = subprocess.run(self.command + list(options), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return done.returncode, done.stdout

    def line_of(self, file, name):
        """Where it calls what it may not."""
        (line,) = [k for k, text in enumerate(self.files[file].splitlines(), 1) if name in text and "std::" in text]
        return line

    def test_the_houses_own_searches_compile(self):
        code, said = self.compile()
        self.assertEqual((code, said), (0, ""))

    def test_a_function_of_the_standard_library_is_an_error_wherever_it_stands(self):
        code, said = self.compile("-DPLANTED")
        self.assertNotEqual(code, 0, said)
        refused = {(file, int(line)) for file, line in
                   re.findall(r"([\w.]+)\((\d+)\): error[^:]*: calling a (?:constexpr )?__host__ function", said)}
        self.assertEqual(refused, {(file, self.line_of(file, name)) for file, names in PLACES.items() for name in names}, said)

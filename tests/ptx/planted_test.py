"""Code that is right as the C++ compiler makes it and wrong as nvcc does is seen when nvcc's PTX runs on the CPU: a search of the
standard library, operands in an order that C++ leaves open, a vector that is not aligned, an argument left out. Needs nvcc, no GPU."""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = ROOT / "tests/ptx/planted.cu"
# As the search of the standard library in device code could be compiled; cuda.mk has no such flags.
FLAGS = "-std=c++20 -O3 --expt-relaxed-constexpr -gencode arch=compute_90,code=compute_90".split()


def value(variable):
    """Of a variable of the Makefile, as words."""
    done = subprocess.run(["make", "-s", "--no-print-directory", "--eval", f"value: ; @echo '$({variable})'", "value"], cwd=ROOT,
                          stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.split()


NVCC = value("NVCC")


@unittest.skipUnless(NVCC and shutil.which(NVCC[0]), "no nvcc")
class Planted(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory(prefix="espalier-test-")
        cls.addClassCleanup(cls.place.cleanup)
        cls.folder = pathlib.Path(cls.place.name)
        runtime = value("PTX_RUNTIME")
        cls.run_command("make", *runtime, "build/emulated/obj/tests/emulation/threads.cpp.o")
        compiled, translated = cls.folder / "planted.o", cls.folder / "planted.cpp"
        cls.run_command(*NVCC, *FLAGS, "-c", "-o", compiled, SOURCE)
        cls.run_command("python3", ROOT / "tests/ptx/translate.py", compiled, translated)
        cls.run_command(*value("TRANSLATED"), "-o", cls.folder / "compiled", translated, compiled, *runtime, *value("EMULATED_LIBS"))
        emulation = [o for o in runtime if "/emulated/" in o]
        cls.run_command(*value("EMULATE"), "-MF", cls.folder / "d", "-o", cls.folder / "emulated", "-x", "c++", SOURCE, "-x", "none",
                        *emulation, *value("EMULATED_LIBS"))

    @staticmethod
    def run_command(*command):
        done = subprocess.run([str(word) for word in command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise AssertionError(f"{command[0]} ended with {done.returncode}:\n{done.stdout[-3000:]}")

    def outcome(self, program, which):
        done = subprocess.run([self.folder / program, which], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        return done.returncode, done.stdout.strip()

    def test_a_search_of_the_standard_library(self):
        self.assertEqual(self.outcome("emulated", "search"), (0, "5"))
        release = subprocess.run([*NVCC, "--version"], stdout=subprocess.PIPE, text=True).stdout
        version = tuple(map(int, re.search(r"release (\d+)\.(\d+)", release).groups()))
        code, found = self.outcome("compiled", "search")
        self.assertEqual(code, 0)
        (self.assertNotEqual if version < (13, 4) else self.assertEqual)(found, "5")

    def test_operands_in_the_other_order(self):
        orders = {self.outcome(program, "order") for program in ("emulated", "compiled")}
        self.assertEqual(orders, {(0, "1"), (0, "-1")})

    def test_a_vector_that_is_not_aligned(self):
        self.assertEqual(self.outcome("emulated", "misaligned"), (0, "26"))
        code, output = self.outcome("compiled", "misaligned")
        self.assertLess(code, 0)
        self.assertRegex(output, r"kernel misaligned\(.*\), block 0, thread 0: .*16 bytes.* is misaligned")

    def test_an_argument_left_out(self):
        code, output = self.outcome("compiled", "argument")
        self.assertLess(code, 0)
        self.assertRegex(output, r"kernel argument\(.*\): its launch has no argument 4")


if __name__ == "__main__":
    unittest.main()

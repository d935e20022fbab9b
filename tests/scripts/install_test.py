"""make install, and programs of one's own by what it leaves: in C++ (examples/cpp) by the archive, in C by the shared library.

Laws: what pkg-config says compiles and links the example; it trains as `espalier train` does, bit for bit, on any number of ranks, and
ends with the same exit codes; CMake finds the same; the shared library shows the functions of espalier.h, by their version, and nothing
else; uninstall takes all of it away.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from tests.app.program import PROGRAM, ROOT, ProgramTest

CPU_BUILD = Path(PROGRAM).resolve().parent.parent.name == "build" and Path(PROGRAM).resolve().parent.name in ("cpu", "emulated")
CMAKE = """cmake_minimum_required(VERSION 3.18)
project(mine {language})
find_package(espalier REQUIRED {components})
add_executable(mine {source})
target_link_libraries(mine espalier::{target})
"""
IN_C = """#include <espalier.h>
#include <stdio.h>
int main(void) { return puts(espalier_version()) < 0; }
"""
VERSION = re.search(r'kVersion = "(.+)"', (ROOT / "include/espalier/base/version.hpp").read_text())[1]


@unittest.skipUnless(CPU_BUILD, "another build than that of `make`")
class Install(ProgramTest):
    GENERATE = ("planted", "--nodes", 400, "--degree", 8, "--classes", 4, "--features", 6)
    JOB = ('model.hidden=8', "model.layers=2", "sampler.fanout=[4, 3]", "sampler.batch_size=20", "train.epochs=2", "train.batches_per_step=4",
           "train.reproducible=true", "run.threads=1", 'run.device="cpu"')

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.prefix = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.make("install")

    @classmethod
    def make(cls, goal):
        env = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
        done = subprocess.run(["make", "--no-print-directory", goal, f"PREFIX={cls.prefix}"], cwd=ROOT, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    def environment(self):
        return {**os.environ, "PKG_CONFIG_PATH": f"{self.prefix}/lib/pkgconfig"}

    def build(self, compiler, source, package):
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", package], env=self.environment(), capture_output=True, text=True, check=True)
        program = self.folder / "mine"
        done = subprocess.run([compiler, source, *flags.stdout.split(), "-o", program], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return program

    def run_mine(self, program, *keys, ranks=1):
        command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-np", str(ranks), program, *keys]
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})

    def test_a_program_of_ones_own_trains_the_same(self):
        program = self.build("mpicxx", ROOT / "examples/cpp/train.cpp", "espalier-cxx")
        keys = (f"graph.file={self.graph}", *self.JOB)
        self.succeed("-q", "train", self.config)
        expected = self.report(self.output)
        for ranks in (1, 2, 4):
            done = self.run_mine(program, *keys, ranks=ranks)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(re.search(r"weights (\w+)", done.stdout)[1], expected["weights_digest"], ranks)
            self.assertIn(f"epoch 2: loss {expected['epochs'][1]['loss']:.4f}", done.stdout)
        refused = self.run_mine(program, "graph.file=/nowhere.h5")
        self.assertEqual(refused.returncode, 3)
        self.assertIn("/nowhere.h5: no such file", refused.stderr)

    def in_c(self):
        (self.folder / "mine.c").write_text(IN_C)
        return self.folder / "mine.c"

    def test_minibatches_and_training_in_c_and_in_cpp_by_the_shared_library(self):
        self.succeed("-q", "train", self.config)
        epoch = self.report(self.output)["epochs"][0]
        for compiler, source in (("cc", "c/train.c"), ("c++", "cpp/batches.cpp")):
            program = self.build(compiler, ROOT / "examples" / source, "espalier")
            for ranks in (1, 2, 4):
                done = self.run_mine(program, f"graph.file={self.graph}", *self.JOB, ranks=ranks)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn(f"{epoch['sampled_edges']} edges", done.stdout, source)
                self.assertIn(f"epoch 1: loss {epoch['loss']:.4f}", done.stdout, source)
            refused = self.run_mine(program, "graph.file=/nowhere.h5", ranks=2)
            self.assertEqual(refused.returncode, 3)
            self.assertEqual(refused.stderr.count("/nowhere.h5: no such file"), 1, refused.stderr)

    def test_a_program_in_c(self):
        program = self.build("cc", self.in_c(), "espalier")
        self.assertEqual(subprocess.run([program], capture_output=True, text=True).stdout, f"{VERSION}\n")
        said = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
        needed = re.findall(r"\(NEEDED\).*\[(.*)\]", said)
        self.assertIn("libespalier.so.1", needed)
        self.assertFalse([name for name in needed if "mpi" in name], "what the library is linked with is its own affair")

    def test_the_shared_library_shows_its_functions_alone(self):
        shown = subprocess.run(["nm", "-D", "--defined-only", self.prefix / "lib/libespalier.so"], capture_output=True, text=True, check=True)
        declared = re.findall(r"^ESPALIER_API [^;]*?\b(\w+)\(", (self.prefix / "include/espalier.h").read_text(), re.M)
        self.assertEqual(sorted(" ".join(line.split()[1:]) for line in shown.stdout.splitlines()),
                         sorted(["A espalier_1", *(f"T {name}@@espalier_1" for name in declared)]))
        self.assertIn("espalier_version", declared)

    @unittest.skipUnless(shutil.which("cmake"), "no cmake here")
    def test_cmake_finds_it(self):
        for cmake in ({"language": "CXX", "components": "COMPONENTS cxx", "target": "cxx", "source": ROOT / "examples/cpp/train.cpp"},
                      {"language": "C", "components": "", "target": "espalier", "source": self.in_c()}):
            (self.folder / "CMakeLists.txt").write_text(CMAKE.format(**cmake))
            built = self.folder / cmake["language"]
            for command in (["cmake", "-B", built, f"-DCMAKE_PREFIX_PATH={self.prefix}", "."], ["cmake", "--build", built]):
                done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertTrue((built / "mine").exists())
        self.assertEqual(subprocess.run([built / "mine"], capture_output=True, text=True).stdout, f"{VERSION}\n")

    def test_the_python_package_finds_the_library(self):
        code = "import espalier.library as of, espalier; print(espalier.open(%r).about['nodes'], of.library()._name)" % str(self.config)
        env = {key: value for key, value in os.environ.items() if key != "ESPALIER_LIBRARY"}
        env |= {"PYTHONPATH": str(self.prefix / "lib/python3")}
        done = subprocess.run([sys.executable, "-c", code], env=env, cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.stdout, f"400 {self.prefix}/lib/libespalier.so\n", done.stderr)

    def test_uninstall_takes_all_away(self):
        type(self).make("uninstall")
        self.addCleanup(type(self).make, "install")
        self.assertEqual([path for path in self.prefix.rglob("*") if path.is_file() or path.is_symlink() or path.name == "espalier"], [])


if __name__ == "__main__":
    unittest.main()

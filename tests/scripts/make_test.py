"""make takes all cores for one goal, and as many as it is told where it is told; several goals stay one after the other.
A .cu file without kernels is compiled once for all builds, one with kernels once for each; with KERNELS_BY_ROOM nvcc gets
those of some rooms as one file."""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from tests.app.program import LONG, ROOT

PROBES = [f'--eval={goal}: ; @echo "flags of {goal} [$$MAKEFLAGS]"' for goal in ("first", "second", "build/first", "build/second")]
CORES = len(os.sched_getaffinity(0))


class Make(unittest.TestCase):
    def make(self, *arguments, environment=None):
        env = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "KERNELS"))}
        done = subprocess.run(["make", "--no-print-directory", *arguments], cwd=ROOT, env={**env, **(environment or {})},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def flags(self, *arguments, environment=None):
        return self.make(*PROBES, *(arguments or ["first"]), environment=environment)

    def test_one_goal_takes_all_cores(self):
        for arguments in (["first"], ["-k", "first", "ONLY=base"], ["build/first", "build/second"]):
            (jobs,) = self.jobs(self.flags(*arguments))
            self.assertTrue(min(CORES, 2) <= jobs <= CORES, (arguments, jobs))  # fewer than cores where memory is short
        self.assertEqual(self.jobs(self.flags("first", environment={"OMP_NUM_THREADS": "1"})), self.jobs(self.flags("first")))

    @staticmethod
    def jobs(output):
        return {int(number) for number in re.findall(r" -j(\d+)", output)}

    def test_what_is_asked_for_stays(self):
        for asked in ("-j1", "-j3", "--jobs=3"):
            self.assertRegex(self.flags(asked, "first"), rf"-j{asked[-1]}\b")
        self.assertRegex(self.flags("first", environment={"MAKEFLAGS": "-j3"}), r"-j3\b")
        self.assertNotRegex(self.flags("first", environment={"MAKEFLAGS": "-j1"}), r"-j[2-9]")

    def test_several_goals_are_one_after_the_other(self):
        output = self.flags("first", "second")
        self.assertNotIn("-j", output)
        self.assertLess(output.index("of first"), output.index("of second"))
        self.assertRegex(self.flags("-j3", "first", "second"), r"-j3\b")

    def test_what_has_no_kernels_is_compiled_once_and_not_by_nvcc(self):
        programs = [f"build/{build}/tests/{test}" for build in ("emulated", "cuda")
                    for test in ("nn/layer_test", "base/device_algorithms_test")]
        said = self.make("-n", "-B", "BUILD=build/x", "MPICXX=mpicxx", "NVCC=the-nvcc", "FILES_AT_ONCE=1", *programs)
        compilations = {}
        for compiler, source in re.findall(r"^(?:to=\S+; )?(mpicxx|the-nvcc) .* -c .*?\b((?:src|tests)/\S+\.cu)\b", said, re.M):
            compilations.setdefault(source, []).append(compiler)
        for source in ("tests/nn/layer_test.cu", "src/nn/network.cu", "src/train/trainer.cu"):
            self.assertEqual(compilations.get(source), ["mpicxx"], source)
        for source in ("tests/base/device_algorithms_test.cu", "src/dense/spmm.cu", "src/nn/dropout.cu"):
            self.assertEqual(sorted(compilations.get(source, [])), ["mpicxx", "the-nvcc"], source)
        # Of both spaces: for the CPU, for the emulation, and by nvcc.
        self.assertEqual(sorted(compilations.get("src/nn/elementwise.both.cu", [])), ["mpicxx", "mpicxx", "the-nvcc"])
        self.assertEqual(set(compilations), {str(path.relative_to(ROOT)) for path in ROOT.glob("src/*/*.cu")}
                         | {"tests/nn/layer_test.cu", "tests/base/device_algorithms_test.cu"})

    def test_with_kernels_by_room_nvcc_gets_each_of_them_in_one_file_of_its_rooms(self):
        ask = ["-n", "-B", "BUILD=build/x", "MPICXX=mpicxx", "NVCC=the-nvcc", "build/cuda/espalier", "build/emulated/espalier"]
        one_by_one, by_room = self.make(*ask), self.make(*ask, "KERNELS_BY_ROOM=1")
        kernels = set(re.findall(r"the-nvcc .* -c -o \S+ (src/\S+\.cu)\b", one_by_one))
        self.assertIn("src/dense/spmm.cu", kernels)
        written = {unit: files.split() for files, unit in re.findall(r"printf '#include \S+ (.+) > (\S+\.cu)\.new$", by_room, re.M)}
        self.assertEqual(sorted(sum(written.values(), [])), sorted(kernels))
        for unit, files in written.items():
            self.assertEqual({f"src/{room}" for room in pathlib.Path(unit).parent.name.split("+")}, {str(pathlib.Path(file).parent) for file in files})
        self.assertEqual(set(re.findall(r"the-nvcc .* -c -o \S+ (\S+\.cu)\b", by_room)), set(written))
        # All of them are in the library, and the emulation (make test-long) proves that each compiles by itself.
        library = re.search(r"ar rcs build/cuda/libespalier\.a (.+)", by_room).group(1).split()
        self.assertLessEqual({unit + ".o" for unit in written}, set(library))
        self.assertFalse({file.replace("src/", "build/cuda/obj/") + ".o" for file in kernels} & set(library))
        self.assertEqual(kernels, set(re.findall(r"mpicxx .* tests/emulation .* -c -o \S+ -x c\+\+ (src/\S+\.cu)", by_room)))

    @unittest.skipUnless(LONG, "long: make goes through every file twice")
    def test_long_files_are_compiled_several_at_a_time_each_in_one_place(self):
        def compiled(*arguments):
            said = self.make("-n", "-B", "BUILD=build/x", "MPICXX=mpicxx", "NVCC=", "all", "test-programs", *arguments)
            batches = {batch: files.split() for files, batch in re.findall(r"printf '#include \S+ (.+) > (\S+\.cpp)\.new$", said, re.M)}
            return set(re.findall(r"^mpicxx .* -c -o \S+ (?:-x c\+\+ )?(\S+\.(?:cpp|cu))$", said, re.M)), batches
        (one_by_one, none), (units, batches) = compiled("FILES_AT_ONCE=1"), compiled()
        self.assertEqual(none, {})
        self.assertLessEqual({str(file.relative_to(ROOT)) for file in [*ROOT.glob("src/*/*.cpp"), *ROOT.glob("tests/*/*_test.c[pu]*")]}, one_by_one)
        self.assertLessEqual(set(batches), units)
        self.assertEqual(sorted([*sum(batches.values(), []), *(units - set(batches))]), sorted(one_by_one))
        for batch, files in batches.items():
            self.assertLessEqual(len(files), 12)
            self.assertEqual({pathlib.Path(file).parent.name for file in files}, {pathlib.Path(batch).parent.name})

    def test_a_file_of_tests_that_is_asked_for_has_a_program_of_its_own(self):
        def programs(*asked):
            said = self.make("--eval", "wanted: ; @echo $(WANTED_TESTS)", "wanted", "GPU_HERE=", "NVCC=", *asked)
            return set(re.findall(r"build/cpu/(tests/\S+)", said))
        self.assertEqual(programs("ONLY=sample/draw"), {"tests/sample/draw_test"})
        self.assertEqual(programs("ONLY=sample"), {"tests/sample/all_tests"})
        self.assertEqual(programs("ONLY=sample", "FILES_AT_ONCE=1"), {str(file.relative_to(ROOT).with_suffix("")) for file in ROOT.glob("tests/sample/*_test.cpp")})
        rooms = {file.parent.name for file in ROOT.glob("tests/*/*_test.cpp")}
        self.assertLessEqual({f"tests/{room}/all_tests" for room in rooms}, programs())

    def test_kernels_run_as_nvcc_compiled_them_where_it_is(self):
        def wanted(variable, *arguments):
            said = self.make("--eval", f"wanted: ; @echo $({variable})", "wanted", "GPU_HERE=", *arguments)
            return set(re.findall(r"build/((?:emulated|ptx|cuda)/(?:tests|bench|espalier)\S*)", said))
        asked = "ONLY=sample/ladies"
        self.assertEqual(wanted("WANTED_TESTS", "NVCC=the-nvcc", asked), {"ptx/tests/sample/ladies_test"})
        self.assertEqual(wanted("WANTED_TESTS", "NVCC=", asked), {"emulated/tests/sample/ladies_test"})
        self.assertEqual(wanted("WANTED_LONG", "NVCC=the-nvcc", asked), {f"{build}/tests/sample/ladies_test" for build in ("ptx", "emulated")})
        self.assertEqual(wanted("WANTED_TESTS", "NVCC=the-nvcc", "ONLY=app/gpu"), {"ptx/espalier"})
        self.assertEqual(wanted("WANTED_TESTS", "NVCC=", "ONLY=app/gpu"), {"emulated/espalier"})
        self.assertEqual({name.split("/")[0] for name in wanted("WANTED_TESTS", "NVCC=the-nvcc")}, {"ptx"})
        self.assertIn("emulated/bench/sample/samplers_bench", wanted("WANTED_LONG", "NVCC="))

    def test_kernels_are_refused_as_plain_code(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "cuda_runtime.h").touch()
            (folder / "kernel.cpp").write_text('#include "espalier/base/launch.hpp"\n')
            done = subprocess.run(["g++", "-E", "-I", folder, "-I", ROOT / "include", folder / "kernel.cpp"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("plain C++", done.stderr)

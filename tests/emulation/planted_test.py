"""Kernels with an error each (planted.cu): ThreadSanitizer or AddressSanitizer, as `make race-check` and `make memory-check` have them
watch kernels, say what and where; of the same kernels without the errors they say nothing. Needs no nvcc."""

import os
import pathlib
import subprocess
import tempfile
import unittest

from tests import watched
from kernel_names import demangle, describe  # which tests.watched has found

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Where: the function in which they say it is.
RACES = {"barrier": "turn_round", "second barrier": "sum_tiles", "shuffle as barrier": "pass_on", "atomic": "count",
         "stream": "write_hidden"}
PLACES = {"index": "shift", "index of shared memory": "fan_out", "copy": "cudaMemcpyAsync", "array that is gone": "write_all"}
WORDS = {"lanes": "lanes of the mask, never reach", "lane that takes no part": "a lane that takes no part"}


class Planted(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.programs = {kind: ROOT / "build" / kind / "planted" for kind in ("races", "memory")}
        made = subprocess.run(["make", *(str(program.relative_to(ROOT)) for program in cls.programs.values())], cwd=ROOT,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if made.returncode:
            raise AssertionError(made.stdout[-3000:])

    def outcome(self, kind, error, env=os.environ):
        env = {name: value for name, value in env.items() if name not in ("ASAN_OPTIONS", "TSAN_OPTIONS")}
        done = subprocess.run([self.programs[kind], error], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, env=env)
        return (1, 0, 0) if done.returncode == 0 else (0, 1, 0), done.stdout

    def test_what_is_right_is_passed(self):
        for kind in self.programs:
            self.assertEqual(self.outcome(kind, "none"), ((1, 0, 0), "done\n"))

    def test_races(self):
        for error, where in RACES.items():
            with self.subTest(error):
                counts, output = self.outcome("races", error)
                self.assertEqual(counts, (0, 1, 0))
                self.assertRegex(output, rf"data race[^#]*#0 {where}\b")

    def test_memory_that_is_not_an_arrays(self):
        for error, where in PLACES.items():
            with self.subTest(error):
                counts, output = self.outcome("memory", error)
                self.assertEqual(counts, (0, 1, 0))
                self.assertRegex(output, rf"AddressSanitizer: [^=]*#\d \S+ in {where}\b")

    def test_lanes_that_are_not_there(self):
        for error, words in WORDS.items():
            for kind in self.programs:
                counts, output = self.outcome(kind, error)
                self.assertEqual((counts, words in output), ((0, 1, 0), True), output)

    def test_what_nobody_wrote(self):
        def run(error):
            return watched.run_with_fills(lambda env: self.outcome("memory", error, env), "for memory", os.environ)
        self.assertEqual(run("none")[0], (1, 0, 0))
        counts, output = run("write")
        self.assertEqual(counts[1], 1)
        self.assertRegex(output, r"copy 0 of 1 to the host depends on what nobody wrote: 1536 bytes: \w+, 1536 bytes: \w+")

    def test_kernels_that_do_not_run(self):
        with tempfile.TemporaryDirectory() as folder:
            self.outcome("memory", "none", dict(os.environ, ESPALIER_EMULATED_LAUNCHES=folder))
            ran = {describe(text)[0] for text in demangle(sorted(watched.launched(folder))).values()}
        all_of_them = set(watched.KERNEL.findall((ROOT / "tests/emulation/planted.cu").read_text()))
        self.assertEqual((len(all_of_them), all_of_them - ran), (11, {"write_all"}))


if __name__ == "__main__":
    unittest.main()

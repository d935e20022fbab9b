"""make takes all cores for one goal, and as many as it is told where it is told; several goals stay one after the other."""

import os
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROBES = [f'--eval={goal}: ; @echo "flags of {goal} [$$MAKEFLAGS]"' for goal in ("first", "second", "build/first", "build/second")]
CORES = len(os.sched_getaffinity(0))


class Make(unittest.TestCase):
    def flags(self, *arguments, environment=None):
        env = {key: value for key, value in os.environ.items() if not key.startswith("MAKE")}
        done = subprocess.run(["make", "--no-print-directory", *PROBES, *(arguments or ["first"])], cwd=ROOT, env={**env, **(environment or {})},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

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


if __name__ == "__main__":
    unittest.main()

"""Threads of a rank: run.threads, or else OMP_NUM_THREADS, or else SLURM_CPUS_PER_TASK, or else its share of the cores.

Laws: the report's threads are those of the first of them that says a number; the log names it; what is no number of threads is
warned of once and passed over; `plan` guesses this machine the same way, `calibrate` measures so. Ranks whose threads lie on one
another, or far from their memory, are warned of in one line.
"""

import os
import re
import subprocess
import unittest

from tests.app.free_memory_test import can_mount, mounts
from tests.app.program import PROGRAM, ProgramTest, awkward_graph
from tests.launcher import LAUNCHER

CORES = len(os.sched_getaffinity(0))


class Threads(ProgramTest):
    JOB = ("sampler.fanout=[2, 2]", "model.layers=2", "train.epochs=1", 'run.restart="never"', 'run.device="cpu"')
    GENERATE = staticmethod(awkward_graph)

    def environment(self, **variables):
        plain = {name: value for name, value in os.environ.items() if name not in ("OMP_NUM_THREADS", "SLURM_CPUS_PER_TASK")}
        return {"env": dict(plain, **variables)}

    def threads(self, *keys, command="train", ranks=1, **variables):
        """(what the report says, what the log says)"""
        output = self.succeed(command, self.config, *keys, ranks=ranks, **self.environment(**variables))
        return self.report(self.output)["threads"], output

    def check(self, number, source, *keys, **more):
        found, output = self.threads(*keys, **more)
        self.assertEqual(found, number, output)
        self.assertIn(f", {number} thread{'s' if number != 1 else ''} per rank ({source}), on the CPU", output)
        return output

    def test_who_says_the_number(self):
        share = max(1, CORES // 1)
        self.check(share, "its share of the cores")
        self.check(3, "SLURM_CPUS_PER_TASK", SLURM_CPUS_PER_TASK="3")
        self.check(5, "OMP_NUM_THREADS", OMP_NUM_THREADS="5", SLURM_CPUS_PER_TASK="3")
        self.check(5, "OMP_NUM_THREADS", "run.threads=auto", OMP_NUM_THREADS="5")
        self.check(2, "run.threads", "run.threads=2", OMP_NUM_THREADS="5", SLURM_CPUS_PER_TASK="3")

    def test_every_command_of_a_job(self):
        self.check(3, "OMP_NUM_THREADS", command="sample", ranks=2, OMP_NUM_THREADS="3")
        self.check(3, "OMP_NUM_THREADS", ranks=2, OMP_NUM_THREADS="3")
        output = self.succeed(*self.infer_words(), **self.environment(OMP_NUM_THREADS="4"))
        self.assertIn("4 threads per rank (OMP_NUM_THREADS)", output)

    def test_lists_and_what_is_no_number(self):
        self.check(4, "OMP_NUM_THREADS", OMP_NUM_THREADS="4,2")
        self.check(4, "OMP_NUM_THREADS", OMP_NUM_THREADS=" 4 ")
        for wrong in ("many", "0", "-2", "2.5", "99999999999999999999", "5000", ",3"):
            output = self.check(3, "SLURM_CPUS_PER_TASK", OMP_NUM_THREADS=wrong, SLURM_CPUS_PER_TASK="3", ranks=2 if wrong == "many" else 1)
            self.assertEqual(output.count(f"OMP_NUM_THREADS = \"{wrong}\" is no number of threads"), 1, output)
        output = self.check(CORES, "its share of the cores", OMP_NUM_THREADS="")
        self.assertNotIn("no number", output)

    def test_plan_and_calibrate(self):
        output = self.succeed("plan", self.config, "--ranks", 2, **self.environment(OMP_NUM_THREADS="6"))
        self.assertIn("6 threads each (OMP_NUM_THREADS), cpu", output)
        output = self.succeed("plan", self.config, "--ranks", 2, "run.threads=3", **self.environment(OMP_NUM_THREADS="6"))
        self.assertIn("3 threads each (run.threads), cpu", output)
        output = self.succeed("plan", self.config, "--ranks", CORES, **self.environment())
        self.assertIn("1 thread each (its share of the cores), cpu", output)
        machine = self.folder / "machine.toml"
        output = self.succeed("calibrate", "-o", machine, timeout=300, **self.environment(OMP_NUM_THREADS="1"))
        self.assertIn("1 rank with 1 thread each (OMP_NUM_THREADS), all at work at once", output)
        self.assertRegex(machine.read_text(), r"(?m)^threads = 1 ")
        output = self.succeed("plan", self.config, "--ranks", 2, "--machine", machine, **self.environment(OMP_NUM_THREADS="6"))
        self.assertIn("1 thread each (the machine file), cpu", output)

    def warnings(self, *before, ranks=1, **variables):
        """Of bindings, of a job that goes on; the words of a command may stand before the program."""
        command = [*before, *LAUNCHER.command(ranks, PROGRAM, "-q", "train", self.config, "--overwrite")]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=200, **self.environment(**variables))
        self.assertEqual(done.returncode, 0, done.stdout)
        return re.findall(r"^espalier: warning: (.*docs/cores.md.*)$", done.stdout, re.M)

    @unittest.skipIf(CORES < 2, "one core")
    def test_bindings(self):
        first = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
        self.assertEqual(self.warnings(ranks=2), [])
        self.assertEqual(self.warnings(*first), [])
        [said] = self.warnings(*first, OMP_NUM_THREADS="2")
        self.assertRegex(said, r"^1 of 1 rank \(rank 0 on .*: core \d+\) have more threads, 2, than the cores")
        [said] = self.warnings(*first, ranks=2, OMP_NUM_THREADS="1")
        self.assertRegex(said, r"^2 of 2 ranks \(rank 0 on .*: core \d+\) have their cores in common with others, 2 threads there;")
        [said] = self.warnings(ranks=2, OMP_NUM_THREADS="1", OMP_PROC_BIND="close")
        self.assertRegex(said, "2 threads there, and OpenMP binds those of each to the first")

    @unittest.skipUnless(CORES > 1 and can_mount(), "one core, or no namespace of mounts")
    def test_several_numa_nodes(self):
        """Of a machine that says it has two: the kernel refuses to deal pages round them, and the job goes on."""
        cores = sorted(os.sched_getaffinity(0))
        for node, of_node in ((0, cores[:1]), (1, cores[1:])):
            (self.folder / f"nodes/node{node}").mkdir(parents=True)
            (self.folder / f"nodes/node{node}/cpulist").write_text(",".join(map(str, of_node)) + "\n")
        there = mounts((self.folder / "nodes", "/sys/devices/system/node"))
        [said] = self.warnings(*there)
        self.assertRegex(said, r"^1 of 1 rank \(rank 0 on .*: cores .*, of 2 NUMA nodes\) are spread over several NUMA nodes")
        self.assertEqual(self.warnings(*there, "taskset", "-c", str(cores[0])), [])

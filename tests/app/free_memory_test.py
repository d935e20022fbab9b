"""Where no limit is set, what the node has free, or what its control group has left, is what a job is judged by.

Laws: `plan`, `train`, `sample` and `infer` warn in the same words, on any number of ranks, and go on; what fits is not spoken of. The
kernel's files are replaced for the program alone, in a mount namespace of its own.
"""

import os
import pathlib
import re
import subprocess
import unittest

from tests.app.job_check_test import JOB
from tests.app.program import PROGRAM, ProgramTest, awkward_graph
from tests.launcher import LAUNCHER

MB = 1000000
GROUPS = pathlib.Path("/sys/fs/cgroup")
# Root, or whoever may make a namespace of users, sees other files there.
APART = ["unshare", "--mount"] + ["--map-root-user"] * (os.geteuid() != 0)


def mounts(*pairs):
    """The words of a command behind which files and folders lie over others."""
    binds = "".join(f"mount --bind '{ours}' '{theirs}' && " for ours, theirs in pairs)
    return [*APART, "sh", "-c", binds + 'exec "$@"', "sh"]


def can_mount():
    return subprocess.run(mounts(("/dev/null", "/proc/meminfo")) + ["true"], capture_output=True).returncode == 0


@unittest.skipUnless(can_mount(), "no namespace of mounts")
class FreeMemory(ProgramTest):
    JOB = JOB
    GENERATE = staticmethod(awkward_graph)

    def setUp(self):
        super().setUp()
        self.machine, self.groups = self.folder / "meminfo", self.folder / "groups"
        (self.groups / "memory").mkdir(parents=True)
        self.node_has(64000 * MB)

    def node_has(self, free):
        self.machine.write_text(f"MemTotal: {64000 * MB // 1024} kB\nMemFree: 1 kB\nMemAvailable: {free // 1024} kB\n")

    def group_has(self, limit, used, reclaimable):
        """Of the group above all others, by the names of both versions."""
        for folder, names in ((self.groups, ("memory.max", "memory.current", "inactive_file")),
                              (self.groups / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"))):
            for name, value in zip(names, (limit, used)):
                (folder / name).write_text(f"{value}\n")
            (folder / "memory.stat").write_text(f"anon 5\n{names[2]} {reclaimable}\nfile 7\n")

    def warning(self, *words, ranks=1):
        """The one warning of memory of a run that goes on, or none."""
        command = mounts((self.machine, "/proc/meminfo"), (self.groups, GROUPS)) + LAUNCHER.command(ranks, PROGRAM, *words)
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=200)
        self.assertEqual(done.returncode, 0, done.stdout)
        said = re.findall(r"^espalier: warning: (does not fit: .*)$", done.stdout, re.M)
        self.assertLessEqual(len(said), 1, done.stdout)
        return said[0] if said else None

    def commands(self):
        """(words, ranks) of all that judge a job, on two ranks."""
        train, sample = ("-q", "train", self.config, "--overwrite"), ("-q", "sample", self.config, "--overwrite")
        return ((train, 2), (("-q", "plan", self.config, "--ranks", 2), 1), (sample, 2), (("-q", *self.infer_words("--overwrite")), 2))

    def check(self, words):
        for command, ranks in self.commands():
            said = self.warning(*command, ranks=ranks)
            self.assertIsNotNone(said, command)
            self.assertRegex(said, rf"a rank needs [0-9.]+ MiB \(.*\) and has {re.escape(words)}; use more ranks")

    def test_of_the_node(self):
        for command, ranks in self.commands():
            self.assertIsNone(self.warning(*command, ranks=ranks))
        self.node_has(40 << 20)
        self.check("20.0 MiB (what this node has free over 2 ranks)")
        self.node_has(20 << 20)
        self.assertIn("and has 20.0 MiB (what this node has free)", self.warning("-q", "train", self.config, "--overwrite"))

    def test_of_its_control_group(self):
        self.group_has(64000 * MB, 100 * MB, 0)
        self.assertIsNone(self.warning("-q", "train", self.config))
        # 60 - (50 - 30) MiB are left: pages of files that can be given up count as free.
        self.group_has(*(size << 20 for size in (60, 50, 30)))
        self.check("20.0 MiB (what its control group has left over 2 ranks)")
        self.group_has(*(size << 20 for size in (60, 70, 0)))
        self.assertIn("and has 0 B (what its control group has left)", self.warning("-q", "train", self.config, "--overwrite"))
        # What the node has free is less.
        self.group_has(64000 * MB, 0, 0)
        self.node_has(30 << 20)
        self.assertIn("has 15.0 MiB (what this node has free over 2 ranks)", self.warning("-q", "train", self.config, "--overwrite", ranks=2))

    def test_a_limit_that_is_set_is_asked_for_nothing_else(self):
        self.node_has(10 << 20)
        self.group_has(*(size << 20 for size in (60, 50, 30)))
        self.assertIsNone(self.warning("-q", "train", self.config, "run.memory_limit=4GB", ranks=2))

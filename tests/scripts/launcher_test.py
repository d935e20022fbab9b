"""Either launcher is told by what its --version says, is given its own words, and its ranks are found where it keeps them."""

import pathlib
import subprocess
import time

from tests.app.program import FolderTest
from tests.launcher import Launcher, Mpich, OpenMpi


class LauncherTest(FolderTest):
    def launcher(self, name, version, **options):
        return Launcher(str(self.script(name, f"#!/bin/sh\necho '{version}'\n")), **options)

    def test_which_it_is_and_its_words(self):
        one = self.launcher("mpirun", "mpirun (Open MPI) 4.1.4")
        self.assertEqual((one.kind, one.command(1, "p", 7)), (OpenMpi, ["p", "7"]))
        self.assertEqual(one.command(4, "p", 7), [one.program, "-q", "-np", "4", "p", "7"])
        self.assertEqual(one.apart("f"), {"OMPI_MCA_orte_tmpdir_base": "f"})
        other = self.launcher("mpiexec", "HYDRA build details:", under=["qemu", "-L", "root"])
        self.assertEqual((other.kind, other.command(1, "p")), (Mpich, ["qemu", "-L", "root", "p"]))
        self.assertEqual(other.parts((2, ["p"]), (1, ["sh", "-c", "x"])),
                         [other.program, "-np", "2", "qemu", "-L", "root", "p", ":", "-np", "1", "qemu", "-L", "root", "sh", "-c", "x"])
        self.assertEqual(Launcher("there is none").kind, OpenMpi)

    def ranks_of(self, launcher, depth):
        """Of a process that starts rank 0 and rank 3, `depth` processes below itself."""
        script = f"{launcher.rank_variable}=3 sleep 60 & {launcher.rank_variable}=0 sleep 60 & wait"
        for _ in range(depth - 1):
            script = f"sh -c '{script}' & wait"
        process = subprocess.Popen(["sh", "-c", script], start_new_session=True)
        self.addCleanup(process.wait)
        self.addCleanup(subprocess.run, ["pkill", "-s", str(process.pid)])
        end = time.monotonic() + 30
        while len(found := launcher.pids_of_ranks(process.pid)) < 2 and time.monotonic() < end:
            time.sleep(0.01)
        return found

    def test_its_ranks(self):
        for launcher, depth in ((self.launcher("mpirun", "Open MPI"), 1), (self.launcher("mpiexec", "HYDRA"), 2)):
            found = self.ranks_of(launcher, depth)
            self.assertEqual(sorted(found), [0, 3])
            for pid in found.values():
                self.assertIn(b"sleep", pathlib.Path(f"/proc/{pid}/cmdline").read_bytes())

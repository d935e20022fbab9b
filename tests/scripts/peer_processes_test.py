"""bench/peers/processes.py: what the comparison with the peers starts.

Laws: what a command leaves behind, or has started when it fails or takes too long, has ended when run() returns; of processes that work
together none outlives the failure of one, nor one that wants to die with its parent a parent that was killed.
"""

import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest.mock

from tests.app.program import ROOT, FolderTest

PEERS = ROOT / "bench/peers"
sys.path.insert(0, str(PEERS))
import processes  # noqa: E402

DIES_WITH_PARENT = f"import sys, time; sys.path.insert(0, '{PEERS}'); import processes; processes.die_with_parent()"


def is_alive(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class PeerProcesses(FolderTest):
    def note(self, process, name):
        """Of a shell: the process id into the file `name`, which is whole as soon as it is there."""
        return f"echo {process} >{self.folder}/{name}.part; mv {self.folder}/{name}.part {self.folder}/{name}"

    def shell(self, name, then):
        """A command that starts a long sleep, whose process id stands in the file `name`, and goes on with `then`."""
        return ["sh", "-c", f"sleep 300 & {self.note('$!', name)}; {then}"]

    def started(self, name):
        while not (self.folder / name).exists():
            time.sleep(0.02)
        process = int((self.folder / name).read_text())
        self.addCleanup(lambda: is_alive(process) and os.kill(process, signal.SIGKILL))
        return process

    def assert_ended(self, process):
        end = time.monotonic() + 10
        while is_alive(process) and time.monotonic() < end:
            time.sleep(0.02)
        self.assertFalse(is_alive(process), process)

    def test_nothing_is_left_of_a_command(self):
        for name, then, words in (("good", "echo all is well; echo more >&2", None),
                                  ("bad", "echo why >&2; exit 7", "exit status 7: why"),
                                  ("slow", "wait", "no answer in 3 s"),
                                  ("slow_and_deaf", "trap '' TERM; sleep 300", "no answer in 3 s")):
            with self.subTest(name), unittest.mock.patch.object(processes, "GRACE", 1):
                if words is None:
                    self.assertEqual(processes.run(self.shell(name, then), {}, 60), "all is well\n")
                else:
                    with self.assertRaisesRegex(processes.Failed, words):
                        processes.run(self.shell(name, then), {}, 3 if "slow" in name else 60)
                self.assert_ended(self.started(name))

    def test_a_missing_command_is_named(self):
        with self.assertRaisesRegex(processes.Failed, "no-such-command: No such file"):
            processes.run(["no-such-command"], {}, 1)

    def test_where_one_fails_all_end(self):
        with self.assertRaisesRegex(processes.Failed, "second: exit status 3: alas"), processes.Together() as together:
            together.start("first", ["sh", "-c", f"{self.note('$$', 'first')}; exec sleep 300"], {}, self.folder / "first.log")
            first = self.started("first")
            together.start("second", ["sh", "-c", "echo no; echo $WORD; exit 3"], {"WORD": "alas"}, self.folder / "second.log")
            together.wait(["first"], 10)
        self.assert_ended(first)

    def test_waiting_has_an_end(self):
        with processes.Together() as together:
            together.start("long", ["sleep", "300"], {}, self.folder / "long.log")
            together.start("short", ["true"], {}, self.folder / "short.log")
            self.assertTrue(together.wait(["short"], 10))
            self.assertFalse(together.wait(["long"], 0.2))
            process = together.processes["long"].pid
        self.assert_ended(process)

    def test_dies_with_its_parent(self):
        child = f"{DIES_WITH_PARENT}; print(processes.os.getpid(), flush=True); time.sleep(300)"
        parent = subprocess.Popen([sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"],
                                  stdout=subprocess.PIPE, text=True)
        process = int(parent.stdout.readline())
        self.addCleanup(lambda: is_alive(process) and os.kill(process, signal.SIGKILL))
        parent.kill()
        parent.wait()
        parent.stdout.close()
        self.assert_ended(process)

"""A run of the program under way: what it has said, the processes of its ranks, signals to them, and its end."""

import os
import pathlib
import re
import signal
import subprocess
import threading
import time

from tests.app.program import PROGRAM
from tests.launcher import LAUNCHER

# mpirun of Open MPI 4.1.4 may wait for itself for ever (in PMIx_server_finalize) when a rank is killed while MPI starts. All ranks have
# ended by then; it is no hang of the program, and is told apart by that.
LAUNCHER_HUNG = 254


class Running:
    def __init__(self, *arguments, ranks=1, program=PROGRAM, env=None):
        self.ranks, self.pids, self.lines = ranks, {}, []
        self.process = subprocess.Popen(LAUNCHER.command(ranks, program, *arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        errors="replace", env=env)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        with self.process.stdout as output:
            for line in output:
                self.lines.append(line)

    def said(self):
        """So far; of one that has ended all of it, unless ranks outlive their launcher and keep the pipe open."""
        if self.process.poll() is not None:
            self.reader.join(5)
        return "".join(self.lines)

    def says(self, beginning):
        """Has it printed a line that begins so?"""
        return re.search("^" + beginning, self.said(), re.M) is not None

    def wait_for(self, there, what, seconds=60):
        end = time.monotonic() + seconds
        while not there():
            if self.process.poll() is not None or time.monotonic() > end:
                self.process.kill()
                self.process.wait()
                raise AssertionError(f"no {what}: {self.said()}")
            time.sleep(0.001)

    def pid(self, rank):
        """First asked for while all ranks live; kept for when they do not."""
        if not self.pids:
            self.pids = self.pids_of_ranks()
        return self.pids[rank]

    def pids_of_ranks(self):
        return {0: self.process.pid} if self.ranks == 1 else LAUNCHER.pids_of_ranks(self.process.pid)

    def signal(self, number, rank):
        """Until the process has taken notice, however busy the machine is."""
        os.kill(self.pid(rank), number)
        if number not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT):
            self.wait_until(lambda: not self.is_pending(number, rank))

    def is_pending(self, number, rank):
        try:
            fields = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{self.pid(rank)}/status").read_text().splitlines())
        except OSError:  # it has ended
            return False
        return fields["State"].split()[0] not in "ZX" and bool((int(fields["SigPnd"], 16) | int(fields["ShdPnd"], 16)) >> (number - 1) & 1)

    def cpu_seconds(self, rank):
        fields = pathlib.Path(f"/proc/{self.pid(rank)}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def let_it_work(self, seconds, rank=0):
        """Until it has had so many seconds of a core."""
        end = self.cpu_seconds(rank) + seconds
        self.wait_until(lambda: self.cpu_seconds(rank) >= end)

    def wait_until(self, there, seconds=60):
        end = time.monotonic() + seconds
        while not there() and time.monotonic() < end:
            time.sleep(0.002)

    def end(self, seconds=60):
        """(exit code, all that it said)"""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"no end within {seconds} s: {self.said()}")
        return self.process.returncode, self.said()


class Job(Running):
    """On four ranks, one of which may be hit."""

    def __init__(self, *arguments, ranks=4, **options):
        super().__init__(*arguments, ranks=ranks, **options)

    def has_begun(self):
        """Then MPI had started on all ranks."""
        return self.says("graph ")

    def wait_for_epoch(self, number):
        while self.process.poll() is None and not self.says(f"epoch +{number} "):
            time.sleep(0.005)

    def rank_pids(self):
        return LAUNCHER.kind.processes_of_ranks(self.process.pid)

    def signal_one(self, number, choice):
        """Sends a signal to one rank, which `choice` picks; False when there was none any more."""
        pids = self.rank_pids()
        if not pids:
            return False
        try:
            os.kill(choice(pids), number)
        except ProcessLookupError:
            return False
        return True

    def end(self, timeout):
        """(exit code, text, seconds until the end); the code is None when something did not end in time."""
        start = time.monotonic()
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            left = self.rank_pids()
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            self.process.kill()
            self.process.wait()
            code = None if left or self.has_begun() else LAUNCHER_HUNG
        return code, self.said(), time.monotonic() - start

"""Other programs, started so that nothing of them outlives a failure, ours or theirs."""

import ctypes
import os
import signal
import subprocess
import tempfile
import time

GRACE = 20  # seconds for a process to end what it has started
PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG


class Failed(Exception):
    """A process did not answer; the text says how it ended."""


def last_words(*texts):
    """The last line of the first text that has one."""
    return next((text.strip() for text in texts if text.strip()), "no message").splitlines()[-1][:100]


def run(command, environment, limit):
    """What a command prints. It has a session of its own, of which nothing is left afterwards; throws Failed."""
    with tempfile.TemporaryFile("w+", errors="replace") as output, \
            tempfile.TemporaryFile("w+", errors="replace") as errors:
        try:
            process = subprocess.Popen([str(word) for word in command], env={**os.environ, **environment},
                                       stdout=output, stderr=errors, start_new_session=True)
        except OSError as error:
            raise Failed(f"{command[0]}: {error.strerror}") from None
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            raise Failed(f"no answer in {limit} s") from None
        finally:
            end_session(process)
        output.seek(0)
        errors.seek(0)
        if process.returncode != 0:
            raise Failed(f"exit status {process.returncode}: {last_words(errors.read(), output.read())}")
        return output.read()


def end_session(process):
    """Ends it, which ends what it started (mpirun its ranks), and then whatever of its session is left."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def die_with_parent():
    """This process ends when the one that started it does, in whatever way."""
    ctypes.CDLL("libc.so.6").prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() == 1:
        os._exit(1)


class Together:
    """Processes that work together: where one fails all end, at the end of the `with` at the latest."""

    def __init__(self):
        self.processes, self.logs = {}, {}

    def start(self, name, command, environment, log):
        self.logs[name] = log
        with open(log, "w") as output:
            self.processes[name] = subprocess.Popen([str(word) for word in command], env={**os.environ, **environment},
                                                    stdout=output, stderr=output)

    def wait(self, names, limit):
        """Until these have ended; False after so many seconds. Throws Failed where any of all fails before."""
        end = time.monotonic() + limit
        while any(self.processes[name].poll() is None for name in names):
            for name, process in self.processes.items():
                if process.poll():
                    raise Failed(f"{name}: exit status {process.returncode}: {self.last_words(name)}")
            if time.monotonic() > end:
                return False
            time.sleep(0.1)
        return True

    def last_words(self, name):
        with open(self.logs[name], errors="replace") as log:
            return last_words(log.read())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()

"""A local SLURM for the tests: brought up once by scripts/local_slurm.sh, taken down at the end; jobs are submitted and watched here."""

import atexit
import functools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts" / "local_slurm.sh"
CANNOT = 77  # what the script returns where there can be no SLURM
NODES = 4

# Jobs get this environment and nothing of the caller's MPI settings. The virtual nodes share this machine's cores: ranks must
# not spin while they wait, and threads must not be bound.
MPI = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,vader,tcp", "OMPI_MCA_mpi_yield_when_idle": "1",
       "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_PROC_BIND": "false",
       "OMP_WAIT_POLICY": "passive"}
FOREIGN = re.compile(r"(OMPI|PMIX|PRTE|SLURM|SBATCH|SRUN|SQUEUE|SINFO|SCANCEL|OMP)_|MAX_REQUEUES$")


class Cluster:
    def __init__(self, folder):
        self.folder = folder
        self.environment = {name: value for name, value in os.environ.items() if not FOREIGN.match(name)}
        self.environment |= MPI | {"SLURM_CONF": str(folder / "slurm.conf")}

    def up(self):
        """Starts what is not running, also a node that a test killed."""
        done = self.run("bash", SCRIPT, "up", self.folder, NODES, timeout=900, check=False)
        if done.returncode == CANNOT:
            raise unittest.SkipTest(done.stdout.strip())
        if done.returncode != 0:
            raise RuntimeError(f"local_slurm.sh up ended with {done.returncode}:\n{done.stdout}")

    def down(self):
        self.run("bash", SCRIPT, "down", self.folder, timeout=60, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, *command, timeout=60, check=True, cwd=ROOT, **environment):
        done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=timeout, cwd=cwd, env=self.environment | environment)
        if check and done.returncode != 0:
            raise AssertionError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}")
        return done

    def submit(self, *arguments, cwd, **environment):
        """sbatch; returns the Job. What it prints goes to FOLDER/JOBID.out."""
        out = self.run("sbatch", "--parsable", f"--output={cwd}/%j.out", *arguments, cwd=cwd, **environment).stdout
        return Job(self, out.split()[-1], cwd)

    def kill_node(self, name):
        os.kill(int((self.folder / "run" / f"{name}.pid").read_text()), 9)

    def processes(self, program, argument):
        """Ids of the processes that run `program` with that argument, on whichever node."""
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue  # it has ended
            if words[0] == str(program) and argument in words:
                found.append(int(folder.name))
        return sorted(found)

    def state_of_node(self, name):
        return self.run("sinfo", "-h", "-n", name, "-o", "%T").stdout.strip()


class Job:
    def __init__(self, cluster, number, folder):
        self.cluster, self.number, self.folder = cluster, number, folder

    def field(self, name):
        """A field of `scontrol show job`."""
        found = re.search(rf"\b{name}=(\S*)", self.cluster.run("scontrol", "-o", "show", "job", self.number).stdout)
        return found.group(1)

    def output(self):
        path = self.folder / f"{self.number}.out"
        return path.read_text(errors="replace") if path.exists() else ""

    def nodes(self):
        return self.cluster.run("scontrol", "show", "hostnames", self.field("NodeList")).stdout.split()

    def wait_for(self, what, condition, seconds):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise AssertionError(f"job {self.number}: no {what} in {seconds} s; state {self.field('JobState')}:\n{self.output()}")
            time.sleep(0.5)

    def wait_for_output(self, pattern, seconds):
        self.wait_for(f"`{pattern}`", lambda: re.search(pattern, self.output(), re.M), seconds)

    def wait_for_end(self, seconds):
        """Until the job is over and will not come back; returns its state, as COMPLETED."""
        over = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
        self.wait_for("end", lambda: self.field("JobState") in over, seconds)
        return self.field("JobState")

    def signal_batch_shell(self, name):
        """What SLURM does before the limit (--signal=B:...)."""
        self.cluster.run("scancel", "--batch", f"--signal={name}", self.number)

    def cancel(self):
        self.cluster.run("scancel", self.number)


@functools.cache
def start_cluster():
    cluster = Cluster(pathlib.Path(tempfile.mkdtemp(prefix="espalier-slurm-", dir="/tmp")))
    atexit.register(cluster.down)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that atexit runs
    cluster.up()
    return cluster


@functools.cache
def reason_to_skip():
    """Why this machine can have no cluster; None where it has one."""
    try:
        start_cluster()
    except unittest.SkipTest as reason:
        return str(reason)
    return None

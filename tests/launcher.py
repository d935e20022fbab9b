"""How the tests start a program on several ranks: by mpirun of Open MPI or by mpiexec of MPICH, on which Cray's and Intel's MPI
are built. ESPALIER_LAUNCHER names it, `mpirun` if unset; ESPALIER_UNDER is what every rank runs under, as `qemu-aarch64 -L root`.
"""

import os
import pathlib
import re
import shlex
import subprocess

# Threads, and the sanitizers of a build that they watch (make SAN=...): what libraries leak or race in is named in files.
_SANITIZERS = pathlib.Path(__file__).parent / "sanitizers"
EVERYWHERE = {
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive",
    "ASAN_OPTIONS": "detect_stack_use_after_return=1:detect_leaks=1", "UBSAN_OPTIONS": "print_stacktrace=1",
    "LSAN_OPTIONS": f"suppressions={_SANITIZERS}/leaks.supp:print_suppressions=0",
    "TSAN_OPTIONS": f"suppressions={_SANITIZERS}/races.supp:ignore_noninstrumented_modules=1",
}


def parents():
    """{process id: its parent's} of all living processes."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit():
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
                if state != "Z":
                    found[int(entry.name)] = int(parent)
        except (OSError, IndexError):
            pass  # it ended while we looked
    return found


def children_of(pid):
    return sorted(child for child, parent in parents().items() if parent == pid)


class OpenMpi:
    name = "Open MPI"
    quiet = ("-q",)
    rank_variable = "OMPI_COMM_WORLD_RANK"
    # One node, possibly fewer cores than ranks, possibly root in a container.
    environment = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_pml": "ob1",
        "OMPI_MCA_btl": "self,vader", "OMPI_MCA_plm": "isolated", "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "OMPI_MCA_hwloc_base_binding_policy": "none", "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMPI_MCA_odls_base_sigkill_timeout": "0",
        # Devices are nothing to the tests, and to look for them on the bus is a fifth of what a start takes.
        "HWLOC_COMPONENTS": "-linuxio,-pci,-opencl,-cuda,-nvml,-gl,-levelzero,-rsmi",
        # What ranks tell each other at the start goes by messages; a shared store is made and unmade at every start.
        "PMIX_MCA_gds": "hash",
        # Else a thread of Open MPI finds its first function while a start loads and unloads its plugins, and has crashed there.
        "LD_BIND_NOW": "1",
    }
    # As users have it: ranks are ended with SIGTERM, and killed a second later.
    patient = {"OMPI_MCA_odls_base_sigkill_timeout": "1"}
    silences_survivors = False

    @staticmethod
    def apart(folder):
        """A folder of sessions of its own: one rank that ends removes the folder that another, which starts, is about to write
        into (seen in 4 of 480 starts, four at a time)."""
        return {"OMPI_MCA_orte_tmpdir_base": str(folder)}

    @staticmethod
    def processes_of_ranks(pid):
        return children_of(pid)


class Mpich:
    name = "MPICH"
    quiet = ()
    rank_variable = "PMI_RANK"
    environment = {}
    # When a rank is killed the others are, too, before they can say a word; the code is the bare number of the signal.
    patient = {}
    silences_survivors = True

    @staticmethod
    def apart(folder):
        return {}

    @staticmethod
    def processes_of_ranks(pid):
        """Its own children are proxies, one for each node."""
        return sorted(rank for proxy in children_of(pid) for rank in children_of(proxy))


class Launcher:
    """One of both, by what its --version says, and its name."""

    def __init__(self, program="mpirun", under=()):
        self.program, self.under = program, list(under)
        try:
            said = subprocess.run([program, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
        except FileNotFoundError:
            said = ""
        self.kind = Mpich if re.search("HYDRA|MPICH", said, re.I) else OpenMpi
        self.rank_variable = self.kind.rank_variable
        self.environment = {**EVERYWHERE, **self.kind.environment}
        self.patient, self.apart = self.kind.patient, self.kind.apart
        self.silences_survivors = self.kind.silences_survivors

    def command(self, ranks, *program):
        """One rank needs no launcher."""
        return self.parts((ranks, program)) if ranks > 1 else [*self.under, *map(str, program)]

    def parts(self, *parts):
        """Of (ranks, program) pairs: one job whose ranks are started differently."""
        command = [self.program, *self.kind.quiet]
        for ranks, program in parts:
            command += [*([":"] if "-np" in command else []), "-np", str(ranks), *self.under, *map(str, program)]
        return command

    def pids_of_ranks(self, pid):
        """{rank: process id} of the living ranks that it has started; `pid` is its own."""
        found = {}
        for process in self.kind.processes_of_ranks(pid):
            try:
                environ = pathlib.Path(f"/proc/{process}/environ").read_bytes()
            except OSError:
                continue  # it ended while we looked
            rank = re.search(rf"(?:^|\0){self.rank_variable}=(\d+)".encode(), environ)
            if rank:
                found[int(rank.group(1))] = process
        return found


LAUNCHER = Launcher(os.environ.get("ESPALIER_LAUNCHER") or "mpirun", shlex.split(os.environ.get("ESPALIER_UNDER", "")))

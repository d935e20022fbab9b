"""Memory of this process as Linux counts it, in bytes."""

import ctypes
import gc
import os


def status(field):
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(field + ":"):
                return int(line.split()[1]) * 1024
    raise KeyError(field)


def resident():
    """What stays when everything free is given back."""
    gc.collect()
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    except (OSError, AttributeError):
        pass  # another C library: what it keeps counts
    return status("VmRSS")


def peak():
    return status("VmHWM")


def forget_peak():
    """The next peak() is that of the time from now on; where Linux refuses, still that since the start."""
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass


def of_workers():
    """Resident now in the processes that this one started; a page that k processes share counts 1/k."""
    return sum(proportional(process) for process in children(os.getpid()))


def proportional(process):
    """Resident now in one process; a page that k processes share counts 1/k."""
    try:
        with open(f"/proc/{process}/smaps_rollup") as file:
            return sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
    except OSError:
        return 0  # it has just ended


def children(process):
    found = []
    for task in os.listdir(f"/proc/{process}/task"):
        with open(f"/proc/{process}/task/{task}/children") as file:
            found += [int(child) for child in file.read().split()]
    return found

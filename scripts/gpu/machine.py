"""In which state is the machine? Clocks, power, bus and versions, without which two records cannot be compared.

    machine.py      as a program, in a process of its own: what the bus carries and which CUDA there is, as one JSON object
"""

import contextlib
import ctypes
import glob
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree

BYTES = 256 << 20  # of a copy over the bus
COPIES = 8
UNDER_LOAD = {"SM MHz": "clocks.sm", "memory MHz": "clocks.mem", "W": "power.draw", "C": "temperature.gpu"}
# Of `nvidia-smi -q -x`: names differ by driver, the first that is there counts.
STATE = {
    "performance state": ["performance_state"],
    "SM clock": ["clocks/sm_clock"], "SM clock at most": ["max_clocks/sm_clock"],
    "memory clock": ["clocks/mem_clock"], "memory clock at most": ["max_clocks/mem_clock"],
    "power": ["gpu_power_readings/average_power_draw", "gpu_power_readings/power_draw", "power_readings/power_draw"],
    "power at most": ["gpu_power_readings/current_power_limit", "power_readings/power_limit"],
    "temperature": ["temperature/gpu_temp"],
    "PCIe generation": ["pci/pci_gpu_link_info/pcie_gen/current_link_gen"],
    "PCIe generation at most": ["pci/pci_gpu_link_info/pcie_gen/max_link_gen"],
    "PCIe lanes": ["pci/pci_gpu_link_info/link_widths/current_link_width"],
    "ECC": ["ecc_mode/current_ecc"], "MIG": ["mig_mode/current_mig"], "persistence": ["persistence_mode"],
    "firmware": ["vbios_version"],
}

# ---- What the driver says --------------------------------------------------------------------------------------------


def state_of_gpu(text):
    """Of the first GPU on nvidia-smi's page in XML; what it does not say is left out."""
    page = xml.etree.ElementTree.fromstring(text)
    gpu = page.find("gpu")
    found = {"driver": page.findtext("driver_version"), "CUDA of the driver": page.findtext("cuda_version")}
    for name, paths in STATE.items():
        found[name] = next(filter(None, map(gpu.findtext, paths)), None)
    reasons = next((node for node in map(gpu.find, ["clocks_event_reasons", "clocks_throttle_reasons"]) if node is not None), [])
    slowed = [re.sub(r"clocks_(event|throttle)_reason_", "", node.tag) for node in reasons if node.text == "Active"]
    found["clocks are held by"] = ", ".join(slowed) or None
    return {name: value.strip() for name, value in found.items() if value and value.strip() != "N/A"}


def read_state():
    if shutil.which("nvidia-smi") is None:
        return {}
    done = subprocess.run(["nvidia-smi", "-q", "-x"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=60)
    return state_of_gpu(done.stdout) if done.returncode == 0 else {}


@contextlib.contextmanager
def under_load(interval=1.0):
    """A dictionary that has, once the block is left, {median, low, high} of clocks, power and temperature while it ran."""
    found, readings, over = {}, [], threading.Event()

    def read():  # each by a program of its own: one that goes on may keep what it wrote to itself
        while not over.is_set():
            readings.append(subprocess.run(["nvidia-smi", f"--query-gpu={','.join(UNDER_LOAD.values())}", "--format=csv,noheader,nounits",
                                            "-i", "0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout)
            over.wait(interval)

    reader = threading.Thread(target=read, daemon=True) if shutil.which("nvidia-smi") else None
    if reader:
        reader.start()
    try:
        yield found
    finally:
        over.set()
        if reader:
            reader.join(timeout=10)
        found.update(spread_of_readings("".join(readings)))


def spread_of_readings(text):
    rows = [line.split(",") for line in text.splitlines() if line.count(",") == len(UNDER_LOAD) - 1]
    found = {}
    for name, column in zip(UNDER_LOAD, zip(*rows)):
        values = [float(word) for word in column if re.fullmatch(r"\s*[\d.]+\s*", word)]
        if values:
            found[name] = {"median": statistics.median(values), "low": min(values), "high": max(values)}
    return found


# ---- What the bus carries --------------------------------------------------------------------------------------------


class Driver:
    """Calls of libcuda.so.1, each checked."""

    def __init__(self):
        for path in ["libcuda.so.1", *glob.glob("/usr/local/nvidia/lib*/libcuda.so.1")]:
            try:
                self.library = ctypes.CDLL(path)
                return
            except OSError as error:
                why = str(error)
        raise OSError(why)

    def __getattr__(self, name):
        def call(*arguments):
            code = getattr(self.library, name)(*arguments)
            if code != 0:
                raise OSError(f"{name} answers {code}")
        return call


def pinned_rates():
    """GB/s of copies between pinned memory of the host and the GPU."""
    driver = Driver()
    context, host, device = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    driver.cuInit(0)
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    driver.cuCtxSetCurrent(context)
    driver.cuMemHostAlloc(ctypes.byref(host), ctypes.c_size_t(BYTES), 0)
    driver.cuMemAlloc_v2(ctypes.byref(device), ctypes.c_size_t(BYTES))
    bytes_of_copy = ctypes.c_size_t(BYTES)
    return {"host to device GB/s": rate(driver, lambda: driver.cuMemcpyHtoDAsync_v2(device, host, bytes_of_copy, None)),
            "device to host GB/s": rate(driver, lambda: driver.cuMemcpyDtoHAsync_v2(host, device, bytes_of_copy, None))}


def rate(driver, copy):
    seconds = []
    for _ in range(COPIES):
        start = time.perf_counter()
        copy()
        driver.cuCtxSynchronize()
        seconds.append(time.perf_counter() - start)
    return 1e-9 * BYTES / statistics.median(seconds)


def cublas_version():
    """"13.0.2", by cublasGetProperty, which needs no GPU; None where there is no cuBLAS."""
    for name in ("libcublas.so.13", "libcublas.so.12", "libcublas.so"):
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        numbers = []
        for which in range(3):  # MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL
            number = ctypes.c_int()
            if library.cublasGetProperty(which, ctypes.byref(number)) != 0:
                return None
            numbers.append(str(number.value))
        return ".".join(numbers)
    return None


# ---- The part --------------------------------------------------------------------------------------------------------


def check_machine(check):
    check.part("machine", lambda: measure_machine(check), seconds=5)


def measure_machine(check):
    # By the place, whose bin/run finds CUDA's libraries.
    return {**read_state(), **json.loads(check.run(sys.executable, pathlib.Path(__file__).resolve(), timeout=60).splitlines()[-1])}


if __name__ == "__main__":
    print(json.dumps({**pinned_rates(), "cuBLAS": cublas_version()}))

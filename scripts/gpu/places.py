"""Where programs are, and which GPU is here."""

import ctypes
import glob
import json
import pathlib
import re
import shutil
import subprocess
import tarfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


class SourceTree:
    """make's own folders."""

    commands = []  # what stands before a program
    mpirun = ["mpirun"]
    program, cpu_program = ROOT / "build/cuda/espalier", ROOT / "build/cpu/espalier"
    epochs = ROOT / "build/cuda/bench/train/epochs"
    peer = ROOT / "bench/peers/gpu_peer.py"
    results = ROOT / "build/gpu_check.json"

    def tests(self):
        for source in sorted((ROOT / "tests").glob("*/*_test.cu")):
            head = "".join(source.read_text().splitlines(True)[:12])
            ranks = " ".join(re.findall(r"^// ranks:([ 0-9]+)", head, re.M) or ["1"]).split()
            name = source.relative_to(ROOT / "tests").with_suffix("")
            yield str(name), [int(n) for n in ranks], ROOT / "build/cuda/tests" / name

    def benches(self):
        for source in sorted((ROOT / "bench").glob("*/*_bench.cu")):
            name = source.relative_to(ROOT / "bench").with_suffix("")
            yield str(name), ROOT / "build/cuda/bench" / name

    def commit(self):
        return subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True).stdout.strip()


class Bundle:
    """What scripts/make_bundle.sh packed, unpacked at `root`."""

    def __init__(self, root=ROOT):
        self.root = root
        self.commands = [str(root / "bin/run")]
        self.mpirun = [str(root / "bin/mpirun")]
        self.program, self.cpu_program = root / "programs/espalier", root / "programs/espalier-cpu"
        self.epochs = root / "bench/train/epochs"  # not in a bundle from before it was there
        self.peer = root / "peers/gpu_peer.py"
        self.results = root / "gpu_check.json"
        self.manifest = json.loads((root / "manifest.json").read_text())

    def tests(self):
        for name, ranks in self.manifest["tests"].items():
            yield name, ranks, self.root / "tests" / name

    def benches(self):
        for name in self.manifest["benches"]:
            yield name, self.root / "bench" / name

    def commit(self):
        return self.manifest["commit"]


def open_bundle(path, folder):
    """A bundle: the folder of one, or its archive, which is unpacked into `folder`. Raises ValueError where it is none."""
    if path.is_dir():
        root = path.resolve()
    else:
        unpack(path, folder)
        root = folder / "espalier-bundle"
    if not (root / "manifest.json").exists():
        raise ValueError(f"{path}: no bundle, which has a manifest.json")
    return Bundle(root)


def unpack(path, folder):
    if not path.exists():
        raise ValueError(f"{path}: no such file")
    if path.suffix != ".zst":
        with tarfile.open(path) as archive:
            archive.extractall(folder)
        return
    if shutil.which("zstd") is None:
        raise ValueError(f"{path}: no zstd here; unpack it elsewhere, and name its folder")
    with subprocess.Popen(["zstd", "-q", "-d", "--long=27", "-c", path], stdout=subprocess.PIPE) as unpacked:
        with tarfile.open(fileobj=unpacked.stdout, mode="r|") as archive:
            archive.extractall(folder)
    if unpacked.returncode != 0:
        raise ValueError(f"{path}: zstd ends with {unpacked.returncode}")


def describe_gpu():
    """({name, driver, memory}, None), or (None, why there is none); asks the driver alone."""
    for library in ["libcuda.so.1", *glob.glob("/usr/local/nvidia/lib*/libcuda.so.1")]:
        try:
            driver = ctypes.CDLL(library)
            break
        except OSError as error:
            why = str(error)
    else:
        return None, f"no driver: {why}"
    count, version, memory, name = ctypes.c_int(), ctypes.c_int(), ctypes.c_size_t(), ctypes.create_string_buffer(256)
    code = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if code != 0 or count.value == 0:
        return None, f"the driver answers {code}, {count.value} devices"
    driver.cuDriverGetVersion(ctypes.byref(version))
    driver.cuDeviceGetName(name, 256, 0)
    driver.cuDeviceTotalMem_v2(ctypes.byref(memory), 0)
    return {"name": name.value.decode(), "driver": driver_version(), "driver_cuda": version.value / 1000,
            "memory_bytes": memory.value, "devices": count.value}, None


def driver_version():
    """"580.159.04", of the kernel's module; None where it does not say."""
    try:
        found = re.search(r"Kernel Module\s.*?(\d+\.[\d.]+)", pathlib.Path("/proc/driver/nvidia/version").read_text())
        return found and found[1]
    except OSError:
        return None

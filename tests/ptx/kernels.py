"""Kernels written in PTX, for tests: translated, compiled once, run one after the other.

All kernels of a test are one text of PTX and one program. It is run once a launch, `PROGRAM KERNEL BLOCKS THREADS FILE...`:
each file is copied to device memory, the kernel gets one 64-bit pointer a file, and each file is written back. The tests are
about what PTX's definition says ("PTX ISA" below is NVIDIA's document "Parallel Thread Execution ISA").
"""

import contextlib
import fcntl
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
SEED = int(os.environ.get("ESPALIER_TEST_SEED", 1))


def random_numbers():
    """The same for every caller of a run, so that no test depends on those before it."""
    return np.random.default_rng(SEED)


def translate(text, folder, name="kernels"):
    """What the translator answers to `text`, written to FOLDER/NAME.ptx, and the file of C++."""
    source, out = pathlib.Path(folder) / f"{name}.ptx", pathlib.Path(folder) / f"{name}.cpp"
    source.write_text(text)
    done = subprocess.run([sys.executable, str(ROOT / "tests" / "ptx" / "translate.py"), str(source), str(out)], cwd=ROOT,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
    return done, out


@contextlib.contextmanager
def turn():
    """Of one make at a time: all begin with the same objects."""
    folder = ROOT / "build" / "ptx" / "kernels"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield folder


def build(name, text):
    """The program of the kernels in `text`."""
    for needed in ("make", "g++"):
        if shutil.which(needed) is None:
            raise unittest.SkipTest(f"no {needed} here")
    environment = {key: value for key, value in os.environ.items() if key not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    with tempfile.TemporaryDirectory(prefix="espalier-ptx-") as folder, turn() as programs:
        source, program = pathlib.Path(folder) / f"{name}.ptx", programs / name
        source.write_text(text)
        program.unlink(missing_ok=True)  # made anew: what it is made of is not all known to make
        done = subprocess.run(["make", "-s", "--no-print-directory", str(program.relative_to(ROOT)), f"PTX={source}"], cwd=ROOT,
                              env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=250,
                              check=False)
    if done.returncode != 0:
        raise AssertionError(f"{name} was not built:\n{done.stdout[:3000]}")
    return program


def entry(name, pointers, body):
    """A kernel that is given so many pointers, as %g0, %g1, ...; %i is the number of its thread in the grid."""
    parameters = ", ".join(f".param .u64 {name}_{k}" for k in range(pointers))
    loads = "\n".join(f"  ld.param.u64 %g{k}, [{name}_{k}];\n  cvta.to.global.u64 %g{k}, %g{k};" for k in range(pointers))
    return f""".visible .entry {name}({parameters})
{{
  .reg .b64 %g<{pointers + 1}>;
  .reg .b32 %i, %block, %size, %thread;
{loads}
  mov.u32 %block, %ctaid.x;
  mov.u32 %size, %ntid.x;
  mov.u32 %thread, %tid.x;
  mad.lo.s32 %i, %block, %size, %thread;
{body}
  ret;
}}
"""


class Kernels:
    """The kernels of one file of tests."""

    def __init__(self, name):
        self.name, self.entries, self.globals, self.program = name, [], "", None

    def add(self, name, pointers, body):
        self.entries.append(entry(name, pointers, body))

    def text(self):
        return HEAD + self.globals + "\n".join(self.entries)

    def build(self):
        self.program = build(self.name, self.text())

    def launch(self, kernel, blocks, threads, arrays):
        """What is left of a launch: exit code, words, arrays."""
        with tempfile.TemporaryDirectory(prefix="espalier-ptx-") as folder:
            files = [pathlib.Path(folder) / str(k) for k in range(len(arrays))]
            for file, array in zip(files, arrays):
                file.write_bytes(np.ascontiguousarray(array).tobytes())
            done = subprocess.run([str(self.program), kernel, str(blocks), str(threads), *map(str, files)],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", timeout=100,
                                  check=False)
            after = [np.frombuffer(file.read_bytes(), array.dtype).reshape(array.shape) for file, array in zip(files, arrays)]
        return done.returncode, done.stdout, after

    def run(self, kernel, blocks, threads, arrays):
        """The arrays after a launch that must succeed."""
        code, words, after = self.launch(kernel, blocks, threads, arrays)
        if code != 0:
            raise AssertionError(f"{self.name}, kernel {kernel}: exit {code}: {words[-2000:]}")
        return after

    def trap(self, kernel, blocks, threads, arrays):
        """The words of a launch that must end by a trap."""
        code, words, _ = self.launch(kernel, blocks, threads, arrays)
        if code == 0:
            raise AssertionError(f"{self.name}, kernel {kernel}: no trap")
        return words

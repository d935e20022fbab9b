"""What tests/run.py does more with kernels that a sanitizer watches, `make race-check` and `make memory-check` (docs/gpu-kernels.md),
and which kernels the tests run at all.

A test of kernels in build/memory runs twice, with other bytes in new memory of the device (FILLS). What it copies to the host must be
the same: else a result depends on what nobody wrote.
"""

import collections
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from kernel_names import demangle, describe  # noqa: E402

BUILDS = {"for races": "build/races", "for memory": "build/memory"}
FILLS = {"for memory": (0xff, 0x5b)}  # NaN and -1; large numbers

# Kernels that whole jobs run (tests/app), and no test of kernels yet.
OF_JOBS = {f"for_each_kernel in `{name}`" for name in ("numbers_of", "scale_drawn_rows")} | {"for_each_kernel in `list_edges` #2"}
KERNEL = re.compile(r"__global__\s+void\s+(?:__launch_bounds__\((?:[^()]|\([^()]*\))*\)\s*)?(\w+)\(")


def run_with_fills(run, kind, env):
    """run(environment) -> (counts, output), once for each of the kind's fills, and a failure where they copied different bytes."""
    # Of the sanitizers only what the emulation itself asks for (tests/emulation/watch.cpp).
    env = {name: value for name, value in env.items() if name not in ("ASAN_OPTIONS", "TSAN_OPTIONS")}
    seen, failed, outputs = [], 0, []
    for fill in FILLS.get(kind, (None,)):
        with tempfile.TemporaryDirectory() as folder:
            given = {} if fill is None else {"ESPALIER_EMULATED_FILL": str(fill), "ESPALIER_EMULATED_COPIES": folder}
            counts, output = run(dict(env, **given))
            seen.append({file.name: file.read_text().splitlines() for file in pathlib.Path(folder).iterdir()})
        failed = max(failed, counts[1])
        outputs.append(f"with 0x{fill:02x} in new memory:\n{output}" if fill and counts[1] else output)
    differ = [f"{rank}: {difference(seen[0][rank], seen[-1].get(rank, []))}\n" for rank in sorted(seen[0]) if seen[0][rank] != seen[-1].get(rank)]
    return (counts[0], max(failed, int(bool(differ))), counts[2]), "".join(outputs[:1] if outputs[0] == outputs[-1] else outputs) + "".join(differ)


def difference(one, other):
    """Where two lists of copies part."""
    for number, (left, right) in enumerate(zip(one, other)):
        if left != right:
            alike = sum(a != b for a, b in zip(one, other))
            return f"copy {number} of {len(one)} to the host depends on what nobody wrote: {left}, {right} ({alike} differ)"
    return f"{len(one)} copies to the host, and {len(other)} with another fill"


# ---- Kernels that no test runs ------------------------------------------------------------------

def symbols(*files):
    """{address: names} of the functions of programs or archives."""
    listed = subprocess.run(["nm", *map(str, files)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    found = collections.defaultdict(set)
    for address, kind, name in re.findall(r"^([0-9a-f]+) (\w) (_Z\w+)$", listed, re.M):
        if kind in "tTwW":
            found[int(address, 16)].add(name)
    return found


def kernels_of(build):
    """The mangled names of all kernels of the library."""
    sources = [*(ROOT / "src").rglob("*.cu"), *(ROOT / "src").rglob("*.hpp"), *(ROOT / "include").rglob("*.hpp")]
    names = {name for path in sources for name in KERNEL.findall(path.read_text())}
    functions = set().union(*symbols(ROOT / build / "libespalier.a").values())
    # A lambda within a kernel is none: _ZZ.
    texts = demangle(sorted(name for name in functions if not name.startswith("_ZZ")))
    return {mangled for mangled, text in texts.items() if describe(text)[0] in names}


def launched(folder):
    """The mangled names of kernels that programs noted in a folder (tests/emulation/launches.cpp)."""
    by_program = collections.defaultdict(set)
    for file in pathlib.Path(folder).iterdir():
        program, *kernels = file.read_text().splitlines() or [""]
        by_program[program].update(kernels)
    names = set()
    for program, places in by_program.items():
        known = symbols(program)
        names.update(*(known.get(int(place, 16), ()) for place in places))
    return names


def without_test(build, folder):
    """The kernels of a build that no program noted in the folder, and how many there are: a kernel is one, whatever types it is
    made for."""
    all_of_them, ran = plain_names(kernels_of(build)), plain_names(launched(folder))
    return sorted(all_of_them - ran - OF_JOBS), len(all_of_them)


def plain_names(names):
    """Without template arguments, but with the function in which the lambda is that a kernel runs."""
    return {name + re.sub(r"<[^`]*>(?=`)", "", where) for name, _, where in map(describe, demangle(sorted(names)).values())}

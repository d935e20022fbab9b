#!/usr/bin/env python3
"""Runs the tests and closes with one line: `N passed, N failed, N skipped`.

A C++ test file (tests/ROOM/OP_test.cpp) says in its first lines at which rank counts it runs, `// ranks: 1 2 3`; each test
counts once per rank count. `// long ranks: 4` adds counts for --long, and for --np, which names them. A Python test file (tests/ROOM/OP_test.py, unittest) runs the built program; it finds
it in ESPALIER. Several ranks are started by what ESPALIER_LAUNCHER names (tests/launcher.py). What it prints behind "note: " is shown. Tests whose name begins with Long run with --long only.

A test file of the GPU (tests/ROOM/OP_test.cu) gives a line per rank count for each of --kernels: `emulated` runs its kernels
on the CPU as the C++ compiler makes them (build/emulated), `as compiled` as nvcc does (build/ptx); `on GPU` is the program that nvcc made (build/cuda), where a GPU is. The Python tests that want a GPU take the program of the first.
`for races` and `for memory` are emulated too, with a sanitizer that watches (build/races, build/memory): tests/watched.py.
"""

import argparse
import ast
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests import watched  # noqa: E402
from tests.launcher import LAUNCHER  # noqa: E402

TIMEOUT_SECONDS = {False: 300, True: 3000}  # of a test file, on an idle machine

# Tests of moments: they stop ranks, or wait for what happens in time, and a busy machine would disturb them: they run
# after the others, three times as many at a time, as they mostly wait, those in Python a class at a time.
MOMENTS = ("base/signals", "base/watchdog", "app/output_test", "app/restart", "app/stopping", "faults/faults")


# How the GPU's tests run: in which build.
KERNELS = {"emulated": "build/emulated", "as compiled": "build/ptx", "on GPU": "build/cuda", **watched.BUILDS}


class Tally:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def add(self, passed, failed, skipped):
        self.passed += passed
        self.failed += failed
        self.skipped += skipped


def share_of_a_core():
    """How much of one each thread gets that wants one now."""
    running = int(pathlib.Path("/proc/loadavg").read_text().split()[3].partition("/")[0])
    return min(1, os.cpu_count() / max(1, running))


def run(command, env, timeout):
    """Its exit code and output. `timeout`: so many seconds with a core for each of its threads; on a busy machine, where it
    gets a part of them, it has as much longer."""
    try:
        with tempfile.TemporaryDirectory(prefix="mpi-", ignore_cleanup_errors=True) as sessions, \
                subprocess.Popen(command, env=dict(env, **LAUNCHER.apart(sessions)), stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, errors="replace") as process:
            return end_of(process, timeout)
    except FileNotFoundError as missing:
        return 127, f"{missing}\n"


def end_of(process, timeout):
    had, start = 0, time.monotonic()
    while True:
        begin = time.monotonic()
        try:
            output, _ = process.communicate(timeout=1)
            return process.returncode, output
        except subprocess.TimeoutExpired as expired:
            had += (time.monotonic() - begin) * share_of_a_core()
            if had >= timeout:
                process.kill()
                return 124, (expired.output or b"").decode(errors="replace") + \
                    f"\nno answer in {timeout} s of a core for each thread, {time.monotonic() - start:.0f} s by the clock\n"
        except BaseException:
            process.kill()
            raise


def ranks_of(source, long):
    head = "".join(source.open().readlines()[:12])
    found = re.findall(r"^// ranks:([ 0-9]+)", head, re.M) or ["1"]
    if long:
        found += re.findall(r"^// long ranks:([ 0-9]+)", head, re.M)
    return [int(n) for n in " ".join(found).split()]


def gtest_counts(report):
    """(passed, failed, skipped) of a JSON report."""
    passed = failed = skipped = 0
    for suite in json.loads(report.read_text())["testsuites"]:
        for test in suite["testsuite"]:
            if test.get("result") == "SKIPPED":
                skipped += 1
            elif test.get("result") == "COMPLETED":
                failed += bool(test.get("failures"))
                passed += not test.get("failures")
    return passed, failed, skipped


def command_of(source, build, options):
    """A room's tests are one program, which is told the file, but for those that have one of their own."""
    tests = ROOT / build / "tests"
    if options.by_room_but is None or str(source.relative_to(ROOT)) in options.by_room_but:
        return [str(tests / source.relative_to(ROOT / "tests").with_suffix(""))]
    return [str(tests / source.parent.name / "all_tests"), f"--file={source.name}"]


# What C++ tests get from the C library is not 0 by chance, nor is what was freed: who reads it sees 0xaa or 0x55.
PERTURBED = {"MALLOC_PERTURB_": "85"}


def run_gtest(program, ranks, options, env):
    env = dict(env, **PERTURBED)
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        command = [*program, f"--gtest_output=json:{report}", "--gtest_brief=1"]
        if not options.long:
            command.append("--gtest_filter=-*.Long*")
        code, output = run(LAUNCHER.command(ranks, *command), env, TIMEOUT_SECONDS[options.long])
        counts = gtest_counts(report) if report.exists() else (0, 0, 0)
    if code != 0 and counts[1] == 0:
        counts = (counts[0], 1, counts[2])  # it crashed, hung, or failed outside of any test
    return counts, output


def parts_of(source, name):
    """A file of moments by its classes, so that none of them is waited for when all else is done."""
    if not name.startswith(MOMENTS):
        return [""]
    classes = [node for node in ast.parse(source.read_text()).body if isinstance(node, ast.ClassDef) and node.bases]
    bases = {base.id for node in classes for base in node.bases if isinstance(base, ast.Name)}
    return [node.name for node in classes
            if node.name not in bases or any(getattr(item, "name", "").startswith("test") for item in node.body)]


def run_python(source, part, options, env):
    env = dict(env, ESPALIER=str(ROOT / options.build / "espalier"),
               ESPALIER_EMULATED=str(ROOT / KERNELS[options.kernels[0]] / "espalier"), ESPALIER_LONG="1" if options.long else "")
    module = ".".join(source.relative_to(ROOT).with_suffix("").parts)
    code, output = run([sys.executable, "-m", "unittest", "-v", module + (f".{part}" if part else "")],
                       dict(env, PYTHONPATH=str(ROOT)), TIMEOUT_SECONDS[options.long])
    ran = re.search(r"^Ran (\d+) test", output, re.M)
    total = int(ran.group(1)) if ran else 0
    count = {word: int(n) for word, n in re.findall(r"(failures|errors|skipped)=(\d+)", output)}
    failed = count.get("failures", 0) + count.get("errors", 0)
    skipped = count.get("skipped", 0)
    if code != 0 and failed == 0:
        failed = 1
    return (max(total - failed - skipped, 0), failed, skipped), output


def skip_reasons(output):
    """What tests said when they skipped themselves, and how many said it, as lines."""
    said = re.findall(r": Skipped\n(.+)", output)
    return [f"skipped: {reason} ({said.count(reason)})" for reason in sorted(set(said))]


def run_kernels(kind, program, ranks, options, launches, env):
    if kind in watched.BUILDS:
        counts, output = watched.run_with_fills(partial(run_gtest, program, ranks, options), kind, dict(env, ESPALIER_EMULATED_LAUNCHES=launches))
    else:
        counts, output = run_gtest(program, ranks, options, env)
    return counts, output, skip_reasons(output)


@functools.cache
def gpu_is_here():
    """As far as a glance tells."""
    return any(pathlib.Path("/dev").glob("nvidia[0-9]*")) or pathlib.Path("/dev/dxg").exists()


def show_missed(kind, folder):
    """Whether there are kernels that no test ran, which it names."""
    missed, number = watched.without_test(KERNELS[kind], folder)
    print(f"note: {number - len(missed)} of {number} kernels ran {kind}")
    for name in missed:
        print(f"    no test of GPUs runs {name}")
    return bool(missed)


def wanted(source, only):
    name = str(source.relative_to(ROOT / "tests"))
    return not only or name.startswith(only)


def show(name, counts, seconds, output, remarks=None):
    words = f"{counts[0]} passed" + (f", {counts[1]} FAILED" if counts[1] else "") + \
        (f", {counts[2]} skipped" if counts[2] else "")
    print(f"{name:<44} {words:<34} {seconds:6.1f} s", flush=True)
    if counts[1]:
        print(output, flush=True)
        return
    if remarks is None:
        remarks = [line.strip() for line in output.splitlines()
                   if line.startswith("note: ") or "skipped" in line.lower() and ("'" in line or "Skipped" in line)]
    for remark in remarks:
        print("    " + remark, flush=True)


def run_side_by_side(tests, jobs):
    """Runs (name, work) pairs, `jobs` at a time and a quarter more, as a test waits for a fifth of its time, those of
    moments after the others, and shows them in their order."""
    def timed(work):
        start = time.time()
        counts, output, *remarks = work()
        return counts, time.time() - start, output, *remarks

    def finish(name, counts, *rest):
        tally.add(*counts)
        show(name, counts, *rest)

    tally = Tally()
    for of_moments in (False, True):
        with concurrent.futures.ThreadPoolExecutor(3 * jobs if of_moments else jobs + (jobs + 3) // 4) as pool:
            # The long ones, which stand at the end, begin first.
            running = [(name, pool.submit(timed, work)) for name, work in reversed(tests)
                       if name.startswith(MOMENTS) == of_moments]
            for name, result in reversed(running):
                finish(name, *result.result())
    return tally


def main():
    # Of a background shell or nohup: goes on being ignored here, but tests, which send them, would inherit that.
    for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(ignored) == signal.SIG_IGN:
            signal.signal(ignored, lambda *_: None)
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build/cpu")
    parser.add_argument("--kernels", default="emulated", type=lambda kinds: kinds.replace("-", " ").split(","),
                        help="of emulated, as-compiled, for-races, for-memory those that are wanted, with commas: how the GPU's tests run")
    parser.add_argument("--only-gpu", action="store_true", help="no tests but those of kernels")
    parser.add_argument("--only", default="")
    parser.add_argument("--np", type=lambda counts: [int(n) for n in counts.split(",")], help="3, or 1,2,4: at these rank counts only")
    parser.add_argument("--by-room-but", type=lambda files: files.split(","),
                        help="a room's C++ tests are one program (test.mk), but for these files")
    parser.add_argument("--no-gpu", action="store_true", help="no test of kernels")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="tests that run at the same time")
    options = parser.parse_args()
    os.chdir(ROOT)
    # One folder for all that tests write: what a killed one leaves goes with it.
    with tempfile.TemporaryDirectory(prefix="espalier-", ignore_cleanup_errors=True) as folder:
        tempfile.tempdir = folder
        return run_tests(options, dict(os.environ, **LAUNCHER.environment, TMPDIR=folder))


def run_tests(options, env):
    tests = []  # (name, what runs it), in the order in which they are shown
    launches = {kind: tempfile.mkdtemp() for kind in watched.BUILDS}
    for source in sorted((ROOT / "tests").glob("*/*_test.c*")):
        if not wanted(source, options.only) or source.suffix == (".cu" if options.no_gpu else ".cpp" if options.only_gpu else ""):
            continue
        name = source.relative_to(ROOT / "tests").with_suffix("")
        for ranks in ranks_of(source, options.long or options.np):
            if options.np and ranks not in options.np:
                continue
            if source.suffix == ".cpp":
                tests.append((f"{name} np {ranks}",
                              partial(run_gtest, command_of(source, options.build, options), ranks, options, env)))
            else:
                for kind in options.kernels + (["on GPU"] if gpu_is_here() else []):
                    tests.append((f"{name} {kind} np {ranks}",
                                  partial(run_kernels, kind, command_of(source, KERNELS[kind], options), ranks, options,
                                          launches.get(kind), env)))
    for source in sorted((ROOT / "tests").glob("*/*_test.py")):
        if not wanted(source, options.only) or options.np or options.only_gpu:
            continue
        name = str(source.relative_to(ROOT / "tests"))
        for part in parts_of(source, name):
            tests.append((f"{name} {part}".strip(), partial(run_python, source, part, options, env)))

    tally = run_side_by_side(tests, options.jobs)
    if "as compiled" not in options.kernels and any(" emulated np " in name for name, _ in tests):
        print("note: kernels ran as the C++ compiler makes them, not as nvcc does (tests/ptx)")
    if not options.only and (not options.np or 1 in options.np):
        tally.failed += sum(show_missed(kind, launches[kind]) for kind in options.kernels if kind in watched.BUILDS)
    print(f"{tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped")
    return 1 if tally.failed or tally.passed + tally.skipped == 0 else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""What can be known of the kernels without a GPU, as one table: gpu_static.py REPORTS SOURCES...

REPORTS: the folder of ptxas' reports, ROOM/FILE.cu.ptxas, made by `make cuda` (nvcc -Xptxas -v).
SOURCES: the folders of the source, which say how many threads a kernel is launched with: those of
its __launch_bounds__. Numbers that differ by architecture are divided by a slash.

Occupancy is the share of a multiprocessor's 64 warps that can be there at once, by registers,
threads and shared memory. Limits: CUDA C++ Programming Guide, section "Compute Capabilities", table
"Technical Specifications per Compute Capability". How they are dealt out: the toolkit's
cuda_occupancy.h. Registers go to a warp by 256, from the quarter of the multiprocessor that it is
in; shared memory goes to a block by 128 bytes, with 1 KiB of it for the system.
"""

import collections
import pathlib
import re
import sys

from kernel_names import OWN, demangle, describe, instances

WARP, WARPS, BLOCKS, REGISTERS, QUARTERS = 32, 64, 32, 65536, 4  # of sm_80 and sm_90 alike
SHARED = {"sm_80": 164 * 1024, "sm_90": 228 * 1024}  # bytes of a multiprocessor

HEADER = ("kernel", "file", "registers", "stack", "spills", "shared", "threads", "occupancy")
Usage = collections.namedtuple("Usage", "stack stores loads registers shared")

# ---- ptxas' reports -----------------------------------------------------------------------------

ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'.*?(\d+) bytes stack frame, "
                   r"(\d+) bytes spill stores, (\d+) bytes spill loads.*?"
                   r"Used (\d+) registers(?:[^\n]* (\d+) bytes smem)?", re.S)


def read_reports(folder, sources):
    """{mangled name: (file, {architecture: Usage})}, of files that the source still has. A kernel
    of several files counts once."""
    kernels = {}
    for path in sorted(folder.rglob("*.ptxas")):
        file = path.relative_to(folder).with_suffix("")
        if not any((source / file).exists() for source in sources):
            continue
        for name, machine, *used in ENTRY.findall(path.read_text()):
            usage = Usage(*[int(number or 0) for number in used])
            kernels.setdefault(name, (str(file), {}))[1].setdefault(machine, usage)
    return kernels


# ---- Threads and occupancy ----------------------------------------------------------------------

def evaluate(expression, constants):
    """The value of a C++ expression of numbers and named constants; None for another one."""
    def value(name):
        return f"({evaluate(constants.get(name.group(), '?'), constants)})"
    known = re.sub(r"[A-Za-z_]\w*", value, expression)
    return eval(known.replace("/", "//")) if re.fullmatch(r"[\d\s()*/+-]+", known) else None


def launch_bounds(folders):
    """{kernel: threads of its blocks}, from the source."""
    paths = [path for folder in folders for path in sorted(folder.rglob("*"))]
    text = "\n".join(path.read_text() for path in paths if path.suffix in (".cu", ".hpp"))
    declared = ", ".join(re.findall(r"constexpr int ([^;]+);", text))
    constants = dict(re.findall(r"(\w+) = ([^,]+)", declared))
    bounds = re.findall(r"__launch_bounds__\(([^(),]+)(?:,.*?)?\)\s*(\w+)\(", text)
    return {kernel: evaluate(expression, constants) for expression, kernel in bounds}


def up(number, granularity):
    return -(-number // granularity) * granularity


def occupancy(machine, registers, threads, shared):
    """The share of the warps of a multiprocessor that can be there at once; None if not known."""
    if threads is None or machine not in SHARED:
        return None
    warps = up(threads, WARP) // WARP
    warps_of_quarter = REGISTERS // QUARTERS // up(max(registers, 1) * WARP, 256)
    by_registers = warps_of_quarter * QUARTERS // warps
    by_shared = SHARED[machine] // up(shared + 1024, 128)
    return min(BLOCKS, WARPS // warps, by_registers, by_shared) * warps / WARPS


# ---- The table ----------------------------------------------------------------------------------

def by_machine(texts):
    """One text where all are alike."""
    texts = [str(text) for text in texts]
    return texts[0] if len(set(texts)) == 1 else " / ".join(texts)


def numbers(machines, threads):
    """The cells of a kernel from `registers` on. machines: {architecture: Usage}."""
    usages = [machines[machine] for machine in sorted(machines)]
    shares = [occupancy(machine, machines[machine].registers, threads, machines[machine].shared)
              for machine in sorted(machines)]
    spills = [f"{each.stores}, {each.loads}" if each.stores + each.loads else 0 for each in usages]
    return (by_machine(each.registers for each in usages),
            by_machine(each.stack for each in usages), by_machine(spills),
            by_machine(each.shared for each in usages), str(threads or "?"),
            by_machine("?" if share is None else f"{100 * share:.0f} %" for share in shares))


def in_memory(machines):
    """Bytes of a thread that registers do not hold."""
    return max(usage.stack + usage.stores + usage.loads for usage in machines.values())


def rows_of(kernels, texts, threads):
    """Those with a stack frame or spills first. Instances of a template with the same numbers share
    a row."""
    rows = collections.defaultdict(list)
    for mangled, (file, machines) in kernels.items():
        name, given, where = describe(texts[mangled])
        cells = numbers(machines, threads.get(name))
        rows[(-in_memory(machines), file, name, where, cells)].append(tuple(given))
    for (_, file, name, where, cells), lists in sorted(rows.items()):
        yield (instances(name, sorted(lists)) + where, file, *cells)


def print_table(rows):
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in [rows[0], ["-" * width for width in widths], *rows[1:]]:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |")


def count(kernels, of=""):
    found = sum(in_memory(machines) > 0 for _, machines in kernels.values())
    plural = "s" if len(kernels) != 1 else ""
    return f"{len(kernels)} kernel{plural}{of}, {found} with a stack frame or spills"


def main(folders):
    reports, *sources = map(pathlib.Path, folders)
    kernels = read_reports(reports, sources)
    if not kernels:
        print(f"gpu_static: {reports} has no report of ptxas: make gpu-static", file=sys.stderr)
        return 2
    texts = demangle(list(kernels))
    own = {name: kernel for name, kernel in kernels.items() if OWN.match(texts[name])}
    others = {name: kernel for name, kernel in kernels.items() if name not in own}
    machines = sorted({machine for _, each in kernels.values() for machine in each})
    print(f"{' / '.join(machines)}; stack, spills (stores, loads) and shared memory in bytes\n")
    print_table([HEADER, *rows_of(own, texts, launch_bounds(sources))])
    print(f"\n{count(own)}; {count(others, ' of CUB')}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

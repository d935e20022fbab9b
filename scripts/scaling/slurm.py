"""Hands cases to SLURM: one array job per number of ranks, as all tasks of an array have the same size."""
import pathlib
import re
import shlex
import shutil
import subprocess

from . import study as studies
from .study import Refusal

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "slurm" / "scaling.sbatch"


def ranges(indices):
    """[0, 1, 2, 5] -> "0-2,5", as --array wants it."""
    runs = []
    for index in sorted(indices):
        if runs and runs[-1][1] == index - 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def commands(study, indices, ranks_per_node, at_once=None, options=""):
    """{p: the sbatch command for the cases of p ranks}, smallest p first."""
    result = {}
    for p in sorted({study.cases[index].ranks for index in indices}):
        mine = [index for index in indices if study.cases[index].ranks == p]
        per_node = min(p, ranks_per_node or p)
        result[p] = [
            "sbatch", "--parsable", f"--job-name=scaling-p{p}", f"--nodes={-(-p // per_node)}", f"--ntasks={p}",
            f"--ntasks-per-node={per_node}", f"--cpus-per-task={study.threads}",
            f"--array={ranges(mine)}" + (f"%{at_once}" if at_once else ""),
            f"--output={study.folder / 'slurm-%A_%a.out'}", *shlex.split(options), str(SCRIPT), str(study.folder)]
    return result


def queued(study):
    """{index: job} of the cases that an earlier submission still has in the queue."""
    path = study.folder / "jobs.json"
    jobs, damage = studies.read_json(path)
    if damage:
        raise Refusal(f"{path}: {damage}; remove it once none of its jobs is in the queue")
    if not jobs or shutil.which("squeue") is None:
        return {}
    done = subprocess.run(["squeue", "--noheader", "--array", "--format=%i", "--me"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True, timeout=60)
    if done.returncode != 0:
        raise Refusal(f"squeue does not answer, so cases might be submitted twice: {done.stderr.strip()}")
    waiting = set(re.findall(r"^(\d+_\d+)$", done.stdout, re.M))
    return {index: job for job, indices in jobs.items() for index in indices if f"{job}_{index}" in waiting}


def submit(study, orders):
    """Runs the sbatch commands; {p: job}. What was submitted is on disk before the next one is."""
    path = study.folder / "jobs.json"
    jobs = studies.read_json(path)[0] or {}
    for p, (words, indices) in orders.items():
        done = subprocess.run(words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
        if done.returncode != 0:
            raise Refusal(f"sbatch refused the cases of {p} ranks: {done.stderr.strip()} (account, partition and such: "
                          f"edit {SCRIPT.relative_to(ROOT)}, or give --sbatch '--account=...')")
        job = done.stdout.strip().split(";")[0]
        jobs[job] = indices
        studies.write_json(path, jobs)
        yield p, job

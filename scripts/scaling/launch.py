"""Runs one case on this machine, or inside of the allocation of a batch job."""
import datetime
import math
import os
import platform
import re
import shlex
import shutil
import signal
import subprocess
import time

from . import study as studies
from .study import Refusal

LOCAL, IN_A_JOB = "mpirun -np {ranks}", "srun --ntasks={ranks} --cpus-per-task={threads} --kill-on-bad-exit=1"
TIMED_OUT = 124
PATIENCE = 15  # seconds that a program gets to end after it was asked to


# ---- The machine -----------------------------------------------------------------------------------------------------


def cores():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def machine():
    """What the page says of where a case ran. No host name: pages are published."""
    try:
        with open("/proc/cpuinfo") as file:
            cpu = re.search(r"^model name\s*:\s*(.*)$", file.read(), re.M).group(1)
    except (OSError, AttributeError):
        cpu = platform.machine()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    nodes = int(os.environ.get("SLURM_JOB_NUM_NODES", 1))
    on_node = os.environ.get("SLURM_CPUS_ON_NODE")
    return {"cpu": " ".join(cpu.split()), "cores": int(on_node) if on_node else cores(), "memory_gib": round(memory),
            "nodes": nodes, "cluster": os.environ.get("SLURM_CLUSTER_NAME", "")}


# ---- Commands --------------------------------------------------------------------------------------------------------


def launcher(study, case):
    return [word.replace("{ranks}", str(case.ranks)).replace("{threads}", str(study.threads))
            for word in shlex.split(study.launcher)]


def generate_command(study, case, path):
    """`espalier generate` of the case's graph: the vertices of one rank, times p."""
    words = shlex.split(study.generate)
    option, grow = (("--nodes", lambda n: n * case.ranks) if words[0] == "planted" else
                    ("--scale", lambda n: n + round(math.log2(case.ranks))))
    place = words.index(option) + 1
    words[place] = str(grow(int(words[place])))
    return launcher(study, case) + [study.program, "generate", *words, "-o", str(path)]


def command(study, case):
    """The words that run a case. What the study fixes comes after the user's keys: it cannot be one of them."""
    keys = [key for key in study.keys if case.topology == "vertex-cut" or not key.startswith("graph.cut=")]
    if study.study == "weak":
        keys.append(f"graph.file={study.graph(case)}")
    batches = case.ranks if study.study == "weak" else study.batches_per_step
    if batches and not any(key.startswith("train.batches_per_step=") for key in keys):
        keys.append(f"train.batches_per_step={batches}")
    keys += [f"grid.replication={case.replication}", f"grid.topology={case.topology}", f"run.threads={study.threads}",
             "run.restart=never", "--overwrite", f"output.dir={study.path(case)}"]
    options = ["--epochs", str(study.epochs)] if study.command == "sample" else []
    if study.command == "train":
        keys += [f"train.epochs={study.epochs}", "train.early_stop=0"]
    return launcher(study, case) + [study.program, study.command, str(study.folder / "config.toml"), *options, *keys]


def environment(study, case):
    """Open MPI on one machine: as many ranks as asked for, root or not. A batch system says such things itself."""
    env = dict(os.environ)
    if "SLURM_JOB_ID" in env:
        return env
    wanted = {"OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_hwloc_base_binding_policy": "none"}
    if os.geteuid() == 0:
        wanted.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    if case.ranks * study.threads > cores():  # ranks that share a core wait politely
        wanted.update(OMPI_MCA_mpi_yield_when_idle="1", OMP_WAIT_POLICY="passive")
    for name, value in wanted.items():
        env.setdefault(name, value)
    return env


def check_programs(study):
    """Before the first case: is there what every case needs?"""
    if not (os.path.isfile(study.program) and os.access(study.program, os.X_OK)):
        raise Refusal(f"no program at {study.program}: build it with `make`, or name it with --program")
    first = shlex.split(study.launcher)[0]
    if shutil.which(first) is None:
        raise Refusal(f"{first} is not found: install MPI or load its module, or give another --launcher")


# ---- A run -----------------------------------------------------------------------------------------------------------


def stop(process):
    """Asks the program to end, all of its ranks, and makes it end where it does not."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, how)
            process.wait(PATIENCE)
            return
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            pass


def execute(words, log, env, folder, limit):
    """Exit code of a command whose output goes to the open file log. It has a session of its own, so that Ctrl-C comes
    here first and is passed on once."""
    print("$ " + " ".join(shlex.quote(word) for word in words), file=log, flush=True)
    try:
        process = subprocess.Popen(words, cwd=folder, env=env, stdout=log, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        print(error, file=log)
        return 127
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        stop(process)
        print(f"stopped: it took more than {limit} s (--limit)", file=log)
        return TIMED_OUT
    except BaseException:
        stop(process)
        raise


def make_graph(study, case, log, env, limit):
    """The graph of a weak case, once per p. Two array tasks may make it at the same time: the file takes its place whole."""
    path = study.graph(case)
    if path.exists():
        return 0
    path.parent.mkdir(exist_ok=True)
    temporary = path.with_name(f"{path.stem}.{os.environ.get('SLURM_JOB_ID', '')}{os.getpid()}.tmp.h5")
    try:
        code = execute(generate_command(study, case, temporary), log, env, study.started_in, limit)
        if code == 0:
            temporary.replace(path)
        return code
    finally:
        if temporary.exists():
            temporary.unlink()


def time_is_up():
    """Is this the end of a batch job's time, so that the batch system ended the program?"""
    end = os.environ.get("SLURM_JOB_END_TIME", "")
    return end.isdigit() and time.time() > int(end) - 5


def run_case(study, case, limit=None):
    """Runs a case and writes its outcome.json, unless it was stopped from outside and could go on."""
    folder = study.path(case)
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("outcome.json", "report.json", "metrics.csv"):  # of an earlier attempt
        if (folder / name).exists():
            (folder / name).unlink()
    env = environment(study, case)
    began = time.time()
    with open(folder / "log.txt", "w") as log:
        code = make_graph(study, case, log, env, limit) if study.study == "weak" else 0
        if code == 0:
            code = execute(command(study, case), log, env, study.started_in, limit)
    if code == 0 or not (code == studies.STOPPED or time_is_up()):
        studies.write_json(folder / "outcome.json", {
            "exit_code": code, "wall_seconds": round(time.time() - began, 3), "machine": machine(),
            "began": datetime.datetime.fromtimestamp(began).isoformat(timespec="seconds")})
    return studies.progress(study, case)

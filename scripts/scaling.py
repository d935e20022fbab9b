#!/usr/bin/python3
"""Scaling studies: runs `espalier train` or `sample` over p and c, here or as SLURM jobs, and makes a page of plots.

    scripts/scaling.py run inputs/debian.toml --study strong --ranks 1,2,4 --replication 1,2 --output output/strong
    scripts/scaling.py run inputs/debian.toml --study weak --ranks 1,2,4 --output output/weak \\
        --generate 'planted --nodes 20000 --degree 12 --classes 34 --features 128'
    scripts/scaling.py submit inputs/products.toml --study strong --ranks 4,8,16,32 --ranks-per-node 4 --threads 16 \\
        --output output/strong --sbatch '--account=... --partition=...'
    scripts/scaling.py report output/strong

run     runs the cases one after the other, then writes the report
submit  hands them to SLURM as array jobs over slurm/scaling.sbatch, one per p; `report` when they have ended, or before
case    what one task of such an array runs: `scaling.py case DIR INDEX`
report  DIR/index.html with its plots (SVG) and figures (points.csv, runs.csv)

The same command again goes on where it stopped: complete cases are kept, failed ones stay failed until --retry, and
more ranks, replications or repeats may be asked for. Pairs where c does not divide p are left out.

A strong study keeps the job and raises p. train.batches_per_step is the same for every case (the config's or the
keys', else the largest p), so every p computes the same thing: sample digests are compared, and with train.reproducible
losses and weights too. A study whose runs differ says so in red and ends with exit code 1.

A weak study lets the graph grow with p: --generate is what `espalier generate` is given for one rank, and --nodes
(planted) is multiplied by p, --scale (rmat, p a power of two) raised by log2 p. With a fixed batch size the batches per
rank stay the same, with batches_per_step = p the steps too; the time compared is that of a minibatch of one rank.

key=value are keys of the config for every case. Plots need matplotlib (Debian: python3-matplotlib), the rest nothing.
Exit codes: 0 done; 1 a case failed, runs differ, or no plots could be drawn; 2 usage; 130 interrupted.
"""
import argparse
import datetime
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys

from scaling import figures, launch, page, plots, slurm
from scaling import study as studies
from scaling.study import Refusal, Study

ROOT = pathlib.Path(__file__).resolve().parent.parent
OURS = {"grid.replication": "--replication", "grid.topology": "--topology", "run.threads": "--threads", "output.dir": "--output",
        "train.epochs": "--epochs", "train.early_stop": "", "run.restart": ""}


# ---- The command line ------------------------------------------------------------------------------------------------


def numbers(words):
    try:
        found = [int(word) for word in words.split(",")]
    except ValueError:
        found = []
    if not found or min(found) < 1 or len(set(found)) < len(found):
        raise argparse.ArgumentTypeError(f"{words!r} is no list of different positive numbers like 1,2,4")
    return sorted(found)


def positive(word):
    if not word.isdigit() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"{word!r} is no positive number")
    return int(word)


def topology_names(words):
    found = list(dict.fromkeys(words.split(",")))
    if set(found) - {"partitioned", "replicated", "vertex-cut"}:
        raise argparse.ArgumentTypeError(f"{words!r}: some of partitioned, replicated and vertex-cut, with commas between")
    return found


def parser():
    result = argparse.ArgumentParser(prog="scaling.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = result.add_subparsers(dest="action", required=True, metavar="run | submit | case | report")
    what = argparse.ArgumentParser(add_help=False, usage="%(prog)s CONFIG --ranks P,P,... --output DIR [options] [key=value ...]")
    what.add_argument("config", metavar="CONFIG", help="the input file (TOML); key=value may follow")
    what.add_argument("--study", choices=("strong", "weak"), default="strong", help="(strong)")
    what.add_argument("--command", choices=("train", "sample"), default="train", help="what is studied (train)")
    what.add_argument("--ranks", type=numbers, required=True, metavar="P,P", help="numbers of ranks")
    what.add_argument("--replication", type=numbers, default=[1], metavar="C,C", help="copies c (1)")
    what.add_argument("--topology", type=topology_names, metavar="T,T", help="partitioned, replicated, vertex-cut (the config's)")
    what.add_argument("--repeats", type=positive, default=3, metavar="N", help="runs of each case (3)")
    what.add_argument("--epochs", type=positive, default=4, metavar="N", help="epochs of a run; the first is warm-up (4)")
    what.add_argument("--threads", type=positive, default=1, metavar="N", help="threads per rank (1)")
    what.add_argument("--generate", metavar="WORDS", help="weak: `espalier generate` for one rank, without -o")
    what.add_argument("--output", type=pathlib.Path, required=True, metavar="DIR", help="the study's folder")
    what.add_argument("--program", default=os.environ.get("ESPALIER", str(ROOT / "build/cpu/espalier")), metavar="PATH",
                      help="(build/cpu/espalier, or what ESPALIER names)")
    what.add_argument("--retry", action="store_true", help="run failed cases again")
    run = commands.add_parser("run", parents=[what], help="run the cases here", usage=what.usage)
    run.add_argument("--launcher", default=launch.LOCAL, metavar="WORDS", help="(%(default)r)")
    run.add_argument("--limit", type=positive, metavar="SECONDS", help="stop a case that takes longer; it has failed")
    add_report_options(run)
    submit = commands.add_parser("submit", parents=[what], help="submit them to SLURM", usage=what.usage)
    submit.add_argument("--launcher", default=launch.IN_A_JOB, metavar="WORDS", help="in the job (%(default)r)")
    submit.add_argument("--ranks-per-node", type=positive, metavar="N", help="(all on one node)")
    submit.add_argument("--at-once", type=positive, metavar="N", help="cases of one p that may run at the same time (all)")
    submit.add_argument("--sbatch", default="", metavar="WORDS", help="more options of sbatch, as '--account=x --time=30'")
    submit.add_argument("--dry-run", action="store_true", help="print the sbatch commands, submit nothing")
    case = commands.add_parser("case", help="run one case of a study")
    case.add_argument("output", type=pathlib.Path, metavar="DIR")
    case.add_argument("index", type=int, metavar="INDEX", help="in the list of cases of DIR/study.json, from 0")
    report = commands.add_parser("report", help="collect, draw, write the page")
    report.add_argument("output", type=pathlib.Path, metavar="DIR")
    add_report_options(report)
    return result


def add_report_options(report):
    report.add_argument("--to", type=pathlib.Path, metavar="FOLDER", help="write page, plots and figures there (DIR)")
    report.add_argument("--machine", default="", metavar="TEXT", help="what the page shall say of the machine")


def parse(arguments):
    options, rest = parser().parse_known_args(arguments)
    options.keys = [word for word in rest if re.match(r"[a-z]+\.[a-z0-9_]+=", word)]
    unknown = [word for word in rest if word not in options.keys]
    if unknown or (rest and options.action in ("case", "report")):
        raise Refusal(f"{(unknown or rest)[0]} is no option of `scaling.py {options.action}` and no section.key=value")
    for key in options.keys:
        name = key.split("=")[0]
        if name in OURS or (name == "graph.file" and options.study == "weak"):
            instead = OURS.get(name, "--generate")
            raise Refusal(f"{name} is the study's own" + (f": use {instead}" if instead else ", as all its runs must do the same work"))
    return options


# ---- The study that is asked for -------------------------------------------------------------------------------------


def read_config(path):
    """(text, parsed)."""
    try:
        import tomllib
    except ImportError:
        raise Refusal("to begin a study takes Python 3.11 or later (tomllib)") from None
    try:
        text = pathlib.Path(path).read_text()
        return text, tomllib.loads(text)
    except (OSError, ValueError) as error:
        raise Refusal(f"cannot read the config file {path}: {error}") from None


def check_growth(options):
    if options.study == "strong":
        if options.generate:
            raise Refusal("--generate is for --study weak; name a strong study's graph by graph.file")
        return
    words = shlex.split(options.generate or "")
    needed = {"planted": "--nodes", "rmat": "--scale"}.get(words[0] if words else "")
    if needed is None or needed not in words[:-1] or not words[words.index(needed) + 1].isdigit():
        raise Refusal("a weak study needs --generate 'planted --nodes N ...' or 'rmat --scale N ...', for one rank")
    if {"-o", "--output"} & set(words):
        raise Refusal("--generate: leave -o out, the study names its graphs itself")
    if words[0] == "rmat" and any(p & (p - 1) for p in options.ranks):
        raise Refusal("an rmat graph has 2^scale vertices and cannot grow with p unless every p is a power of two; use planted")


def source_version():
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, universal_newlines=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def wanted_study(options, words):
    text, config = read_config(options.config)
    check_growth(options)
    topologies = options.topology or [config.get("grid", {}).get("topology", "partitioned")]
    cases, left_out = studies.cases_of(options.ranks, options.replication, topologies, options.repeats)
    if left_out:
        print("left out, as c does not divide p: " + ", ".join(f"p {p} c {c}" for p, c in left_out))
    if not cases:
        raise Refusal("no case is left: c (--replication) must divide p (--ranks)")
    fixed = (options.study == "weak" or any(key.startswith("train.batches_per_step=") for key in options.keys) or
             config.get("train", {}).get("batches_per_step", "auto") != "auto")
    return Study(study=options.study, command=options.command, program=os.path.abspath(options.program),
                 launcher=options.launcher, threads=options.threads, epochs=options.epochs, keys=options.keys,
                 generate=options.generate, batches_per_step=None if fixed else max(options.ranks), config=text,
                 config_name=options.config, started_in=os.getcwd(), words=["scripts/scaling.py", *words],
                 began=datetime.datetime.now().isoformat(timespec="seconds"), version=source_version(), cases=cases,
                 folder=options.output.absolute())


def to_run(study, cases, retry):
    """Indices of the cases that are asked for and have neither succeeded nor, without --retry, failed."""
    open_states = ("not run", "failed") if retry else ("not run",)
    return [index for index, case in enumerate(study.cases)
            if case in cases and studies.progress(study, case).state in open_states]


# ---- Commands --------------------------------------------------------------------------------------------------------


def words_of(case):
    return f"p {case.ranks:<3} c {case.replication:<2} {case.topology:<11} run {case.repeat}"


def show(study, case, progress):
    if progress.state == "complete":
        seconds = figures.run_seconds(progress.report, study.study == "weak")["total"]
        print(f"{page.seconds(seconds)} per {'minibatch of a rank' if study.study == 'weak' else 'epoch'}", flush=True)
    elif progress.state == "not run":
        print("stopped by a signal; it will be run again")
    else:
        print(f"FAILED: {progress.reason}\n" + "\n".join("    " + line for line in studies.log_tail(study, case).splitlines()),
              flush=True)


def run(options, words):
    wanted = wanted_study(options, words)
    launch.check_programs(wanted)
    study = studies.begin_or_resume(wanted)
    indices = to_run(study, wanted.cases, options.retry)
    if len(indices) < len(wanted.cases):
        print(f"{len(wanted.cases) - len(indices)} of {len(wanted.cases)} cases have been run already")
    for count, index in enumerate(indices, 1):
        case = study.cases[index]
        print(f"[{count:>{len(str(len(indices)))}}/{len(indices)}] {words_of(case)}  ", end="", flush=True)
        progress = launch.run_case(study, case, options.limit)
        show(study, case, progress)
        if progress.state == "not run":
            raise KeyboardInterrupt
    return report(study, options.to or study.folder, options.machine)


def submit(options, words):
    wanted = wanted_study(options, words)
    study = studies.begin_or_resume(wanted)
    waiting = slurm.queued(study)
    indices = [index for index in to_run(study, wanted.cases, options.retry) if index not in waiting]
    if waiting:
        print(f"{len(waiting)} cases are in the queue already: jobs {', '.join(sorted(set(waiting.values())))}")
    orders = slurm.commands(study, indices, options.ranks_per_node, options.at_once, options.sbatch)
    if options.dry_run:
        for command in orders.values():
            print(" ".join(map(shlex.quote, command)))
        return 0
    for p, job in slurm.submit(study, {p: (command, [i for i in indices if study.cases[i].ranks == p])
                                       for p, command in orders.items()}):
        print(f"job {job}: {sum(study.cases[i].ranks == p for i in indices)} cases of {p} ranks")
    print(f"{len(indices)} cases submitted; when they have ended: scripts/scaling.py report {options.output}")
    return 0


def run_one(options):
    study = studies.load(options.output)
    if not 0 <= options.index < len(study.cases):
        raise Refusal(f"case {options.index}: the study has cases 0 to {len(study.cases) - 1}")
    launch.check_programs(study)
    case = study.cases[options.index]
    progress = studies.progress(study, case)
    if progress.state == "complete":
        print(f"{words_of(case)}  is complete already")
        return 0
    print(f"{words_of(case)}  ", end="", flush=True)
    progress = launch.run_case(study, case)
    show(study, case, progress)
    return {"complete": 0, "failed": 1, "not run": studies.STOPPED}[progress.state]


def most_ranks(study, progresses):
    """How many ranks have cores of their own, None where no case has said on what it ran (or where one ran on many nodes)."""
    machines = [p.outcome["machine"] for _, p in progresses if p.outcome.get("machine")]
    if not machines or any(machine["nodes"] > 1 or machine["cluster"] for machine in machines):
        return None
    return max(1, min(machine["cores"] for machine in machines) // study.threads)


def report(study, folder, machine_note):
    progresses = [(case, studies.progress(study, case)) for case in sorted(
        study.cases, key=lambda case: (case.ranks, case.replication, case.topology, case.repeat))]
    finished = [(case, progress.report) for case, progress in progresses if progress.state == "complete"]
    points = figures.points_of(study, finished)
    problems = figures.disagreements(study, finished)
    most = most_ranks(study, progresses)
    folder.mkdir(parents=True, exist_ok=True)
    figures.write_runs(folder / "runs.csv", study, progresses)
    figures.write_points(folder / "points.csv", points)
    drawable = plots.available()
    drawn = plots.draw_all(points, study.study == "weak", most, folder) if drawable and points else []
    page.write(study, folder, progresses, points, problems, drawn, most, machine_note)

    count = {state: sum(p.state == state for _, p in progresses) for state in studies.STATES}
    print(", ".join(f"{number} {state}" for state, number in count.items()))
    for problem in problems:
        print(f"scaling.py: correctness error: {problem}", file=sys.stderr)
    if not drawable:
        print("scaling.py: no plots: this python has no matplotlib (Debian: apt-get install python3-matplotlib)", file=sys.stderr)
    print(f"page: {os.path.relpath(folder / 'index.html')}")
    return 1 if count["failed"] or problems or not drawable else 0


def stop_like_an_interrupt(*_):
    raise KeyboardInterrupt


def main(words):
    signal.signal(signal.SIGTERM, stop_like_an_interrupt)
    try:
        options = parse(words)
        if options.action == "run":
            return run(options, words)
        if options.action == "submit":
            return submit(options, words)
        if options.action == "case":
            return run_one(options)
        study = studies.load(options.output)
        return report(study, options.to or study.folder, options.machine)
    except Refusal as refusal:
        print(f"scaling.py: {refusal}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"scaling.py: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nscaling.py: interrupted; complete cases are kept, and the same command goes on from there", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

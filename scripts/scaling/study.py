"""What a scaling study is: its settings, its cases, where their files are, and how far each has come.

    DIR/study.json                      settings and the list of cases (their index is what an array task is given)
    DIR/config.toml                     the input file as it was when the study began
    DIR/graphs/p4.h5                    weak studies: the graph that 4 ranks work on
    DIR/cases/p4-c2-partitioned-run1/   log.txt and report.json of the program; outcome.json, written when it has ended

A case is one run of the program. outcome.json is written last, so a case that was interrupted (Ctrl-C, a time limit, a
node that died) has none and is simply not run yet. Cases may be added to a study, in which case the settings must be
the same: a folder with other settings is another study and is refused.
"""
import dataclasses
import json
import os
import pathlib
import typing

STATES = ("complete", "failed", "not run")
STOPPED = 5  # the program's exit code after a signal: it could go on, so it has not failed


class Refusal(Exception):
    """The user asked for what cannot be: one line that says what and what to do."""


@dataclasses.dataclass(frozen=True)
class Case:
    ranks: int
    replication: int
    topology: str
    repeat: int

    @property
    def name(self):
        return f"p{self.ranks}-c{self.replication}-{self.topology}-run{self.repeat}"


@dataclasses.dataclass
class Study:
    study: str  # strong: one graph for every p; weak: a graph per p, that grows with it
    command: str  # train or sample
    program: str
    launcher: str  # a template: {ranks} and {threads} are filled in
    threads: int
    epochs: int
    keys: typing.List[str]  # section.key=value of every case
    generate: typing.Optional[str]  # weak: what `espalier generate` is given for one rank
    batches_per_step: typing.Optional[int]  # None: as the config or the keys say; weak studies: p
    config: str  # the text of the input file
    config_name: str
    started_in: str  # relative paths in the config count from here
    words: typing.List[str]  # the command line that began it
    began: str
    version: str  # of the source tree, where there is one
    cases: typing.List[Case] = dataclasses.field(default_factory=list)
    folder: pathlib.Path = pathlib.Path()

    def path(self, case):
        return self.folder / "cases" / case.name

    def graph(self, case):
        return self.folder / "graphs" / f"p{case.ranks}.h5"


# What makes two studies the same one, in the words of the command line.
SETTINGS = {"study": "--study", "command": "--command", "program": "--program", "launcher": "--launcher",
            "threads": "--threads", "epochs": "--epochs", "keys": "keys", "generate": "--generate",
            "config": "the text of CONFIG", "started_in": "the folder it is started in"}


def cases_of(ranks, replications, topologies, repeats):
    """([Case], [(p, c) left out as c does not divide p]). All cases once, then all again: noise that comes and goes
    falls on all of them."""
    pairs = [(p, c) for p in ranks for c in replications]
    cases = [Case(p, c, topology, repeat) for repeat in range(1, repeats + 1) for p, c in pairs if p % c == 0
             for topology in topologies]
    return cases, [(p, c) for p, c in pairs if p % c != 0]


# ---- The folder ------------------------------------------------------------------------------------------------------


def load(folder):
    path = pathlib.Path(folder) / "study.json"
    try:
        fields = json.loads(path.read_text())
        fields["cases"] = [Case(**case) for case in fields["cases"]]
        return Study(**fields, folder=path.parent.absolute())
    except FileNotFoundError:
        raise Refusal(f"{folder} holds no study: `scaling.py run` or `submit` with --output {folder} begins one") from None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise Refusal(f"{path} cannot be read ({error}); move the folder away and begin anew") from None


def write_json(path, value):
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(value, indent=2) + "\n")
    temporary.replace(path)


def save(study):
    fields = {field.name: getattr(study, field.name) for field in dataclasses.fields(study) if field.name != "folder"}
    fields["cases"] = [dataclasses.asdict(case) for case in study.cases]
    study.folder.mkdir(parents=True, exist_ok=True)
    (study.folder / "config.toml").write_text(study.config)
    write_json(study.folder / "study.json", fields)


def begin_or_resume(wanted):
    """The study of wanted.folder with wanted's cases among its own; begins it where there is none."""
    folder = wanted.folder
    if not (folder / "study.json").exists():
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise Refusal(f"{folder} is there and is no study; give --output a new folder")
        save(wanted)
        return wanted
    study = load(folder)
    different = [words for name, words in SETTINGS.items() if getattr(study, name) != getattr(wanted, name)]
    if different:
        raise Refusal(f"{folder} holds another study ({', '.join(different)} differ); give --output another folder, or "
                      "ask for the same settings to resume it (ranks, replications and repeats may be added)")
    new = [case for case in wanted.cases if case not in study.cases]
    if new:  # batches_per_step stays what it was: the trajectory must be the same
        study.cases += new
        save(study)
    return study


# ---- How far a case has come -----------------------------------------------------------------------------------------


@dataclasses.dataclass
class Progress:
    state: str
    report: typing.Optional[dict] = None
    outcome: dict = dataclasses.field(default_factory=dict)
    reason: str = ""

    @property
    def exit_code(self):
        return self.outcome.get("exit_code")


def read_json(path):
    """(value, None), (None, None) where there is no such file, (None, why) where it is damaged."""
    try:
        return json.loads(path.read_text()), None
    except FileNotFoundError:
        return None, None
    except (OSError, ValueError) as error:
        return None, f"{path.name} is damaged: {error}"


def missing_in(report, case):
    """Why this is no complete report of the case, or None."""
    try:
        grid = (report["ranks"], report["replication"])
        for epoch in report["epochs"]:
            if not epoch["seconds"]["total"] > 0 or epoch["batches"] < 1 or not epoch["sample_digest"]:
                return "report.json has an epoch without seconds, batches or digest"
        epochs = len(report["epochs"])
    except (KeyError, TypeError) as error:
        return f"report.json lacks {error}"
    if grid != (case.ranks, case.replication):
        return f"report.json is of {grid[0]} ranks and replication {grid[1]}"
    return None if epochs else "report.json has no epoch"


def progress(study, case):
    outcome, damage = read_json(study.path(case) / "outcome.json")
    outcome = outcome if isinstance(outcome, dict) else {}
    code = outcome.get("exit_code")
    if code:
        return Progress("failed", None, outcome, f"exit code {code}")
    report, damage = read_json(study.path(case) / "report.json")
    if damage is None and report is not None:
        damage = missing_in(report, case)
    elif damage is None and code == 0:
        damage = "no report.json was written"
    if damage:
        return Progress("failed", None, outcome, damage)
    # Without an outcome only all epochs make it complete: a program that was stopped may have reported what it had.
    if report is None or (code is None and len(report["epochs"]) < study.epochs):
        return Progress("not run")
    return Progress("complete", report, outcome)


def log_tail(study, case, length=12):
    """The end of its log; before it what the program said, which the launcher's farewells may have pushed up."""
    try:
        lines = (study.path(case) / "log.txt").read_text(errors="replace").rstrip().splitlines()
    except OSError:
        return ""
    said = [line for line in lines[:-length] if line.startswith("espalier: ")][:3]
    return "\n".join(said + (["..."] if said else []) + lines[-length:])

"""From the reports of a study's cases to its figures: medians, spread, speed-up, efficiency, volumes; and to CSV.

A run's seconds are medians over its epochs without the first, which warms up (where there is one epoch only, it counts).
A figure is the median over the runs of a (p, c, topology), its spread the least and the greatest run.

The time of a strong study is that of an epoch of training, without evaluation, which is a stage of its own. The time of a
weak study is that of a minibatch of one rank, seconds x p / batches: batches per rank are constant but for rounding.
With the smallest p, its smallest c and the first topology as the base (p0, t0):

    strong   speed-up = t0 / t                efficiency = speed-up x p0 / p
    weak     speed-up = (p / p0) x t0 / t     efficiency = t0 / t                (speed-up: of the work done per second)

report.json has the slowest rank of each stage, so stages may add up to more than the total.
"""
import csv
import dataclasses
import math
import statistics
import typing

TRAINING = ("sample", "fetch", "forward", "backward", "reduce", "optimizer")
OTHER, EVALUATE = "other", "evaluate"


class Spread(typing.NamedTuple):
    """Over the runs of a point."""
    median: float
    least: float
    greatest: float

    @property
    def relative(self):
        return (self.greatest - self.least) / self.median if self.median > 0 else 0.0


def spread(values):
    return Spread(statistics.median(values), min(values), max(values))


class Volume(typing.NamedTuple):
    """Bytes of one stage that cross between ranks, all ranks together, per epoch."""
    counted: float
    predicted: typing.Optional[float]
    messages: float
    max_rank: float

    @property
    def ratio(self):
        return self.counted / self.predicted if self.predicted else None


# ---- One run ---------------------------------------------------------------------------------------------------------


def measured_epochs(report):
    return report["epochs"][1:] or report["epochs"]


def evaluations(report, field):
    """The evaluation's part of `seconds` or `bytes`, of each epoch that had one; later epochs where there are such."""
    def of(epochs):
        return [epoch[field][EVALUATE] for epoch in epochs if epoch["seconds"].get(EVALUATE, 0) > 0]

    return of(measured_epochs(report)) or of(report["epochs"])


def training_seconds(epoch):
    return epoch["seconds"]["total"] - epoch["seconds"].get(EVALUATE, 0)


def run_seconds(report, weak):
    """{"total": seconds of training, stage: seconds} of a run; per minibatch of a rank in a weak study."""
    epochs = measured_epochs(report)

    def median(of):
        return statistics.median(of(e) * (report["ranks"] / e["batches"] if weak else 1) for e in epochs)

    stages = [name for name in epochs[0]["seconds"] if name not in ("total", EVALUATE)]
    seconds = {"total": median(training_seconds)}
    seconds.update((stage, median(lambda e, stage=stage: e["seconds"].get(stage, 0))) for stage in stages)
    seconds[OTHER] = max(0.0, seconds["total"] - sum(seconds[stage] for stage in stages))
    if evaluations(report, "seconds"):
        seconds[EVALUATE] = statistics.median(evaluations(report, "seconds"))
    return seconds


def run_volumes(report):
    """{stage: Volume}: means over the same epochs (bytes are no noise, but differ between epochs)."""
    epochs = measured_epochs(report)
    volumes = {}
    for stage in epochs[0].get("bytes", {}):
        found = evaluations(report, "bytes") if stage == EVALUATE else [epoch["bytes"][stage] for epoch in epochs]
        if not found:
            continue
        predicted = [volume["predicted"] for volume in found if "predicted" in volume]
        volumes[stage] = Volume(statistics.mean(volume["total"] for volume in found),
                                statistics.mean(predicted) if len(predicted) == len(found) else None,
                                statistics.mean(volume.get("messages", 0) for volume in found),
                                statistics.mean(volume.get("max_rank", 0) for volume in found))
    return volumes


class Load(typing.NamedTuple):
    """What ranks served, per epoch: in all, and the most of a rank over the mean and over the least (inf: one had none)."""
    total: float
    over_mean: float
    over_least: float


def run_loads(report):
    """{"rows", "entries", "picks": Load}: means over the same epochs; nothing where no rank served another."""
    served = [epoch["served"] for epoch in measured_epochs(report) if "served" in epoch]
    return {what: Load(*(statistics.mean(of[what][name] if name != "max_over_min" or of[what][name] else math.inf for of in served)
                         for name in ("total", "max_over_mean", "max_over_min")))
            for what in (served[0] if served else ())}


# ---- All runs of one (p, c, topology) --------------------------------------------------------------------------------


@dataclasses.dataclass
class Point:
    ranks: int
    replication: int
    topology: str
    runs: int
    seconds: typing.Dict[str, Spread]
    volumes: typing.Dict[str, Volume]
    loads: typing.Dict[str, Load]
    memory: int  # of the largest rank, bytes
    speedup: Spread = None
    efficiency: Spread = None

    @property
    def total(self):
        return self.seconds["total"]

    @property
    def series(self):
        return (self.topology, self.replication)


def point_of(case, reports, weak):
    runs = [run_seconds(report, weak) for report in reports]
    return Point(case.ranks, case.replication, case.topology, len(runs),
                 {name: spread([run[name] for run in runs if name in run]) for name in runs[0]},
                 run_volumes(reports[0]), run_loads(reports[0]),
                 max(report.get("peak_memory_bytes", {}).get("max", 0) for report in reports))


def compare_with(base, points, weak):
    for point in points:
        ratio = point.ranks / base.ranks

        def speedup(seconds):
            return base.total.median / seconds * (ratio if weak else 1)

        least, greatest = speedup(point.total.greatest), speedup(point.total.least)
        point.speedup = Spread(speedup(point.total.median), least, greatest)
        point.efficiency = Spread(*(value / ratio for value in point.speedup))


def points_of(study, finished):
    """[Point] by topology, c and p, the base of speed-ups first in its series; finished: [(Case, report)]."""
    grouped = {}
    for case, report in finished:
        grouped.setdefault((case.topology, case.replication, case.ranks), []).append((case, report))
    topologies = list(dict.fromkeys(case.topology for case in study.cases))
    points = [point_of(runs[0][0], [report for _, report in runs], study.study == "weak")
              for _, runs in sorted(grouped.items(), key=lambda item: (topologies.index(item[0][0]), item[0][1:]))]
    if points:
        base = min(points, key=lambda point: point.ranks)  # the first of them: points are in order of topology and c
        compare_with(base, points, study.study == "weak")
    return points


# ---- Are they the same runs? -----------------------------------------------------------------------------------------


def disagreements(study, finished):
    """Sentences, none where all is well: the same seed must give the same samples on every grid, and with
    train.reproducible the same losses and weights too. Graphs of a weak study differ with p."""
    found, first = [], {}
    for case, report in finished:
        group = case.ranks if study.study == "weak" else None
        reference, expected = first.setdefault(group, (case, report))
        exact = all(r["config"]["train"]["reproducible"] for r in (report, expected)) and study.command == "train"
        for what, law in differences(expected, report, exact):
            found.append(f"{case.name} and {reference.name}: {what}; {law}")
    return found


def differences(expected, report, exact):
    for one, other in zip(expected["epochs"], report["epochs"]):
        if one["sample_digest"] != other["sample_digest"]:
            yield (f"the sample digests of epoch {one['epoch']} are {other['sample_digest']} and {one['sample_digest']}",
                   "the same seed must give the same samples on every grid")
            break
    if len(expected["epochs"]) != len(report["epochs"]):
        yield f"they have {len(report['epochs'])} and {len(expected['epochs'])} epochs", "they are not the same job"
    if exact:
        for one, other in zip(expected["epochs"], report["epochs"]):
            if one.get("loss") != other.get("loss"):
                yield (f"the losses of epoch {one['epoch']} are {other.get('loss')} and {one.get('loss')}",
                       "with train.reproducible they must be equal to the last bit")
                break
        if expected.get("weights_digest") != report.get("weights_digest"):
            yield (f"the final weights have the digests {report.get('weights_digest')} and "
                   f"{expected.get('weights_digest')}", "with train.reproducible they must be equal to the last bit")


# ---- CSV -------------------------------------------------------------------------------------------------------------


def stage_names(points):
    """Stages that any point has, in the order of an epoch; new ones of a later version before `other`."""
    seen = list(dict.fromkeys(name for point in points for name in point.seconds if name != "total"))
    known = [name for name in TRAINING if name in seen]
    new = [name for name in seen if name not in (*TRAINING, OTHER, EVALUATE)]
    return known + new + [name for name in (OTHER, EVALUATE) if name in seen]


def time_unit(points):
    """(factor, symbol) in which the slowest point has no leading zeros."""
    slowest = max(point.total.median for point in points)
    return (1, "s") if slowest >= 0.5 else (1e3, "ms") if slowest >= 0.5e-3 else (1e6, "µs")


def write_rows(path, rows):
    header = list(dict.fromkeys(name for row in rows for name in row))
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, header, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_runs(path, study, progresses):
    """runs.csv: a line per case, as it came out."""
    rows = []
    for case, progress in progresses:
        row = {"study": study.study, "command": study.command, **dataclasses.asdict(case), "state": progress.state,
               "exit_code": "" if progress.exit_code is None else progress.exit_code}
        if progress.report:
            report = progress.report
            row.update((f"seconds_{name}", f"{value:.6g}")
                       for name, value in run_seconds(report, study.study == "weak").items())
            for stage, volume in run_volumes(report).items():
                row[f"bytes_{stage}"] = round(volume.counted)
                row[f"predicted_{stage}"] = "" if volume.predicted is None else round(volume.predicted)
            row.update(batches=report["epochs"][-1]["batches"], loss=report["epochs"][-1].get("loss", ""),
                       sample_digest=report["epochs"][-1]["sample_digest"],
                       weights_digest=report.get("weights_digest", ""),
                       peak_memory_bytes=report.get("peak_memory_bytes", {}).get("max", ""))
        rows.append(row)
    write_rows(path, rows)


def write_points(path, points):
    """points.csv: a line per (p, c, topology), medians over the runs."""
    rows = []
    for point in points:
        row = {"ranks": point.ranks, "replication": point.replication, "topology": point.topology, "runs": point.runs,
               "seconds": f"{point.total.median:.6g}", "seconds_least": f"{point.total.least:.6g}",
               "seconds_greatest": f"{point.total.greatest:.6g}", "speedup": f"{point.speedup.median:.6g}",
               "efficiency": f"{point.efficiency.median:.6g}"}
        row.update((f"seconds_{stage}", f"{value.median:.6g}") for stage, value in point.seconds.items()
                   if stage != "total")
        for stage, volume in point.volumes.items():
            row[f"bytes_{stage}"] = round(volume.counted)
            row[f"predicted_{stage}"] = "" if volume.predicted is None else round(volume.predicted)
        row.update((f"served_{what}_max_over_mean", f"{load.over_mean:.6g}") for what, load in point.loads.items())
        row["peak_memory_bytes"] = point.memory
        rows.append(row)
    write_rows(path, rows)

"""The study as one HTML page: plots, tables of their figures, runs that failed, what ran where.

It refers to nothing outside of its own folder, so the folder can be mailed, opened without a network, and printed.
"""
import html
import json
import re
import shlex

from . import study as studies
from .figures import EVALUATE, stage_names, time_unit

ALT = {
    "stages": "Time per stage, stacked, for each number of ranks p",
    "speedup": "Speed-up and parallel efficiency over the number of ranks p, against ideal",
    "volumes": "Bytes received per rank over the number of ranks p, counted against predicted",
    "loads": "Entries and picks of the rank that served most, over the mean, over the number of ranks p",
}
STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 52rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; margin: .5rem 0; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; break-after: avoid; }
figure { margin: 1rem 0; } .wide { overflow-x: auto; } figure img { display: block; width: 100%; }
figcaption, .small { font-size: .87rem; color: #444; }
table { border-collapse: collapse; font-size: .87rem; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .5rem; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap; }
th { border-bottom: 1px solid #888; vertical-align: bottom; } th:first-child, td.word { text-align: left; }
table.facts td, table.facts th { text-align: left; white-space: normal; border: 0; vertical-align: top; overflow-wrap: anywhere; }
table.facts th { white-space: nowrap; }
pre { background: #f5f5f5; padding: .6rem; overflow-x: auto; font-size: .8rem; white-space: pre-wrap; overflow-wrap: anywhere; }
.good { border-left: .3rem solid #009E73; padding: .3rem .8rem; margin: .6rem 0; }
.note { border-left: .3rem solid #E69F00; padding: .3rem .8rem; margin: .6rem 0; }
.error { border-left: .3rem solid #b00020; padding: .3rem .8rem; margin: .6rem 0; background: #fdeaed; color: #b00020; font-weight: 600; }
@media print { body { max-width: none; font-size: 10.5pt; } figure, table, .error, .note { break-inside: avoid; }
  figure img { min-width: 0 !important; } .wide { overflow: visible; } table { font-size: 7.5pt; } th, td { padding: .1rem .3rem; } }
"""


def text(value):
    return html.escape(str(value))


def element(name, content, kind=""):
    return f"<{name}{f' class={chr(34)}{kind}{chr(34)}' if kind else ''}>{content}</{name}>"


def table(header, rows, words=1):
    """rows of plain values; the first `words` columns are text."""
    lines = ["<tr>" + "".join(f"<th>{text(cell)}</th>" for cell in header) + "</tr>"]
    for row in rows:
        lines.append("<tr>" + "".join(f"<td{' class=' + chr(34) + 'word' + chr(34) if i < words else ''}>{text(cell)}</td>"
                                      for i, cell in enumerate(row)) + "</tr>")
    return element("div", "<table>\n" + "\n".join(lines) + "\n</table>", "wide")


def short(value):
    """Three digits: 0.0123, 1.20, 123, 12346."""
    return f"{value:#.3g}".rstrip(".") if 1e-4 < abs(value) < 999.5 else f"{value:.0f}" if value >= 1 else f"{value:g}"


def seconds(value):
    return short(value) + " s" if value >= 1 else short(1e3 * value) + " ms"


# ---- Parts -----------------------------------------------------------------------------------------------------------


def figure(name, caption, folder):
    drawn = (folder / f"{name}.svg").read_bytes()
    points = float(re.search(rb'<svg[^>]* width="([0-9.]+)pt"', drawn).group(1))
    width = f"min-width: {0.9 * points:.0f}px; max-width: {1.6 * points:.0f}px"  # narrower than that it scrolls
    return (f'<figure>\n<div class="wide"><img alt="{ALT[name]}" style="{width}"'
            f' src="{name}.svg"></div>\n<figcaption>{caption}</figcaption>\n</figure>')


def captions(study, points):
    base = min(points, key=lambda point: point.ranks)
    weak = study.study == "weak"
    time = ("the time of a minibatch of one rank: the epoch's seconds × p / batches" if weak else
            "the time of an epoch" + (" of training, without evaluation" if study.command == "train" else ""))
    start = name_of(base, points)
    return {
        "stages": f"Where the time goes: {time}. Bars: medians over the runs of the slowest rank in each stage; "
                  "as another rank may be the slowest in each, they can add up to more than the wall time (diamond, with the least "
                  "and the greatest run). A stage that communicates includes the wait for the other ranks; \"other\" is "
                  "what no stage accounts for. " +
                  ("Dashed: the base's time, which ideal weak scaling keeps." if weak else
                   "Below: times p, what all ranks together spend; ideal scaling keeps the height of the base (dashed), and what "
                   "stands above it is what scaling costs."),
        "speedup": f"{'Scaled speed-up (of the work done per second)' if weak else 'Speed-up'} and parallel efficiency "
                   f"against {start}; medians, with the least and the greatest run; axes of the left panel are logarithmic.",
        "volumes": "What crosses between ranks: bytes that a rank receives in an epoch, mean over ranks, counted by the program "
                   "(lines) and predicted by its model (circles); below, how far counted is from predicted. Stages without circles "
                   "have no prediction; where nothing moves there is no point.",
        "loads": "Who serves how much while minibatches are sampled: of the rows that ranks are asked for, the entries in them and the "
                 "picks that are drawn there, the most of a rank over the mean (1: all serve as much); balance in the table: over the mean, over the least. "
                 "Means over the epochs.",
    }


def speed_table(points):
    topologies = {point.topology for point in points}
    header = ["p", "c"] + (["topology"] if len(topologies) > 1 else []) + \
        ["runs", "time", "least", "greatest", "speed-up", "efficiency", "peak memory of a rank"]
    rows = []
    for point in points:
        rows.append([point.ranks, point.replication] + ([point.topology] if len(topologies) > 1 else []) + [
            point.runs, seconds(point.total.median), seconds(point.total.least), seconds(point.total.greatest),
            f"{point.speedup.median:.2f}", f"{100 * point.efficiency.median:.0f} %",
            f"{point.memory / 2**20:.0f} MiB" if point.memory else "-"])
    return table(header, rows)


def stage_table(points):
    stages = stage_names(points)
    factor, unit = time_unit(points)
    rows = [[name_of(point, points)] + [f"{factor * point.seconds[stage].median:.3f}" if stage in point.seconds else "-"
                                       for stage in stages] + [f"{factor * point.total.median:.3f}"] for point in points]
    header = [f"medians, {unit}"] + ["one evaluation" if stage == EVALUATE else stage for stage in stages] + ["wall time"]
    return table(header, rows)


def name_of(point, points):
    topology = f", {point.topology}" if len({p.topology for p in points}) > 1 else ""
    return f"p = {point.ranks}, c = {point.replication}{topology}"


def volume_table(points):
    rows = []
    for point in points:
        for stage, volume in point.volumes.items():
            if volume.counted > 0:
                rows.append([name_of(point, points), stage, f"{volume.messages:.0f}", short(volume.counted / 1e6),
                             "-" if volume.predicted is None else short(volume.predicted / 1e6),
                             "-" if volume.ratio is None else f"{volume.ratio:.4f}",
                             short(volume.counted / 1e6 / point.ranks), short(volume.max_rank / 1e6)])
    header = ["run", "stage", "messages", "MB, all ranks", "MB predicted", "ratio", "MB per rank", "MB, largest rank"]
    return table(header, rows, words=2) if rows else "<p>Nothing moves between ranks.</p>"


def load_table(points):
    whats = [what for what in ("rows", "entries", "picks") if any(what in point.loads for point in points)]
    rows = [[name_of(point, points)] + [cell for what in whats for cell in (
                short(point.loads[what].total / 1e6), f"{point.loads[what].over_mean:.2f}, {point.loads[what].over_least:.2f}")]
            for point in points if point.loads]
    header = ["served in an epoch"] + [words for what in whats for words in (f"10⁶ {what}", "balance")]
    return table(header, rows) if rows else "<p>No rank serves another.</p>"


def failures(study, progresses):
    parts = []
    for case, progress in progresses:
        if progress.state == "failed":
            parts.append(element("div", f"{text(case.name)} failed: {text(progress.reason)}", "error"))
            parts.append(element("pre", text(studies.log_tail(study, case)) or "(its log is empty)"))
    return parts


def notes(points, most, progresses):
    """What a reader must know to judge the figures."""
    lines = []
    missing = sum(progress.state == "not run" for _, progress in progresses)
    if missing:
        lines.append(f"{missing} of {len(progresses)} runs are not there yet: the same command goes on where it stopped.")
    crowded = sorted({point.ranks for point in points if most and point.ranks > most})
    if crowded:
        lines.append(f"p = {', '.join(map(str, crowded))}: more ranks than the {most} that have cores of their own. They take turns, so "
                     f"no speed-up beyond that of p = {most} can be expected, and a stage's seconds include the time in which its "
                     "rank had no core. Bytes and samples are not affected.")
    noisiest = max(points, key=lambda point: point.total.relative, default=None)
    if noisiest and noisiest.total.relative > 0.1:
        lines.append(f"Noise: runs of the same job differ by up to {100 * noisiest.total.relative:.0f} % "
                     f"({name_of(noisiest, points)}). Differences of that size between jobs mean nothing.")
    return [element("div", text(line), "note") for line in lines]


def distinct(values):
    return list(dict.fromkeys(values))


def machine_words(machine):
    nodes = f"{machine['nodes']} nodes of " if machine.get("nodes", 1) > 1 else ""
    cluster = f"{machine['cluster']}: " if machine.get("cluster") else ""
    return f"{cluster}{nodes}{machine['cores']} cores, {machine['cpu']}, {machine['memory_gib']} GiB of memory"


def facts(study, finished, progresses, machine_note):
    reports = [report for _, report in finished]
    machines = distinct(machine_words(p.outcome["machine"]) for _, p in progresses if p.outcome.get("machine"))
    graphs = distinct(f"{r['graph']['nodes']:,} vertices, {r['graph']['edges']:,} edges, {r['graph']['features']} features"
                      for r in reports)
    days = sorted({p.outcome["began"][:10] for _, p in progresses if p.outcome.get("began")})
    rows = [("machine", "; ".join(([machine_note] if machine_note else []) + machines) or "-"),
            ("program", ", ".join(distinct(f"espalier {r['espalier']}, {r['device']}, {r['threads']} thread"
                                           f"{'s' if r['threads'] > 1 else ''} per rank" for r in reports)) +
             (f"; source {study.version}" if study.version else "")),
            ("command", " ".join(map(shlex.quote, study.words))),
            ("graph", "; ".join(graphs) or "-"),
            ("batches per step", ", ".join(distinct(str(r["config"]["train"]["batches_per_step"]) for r in reports)) or "-"),
            ("measured", "".join(f"{day}, " for day in (days[:1] + days[-1:] if len(days) > 1 else days)) +
             f"{study.epochs} epoch{'s' if study.epochs > 1 else ''} per run" +
             (", the first left out as warm-up" if study.epochs > 1 else ""))]
    lines = "\n".join(f"<tr><th>{name}</th><td>{text(value)}</td></tr>" for name, value in rows)
    return element("table", lines, "facts")


def verdict(study, finished, problems):
    if problems:
        return "\n".join(element("div", "Correctness error: " + text(problem), "error") for problem in problems)
    if len(finished) < 2:
        return ""
    exact = study.command == "train" and all(report["config"]["train"]["reproducible"] for _, report in finished)
    same = "of equal p " if study.study == "weak" else ""
    return element("div", f"Samples of all {len(finished)} runs {same}are equal (their digests are, in every epoch)" +
                   ("; so are losses and final weights, to the last bit." if exact else "."), "good")


def write(study, folder, progresses, points, problems, plots, most, machine_note=""):
    finished = [(case, progress.report) for case, progress in progresses if progress.state == "complete"]
    kind = {"strong": "Strong", "weak": "Weak"}[study.study]
    title = f"{kind} scaling of espalier {study.command}"
    parts = [element("h1", text(title)), facts(study, finished, progresses, machine_note),
             verdict(study, finished, problems), *notes(points, most, progresses), *failures(study, progresses)]
    if points:
        words = captions(study, points)
        tables = {"stages": stage_table(points), "speedup": speed_table(points), "volumes": volume_table(points),
                  "loads": load_table(points)}
        headings = {"speedup": "Speed-up and efficiency", "stages": "Time per stage", "volumes": "Volumes, counted and predicted",
                    "loads": "Load of each server"}
        for name, heading in headings.items():
            parts.append(element("h2", heading))
            if name in plots:
                parts.append(figure(name, words[name], folder))
            parts.append(tables[name])
    if points and not plots:
        parts.append(element("div", "No plots: the Python that wrote this page has no matplotlib.", "note"))
    parts.append(element("h2", "Runs"))
    parts.append(table(["run", "state", "exit code", "wall time of the program", "sample digest, last epoch"],
                       [[case.name, p.state, "-" if p.exit_code is None else p.exit_code,
                         seconds(p.outcome["wall_seconds"]) if "wall_seconds" in p.outcome else "-",
                         p.report["epochs"][-1]["sample_digest"] if p.report else "-"] for case, p in progresses], words=2))
    parts.append('<p class="small">The same as numbers: <a href="points.csv">points.csv</a> (medians) and '
                 '<a href="runs.csv">runs.csv</a> (each run).</p>')
    if finished:
        parts.append(element("details", "<summary>Configuration of the first run</summary>" +
                             element("pre", text(config_words(finished[0][1]["config"])))))
    body = "\n".join(part for part in parts if part)
    page = ("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
            f"<title>{text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n")
    (folder / "index.html").write_text(page)


def config_words(config):
    """TOML, but for where things lie on this machine."""
    lines = []
    for section, keys in config.items():
        shown = {key: value for key, value in keys.items() if (section, key) not in (("output", "dir"), ("graph", "file"))}
        if shown:
            lines += [f"[{section}]"] + [f"{key} = {json.dumps(value)}" for key, value in shown.items()] + [""]
    return "\n".join(lines).rstrip()

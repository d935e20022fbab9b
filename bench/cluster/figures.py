"""What a run has to say: of report.json and of what the links carried, checks over runs, and the table.

A run is a dict: case, hosts, gigabits, seconds, bytes, digests, losses, and from the links `carried` (bytes that left all
hosts in an epoch), `fullest` (those of the fullest direction of a link) and `busy` (the share of its rate that this had).
"""

import statistics

STAGES = ("sample", "fetch", "forward", "backward", "reduce", "optimizer")
KINDS = ("sample", "fetch", "history", "reduce")


def from_report(report, marks, gigabits):
    """marks: [(time before, [(bytes from a host, bytes to it)], time after)], looked at when the line of each epoch appeared. The
    first epoch is warm-up; of the last one, which ends with an evaluation, the link's share is not counted."""
    epochs = report["epochs"][1:]
    whole = "total" if report["command"] == "train" else "sample"
    run = {
        "total": median(epoch["seconds"][whole] - epoch["seconds"].get("evaluate", 0) for epoch in epochs),
        "seconds": {stage: median(epoch["seconds"][stage] for epoch in epochs)
                    for stage in STAGES if stage in epochs[0]["seconds"]},
        "bytes": {kind: median(epoch["bytes"][kind]["total"] for epoch in epochs)
                  for kind in KINDS if kind in epochs[0]["bytes"]},
        "digests": [epoch["sample_digest"] for epoch in report["epochs"]],
        "losses": [epoch["loss"] for epoch in report["epochs"] if "loss" in epoch],
    }
    if "test" in report:
        run["test"] = report["test"]["accuracy"]
    run.update(of_links(marks, len(report["epochs"]), gigabits))
    return run


def of_links(marks, epochs, gigabits):
    """Of an epoch, from the end of the first one to that of the last but one; nothing where lines were missed."""
    if len(marks) != epochs or epochs < 3:
        return {}
    (begin, before, _), (_, after, end) = marks[0], marks[-2]
    moved = [[b - a for a, b in zip(was, now)] for was, now in zip(before, after)]
    return of_an_epoch([[part / (epochs - 2) for part in host] for host in moved], (end - begin) / (epochs - 2), gigabits)


def of_an_epoch(moved, seconds, gigabits):
    """moved: [(bytes from a host, bytes to it)]"""
    links = {"carried": sum(out for out, _ in moved), "fullest": max(map(max, moved))}
    if gigabits:
        links["busy"] = links["fullest"] * 8e-9 / gigabits / seconds
    return links


def median(numbers):
    return statistics.median(list(numbers))


# ---- The law ---------------------------------------------------------------------------------------------------------


def broken_laws(runs, cases):
    """Lines about runs that differ where they must not. A run is a dict with case, hosts, digests and losses; losses are
    compared among those that are `reproducible`. Where one run has fewer epochs, those that both have count."""
    found = []
    for what, law_of in (("digests", "samples_law"), ("losses", "losses_law")):
        first = {}
        for run in runs:
            if what == "losses" and not run.get("reproducible"):
                continue
            law = getattr(cases[run["case"]], law_of)()
            if any("{groups}" in key for key in law):
                law += (run["groups"],)
            reference = first.setdefault(law, run)
            if any(a != b for a, b in zip(run[what], reference[what])):
                found.append(f"{what} of {name_of(run)} are not those of {name_of(reference)}: {run[what]}, {reference[what]}")
    return found


def name_of(run):
    rate = "no limit" if run["gigabits"] is None else f"{run['gigabits']:g} Gbit/s"
    return f"{run['case']} on {run['hosts']} hosts, {rate}"


# ---- The table -------------------------------------------------------------------------------------------------------

HEADS = ("case", "s/epoch", "least", "most", "sample", "fetch", "compute", "reduce", "link s", "busy", "MB sampled", "fetched",
         "reduced", "on links", "x", "test")


def rows_of(runs, baselines):
    """A row for each case, hosts and rate: medians over repeats. `baselines`: of each case the case over which x is."""
    rows = {}
    for run in runs:
        rows.setdefault((run["hosts"], run["gigabits"], run["case"]), []).append(run)
    medians = {key: median(run["total"] for run in group) for key, group in rows.items()}
    return [row_of(key, group, medians, baselines) for key, group in rows.items()]


def row_of(key, group, medians, baselines):
    hosts, gigabits, case = key

    def seconds(*stages):
        present = [stage for stage in stages if stage in group[0]["seconds"]]
        return sum(median(run["seconds"][stage] for run in group) for stage in present) if present else None

    def megabytes(*kinds):
        present = [kind for kind in kinds if kind in group[0]["bytes"]]
        return sum(median(run["bytes"][kind] for run in group) for kind in present) / 1e6 if present else None

    def of(name, scale=1.0):
        known = [run[name] for run in group if name in run]
        return median(known) * scale if known else None

    over = medians.get((hosts, gigabits, baselines.get(case)))
    totals = [run["total"] for run in group]
    return {"hosts": hosts, "gigabits": gigabits, "case": case, "runs": len(group), "s/epoch": medians[key],
            "least": min(totals), "most": max(totals), "sample": seconds("sample"), "fetch": seconds("fetch"),
            "compute": seconds("forward", "backward", "optimizer"), "reduce": seconds("reduce"),
            "link s": of("fullest", 8e-9 / gigabits) if gigabits else None, "busy": of("busy"),
            "MB sampled": megabytes("sample"), "fetched": megabytes("fetch", "history"), "reduced": megabytes("reduce"),
            "on links": of("carried", 1e-6), "x": over / medians[key] if over else None, "test": of("test")}


def table(rows):
    """Text: a table for each number of hosts and rate."""
    blocks = []
    for hosts, gigabits in dict.fromkeys((row["hosts"], row["gigabits"]) for row in rows):
        here = [row for row in rows if (row["hosts"], row["gigabits"]) == (hosts, gigabits)]
        cells = [HEADS] + [[cell(name, row[name]) for name in HEADS] for row in here]
        widths = [max(map(len, column)) for column in zip(*cells)]
        lines = ["  ".join(word.ljust(width) if not place else word.rjust(width)
                           for place, (word, width) in enumerate(zip(line, widths))).rstrip() for line in cells]
        rate = "links without a limit" if gigabits is None else f"links of {gigabits:g} Gbit/s"
        blocks.append("\n".join([f"{hosts} hosts, {rate}", *lines]))
    return "\n\n".join(blocks)


def cell(name, value):
    digits = {"busy": 2, "x": 2, "test": 4, "MB sampled": 1, "fetched": 1, "reduced": 1, "on links": 1}
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:.{digits.get(name, 3)}f}"

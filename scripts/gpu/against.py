"""Is this program faster than one built before? Both in turn on the same machine: before, now, before, now.

Of epochs: medians and spread of all turns' epochs but each turn's first, their ratio by stage; sample digests must be equal, unless
--digests-differ says that they are meant to differ, and losses of a program's turns equal bit for bit. Of benches: medians of the
turns' rates.
"""

import statistics

from .check import Failure
from .epoch import EPOCHS, expect_repeats, is_report, median_seconds, products_graph, run_variants
from .fast import bench_seconds, run_bench
from .machine import under_load
from .right import LOSS_TOLERANCE

TURNS = 2
EPOCHS_OF_A_TURN = 4
PROGRAMS = ("before", "now")
ON_THE_GPU = ("fp32", "tf32", "bf16")
ON_THE_HOST = ("features of 16 bits on the host", "features on the host")


def check_against(check):
    if check.before is None:
        return
    for names, seconds in ((ON_THE_GPU, 24), (ON_THE_HOST, 42)):
        check.parts_of_one({f"against, epoch {name}": seconds for name in names}, lambda lines: compare_epochs(check, lines))
    before = dict(check.before.benches())
    for name, program in check.place.benches():
        if name in before and wanted(check, name):
            check.part(f"against, bench {name}", lambda: compare_benches(check, {"before": before[name], "now": program}),
                       seconds=2 * TURNS * bench_seconds(name))


def wanted(check, name):
    return not check.options.benches or any(name.startswith(room) for room in check.options.benches.split(","))


def places_of(check):
    return {"before": check.before, "now": check.place}


# ---- Epochs ----------------------------------------------------------------------------------------------------------


def compare_epochs(check, lines):
    names = {line: line.removeprefix("against, epoch ") for line in lines}
    graph, places = products_graph(check), places_of(check)
    alike = all(place.epochs.exists() for place in places.values())  # both in the same way
    reports = {name: {program: [] for program in PROGRAMS} for name in names.values()}
    with under_load() as load:
        for _ in range(TURNS):
            for program in PROGRAMS:
                found = run_variants(check, graph, {name: EPOCHS[name] for name in names.values()}, EPOCHS_OF_A_TURN,
                                     places[program], alike)
                for name, report in found.items():
                    reports[name][program].append(report)
    return {line: compared_or_failure(reports[name], check.options.digests_differ, load) for line, name in names.items()}


def compared_or_failure(reports, digests_differ, load):
    wrong = [report for of_program in reports.values() for report in of_program if not is_report(report)]
    if wrong:
        return wrong[0]
    try:
        return {**compare(reports, digests_differ), "under load": dict(load)}
    except Failure as failure:
        return failure


def compare(reports, digests_differ=False):
    """Figures of {program: its turns' reports}. Raises Failure where a program's turns differ, or samples that should not."""
    for program, turns in reports.items():
        expect_repeats(program, turns)
    figures = {"digests": compare_digests(reports["before"][0]["epochs"], reports["now"][0]["epochs"], digests_differ)}
    epochs = {program: [epoch for turn in turns for epoch in turn["epochs"][1:]] for program, turns in reports.items()}
    stages = [stage for stage in epochs["now"][0]["seconds"] if stage in epochs["before"][0]["seconds"]]
    figures["compared"] = [row_of(stage, "s", {program: [epoch["seconds"][stage] for epoch in epochs[program]] for program in PROGRAMS})
                           for stage in stages if median_seconds(epochs["before"], stage) > 0]
    if figures["digests"] == "equal":
        figures["loss off by"] = loss_difference(reports)
    return figures


def compare_digests(before, now, digests_differ):
    for old, new in zip(before, now):
        if old["sample_digest"] != new["sample_digest"]:
            if digests_differ:
                return "differ, as was said"
            raise Failure(f"epoch {new['epoch']}: sample digest {new['sample_digest']}, {old['sample_digest']} before; "
                          "where that is meant, --digests-differ compares seconds alone")
    return "equal"


def loss_difference(reports):
    losses = [[epoch["loss"] for epoch in reports[program][0]["epochs"]] for program in PROGRAMS]
    off = max(abs(now - before) / abs(before) for before, now in zip(*losses))
    if not off <= LOSS_TOLERANCE:
        raise Failure(f"losses are {off:.2e} apart: {losses[0]} before, {losses[1]} now")
    return off


def row_of(name, unit, values):
    """Medians of both programs and now over before, with the least and the most that single values make of it."""
    before, now = (values[program] for program in PROGRAMS)
    medians = {"before": statistics.median(before), "now": statistics.median(now)}
    return {"name": name, "unit": unit, **medians, "ratio": medians["now"] / medians["before"], "low": min(now) / max(before),
            "high": max(now) / min(before), "values before": before, "values now": now}


# ---- Benches ---------------------------------------------------------------------------------------------------------


def compare_benches(check, programs):
    rates = {program: {} for program in PROGRAMS}
    units = {}
    for _ in range(TURNS):
        for program, place in places_of(check).items():
            for case in run_bench(check, programs[program], place)["cases"]:
                units[case["name"]] = case["unit"]
                rates[program].setdefault(case["name"], []).append(case["rate"])
    both = [name for name in rates["now"] if name in rates["before"]]
    if not both:
        raise Failure("no case is in both")
    alone = [name for name in units if name not in both]
    return {"compared": [row_of(name, units[name], {program: rates[program][name] for program in PROGRAMS}) for name in both],
            **({"in one alone": ", ".join(alone)} if alone else {})}

"""What came of the parts of a check: as a table, as JSON, and read again to go on from it."""

import json

STATES = ("passed", "failed", "skipped", "left out")
LISTS = ("cases", "compared", "stages", "kernels")  # figures that are lists: a row a line, in the file and in the table
QUIET = (*LISTS, "launches", "title", "gpu", "quick")  # not among the figures of a line of the table


def count_states(lines):
    return {state: sum(line["state"] == state for line in lines) for state in STATES}


def as_text(about, lines):
    """JSON with a part, or a row of a list of it, on a line of the file."""
    def text(line):
        figures = dict(line["figures"])
        lists = {key: figures.pop(key) for key in LISTS if key in figures}
        head = json.dumps(dict(line, figures=figures))
        for key, rows in lists.items():
            rows = ",\n   ".join(map(json.dumps, rows))
            comma = ", " if figures else ""
            head = head.replace('"figures": {', f'"figures": {{"{key}": [\n   {rows}]{comma}', 1)
            figures[key] = rows
        return head

    return json.dumps(about)[:-1] + ', "parts": [\n ' + ",\n ".join(map(text, lines)) + "\n]}\n"


def kept_lines(path, about):
    """The lines of a record that was cut off, to go on from: those that passed or were skipped; {name: why} of those that failed.

    Raises ValueError where it is of another program or GPU, whose lines would say nothing of these.
    """
    if not path.exists():
        return [], {}
    record = json.loads(path.read_text())
    for key, mine in about.items():
        theirs = record.get(key)
        theirs, mine = (value["name"] if isinstance(value, dict) else value for value in (theirs, mine))
        if theirs != mine:
            raise ValueError(f"{path} is of {key} {theirs}, this is {mine}: nothing to go on from")
    lines = record["parts"]
    return ([line for line in lines if line["state"] in ("passed", "skipped")],
            {line["name"]: line["reason"].split("\n")[0] for line in lines if line["state"] == "failed"})


# ---- The table -------------------------------------------------------------------------------------------------------


def show(line):
    figures = ", ".join(f"{key} {brief(value)}" for key, value in line["figures"].items() if key not in QUIET)
    text = figures or line.get("reason", "").split("\n")[0]
    print(f"{line['name']:<44} {line['state']:<8} {line['seconds']:>7.1f} s  {text}", flush=True)
    for key in LISTS:
        for row in line["figures"].get(key, []):
            print(f"    {ROWS[key](row)}", flush=True)
    if line["state"] == "failed":
        print("    " + "\n    ".join(line["reason"].splitlines()), flush=True)


def case_row(case):
    return (f"{case['name']:<44} {case['rate']:>10.4g} {case['unit']:<8} bound {case['bound']:>9.4g}  ratio "
            f"{case['ratio']:>5.2f}  #wrong {case['wrong']}")


def compared_row(row):
    return (f"{row['name']:<44} {row['unit']:<8} before {row['before']:>9.4g}  now {row['now']:>9.4g}  ratio {row['ratio']:>6.3f} "
            f"({row['low']:.3f} to {row['high']:.3f})")


def stage_row(stage):
    beside = f", of {stage['wall']:.1f}: copies and gaps {stage['copies and gaps']:.1f}" if "wall" in stage else ""
    return f"{stage['name']:<12} {stage['launches']:>6.1f} launches, {stage['kernels']:>8.1f} us of kernels{beside}"


def kernel_row(kernel):
    return (f"{kernel['name']:<60.60} {kernel['launches']:>5} x {kernel['microseconds']:>9.1f} us {kernel['share']:>6.1%}  "
            f"{kernel['GB/s']:>7.1f} GB/s")


ROWS = {"cases": case_row, "compared": compared_row, "stages": stage_row, "kernels": kernel_row}


def brief(value):
    if isinstance(value, dict):
        return "(" + ", ".join(f"{key} {brief(inner)}" for key, inner in value.items()) + ")"
    return f"{value:.4g}" if isinstance(value, float) else str(value)

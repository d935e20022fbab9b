"""The table of compare.py: a row is one tool on one graph, with what its process answered."""

import statistics
import sys

COLUMNS = ("task", "graph", "tool", "threads", "s/epoch", "k seeds/s", "M edges/s", "edges/batch", "MB", "MB moved",
           "B/edge", "valid", "test", "#wrong", "x", "remark")


class Table:
    """Rows as they are measured. A row is a dict of COLUMNS, and `raw`: what the tool answered."""

    def __init__(self):
        self.rows = []

    def add(self, task, graph, tool, threads, answer):
        row = {"task": task, "graph": graph, "tool": tool, "threads": threads, "raw": answer}
        problem = next((word for word in ("missing", "failed") if word in answer), None)
        if problem:
            row["remark"] = f"{problem}: {answer[problem]}"
        else:
            seconds, edges = statistics.median(answer["seconds"]), statistics.median(answer["edges"])
            row.update({"s/epoch": seconds, "k seeds/s": answer["seeds"] / seconds / 1e3,
                        "M edges/s": edges / seconds / 1e6, "edges/batch": edges / answer["batches"],
                        "MB": answer["memory"] / 1e6, "#wrong": answer["wrong"], "remark": answer.get("remark", "")})
            if "moved" in answer:
                row["MB moved"] = statistics.median(answer["moved"]) / 1e6
            if "graph_bytes" in answer and threads == 1:
                row["B/edge"] = answer["graph_bytes"] / answer["graph_edges"]
            row.update({name: answer[name] for name in ("valid", "test") if name in answer})
        self.rows.append(row)
        print(f"{task:<10} {graph:<8} {tool:<18} {threads} {'processes' if task == 'distributed' else 'threads'}  "
              + (f"{row['s/epoch']:.3f} s" if "s/epoch" in row else row["remark"]), file=sys.stderr, flush=True)

    def compare_with(self, reference):
        """Fills x: seconds per seed over those of `reference`'s row of the same task, graph and threads."""
        same = ("task", "graph", "threads")
        for row in self.rows:
            of = [other for other in self.rows if other["tool"] in reference and "k seeds/s" in other
                  and all(other[key] == row[key] for key in same)]
            if of and "k seeds/s" in row:
                row["x"] = of[0]["k seeds/s"] / row["k seeds/s"]

    def text(self):
        digits = {"s/epoch": 3, "k seeds/s": 2, "M edges/s": 2, "edges/batch": 0, "MB": 0, "MB moved": 1, "B/edge": 1,
                  "valid": 4, "test": 4, "x": 2}
        cells = [COLUMNS]
        for row in self.rows:
            cells.append([f"{row[name]:.{digits[name]}f}" if name in digits and name in row else str(row.get(name, "-"))
                          for name in COLUMNS])
        widths = [max(map(len, column)) for column in zip(*cells)]
        words = ("task", "graph", "tool", "remark")
        lines = ["  ".join(cell.ljust(width) if name in words else cell.rjust(width)
                           for name, cell, width in zip(COLUMNS, line, widths)).rstrip() for line in cells]
        lines.insert(1, "  ".join("-" * min(width, 40) for width in widths))
        return "\n".join(lines)


def seconds_of(answer):
    return statistics.median(answer["seconds"]) if "seconds" in answer else float("inf")

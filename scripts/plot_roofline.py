#!/usr/bin/env python3
"""Draws the products of a training step beside the limits of the machine they were measured on, as an SVG.

    scripts/plot_roofline.py build/bench/summary.json -o roofline.svg [--threads 1]

The summary is `make bench`'s, with dense/gemm and dense/spmm in it. Across: operations for each byte that must move; up:
GFLOP/s; both axes are logarithmic. The slope is the copy rate measured beside the sparse products, the roof OpenBLAS's
sgemm beside the dense ones. A dense product of [65536, k] and [k, n] moves its three matrices once, a sparse one 4 f + 8
bytes for each entry (its row of f numbers, id and value). Beyond the slope lie products whose rows were in a cache.
Exit codes: 0 done, 2 usage or no such cases.
"""
import argparse
import json
import math
import re
import sys

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 800, 440, 64, 24, 20, 52
X_RANGE, Y_RANGE = (0.2, 100.0), (2.0, 1000.0)
ROWS = 65536
COLOURS = {"sparse": "#D55E00", "float32": "#0072B2", "bfloat16": "#009E73"}  # Okabe and Ito's


def operations_per_byte(case):
    """(kind, operations a byte, GFLOP/s for each unit of the rate, label), or None for a case that is no product."""
    dense = re.fullmatch(r"(X W|X\^T dZ|dZ W\^T) +k=(\d+) +n=(\d+) +\d+ thr(, bf16)?", case)
    if dense:
        k, n = int(dense[2]), int(dense[3])
        kind = "bfloat16" if dense[4] else "float32"
        return kind, 2 * ROWS * k * n / (4 * (ROWS * k + k * n + ROWS * n)), 1.0, f"{dense[1]} {k} x {n}"
    sparse = re.fullmatch(r"layer (\d) (B X|B\^T dY) +f=(\d+) +\d+ thr", case)
    if sparse:
        f = int(sparse[3])
        intensity = 2 * f / (4 * f + 8)
        return "sparse", intensity, intensity, f"{sparse[2]}, layer {sparse[1]}"
    return None


def read_points(path, threads):
    """The points, and the two limits: GB/s, GFLOP/s."""
    points, copies, products = [], [], []
    with open(path, encoding="utf-8") as file:
        summary = json.load(file)
    for name, case in summary["cases"].items():
        known = operations_per_byte(name.split(": ", 1)[-1].strip())
        if known is None or case["threads"] != threads:
            continue
        kind, intensity, factor, label = known
        points.append((kind, intensity, case["rate"] * factor, label))
        (copies if kind == "sparse" else products).append(case["bound"])
    if not copies or not products:
        sys.exit(f"plot_roofline.py: {path} has no dense/gemm and dense/spmm with {threads} threads; "
                 "`make bench ONLY=dense` measures them")
    return points, sorted(copies)[len(copies) // 2], sorted(products)[len(products) // 2]


def place(value, limits, first, last):
    low, high = (math.log(limit) for limit in limits)
    return first + (math.log(value) - low) / (high - low) * (last - first)


def x_of(value):
    return place(value, X_RANGE, LEFT, WIDTH - RIGHT)


def y_of(value):
    return place(value, Y_RANGE, HEIGHT - BOTTOM, TOP)


def text(x, y, words, anchor="start", fill="#333", more=""):
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" fill="{fill}" {more}>{words}</text>'


def axes():
    lines = []
    for value in (0.2, 0.5, 1, 2, 5, 10, 20, 50, 100):
        lines.append(f'<line x1="{x_of(value):.0f}" x2="{x_of(value):.0f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#e4e4e4"/>')
        lines.append(text(x_of(value), HEIGHT - BOTTOM + 18, f"{value:g}", "middle"))
    for value in (2, 5, 10, 20, 50, 100, 200, 500, 1000):
        lines.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y_of(value):.0f}" y2="{y_of(value):.0f}" stroke="#e4e4e4"/>')
        lines.append(text(LEFT - 8, y_of(value) + 4, f"{value:g}", "end"))
    lines.append(text((LEFT + WIDTH) / 2, HEIGHT - 12, "operations for each byte that must move", "middle"))
    lines.append(f'<text transform="translate(16 {HEIGHT / 2 - 10:.0f}) rotate(-90)" text-anchor="middle" fill="#333">GFLOP/s</text>')
    return lines


def draw(points, copy, product, threads):
    ridge = product / copy
    roof = (f"M {x_of(X_RANGE[0]):.1f} {y_of(max(Y_RANGE[0], copy * X_RANGE[0])):.1f} "
            f"L {x_of(ridge):.1f} {y_of(product):.1f} L {x_of(X_RANGE[1]):.1f} {y_of(product):.1f}")
    lines = axes() + [f'<path d="{roof}" fill="none" stroke="#333" stroke-width="2"/>',
                      text(x_of(1.1), y_of(copy * 1.1) - 10, f"copy, {copy:.1f} GB/s", "end"),
                      text(x_of(ridge) + 10, y_of(product) + 16, f"sgemm, {product:.0f} GFLOP/s")]
    for kind, colour in COLOURS.items():
        of_kind = sorted((point for point in points if point[0] == kind), key=lambda point: -point[2])
        # Labels of one kind stand below each other, beside its points and clear of the roof.
        previous = y_of(75) if kind == "float32" else -100.0
        for _, intensity, rate, label in of_kind:
            x, y = x_of(intensity), y_of(rate)
            at = max(y + 4, previous + 14)
            previous = at
            lines.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{colour}"/>')
            right = kind == "sparse"
            edge = x_of(1.6) if right else x_of(8 if kind == "bfloat16" else 15)
            lines.append(f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{edge + (-4 if right else 4):.1f}" y2="{at - 4:.1f}" stroke="{colour}" stroke-width="0.6"/>')
            lines.append(text(edge, at, label, "start" if right else "end", colour))
    words = f"Products of a step, {threads} thread{'s' * (threads > 1)}, beside the copy rate and sgemm of the machine"
    legend = [text(LEFT + 14 + 110 * k, TOP + 18, name, "start", colour, 'font-weight="bold"')
              for k, (name, colour) in enumerate(COLOURS.items())]
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
                      'font-family="sans-serif" font-size="12" role="img" aria-labelledby="title">',
                      f'<title id="title">{words}</title>', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
                      *lines, *legend, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("summary")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    points, copy, product = read_points(options.summary, options.threads)
    with open(options.output, "w", encoding="utf-8") as file:
        file.write(draw(points, copy, product, options.threads))


if __name__ == "__main__":
    main()

"""Charts as SVG to stand inside of an HTML page: lines and stacked bars; none of them asks for a library. Colours and letters
are the page's (STYLE), so that they follow its light or dark scheme; nothing refers to outside.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

WIDTH, HEIGHT = 360, 250
LEFT, RIGHT, TOP, BOTTOM = 52, 350, 34, 190
LETTER = 6.6  # at most, of 11 pixels: what a text needs is bounded by it
COLOURS = 8
STYLE = (
    """
svg { width: 100%; max-width: 34rem; display: block; }
svg text { font: 11px system-ui, sans-serif; fill: var(--ink); }
svg .title { font-weight: 600; } svg .axis { stroke: var(--faint); stroke-width: 1; }
svg path { fill: none; stroke-width: 1.7; }
"""
    + "".join(
        f"svg .c{k} {{ stroke: var(--c{k}); }} svg .f{k} {{ fill: var(--c{k}); }}\n"
        for k in range(COLOURS)
    )
)


@dataclass
class Axes:
    title: str
    x: str  # with its unit
    y: str


def short(value: float) -> str:
    return f"{value + 0.0:.4g}"  # of -0.0 too


def shortened(text: str, width: float) -> str:
    fits = max(1, int(width / LETTER))
    return text if len(text) <= fits else text[: fits - 1] + "…"


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    of = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{of}>{html.escape(words)}</text>'


def ticks(least: float, most: float, wanted: int = 4) -> list[float]:
    """Round numbers in [least, most]."""
    if not most > least:
        return [least]
    step = 10.0 ** np.floor(np.log10((most - least) / wanted))
    step *= next(m for m in (1, 2, 5, 10) if (most - least) / (m * step) <= wanted)
    found = step * np.arange(np.ceil(least / step - 1e-9), np.floor(most / step + 1e-9) + 1)
    return [float(value) + 0.0 for value in found]


def _legend(names: Sequence[str]) -> tuple[str, int]:
    """Rows below the axes, and the height of the chart."""
    parts = []
    for k, name in enumerate(names):
        x, y = 10 + 175 * (k % 2), 240 + 16 * (k // 2)
        parts.append(f'<rect class="f{k % COLOURS}" x="{x}" y="{y - 9}" width="9" height="9"/>')
        parts.append(text(x + 14, y, shortened(name, 150)))
    return "".join(parts), HEIGHT + 16 * ((len(names) - 1) // 2)


def _framed(axes: Axes, names: Sequence[str], xs: list[float], y: tuple[float, float], drawn: str) -> str:
    legend, height = _legend(names)
    low, high = y
    parts = [
        text(10, 14, shortened(axes.title, WIDTH - 20), "title"),
        text(10, 27, shortened(axes.y, WIDTH - 20)),
        text((LEFT + RIGHT) / 2, 222, axes.x, anchor="middle"),
        f'<path class="axis" d="M{LEFT} {TOP}V{BOTTOM}H{RIGHT}"/>',
    ]
    for value in ticks(low, high):
        at = float(_scaled(value, low, high, BOTTOM, TOP + 6))
        parts.append(f'<path class="axis" d="M{LEFT - 4} {at:.1f}H{LEFT}"/>')
        parts.append(text(LEFT - 6, at + 4, short(value), anchor="end"))
    for value in ticks(xs[0], xs[1]):
        at = float(_scaled(value, xs[0], xs[1], LEFT, RIGHT - 12))
        parts.append(text(at, BOTTOM + 15, short(value), anchor="middle"))
    label = html.escape(f"{axes.title}: {axes.y} over {axes.x}", quote=True)
    return (
        f'<svg role="img" aria-label="{label}" viewBox="0 0 {WIDTH} {height}">'
        + "".join(parts)
        + drawn
        + legend
        + "</svg>"
    )


def _scaled(value: object, low: float, high: float, start: float, end: float) -> np.ndarray:
    share = (np.asarray(value, float) - low) / ((high - low) or 1)
    return np.asarray(start + share * (end - start))


def lines(axes: Axes, series: Mapping[str, tuple[Sequence[float], Sequence[float]]]) -> str:
    """{name: (xs, ys)}; what is not finite is left out."""
    kept = {}
    for name, (xs, ys) in series.items():
        of, values = np.asarray(xs, float), np.asarray(ys, float)
        finite = np.isfinite(of) & np.isfinite(values)
        if finite.any():
            kept[name] = of[finite], values[finite]
    if not kept:
        return ""
    all_x, all_y = (np.concatenate([pair[i] for pair in kept.values()]) for i in (0, 1))
    span, low, high = [float(all_x.min()), float(all_x.max())], float(all_y.min()), float(all_y.max())
    if low == high:
        low, high = low - abs(low or 1) / 2, high + abs(high or 1) / 2
    parts = []
    for k, (of, values) in enumerate(kept.values()):
        x = _scaled(of, span[0], span[1], LEFT, RIGHT - 12)
        y = _scaled(values, low, high, BOTTOM, TOP + 6)
        points = "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(x, y))
        parts.append(f'<path class="c{k % COLOURS}" d="M{points}"/>')
        parts += [
            f'<circle class="f{k % COLOURS}" cx="{a:.1f}" cy="{b:.1f}" r="2"/>' for a, b in zip(x, y)
        ]
    return _framed(axes, list(kept), span, (low, high), "".join(parts))


def stacked(axes: Axes, xs: Sequence[float], series: Mapping[str, Sequence[float]]) -> str:
    """A bar for each x, of the parts of {name: heights}."""
    heights = np.array([np.asarray(of, float) for of in series.values()])
    if not heights.size or not np.isfinite(heights).all() or not heights.any():
        return ""
    span = [float(min(xs)) - 0.5, float(max(xs)) + 0.5]
    tops = np.cumsum(heights, axis=0)
    high = float(tops.max())
    wide = max(0.8, 0.8 * (RIGHT - 12 - LEFT) / (span[1] - span[0]))
    parts = []
    for k, (of, above) in enumerate(zip(heights, tops)):
        for x, height, top in zip(xs, of, above):
            at = float(_scaled(x, span[0], span[1], LEFT, RIGHT - 12)) - wide / 2
            y = float(_scaled(top, 0, high, BOTTOM, TOP + 6))
            tall = float(height) / high * (BOTTOM - TOP - 6)
            parts.append(
                f'<rect class="f{k % COLOURS}" x="{at:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall:.2f}"/>'
            )
    return _framed(axes, list(series), span, (0.0, high), "".join(parts))

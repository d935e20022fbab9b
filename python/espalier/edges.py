"""Edges as the graph file has them: entries of a matrix, row by row, each once.

Messages flow from the source of an edge to its target, and the target is the row: row v of A lists
the sources of the edges into v, ascending. Of a list [2, m], as PyTorch Geometric has it, the first
line is sources, the second targets.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arrays import integers
from .errors import DataError, DataWarning
from .repeats import first_of_largest, last_of, merged_times, merged_weights, standing_edges

# As `espalier import` has them.
CHOICES = {
    "duplicates": ("sum", "mean", "max", "first", "last", "count", "refuse"),
    "duplicate_features": ("kept", "first", "last", "sum", "mean"),
    "duplicate_times": ("first", "last"),
    "loops": ("keep", "drop"),
}


@dataclass(frozen=True)
class Repeats:
    """What becomes of edges that are listed more than once, and of loops: the first of CHOICES, where
    nothing is said."""

    duplicates: str = "sum"
    duplicate_features: str = "kept"
    duplicate_times: str = "first"
    loops: str = "keep"

    def __post_init__(self) -> None:
        for option, choices in CHOICES.items():
            if (said := getattr(self, option)) not in choices:
                raise DataError(f"{option} is {said!r}; say one of {', '.join(choices)}")
        if self.duplicates == "refuse" and self.duplicate_features != "kept":
            raise DataError(
                f"duplicate_features is {self.duplicate_features!r}, but duplicates=\"refuse\" leaves "
                "none to merge; leave one of them out"
            )


@dataclass
class Entries:
    """Entries in ascending order of (target, source). `listed`: the edge of the user's list whose
    features the entry has. `times`: when each was. `standing`: where features are added up, of each edge of the
    list the one that stands for it and those it meets, the first."""

    targets: NDArray[np.int64]
    sources: NDArray[np.int64]
    listed: NDArray[np.int64]
    weights: NDArray[np.float32] | None
    standing: NDArray[np.int64] | None = None
    times: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.targets)

    def reversed(self) -> Entries:
        """The same edges the other way round."""
        order = np.lexsort((self.targets, self.sources))
        return Entries(
            self.sources[order],
            self.targets[order],
            self.listed[order],
            None if self.weights is None else self.weights[order],
            self.standing,
            None if self.times is None else self.times[order],
        )

    def same_places(self, other: Entries) -> bool:
        return np.array_equal(self.targets, other.targets) and np.array_equal(
            self.sources, other.sources
        )


def ends(value: Any, what: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sources and targets of a list [2, m], or of two lists."""
    if isinstance(value, (tuple, list)) and len(value) == 2 and np.ndim(value[0]) == 1:
        sources, targets = integers(value[0], f"{what}[0]"), integers(value[1], f"{what}[1]")
        if sources.shape != targets.shape:
            raise DataError(
                f"{what} has {len(sources)} sources, but {len(targets)} targets; an edge has one "
                "of each"
            )
        return sources, targets
    edges = integers(value, what)
    if edges.ndim != 2 or edges.shape[0] != 2:
        remedy = (
            f"give its transpose, {what}.T"
            if edges.ndim == 2 and edges.shape[1] == 2
            else "give [2, edges]: sources, targets"
        )
        raise DataError(f"{what} has the shape {list(edges.shape)}; {remedy}")
    return edges[0], edges[1]


def _order(
    targets: NDArray[np.int64], sources: NDArray[np.int64], num_sources: int, num_targets: int
) -> NDArray[np.intp]:
    """By (target, source); equal ones stay in their order."""
    if num_sources * num_targets < 2**63:
        return np.argsort(targets * num_sources + sources, kind="stable")
    return np.lexsort((sources, targets))


def _refuse_repeated(
    edges: NDArray[np.int64],
    earlier: NDArray[np.int64],
    sources: NDArray[np.int64],
    targets: NDArray[np.int64],
    what: str,
) -> None:
    at = int(np.argmin(edges))
    edge, other = int(edges[at]), int(earlier[at])
    mirrored = sources[edge] != sources[other]
    raise DataError(
        f"{what}: edge {edge} ({sources[edge]} to {targets[edge]}) is listed before, as edge "
        f"{other}"
        + (", the other way round" if mirrored else "")
        + '; say duplicates="sum", "mean", "max", "first", "last" or "count"'
        + (", or leave out directed=False" if mirrored else "")
    )


_KEPT_WEIGHTS = {
    "sum": "the sum of theirs",
    "mean": "the mean of theirs",
    "max": "the largest of theirs",
    "first": "that of the first",
    "last": "that of the last",
    "count": "how many they are",
}


def _of_whom(duplicates: str, duplicate_features: str, weighted: bool) -> str:
    """The edge whose features stay."""
    if duplicate_features == "kept" and duplicates == "max" and weighted:
        return "the one with the largest weight"
    last = duplicate_features == "last" or (duplicate_features == "kept" and duplicates == "last")
    return "the last" if last else "the first"


def _warn_of_repeated(
    edges: NDArray[np.int64], of: int, both_ways: bool, kept: list[str], what: str
) -> None:
    """`kept`: what stays, in words."""
    warnings.warn(
        f"{what}: {len(np.unique(edges))} of {of} edges are listed before"
        + " in this direction or the other" * both_ways
        + "; those became one"
        + "".join(f"{',' if at else ', whose'} {word}" for at, word in enumerate(kept)),
        DataWarning,
        stacklevel=6,  # the line that called write_graph
    )


def entries_of(
    sources: NDArray[np.int64],
    targets: NDArray[np.int64],
    num_sources: int,
    num_targets: int,
    repeats: Repeats,
    *,
    weights: NDArray[np.float32] | None = None,
    both_ways: bool = False,
    drop_loops: bool = False,
    what: str = "edge_index",
    featured: bool = False,
    times: NDArray[np.int64] | None = None,
) -> Entries:
    """Edges that are listed more than once become one, which is warned of; with `both_ways` every
    edge stands for its reverse, too, and u, v and v, u are the same edge listed twice. Features are
    "kept" of the edge whose weight stays ("max", "last"), else of the first. `featured`: have edges
    features? That is said. Of `times` the earliest, or latest, in the same direction stays."""
    duplicates, duplicate_features = repeats.duplicates, repeats.duplicate_features
    if duplicates == "count":
        weights = np.ones(len(sources), dtype=np.float32)
    listed = np.arange(len(sources), dtype=np.int64)
    rows, columns = targets, sources
    if drop_loops:
        listed = np.flatnonzero(sources != targets)
        rows, columns = targets[listed], sources[listed]
    if both_ways:
        rows, columns = (
            np.stack((rows, columns), 1).reshape(-1),
            np.stack((columns, rows), 1).reshape(-1),
        )
        listed = np.repeat(listed, 2)
    if drop_loops or both_ways:
        weights = None if weights is None else weights[listed]
        times = None if times is None else times[listed]
    order = _order(rows, columns, num_sources, num_targets)
    rows, columns = rows[order], columns[order]
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    starts = np.flatnonzero(begins)
    if times is not None:
        turned = np.arange(len(order)) % 2 == 1 if both_ways else np.zeros(len(order), dtype=bool)
        times = merged_times(times, turned, order, begins, repeats.duplicate_times)
    if len(starts) == len(order):
        kept_weights = None if weights is None else weights[order]
        return Entries(rows, columns, listed[order], kept_weights, times=times)

    whom = _of_whom(duplicates, duplicate_features, weights is not None)
    repeated = np.flatnonzero(~begins)
    earlier = listed[order[starts[np.cumsum(begins)[repeated] - 1]]]
    again = listed[order[repeated]]
    if (met := again != earlier).any():  # a loop is its own reverse
        if duplicates == "refuse":
            _refuse_repeated(again[met], earlier[met], sources, targets, what)
        kept = [f"weight is {_KEPT_WEIGHTS[duplicates]}"] * (weights is not None)
        if featured:
            added = duplicate_features in ("sum", "mean")
            kept.append(
                f"features are {f'the {duplicate_features} of theirs' if added else f'those of {whom}'}"
            )
        if times is not None:
            kept.append(f"time is the {'earliest' if repeats.duplicate_times == 'first' else 'latest'}")
        _warn_of_repeated(again[met], len(sources), both_ways, kept, what)
    kept_at, merged = last_of(starts, len(order)) if whom == "the last" else starts, None
    if weights is not None:
        merged = merged_weights(weights, order, starts, duplicates)
        if not np.isfinite(merged).all():
            at = int(np.argmax(~np.isfinite(merged)))
            raise DataError(
                f"{what}: the weights of {columns[starts[at]]} to {rows[starts[at]]} add up to "
                "more than float32 holds"
            )
        if whom == "the one with the largest weight":
            kept_at = first_of_largest(weights, order, starts, merged)
    standing = None
    if duplicate_features in ("sum", "mean"):
        standing = standing_edges(len(sources), listed, order, starts)
    return Entries(rows[starts], columns[starts], listed[order[kept_at]], merged, standing, times)

"""What edges that are listed more than once become when they become one: weights, times, features.

Edges are sorted: `order` are their places in the list, runs of one edge begin at `starts`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import DataError


def last_of(starts: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """Where runs end that begin there."""
    return np.append(starts[1:], count) - 1


def merged_weights(
    weights: NDArray[np.float32], order: NDArray[np.intp], starts: NDArray[np.intp], how: str
) -> NDArray[np.float32]:
    if how == "max":
        return np.maximum.reduceat(weights[order], starts)
    if how in ("first", "last"):
        return weights[order[starts if how == "first" else last_of(starts, len(order))]]
    sizes = np.diff(np.append(starts, len(order)))
    runs = np.repeat(np.arange(len(starts)), sizes)
    sums = np.bincount(runs, weights[order])  # in double precision, one after the other
    with np.errstate(over="ignore"):
        return (sums / sizes if how == "mean" else sums).astype(np.float32)


def merged_times(
    times: NDArray[np.int64],
    turned: NDArray[np.bool_],
    order: NDArray[np.intp],
    begins: NDArray[np.bool_],
    how: str,
) -> NDArray[np.int64]:
    """Of each run the earliest time, or the latest, of edges that are listed in its direction; where
    there is none, of those that are listed the other way round."""
    runs = np.cumsum(begins) - 1
    when = times[order]
    best = np.lexsort((when if how == "first" else ~when, turned[order], runs))
    return when[best[np.flatnonzero(begins)]]


def standing_edges(
    edges: int, listed: NDArray[np.int64], order: NDArray[np.intp], starts: NDArray[np.intp]
) -> NDArray[np.int64]:
    """Of each edge the first of its run; itself where it is in none."""
    sizes = np.diff(np.append(starts, len(order)))
    found = np.arange(edges)
    found[listed[order]] = np.repeat(listed[order[starts]], sizes)
    return found


def added_up(
    rows: NDArray[Any], standing: NDArray[np.int64], mean: bool, what: str
) -> NDArray[Any]:
    """Features of edges; the row of one that stands for several is the sum, or the mean, of
    theirs."""
    several = np.flatnonzero(np.bincount(standing, minlength=len(rows)) > 1)
    places = np.full(len(rows), -1, dtype=np.int64)
    places[several] = np.arange(len(several))
    members = np.flatnonzero(places[standing] >= 0)
    of = places[standing[members]]
    found, kind = rows.copy(), np.float16 if rows.dtype == np.float16 else np.float32
    for column in range(rows.shape[1]):
        stored = rows[members, column].astype(kind).astype(np.float64)
        sums = np.bincount(of, stored, minlength=len(several))
        if mean:
            sums /= np.bincount(of, minlength=len(several))
        with np.errstate(over="ignore"):
            found[several, column] = sums.astype(np.float32).astype(kind)
        if not np.isfinite(found[several, column]).all() and np.isfinite(stored).all():
            at = int(np.argmax(~np.isfinite(found[several, column])))
            raise DataError(
                f"{what}: column {column} of edge {several[at]} and of those that repeat it adds up "
                f"to more than {np.dtype(kind).name} holds; say duplicate_features="
                '"mean", "first" or "last"'
            )
    return found


def first_of_largest(
    weights: NDArray[np.float32],
    order: NDArray[np.intp],
    starts: NDArray[np.intp],
    most: NDArray[np.float32],
) -> NDArray[np.intp]:
    """Places in `order`: of each run the first whose weight is the largest."""
    sizes = np.diff(np.append(starts, len(order)))
    best = np.flatnonzero(weights[order] == np.repeat(most, sizes))
    runs = np.repeat(np.arange(len(starts)), sizes)[best]
    return best[np.unique(runs, return_index=True)[1]]

"""Features of a table, column by column, piece after piece.

Means and deviations are of exact sums, so they do not depend on the pieces. What is scaled is kept
in float64 until then: a column of large numbers that differ little keeps its digits.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from . import cells
from .description import Features
from .reading import Piece

MOST_CATEGORIES = 1000


def standard(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Less their mean, divided by their deviation; 0 where all are the same."""
    if not len(values) or values.min() == values.max():
        return np.zeros(len(values))
    away = values - math.fsum(values.tolist()) / len(values)
    away -= math.fsum(away.tolist()) / len(values)  # what the mean's rounding left
    away /= np.abs(away).max()  # so that no square is too small
    return away / math.sqrt(math.fsum((away * away).tolist()) / len(values))


class FeatureColumns:
    """Takes pieces, then has a matrix [rows, f] of float32: numbers, dates, categories, as
    described."""

    def __init__(self, of: Features, where: str) -> None:
        self.of, self.where = of, where
        self.known = [column for column in [*of.numbers, *of.dates]]
        self.kind = np.float64 if of.scale == "standard" else np.float32
        self.values: list[NDArray[np.floating]] = []
        self.codes: dict[str, list[NDArray[np.int32]]] = {column: [] for column in of.categories}
        self.places: dict[str, dict[str, int]] = {column: {} for column in of.categories}

    def add(self, piece: Piece, kept: NDArray[np.bool_] | None = None) -> None:
        """`kept`: which of its rows."""
        rows = np.full(len(piece), True) if kept is None else kept
        table = np.empty((len(piece), len(self.known)), dtype=self.kind)
        for at, column in enumerate(self.known):
            read = cells.numbers if at < len(self.of.numbers) else cells.dates
            table[:, at] = values = read(piece, column)
            empty = np.isnan(values)
            if self.of.missing == "refuse" and empty.any():
                piece.fail(
                    int(np.argmax(empty)),
                    column,
                    'is empty; fill it, or say missing = "mean" or a number',
                )
        self.values.append(table[rows])
        for column, places in self.places.items():
            codes = [
                -1 if name is None else places.setdefault(name, len(places))
                for name in cells.names(piece, column)
            ]
            if len(places) > MOST_CATEGORIES:
                raise DataError(
                    f"{self.where}: categories {column!r} has more than {MOST_CATEGORIES} values; "
                    "make it a type of its own and "
                    "a relation to it"
                )
            self.codes[column].append(np.array(codes, dtype=np.int32)[rows])

    def matrix(self) -> NDArray[np.float32] | None:
        if not self.of.columns() or not self.values:
            return None
        width = len(self.known) + sum(map(len, self.places.values()))
        table = np.zeros((sum(map(len, self.values)), width), dtype=np.float32)
        for at, column in enumerate(self.known):
            values = self._filled(column, np.concatenate([piece[:, at] for piece in self.values]))
            table[:, at] = standard(values) if self.of.scale == "standard" else values
        begin = len(self.known)
        for column, places in self.places.items():
            codes = np.concatenate(self.codes[column])
            order = {places[name]: at for at, name in enumerate(sorted(places))}
            rows = np.flatnonzero(codes >= 0)
            table[rows, [begin + order[code] for code in codes[rows].tolist()]] = 1
            begin += len(places)
        return table

    def _filled(self, column: str, values: NDArray[np.floating]) -> NDArray[np.floating]:
        """What was empty, by the rule of `missing`."""
        empty = np.isnan(values)
        if not empty.any():
            return values
        if self.of.missing == "mean":
            if empty.all():
                raise DataError(f"{self.where}: all of {column!r} is empty; it has no mean")
            values[empty] = math.fsum(values[~empty].tolist()) / int((~empty).sum())
        else:
            values[empty] = self.of.missing
        return values

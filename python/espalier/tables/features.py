"""Features of a table, column by column, piece after piece."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from . import cells
from .description import Features
from .reading import Piece

MOST_CATEGORIES = 1000


class FeatureColumns:
    """Takes pieces, then has a matrix [rows, f] of float32: numbers, dates, categories, as
    described."""

    def __init__(self, of: Features, where: str) -> None:
        self.of, self.where = of, where
        self.known = [column for column in [*of.numbers, *of.dates]]
        self.values: list[NDArray[np.float32]] = []
        self.codes: dict[str, list[NDArray[np.int32]]] = {column: [] for column in of.categories}
        self.places: dict[str, dict[str, int]] = {column: {} for column in of.categories}

    def add(self, piece: Piece, kept: NDArray[np.bool_] | None = None) -> None:
        """`kept`: which of its rows."""
        rows = np.full(len(piece), True) if kept is None else kept
        table = np.empty((len(piece), len(self.known)), dtype=np.float32)
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
        parts = [self._filled(np.concatenate(self.values))]
        for column, places in self.places.items():
            codes = np.concatenate(self.codes[column])
            order = {places[name]: at for at, name in enumerate(sorted(places))}
            table = np.zeros((len(codes), len(places)), dtype=np.float32)
            rows = np.flatnonzero(codes >= 0)
            table[rows, [order[code] for code in codes[rows].tolist()]] = 1
            parts.append(table)
        return np.concatenate(parts, axis=1)

    def _filled(self, table: NDArray[np.float32]) -> NDArray[np.float32]:
        """What was empty, by the rule of `missing`."""
        for at, column in enumerate(self.known):
            empty = np.isnan(table[:, at])
            if not empty.any():
                continue
            if self.of.missing == "mean" and empty.all():
                raise DataError(f"{self.where}: all of {column!r} is empty; it has no mean")
            table[empty, at] = (
                table[~empty, at].mean(dtype=np.float64)
                if self.of.missing == "mean"
                else self.of.missing
            )
        return table

"""Features of a table, column by column, piece after piece.

Means and deviations are of exact sums, so they do not depend on the pieces. What is scaled is kept
in float64 until then: a column of large numbers that differ little keeps its digits. Columns are
called as in their table; of categories NAME=VALUE, where an '=' of NAME has a backslash before it.
"""

from __future__ import annotations

import hashlib
import math
import re
import warnings

import numpy as np
from numpy.typing import NDArray

from ..columns import Columns
from ..errors import DataError, DataWarning
from ..labels import MOST_LETTERS
from . import cells
from .description import Features
from .reading import Piece

MOST_CATEGORIES = 1000
AS_IT_IS = (0.0, 0.0, 1.0, 1.0)  # of a scale: mean, what its rounding left, largest, deviation


def measured(values: NDArray[np.float64]) -> tuple[float, float, float, float]:
    """What scaled() is to do with a column so that its mean is 0 and its deviation 1."""
    if not len(values) or values.min() == values.max():
        return (float(values[0]) if len(values) else 0.0), 0.0, 1.0, 0.0
    mean = math.fsum(values.tolist()) / len(values)
    away = values - mean
    rest = math.fsum(away.tolist()) / len(values)  # what the mean's rounding left
    away -= rest
    largest = float(np.abs(away).max())  # so that no square is too small
    away /= largest
    return mean, rest, largest, math.sqrt(math.fsum((away * away).tolist()) / len(values))


def scaled(values: NDArray[np.floating], scale: NDArray[np.float64]) -> NDArray[np.floating]:
    """By measured(); a column that was constant is 0."""
    mean, rest, largest, deviation = scale.tolist()
    if (mean, rest, largest, deviation) == AS_IT_IS:
        return values
    if deviation == 0:
        return np.zeros(len(values))
    return ((values - mean) - rest) / largest / deviation


def _shortened(text: str, most: int) -> str:
    """Of so many bytes at most, and of no other text."""
    encoded = text.encode("utf-8", "surrogatepass")
    if len(encoded) <= most:
        return text
    digest = hashlib.sha256(encoded).hexdigest()[:32]
    return f"{encoded[: most - 35].decode(errors='ignore')}...{digest}"


def name_of(column: str, category: str | None = None) -> str:
    """What the column of features is called; of a category its own."""
    name = _shortened(re.sub(r"([\\=])", r"\\\1", column), MOST_LETTERS // 2)
    if category is None:
        return name
    return f"{name}={_shortened(category, MOST_LETTERS - len(name.encode()) - 1)}"


def _columns_of_table(names: list[str]) -> list[str]:
    """'country=' for 'country=FR', each once."""
    return list(dict.fromkeys(re.sub(r"^((?:[^\\=]|\\.)*=).*$", r"\1", name, flags=re.S) for name in names))


class FeatureColumns:
    """Takes pieces, then has a matrix [rows, f] of float32: numbers, dates, categories, as
    described; or the columns of `like`, filled and scaled as they were. `made`: its columns."""

    def __init__(self, of: Features, like: Columns | None = None) -> None:
        self.of, self.where, self.like = of, of.where, like
        self.known = [*of.numbers, *of.dates]
        if len(set(self.known)) < len(self.known):
            twice = next(of for at, of in enumerate(self.known) if of in self.known[:at])
            raise DataError(f"{of.where}: its column {twice!r} is described twice; leave one out")
        is_scaled = of.scale == "standard" if like is None else like.scales is not None
        self.kind = np.float64 if is_scaled else np.float32
        self.values: list[NDArray[np.floating]] = []
        self.codes: dict[str, list[NDArray[np.int32]]] = {column: [] for column in of.categories}
        self.places: dict[str, dict[str, int]] = {column: {} for column in of.categories}
        self.made: Columns | None = None

    def add(self, piece: Piece, kept: NDArray[np.bool_] | None = None) -> None:
        """`kept`: which of its rows."""
        rows = np.full(len(piece), True) if kept is None else kept
        table = np.empty((len(piece), len(self.known)), dtype=self.kind)
        for at, column in enumerate(self.known):
            read = cells.numbers if at < len(self.of.numbers) else cells.dates
            table[:, at] = values = read(piece, column)
            empty = np.isnan(values)
            if empty.any() and (why := self._why_not_empty(column)):
                piece.fail(int(np.argmax(empty)), column, why)
        self.values.append(table[rows])
        for column, places in self.places.items():
            codes = [
                -1 if name is None else places.setdefault(name, len(places))
                for name in cells.names(piece, column)
            ]
            if len(places) > MOST_CATEGORIES and self.like is None:
                raise DataError(
                    f"{self.where}: categories {column!r} has more than {MOST_CATEGORIES} values; "
                    "make it a type of its own and a relation to it"
                )
            self.codes[column].append(np.array(codes, dtype=np.int32)[rows])

    def _why_not_empty(self, column: str) -> str | None:
        """What is wrong with a cell that has no number."""
        if self.like is None:
            said = 'is empty; fill it, or say missing = "mean" or a number'
            return said if self.of.missing == "refuse" else None
        name, scales = name_of(column), self.like.scales
        if name not in self.like.names:  # matrix() refuses it, with both lists
            return None
        if scales is None or math.isnan(scales[self.like.names.index(name), 0]):
            return "is empty, and no cell of the training was to be; fill it"
        return None

    def _changes_cells(self) -> bool:
        return self.of.missing != "refuse" or self.of.scale == "standard"

    def _names(self) -> list[str]:
        return [name_of(column) for column in self.known] + [
            name_of(column, value)
            for column, places in self.places.items()
            for value in sorted(places)
        ]

    def _check_like(self, there: list[str]) -> None:
        """Has the table the columns that the training had?"""
        groups = _columns_of_table(there)
        here = [name_of(column) for column in self.known]
        here += [
            of
            for column, places in self.places.items()
            if (of := f"{name_of(column)}=") in groups or places
        ]
        if set(here) != set(groups):
            only = [
                f"only {where}: {', '.join(of for of in some if of not in others)}"
                for where, some, others in (("there", groups, here), ("here", here, groups))
                if not set(some) <= set(others)
            ]
            raise DataError(
                f"{self.where}: its columns are not those of the training; {'; '.join(only)} (there: "
                f"{', '.join(groups) or 'none'}; here: {', '.join(here) or 'none'}); describe the "
                "same columns, or train again"
            )

    def matrix(self) -> NDArray[np.float32] | None:
        if self.like is not None and (self.values or not self.of.columns()):
            self._check_like(self.like.names)
        if not self.of.columns() or not self.values:
            return None
        own = Columns(self._names()) if self.like is None else self.like
        place = {name: at for at, name in enumerate(own.names)}
        scales = np.tile((math.nan, *AS_IT_IS), (len(place), 1)) if own.scales is None else own.scales
        table = np.zeros((sum(map(len, self.values)), len(place)), dtype=np.float32)
        for at, column in enumerate(self.known):
            values = np.concatenate([piece[:, at] for piece in self.values])
            scale = scales[place[name_of(column)]]
            if self.like is None:
                scale[0] = self._fill(column, values)
            values[np.isnan(values)] = scale[0]
            if self.like is None and self.of.scale == "standard":
                scale[1:] = measured(values)
            table[:, place[name_of(column)]] = scaled(values, scale[1:])
        for column, places in self.places.items():
            codes = np.concatenate(self.codes[column])
            to = np.array([*(place.get(name_of(column, value), -1) for value in places), -1])[codes]
            rows = np.flatnonzero(to >= 0)
            table[rows, to[rows]] = 1
            self._warn_of_unknown(column, codes[(to < 0) & (codes >= 0)])
        if self.like is None and self.known and self._changes_cells():
            own.scales = scales
        self.made = own
        return table

    def _fill(self, column: str, values: NDArray[np.floating]) -> float:
        """What an empty cell becomes, by the rule of `missing`; nan where there is to be none."""
        if self.of.missing != "mean":
            return math.nan if self.of.missing == "refuse" else float(self.of.missing)
        known = values[~np.isnan(values)]
        if len(values) and not len(known):
            raise DataError(f"{self.where}: all of {column!r} is empty; it has no mean")
        return math.fsum(known.tolist()) / len(known) if len(known) else math.nan

    def _warn_of_unknown(self, column: str, codes: NDArray[np.int32]) -> None:
        """Of the rows that lost their value."""
        if not len(codes):
            return
        values = list(self.places[column])
        some = [repr(values[code]) for code in np.unique(codes)]
        warnings.warn(
            f"{self.where}: {len(codes)} rows have a {column!r} that the training did not know "
            f"({', '.join(some[:5])}{', ..' if len(some) > 5 else ''}); they are 0 in all its "
            "columns",
            DataWarning,
            stacklevel=6,  # the line that called from_tables
        )

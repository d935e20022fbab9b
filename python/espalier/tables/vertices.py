"""The vertices of a type, out of its table: numbers for ids, features, labels, splits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..columns import Columns
from ..errors import DataError
from ..graph import SPLITS
from . import cells
from .description import TypeTable
from .features import FeatureColumns
from .reading import Piece, pieces

CALLED = {
    "train": "train",
    "training": "train",
    "valid": "valid",
    "val": "valid",
    "validation": "valid",
    "test": "test",
}


class Vertices:
    """What is known of a type's vertices, which count from 0 in the order of their table."""

    def __init__(self, of: TypeTable, like: Columns | None = None) -> None:
        self.of = of
        self.numbers: dict[str, int] = {}
        self.features = FeatureColumns(of, like)
        self.classes: list[str | None] = []
        self.several: list[NDArray[np.int64]] = []
        self.times: list[NDArray[np.int64]] = []
        self.parts: list[NDArray[Any]] = []  # of each piece: split names, or times
        if of.file is not None:
            self._read()

    def _columns(self) -> list[str]:
        of, split = self.of, self.of.split
        named = [of.id, *of.columns(), *of.labels, of.label, of.time]
        named += [split.get("column"), split.get("time")]
        return [name for name in named if name is not None]

    def _read(self) -> None:
        assert self.of.file is not None
        for piece in pieces(self.of.file, self._columns()):
            self._add_ids(piece)
            self.features.add(piece)
            if self.of.label:
                self.classes += cells.names(piece, self.of.label)
            if self.of.labels:
                self.several.append(
                    np.stack([self._truth(piece, column) for column in self.of.labels], axis=1)
                )
            if self.of.time:
                self.times.append(cells.times(piece, self.of.time))
            if self.of.split:
                self.parts.append(self._parts(piece))
        if not self.numbers:
            raise DataError(
                f"{self.of.file} has no rows below its first line; the type {self.of.name} would "
                "be empty"
            )

    def _add_ids(self, piece: Piece) -> None:
        column = self.of.id or ""
        for row, name in enumerate(cells.ids(piece, column)):
            count = len(self.numbers)
            if self.numbers.setdefault(name, count) != count:
                piece.fail(row, column, f"{name!r} is the id of an earlier row, too")

    def _truth(self, piece: Piece, column: str) -> NDArray[np.int64]:
        """0, 1, or -1 where there is nothing."""
        values = cells.numbers(piece, column)
        known = ~np.isnan(values)
        if (wrong := known & (values != 0) & (values != 1)).any():
            row = int(np.argmax(wrong))
            piece.fail(
                row,
                column,
                f"{piece.columns[column][row]!r} is neither 0 nor 1, as several labels are",
            )
        return np.where(known, values, -1).astype(np.int64)

    def _parts(self, piece: Piece) -> NDArray[Any]:
        split = self.of.split
        if "time" in split:
            return cells.times(piece, split["time"])
        if "shares" in split:
            return np.zeros(len(piece))
        found = cells.names(piece, split["column"])
        for row, name in enumerate(found):
            if name is not None and name.strip().lower() not in CALLED:
                piece.fail(
                    row,
                    split["column"],
                    f"{name!r} is no split; write train, valid, test, or nothing",
                )
        return np.array(
            ["" if name is None else CALLED[name.strip().lower()] for name in found], dtype="U5"
        )

    def number(self, name: str) -> int | None:
        """The vertex of an id. Of arrays without ids it is a number. A type without either has those
        that edges name, in their order."""
        if self.of.arrays is not None:
            if not self.numbers:
                ids = self.of.arrays.given.get("ids", range(self.of.arrays.given["num_nodes"]))
                self.numbers = {str(id): at for at, id in enumerate(ids)}
        elif self.of.file is None:
            return self.numbers.setdefault(name, len(self.numbers))
        return self.numbers.get(name)

    def given(self, seed: int) -> dict[str, Any]:
        """Arguments of write_graph."""
        if self.of.arrays is not None:
            self.features.matrix()  # as `like` has none
            return self.of.arrays.given
        given: dict[str, Any] = {
            "num_nodes": len(self.numbers),
            "ids": cells.numbers_or_names(list(self.numbers)),
            "x": self.features.matrix(),
            "feature_names": self.features.made,
            "time": np.concatenate(self.times) if self.times else None,
        }
        if self.classes:
            known = {name for name in self.classes if name is not None}
            whole = all(cells.is_whole(name) for name in known)
            given["class_names"] = (sorted(known, key=int) if whole else sorted(known)) or None
            given["y"] = np.full(len(self.numbers), -1)
            if known:
                given["y"] = np.array([*self.classes, None], dtype=object)[:-1]
        if self.several:
            given["y"] = np.concatenate(self.several)
        return given | self._splits(seed, given.get("y"))

    def _splits(self, seed: int, labels: Any) -> dict[str, NDArray[np.int64]]:
        """Ids of those that have a label."""
        if not self.parts:
            return {}
        split, parts = self.of.split, np.concatenate(self.parts)
        labelled = np.full(len(parts), True)
        if self.classes:
            labelled = np.array([name is not None for name in self.classes])
        elif self.several:
            labelled = (labels >= 0).any(axis=1)
        if "column" in split:
            return {name: np.flatnonzero((parts == name) & labelled) for name in SPLITS}
        if "time" in split:
            valid, test = (
                moment if isinstance(moment, int) else cells.moment(moment)
                for moment in (split["valid"], split["test"])
            )
            if valid > test:
                raise DataError(
                    f"{self.of.file}: split.valid is later than split.test; vertices before valid "
                    "are to train on"
                )
            masks = (parts < valid, (parts >= valid) & (parts < test), parts >= test)
            return {name: np.flatnonzero(mask & labelled) for name, mask in zip(SPLITS, masks)}
        order = np.random.default_rng(seed).permutation(np.flatnonzero(labelled))
        cuts = np.rint(np.cumsum(split["shares"]) * len(order)).astype(np.int64)
        return {name: order[begin:end] for name, begin, end in zip(SPLITS, (0, *cuts[:-1]), cuts)}

"""What the columns of features are called and what made their numbers, as a graph file and the
weights of a training hold it (include/espalier/graph/graph_file.hpp)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from .errors import DataError
from .labels import fixed_texts, texts
from .results import check_seal

NAMES, SCALES = "feature_names", "feature_scales"
SCALE_PARTS = 5


@dataclass
class Columns:
    """`scales`: of each column what an empty cell became (nan: none may be empty), then what was
    taken off twice and divided by twice; a column whose last divisor is 0 is 0."""

    names: list[str]
    scales: NDArray[np.float64] | None = None  # [names, 5]


def checked_columns(value: Any, what: str, width: int) -> Columns:
    """Names, a text for each of so many columns, or what is known of them."""
    columns = value if isinstance(value, Columns) else Columns(list(texts(value, what)))
    names = columns.names
    fixed_texts(names, what)
    if len(names) != width:
        raise DataError(f"{what} has {len(names)} names, but there are {width} columns")
    if len(set(names)) < len(names):
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise DataError(f"{what} has {twice!r} twice; columns have a name each")
    return columns


def write_columns(file: h5py.File, group: str, columns: Columns | None) -> None:
    """`group`: where the features are."""
    if columns is None or not columns.names:
        return
    file[f"{group}{NAMES}"] = fixed_texts(columns.names, NAMES)
    if columns.scales is not None:
        file[f"{group}{SCALES}"] = columns.scales


def read_columns(path: str | os.PathLike[str]) -> dict[str, Columns]:
    """Of a graph file, weights or a checkpoint, by group: "nodes/TYPE/", "edges/RELATION/"."""
    found: dict[str, Columns] = {}

    def look(name: str, dataset: Any) -> None:
        group, _, last = name.rpartition("/")
        if last == NAMES and isinstance(dataset, h5py.Dataset):
            names = [text.decode() for text in dataset[()].tolist()]
            scales = dataset.parent.get(SCALES)
            if scales is not None and scales.shape != (len(names), SCALE_PARTS):
                raise DataError(f"{path}: {group}/{SCALES} is not {len(names)} x {SCALE_PARTS}")
            found[f"{group}/"] = Columns(names, None if scales is None else scales[()])

    check_seal(path)
    try:
        with h5py.File(path) as file:
            for of in ("nodes", "edges"):
                if of in file:
                    file[of].visititems(lambda name, item, of=of: look(f"{of}/{name}", item))
    except FileNotFoundError:
        raise DataError(f"{path} is not there") from None
    except (OSError, AttributeError, UnicodeDecodeError) as problem:
        raise DataError(f"{path} is no file of HDF5, or damaged: {problem}") from None
    if not found:
        raise DataError(
            f"{path} has no names of columns, so there is nothing to do as it did: its graph was "
            "made by an earlier version, or not by espalier-tables; make that graph again, which "
            "gives the same features, and train again or name it"
        )
    return found

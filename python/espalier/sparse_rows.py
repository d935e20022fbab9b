"""Features of which few numbers are not zero: they stay so in the file, in the program's memory and
on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from . import arrays
from .errors import DataError

MOST_COLUMNS = 1 << 24


@dataclass
class SparseRows:
    """As scipy.sparse.csr_array has them: columns ascend in a row, none twice, no number is 0."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float32]
    shape: tuple[int, int]


def feature_rows(value: Any, what: str, rows: int) -> NDArray[Any] | SparseRows:
    """A SciPy matrix as it is, unless a matrix takes less: the program keeps each row in the room
    of the longest, 8 bytes for a number. Anything else as a matrix."""
    if not hasattr(value, "tocsr"):
        return _with_columns(arrays.numbers(value, what, rows, "vertices"), what)
    matrix = value.tocsr(copy=True)
    if matrix.shape[0] != rows:
        raise DataError(
            f"{what} has {matrix.shape[0]} rows, but there are {rows} vertices; give a row for each"
        )
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    longest = int(np.diff(matrix.indptr).max(initial=0))
    if 2 * longest >= matrix.shape[1]:
        return _with_columns(arrays.numbers(matrix, what, rows, "vertices"), what)
    if matrix.shape[1] > MOST_COLUMNS:
        raise DataError(f"{what} has {matrix.shape[1]} columns; sparse ones are {MOST_COLUMNS} at most")
    return SparseRows(
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int32),
        _finite(matrix, what),
        (rows, int(matrix.shape[1])),
    )


def _with_columns(features: NDArray[Any], what: str) -> NDArray[Any]:
    if features.shape[1] == 0:
        raise DataError(f"{what} has no columns; leave it out where there are no features")
    return features


def _finite(matrix: Any, what: str) -> NDArray[np.float32]:
    if matrix.dtype.kind not in "biuf":
        raise DataError(f"{what} holds {matrix.dtype}; features are numbers")
    with np.errstate(over="ignore"):
        stored = np.ascontiguousarray(matrix.data, dtype=np.float32)
    if not (good := np.isfinite(stored)).all():
        (at,) = arrays.first(~good)
        row = int(np.searchsorted(matrix.indptr, at, side="right")) - 1
        raise DataError(
            f"{what}: row {row}, column {matrix.indices[at]} is {matrix.data[at]}, but features are "
            "finite numbers of float32; replace it, or leave that row out"
        )
    return stored


def write_sparse_rows(file: h5py.File, name: str, rows: SparseRows) -> None:
    file[f"{name}/indptr"] = rows.indptr
    file[f"{name}/indices"] = rows.indices
    file[f"{name}/indices"].attrs["columns"] = np.int64(rows.shape[1])
    file[f"{name}/values"] = rows.values

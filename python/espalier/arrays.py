"""What users have, as checked arrays: lists, numpy, torch, SciPy, pandas; any width, byte order and
memory order.

Each function names its argument as the user does (`what`) and raises DataError that says which
entry is the first wrong one.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import DataError, DataWarning

MOST_INT64 = np.iinfo(np.int64).max
ROWS_AT_ONCE = 1 << 16


def as_array(value: Any, what: str) -> NDArray[Any]:
    """A numpy array in this machine's byte order; of a tensor of torch without its gradient, of a
    sparse matrix all of it."""
    if value is None:
        raise DataError(f"{what} is None")
    if np.ma.isMaskedArray(value) and np.ma.getmaskarray(value).any():
        at = first(np.ma.getmaskarray(value))
        raise DataError(f"{what}{place(at)} is masked; say by .filled(..) what stands there")
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    elif hasattr(value, "toarray"):
        value = value.toarray()
    try:
        array = np.asarray(value)
    except TypeError as problem:  # as of bfloat16
        raise DataError(f"{what} is no array: {problem}") from None
    except ValueError as problem:
        raise DataError(f"{what} is no array: {problem}; its rows must be equally long") from None
    if array.dtype.kind == "U" and isinstance(value, (list, tuple)):
        if not all(isinstance(item, (str, list, tuple)) for item in value):
            array = np.array(value, dtype=object)  # numpy made texts of what is none
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def first(wrong: NDArray[np.bool_]) -> tuple[int, ...]:
    """The place of the first True."""
    return tuple(int(at) for at in np.unravel_index(int(np.argmax(wrong)), wrong.shape))


def place(at: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, at))}]"


def _first_object(
    array: NDArray[Any], what: str, wanted: str, kinds: tuple[type, ...]
) -> DataError:
    """Why an array of Python objects is refused: the first that is none of the kinds, or that they
    are objects."""
    for at, item in np.ndenumerate(array):
        if not isinstance(item, kinds) or isinstance(item, bool):
            return DataError(f"{what}{place(at)} is {item!r}, a Python object; {wanted}")
    return DataError(f"{what} is an array of Python objects; {wanted}")


def integers(value: Any, what: str) -> NDArray[np.int64]:
    """Whole numbers as int64. Floats are refused: above 2^53 they miss ids, and an id that came
    through them may be another."""
    array = as_array(value, what)
    if array.dtype.kind == "O":
        for at, item in np.ndenumerate(array):
            if isinstance(item, int) and not -MOST_INT64 <= item <= MOST_INT64:
                raise DataError(
                    f"{what}{place(at)} is {item}, which does not fit 64 bits; number the vertices "
                    "from 0 and give their own ids as ids="
                )
        raise _first_object(
            array, what, "give whole numbers, as an array of integers", (int, np.integer)
        )
    if array.size == 0:
        return array.astype(np.int64)
    if array.dtype.kind == "f":
        raise DataError(
            f"{what} holds floats ({array.dtype}), the first is {array.flat[0]}; give whole "
            f"numbers: {what}.astype(numpy.int64)"
        )
    if array.dtype.kind not in "iu":
        raise DataError(f"{what} holds {array.dtype}; give whole numbers")
    if array.dtype.kind == "u" and (wrong := array > np.uint64(MOST_INT64)).any():
        at = first(wrong)
        raise DataError(
            f"{what}{place(at)} is {array[at]}, which does not fit 64 bits with a sign; number the "
            "vertices from 0 and give their own ids as ids="
        )
    return array.astype(np.int64, copy=False)


def check_ids(ids: NDArray[np.int64], vertices: int, what: str, of: str = "the graph") -> None:
    """Are all of them vertices?"""
    if ids.size and (int(ids.min()) < 0 or int(ids.max()) >= vertices):
        at = first((ids < 0) | (ids >= vertices))
        raise DataError(
            f"{what}{place(at)} is {ids[at]}, but {of} has the vertices 0 to {vertices - 1}; "
            + (
                "ids count from 0"
                if ids[at] < 0 or ids[at] == vertices
                else "say num_nodes= (in a description count) if there are more"
            )
        )


def numbers(value: Any, what: str, rows: int, things: str) -> NDArray[Any]:
    """A table [rows, columns] of numbers that were not looked at yet: finite() does, piece by
    piece, when they are written."""
    array = as_array(value, what)
    if array.dtype.kind == "O":
        raise _first_object(
            array, what, f"give numbers: {what}.astype(numpy.float32)", (int, float, np.number)
        )
    if array.dtype.kind not in "biuf":
        raise DataError(
            f"{what} holds {array.dtype}; features are numbers: make a column of 0 and 1 for each "
            "word"
        )
    if array.ndim == 1:
        array = array[:, np.newaxis]
    if array.ndim != 2:
        raise DataError(
            f"{what} has {array.ndim} dimensions, {list(array.shape)}; give [{things}, features]"
        )
    if len(array) != rows:
        raise DataError(
            f"{what} has {len(array)} rows, but there are {rows} {things}; give a row for each"
        )
    return array


def finite(
    piece: NDArray[Any], what: str, begin: int, things: str = "features"
) -> NDArray[Any]:
    """Rows from `begin` on as the file holds them: float16 where they are that, else float32."""
    kind = np.float16 if piece.dtype == np.float16 else np.float32
    with np.errstate(over="ignore"):
        stored = np.ascontiguousarray(piece, dtype=kind)
    good = np.isfinite(stored)
    if not good.all():
        row, column = first(~good)
        value = piece[row, column]
        why = (
            "which is too large for float32"
            if np.isfinite(value)
            else f"but {things} are finite numbers"
        )
        raise DataError(
            f"{what}: row {begin + row}, column {column} is {value}, {why}; replace it, or leave "
            "that row out"
        )
    return stored


def weights(value: Any, what: str, edges: int) -> NDArray[np.float32]:
    """A weight for each edge: finite and not negative, as samplers draw by them."""
    array = numbers(value, what, edges, "edges")
    if array.shape[1] != 1:
        raise DataError(
            f"{what} has {array.shape[1]} columns; an edge has one weight, several numbers are "
            "edge_features="
        )
    stored = finite(array, what, 0, "weights").astype(np.float32)[:, 0]
    if (wrong := stored < 0).any():
        (at,) = first(wrong)
        raise DataError(
            f"{what}[{at}] is {stored[at]}; weights are not negative: give such numbers as "
            "edge_features="
        )
    vanished = int(np.count_nonzero((stored == 0) & (array[:, 0] != 0)))
    if vanished:
        warnings.warn(
            f"{what}: {vanished} of {edges} weights are too small for float32, which holds them as "
            "0; multiply all of them by one number if these edges are to weigh something",
            DataWarning,
            stacklevel=5,  # the line that called write_graph
        )
    return stored


def times(value: Any, what: str, count: int, things: str) -> NDArray[np.int64]:
    """Of so many "edges" or "vertices": whole numbers as they are, dates as seconds since 1970."""
    array = as_array(value, what)
    if array.dtype.kind == "M":
        if (wrong := np.isnat(array)).any():
            raise DataError(
                f"{what}{place(first(wrong))} is no date; give one for each of the {things}"
            )
        array = array.astype("datetime64[s]").astype(np.int64)
    found = integers(array, what)
    if found.shape != (count,):
        raise DataError(
            f"{what} has the shape {list(found.shape)}, but there are {count} {things}; give a time "
            "for each"
        )
    return found


def split_ids(value: Any, what: str, vertices: int) -> NDArray[np.int64]:
    """Ascending ids of a split that is given as a mask of truth values or as ids in any order."""
    array = as_array(value, what)
    if array.ndim == 2 and 1 in array.shape:
        array = array.reshape(-1)
    if array.ndim != 1:
        raise DataError(
            f"{what} has the shape {list(array.shape)}; give one split, a column of it: {what}[:, 0]"
        )
    if array.dtype.kind == "b":
        if len(array) != vertices:
            raise DataError(
                f"{what} is a mask of {len(array)} entries, but there are {vertices} vertices"
            )
        return np.flatnonzero(array).astype(np.int64)
    ids = integers(array, what)
    check_ids(ids, vertices, what)
    order = np.argsort(ids, kind="stable")
    ids = ids[order]
    if (repeated := ids[1:] == ids[:-1]).any():
        if len(ids) == vertices and set(np.unique(ids)) <= {0, 1}:
            raise DataError(
                f"{what} has an entry of 0 or 1 for each vertex, as a mask has: give "
                f"{what}.astype(bool)"
            )
        (at,) = first(repeated)
        raise DataError(
            f"{what}[{order[at + 1]}] is {ids[at]}, as {what}[{order[at]}] is; name each vertex once"
        )
    return ids

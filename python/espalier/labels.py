"""Labels and names: classes from what users call them, ids of their own, both as texts of fixed
length for the file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .arrays import as_array, first, integers, place
from .errors import DataError

MOST_CLASSES = 2**20  # that are more than the vertices
NONE, UNKNOWN = -1, 255  # no class; one of several labels that nobody knows
MOST_LETTERS = 1024  # bytes of a name in the file


class Labels(NamedTuple):
    values: NDArray[Any]  # int32 [n], or uint8 [n, C] of several labels
    classes: int
    names: list[str] | None


def is_missing(item: Any) -> bool:
    """None, or nan: also what pandas writes for either."""
    return item is None or type(item).__name__ in ("NAType", "NaTType") or bool(item != item)


def texts(value: Any, what: str, missing: bool = False) -> NDArray[np.object_]:
    """An array of str; None where `missing` allows it and there is nothing."""
    array = as_array(value, what)
    if array.ndim != 1:
        raise DataError(f"{what} has the shape {list(array.shape)}; give a list of texts")
    found = np.empty(len(array), dtype=object)
    for at, item in enumerate(array.tolist()):
        if isinstance(item, bytes):
            try:
                item = item.decode()
            except UnicodeDecodeError:
                raise DataError(
                    f"{what}[{at}] is {item!r}, which is not UTF-8; decode it first"
                ) from None
        if missing and is_missing(item):
            continue
        if not isinstance(item, str):
            raise DataError(f"{what}[{at}] is {item!r}; give texts, or whole numbers alone")
        found[at] = item
    return found


def is_text(array: NDArray[Any]) -> bool:
    """Is it an array of texts, as numpy or as pandas has them?"""
    if array.dtype.kind in "US":
        return True
    return array.dtype.kind == "O" and any(isinstance(item, (str, bytes)) for item in array.flat)


def fixed_texts(names: Sequence[str], what: str) -> NDArray[np.bytes_]:
    """UTF-8 of fixed length, as the file holds names."""
    encoded = []
    for at, name in enumerate(names):
        try:
            text = name.encode()
        except UnicodeEncodeError:
            raise DataError(f"{what}[{at}] is {name!r}, which UTF-8 cannot say") from None
        if not text or b"\0" in text or len(text) > MOST_LETTERS:
            why = (
                f"has {len(text)} bytes; at most {MOST_LETTERS} are kept"
                if len(text) > MOST_LETTERS
                else "holds a null byte"
                if text
                else "is empty; give each a name"
            )
            raise DataError(f"{what}[{at}] {why}")
        encoded.append(text)
    return np.array(encoded, dtype=f"S{max(map(len, encoded), default=1)}")


def own_ids(value: Any, what: str, vertices: int) -> NDArray[Any]:
    """The user's own ids, int64 or texts, each once."""
    array = as_array(value, what)
    if array.ndim != 1 or len(array) != vertices:
        raise DataError(
            f"{what} has the shape {list(array.shape)}, but there are {vertices} vertices; give an "
            "id for each"
        )
    ids = (
        fixed_texts(texts(array, what).tolist(), what) if is_text(array) else integers(array, what)
    )
    order = np.argsort(ids, kind="stable")
    if (repeated := ids[order][1:] == ids[order][:-1]).any():
        (at,) = first(repeated)
        raise DataError(
            f"{what}[{order[at + 1]}] is {array.tolist()[order[at]]!r}, as {what}[{order[at]}] is; "
            "ids name one vertex each"
        )
    return ids


def _checked_names(class_names: Any, what: str) -> list[str] | None:
    if class_names is None:
        return None
    names = [str(name) for name in texts(class_names, what)]
    fixed_texts(names, what)
    if len(set(names)) < len(names):
        twice = next(name for at, name in enumerate(names) if name in names[:at])
        raise DataError(f"{what} has {twice!r} twice; classes have a name each")
    return names


def _from_texts(array: NDArray[Any], what: str, names: list[str] | None) -> Labels:
    """Classes in the order of class_names, or else of the alphabet; None and nan: none."""
    found = texts(array, what, missing=True)
    if names is None:
        names = sorted({name for name in found if name is not None})
        fixed_texts(names, f"the sorted names of {what}")
    number = {name: at for at, name in enumerate(names)}
    values = np.full(len(found), NONE, dtype=np.int32)
    for at, name in enumerate(found):
        if name is not None:
            if name not in number:
                raise DataError(f"{what}[{at}] is {name!r}, which is none of class_names")
            values[at] = number[name]
    return Labels(values, len(names), names)


def _whole(array: NDArray[Any], what: str, missing: int) -> NDArray[np.int64]:
    """Of truth values and floats, too, where they are whole numbers; nan: nothing known."""
    if array.dtype.kind == "b":
        return array.astype(np.int64)
    if array.dtype.kind != "f":
        return integers(array, what)
    unknown = np.isnan(array)
    known = np.where(unknown, 0, array)
    if (wrong := (known != np.floor(known)) | (np.abs(known) > 2.0**31)).any():
        raise DataError(
            f"{what}{place(first(wrong))} is {array[first(wrong)]}; labels are classes, whole "
            "numbers from 0"
        )
    return np.where(unknown, missing, known.astype(np.int64))


def labels(
    value: Any, what: str, vertices: int, class_names: Any = None, names_are: str = "class_names"
) -> Labels:
    """One class for each vertex (texts, or whole numbers with -1 or nan for none), or [n, C] of 0
    and 1 (-1, 255, nan: unknown)."""
    array = as_array(value, what)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim not in (1, 2) or len(array) != vertices or 0 in array.shape:
        raise DataError(
            f"{what} has the shape {list(array.shape)}, but there are {vertices} vertices; give a "
            "label for each, or a row of 0 and 1"
        )
    names = _checked_names(class_names, names_are)
    if array.ndim == 1 and is_text(array):
        return _from_texts(array, what, names)
    several = array.ndim == 2
    values = _whole(array, what, UNKNOWN if several else NONE)
    classes = array.shape[1] if several else int(values.max(initial=NONE)) + 1
    if several:
        values = np.where(values == -1, UNKNOWN, values)
        wrong = (values != 0) & (values != 1) & (values != UNKNOWN)
    else:
        wrong = (values < NONE) | (values >= min(2**31 - 1, len(names) if names else 2**31 - 1))
    if wrong.any():
        at = first(wrong)
        allowed = (
            "0, 1, or -1 where nobody knows"
            if several
            else f"-1 (none) or 0 to {len(names) - 1}, as there are {len(names)} class_names"
            if names
            else "-1 (none) or classes from 0"
        )
        raise DataError(f"{what}{place(at)} is {array[at]}; labels are {allowed}")
    if not several and not names and classes > max(MOST_CLASSES, vertices):
        at = first(values == classes - 1)
        raise DataError(
            f"{what}{place(at)} is {values[at]}, which makes {classes} classes of {vertices} "
            "vertices; number classes from 0 (classes, y = numpy.unique(y, return_inverse=True))"
        )
    if names and several and len(names) != classes:
        raise DataError(f"{names_are} has {len(names)} names, but {what} has {classes} columns")
    return Labels(
        values.astype(np.uint8 if several else np.int32), len(names) if names else classes, names
    )

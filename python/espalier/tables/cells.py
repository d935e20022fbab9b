"""Cells of a piece as numbers, dates, ids and names; what does not fit is named with file, line and
column."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime, timezone
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..labels import MOST_LETTERS, is_missing
from .reading import Piece

SECONDS_A_DAY = 86400
MOST = float(np.finfo(np.float32).max)


def _each(
    piece: Piece, column: str, read: Callable[[Any], Any], wanted: str, kind: Any = np.float64
) -> NDArray[Any]:
    """What `read` makes of each cell; one that it takes for wrong is not what is wanted."""
    values = np.empty(len(piece), dtype=kind)
    for row, cell in enumerate(piece.columns[column]):
        try:
            values[row] = read(cell)
        except (TypeError, ValueError, OverflowError):
            piece.fail(row, column, f"{cell!r} is no {wanted}")
    return values


def numbers(piece: Piece, column: str) -> NDArray[np.float64]:
    """nan where there is nothing."""
    cells = piece.columns[column]
    values = _each(piece, column, lambda cell: math.nan if cell is None else float(cell), "number")
    for row in np.flatnonzero(~(np.abs(values) <= MOST)):
        if cells[row] is not None:
            finite = math.isfinite(values[row])
            why = "is too large for float32" if finite else "is no finite number"
            piece.fail(row, column, f"{cells[row]!r} {why}")
    return values


def moment(value: date | datetime) -> float:
    """Seconds since 1970; a time without a zone is UTC."""
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    return (value if value.tzinfo else value.replace(tzinfo=timezone.utc)).timestamp()


def _moment_of(cell: Any) -> float:
    if isinstance(cell, (date, datetime)):
        return moment(cell)
    if not isinstance(cell, str) or "-" not in cell.strip()[1:]:
        raise ValueError
    return moment(datetime.fromisoformat(cell.strip()))


def dates(piece: Piece, column: str) -> NDArray[np.float64]:
    """Days since 1970; nan where there is nothing."""
    return _each(
        piece,
        column,
        lambda cell: math.nan if is_missing(cell) else _moment_of(cell) / SECONDS_A_DAY,
        "date; write 2020-01-31, or 2020-01-31T12:00:00+01:00",
    )


def _time_of(cell: Any) -> int:
    """A date in seconds since 1970, a whole number as it is."""
    text = cell.strip() if isinstance(cell, str) else cell
    if isinstance(text, int) or (isinstance(text, str) and text.lstrip("-").isdigit()):
        time = int(text)
        if not -(2**63) <= time < 2**63:
            raise ValueError
        return time
    return math.floor(_moment_of(cell))


def times(piece: Piece, column: str) -> NDArray[np.int64]:
    for row, cell in enumerate(piece.columns[column]):
        if is_missing(cell):
            piece.fail(row, column, "is empty; give each a time")
    wanted = "time; write 2020-01-31, 2020-01-31T12:00:00+01:00, or a whole number of 64 bits"
    return _each(piece, column, _time_of, wanted, np.int64)


def names(piece: Piece, column: str) -> list[str | None]:
    """Texts, and whole numbers as texts; None where there is nothing."""
    found: list[str | None] = []
    for row, cell in enumerate(piece.columns[column]):
        if is_missing(cell):
            found.append(None)
            continue
        if isinstance(cell, bool) or not isinstance(cell, (str, int)):
            piece.fail(row, column, f"{cell!r} is neither a text nor a whole number")
        name = str(cell)
        if "\0" in name or len(name.encode("utf-8", "surrogatepass")) > MOST_LETTERS:
            piece.fail(
                row,
                column,
                "holds a null byte" if "\0" in name else f"has more than {MOST_LETTERS} bytes",
            )
        found.append(name)
    return found


def ids(piece: Piece, column: str) -> list[str]:
    found = names(piece, column)
    for row, name in enumerate(found):
        if name is None:
            piece.fail(row, column, "is empty; an id is a text or a whole number")
    return found  # type: ignore[return-value]


def is_whole(name: str) -> bool:
    """A whole number of 64 bits, written as Python would?"""
    digits = name.removeprefix("-")
    return (
        digits.isascii()
        and digits.isdigit()
        and len(digits) < 20
        and str(int(name)) == name
        and -(2**63) <= int(name) < 2**63
    )


def numbers_or_names(names: list[str]) -> Any:
    """As numbers where all are whole ones."""
    if all(map(is_whole, names)):
        return np.array([int(name) for name in names], dtype=np.int64)
    return np.array([*names, None], dtype=object)[:-1]

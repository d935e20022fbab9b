"""A section of a description in TOML, asked key by key."""

from __future__ import annotations

import difflib
import pathlib
from typing import Any

from ..errors import DataError

KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("types", "relations", "split", "splits"), (dict,)),
    **dict.fromkeys(("source", "target", "edges", "weights", "features"), (dict, str)),
    **dict.fromkeys(("numbers", "dates", "categories"), (list,)),
    "labels": (list, str),
    "missing": (str, int, float),
    **dict.fromkeys(("seed", "count"), (int,)),
    "directed": (bool,),
}  # others are texts
OF_IMPORT = ("links", "half", "typed", "name")


class Section:
    """Its keys are those of a table or those of arrays."""

    def __init__(
        self, path: pathlib.Path, name: str, values: Any, of_table: list[str], of_arrays: list[str]
    ) -> None:
        self.path, self.where = path, f"{path}{', [' + name + ']' if name else ''}"
        if not isinstance(values, dict):
            raise DataError(f"{self.where}: is {values!r}, not a section")
        known = sorted({*of_table, *of_arrays})
        for key, value in values.items():
            of_import = f"{key} is for `espalier import {path}`, which reads arrays alone"
            self.require(key not in OF_IMPORT, of_import)
            if key not in known:
                near = difflib.get_close_matches(key, known, 1)
                raise DataError(
                    f"{self.where}: there is no key {key!r}; "
                    + (f"did you mean {near[0]!r}?" if near else f"it has {known}")
                )
            self._check_kind(key, value)
        self.values = values
        arrays, table = ([key for key in values if key not in of] for of in (of_table, of_arrays))
        self.is_table = bool(table) or not values
        one_kind = f"{arrays[:1]} is of arrays, {table[:1]} of a table; leave one of them out"
        self.require(not arrays or not table, one_kind)

    def _check_kind(self, key: str, value: Any) -> None:
        kinds = KINDS.get(key, (str,))
        good = isinstance(value, kinds) and isinstance(value, bool) == (kinds == (bool,))
        if isinstance(value, list):
            good = good and all(isinstance(item, str) for item in value)
        wanted = " or ".join("a list of columns" if kind is list else kind.__name__ for kind in kinds)
        self.require(good and value != "", f"{key} is {value!r}; give {wanted}")

    def require(self, condition: bool, message: str) -> None:
        if not condition:
            raise DataError(f"{self.where}: {message}")

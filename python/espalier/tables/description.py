"""shop.toml: which tables hold the vertices and edges of a graph, and what their columns are.

    graph = "shop.h5"        # to be written; paths are relative to this file
    seed = 0                 # of splits by share
    directed = false         # every edge goes both ways; left out: as listed
    duplicates = "sum"       # of edges that are listed more than once, as write_graph has it: mean, max,
                             # first, last, count, refuse; and duplicate_features = "kept": first, ..

    [types.item]
    file = "items.csv"       # .csv, .tsv, either with .gz, or .parquet
    id = "sku"
    numbers = ["price"]      # features: as they are,
    dates = ["added"]        # in days since 1970,
    categories = ["colour"]  # a column of 0 and 1 for each value
    missing = "mean"         # of numbers and dates that are empty: "refuse" (default), or a number
    label = "department"     # texts or numbers; empty: none
                             # several labels: labels = ["new", "sold"], columns of 0 and 1
    split = { shares = [0.6, 0.2, 0.2] }
                             # or { column = "part" }, with train, valid, test or nothing
                             # or { time = "added", valid = 2020-01-01, test = 2021-01-01 }

    [types.customer]         # without a file its ids are those that edges name

    [relations.buys]
    file = "orders.csv"      # messages flow from source to target
    source = { type = "customer", column = "who" }
    target = { type = "item", column = "sku" }
    numbers = ["amount"]     # dates, categories, missing, too
    weight = "pieces"
    time = "when"            # a date, or a whole number
    unknown = "refuse"       # of ids that their table has not: or "skip"

A graph of one type and one relation is a file without types.
"""

from __future__ import annotations

import difflib
import pathlib
import tomllib
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from typing import Any

from ..edges import DUPLICATE_FEATURES, DUPLICATES
from ..errors import DataError


@dataclass
class Features:
    """A table, and its columns that become numbers."""

    file: pathlib.Path | None = None
    numbers: list[str] = field(default_factory=list)
    dates: list[str] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    missing: str | float = "refuse"

    def columns(self) -> list[str]:
        return [*self.numbers, *self.dates, *self.categories]


@dataclass
class TypeTable(Features):
    name: str = ""
    id: str | None = None
    label: str | None = None
    labels: list[str] = field(default_factory=list)
    split: dict[str, Any] = field(default_factory=dict)


@dataclass
class RelationTable(Features):
    name: str = ""
    source: dict[str, str] = field(default_factory=dict)
    target: dict[str, str] = field(default_factory=dict)
    weight: str | None = None
    time: str | None = None
    unknown: str = "refuse"


@dataclass
class Description:
    graph: pathlib.Path | None
    seed: int
    directed: bool | None
    duplicates: str
    duplicate_features: str
    types: dict[str, TypeTable]
    relations: dict[str, RelationTable]


KINDS: dict[str, tuple[type, ...]] = {
    "file": (str,),
    "id": (str,),
    "label": (str,),
    "split": (dict,),
    "source": (dict,),
    "target": (dict,),
    "weight": (str,),
    "time": (str,),
    "unknown": (str,),
    "missing": (str, int, float),
    "graph": (str,),
    "seed": (int,),
    "directed": (bool,),
    "duplicates": (str,),
    "duplicate_features": (str,),
    "types": (dict,),
    "relations": (dict,),
}


class _Section:
    """A table of the TOML file, asked key by key."""

    def __init__(self, path: pathlib.Path, name: str, values: Any, known: list[str]) -> None:
        self.where = f"{path}{', [' + name + ']' if name else ''}"
        if not isinstance(values, dict):
            raise DataError(f"{self.where}: is {values!r}, not a section")
        for key, value in values.items():
            if key not in known:
                near = difflib.get_close_matches(key, known, 1)
                raise DataError(
                    f"{self.where}: there is no key {key!r}; "
                    + (f"did you mean {near[0]!r}?" if near else f"it has {known}")
                )
            self._check_kind(key, value)
        self.values = values

    def _check_kind(self, key: str, value: Any) -> None:
        kinds = KINDS.get(key)
        if kinds is None:
            good = isinstance(value, list) and all(isinstance(item, str) for item in value)
            wanted = "a list of columns"
        else:
            good = isinstance(value, kinds) and isinstance(value, bool) == (kinds == (bool,))
            good = good and value != ""
            wanted = " or ".join(kind.__name__ for kind in kinds)
        self.require(good, f"{key} is {value!r}; give {wanted}")

    def require(self, condition: bool, message: str) -> None:
        if not condition:
            raise DataError(f"{self.where}: {message}")


def _features(section: _Section) -> None:
    missing = section.values.get("missing", "refuse")
    section.require(
        not isinstance(missing, str) or missing in ("refuse", "mean"),
        f'missing is {missing!r}; say "refuse", "mean", or a number',
    )


def _moment(section: _Section, key: str) -> None:
    value = section.values["split"].get(key)
    section.require(
        isinstance(value, (date, datetime, int)) and not isinstance(value, bool),
        f"split by time wants {key} = a date, from which on vertices are of that split",
    )


def _split(section: _Section) -> None:
    split = section.values.get("split", {})
    kinds = {"column": {"column"}, "shares": {"shares"}, "time": {"time", "valid", "test"}}
    kind = next(
        (kind for kind, keys in kinds.items() if kind in split and set(split) <= keys), None
    )
    section.require(
        not split or kind is not None,
        f"split is {split!r}; say column, shares, or time with valid and test",
    )
    if kind in ("column", "time"):
        section.require(
            isinstance(split[kind], str) and split[kind] != "",
            f"split.{kind} is {split[kind]!r}; give the name of a column",
        )
    if kind == "shares":
        shares = split["shares"]
        good = (
            isinstance(shares, list)
            and len(shares) == 3
            and all(type(share) in (int, float) and share >= 0 for share in shares)
        )
        section.require(
            good and 0 < sum(shares) <= 1 + 1e-9,
            f"split.shares is {shares!r}; give three that add up to 1 at most",
        )
    if kind == "time":
        _moment(section, "valid")
        _moment(section, "test")


def _names(of: type) -> list[str]:
    return [item.name for item in fields(of) if item.name != "name"]


def _type(path: pathlib.Path, name: str, values: Any) -> TypeTable:
    section = _Section(path, f"types.{name}", values, _names(TypeTable))
    _features(section)
    _split(section)
    if "file" in values:
        section.require("id" in values, "say which column is the id: id =")
    else:
        section.require(not values, "says columns, but no file")
    section.require(
        "label" not in values or "labels" not in values,
        "has label and labels; one class each, or several labels",
    )
    return TypeTable(
        **{**values, "file": path.parent / values["file"] if "file" in values else None}, name=name
    )


def _relation(
    path: pathlib.Path, name: str, values: Any, types: dict[str, TypeTable]
) -> RelationTable:
    section = _Section(path, f"relations.{name}", values, _names(RelationTable))
    _features(section)
    section.require("file" in values, "say which table it is: file =")
    for end in ("source", "target"):
        said = values.get(end, {})
        section.require(
            set(said) == {"type", "column"} and all(type(name) is str for name in said.values()),
            f"say {end} = {{ type = .., column = .. }}",
        )
        section.require(
            said["type"] in types, f"{end}.type is {said['type']!r}; [types] has {sorted(types)}"
        )
    section.require(
        values.get("unknown", "refuse") in ("refuse", "skip"), 'unknown is not "refuse" or "skip"'
    )
    return RelationTable(**{**values, "file": path.parent / values["file"]}, name=name)


def read_description(path: pathlib.Path) -> Description:
    try:
        text = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path} is not there") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise DataError(f"{path} is no TOML: {problem}") from None
    section = _Section(path, "", text, [item.name for item in fields(Description)])
    section.require(
        bool(text.get("types")) and bool(text.get("relations")),
        "wants a [types.NAME] and a [relations.NAME]",
    )
    duplicates = text.get("duplicates", "sum")
    section.require(
        duplicates in DUPLICATES,
        f"duplicates is {duplicates!r}; say one of {', '.join(DUPLICATES)}",
    )
    features = text.get("duplicate_features", "kept")
    section.require(
        features in DUPLICATE_FEATURES,
        f"duplicate_features is {features!r}; say one of {', '.join(DUPLICATE_FEATURES)}",
    )
    types = {name: _type(path, name, values) for name, values in text["types"].items()}
    relations = {
        name: _relation(path, name, values, types) for name, values in text["relations"].items()
    }
    return Description(
        path.parent / text["graph"] if "graph" in text else None,
        text.get("seed", 0),
        text.get("directed"),
        duplicates,
        features,
        types,
        relations,
    )

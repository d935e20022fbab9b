"""shop.toml: which tables hold the vertices and edges of a graph, and what their columns are; or
which arrays.

    graph = "shop.h5"        # to be written; left out: called as this file. Paths are relative to it
    seed = 0                 # of splits by share
    directed = false         # every edge goes both ways; left out: as listed
    duplicates = "sum"       # of edges that are listed more than once, as write_graph has it: mean,
                             # max, .., refuse; duplicate_features = "kept", duplicate_times = "first"
    loops = "keep"           # or "drop"
    missing = "mean"         # of numbers and dates that are empty: "refuse" (default), or a number
    scale = "standard"       # numbers and dates, once what is empty is filled, less the mean of
                             # their column and divided by its deviation: "none" (default)

    [types.item]
    file = "items.csv"       # .csv, .tsv, either with .gz, or .parquet
    id = "sku"
    numbers = ["price"]      # features: as they are,
    dates = ["added"]        # in days since 1970,
    categories = ["colour"]  # a column of 0 and 1 for each value
    label = "department"     # texts or numbers; empty: none
                             # several labels: labels = ["new", "sold"], columns of 0 and 1
    time = "added"           # of the vertex: a date, or a whole number
    split = { shares = [0.6, 0.2, 0.2] }    # of those with a label, the default where there is one
                             # or { column = "part" }, with train, valid, test or nothing
                             # or { time = "added", valid = 2020-01-01, test = 2021-01-01 }
                             # or {}: none

    [types.customer]         # without a file its ids are those that edges name

    [relations.buys]
    file = "orders.csv"      # messages flow from source to target
    source = { type = "customer", column = "who" }
    target = "item"          # in the column that is called as in its own table: "sku"
    numbers = ["amount"]     # dates, categories, too
    weight = "pieces"
    time = "when"            # a date, or a whole number
    unknown = "refuse"       # of ids that their table has not: or "skip"
    inverse = "bought_by"    # of this relation; or directed = true, or false, within one type

    [types.shop]             # arrays (.npy, .npz:MEMBER) and texts without a header, as `espalier
    features = "x.npy"       # help import` has them: also count, labels, ids, time, splits
    [relations.sells]
    source = "shop"
    target = "item"
    edges = "edges.npy"      # vertices of each type from 0; also weights, time, features

`missing` and `scale` may stand in a section, too, and count there. A constant column is scaled to 0.
A graph of one type and one relation is a file without types.
"""

from __future__ import annotations

import pathlib
import tomllib
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from ..edges import CHOICES, Repeats
from ..errors import DataError
from ..inverses import INVERSE
from .arrays import OF_EDGES, OF_VERTICES, Arrays, edge_arrays, vertex_arrays
from .section import Section


@dataclass
class Features:
    """A table, and its columns that become numbers; or arrays."""

    file: pathlib.Path | None = None
    numbers: list[str] = field(default_factory=list)
    dates: list[str] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    time: str | None = None
    missing: str | float = "refuse"
    scale: str = "none"
    arrays: Arrays | None = None

    @property
    def where(self) -> str:
        return f"{self.file if self.arrays is None else self.arrays.section.where}"

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
    unknown: str = "refuse"
    inverse: str | None = None
    directed: bool | None = None


@dataclass
class Description:
    graph: pathlib.Path
    seed: int
    directed: bool | None
    repeats: Repeats
    typed: bool
    types: dict[str, TypeTable]
    relations: dict[str, RelationTable]


OF_ALL_TABLES = ("missing", "scale")  # may be said once
KEYS = ["graph", "seed", "directed", *CHOICES, "types", "relations", *OF_ALL_TABLES]
TABLE = ["file", "numbers", "dates", "categories", "time", *OF_ALL_TABLES]
TABLE_OF_TYPE = [*TABLE, "id", "label", "labels", "split"]
ARRAYS_OF_TYPE = ["count", *OF_VERTICES, "splits"]
RELATION = ["source", "target", "inverse", "directed"]
TABLE_OF_RELATION = [*RELATION, *TABLE, "weight", "unknown"]
ARRAYS_OF_RELATION = [*RELATION, "edges", *OF_EDGES]
SCALES = ("none", "standard")
SHARES = [0.6, 0.2, 0.2]  # of a split that nobody described


def _features(section: Section) -> None:
    missing = section.values.get("missing", "refuse")
    section.require(
        missing in ("refuse", "mean") if isinstance(missing, str) else abs(missing) < 3e38,
        f'missing is {missing!r}; say "refuse", "mean", or a number',
    )
    scale = section.values.get("scale", "none")
    section.require(
        scale in SCALES, f"scale is {scale!r}; say one of {', '.join(map(repr, SCALES))}"
    )


def _split(section: Section) -> None:
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
    for key in ("valid", "test") if kind == "time" else ():
        section.require(
            isinstance(split.get(key), (date, int)) and not isinstance(split[key], bool),
            f"split by time wants {key} = a date, from which on vertices are of that split",
        )


def _type(path: pathlib.Path, name: str, values: Any, of_all: dict[str, Any]) -> TypeTable:
    section = Section(path, f"types.{name}", values, TABLE_OF_TYPE, ARRAYS_OF_TYPE)
    if not section.is_table:
        return TypeTable(name=name, arrays=vertex_arrays(section))
    _features(section)
    _split(section)
    if "file" in values:
        section.require("id" in values, "say which column is the id: id =")
        section.require(isinstance(values.get("labels", []), list), "labels is no list of columns")
    else:
        section.require(not values, "says columns, but no file")
    section.require(
        "label" not in values or "labels" not in values,
        "has label and labels; one class each, or several labels",
    )
    said = of_all | values
    if "label" in values or "labels" in values:
        said = {"split": {"shares": SHARES}} | said
    file = path.parent / values["file"] if "file" in values else None
    return TypeTable(**said | {"file": file}, name=name)


def _end(section: Section, end: str, types: dict[str, TypeTable]) -> dict[str, str]:
    """The type, and the column that names its vertices: as its own table does where the user names
    the type alone."""
    said = section.values.get(end, {})
    if isinstance(said, str):
        said = {"type": said}
    section.require(
        "type" in said
        and set(said) <= {"type", "column"}
        and all(type(name) is str for name in said.values()),
        f"say {end} = {{ type = .., column = .. }}",
    )
    section.require(
        said["type"] in types, f"{end}.type is {said['type']!r}; [types] has {sorted(types)}"
    )
    return {"column": types[said["type"]].id or said["type"]} | said


def _relation(
    path: pathlib.Path, name: str, values: Any, types: dict[str, TypeTable], of_all: dict[str, Any]
) -> RelationTable:
    section = Section(path, f"relations.{name}", values, TABLE_OF_RELATION, ARRAYS_OF_RELATION)
    _features(section)
    section.require("file" in values or "edges" in values, "say which table it is: file =")
    ends = {end: _end(section, end, types) for end in ("source", "target")}
    section.require(
        values.get("unknown", "refuse") in ("refuse", "skip"), 'unknown is not "refuse" or "skip"'
    )
    section.require(
        "inverse" not in values or "directed" not in values, "has inverse and directed; leave one out"
    )
    of_ends = [types[end["type"]] for end in ends.values()]
    section.require(
        values.get("directed") is not False or of_ends[0] is of_ends[1],
        f'directed = false is of a relation within one type; give inverse = "{INVERSE}{name}"',
    )
    said = {"name": name} | values | ends
    if section.is_table:
        return RelationTable(**of_all | said | {"file": path.parent / values["file"]})
    uncounted = [of.name for of in of_ends if of.file is None and of.arrays is None]
    section.require(not uncounted, f"nothing says how many vertices {uncounted} has; give its count")
    ways = {key: value for key, value in said.items() if key in ("name", *RELATION)}
    return RelationTable(**ways, arrays=edge_arrays(section))


def _repeats(section: Section) -> Repeats:
    try:
        return Repeats(**{key: section.values[key] for key in CHOICES if key in section.values})
    except DataError as problem:
        raise DataError(f"{section.where}: {problem}") from None


def read_description(path: pathlib.Path) -> Description:
    try:
        text = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path} is not there") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise DataError(f"{path} is no TOML: {problem}") from None
    section = Section(path, "", text, KEYS, KEYS)
    _features(section)
    section.require(
        bool(text.get("types")) and bool(text.get("relations")),
        "wants a [types.NAME] and a [relations.NAME]",
    )
    of_all = {key: text[key] for key in OF_ALL_TABLES if key in text}
    types = {name: _type(path, name, values, of_all) for name, values in text["types"].items()}
    relations = {
        name: _relation(path, name, values, types, of_all)
        for name, values in text["relations"].items()
    }
    typed = len(types) > 1 or len(relations) > 1 or any(of.inverse for of in relations.values())
    return Description(
        path.parent / text["graph"] if "graph" in text else path.with_suffix(".h5"),
        text.get("seed", 0),
        text.get("directed"),
        _repeats(section),
        typed,
        types,
        relations,
    )

"""What a user gave of a graph, before anything of it was checked: by type and relation, where there
are some."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .graph import SPLITS

VERTEX, EDGE = "vertex", ("vertex", "edge", "vertex")  # of a graph without types
OF_TYPES = ("x", "y", *SPLITS, "num_nodes", "ids", "time", "class_names", "feature_names")
OF_RELATIONS = ("edge_weight", "edge_features", "edge_time", "edge_feature_names")
IN_TABLES = {
    "edge_index": "edges",
    "edge_weight": "weights",
    "edge_features": "features",
    "edge_time": "time",
    "x": "features",
    "y": "labels",
    "ids": "ids",
    "num_nodes": "count",
    "time": "time",
    "feature_names": "features",
    "edge_feature_names": "features",
}


def part_of_split(split: str, part: str) -> str:
    """What a part of a split with a name is called, as the user writes it."""
    return f"splits[{split!r}][{part!r}]"


def parts_of_splits(splits: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """Of each split, the one without a name first: {what it is called in the file: by the user}."""
    return {"": {part: part for part in SPLITS}} | {
        name: {f"{name}/{part}": part_of_split(name, part) for part in SPLITS} for name in splits
    }


@dataclass
class Given:
    """`edge_index`: {(source, relation, target): edges}; each of `parts`: {type or such a triple:
    value}."""

    typed: bool
    edge_index: dict[Any, Any]
    parts: dict[str, dict[Any, Any]] = field(default_factory=dict)
    files: dict[Any, str] = field(default_factory=dict)  # tables, of a type or a triple
    types: list[str] = field(default_factory=list)  # in their order; those that are left out follow
    # How a relation goes the other way: by an inverse of that name; True: within it; "": not at all.
    # Of others write_graph's `directed` and their names say so.
    turned: dict[Any, str | bool] = field(default_factory=dict)

    def of(self, part: str, key: Any) -> Any:
        return self.parts.get(part, {}).get(key)

    def said(self, part: str, key: Any) -> str:
        """What the user calls it."""
        if key in self.files:
            return f"{self.files[key]}: {IN_TABLES.get(part, part)}"
        return f"{part}[{key!r}]" if self.typed else part

    def fill(self, part: str, key: Any, value: Any) -> None:
        """What an object knows counts where the user said nothing."""
        if value is not None:
            self.parts.setdefault(part, {}).setdefault(key, value)

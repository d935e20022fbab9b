"""A graph in memory, as it will stand in the file: types of vertices, relations between them, ids
that count within a type.

A graph without types has one of each; whether the file names them is `typed`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .columns import Columns
from .edges import Entries
from .errors import DataError
from .labels import Labels
from .sparse_rows import SparseRows

SPLITS = ("train", "valid", "test")
LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
MOST_TYPES = 256  # and as many relations


@dataclass
class VertexType:
    name: str
    count: int
    features: NDArray[Any] | SparseRows | None = None
    labels: Labels | None = None
    splits: dict[str, NDArray[np.int64]] = field(default_factory=dict)  # "train", "NAME/train"
    ids: NDArray[Any] | None = None  # int64, or texts of fixed length
    time: NDArray[np.int64] | None = None
    columns: Columns | None = None  # of the features


@dataclass
class Relation:
    source: int  # places in the list of types
    name: str
    target: int
    entries: Entries
    features: NDArray[Any] | None = None  # of each listed edge
    inverse: int = -1
    columns: Columns | None = None
    turned: str | bool | None = None  # as of Given


@dataclass
class Graph:
    types: list[VertexType]
    relations: list[Relation]
    typed: bool
    directed: bool
    name: str | None = None
    source: str | None = None

    @property
    def vertices(self) -> int:
        return sum(of.count for of in self.types)

    @property
    def edges(self) -> int:
        return sum(len(of.entries) for of in self.relations)

    def full_name(self, relation: Relation) -> str:
        return (
            f"{self.types[relation.source].name}.{relation.name}.{self.types[relation.target].name}"
        )


def check_name(noun: str, name: Any) -> str:
    """Names are parts of paths and keys."""
    if not isinstance(name, str) or not name or not set(name) <= LETTERS:
        raise DataError(f"the {noun} {name!r}: names hold letters, digits, '_' and '-'")
    return name


def check_split_name(name: Any) -> str:
    taken = ("", ".", *SPLITS)
    if not isinstance(name, str) or name in taken or not set(name) <= LETTERS | {"."}:
        raise DataError(
            f"the split {name!r}: its name holds letters, digits, '_', '-' and '.', and is not "
            "train, valid or test"
        )
    return name


def check_splits(of: VertexType, names: list[str], said: dict[str, str]) -> None:
    """The parts of a split share no vertex, and theirs have a label. `said`: what the user calls
    each."""
    owner = np.full(of.count, -1, dtype=np.int8)
    for at, name in enumerate(names):
        ids = of.splits[name]
        if (taken := owner[ids] >= 0).any():
            vertex = int(ids[np.argmax(taken)])
            raise DataError(
                f"vertex {vertex} is in {said[names[owner[vertex]]]} and in {said[name]}; splits "
                "share no vertex"
            )
        owner[ids] = at
        if (
            of.labels is not None
            and of.labels.values.ndim == 1
            and (bare := of.labels.values[ids] < 0).any()
        ):
            raise DataError(
                f"vertex {int(ids[np.argmax(bare)])} of {said[name]} has no label; leave it out of "
                "the split"
            )


def check_graph(graph: Graph) -> None:
    if len(graph.types) > MOST_TYPES or len(graph.relations) > MOST_TYPES:
        raise DataError(
            f"{len(graph.types)} types and {len(graph.relations)} relations; a file holds "
            f"{MOST_TYPES} of each at most"
        )
    if graph.vertices == 0:
        raise DataError("the graph is empty: it has no vertices")

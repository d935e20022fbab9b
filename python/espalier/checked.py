"""What a user gave, checked part by part, becomes a graph in the order of the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import arrays, labels
from .columns import Columns, checked_columns
from .edges import Repeats, ends, entries_of
from .errors import DataError
from .given import OF_RELATIONS, OF_TYPES, Given, parts_of_splits
from .graph import (
    Graph,
    Relation,
    VertexType,
    check_graph,
    check_name,
    check_split_name,
    check_splits,
)
from .inverses import add_inverses, declare_inverses, is_directed, join_inverses
from .repeats import added_up
from .sources import is_matrix
from .sparse_rows import feature_rows

MOST_UNSAID, MOST_PER_EDGE = 2**24, 64  # vertices that nothing but an id in the edges tells of


@dataclass
class _Listed:
    """The edges of a relation as they were given."""

    sources: NDArray[np.int64]
    targets: NDArray[np.int64]
    weights: Any = None
    shape: tuple[int, int] | None = None  # of a matrix: sources, targets


def _is_symmetric_matrix(matrix: Any) -> bool:
    """In its entries, zeros that are stored included, and in their values."""
    as_given, turned = matrix.tocsr(copy=True), matrix.T.tocsr(copy=True)
    for of in (as_given, turned):
        of.sum_duplicates()
    return as_given.shape == turned.shape and all(
        np.array_equal(getattr(as_given, part), getattr(turned, part))
        for part in ("indptr", "indices", "data")
    )


def _of_matrix(matrix: Any, what: str, rows: str | None) -> _Listed:
    """The entries of a SciPy matrix, whose values are weights unless all are 1."""
    if rows is None and not _is_symmetric_matrix(matrix):
        raise DataError(
            f"{what} is a matrix that is not symmetric: say which end of an edge its rows are, "
            'matrix_rows="sources" (messages flow from row to column, as NetworkX, PyG and DGL '
            'read matrices) or "targets"'
        )
    entries = matrix.tocoo()
    sources, targets, shape = entries.row, entries.col, matrix.shape
    if rows == "targets":
        sources, targets, shape = targets, sources, shape[::-1]
    return _Listed(sources.astype(np.int64), targets.astype(np.int64), entries.data, shape)


def _listed(given: Given, key: Any, rows: str | None) -> _Listed:
    edges, what = given.edge_index[key], given.said("edge_index", key)
    if not is_matrix(edges):
        return _Listed(*ends(edges, what))
    listed = _of_matrix(edges, what, rows)
    if not np.all(listed.weights == 1):
        given.fill("edge_weight", key, listed.weights)
    return listed


def _names_of_types(given: Given, splits: tuple[str, ...]) -> list[str]:
    """Those with features first, in their order."""
    names = dict.fromkeys(given.types)
    in_edges = names | dict.fromkeys(name for key in given.edge_index for name in (key[0], key[2]))
    for part in ("x", "num_nodes"):
        names |= dict.fromkeys(given.parts.get(part, {}))
    names |= in_edges
    named = [said for parts in parts_of_splits(splits).values() for said in parts.values()]
    for part in dict.fromkeys([*OF_TYPES, *named]):
        for name in given.parts.get(part, {}):
            if name not in in_edges:
                raise DataError(
                    f"{part} names the type {name!r}, but edge_index has only {sorted(in_edges)}"
                )
    for part in OF_RELATIONS:
        for key in given.parts.get(part, {}):
            if key not in given.edge_index:
                raise DataError(
                    f"{part} names {key!r}, which edge_index has not; it has "
                    f"{sorted(given.edge_index)}"
                )
    return [check_name("type", name) for name in names]


def _count(given: Given, name: str, listed: dict[Any, _Listed]) -> int:
    """How many vertices there are of a type: as the user says, else as many as rows, else as edges
    name."""
    said = given.of("num_nodes", name)
    if said is not None:
        if isinstance(said, bool) or not isinstance(said, (int, np.integer)) or said < 0:
            raise DataError(f"{given.said('num_nodes', name)} is {said!r}; give a whole number")
        return int(said)
    for part in ("x", "y", "ids"):
        if (value := given.of(part, name)) is not None:
            try:
                return int(value.shape[0]) if hasattr(value, "shape") else len(value)
            except (TypeError, IndexError):
                said = given.said(part, name)
                raise DataError(f"{said} is {value!r}; give an array") from None
    for (source, _, target), edges in listed.items():
        if edges.shape is not None and name in (source, target):
            return edges.shape[0] if name == source else edges.shape[1]
    named = [
        ids
        for (source, _, target), edges in listed.items()
        for end, ids in ((source, edges.sources), (target, edges.targets))
        if end == name and ids.size
    ]
    count = max((int(ids.max()) + 1 for ids in named), default=0)
    if count > MOST_UNSAID and count > MOST_PER_EDGE * sum(ids.size for ids in named):
        raise DataError(
            f"edges name the vertex {count - 1}, but there are few of them: number the vertices "
            "from 0 (ids, numbers = numpy.unique(edge_index, return_inverse=True); edges are then "
            "numbers.reshape(2, -1), and ids= keeps the ids), or say num_nodes="
        )
    return max(count, 0)


def _columns(given: Given, part: str, features: str, key: Any, rows: Any) -> Columns | None:
    """Names of the columns of `features`, whose rows these are."""
    if (names := given.of(part, key)) is None:
        return None
    if rows is None:
        raise DataError(
            f"{given.said(part, key)} names columns, but there is no {given.said(features, key)}"
        )
    return checked_columns(names, given.said(part, key), rows.shape[1])


def _vertex_type(given: Given, name: str, count: int, splits: tuple[str, ...]) -> VertexType:
    of = VertexType(name, count)
    said = {part: given.said(part, name) for part in OF_TYPES}
    if (x := given.of("x", name)) is not None:
        of.features = feature_rows(x, said["x"], count)
    if (y := given.of("y", name)) is not None:
        of.labels = labels.labels(
            y, said["y"], count, given.of("class_names", name), said["class_names"]
        )
    elif given.of("class_names", name) is not None:
        raise DataError(f"{said['class_names']} names classes, but there is no {said['y']}")
    of.columns = _columns(given, "feature_names", "x", name, of.features)
    if (ids := given.of("ids", name)) is not None:
        of.ids = labels.own_ids(ids, said["ids"], count)
    if (time := given.of("time", name)) is not None:
        of.time = arrays.times(time, said["time"], count, "vertices")
    for parts in parts_of_splits(splits).values():
        words = {split: given.said(part, name) for split, part in parts.items()}
        for split, part in parts.items():
            if (value := given.of(part, name)) is not None:
                of.splits[split] = arrays.split_ids(value, words[split], count)
        check_splits(of, [split for split in parts if split in of.splits], words)
    return of


def _relation(
    given: Given,
    key: Any,
    types: list[VertexType],
    listed: _Listed,
    repeats: Repeats,
    both_ways: bool,
) -> Relation:
    """Of edges in the user's order, with their weights, features and times."""
    names = [of.name for of in types]
    source, target = names.index(key[0]), names.index(key[2])
    what = given.said("edge_index", key)
    for end, ids, of in ((0, listed.sources, types[source]), (1, listed.targets, types[target])):
        arrays.check_ids(
            ids, of.count, f"{what}[{end}]", f"the type {of.name}" if given.typed else "the graph"
        )
    edges, turned = len(listed.sources), given.turned.get(key)
    weights = given.of("edge_weight", key)
    if weights is not None:
        weights = arrays.weights(weights, given.said("edge_weight", key), edges)
    features = given.of("edge_features", key)
    if features is not None:
        features = arrays.numbers(features, given.said("edge_features", key), edges, "edges")
    columns = _columns(given, "edge_feature_names", "edge_features", key, features)
    time = given.of("edge_time", key)
    if time is not None:
        time = arrays.times(time, given.said("edge_time", key), edges, "edges")
    entries = entries_of(
        listed.sources,
        listed.targets,
        types[source].count,
        types[target].count,
        repeats,
        weights=weights,
        both_ways=both_ways if turned is None else turned is True,
        drop_loops=repeats.loops == "drop" and source == target,
        what=what,
        featured=features is not None,
        times=time,
    )
    if features is not None and entries.standing is not None:
        said = given.said("edge_features", key)
        features = added_up(features, entries.standing, repeats.duplicate_features == "mean", said)
    name = check_name("relation", key[1])
    turned = turned if given.typed else None  # of a graph without types its entries tell
    return Relation(source, name, target, entries, features, columns=columns, turned=turned)


def make_graph(
    given: Given,
    repeats: Repeats,
    *,
    directed: bool | None = None,
    inverse: Any = None,
    matrix_rows: str | None = None,
    splits: tuple[str, ...] = (),
) -> Graph:
    """What was given, checked and in the file's order. `splits`: the names of those that have one."""
    for name in splits:
        check_split_name(name)
    if matrix_rows not in (None, "sources", "targets"):
        raise DataError(f'matrix_rows is {matrix_rows!r}; say "sources" or "targets"')
    listed = {key: _listed(given, key, matrix_rows) for key in given.edge_index}
    types = [
        _vertex_type(given, name, _count(given, name, listed), splits)
        for name in _names_of_types(given, splits)
    ]
    relations = []
    for key in list(listed):
        both_ways = directed is False and not given.typed
        relations.append(_relation(given, key, types, listed.pop(key), repeats, both_ways))
    if inverse is not None and not given.typed:
        raise DataError("inverse is of a graph with types; leave it out")
    if given.typed:
        if inverse is not None:
            declare_inverses(inverse, types, relations)
        join_inverses(types, relations)
        add_inverses(relations, directed is False)
    graph = Graph(
        types,
        relations,
        given.typed,
        bool(directed) if directed is not None and not given.turned else is_directed(relations),
    )
    check_graph(graph)
    return graph

"""Graphs of other libraries, told by what they can do: SciPy, PyTorch Geometric, DGL, NetworkX.
None of them is imported."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .errors import DataError
from .given import EDGE, VERTEX, Given

MASKS = {"train": "train_mask", "valid": "val_mask", "test": "test_mask"}


def described(graph: Any, parts: dict[str, Any]) -> Given:
    """`parts`: what the user gave beside the graph, which wins over what the graph has."""
    if isinstance(graph, dict):
        return _of_dictionaries(graph, parts)
    if hasattr(graph, "node_types") and hasattr(graph, "edge_types"):
        return _of_hetero_data(graph, parts)
    if hasattr(graph, "canonical_etypes"):
        return _of_dgl(graph, parts)
    if (
        hasattr(graph, "adj")
        and hasattr(graph, "is_directed")
        and callable(getattr(graph, "nodes", None))
    ):
        return _of_networkx(graph, parts)
    if hasattr(graph, "edge_index") and hasattr(graph, "keys"):
        return _of_data(graph, parts)
    return _plain(graph, parts)


def is_matrix(graph: Any) -> bool:
    """Of SciPy?"""
    return hasattr(graph, "tocoo") and hasattr(graph, "nnz")


def _plain(graph: Any, parts: dict[str, Any]) -> Given:
    for part, value in parts.items():
        if isinstance(value, dict):
            raise DataError(
                f"{part} is a dictionary by type, but edge_index is not; give that as "
                "{(source, relation, target): edges}"
            )
    keys = {part: EDGE if part.startswith("edge") else VERTEX for part in parts}
    return Given(
        False,
        {EDGE: graph},
        {part: {keys[part]: value} for part, value in parts.items() if value is not None},
    )


def _of_dictionaries(graph: dict[Any, Any], parts: dict[str, Any]) -> Given:
    for part, value in parts.items():
        if value is not None and not isinstance(value, dict):
            raise DataError(
                f"{part} is no dictionary, but edge_index is one; give {part} by "
                + ("(source, relation, target)" if part.startswith("edge") else "type")
            )
    for key in graph:
        texts = isinstance(key, tuple) and all(isinstance(name, str) for name in key)
        if not (texts and len(key) == 3):
            raise DataError(f"edge_index has the key {key!r}; give (source, relation, target)")
    return Given(
        True, dict(graph), {part: dict(value) for part, value in parts.items() if value is not None}
    )


def _of_store(given: Given, store: Any, kind: Any) -> None:
    """A Data, or the part of a HeteroData that is of one type."""
    for part in ("x", "y"):
        given.fill(part, kind, store.get(part))
    for split, mask in MASKS.items():
        given.fill(split, kind, store.get(mask))
    given.fill("num_nodes", kind, store.num_nodes)


def _of_edge_store(given: Given, store: Any, kind: Any) -> None:
    if store.get("edge_index") is None:
        raise DataError(
            f"{'the relation ' + repr(kind) if given.typed else 'the graph'} has no edge_index"
            + (
                "; make it of adj_t: edge_index = torch.stack(adj_t.t().coo()[:2])"
                if "adj_t" in store
                else ""
            )
        )
    given.edge_index[kind] = store["edge_index"]
    given.fill("edge_weight", kind, store.get("edge_weight"))
    given.fill("edge_features", kind, store.get("edge_attr"))


def _of_data(data: Any, parts: dict[str, Any]) -> Given:
    given = _plain(None, parts)
    store = data._store if hasattr(data, "_store") else data
    _of_edge_store(given, store, EDGE)
    _of_store(given, store, VERTEX)
    return given


def _of_hetero_data(data: Any, parts: dict[str, Any]) -> Given:
    given = _of_dictionaries({}, parts)
    for kind in data.edge_types:
        _of_edge_store(given, data[kind], kind)
    for kind in data.node_types:
        _of_store(given, data[kind], kind)
    return given


def _of_dgl(graph: Any, parts: dict[str, Any]) -> Given:
    """Features are called feat, labels label, weights weight, as DGL's own data sets have them."""
    typed = len(graph.ntypes) > 1 or len(graph.canonical_etypes) > 1
    given = _of_dictionaries({}, parts) if typed else _plain(None, parts)
    for kind in graph.canonical_etypes:
        key = kind if typed else EDGE
        given.edge_index[key] = graph.edges(etype=kind, order="eid")
        given.fill("edge_weight", key, graph.edges[kind].data.get("weight"))
        given.fill("edge_features", key, graph.edges[kind].data.get("feat"))
    for kind in graph.ntypes:
        key, data = kind if typed else VERTEX, graph.nodes[kind].data
        given.fill("num_nodes", key, graph.num_nodes(kind))
        given.fill("x", key, data.get("feat"))
        given.fill("y", key, data.get("label"))
        for split, mask in MASKS.items():
            given.fill(split, key, data.get(mask))
    return given


def _attributes(
    items: Iterable[tuple[Any, dict[str, Any]]], name: str, missing: Any = DataError
) -> list[Any] | None:
    """An attribute of all vertices, in their order; None where none has it."""
    items = list(items)
    if not any(name in attributes for _, attributes in items):
        return None
    for item, attributes in items:
        if name not in attributes and missing is DataError:
            raise DataError(
                f"the node {item!r} has no attribute {name}, but others have; give each one"
            )
    return [attributes.get(name, missing) for _, attributes in items]


def _of_networkx(graph: Any, parts: dict[str, Any]) -> Given:
    """Nodes in their order, whose names are ids; attributes x, y, train, valid, test, weight. Edges
    without a direction go both ways."""
    nodes = list(graph.nodes(data=True))
    number = {node: at for at, (node, _) in enumerate(nodes)}
    edges = list(graph.edges(data=True))
    if not graph.is_directed():
        edges += [(target, source, data) for source, target, data in edges if source != target]
    given = _plain(
        [[number[source] for source, _, _ in edges], [number[target] for _, target, _ in edges]],
        parts,
    )
    given.fill("num_nodes", VERTEX, len(nodes))
    given.fill("x", VERTEX, _attributes(nodes, "x"))
    given.fill("y", VERTEX, _attributes(nodes, "y", None))
    for split in MASKS:
        mask = _attributes(nodes, split, False)
        given.fill(split, VERTEX, None if mask is None else np.array(mask, dtype=bool))
    given.fill(
        "edge_weight",
        EDGE,
        _attributes((((source, target), data) for source, target, data in edges), "weight", 1.0),
    )
    names = [node for node, _ in nodes]
    if names != list(range(len(names))):
        if not (
            all(isinstance(name, str) for name in names) or all(type(name) is int for name in names)
        ):
            odd = next(name for name in names if not isinstance(name, str))
            raise DataError(
                f"the node {odd!r}: names of nodes are texts, or whole numbers; "
                "networkx.relabel_nodes makes them so"
            )
        given.fill("ids", VERTEX, names)
    return given

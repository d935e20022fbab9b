"""write_graph: arrays, or a graph of another library, become a file that `espalier train` reads."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from .checked import make_graph
from .edges import Repeats
from .errors import DataError
from .given import VERTEX, part_of_split
from .graph import SPLITS, Graph
from .graph_file import write_file
from .sources import described


@dataclass(frozen=True)
class Summary:
    """What was written."""

    path: str
    vertices: int
    edges: int
    features: dict[str, int]
    classes: dict[str, int]
    splits: dict[str, int]

    def __str__(self) -> str:
        of = [f"{self.vertices} vertices", f"{self.edges} edges"]
        of += [
            f"{n} features" + f" of {name}" * (name != VERTEX) for name, n in self.features.items()
        ]
        of += [
            f"{n} classes" + f" of {name}" * (name != VERTEX) for name, n in self.classes.items()
        ]
        return f"{self.path}: {', '.join(of)}" + "".join(
            f"; {n} to {name}" for name, n in self.splits.items()
        )


def _check_kinds(kind: type, **options: Any) -> None:
    for option, value in options.items():
        if value is not None and not isinstance(value, kind):
            raise DataError(f"{option} is {value!r}; give a {kind.__name__}")


def _parts_of_splits(splits: Any) -> dict[str, Any]:
    """{"splits['seed0']['train']": what is there}."""
    if not isinstance(splits, dict):
        raise DataError(f"splits is {splits!r}; give {{name: {{part: mask or ids}}}}")
    found: dict[str, Any] = {}
    for name, parts in splits.items():
        if not isinstance(parts, dict) or not parts or not set(parts) <= set(SPLITS):
            raise DataError(
                f"splits[{name!r}] is {parts!r}; give a dictionary of train, valid and test"
            )
        found |= {part_of_split(name, part): value for part, value in parts.items()}
    return found


def write_graph(
    path: str | os.PathLike[str],
    edge_index: Any,
    x: Any = None,
    y: Any = None,
    *,
    train: Any = None,
    valid: Any = None,
    test: Any = None,
    splits: Any = None,
    num_nodes: Any = None,
    edge_weight: Any = None,
    edge_features: Any = None,
    edge_time: Any = None,
    ids: Any = None,
    time: Any = None,
    class_names: Any = None,
    feature_names: Any = None,
    edge_feature_names: Any = None,
    directed: bool | None = None,
    inverse: Any = None,
    matrix_rows: str | None = None,
    duplicates: str = "sum",
    duplicate_features: str = "kept",
    duplicate_times: str = "first",
    name: str | None = None,
    source: str | None = None,
    overwrite: bool = False,
) -> Summary:
    """Writes a graph file, whole or not at all, and says what is in it. Raises DataError, which
    names the first wrong entry.

    edge_index     [2, edges], sources above targets: messages flow from source to target, and the
                   target is the row of the file's matrix. Or a SciPy matrix, a Data or HeteroData
                   of PyTorch Geometric, a graph of DGL or NetworkX, which bring what follows along.
                   Or {(source, relation, target): edges}; all that follows is then {type: ..} or
                   {(source, relation, target): ..}, with ids that count within a type
    x              features [vertices, f], stored as float32, or as float16 where they are that; a
                   SciPy matrix stays sparse, unless that takes more than a matrix
    y              labels: texts, or classes from 0 (-1, nan: none); [vertices, C] of 0 and 1:
                   several labels each
    train, valid, test   masks of truth values, or ids
    splits         further splits, or all of them: {name: {"train": .., "valid": .., "test": ..}};
                   graph.split = name chooses one
    num_nodes      where nothing else says it
    edge_weight    [edges], not negative
    edge_features  [edges, f]
    edge_time      [edges], whole numbers, or datetime64
    ids            the vertices' own ids: texts or whole numbers
    time           when each vertex was, as edge_time
    class_names    of class 0, 1, ..; of texts without it: sorted
    feature_names  of the columns of x; `espalier infer` refuses a graph with others than those that
                   the network was trained on. Those of edge_features: edge_feature_names
    directed       False: every edge goes both ways, too; with types each relation NAME gets its
                   inverse rev_NAME. None, True: edges as they are listed. (In a "sum" of weights
                   a loop then counts twice, as with `espalier import --symmetrize`.)
    inverse        of a graph with types: {relation: the one that has the same edges the other way
                   round}, each (source, relation, target), or a name that only one has. A link of
                   one then leaves the graph with that of the other; NAME and rev_NAME need no word
    matrix_rows    of a SciPy matrix that is not symmetric: "sources" or "targets"
    duplicates     edges that are listed more than once become one: the "sum" of their weights, the
                   "mean", "max", "first", "last", or how many they are, "count"; a DataWarning says
                   how many there were. "refuse": DataError
    duplicate_features   and their features are "kept" of the edge whose weight stays (of "max",
                   "last"), else of the first; or those of the "first", the "last", the "sum" or
                   "mean" of theirs
    duplicate_times   and their time is the earliest ("first") or latest ("last") of those in the
                   same direction; a reverse that directed=False adds has that edge's
    """
    _check_kinds(str, name=name, source=source, matrix_rows=matrix_rows, duplicates=duplicates)
    _check_kinds(str, duplicate_features=duplicate_features, duplicate_times=duplicate_times)
    _check_kinds(bool, directed=directed, overwrite=overwrite)
    parts = {
        "x": x,
        "y": y,
        "train": train,
        "valid": valid,
        "test": test,
        "num_nodes": num_nodes,
        "ids": ids,
        "time": time,
        "class_names": class_names,
        "feature_names": feature_names,
        "edge_feature_names": edge_feature_names,
        "edge_weight": edge_weight,
        "edge_features": edge_features,
        "edge_time": edge_time,
        **_parts_of_splits({} if splits is None else splits),
    }
    graph = make_graph(
        described(edge_index, parts),
        Repeats(duplicates, duplicate_features, duplicate_times),
        directed=directed,
        inverse=inverse,
        matrix_rows=matrix_rows,
        splits=tuple(splits or ()),
    )
    graph.name, graph.source = name, source
    write_file(path, graph, overwrite)
    return summary(path, graph)


def summary(path: str | os.PathLike[str], graph: Graph) -> Summary:
    splits: dict[str, int] = {}
    for of in graph.types:
        for split, members in of.splits.items():
            splits[split] = splits.get(split, 0) + len(members)
    return Summary(
        os.fspath(path),
        graph.vertices,
        graph.edges,
        {of.name: of.features.shape[1] for of in graph.types if of.features is not None},
        {of.name: of.labels.classes for of in graph.types if of.labels is not None},
        splits,
    )

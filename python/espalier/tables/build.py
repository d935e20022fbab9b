"""from_tables: a graph file out of CSV and Parquet tables and of arrays, as a TOML file says."""

from __future__ import annotations

import os
import pathlib
import warnings
from typing import Any

import numpy as np

from ..checked import make_graph
from ..columns import Columns
from ..errors import DataError, DataWarning
from ..given import EDGE, VERTEX, Given
from ..graph_file import write_file
from ..inverses import INVERSE
from ..write import Summary, summary
from . import cells
from .description import Description, RelationTable, read_description
from .features import FeatureColumns
from .like import Like
from .reading import Piece, pieces
from .vertices import Vertices


def _ends(piece: Piece, end: dict[str, str], vertices: Vertices, unknown: str) -> Any:
    """Vertices of the ids; -1 where their table has none and that may be."""
    found = np.empty(len(piece), dtype=np.int64)
    for row, name in enumerate(cells.ids(piece, end["column"])):
        number = vertices.number(name)
        if number is None and unknown == "refuse":
            piece.fail(
                row,
                end["column"],
                f"{name!r} is no id of {end['type']}, whose table is {vertices.of.where}; add it "
                'there, or say unknown = "skip"',
            )
        found[row] = -1 if number is None else number
    return found


def _edges(of: RelationTable, types: dict[str, Vertices], like: Columns | None) -> dict[str, Any]:
    """Arguments of write_graph, of a relation."""
    features = FeatureColumns(of, like)
    if of.arrays is not None:
        features.matrix()  # as `like` has none
        return of.arrays.given
    assert of.file is not None
    sources, targets, weights, times, skipped = [], [], [], [], 0
    columns = [of.source["column"], of.target["column"], *of.columns(), of.weight, of.time]
    for piece in pieces(of.file, [name for name in columns if name is not None]):
        source, target = (
            _ends(piece, end, types[end["type"]], of.unknown) for end in (of.source, of.target)
        )
        kept = (source >= 0) & (target >= 0)
        skipped += int((~kept).sum())
        sources.append(source[kept])
        targets.append(target[kept])
        features.add(piece, kept)
        if of.weight:
            weights.append(_weights(piece, of.weight)[kept])
        if of.time:
            times.append(cells.times(piece, of.time)[kept])
    if skipped:
        warnings.warn(
            f"{of.file}: {skipped} rows name ids that no table has; they are left out",
            DataWarning,
            stacklevel=3,
        )
    nothing = [np.zeros(0, dtype=np.int64)]
    return {
        "edge_index": (np.concatenate(sources or nothing), np.concatenate(targets or nothing)),
        "edge_features": features.matrix(),
        "edge_feature_names": features.made,
        "edge_weight": np.concatenate(weights) if weights else None,
        "edge_time": np.concatenate(times) if times else None,
    }


def _weights(piece: Piece, column: str) -> Any:
    values = cells.numbers(piece, column)
    for row in np.flatnonzero(np.isnan(values) | (values < 0)):
        cell = piece.columns[column][row]
        negative = f"{cell!r} is negative; a weight is not"
        piece.fail(row, column, "is empty; give each edge a weight" if cell is None else negative)
    return values


def _turned(of: RelationTable, description: Description) -> str | bool | None:
    """As Given has it; of arrays always, as `espalier import` does."""
    if of.inverse is not None or (of.arrays is None and of.directed is None):
        return of.inverse
    if (description.directed if of.directed is None else of.directed) is not False:
        return ""
    return INVERSE + of.name if of.directed is None and description.typed else True


def _given(description: Description, like: Like | None) -> Given:
    typed = description.typed
    types = {
        name: Vertices(of, like and like.of(f"nodes/{name}/" if typed else "nodes/"))
        for name, of in description.types.items()
    }
    given = Given(typed, {})
    if any(of.arrays for of in (*description.types.values(), *description.relations.values())):
        given.types = list(types) if typed else []
    for of in description.relations.values():
        key: Any = (of.source["type"], of.name, of.target["type"]) if typed else EDGE
        given.files[key] = of.where
        if (turned := _turned(of, description)) is not None:
            given.turned[key] = turned
        group = f"edges/{'.'.join(key)}/" if typed else "edges/"
        for part, value in _edges(of, types, like and like.of(group)).items():
            if part == "edge_index":
                given.edge_index[key] = value
            else:
                given.fill(part, key, value)
    for name, vertices in types.items():
        if vertices.of.file or vertices.of.arrays:
            given.files[name if typed else VERTEX] = vertices.of.where
        for part, value in vertices.given(description.seed).items():
            given.fill(part, name if typed else VERTEX, value)
    return given


def _check_inputs_stay(path: pathlib.Path, said: Description, *others: Any) -> None:
    inputs = [pathlib.Path(of) for of in others]
    for part in (*said.types.values(), *said.relations.values()):
        inputs += [part.file] if part.file else part.arrays.files if part.arrays else []
    for of in inputs:
        if path.exists() and of.exists() and path.samefile(of):
            raise DataError(f"{path} is one of the files that are read; give another to write to")


def from_tables(
    description: str | os.PathLike[str],
    path: str | os.PathLike[str] | None = None,
    *,
    like: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> Summary:
    """Writes the graph file that a TOML file describes (espalier/tables/description.py,
    docs/data.md) to its `graph`, or to `path`. `like`: weights.h5 of a training, or its graph file:
    features get the columns, the fill and the scale that they had there. DataError names file, line
    and column of what does not fit."""
    said = read_description(pathlib.Path(description))
    path = path if path is not None else said.graph
    _check_inputs_stay(pathlib.Path(path), said, description, *([] if like is None else [like]))
    trained = None if like is None else Like(like)
    arrays = [of.arrays for of in said.types.values() if of.arrays]
    splits = tuple(dict.fromkeys(name for of in arrays for name in of.splits))
    graph = make_graph(_given(said, trained), said.repeats, directed=said.directed, splits=splits)
    if trained:
        trained.check_all_are_here(graph)
    graph.name = pathlib.Path(path).stem
    graph.source = f"tables of {pathlib.Path(description).name}"
    write_file(path, graph, overwrite)
    return summary(path, graph)

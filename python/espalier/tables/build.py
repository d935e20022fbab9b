"""from_tables: a graph file out of CSV and Parquet tables, as a TOML file describes them."""

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
                f"{name!r} is no id of {end['type']}, whose table is {vertices.of.file}; add it "
                "there, or say "
                'unknown = "skip"',
            )
        found[row] = -1 if number is None else number
    return found


def _edges(of: RelationTable, types: dict[str, Vertices], like: Columns | None) -> dict[str, Any]:
    """Arguments of write_graph, of a relation."""
    assert of.file is not None
    sources, targets, weights, times, skipped = [], [], [], [], 0
    features = FeatureColumns(of, f"{of.file}", like)
    columns = [
        of.source["column"],
        of.target["column"],
        *of.columns(),
        *[name for name in (of.weight, of.time) if name],
    ]
    for piece in pieces(of.file, columns):
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
    if (wrong := np.isnan(values) | (values < 0)).any():
        row = int(np.argmax(wrong))
        cell = piece.columns[column][row]
        piece.fail(
            row,
            column,
            "is empty; give each edge a weight"
            if cell is None
            else f"{cell!r} is negative; a weight is not",
        )
    return values


def _given(description: Description, like: Like | None) -> Given:
    typed = len(description.types) > 1 or len(description.relations) > 1
    types = {
        name: Vertices(of, like and like.of(f"nodes/{name}/" if typed else "nodes/"))
        for name, of in description.types.items()
    }
    given = Given(typed, {})
    for name, of in description.relations.items():
        key: Any = (of.source["type"], name, of.target["type"]) if typed else EDGE
        given.files[key] = f"{of.file}"
        group = f"edges/{'.'.join(key)}/" if typed else "edges/"
        for part, value in _edges(of, types, like and like.of(group)).items():
            if part == "edge_index":
                given.edge_index[key] = value
            else:
                given.fill(part, key, value)
    for name, vertices in types.items():
        if vertices.of.file:
            given.files[name if typed else VERTEX] = f"{vertices.of.file}"
        for part, value in vertices.given(description.seed).items():
            given.fill(part, name if typed else VERTEX, value)
    return given


def _check_inputs_stay(path: pathlib.Path, said: Description, *others: Any) -> None:
    tables = [of.file for of in (*said.types.values(), *said.relations.values()) if of.file]
    for of in (*map(pathlib.Path, others), *tables):
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
    graph = make_graph(_given(said, trained), said.repeats, directed=said.directed)
    if trained:
        trained.check_all_are_here(graph)
    graph.name, graph.source = (
        pathlib.Path(path).stem,
        f"tables of {pathlib.Path(description).name}",
    )
    write_file(path, graph, overwrite)
    return summary(path, graph)

"""Writes a graph as an HDF5 file that Espalier reads (docs/graph-file.md): whole, or not at
all."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from .arrays import ROWS_AT_ONCE, finite
from .columns import write_columns
from .errors import DataError
from .graph import Graph, Relation
from .labels import fixed_texts
from .sparse_rows import SparseRows, write_sparse_rows

PLAIN, TYPED = 1, 2  # versions of the format


@contextlib.contextmanager
def replaced(path: str, overwrite: bool) -> Iterator[str]:
    """A name beside `path` to write to; what stands there in the end takes the place of `path`."""
    if os.path.exists(path) and not overwrite:
        raise DataError(f"{path} exists; say overwrite=True to replace it, or give another name")
    if os.path.exists(path) and not os.path.isfile(path):
        raise DataError(f"{path} is no file; give the name of the file to write")
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise DataError(f"the folder {folder} is not there; make it first")
    temporary = f"{path}.{secrets.token_hex(4)}.tmp"
    try:
        yield temporary
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())
        if overwrite:
            os.replace(temporary, path)
        else:
            _link(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(temporary)


def _link(temporary: str, path: str) -> None:
    """The name, unless somebody took it meanwhile."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise DataError(
            f"{path} was written by somebody else meanwhile; give another name"
        ) from None
    except OSError:  # a file system without links
        os.replace(temporary, path)


def _write_rows(
    file: h5py.File,
    name: str,
    rows: NDArray[Any],
    what: str,
    order: NDArray[np.int64] | None = None,
) -> None:
    """A matrix of finite numbers, in pieces; row k is row order[k] of `rows`, which messages count
    by."""
    count = len(rows) if order is None else len(order)
    kind = np.float16 if rows.dtype == np.float16 else np.float32
    dataset = file.create_dataset(name, shape=(count, rows.shape[1]), dtype=kind)
    if order is not None:
        for begin in range(0, len(rows), ROWS_AT_ONCE):
            finite(rows[begin : begin + ROWS_AT_ONCE], what, begin)
    for begin in range(0, count, ROWS_AT_ONCE):
        end = min(begin + ROWS_AT_ONCE, count)
        dataset[begin:end] = finite(
            rows[begin:end] if order is None else rows[order[begin:end]], what, begin
        )


def _write_matrix(file: h5py.File, graph: Graph, begins: NDArray[np.int64]) -> None:
    """All relations side by side: entries ascend by (row, relation, source), and segments are the
    runs of one relation."""
    rows = np.concatenate([of.entries.targets + begins[of.target] for of in graph.relations])
    columns = np.concatenate([of.entries.sources + begins[of.source] for of in graph.relations])
    relation = np.repeat(
        np.arange(len(graph.relations)), [len(of.entries) for of in graph.relations]
    )
    order = np.argsort(rows, kind="stable")
    indptr = np.zeros(graph.vertices + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=graph.vertices), out=indptr[1:])
    wide = graph.vertices >= 2**31
    file["graph/indptr"] = indptr
    file["graph/indices"] = columns[order].astype(np.int64 if wide else np.int32)
    if any(of.entries.weights is not None for of in graph.relations):
        file["graph/weights"] = np.concatenate(
            [
                np.ones(len(of.entries), np.float32)
                if of.entries.weights is None
                else of.entries.weights
                for of in graph.relations
            ]
        )[order]
    if not graph.typed:
        return
    rows, relation = rows[order], relation[order]
    begin = np.ones(len(rows), dtype=bool)
    begin[1:] = (rows[1:] != rows[:-1]) | (relation[1:] != relation[:-1])
    segments = np.flatnonzero(begin)
    pointer = np.zeros(graph.vertices + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows[segments], minlength=graph.vertices), out=pointer[1:])
    file["graph/segment_ptr"] = pointer
    file["graph/segment_relation"] = relation[segments].astype(np.uint8)
    file["graph/segment_begin"] = segments.astype(np.int64)


def _write_schema(file: h5py.File, graph: Graph, begins: NDArray[np.int64]) -> None:
    file["types/name"] = fixed_texts([of.name for of in graph.types], "types")
    file["types/offset"] = begins
    file["relations/name"] = fixed_texts([of.name for of in graph.relations], "relations")
    for name in ("source", "target", "inverse"):
        file[f"relations/{name}"] = np.array(
            [getattr(of, name) for of in graph.relations], dtype=np.int32
        )


def _write_vertices(file: h5py.File, graph: Graph) -> None:
    for of in graph.types:
        within = f"{of.name}/" if graph.typed else ""
        said = f"[{of.name!r}]" if graph.typed else ""
        if isinstance(of.features, SparseRows):
            write_sparse_rows(file, f"nodes/{within}features", of.features)
        elif of.features is not None:
            _write_rows(file, f"nodes/{within}features", of.features, f"x{said}")
        write_columns(file, f"nodes/{within}", of.columns)
        if of.labels is not None:
            file[f"nodes/{within}labels"] = of.labels.values
            if of.labels.values.ndim == 1:
                file[f"nodes/{within}labels"].attrs["classes"] = np.int64(of.labels.classes)
            if of.labels.names is not None:
                file[f"labels/{within}names"] = fixed_texts(of.labels.names, "class_names")
        if of.ids is not None:
            file[f"types/{of.name}/ids" if graph.typed else "nodes/ids"] = of.ids
        if of.time is not None:
            file[f"nodes/{within}time"] = of.time
        for split, ids in of.splits.items():
            file[f"split/{within}{split}"] = ids


def _write_edges(file: h5py.File, graph: Graph, of: Relation) -> None:
    within = f"edges/{graph.full_name(of)}/" if graph.typed else "edges/"
    if of.features is not None and len(of.entries):
        _write_rows(file, f"{within}features", of.features, "edge_features", of.entries.listed)
        write_columns(file, within, of.columns)
    if of.entries.times is not None:
        file[f"{within}time"] = of.entries.times


def write_file(path: str | os.PathLike[str], graph: Graph, overwrite: bool) -> None:
    path = os.path.realpath(path)  # a link stays one
    with replaced(path, overwrite) as temporary:
        with h5py.File(temporary, "w") as file:
            begins = np.concatenate(([0], np.cumsum([of.count for of in graph.types]))).astype(
                np.int64
            )
            file.attrs["format"] = np.bytes_("espalier-graph")
            file.attrs["version"] = np.int64(TYPED if graph.typed else PLAIN)
            file.attrs["directed"] = np.uint8(graph.directed)
            for name in ("name", "source"):
                if (text := getattr(graph, name)) is not None:
                    file.attrs[name] = np.bytes_(text.encode())
            if graph.typed:
                _write_schema(file, graph, begins)
            _write_matrix(file, graph, begins)
            _write_vertices(file, graph)
            for of in graph.relations:
                _write_edges(file, graph, of)

"""Sections of a description whose values are arrays of numpy's or texts without a header: the
arguments of write_graph that they become. A key means what it means to `espalier import`."""

from __future__ import annotations

import gzip
import pathlib
import warnings
import zipfile
import zlib
from typing import Any

import numpy as np

from ..arrays import integers
from ..errors import DataError
from ..given import part_of_split
from ..graph import SPLITS
from ..labels import is_text, texts
from .cells import numbers_or_names
from .section import Section

# Of each key the argument of write_graph, and what a text holds: numbers, whole ones, or names.
OF_VERTICES = {"features": ("x", "f8"), "labels": ("y", "f8"), "ids": ("ids", ""), "time": ("time", "i8")}
OF_EDGES = {
    "weights": ("edge_weight", "f8"),
    "time": ("edge_time", "i8"),
    "features": ("edge_features", "f8"),
}
FIELDS = {"source": "i8", "target": "i8", "weight": "f8", "time": "i8"}  # of a text with edges
GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


class Arrays:
    """What the arrays of a section say. `given`: the arguments; `files`: those that were read."""

    def __init__(self, section: Section) -> None:
        self.section = section
        self.given: dict[str, Any] = {}
        self.files: list[pathlib.Path] = []
        self.splits: list[str] = []  # that have a name

    def take(self, keys: dict[str, tuple[str, str]], rows: dict[str, int], of: str) -> int:
        """Reads what the section has of these keys, each with a row of each vertex, or edge. `rows`:
        who said already how many there are."""
        for key, (part, kind) in keys.items():
            if key in self.section.values:
                found = self.read(key, self.section.values[key], kind)
                rows[key] = len(found)
                self.given[part] = found
        self.section.require(
            len(set(rows.values())) < 2,
            f"rows are not as many: {', '.join(f'{key} {n}' for key, n in rows.items())}; {of} has one",
        )
        self.section.require(bool(rows), f"nothing says how many; give one of count, {', '.join(keys)}")
        return next(iter(rows.values()))

    def read(self, key: str, name: Any, kind: Any) -> Any:
        """"x.npy", "a.npz:MEMBER", or a text, whose fields are of `kind`. Of one column a vector."""
        said = f"{self.section.where}: {key}"
        more = f"give a file (one column of it is for `espalier import {self.section.path}`)"
        self.section.require(isinstance(name, str), f"{key} is {name!r}; {more}")
        name, archive, member = name.partition(".npz:")
        path = self.section.path.parent / (name + archive[:4])
        self.files.append(path)
        try:
            if path.suffix == ".npz":
                with np.load(path) as arrays:
                    found = arrays[member]
            else:
                found = np.load(path) if path.suffix == ".npy" else _read_text(path, kind)
        except (OSError, ValueError, EOFError, KeyError, DeprecationWarning,
                zipfile.BadZipFile, zlib.error) as problem:  # fmt: skip
            why = (str(problem) or type(problem).__name__).splitlines()[0].rstrip(".")
            hint = "; a table with a header is file =, not edges =" * isinstance(kind, list)
            raise DataError(f"{said}, {path}: {why}{hint}") from None
        self.section.require(found.ndim in (1, 2), f"{key}, {path}, has {found.ndim} dimensions; give 1 or 2")
        if kind == "" and is_text(found):
            return texts(found, said)
        is_column = found.ndim == 2 and found.shape[1] == 1 and not isinstance(kind, list)
        return found[:, 0] if is_column else found


def _read_text(path: pathlib.Path, kind: Any) -> Any:
    """A line for each thing. Fields are apart by commas; of edges, which are of several kinds, by
    blanks, too, and a line may be a comment."""
    with path.open("rb") as opened:
        start = opened.read(4)
    if start == ZSTD:
        raise ValueError("is packed by zstd, which only `espalier import` reads; pack it by gzip")
    unpack: Any = gzip.open if start.startswith(GZIP) else open
    of_edges = isinstance(kind, list)
    with unpack(path, "rt", encoding="utf-8-sig") as lines, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of no lines
        warnings.simplefilter("error", DeprecationWarning)  # of 1.0 as a whole number
        if kind == "":
            return numbers_or_names([line.strip() for line in lines.read().rstrip().split("\n")])
        lines = (line.replace(",", " ") for line in lines) if of_edges else lines
        comments, between = (("#", "%"), None) if of_edges else (None, ",")
        return np.loadtxt(lines, kind, comments=comments, delimiter=between, ndmin=1 if of_edges else 2)


def vertex_arrays(section: Section) -> Arrays:
    """Of a type: features, labels, ids, times, and splits of ids or masks; [] is of no vertex."""
    found = Arrays(section)
    rows = {"count": section.values["count"]} if "count" in section.values else {}
    found.given["num_nodes"] = found.take(OF_VERTICES, rows, "a vertex")
    splits = section.values.get("splits", {})
    unnamed = {part: of for part, of in splits.items() if part in SPLITS}
    found.splits = [name for name in splits if name not in SPLITS]
    for name in ["", *found.splits]:
        parts = splits[name] if name else unnamed
        section.require(
            isinstance(parts, dict) and set(parts) <= set(SPLITS),
            f"splits.{name} is {parts!r}; it is neither train, valid or test nor has such keys alone",
        )
        for part, of in parts.items():
            said = part_of_split(name, part) if name else part
            found.given[said] = np.zeros(0, np.int64) if of == [] else found.read(said, of, "i8")
    return found


def edge_arrays(section: Section) -> Arrays:
    """Of a relation: arrays [2, m] or [m, 2], or texts, one after the other, and what edges have in
    files of their own."""
    found, of = Arrays(section), section.values["edges"]
    of = of if isinstance(of, dict) else {"file": of}
    files = of.get("files", [of.get("file")])
    columns = of.get("columns", ["source", "target"])
    section.require(
        set(of) - {"columns"} in ({"file"}, {"files"})
        and isinstance(files, list)
        and len(files) > 0
        and isinstance(columns, list)
        and all(name in list(FIELDS) and columns.count(name) == 1 for name in columns)
        and {"source", "target"} <= set(columns),
        f"edges is {of!r}; give a file, or {{ file = .., columns = {list(FIELDS)} }}, or files = [..]",
    )
    for name, key in (("weight", "weights"), ("time", "time")):
        both = name in columns and key in section.values
        section.require(not both, f"{key} is a column of edges, too; leave one of them out")
    listed: dict[str, list[Any]] = {name: [] for name in columns}
    for name in files:
        lines = found.read("edges", name, [(column, FIELDS[column]) for column in columns])
        if lines.dtype.names != (*columns,):
            section.require("columns" not in of, f"edges.columns is of texts, but {name} is an array")
            lines = integers(lines, f"{section.where}: edges, {name}")
            section.require(
                lines.ndim == 2 and 2 in lines.shape,
                f"edges, {name}, has the shape {list(lines.shape)}; give [2, edges] or [edges, 2]",
            )
            lines = dict(zip(columns, lines if len(lines) == 2 else lines.T))
        for column, parts in listed.items():
            parts.append(lines[column])
        section.require(len(files) == 1 or len(parts[-1]) > 0, f"edges, {name}, has no edge; leave it out")
    whole = {name: np.concatenate(parts) for name, parts in listed.items()}
    found.given["edge_index"] = whole.pop("source"), whole.pop("target")
    found.given |= {f"edge_{name}": column for name, column in whole.items()}
    found.take(OF_EDGES, {"edges": len(found.given["edge_index"][0])}, "an edge")
    return found

"""What the program writes, as arrays: rows and predictions of `espalier infer`, reports and weights
of `espalier train`."""

from __future__ import annotations

import json
import os
import pathlib
import tomllib
import zlib
from dataclasses import dataclass, field
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from .errors import DataError

Path = str | os.PathLike[str]
BLOCK, TITLE = 512, b"espalier-weights 1"  # of weights.h5: what precedes the HDF5 file


def text_of(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def open_hdf5(path: Path, kind: str, made_by: str) -> h5py.File:
    """A file of the program whose attribute format is `kind`."""
    try:
        file = h5py.File(path)
    except FileNotFoundError:
        raise DataError(f"{path} is not there; `{made_by}` writes it") from None
    except OSError:
        raise DataError(
            f"{path} is no file of HDF5, or damaged; `{made_by}` writes it anew"
        ) from None
    if (found := text_of(file.attrs.get("format"))) != kind:
        file.close()
        raise DataError(
            f"{path} is {found or 'another file of HDF5'}, not {kind}; `{made_by}` writes that"
        )
    return file


def names_of(dataset: h5py.Dataset) -> NDArray[Any]:
    """Ids or names of a graph file: int64, or str."""
    values: NDArray[Any] = dataset[()]
    if values.dtype.kind == "i":
        return values
    return np.array([text_of(value) for value in values.tolist()], dtype=np.str_)


@dataclass
class Rows:
    """Rows of a layer, of the vertices of one type. `vertices`: ids in the graph file, counted
    within the type."""

    kind: str  # logits or embeddings
    values: NDArray[Any]
    vertices: NDArray[np.int64]
    predictions: NDArray[Any] | None
    type: str | None
    attributes: dict[str, Any] = field(repr=False)


def read_rows(path: Path, type: str | None = None) -> Rows:
    """What `espalier infer -o PATH` wrote; `type`: of a type that --types named."""
    with open_hdf5(path, "espalier-rows", "espalier infer") as file:
        attributes = {name: text_of(value) for name, value in file.attrs.items()}
        group: Any = file
        if type is not None:
            if f"types/{type}" not in file and attributes.get("target") != type:
                raise DataError(
                    f"{path} has no rows of the type {type!r}; it has {sorted(file.get('types', ()))}: "
                    f"`espalier infer --types {type}` writes them"
                )
            group = file.get(f"types/{type}", file)
        elif "logits" not in file and "embeddings" not in file:
            raise DataError(
                f"{path} has rows of {', '.join(file.get('types', ())) or 'nothing'}; say which type"
            )
        kind = "logits" if "logits" in group else "embeddings"
        values = group[kind][()]
        vertices = group["ids"][()] if "ids" in group else np.arange(len(values), dtype=np.int64)
        predictions = group["predictions"][()] if "predictions" in group else None
        return Rows(
            kind, values, vertices, predictions, type or attributes.get("target"), attributes
        )


@dataclass
class Predictions:
    """A class for each vertex, beside what the graph file knows of it. `ids` and `names` are the
    user's own, where the file has some; `labels` is -1 where there is none, `split` empty where a
    vertex is in none."""

    vertices: NDArray[np.int64]
    ids: NDArray[Any]
    classes: NDArray[Any]
    names: NDArray[Any]
    probability: NDArray[np.float32]
    labels: NDArray[np.int32]
    split: NDArray[np.str_]

    def accuracy(self, split: str) -> float:
        """As report.json has it, of the vertices that were put through the network."""
        of = (self.split == split) & (self.labels >= 0)
        if not of.any():
            raise DataError(f"no vertex of these is in the split {split!r}")
        return float((self.classes[of] == self.labels[of]).mean())

    def columns(self) -> dict[str, NDArray[Any]]:
        return {
            "vertex": self.vertices,
            "id": self.ids,
            "class": self.classes,
            "name": self.names,
            "probability": self.probability,
            "label": self.labels,
            "split": self.split,
        }

    def to_pandas(self) -> Any:
        """A DataFrame of them, whose index is the ids."""
        try:
            import pandas
        except ImportError:
            raise DataError("pandas is not installed; columns() has the same as arrays") from None
        return pandas.DataFrame(self.columns()).set_index("id")


def graph_of(path: Path, attributes: dict[str, Any], graph: Path | None) -> Path:
    """The graph file: as the user says, or where it was when rows were written, from here or from
    beside them."""
    if graph is not None:
        return graph
    named, beside = pathlib.Path(attributes["graph"]), pathlib.Path(path).parent
    for place in (named, beside / named, beside / named.name):
        if place.exists():
            return place
    raise DataError(f"{path} is of the graph {named}, which is not there; say where it is: graph=")


def _probability(rows: Rows) -> NDArray[np.float32]:
    """Softmax of the class that was predicted."""
    logits = rows.values.astype(np.float64)
    logits -= logits.max(axis=1, keepdims=True)
    share = np.exp(logits)
    return np.asarray(share.max(axis=1) / share.sum(axis=1), dtype=np.float32)


def read_predictions(path: Path, graph: Path | None = None, pandas: bool = False) -> Any:
    """Predictions of `espalier infer --predictions -o PATH`, with the ids, names of classes, labels
    and splits of the graph file. pandas=True: as a DataFrame."""
    rows = read_rows(path)
    if rows.predictions is None or rows.kind != "logits":
        raise DataError(f"{path} has no predictions; `espalier infer --predictions` writes them")
    if rows.predictions.ndim != 1:
        raise DataError(
            f"{path} has several labels for each vertex; "
            f"read_rows({os.fspath(path)!r}).predictions has them"
        )
    graph = graph_of(path, rows.attributes, graph)
    with open_hdf5(graph, "espalier-graph", "espalier import") as file:
        stated = text_of(file.attrs.get("digest"))
        if stated and stated != rows.attributes.get("graph_digest", stated):
            raise DataError(
                f"{file.filename} is not the graph of {path}: its digest is {stated}, the rows are "
                f"of {rows.attributes['graph_digest']}"
            )
        found = _beside(file, rows)
    return found.to_pandas() if pandas else found


def _beside(file: h5py.File, rows: Rows) -> Predictions:
    within = f"{rows.type}/" if rows.type else ""
    of, classes = rows.vertices, rows.predictions
    assert classes is not None
    own = file.get(f"types/{within}ids" if within else "nodes/ids")
    names, given = file.get(f"labels/{within}names"), file.get(f"nodes/{within}labels")
    count = int(of.max(initial=-1)) + 1 if given is None else given.shape[0]
    split = np.full(count, "", dtype="U5")
    of_split = f"split/{within}" + (f"{rows.attributes['split']}/" if "split" in rows.attributes else "")
    for name in ("train", "valid", "test"):
        if of_split + name in file:
            split[file[of_split + name][()]] = name
    labels = np.full(count, -1, dtype=np.int32)
    if given is not None:
        labels = given[()].reshape(count).astype(np.int32)
    if count <= int(of.max(initial=-1)):
        raise DataError(
            f"{file.filename} is not the graph of these rows: it has {count} vertices, rows are of "
            f"{int(of.max()) + 1}"
        )
    return Predictions(
        of,
        of if own is None else names_of(own)[of],
        classes,
        classes if names is None else names_of(names)[classes],
        _probability(rows),
        labels[of],
        split[of],
    )


def read_report(run: Path) -> dict[str, Any]:
    """report.json of an output folder, or that file itself: docs/design.md, section 7, has its
    fields."""
    path = pathlib.Path(run)
    path = path / "report.json" if path.suffix != ".json" else path
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(f"{path} is not there; a run writes it at its end") from None
    except ValueError as problem:
        raise DataError(f"{path} is no report: {problem}") from None
    if not isinstance(report, dict) or "espalier" not in report:
        raise DataError(f"{path} is no report of espalier")
    return report


def check_seal(path: Path) -> None:
    """Of weights.h5; another file has none."""
    if not os.path.isfile(path):
        return
    with open(path, "rb") as file:
        begin = file.read(BLOCK)
        if not begin.startswith(TITLE):
            return
        rest = file.read()
    size = len(begin) + len(rest)
    seal = TITLE + f"\nbytes {size}\ncrc32 {zlib.crc32(rest):08x}\n".encode()
    if begin != seal.ljust(BLOCK, b"\0"):
        raise DataError(f"{path} is damaged: its checksum does not fit its bytes; copy it again")


def read_weights(path: Path) -> tuple[dict[str, NDArray[np.float32]], dict[str, Any]]:
    """({name: array}, config) of weights.h5: "layer1.self", "layer1.neighbour", .. as [in, out].
    `scripts/to_pytorch.py` gives them the names of PyTorch Geometric."""
    path = pathlib.Path(path)
    path = path / "weights.h5" if path.is_dir() else path
    check_seal(path)
    with open_hdf5(path, "espalier-weights", "espalier train") as file:
        arrays = {
            name: file[group][name][()]
            for group in ("weights", "statistics")
            for name in file.get(group, ())
        }
        return arrays, tomllib.loads(text_of(file.attrs["config"]))

"""Minibatches that `espalier sample CONFIG --write DIR` drew, for training in another library.

A batch is a function of the graph, the sampler's keys, the seed and its number: whatever ranks wrote
the folder, `Minibatches(folder)[k]` is the same to the last bit. include/espalier/sample/
minibatch_file.hpp has the layout of a record.
"""

from __future__ import annotations

import json
import operator
import os
import pathlib
import zlib
from collections.abc import Iterator
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from .errors import DataError
from .minibatch import Block, Links, Minibatch
from .results import graph_of, open_hdf5, text_of
from .row_tables import table_of

Path = str | os.PathLike[str]
INDEX, FORMAT, VERSION = "minibatches.json", "espalier-minibatches", 2  # 1: without links
HEAD, SHAPE, PLACE = 6, 4, 3  # int64 numbers of a record's head, of a block's shape, of a place
CLASSES, LINKS = -1, -2  # in the place of the number of columns of y
UNKNOWN = 255  # of several labels
UNHASHED = 16  # bytes of a record before those that its checksum is of
MADE_BY = "`espalier sample CONFIG --write DIR`"


class Minibatches:
    """The minibatches of a folder, in the order of epochs and batches: a map-style source for
    `torch.utils.data.DataLoader(..., batch_size=None)`, with or without workers. `rows`: with the
    features of all vertices of a batch, read from the graph file; `graph`: where that is."""

    def __init__(self, folder: Path, graph: Path | None = None, rows: bool = False) -> None:
        self.folder = pathlib.Path(folder)
        self.about = _read_index(self.folder)
        self.epochs = int(self.about["epochs"])
        self.batches = int(self.about["batches"])  # of an epoch
        self._files: dict[int, int] = {}
        self._parts = [self.folder / part["file"] for part in self.about["parts"]]
        self._places = self._read_places()
        self._rows = _Rows(self.folder / INDEX, self.about, graph) if rows else None

    def __len__(self) -> int:
        return self.epochs * self.batches

    def __iter__(self) -> Iterator[Minibatch]:
        return (self[k] for k in range(len(self)))

    def of_epoch(self, epoch: int) -> range:
        """The numbers k of an epoch's batches; epochs count from 1, as in training."""
        if not 1 <= epoch <= self.epochs:
            raise IndexError(f"epoch {epoch}: {self.folder} has epochs 1 to {self.epochs}")
        return range((epoch - 1) * self.batches, epoch * self.batches)

    def __getitem__(self, k: SupportsIndex) -> Minibatch:
        number = operator.index(k)
        if not -len(self) <= number < len(self):
            raise IndexError(f"batch {number}: {self.folder} has {len(self)}")
        part, begin, size = self._places[number % len(self)].tolist()
        batch = self._parse(part, begin, self._read(part, begin, size))
        if self._rows is not None:
            batch.x = self._rows.of(batch)
        return batch

    def __getstate__(self) -> dict[str, Any]:
        """For workers of other processes, which open files of their own."""
        return {**self.__dict__, "_files": {}}

    def __del__(self) -> None:
        for file in getattr(self, "_files", {}).values():
            os.close(file)

    def _read(self, part: int, begin: int, size: int) -> bytearray:
        """Needs no position of the file, so threads and forked workers may share it."""
        if part not in self._files:
            self._files[part] = os.open(self._parts[part], os.O_RDONLY | os.O_CLOEXEC)
        found = bytearray()
        while len(found) < size:
            piece = os.pread(self._files[part], size - len(found), begin + len(found))
            if not piece:
                raise self._damaged(part, "it ends too early")
            found += piece
        return found

    def _damaged(self, part: int, how: str) -> DataError:
        return DataError(
            f"{self._parts[part]} is damaged: {how}; copy it again, or write the folder anew with "
            f"{MADE_BY} --overwrite"
        )

    def _read_places(self) -> NDArray[np.int64]:
        """Of each batch, in their order: part, begin, size."""
        lists = []
        for part, stated in enumerate(self.about["parts"]):
            path, records, size = self._parts[part], int(stated["records"]), int(stated["bytes"])
            if not path.is_file():
                raise DataError(f"{path} is not there, and {INDEX} names it; copy the whole folder")
            if (found := path.stat().st_size) != size:
                raise self._damaged(part, f"it has {found} bytes, and {INDEX} says {size}")
            length = 8 * PLACE * records
            places = np.frombuffer(self._read(part, size - length, length), "<i8")
            epoch, batch, begin = places.reshape(records, PLACE).T
            ends = np.append(begin[1:], size - length)
            numbers = (epoch - 1) * self.batches + batch
            lists.append(np.stack([numbers, np.full(records, part), begin, ends - begin], axis=1))
        every = np.concatenate(lists)
        every = every[np.argsort(every[:, 0], kind="stable")]
        if not np.array_equal(every[:, 0], np.arange(len(self))):
            raise DataError(
                f"the parts of {self.folder} do not have each of {len(self)} batches once; are they of "
                "several runs?"
            )
        return every[:, 1:]

    def _parse(self, part: int, begin: int, record: bytearray) -> Minibatch:
        if len(record) < 8 * HEAD or zlib.crc32(memoryview(record)[UNHASHED:]) != _numbers(record, 1, 1)[0]:
            raise self._damaged(part, f"the checksum of the record at byte {begin} does not fit")
        _, _, epoch, batch, layers, columns = _numbers(record, 0, HEAD).tolist()
        shapes = _numbers(record, HEAD, SHAPE * layers).reshape(layers, SHAPE).tolist()
        place = 8 * (HEAD + SHAPE * layers)

        def take(kind: str, count: int) -> NDArray[Any]:
            nonlocal place
            values = np.frombuffer(record, kind, count, place)
            place += -(-values.nbytes // 8) * 8
            return values

        vertices = take("<i8", shapes[0][1])
        blocks = []
        for rows, sources, entries, relations in shapes:
            block = Block(
                take("<i8", rows + 1), take("<i4", entries), take("<f4", entries), (rows, sources)
            )
            block.relations = take("u1", entries) if relations else None
            blocks.append(block)
        seeds = shapes[-1][0]
        y = take("<i4", seeds) if columns == CLASSES else None
        if columns > 0:
            y = take("u1", seeds * columns).reshape(seeds, columns)
        links = None
        if columns == LINKS:
            count, negatives = take("<i8", 2).tolist()
            ends = [take("<i4", count) for _ in range(3)]
            ends += [take("<i4", count * negatives).reshape(count, negatives) for _ in range(2)]
            links = Links(*ends)
        types = self._types(vertices)
        made = Minibatch(epoch, batch, vertices[:seeds], vertices, blocks, y, None, types, links)
        made.step, made.scale, made.about = batch, 1 / max(1, _examples(made)), self.about
        return made

    def _types(self, vertices: NDArray[np.int64]) -> dict[str, NDArray[np.int64]] | None:
        if self.about["types"] is None:
            return None
        return {
            of["name"]: np.flatnonzero((vertices >= of["begin"]) & (vertices < of["end"]))
            for of in self.about["types"]
        }


def _examples(batch: Minibatch) -> int:
    """What a loss is the mean over: links, labels that are known."""
    if batch.links is not None:
        return len(batch.links.heads)
    if batch.y is None:
        return len(batch.seeds)
    return int((batch.y >= 0).sum() if batch.y.ndim == 1 else (batch.y != UNKNOWN).sum())


def _numbers(record: bytearray, first: int, count: int) -> NDArray[np.int64]:
    return np.frombuffer(record, "<i8", count, 8 * first)


def _read_index(folder: pathlib.Path) -> dict[str, Any]:
    path = folder / INDEX
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        what = "has no" if folder.is_dir() else "is no folder with"
        raise DataError(
            f"{folder} {what} {INDEX}, which is written last: the run has not ended, or was cut off; "
            f"{MADE_BY} writes it"
        ) from None
    except ValueError as problem:
        raise DataError(f"{path} is damaged: {problem}; {MADE_BY} writes it anew") from None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise DataError(f"{path} is no list of minibatches; {MADE_BY} writes one")
    if about.get("version") not in range(1, VERSION + 1):
        raise DataError(
            f"{path} has version {about.get('version')} of the format, and this package reads "
            f"{VERSION}; install the package that came with the program"
        )
    return about


class _Rows:
    """Features in the graph file, read where they lie, so that workers share no handle of HDF5."""

    def __init__(self, index: pathlib.Path, about: dict[str, Any], graph: Path | None) -> None:
        self.path = pathlib.Path(graph_of(index, about, graph))
        with open_hdf5(self.path, "espalier-graph", "espalier import") as file:
            digest = text_of(file.attrs.get("digest"))
            stated = about.get("graph_digest")
            vertices = file["graph/indptr"].shape[0] - 1
            if (digest and stated and digest != stated) or vertices != about["nodes"]:
                raise DataError(
                    f"{self.path} is not the graph of {index}: it has {vertices} vertices and the "
                    f"digest {digest}, the minibatches are of {about['nodes']} and {stated}"
                )
            kinds = [("features", "", 0)]
            if about["types"] is not None:
                kinds = [(f"{of['name']}/features", of["name"], of["begin"]) for of in about["types"]]
            self.tables = {
                kind: table_of(self.path, file, f"nodes/{name}", begin)
                for name, kind, begin in kinds
                if f"nodes/{name}" in file
            }
            if not self.tables:
                raise DataError(f"{self.path} has no features (/nodes/features); leave rows out")

    def of(self, batch: Minibatch) -> NDArray[Any] | dict[str, NDArray[Any]]:
        if batch.types is None:
            return self.tables[""].of(batch.vertices)
        return {
            kind: table.of(batch.vertices[batch.types[kind]]) for kind, table in self.tables.items()
        }

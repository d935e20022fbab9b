"""Features of vertices, read where they lie in a graph file, so that workers share no handle of
HDF5."""

from __future__ import annotations

import pathlib
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray


def table_of(path: pathlib.Path, file: h5py.File, name: str, begin: int) -> Table | SparseTable:
    kind = SparseTable if isinstance(file[name], h5py.Group) else Table
    return kind(path, file, name, begin)


class Table:
    """The rows of the vertices from `begin` on."""

    def __init__(self, path: pathlib.Path, file: h5py.File, name: str, begin: int) -> None:
        rows = file[name]
        self.path, self.name, self.begin = path, name, begin
        self.shape, self.dtype = rows.shape, rows.dtype
        self.offset = None if file.userblock_size else rows.id.get_offset()
        self._mapped: NDArray[Any] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_mapped": None}

    def of(self, vertices: NDArray[np.int64]) -> NDArray[Any]:
        places = vertices - self.begin
        if self.offset is None:  # compressed, or in pieces
            with h5py.File(self.path) as file:
                order = np.argsort(places)
                found = np.empty((len(places), *self.shape[1:]), self.dtype)
                found[order] = file[self.name][places[order]]
                return found
        if self._mapped is None:
            self._mapped = np.memmap(self.path, self.dtype, "r", self.offset, self.shape)
        return np.asarray(self._mapped[places])


class SparseTable:
    """The rows of the vertices from `begin` on, sparse in the file."""

    def __init__(self, path: pathlib.Path, file: h5py.File, name: str, begin: int) -> None:
        self.path, self.name, self.begin = path, name, begin
        self.columns = int(file[f"{name}/indices"].attrs["columns"])
        self._arrays: list[NDArray[Any]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_arrays": None}

    def of(self, vertices: NDArray[np.int64]) -> NDArray[np.float32]:
        """As a matrix."""
        if self._arrays is None:
            with h5py.File(self.path) as file:
                self._arrays = [
                    self._mapped(file, part) for part in ("indptr", "indices", "values")
                ]
        indptr, indices, values = self._arrays
        places = vertices - self.begin
        counts = np.asarray(indptr[places + 1] - indptr[places])
        row = np.repeat(np.arange(len(places)), counts)
        within = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        entry = np.repeat(np.asarray(indptr[places]), counts) + within
        found = np.zeros((len(places), self.columns), np.float32)
        found[row, indices[entry]] = values[entry]
        return found

    def _mapped(self, file: h5py.File, part: str) -> NDArray[Any]:
        data = file[f"{self.name}/{part}"]
        offset = None if file.userblock_size else data.id.get_offset()
        if offset is None or data.shape[0] == 0:  # compressed, or in pieces
            return np.asarray(data[:])
        return np.memmap(self.path, data.dtype, "r", offset, data.shape)

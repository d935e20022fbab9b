"""A batch of the library as a `Minibatch`: arrays are views of its memory, of the host or of a GPU,
which is freed when the last of them has gone. Indices, features and values are not copied, of torch
neither; labels of torch are.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _declared
from .library import check, options
from .minibatch import Block, Links, Minibatch

INT64, INT32, UINT8, FLOAT32 = (np.dtype(name).str for name in ("i8", "i4", "u1", "f4"))
IGNORED = -100  # a class that torch's losses leave out


class _Memory:
    """A batch of the library; no child of a fork frees it."""

    def __init__(self, library: Any, batch: ctypes.c_void_p, pinned: Pinned | None) -> None:
        self.library, self.batch, self.process = library, batch, os.getpid()
        self.own_process, self.pinned = os.getpid, pinned

    def digest(self) -> int:
        return int(self.library.espalier_batch_digest(self.batch))

    def __reduce__(self) -> Any:
        """A copy of a batch has arrays of its own."""
        return type(None), ()

    def __del__(self) -> None:
        if self.process == self.own_process():
            self.library.espalier_batch_free(self.batch)


class _Place:
    """What NumPy makes an array of, which keeps it: so the memory stays."""

    __slots__ = ("__array_interface__", "memory")

    def __init__(self, memory: _Memory | None, interface: dict[str, Any]) -> None:
        self.memory, self.__array_interface__ = memory, interface


class _PlaceOnGpu:
    """The same for torch; its stream waits for the batch, not for each array."""

    __slots__ = ("__cuda_array_interface__", "memory")

    def __init__(self, memory: _Memory, interface: dict[str, Any]) -> None:
        self.memory, self.__cuda_array_interface__ = memory, {**interface, "stream": None}


class Pinned:
    """Memory that torch pinned, which the library writes rows of features to; by address."""

    def __init__(self, torch: Any) -> None:
        self.torch, self.blocks = torch, {}
        self.allocate = _declared.espalier_allocate(self._allocate)
        self.release = _declared.espalier_release(self._release)

    def _allocate(self, _: Any, size: int) -> int | None:
        try:
            block = self.torch.empty(size, dtype=self.torch.uint8, pin_memory=True)
        except RuntimeError:  # there is none
            return None
        address = int(block.data_ptr())
        self.blocks[address] = block
        return address

    def _release(self, _: Any, address: int) -> None:
        self.blocks.pop(address, None)  # a tensor of it keeps it

    def tensor(self, address: int, rows: int, columns: int) -> Any:
        return self.blocks[address].view(self.torch.float32).reshape(rows, columns)


def _interface(address: int | None, kind: str, shape: tuple[int, ...]) -> dict[str, Any]:
    return {"data": (address, False), "typestr": kind, "shape": shape, "version": 3}


def _read(address: int | None, kind: str, count: int) -> Any:
    return np.array(_Place(None, _interface(address, kind, (count,))))


class Maker:
    """Makes batches of one loader. `torch`: the module, or None for arrays of NumPy."""

    def __init__(self, library: Any, about: dict[str, Any], torch: Any, pinned: bool) -> None:
        self.library, self.about, self.torch = library, about, torch
        self.pinned = Pinned(torch) if pinned else None
        self.device = None  # of the batches, where that is a GPU
        if torch is not None and about["gpu"] is not None and torch.cuda.is_available():
            self.device = torch.device("cuda", about["gpu"])
        self.edge_width = 0  # as far as it is known
        self.names = [of["name"] for of in about["types"] or ()]

    def batch(self, pointer: ctypes.c_void_p) -> Minibatch:
        memory = _Memory(self.library, pointer, self.pinned)
        view = options(_declared.espalier_batch_view)
        check(self.library.espalier_batch_look(pointer, ctypes.byref(view)))
        if view.on_gpu:
            stream = self.torch.cuda.current_stream(self.device).cuda_stream
            check(self.library.espalier_batch_wait(pointer, stream))

        def array(address: int | None, kind: str, *shape: int) -> Any:
            return self._array(memory, address, kind, shape)

        vertices = array(view.vertices, INT64, view.vertex_count)
        kinds = self._kinds(view)
        return Minibatch(
            epoch=view.epoch,
            batch=view.batch,
            seeds=vertices[: view.seed_count],
            vertices=vertices,
            blocks=[self._block(view.blocks[k], array) for k in range(view.layers)],
            y=self._labels(view, array),
            x=self._rows(view, array, kinds),
            types=self._types(kinds),
            links=self._links(view, array),
            step=view.step,
            scale=view.scale,
            ends_step=bool(view.ends_step),
            about=self.about,
            memory=memory,
        )

    def _array(
        self, memory: _Memory, address: int | None, kind: str, shape: tuple[int, ...]
    ) -> Any:
        if 0 in shape:
            return self._own(np.empty(shape, kind))
        interface = _interface(address, kind, shape)
        if self.device is not None:
            return self.torch.as_tensor(_PlaceOnGpu(memory, interface), device=self.device)
        return self._own(np.asarray(_Place(memory, interface)))

    def _own(self, array: Any) -> Any:
        """What the host has, as the batch's arrays are."""
        if self.torch is None:
            return array
        made = self.torch.from_numpy(array)
        if self.device is not None:
            return made.to(self.device)
        return made if self.pinned is None else made.pin_memory()

    def _labels(self, view: Any, array: Callable[..., Any]) -> Any:
        if view.label_columns:
            return array(view.label_rows, UINT8, view.seed_count, view.label_columns)
        if not view.classes:
            return None
        classes = array(view.classes, INT32, view.seed_count)
        if self.torch is None:
            return classes
        return self.torch.where(classes < 0, IGNORED, classes.long())

    def _kinds(self, view: Any) -> Any:
        """Of each vertex the place of its type."""
        runs = view.run_count
        if not self.names or not runs:
            return np.empty(0, INT32)
        begins = _read(view.run_begins, INT64, runs + 1)
        return np.repeat(_read(view.run_types, INT32, runs), np.diff(begins))

    def _types(self, kinds: Any) -> Any:
        if not self.names:
            return None
        return {name: self._own(np.flatnonzero(kinds == k)) for k, name in enumerate(self.names)}

    def _rows(self, view: Any, array: Callable[..., Any], kinds: Any) -> Any:
        tables = [view.tables[k] for k in range(view.table_count)]
        made = [
            self.pinned.tensor(of.data, of.rows, of.columns)
            if self.pinned is not None and of.data and of.rows * of.columns
            else array(of.data, FLOAT32, of.rows, of.columns)
            for of in tables
        ]
        if not self.names:
            return made[0] if made else None
        found = {}
        for table, rows in zip(self.about["tables"], made, strict=True):
            of_table = kinds[np.isin(kinds, table["types"])]
            for k in table["types"]:
                alone = len(table["types"]) == 1
                found[self.names[k]] = rows if alone else rows[self._own(of_table == k)]
        return found

    def _block(self, of: Any, array: Callable[..., Any]) -> Block:
        # Of no entries the library has neither values nor relations; here they are empty.
        made = Block(
            array(of.indptr, INT64, of.rows + 1),
            array(of.indices, INT32, of.entries),
            array(of.values, FLOAT32, of.entries) if of.values or not of.entries else None,
            (of.rows, of.columns),
        )
        if of.relations or (self.about["tells_relations"] and not of.entries):
            made.relations = array(of.relations, UINT8, of.entries)
        if of.edge_width or self.edge_width:
            self.edge_width = width = of.edge_width or self.edge_width
            made.edge_entries = array(of.edge_entries, INT32, of.edge_count)
            made.edge_features = array(of.edge_rows, FLOAT32, of.edge_count, width)
        return made

    def _links(self, view: Any, array: Callable[..., Any]) -> Links | None:
        if not view.heads:
            return None
        links, each = (view.link_count,), (view.link_count, view.negatives)
        return Links(
            array(view.heads, INT32, *links),
            array(view.tails, INT32, *links),
            array(view.link_relations, INT32, *links),
            array(view.negative_heads, INT32, *each),
            array(view.negative_tails, INT32, *each),
        )

"""Minibatches as they are drawn: those that `espalier train` draws, bit for bit, on any number of
ranks, or every vertex of a split once."""

from __future__ import annotations

import ctypes
import hashlib
import json
import sys
import time
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _declared
from .batches import Maker
from .errors import DataError, DataWarning
from .interrupts import SLICE, Interrupts
from .library import check, options
from .minibatch import Minibatch

if TYPE_CHECKING:
    from .job import Job

DRAWN_BY = {  # keys that change a batch
    "graph": ("target", "split", "feature_norm", "feature_bits"),
    "model": ("kind", "layers", "edge_features"),
    "train": ("task", "seed", "batches_per_step"),
}
Place = tuple[int, int]  # epoch, from 1, and step, from 0


class Loader:
    """`for batch in loader` gives this rank's batches of all epochs, `len(loader)` of them on every
    rank; some have no seeds where ranks do not divide a step's batches. `for epoch in
    loader.epochs(): for batch in epoch` tells epochs apart. All ranks of the job loop alike: taking
    a batch is collective. The library draws and fetches the next steps meanwhile.

    Made by `Job.loader`; it has memory of its own until `close()`, or until another is made
    after it has gone."""

    def __init__(
        self,
        job: Job,
        epochs: int | None = None,
        split: str | None = None,
        vertices: Any = None,
        fanout: Any = None,
        batch_size: int | None = None,
        ahead: int | None = None,
        arrays: str | None = None,
        pin_memory: bool = False,
    ) -> None:
        asked = options(_declared.espalier_loader_options, ahead=-1 if ahead is None else ahead)
        asked.split = None if split is None else split.encode()
        asked.epochs, asked.batch_size = epochs or 0, batch_size or 0
        lists = {}
        for name, count, given in (
            ("vertices", "vertex_count", vertices),
            ("fanout", "fanout_count", fanout),
        ):
            if given is not None:
                lists[name] = _integers(name, given)
                setattr(asked, name, lists[name].ctypes.data)
                setattr(asked, count, len(lists[name]))
        module = _module(arrays, pin_memory)
        self._maker = Maker(job.library, job.about, module, pin_memory)
        if pin_memory and self._maker.device is not None:
            raise DataError("pin_memory=True: the batches of this job are on its GPU already")
        asked.on_host = self._maker.device is None
        if (pinned := self._maker.pinned) is not None:
            asked.allocate, asked.release = pinned.allocate, pinned.release
            job.lent.append(pinned)  # the library has a loader longer than Python does
        self._job, self._handle = job, ctypes.c_void_p()
        job.call("loader_open", ctypes.byref(asked), ctypes.byref(self._handle))
        self._number = job.add_loader(self, self._handle)
        self._interrupts = Interrupts(self, job.ranks == 1)
        if not job.about["loads_ahead"] and ahead != 0 and job.rank == 0:
            warnings.warn(
                "MPI was started without MPI_THREAD_MULTIPLE: batches are drawn while `next` waits "
                "for them, not ahead",
                DataWarning,
                stacklevel=3,
            )
        facts = options(_declared.espalier_loader_facts)
        self._call("loader_facts_of", ctypes.byref(facts))
        self.batches: int = facts.batches  # of an epoch, over all ranks
        self.steps: int = facts.steps  # of an epoch
        self.items: int = facts.items  # of an epoch, on each rank
        self.batches_per_step: int = facts.batches_per_step
        self._epochs: int = facts.epochs
        self._next: Place = (1, 0)  # of the step that is not done
        self._begun: Place | None = (1, 0)  # where the library stands; None: within a step
        self._goes_on = self._asked = False
        self._loops = 0
        what = {"split": split, "batch_size": batch_size}
        what |= {name: hashlib.sha256(of.tobytes()).hexdigest() for name, of in lists.items()}
        self._state = {
            "batches_per_step": self.batches_per_step,
            "graph": job.about["graph_digest"],
            "config": _digest_of(job.about, what),
        }

    def __getitem__(self, k: Any) -> Any:
        self._job.use()
        raise DataError("a loader is looped over, by no DataLoader: `for batch in loader`")

    def __len__(self) -> int:
        return self._epochs * self.items

    def __iter__(self) -> Iterator[Minibatch]:
        for epoch in self.epochs():
            yield from epoch

    def epochs(self) -> Iterator[Epoch]:
        """Each epoch as something to loop over; behind `load_state_dict` from there on."""
        first, step = self._next if self._goes_on else (1, 0)
        self._goes_on = False
        for number in range(first, self._epochs + 1):
            yield Epoch(self, number, step)
            step = 0

    def state_dict(self) -> dict[str, Any]:
        """Where it is: behind the last step that was done. To be kept beside a model's."""
        epoch, step = self._next
        return {"epoch": epoch, "step": step, **self._state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The next loop begins there; on any number of ranks, with the same graph and config."""
        for name, of in (
            ("graph", "another graph"),
            ("config", "a job that draws other batches"),
            ("batches_per_step", "other steps"),
        ):
            if state.get(name) != self._state[name]:
                more = "; train.batches_per_step sets them" if name == "batches_per_step" else ""
                raise DataError(
                    f"this state is of {of}: its {name} is {state.get(name)}, this loader's "
                    f"{self._state[name]}{more}"
                )
        self._next, self._goes_on = (int(state["epoch"]), int(state["step"])), True

    def close(self) -> None:
        """Collective. Batches stay."""
        self._handle = ctypes.c_void_p()
        self._job.close_loader(self._number)

    def __getstate__(self) -> Any:
        self._job.use(other_process=True)

    def _call(self, name: str, *arguments: Any) -> int:
        self._job.use()
        if not self._handle:
            raise DataError("this loader is closed")
        return check(getattr(self._job.library, f"espalier_{name}")(self._handle, *arguments))

    def _loop(self, place: Place) -> int:
        """Begins a loop there; the one before is over."""
        if self._begun != place:
            self._call("loader_seek", *place)
            self._asked = self._interrupts.wished = False
        self._next = self._begun = place
        self._loops += 1
        return self._loops

    def _take(self, loop: int) -> Minibatch:
        if loop != self._loops:
            raise DataError("another loop over this loader has begun: take two loaders")
        if not self._asked:
            self._call("loader_begin")
            self._asked = True
        ready, since = ctypes.c_int32(), time.monotonic()
        while not ready:
            self._interrupts.check(since)
            self._call("loader_wait", SLICE, ctypes.byref(ready))
        found = ctypes.c_void_p()
        code = self._call("loader_next", ctypes.byref(found))
        self._asked = False
        if code == _declared.STOPPED:
            self._begun = None
            raise self._interrupts.agreed()
        batch = self._maker.batch(found)
        self._begun = None
        if batch.ends_step:
            ends = batch.step + 1 == self.steps
            self._next = self._begun = (
                (batch.epoch + 1, 0) if ends else (batch.epoch, batch.step + 1)
            )
        return batch

    def wish_to_stop(self) -> bool:
        """By a handler of a signal. Is there something to stop?"""
        if not self._handle or self._job.closed:
            return False
        self._job.library.espalier_loader_stop(self._handle)
        return True

    def _end(self, epoch: int) -> None:
        """Behind the last batch of an epoch. What is drawn of the next hears of a wish; of the last
        one nothing is."""
        if epoch < self._epochs or self._job.ranks == 1:
            return
        if self._job.sum(float(self._interrupts.wished)) > 0:
            self._begun = None
            raise self._interrupts.agreed()


class Epoch:
    """This rank's batches of the epoch `number`, from a step on."""

    def __init__(self, loader: Loader, number: int, step: int = 0) -> None:
        self.number, self._loader, self._step = number, loader, step

    def __len__(self) -> int:
        """As many on every rank."""
        loader = self._loader
        return 0 if not loader.steps else loader.items // loader.steps * (loader.steps - self._step)

    def __iter__(self) -> Iterator[Minibatch]:
        loop = self._loader._loop((self.number, self._step))
        with self._loader._interrupts:
            for _ in range(len(self)):
                yield self._loader._take(loop)
            self._loader._end(self.number)


def _module(arrays: str | None, pinned: bool) -> Any:
    """torch, where its tensors are asked for, or it is in use and nothing is said."""
    if arrays not in (None, "torch", "numpy"):
        raise DataError(f"arrays={arrays!r} is not 'torch', 'numpy' or None")
    if arrays == "numpy" or (arrays is None and not pinned and "torch" not in sys.modules):
        if pinned:
            raise DataError("pin_memory=True is of torch's tensors: arrays='torch'")
        return None
    try:
        import torch
    except ImportError:
        raise DataError("torch is not installed: arrays='numpy'") from None
    if pinned and not torch.cuda.is_available():
        raise DataError("pin_memory=True needs a GPU that torch can use: torch.cuda.is_available()")
    return torch


def _integers(name: str, given: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    found = np.asarray(given)
    if found.ndim != 1 or (len(found) and found.dtype.kind not in "iu"):
        raise DataError(f"{name}: a list of integers, not {found.dtype} {list(found.shape)}")
    return np.ascontiguousarray(found, np.int64)


def _digest_of(about: dict[str, Any], what: dict[str, Any]) -> str:
    """Of what a loader's batches depend on, beside the graph."""
    config = {}
    for section, values in about["config"].items():
        for key, value in values.items():
            drawn = section == "sampler" and key != "bulk" or key.startswith("negatives")
            if drawn or key in DRAWN_BY.get(section, ()):
                config[f"{section}.{key}"] = value
    text = json.dumps([config, what], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]

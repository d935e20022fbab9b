"""A job in this process, on this rank: opened from an input file and keys, as `espalier train`
is."""

from __future__ import annotations

import ctypes
import itertools
import json
import math
import os
import sys
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _declared
from .abort import abort_on_errors, end_all
from .errors import DataError
from .library import AGREED, check, library, options
from .loader import Loader, _integers

Path = str | os.PathLike[str]


def open(
    config: Path | None = None, *, text: str | None = None, comm: Any = None, **keys: Any
) -> Job:
    """Opens a job, on all ranks of `comm`, a communicator of mpi4py, or else of `mpirun`.

    `config` is an input file, `text` the text of one; keys count more than either:
    `espalier.open("job.toml", train={"epochs": 5})` or `**{"train.epochs": 5}`. Writes no file."""
    from .process_group import refuse_torchrun, world

    of = library()
    if comm is None:
        refuse_torchrun(of)
    words = [word.encode() for word in key_words(keys)]
    asked = options(_declared.espalier_open_options, key_count=len(words))
    asked.keys = (ctypes.c_char_p * len(words))(*words)
    asked.config_path = None if config is None else os.fsencode(config)
    asked.config_text = None if text is None else text.encode()
    if comm is not None:
        asked.has_communicator, asked.communicator = 1, comm.py2f()
    if comm is not None or "mpi4py.MPI" in sys.modules:
        from mpi4py import MPI

        asked.mpi_library = MPI.Get_library_version().encode()
    handle = ctypes.c_void_p()
    code = of.espalier_open(ctypes.byref(asked), ctypes.byref(handle))
    rank, ranks = world() if comm is None else (comm.rank, comm.size)
    if ranks > 1:
        abort_on_errors(of, rank)
    check(code)
    return Job(handle)


def key_words(keys: Mapping[str, Any], within: str = "") -> Iterator[str]:
    """Keys as on the command line, of sections as of names with a dot."""
    for name, value in keys.items():
        if isinstance(value, Mapping):
            yield from key_words(value, f"{within}{name}.")
        elif "." not in within + name:
            raise DataError(f'{name}={value!r}: a key has its section: train={{"epochs": 5}}')
        else:
            yield f"{within}{name}={toml_of(name, value)}"


def toml_of(name: str, value: Any) -> str:
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if hasattr(value, "tolist"):  # of NumPy
        value = value.tolist()
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        raise DataError(f"{name}={value!r}: neither a number nor a text nor a list") from None


@dataclass
class EpochResult:
    """What an epoch came to: its mean loss, and the task's metric where it was evaluated."""

    epoch: int
    loss: float | None
    train: float | None
    valid: float | None
    test: float | None
    best_epoch: int
    digest: int  # of the samples


class Job:
    """Made by `espalier.open`. All functions are collective: every rank calls them alike.

    `with espalier.open(..) as job:` closes it and, where a rank raises what others do not, ends
    them too, so that none waits."""

    def __init__(self, handle: ctypes.c_void_p) -> None:
        self._handle, self._process, self.library = handle, os.getpid(), library()
        self.about: dict[str, Any] = json.loads(self.library.espalier_describe(handle))
        self.rank, self.ranks = int(self.about["rank"]), int(self.about["ranks"])
        self.weights = Weights(self)
        self._loaders: dict[int, ctypes.c_void_p] = {}  # open ones, numbered alike on all ranks
        self._dropped: set[int] = set()  # those that nobody on this rank has any more
        self._numbers = itertools.count()
        _open_jobs.append(self)
        self.lent: list[Any] = []  # what the library calls until it is closed
        self._warned = 0
        self._warn()

    @property
    def device(self) -> str:
        """Where it computes, as torch names it: "cpu", "cuda:0"."""
        return "cpu" if self.about["gpu"] is None else f"cuda:{self.about['gpu']}"

    @property
    def closed(self) -> bool:
        return not self._handle

    def use(self, other_process: bool = False) -> ctypes.c_void_p:
        """The handle, where it may be used."""
        if other_process or os.getpid() != self._process:
            raise DataError(
                "a job lives in the process that opened it, and this is another, as workers of a "
                "DataLoader are: num_workers=0; the library itself fetches ahead"
            )
        if self.closed:
            raise DataError("this job is closed")
        return self._handle

    def __getstate__(self) -> Any:
        self.use(other_process=True)

    def call(self, name: str, *arguments: Any) -> int:
        return check(getattr(self.library, f"espalier_{name}")(self.use(), *arguments))

    def close(self) -> None:
        """Batches that were drawn stay."""
        if not self.closed:
            handle = self.use()
            self._handle = ctypes.c_void_p()
            _open_jobs.remove(self)
            check(self.library.espalier_close(handle))

    def __enter__(self) -> Job:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if self.closed or os.getpid() != self._process:
            return
        quiet = isinstance(error, SystemExit) and not error.code
        if self.ranks > 1 and error is not None and not quiet and not hasattr(error, AGREED):
            end_all(self.library, error)
        self.close()

    def loader(self, epochs: int | None = None, **how: Any) -> Loader:
        """The minibatches that `espalier train` draws, of train.epochs epochs or of so many; or of
        `split="test"`, or `vertices=[..]`, the same on all ranks, each once and in order.

        `fanout`: next to the seeds first, -1 whole rows, else the config's; `batch_size`: else the
        config's; `ahead`: steps that are fetched before they are asked for, else
        run.prefetch_steps; `arrays`: "torch", "numpy", or None, torch's where torch is imported;
        `pin_memory=True`: features are written to memory that torch pinned, and other arrays are
        copied there. Where the job computes on a GPU, torch's are there."""
        self._sweep()
        return Loader(self, epochs, **how)

    def _warn(self) -> None:
        found = json.loads(self.library.espalier_describe(self.use()))["warnings"]
        for words in found[self._warned :]:
            warnings.warn(words, DataWarning, stacklevel=4)
        self._warned = len(found)

    def add_loader(self, loader: Loader, handle: ctypes.c_void_p) -> int:
        """Until it is closed, or dropped on every rank, or the job is closed."""
        self._warn()
        number = next(self._numbers)
        self._loaders[number] = handle
        weakref.finalize(loader, self._dropped.add, number)
        return number

    def close_loader(self, number: int) -> None:
        handle = self._loaders.pop(number, None)
        if handle is not None and not self.closed:
            self.use()
            check(self.library.espalier_loader_close(handle))

    def _sweep(self) -> None:
        """Closes loaders that no rank has any more: ranks drop them at times of their own."""
        numbers = list(self._loaders)
        if numbers:
            gone = self.sum([number in self._dropped for number in numbers])
            for number in np.array(numbers)[gone == self.ranks].tolist():
                self.close_loader(number)

    def train_step(self) -> bool:
        """A step of the job's own network; False: the epoch's steps are done."""
        more = ctypes.c_int32()
        return self.call("train_step", ctypes.byref(more)) != _declared.END and bool(more)

    def train_epoch(self) -> EpochResult | None:
        """The steps that are left of an epoch, and evaluation where it is due; None behind the last
        epoch."""
        while self.train_step():  # signals are served between steps
            pass
        result = options(_declared.espalier_epoch)
        ends = self.call("train_epoch", ctypes.byref(result)) == _declared.END
        return None if ends else _result_of(result)

    def train(self) -> list[EpochResult]:
        """All epochs that are left; the network then has its best weights."""
        found = list(iter(self.train_epoch, None))
        self.call("train_end")
        return [of for of in found if of is not None]

    def evaluate(self) -> dict[str, float | None]:
        """The task's metric (train.metric) of "train", "valid" and "test", by whole rows."""
        result = options(_declared.espalier_epoch)
        self.call("evaluate", ctypes.byref(result))
        return {name: _number(getattr(result, name)) for name in ("train", "valid", "test")}

    def infer(self, vertices: Any) -> NDArray[np.float32]:
        """What the network gives for these vertices, each rank its own: [vertices, outputs]."""
        ids = _integers("vertices", vertices)
        found = np.empty((len(ids), self.about["outputs"]), np.float32)
        self.call("infer", ids.ctypes.data, len(ids), found.ctypes.data)
        return found

    def sum(self, values: Any) -> Any:
        """Of all ranks: a float, or an array (float64) of as many."""
        found = np.array(values, np.float64)
        self.call("sum", found.ctypes.data, found.size)
        return float(found) if found.ndim == 0 else found


class Weights(Mapping[str, NDArray[np.float32]]):
    """The network's tensors by the names that weights.h5 has: arrays [in, out], the same on every
    rank. `job.weights[name] = array` sets one; do it on every rank."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._found: dict[str, tuple[int, tuple[int, int]]] | None = None

    @property
    def _places(self) -> dict[str, tuple[int, tuple[int, int]]]:
        if self._found is None:
            found: dict[str, tuple[int, tuple[int, int]]] = {}
            tensor = options(_declared.espalier_tensor)
            while self._job.call("tensor_at", len(found), ctypes.byref(tensor)) != _declared.END:
                name = tensor.name.decode().removeprefix("weights/").removeprefix("statistics/")
                found[name] = (len(found), (tensor.rows, tensor.columns))
            self._found = found
        return self._found

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        place, shape = self._places[name]
        found = np.empty(shape, np.float32)
        self._job.call("tensor_read", place, found.ctypes.data)
        return found

    def __setitem__(self, name: str, values: Any) -> None:
        place, shape = self._places[name]
        given = values.detach().cpu() if hasattr(values, "detach") else values
        array = np.ascontiguousarray(given, np.float32)
        if array.shape != shape:
            raise DataError(f"{name} is {list(shape)}, not {list(array.shape)}")
        self._job.call("tensor_write", place, array.ctypes.data)


_open_jobs: list[Job] = []


def the_job() -> Job | None:
    """The one that was opened last and is open."""
    return _open_jobs[-1] if _open_jobs else None


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def _result_of(of: Any) -> EpochResult:
    loss, train, valid, test = map(_number, (of.loss, of.train, of.valid, of.test))
    return EpochResult(of.epoch, loss, train, valid, test, of.best_epoch, of.digest)

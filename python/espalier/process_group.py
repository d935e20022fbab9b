"""torch.distributed over the ranks of a job: MPI tells them where to meet."""

from __future__ import annotations

import ctypes
import os
import socket
import sys
import zlib
from typing import Any

import numpy as np

from .errors import DataError
from .job import Job, the_job
from .library import check, library


def world() -> tuple[int, int]:
    """(rank, ranks) of this process among those of `mpirun`. Collective, if MPI is not started."""
    rank, ranks = ctypes.c_int(), ctypes.c_int()
    refuse_torchrun(library())
    check(library().espalier_world(ctypes.byref(rank), ctypes.byref(ranks)))
    return rank.value, ranks.value


def refuse_torchrun(of: Any) -> None:
    """Of many processes that torchrun started each would be the one rank of a job of its own."""
    asked = os.environ.get("WORLD_SIZE", "1")
    if asked.isdigit() and int(asked) > 1 and not of.espalier_is_launched():
        words = " ".join(["mpirun", "--bind-to", "none", "-np", asked, "python", *sys.argv])
        raise DataError(
            f"WORLD_SIZE={asked} of torchrun, and MPI has one rank here: start them by `{words}`"
        )


def init_process_group(backend: str | None = None, job: Job | None = None, **options: Any) -> None:
    """torch.distributed.init_process_group for the ranks of `job`, by default the one that is open.

    Sets RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT. `backend`: else nccl where each
    rank of a machine has a GPU, which becomes its current device, and gloo elsewhere. `options` go
    to torch's function. Collective."""
    job = job or the_job()
    if job is None:
        raise DataError("open a job before: job = espalier.open(..), whose ranks are meant")
    try:
        import torch
        from torch import distributed
    except ImportError:
        raise DataError("torch is not installed") from None
    hosts = _of_all(job, [zlib.crc32(socket.gethostname().encode())])[:, 0]
    local = np.flatnonzero(hosts == hosts[job.rank]).tolist()
    own, here = local.index(job.rank), len(local)
    on_gpus = bool(job.sum(torch.cuda.device_count() >= here) == job.ranks)
    backend = backend or ("nccl" if on_gpus else "gloo")
    if on_gpus and "nccl" in backend:
        torch.cuda.set_device(own if job.about["gpu"] is None else job.about["gpu"])

    alone = (hosts == hosts[0]).all()
    store = None
    if job.rank == 0:  # it listens before others are told where
        store = _store("0.0.0.0", 0, job.ranks, True, wait_for_workers=False)
    told = [0.0] * 5 if store is None else [*(_address(alone)), float(store.port)]
    *address, port = (int(number) for number in job.sum(told))
    host = ".".join(map(str, address))
    if store is None:
        store = _store(host, port, job.ranks, False)
    os.environ.update(
        RANK=str(job.rank),
        WORLD_SIZE=str(job.ranks),
        LOCAL_RANK=str(own),
        LOCAL_WORLD_SIZE=str(here),
        MASTER_ADDR=host,
        MASTER_PORT=str(port),
    )
    if alone and backend == "gloo":  # a name that is not known to the machine itself is no obstacle
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    distributed.init_process_group(
        backend, store=store, rank=job.rank, world_size=job.ranks, **options
    )


def _store(*arguments: Any, **options: Any) -> Any:
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    return TCPStore(*arguments, **options)


def _of_all(job: Job, numbers: list[float]) -> np.ndarray[Any, Any]:
    """[ranks, numbers]: what each rank gave."""
    found = np.zeros((job.ranks, len(numbers)))
    found[job.rank] = numbers
    return np.asarray(job.sum(found))


def _address(alone: bool) -> list[float]:
    """Of this machine, as others see it: MASTER_ADDR where it is set, else where its packets leave;
    none is sent."""
    host = "127.0.0.1"
    if named := os.environ.get("MASTER_ADDR"):
        host = socket.gethostbyname(named)
    elif not alone:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(("192.0.2.1", 9))  # RFC 5737: nobody's
                host = probe.getsockname()[0]
            except OSError:
                host = socket.gethostbyname(socket.gethostname())
    return [float(number) for number in host.split(".")]

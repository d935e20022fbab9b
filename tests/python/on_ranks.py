"""What the tests of jobs do on every rank of one: `python3 -m tests.python.on_ranks NAME FOLDER ..`
calls NAME(FOLDER, ..), of the job FOLDER/job.toml, and leaves what it gives in
FOLDER/NAME-RANK.pickle."""

import contextlib
import ctypes
import itertools
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import time
import types
import warnings

import numpy as np

from tests.launcher import LAUNCHER

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import espalier  # noqa: E402
from espalier import _declared  # noqa: E402
from espalier.library import check, options  # noqa: E402

ARRAYS = {"arrays": "numpy"}


def open_job(folder):
    return espalier.open(pathlib.Path(folder) / "job.toml")


def examples(batch):
    """What a batch's losses are summed over."""
    if batch.links is not None:
        return len(batch.links.heads)
    return int((batch.y >= 0).sum() if batch.y.ndim == 1 else (batch.y != 255).sum())


def draw(folder):
    """All batches of two epochs, kept in a list, and what is said of them."""
    with open_job(folder) as job:
        loader = job.loader(epochs=2, **ARRAYS)
        held = list(loader)
        alone = [(of.vertices, of.blocks[0].indices) for of in loader]  # the batches have gone
        scaled = np.zeros((2, loader.steps))
        for of in held:
            scaled[of.epoch - 1, of.step] += of.scale * examples(of)
        return {
            "batches": held,
            "len": len(loader),
            "facts": (loader.batches, loader.steps, loader.batches_per_step, loader.items),
            "digests": [sum(of.digest for of in held if of.epoch == k) for k in (1, 2)],
            "scaled": job.sum(scaled),
            "alone": all(
                np.array_equal(vertices, of.vertices)
                and np.array_equal(indices, of.blocks[0].indices)
                for (vertices, indices), of in zip(alone, held, strict=True)
            ),
        }


def loops(folder):
    """Loops that end early, begin again, and go on from the states of earlier runs of this."""
    with open_job(folder) as job:
        for _ in range(5):
            job.loader(epochs=1, **ARRAYS)
        loader, other = job.loader(epochs=2, **ARRAYS), job.loader(epochs=1, ahead=0, **ARRAYS)
        opened = len(job._loaders)
        places = []
        for epoch in loader.epochs():
            places.append([])
            for batch in epoch:
                places[-1].append((batch.epoch, batch.step))
                if epoch.number == 1 and batch.ends_step:
                    break
        for batch in loader:
            if batch.ends_step and (batch.epoch, batch.step) == (2, 0):
                break
        state = loader.state_dict()
        found = {"places": places, "second": list(other), "whole": list(loader), "rest": []}
        found["opened"] = opened
        for path in sorted(pathlib.Path(folder).glob("state-*")):
            loader.load_state_dict(pickle.loads(path.read_bytes()))
            found["rest"].append(list(loader))
        if job.rank == 0:
            (pathlib.Path(folder) / f"state-{job.ranks}").write_bytes(pickle.dumps(state))
        return found


def each_once(folder):
    """Every vertex of splits, one of them by more layers than the job's, of a list and of none, by
    whole rows."""
    with open_job(folder) as job:
        whole = {"fanout": [-1, -1], "batch_size": 4, **ARRAYS}
        asked = {
            "valid": {"split": "valid"},
            "train": {"split": "train", "fanout": [-1, -1, -1]},
            "given": {"vertices": [7, 3, 1, 49, 0]},
            "none": {"vertices": []},
        }
        return {name: list(job.loader(**{**whole, **of})) for name, of in asked.items()}


def communicators(folder):
    """Two jobs at once, on all ranks and on half of them, of communicators of mpi4py."""
    from mpi4py import MPI

    world, config = MPI.COMM_WORLD, pathlib.Path(folder) / "job.toml"
    half = world.Split(world.rank % 2, world.rank)
    with espalier.open(config, comm=world) as all_of, espalier.open(config, comm=half) as own:
        digests = [0, 0]
        loaders = [iter(job.loader(epochs=1, **ARRAYS)) for job in (all_of, own)]
        for pair in itertools.zip_longest(*loaders):  # own has more items
            digests = [sum_of + (of.digest if of else 0) for sum_of, of in zip(digests, pair)]
        ranks = (all_of.rank, all_of.ranks, own.rank, own.ranks)
        return {"ranks": ranks, "digests": digests}


def without_threads(folder):
    """Batches where MPI lets one thread speak, and what is warned of."""
    import mpi4py

    mpi4py.rc.thread_level = "funneled"
    import mpi4py.MPI

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        return {**draw(folder), "said": [str(of.message) for of in said]}


class Claimed:
    """In place of torch's tensor on a GPU: it says what it was made of, and nobody reads it."""

    def __init__(self, place, device):
        self.place, self.device, self.made_of = place, device, place.__cuda_array_interface__
        self.shape = self.made_of["shape"]

    def __getitem__(self, part):
        return range(self.shape[0])[part] if isinstance(part, slice) else self

    def __lt__(self, bound):
        return self

    def long(self):
        return self


class Moved:
    """Of what the host had, and of empty arrays."""

    def __init__(self, array):
        self.array = array

    def to(self, device):
        return self

    def __getitem__(self, part):
        return Moved(self.array[part])

    def __lt__(self, bound):
        return self

    def long(self):
        return self


def claimed(folder):
    """Batches on a GPU as torch is given them, by a stand-in for it; of each the digest, and of its
    arrays pointer, shape and kind."""
    torch = types.SimpleNamespace(
        device=lambda kind, number: f"{kind}:{number}",
        cuda=types.SimpleNamespace(
            is_available=lambda: True,
            current_stream=lambda device: types.SimpleNamespace(cuda_stream=0),
        ),
        as_tensor=Claimed,
        from_numpy=Moved,
        where=lambda condition, one, other: other,
    )
    sys.modules["torch"] = torch
    with open_job(folder) as job:
        found = []
        for batch in job.loader(epochs=1, arrays="torch"):
            arrays = [batch.vertices, batch.x, batch.y]
            for block in batch.blocks:
                arrays += [block.indptr, block.indices, block.values]
            kinds = [
                (of.shape, of.made_of["typestr"], of.made_of["data"][0] != 0, of.device)
                for of in arrays
                if isinstance(of, Claimed)
            ]
            found.append((batch.digest, len(arrays), kinds))
        return found


class HostTensor(np.ndarray):
    """In place of torch's tensor in memory of the host."""

    def data_ptr(self):
        return self.ctypes.data

    def pin_memory(self):
        return self.copy()

    def long(self):
        return self.astype(np.int64)


def pinned(folder):
    """Batches whose features a stand-in for torch has memory for; how many blocks of it are in use
    while batches are, and behind them."""
    sys.modules["torch"] = types.SimpleNamespace(
        cuda=types.SimpleNamespace(is_available=lambda: True),
        uint8=np.uint8,
        float32=np.float32,
        empty=lambda size, dtype, pin_memory: np.empty(size, dtype).view(HostTensor),
        from_numpy=lambda array: array.view(HostTensor),
        where=lambda condition, one, other: np.where(condition, one, other),
    )
    with open_job(folder) as job:
        loader = job.loader(epochs=1, arrays="torch", pin_memory=True)
        batches = list(loader)
        blocks = loader._maker.pinned.blocks
        used = len(blocks)
        lie_there = all(
            any(np.shares_memory(block, batch.x) for block in blocks.values()) for batch in batches
        )
        found = [(batch.vertices.tolist(), batch.x.tolist()) for batch in batches]
        del batches
        return found, used, lie_there, len(blocks)


def interrupted_together(folder):
    """Rank 1 is interrupted within a step; where each rank stops, where it would go on, and what the
    rest is then."""
    with open_job(folder) as job:
        loader = job.loader(epochs=2, ahead=1, **ARRAYS)
        seen = []
        try:
            for batch in loader:
                seen.append(batch)
                if len(seen) == 2 and job.rank == 1:
                    os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            state = loader.state_dict()
            restored = signal.getsignal(signal.SIGINT) is signal.default_int_handler
            loader.load_state_dict(state)
            return {"seen": seen, "state": state, "rest": list(loader), "restored": restored}


def interrupted_at_the_end(folder):
    """Rank 1 is interrupted at its last batch, when no step is left to be drawn."""
    with open_job(folder) as job:
        loader, seen, said = job.loader(epochs=2, **ARRAYS), [], False
        try:
            for batch in loader:
                seen.append(batch)
                if len(seen) == len(loader) and job.rank == 1:
                    os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            said = True
        restored = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        state, again = loader.state_dict(), list(loader)
        return {"seen": seen, "said": said, "state": state, "restored": restored, "again": again}


def own_network(folder):
    """The job's own network, trained and asked."""
    trained = espalier.train(pathlib.Path(folder) / "job.toml", train={"epochs": 1})
    with open_job(folder) as job:
        epochs = job.train()
        found = {"epochs": epochs, "weights": dict(job.weights), "evaluated": job.evaluate()}
        found["trained"], found["device"] = trained["epochs"], job.device
        asked = 7 * np.arange(job.rank, 50, job.ranks) % 50  # owners in turn, in no order
        found["rows"] = job.infer(asked)
        for name, values in found["weights"].items():
            job.weights[name] = 0 * values
        found["without"] = job.infer([3] if job.rank == 0 else [])
        return found


def fails(folder, how):
    """One rank raises what others do not, or all do."""
    if how == "config":
        espalier.open(pathlib.Path(folder) / "job.toml", model={"kind": "nothing"})
    job = open_job(folder)
    if how == "interrupted":
        loader = job.loader(**ARRAYS)
        if job.rank == 1:
            print("rank 1 sleeps", flush=True)
            time.sleep(100)
        list(loader)
    if how == "left":  # interrupted in a loop that it leaves
        for _ in job.loader(**ARRAYS):
            if job.rank == 1:
                os.kill(os.getpid(), signal.SIGINT)
            break
        time.sleep(100)
    if how == "agreed":
        with job:
            job.loader(split="nowhere")
    if how == "with":
        with job:
            if job.rank == 1:
                raise KeyError("of one rank")
            list(job.loader(**ARRAYS))
    if how == "bare" and job.rank == 1:
        raise KeyError("of one rank")
    list(job.loader(**ARRAYS))


def network(torch, *widths):
    """Of each layer a matrix for the row and one for the mean of what was drawn."""

    class Sage(torch.nn.Module):
        def __init__(self):
            super().__init__()
            pairs = zip(widths, widths[1:])
            self.layers = torch.nn.ModuleList(torch.nn.Linear(2 * a, b) for a, b in pairs)

        def forward(self, x, blocks):
            for k, (layer, block) in enumerate(zip(self.layers, blocks, strict=True)):
                x = layer(torch.cat([x[: block.shape[0]], block @ x], 1))
                x = x if k + 1 == len(self.layers) else x.relu()
            return x

    torch.manual_seed(5)
    return Sage()


def mean(torch, block, x):
    source, target = block.edge_index
    found = torch.zeros(block.shape[0], x.shape[1])
    return found.index_add(0, target, block.values[:, None] * x[source])


def products_are_right(torch, block):
    """block @ x, its gradient, and the same of NumPy, beside a sum over entries."""
    x = torch.rand(block.shape[1], 3, requires_grad=True)
    weight = torch.rand(block.shape[0], 3)
    gradients, made = [], (block @ x, mean(torch, block, x))
    for of in made:
        gradients.append(torch.autograd.grad((of * weight).sum(), x)[0])
    plain = espalier.Block(
        *(of.numpy() for of in (block.indptr, block.indices, block.values)), block.shape
    )
    close = np.allclose(plain @ x.detach().numpy(), made[1].detach(), atol=1e-6)
    return close and torch.allclose(*made, atol=1e-6) and torch.allclose(*gradients, atol=1e-6)


def own_model(folder):
    """A network under DistributedDataParallel: the loss of each epoch, and rows of the valid split."""
    import torch

    torch.set_num_threads(1)
    with open_job(folder) as job:
        espalier.init_process_group()
        model = torch.nn.parallel.DistributedDataParallel(network(torch, 6, 8, 3))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        criterion = torch.nn.CrossEntropyLoss(reduction="sum")
        loader = job.loader(epochs=10)
        losses = []
        for epoch in loader.epochs():
            total = 0.0
            for batch in epoch:
                with contextlib.nullcontext() if batch.ends_step else model.no_sync():
                    loss = criterion(model(batch.x, batch.blocks), batch.y) * batch.scale
                    loss.backward()
                total += loss.item()
                if batch.ends_step:
                    optimizer.step()
                    optimizer.zero_grad()
            losses.append(job.sum(total) / job.ranks / loader.steps)
        rows = np.zeros((50, 3))
        with torch.no_grad():
            for batch in job.loader(split="valid", fanout=[-1, -1], batch_size=2):
                rows[batch.seeds] = model.module(batch.x, batch.blocks)
        found = {
            "losses": losses,
            "rows": job.sum(rows),
            "ranks": (torch.distributed.get_world_size(), os.environ["WORLD_SIZE"]),
        }
        torch.distributed.destroy_process_group()
        return found


def tensors(folder):
    """Kinds of tensors, and whether they are the library's memory."""
    import torch

    with open_job(folder) as job:
        batch, *others = job.loader()
        view = options(_declared.espalier_batch_view)
        check(job.library.espalier_batch_look(batch.memory.batch, ctypes.byref(view)))
        ours = [batch.x, batch.vertices, batch.blocks[0].indices, batch.blocks[1].values]
        theirs = [view.tables[0].data, view.vertices, view.blocks[0].indices, view.blocks[1].values]
        return {
            "kinds": [str(of.dtype) for of in (*ours, batch.y)],
            "shared": [of.data_ptr() for of in ours] == theirs,
            "dlpack": np.from_dlpack(batch.x).ctypes.data == theirs[0],
            "moved": batch.to(torch.device("cpu")).x.data_ptr() == theirs[0],
            "y": batch.y.tolist(),
            "products": [products_are_right(torch, block) for block in batch.blocks],
        }


def in_others(folder, which):
    """Of each batch whether PyTorch Geometric's or DGL's form of it is what its blocks say."""
    import torch

    with open_job(folder) as job:
        loader = job.loader(arrays="torch")
        return [globals()[which](torch, batch) for batch in loader]


def edges_of(batch, block):
    """{(source, target, relation)} by ids of the graph file."""
    source, target = batch.vertices[block.edge_index].tolist()
    return set(
        zip(
            source,
            target,
            [0] * len(source) if block.relations is None else block.relations.tolist(),
        )
    )


def in_pyg(torch, batch):
    data, layers = batch.to_pyg(), batch.to_pyg(layers=True)
    union = set().union(*(edges_of(batch, block) for block in batch.blocks))
    if batch.types is not None:
        found = set()
        for k, name in enumerate(batch.about["relations"]):
            source, middle, target = name.split(".")
            ends = data[source, middle, target].edge_index
            pairs = zip(data[source].n_id[ends[0]].tolist(), data[target].n_id[ends[1]].tolist())
            found |= {(*pair, k) for pair in pairs}
        rows = all(torch.equal(data[kind].x, rows) for kind, rows in batch.x.items())
        seeds = data["a"].n_id[: data["a"].batch_size]
        return found == union and rows and torch.equal(seeds, batch.seeds)
    from torch_geometric.nn import SAGEConv

    edges = [(*pair, 0) for pair in zip(*data.n_id[data.edge_index].tolist())]
    conv, x = SAGEConv(batch.x.shape[1], 4), batch.x
    own = conv.lin_l(mean(torch, batch.blocks[0], x)) + conv.lin_r(x[: batch.blocks[0].shape[0]])
    same = all(
        torch.allclose(conv((x, x[: layers[0].size[1]]), adjacency), own, atol=1e-6)
        for adjacency in (layers[0].edge_index, batch.blocks[0].adj_t)
    )
    once = len(edges) == len(union) and set(edges) == union
    return once and same and data.x is x and torch.equal(data.n_id[: data.batch_size], batch.seeds)


def in_dgl(torch, batch):
    import dgl
    import dgl.function as fn

    blocks = batch.to_dgl()
    if batch.types is not None:
        for block, own in zip(blocks, batch.blocks, strict=True):
            found = set()
            for k, name in enumerate(batch.about["relations"]):
                names = tuple(name.split("."))
                source, target = block.edges(etype=names)
                ids = block.srcdata[dgl.NID], block.dstdata[dgl.NID]
                pairs = zip(ids[0][names[0]][source].tolist(), ids[1][names[2]][target].tolist())
                found |= {(*pair, k) for pair in pairs}
            if found != edges_of(batch, own):
                return False
        return all(
            torch.equal(blocks[0].srcdata["feat"][kind], rows) for kind, rows in batch.x.items()
        )
    first, x = blocks[0], batch.x
    first.update_all(fn.u_mul_e("feat", "weight", "m"), fn.sum("m", "h"))
    return torch.allclose(first.dstdata["h"], mean(torch, batch.blocks[0], x), atol=1e-6)


def run_on(ranks, name, folder, *words, **options):
    """(exit code, what was printed, [what each rank gave])."""
    command = LAUNCHER.command(
        ranks, sys.executable, "-m", "tests.python.on_ranks", name, folder, *words
    )
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "cwd": ROOT}
    done = subprocess.run(command, timeout=200, check=False, **pipes, **options)
    paths = sorted(pathlib.Path(folder).glob(f"{name}-*.pickle"))
    found = [pickle.loads(path.read_bytes()) for path in paths]
    for path in paths:
        path.unlink()
    return done.returncode, done.stdout, found


def main(name, folder, *words):
    found = globals()[name](folder, *words)
    rank = os.environ.get(LAUNCHER.rank_variable, "0")
    (pathlib.Path(folder) / f"{name}-{rank}.pickle").write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])

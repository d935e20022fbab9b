"""What a minibatch is: of `Minibatches`, which reads folders, and of `Loader`, which draws. Arrays
are NumPy's, or tensors of torch where a loader gives these."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .errors import DataError

Array = Any  # of NumPy, or a tensor


@dataclass
class Block:
    """What a layer computes with: a sparse matrix, row i has the entries indptr[i] .. indptr[i +
    1]. Rows and columns are places in `Minibatch.vertices`, of which both are the first ones.
    `values`: those of the mean over what was drawn, or None where a network has no use for them.
    `relations`: of each entry a place in `about["relations"]`, where a network tells relations
    apart. `edge_features`: row k is that of the entry edge_entries[k], with model.edge_features."""

    indptr: Array  # int64 [rows + 1]
    indices: Array  # int32 [entries]
    values: Array | None  # float32 [entries]
    shape: tuple[int, int]
    relations: Array | None = None  # uint8 [entries]
    edge_entries: Array | None = None  # int32, ascending
    edge_features: Array | None = None  # float32

    @property
    def edge_index(self) -> Array:
        """[2, entries], int64: the column that an entry comes from, and the row that it goes to, as
        PyG has it. A copy."""
        rows: Array
        if isinstance(self.indptr, np.ndarray):
            rows = np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))
            return np.stack([self.indices.astype(np.int64), rows])
        import torch

        each = torch.arange(self.shape[0], device=self.indptr.device)
        rows = torch.repeat_interleave(each, self.indptr.diff())
        return torch.stack([self.indices.long(), rows])

    def __matmul__(self, x: Array) -> Array:
        """Block times rows x [columns, width]: the mean over what each row drew, where `values` are
        those. Of tensors autograd knows what it does with x."""
        if self.values is None:
            raise DataError("this block has no values to multiply by; edge_index has its entries")
        if isinstance(x, np.ndarray):
            source, target = self.edge_index
            found = np.zeros((self.shape[0], *x.shape[1:]), x.dtype)
            np.add.at(found, target, self.values[:, np.newaxis] * x[source])
            return found
        import torch

        if not len(self.indices):
            return x.new_zeros(self.shape[0], *x.shape[1:])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sparse CSR")
            values = torch.as_tensor(self.values).to(x.dtype)
            ends = torch.as_tensor(self.indptr), torch.as_tensor(self.indices).long()
            return torch.sparse_csr_tensor(*ends, values, self.shape) @ x

    @property
    def adj_t(self) -> Any:
        """The same as a sparse tensor of torch, CSR, of ones: what PyG's layers multiply by instead
        of gathering a row for each entry, `conv((x, x[:rows]), block.adj_t)`. Indices are
        copied."""
        import torch

        indptr, indices = (torch.as_tensor(of).long() for of in (self.indptr, self.indices))
        ones = torch.ones(len(indices), device=indices.device)
        return torch.sparse_csr_tensor(indptr, indices, ones, self.shape)


@dataclass
class Links:
    """The links of a batch and, of each, the vertices that it is told from. `heads` and `tails`
    [links] and `negative_heads` and `negative_tails` [links, negatives] are places in
    `Minibatch.seeds`, so rows of what a network makes of them; `relations` [links] are places in
    `about["link_relations"]`, all 0 where that is None. int32."""

    heads: Array
    tails: Array
    relations: Array
    negative_heads: Array
    negative_tails: Array


@dataclass(repr=False)
class Minibatch:
    """`vertices` are ids of the graph file, the seeds first; blocks go from the input to the
    output.

    `y`: labels of the seeds, int32 (-1: not to be learnt) or uint8 [seeds, labels] (255: unknown),
    or None; of torch the former are int64 with -100, which its losses leave out. `links`: what is
    to be learnt instead with train.task = "links". `x`: features of the vertices, where they were
    asked for. With types ids are those of the whole graph (`about["types"]` says where those of a
    type begin); `types` has the places in `vertices` of each type, and `x` the rows of
    vertices[types[name]], by name.

    A sum of losses times `scale` is this rank's part of the step's mean, as DistributedDataParallel
    averages it; `ends_step`: it is this rank's last of the step, when gradients are to be added up.
    A batch of a folder is a step of its own. `batch` is -1 of an item without seeds, which a rank
    has where a step's batches do not divide by the ranks."""

    epoch: int
    batch: int
    seeds: Array
    vertices: Array
    blocks: list[Block]
    y: Array | None
    x: Array | dict[str, Array] | None = None
    types: dict[str, Array] | None = None
    links: Links | None = None
    step: int = 0
    scale: float = 0.0
    ends_step: bool = True
    about: dict[str, Any] = field(default_factory=dict)  # of where it comes from
    memory: Any = field(default=None, compare=False)  # of a loader

    def __repr__(self) -> str:
        shapes = [block.shape for block in self.blocks]
        return (
            f"Minibatch(epoch={self.epoch}, step={self.step}, batch={self.batch}, "
            f"seeds={len(self.seeds)}, vertices={len(self.vertices)}, blocks={shapes})"
        )

    @property
    def digest(self) -> int | None:
        """Of a loader's batch: their sum over an epoch and all ranks, modulo 2^64, is the one that
        the program prints."""
        return None if self.memory is None else self.memory.digest()

    def to(self, device: Any, non_blocking: bool = False) -> Minibatch:
        """The same with torch's tensors on a device, as `Tensor.to`."""

        def moved(of: Any) -> Any:
            if isinstance(of, dict):
                return {name: moved(item) for name, item in of.items()}
            if isinstance(of, list):
                return [moved(item) for item in of]
            if isinstance(of, (Block, Links)):
                return replace(of, **{name: moved(item) for name, item in vars(of).items()})
            return of.to(device, non_blocking=non_blocking) if hasattr(of, "to") else of

        names = ("seeds", "vertices", "blocks", "y", "x", "types", "links")
        return replace(self, **{name: moved(getattr(self, name)) for name in names})

    def to_pyg(self, layers: bool = False) -> Any:
        """For PyTorch Geometric; the indices are copied, features are not.

        `Data` or, of a graph with types, `HeteroData`, as its NeighborLoader gives them: x, n_id,
        edge_index, batch_size, y, input_id, the seeds first. Its edges are those of all blocks,
        each once: layers that drew apart are seen as one graph. With layers=True what was drawn for
        each, from the input to the output, `(edge_index, size, edge_weight, edge_type, edge_attr)`:
        a layer is `conv((x, x[:size[1]]), edge_index)`."""
        from .to_others import layers_for_pyg, pyg_data

        return layers_for_pyg(self) if layers else pyg_data(self)

    def to_dgl(self) -> list[Any]:
        """DGL's blocks, from the input to the output; the indices are copied. Features are
        `blocks[0].srcdata["feat"]`, ids `srcdata[dgl.NID]`, values `edata["weight"]`."""
        from .to_others import dgl_blocks

        return dgl_blocks(self)

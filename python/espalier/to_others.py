"""A minibatch as PyTorch Geometric and DGL have it. Both want int64 ids, [2, entries], so indices
are copied; features of torch's kind are not.

Of a graph with types an entry is of a relation "source.name.target", places are counted within a
type, and those of the rows are the first of the columns' there, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .errors import DataError

if TYPE_CHECKING:
    from .minibatch import Block, Minibatch


class Layer(NamedTuple):
    """A bipartite graph: `size` has the numbers of sources and of targets, which are the first of
    the sources."""

    edge_index: Any
    size: tuple[int, int]
    edge_weight: Any
    edge_type: Any
    edge_attr: Any


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise DataError("torch is not installed; a batch has its arrays without it") from None
    return torch


def _tensor(values: Any) -> Any:
    return None if values is None else _torch().as_tensor(values)


def _ends(block: Block) -> Any:
    return _tensor(block.edge_index)


def _edge_attr(block: Block) -> Any:
    """A row for each entry, 0 where it has no features."""
    if block.edge_features is None:
        return None
    rows = _tensor(block.edge_features)
    whole = rows.new_zeros(len(block.indices), rows.shape[1])
    whole[_tensor(block.edge_entries).long()] = rows
    return whole


def layers_for_pyg(batch: Minibatch) -> list[Layer]:
    return [
        Layer(
            _ends(block),
            (block.shape[1], block.shape[0]),
            _tensor(block.values),
            None if block.relations is None else _tensor(block.relations).long(),
            _edge_attr(block),
        )
        for block in batch.blocks
    ]


def _union(batch: Minibatch) -> Any:
    """[3, entries]: source, target and relation of what any block has, once each."""
    torch = _torch()
    parts = []
    for block in batch.blocks:
        ends = _ends(block)
        kind = torch.zeros(ends.shape[1]) if block.relations is None else _tensor(block.relations)
        parts.append(torch.cat([ends, kind.long()[None]]))
    whole = torch.cat(parts, 1) if parts else torch.zeros((3, 0), dtype=torch.int64)
    return whole.unique(dim=1)


def pyg_data(batch: Minibatch) -> Any:
    try:
        from torch_geometric.data import Data, HeteroData  # type: ignore
    except ImportError:
        raise DataError("torch_geometric is not installed; layers=True does not need it") from None
    ends = _union(batch)
    seeds = {"batch_size": len(batch.seeds), "input_id": _tensor(batch.seeds)}
    if batch.y is not None:
        seeds["y"] = _tensor(batch.y)
    if batch.types is None:
        own = seeds if batch.x is None else {"x": _tensor(batch.x), **seeds}
        return Data(
            edge_index=ends[:2], n_id=_tensor(batch.vertices), num_nodes=len(batch.vertices), **own
        )
    data, places = HeteroData(), _Places(batch)
    for kind, of in batch.types.items():
        data[kind].n_id = _tensor(batch.vertices[of])
        data[kind].num_nodes = len(of)
        if batch.x is not None and kind in batch.x:
            data[kind].x = _tensor(batch.x[kind])
    of_seeds = places.kind_of(len(batch.seeds))
    if of_seeds is not None and batch.links is None:
        data[of_seeds].update(seeds)
    for names, index in places.by_relation(
        ends[:2], ends[2], all(b.relations is None for b in batch.blocks)
    ):
        data[names].edge_index = index[0]
    return data


class _Places:
    """Of each vertex of a batch the type, and its place within."""

    def __init__(self, batch: Minibatch) -> None:
        torch = _torch()
        assert batch.types is not None
        self.names, self.relations = list(batch.types), batch.about["relations"]
        self.target = batch.about["config"]["graph"]["target"]
        self.within = torch.zeros(len(batch.vertices), dtype=torch.int64)
        self.kind = torch.zeros(len(batch.vertices), dtype=torch.int64)
        for k, of in enumerate(batch.types.values()):
            at = _tensor(of)
            self.within[at], self.kind[at] = torch.arange(len(at)), k

    def kind_of(self, seeds: int) -> str | None:
        """The type of the seeds, if they have one."""
        kinds = self.kind[:seeds].unique().tolist()
        if not kinds:
            return str(self.target)
        return self.names[kinds[0]] if len(kinds) == 1 else None

    def counts(self, first: int) -> dict[str, int]:
        """How many of the first vertices are of each type."""
        found = self.kind[:first].bincount(minlength=len(self.names)).tolist()
        return dict(zip(self.names, found, strict=True))

    def by_relation(self, ends: Any, relation: Any, untold: bool) -> Any:
        """((source type, relation, target type), (ends within these, the entries' places))."""
        if untold and len(self.relations) > 1 and ends.shape[1]:
            raise DataError(
                "these blocks do not tell relations apart, as model.kind takes all for one; "
                "model.kind = rgcn, rgat or hgt does, or take to_pyg(layers=True)"
            )
        for k, name in enumerate(self.relations):
            of = (relation == k).nonzero()[:, 0]
            source, rest = name.split(".", 1)
            names = (source, *rest.rsplit(".", 1))
            yield names, (self.within[ends[:, of]], of)


def dgl_blocks(batch: Minibatch) -> list[Any]:
    try:
        import dgl  # type: ignore
    except ImportError:
        raise DataError("dgl is not installed; batch.blocks has the same as arrays") from None
    places = None if batch.types is None else _Places(batch)
    made = [_dgl_block(dgl, batch, block, places) for block in batch.blocks]
    if made and batch.x is not None:
        if batch.types is None:
            made[0].srcdata["feat"] = _tensor(batch.x)
        else:
            for kind, rows in batch.x.items():
                made[0].srcnodes[kind].data["feat"] = _tensor(rows)
    return made


def _dgl_block(dgl: Any, batch: Minibatch, block: Block, places: _Places | None) -> Any:
    ends, (rows, columns) = _ends(block), block.shape
    ids = _tensor(batch.vertices)
    attributes = {"weight": _tensor(block.values), "feat": _edge_attr(block)}
    attributes = {name: of for name, of in attributes.items() if of is not None}
    if places is None:
        made = dgl.create_block((ends[0], ends[1]), num_src_nodes=columns, num_dst_nodes=rows)
        made.srcdata[dgl.NID], made.dstdata[dgl.NID] = ids[:columns], ids[:rows]
        made.edata.update(attributes)
        return made
    untold = block.relations is None
    kinds = _torch().zeros(ends.shape[1]) if untold else _tensor(block.relations)
    found = dict(places.by_relation(ends, kinds, untold))
    made = dgl.create_block(
        {names: (index[0], index[1]) for names, (index, _) in found.items()},
        num_src_nodes=places.counts(columns),
        num_dst_nodes=places.counts(rows),
    )
    for first, nodes in ((columns, made.srcnodes), (rows, made.dstnodes)):
        for k, name in enumerate(places.names):
            nodes[name].data[dgl.NID] = ids[:first][places.kind[:first] == k]
    for names, (_, of) in found.items():
        for name, values in attributes.items():
            made.edges[names].data[name] = values[of]
    return made

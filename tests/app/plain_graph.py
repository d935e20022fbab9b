"""A graph as NumPy has it: what h5py finds in a graph file, vertices by type and edges by relation, and whether two are one graph."""

import dataclasses

import h5py
import numpy as np

SPLITS = ("train", "valid", "test")
PAIR = ("", "", "")  # the relation of a graph without types, whose type is ""


@dataclasses.dataclass
class Vertices:
    """`features` [n, f] (dense), `sparse`: are they sparse in the file? `labels` [n] or [n, C], nan: none. `splits` {(name or "", part): ids}."""
    count: int
    features: np.ndarray = None
    sparse: bool = False
    labels: np.ndarray = None
    names: list = None
    ids: list = None
    splits: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Edges:
    """Ascending by (target, source); ids count within a type."""
    sources: np.ndarray
    targets: np.ndarray
    weights: np.ndarray = None
    features: np.ndarray = None
    times: np.ndarray = None
    inverse: tuple = None

    def taken(self, places):
        parts = [of if of is None else of[places] for of in (self.sources, self.targets, self.weights, self.features, self.times)]
        return Edges(*parts, self.inverse)

    def sorted(self):
        return self.taken(np.lexsort((self.sources, self.targets)))


@dataclasses.dataclass
class PlainGraph:
    vertices: dict
    edges: dict

    @property
    def typed(self):
        return "" not in self.vertices

    @property
    def relations(self):
        """Those that are no inverse of an earlier one."""
        seen = []
        for name, edges in self.edges.items():
            if edges.inverse not in seen:
                seen.append(name)
        return {name: self.edges[name] for name in seen}

    def renumbered(self, places):
        """Vertex v of a graph without types becomes places[v]."""
        [vertices], edges = self.vertices.values(), self.edges[PAIR]
        old = np.argsort(places)
        moved = dataclasses.replace(
            vertices, features=None if vertices.features is None else vertices.features[old],
            labels=None if vertices.labels is None else vertices.labels[old], ids=None,
            splits={name: np.sort(places[of]) for name, of in vertices.splits.items()})
        turned = dataclasses.replace(edges, sources=places[edges.sources], targets=places[edges.targets]).sorted()
        return PlainGraph({"": moved}, {PAIR: turned})


def _texts(array):
    return [of.decode() if isinstance(of, bytes) else of for of in array.tolist()]


def _features(item):
    if isinstance(item, h5py.Dataset):
        return item[()]
    indptr, columns = item["indptr"][()], item["indices"][()]
    table = np.zeros((len(indptr) - 1, int(item["indices"].attrs["columns"])), np.float32)
    table[np.repeat(np.arange(len(table)), np.diff(indptr)), columns] = item["values"][()]
    return table


def _vertices(file, name, count):
    within = name + "/" if name else ""
    found = Vertices(count)
    if f"nodes/{within}features" in file:
        found.features = _features(file[f"nodes/{within}features"])
        found.sparse = isinstance(file[f"nodes/{within}features"], h5py.Group)
    if f"nodes/{within}labels" in file:
        labels = file[f"nodes/{within}labels"][()]
        found.labels = np.where(labels == (255 if labels.ndim == 2 and labels.dtype == np.uint8 else -1), np.nan, labels.astype(float))
    if f"labels/{within}names" in file:
        found.names = _texts(file[f"labels/{within}names"][()])
    if (place := f"types/{name}/ids" if name else "nodes/ids") in file:
        found.ids = _texts(file[place][()])
    for split in file.get(f"split/{name}".rstrip("/"), ()):
        item = file[f"split/{within}{split}"]
        if split in SPLITS:
            found.splits["", split] = item[()]
        elif isinstance(item, h5py.Group) and (name or set(item) <= set(SPLITS)):
            found.splits |= {(split, part): item[part][()] for part in item}
    found.splits = {of: ids for of, ids in found.splits.items() if len(ids)}
    return found


def read_graph(path):
    with h5py.File(path) as file:
        indptr, columns = file["graph/indptr"][()], file["graph/indices"][()].astype(np.int64)
        rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        weights = file["graph/weights"][()] if "graph/weights" in file else None
        if "types" not in file:
            edges = Edges(columns, rows, weights, *(file[of][()] if of in file else None for of in ("edges/features", "edges/time")))
            return PlainGraph({"": _vertices(file, "", len(indptr) - 1)}, {PAIR: edges.sorted()})
        types, offset = _texts(file["types/name"][()]), file["types/offset"][()]
        begins, kinds = (file[f"graph/segment_{of}"][()].astype(np.int64) for of in ("begin", "relation"))
        runs, row_of = np.diff(np.append(begins, len(columns))), np.repeat(np.arange(len(indptr) - 1), np.diff(file["graph/segment_ptr"][()]))
        assert (runs > 0).all() and np.array_equal(np.repeat(row_of, runs), rows), "a segment is empty, or of another row"
        assert (np.diff(kinds)[np.diff(row_of) == 0] > 0).all(), "segments of a row do not ascend"
        assert (np.delete(np.diff(columns), begins[1:] - 1) > 0).all(), "sources of a segment do not ascend, or stand there twice"
        relation_of = np.repeat(kinds, runs)
        names = [(types[s], name, types[t]) for name, s, t in zip(_texts(file["relations/name"][()]), file["relations/source"], file["relations/target"])]
        graph = PlainGraph({name: _vertices(file, name, int(end - begin)) for name, begin, end in zip(types, offset, offset[1:])}, {})
        for r, (name, inverse) in enumerate(zip(names, file["relations/inverse"][()])):
            own, within = relation_of == r, "edges/" + ".".join(name)
            parts = [file[f"{within}/{of}"][()] if f"{within}/{of}" in file else None for of in ("features", "time")]
            # A column of the matrix is the source's place among all vertices.
            graph.edges[name] = Edges(columns[own] - offset[types.index(name[0])], rows[own] - offset[types.index(name[2])],
                                      weights if weights is None else weights[own], *parts, names[inverse] if inverse >= 0 else None).sorted()
    return graph


def differences(found, wanted, holds):
    """In words, of the parts in `holds` that `wanted` has."""
    # write_graph puts types with features first.
    orders = (list(wanted.vertices), sorted(wanted.vertices, key=lambda name: wanted.vertices[name].features is None))
    if list(found.vertices) not in orders or set(found.edges) != set(wanted.edges):
        return [f"{list(found.vertices)}, {list(found.edges)} instead of {list(wanted.vertices)}, {list(wanted.edges)}"]
    words = []

    def compare(where, part, one, other):
        if other is None or part not in holds:
            return
        same = one is not None and np.shape(one) == np.shape(other) and np.array_equal(one, other, equal_nan=np.asarray(other).dtype.kind == "f")
        if not same:
            words.append(f"{where}: {part}: {one} instead of {other}")
    for name, of in wanted.vertices.items():
        got = found.vertices[name]
        if got.count != of.count:
            words.append(f"{name}: {got.count} vertices instead of {of.count}")
        for part in ("features", "labels", "names", "ids"):
            compare(name, part, getattr(got, part), getattr(of, part))
        if of.features is not None and got.features is not None:
            compare(name, "form", str(got.features.dtype), str(of.features.dtype))
            compare(name, "sparse", got.sparse, of.sparse)
        parts = {True: "named splits", False: "splits"}
        for split in {*got.splits, *of.splits}:
            compare(f"{name} {split}", parts[split[0] != ""], got.splits.get(split), of.splits.get(split, []))
    for name, of in wanted.edges.items():
        got = found.edges[name]
        for part in ("sources", "targets", "weights", "times"):
            compare(name, part if part in ("weights", "times") else "edges", getattr(got, part), getattr(of, part))
        compare(name, "edge features", got.features, of.features)
        compare(name, "inverses", got.inverse, of.inverse)
    return words

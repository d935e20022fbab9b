"""A plain graph written by NumPy in each format from which a graph file can be made, and the command that makes it.

A format is a function of (graph, folder, output), which writes files to the folder and either returns the arguments of `espalier` or makes the
graph file at `output` itself. FORMATS says which parts of a graph come back from each, and which graphs it takes.
"""

import csv
import dataclasses
import gzip
import io
import shutil
import subprocess
import warnings

import numpy as np
import scipy.sparse

import tests.python  # noqa: F401  # where the package is
from tests.app.plain_graph import PAIR, SPLITS

import espalier


# ---- text ----

def lines(table, form="%.9g"):
    """A line for each row, with commas; of nan "nan"."""
    text = io.StringIO()
    np.savetxt(text, table, fmt=form, delimiter=",")
    return text.getvalue()


def put(path, data, pack=bytes):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pack(data.encode() if isinstance(data, str) else data))


def in_some_form(array, random=np.random.default_rng(9)):
    """The same numbers in another width, byte order and layout; float16 stays that."""
    kinds = ("<f2", ">f2") if array.dtype == np.float16 else ("<f4", ">f4", "<f8", ">f8")
    if array.dtype.kind == "i":
        kinds = [kind for kind in ("<u2", ">i2", "<i4", ">i8") if array.max(initial=0) <= np.iinfo(kind).max]
    return random.choice([np.ascontiguousarray, np.asfortranarray])(array.astype(random.choice(kinds)))


def put_npy(path, array):
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, in_some_form(array))


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


def shuffled(edges, seed=5):
    """In another order than a graph file has them."""
    return edges.taken(np.random.default_rng(seed).permutation(len(edges.sources)))


def pairs(edges):
    return np.stack([edges.sources, edges.targets], axis=1)


def is_half(graph):
    return any(of.features is not None and of.features.dtype == np.float16 for of in graph.vertices.values())


# ---- the Open Graph Benchmark ----

def split_files(graph, folder):
    """As ogb's importer wants them; returns the names of the splits."""
    names = []
    for name, of in graph.vertices.items():
        for (split, part), ids in of.splits.items():
            split = split or "usual"
            names += [split] if split not in names else []
            put(folder / "split" / split / name / f"{part}.csv.gz", lines(ids[::-1], "%d"), gzip.compress)
            for other in SPLITS:
                path = folder / "split" / split / name / f"{other}.csv.gz"
                if (split.replace("usual", ""), other) not in of.splits:
                    put(path, "", gzip.compress)
    return names


def ogb_options(graph, folder, weighted):
    splits = split_files(graph, folder)
    inverses = any(edges.inverse for edges in graph.edges.values())
    return ["import", "ogb", folder, *(["--split", ",".join(splits)] if splits else []), *(["--edge-weight", 0] if weighted else []),
            *(["--half"] if is_half(graph) else []), *(["--no-inverse"] if graph.typed and not inverses else [])]


def edge_values(edges):
    """The weight, then the features; None where there is neither."""
    columns = [edges.weights[:, np.newaxis]] if edges.weights is not None else []
    columns += [edges.features] if edges.features is not None else []
    return np.concatenate(columns, axis=1) if columns else None


def ogb_csv(graph, folder, _):
    edges, [of] = shuffled(graph.edges[PAIR]), graph.vertices.values()
    raw = folder / "raw"
    put(raw / "num-node-list.csv.gz", f"{of.count}\n", gzip.compress)
    put(raw / "num-edge-list.csv", f"{len(edges.sources)}\n")
    put(raw / "edge.csv.gz", lines(pairs(edges), "%d"), gzip.compress)
    for name, table in (("edge-feat", edge_values(edges)), ("node-feat", of.features), ("node-label", of.labels)):
        if table is not None:
            put(raw / f"{name}.csv.gz", lines(table), gzip.compress)
    return ogb_options(graph, folder, edges.weights is not None)


def ogb_arrays(graph, folder, _):
    edges, [of] = shuffled(graph.edges[PAIR]), graph.vertices.values()
    put(folder / "raw" / "data.npz", "")
    arrays = {"edge_index": pairs(edges).T, "num_nodes_list": np.array([of.count]), "num_edges_list": np.array([len(edges.sources)]),
              "edge_feat": edge_values(edges), "node_feat": of.features}
    np.savez_compressed(folder / "raw" / "data.npz", **{name: in_some_form(array) for name, array in arrays.items() if array is not None})
    if of.labels is not None:
        np.savez(folder / "raw" / "node-label.npz", node_label=in_some_form(of.labels.reshape(of.count, -1)))
    return [option for option in ogb_options(graph, folder, edges.weights is not None) if option != "--half"]


def ogb_typed_csv(graph, folder, _):
    raw = folder / "raw"
    put(raw / "num-node-dict.csv.gz", ",".join(graph.vertices) + "\n" + ",".join(str(of.count) for of in graph.vertices.values()) + "\n", gzip.compress)
    put(raw / "triplet-type-list.csv", "".join(",".join(name) + "\n" for name in graph.relations))
    for name, edges in graph.relations.items():
        edges, within = shuffled(edges), raw / "relations" / "___".join(name)
        put(within / "edge.csv", lines(pairs(edges), "%d"))
        if edges.features is not None:
            put(within / "edge-feat.csv.gz", lines(edges.features), gzip.compress)
    for name, of in graph.vertices.items():
        for part, table in (("node-feat", of.features), ("node-label", of.labels)):
            if table is not None:
                put(raw / part / name / f"{part}.csv.gz", lines(table), gzip.compress)
    return ogb_options(graph, folder, False)


def ogb_typed_arrays(graph, folder, _):
    raw = folder / "raw"
    raw.mkdir()
    relations = {"___".join(name): shuffled(edges) for name, edges in graph.relations.items()}
    for file, arrays in (("num_nodes_dict", {name: np.array([of.count]) for name, of in graph.vertices.items()}),
                         ("edge_index_dict", {name: pairs(of).T for name, of in relations.items()}),
                         ("edge_feat", {name: of.features for name, of in relations.items() if of.features is not None}),
                         ("node_feat", {name: of.features for name, of in graph.vertices.items() if of.features is not None}),
                         ("node-label", {name: of.labels.reshape(of.count, -1) for name, of in graph.vertices.items() if of.labels is not None})):
        if arrays:
            np.savez(raw / f"{file}.npz", **{name: in_some_form(array) for name, array in arrays.items()})
    return [option for option in ogb_options(graph, folder, False) if option != "--half"]


def mag240m(graph, folder, _):
    for name, edges in graph.relations.items():
        put_npy(folder / "processed" / "___".join(name) / "edge_index.npy", pairs(shuffled(edges)).T)
    paper = graph.vertices["paper"]
    put_npy(folder / "processed/paper/node_feat.npy", paper.features)
    put_npy(folder / "processed/paper/node_label.npy", paper.labels.astype(np.float32))
    put(folder / "num-node-dict.csv", ",".join(graph.vertices) + "\n" + ",".join(str(of.count) for of in graph.vertices.values()) + "\n")
    for (_, part), ids in paper.splits.items():
        put_npy(folder / "split" / f"{part}.npy", ids)
    return ["import", "mag240m", folder]


# ---- edges in a file, vertices in arrays ----

def arrays_of_vertices(graph, folder, names=None):
    """`names`: what the splits call the vertices."""
    [of] = graph.vertices.values()
    arrays = {"features": of.features, "labels": of.labels} | {part: ids if names is None else names[ids] for (split, part), ids in of.splits.items() if not split}
    for part, array in arrays.items():
        if array is not None:
            put_npy(folder / f"{part}.npy", array)
    return [word for part, array in arrays.items() if array is not None for word in (f"--{part}", folder / f"{part}.npy")]


def edge_list(pack, between="\t"):
    def write(graph, folder, _):
        edges, [of] = shuffled(graph.edges[PAIR]), graph.vertices.values()
        columns = [edges.sources, edges.targets] + ([edges.weights] if edges.weights is not None else [])
        text = lines(np.stack(columns, axis=1).astype(float), "%.9g").replace(",", between)
        put(folder / "edges", "# from\tto\n" + text, pack)
        return ["import", "edges", folder / "edges", "--vertices", of.count, *(["--weights"] if edges.weights is not None else []),
                *arrays_of_vertices(graph, folder)]
    return write


def renumbered_list(graph, folder, _):
    edges, names = shuffled(graph.edges[PAIR]), np.array(graph.vertices[""].ids)
    put(folder / "edges.csv", lines(np.stack([names[edges.sources], names[edges.targets]], axis=1), "%d"))
    return ["import", "edges", folder / "edges.csv", "--renumber", *arrays_of_vertices(graph, folder, names)]


def both_ways(graph, folder, _):
    """One direction of each pair."""
    edges = shuffled(graph.edges[PAIR])
    put(folder / "edges.txt", lines(pairs(edges.taken(edges.sources <= edges.targets)), "%d").replace(",", " "))
    return ["import", "edges", folder / "edges.txt", "--vertices", graph.vertices[""].count, "--symmetrize", *arrays_of_vertices(graph, folder)]


def matrix_market(pack, symmetric=False):
    def write(graph, folder, _):
        edges, n = shuffled(graph.edges[PAIR]), graph.vertices[""].count
        edges = edges.taken(edges.sources <= edges.targets) if symmetric else edges
        weighted = edges.weights is not None
        columns = [edges.targets + 1, edges.sources + 1] + ([edges.weights] if weighted else [])  # row, column
        text = f"%%MatrixMarket matrix coordinate {'real' if weighted else 'pattern'} {'symmetric' if symmetric else 'general'}\n%\n"
        text += f"{n} {n} {len(edges.sources)}\n" + lines(np.stack(columns, axis=1).astype(float)).replace(",", " ")
        put(folder / "matrix.mtx", text, pack)
        return ["import", "matrixmarket", folder / "matrix.mtx", *arrays_of_vertices(graph, folder)]
    return write


def triples(graph, folder, _):
    [ids] = [of.ids for of in graph.vertices.values()]
    text = "".join(f"{ids[u]}\t{name}\t{ids[v]}\n" for (_, name, _), edges in graph.relations.items() for u, v in pairs(shuffled(edges)).tolist())
    put(folder / "train.txt", text)
    return ["import", "triples", "--train", folder / "train.txt"]


# ---- the Python package ----

def _splits(graph, as_written):
    """Arguments of write_graph: train=.., splits={name: {part: ..}}."""
    usual, further = {}, {}
    for name, of in graph.vertices.items():
        for (split, part), ids in of.splits.items():
            parts = further.setdefault(split, {}) if split else usual
            parts.setdefault(part, {})[name] = as_written(ids, of.count)
    if not graph.typed:
        usual = {part: of[""] for part, of in usual.items()}
        further = {split: {part: of[""] for part, of in parts.items()} for split, parts in further.items()}
    return usual | ({"splits": further} if further else {})


def mask(ids, count):
    return np.isin(np.arange(count), ids)


def _arguments(graph, as_written=mask):
    parts = {"x": "features", "y": "labels", "ids": "ids", "class_names": "names", "num_nodes": "count"}
    found = {key: {name: getattr(of, part) for name, of in graph.vertices.items() if getattr(of, part) is not None} for key, part in parts.items()}
    relations = {name: shuffled(of) for name, of in graph.relations.items()}
    for key, part in {"edge_weight": "weights", "edge_features": "features", "edge_time": "times"}.items():
        found[key] = {name: getattr(of, part) for name, of in relations.items() if getattr(of, part) is not None}
    edges = {name: pairs(of).T for name, of in relations.items()}
    if not graph.typed:
        found, edges = {key: next(iter(of.values()), None) for key, of in found.items()}, edges[PAIR]
    elif any(of.inverse for of in graph.edges.values()):
        found["directed"] = False
    return {"edge_index": edges, **{key: of for key, of in found.items() if of is not None and not (isinstance(of, dict) and not of)},
            **_splits(graph, as_written)}


def arrays(graph, _, output):
    espalier.write_graph(output, **_arguments(graph))


def matrices(graph, _, output):
    """Edges as a matrix of SciPy, features too where they are sparse, ids for splits."""
    said, edges, [of] = _arguments(graph, lambda ids, _: ids[::-1]), graph.edges[PAIR], graph.vertices.values()
    said.pop("edge_weight", None)
    said.pop("edge_features", None)
    said.pop("edge_time", None)
    said.pop("num_nodes")
    values = np.ones(len(edges.sources), bool) if edges.weights is None else edges.weights
    said["edge_index"] = scipy.sparse.coo_matrix((values, (edges.targets, edges.sources)), (of.count, of.count)).tocsr()
    if of.sparse:
        said["x"] = scipy.sparse.csr_matrix(of.features)
    espalier.write_graph(output, matrix_rows="targets", **said)


def _table(path, columns, count):
    rows = zip(*columns.values()) if columns else ([] for _ in range(count))
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([list(columns), *rows])


def _toml(value):
    return "[" + ", ".join(map(_toml, value)) + "]" if isinstance(value, list) else f'"{value}"'


def _numbers(table, name="f"):
    """{column: texts} of a matrix."""
    return {f"{name}{k}": ["" if np.isnan(value) else f"{value:.9g}" for value in column] for k, column in enumerate(table.T)}


def tables(graph, folder, output):
    """CSV by the csv module; ids are numbers where the graph has none."""
    said, ids = [], {}
    for name, of in graph.vertices.items():
        kind = name or "vertex"
        ids[name] = [str(own) for own in (of.ids or range(of.count))]
        columns, keys = {"id": ids[name]}, {"file": f"{kind}.csv", "id": "id"}
        if of.features is not None:
            numbers = _numbers(of.features)
            columns, keys = columns | numbers, keys | {"numbers": list(numbers)}
        if of.labels is not None and of.labels.ndim == 2:
            truths = _numbers(of.labels, "y")
            columns, keys = columns | truths, keys | {"labels": list(truths)}
        elif of.labels is not None:
            called = of.names or list(map(str, range(int(np.nanmax(of.labels)) + 1)))
            columns, keys = columns | {"y": ["" if np.isnan(y) else called[int(y)] for y in of.labels]}, keys | {"label": "y"}
        columns["part"] = [""] * of.count
        for (split, part), members in of.splits.items():
            for v in members if not split else ():
                columns["part"][v] = part
        _table(folder / f"{kind}.csv", columns, of.count)
        said += [f"[types.{kind}]", *(f"{key} = {_toml(value)}" for key, value in keys.items()), 'split = { column = "part" }']
    for name, edges in graph.relations.items():
        edges, kind = shuffled(edges), ".".join(name)
        ends = [[ids[name[end]][v] for v in of.tolist()] for end, of in ((0, edges.sources), (2, edges.targets))]
        columns, keys = {"u": ends[0], "v": ends[1]}, {"file": f"{kind}.csv"}
        if edges.weights is not None:
            columns, keys = columns | {"w": list(map(str, edges.weights.tolist()))}, keys | {"weight": "w"}
        if edges.times is not None:
            columns, keys = columns | {"when": edges.times.tolist()}, keys | {"time": "when"}
        if edges.features is not None:
            numbers = _numbers(edges.features)
            columns, keys = columns | numbers, keys | {"numbers": list(numbers)}
        _table(folder / f"{kind}.csv", columns, len(edges.sources))
        said += [f"[relations.{name[1] or 'edge'}]", *(f"{key} = {_toml(value)}" for key, value in keys.items())]
        said += [f'{end} = {{ type = "{name[at] or "vertex"}", column = "{column}" }}' for end, at, column in (("source", 0, "u"), ("target", 2, "v"))]
    inverses = any(of.inverse for of in graph.edges.values())
    (folder / "tables.toml").write_text("directed = false\n" * inverses + "\n".join(said) + "\n", encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        espalier.from_tables(folder / "tables.toml", output)


# ---- which hold what ----

@dataclasses.dataclass
class Format:
    write: object
    holds: str
    takes: object = lambda graph: not graph.typed

    @property
    def parts(self):
        return {"edges", *(part.strip() for part in self.holds.split(",") if part)}


def of_types(graph):
    return graph.typed


def _of_papers(graph):
    """Whose features are of float16, as that folder's."""
    return "paper" in graph.vertices and is_half(graph)


def _by_ids(graph):
    """Each vertex has an edge, and its id is a number."""
    edges, ids = graph.edges.get(PAIR), not graph.typed and graph.vertices[""].ids
    return bool(ids) and isinstance(ids[0], int) and len(np.union1d(edges.sources, edges.targets)) == len(ids)


def _symmetric(graph):
    edges = graph.edges.get(PAIR)
    return edges is not None and edges.weights is None and np.array_equal(pairs(edges), pairs(dataclasses.replace(
        edges, sources=edges.targets, targets=edges.sources).sorted()))


def _of_names(graph):
    """Of one type, each of whose vertices has an edge."""
    if not graph.typed or len(graph.vertices) > 1:
        return False
    [of] = graph.vertices.values()
    return len(np.unique(np.concatenate([ends for edges in graph.edges.values() for ends in (edges.sources, edges.targets)]))) == of.count


OF_VERTICES = "features, form, labels, splits"
OF_LISTS = "weights, " + OF_VERTICES
OF_OGB = "edge features, named splits, " + OF_VERTICES
OF_ARRAYS = "weights, times, names, ids, " + OF_OGB
FORMATS = {
    "OGB, csv": Format(ogb_csv, "weights, " + OF_OGB),
    "OGB, arrays": Format(ogb_arrays, "weights, " + OF_OGB),
    "OGB with types, csv": Format(ogb_typed_csv, "inverses, " + OF_OGB, of_types),
    "OGB with types, arrays": Format(ogb_typed_arrays, "inverses, " + OF_OGB, of_types),
    "MAG240M": Format(mag240m, "inverses, " + OF_VERTICES, _of_papers),
    "edge list": Format(edge_list(bytes), OF_LISTS),
    "edge list, gz": Format(edge_list(gzip.compress, " "), OF_LISTS),
    "edge list, ids": Format(renumbered_list, "ids, " + OF_VERTICES, _by_ids),
    "edge list, one way": Format(both_ways, OF_VERTICES, _symmetric),
    "Matrix Market": Format(matrix_market(bytes), OF_LISTS),
    "Matrix Market, symmetric, gz": Format(matrix_market(gzip.compress, True), OF_VERTICES, _symmetric),
    "triples": Format(triples, "ids, inverses", _of_names),
    "write_graph": Format(arrays, OF_ARRAYS),
    "write_graph, matrices": Format(matrices, "sparse, weights, names, ids, named splits, " + OF_VERTICES),
    "write_graph with types": Format(arrays, "inverses, " + OF_ARRAYS, of_types),
    "tables": Format(tables, "weights, edge features, times, features, labels, names, ids, splits", lambda graph: True),
}
if shutil.which("zstd"):
    FORMATS["edge list, zst"] = Format(edge_list(zstd, ", "), OF_LISTS)
    FORMATS["Matrix Market, zst"] = Format(matrix_market(zstd), OF_LISTS)

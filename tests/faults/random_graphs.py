"""Small random graphs of every kind, for configs.py: as the program makes them, and as h5py does.

An entry of KINDS makes one. Those of h5py may be flawed: then nobody may learn from them (exit code 3).
"""

import dataclasses

import h5py
import numpy as np

from tests.app.program import environment_apart, espalier

NAMED = "dealt"  # a split that files of h5py have beside the one without a name
FLAWS = ("overlapping splits", "unlabelled training vertex", "label below -1", "edge features of other rows", "split beyond")


@dataclasses.dataclass
class Graph:
    path: str
    kind: str
    learnable: list = dataclasses.field(default_factory=list)  # types with labels and splits; none of an untyped graph
    relations: list = dataclasses.field(default_factory=list)
    several: bool = False  # labels per vertex
    flaw: str = ""
    links: bool = False
    splits: list = dataclasses.field(default_factory=list)  # names of those that have one

    @property
    def words(self):
        return self.kind + (", links" if self.links else "") + (f", {self.flaw}" if self.flaw else "")


def generate(path, kind, r, *arguments, **known):
    with environment_apart() as env:
        code, output = espalier("-q", "generate", *arguments, "--seed", r.randrange(1000), "-o", path, program=generate.program, env=env)
    assert code == 0, output
    return Graph(str(path), kind, **known)


def planted(path, r):
    several = r.random() < 0.3
    more = ["--edge-features", r.randint(1, 4)] if r.random() < 0.3 else []
    return generate(path, "planted", r, "planted", "--nodes", r.randint(40, 300), "--degree", r.choice([0.5, 3, 8]), "--classes",
                    r.randint(2, 5), "--features", r.randint(1, 9), *more, *(["--labels", r.randint(2, 5)] if several else []),
                    *(["--half"] if r.random() < 0.2 else []), several=several)


def rmat(path, r):
    return generate(path, "rmat", r, "rmat", "--scale", r.randint(5, 8), "--edge-factor", r.randint(1, 8), "--features",
                    r.randint(1, 9), "--classes", r.randint(1, 5), *(["--symmetrize"] if r.random() < 0.5 else []))


def planted_types(path, r):
    """The first type has features or not, and so have the others; often none has."""
    def features():
        return f":{r.randint(1, 6)}" if r.random() < 0.5 else ""

    several, inverses = r.random() < 0.25, r.random() < 0.7
    names = ["author.writes.paper", "paper.cites.paper", "paper.about.field"]
    more = ["--edge-features", r.randint(1, 3)] if r.random() < 0.3 else []
    relations = [f"{name}={r.randint(60, 250)}" for name in names]
    return generate(path, "planted types", r, "planted", "--types",
                    f"paper={r.randint(40, 120)}{features()},author={r.randint(30, 80)}{features()},field={r.randint(20, 40)}{features()}",
                    "--relations", ",".join(relations), "--classes", r.randint(2, 3), *more,
                    *([] if inverses else ["--no-inverse"]), *(["--labels", 3] if several else []),
                    learnable=["paper"], relations=names, several=several)


def labels_of(random, count, classes, several):
    if several:
        return random.choice([0, 1, 255], p=[0.5, 0.4, 0.1], size=(count, classes)).astype(np.uint8)
    return random.integers(classes, size=count).astype(np.int32)


def splits_of(random, count, several, labels):
    """Ids of each split; vertices of none of them have no label, where a label is one number."""
    order = random.permutation(count)
    train = 1 if random.random() < 0.15 else max(1, count // 3)
    valid = 0 if random.random() < 0.1 else count // 4
    test = 0 if random.random() < 0.1 else count // 4
    bounds = np.cumsum([0, train, valid, test])
    splits = {name: np.sort(order[a:b]).astype(np.int64) for name, a, b in zip(("train", "valid", "test"), bounds, bounds[1:])}
    if not several:
        labels[order[bounds[-1]:]] = -1
    return splits


def random_rows(random, sources, targets):
    """For each target some of the sources, ascending; none for a tenth, all for one."""
    degrees = random.poisson(random.choice([1, 4]), size=targets) * (random.random(targets) > 0.1)
    if targets and random.random() < 0.3:
        degrees[random.integers(targets)] = sources
    return [np.sort(random.permutation(sources)[:min(int(k), sources)]) for k in degrees]


def put_matrix(file, random, rows, index_type):
    file["graph/indptr"] = np.cumsum([0] + [len(row) for row in rows]).astype(np.int64)
    file["graph/indices"] = np.concatenate([np.zeros(0)] + rows).astype(index_type)
    if random.random() < 0.4:
        file["graph/weights"] = random.uniform(0, 3, sum(map(len, rows))).astype(np.float32)


def put_vertices(file, random, place, count, several, flaw):
    """Labels and splits of vertices, `place` "" or "TYPE/"."""
    classes = int(random.integers(2, 5))
    labels = labels_of(random, count, classes, several)
    splits = splits_of(random, count, several, labels)
    if flaw == "overlapping splits":
        splits["test"] = np.unique(np.append(splits["test"], splits["train"][0]))
    elif flaw == "split beyond":
        splits["train"] = np.append(splits["train"], count)
    elif flaw == "unlabelled training vertex" and not several:
        labels[splits["train"][-1]] = -1
    elif flaw == "label below -1" and not several:
        labels[splits["train"][0]] = -2
    file[f"nodes/{place}labels"] = labels
    for name, ids in splits.items():
        file[f"split/{place}{name}"] = ids
    put_named_split(file, splits, place)


def put_named_split(file, splits, place):
    """The same vertices, dealt out in another way."""
    union = np.unique(np.concatenate(list(splits.values())))
    for k, name in enumerate(splits):
        file[f"split/{place}{NAMED}/{name}"] = union[k::len(splits)]


def put_features(file, random, name, count):
    kind = np.float16 if random.random() < 0.2 else np.float32
    file[name] = random.normal(size=(count, int(random.integers(1, 7)))).astype(kind)


def drawn_flaw(random, several):
    flaw = str(random.choice(FLAWS)) if random.random() < 0.12 else ""
    return "" if several and flaw in ("unlabelled training vertex", "label below -1") else flaw


def untyped_of_h5py(path, r):
    random = np.random.default_rng(r.randrange(1 << 30))
    several = random.random() < 0.25
    flaw = drawn_flaw(random, several)
    nodes = int(random.integers(12, 200))
    rows = random_rows(random, nodes, nodes)
    with h5py.File(path, "w") as file:
        file.attrs.update({"format": "espalier-graph", "version": 1, "directed": True})
        put_matrix(file, random, rows, random.choice([np.int32, np.int64]))
        put_features(file, random, "nodes/features", nodes)
        put_vertices(file, random, "", nodes, several, flaw)
        if flaw == "edge features of other rows" or random.random() < 0.3:
            put_features(file, random, "edges/features", sum(map(len, rows)) + (flaw == "edge features of other rows"))
    return Graph(str(path), "untyped of h5py", several=several, flaw=flaw, splits=[NAMED])


def typed_rows(random, offset, relations):
    """(rows, the three arrays of segments): each row ascends by relation, then source."""
    rows, counts, of, begins, entries = [], [], [], [], 0
    drawn = [random_rows(random, offset[s + 1] - offset[s], offset[t + 1] - offset[t]) for s, t in relations]
    for t in range(len(offset) - 1):
        for v in range(offset[t + 1] - offset[t]):
            runs = [(k, drawn[k][v] + offset[s]) for k, (s, to) in enumerate(relations) if to == t and len(drawn[k][v])]
            counts.append(len(runs))
            for k, run in runs:
                of.append(k)
                begins.append(entries)
                entries += len(run)
            rows.append(np.concatenate([np.zeros(0, np.int64)] + [run for _, run in runs]))
    segments = {"segment_ptr": np.cumsum([0] + counts).astype(np.int64), "segment_relation": np.array(of, np.uint8),
                "segment_begin": np.array(begins, np.int64)}
    return rows, segments, [sum(map(len, rows_of)) for rows_of in drawn]


def typed_of_h5py(path, r):
    """Types without vertices, features or labels; relations without entries, or between the same types."""
    random = np.random.default_rng(r.randrange(1 << 30))
    several = random.random() < 0.25
    flaw = drawn_flaw(random, several)
    types = ["a", "b", "c", "d"][:int(random.integers(1, 5))]
    sizes = [int(random.integers(12, 80))] + [0 if random.random() < 0.1 else int(random.integers(8, 60)) for _ in types[1:]]
    offset = np.cumsum([0] + sizes)
    relations = [tuple(int(k) for k in random.integers(len(types), size=2)) for _ in range(random.integers(1, 6))]
    names = [f"{types[s]}.r{k}.{types[t]}" for k, (s, t) in enumerate(relations)]
    rows, segments, entries = typed_rows(random, offset, relations)
    learnable = [types[0]] + [name for name, size in zip(types[1:], sizes[1:]) if size > 12 and random.random() < 0.2]
    with h5py.File(path, "w") as file:
        file.attrs.update({"format": "espalier-graph", "version": 2})
        file["types/name"], file["types/offset"] = np.array(types, "S"), offset.astype(np.int64)
        file["relations/name"] = np.array([f"r{k}" for k in range(len(relations))], "S")
        for what, values in (("source", [s for s, _ in relations]), ("target", [t for _, t in relations]),
                             ("inverse", [-1] * len(relations))):
            file[f"relations/{what}"] = np.array(values, np.int32)
        put_matrix(file, random, rows, np.int32)
        for name, values in segments.items():
            file[f"graph/{name}"] = values
        for name, size in zip(types, sizes):
            if random.random() < 0.5 and size:
                put_features(file, random, f"nodes/{name}/features", size)
        for name in learnable:
            put_vertices(file, random, f"{name}/", sizes[types.index(name)], several, flaw)
        for name, count in zip(names, entries):
            if flaw == "edge features of other rows" or random.random() < 0.3:
                put_features(file, random, f"edges/{name}/features", count + (flaw == "edge features of other rows"))
    return Graph(str(path), "typed of h5py", learnable, names, several, flaw, splits=[NAMED])


def without_edges(file, random):
    """Of the whole graph; what stands beside edges goes too."""
    for name in ("graph/indptr", "graph/segment_ptr"):
        if name in file:
            file[name][...] = 0
    beside = ["graph/indices", "graph/weights", "graph/segment_relation", "graph/segment_begin"]
    file.visititems(lambda name, of: beside.append(name) if name.startswith("edges/") and isinstance(of, h5py.Dataset) else None)
    for name in filter(file.__contains__, beside):
        empty = file[name][:0]
        del file[name]
        file[name] = empty


def uneven_weights(file, random):
    """Of 0, and far below the largest."""
    count = len(file["graph/indices"])
    if "graph/weights" in file:
        del file["graph/weights"]
    file["graph/weights"] = random.choice([0, 1e-30, 1e-6, 0.5, 1, 3, 1e12], size=count).astype(np.float32)


def loops(file, random):
    """An entry of every other row becomes one from the vertex to itself, where it has none; not of types."""
    indptr, indices = file["graph/indptr"][()], file["graph/indices"][()]
    for v, (begin, end) in enumerate(zip(indptr, indptr[1:])):
        if "graph/segment_ptr" not in file and end > begin and v not in indices[begin:end] and random.random() < 0.5:
            indices[random.integers(begin, end)] = v
            indices[begin:end].sort()
    file["graph/indices"][...] = indices


ODD = {"without edges": without_edges, "uneven weights": uneven_weights, "loops": loops}


def make_odd(graph, r):
    """Changes the edges of a graph that has no flaw."""
    name = r.choice(list(ODD))
    with h5py.File(graph.path, "a") as file:
        ODD[name](file, np.random.default_rng(r.randrange(1 << 30)))
    with environment_apart() as env:
        code, output = espalier("-q", "digest", graph.path, "--write", program=generate.program, env=env)
    assert code == 0, output
    graph.kind += f", {name}"


KINDS = [planted, rmat, planted_types, planted_types, untyped_of_h5py, untyped_of_h5py, typed_of_h5py, typed_of_h5py]

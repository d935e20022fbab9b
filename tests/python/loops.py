"""An oracle of the graph file: written by loops over edges, read by loops over rows, one entry at a
time."""

import h5py


import numpy as np


def merged(values, how):
    return {
        "sum": sum(values),
        "mean": sum(values) / len(values),
        "max": max(values),
        "first": values[0],
        "last": values[-1],
        "count": float(len(values)),
    }[how]


def merged_features(rows, edges, kept, how):
    """`edges` that met, of which a loop is one; `kept`: where the one stands whose weight stays."""
    if how in ("sum", "mean"):
        several = rows[sorted(set(edges))].astype(float)
        return tuple(np.float32(merged(list(column), how)) for column in several.T)
    return tuple(rows[edges[{"kept": kept, "first": 0, "last": -1}[how]]])


def entries_by_loop(
    sources, targets, weights=None, features=None, how="sum", both_ways=False, of_features="kept"
):
    """{(row, column): (weight, features)} of a list of edges."""
    met = {}
    for edge, (source, target) in enumerate(zip(sources, targets)):
        for row, column in [(target, source)] + [(source, target)] * both_ways:
            met.setdefault((int(row), int(column)), []).append(edge)
    found = {}
    for place, edges in met.items():
        given = [1.0 if weights is None else float(weights[edge]) for edge in edges]
        kept = given.index(max(given)) if how == "max" else -1 if how == "last" else 0
        weight = 1.0 if weights is None and how != "count" else float(np.float32(merged(given, how)))
        found[place] = (
            weight,
            None if features is None else merged_features(features, edges, kept, of_features),
        )
    return found


def entries_of_file(path, relation=None):
    """The same of a graph file; with types of a relation by its full name, ids counted within the
    types. Rows must ascend."""
    with h5py.File(path) as file:
        indptr, indices = file["graph/indptr"][()], file["graph/indices"][()]
        weights = file["graph/weights"][()] if "graph/weights" in file else None
        features = file.get("edges/features" if relation is None else f"edges/{relation}/features")
        features = None if features is None else features[()]
        if relation is not None:
            kinds, offset = [name.decode() for name in file["types/name"]], file["types/offset"][()]
            names = [
                f"{kinds[s]}.{name.decode()}.{kinds[t]}"
                for s, name, t in zip(
                    file["relations/source"], file["relations/name"], file["relations/target"]
                )
            ]
            wanted = names.index(relation)
            of_source, of_target = (
                offset[file["relations/source"][wanted]],
                offset[file["relations/target"][wanted]],
            )
            pointer, of, begin = (
                file[f"graph/segment_{name}"][()] for name in ("ptr", "relation", "begin")
            )
        found, seen = {}, 0
        assert indptr[0] == 0 and indptr[-1] == len(indices)
        for row in range(len(indptr) - 1):
            runs = [(0, indptr[row], indptr[row + 1])]
            if relation is not None:
                mine = list(range(pointer[row], pointer[row + 1]))
                ends = [begin[k] for k in mine[1:]] + [indptr[row + 1]]
                assert [of[k] for k in mine] == sorted({of[k] for k in mine})
                runs = [(of[k], begin[k], end) for k, end in zip(mine, ends)]
                assert not runs or runs[0][1] == indptr[row]
            for kind, start, end in runs:
                assert start < end or relation is None
                columns = list(indices[start:end])
                assert columns == sorted(set(columns))
                if relation is not None and kind != wanted:
                    continue
                for at in range(start, end):
                    place = (
                        (row, int(indices[at]))
                        if relation is None
                        else (row - int(of_target), int(indices[at]) - int(of_source))
                    )
                    found[place] = (
                        1.0 if weights is None else float(weights[at]),
                        None if features is None else tuple(features[seen]),
                    )
                    seen += 1
        assert features is None or seen == len(features)
        return found

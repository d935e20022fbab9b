"""What meta.json says of a graph, counted from its arrays."""

import collections

import numpy as np

from .features import NUM_FEATURES

TASK = {"task": "multiclass classification", "eval_metric": "acc", "directed": True, "add_inverse_edge": "False",
        "weighted": False}
LICENCE = "Debian archive metadata; package descriptions carry their packages' (DFSG) licences"
LABEL = "last part of Section, where large enough and topical"
FEATURE_DEFINITION = "hashed words of the short description, then 8 numbers: see scripts/debian_graph.py"
SOURCE_SPLIT_DEFINITION = "random 50/20/30 over source packages, RandomState(seed), seeds 0..2"


def component_sizes(num_nodes, edges):
    """Sizes of the weakly connected components: union-find with path halving."""
    parent = list(range(num_nodes))

    def root(node):
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for u, v in edges.tolist():
        parent[root(u)] = root(v)
    return collections.Counter(root(node) for node in range(num_nodes))


def graph_counts(num_nodes, edges):
    undirected = np.unique(np.sort(edges, axis=1), axis=0)
    degrees = np.bincount(undirected.ravel(), minlength=num_nodes)
    components = component_sizes(num_nodes, undirected)
    return {"num_nodes": num_nodes, "edge_rows": len(edges), "edge_rows_unique": len(np.unique(edges, axis=0)),
            "edge_rows_are_symmetric": 2 * len(undirected) == len(edges),
            "self_loops": int(np.sum(edges[:, 0] == edges[:, 1])),
            "symmetrised_directed_edges_no_loops": 2 * len(undirected), "undirected_edges_no_loops": len(undirected),
            "max_degree_sym": int(degrees.max(initial=0)),
            "mean_degree_sym": round(2 * len(undirected) / max(num_nodes, 1), 3),
            "isolated_nodes": int(np.sum(degrees == 0)), "components": len(components),
            "largest_component": max(components.values(), default=0)}


def edge_homophily(edges, labels):
    """Of the undirected edges with two labelled ends, the share whose labels agree."""
    ends = labels[np.unique(np.sort(edges, axis=1), axis=0)]
    ends = ends[(ends >= 0).all(axis=1)]
    return round(float(np.mean(ends[:, 0] == ends[:, 1])), 4) if len(ends) else None


def describe_features(features):
    nonzeros = sum(value != 0 for row in features for value in row.values())
    return {"feature_dim": NUM_FEATURES, "feature_nnz": nonzeros,
            "feature_density": round(nonzeros / max(len(features) * NUM_FEATURES, 1), 6)}


def describe_labels(labels, classes):
    return {"num_classes": len(classes), "class_counts": [int(np.sum(labels == k)) for k in range(len(classes))],
            "labelled_nodes": int(np.sum(labels >= 0))}


def split_sizes(splits):
    return {split: {part: len(ids) for part, ids in parts.items()} for split, parts in splits.items()}


def describe(name, source, edges, labels, classes, features, splits):
    return {
        "name": name, **graph_counts(len(labels), edges), **describe_features(features),
        **describe_labels(labels, classes), "edge_homophily": edge_homophily(edges, labels),
        "splits": split_sizes(splits), **TASK, "class_names": classes, "source": source, "licence": LICENCE,
        "node": "binary package (sorted by name)", "label": LABEL,
        "edge": "u,v = u depends on v; edge-feat: 0 depends, 1 recommends, 2 suggests (strongest)",
        "feature_definition": FEATURE_DEFINITION,
        "split_definition": "random 50/20/30 over labelled nodes, RandomState(seed), seeds 0..2"}


def describe_tags(meta, labels, columns):
    """What of describe() is otherwise with --tags."""
    meta = {**meta, "name": meta["name"] + "_tags", "task": "multi-label classification", "eval_metric": "rocauc",
            "num_tasks": len(columns), "class_names": columns,
            "class_counts": [int(np.sum(labels[:, k] == 1)) for k in range(len(columns))],
            "known_counts": [int(np.sum(labels[:, k] >= 0)) for k in range(len(columns))],
            "labelled_nodes": int(np.sum((labels >= 0).any(axis=1))),
            "label": "a debtag: 1 has it, 0 has another of its facet, nan has none of its facet",
            "split_definition": SOURCE_SPLIT_DEFINITION}
    del meta["num_classes"], meta["edge_homophily"]
    return meta


def describe_typed(name, source, num_nodes, relations, labels, classes, features, splits):
    """num_nodes {type: n}, relations {triplet: edges}; labels, features and splits are of packages."""
    return {
        "name": name + "_typed", "is_hetero": True, "num_nodes": dict(sorted(num_nodes.items())),
        "total_nodes": sum(num_nodes.values()),
        "num_edges": {".".join(triplet): len(edges) for triplet, edges in sorted(relations.items())},
        "total_edges": sum(len(edges) for edges in relations.values()),
        "target": "package", **describe_features(features), **describe_labels(labels, classes),
        "splits": split_sizes(splits), **TASK, "class_names": classes, "source": source, "licence": LICENCE,
        "label": LABEL, "feature_definition": FEATURE_DEFINITION,
        "node": "package, source, maintainer or purely virtual name; each type sorted by name",
        "edge": "head,tail: forward relations only, no inverses: see scripts/debian_graph.py",
        "split_definition": SOURCE_SPLIT_DEFINITION}

"""The relations of the typed graph: {(head type, relation, tail type): edges}, ids counted within each type.

A row h,t of edges says of h, by its own stanza, that it depends on t, is built from t, ...; debian_graph.py says what
each relation means. Kinds of nodes are what a stanza names: the package, its source, its maintainer, and names that
some package provides and no package has (purely virtual ones).
"""

import numpy as np

from .lists import relation_names, source_of

# The fields of a package's stanza that name the tails. Names that are none of the tail's type give no edge.
NAMED_IN = {
    ("package", "depends", "package"): ("Pre-Depends", "Depends"),
    ("package", "depends_virtual", "virtual"): ("Pre-Depends", "Depends"),
    ("package", "recommends", "package"): ("Recommends",),
    ("package", "suggests", "package"): ("Suggests",),
    ("package", "enhances", "package"): ("Enhances",),
    ("package", "breaks", "package"): ("Breaks",),
    ("package", "conflicts", "package"): ("Conflicts",),
    ("package", "replaces", "package"): ("Replaces",),
    ("package", "provides", "virtual"): ("Provides",),
}
BUILT_FROM = ("package", "built_from", "source")
MAINTAINED_BY = ("source", "maintained_by", "maintainer")


def maintainer_of(stanza):
    """The whole field, name and address: two spellings are two maintainers. Empty where there is none."""
    return stanza.get("Maintainer", "")


def names_by_type(packages):
    """{type: its nodes' names, ascending}: a node's id is its rank."""
    provided = {name for stanza in packages.values() for name in relation_names(stanza.get("Provides", ""))}
    return {"maintainer": sorted({maintainer_of(stanza) for stanza in packages.values()} - {""}),
            "package": sorted(packages),
            "source": sorted({source_of(name, stanza) for name, stanza in packages.items()}),
            "virtual": sorted(provided - set(packages))}


def named_pairs(packages, fields):
    """Who names whom in these fields, itself left out."""
    return {(name, named) for name, stanza in packages.items() for field in fields
            for named in relation_names(stanza.get(field, "")) if named != name}


def build_relations(packages):
    """({type: names}, {triplet: int64 [m, 2], ascending, no row twice}), without triplets that have no edge"""
    names = names_by_type(packages)
    ids = {node_type: {name: rank for rank, name in enumerate(of_type)} for node_type, of_type in names.items()}
    pairs = {triplet: named_pairs(packages, fields) for triplet, fields in NAMED_IN.items()}
    pairs[BUILT_FROM] = {(name, source_of(name, stanza)) for name, stanza in packages.items()}
    pairs[MAINTAINED_BY] = {(source_of(name, stanza), maintainer_of(stanza)) for name, stanza in packages.items()}
    relations = {triplet: edge_array(of_triplet, ids[triplet[0]], ids[triplet[2]])
                 for triplet, of_triplet in pairs.items()}
    return names, {triplet: edges for triplet, edges in relations.items() if len(edges)}


def edge_array(pairs, head_ids, tail_ids):
    rows = sorted((head_ids[head], tail_ids[tail]) for head, tail in pairs if tail in tail_ids)
    return np.array(rows, dtype=np.int64).reshape(-1, 2)

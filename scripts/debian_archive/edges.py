"""The edges of the homogeneous graph: who depends on, recommends or suggests whom."""

import collections

import numpy as np

from .lists import relation_names

DEPENDENCY_FIELDS = (("Pre-Depends", 0), ("Depends", 0), ("Recommends", 1), ("Suggests", 2))
MAX_PROVIDERS = 8


def providers_of_virtual_names(packages):
    providers = collections.defaultdict(set)
    for name, stanza in packages.items():
        for virtual in relation_names(stanza.get("Provides", "")):
            providers[virtual].add(name)
    return providers


def build_edges(packages):
    """(edges int64 [m, 2], kinds int64 [m]), ascending by (source, target)."""
    ids = {name: rank for rank, name in enumerate(sorted(packages))}
    providers = providers_of_virtual_names(packages)
    kinds = {}
    for name, stanza in packages.items():
        for field, kind in DEPENDENCY_FIELDS:
            for wanted in relation_names(stanza.get(field, "")):
                targets = (wanted,) if wanted in ids else providers.get(wanted, ())
                if len(targets) > MAX_PROVIDERS:
                    continue
                for target in targets:
                    pair = (ids[name], ids[target])
                    kinds[pair] = min(kind, kinds.get(pair, kind))
    pairs = sorted(pair for pair in kinds if pair[0] != pair[1])
    return np.array(pairs, dtype=np.int64).reshape(-1, 2), np.array([kinds[pair] for pair in pairs], dtype=np.int64)

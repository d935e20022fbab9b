"""Splits of the labelled packages: one half trains, a fifth validates, the rest tests."""

import collections

import numpy as np

from .lists import source_of

SPLIT_SEEDS = (0, 1, 2)


def build_splits(labels):
    """{"random_seed0": {"train": ids, "valid": ids, "test": ids}, ...}"""
    labelled = np.flatnonzero(labels >= 0)
    half, most = (len(labelled) * 5 + 5) // 10, (len(labelled) * 7 + 5) // 10
    splits = {}
    for seed in SPLIT_SEEDS:
        order = np.random.RandomState(seed).permutation(labelled)
        parts = {"train": order[:half], "valid": order[half:most], "test": order[most:]}
        splits[f"random_seed{seed}"] = {name: np.sort(part) for name, part in parts.items()}
    return splits


def build_source_splits(packages, labels):
    """As build_splits, of source packages."""
    labelled = [name for name, row in zip(sorted(packages), labels) if (row >= 0).any()]
    nodes = {name: node for node, name in enumerate(sorted(packages))}
    members = collections.defaultdict(list)
    for name in labelled:
        members[source_of(name, packages[name])].append(nodes[name])
    sources = sorted(members)
    half, most = (len(sources) * 5 + 5) // 10, (len(sources) * 7 + 5) // 10
    splits = {}
    for seed in SPLIT_SEEDS:
        order = np.random.RandomState(seed).permutation(len(sources))
        parts = {"train": order[:half], "valid": order[half:most], "test": order[most:]}
        splits[f"source_seed{seed}"] = {
            name: np.array(sorted(node for k in part for node in members[sources[k]]), dtype=np.int64)
            for name, part in parts.items()}
    return splits

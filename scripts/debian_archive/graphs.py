"""Builds a graph from packages and writes it: the homogeneous one, or the typed one. Each returns its metadata."""

from .descriptions import describe, describe_tags, describe_typed
from .edges import build_edges
from .features import build_features
from .files import write_graph, write_whole
from .labels import MIN_SECTION_SIZE, build_labels, build_tag_labels
from .lists import NoLists
from .relations import build_relations
from .splits import build_source_splits, build_splits
from .typed_files import write_typed_graph


def build(packages, name, source, folder, min_section_size=MIN_SECTION_SIZE, min_tag_size=None):
    """The homogeneous graph. With min_tag_size, debtags are the labels."""
    edges, kinds = build_edges(packages)
    labels, classes = build_labels(packages, min_section_size)
    features, splits = build_features(packages), build_splits(labels)
    if min_tag_size is not None:
        tags, columns = build_tag_labels(packages, min_tag_size)
        if not columns:
            raise NoLists(f"no tag is on {min_tag_size} packages of {source}")
        splits = build_source_splits(packages, tags)
    meta = describe(name, source, edges, labels, classes, features, splits)
    if min_tag_size is not None:
        meta, labels = describe_tags(meta, tags, columns), tags
    write_whole(folder, meta, write_graph, edges, kinds, labels, features, splits)
    return meta


def build_typed(packages, name, source, folder, min_section_size=MIN_SECTION_SIZE):
    """The typed graph. Packages alone have features, labels and splits."""
    labels, classes = build_labels(packages, min_section_size)
    if not classes:
        raise NoLists(f"no topical section has {min_section_size} packages of {source}, so there is nothing to label")
    names, relations = build_relations(packages)
    features, splits = build_features(packages), build_source_splits(packages, labels)
    num_nodes = {node_type: len(of_type) for node_type, of_type in names.items()}
    meta = describe_typed(name, source, num_nodes, relations, labels, classes, features, splits)
    write_whole(folder, meta, write_typed_graph, num_nodes, relations, {"package": labels}, {"package": features},
                {split: {"package": parts} for split, parts in splits.items()})
    return meta

"""Labels: a package's section, or its debtags."""

import collections

import numpy as np

from .lists import tags_of

MIN_SECTION_SIZE = MIN_TAG_SIZE = 300
UNTOPICAL_SECTIONS = {"metapackages", "oldlibs", "debug", "unknown"}


def build_labels(packages, min_section_size=MIN_SECTION_SIZE):
    """(labels int64 [n], -1 where there is none; class names)"""
    sections = [packages[name].get("Section", "unknown").rsplit("/", 1)[-1] for name in sorted(packages)]
    sizes = collections.Counter(sections)
    classes = sorted(section for section, size in sizes.items()
                     if size >= min_section_size and section not in UNTOPICAL_SECTIONS)
    ids = {section: rank for rank, section in enumerate(classes)}
    return np.array([ids.get(section, -1) for section in sections], dtype=np.int64), classes


def build_tag_labels(packages, min_tag_size=MIN_TAG_SIZE):
    """(labels int64 [n, K] of 0, 1 and -1 = unknown; the K tags)"""
    tags = [tags_of(packages[name]) for name in sorted(packages)]
    sizes = collections.Counter(tag for row in tags for tag in row)
    columns = sorted(tag for tag, size in sizes.items() if size >= min_tag_size)
    labels = np.full((len(tags), len(columns)), -1, dtype=np.int64)
    for node, row in enumerate(tags):
        facets = {tag.split("::")[0] for tag in row}
        for column, tag in enumerate(columns):
            if tag.split("::")[0] in facets:
                labels[node, column] = tag in row
    return labels, columns

"""Features of packages: one {column: value} per node, because most are zero. debian_graph.py says what they are."""

import collections
import math
import re
import zlib

import numpy as np

WORD = re.compile(r"[a-z][a-z0-9+#]+")
STOP_WORDS = frozenset("an and are as at based be by for from in is it its of on or that the this to use used using "
                       "with you your".split())
NUM_BUCKETS = 120
NUM_FEATURES = NUM_BUCKETS + 8


def float32(value):
    return float(np.float32(value))


def kept_words(name, description):
    own = set(WORD.findall(name.lower()))
    return [word for word in WORD.findall(description.lower()) if word not in own and word not in STOP_WORDS]


def hashed_words(words, idf):
    """The signed buckets of one description, of length 1 (or empty)."""
    row = collections.defaultdict(float)
    for word, count in collections.Counter(words).items():
        code = zlib.crc32(word.encode())
        bucket, sign = code % NUM_BUCKETS, 1 if code >> 31 else -1
        row[bucket] = float32(row[bucket] + sign * count * idf[word])
    length = float32(math.sqrt(math.fsum(value * value for value in row.values())))
    return {bucket: float32(value / length) for bucket, value in row.items() if value != 0}


def numbers(stanza, num_words):
    """Columns 120..127 of one package."""
    installed, size = float(stanza.get("Installed-Size", 0)), float(stanza.get("Size", 0))
    values = (math.log1p(installed), math.log1p(size), math.log1p(size / (1024 * (installed + 1))),
              math.log1p(len(stanza.get("Description", ""))), num_words / 10,
              stanza.get("Architecture") == "all", stanza.get("Priority") in ("required", "important", "standard"),
              "Multi-Arch" in stanza)
    return {NUM_BUCKETS + column: float32(value) for column, value in enumerate(values)}


def build_features(packages):
    names = sorted(packages)
    words = [kept_words(name, packages[name].get("Description", "")) for name in names]
    document_frequency = collections.Counter(word for row in words for word in set(row))
    idf = {word: math.log(len(names) / (1 + df)) for word, df in document_frequency.items()}
    return [{**hashed_words(row, idf), **numbers(packages[name], len(row))} for name, row in zip(names, words)]

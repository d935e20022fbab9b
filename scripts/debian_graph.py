#!/usr/bin/python3
"""Builds the Debian package graph from this machine's apt lists, in OGB's raw csv layout.

    scripts/debian_graph.py OUT_DIR                       from the apt lists (apt-get update fetches them)
    scripts/debian_graph.py --packages FILE OUT_DIR       from one Packages file, plain or .gz, .xz, .bz2
    scripts/debian_graph.py --tags OUT_DIR                with debtags as labels, several per package

A real graph of some 60,000 nodes that any Debian machine holds already: who depends on whom, with the archive's own
sections as classes. Only the release itself counts, main and the machine's architecture; the -updates and -security
lists change from day to day and are left out. A package listed twice counts once, as its first stanza.

Nodes   binary packages in ascending order of name (code points); a node's id is its rank.
Edges   u,v: u depends on v, ascending by (u, v), no loops, no duplicates. Fields: Pre-Depends and Depends (kind 0),
        Recommends (1), Suggests (2); of a pair that stands in several fields the strongest kind, the smallest number,
        is kept. Every alternative of "a | b" is taken; versions and architectures are ignored. A name that is a
        package means that package, even where others provide it too. Any other name means its providers where there
        are 1 to 8 of them, the depending package itself counted among them, and nothing otherwise.
Labels  the last part of Section ("contrib/net" is net), where at least 300 packages share it and it is about a topic
        (not metapackages, oldlibs, debug, unknown); class ids follow the names' alphabetical order; nan otherwise.
Splits  random_seed0..2: numpy's RandomState(seed) permutes the labelled ids; the first half trains, the next fifth
        validates, the rest tests (cuts rounded to the nearest whole); each file ascending.

With --tags, a column per debtag ("role::program") that at least 300 packages have, in alphabetical order: 1 where the
package has the tag, 0 where it has another tag of the same facet ("role") instead, nan where it has none of that
facet, because nobody has judged it by that facet then. Splits are over the packages with any label, and
source_seed0..2: the permutation is of source packages, whose binary packages stay together, as siblings share tags.

Features, 128 float32 per node, written with four significant digits:
  0..119    words of the short description d. A word is a lower-case [a-z][a-z0-9+#]+ that is neither a stop word (list
            below) nor a word of the package's own name. With n packages, tf(w, d) occurrences and df(w) packages that
            keep w:  x[crc32(w) mod 120] += s(w) tf(w, d) ln(n / (1 + df(w))),  s = +1 where the top bit of crc32(w) is
            set, else -1; then x / |x|_2. A description without such words leaves a zero row.
  120..127  log1p(Installed-Size in KiB), log1p(Size in bytes), log1p(Size / (1024 (Installed-Size + 1))),
            log1p(characters of d), words of d / 10, Architecture is all, Priority is at least standard, has Multi-Arch.
Section, Tag, Source, Maintainer, name and degree are no features: they would leak the label. The buckets are summed
and divided in float32; words of opposite sign that meet in a bucket can therefore leave a rest of about 1e-8.

The same lists give the same bytes. OUT_DIR appears whole or not at all. Exit codes: 2 usage, 3 nothing to read.
"""

import argparse
import bz2
import collections
import gzip
import io
import json
import lzma
import math
import os
import re
import shutil
import subprocess
import sys
import zlib

try:
    import numpy as np
except ImportError:
    sys.exit("debian_graph.py: this python3 has no numpy; install python3-numpy and run it with /usr/bin/python3")

CURE = "run `apt-get update` on a Debian machine, or name a file with --packages"
APT_HELPER = "/usr/lib/apt/apt-helper"
DEPENDENCY_FIELDS = (("Pre-Depends", 0), ("Depends", 0), ("Recommends", 1), ("Suggests", 2))
FIELDS = {field for field, _ in DEPENDENCY_FIELDS} | {
    "Package", "Provides", "Section", "Description", "Installed-Size", "Size", "Architecture", "Priority", "Multi-Arch",
    "Tag", "Source"}
MAX_PROVIDERS = 8
MIN_SECTION_SIZE = MIN_TAG_SIZE = 300
UNTOPICAL_SECTIONS = {"metapackages", "oldlibs", "debug", "unknown"}
WORD = re.compile(r"[a-z][a-z0-9+#]+")
STOP_WORDS = frozenset("an and are as at based be by for from in is it its of on or that the this to use used using "
                       "with you your".split())
NUM_BUCKETS = 120
NUM_FEATURES = NUM_BUCKETS + 8
SPLIT_SEEDS = (0, 1, 2)


class NoLists(Exception):
    """There is nothing to read; the text says what is missing."""


# ---- Reading: apt's lists or one file -> {package name: {field: value}} ---------------------------------------------

def output_of(*command):
    try:
        return subprocess.run(command, capture_output=True, check=True).stdout.decode("utf-8")
    except (OSError, subprocess.CalledProcessError) as error:
        raise NoLists(f"apt's package lists cannot be read ({error}); {CURE}") from error


def release_lists():
    """The codename, architecture and files of the Debian release's own main lists."""
    architecture = output_of("dpkg", "--print-architecture").strip()
    targets = output_of("apt-get", "indextargets", "--format",
                        "$(ORIGIN)|$(COMPONENT)|$(ARCHITECTURE)|$(CODENAME)|$(FILENAME)", "Created-By: Packages")
    files = collections.defaultdict(list)
    for origin, component, arch, codename, path in (line.split("|", 4) for line in targets.splitlines()):
        pocket = re.search(r"-(updates|security|backports|proposed|debug)", codename)
        if (origin, component) == ("Debian", "main") and arch in (architecture, "all") and not pocket:
            files[codename].append(path)
    if not files:
        raise NoLists(f"apt holds no package list of Debian main for {architecture}; {CURE}")
    codename = this_release() if this_release() in files else next(iter(files))
    return codename, architecture, files[codename]


def this_release():
    try:
        with open("/etc/os-release", encoding="utf-8") as lines:
            return dict(line.strip().split("=", 1) for line in lines if "=" in line).get("VERSION_CODENAME", "")
    except OSError:
        return ""


def read_file(path):
    openers = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
    with openers.get(os.path.splitext(path)[1], open)(path, "rb") as file:
        return file.read().decode("utf-8")


def parse_packages(text):
    """{name: stanza}, of FIELDS. Folded fields are joined; of Description the first line, the short one, counts."""
    packages, stanza, field = {}, {}, None
    for line in io.StringIO(text + "\n\n"):
        line = line.rstrip("\n")
        if not line.strip():
            if "Package" in stanza:
                packages.setdefault(stanza["Package"], stanza)
            stanza, field = {}, None
        elif line[0] in " \t":
            if field is not None and field != "Description":
                stanza[field] += " " + line.strip()
        else:
            field, _, value = line.partition(":")
            if field in FIELDS:
                stanza[field] = value.strip()
            else:
                field = None
    return packages


# ---- Edges ----------------------------------------------------------------------------------------------------------

def relation_names(relations):
    """The package names of a relation field, every alternative: "a (>= 1) | b:any, c" gives a, b, c."""
    names = (re.split(r"[\s(:\[<]", relation.strip(), maxsplit=1)[0] for relation in re.split(r"[,|]", relations))
    return [name for name in names if name]


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


# ---- Labels and splits ----------------------------------------------------------------------------------------------

def build_labels(packages, min_section_size=MIN_SECTION_SIZE):
    """(labels int64 [n], -1 where there is none; class names)"""
    sections = [packages[name].get("Section", "unknown").rsplit("/", 1)[-1] for name in sorted(packages)]
    sizes = collections.Counter(sections)
    classes = sorted(section for section, size in sizes.items()
                     if size >= min_section_size and section not in UNTOPICAL_SECTIONS)
    ids = {section: rank for rank, section in enumerate(classes)}
    return np.array([ids.get(section, -1) for section in sections], dtype=np.int64), classes


def tags_of(stanza):
    return {tag for tag in (part.strip() for part in stanza.get("Tag", "").split(",")) if "::" in tag}


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


def source_of(name, stanza):
    return stanza.get("Source", name).split(" ")[0]


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


# ---- Features: one {column: value} per node, because most are zero --------------------------------------------------

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


# ---- What meta.json says of the graph, counted from the arrays ------------------------------------------------------

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


def describe(name, source, edges, labels, classes, features, splits):
    nonzeros = sum(value != 0 for row in features for value in row.values())
    return {
        "name": name, **graph_counts(len(labels), edges),
        "feature_dim": NUM_FEATURES, "feature_nnz": nonzeros,
        "feature_density": round(nonzeros / max(len(features) * NUM_FEATURES, 1), 6),
        "num_classes": len(classes), "class_counts": [int(np.sum(labels == k)) for k in range(len(classes))],
        "labelled_nodes": int(np.sum(labels >= 0)), "edge_homophily": edge_homophily(edges, labels),
        "splits": {split: {part: len(ids) for part, ids in parts.items()} for split, parts in splits.items()},
        "task": "multiclass classification", "eval_metric": "acc", "directed": True, "add_inverse_edge": "False",
        "weighted": False, "class_names": classes, "source": source,
        "licence": "Debian archive metadata; package descriptions carry their packages' (DFSG) licences",
        "node": "binary package (sorted by name)", "label": "last part of Section, where large enough and topical",
        "edge": "u,v = u depends on v; edge-feat: 0 depends, 1 recommends, 2 suggests (strongest)",
        "feature_definition": "hashed words of the short description, then 8 numbers: see scripts/debian_graph.py",
        "split_definition": "random 50/20/30 over labelled nodes, RandomState(seed), seeds 0..2"}


def describe_tags(meta, labels, columns):
    """What of describe() is otherwise with --tags."""
    meta = {**meta, "name": meta["name"] + "_tags", "task": "multi-label classification", "eval_metric": "rocauc",
            "num_tasks": len(columns), "class_names": columns,
            "class_counts": [int(np.sum(labels[:, k] == 1)) for k in range(len(columns))],
            "known_counts": [int(np.sum(labels[:, k] >= 0)) for k in range(len(columns))],
            "labelled_nodes": int(np.sum((labels >= 0).any(axis=1))),
            "label": "a debtag: 1 has it, 0 has another of its facet, nan has none of its facet",
            "split_definition": "random 50/20/30 over source packages, RandomState(seed), seeds 0..2"}
    del meta["num_classes"], meta["edge_homophily"]
    return meta


# ---- Writing --------------------------------------------------------------------------------------------------------

def write_lines(folder, name, lines):
    """One gzip file without name or time in its header, so that equal lines are equal bytes."""
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as raw, gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0) as file:
        file.write("".join(f"{line}\n" for line in lines).encode())


def feature_lines(features):
    for row in features:
        cells = ["0"] * NUM_FEATURES
        for column, value in row.items():
            cells[column] = "%.4g" % value
        yield ",".join(cells)


def label_lines(labels):
    rows = labels.reshape(len(labels), -1).tolist()
    return (",".join("nan" if label < 0 else str(label) for label in row) for row in rows)


def write_graph(folder, meta, edges, kinds, labels, features, splits):
    write_lines(folder, "raw/edge.csv.gz", (f"{u},{v}" for u, v in edges.tolist()))
    write_lines(folder, "raw/edge-feat.csv.gz", kinds.tolist())
    write_lines(folder, "raw/num-node-list.csv.gz", [len(labels)])
    write_lines(folder, "raw/num-edge-list.csv.gz", [len(edges)])
    write_lines(folder, "raw/node-feat.csv.gz", feature_lines(features))
    write_lines(folder, "raw/node-label.csv.gz", label_lines(labels))
    for split, parts in splits.items():
        for part, ids in parts.items():
            write_lines(folder, f"split/{split}/{part}.csv.gz", ids.tolist())
    sizes = {os.path.relpath(os.path.join(path, file), folder): os.path.getsize(os.path.join(path, file))
             for path, _, files in os.walk(folder) for file in files}
    meta = {**meta, "files_bytes": dict(sorted(sizes.items())), "total_bytes": sum(sizes.values())}
    with open(os.path.join(folder, "meta.json"), "w", encoding="utf-8") as file:
        file.write(json.dumps(meta, indent=1) + "\n")


def may_be_replaced(folder):
    """Only a folder that this program could have written: nothing, an empty folder, or an earlier graph."""
    if not os.path.lexists(folder):
        return True
    return (os.path.isdir(folder) and not os.path.islink(folder)
            and sorted(os.listdir(folder)) in ([], ["meta.json", "raw", "split"]))


def put_in_place(finished, folder):
    if os.path.isdir(folder):
        shutil.rmtree(folder)
    os.rename(finished, folder)


def build(packages, name, source, folder, min_section_size=MIN_SECTION_SIZE, min_tag_size=None):
    """Builds the graph in folder + ".tmp" and renames it, so that folder is whole or absent. Returns the metadata.
    With min_tag_size, debtags are the labels."""
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
    unfinished = folder + ".tmp"
    shutil.rmtree(unfinished, ignore_errors=True)
    write_graph(unfinished, meta, edges, kinds, labels, features, splits)
    put_in_place(unfinished, folder)
    return meta


# ---- The command line -----------------------------------------------------------------------------------------------

def parse_arguments(arguments):
    parser = argparse.ArgumentParser(prog="debian_graph.py", formatter_class=argparse.RawDescriptionHelpFormatter,
                                     description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("out_dir", metavar="OUT_DIR", help="folder to write; an earlier graph there is replaced")
    parser.add_argument("--packages", metavar="FILE", help="read this Packages file instead of the apt lists")
    parser.add_argument("--min-section-size", type=int, default=MIN_SECTION_SIZE, metavar="N",
                        help="packages that make a section a class (default %(default)s)")
    parser.add_argument("--tags", action="store_true", help="debtags as labels, several per package")
    parser.add_argument("--min-tag-size", type=int, default=MIN_TAG_SIZE, metavar="N",
                        help="packages that make a tag a label (default %(default)s)")
    options = parser.parse_args(arguments)
    options.out_dir = options.out_dir.rstrip("/") or "/"
    if not may_be_replaced(options.out_dir):
        parser.error(f"{options.out_dir} exists and holds something else than a graph; name another folder")
    return options


def read_packages(options):
    """(stanzas by name, graph name, source)"""
    if options.packages:
        file = os.path.basename(options.packages)
        try:
            text = read_file(options.packages)
        except (OSError, EOFError, lzma.LZMAError, zlib.error, UnicodeDecodeError) as error:
            raise NoLists(f"{options.packages} cannot be read ({error})") from error
        packages, name, source = parse_packages(text), "debian", f"the Packages file {file}"
    else:
        codename, architecture, files = release_lists()
        text = "\n\n".join(output_of(APT_HELPER, "cat-file", file) for file in files)
        packages, name = parse_packages(text), f"debian_{codename}"
        source = f"apt lists of Debian {codename}, main, {architecture}"
    if not packages:
        raise NoLists(f"no package in {source}")
    return packages, name, source


def main(arguments):
    options = parse_arguments(arguments)
    try:
        packages, name, source = read_packages(options)
        meta = build(packages, name, source, options.out_dir, options.min_section_size,
                     options.min_tag_size if options.tags else None)
    except NoLists as error:
        print(f"debian_graph.py: {error}", file=sys.stderr)
        return 3
    print(f"{options.out_dir}: {meta['num_nodes']} packages, {meta['edge_rows']} edges, {len(meta['class_names'])} "
          f"{'tags' if options.tags else 'classes'}, {meta['labelled_nodes']} labelled nodes, from {source}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

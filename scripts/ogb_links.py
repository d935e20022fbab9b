#!/usr/bin/python3
"""Puts the splits of one of OGB's link sets into the graph file that `espalier import ogb` made of its folder.

    espalier import ogb dataset/ogbl_collab --symmetrize -o collab.h5
    scripts/ogb_links.py dataset/ogbl_collab collab.h5
    espalier digest collab.h5 --write

It reads FOLDER/split/NAME/train.pt, valid.pt and test.pt and writes /links (`espalier help import` has the layout):

    edge [e, 2], edge_neg [m, 2]                   ogbl-ppa, -collab, -ddi: head, then tail; non_links
    source_node, target_node, target_node_neg      ogbl-citation2: heads, tails, negative_tails
    head, relation, tail, head_neg, tail_neg       ogbl-wikikg2, -biokg: with head_type and tail_type, which say
                                                   the vertex types that ids are counted in

Links of relations, and of a graph with types, have a direction; others have none where the graph file has none
(--symmetrize), unless --directed says so. Relations are called as FOLDER/mapping says; where the graph has a relation
of each name, links say which.

The file is changed whole or not at all: links come into a copy beside it, which then takes its place. PyTorch is not
needed. Exit codes: 2 usage, 3 files that cannot be read, hold something else, or have links already.
"""

import argparse
import csv
import glob
import gzip
import os
import shutil
import sys
import zlib

import h5py
import numpy as np

from mag240m_pickles import PARTS, NotAsExpected, load

NEGATIVES = {"target_node_neg": "negative_tails", "tail_neg": "negative_tails", "head_neg": "negative_heads"}
ENDS = {"head": "source", "negative_heads": "source", "tail": "target", "negative_tails": "target"}
MOST_RELATIONS = 1 << 20  # of links


def integers(path, split, name, dimensions, rows=None):
    """An array of the split as int64."""
    if name not in split:
        raise NotAsExpected(f"{path}: has no {name}, but {sorted(map(str, split))}")
    array = np.asarray(split[name])
    if array.ndim != dimensions or array.dtype.kind not in "iu" or (rows is not None and len(array) != rows):
        raise NotAsExpected(f"{path}: {name} is {array.dtype} {list(array.shape)}, no integers in {dimensions} dimensions"
                            + (f" for {rows} links" if rows is not None else ""))
    return array.astype(np.int64)


def check_below(path, name, values, most, things):
    """Are all of them at least 0, and less than `most`: a number, or one for each link?"""
    bounds = np.broadcast_to(np.reshape(most, (-1,) + (1,) * (values.ndim - 1)), values.shape)
    wrong = np.argwhere((values < 0) | (values >= bounds))
    if len(wrong):
        place = tuple(wrong[0])
        raise NotAsExpected(f"{path}: {name} of link {place[0]} is {values[place]}, but there are {bounds[place]} {things}")


def ranges_of_ends(path, split, end, graph, rows):
    """(first vertex, number of vertices) of what ids of this end of each link are counted in; of the graph where no types are said."""
    name = end + "_type"
    if name not in split:
        return np.zeros(rows, np.int64), np.full(rows, graph.nodes)
    of = split[name]
    unknown = sorted(set(of) - graph.types.keys())
    if unknown or len(of) != rows:
        raise NotAsExpected(f"{path}: {name} names {unknown or len(of)}; the graph has types {sorted(graph.types)}, and there are {rows} links")
    ranges = np.array([graph.types[kind] for kind in of], np.int64).reshape(rows, 2)
    return ranges[:, 0], ranges[:, 1] - ranges[:, 0]


def links_of(path, split, graph):
    """The data sets of one split."""
    links = {}
    if "edge" in split:
        edges = integers(path, split, "edge", 2)
        if edges.shape[1] != 2:
            raise NotAsExpected(f"{path}: edge has {edges.shape[1]} columns, not 2")
        links = {"head": edges[:, 0], "tail": edges[:, 1]}
        if "edge_neg" in split and np.size(split["edge_neg"]) > 0:
            links["non_links"] = integers(path, split, "edge_neg", 2)
            if links["non_links"].shape[1] != 2:
                raise NotAsExpected(f"{path}: edge_neg has {links['non_links'].shape[1]} columns, not 2")
            check_below(path, "edge_neg", links["non_links"], graph.nodes, "vertices")
    else:
        ends = ("head", "tail") if "head" in split else ("source_node", "target_node")
        links = {name: integers(path, split, of, 1) for name, of in zip(("head", "tail"), ends)}
        if len(links["tail"]) != len(links["head"]):
            raise NotAsExpected(f"{path}: has {len(links['head'])} {ends[0]} and {len(links['tail'])} {ends[1]}")
    count = len(links["head"])
    if "relation" in split:
        relations = integers(path, split, "relation", 1, count)
        check_below(path, "relation", relations, MOST_RELATIONS, "relations at most")
        links["relation"] = relations.astype(np.int32)
    for name, of in NEGATIVES.items():
        if name in split and np.size(split[name]) > 0:
            links[of] = integers(path, split, name, 2, count)
    for end in ("head", "tail"):
        first, sizes = ranges_of_ends(path, split, end, graph, count)
        for name in (end, f"negative_{end}s"):
            if name in links:
                check_below(path, name, links[name], sizes, "vertices")
                links[name] = links[name] + np.reshape(first, (-1,) + (1,) * (links[name].ndim - 1))
    return links


class Graph:
    """What the graph file says."""

    def __init__(self, path):
        try:
            with h5py.File(path, "r") as file:
                kind = file.attrs.get("format", "")
                if (kind.decode(errors="replace") if isinstance(kind, bytes) else kind) != "espalier-graph":
                    raise NotAsExpected(f"{path}: is no graph file of espalier")
                if "links" in file:
                    raise NotAsExpected(f"{path}: has links already; import it again")
                self.nodes = len(file["graph/indptr"]) - 1
                self.directed = bool(file.attrs.get("directed", True))
                self.types, self.relations, self.ends = {}, [], {}
                if "types/name" in file:
                    begins = file["types/offset"][()].tolist()
                    self.types = dict(zip((name.decode() for name in file["types/name"][()]), zip(begins, begins[1:])))
                    self.relations = [name.decode() for name in file["relations/name"][()]]
                    # [relations, 2] vertices from .. to
                    self.ends = {end: np.array(list(self.types.values()))[file["relations/" + end][()]] for end in ("source", "target")}
        except (OSError, KeyError, ValueError, TypeError, IndexError) as error:
            raise NotAsExpected(f"{path}: cannot be read: {error}") from None

    def places_of(self, names):
        """Which relation of the graph each is; None unless each name is that of one."""
        if any(self.relations.count(name) != 1 for name in names):
            return None
        return np.array([self.relations.index(name) for name in names], np.int32)

    def check_ends(self, path, links, places):
        """Are the ends of the types that their relations join?"""
        place = places[links.get("relation", 0)]
        for name, end in ENDS.items():
            if name not in links:
                continue
            first, last = self.ends[end][place].T
            shift = np.reshape(first, (-1,) + (1,) * (links[name].ndim - 1))
            check_below(path, f"{name}, counted in the {end} of its relation,", links[name] - shift, last - first, "vertices")


def relation_names(folder, count):
    """As FOLDER/mapping calls them: behind a line of titles each number and its name; else by number."""
    names = [str(r) for r in range(count)]
    found = sorted(glob.glob(os.path.join(folder, "mapping", "relidx2*.csv.gz"))) + glob.glob(os.path.join(folder, "mapping", "reltype2relid.csv.gz"))
    if not found:
        print(f"{folder}/mapping: has no names of relations, which are called by their numbers")
        return names
    try:
        with gzip.open(found[0], "rt", newline="") as file:
            rows = list(csv.reader(file))[1:]
    except (OSError, EOFError, zlib.error, csv.Error, UnicodeDecodeError) as error:
        raise NotAsExpected(f"{found[0]}: cannot be read: {error}") from None
    for row in rows:
        if len(row) < 2 or not row[0].isdecimal():
            raise NotAsExpected(f"{found[0]}: a line is {row}, not a number and a name")
        if int(row[0]) < count:
            names[int(row[0])] = row[1]
    places = {}
    for r, name in enumerate(names):
        if places.setdefault(name, r) != r:
            raise NotAsExpected(f"{found[0]}: calls relations {places[name]} and {r} both {name!r}; without this file they are called by their numbers")
    return names


def find_split(folder, name):
    parent = os.path.join(folder, "split")
    names = sorted(os.listdir(parent)) if os.path.isdir(parent) else []
    if name is None and len(names) == 1:
        name = names[0]
    if name not in names:
        raise NotAsExpected(f"{parent}: {'which split? there is' if name is None else 'no split ' + name + '; there is'} {', '.join(names) or 'none'}")
    return os.path.join(parent, name)


def write(path, contents, directed):
    """The file with /links, whole or as it was."""
    path = os.path.realpath(path)
    temporary = f"{path}.partial-{os.getpid()}"
    try:
        shutil.copy(path, temporary)
        with h5py.File(temporary, "r+") as file:
            group = file.create_group("links")
            group.attrs["version"] = np.int64(1)
            group.attrs["directed"] = np.uint8(directed)
            for name, values in contents.items():
                group[name] = values
            file.attrs.pop("digest", None)  # which is over all data sets
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def convert(folder, path, split, directed):
    split = find_split(folder, split)
    graph = Graph(path)
    paths = {part: os.path.join(split, part + ".pt") for part in PARTS}
    links = {part: links_of(of, load(of), graph) for part, of in paths.items()}
    if not any(len(of["head"]) for of in links.values()):
        raise NotAsExpected(f"{split}: has no links")
    for name in ("negative_heads", "negative_tails", "non_links"):
        links["train"].pop(name, None)
    contents = {f"{part}/{name}": values for part, of in links.items() for name, values in of.items()}
    numbers = [int(of["relation"].max()) for of in links.values() if len(of.get("relation", ()))]
    if numbers:
        names = relation_names(folder, max(numbers) + 1)
        contents["relations"] = np.array([name.encode() for name in names], "S")
        places = graph.places_of(names)
        if places is not None:
            contents["graph_relations"] = places
            for part, of in links.items():
                graph.check_ends(paths[part], of, places)
    write(path, contents, directed or bool(numbers) or bool(graph.types) or graph.directed)
    print(f"{path}: " + ", ".join(f"{part} {len(of['head'])}" for part, of in links.items())
          + f"; `espalier digest {path} --write` adds their digests")


def main(arguments):
    parser = argparse.ArgumentParser(prog="ogb_links.py", description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("folder", metavar="FOLDER", help="as OGB unpacks it")
    parser.add_argument("graph", metavar="GRAPH", help="the graph file, which is changed")
    parser.add_argument("--split", metavar="NAME", help="a folder below FOLDER/split; may be left out when there is one")
    parser.add_argument("--directed", action="store_true", help="links have a direction, though the graph was made symmetric")
    options = parser.parse_args(arguments)
    try:
        convert(options.folder, options.graph, options.split, options.directed)
    except (NotAsExpected, OSError) as error:
        print(f"ogb_links.py: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

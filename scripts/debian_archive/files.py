"""Writes files of OGB's raw csv layout, and a homogeneous graph in it. A graph's folder appears whole or not at all."""

import gzip
import json
import os
import shutil

from .features import NUM_FEATURES


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


def write_parts(folder, parts):
    """The ids of {"train": ids, "valid": ids, "test": ids}."""
    for part, ids in parts.items():
        write_lines(folder, f"{part}.csv.gz", ids.tolist())


def write_graph(folder, edges, kinds, labels, features, splits):
    """The layout of a homogeneous graph (OGB's read_csv_graph_raw)."""
    write_lines(folder, "raw/edge.csv.gz", (f"{u},{v}" for u, v in edges.tolist()))
    write_lines(folder, "raw/edge-feat.csv.gz", kinds.tolist())
    write_lines(folder, "raw/num-node-list.csv.gz", [len(labels)])
    write_lines(folder, "raw/num-edge-list.csv.gz", [len(edges)])
    write_lines(folder, "raw/node-feat.csv.gz", feature_lines(features))
    write_lines(folder, "raw/node-label.csv.gz", label_lines(labels))
    for split, parts in splits.items():
        write_parts(os.path.join(folder, "split", split), parts)


def write_meta(folder, meta):
    """meta.json, which also lists the sizes of the files that stand in folder by then."""
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


def write_whole(folder, meta, write, *arrays):
    """write(unfinished folder, *arrays) and meta.json, in folder + ".tmp" until all is there."""
    unfinished = folder + ".tmp"
    shutil.rmtree(unfinished, ignore_errors=True)
    write(unfinished, *arrays)
    write_meta(unfinished, meta)
    put_in_place(unfinished, folder)

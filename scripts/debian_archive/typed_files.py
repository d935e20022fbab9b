"""Writes a typed graph in OGB's heterogeneous raw csv layout, that of ogbn-mag.

    raw/num-node-dict.csv.gz                        types, then their numbers of nodes
    raw/triplet-type-list.csv.gz                    head,relation,tail: a line for each triplet
    raw/relations/HEAD___RELATION___TAIL/edge.csv.gz and num-edge-list.csv.gz
    raw/nodetype-has-feat.csv.gz, raw/nodetype-has-label.csv.gz, split/NAME/nodetype-has-split.csv.gz
                                                    types, then True or False for each
    raw/node-feat/TYPE/node-feat.csv.gz, raw/node-label/TYPE/node-label.csv.gz, split/NAME/TYPE/PART.csv.gz
                                                    of the types that have them

It is what OGB's read_csv_heterograph_raw, read_node_label_hetero and read_nodesplitidx_split_hetero read. They cannot
read a file without lines, so triplets without edges must not be given.
"""

import os

from .files import feature_lines, label_lines, write_lines, write_parts


def write_typed_graph(folder, num_nodes, relations, labels, features, splits):
    """num_nodes {type: n}; relations {(head, relation, tail): int64 [m, 2]}; labels and features {type: as in
    write_graph} and splits {name: {type: parts}}, of the types that have them."""
    write_lines(folder, "raw/num-node-dict.csv.gz", type_table(num_nodes, num_nodes))
    write_lines(folder, "raw/triplet-type-list.csv.gz", (",".join(triplet) for triplet in sorted(relations)))
    for triplet, edges in relations.items():
        relation = os.path.join(folder, "raw/relations", "___".join(triplet))
        write_lines(relation, "edge.csv.gz", (f"{head},{tail}" for head, tail in edges.tolist()))
        write_lines(relation, "num-edge-list.csv.gz", [len(edges)])
    write_lines(folder, "raw/nodetype-has-feat.csv.gz", type_table(num_nodes, has(num_nodes, features)))
    for node_type, rows in features.items():
        write_lines(folder, f"raw/node-feat/{node_type}/node-feat.csv.gz", feature_lines(rows))
    write_lines(folder, "raw/nodetype-has-label.csv.gz", type_table(num_nodes, has(num_nodes, labels)))
    for node_type, column in labels.items():
        write_lines(folder, f"raw/node-label/{node_type}/node-label.csv.gz", label_lines(column))
    write_typed_splits(folder, num_nodes, splits)


def write_typed_splits(folder, num_nodes, splits):
    for split, parts_of in splits.items():
        write_lines(folder, f"split/{split}/nodetype-has-split.csv.gz",
                    type_table(num_nodes, has(num_nodes, parts_of)))
        for node_type, parts in parts_of.items():
            write_parts(os.path.join(folder, "split", split, node_type), parts)


def type_table(types, values):
    """Two lines of csv: the types in ascending order, and the value of each."""
    types = sorted(types)
    return [",".join(types), ",".join(str(values[node_type]) for node_type in types)]


def has(types, members):
    return {node_type: node_type in members for node_type in types}

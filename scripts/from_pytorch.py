#!/usr/bin/python3
"""Turns a state dict of PyTorch into a weights.h5, which `espalier infer --checkpoint` takes.

    scripts/from_pytorch.py debian.pt --config inputs/debian.toml -o weights.h5        a network that was trained elsewhere
    scripts/from_pytorch.py debian.npz --like output/debian/weights.h5 -o weights.h5   one that came from there

Names and shapes are those of to_pytorch.py, which explains them; GATConv's of before PyTorch Geometric 2.5 are known too.
What no tensor says (aggregator, activation, ...) is as the config says. --config names the input file (TOML) that describes
the network; --like takes that from another weights.h5, with the features' mean and deviation, the names of
their columns and the graph. Without them `espalier infer` measures the features of the graph that it reads, where
graph.feature_norm is "standard", and compares no columns.

Exit codes: 2 usage, 3 a file that cannot be read or is something else.
"""

import argparse
import json
import os
import sys

from to_pytorch import (AFTER, BASES, BATCHES, BLOCK, GROUPS, HEADS, MATRIX, OLD_NAMES, PLAIN, ROW, STATISTICS,
                        check_seal, h5py, kind_of, np, seal_of, stop)

DIMENSIONS = {MATRIX: 2, PLAIN: 2, HEADS: 3, BASES: 3}  # of an array of a form; others have one


def load(path):
    """{name: array} of a .pt or .npz."""
    if path.endswith(".npz"):
        with np.load(path) as file:
            return {name: file[name] for name in file}
    try:
        import torch
    except ImportError:
        sys.exit(f"{sys.argv[0]}: PyTorch is not there, so only .npz can be read")
    return {name: tensor.detach().cpu().numpy() for name, tensor in torch.load(path, map_location="cpu").items()}


def in_our_form(name, values, form):
    """An array of PyTorch's as we have it: [rows, columns], float32."""
    if values.ndim != DIMENSIONS.get(form, 1) or form == HEADS and values.shape[0] != 1:
        raise ValueError(f"{name} has shape {list(values.shape)}, not {form}")
    ours = {MATRIX: lambda: values.T, HEADS: lambda: values.reshape(values.shape[-2:]), PLAIN: lambda: values,
            BASES: lambda: values.reshape(-1, values.shape[-1])}.get(form, lambda: values.reshape(1, -1))()
    return np.ascontiguousarray(ours.astype("<f4"))


def with_new_names(prefix, theirs):
    """GATConv's before 2.5 had its one matrix twice."""
    for name, twice in OLD_NAMES.items():
        if "att_src" not in theirs or not set(twice) <= set(theirs):
            continue
        first, second = (theirs[old] for old in twice)
        if not np.array_equal(first, second):
            raise ValueError(f"{prefix}{twice[0]} and {twice[1]} differ: there is one kind of vertices here")
        theirs = {other: values for other, values in theirs.items() if other not in twice} | {name: first}
    return theirs


def renamed(state, prefix, table):
    """{our name: array [rows, columns]} of the tensors below `prefix`."""
    theirs = {name.removeprefix(prefix): values for name, values in state.items()
              if name.startswith(prefix) and name != prefix + BATCHES}
    if not theirs:
        return {}
    theirs = with_new_names(prefix, theirs)
    rows = {kind: {name: ours for ours, (name, _) in row.items()} for kind, row in table.items()}
    kind = kind_of(rows, theirs)
    if kind is None or set(theirs) != set(rows[kind]):
        raise ValueError(f"{prefix}* is of no kind that this script knows: {sorted(theirs)}")
    return {ours: in_our_form(prefix + name, theirs[name], form) for ours, (name, form) in table[kind].items()}


def input_of(state):
    """{our name: array} of what makes H[0] of the features of types."""
    tensors = {}
    for name, values in state.items():
        group, _, rest = name.partition(".")
        kind, _, tensor = rest.rpartition(".")
        if group == "vectors":
            tensors[f"bias.{rest}"] = in_our_form(name, values, ROW)
        elif group == "inputs" and tensor in ("weight", "bias"):
            tensors[f"{tensor}.{kind}"] = in_our_form(name, values, MATRIX if tensor == "weight" else ROW)
    return tensors


def layers_of(state):
    """{"input": .., "layer1": {our name: array}, ..} and AFTER's of a state dict; "input" with types."""
    first = input_of(state)
    state = {name: values for name, values in state.items() if name.partition(".")[0] not in ("inputs", "vectors")}
    layers = {}
    while any(name.startswith(f"convs.{len(layers)}.") for name in state):
        groups = [renamed(state, f"{group}.{len(layers)}.", table) for group, table in GROUPS.items()]
        layer = f"layer{len(layers) + 1}"
        layers[layer] = {name: values for tensors in groups for name, values in tensors.items()}
    taken = {f"{group}.{number}" for group in GROUPS for number in range(len(layers))}
    after = {layer: renamed(state, prefix, table) for layer, (prefix, table) in AFTER.items()}
    left = [name for name in state if ".".join(name.split(".")[:2]) not in taken
            and not name.startswith(tuple(prefix for prefix, _ in AFTER.values()))]
    if not layers or left:
        raise ValueError(f"there is no place for {left[0]}" if left else "there is no tensor convs.0.*")
    return ({"input": first} if first else {}) | layers | {layer: tensors for layer, tensors in after.items() if tensors}


def inputs_of(tensors):
    """The width of what a layer reads."""
    return next(values.shape[0] for name in ("self", "inner_weight", "weight")
                for ours, values in tensors.items() if ours == name or ours.startswith(f"{name}."))


def about_of(arguments, layers):
    """What weights.h5 says beside the tensors: (attributes, {name: features/...})."""
    if arguments.like:
        check_seal(arguments.like)
        with h5py.File(arguments.like) as file:
            names = ("epoch", "config", "graph")
            rows = {}
            file.visititems(lambda name, item: rows.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
            rows = {name: values for name, values in rows.items() if name.partition("/")[0] in ("features", "nodes", "edges")}
            return {name: file.attrs[name] for name in names}, rows
    with open(arguments.config, encoding="utf-8") as file:
        config = file.read()
    last = layers[[layer for layer in layers if layer != "task"][-1]]
    widths = {"features": inputs_of(layers.get("input", layers["layer1"])), "classes": last["bias"].shape[1]}
    counts = dict.fromkeys(("nodes", "edges", "features", "classes", "train", "valid", "test"), 0) | widths
    return {"epoch": 0, "config": config, "graph": json.dumps(counts)}, {}


def write(path, layers, attributes, rows):
    """Whole or not at all."""
    temporary = f"{path}.tmp-{os.getpid()}"
    try:
        with h5py.File(temporary, "w", userblock_size=BLOCK) as file:
            file.attrs.update({"format": "espalier-weights", "version": np.int64(1), "espalier": "from_pytorch.py"} | attributes)
            for layer, tensors in layers.items():
                for name, values in tensors.items():
                    file[f"{'statistics' if name in STATISTICS else 'weights'}/{layer}.{name}"] = values
            for name, values in rows.items():
                file[name] = values
        with open(temporary, "r+b") as file:
            seal = seal_of(file.read())
            file.seek(0)
            file.write(seal)
        os.replace(temporary, path)
    finally:
        if os.path.exists(temporary):
            os.remove(temporary)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("state", help="NAME.pt or NAME.npz")
    of_network = parser.add_mutually_exclusive_group(required=True)
    of_network.add_argument("--config", help="the input file (TOML) that describes the network")
    of_network.add_argument("--like", help="another weights.h5 of such a network")
    parser.add_argument("-o", "--output", required=True, help="the weights.h5 to write")
    arguments = parser.parse_args()
    try:
        layers = layers_of(load(arguments.state))
        write(arguments.output, layers, *about_of(arguments, layers))
    except (OSError, ValueError, KeyError) as problem:
        stop(f"{arguments.state}: {problem}")


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""Turns weights.h5 of a training into a state dict of PyTorch, with the names and shapes of PyTorch Geometric's modules.

    scripts/to_pytorch.py output/debian/weights.h5 -o debian.pt      for torch.load; needs PyTorch
    scripts/to_pytorch.py output/debian/weights.h5 -o debian.npz     the same arrays for numpy.load

Layer l of the network is convs.{l-1}, and what normalises after it is norms.{l-1}. Weights of PyTorch are [out, in], ours
[in, out]: they are transposed. That is the naming of torch_geometric.nn.models.BasicGNN (GraphSAGE, GCN) and of any module
with two ModuleLists `convs` and `norms`:

    sage    SAGEConv    neighbour -> lin_l.weight, bias -> lin_l.bias, self -> lin_r.weight
    gcn     GCNConv     weight -> lin.weight, bias -> bias
    batch   BatchNorm   scale, shift, mean, variance -> module.weight, module.bias, module.running_mean, module.running_var
    layer   LayerNorm(mode="node")   scale, shift -> weight, bias

The network is: convolution, normalisation, ReLU for every layer but the last. Where weights.h5 has features/mean, features
were standardised: x = (x - mean) / deviation comes before it; the script says so.

Exit codes: 2 usage, 3 a file that cannot be read or is something else.
"""

import argparse
import sys
import zlib

try:
    import h5py
    import numpy as np
except ImportError as missing:
    sys.exit(f"{sys.argv[0]}: {missing}; Debian's python3-h5py has what is needed: run it with /usr/bin/python3")

TITLE, BLOCK = "espalier-weights 1", 512

# A row of the table is a kind of layer, or of normalisation: our name of each tensor, PyTorch's, and is it a matrix?
LAYERS = {"sage": {"self": ("lin_r.weight", True), "neighbour": ("lin_l.weight", True), "bias": ("lin_l.bias", False)},
          "gcn": {"weight": ("lin.weight", True), "bias": ("bias", False)}}
NORMS = {"batch": {"scale": ("module.weight", False), "shift": ("module.bias", False),
                   "mean": ("module.running_mean", False), "variance": ("module.running_var", False)},
         "layer": {"scale": ("weight", False), "shift": ("bias", False)}}
STATISTICS = ("mean", "variance")  # they stand in /statistics, the others in /weights
BATCHES = "module.num_batches_tracked"  # which torch.nn.BatchNorm1d counts


def stop(message):
    print(f"{sys.argv[0]}: {message}", file=sys.stderr)
    sys.exit(3)


def kind_of(table, names):
    """The kind whose tensors a layer's are: the row of the table with the most of them."""
    fitting = [kind for kind, row in table.items() if set(row) <= set(names)]
    return max(fitting, key=lambda kind: len(table[kind]), default=None)


def tensors_of(file):
    """[{name: float32 array} for each layer] of an open weights.h5."""
    layers = {}
    for group in ("weights", "statistics"):
        for name in file.get(group, ()):
            layer, _, tensor = name.partition(".")
            layers.setdefault(int(layer.removeprefix("layer")), {})[tensor] = file[group][name][:]
    return [layers[number] for number in sorted(layers)]


def seal_of(content):
    """The user block before the HDF5 file: the length of all, and CRC-32 of what follows."""
    return f"{TITLE}\nbytes {len(content)}\ncrc32 {zlib.crc32(content[BLOCK:]):08x}\n".encode().ljust(BLOCK, b"\0")


def check_seal(path):
    with open(path, "rb") as file:
        content = file.read()
    if not content.startswith(TITLE.encode()):
        raise ValueError("is not a weights.h5")
    if content[:BLOCK] != seal_of(content):
        raise ValueError("is damaged: its checksum does not fit its bytes")


def state_dict(path):
    """{name of PyTorch: array} of a weights.h5, in the order of the layers."""
    check_seal(path)
    with h5py.File(path) as file:
        layers = tensors_of(file)
    state = {}
    for number, tensors in enumerate(layers):
        kind, norm = kind_of(LAYERS, tensors), kind_of(NORMS, tensors)
        rows = {f"convs.{number}.": LAYERS.get(kind, {}), f"norms.{number}.": NORMS.get(norm, {})}
        known = {name for row in rows.values() for name in row}
        if kind is None or set(tensors) - known:
            raise ValueError(f"layer {number + 1} has tensors of no kind that this script knows: {sorted(tensors)}")
        for prefix, row in rows.items():
            for ours, (theirs, is_matrix) in row.items():
                state[prefix + theirs] = np.ascontiguousarray(tensors[ours].T) if is_matrix else tensors[ours].reshape(-1)
        if norm == "batch":
            state[f"norms.{number}.{BATCHES}"] = np.array(0, dtype=np.int64)
    return state


def standardization(path):
    """(mean, deviation) of each feature, float64, or None."""
    with h5py.File(path) as file:
        if "features/mean" not in file:
            return None
        return file["features/mean"][0], file["features/deviation"][0]


def save(path, state):
    if path.endswith(".npz"):
        np.savez(path, **state)
        return
    try:
        import torch
    except ImportError:
        sys.exit(f"{sys.argv[0]}: PyTorch is not there; give -o a name that ends in .npz, for numpy")
    torch.save({name: torch.from_numpy(values.copy()) for name, values in state.items()}, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights", help="weights.h5 of a training")
    parser.add_argument("-o", "--output", required=True, help="NAME.pt or NAME.npz")
    arguments = parser.parse_args()
    try:
        state = state_dict(arguments.weights)
    except (OSError, ValueError) as problem:
        stop(f"{arguments.weights}: {problem}")
    save(arguments.output, state)
    for name, values in state.items():
        print(f"{name:<32} {list(values.shape)}")
    if standardization(arguments.weights) is not None:
        print(f"features are standardised first: features/mean and features/deviation of {arguments.weights}")


if __name__ == "__main__":
    main()

#!/usr/bin/python3
"""Turns weights.h5 of a training into a state dict of PyTorch, with the names and shapes of PyTorch Geometric's modules.

    scripts/to_pytorch.py output/debian/weights.h5 -o debian.pt      for torch.load; needs PyTorch
    scripts/to_pytorch.py output/debian/weights.h5 -o debian.npz     the same arrays for numpy.load

Layer l of the network is convs.{l-1}, and what normalises after it is norms.{l-1}. Weights of PyTorch are [out, in], ours
[in, out]: they are transposed. That is the naming of torch_geometric.nn.models.BasicGNN (GraphSAGE, GCN, GAT) and of any
module with two ModuleLists `convs` and `norms`:

    sage    SAGEConv    neighbour -> lin_l.weight, bias -> lin_l.bias, self -> lin_r.weight; whatever the aggregator
    gcn     GCNConv     weight -> lin.weight, bias -> bias
    gat     GATConv     weight -> lin.weight, source, target -> att_src, att_dst [1, heads, width], bias -> bias
    gin     GINConv(Sequential(Linear, ReLU, Linear), train_eps=True)
                        eps -> eps, inner_weight, inner_bias -> nn.0.weight, nn.0.bias, weight, bias -> nn.2.weight, nn.2.bias
    rgcn    RGCNConv(num_bases=)   basis -> weight [bases, in, out], coefficient -> comp [relations, bases],
                        self -> root [in, out], bias -> bias
    batch   BatchNorm   scale, shift, mean, variance -> module.weight, module.bias, module.running_mean, module.running_var
    layer   LayerNorm(mode="node")   scale, shift -> weight, bias
    model.residual      residual -> residuals.{l-1}.weight of a Linear without bias; where widths are equal the input
                        itself is added, and there is no tensor
    model.jumping       output.weight, output.bias -> lin.weight, lin.bias
    a graph with types  input.weight.T, input.bias.T -> inputs.T.weight, inputs.T.bias of a Linear, for a type T that has features;
                        input.bias.T -> vectors.T of a ParameterDict for a type that has none
    model.embedding     embedding.T of embeddings.h5, beside weights.h5 -> embeddings.T.weight of an Embedding, which is the
                        features of type T
    train.task = "links"  task.relations -> score.relations.weight of an Embedding: the scores' row of each relation
                        of the score "mlp" task.hidden, task.hidden_bias -> score.0.weight, score.0.bias, task.output,
                        task.output_bias -> score.2.weight, score.2.bias of Sequential(Linear, ReLU, Linear)

PyTorch Geometric before 2.5 calls GATConv's lin.weight lin_src.weight, and has it once more as lin_dst.weight: --old-names.

The network is: convolution, plus the layer's input (residual), normalisation, activation, for every layer but the last,
which has neither of the latter two; with jumping knowledge all layers have them, and a Linear comes after what is made of
their results. With types H[0] is inputs.T(features) for the vertices of T, or vectors.T for each of them; relations are
counted as in the graph file's /relations. GATConv(concat=False) is the last of a network without jumping knowledge. What stands in no tensor
(aggregator, activation, ...) the script prints, with what is done to features first.

Exit codes: 2 usage, 3 a file that cannot be read, is something else, or has tensors that PyTorch has no name for.
"""

import argparse
import json
import os
import sys
import tomllib
import zlib

try:
    import h5py
    import numpy as np
except ImportError as missing:
    sys.exit(f"{sys.argv[0]}: {missing}; Debian's python3-h5py has what is needed: run it with /usr/bin/python3")

TITLE, CHECKPOINT, BLOCK = "espalier-weights 1", "espalier-checkpoint 1", 512

# A row of the table is a kind of layer, or of normalisation: our name of each tensor, PyTorch's, and the form there.
MATRIX, ROW, HEADS = "[out, in]", "[width]", "[1, heads, width]"  # ours: [in, out], [1, width], [heads, width]
PLAIN, BASES = "[rows, columns]", "[bases, in, out]"  # ours: as it is, [bases * in, out]
LAYERS = {"sage": {"self": ("lin_r.weight", MATRIX), "neighbour": ("lin_l.weight", MATRIX), "bias": ("lin_l.bias", ROW)},
          "gcn": {"weight": ("lin.weight", MATRIX), "bias": ("bias", ROW)},
          "gat": {"weight": ("lin.weight", MATRIX), "source": ("att_src", HEADS), "target": ("att_dst", HEADS),
                  "bias": ("bias", ROW)},
          "gin": {"eps": ("eps", ROW), "inner_weight": ("nn.0.weight", MATRIX), "inner_bias": ("nn.0.bias", ROW),
                  "weight": ("nn.2.weight", MATRIX), "bias": ("nn.2.bias", ROW)},
          "rgcn": {"self": ("root", PLAIN), "basis": ("weight", BASES), "coefficient": ("comp", PLAIN),
                   "bias": ("bias", ROW)}}
NORMS = {"batch": {"scale": ("module.weight", ROW), "shift": ("module.bias", ROW),
                   "mean": ("module.running_mean", ROW), "variance": ("module.running_var", ROW)},
         "layer": {"scale": ("weight", ROW), "shift": ("bias", ROW)}}
RESIDUALS = {"linear": {"residual": ("weight", MATRIX)}}
OUTPUTS = {"linear": {"weight": ("weight", MATRIX), "bias": ("bias", ROW)}}
RELATIONS = {"relations": ("relations.weight", PLAIN)}
TASKS = {"links": RELATIONS,
         "links by a network": RELATIONS | {"hidden": ("0.weight", MATRIX), "hidden_bias": ("0.bias", ROW),
                                            "output": ("2.weight", MATRIX), "output_bias": ("2.bias", ROW)}}
AFTER = {"output": ("lin.", OUTPUTS), "task": ("score.", TASKS)}  # the layers
GROUPS = {"convs": LAYERS, "norms": NORMS, "residuals": RESIDUALS}  # of every layer
STATISTICS = ("mean", "variance")  # they stand in /statistics, the others in /weights
BATCHES = "module.num_batches_tracked"  # which torch.nn.BatchNorm1d counts
OLD_NAMES = {"lin.weight": ("lin_src.weight", "lin_dst.weight")}  # of GATConv, before 2.5


def stop(message):
    print(f"{sys.argv[0]}: {message}", file=sys.stderr)
    sys.exit(3)


def kind_of(table, names):
    """The kind whose tensors a layer's are: the row of the table with the most of them."""
    fitting = [kind for kind, row in table.items() if set(row) <= set(names)]
    return max(fitting, key=lambda kind: len(table[kind]), default=None)


def tensors_of(file):
    """{"layer1": {name: float32 array}, .., "output": .., "task": ..} of an open weights.h5, in their order."""
    layers = {}
    for group in ("weights", "statistics"):
        for name in file.get(group, ()):
            layer, _, tensor = name.partition(".")
            layers.setdefault(layer, {})[tensor] = file[group][name][:]
    return dict(sorted(layers.items(), key=lambda item: (list(AFTER).index(item[0]) if item[0] in AFTER else -1, len(item[0]), item[0])))


def seal_of(content, title=TITLE):
    """The user block before the HDF5 file: the length of all, and CRC-32 of what follows."""
    return f"{title}\nbytes {len(content)}\ncrc32 {zlib.crc32(content[BLOCK:]):08x}\n".encode().ljust(BLOCK, b"\0")


def check_seal(path, title=TITLE):
    with open(path, "rb") as file:
        content = file.read()
    if not content.startswith(title.encode()):
        raise ValueError("is not a weights.h5" if title == TITLE else "embeddings.h5 beside it is something else")
    if content[:BLOCK] != seal_of(content, title):
        raise ValueError("is damaged: its checksum does not fit its bytes")


def embeddings_beside(path):
    """{name of PyTorch: array} of the embeddings.h5 beside a weights.h5 whose config asks for some."""
    if config_of(path).get("model", {}).get("embedding", 0) == 0:
        return {}
    beside = os.path.join(os.path.dirname(path), "embeddings.h5")
    if not os.path.exists(beside):
        raise ValueError("has embeddings, which are in embeddings.h5; put that beside it")
    check_seal(beside, CHECKPOINT)
    with h5py.File(beside) as file, h5py.File(path) as weights:
        if file.attrs["config"] != weights.attrs["config"] or file.attrs["best_epoch"] != weights.attrs["epoch"]:
            raise ValueError("embeddings.h5 beside it is of another training")
        if len({attrs["weights_digest"] for attrs in (file.attrs, weights.attrs) if attrs.get("weights_digest")}) > 1:
            raise ValueError("embeddings.h5 beside it is of another training: its weights_digest is another")
        return {f"embeddings.{name.removeprefix('embedding.')}.weight": values[:] for name, values in file["weights"].items()}


def in_form(values, form, bases):
    """An array of ours as PyTorch has it. `bases`: how many matrices stand below one another."""
    if form == MATRIX:
        return np.ascontiguousarray(values.T)
    if form in (PLAIN, BASES):
        return values if form == PLAIN else values.reshape(bases, -1, values.shape[1])
    return values.reshape(-1) if form == ROW else values[np.newaxis]


def prefixes_of(layer):
    """{prefix of PyTorch's names: table} of "layer1", .. or of AFTER; nothing for another name."""
    if layer in AFTER:
        return dict([AFTER[layer]])
    number = layer.removeprefix("layer")
    return {f"{group}.{int(number) - 1}.": table for group, table in GROUPS.items()} if number.isdigit() else {}


def renamed_input(tensors):
    """{name of PyTorch: array} of what makes H[0] of the features of types."""
    state, left = {}, dict(tensors)
    for name in sorted(name.removeprefix("bias.") for name in tensors if name.startswith("bias.")):
        weight, bias = left.pop(f"weight.{name}", None), left.pop(f"bias.{name}")
        if weight is None:
            state[f"vectors.{name}"] = in_form(bias, ROW, 1)
        else:
            state |= {f"inputs.{name}.weight": in_form(weight, MATRIX, 1), f"inputs.{name}.bias": in_form(bias, ROW, 1)}
    if left:
        raise ValueError(f"input has tensors that PyTorch has no name for: {sorted(left)}")
    return state


def renamed(layer, tensors):
    """{name of PyTorch: array} of the tensors of "input", "layer1", .. or of AFTER."""
    if layer == "input":
        return renamed_input(tensors)
    state, left = {}, dict(tensors)
    bases = tensors["coefficient"].shape[1] if "coefficient" in tensors else 1
    for prefix, table in prefixes_of(layer).items():
        kind = kind_of(table, left)
        for ours, (theirs, form) in table.get(kind, {}).items():
            state[prefix + theirs] = in_form(left.pop(ours), form, bases)
        if kind == "batch":
            state[prefix + BATCHES] = np.array(0, dtype=np.int64)
    if left or not any(name.startswith(("convs.", *(prefix for prefix, _ in AFTER.values()))) for name in state):
        raise ValueError(f"{layer} has tensors that PyTorch has no name for: {sorted(left or tensors)}")
    return state


def with_old_names(state):
    """GATConv's as PyTorch Geometric had them before 2.5."""
    old = {}
    for name, values in state.items():
        conv = ".".join(name.split(".")[:2])
        names = OLD_NAMES.get(name.removeprefix(f"{conv}."), ()) if f"{conv}.att_src" in state else ()
        old |= {f"{conv}.{other}": values for other in names} or {name: values}
    return old


def state_dict(path):
    """{name of PyTorch: array} of a weights.h5, in the order of the layers."""
    check_seal(path)
    with h5py.File(path) as file:
        layers = tensors_of(file)
    if not layers:
        raise ValueError("has no weights")
    state = {name: values for layer, tensors in layers.items() for name, values in renamed(layer, tensors).items()}
    return state | embeddings_beside(str(path))


def config_of(path):
    """The config of the training, as weights.h5 holds it: {section: {key: value}}."""
    with h5py.File(path) as file:
        text = file.attrs["config"]
    return tomllib.loads(text if isinstance(text, str) else text.decode())


def activation_of(model):
    """model.activation, or what "auto" stands for."""
    named = model.get("activation", "auto")
    if named != "auto":
        return named
    return "elu" if model.get("kind") == "gat" else "relu"


def unsaid(path):
    """Lines about what stands in no tensor."""
    config = config_of(path)
    model = {"kind": "sage"} | config.get("model", {})
    keys = ["kind", "residual", "jumping", "normalize"] + ["aggregator"] * (model["kind"] == "sage")
    lines = [f"model.{key} = {json.dumps(model[key])}" for key in keys if key in model]
    lines.append(f"model.activation = {json.dumps(activation_of(model))}")
    if config.get("graph", {}).get("feature_norm") == "row":
        lines.append("each row of features is divided by the sum of its magnitudes first")
    if standardization(path) is not None:
        lines.append(f"features are standardised first: features/mean and features/deviation of {path}")
    bits = config.get("graph", {}).get("feature_bits", 32)
    if bits == "bf16":
        lines.append("features are bfloat16: numbers are rounded to the nearest, of two to the even one")
    elif bits < 32:
        lines.append(f"features have {bits} bits: numbers are rounded then, as include/espalier/feature/quantised_rows.hpp says")
    return lines


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
    parser.add_argument("--old-names", action="store_true", help="GATConv's of PyTorch Geometric before 2.5")
    arguments = parser.parse_args()
    try:
        state, lines = state_dict(arguments.weights), unsaid(arguments.weights)
    except (OSError, ValueError, KeyError) as problem:
        stop(f"{arguments.weights}: {problem}")
    if arguments.old_names:
        state = with_old_names(state)
    save(arguments.output, state)
    for name, values in state.items():
        print(f"{name:<32} {list(values.shape)}")
    print(*lines, sep="\n")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes layers.json, which tests/nn/layer_oracle_test.cpp compares networks with: make_layers.py [FOLDER].

The oracle is PyTorch's autograd in float64, as in make_fixtures.py (which says what it needs). What attends or takes
the largest is written over whole matrices here, with the number of times that an edge is there, where the program
goes from entry to entry.
"""

import json
import pathlib
import sys

import torch

from make_fixtures import dense, matrix, random_block

functional = torch.nn.functional


def block_with_own_entries(rows, columns, most):
    """Some rows name their own vertex, some twice; columns are repeated, rows are empty."""
    drawn = random_block(rows, columns, most)
    block = {"rows": rows, "columns": columns, "indptr": [0], "indices": [], "values": []}
    for row in range(rows):
        begin, end = drawn["indptr"][row:row + 2]
        own = row % 4 if row % 4 < 3 else 0
        again = drawn["indices"][begin:begin + row % 2]
        indices = drawn["indices"][begin:end] + [row] * own + again
        block["indices"] += indices
        block["values"] += (torch.rand(len(indices)) * 1.5 - 0.5).float().tolist()
        block["indptr"].append(len(block["indices"]))
    return block


def block_of_relations(rows, columns, relations):
    """Entries of some relations in each row, or none; values are the means over 1, 2 or 4 entries, exactly."""
    block = {"rows": rows, "columns": columns, "indptr": [0], "indices": [], "values": [], "relations": []}
    for _ in range(rows):
        for relation in range(relations):
            count = [0, 0, 1, 2, 4][int(torch.randint(0, 5, ()))]
            block["indices"] += torch.randint(0, columns, (count,)).tolist()
            block["values"] += [1 / count for _ in range(count)]
            block["relations"] += [relation] * count
        block["indptr"].append(len(block["indices"]))
    return block


def runs_of_types(frontiers, types):
    """[begin, end, type] as samplers make them: seeds in any order, then what each layer adds, ascending."""
    runs = []
    for before, end in zip([0] + frontiers[:0:-1], frontiers[::-1]):
        drawn = torch.randint(0, types, (end - before,)).tolist()
        for place, kind in enumerate(sorted(drawn) if before else drawn, before):
            if place > before and runs[-1][2] == kind:
                runs[-1][1] = place + 1
            else:
                runs.append([place, place + 1, kind])
    return runs


def types_of(runs, columns):
    """Of a block's columns, one type where there are no runs."""
    return ([kind for begin, end, kind in runs for _ in range(begin, end)] or [0] * columns)[:columns]


def counts(block):
    """How often each entry is there [rows, columns]."""
    return dense({**block, "values": [1.0] * len(block["indices"])})


# ---- layers: names and shapes of tensors, and the result

def sage_shapes(shape, inputs, outputs, last):
    return {"self": (inputs, outputs), "neighbour": (inputs, outputs), "bias": (1, outputs)}


def sage(shape, block, x, tensor, last):
    if shape["aggregator"] == "max":
        absent = torch.where(counts(block) > 0, 0.0, -torch.inf)
        gathered = (absent.unsqueeze(2) + x.unsqueeze(0)).amax(1)
        gathered = torch.where(gathered == -torch.inf, torch.zeros(()), gathered)
    else:
        gathered = dense(block) @ x
    return x[:block["rows"]] @ tensor("self") + gathered @ tensor("neighbour") + tensor("bias")


def gcn_shapes(shape, inputs, outputs, last):
    return {"weight": (inputs, outputs), "bias": (1, outputs)}


def gcn(shape, block, x, tensor, last):
    return dense(block) @ (x @ tensor("weight")) + tensor("bias")


def gat_shapes(shape, inputs, outputs, last):
    heads = shape["output_heads"] if last else shape["heads"]
    width = outputs if last else outputs // heads
    return {"weight": (inputs, heads * width), "source": (heads, width), "target": (heads, width),
            "bias": (1, outputs)}


def gat(shape, block, x, tensor, last):
    rows, source, target = block["rows"], tensor("source"), tensor("target")
    heads, width = source.shape
    projected = (x @ tensor("weight")).reshape(-1, heads, width)
    there = counts(block)
    there[range(rows), range(rows)] = 1  # the vertex itself, once
    results = []
    for head in range(heads):
        p = projected[:, head]
        scores = (p[:rows] @ target[head]).unsqueeze(1) + (p @ source[head]).unsqueeze(0)
        weights = there * torch.exp(functional.leaky_relu(scores, 0.2))
        results.append(weights / weights.sum(1, keepdim=True) @ p)
    together = torch.stack(results).mean(0) if last else torch.cat(results, 1)
    return together + tensor("bias")


def gin_shapes(shape, inputs, outputs, last):
    return {"eps": (1, 1), "inner_weight": (inputs, outputs), "inner_bias": (1, outputs),
            "weight": (outputs, outputs), "bias": (1, outputs)}


def gin(shape, block, x, tensor, last):
    summed = dense(block) @ x + (1 + tensor("eps")) * x[:block["rows"]]
    return torch.relu(summed @ tensor("inner_weight") + tensor("inner_bias")) @ tensor("weight") + tensor("bias")


def rgcn_shapes(shape, inputs, outputs, last):
    return {"self": (inputs, outputs), "basis": (shape["bases"] * inputs, outputs),
            "coefficient": (shape["relations"], shape["bases"]), "bias": (1, outputs)}


def rgcn(shape, block, x, tensor, last):
    bases = tensor("basis").reshape(shape["bases"], x.shape[1], -1)
    result = x[:block["rows"]] @ tensor("self") + tensor("bias")
    for relation in range(shape["relations"]):
        values = [value * (of == relation) for value, of in zip(block["values"], block["relations"])]
        weight = (tensor("coefficient")[relation].reshape(-1, 1, 1) * bases).sum(0)
        result = result + dense({**block, "values": values}) @ x @ weight
    return result


def rgat_shapes(shape, inputs, outputs, last):
    heads = shape["output_heads"] if last else shape["heads"]
    width, parts = outputs if last else outputs // heads, heads * shape["relations"]
    return {"self": (inputs, outputs), "weight": (parts * inputs, width), "source": (parts, width),
            "target": (parts, width), "bias": (1, outputs)}


def rgat(shape, block, x, tensor, last):
    rows, (parts, width) = block["rows"], tensor("source").shape
    weight = tensor("weight").reshape(parts, x.shape[1], width)
    heads = parts // shape["relations"]
    results = [0] * heads
    for part in range(parts):
        relation, head = divmod(part, heads)
        there = dense({**block, "values": [float(of == relation) for of in block["relations"]]})
        p = x @ weight[part]
        scores = (p[:rows] @ tensor("target")[part]).unsqueeze(1) + (p @ tensor("source")[part]).unsqueeze(0)
        weights = there * torch.exp(functional.leaky_relu(scores, 0.2))
        results[head] = results[head] + weights / weights.sum(1, keepdim=True).clamp(min=1e-300) @ p
    together = torch.stack(results).mean(0) if last else torch.cat(results, 1)
    return x[:rows] @ tensor("self") + together + tensor("bias")


def hgt_width(shape, inputs, outputs, last):
    heads = shape["output_heads"] if last else shape["heads"]
    return heads, -(-inputs // heads) * heads if last else outputs


def hgt_shapes(shape, inputs, outputs, last):
    heads, width = hgt_width(shape, inputs, outputs, last)
    types, parts, head = len(shape.get("types", [0])), heads * shape["relations"], width // heads
    maps = {name: size for map_ in ("key", "value", "query")
            for name, size in ((map_, (types * inputs, width)), (f"{map_}_bias", (types, width)))}
    skip = {"skip": (types, 1)} if inputs == outputs else {}
    return {**maps, "attention": (parts * head, head), "message": (parts * head, head),
            "prior": (shape["relations"], heads), "output": (types * width, outputs), "output_bias": (types, outputs),
            **skip, "bias": (1, outputs)}


def hgt(shape, block, x, tensor, last):
    rows, kinds = block["rows"], torch.tensor(block.get("types", [0] * len(x)))
    heads, width = hgt_width(shape, x.shape[1], tensor("bias").shape[1], last)
    head = width // heads

    def mapped(name, x, kinds):
        each = tensor(name).reshape(-1, x.shape[1], tensor(name).shape[1])[kinds]
        return (x.unsqueeze(1) @ each).squeeze(1) + tensor(name + "_bias")[kinds]
    key, value, query = (mapped(name, x, kinds).reshape(-1, heads, head) for name in ("key", "value", "query"))
    results = []
    for h in range(heads):
        weights, messages = 0, []
        for relation in range(shape["relations"]):
            part = relation * heads + h
            there = dense({**block, "values": [float(of == relation) for of in block["relations"]]})
            turned = key[:, h] @ tensor("attention")[part * head:(part + 1) * head]
            scores = query[:rows, h] @ turned.T * tensor("prior")[relation, h] / head ** 0.5
            messages.append((there * torch.exp(scores), value[:, h] @ tensor("message")[part * head:(part + 1) * head]))
            weights = weights + messages[-1][0].sum(1, keepdim=True)
        results.append(sum(there @ message for there, message in messages) / weights.clamp(min=1e-300))
    y = mapped("output", functional.gelu(torch.cat(results, 1)), kinds[:rows])
    if x.shape[1] == y.shape[1]:
        gate = torch.sigmoid(tensor("skip"))[kinds[:rows]]
        y = gate * y + (1 - gate) * x[:rows]
    return y + tensor("bias")


LAYERS = {"sage": (sage_shapes, sage), "gcn": (gcn_shapes, gcn), "gat": (gat_shapes, gat), "gin": (gin_shapes, gin),
          "rgcn": (rgcn_shapes, rgcn), "rgat": (rgat_shapes, rgat), "hgt": (hgt_shapes, hgt)}


# ---- networks

def widths_of(shape):
    """Of what each layer reads, and of what the last gives."""
    jumps = shape["jumping"] != "none"
    first = shape["hidden"] if "types" in shape else shape["inputs"]
    return [first] + [shape["hidden"]] * (shape["layers"] - (not jumps)) + [shape["classes"]] * (not jumps)


def tensors_of(shape):
    widths, jumps = widths_of(shape), shape["jumping"] != "none"
    shapes = {}
    for layer in range(1, shape["layers"] + 1):
        inputs, outputs, last = widths[layer - 1], widths[layer], layer == shape["layers"] and not jumps
        of_layer = dict(LAYERS[shape["kind"]][0](shape, inputs, outputs, last))
        if shape["residual"] and inputs != outputs:
            of_layer["residual"] = (inputs, outputs)
        if shape["normalize"] != "none" and not last:
            of_layer.update(scale=(1, outputs), shift=(1, outputs))
        shapes.update({f"layer{layer}.{name}": size for name, size in of_layer.items()})
    if jumps:
        width = shape["hidden"] * (shape["layers"] if shape["jumping"] == "concat" else 1)
        shapes.update({"output.weight": (width, shape["classes"]), "output.bias": (1, shape["classes"])})
    for name, has_features in shape.get("types", ()):
        shapes |= {f"input.weight.{name}": (shape["inputs"], shape["hidden"])} if has_features else {}
        shapes[f"input.bias.{name}"] = (1, shape["hidden"])
    scale = 0.5 if shape["kind"] == "hgt" else 1  # products of three matrices in an exponent
    return {name: (scale * torch.randn(size)).requires_grad_() for name, size in shapes.items()}


def of_one_width(shape, x, tensors, runs):
    """H[0]: rows of several types, each by its linear map."""
    rows = []
    for begin, end, kind in runs:
        name, has_features = shape["types"][kind]
        bias = tensors[f"input.bias.{name}"].expand(end - begin, -1)
        rows.append(x[begin:end] @ tensors[f"input.weight.{name}"] + bias if has_features else bias)
    return torch.cat(rows)


def normalized(shape, z, tensor, norm, training):
    if shape["normalize"] == "none":
        return z
    scale, shift = tensor("scale")[0], tensor("shift")[0]
    if shape["normalize"] == "layer":
        return functional.layer_norm(z, z.shape[1:], scale, shift)
    return functional.batch_norm(z, norm["mean"], norm["variance"], scale, shift, training, momentum=0.1)


def forward(shape, blocks, x, tensors, norms, training, runs=()):
    x = of_one_width(shape, x, tensors, runs) if runs else x
    jumps, results = shape["jumping"] != "none", []
    apply, activation = LAYERS[shape["kind"]][1], {"relu": torch.relu, "elu": functional.elu}[shape["activation"]]
    for layer, block in enumerate(blocks, 1):
        def tensor(name):
            return tensors[f"layer{layer}.{name}"]
        last = layer == len(blocks) and not jumps
        z = apply(shape, block, x, tensor, last)
        if shape["residual"]:
            own = x[:block["rows"]]
            z = z + (own @ tensor("residual") if f"layer{layer}.residual" in tensors else own)
        x = z if last else activation(normalized(shape, z, tensor, norms[layer - 1], training))
        results.append(x)
    if not jumps:
        return x
    results = [result[:len(x)] for result in results]
    joined = torch.cat(results, 1) if shape["jumping"] == "concat" else torch.stack(results).amax(0)
    return joined @ tensors["output.weight"] + tensors["output.bias"]


def network_case(kind, frontiers, block=block_with_own_entries, **chosen):
    shape = {"kind": kind, "layers": len(frontiers) - 1, "inputs": 5, "hidden": 6, "classes": 4, "heads": 1,
             "output_heads": 1, "aggregator": "mean", "activation": "relu", "normalize": "none", "residual": False,
             "jumping": "none", **chosen}
    sizes = list(zip(frontiers[1:], frontiers))
    blocks = ([block_of_relations(*size, shape["relations"]) for size in sizes] if "relations" in shape
              else [block(*size, 4) for size in sizes])
    runs = runs_of_types(frontiers, len(shape["types"])) if "types" in shape else []
    for block in blocks if kind == "hgt" else ():
        block["types"] = types_of(runs, block["columns"])
    x = torch.randn(frontiers[0], shape["inputs"]).requires_grad_()
    labels = torch.randint(0, shape["classes"], (frontiers[-1],))
    tensors = tensors_of(shape)
    normalizing = shape["layers"] - (shape["jumping"] == "none") if shape["normalize"] == "batch" else 0
    norms = [{"mean": torch.zeros(shape["hidden"]), "variance": torch.ones(shape["hidden"])} if layer < normalizing
             else None for layer in range(shape["layers"])]
    logits = forward(shape, blocks, x, tensors, norms, True, runs)
    loss = functional.cross_entropy(logits, labels, reduction="sum")
    loss.backward()
    evaluated = forward(shape, blocks, x, tensors, norms, False, runs)
    return {"shape": shape, "blocks": blocks, "input": matrix(x), "labels": labels.tolist(),
            "parameters": {name: matrix(t) for name, t in tensors.items()}, "logits": matrix(logits),
            "loss": loss.item(), "gradients": {name: matrix(t.grad) for name, t in tensors.items()},
            "input_gradient": matrix(x.grad),
            "running_after": [matrix(norm[key]) for norm in norms if norm for key in ("mean", "variance")],
            "evaluated": matrix(evaluated), **({"runs": runs} if runs else {})}


def layers():
    return [network_case("gat", [14, 9], output_heads=1),
            network_case("gat", [20, 12, 6], heads=3, hidden=9, output_heads=2, activation="elu"),
            network_case("gat", [18, 13, 8, 5], heads=4, inputs=8, hidden=8, output_heads=3, normalize="batch",
                         residual=True, activation="elu"),
            network_case("gat", [17, 11, 6], heads=2, hidden=18, jumping="concat", normalize="layer"),
            network_case("gat", [17, 11, 6, 5], heads=2, hidden=4, jumping="max", residual=True),
            network_case("gin", [15, 8]),
            network_case("gin", [19, 13, 9, 6], normalize="batch", residual=True, jumping="max", activation="elu"),
            network_case("gin", [16, 10, 7], inputs=3, hidden=9, jumping="concat"),
            network_case("sage", [21, 12, 6], aggregator="max", normalize="layer", activation="elu"),
            network_case("sage", [18, 12, 8, 5], aggregator="max", inputs=7, hidden=7, residual=True),
            network_case("sage", [17, 12, 7], aggregator="sum", jumping="concat", activation="elu"),
            network_case("sage", [15, 9], aggregator="mean", residual=True, inputs=4),
            network_case("gcn", [18, 11, 7, 5], normalize="batch", jumping="concat", residual=True),
            network_case("rgcn", [16, 9], relations=3, bases=2),
            network_case("rgcn", [19, 12, 6], relations=5, bases=5, hidden=9, activation="elu"),
            network_case("rgcn", [18, 13, 8, 5], relations=6, bases=3, normalize="batch", residual=True),
            network_case("rgcn", [20, 12, 7], relations=4, bases=1, jumping="concat",
                         types=[["a", True], ["b", False], ["c", True]]),
            network_case("sage", [17, 11, 6], residual=True, types=[["a", False], ["b", True]]),
            network_case("rgat", [16, 9], relations=3, output_heads=2),
            network_case("rgat", [19, 12, 6], relations=5, heads=3, hidden=9, activation="elu"),
            network_case("rgat", [18, 13, 8, 5], relations=6, heads=2, output_heads=3, normalize="layer", residual=True),
            network_case("rgat", [20, 12, 7], relations=4, heads=2, jumping="concat", normalize="layer",
                         types=[["a", True], ["b", False], ["c", True]]),
            network_case("hgt", [16, 9], relations=3, output_heads=2),
            network_case("hgt", [17, 12, 6], relations=5, heads=3, inputs=9, hidden=9, normalize="layer"),
            network_case("hgt", [18, 13, 8, 5], relations=4, heads=2, output_heads=3, normalize="layer", residual=True,
                         types=[["a", True], ["b", True]]),
            network_case("hgt", [20, 12, 7], relations=4, heads=2, jumping="concat", normalize="layer",
                         types=[["a", True], ["b", False], ["c", True]])]


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    torch.manual_seed(2025)
    (folder / "layers.json").write_text(json.dumps(layers(), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()

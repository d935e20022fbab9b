#!/usr/bin/env python3
"""Writes the fixtures that the C++ tests of nn/ and train/ compare with: make_fixtures.py [FOLDER].

The oracle is PyTorch's autograd and its optimisers and schedulers, in float64, and the metrics of scikit-learn and of
the Open Graph Benchmark's evaluator: code by other people built on other logic. Debian: apt-get install python3-torch
python3-sklearn; PyPI: ogb. The files are committed; run this again only to change a case. The same versions give the
same bytes. `--only NAME` writes one file.
"""

import argparse
import json
import pathlib
import sys
import types

import torch
from sklearn.metrics import accuracy_score, average_precision_score, f1_score, roc_auc_score

torch.set_default_dtype(torch.float64)


def numbers(tensor):
    return tensor.detach().reshape(-1).tolist()


def matrix(tensor):
    tensor = tensor.detach()
    rows, columns = tensor.shape if tensor.dim() == 2 else (1, tensor.numel())
    return {"rows": rows, "columns": columns, "data": numbers(tensor)}


# ---- networks

def random_block(rows, columns, most):
    """CSR with float32 values, rows possibly empty, columns possibly repeated."""
    indptr, indices, values = [0], [], []
    for _ in range(rows):
        count = int(torch.randint(0, most + 1, ()))
        indices += torch.randint(0, columns, (count,)).tolist()
        values += (torch.rand(count) * 1.5 - 0.5).float().tolist()
        indptr.append(len(indices))
    return {"rows": rows, "columns": columns, "indptr": indptr, "indices": indices, "values": values}


def dense(block):
    result = torch.zeros(block["rows"], block["columns"])
    for row in range(block["rows"]):
        for e in range(block["indptr"][row], block["indptr"][row + 1]):
            result[row, block["indices"][e]] += block["values"][e]
    return result


def networks():
    """Convolutions with every normalisation, on blocks as they are drawn."""
    from make_layers import network_case
    return [network_case(kind, frontiers, random_block, inputs=inputs, hidden=hidden, classes=classes, normalize=normalize)
            for kind, normalize, (inputs, hidden, classes), frontiers in (
                ("sage", "none", (5, 7, 4), [20, 9, 4]),
                ("sage", "batch", (9, 6, 3), [22, 14, 8, 5]),
                ("sage", "layer", (12, 4, 3), [9, 8, 6]),
                ("gcn", "none", (11, 1, 5), [13, 7]),
                ("gcn", "batch", (4, 8, 5), [18, 10, 6]),
                ("gcn", "layer", (14, 5, 6), [16, 12, 9, 7]))]


# ---- loss, optimisers, schedules, metrics

def losses():
    logits = torch.cat([torch.randn(3, 5) * 3, torch.tensor([[1000.0, -1000.0, 999.0, 0.0, 1.0]]),
                        torch.full((1, 5), -800.0)]).requires_grad_()
    labels = torch.tensor([4, 0, 2, 1, 3])
    loss = torch.nn.functional.cross_entropy(logits, labels, reduction="sum")
    (0.25 * loss).backward()
    return {"logits": matrix(logits), "labels": labels.tolist(), "scale": 0.25, "loss": loss.item(),
            "gradient": matrix(logits.grad)}


def optimizer_case(kind, decay, decay_on, options):
    """Three tensors, the second a bias, the third of layer 2; six steps with changing learning rates."""
    tensors = [torch.randn(3, 4), torch.randn(1, 4), torch.randn(4, 2)]
    initial = [matrix(t) for t in tensors]
    decays = [decay, 0.0, decay if decay_on == "all" else 0.0]
    groups = [{"params": [t], "weight_decay": d} for t, d in zip(tensors, decays)]
    optimizer = (torch.optim.Adam if kind == "adam" else torch.optim.SGD)(groups, lr=1, **options)
    steps = []
    for rate in [0.1, 0.1, 0.05, 0.2, 0.01, 0.1]:
        for t in tensors:
            t.grad = torch.randn(t.shape)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        steps.append({"learning_rate": rate, "gradients": [matrix(t.grad) for t in tensors],
                      "parameters": [matrix(t) for t in tensors]})
    return {"kind": kind, "weight_decay": decay, "weight_decay_on": decay_on, "initial": initial, "steps": steps,
            "momentum": options.get("momentum", 0), "beta1": options.get("betas", (0.9, 0.999))[0],
            "beta2": options.get("betas", (0.9, 0.999))[1], "epsilon": options.get("eps", 1e-8)}


def optimizers():
    return [optimizer_case("adam", 0.0, "all", {}),
            optimizer_case("adam", 0.05, "first", {"betas": (0.8, 0.95), "eps": 1e-4}),
            optimizer_case("sgd", 0.0, "all", {}),
            optimizer_case("sgd", 0.03, "all", {"momentum": 0.9})]


def row_optimizer_case(kind):
    """Six steps of SparseAdam, or of Adagrad on sparse gradients, that touch every row; gradients from 1e-5 to 10."""
    torch.manual_seed(5)
    rows, width, rate = 46, 5, 0.05
    table = torch.nn.Parameter(torch.randn(rows, width, dtype=torch.float64) * 0.3)
    initial = matrix(table)
    optimizer = torch.optim.SparseAdam([table], lr=rate) if kind == "adam" else torch.optim.Adagrad([table], lr=rate)
    steps = []
    for _ in range(6):
        gradient = torch.randn(rows, width, dtype=torch.float64) * 10 ** (6 * torch.rand(rows, 1, dtype=torch.float64) - 5)
        table.grad = torch.sparse_coo_tensor(torch.arange(rows)[None], gradient, (rows, width))
        optimizer.step()
        steps.append({"gradient": matrix(gradient), "rows": matrix(table)})
    return {"kind": kind, "rate": rate, "initial": initial, "steps": steps}


def row_optimizers():
    return [row_optimizer_case("adam"), row_optimizer_case("adagrad")]


def rates(scheduler_of, epochs):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.3)
    scheduler, result = scheduler_of(optimizer), []
    for _ in range(epochs):
        result.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return result


def schedules():
    from torch.optim.lr_scheduler import CosineAnnealingLR, StepLR
    return [{"kind": "step", "base": 0.3, "epochs": 12, "every": 5, "factor": 0.2, "minimum": 0,
             "rates": rates(lambda o: StepLR(o, 5, 0.2), 12)},
            {"kind": "cosine", "base": 0.3, "epochs": 9, "every": 1, "factor": 1, "minimum": 0.01,
             "rates": rates(lambda o: CosineAnnealingLR(o, 9, 0.01), 9)}]


def metric_case(classes, labels, predictions):
    return {"classes": classes, "labels": labels, "predictions": predictions,
            "accuracy": accuracy_score(labels, predictions),
            "macro_f1": f1_score(labels, predictions, average="macro", zero_division=0)}


def metrics():
    labels, guesses = torch.randint(0, 6, (80,)), torch.randint(0, 6, (80,))
    mixed = torch.where(torch.rand(80) < 0.6, labels, guesses)
    return [metric_case(6, labels.tolist(), mixed.tolist()),
            metric_case(5, [0, 0, 1, 1, 3], [0, 1, 1, 1, 4]),  # 2 nowhere, 3 only a label, 4 only a prediction
            metric_case(3, [1, 1], [1, 1]),
            metric_case(3, [0, 1], [2, 2])]


# ---- losses and metrics of tasks, each with a seed of its own

def class_loss(weights, smoothing):
    """Of 9 rows and 5 classes; -1: no label."""
    logits = torch.cat([torch.randn(7, 5) * 3, torch.tensor([[1000.0, -1000.0, 999.0, 0.0, 1.0]]),
                        torch.full((1, 5), -800.0)]).requires_grad_()
    labels = torch.tensor([4, 0, -1, 2, 2, 1, 3, 1, 3])
    options = {"weight": None if weights is None else torch.tensor(weights), "label_smoothing": smoothing,
               "ignore_index": -1}
    loss = torch.nn.functional.cross_entropy(logits, labels, reduction="sum", **options)
    (0.25 * loss).backward()
    return {"logits": matrix(logits), "labels": labels.tolist(), "weights": weights or [], "smoothing": smoothing,
            "scale": 0.25, "loss": loss.item(), "gradient": matrix(logits.grad),
            "mean": torch.nn.functional.cross_entropy(logits, labels, reduction="mean", **options).item()}


def several_labels_loss():
    """Sigmoid cross-entropy; 255: unknown."""
    logits = torch.cat([torch.randn(6, 4) * 3, torch.tensor([[800.0, -800.0, 0.0, -0.0], [-1e-9, 40.0, -40.0, 5.0]])])
    labels = torch.randint(0, 2, logits.shape)
    labels[torch.rand(labels.shape) < 0.2] = 255
    known = labels != 255
    logits.requires_grad_()
    loss = torch.nn.functional.binary_cross_entropy_with_logits(logits[known], labels[known].double(), reduction="sum")
    (0.25 * loss).backward()
    return {"logits": matrix(logits), "labels": labels.reshape(-1).tolist(), "scale": 0.25, "loss": loss.item(),
            "gradient": matrix(logits.grad)}


def task_losses():
    torch.manual_seed(7)
    weights = [0.5, 2.25, 0.0, 1.0, 3.5]
    return {"classes": [class_loss(None, 0.0), class_loss(None, 0.1), class_loss(weights, 0.0),
                        class_loss(weights, 0.3)],
            "labels": several_labels_loss()}


def ogb_score(name, labels, scores):
    """Of several columns, nan where unknown, by the evaluator of a data set that is judged so."""
    nothing_newer = types.SimpleNamespace(warn_if_outdated=lambda *_, **__: None, check_outdated=lambda *_, **__: (False, ""))
    sys.modules.setdefault("outdated", nothing_newer)  # which ogb asks the network with when it is imported
    from ogb.graphproppred import Evaluator
    evaluator = Evaluator(name)
    evaluator.num_tasks = labels.shape[1]
    return float(evaluator.eval({"y_true": labels, "y_pred": scores})[evaluator.eval_metric])


def label_case(labels, scores):
    """labels [n, C] of 0, 1 and 255 = unknown; scores [n, C] of float32; what is above 0 is predicted."""
    import numpy as np
    scores, labels = scores.float().numpy(), labels.numpy()
    guesses, known = (scores > 0).astype(int), labels != 255
    columns = []
    for y, s, g in ((labels[known[:, k], k], scores[known[:, k], k], guesses[known[:, k], k])
                    for k in range(labels.shape[1])):
        both = 0 < y.sum() < len(y)
        columns.append({"positives": int(y.sum()), "negatives": int(len(y) - y.sum()),
                        "roc_auc": roc_auc_score(y, s) if both else None,
                        "average_precision": average_precision_score(y, s) if both else None,
                        "f1": f1_score(y, g, zero_division=0) if len(y) else None})
    with_nan = np.where(known, labels, np.nan)
    case = {"rows": len(labels), "columns": columns, "labels": labels.reshape(-1).tolist(),
            "scores": scores.astype(float).reshape(-1).tolist(),
            "micro_f1": f1_score(labels[known], guesses[known], zero_division=0),
            "macro_f1": float(np.mean([c["f1"] for c in columns if c["f1"] is not None]))}
    if known.all():  # scikit-learn's own averages know nothing unknown
        case["micro_f1"], case["macro_f1"] = (f1_score(labels, guesses, average=how, zero_division=0)
                                              for how in ("micro", "macro"))
    if any(c["roc_auc"] is not None for c in columns):
        case["roc_auc"] = ogb_score("ogbg-moltox21", with_nan, scores)
        case["average_precision"] = ogb_score("ogbg-molpcba", with_nan, scores)
    return case


def label_metrics():
    torch.manual_seed(11)
    labels = torch.randint(0, 2, (60, 5))
    scores = torch.randn(60, 5) + labels.double() - 0.5
    rounded = (4 * scores).round() / 4  # many ties, some of them 0
    some = labels.clone()
    some[torch.rand(some.shape) < 0.3] = 255
    some[:, 1] = torch.where(some[:, 1] == 0, 255, some[:, 1])  # no 0
    some[:, 3] = torch.where(some[:, 3] == 1, 0, some[:, 3])  # no 1
    some[:, 4] = 255
    return [label_case(labels, scores), label_case(labels, rounded), label_case(some, rounded),
            label_case(labels, torch.zeros(60, 5)),
            label_case(torch.tensor([[1, 0], [0, 0], [1, 0]]), torch.tensor([[3.0, -1.0], [3.0, -2.0], [-1.0, -3.0]]))]


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).parent)
    options.add_argument("--only")
    options = options.parse_args()
    torch.manual_seed(2024)
    for make in (networks, losses, optimizers, schedules, metrics, task_losses, label_metrics, row_optimizers):
        if options.only in (None, make.__name__):
            (options.folder / f"{make.__name__}.json").write_text(json.dumps(make(), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()

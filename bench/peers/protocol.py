"""How every peer is measured: the command line of a peer's script, the order of things, one JSON line at the end.

    PEER.py sample GRAPH [--fanout 15,10,5] [--batch 1024] [--workers 0] [--repeats 5]
    PEER.py train  GRAPH [--hidden 256] [--epochs 6] [--standardise] ...
    PEER.py reach  GRAPH --target 0.8 [--repeats 40] [--every 5] ...     the rate falls by a cosine

A peer is an object with

    load(graph, fanout)                     builds its graph from a GraphFile; fanout[0] is next to the batch
    batches(seeds, batch, workers)          iterates over the samples of consecutive batches of `seeds`
    edges(sample)                           edges drawn for it
    count_wrong(sample, graph)              0 where it is a sample of that graph

and to train also

    load_features(features, labels)
    network(widths, dropout)                torch module: forward(sample) -> logits of the seeds, layers() ->
                                            [(W_self, W_neighbour, bias)] with h W as the product
    targets(sample)                         labels of the seeds

Threads are the environment's (OMP_NUM_THREADS), compare.py sets them.

Sampling: load and draw one batch (what is resident then, beyond the interpreter and its imports, is the graph's
memory); check three batches; then draw one unbroken stream of epochs, each a new permutation of the training
vertices, and check the last batch of it. The first epoch is warm-up. Workers are started once and prefetch as much
before the clock starts as they have in flight when it stops.

Training: every epoch is timed from its first draw to its last update; the first is warm-up. After the last one: exact
evaluation over all neighbours, here in SciPy for every peer alike, untimed, and not part of the peak memory.
To reach an accuracy: the same with an untimed evaluation every few epochs, until the validation accuracy is there.
"""

import argparse
import json
import os
import signal
import sys
import time

import numpy as np

import graph_file
import memory

BATCHES_CHECKED = 3


def make_parser(text, tasks):
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("task", choices=tasks)
    parser.add_argument("graph")
    parser.add_argument("--fanout", default="15,10,5", help="first: next to the batch")
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--batches", type=int, default=0, help="an epoch of so many batches only")
    parser.add_argument("--workers", type=int, default=0, help="processes that sample; 0: this one")
    parser.add_argument("--repeats", type=int, default=5, help="epochs after the warm-up")
    parser.add_argument("--variant", default="", help="a peer's other way to do it")
    parser.add_argument("--sampler", default="neighbor", choices=["neighbor", "labor"])
    parser.add_argument("--autocast", action="store_true", help="train: products in bfloat16, by torch.autocast")
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--dropout", type=float, default=0.5)
    parser.add_argument("--learning-rate", type=float, default=0.003)
    parser.add_argument("--standardise", action="store_true", help="features to mean 0, deviation 1")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", type=float, default=1.0, help="reach: the validation accuracy to stop at")
    parser.add_argument("--every", type=int, default=5, help="reach: epochs between evaluations")
    return parser


def parse_arguments(parser):
    options = parser.parse_args()
    options.fanout = [int(number) for number in options.fanout.split(",")]
    return options


def run_peer(make_peer, text):
    """`make_peer(options)` imports what the peer needs, so that what is missing is part of the answer."""
    options = parse_arguments(make_parser(text, list(MEASURES)))
    try:
        peer = make_peer(options)
    except ImportError as error:
        answer({"missing": str(error).splitlines()[0]})
        return
    answer(MEASURES[options.task](peer, options))


def answer(result):
    print(json.dumps(result), flush=True)
    for worker in memory.children(os.getpid()):  # still prefetching; nobody waits for them
        os.kill(worker, signal.SIGKILL)
    os._exit(0)


def shuffled_epochs(path, options, epochs):
    """int64: the training vertices, `epochs` times over, each time in another order and cut to whole batches."""
    generator = np.random.default_rng(options.seed)
    train = graph_file.read_split(path, "train")
    length = len(train) // options.batch * options.batch
    if options.batches:
        length = min(length, options.batches * options.batch)
    if length == 0:
        sys.exit(f"{path}: {len(train)} training vertices are less than a batch of {options.batch}")
    return length, np.concatenate([generator.permutation(train)[:length] for _ in range(epochs)])


# ---- Sampling --------------------------------------------------------------------------------------------------------


def load_and_draw_once(peer, options):
    graph = graph_file.GraphFile(options.graph)
    edges = graph.edges
    peer.load(graph, options.fanout)
    del graph  # a peer that copied it needs it no more
    _, seeds = shuffled_epochs(options.graph, options, 1)
    for _ in peer.batches(seeds[: options.batch], options.batch, 0):
        pass
    return edges


def check(peer, options, samples):
    graph, wrong = graph_file.GraphFile(options.graph), 0
    for sample in samples:
        try:
            wrong += peer.count_wrong(sample, graph)
        except IndexError:  # ids outside of the sample itself: nothing of it can be trusted
            wrong += peer.edges(sample)
    return wrong


def first_batches(peer, options):
    _, seeds = shuffled_epochs(options.graph, options, 1)
    return peer.batches(seeds[: BATCHES_CHECKED * options.batch], options.batch, 0)


def measure_sampling(peer, options):
    empty = memory.resident()
    memory.forget_peak()
    edges = load_and_draw_once(peer, options)
    loading_peak = memory.peak() - empty
    graph_bytes = memory.resident() - empty
    wrong = check(peer, options, first_batches(peer, options))
    memory.resident()
    memory.forget_peak()

    length, seeds = shuffled_epochs(options.graph, options, options.repeats + 2)  # the last one is for what prefetches
    per_epoch = length // options.batch
    seconds, counts = [], []
    stream = iter(peer.batches(seeds, options.batch, options.workers))
    for _ in range(options.repeats + 1):
        begin, drawn = time.perf_counter(), 0
        for _ in range(per_epoch):
            sample = next(stream)
            drawn += peer.edges(sample)
        seconds.append(time.perf_counter() - begin)
        counts.append(drawn)
    peak = memory.peak() + memory.of_workers()
    wrong += check(peer, options, [sample])
    return {
        "seconds": seconds[1:], "edges": counts[1:], "batches": per_epoch, "seeds": length, "wrong": wrong,
        "memory": peak, "empty": empty, "graph_bytes": graph_bytes,
        "graph_peak": loading_peak, "graph_edges": edges, "remark": peer.remark,
    }


# ---- Training --------------------------------------------------------------------------------------------------------


def prepare_training(peer, options):
    """The network, its optimiser, features and labels, and wrong picks of the first batches."""
    import torch

    torch.manual_seed(options.seed)
    graph = graph_file.GraphFile(options.graph)
    peer.load(graph, options.fanout)
    del graph
    features = graph_file.read_features(options.graph, options.standardise)
    labels = graph_file.read_labels(options.graph)
    wrong = check(peer, options, first_batches(peer, options))
    widths = [features.shape[1]] + [options.hidden] * (len(options.fanout) - 1) + [int(labels.max()) + 1]
    peer.load_features(torch.from_numpy(features), torch.from_numpy(labels))
    network = peer.network(widths, options.dropout)
    initialise(network)
    return network, torch.optim.Adam(network.parameters(), lr=options.learning_rate), features, labels, wrong


def train_epoch(peer, options, network, optimizer, seeds, after_batch=None):
    """Seconds, edges drawn, and the sum of the losses of all seeds."""
    import torch

    begin, drawn, loss_sum = time.perf_counter(), 0, 0.0
    for sample in peer.batches(seeds, options.batch, options.workers):
        drawn += peer.edges(sample)
        targets = peer.targets(sample)
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=options.autocast):
            loss = torch.nn.functional.cross_entropy(network(sample), targets)
        loss.backward()
        optimizer.step()
        loss_sum += float(loss.detach()) * len(targets)
        if after_batch:
            after_batch()
    return time.perf_counter() - begin, drawn, loss_sum


def measure_training(peer, options):
    network, optimizer, features, labels, wrong = prepare_training(peer, options)
    train = graph_file.read_split(options.graph, "train")
    memory.resident()
    memory.forget_peak()

    seconds, counts, losses, of_workers = [], [], [], [0]
    generator = np.random.default_rng(options.seed)
    for epoch in range(options.repeats + 1):
        note = (lambda: of_workers.append(memory.of_workers())) if epoch == 0 else None
        of_epoch, drawn, loss_sum = train_epoch(peer, options, network, optimizer, generator.permutation(train), note)
        seconds.append(of_epoch)
        counts.append(drawn)
        losses.append(loss_sum / len(train))
    peak = memory.peak() + max(of_workers)

    accuracy = exact_accuracy(options.graph, network, features, labels)
    return {
        "seconds": seconds[1:], "edges": counts[1:], "seeds": len(train), "batches": -(-len(train) // options.batch),
        "memory": peak, "wrong": wrong, "losses": losses, "epochs": options.repeats + 1, "remark": peer.remark,
        "parameters": sum(parameter.numel() for parameter in network.parameters()), **accuracy,
    }


def measure_reaching(peer, options):
    """Accuracies after every few epochs, beside the seconds of training until then."""
    import math

    network, optimizer, features, labels, wrong = prepare_training(peer, options)
    train = graph_file.read_split(options.graph, "train")
    generator = np.random.default_rng(options.seed)
    seconds, points = 0.0, []
    for epoch in range(options.repeats):
        for group in optimizer.param_groups:
            group["lr"] = options.learning_rate * 0.5 * (1 + math.cos(math.pi * epoch / options.repeats))
        seconds += train_epoch(peer, options, network, optimizer, generator.permutation(train))[0]
        if (epoch + 1) % options.every == 0:
            accuracy = exact_accuracy(options.graph, network, features, labels)
            points.append({"epoch": epoch + 1, "seconds": seconds, **accuracy})
            if accuracy["valid"] >= options.target:
                break
    return {"points": points, "wrong": wrong, "remark": peer.remark}


MEASURES = {"sample": measure_sampling, "train": measure_training, "reach": measure_reaching}


def initialise(network):
    """Glorot uniform, biases 0, as Espalier does: every tool starts from the same distribution."""
    import torch

    for parameter in network.parameters():
        if parameter.dim() > 1:
            torch.nn.init.xavier_uniform_(parameter)
        else:
            torch.nn.init.zeros_(parameter)


def exact_accuracy(path, network, features, labels):
    """Accuracy with every neighbour, layer by layer over the whole graph: h' = h W_self + mean(h) W_neighbour + b."""
    import scipy.sparse

    graph = graph_file.GraphFile(path)
    degree = np.maximum(np.diff(graph.indptr), 1)
    ones = np.ones(graph.edges, dtype=np.float32)
    mean = scipy.sparse.csr_matrix((ones, graph.indices, graph.indptr), shape=(graph.nodes, graph.nodes))
    hidden, layers = features, network.layers()
    for number, (w_self, w_neighbour, bias) in enumerate(layers):
        gathered = mean @ hidden / degree[:, None].astype(np.float32)
        hidden = hidden @ w_self + gathered @ w_neighbour + bias
        if number + 1 < len(layers):
            np.maximum(hidden, 0, out=hidden)
    predicted = hidden.argmax(axis=1)
    return {name: float(np.mean(predicted[ids] == labels[ids]))
            for name in ("valid", "test") for ids in [graph_file.read_split(path, name)]}

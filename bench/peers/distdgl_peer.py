"""DGL's dgl.distributed (DistDGL): one server and one trainer per part of the graph, on this host. See protocol.py.

    distdgl_peer.py partition GRAPH --processes 2 --parts FOLDER      METIS's parts into FOLDER
    distdgl_peer.py train     GRAPH --processes 2 --parts FOLDER [--workers 1] [--variant graphbolt] ...

Each part is a machine of its own, as DistDGL means it: an address 127.0.0.2, 127.0.0.3, ... with a server, a trainer
and `--workers` sampling processes (distdgl_machine.py). With `--hosts` it is a network namespace with an address and a
link of its own, whose bytes are counted as `carried` (bench/cluster). Nothing is started by ssh: this script starts
itself in every role. Rows of its own part a trainer and its samplers read from shared memory, others by requests over
TCP.

Parts are METIS's, even in vertices, training vertices and edges (`balance_ntypes`, `balance_edges`); what is timed
is partition_graph, writing included. A trainer draws from the training vertices of its part
(`node_split(force_even=True)`, as DGL's example), gradients are averaged by DistributedDataParallel over gloo. An epoch
lasts from one barrier of all trainers to the next.

Bytes of an epoch: the payloads of all requests that the servers received and of all responses that they sent, for
sampling and features; gradients do not pass there and are not counted.

The memory is that after the last epoch in all servers, trainers and samplers together, a page that several share
counted once. Weights come back to this process, which evaluates them as every peer's.

No process outlives the one that started it, whatever ends it.
"""

import glob
import json
import os
import pathlib
import signal
import socket
import sys
import time
import traceback
import warnings

import numpy as np

import dgl_peer
import distdgl_machine
import graph_file
import memory
import processes
import protocol

warnings.filterwarnings("ignore")

TIME_LIMIT, SHUTDOWN_LIMIT = 380, 30  # seconds: for everything, for servers when their trainers are done
PORT = 30050  # of the trainers, on hosts of their own; servers have the next one


def parse_arguments():
    parser = protocol.make_parser(__doc__, ["partition", "train"])
    parser.add_argument("--processes", type=int, default=2, help="parts, servers and trainers")
    parser.add_argument("--parts", required=True, help="folder of the parts")
    parser.add_argument("--hosts", default="", help="NAME=ADDRESS,... of network namespaces (bench/cluster), one for each part")
    options = protocol.parse_arguments(parser)
    options.hosts = [host.split("=") for host in options.hosts.split(",") if host]
    options.parts = pathlib.Path(options.parts).resolve()
    return options


# ---- Parts -----------------------------------------------------------------------------------------------------------


def partition(options):
    import dgl
    import torch

    file = graph_file.GraphFile(options.graph)
    graph = dgl.graph(("csc", (torch.from_numpy(file.indptr), torch.from_numpy(file.indices.astype(np.int64)), [])),
                      num_nodes=file.nodes)
    graph.ndata["x"] = torch.from_numpy(graph_file.read_features(options.graph, options.standardise))
    graph.ndata["y"] = torch.from_numpy(graph_file.read_labels(options.graph))
    graph.ndata["train"] = torch.zeros(file.nodes, dtype=torch.bool)
    graph.ndata["train"][torch.from_numpy(graph_file.read_split(options.graph, "train"))] = True
    begin = time.perf_counter()
    file_ids, _ = dgl.distributed.partition_graph(
        graph, "parts", options.processes, str(options.parts), part_method="metis", return_mapping=True,
        balance_ntypes=graph.ndata["train"], balance_edges=True, use_graphbolt=options.variant == "graphbolt")
    seconds = time.perf_counter() - begin
    np.save(options.parts / "file_ids.npy", file_ids.numpy())
    return {"seconds": seconds}


# ---- The launcher ----------------------------------------------------------------------------------------------------


def free_port(address):
    with socket.socket() as one:
        one.bind((address, 0))
        return one.getsockname()[1]


def remove_shared_memory():
    """Of this process, or of one that was killed before it could do that."""
    for path in glob.glob("/dev/shm/*distdgl-*"):
        launcher = path.partition("distdgl-")[2].partition("-")[0]
        if launcher == str(os.getpid()) or not os.path.exists(f"/proc/{launcher}"):
            os.unlink(path)


class Cluster(processes.Together):
    """Servers and trainers as processes; they and the memory that they share end with the `with`."""

    def __init__(self, options):
        super().__init__()
        self.options, self.name = options, f"distdgl-{os.getpid()}"
        addresses = [f"127.0.0.{machine + 2}" for machine in range(options.processes)]
        ports = [free_port(one) for one in ["127.0.0.1", *addresses]]
        if options.hosts:  # each its own network, which nobody else is in
            addresses, ports = [address for _, address in options.hosts], [PORT] + [PORT + 1] * options.processes
        (options.parts / "addresses").write_text("".join(f"{one} {port}\n" for one, port in zip(addresses, ports[1:])))
        self.master, self.port = (addresses[0] if options.hosts else "127.0.0.1"), ports[0]

    def start_role(self, role, machine):
        name = f"{role} {machine}"
        log = self.options.parts / f"{name}.log"
        inside = ["ip", "netns", "exec", self.options.hosts[machine][0]] if self.options.hosts else []
        self.start(name, [*inside, sys.executable, *sys.argv], self.environment(role, machine), log)
        return name

    def environment(self, role, machine):
        folder, count = self.options.parts, self.options.processes
        config = json.loads((folder / "parts.json").read_text())
        config["graph_name"] = f"{self.name}-{machine}"
        (folder / f"machine{machine}.json").write_text(json.dumps(config))
        return {"DGL_ROLE": role, "DGL_DIST_MODE": "distributed", "DGL_GRAPH_FORMAT": "csc", "DGL_GROUP_ID": "0",
                "DGL_IP_CONFIG": str(folder / "addresses"), "DGL_CONF_PATH": str(folder / f"machine{machine}.json"),
                "DGL_NUM_SERVER": "1", "DGL_SERVER_ID": str(machine), "DGL_NUM_SAMPLER": str(self.options.workers),
                "DGL_NUM_CLIENT": str(count * (1 + self.options.workers)), "DGL_KEEP_ALIVE": "0",
                "PEER_MACHINE": str(machine), "PEER_NAME": f"{self.name}-{machine}", "RANK": str(machine),
                "WORLD_SIZE": str(count), "MASTER_ADDR": self.master, "MASTER_PORT": str(self.port),
                "GLOO_SOCKET_IFNAME": "eth0" if self.options.hosts else "lo", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
                "PYTHONWARNINGS": "ignore"}

    def train(self):
        servers = [self.start_role("server", machine) for machine in range(self.options.processes)]
        trainers = [self.start_role("trainer", machine) for machine in range(self.options.processes)]
        if not self.wait(trainers, TIME_LIMIT):
            raise processes.Failed(f"trainers not done in {TIME_LIMIT} s: {self.last_words(trainers[0])}")
        self.wait(servers, SHUTDOWN_LIMIT)

    def __exit__(self, *error):
        super().__exit__(*error)
        remove_shared_memory()


class Trained:
    """A network as exact evaluation wants it."""

    def __init__(self, path):
        arrays = np.load(path)
        self.tensors = [arrays[name] for name in arrays.files]

    def layers(self):
        return list(zip(*[iter(self.tensors)] * 3))


def train(options):
    if not (options.parts / "parts.json").exists():
        raise processes.Failed(f"{options.parts}: no parts of a graph; the task `partition` makes them")
    (options.parts / "answer.json").unlink(missing_ok=True)
    with Cluster(options) as cluster:
        cluster.train()
    answer = json.loads((options.parts / "answer.json").read_text())
    features = graph_file.read_features(options.graph, options.standardise)
    answer.update(protocol.exact_accuracy(options.graph, Trained(options.parts / "weights.npz"), features,
                                          graph_file.read_labels(options.graph)))
    return answer


# ---- A server --------------------------------------------------------------------------------------------------------


def serve(options):
    dgl, _ = distdgl_machine.become_machine()
    distdgl_machine.count_payloads()
    dgl.distributed.initialize(os.environ["DGL_IP_CONFIG"], use_graphbolt=options.variant == "graphbolt")


# ---- A trainer -------------------------------------------------------------------------------------------------------


class Trainer:
    def __init__(self, options):
        import torch

        torch.set_num_threads(1)
        dgl, self.ask_for_counts = distdgl_machine.become_machine()
        dgl.distributed.initialize(os.environ["DGL_IP_CONFIG"])
        torch.distributed.init_process_group("gloo")
        self.options, self.rank = options, torch.distributed.get_rank()
        self.graph = dgl.distributed.DistGraph(os.environ["PEER_NAME"])
        if dgl.distributed.rpc.get_machine_id() != self.rank or self.graph.rank() != self.rank:
            sys.exit(f"trainer {self.rank} is {self.graph.rank()} on machine {dgl.distributed.rpc.get_machine_id()}")
        self.seeds = dgl.distributed.node_split(
            self.graph.ndata["train"], self.graph.get_partition_book(), force_even=True)
        sampler = dgl.dataloading.NeighborSampler(options.fanout[::-1])
        self.loader = dgl.dataloading.DistNodeDataLoader(
            self.graph, self.seeds, sampler, batch_size=options.batch, shuffle=True, drop_last=False)
        self.steps = -(-len(self.seeds) // options.batch)
        if self.sum([self.steps])[0] != self.steps * options.processes:
            sys.exit(f"trainer {self.rank} has {self.steps} batches, others more or less: they would wait forever")

    def sum(self, numbers):
        """Over all trainers."""
        import torch

        tensor = torch.tensor(numbers, dtype=torch.float64)
        torch.distributed.all_reduce(tensor)
        return tensor.tolist()

    def counts(self):
        """Bytes moved by all servers so far, and their memory; nothing must be under way."""
        from dgl.distributed import rpc

        torch_barrier()
        moved, resident = 0, 0
        if self.rank == 0:
            for server in range(rpc.get_num_server()):
                rpc.send_request(server, self.ask_for_counts())
            answers = [rpc.recv_response().state for _ in range(rpc.get_num_server())]
            moved, resident = (sum(numbers) for numbers in zip(*answers))
        torch_barrier()
        return moved, resident

    def carried(self):
        """Bytes that left each host and came to it so far, by its link's counters; zeros where machines share one."""
        counts = np.zeros((self.options.processes, 2))
        if self.options.hosts:
            counts[self.rank] = [int(pathlib.Path(f"/sys/class/net/eth0/statistics/{way}_bytes").read_text()) for way in ("tx", "rx")]
        return np.reshape(self.sum(counts.flatten().tolist()), counts.shape)

    def make_network(self):
        import torch

        torch.manual_seed(self.options.seed)
        classes = int(graph_file.read_labels(self.options.graph).max()) + 1
        widths = [self.graph.ndata["x"].shape[1]] + [self.options.hidden] * (len(self.options.fanout) - 1) + [classes]

        class Network(dgl_peer.make_network(widths, self.options.dropout)):
            def forward(self, blocks, features):
                return self.through(blocks, features)

        network = Network()
        protocol.initialise(network)
        torch.manual_seed(self.options.seed + self.rank)  # dropout of its own
        return network

    def epoch(self, network, optimizer):
        """(edges, sum of losses, last sample)"""
        import torch

        edges, loss_sum, sample = 0, 0.0, None
        for sample in self.loader:
            inputs, seeds, blocks = sample
            edges += sum(block.num_edges() for block in blocks)
            features, targets = self.graph.ndata["x"][inputs], self.graph.ndata["y"][seeds]
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(network(blocks, features), targets)
            loss.backward()
            optimizer.step()
            loss_sum += float(loss.detach()) * len(targets)
        return edges, loss_sum, sample

    def first_batches(self):
        ends = range(0, min(protocol.BATCHES_CHECKED * self.options.batch, len(self.seeds)), self.options.batch)
        return [self.loader.collator.collate(self.seeds[at: at + self.options.batch].tolist()) for at in ends]

    def train(self):
        import torch

        peer = dgl_peer.DglPeer()
        peer.fanout, peer.file_ids = self.options.fanout, np.load(self.options.parts / "file_ids.npy")
        wrong = protocol.check(peer, self.options, self.first_batches())
        network = self.make_network()
        parallel = torch.nn.parallel.DistributedDataParallel(network)
        optimizer = torch.optim.Adam(parallel.parameters(), lr=self.options.learning_rate)
        seconds, moved, carried, edges, losses = [], [], [], [], []
        for _ in range(self.options.repeats + 1):
            (before, _), carried_before = self.counts(), self.carried()
            begin = time.perf_counter()
            drawn, loss_sum, sample = self.epoch(parallel, optimizer)
            torch_barrier()
            seconds.append(time.perf_counter() - begin)
            carried.append((self.carried() - carried_before).tolist())
            after, of_servers = self.counts()
            moved.append(after - before)
            drawn, loss_sum, seeds = self.sum([drawn, loss_sum, len(self.seeds)])
            edges.append(drawn)
            losses.append(loss_sum / seeds)
        of_clients = self.sum([memory.proportional("self") + memory.of_workers()])[0]
        wrong += protocol.check(peer, self.options, [sample])
        return network, {
            "seconds": seconds[1:], "edges": edges[1:], "moved": moved[1:], "carried": carried[1:], "losses": losses, "seeds": int(seeds),
            "batches": self.steps * self.options.processes, "memory": of_servers + of_clients,
            "wrong": int(self.sum([wrong])[0]), "epochs": self.options.repeats + 1}


def torch_barrier():
    import torch

    torch.distributed.barrier()


def run_trainer(options):
    trainer = Trainer(options)
    network, answer = trainer.train()
    if trainer.rank == 0:
        np.savez(options.parts / "weights.npz", *(tensor for layer in network.layers() for tensor in layer))
        (options.parts / "answer.json").write_text(json.dumps(answer))
    torch_barrier()


def play(role, options):
    """Ends at once where it fails: at an ordinary exit DGL waits for all others, and they would for this one."""
    processes.die_with_parent()
    try:
        role(options)
    except BaseException as error:
        if isinstance(error, SystemExit) and not error.code:
            raise
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def main():
    options, role = parse_arguments(), os.environ.get("DGL_ROLE")
    if role:
        play(serve if role == "server" else run_trainer, options)
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # so that `with` ends all others
    try:
        import dgl  # noqa: F401
    except ImportError as error:
        protocol.answer({"missing": str(error).splitlines()[0]})
    options.parts.mkdir(parents=True, exist_ok=True)
    try:
        answer = (partition if options.task == "partition" else train)(options)
    except processes.Failed as failed:
        sys.exit(str(failed))
    print(json.dumps(answer), flush=True)


if __name__ == "__mp_main__":  # a trainer's sampling process
    processes.die_with_parent()
    distdgl_machine.become_machine()
if __name__ == "__main__":
    main()

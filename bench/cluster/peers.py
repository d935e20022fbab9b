"""dgl.distributed on the hosts of a cluster: a server and a trainer on each, by bench/peers/distdgl_peer.py."""

import json
import os
import pathlib

import cases
import figures
import processes

LIMIT = 600  # seconds
PEER = pathlib.Path(__file__).resolve().parents[1] / "peers/distdgl_peer.py"
BASELINES = {"dgl": "local", "dgl-worker": "local"}  # both draw from parts, as local batches do
WORKERS = {"dgl": 0, "dgl-worker": 1}  # sampling processes beside each trainer


class Peer:
    """It trains as cases.py says, on METIS's parts, which are made once for a number of hosts."""

    def __init__(self, environment, graph, folder):
        self.python = pathlib.Path(environment).absolute() / "bin/python"
        self.graph, self.folder = graph, folder

    def ask(self, task, hosts, *words):
        parts = self.folder / f"dgl-{hosts.count}"
        environment = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "DGLBACKEND": "pytorch", "PYTHONDONTWRITEBYTECODE": "1"}
        said = processes.run([self.python, PEER, task, self.graph, "--processes", hosts.count, "--parts", parts, "--standardise",
                              *words], environment, LIMIT)
        answer = json.loads(said.splitlines()[-1])
        if "missing" in answer:
            raise processes.Failed(f"dgl: {answer['missing']}")
        return answer

    def runs(self, hosts, epochs):
        """A run of each of WORKERS."""
        if not (self.folder / f"dgl-{hosts.count}/parts.json").exists():
            self.ask("partition", hosts)
        where = ",".join(f"{name}={address}" for name, address in zip(hosts.names, hosts.addresses))
        for name, workers in WORKERS.items():
            answer = self.ask("train", hosts, "--hosts", where, "--workers", workers, "--repeats", epochs - 1, "--fanout",
                              cases.FANOUT.strip("[]"), "--batch", cases.BATCH, "--hidden", cases.NETWORK["hidden"], "--dropout",
                              cases.NETWORK["dropout"], "--learning-rate", cases.NETWORK["learning_rate"])
            if answer["wrong"]:
                raise processes.Failed(f"{name}: {answer['wrong']} wrong picks")
            links = [figures.of_an_epoch(*of_epoch, hosts.gigabits) for of_epoch in zip(answer["carried"], answer["seconds"])]
            yield {"case": name, "hosts": hosts.count, "gigabits": hosts.gigabits, "total": figures.median(answer["seconds"]),
                   "seconds": {}, "bytes": {"fetch": figures.median(answer["moved"])}, "losses": answer["losses"],
                   **{what: figures.median(link[what] for link in links) for what in links[0]}, "test": answer["test"],
                   "load": os.getloadavg()[0]}

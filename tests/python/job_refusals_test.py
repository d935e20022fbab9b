"""What a job in Python refuses, in one line, and goes on. These jobs are in the process of the tests,
beside h5py's own HDF5."""

import os
import pickle
import sys
import types
import unittest.mock

import numpy as np

from tests.app.program import arrays_of
from tests.python.job_test import Jobs

import espalier


class Refusals(Jobs):
    def open(self, **keys):
        job = espalier.open(self.config, **keys)
        self.addCleanup(job.close)
        return job

    def test_a_config_that_is_wrong(self):
        self.refused("nowhere.toml", espalier.open, self.folder / "nowhere.toml")
        self.refused("path or of its text", espalier.open, self.config, text="", train={"epochs": 3})
        self.refused("path or of its text", espalier.open)
        self.refused("train.epoch", espalier.open, self.config, **{"train.epoch": 3})
        self.refused("a key has its section", espalier.open, self.config, epochs=3)
        self.refused("neither a number nor", espalier.open, self.config, train={"epochs": {1}})
        self.refused("nowhere.h5", espalier.open, graph={"file": str(self.folder / "nowhere.h5")})
        job = self.open(train={"epochs": 5}, **{"sampler.batch_size": np.int64(3)})
        self.assertEqual(job.about["config"]["train"]["epochs"], 5)
        self.assertEqual(
            (job.about["config"]["sampler"]["batch_size"], len(job.loader())), (3, 5 * 8)
        )

    def test_a_file_whose_structure_is_damaged(self):
        """Found by another process: HDF5 would end this one."""
        whole = self.graph.read_bytes()
        heap = whole.find(b"GCOL")
        for place, mask in ((24, 0xFF), (25, 0x01), (28, 0xFF)):
            damaged = bytearray(whole)
            damaged[heap + place] ^= mask
            self.graph.write_bytes(damaged)
            self.refused("its structure is damaged", espalier.open, self.config)
        self.graph.write_bytes(whole)
        self.assertEqual(self.open().ranks, 1)

    def test_an_empty_split_has_no_metric(self):
        v = np.arange(20)
        graph = self.folder / "no_valid.h5"
        espalier.write_graph(
            graph, np.stack([v, (v + 1) % 20]), np.eye(20), v % 2, train=v < 10, test=v >= 15
        )
        job = self.open(graph={"file": str(graph)})
        found = job.evaluate()
        self.assertIsNone(found["valid"])
        self.assertIsNotNone(found["test"])

    def test_a_call_that_is_wrong(self):
        job = self.open()
        for words, how in (
            ("nowhere", {"split": "nowhere"}),
            ("split", {"split": "test", "vertices": [1]}),
            ("vertex", {"vertices": [50]}),
            ("vertices: a list of integers", {"vertices": [1.5]}),
            ("fanout", {"fanout": [2]}),
            ("batch_size", {"batch_size": -1}),
            ("epochs", {"epochs": -1}),
            ("is not 'torch', 'numpy'", {"arrays": "jax"}),
            ("pin_memory=True", {"arrays": "numpy", "pin_memory": True}),
        ):
            self.refused(words, job.loader, **how)
        self.refused("50", job.infer, [50])
        with self.assertRaises(KeyError):
            job.weights["layer9.self"]
        name = next(iter(job.weights))
        self.refused(f"{name} is", job.weights.__setitem__, name, np.zeros(3))
        loader = job.loader(arrays="numpy")
        first = iter(loader)
        next(first)
        held = list(loader)
        self.refused("another loop", next, first)
        self.refused("is looped over", lambda: loader[0])
        for change, words in (
            ({"graph": "0"}, "another graph"),
            ({"config": "0"}, "other batches"),
            ({"batches_per_step": 1}, "train.batches_per_step"),
        ):
            self.refused(words, loader.load_state_dict, {**loader.state_dict(), **change})
        loader.load_state_dict({**loader.state_dict(), "epoch": 1, "step": 99})
        self.refused("and step 99 of 2 epochs", list, loader)
        loader.close()
        self.refused("this loader is closed", list, loader)
        job.close()
        job.close()
        for call in (
            job.train_step,
            job.evaluate,
            lambda: list(loader),
            job.loader,
            lambda: job.sum(1),
        ):
            self.refused("this job is closed", call)
        self.assertEqual(
            sorted(v for batch in held for v in batch.seeds.tolist()), sorted(2 * self.train())
        )

    def train(self):
        return arrays_of(self.graph)["split/train"].tolist()

    def test_a_communicator_of_another_mpi(self):
        other = types.ModuleType("mpi4py.MPI")
        other.Get_library_version = lambda: "Another MPI 1.0"
        package = types.ModuleType("mpi4py")
        package.MPI = other
        with unittest.mock.patch.dict(sys.modules, {"mpi4py": package, "mpi4py.MPI": other}):
            self.refused("another MPI library (Another MPI 1.0)", espalier.open, self.config)

    def test_what_wants_our_network(self):
        for key in ("history.kind=graph", "model.embedding=4"):
            name, value = key.split("=")
            section = name.split(".")[0]
            keys = {name: int(value) if value.isdigit() else value}
            self.refused(section, lambda: self.open(**keys).loader())

    def test_another_process(self):
        loader = self.open().loader()
        self.refused("num_workers=0", pickle.dumps, loader)
        child = os.fork()
        if child == 0:
            try:
                next(iter(loader))
            except espalier.DataError as error:
                os._exit(17 if "num_workers=0" in str(error) else 1)
            os._exit(1)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 17)
        self.refused("cannot start", espalier.train, self.config, ranks=2)

"""Whole jobs on a real graph with the kernels as nvcc compiled them, run on the CPU (make test-long; needs nvcc, no GPU).

Laws: one digest of an epoch's samples, pinned, for CPU and GPU on 1, 2 and 4 ranks by every schedule; reproducible losses are those
of the emulation to the last bit on every grid, but where exponentials are nvcc's; a job goes from one device to the other and back.
"""

import os
import unittest

from tests.app.program import LONG, ROOT, SHARED_DATA, ProgramTest

PROGRAM, EMULATED = (str(ROOT / f"build/{build}/espalier") for build in ("ptx", "emulated"))
JOB = ("model.layers=2", "sampler.fanout=[5,3]", "sampler.batch_size=2048", "model.hidden=16", "train.epochs=1", "train.eval_every=0",
       "run.restart=never")
LAYER_WISE = ("sampler.fanout=[3000,3000]",)
SAMPLERS = {"graphsage": ("98d9171f25382507",), "labor": ("91b116a9b0a76dab",), "ladies": ("2a7d99a84b0ec0eb", *LAYER_WISE), "fastgcn": ("a8ead5cf8a976d13", *LAYER_WISE)}
GRIDS = [(1, 1, "pull")] + [(ranks, copies, schedule) for ranks, copies in ((2, 1), (4, 2))
                            for schedule in ("pull", "push", "staged", "staged-oblivious")]


@unittest.skipUnless(LONG, "long: whole jobs on a real graph")
@unittest.skipUnless(os.path.exists(PROGRAM), "what nvcc compiled was not built: make as-compiled")
@unittest.skipUnless(SHARED_DATA.exists(), f"the real graphs are not at {SHARED_DATA}")
class LongAsCompiled(ProgramTest):
    def setUp(self):
        super().setUp()
        self.graph, self.output = self.folder / "debian.h5", self.folder / "out"
        self.succeed("-q", "import", "ogb", SHARED_DATA / "debian_bookworm", "--split", "random_seed0", "--symmetrize", "-o", self.graph)

    def run_job(self, command, device, *overrides, ranks=1, program=PROGRAM, config="debian.toml"):
        self.succeed("-q", command, ROOT / "inputs" / config, f"graph.file={self.graph}", f"output.dir={self.output}", *JOB, *overrides,
                     f"run.device={device}", ranks=ranks, program=program, timeout=600,
                     env=dict(os.environ, ESPALIER_EMULATED_GPUS=str(ranks)))
        return self.report(self.output)

    def losses(self, *job, **options):
        return [epoch["loss"] for epoch in self.run_job("train", "cuda", *job, **options)["epochs"]]

    def test_long_samples_of_every_sampler_and_schedule(self):
        for sampler, (pinned, *more) in SAMPLERS.items():
            for kind in ("sage", "gcn"):
                job = (f"sampler.kind={sampler}", f"model.kind={kind}", *more)
                expected = self.run_job("sample", "cpu", *job)["epochs"][0]["sample_digest"]
                if kind == "sage":
                    self.assertEqual(expected, pinned, sampler)
                for ranks, copies, schedule in GRIDS:
                    with self.subTest(job=job, ranks=ranks, schedule=schedule):
                        found = self.run_job("sample", "cuda", *job, f"grid.replication={copies}", f"grid.schedule={schedule}", ranks=ranks)
                        self.assertEqual(found["epochs"][0]["sample_digest"], expected)

    def test_long_losses(self):
        for kind, *more in (("sage",), ("gcn", "model.normalize=batch"), ("gat", "model.heads=4"), ("gin", "history.kind=replace"),
                            ("sage", "sampler.kind=ladies", *LAYER_WISE)):
            job = (f"model.kind={kind}", *more, "train.epochs=2")
            expected = self.losses(*job, program=EMULATED)
            for ranks, *grid in ((1,), (2, "run.overlap=true"), (4, "grid.replication=2", "graph.features_on=host")):
                with self.subTest(job=job, ranks=ranks):
                    self.assertEqual(self.losses(*job, *grid, ranks=ranks), expected)
            cpu = [epoch["loss"] for epoch in self.run_job("train", "cpu", *job)["epochs"]]
            for ours, theirs in zip(expected, cpu, strict=True):
                self.assertAlmostEqual(ours, theirs, delta=1e-4 * theirs)

    def test_long_from_one_device_to_the_other_and_back(self):
        devices = ("cuda", "cpu", "cuda")
        for epochs, device in enumerate(devices, 1):
            report = self.run_job("train", device, f"train.epochs={epochs}", "run.restart=auto", ranks=epochs)
            self.assertEqual([report["device"], len(report["epochs"])], [device, epochs])
        alone = self.run_job("train", "cpu", "train.epochs=3")
        for ours, theirs in zip(report["epochs"], alone["epochs"], strict=True):
            self.assertEqual(ours["sample_digest"], theirs["sample_digest"])
            self.assertAlmostEqual(ours["loss"], theirs["loss"], delta=1e-4 * theirs["loss"])

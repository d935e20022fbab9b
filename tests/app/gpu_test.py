"""The program on GPUs as a user runs it. Where there is no GPU it is the emulated build, whose kernels run on the CPU.

Laws: the samples, the counts and the bytes between ranks are those of the CPU; losses agree to rounding; with train.reproducible
the weights of every grid and both ways of exchange have the same bits; a GPU that is missing or full ends with one message.
"""

import os
import unittest

from tests.app.program import ROOT, ProgramTest, awkward_graph, espalier
from tests.app.job_test import CONFIG, LONG, SAMPLERS
from tests.launcher import LAUNCHER

BY_CUSPARSE = ("train.reproducible=false", "train.sparse_products=cusparse")
LAYER_WISE = [(f"sampler.kind={kind}", "sampler.fanout=[20,30]") for kind in ("ladies", "fastgcn")]
PROGRAM = os.environ.get("ESPALIER_EMULATED", str(ROOT / "build/emulated/espalier"))


@unittest.skipUnless(os.path.exists(PROGRAM), "the emulated program was not built: make emulated")
class GpuTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.graph = self.folder / "graph.h5"
        self.output = self.folder / "out"
        self.config = self.folder / "job.toml"
        awkward_graph(self.graph)
        self.config.write_text(CONFIG.format(graph=self.graph, output=self.output))

    def run_job(self, command, *overrides, ranks=1, gpus=1, **environment):
        env = dict(os.environ, ESPALIER_EMULATED_GPUS=str(gpus), **environment)
        output = self.succeed("-q", command, self.config, *overrides, ranks=ranks, env=env, program=PROGRAM)
        return self.report(self.output), output

    def same_samples(self, gpu, cpu):
        self.assertEqual(gpu["device"], "cuda")
        self.assertEqual(cpu["device"], "cpu")
        self.assertEqual(gpu["schedules"], cpu["schedules"])
        for ours, theirs in zip(gpu["epochs"], cpu["epochs"], strict=True):
            for key in ("sample_digest", "sampled_edges", "input_rows", "batches", "bytes", "steps"):
                self.assertEqual(ours.get(key), theirs.get(key), key)

    def test_samples_and_losses_are_those_of_the_cpu(self):
        for sampler in SAMPLERS + [("sampler.weighted=true",), ("sampler.fanout=[-1,-1]",)]:
            for ranks in (1, 3) if LONG or sampler in SAMPLERS[::3] else (3,):
                with self.subTest(sampler=sampler, ranks=ranks):
                    job = (*sampler, "train.epochs=2")
                    cpu, _ = self.run_job("train", *job, "run.device=cpu", ranks=ranks)
                    gpu, _ = self.run_job("train", *job, "run.device=cuda", ranks=ranks, gpus=3)
                    self.same_samples(gpu, cpu)
                    for ours, theirs in zip(gpu["epochs"], cpu["epochs"]):
                        self.assertAlmostEqual(ours["loss"], theirs["loss"], delta=1e-5 * theirs["loss"])

    def test_sample_command(self):
        for ranks in (1, 2):
            cpu, _ = self.run_job("sample", "run.device=cpu", ranks=ranks)
            gpu, _ = self.run_job("sample", "run.device=cuda", ranks=ranks)
            self.same_samples(gpu, cpu)

    def same_layer_wise_samples(self, ranks, schedule, sampler):
        job = ("grid.replication=2" if ranks % 4 == 0 else "grid.replication=1", f"grid.schedule={schedule}", *sampler)
        with self.subTest(ranks=ranks, job=job):
            cpu, _ = self.run_job("sample", *job, "run.device=cpu", ranks=ranks)
            gpu, output = self.run_job("sample", *job, "run.device=cuda", ranks=ranks)
            self.same_samples(gpu, cpu)
            self.assertNotIn("CPU", output)

    def test_layer_wise_samplers_by_every_schedule(self):
        for ranks, schedule in ((2, "push"), (3, "staged"), (4, "staged-oblivious"), (6, "pull")):
            for sampler in LAYER_WISE:
                self.same_layer_wise_samples(ranks, schedule, sampler)

    @unittest.skipUnless(LONG, "long: every schedule at every number of ranks")
    def test_layer_wise_samplers_by_every_schedule_at_every_number_of_ranks(self):
        for ranks in (1, 2, 3, 4, 6):
            for schedule in ("pull", "push", "staged", "staged-oblivious"):
                for sampler in LAYER_WISE:
                    self.same_layer_wise_samples(ranks, schedule, sampler)

    def test_weights_have_the_same_bits_on_every_grid(self):
        expected, _ = self.run_job("train", "run.device=cuda")
        settings = [(2, 1, "grid.replication=1"), (2, 2, "grid.replication=2"), (4, 4, "grid.replication=2"),
                    (4, 2, "grid.topology=replicated"), (3, 3, "run.overlap=true"), (3, 3, "graph.features_on=host"),
                    (3, 3, "sampler.bulk=1"), (2, 2, "grid.schedule=push"), (2, 2, "grid.schedule=pull")]
        for ranks, gpus, override in settings:
            with self.subTest(ranks=ranks, gpus=gpus, override=override):
                report, _ = self.run_job("train", "run.device=cuda", override, ranks=ranks, gpus=gpus)
                self.assertEqual(report["weights_digest"], expected["weights_digest"])
                self.assertEqual([e["loss"] for e in report["epochs"]], [e["loss"] for e in expected["epochs"]])

    def test_stopped_after_every_step_it_arrives_at_the_same_bits(self):
        job = ("run.device=cuda", "model.normalize=batch", "train.epochs=2")
        expected, _ = self.run_job("train", *job)
        stops = 0
        for ranks, copies in ((1, 1), (2, 1), (4, 2), (3, 3), (1, 1), (2, 2)):
            code, output = espalier("-q", "train", self.config, *job, "run.max_minutes=1e-9", f"grid.replication={copies}",
                                    ranks=ranks, program=PROGRAM, env=dict(os.environ, ESPALIER_EMULATED_GPUS="4"))
            self.assertIn(code, (0, 5), output)
            stops += code == 5
        self.assertGreaterEqual(stops, 4)  # two epochs of two steps
        report, _ = self.run_job("train", *job, "run.max_minutes=0")
        self.assertEqual(report["weights_digest"], expected["weights_digest"])
        for ours, theirs in zip(report["epochs"], expected["epochs"], strict=True):
            for key in ("loss", "valid", "sample_digest", "sampled_edges", "input_rows"):
                self.assertEqual(ours.get(key), theirs.get(key), key)

    def test_auto_takes_a_gpu_and_says_so(self):
        output = self.succeed("train", self.config, "train.epochs=1", program=PROGRAM)
        self.assertIn("emulated GPU", output)
        self.assertEqual(self.report(self.output)["config"]["run"]["device"], "cuda")
        self.assertGreater(self.report(self.output)["peak_device_memory_bytes"]["max"], 0)
        none = dict(os.environ, ESPALIER_EMULATED_GPUS="0")
        output = self.succeed("train", self.config, "train.epochs=1", program=PROGRAM, env=none)
        self.assertIn("on the CPU (no GPU: no CUDA-capable device is detected)", output)
        self.assertEqual(self.report(self.output)["device"], "cpu")

    def test_a_missing_gpu_ends_with_one_message(self):
        none = dict(os.environ, ESPALIER_EMULATED_GPUS="0")
        self.fail_with(2, ["run.device = cuda", "no CUDA-capable device", "cpu"], "train", self.config, "run.device=cuda",
                       program=PROGRAM, env=none, ranks=2)
        self.fail_with(2, ["train.precision = bf16", "GPU"], "train", self.config, "train.precision=bf16", program=PROGRAM,
                       env=none)
        self.fail_with(2, ["train.sparse_products = cusparse", "GPU"], "train", self.config, *BY_CUSPARSE,
                       program=PROGRAM, env=none)

    def test_a_driver_older_than_the_programs_cuda_is_named(self):
        old = dict(os.environ, ESPALIER_EMULATED_DRIVER="12040")
        self.fail_with(2, ["run.device = cuda", "the driver is for CUDA 12.4, and this program for CUDA 13.0"], "train", self.config,
                       "run.device=cuda", program=PROGRAM, env=old, ranks=2)
        output = self.succeed("train", self.config, "train.epochs=1", program=PROGRAM, env=old)
        self.assertIn("on the CPU (no GPU: the driver is for CUDA 12.4", output)

    def test_a_full_gpu_ends_with_one_message(self):
        small = dict(os.environ, ESPALIER_EMULATED_MEMORY=str((32 << 20) + (19 << 18)))
        self.fail_with(4, ["GPU", "free", "sampler.bulk", "graph.features_on"], "train", self.config, "run.device=cuda",
                       "model.hidden=4000", program=PROGRAM, env=small)

    def test_a_gpu_that_is_full_on_one_rank_ends_the_job_at_once(self):
        """The other one waits for it: in the emulation's ncclCommAbort too, as it may in the library's."""
        small = self.folder / "small_on_rank_1"
        small.write_text(f'#!/bin/sh\n[ "${LAUNCHER.rank_variable}" = 1 ] && export ESPALIER_EMULATED_MEMORY='
                         f'{(32 << 20) + (19 << 18)}\nexec {PROGRAM} "$@"\n')
        small.chmod(0o755)
        for features in ("device", "host"):
            code, output = espalier("train", self.config, "run.device=cuda", "model.hidden=4000", f"graph.features_on={features}",
                                    ranks=2, program=str(small), timeout=60, env=dict(os.environ, ESPALIER_EMULATED_GPUS="2"))
            self.assertEqual(code, 4, output)
            self.assertIn("GPUs exchange by NCCL", output)
            self.assertRegex(output, "espalier: rank 1 on .*: the GPU is full: .*sampler.bulk")
            self.assertNotIn("rank 0 on", output)

    def test_ranks_that_share_a_gpu_give_freed_memory_back(self):
        for gpus, sharing in ((1, 2), (2, 0)):
            output = self.run_job("train", "run.device=cuda", "train.epochs=1", ranks=2, gpus=gpus, ESPALIER_EMULATED_WORDS="1")[1]
            self.assertEqual(output.count("emulated CUDA: the pool keeps 0 bytes"), sharing, output)
            self.assertEqual(output.count(f"emulated CUDA: the pool keeps {2**64 - 1} bytes"), 2, output)

    def test_a_driver_too_old_for_a_new_gpu_is_named(self):
        old = dict(os.environ, ESPALIER_EMULATED_RUNTIME="13020", ESPALIER_EMULATED_GPU="100")
        words = "emulated GPU has compute capability 10.0, for which the driver must compile this program: the driver is for CUDA 13.0"
        self.fail_with(2, ["run.device = cuda", words, "for CUDA 13.2"], "train", self.config, "run.device=cuda", program=PROGRAM, env=old)
        self.assertIn(f"on the CPU (no GPU: {words}", self.succeed("train", self.config, "train.epochs=1", program=PROGRAM, env=old))

    def test_precision_and_synchronous_launches(self):
        exact, _ = self.run_job("train", "run.device=cuda", "train.epochs=1")
        for precision in ("tf32", "bf16"):
            rounded, _ = self.run_job("train", "run.device=cuda", "train.epochs=1", f"train.precision={precision}")
            self.assertEqual(rounded["epochs"][0]["sample_digest"], exact["epochs"][0]["sample_digest"])
            self.assertNotEqual(rounded["weights_digest"], exact["weights_digest"])
            self.assertAlmostEqual(rounded["epochs"][0]["loss"], exact["epochs"][0]["loss"], delta=0.05)
        again, _ = self.run_job("train", "run.device=cuda", "train.epochs=1", ESPALIER_CUDA_SYNC="1")
        self.assertEqual(again["weights_digest"], exact["weights_digest"])

    def test_sparse_products_by_cusparse(self):
        for kind in ("sage", "gcn", "gin"):
            job = ("run.device=cuda", f"model.kind={kind}", "train.epochs=2")
            own, _ = self.run_job("train", *job)
            theirs, output = self.run_job("train", *job, *BY_CUSPARSE)
            self.assertIn("sparse products by cuSPARSE", self.succeed("train", self.config, *job, *BY_CUSPARSE, program=PROGRAM))
            self.assertNotEqual(theirs["weights_digest"], own["weights_digest"])
            for a, b in zip(own["epochs"], theirs["epochs"], strict=True):
                self.assertEqual(a["sample_digest"], b["sample_digest"])
                self.assertAlmostEqual(a["loss"], b["loss"], delta=1e-5 * a["loss"])

    def test_sparse_products_that_would_be_ignored_are_refused(self):
        for job in (("model.kind=gat",), ("model.aggregator=max",)):
            self.fail_with(2, ["train.sparse_products has no meaning with model.", "leave it out"], "train", self.config,
                           "run.device=cuda", *job, *BY_CUSPARSE, program=PROGRAM)


if __name__ == "__main__":
    unittest.main()

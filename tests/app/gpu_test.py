"""The program on GPUs as a user runs it. Where there is no GPU it is the emulated build, whose kernels run on the CPU.

Laws: the samples, the counts and the bytes between ranks are those of the CPU; losses agree to rounding; with train.reproducible
the weights of every grid and both ways of exchange have the same bits; a GPU that is missing or full ends with one message.
"""

from tests.app.job_test import JobTest
from tests.app.program import EMULATED, LONG, espalier, needs_emulation, on_gpus
from tests.launcher import LAUNCHER

BY_CUSPARSE = ("train.reproducible=false", "train.sparse_products=cusparse")
SAMPLERS = [("sampler.kind=graphsage",), ("sampler.kind=graphsage", "model.kind=gcn"), ("sampler.kind=labor",)] + [
    (f"sampler.kind={kind}", f"sampler.mode={mode}") for kind in ("ladies", "fastgcn") for mode in ("paper", "reference", "debiased")]
SMALL = str((32 << 20) + (19 << 18))


@needs_emulation
class GpuTest(JobTest):
    def run_job(self, command, *overrides, ranks=1, gpus=1, **environment):
        output = self.succeed("-q", command, self.config, *overrides, ranks=ranks, **on_gpus(gpus, **environment))
        return self.report(self.output), output

    def refused(self, code, words, *overrides, ranks=1, gpus=1, **environment):
        self.fail_with(code, words, "train", self.config, *overrides, ranks=ranks, **on_gpus(gpus, **environment))

    def on_the_cpu(self, words, gpus=1, **environment):
        """Where run.device is auto, and why."""
        output = self.succeed("train", self.config, "train.epochs=1", **on_gpus(gpus, **environment))
        self.assertIn(f"on the CPU (no GPU: {words}", output)
        self.assertEqual(self.report(self.output)["device"], "cpu")

    def test_samples_and_losses_are_those_of_the_cpu(self):
        # Two of the six kinds and modes of layer-wise samplers; sample/every_sampler_test.cu has them all, by every schedule.
        samplers = SAMPLERS if LONG else SAMPLERS[:4] + SAMPLERS[8:]
        losses = [("model.normalize=layer", "train.class_weights=balanced", "train.label_smoothing=0.1"), ("model.normalize=batch",)]
        for k, sampler in enumerate(samplers + losses + [("sampler.weighted=true",), ("sampler.fanout=[-1,-1]",)]):
            for ranks in (1, 3) if LONG or k == 0 else (2 + k % 2,):
                with self.subTest(sampler=sampler, ranks=ranks):
                    job = (*sampler, "train.epochs=1")
                    cpu, _ = self.run_job("train", *job, "run.device=cpu", ranks=ranks)
                    gpu, _ = self.run_job("train", *job, "run.device=cuda", ranks=ranks, gpus=3)
                    self.assertEqual(gpu["schedules"], cpu["schedules"])
                    self.compare_devices(gpu, cpu, same=("sample_digest", "sampled_edges", "input_rows", "batches", "bytes", "steps"))

    def test_weights_have_the_same_bits_on_every_grid(self):
        expected, _ = self.run_job("train", "run.device=cuda")
        settings = [(2, 1, "grid.replication=1", "grid.schedule=pull"), (2, 2, "grid.replication=2"),
                    (4, 4, "grid.replication=2", "grid.schedule=push"), (3, 2, "grid.topology=replicated", "graph.features_on=host"),
                    (3, 3, "run.overlap=true", "sampler.bulk=1")]
        for ranks, gpus, *overrides in settings:
            with self.subTest(ranks=ranks, gpus=gpus, overrides=overrides):
                report, _ = self.run_job("train", "run.device=cuda", *overrides, ranks=ranks, gpus=gpus)
                self.assertEqual(self.history(report), self.history(expected))

    def test_stopped_after_every_step_it_arrives_at_the_same_bits(self):
        job = ("run.device=cuda", "model.normalize=batch", "train.epochs=2")
        expected, _ = self.run_job("train", *job)
        stops = 0
        for ranks, copies in ((1, 1), (2, 1), (4, 2), (3, 3), (1, 1), (2, 2)):
            code, output = espalier("-q", "train", self.config, *job, "run.max_minutes=1e-9", f"grid.replication={copies}",
                                    ranks=ranks, **on_gpus(4))
            self.assertIn(code, (0, 5), output)
            stops += code == 5
        self.assertGreaterEqual(stops, 4)  # two epochs of two steps
        report, _ = self.run_job("train", *job, "run.max_minutes=0")
        self.assertEqual(self.history(report), self.history(expected))
        self.compare_epochs(report, expected, off=0, same=("sampled_edges", "input_rows"))

    def test_auto_takes_a_gpu_and_says_so(self):
        self.assertIn("emulated GPU", self.succeed("train", self.config, "train.epochs=1", program=EMULATED))
        self.assertEqual(self.report(self.output)["config"]["run"]["device"], "cuda")
        self.assertGreater(self.report(self.output)["peak_device_memory_bytes"]["max"], 0)
        self.on_the_cpu("no CUDA-capable device is detected)", gpus=0)

    def test_a_missing_gpu_ends_with_one_message(self):
        self.refused(2, ["run.device = cuda", "no CUDA-capable device", "cpu"], "run.device=cuda", ranks=2, gpus=0)
        self.refused(2, ["train.precision = tf32", "GPU"], "train.precision=tf32", gpus=0)
        self.refused(2, ["train.sparse_products = cusparse", "GPU"], *BY_CUSPARSE, gpus=0)

    def test_gpus_of_unlike_kinds_are_named_and_refused_where_results_are_to_repeat(self):
        unlike = on_gpus(3, ESPALIER_EMULATED_UNLIKE="28")
        words = "rank 0 emulated GPU (4 multiprocessors, cuBLAS 13.0.2), rank 1 emulated GPU (32 multiprocessors, cuBLAS 13.0.2)"
        self.fail_with(2, words, "train", self.config, "run.device=cuda", "train.reproducible=true", ranks=3, **unlike)
        output = self.succeed("train", self.config, "run.device=cuda", "train.epochs=1", "train.reproducible=false", ranks=2, **unlike)
        self.assertIn("of unlike kinds, emulated GPU (4 multiprocessors", output)
        self.succeed("-q", "train", self.config, "run.device=cuda", "train.epochs=1", "train.reproducible=true", "--overwrite", ranks=3,
                     **on_gpus(1, ESPALIER_EMULATED_UNLIKE="28"))  # all have the first

    def test_a_driver_older_than_the_programs_cuda_is_named(self):
        old = {"ESPALIER_EMULATED_DRIVER": "12040"}
        self.refused(2, ["run.device = cuda", "the driver is for CUDA 12.4, and this program for CUDA 13.0"], "run.device=cuda", ranks=2, **old)
        self.on_the_cpu("the driver is for CUDA 12.4", **old)

    def test_a_full_gpu_ends_with_one_message(self):
        self.refused(4, ["GPU", "free", "sampler.bulk", "graph.features_on"], "run.device=cuda", "model.hidden=4000",
                     ESPALIER_EMULATED_MEMORY=SMALL)

    def test_a_gpu_that_is_full_on_one_rank_ends_the_job_at_once(self):
        """The other one waits for it: in the emulation's ncclCommAbort too, as it may in the library's."""
        small = self.script("small_on_rank_1", f'#!/bin/sh\n[ "${LAUNCHER.rank_variable}" = 1 ] && '
                            f'export ESPALIER_EMULATED_MEMORY={SMALL}\nexec {EMULATED} "$@"\n')
        for features in ("device", "host"):
            code, output = espalier("train", self.config, "run.device=cuda", "model.hidden=4000", f"graph.features_on={features}",
                                    ranks=2, timeout=60, **{**on_gpus(2), "program": str(small)})
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
        old = {"ESPALIER_EMULATED_RUNTIME": "13020", "ESPALIER_EMULATED_GPU": "100"}
        words = "emulated GPU has compute capability 10.0, for which the driver must compile this program: the driver is for CUDA 13.0"
        self.refused(2, ["run.device = cuda", words, "for CUDA 13.2"], "run.device=cuda", **old)
        self.on_the_cpu(words, **old)

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
            self.assertIn("sparse products by cuSPARSE", self.succeed("train", self.config, *job, *BY_CUSPARSE, **on_gpus(1)))
            theirs = self.report(self.output)
            self.assertNotEqual(theirs["weights_digest"], own["weights_digest"])
            self.compare_epochs(theirs, own)

    def test_sparse_products_that_would_be_ignored_are_refused(self):
        for job in (("model.kind=gat",), ("model.aggregator=max",)):
            self.refused(2, ["train.sparse_products has no meaning with model.", "leave it out"], "run.device=cuda", *job, *BY_CUSPARSE)

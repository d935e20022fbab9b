"""Every kind of layer, and what may stand around them, as a user runs them.

Laws: with train.reproducible one weights digest and one set of metrics for every grid, sampler, topology and bulk, also by
overlap; a job that is stopped goes on on another grid with the same bits; `infer` gives the metrics of training; what a
plan says of bytes is what a run moves; the emulated GPU has the samples and, but for rounding, the losses of the CPU; a
shape that makes no sense ends with one message and exit code 2.
"""

from tests.app.job_test import JobTest
from tests.app.program import LONG, needs_emulation, on_gpus

LAYERS = {
    "gat": ("model.kind=gat", "model.heads=2", "model.output_heads=2", "model.residual=true"),
    "gin": ("model.kind=gin", "model.normalize=batch", "train.learning_rate=0.001", "model.jumping=max"),
    "max": ("model.kind=sage", "model.aggregator=max", "model.jumping=concat", "model.activation=elu"),
    "sum": ("model.kind=sage", "model.aggregator=sum", "model.normalize=layer", "model.residual=true"),
}


class Layers(JobTest):
    def test_one_result_for_every_grid(self):
        ways = ((2, "sampler.kind=graphsage", "grid.replication=2"), (3, "sampler.kind=labor", "run.overlap=true"),
                (4, "sampler.kind=ladies", "grid.replication=2"), (3, "sampler.kind=fastgcn", "grid.topology=replicated"))
        for k, layer in enumerate(LAYERS.values()):
            # A way for each layer; nn/layer_test and train/trainer_test have the rest.
            for ranks, sampler, way in ways if LONG else ways[k:k + 1]:
                self.one_history((*layer, sampler), ((ranks, way),))

    def test_attention_goes_on_on_another_grid(self):
        self.goes_on(self.history(self.train(*LAYERS["gat"])), *LAYERS["gat"], then=("grid.replication=3",))

    def test_infer_gives_the_metrics_of_training_and_a_plan_knows_the_bytes(self):
        for k, (name, layer) in enumerate(LAYERS.items()):
            with self.subTest(layer=name):
                ranks = 2 + k % 2
                run = self.train(*layer, ranks=ranks)
                moved, planned = (of["epochs"][0]["bytes"] for of in (run, self.planned(*layer, ranks=ranks)))
                for stage in ("fetch", "reduce", "evaluate"):
                    self.assertEqual(planned[stage]["total"], moved[stage]["total"], stage)
                self.assertEqual(self.inferred(*layer, "--metrics", ranks=2 - k % 2)[1]["test_accuracy"], run["test"]["accuracy"])

    @needs_emulation
    def test_the_emulated_gpu_agrees(self):
        for layer in LAYERS.values():
            cpu, gpu = (self.train(*layer, "train.epochs=1", f"run.device={device}", ranks=2, **on_gpus(2)) for device in ("cpu", "cuda"))
            self.compare_devices(gpu, cpu, off=1e-4)

    def test_shapes_that_make_no_sense(self):
        for overrides, words in ((("model.kind=gat", "model.heads=3"), ["model.hidden = 8", "model.heads = 3", "6 or 9"]),
                                 (("model.heads=2",), ["model.heads", "has no meaning", "sage", "gat"]),
                                 (("model.kind=gcn", "model.aggregator=max"), ["model.aggregator", "has no meaning", "sage"]),
                                 (("model.layers=1", "sampler.fanout=[3]", "model.hidden=256", "model.dropout=0.3"), ["model.dropout", "sage"]),
                                 (("model.aggregator=median",), ["model.aggregator", "mean | max | sum"]),
                                 (("model.kind=gin", "sampler.kind=ladies", "sampler.mode=reference"), ["sampler.mode", "gin", "debiased"]),
                                 (("model.aggregator=sum", "sampler.kind=ladies", "sampler.mode=reference"), ["model.aggregator = sum"]),
                                 (("model.kind=gin", "sampler.weighted=true", "sampler.kind=ladies"), ["sampler.weighted", "gin"])):
            with self.subTest(overrides=overrides):
                self.fail_with(2, words, "train", self.config, *overrides)
        self.assertFalse(self.output.exists())

    def test_help_lists_the_layers(self):
        words = self.succeed("help", "train")
        for kind in ("sage", "gcn", "gat", "gin"):
            self.assertIn(f"\n  {kind} ", words)

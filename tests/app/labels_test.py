"""espalier train with train.task = "labels": several labels of 0 or 1 per vertex, some of them unknown.

Laws: with train.reproducible losses, weights and scores have the same bits on every grid, after a restart too; an unknown label
changes nothing but by its absence, however the file says it; a plan foretells the bytes; a task or a metric that does not fit ends with
one message and its exit code, and nothing is written.
"""

import csv

import numpy as np

from tests.app.program import LONG, ProgramTest, forget_digests, needs_emulation, on_gpus, put, read

NODES = 600
METRICS = ["roc_auc", "average_precision", "micro_f1", "macro_f1"]


class LabelsTest(ProgramTest):
    JOB = ("sampler.fanout=[4, 3]", "sampler.batch_size=32", "model.hidden=16", "model.layers=2", "model.dropout=0.25", 'train.task="labels"',
           "train.epochs=2", "train.learning_rate=0.01", "train.batches_per_step=4", "train.reproducible=true", "run.threads=1")

    GENERATE = ("planted", "--nodes", NODES, "--classes", 5, "--labels", 7, "--degree", 8, "--features", 12, "--seed", 4)

    def history(self, report):
        return super().history(report) + [report["train"], report["best_epoch"], *(epoch["train"] for epoch in report["epochs"])]

    def labels(self):
        return read(self.graph, "nodes/labels")

    def put_labels(self, labels):
        forget_digests(self.graph)
        put(self.graph, {"nodes/labels": labels})

    def split(self, name):
        return read(self.graph, f"split/{name}")


class Training(LabelsTest):
    def test_same_bits_on_every_grid(self):
        report = self.train()
        self.assertEqual(list(report["test"]), METRICS)
        self.assertNotIn("confusion", report)
        self.one_history((), ((3,), (4, "grid.replication=2"), *LONG * ((2, "grid.replication=2"),),
                              (2, "run.threads=2", "grid.topology=replicated", "sampler.bulk=3")), self.history(report))
        for ranks in (1, 3):
            rows, _ = self.inferred("--predictions", ranks=ranks)
            self.assertEqual(rows["predictions"].dtype, np.uint8)
            np.testing.assert_array_equal(rows["predictions"], rows["logits"] > 0)
            self.assertGreater(rows["predictions"].sum(), 0)

    @needs_emulation
    def test_on_the_emulated_gpu(self):
        cpu, gpu = (self.train(f"run.device={device}", ranks=2, **on_gpus(2)) for device in ("cpu", "cuda"))
        self.compare_devices(gpu, cpu, off=1e-4)
        for ours, theirs in zip(gpu["epochs"], cpu["epochs"], strict=True):
            for name in METRICS:  # a vertex or two may change places
                self.assertAlmostEqual(ours["valid"][name], theirs["valid"][name], delta=0.05)
        for ranks, *grid in ((1,), (4, "grid.replication=2", "graph.features_on=host")):
            found = self.train("run.device=cuda", *grid, ranks=ranks, **on_gpus(2))
            self.assertEqual(self.history(found), self.history(gpu))

    def test_a_restart_on_another_grid_goes_on_with_the_same_bits(self):
        self.goes_on(self.history(self.train()))

    def test_the_metric_chooses_the_best_epoch_and_every_file_has_all_of_them(self):
        for metric in METRICS:
            report = self.train(f"train.metric={metric}", "train.learning_rate=0.2", "train.epochs=6")
            found = [epoch["valid"][metric] for epoch in report["epochs"]]
            self.assertEqual(report["best_epoch"], found.index(max(found)) + 1, metric)
            if metric == "roc_auc":
                self.assertGreater(report["test"][metric], 0.6)
        with open(self.output / "metrics.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        for name in METRICS:
            for split in ("train", "valid"):
                self.assertEqual([float(row[f"{split}_{name}"]) for row in rows], [e[split][name] for e in report["epochs"]])

    def test_output_names_the_metrics(self):
        output = self.succeed("train", self.config, "train.early_stop=1", "train.learning_rate=0.2", "train.epochs=20")
        self.assertIn("12 features, 7 labels;", output)
        test = self.report(self.output)["test"]
        self.assertIn(f'test ROC-AUC {test["roc_auc"]:.4f}, average precision {test["average_precision"]:.4f}, '
                      f'micro-F1 {test["micro_f1"]:.4f}, macro-F1 {test["macro_f1"]:.4f}, with the weights of epoch', output)
        self.assertIn("no better validation ROC-AUC in 1 evaluation\n", output)

    def test_the_loss_is_a_mean_over_known_labels(self):
        """Weights that do not move, of one layer without dropout: the loss is a function of logits that do not change."""
        frozen = ("train.learning_rate=0", "train.epochs=1", "model.layers=1", "sampler.fanout=[-1]", "model.hidden=256",
                  "model.dropout=0.5")
        labels, train = self.labels(), self.split("train")
        whole, losses = (labels != 255)[train], []
        for keep in (np.arange(len(train)) < 150, np.arange(len(train)) >= 150):
            part = labels.copy()
            part[train[~keep]] = 255
            self.put_labels(part)
            losses.append(self.train(*frozen)["epochs"][0]["loss"] * whole[keep].sum())
        self.put_labels(labels)
        loss = self.train(*frozen)["epochs"][0]["loss"]
        self.assertAlmostEqual(loss, sum(losses) / whole.sum(), delta=1e-12 * loss)

    def test_unknown_is_255_or_minus_one(self):
        expected = self.history(self.train())
        labels = self.labels()
        for others in (np.where(labels == 255, -1, labels.astype(np.int8)).astype(np.int8), labels.astype(np.int64)):
            self.put_labels(others)
            self.one_history((), ((2,),), expected)
        self.assertIn(f"{(labels == 255).sum()} unknown", self.succeed("info", self.graph))

    def test_a_plan_foretells_bytes_and_memory(self):
        for ranks, copies in ((1, 1), (3, 1), (4, 2)):
            job = (f"grid.replication={copies}", "train.epochs=1")
            report, plan = self.train(*job, ranks=ranks), self.planned(*job, ranks=ranks)
            counted, said = (json["epochs"][0]["bytes"] for json in (report, plan))
            for stage in counted:
                self.assertEqual(said[stage]["total"], counted[stage]["total"], (stage, ranks))
            self.assertEqual(said["evaluate"]["messages"], counted["evaluate"]["messages"], ranks)
            self.assertLess(abs(plan["peak_memory_bytes"]["max"] / report["peak_memory_bytes"]["max"] - 1), 0.2)


class BadInput(LabelsTest):
    def refuse(self, code, words, *overrides, ranks=1):
        self.fail_with(code, words, "train", self.config, *overrides, ranks=ranks)
        self.assertFalse(self.output.exists())

    def test_tasks_and_metrics_that_do_not_fit(self):
        self.refuse(3, ["7 labels per vertex", 'train.task = "classes" wants one', 'use train.task = "labels"'], "train.task=classes")
        self.refuse(2, ["train.task = \"labels\" train.metric = accuracy: not one of roc_auc"], "train.metric=accuracy", ranks=3)
        self.refuse(2, ["train.task = \"classes\" train.metric = roc_auc: not one of accuracy, macro_f1"],
                    "train.task=classes", "train.metric=roc_auc")
        self.refuse(2, ["train.task", "classes | labels"], "train.task=label")
        for key in ("class_weights=balanced", "label_smoothing=0.1"):
            self.refuse(2, [key.split("=")[0], 'has no meaning with train.task = "labels"'], f"train.{key}")
        self.put_labels(np.arange(NODES, dtype=np.int32).reshape(-1, 1) % 4)
        self.refuse(3, ["one label per vertex", 'train.task = "labels" wants several', 'use train.task = "classes"'])

    def test_labels_that_teach_or_tell_nothing(self):
        labels = self.labels()
        one_sided = labels.copy()
        one_sided[self.split("valid")] = 1
        self.put_labels(one_sided)
        self.refuse(3, ["/split/valid", "ROC-AUC is not defined", "micro_f1"])
        report = self.train("train.metric=micro_f1")
        self.assertEqual(list(report["epochs"][0]["valid"]), ["micro_f1", "macro_f1"], "what is not defined is left out")

    def test_numbers_that_are_no_labels(self):
        for ranks, wrong, kind in ((3, 2, np.uint8), (1, 254, np.uint8), (1, 300, np.int32), (2, -2, np.int16), (1, 256, np.uint16)):
            labels = self.labels().astype(kind)
            labels[labels == 255] = 0
            labels[17, 3] = wrong
            self.put_labels(labels)
            self.refuse(3, [f"row 17 holds {wrong}", "0 or 1, or 255"], ranks=ranks)

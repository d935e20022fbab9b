"""What another value of a key does to a restart and to an inference, for every key that `espalier help config` lists.

Laws: a key that changes the shape or the meaning of trained weights is refused by both, one that changes what else a checkpoint
keeps by the restart alone: exit 2, the key, both values, "put it back". One that changes the trajectory is refused where the
checkpoint was not named, and a warning where it was. All others together change no loss. A key without a case here is a failure.
"""

import re
import shutil
import tempfile

import h5py
import numpy as np

from tests.app.program import ProgramTest, arrays_of, attributes_of, espalier, put, read, seal

JOB = ("sampler.fanout=[3, 3]", "sampler.batch_size=20", "model.layers=2", "model.hidden=8", "model.dropout=0.1", "train.epochs=1",
       "train.batches_per_step=2", "train.reproducible=true", "run.threads=1", "run.checkpoint_every=1")
# Jobs by name, and for each key one of them and another value; further keys are what the value cannot stand without.
GAT, RGCN, SGD = ("model.kind=gat",), ("model.kind=rgcn", "model.bases=2"), ("train.optimizer=sgd",)
LADIES = ("sampler.kind=ladies", "sampler.fanout=[30,30]")
HISTORY = ("history.kind=replace", "history.t_stale=3")
ROWS = (*RGCN, "model.embedding=3")
LINKS = ("train.task=links", "train.score=transe", "train.loss=self_adversarial")
CASES = {
    "graph.feature_norm": ((), "row"), "graph.feature_bits": ((), "8"), "graph.target": (RGCN, "author"), "sampler.weighted": ((), "true"),
    "sampler.kind": (LADIES, "fastgcn"), "sampler.mode": (LADIES, "reference"),
    "sampler.relation_fanout": (RGCN, '["writes=0"]'),
    "model.kind": ((), "gcn"), "model.hidden": ((), "16"), "model.layers": ((), "3", "sampler.fanout=[3,3,3]"),
    "model.bases": (RGCN, "3"), "model.edge_features": (GAT, "true"), "model.embedding": (ROWS, "4"),
    "model.heads": (GAT, "2"), "model.output_heads": (GAT, "2"), "model.residual": ((), "true"), "model.jumping": ((), "max"),
    "model.normalize": ((), "batch"), "model.activation": ((), "elu"), "model.aggregator": ((), "max"),
    "train.score": (LINKS, "distmult"), "train.norm": (LINKS, "2"), "train.ranked_against": (LINKS, "20"),
    "train.task": ((), "labels"), "train.metric": ((), "macro_f1"), "graph.split": ((), "other"), "train.optimizer": ((), "sgd"),
    "train.embedding_optimizer": (ROWS, "adagrad"),
    "train.loss": (LINKS, "sigmoid"), "train.margin": (LINKS, "2.5"), "train.temperature": (LINKS, "0.5"),
    "train.negatives": (LINKS, "2"), "train.negatives_mode": (LINKS, "shared"),
    "train.negatives_power": ((*LINKS, "train.negatives_mode=degree"), "0.5"), "train.negatives_filtered": (LINKS, "true"),
    "train.negatives_of": (LINKS, "both"),
    "sampler.batch_size": ((), "10"), "sampler.groups": ((), "4"), "train.seed": ((), "3"),
    "train.batches_per_step": ((), "3"), "sampler.fanout": ((), "[2,2]"), "sampler.draw": (("sampler.weighted=true",), "race"),
    "sampler.share_batches": (("sampler.kind=labor",), "2"),
    "model.dropout": ((), "0.2"), "model.input_dropout": ((), "0.2"), "model.attention_dropout": (GAT, "0.2"),
    "train.class_weights": ((), "balanced"), "train.label_smoothing": ((), "0.1"), "train.learning_rate": ((), "0.01"),
    "train.momentum": (SGD, "0.5"), "train.embedding_rate": (ROWS, "0.1"), "train.lr_schedule": ((), "cosine"),
    "train.lr_warmup": ((), "2"), "train.lr_step": (("train.lr_schedule=step",), "2"),
    "train.lr_decay": (("train.lr_schedule=step",), "0.5"), "train.weight_decay": ((), "0.1"),
    "train.clip_norm": ((), "0.05"), "train.average_weights": ((), "0.9"),
    "train.weight_decay_on": (("train.weight_decay=0.1",), "first"), "train.precision": ((), "bf16"),
    "train.sparse_products": (("train.reproducible=false",), "cusparse"),
    "history.kind": ((), "replace"), "history.p_grad": (HISTORY, "0.5"), "history.recompute": (HISTORY, "0.5"),
    "history.t_stale": (HISTORY, "4"), "history.start": (HISTORY, "1"), "history.scope": (HISTORY, "lane"),
    "history.stored": (HISTORY, "fp16"), "history.entries": (HISTORY, "50"), "history.draw": (HISTORY, "needed"),
}
# Other values of all that costs only, at once.
COST = ("grid.replication=2", "grid.schedule=pull", "sampler.bulk=3", "train.epochs=2", "train.early_stop=9", "train.eval_every=2",
        "run.cache_memory=1MB", "run.cache_policy=belady", "run.threads=2", "run.memory_limit=8GB", "run.overlap=true",
        "run.prefetch_steps=2", "run.checkpoint_every=2", "run.checkpoint_minutes=5", "run.max_minutes=50", "run.stall_minutes=50",
        "run.device=cpu", "graph.features_on=node", "graph.verify=false", "run.memory_check=warn",
        f"run.spill={tempfile.gettempdir()}")
# Those that this test cannot set, or that have no meaning with the others.
NO_CASE = {"graph.file", "graph.order", "graph.cut", "grid.topology", "run.restart", "output.dir", "train.reproducible"}
# What is refused before a checkpoint is looked at: labels of another kind; no GPU.
FOUND_BEFORE = {"train.task", "train.sparse_products"}
# Worked out by what the network and the trainer do with them, not read off the table; all others are `trajectory` or `cost`.
EXPECTED = {
    "shape": {f"model.{key}" for key in ("kind", "hidden", "layers", "bases", "edge_features", "embedding", "heads", "output_heads",
                                         "residual", "jumping", "normalize")},
    "meaning": {"graph.feature_norm", "graph.feature_bits", "graph.target", "sampler.weighted", "model.activation", "model.aggregator", "train.task",
                "train.score", "train.norm"},
    "draw": {"sampler.kind", "sampler.mode", "sampler.relation_fanout"},
    "state": {"graph.split", "train.metric", "train.optimizer", "train.embedding_optimizer", "train.ranked_against"},
    "batches": {"sampler.batch_size", "sampler.groups", "train.seed", "train.batches_per_step", "train.negatives", "train.negatives_mode",
                "train.negatives_power", "train.negatives_filtered", "train.negatives_of"},
}
CHANGES_NETWORK, KEPT = {"shape", "meaning"}, {"state"}


class Keys(ProgramTest):
    JOB = JOB

    def setUp(self):
        super().setUp()
        self.plain, self.typed = self.folder / "plain.h5", self.folder / "typed.h5"
        self.succeed("-q", "generate", "planted", "--nodes", 120, "--features", 5, "--classes", 3, "--edge-features", 2, "-o", self.plain)
        self.put({"graph/weights": np.linspace(0.5, 2, len(read(self.plain, "graph/indices")), dtype=np.float32),
                  **{f"split/other/{part}": ids[1:] for part, ids in arrays_of(self.plain, "split").items()}}, self.plain)
        self.succeed("-q", "generate", "planted", "--types", "paper=120:5,author=90", "--classes", 3,
                     "--relations", "author.writes.paper=300,paper.cites.paper=400", "-o", self.typed)
        # A second type to learn on.
        self.put({"nodes/author/labels": np.arange(90, dtype=np.int32) % 3,
                  **{f"split/author/{split}": np.arange(30 * k, 30 * k + 30) for k, split in enumerate(("train", "valid", "test"))}}, self.typed)
        self.links = self.folder / "links.h5"
        self.succeed("-q", "prepare", self.plain, "--split-links", "0.8,0.1,0.1", "-o", self.links)
        self.effects = dict(re.findall(r"(?m)^  (\w+\.\w+) +(?:\S.*?) +(shape|meaning|draw|state|batches|trajectory|cost) ",
                                       self.succeed("help", "config")))
        self.trained = {}

    def job(self, keys):
        """The words of a job with these keys, trained once; and the folder where it lies."""
        if keys not in self.trained:
            typed = any(key.startswith("model.kind=rgcn") for key in keys)
            graph = self.typed if typed else self.links if "train.task=links" in keys else self.plain
            words = [self.config, f"graph.file={graph}", *keys] + ["graph.target=paper"] * typed
            folder = self.folder / f"out{len(self.trained)}"
            self.succeed("-q", "train", *words, f"output.dir={folder}")
            (folder / "report.json").unlink()  # as if it had been cut off after its epoch
            self.trained[keys] = words, folder
        return self.trained[keys]

    def refused(self, key, value, *command):
        output = self.fail_with(2, [f"{key} = ", "there and", "here"], *command, overwrite=False)
        self.assertRegex(output, "[Pp]ut the key back")
        if re.fullmatch(r"[\w.]+", value):
            self.assertRegex(output, rf'{re.escape(key)} = .* there and "?{re.escape(value)}"? here')

    def effect_of(self, key):
        """kind and relation_fanout of these cases: fastgcn has the matrix of ladies, a relation left out is another matrix."""
        effect = self.effects[key]
        return effect if effect != "draw" else "trajectory" if key == "sampler.kind" else "meaning"

    def test_every_key_has_a_case(self):
        self.assertGreater(len(self.effects), 80)
        cost = {word.partition("=")[0] for word in COST} | NO_CASE
        self.assertEqual(set(self.effects), (set(CASES) | cost) & set(self.effects), "a key without a case")
        for key, effect in self.effects.items():
            self.assertEqual(effect == "cost", key in cost, key)
        for effect, keys in EXPECTED.items():
            self.assertEqual({key for key, found in self.effects.items() if found == effect}, keys, effect)

    def test_what_a_restart_and_an_inference_refuse(self):
        for key, (keys, value, *more) in CASES.items():
            if key == "sampler.groups":  # needs an order: app/order_test
                continue
            with self.subTest(key):
                effect = self.effect_of(key)
                words, folder = self.job(keys)
                other = [*words, f"{key}={value}", *more, "train.epochs=2"]
                if key in FOUND_BEFORE:
                    code, output = espalier("train", *other, f"output.dir={folder}")
                    self.assertIn(code, (2, 3), output)
                    self.assertIn(key, output)
                    continue
                self.refused(key, value, "train", *other, f"output.dir={folder}")
                named = ("train", *other, f"run.restart={folder}/checkpoints", f"output.dir={self.folder}/elsewhere")
                if effect in CHANGES_NETWORK | KEPT:
                    self.refused(key, value, *named)
                elif effect == "batches":
                    self.assertRegex(self.succeed(*named), rf"warning: .*{re.escape(key)} = .* there and .* here")
                infer = self.infer_words(*words[1:], f"{key}={value}", *more, weights=folder / "weights.h5")
                if effect in CHANGES_NETWORK:
                    self.refused(key, value, *infer)
                    self.assertFalse((self.folder / "rows.h5").exists())
                elif effect in KEPT:
                    self.succeed("-q", *infer, "--overwrite")

    def test_what_costs_only_changes_nothing(self):
        words, folder = self.job(())
        whole = self.folder / "whole"
        self.succeed("-q", "train", *words, "train.epochs=2", f"output.dir={whole}")
        shutil.copytree(folder, self.folder / "cut", symlinks=True)
        known = [word for word in COST if word.partition("=")[0] in self.effects]
        output = self.succeed("train", *words, *known, f"output.dir={self.folder}/cut", ranks=2)
        self.assertNotIn(" there and ", output)
        expected, found = self.report(whole), self.report(self.folder / "cut")
        self.assertEqual([e["loss"] for e in found["epochs"]], [e["loss"] for e in expected["epochs"]])
        self.assertEqual(found["weights_digest"], expected["weights_digest"])

    def test_the_target_may_be_left_out_where_one_type_has_labels(self):
        graph = self.folder / "one.h5"
        shutil.copy(self.typed, graph)
        self.put({"nodes/author/labels": None, "split/author": None}, graph)
        job = (f"graph.file={graph}", *RGCN, f"output.dir={self.folder}/named")
        self.succeed("-q", "train", self.config, *job)
        self.succeed("-q", "train", self.config, *job, "graph.target=paper", "train.epochs=2", overwrite=False)
        self.infer_to("rows.h5", *job, "graph.target=paper", weights=self.folder / "named/weights.h5")

    def test_a_tensor_that_nobody_takes(self):
        words, folder = self.job(())
        saved = (folder / "checkpoints" / "latest").resolve()
        put(saved, {"weights/layer9.self": np.zeros((2, 3), dtype=np.float32)})
        seal(saved)
        self.fail_with(3, ["weights/layer9.self", "no part of this training"], "train", *words, "train.epochs=2",
                       f"output.dir={folder}", f"run.restart={saved}")

    def test_what_was_removed_stands_in_files_of_earlier_versions(self):
        words, folder = self.job(())
        saved = (folder / "checkpoints" / "latest").resolve()

        def rewrite(old, new):
            for path in (saved, folder / "weights.h5"):
                with h5py.File(path, "a") as file:
                    text = file.attrs["config"]
                    self.assertEqual(text.count(old), 1)
                    file.attrs["config"] = text.replace(old, new)
                seal(path)

        # Another training: no restart goes on with it, and its weights are weights.
        before = '[history]\nkind = "none"'
        for value in ('kind = "variate"', "lag = 0", "layers = [ 1 ]"):
            rewrite(before, f"[history]\n{value}")
            for more in ((), (f"run.restart={saved}",)):
                self.fail_with(2, [f'history.{value}, which was removed; set run.restart = "never"'], "train", *words, "train.epochs=2",
                               f"output.dir={folder}", *more, overwrite=False)
            for weights in (folder / "weights.h5", saved):
                self.infer_to("rows.h5", *words[1:], weights=weights)
            before = f"[history]\n{value}"

        # The same training.
        rewrite(before, '[history]\nadmit = "awaited"\nmemory = "1MiB"\nfeature_rows = "auto"\nlag = 1\nlayers = []\nsaved = false\naudit = true\nkind = "none"')
        rewrite("groups = 0", 'groups = 64\nbatches = "uniform"')
        rewrite("[graph]\n", "[graph]\nshare_features = true\n")
        rewrite("[grid]\n", "[grid]\nlatency_us = 1.0\nbandwidth_gbs = 25.0\n")
        rewrite("[run]\n", '[run]\nexchange_rounds = "one"\n')
        whole = self.folder / "whole"
        for output in (whole, folder):
            self.succeed("-q", "train", *words, "train.epochs=2", f"output.dir={output}", overwrite=False)
        self.assertEqual(self.report(folder)["restart"]["epoch"], 2)
        self.assertEqual(self.report(folder)["weights_digest"], self.report(whole)["weights_digest"])

    def test_embeddings_that_are_missing_or_of_another_run(self):
        words, folder = self.job(ROWS)
        infer = self.infer_words(*words[1:], weights=folder / "weights.h5")
        beside = folder / "embeddings.h5"
        mine = beside.read_bytes()
        beside.unlink()
        self.fail_with(3, ["embeddings.h5 is missing", "rows that were learnt"], *infer)
        self.succeed("-q", "train", *words, "train.seed=5", f"output.dir={self.folder}/other")
        shutil.copy(self.folder / "other/embeddings.h5", beside)
        self.fail_with(3, ["embeddings.h5 is of another run"], *infer)
        ours, theirs = (attributes_of(path)["weights_digest"] for path in (folder / "weights.h5", self.folder / "other/embeddings.h5"))
        self.assertEqual(theirs, self.report(self.folder / "other")["weights_digest"])
        self.assertNotEqual(ours, theirs)
        beside.write_bytes(mine)
        self.succeed("-q", *infer)

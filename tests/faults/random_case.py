"""One case of configs.py: a graph, a configuration that the program accepts, and what must hold of its training.

All that a case does follows from its number; each question is answered by numbers of its own, so that a new key, or a new law,
changes no other answer of an old case.
"""

import json
import random
import subprocess
import tomllib

import h5py
import numpy as np

from tests.app.program import difference, environment_apart, not_finite
from tests.faults import random_graphs
from tests.faults.random_values import NONSENSE, keys_of, write_config
from tests.launcher import LAUNCHER

PATIENCE = 120


class Broken(Exception):
    """(law, what broke it)"""


def check(holds, law, words):
    if not holds:
        raise Broken(law, words)


def result_of(folder):
    """What a run has learnt, of its report."""
    report = json.loads((folder / "report.json").read_text())
    epochs = [{key: epoch.get(key) for key in ("epoch", "loss", "train", "valid", "sample_digest", "batches", "sampled_edges",
                                               "history")} for epoch in report["epochs"]]
    return {"epochs": epochs, **{key: report.get(key) for key in ("weights_digest", "best_epoch", "train", "test", "confusion")}}


class Case:
    def __init__(self, number, folder, options):
        self.number, self.folder, self.options = number, folder, options
        self.r, self.keys = None, keys_of(options.program)
        self.runs, self.log, self.order, self.cut, self.broken = 0, [], None, None, []

    def random_of(self, what):
        return random.Random(f"{self.number} {what}")

    # --- the program

    def espalier(self, *arguments, ranks=1):
        """(exit code, what it said)"""
        command = [self.options.program, *map(str, arguments)]
        command = LAUNCHER.command(ranks, *command)
        self.log.append(" ".join(command))
        self.runs += 1
        with environment_apart(self.folder) as env, subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=env) as process:
            try:
                said, _ = process.communicate(timeout=PATIENCE * self.options.slow)
            except subprocess.TimeoutExpired:
                process.terminate()  # a launcher takes its ranks along
                try:
                    process.wait(5)
                except subprocess.TimeoutExpired:
                    process.kill()
                raise Broken("words", f"no end within {PATIENCE * self.options.slow} s") from None
        self.log.append(f"  {process.returncode} " + " / ".join(line for line in said.splitlines() if "error" in line))
        return process.returncode, said

    def train(self, config, ranks, name=None, codes=(0, 2, 3, 4, 6)):
        """(exit code, what it said, the folder of its results), by the law of words."""
        output = self.folder / (name or f"out{self.runs}")
        path, before = self.folder / f"{output.name}.toml", set(output.rglob("*"))
        write_config(path, {**config, "output.dir": str(output)})
        code, said = self.espalier("-q", "train", path, ranks=ranks)
        self.check_words(code, said, codes)
        if code in (2, 3, 4):
            left = [entry.name for entry in set(output.rglob("*")) - before if entry.name in ("report.json", "weights.h5")]
            check(not left, "words", f"refused, and left {left}")
        elif code == 6:
            check((output / "report.json").exists() and "not finite" in said, "words", f"exit code 6: {said[-3000:]}")
        elif code == 0:
            for wanted in ("report.json", "weights.h5", "metrics.csv", "config.toml"):
                check((output / wanted).exists(), "words", f"exit code 0 without {wanted}")
            self.check_finite(json.loads((output / "report.json").read_text()), output / "weights.h5")
        return code, said, output

    def check_finite(self, report, path):
        with h5py.File(path) as file:
            found = not_finite(report, "report") or not_finite(file, path.name)
        check(not found, "finite", f"not a finite number, and exit code 0: {found}")

    def check_words(self, code, said, codes=(0, 2, 3, 4)):
        check(code in codes, "words", f"exit code {code}:\n{said[-3000:]}")
        errors = [line for line in said.splitlines() if line.startswith("espalier: error:")]
        if code in (2, 3, 4, 6):
            check(len(errors) == 1, "words", f"exit code {code} and {len(errors)} messages:\n{said[-3000:]}")
            check(self.keys.named(errors[0]) or str(self.folder) in errors[0], "words", f"no key, no file is named: {errors[0]}")
        else:
            check(not errors, "words", f"exit code {code} and {errors}")

    # --- what is tried

    def without_named(self, config, said, kept=()):
        """The configuration without one of the keys that a message names; None if it names none that is set."""
        error = next(line for line in said.splitlines() if line.startswith("espalier: error:"))
        named = [name for name in self.keys.named(error) if name in config and name not in ("graph.file", *kept)]
        if not named:
            return None
        # A key without which the others stand, if there is one.
        name = self.r.choice([name for name in named if name not in ("model.layers", "train.reproducible")] or named)
        dropped = ("model.layers", "sampler.fanout") if name == "model.layers" else (name,)
        left = {key: value for key, value in config.items() if key not in dropped}
        if name in ("model.layers", "sampler.fanout"):
            picks = -1 if left.get("sampler.kind") == "subgraph" else 3
            left["sampler.fanout"] = [picks] * left.get("model.layers", 3)
        return left

    def dry_run(self, config):
        write_config(self.folder / "job.toml", config)
        code, said = self.espalier("train", self.folder / "job.toml", "--dry-run")
        self.check_words(code, said)
        return code, said

    def check_config(self, config, said):
        (self.folder / "printed.toml").write_text(said)
        again, text = self.espalier("train", self.folder / "printed.toml", "--dry-run")
        check((again, text) == (0, said), "config", f"read again: {again}\n{text}\nfor\n{said}")
        printed = tomllib.loads(said)
        for name, value in config.items():
            section, key = name.split(".")
            found = printed[section].get(key)
            check(found == value, "config", f"{name} = {value} is printed as {found}")

    def check_nonsense(self, config):
        """A value that a key cannot have is refused by its name; what is nonsense to one may be sense to another."""
        name = self.r.choice(list(self.keys.defaults))
        value = self.r.choice(NONSENSE)
        code, said = self.dry_run({**config, name: value})
        if self.dry_run(config)[0] != 0:  # what is refused without it, may be so with it
            return
        check(code == 0 or name in said, "words", f"{name} = {value}: {said}")

    def plan(self, config, ranks):
        write_config(self.folder / "job.toml", {**config, "output.dir": str(self.folder / "planned")})
        more = ["--draw", self.r.choice([0, 1, 256])]
        code, said = self.espalier("-q", "plan", self.folder / "job.toml", "--ranks", ranks, "-o", self.folder / f"plan{self.runs}.json", *more)
        self.check_words(code, said)
        return code, said

    def ranks(self):
        return self.r.randint(1, self.options.ranks)

    def choose_links(self):
        """The graph becomes one with links, of all relations or of some; it stays where the program finds no edge to choose."""
        path = str(self.folder / "links.h5")
        of = ["--relations", ",".join(self.r.sample(self.graph.relations, 1))] if self.graph.relations and self.r.random() < 0.5 else []
        code, said = self.espalier("-q", "prepare", self.graph.path, "--split-links", self.r.choice(["0.8,0.1,0.1", "0.5,0.5,0", "0.3,0,0.7"]),
                                   "--seed", self.r.randrange(1000), *of, "-o", path, ranks=self.r.randint(1, self.options.ranks))
        self.check_words(code, said, (0, 2, 3))
        if code == 0:
            self.graph.path, self.graph.links = path, True

    def make(self):
        self.r = self.random_of("graph")
        self.graph = self.r.choice(random_graphs.KINDS)(self.folder / "graph.h5", self.r)
        new = self.number not in self.options.older
        self.r = self.random_of("odd edges")
        if new and self.r.random() < 0.3 and not self.graph.flaw:
            random_graphs.make_odd(self.graph, self.r)
        self.r = self.random_of("has links")
        if self.r.random() < 0.2 and not self.graph.flaw:
            self.choose_links()
        config = {"graph.file": self.graph.path, **self.keys.config(self.random_of, self.graph)}
        self.r = self.random_of("subgraph")
        if config.get("sampler.kind") == "subgraph" and self.r.random() < 0.8:
            config["sampler.fanout"] = [-1] * config["model.layers"]
            config.pop("sampler.relation_fanout", None)
            if new and self.r.random() < 0.4:  # of a batch that has lists of its own, larger than what is kept when it is freed
                config["sampler.batch_size"] = self.r.randint(129, 250)
        self.r = self.random_of("no layers")
        if config.get("train.task") == "links" and self.r.random() < 0.2:
            config |= {"model.layers": 0, "sampler.fanout": []}
        self.r = self.random_of("order")
        if self.r.random() < 0.3 and not self.graph.flaw:
            self.order = str(self.folder / "order.h5")
            code, said = self.espalier("-q", "partition", self.graph.path, "-o", self.order, "--clusters", self.r.randint(2, 9),
                                       "--method", self.r.choice(["metis", "multilevel", "streaming", "block"]))
            check(code == 0, "words", f"partition: {code}\n{said}")
            if self.r.random() < 0.7:
                config["graph.order"] = self.order
                if self.r.random() < 0.5:
                    config["sampler.groups"] = self.r.randint(1, 3)
        self.r = self.random_of("cut")
        if self.r.random() < 0.3 and not self.graph.flaw:
            self.cut = str(self.folder / "cut.h5")
            code, said = self.espalier("-q", "partition", self.graph.path, "--edges", "-o", self.cut, "--parts", self.r.choice([1, 3, 8, 70]),
                                       "--method", self.r.choice(["expansion", "dne", "adadne", "hdrf"]))
            check(code == 0, "words", f"partition --edges: {code}\n{said}")
            if self.r.random() < 0.6:
                config |= {"grid.topology": "vertex-cut", "graph.cut": self.cut}
        return config

    def accepted(self, config):
        """(configuration, ranks, folder, result) of a run that the program accepts; Nones: of these graphs none."""
        self.r = self.random_of("nonsense")
        if self.r.random() < 0.3:
            self.check_nonsense(config)
        self.r = self.random_of("ranks")
        ranks = self.ranks()
        for _ in range(60):
            code, said = self.dry_run(config)
            if code == 0:
                self.check_config(config, said)
                code, said, output = self.try_to_train(config, ranks)
                if code == 0:
                    return config, ranks, output
            config = self.without_named(config, said)
            if config is None:
                return None, ranks, None
        raise Broken("words", "refused again and again")

    def try_to_train(self, config, ranks):
        planned, words = self.plan(config, ranks)
        code, said, output = self.train(config, ranks)
        if code != 6:
            self.look(check, (planned == 0) == (code == 0), "plan", f"plan: {planned}, train: {code} on {ranks} ranks\n{words[-1500:]}\n{said[-1500:]}")
        read = self.graph.flaw != "edge features of other rows" or config.get("model.edge_features")
        check(not self.graph.flaw or not read or code != 0, "words", f"{self.graph.flaw}: exit code {code}\n{said}")
        return code, said, output

    # --- the laws of one that was accepted

    def elsewhere(self, config, ranks, law, more):
        """A configuration with another grid, schedule and all else that is free; of keys that do not go together one is dropped."""
        copies = self.r.choice([c for c in range(1, ranks + 1) if ranks % c == 0])
        which = self.r.random()
        other = {key: value for key, value in config.items() if key not in self.keys.free_keys}
        other |= self.keys.free(lambda name: self.random_of(f"{which} {name}"), self.graph, config)
        other["grid.replication"] = copies
        if self.order and not config.get("sampler.groups"):
            other.pop("graph.order", None)
            other |= {"graph.order": self.order} if self.r.random() < 0.5 else {}
        if self.cut:
            other.pop("graph.cut", None)
            other |= {"grid.topology": "vertex-cut", "graph.cut": self.cut} if self.r.random() < 0.5 else {}
        return self.settled({**other, **more}, self.dry_run, config, law, more)

    def settled(self, other, tried, config, law, more):
        """What `tried` takes; only free keys may go."""
        kept = [key for key in config if key not in self.keys.free_keys and key not in ("graph.order", "graph.cut")] + list(more)
        for _ in range(20):
            code, said = tried(other)[:2]
            if code == 0:
                return other
            other = self.without_named(other, said, kept)
            check(other is not None, law, f"what was accepted is refused: {code}\n{said[-2000:]}")
        raise Broken(law, "refused again and again")

    def train_elsewhere(self, config, ranks, law, more, name):
        """The folder of a training so."""
        other = self.elsewhere(config, ranks, law, more)
        self.settled(other, lambda one: self.train(one, ranks, name), config, law, more)
        return self.folder / name

    def check_bits(self, config, ranks, expected):
        """One history, whatever is free."""
        for k in range(2):
            count = self.ranks()
            different = difference(result_of(self.train_elsewhere(config, count, "bits", {}, f"bits{k}")), expected)
            check(not different, "bits", f"{ranks} and {count} ranks: {different}")

    def infer(self, config, weights, rows, ranks):
        write_config(self.folder / "infer.toml", config)
        judged = ["--metrics"] if config.get("train.task") == "links" else ["--metrics", "--predictions"]
        code, said = self.espalier("-q", "infer", self.folder / "infer.toml", "--checkpoint", weights, "-o", rows, *judged, ranks=ranks)
        self.check_words(code, said)
        if code == 0:
            self.check_finite({}, rows)
        return code, said

    def check_infer(self, config, output, expected):
        count = self.ranks()
        rows, more = self.folder / f"rows{self.runs}.h5", {"output.dir": str(self.folder / "no")}
        other = self.elsewhere(config, count, "infer", more)
        self.settled(other, lambda one: self.infer(one, output / "weights.h5", rows, count), config, "infer", more)
        scores = {"train": expected["train"], "test": expected["test"],
                  "valid": expected["epochs"][expected["best_epoch"] - 1]["valid"]}
        with h5py.File(rows) as file:
            for split, of_split in scores.items():
                for metric, value in (of_split or {}).items():
                    found = file.attrs.get(f"{split}_{metric}")
                    check(found == value, "infer", f"{split} {metric}: {found} for {value} of the report, on {count} ranks")
            if "predictions" in file:
                self.check_predictions(file["predictions"][()], config.get("graph.split"), expected)

    def check_predictions(self, predictions, split, expected):
        """Those of the target, row by row, beside its labels: by h5py alone."""
        if "accuracy" not in (expected["test"] or {}):
            return
        with h5py.File(self.graph.path) as file:
            learnable = self.graph.learnable
            place = f"{self.target if len(learnable) > 1 else learnable[0]}/" if learnable else ""
            labels, test = file[f"nodes/{place}labels"][()].reshape(-1), file[f"split/{place}{split}/test" if split else f"split/{place}test"][()]
        check(len(predictions) == len(labels), "infer", f"{len(predictions)} predictions for {len(labels)} vertices of the target")
        accuracy = np.mean(predictions[test] == labels[test])
        check(accuracy == expected["test"]["accuracy"], "infer", f"predictions are right in {accuracy}, the report says {expected['test']}")

    def check_restart(self, config, ranks, expected):
        """Stopped after some epochs, or within one; then gone on with."""
        base = {**config, "run.checkpoint_every": 1}
        epochs = config.get("train.epochs", 10)
        moves = config["train.reproducible"]
        # Of fewer epochs the last is another: where cosine ends, and what is evaluated.
        fewer = epochs > 1 and config.get("train.lr_schedule") != "cosine" and config.get("train.eval_every", 1) == 1
        how = self.r.choice(["minutes", "path"] + (["epochs"] if fewer else []))
        if how == "epochs":
            less = {**base, "train.epochs": self.r.randint(1, epochs - 1)}
            code, said, _ = self.train(less, ranks, "restarted")
            more = {"train.epochs": config["train.epochs"]} if "train.epochs" in config else {}
        elif how == "minutes":
            less, more = {**base, "run.max_minutes": 1e-6}, {}
            code, said, _ = self.train(less, ranks, "restarted", codes=(0, 2, 3, 4, 5, 6))
        else:
            less, more = base, {}
            code, said, output = self.train(less, ranks, "begun")
            more["run.restart"] = str(self.r.choice(sorted((output / "checkpoints").glob("*.h5")))) if code == 0 else ""
        check(code in (0, 5), "restart", f"stopped by {how}: {code}\n{said[-2000:]}")
        if moves:
            output = self.train_elsewhere(config, self.ranks(), "restart", more, "restarted")
        else:
            code, said, output = self.train({**config, **more}, ranks, "restarted")
            check(code == 0, "restart", f"stopped by {how}: {code}\n{said[-2000:]}")
        different = difference(result_of(output), expected)
        check(not different, "restart", f"stopped by {how}: {different}")

    def go(self):
        config, ranks, output = self.accepted(self.make())
        if config is None:
            return "refused"
        self.target = config.get("graph.target", "")
        config.setdefault("train.reproducible", False)
        expected = result_of(output)
        self.look(self.check_infer, config, output, expected)
        if config["train.reproducible"]:
            self.look(self.check_bits, config, ranks, expected)
        self.look(self.check_restart, config, ranks, expected)
        return "trained"

    def look(self, law, *arguments):
        """One law after another, all of them."""
        if law is not check:
            self.r = self.random_of(law.__name__)
        try:
            law(*arguments)
        except Broken as broken:
            self.broken.append(broken.args)

    def outcome(self):
        """(what became of it, what broke which laws)"""
        found = []
        self.look(lambda: found.append(self.go()))
        why = "\n".join(f"{law}: {words}" for law, words in self.broken)
        return (self.broken[0][0] if why else found[0]), why

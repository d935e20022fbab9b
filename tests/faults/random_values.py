"""The keys of the program's table, asked of the program, and how configs.py draws a value for each.

A key of true and false, and one whose choices the program names, need nothing here. Any other needs an entry of DRAWS, or
`undrawn` has its name and the fuzzer's own test fails: so a new key cannot be forgotten.
"""

import concurrent.futures
import functools
import json
import math
import re
import tempfile

from tests.app.program import environment_apart, espalier

NAME = re.compile(r"\b(?:graph|grid|sampler|model|train|history|run|output)\.[a-z_]+\b")


def one_of(*values):
    return lambda r, *_: r.choice(values)


def whole(low, high):
    return lambda r, *_: r.randint(low, high)


def real(low, high):
    return lambda r, *_: round(r.uniform(low, high), 3)


def power(low, high):
    """Small numbers as often as large ones."""
    return lambda r, *_: float(f"{math.exp(r.uniform(math.log(low), math.log(high))):.3g}")


def fanout(r, graph, config):
    return [r.choice([1, 2, 3, 5, 20, -1]) for _ in range(config["model.layers"])]


def relation_fanout(r, graph, config):
    def picks():
        return ",".join(str(r.choice([0, 1, 3, -1])) for _ in range(config["model.layers"]))
    return [f"{name}={r.choice(['0', picks()])}" for name in r.sample(graph.relations, r.randint(0, min(2, len(graph.relations))))]


def target(r, graph, config):
    return r.choice(graph.learnable or [""]) if r.random() < 0.9 else "nobody"


def split(r, graph, config):
    return r.choice(graph.splits or [""]) if r.random() < 0.9 else "nobody"


# (random.Random, the graph, what is drawn so far) -> a value; None: it is the case that says it
DRAWS = {
    "graph.file": None, "graph.order": None, "graph.cut": None, "output.dir": None, "run.restart": None,
    "graph.target": target, "graph.split": split, "graph.feature_bits": one_of(32, 16, "bf16", 8, 4, 2, 1),
    "grid.replication": one_of(1, 1, 2, "auto"),
    "sampler.fanout": fanout, "sampler.relation_fanout": relation_fanout,
    "sampler.batch_size": one_of(1, 3, 8, 20, 64, 1000), "sampler.bulk": one_of(1, 2, 5, 100, "auto"),
    "sampler.groups": whole(0, 6), "sampler.share_batches": whole(1, 4),
    "model.hidden": one_of(4, 8, 12, 16), "model.layers": one_of(1, 2, 2, 3),
    "model.dropout": one_of(0.0, 0.3, 0.9), "model.input_dropout": one_of(0.0, 0.2, "auto"),
    "model.attention_dropout": one_of(0.0, 0.2, "auto"),
    "model.bases": whole(1, 6), "model.embedding": one_of(0, 3, 8),
    "model.heads": one_of(1, 2, 4), "model.output_heads": whole(1, 3),
    "train.label_smoothing": one_of(0.0, 0.1, 0.7), "train.norm": whole(1, 2), "train.margin": real(0, 9),
    "train.temperature": real(0, 2), "train.negatives": one_of(1, 2, 5), "train.negatives_power": real(0, 2),
    "train.ranked_against": one_of(0, 0, 7, 50), "train.epochs": whole(1, 4),
    "train.learning_rate": lambda r, *_: 1e30 if r.random() < 0.02 else power(1e-4, 0.3)(r),
    "train.momentum": real(0, 1), "train.embedding_rate": power(1e-4, 1), "train.lr_warmup": one_of(0, 2, 3),
    "train.lr_step": whole(1, 3), "train.lr_decay": real(0, 1), "train.weight_decay": power(1e-6, 1),
    "train.clip_norm": one_of(0.0, 0.02, 1.0), "train.average_weights": one_of(0.0, 0.5, 0.99),
    "train.early_stop": whole(0, 2), "train.seed": whole(0, 1 << 40), "train.batches_per_step": one_of(1, 2, 3, 4, 6, "auto"),
    "train.eval_every": whole(0, 3),
    "history.p_grad": real(0, 1), "history.recompute": one_of(0.0, 0.3, 1.0), "history.t_stale": one_of(0, 1, 3, 10, 1000),
    "history.start": one_of(0, 1, 5, 1000), "history.entries": one_of(0, 1, 20, 1000),
    "run.cache_memory": one_of("0", "1KB", "20KiB", "4MiB"),
    "run.threads": whole(1, 3), "run.memory_limit": one_of("auto", "auto", "2GB", "400MiB", "90MB", "1MB"),
    "run.spill": one_of("", "", tempfile.gettempdir()), "run.prefetch_steps": whole(1, 3), "run.checkpoint_every": whole(0, 2),
    "run.checkpoint_minutes": one_of(0.0, 0.001, 10.0), "run.max_minutes": one_of(0.0, 600.0), "run.stall_minutes": one_of(0.0, 5.0),
}
# In every case, in this order.
ALWAYS = ("model.layers", "sampler.fanout", "sampler.batch_size", "sampler.kind", "model.kind", "model.hidden",
          "train.epochs", "train.seed", "train.batches_per_step", "run.threads")
# Of the keys that cost only, by the program's table, those that change how long a training is, how its sums are made, or what is
# reported. All others may change no bit where train.reproducible is set: grids, schedules, overlap, threads, and what is only kept.
NOT_FREE = ("train.epochs", "train.early_stop", "train.eval_every", "train.reproducible", "run.max_minutes")
NONSENSE = ("?", -7, 1e300, [[]], True, [0], "", float("nan"))


class Keys:
    """Of one program: {name: default}, the choices of those that have some, and the names of those that are free."""

    def __init__(self, program):
        self.program = program
        code, text = espalier("help", "config", program=program)
        assert code == 0, text
        listed = re.findall(r'^  ([a-z]+\.[a-z_]+) +("[^"]*"|\[[^\]]*\]|\S+) +(\w+) ', text, re.M)
        self.defaults = {name: default for name, default, _ in listed}
        self.free_keys = [name for name, _, effect in listed if effect == "cost" and DRAWS.get(name, True) and name not in NOT_FREE]
        assert len(self.defaults) == len(re.findall(r"^  [a-z]+\.[a-z_]+ ", text, re.M)) > 50, text
        words = [name for name, default in self.defaults.items() if name not in DRAWS and default.startswith('"')]
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            self.choices = dict(zip(words, pool.map(self._choices_of, words)))

    def _choices_of(self, name):
        """What the program says it takes when it is given something else."""
        with environment_apart() as env:
            code, text = espalier("train", "/dev/null", "--dry-run", f"{name}=?", program=self.program, env=env)
        assert code == 2, text
        found = re.search(r"not one of (.*); did you mean", text) or re.search(r"[Tt]he \w+ are (.*)", text)
        return re.split(r" \| |, ", found.group(1).strip()) if found else []

    def undrawn(self):
        """Keys for which there is no way to draw a value, and entries for which there is no key."""
        return [name for name, default in self.defaults.items()
                if name not in DRAWS and default not in ("true", "false") and len(self.choices.get(name, [])) < 2] + \
            [name for name in (*DRAWS, *NOT_FREE) if name not in self.defaults]

    def draw(self, name, r, graph, config):
        if DRAWS.get(name):
            return DRAWS[name](r, graph, config)
        return r.choice(self.choices[name]) if name in self.choices else r.random() < 0.5

    def config(self, random_of, graph):
        """Random values for some of the keys, each by random_of(its name): a new key changes no other's value."""
        config, r = {}, random_of("config")
        share, with_history, several = r.choice([0.04, 0.12, 0.3]), r.random() < 0.35, r.random() < 0.95
        for name in ALWAYS:
            config[name] = self.draw(name, random_of(name), graph, config)
        for name in self.defaults:
            given = share if not name.startswith("history.") else 0.4 if with_history else 0.01
            r = random_of(name)
            if name not in config and DRAWS.get(name, True) and r.random() < given:
                config[name] = self.draw(name, r, graph, config)
        if with_history:
            config["history.kind"] = random_of("history").choice(self.choices["history.kind"])
        if len(graph.learnable) > 1:
            config["graph.target"] = random_of("target").choice(graph.learnable)
        if graph.several and several:
            config["train.task"] = "labels"
        if graph.links and random_of("task").random() < 0.95:
            config["train.task"] = "links"
            config.pop("train.metric", None)
            if random_of("metric of links").random() < 0.3:
                config["train.metric"] = "filtered_mrr"
        config["train.reproducible"] = random_of("bits").random() < 0.8
        return config

    def free(self, random_of, graph, config):
        """Other values for free keys, as of another machine."""
        return {name: self.draw(name, random_of(name), graph, config) for name in self.free_keys
                if name != "grid.replication" and random_of(f"{name} elsewhere").random() < 0.3}

    def named(self, text):
        """The keys that a message names."""
        return [name for name in NAME.findall(text) if name in self.defaults]


@functools.cache
def keys_of(program):
    return Keys(program)


def toml(value):
    return str(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


def write_config(path, config):
    sections = {}
    for name, value in config.items():
        section, key = name.split(".")
        sections.setdefault(section, []).append(f"{key} = {toml(value)}")
    path.write_text("\n".join(f"[{section}]\n" + "\n".join(lines) for section, lines in sections.items()) + "\n")

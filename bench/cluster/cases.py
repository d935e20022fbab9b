"""What is measured on the hosts: a table of cases, each a command with some keys of the config.

A case is a line of CASES. Which law it is held to follows from its keys: those of FREE change what moves and when, and no bit,
so all cases whose other keys are equal must have the same sample digests and, reproducibly, the same losses, on any number of
hosts.
"""

import dataclasses

FANOUT, BATCH = "[15,10,5]", 1024
NETWORK = {"hidden": 256, "dropout": 0.5, "learning_rate": 0.003}  # as bench/peers has it

# Keys that change no bit. An order does not either: what local batches are made of is the order that all cases have.
FREE = ("grid.", "run.", "graph.order=")

ORDER = "graph.order={order}"
GROUPS = "sampler.groups={groups}"  # as many as hosts, and for the check of the law on all hosts equally many
LOCAL = (ORDER, GROUPS)
KEPT, BELADY = "run.cache_memory=8MiB", "run.cache_policy=belady"
OVERLAP = "run.overlap=true"
HISTORY = ("history.kind=replace", "history.t_stale=20")


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    command: str  # of espalier: sample or train
    keys: tuple
    baseline: str  # the name of the case over which its `x` is

    def keys_for(self, groups, order):
        return [key.format(groups=groups, order=order) for key in self.keys]

    def samples_law(self):
        """Cases of one law have the same sample digests, on any number of hosts."""
        return tuple(key for key in self.keys if key.startswith("sampler."))

    def losses_law(self):
        """Cases of one law have, reproducibly and in steps of equally many batches, the same losses to the last bit."""
        return tuple(key for key in self.keys if not key.startswith(FREE))


CASES = [
    # Sampling alone. `staged` is Algorithm 2 of Tripathy et al. 2024.
    Case("sample-staged", "sample", ("grid.schedule=staged",), "sample-staged"),
    Case("sample-oblivious", "sample", ("grid.schedule=staged-oblivious",), "sample-staged"),
    Case("sample-pull", "sample", ("grid.schedule=pull",), "sample-staged"),
    Case("sample-push", "sample", ("grid.schedule=push",), "sample-staged"),
    Case("sample-auto", "sample", (), "sample-staged"),
    Case("sample-push-c2", "sample", ("grid.schedule=push", "grid.replication=2"), "sample-staged"),
    Case("sample-local", "sample", ("grid.schedule=push", *LOCAL), "sample-staged"),
    # Training with uniform batches.
    Case("staged", "train", ("grid.schedule=staged",), "push"),
    Case("pull", "train", ("grid.schedule=pull",), "push"),
    Case("push", "train", ("grid.schedule=push",), "push"),
    Case("push-c2", "train", ("grid.schedule=push", "grid.replication=2"), "push"),
    Case("replicated", "train", ("grid.topology=replicated",), "push"),
    Case("overlap", "train", ("grid.schedule=push", OVERLAP), "push"),
    Case("overlap-2", "train", ("grid.schedule=push", OVERLAP, "run.prefetch_steps=2"), "push"),
    Case("kept", "train", ("grid.schedule=push", KEPT), "push"),
    Case("kept-belady", "train", ("grid.schedule=push", KEPT, BELADY), "push"),
    Case("float16", "train", ("grid.schedule=push", "graph.feature_bits=16"), "push"),
    Case("codes-8", "train", ("grid.schedule=push", "graph.feature_bits=8"), "push"),
    Case("history", "train", ("grid.schedule=push", *HISTORY), "push"),
    # Local batches of an order, as dgl.distributed draws from its parts; its rows stand over `local`.
    Case("local", "train", ("grid.schedule=push", *LOCAL), "local"),
    Case("local-overlap", "train", ("grid.schedule=push", *LOCAL, OVERLAP), "local"),
    Case("local-overlap-2", "train", ("grid.schedule=push", *LOCAL, OVERLAP, "run.prefetch_steps=2"), "local"),
    Case("local-kept", "train", ("grid.schedule=push", *LOCAL, KEPT), "local"),
    Case("local-belady", "train", ("grid.schedule=push", *LOCAL, KEPT, BELADY), "local"),
    Case("local-belady-overlap", "train", ("grid.schedule=push", *LOCAL, KEPT, BELADY, OVERLAP), "local"),
    Case("local-float16", "train", ("grid.schedule=push", *LOCAL, "graph.feature_bits=16"), "local"),
    Case("local-codes-8", "train", ("grid.schedule=push", *LOCAL, "graph.feature_bits=8"), "local"),
    Case("local-history", "train", ("grid.schedule=push", *LOCAL, *HISTORY), "local"),
]
BY_NAME = {case.name: case for case in CASES}
MOST = ("sample-staged", "sample-pull", "sample-push", "sample-local", "staged", "pull", "push", "push-c2", "overlap", "local",
        "local-overlap", "local-belady", "local-belady-overlap", "local-float16", "local-history")


def chosen(words):
    """The cases of a list of names with commas, of `most` or `all`, in the table's order; ValueError names an unknown one."""
    names = {"all": list(BY_NAME), "most": list(MOST)}.get(words, words.split(","))
    unknown = [name for name in names if name not in BY_NAME]
    if unknown:
        raise ValueError(f"{unknown[0]} is no case; there are {', '.join(BY_NAME)}")
    return [case for case in CASES if case.name in names]


def config_text(graph, folder):
    """An input file: what all cases share."""
    return f"""[graph]
file = "{graph}"
feature_norm = "standard"

[sampler]
fanout = {FANOUT}
batch_size = {BATCH}

[model]
kind = "sage"
layers = 3
hidden = {NETWORK["hidden"]}
dropout = {NETWORK["dropout"]}

[train]
learning_rate = {NETWORK["learning_rate"]}
eval_every = 0

[run]
threads = 1
device = "cpu"
checkpoint_every = 0
restart = "never"

[output]
dir = "{folder}"
"""

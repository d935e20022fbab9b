"""Brings graphs into Espalier's graph file, and its results out: docs/data.md. Opens jobs, whose
minibatches feed a network of one's own: docs/python.md."""

from __future__ import annotations

from .comparison import Comparison, compare
from .errors import DataError, DataWarning, JobError
from .job import EpochResult, Job, Weights, open
from .loader import Epoch, Loader
from .minibatch import Block, Links, Minibatch
from .minibatches import Minibatches
from .plotting import plot
from .process_group import init_process_group, world
from .programs import infer, sample, train
from .results import Predictions, Rows, read_predictions, read_report, read_rows, read_weights
from .tables import from_tables
from .version import VERSION as __version__
from .write import Summary, write_graph

__all__ = [
    "Block",
    "Comparison",
    "DataError",
    "DataWarning",
    "Epoch",
    "EpochResult",
    "Job",
    "JobError",
    "Links",
    "Loader",
    "Minibatch",
    "Minibatches",
    "Predictions",
    "Rows",
    "Summary",
    "Weights",
    "compare",
    "from_tables",
    "infer",
    "init_process_group",
    "open",
    "plot",
    "read_predictions",
    "read_report",
    "read_rows",
    "read_weights",
    "sample",
    "train",
    "world",
    "write_graph",
]

"""Brings graphs into Espalier's graph file, and its results out: docs/data.md."""

from __future__ import annotations

from .comparison import Comparison, compare
from .errors import DataError, DataWarning
from .minibatches import Block, Links, Minibatch, Minibatches
from .plotting import plot
from .results import Predictions, Rows, read_predictions, read_report, read_rows, read_weights
from .tables import from_tables
from .version import VERSION as __version__
from .write import Summary, write_graph

__all__ = [
    "Block",
    "Comparison",
    "DataError",
    "DataWarning",
    "Links",
    "Minibatch",
    "Minibatches",
    "Predictions",
    "Rows",
    "Summary",
    "compare",
    "from_tables",
    "plot",
    "read_predictions",
    "read_report",
    "read_rows",
    "read_weights",
    "write_graph",
]

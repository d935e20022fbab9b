"""Brings graphs into Espalier's graph file, and its results out: docs/data.md."""

from __future__ import annotations

from .errors import DataError, DataWarning
from .results import Predictions, Rows, read_predictions, read_report, read_rows, read_weights
from .tables import from_tables
from .version import version
from .write import Summary, write_graph

__version__ = version()
__all__ = ["DataError", "DataWarning", "Predictions", "Rows", "Summary", "from_tables", "read_predictions", "read_report", "read_rows",
           "read_weights", "write_graph"]

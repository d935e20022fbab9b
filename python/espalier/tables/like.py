"""--like: which columns the features of a training had, and whether tonight's are the same."""

from __future__ import annotations

import os

from ..columns import Columns, read_columns
from ..errors import DataError
from ..graph import Graph
from ..inverses import INVERSE


class Like:
    """The columns in weights.h5 of a training, or in its graph file."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path, self.groups = path, read_columns(path)

    def of(self, group: str) -> Columns:
        """Without names where it had no features there."""
        return self.groups.get(group, Columns([]))

    def check_all_are_here(self, graph: Graph) -> None:
        """Types and relations that had some. An inverse has those of its relation."""
        here = [f"nodes/{of.name}/" if graph.typed else "nodes/" for of in graph.types]
        here += [
            f"edges/{graph.full_name(of)}/" if graph.typed else "edges/" for of in graph.relations
        ]
        gone = [of for of in self.groups if of not in here and f".{INVERSE}" not in of]
        if gone:
            raise DataError(
                f"{self.path} has columns of {', '.join(self.groups)}, and the description makes "
                f"{', '.join(here)}; describe the same types and relations"
            )

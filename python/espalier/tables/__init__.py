"""Tables of vertices and edges become a graph file."""

from __future__ import annotations

from .build import from_tables

__all__ = ["from_tables"]

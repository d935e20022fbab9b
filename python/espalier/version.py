"""The version: the program's, as the package was installed with it, or as the header beside it
says."""

from __future__ import annotations

import importlib.metadata
import pathlib
import re

HEADER = (
    pathlib.Path(__file__).resolve().parents[2] / "include" / "espalier" / "base" / "version.hpp"
)


def version() -> str:
    if HEADER.exists():  # from a checkout
        found = re.search(r'kVersion = "([^"]+)"', HEADER.read_text())
        if found:
            return found.group(1)
    return importlib.metadata.version("espalier")

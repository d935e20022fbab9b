"""Tests of the Python package, from this checkout: installed or not does not matter."""

import sys

from tests.app.program import ROOT

sys.path.insert(0, str(ROOT / "python"))

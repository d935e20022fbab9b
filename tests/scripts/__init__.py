"""Tests of scripts/, whose modules they import as the scripts themselves do."""

import sys

from tests.app.program import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

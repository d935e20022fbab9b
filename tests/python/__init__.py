"""Tests of the Python package, from this checkout: installed or not does not matter."""

import contextlib
import importlib.util
import os
import pathlib
import sys
import unittest
import warnings

from tests.app.program import EMULATED, PROGRAM, ROOT

sys.path.insert(0, str(ROOT / "python"))
LIBRARY = pathlib.Path(PROGRAM).parent / "libespalier.so"
needs_library = unittest.skipUnless(LIBRARY.exists(), f"{LIBRARY} was not built")
os.environ.setdefault("ESPALIER_LIBRARY", str(LIBRARY))
# On GPUs, or on emulated ones where there is none.
ON_GPUS = pathlib.Path(EMULATED).parent / "libespalier.so"
needs_library_on_gpus = unittest.skipUnless(ON_GPUS.exists(), f"{ON_GPUS} was not built")

from espalier import DataError, DataWarning  # noqa: E402

SEED = int(os.environ.get("ESPALIER_TEST_SEED", "1"))


def needs(library):
    return unittest.skipUnless(importlib.util.find_spec(library), f"{library} is not installed")


class DataTest(unittest.TestCase):
    """Where data are changed nothing is said."""

    def setUp(self):
        super().setUp()
        warnings.simplefilter("ignore", DataWarning)
        self.addCleanup(warnings.resetwarnings)

    def refused(self, words, call, *arguments, **options):
        """The one line that DataError says, which has these words."""
        with self.subTest(words):
            with self.assertRaises(DataError) as raised:
                call(*arguments, **options)
            self.assertIn(words, str(raised.exception))
            return str(raised.exception)


@contextlib.contextmanager
def all_warnings():
    """A list that gets what is warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught

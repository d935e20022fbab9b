"""A damaged file is refused, or the result is the same (tests/faults/flips.py, which has the whole story and a table).

The seed is printed, and taken from ESPALIER_SEED. With --long: 2,000 flips and 500 cuts of each file.
"""

import os
import random
import sys
import unittest

from tests.app.program import LONG
from tests.faults.flips import KINDS, try_kind

SEED = int(os.environ.get("ESPALIER_SEED", random.randrange(1 << 30)))


class Flips(unittest.TestCase):
    def check(self, flips, cuts):
        print(f"\nnote: ESPALIER_SEED={SEED}: {flips} flips and {cuts} cuts of each of {len(KINDS)} files", file=sys.stderr)
        for name in KINDS:
            counts, broken, _ = try_kind(name, flips, cuts, SEED)
            self.assertEqual(broken, [])
            self.assertEqual(sum(sum(counter.values()) for counter in counts.values()), flips + cuts)
            self.assertEqual(counts["data"]["same"], 0, f"{name}: damaged data went unnoticed")
            self.assertGreater(counts["structure"]["refused"] + counts["data"]["refused"], 0)

    def test_a_few_of_each(self):
        self.check(24, 8)

    @unittest.skipUnless(LONG, "heavy: --long")
    def test_Long_many_of_each(self):
        self.check(2000, 500)

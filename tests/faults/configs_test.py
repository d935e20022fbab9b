"""Random configurations over all keys keep the laws (tests/faults/configs.py, which has the whole story and a table).

Every key of the program's table can be drawn; the cases that were broken once hold, and a few others. With --long: ten minutes of
cases that nobody has seen, by a seed that is printed, and taken from ESPALIER_SEED.
"""

import os
import random
import sys
import unittest

from tests.app.program import LONG, PROGRAM
from tests.faults.configs import KEPT, arguments, try_cases
from tests.faults.random_values import keys_of

SEED = int(os.environ.get("ESPALIER_SEED", random.randrange(1 << 30)))


class Configs(unittest.TestCase):
    def check(self, numbers, *words):
        table, broken, cases, runs = try_cases(arguments(["--seed", str(SEED), *words]), numbers)
        print(f"\nnote: {cases} configurations in {runs} runs", file=sys.stderr)
        self.assertEqual(broken, [])
        self.assertGreater(sum(kind["trained"] for kind in table.values()), 0)

    def test_every_key_can_be_drawn(self):
        self.assertEqual(keys_of(PROGRAM).undrawn(), [])

    def test_a_few(self):
        self.check((1, 2), "--cases", "2", "--ranks", "3")

    @unittest.skipUnless(LONG, "heavy: --long")
    def test_Long_those_that_were_broken_once(self):
        self.check(KEPT, "--cases", str(len(KEPT)))

    @unittest.skipUnless(LONG, "heavy: --long")
    def test_Long_many(self):
        print(f"\nnote: ESPALIER_SEED={SEED}", file=sys.stderr)
        self.check(None, "--minutes", "10")


if __name__ == "__main__":
    unittest.main()

"""Random configurations over all keys keep the laws (tests/faults/configs.py, which has the whole story and a table).

Every key of the program's table can be drawn; the cases that were broken once hold, and a few others. With --long: ten minutes of
cases that nobody has seen, by a seed that is printed, and taken from ESPALIER_SEED.
"""

import os
import random
import re
import sys
import unittest

from tests.app.program import LONG, PROGRAM, espalier
from tests.faults.configs import KEPT, arguments, try_cases
from tests.faults.random_values import NOT_FREE, keys_of

SEED = int(os.environ.get("ESPALIER_SEED", random.randrange(1 << 30)))


class Configs(unittest.TestCase):
    def check(self, numbers, *words):
        table, broken, cases, runs = try_cases(arguments(["--seed", str(SEED), *words]), numbers)
        print(f"\nnote: {cases} configurations in {runs} runs", file=sys.stderr)
        self.assertEqual(broken, [])
        self.assertGreater(sum(kind["trained"] for kind in table.values()), 0)

    def test_every_key_can_be_drawn(self):
        self.assertEqual(keys_of(PROGRAM).undrawn(), [])

    def test_what_costs_only_is_free(self):
        keys, drawn = keys_of(PROGRAM), set()
        for number in range(400):
            def random_of(what):
                return random.Random(f"{number} {what}")
            drawn |= set(keys.free(random_of, None, {}))
        code, said = espalier("help", "config")
        cost = set(re.findall(r"^  ([a-z_.]+) +(?:\"[^\"]*\"|\S+) +cost ", said, re.M))
        named = {"graph.file", "graph.order", "graph.cut", "output.dir", "run.restart", "grid.replication"}  # which a case sets itself
        self.assertGreater(len(cost), 20)  # the page was understood
        self.assertEqual(cost - drawn, named | set(NOT_FREE))
        self.assertEqual(drawn - cost, set())

    def test_a_few(self):
        self.check((1, 2), "--cases", "2", "--ranks", "3")

    @unittest.skipUnless(LONG, "heavy: --long")
    def test_Long_those_that_were_broken_once(self):
        self.check(KEPT, "--cases", str(len(KEPT)))

    @unittest.skipUnless(LONG, "heavy: --long")
    def test_Long_many(self):
        print(f"\nnote: ESPALIER_SEED={SEED}", file=sys.stderr)
        self.check(None, "--minutes", "10")

"""exact.py, by which others are judged: its results against fractions and the floats beside them, and against numpy's."""

import math
import unittest
from fractions import Fraction

import numpy as np

from tests.ptx.exact import Arithmetic, FRACTION, is_nan, nan_of
from tests.ptx.forms import operands_of
from tests.ptx.kernels import random_numbers

OPERANDS = {"add": 2, "sub": 2, "mul": 2, "div": 2, "fma": 3, "sqrt": 1}
SOME = 400


def of_fractions(name, values):
    """The exact result, or for sqrt its square."""
    a, b, c = (values + [None, None])[:3]
    return {"add": lambda: a + b, "sub": lambda: a - b, "mul": lambda: a * b, "div": lambda: a / b, "fma": lambda: a * b + c,
            "sqrt": lambda: a}[name]()


def is_defined(name, floats):
    return all(map(math.isfinite, floats)) and not (name == "div" and floats[1] == 0 or name == "sqrt" and floats[0] < 0)


def compared(name, number, exact):
    """The sign of number - result; `number` may be an infinity."""
    if isinstance(number, float):
        return math.copysign(1, number)
    if name == "sqrt":
        number = number * abs(number)
    return (number > exact) - (number < exact)


class Exact(unittest.TestCase):
    def value(self, place, width):
        """Of the float at this place of their order, as a fraction; beyond the largest there is an infinity."""
        bits, kind = abs(place), np.dtype(f"u{width // 8}").type
        if bits >= nan_of(width) >> FRACTION[width] << FRACTION[width]:
            return math.copysign(math.inf, place)
        return Fraction(float(np.array(kind(bits)).view(f"f{width // 8}"))) * (1 if place >= 0 else -1)

    def holds(self, name, mode, place, exact, width):
        here, below, above = (self.value(place + step, width) for step in (0, -1, 1))
        at = compared(name, here, exact)
        down = at <= 0 and compared(name, above, exact) > 0
        up = at >= 0 and compared(name, below, exact) < 0
        if mode == "rm":
            return down
        if mode == "rp":
            return up
        if mode == "rz":
            return down if exact > 0 else up
        if isinstance(here, float) or isinstance(above, float) or isinstance(below, float):
            return True  # at the end of all floats: numpy's word counts
        low, high = compared(name, (below + here) / 2, exact), compared(name, (here + above) / 2, exact)
        return (low < 0 or low == 0 and place % 2 == 0) and (high > 0 or high == 0 and place % 2 == 0)

    def test_by_fractions(self):
        for width in (32, 64):
            arithmetic, sign = Arithmetic(width), 1 << (width - 1)
            for name, count in OPERANDS.items():
                arrays = operands_of([f"f{width}"] * count)
                chosen = random_numbers().permutation(len(arrays[0]))[:SOME].tolist()
                for mode in ("rn", "rz", "rm", "rp"):
                    with self.subTest(f"{name}.{mode}.f{width}"):
                        results, judged = arithmetic.result(name, arrays, mode), 0
                        for k in chosen:
                            floats = [float(array[k:k + 1].view(f"f{width // 8}")[0]) for array in arrays]
                            exact = of_fractions(name, [Fraction(one) for one in floats]) if is_defined(name, floats) else 0
                            if exact != 0:
                                bits = int(results[k])
                                place = -(bits - sign) if bits >= sign else bits
                                self.assertTrue(self.holds(name, mode, place, exact, width), floats)
                                judged += 1
                        self.assertGreater(judged, SOME // 8)

    def test_by_numpy(self):
        functions = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "sqrt": np.sqrt}
        for width in (32, 64):
            for name, function in functions.items():
                with self.subTest(f"{name}.f{width}"), np.errstate(all="ignore"):
                    arrays = operands_of([f"f{width}"] * OPERANDS[name])
                    other = function(*[array.view(f"f{width // 8}") for array in arrays])
                    got = Arithmetic(width).result(name, arrays)
                    np.testing.assert_array_equal(is_nan(got, width), np.isnan(other))
                    np.testing.assert_array_equal(got[~np.isnan(other)], other[~np.isnan(other)].view(got.dtype))


if __name__ == "__main__":
    unittest.main()

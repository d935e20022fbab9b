"""Instructions whose last bits NVIDIA leaves open, within bounds that PTX ISA tells. Here they give what is nearest to
the exact result, and with ESPALIER_PTX_APPROXIMATE=SEED any result within the bounds: those below, from the sections of the
instructions.

Exact are: what comes of integers (rcp, sqrt, rsqrt; exact.py), and the long double of ex2, lg2, sin, cos and tanh, 11 bits
longer than a double: where its error of some 2^-62 could decide, either result will do.
"""

import unittest

import numpy as np

from tests.ptx.exact import Arithmetic, Floats, Reals, flushed, is_nan, nan_of, rounded
from tests.ptx.forms import Form, Forms
from tests.ptx.kernels import Kernels, SEED

INFINITY, NAN, ONE, SIGN = (np.uint32(bits) for bits in (0x7f800000, nan_of(32), 0x3f800000, 0x80000000))
OF_F32 = Arithmetic(32)
LONG = np.longdouble
FUNCTIONS = {"ex2": np.exp2, "lg2": np.log2, "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "rcp": np.reciprocal,
             "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x)}
# A result is within 1 / 2 of the last place of exact ones, up to so many places (of the nearest float), relative, or absolute.
ULPS, RELATIVE = {"rcp": 1, "ex2": 2}, {"sqrt": 2.0 ** -23, "rsqrt": 2.0 ** -22.9, "tanh": 2.0 ** -11}
NAMES = ("ex2", "rcp", "sqrt", "rsqrt", "lg2", "sin", "cos", "tanh")


def long_value(name, a):
    with np.errstate(all="ignore"):
        return FUNCTIONS[name](a.view(np.float32).astype(LONG))


def nearest_of_long(values):
    """The floats nearest to what is a little less and a little more than each."""
    fraction, exponent = np.frexp(np.abs(values))
    fraction = np.where(np.isfinite(values) & (values != 0), fraction, LONG(0.5))
    m = np.clip((fraction * LONG(2) ** 64).astype(np.uint64), np.uint64((1 << 63) + 8), np.uint64((1 << 64) - 9))
    exponent, more = exponent.astype(np.int64) - 64, np.ones(len(m), bool)
    return [rounded(Reals(values < 0, moved, exponent, more), 32, "rn") for moved in (m - np.uint64(8), m + np.uint64(8))]


def nearest(name, a):
    """(least, greatest) of what is right."""
    if name in ("rcp", "sqrt", "rsqrt"):
        operands = (np.full_like(a, ONE), a) if name == "rcp" else (a,)
        return [OF_F32.result({"rcp": "div"}.get(name, name), operands)] * 2
    values = long_value(name, a)
    special = np.where(np.isnan(values), NAN, np.where(np.isinf(values), INFINITY, 0) | np.where(np.signbit(values), SIGN, 0))
    return [np.where(np.isfinite(values) & (values != 0), one, special).astype(np.uint32) for one in nearest_of_long(values)]


def with_ftz(name, ftz):
    def results(a):
        return [flushed(one, 32) for one in nearest(name, flushed(a, 32))] if ftz else nearest(name, a)
    return results


def within_bounds(name, ftz, a, got):
    """Where a result is as near as PTX ISA says, of finite operands and exact results."""
    a = flushed(a, 32) if ftz else a
    exact, best = long_value(name, a), with_ftz(name, ftz)(a)[0]
    with np.errstate(all="ignore"):
        x, of_best, value = np.abs(a.view(np.float32)), best.view(np.float32), got.view(np.float32).astype(LONG)
        error, size = np.abs(value - exact), np.abs(exact)
        if name in ULPS:
            last = np.ldexp(LONG(1), np.maximum(np.frexp(np.abs(of_best))[1] - 24, -149))
            good = np.abs(value - (exact if name == "rcp" else of_best)) <= ULPS[name] * last
        elif name == "lg2":
            good = error <= np.where((x > 0.5) & (x < 2), LONG(2) ** -22, LONG(2) ** -22 * size)
        elif name in ("sin", "cos"):
            good = error <= np.where(x <= 2 * np.pi, 2.0 ** -20.5, np.where(x <= 100 * np.pi, 2.0 ** -14.7, 2.0))
        else:
            good = error <= RELATIVE[name] * size
        # At the end of the normal numbers, where results are flushed, and of all.
        least, greatest = LONG(2) ** -126, LONG(2) ** 128
        good |= ftz & (value == 0) & (size < least * (1 + LONG(2) ** -20))
        good |= np.isinf(value) & (size > greatest * (1 - LONG(2) ** -21))
    return good | (got == best) | is_nan(got, 32) & is_nan(best, 32)


def form(name, ftz):
    instruction = f"{name}.approx{'.ftz' * ftz}.f32"
    one = Form(instruction, "f32", "f32", with_ftz(name, ftz))
    one.name, one.ftz = name, ftz
    return one


def high_word(a):
    """The operand of rcp.approx.ftz.f64 as it is seen, and the 21 bits nearest to 1 / a, or what stands for them."""
    a = flushed(a & np.uint64(0xffffffff00000000), 64)
    floats = Floats.of(a, 64)
    out = Arithmetic(64).result("div", (np.full_like(a, 0x3ff0000000000000), a), "rz")
    return floats, out


KERNELS = Kernels("approximate_instructions")
F32 = Forms(KERNELS, "approximate", [form(name, ftz) for name in NAMES for ftz in (False, True) if (name, ftz) != ("tanh", True)])
F64 = Forms(KERNELS, "approximate", [Form("rcp.approx.ftz.f64", "f64", "f64", None)])


class ApproximateInstructions(unittest.TestCase):
    setUpClass = KERNELS.build

    def expect_none(self, wrong, a, got, expected):
        if len(wrong):
            k = wrong[0]
            self.fail(f"{len(wrong)} are wrong; of {a[k]:#x}: {got[k]:#x}, nearest is {expected[k]:#x}")

    def test_nearest(self):
        for one, (a,), got in F32.results():
            with self.subTest(one.instruction):
                least, greatest = one.expected(a)
                self.assertLess(np.count_nonzero(least != greatest), 20)
                wrong = np.flatnonzero((got != least) & (got != greatest) & ~(is_nan(got, 32) & is_nan(least, 32)))
                self.expect_none(wrong, a, got, least)

    def test_any_within_the_bounds(self):
        plain = list(F32.results())
        seeded = [[got for _, _, got in F32.results({"ESPALIER_PTX_APPROXIMATE": str(SEED + k)})] for k in (0, 1)]
        for k, (one, (a,), nearest_of_all) in enumerate(plain):
            with self.subTest(one.instruction):
                for got in (seeded[0][k], seeded[1][k]):
                    wrong = np.flatnonzero(~within_bounds(one.name, one.ftz, a, got))
                    self.expect_none(wrong, a, got, nearest_of_all)
                    self.assertGreater(np.count_nonzero(got != nearest_of_all), 1000)
                self.assertGreater(np.count_nonzero(seeded[0][k] != seeded[1][k]), 1000)

    def test_rcp_of_the_high_words_of_doubles(self):
        """No bound is told: what is nearest in 20 bits, or with a seed up to four of the last of them away."""
        for environment, places in ((None, 0.5), ({"ESPALIER_PTX_APPROXIMATE": str(SEED)}, 4)):
            (_, (a,), got), = F64.results(environment)
            floats, exact = high_word(a)
            with self.subTest(environment):
                np.testing.assert_array_equal(got & np.uint64(0xffffffff), 0)
                np.testing.assert_array_equal(got[floats.nan], 0x7fffffff00000000)
                special = ~floats.nan & (floats.infinite | floats.zero)
                np.testing.assert_array_equal(got[special], exact[special])
                sign = np.uint64(1 << 63)
                least = np.uint64(1 << 52)
                tiny = ~special & ~floats.nan & (exact & ~sign < least)
                np.testing.assert_array_equal(got[tiny], exact[tiny] & sign)
                usual = ~special & ~floats.nan & ~tiny
                np.testing.assert_array_equal((got ^ exact)[usual] >> np.uint64(63), 0)
                apart = np.abs((got - exact)[usual].view(np.int64).astype(float)) / 2.0 ** 32
                edge = (got[usual] & ~sign) == 0  # flushed, as it came below the normal numbers
                self.assertLessEqual(apart[~edge].max(), places)
                self.assertTrue(((exact[usual][edge] & ~sign) < least + np.uint64(8 << 32)).all())
        self.assertGreater(np.count_nonzero(got != [out for _, _, out in F64.results()][0]), 1000)


if __name__ == "__main__":
    unittest.main()

"""Floating-point arithmetic by Python's integers: what IEEE 754 and PTX ISA say that add, mul, fma, div and sqrt give, in every
rounding, bit for bit.

A finite number is m 2^e. An operation is done on integers without a loss, or, where the result has no end (div, sqrt), with a
last bit that says that something follows. What rounding needs of it is its first 64 bits and whether anything follows them
(`Reals`); rounding to 11, 24 or 53 bits is then one function of arrays, for all formats and modes.
"""

import dataclasses
import math

import numpy as np

from tests.ptx.forms import bits_type

FRACTION = {16: 10, 32: 23, 64: 52}
ONE = np.uint64(1)


@dataclasses.dataclass
class Floats:
    """An array of bits, taken apart: finite values are sign m 2^e."""
    width: int
    sign: np.ndarray
    m: np.ndarray
    e: np.ndarray
    nan: np.ndarray
    infinite: np.ndarray

    @staticmethod
    def of(bits, width):
        fraction = FRACTION[width]
        bits = bits.astype(np.uint64)
        exponents = (1 << (width - 1 - fraction)) - 1
        exponent = ((bits >> np.uint64(fraction)) & np.uint64(exponents)).astype(np.int64)
        m = bits & np.uint64((1 << fraction) - 1)
        special = exponent == exponents
        nan, infinite = special & (m != 0), special & (m == 0)
        m = np.where(exponent > 0, m | np.uint64(1 << fraction), m)
        e = np.maximum(exponent, 1) - (exponents >> 1) - fraction
        return Floats(width, (bits >> np.uint64(width - 1)) == 1, np.where(special, 0, m), e, nan, infinite)

    @property
    def zero(self):
        return (self.m == 0) & ~self.nan & ~self.infinite

    def lists(self):
        """Integers with their sign, and exponents; 0 where it is not finite."""
        return (np.where(self.sign, -1, 1) * self.m.astype(np.int64)).tolist(), self.e.tolist()


@dataclasses.dataclass
class Reals:
    """sign (m + something below 1 where `more`) 2^e, m with its 64th bit set, or 0."""
    sign: np.ndarray
    m: np.ndarray
    e: np.ndarray
    more: np.ndarray

    @staticmethod
    def of(integers, exponents):
        """integer 2^exponent each, integers of any length."""
        rows = []
        for n, e in zip(integers, exponents):
            size = abs(n)
            shift = size.bit_length() - 64
            m = size >> shift if shift > 0 else size << -shift
            rows.append((n < 0, m, e + shift, shift > 0 and m << shift != size))
        sign, m, e, more = zip(*rows)
        return Reals(np.array(sign), np.array(m, np.uint64), np.array(e, np.int64), np.array(more))


def rounded(reals, width, mode):
    """Their bits as floats; zero is +0."""
    fraction, kind = FRACTION[width], bits_type(f"f{width}")
    exponents = (1 << (width - 1 - fraction)) - 1
    least = 1 - (exponents >> 1) - fraction  # a subnormal is an integer times 2^least
    last = np.maximum(reals.e + 63 - fraction, least)  # the exponent of the last place
    shift = last - reals.e
    within = np.clip(shift, 1, 64).astype(np.uint64)
    kept = np.where(shift < 64, reals.m >> np.minimum(within, np.uint64(63)), np.uint64(0))
    half = ((reals.m >> (within - ONE)) & ONE == 1) & (shift <= 64)
    rest = np.where(shift <= 64, reals.m & ((ONE << (within - ONE)) - ONE) != 0, reals.m != 0) | reals.more
    up = {"rn": half & (rest | (kept & ONE == 1)), "rz": np.zeros_like(half), "rm": reals.sign & (half | rest),
          "rp": ~reals.sign & (half | rest)}[mode]
    infinity = np.uint64(exponents << fraction)
    bits = kept + up + (np.clip(last - least, 0, exponents + 1).astype(np.uint64) << np.uint64(fraction))
    to_infinity = {"rn": np.ones_like(half), "rz": np.zeros_like(half), "rm": reals.sign, "rp": ~reals.sign}[mode]
    bits = np.where(bits >= infinity, np.where(to_infinity, infinity, infinity - ONE), bits)
    return np.where(reals.m == 0, np.uint64(0), bits | reals.sign.astype(np.uint64) << np.uint64(width - 1)).astype(kind)


# Each operation: (integers, exponents) of its operands -> those of its result.

def sums(a, b):
    out, exponents = [], []
    for m, e, n, f in zip(*a, *b):
        low = min(e, f)
        out.append((m << (e - low)) + (n << (f - low)))
        exponents.append(low)
    return out, exponents


def products(a, b):
    return [m * n for m, n in zip(a[0], b[0])], [e + f for e, f in zip(a[1], b[1])]


def quotients(a, b):
    """A quotient ends with a bit that says whether a remainder is left, as do roots."""
    out = []
    for m, n in zip(a[0], b[0]):
        whole, rest = divmod(abs(m) << 130, abs(n) or 1)
        out.append((whole << 1 | (rest != 0)) * (-1 if (m < 0) != (n < 0) else 1))
    return out, [e - f - 131 for e, f in zip(a[1], b[1])]


def square_roots(a):
    out, exponents = [], []
    for m, e in zip(*a):
        square = max(m, 0) << (130 + (e & 1))
        root = math.isqrt(square)
        out.append(root << 1 | (root * root != square))
        exponents.append((e - (e & 1) - 130) // 2 - 1)
    return out, exponents


def nan_of(width):
    """NVIDIA's: all bits but the sign."""
    return (1 << (width - 1)) - 1


def flushed(bits, width):
    """Subnormal numbers become zeros of their sign."""
    magnitude, sign = bits & bits.dtype.type(nan_of(width)), bits & bits.dtype.type(1 << (width - 1))
    return np.where(magnitude < bits.dtype.type(1 << FRACTION[width]), sign, bits)


def saturated(bits, width):
    """Clamped to 0 and 1; NaN is +0, as is -0."""
    one = bits.dtype.type(((1 << (width - 1 - FRACTION[width])) - 1 >> 1) << FRACTION[width])
    kept = np.where(bits >> bits.dtype.type(width - 1) == 1, bits.dtype.type(0), np.minimum(bits, one))
    return np.where(is_nan(bits, width), bits.dtype.type(0), kept)


def is_nan(bits, width):
    return (bits & bits.dtype.type(nan_of(width))) > bits.dtype.type(nan_of(width) >> FRACTION[width] << FRACTION[width])


def with_specials(operation, operands, real, mode):
    """Where a result is not a number, is infinite or is zero, and the sign of those: (NaN, infinite, sign)."""
    a, b, *rest = (*operands, operands[0])[:max(2, len(operands))]
    nan = np.any([one.nan for one in operands], axis=0)
    if operation in ("mul", "fma"):
        sign, infinite = a.sign ^ b.sign, a.infinite | b.infinite
        nan = nan | a.infinite & b.zero | a.zero & b.infinite
        if operation == "mul":
            return nan, infinite, sign
        a = Floats(a.width, sign, None, None, None, infinite)
        b = rest[0]
    if operation in ("add", "sub", "fma"):
        nan = nan | a.infinite & b.infinite & (a.sign != b.sign)
        of_zero = np.where(a.sign == b.sign, a.sign, mode == "rm")
        return nan, a.infinite | b.infinite, np.where(a.infinite, a.sign, np.where(b.infinite, b.sign, of_zero))
    if operation == "div":
        nan = nan | a.zero & b.zero | a.infinite & b.infinite
        real.m[b.infinite] = 0
        return nan, a.infinite | b.zero, a.sign ^ b.sign
    return nan | a.sign & ~a.zero, a.infinite, a.sign


EXACT = {"add": sums, "sub": sums, "mul": products, "div": quotients, "sqrt": square_roots,
         "fma": lambda a, b, c: sums(products(a, b), c)}


class Arithmetic:
    """Results of operations on the same operands in several modes; what is exact is worked out once."""

    def __init__(self, width):
        self.width, self.known = width, {}

    def exact(self, operation, arrays, ftz):
        key = (operation, ftz, *map(id, arrays))
        if key not in self.known:
            operands = [Floats.of(flushed(array, self.width) if ftz else array, self.width) for array in arrays]
            if operation == "sub":
                operands[1] = dataclasses.replace(operands[1], sign=~operands[1].sign)
            self.known[key] = operands, Reals.of(*EXACT[operation](*[one.lists() for one in operands])), arrays
        return self.known[key][:2]

    def result(self, operation, arrays, mode="rn", ftz=False, sat=False):
        width = self.width
        operands, real = self.exact(operation, arrays, ftz)
        nan, infinite, sign = with_specials(operation, operands, real, mode)
        out = rounded(real, width, mode)
        kind = out.dtype.type
        sign = sign.astype(out.dtype) << kind(width - 1)
        infinity = kind(nan_of(width) >> FRACTION[width] << FRACTION[width])
        out = np.where(infinite, sign | infinity, np.where(real.m == 0, sign, out))
        out = np.where(nan, kind(nan_of(width)), out)
        if ftz:
            out = flushed(out, width)
        return saturated(out, width) if sat else out

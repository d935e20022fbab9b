"""cvt between all types, as PTX ISA defines it: many operands a form, against Python's integers.

Integers are extended by the sign of the type they come from, cut to the type they become (.sat: clamped), and extended by that
type's sign to the register. A float becomes the integer that the mode says, clamped; NaN becomes 0, but the number whose first
bit alone is set where the source is f64 or the result has 64 bits.
"""

import functools
import unittest

import numpy as np

from tests.ptx.exact import FRACTION, Floats, Reals, flushed, is_nan, nan_of, rounded, saturated
from tests.ptx.forms import Form, bits_type, tests_of, width_of

INTEGERS = tuple(f"{letter}{width}" for width in (8, 16, 32, 64) for letter in "us")
MODES = ("rn", "rz", "rm", "rp")


def registers_of(kind, wider):
    """A register for this type: as wide, which is 16 bits at least; and one of 32 bits, where a test wants a wider one."""
    return sorted({f"b{max(width_of(kind), least)}" for least in ((16, 32) if wider else (16,))})


def limits(kind):
    width = width_of(kind)
    return (-(1 << (width - 1)), (1 << (width - 1)) - 1) if kind[0] == "s" else (0, (1 << width) - 1)


def as_type(bits, kind):
    """Cut to the type's width; numpy extends by its sign what is made wider."""
    return bits.astype(np.dtype(f"{'i' if kind[0] == 's' else 'u'}{width_of(kind) // 8}"))


def clamped(values, source, to):
    (lowest, highest), (low, high) = limits(source), limits(to)
    values = np.maximum(values, values.dtype.type(max(low, lowest)))
    return np.minimum(values, values.dtype.type(min(high, highest)))


def of_integers_to_integers():
    for source in INTEGERS:
        for to in INTEGERS:
            inside = limits(source)[0] >= limits(to)[0] and limits(source)[1] <= limits(to)[1]
            for saturates in (False, True) if not inside else (False,):
                for held in registers_of(source, to in ("u32", "s64")):
                    for register in registers_of(to, source in ("s32", "u64")):
                        if source != to:
                            yield integer_to_integer(source, to, saturates, held, register)


def integer_to_integer(source, to, saturates, held, register):
    def expected(a):
        values = as_type(a, source)
        return as_type(as_type(clamped(values, source, to) if saturates else values, to), "u" + register[1:])
    return Form(f"cvt{'.sat' * saturates}.{to}.{source}", held, register, expected)


def nearest(m, e, mode):
    """The integer that m 2^e becomes."""
    if e >= 0:
        return m << e
    floor, rest, half = m >> -e, m & ((1 << -e) - 1), 1 << (-e - 1)
    up = {"rni": rest > half or rest == half and floor & 1 == 1, "rmi": False, "rpi": rest > 0, "rzi": m < 0 and rest > 0}[mode]
    return floor + up


@functools.lru_cache(maxsize=None)
def integers_of(bits, width, mode, ftz):
    """Of floats (`bits`, as bytes): sign, magnitude (2^64 - 1 at most), is it NaN."""
    array = np.frombuffer(bits, f"u{width // 8}")
    floats = Floats.of(flushed(array, width) if ftz else array, width)
    values = [nearest(m, max(min(e, 80), -80), mode) for m, e in zip(*floats.lists())]
    magnitudes = np.array([min(abs(value), (1 << 64) - 1) for value in values], np.uint64)
    return floats.sign, np.where(floats.infinite, ~np.uint64(0), magnitudes), floats.nan


@functools.lru_cache(maxsize=None)
def reals_of_floats(bits, width, ftz):
    array = np.frombuffer(bits, f"u{width // 8}")
    floats = Floats.of(flushed(array, width) if ftz else array, width)
    return floats, Reals.of(*floats.lists())


@functools.lru_cache(maxsize=None)
def reals_of_integers(bits, held, source):
    values = as_type(np.frombuffer(bits, bits_type(held)), source).tolist()
    return Reals.of(values, [0] * len(values))


def of_floats_to_integers():
    for width in (16, 32, 64):
        for mode in ("rni", "rzi", "rmi", "rpi"):
            for to in INTEGERS:
                for ftz in (False, True) if width == 32 and mode != "rni" else (False,):
                    for register in registers_of(to, mode == "rzi"):
                        yield float_to_integer(width, mode, to, ftz, register)
    yield float_to_integer(32, "rzi", "u8", False, "b32", ".sat")
    yield float_to_integer(64, "rni", "s32", False, "b32", ".sat")


def float_to_integer(width, mode, to, ftz, register, word=""):
    low, high = limits(to)
    of_nan = 1 << (width_of(to) - 1) if width == 64 or width_of(to) == 64 else 0

    def expected(a):
        negative, magnitudes, nan = integers_of(a.tobytes(), width, mode, ftz)
        below = (~np.minimum(magnitudes, np.uint64(-low))) + np.uint64(1)
        values = np.where(negative, below, np.minimum(magnitudes, np.uint64(high)))
        return as_type(as_type(np.where(nan, np.uint64(of_nan), values), to), "u" + register[1:])
    return Form(f"cvt.{mode}{'.ftz' * ftz}{word}.{to}.f{width}", f"f{width}", register, expected)


def of_integers_to_floats():
    for source in INTEGERS:
        for to in (16, 32, 64):
            for mode in MODES:
                for held in registers_of(source, (to, mode) == (32, "rn")):
                    yield integer_to_float(source, to, mode, held)


def integer_to_float(source, to, mode, held):
    return Form(f"cvt.{mode}.f{to}.{source}", held, f"f{to}",
                lambda a: rounded(reals_of_integers(a.tobytes(), held, source), to, mode))


def float_to_float(source, to, mode, ftz, sat):
    def expected(a):
        floats, reals = reals_of_floats(a.tobytes(), source, ftz and source == 32)
        out = rounded(reals, to, mode or "rn")
        sign = floats.sign.astype(out.dtype) << out.dtype.type(to - 1)
        infinity = out.dtype.type(nan_of(to) >> FRACTION[to] << FRACTION[to])
        out = np.where(floats.zero, sign, np.where(floats.infinite, sign | infinity, out))
        out = np.where(floats.nan, out.dtype.type(nan_of(to)), out)
        if ftz and to == 32:
            out = flushed(out, 32)
        return saturated(out, to) if sat else out

    def same(got, expected):
        free = (expected == 0) & (got == got.dtype.type(1 << (to - 1))) if sat else is_nan(got, to) & is_nan(expected, to)
        return (got == expected) | free
    words = "".join(f".{word}" for word in (mode, "ftz" * ftz, "sat" * sat) if word)
    return Form(f"cvt{words}.f{to}.f{source}", f"f{source}", f"f{to}", expected, same=same)


def between_floats():
    for source, to in ((64, 32), (32, 16), (64, 16), (16, 32), (16, 64), (32, 64), (32, 32), (64, 64)):
        for mode in MODES if to < source else ("",):
            for ftz in (False, True) if 32 in (source, to) else (False,):
                for sat in (False, True):
                    if source != to or ftz or sat:
                        yield float_to_float(source, to, mode, ftz, sat)


def integral(width, mode, ftz):
    def expected(a):
        clean = flushed(a, width) if ftz else a
        floats, magnitudes = Floats.of(clean, width), integers_of(a.tobytes(), width, mode, ftz)[1].tolist()
        out = rounded(Reals.of(magnitudes, [0] * len(magnitudes)), width, "rn")
        out = out | floats.sign.astype(out.dtype) << out.dtype.type(width - 1)
        return np.where((floats.e >= 0) | floats.nan | floats.infinite, clean, out)
    return Form(f"cvt.{mode}{'.ftz' * ftz}.f{width}.f{width}", f"f{width}", f"f{width}", expected,
                same=lambda got, expected: (got == expected) | is_nan(got, width) & is_nan(expected, width))


def to_integral_floats():
    for width in (16, 32, 64):
        for mode in ("rni", "rzi", "rmi", "rpi"):
            yield integral(width, mode, False)
            if width == 32:
                yield integral(width, mode, True)


class Conversions(tests_of("conversions", of_integers_to_integers, of_floats_to_integers, of_integers_to_floats, between_floats,
                           to_integral_floats), unittest.TestCase):
    pass


if __name__ == "__main__":
    unittest.main()

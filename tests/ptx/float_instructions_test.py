"""Floating-point instructions, as PTX ISA defines them: many operands a form, NaNs, infinities, zeros and subnormal numbers
among them, against integers (exact.py). A NaN that single-precision arithmetic makes is 0x7fffffff, as on all GPUs so far;
of others PTX says no bits."""

import functools
import unittest

import numpy as np

from tests.ptx.exact import Arithmetic, FRACTION, flushed, is_nan, nan_of
from tests.ptx.forms import Form, bits_type, tests_of

MODES = ("rn", "rz", "rm", "rp")
ARITHMETIC = {width: Arithmetic(width) for width in (32, 64)}
ORDERED = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}


def or_any_nan(width):
    return lambda got, expected: (got == expected) | is_nan(got, width) & is_nan(expected, width)


def or_any_zero(got, expected):
    """PTX does not say which zero -0 is clamped to."""
    return (got == expected) | (expected == 0) & (got == 0x80000000)


def operation(name, operands, width, mode="", ftz=False, sat=False, shown=""):
    modifiers = "".join(f".{word}" for word in (mode, "ftz" * ftz, "sat" * sat) if word)
    kind = f"f{width}"
    exact = "div" if name == "rcp" else name

    def expected(*arrays):
        if name == "rcp":
            arrays = (ones_like(arrays[0]), arrays[0])
        return ARITHMETIC[width].result(exact, arrays, mode or "rn", ftz, sat)
    same = or_any_zero if sat else np.equal if width == 32 else or_any_nan(64)
    return Form(f"{name}{modifiers}.{kind}{shown}", " ".join([kind] * operands), kind, expected, same=same)


@functools.lru_cache(maxsize=None)
def one_of(width, count):
    return np.full(count, ((1 << (width - 1 - FRACTION[width])) - 1 >> 1) << FRACTION[width], bits_type(f"f{width}"))


def ones_like(array):
    return one_of(array.dtype.itemsize * 8, len(array))


def arithmetic():
    for width in (32, 64):
        for name, operands in (("add", 2), ("sub", 2), ("mul", 2), ("fma", 3), ("div", 2), ("sqrt", 1), ("rcp", 1)):
            if name in ("add", "sub", "mul"):
                yield operation(name, operands, width)
            for mode in MODES:
                yield operation(name, operands, width, mode)
                if width == 32:
                    yield operation(name, operands, width, mode, ftz=True)
    for name in ("add", "sub", "mul"):
        yield operation(name, 2, 32, ftz=True)
        yield operation(name, 2, 32, sat=True)
        yield operation(name, 2, 32, ftz=True, sat=True)
    yield operation("fma", 3, 32, "rn", sat=True)
    yield operation("fma", 3, 32, "rn", ftz=True, sat=True)


def in_order(bits, width):
    """Integers in the order of the floats, -0 below +0."""
    sign = bits.dtype.type(1 << (width - 1))
    return np.where(bits & sign, ~bits, bits | sign)


def extreme(name, width, ftz):
    def expected(a, b):
        if ftz:
            a, b = flushed(a, width), flushed(b, width)
        of_a, of_b = in_order(a, width), in_order(b, width)
        out = np.where(of_a < of_b if name == "min" else of_a > of_b, a, b)
        out = np.where(is_nan(a, width), b, np.where(is_nan(b, width), a, out))
        return np.where(is_nan(a, width) & is_nan(b, width), a.dtype.type(nan_of(width)), out)
    return expected


def signs():
    for width in (32, 64):
        kind, free = f"f{width}", or_any_nan(width)
        sign = bits_type(kind).type(1 << (width - 1))
        for ftz in (False, True) if width == 32 else (False,):
            word, clean = ".ftz" * ftz, (lambda bits: flushed(bits, 32)) if ftz else (lambda bits: bits)
            yield Form(f"abs{word}.{kind}", kind, kind, lambda a, sign=sign, clean=clean: clean(a) & ~sign, same=free)
            yield Form(f"neg{word}.{kind}", kind, kind, lambda a, sign=sign, clean=clean: clean(a) ^ sign, same=free)
            for name in ("min", "max"):
                yield Form(f"{name}{word}.{kind}", f"{kind} {kind}", kind, extreme(name, width, ftz),
                           same=np.equal if width == 32 else free)
        yield Form(f"copysign.{kind}", f"{kind} {kind}", kind, lambda a, b, sign=sign: a & sign | b & ~sign)


def compared(name, width, ftz):
    def expected(a, b):
        if ftz:
            a, b = flushed(a, width), flushed(b, width)
        nan = is_nan(a, width) | is_nan(b, width)
        if name in ("num", "nan"):
            return (nan == (name == "nan")).astype(np.uint32)
        with np.errstate(invalid="ignore"):
            holds = ORDERED[name[:2]](a.view(f"f{width // 8}"), b.view(f"f{width // 8}"))
        return np.where(nan, len(name) == 3, holds).astype(np.uint32)
    return expected


def comparisons():
    names = list(ORDERED) + [name + "u" for name in ORDERED] + ["num", "nan"]
    for width in (32, 64):
        for name in names:
            for ftz in (False, True) if width == 32 else (False,):
                instruction = f"setp.{name}{'.ftz' * ftz}.f{width}"
                yield Form(instruction, f"f{width} f{width}", "u32", compared(name, width, ftz),
                           f"{instruction} %p, %a, %b; selp.u32 %d, 1, 0, %p;")
    for name in ("lt", "geu"):
        for sign in ("", "!"):
            def both(a, b, name=name, sign=sign):
                holds, other = compared(name, 32, False)(a, b), compared("nan", 32, False)(a, b) ^ np.uint32(sign == "!")
                return holds & other | (1 - holds & other) << np.uint32(1)
            yield Form(f"setp.{name}.and.f32 p|q, {sign}nan", "f32 f32", "u32", both,
                       f"setp.nan.f32 %r, %a, %b; setp.{name}.and.f32 %p|%q, %a, %b, {sign}%r; "
                       "selp.u32 %d, 1, 0, %p; selp.u32 %t, 2, 0, %q; or.b32 %d, %d, %t;")


def of_constant(name, width, bits):
    def expected(*arrays):
        constant = np.full(len(arrays[0]), bits, bits_type(f"f{width}"))
        return ARITHMETIC[width].result(name, (arrays[0], constant, *arrays[1:]))
    return expected


def constants():
    yield Form("add.f32 0f", "f32", "f32", of_constant("add", 32, 0x3fc00000), "add.f32 %d, %a, 0f3FC00000;")
    yield Form("mul.f32 0f", "f32", "f32", of_constant("mul", 32, 0x80000000), "mul.f32 %d, %a, 0f80000000;")
    yield Form("fma.rn.f32 0f", "f32 f32", "f32", of_constant("fma", 32, 0xbf800001), "fma.rn.f32 %d, %a, 0fBF800001, %b;")
    yield Form("mul.f64 0d", "f64", "f64", of_constant("mul", 64, 0x3fb999999999999a), "mul.f64 %d, %a, 0d3FB999999999999A;",
               same=or_any_nan(64))
    yield Form("mov.f32 0f", "f32", "f32", lambda a: np.full(len(a), 0x7fc00001, np.uint32), "mov.f32 %d, 0f7FC00001;")
    yield Form("mov.b32 0f", "f32", "f32", lambda a: np.full(len(a), 0x00000001, np.uint32), "mov.b32 %d, 0f00000001;")
    yield Form("mov.f64 0d", "f64", "f64", lambda a: np.full(len(a), 0xfff0000000000001, np.uint64),
               "mov.f64 %d, 0dFFF0000000000001;")


class FloatInstructions(tests_of("float_instructions", arithmetic, signs, comparisons, constants), unittest.TestCase):
    pass


if __name__ == "__main__":
    unittest.main()

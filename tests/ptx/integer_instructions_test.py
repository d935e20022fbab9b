"""Integer instructions, logic, shifts, fields of bits and comparisons, as PTX ISA defines them: many operands a form, corners
among them, against Python's integers, which have no width. A division by zero is not defined and left out."""

import operator
import unittest

import numpy as np

from tests.ptx.forms import Form, of_arrays, of_integers, signed, tests_of, width_of

NUMBERS = ("u16", "u32", "u64", "s16", "s32", "s64")
SIGNED, BITS, WORDS = ("s16", "s32", "s64"), ("b16", "b32", "b64"), ("b32", "b64")
COMPARISONS = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
               "lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge}
BOOLEANS = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}


def form(instruction, operands, result, function, text=None):
    return Form(instruction, operands, result, of_integers(operands, result, function), text)


def form_of_arrays(instruction, operands, result, function, text=None):
    return Form(instruction, operands, result, of_arrays(operands, result, function), text)


def quotient(a, b):
    """Towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def arithmetic():
    for kind in NUMBERS:
        two, three, width = f"{kind} {kind}", f"{kind} {kind} {kind}", width_of(kind)
        divided = f"{kind} {'w' if kind[0] == 's' else 'v'}{width}"
        yield form(f"add.{kind}", two, kind, operator.add)
        yield form(f"sub.{kind}", two, kind, operator.sub)
        yield form(f"mul.lo.{kind}", two, kind, operator.mul)
        yield form(f"mul.hi.{kind}", two, kind, lambda a, b, width=width: a * b >> width)
        yield form(f"mad.lo.{kind}", three, kind, lambda a, b, c: a * b + c)
        yield form(f"mad.hi.{kind}", three, kind, lambda a, b, c, width=width: (a * b >> width) + c)
        yield form(f"div.{kind}", divided, kind, quotient)
        yield form(f"rem.{kind}", divided, kind, lambda a, b: a - b * quotient(a, b))
        yield form(f"min.{kind}", two, kind, min)
        yield form(f"max.{kind}", two, kind, max)
        if width < 64:
            wide = f"{kind[0]}{2 * width}"
            yield form(f"mul.wide.{kind}", two, wide, operator.mul)
            yield form(f"mad.wide.{kind}", f"{two} {wide}", wide, lambda a, b, c: a * b + c)
    for kind in SIGNED:
        yield form(f"abs.{kind}", kind, kind, abs)
        yield form(f"neg.{kind}", kind, kind, operator.neg)


def logic():
    for kind in BITS:
        for name, function in BOOLEANS.items():
            yield form_of_arrays(f"{name}.{kind}", f"{kind} {kind}", kind, function)
        yield form_of_arrays(f"not.{kind}", kind, kind, operator.invert)
        yield form_of_arrays(f"cnot.{kind}", kind, kind, lambda a: a == 0)


def funnel(left, wrap):
    """`a` holds the low word, `b` the high one."""
    def shifted(a, b, n):
        n = n % 32 if wrap else min(n, 32)
        pair = b << 32 | a
        return pair << n >> 32 if left else pair >> n
    return shifted


def shifts():
    for width in (16, 32, 64):
        yield form(f"shl.b{width}", f"b{width} n32", f"b{width}", lambda a, n, width=width: a << min(n, width))
        for letter in "bus":
            kind = f"{letter}{width}"
            yield form(f"shr.{kind}", f"{kind} n32", kind, lambda a, n, width=width: a >> min(n, width))
    for side in "lr":
        for mode in ("wrap", "clamp"):
            yield form(f"shf.{side}.{mode}.b32", "b32 b32 n32", "b32", funnel(side == "l", mode == "wrap"))


def extracted(kind):
    def field(a, place, length):
        place, length, width = place & 255, length & 255, width_of(kind)
        if kind[0] == "u" or length == 0:
            return (a >> place) & ((1 << length) - 1)
        if place + length >= width:  # the field ends at the sign, which all bits above repeat
            return a >> place
        return signed((a >> place) & ((1 << length) - 1), length)
    return field


def inserted(width):
    def field(a, b, place, length):
        place, length = place & 255, length & 255
        mask = (((1 << length) - 1) << place) & ((1 << width) - 1)
        return b & ~mask | a << place & mask
    return field


def permuted(a, b, selection):
    of_both = (b << 32 | a).to_bytes(8, "little")
    out = []
    for k in range(4):
        chosen = selection >> 4 * k & 15
        byte = of_both[chosen & 7]
        out.append((255 if byte & 128 else 0) if chosen & 8 else byte)
    return int.from_bytes(out, "little")


def mask_of_field(a, b):
    """Bits a to a + b - 1, as far as there are 32."""
    return sum(1 << k for k in range(a, min(a + b, 32))) if a < 32 else 0


def fields():
    for kind in ("u32", "s32", "u64", "s64"):
        yield form(f"bfe.{kind}", f"{kind} n32 n32", kind, extracted(kind))
    for kind in WORDS:
        width = width_of(kind)
        yield form(f"bfi.{kind}", f"{kind} {kind} n32 n32", kind, inserted(width))
        yield form(f"brev.{kind}", kind, kind, lambda a, width=width: int(f"{a:0{width}b}"[::-1], 2))
        yield form(f"popc.{kind}", kind, "u32", lambda a: bin(a).count("1"))
        yield form(f"clz.{kind}", kind, "u32", lambda a, width=width: width - a.bit_length())
    yield form("prmt.b32", "b32 b32 b32", "b32", permuted)
    yield form("bmsk.clamp.b32", "n32 n32", "b32", mask_of_field)


PREDICATE = "and.b32 %t, %c, 1; setp.ne.u32 %r, %t, 0; "  # %r, from the third operand
BOTH = " selp.u32 %d, 1, 0, %p; selp.u32 %t, 2, 0, %q; or.b32 %d, %d, %t;"


def comparisons():
    for kind in (*NUMBERS, *BITS):
        usual = ("eq", "ne") if kind[0] == "b" else ("eq", "ne", "lt", "le", "gt", "ge")
        for name in usual + (("lo", "ls", "hi", "hs") if kind[0] == "u" else ()):
            compare = COMPARISONS[name]
            yield form_of_arrays(f"setp.{name}.{kind}", f"{kind} {kind}", "u32", compare,
                                 f"setp.{name}.{kind} %p, %a, %b; selp.u32 %d, 1, 0, %p;")
    # Two results: of the comparison and of its complement, each combined with the predicate.
    yield form("setp.lt.s32 p|q", "s32 s32 b32", "u32", lambda a, b, c: 1 if a < b else 2, "setp.lt.s32 %p|%q, %a, %b;" + BOTH)
    for name, combine in BOOLEANS.items():
        for sign in ("", "!"):
            def both(a, b, c, combine=combine, sign=sign):
                c = (c & 1) ^ (sign == "!")
                return combine(int(a < b), c) + 2 * combine(int(not a < b), c)
            yield form(f"setp.lt.{name}.s32 p|q {sign}c", "s32 s32 b32", "u32", both,
                       f"{PREDICATE}setp.lt.{name}.s32 %p|%q, %a, %b, {sign}%r;{BOTH}")
            yield form(f"setp.lt.{name}.s32 p {sign}c", "s32 s32 b32", "u32", lambda a, b, c, both=both: both(a, b, c) & 1,
                       f"{PREDICATE}setp.lt.{name}.s32 %p, %a, %b, {sign}%r; selp.u32 %d, 1, 0, %p;")


def predicates():
    for name, combine in BOOLEANS.items():
        yield form(f"{name}.pred", "s32 s32 b32", "u32", lambda a, b, c, combine=combine: combine(int(a < b), c & 1),
                   f"{PREDICATE}setp.lt.s32 %p, %a, %b; {name}.pred %q, %p, %r; selp.u32 %d, 1, 0, %q;")
    yield form("not.pred", "s32 s32 b32", "u32", lambda a, b, c: 1 - (c & 1),
               PREDICATE + "not.pred %q, %r; selp.u32 %d, 1, 0, %q;")
    yield form("mov.pred", "s32 s32 b32", "u32", lambda a, b, c: c & 1, PREDICATE + "mov.pred %q, %r; selp.u32 %d, 1, 0, %q;")
    for value in (-1, 0):
        yield form(f"mov.pred {value}", "s32", "u32", lambda a, value=value: value & 1, f"mov.pred %q, {value}; selp.u32 %d, 1, 0, %q;")
    for sign, chosen in (("", 1), ("!", 0)):
        yield form(f"@{sign}p", "s32 s32 b32", "s32", lambda a, b, c, chosen=chosen: a if c & 1 == chosen else b,
                   f"{PREDICATE}mov.b32 %d, %b; @{sign}%r mov.b32 %d, %a;")
    for kind in (*NUMBERS, *BITS, "f32", "f64"):
        yield form_of_arrays(f"selp.{kind}", f"{kind} {kind} b32", kind, lambda a, b, c: np.where(c & 1 == 1, a, b),
                             f"{PREDICATE}selp.{kind} %d, %a, %b, %r;")


def constants():
    """Operands that are written into the instruction."""
    yield form("add.s32 -7", "s32", "s32", lambda a: a - 7, "add.s32 %d, %a, -7;")
    yield form("and.b32 hex", "b32", "b32", lambda a: a & 0xff00ff00, "and.b32 %d, %a, 0xFF00FF00;")
    yield form("sub.s16 -32768", "s16", "s16", lambda a: -32768 - a, "sub.s16 %d, -32768, %a;")
    yield form("mul.lo.s64 -1000000007", "s64", "s64", lambda a: a * -1000000007, "mul.lo.s64 %d, %a, -1000000007;")
    yield form("mul.wide.s32 -1", "s32", "s64", operator.neg, "mul.wide.s32 %d, %a, -1;")
    yield form("mul.wide.u32 4294967295", "u32", "u64", lambda a: a * 4294967295, "mul.wide.u32 %d, %a, 4294967295;")
    yield form("shr.u64 63", "u64", "u64", lambda a: a >> 63, "shr.u64 %d, %a, 63;")
    yield form("xor.b64 -1", "b64", "b64", operator.invert, "xor.b64 %d, %a, -1;")
    yield form("setp.lt.u32 -1", "u32", "u32", lambda a: int(a < 0xffffffff), "setp.lt.u32 %p, %a, -1; selp.b32 %d, 1, 0, %p;")
    yield form("setp.gt.s64 -1", "s64", "u32", lambda a: int(a > -1), "setp.gt.s64 %p, %a, -1; selp.b32 %d, 1, 0, %p;")
    yield form("max.u64 9223372036854775808", "u64", "u64", lambda a: max(a, 1 << 63), "max.u64 %d, %a, 9223372036854775808;")
    yield form("selp.f32 0f", "s32", "f32", lambda a: 0x3f800000 if a < 0 else 0x80000000,
               "setp.lt.s32 %p, %a, 0; selp.f32 %d, 0f3F800000, 0f80000000, %p;")
    yield form("selp.b64 -1", "s32", "b64", lambda a: -1 if a < 0 else 5, "setp.lt.s32 %p, %a, 0; selp.b64 %d, -1, 5, %p;")


def moves():
    for kind in (*BITS, *NUMBERS, "f32", "f64"):
        yield form_of_arrays(f"mov.{kind}", kind, kind, lambda a: a)
    yield form("mov.b64 {a, b}", "b32 b32", "b64", lambda a, b: b << 32 | a, "mov.b64 %d, {%a, %b};")
    yield form("mov.b32 {a, b}", "b16 b16", "b32", lambda a, b: b << 16 | a, "mov.b32 %d, {%a, %b};")
    yield form("mov.b64 {a, b, a, b}", "b16 b16", "b64", lambda a, b: (b << 16 | a) * 0x100000001,
               "mov.b64 %d, {%a, %b, %a, %b};")
    yield form("mov.b64 {low, high}", "b64", "b32", lambda a: (a & 0xffffffff) ^ (a >> 31),
               "{ .reg .b32 %low, %high; mov.b64 {%low, %high}, %a; shf.l.wrap.b32 %t, %low, %high, 1; xor.b32 %d, %low, %t; }")
    yield form("mov.b32 {low, high}", "b32", "b16", lambda a: (a >> 16) - a,
               "{ .reg .b16 %low, %high; mov.b32 {%low, %high}, %a; sub.s16 %d, %high, %low; }")
    yield form("mov.b64 {_, high}", "b64", "b32", lambda a: a >> 32, "mov.b64 {_, %d}, %a;")


class IntegerInstructions(tests_of("integer_instructions", arithmetic, logic, shifts, fields, comparisons, predicates, constants,
                                   moves), unittest.TestCase):
    pass


if __name__ == "__main__":
    unittest.main()

"""Bits: logic, shifts, fields (PTX ISA, sections 9.7.1, 9.7.8)."""

from families import family, values
from instruction import CPP


@family("and", "or", "xor", "not", "cnot")
def logic(i):
    kind = i.type("b16 b32 b64" + (" pred" if i.name != "cnot" else ""))
    arguments = values(i, kind, 1 if "not" in i.name else 2)
    if i.name == "cnot":
        return i.result(kind, f"{arguments[0]} == 0 ? 1 : 0")
    if i.name == "not":
        return i.result(kind, f"{'!' if kind == 'pred' else '~'}({arguments[0]})")
    return i.result(kind, f" {dict([('and', '&'), ('or', '|'), ('xor', '^')])[i.name]} ".join(f"({a})" for a in arguments))


@family("shl", "shr")
def shift(i):
    kind = i.type("b16 b32 b64" + (" u16 u32 u64 s16 s32 s64" if i.name == "shr" else ""))
    i.expect(3)
    return i.result(kind, f"{'left' if i.name == 'shl' else 'right'}<{CPP[kind]}>({i.value(1, kind)}, {i.value(2, 'u32')})")


@family("shf")
def funnel(i):
    i.type("b32")
    side, counted = i.take("l", "r"), i.take("wrap", "clamp")
    return i.result("b32", f"funnel_{'left' if side == 'l' else 'right'}_{counted}({', '.join(values(i, 'u32', 3))})")


@family("popc", "clz")
def count(i):
    kind = i.type("b32 b64")
    return i.result("u32", f"{'ones' if i.name == 'popc' else 'leading_zeros'}<{CPP[kind]}>({values(i, kind, 1)[0]})")


@family("brev")
def reverse(i):
    kind = i.type("b32 b64")
    return i.result(kind, f"reversed<{CPP[kind]}>({values(i, kind, 1)[0]})")


@family("bfe")
def extract(i):
    kind = i.type("u32 u64 s32 s64")
    i.expect(4)
    return i.result(kind, f"extracted<{CPP[kind]}>({i.value(1, kind)}, {i.value(2, 'u32')}, {i.value(3, 'u32')})")


@family("bfi")
def insert(i):
    kind = i.type("b32 b64")
    i.expect(5)
    return i.result(kind, f"inserted<{CPP[kind]}>({i.value(1, kind)}, {i.value(2, kind)}, {i.value(3, 'u32')}, {i.value(4, 'u32')})")


@family("bmsk")
def mask(i):
    i.type("b32")
    i.take("clamp")
    return i.result("b32", f"mask_clamped({', '.join(values(i, 'u32', 2))})")


@family("prmt")
def permute(i):
    i.type("b32")
    return i.result("b32", f"permuted({', '.join(values(i, 'u32', 3))})")

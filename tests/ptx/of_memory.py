"""Moves, addresses, memory (PTX ISA, section 9.7.9, atom, red). One thread runs at a time: order, scope and caches change nothing."""

from families import family
from instruction import CPP, FLOATS, INTEGERS
from module import Unknown, bytes_of

ORDERS = ("volatile", "relaxed", "acquire", "release", "acq_rel", "weak")
SCOPES = ("cta", "cluster", "gpu", "sys")
CACHES = ("ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc")
SPACES = ("global", "shared", "local", "param", "const")


@family("mov")
def move(i):
    kind = i.type("pred b16 b32 b64 " + INTEGERS + " " + FLOATS)
    i.expect(2)
    if i.operands[0].startswith("{") or i.operands[1].startswith("{"):
        return move_vector(i, kind)
    bits = kind if kind == "pred" else "b" + kind[1:]
    return i.result(bits, i.value(1, bits))


def move_vector(i, kind):
    """Between a register and its parts, of which the first is the lowest."""
    packed = i.operands[1].startswith("{")
    parts = i.vector(1 if packed else 0)
    width = 8 * bytes_of(kind) // len(parts)
    part = f"b{width}"
    if kind[0] != "b" or width not in (8, 16, 32):
        raise Unknown(f"{len(parts)} parts of .{kind}")
    if packed:
        return i.result(kind, " | ".join(f"(({CPP[kind]}){i.value_of(p, part)} << {k * width})" for k, p in enumerate(parts)))
    return f"const {CPP[kind]} whole = {i.value(1, kind)}; " + \
        " ".join(i.result(part, f"({CPP[part]})(whole >> {k * width})", p) for k, p in enumerate(parts))


@family("cvta")
def convert_address(i):
    i.type("u64")
    to = i.has("to")
    space = i.take("global", "shared", "local", "param", "const")
    i.expect(2)
    value = i.value(1, "u64")
    if space == "shared":
        value = f"{value} - shared_begin()" if to else f"{value} + shared_begin()"
    return i.result("u64", value)


def take_memory_modifiers(i):
    i.take(*ORDERS, default="weak")
    i.take(*SCOPES, default="sys")
    for cache in CACHES:
        i.has(cache)
    for hint in [m for m in i.modifiers if m.startswith(("L1@", "L2@"))]:
        i.modifiers.remove(hint)
    return i.take(*SPACES, default="")


def vector_of(i, k):
    lanes = int(i.take("v2", "v4", default="v1")[1:])
    parts = i.vector(k)
    if len(parts) != lanes:
        raise Unknown(f"{len(parts)} parts")
    return parts


@family("ld")
def load(i):
    kind = i.type("b8 u8 s8 b16 b32 b64 " + INTEGERS + " " + FLOATS)
    space = take_memory_modifiers(i)
    i.expect(2)
    parts = vector_of(i, 0)
    size = bytes_of(kind)
    return f"const char* const at = {i.address(1, space, size * len(parts))}; " + \
        " ".join(i.result(kind, f"load<{CPP[kind]}>(at + {k * size})", p) for k, p in enumerate(parts))


@family("st")
def store(i):
    kind = i.type("b8 u8 s8 b16 b32 b64 " + INTEGERS + " " + FLOATS)
    space = take_memory_modifiers(i)
    if space in ("param", "const"):
        raise Unknown(f"store to .{space}")
    i.expect(2)
    parts = vector_of(i, 1)
    size = bytes_of(kind)
    return f"char* const at = {i.address(0, space, size * len(parts))}; " + \
        " ".join(f"store<{CPP[kind]}>(at + {k * size}, {i.value_of(p, kind)});" for k, p in enumerate(parts))


@family("atom", "red")
def atomic(i):
    kind = i.type("b32 b64 u32 u64 s32 s64")
    does = i.take("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")
    if (kind[0] == "b") != (does in ("and", "or", "xor", "exch", "cas")) or does in ("inc", "dec") and kind != "u32":
        raise Unknown(f"{does} of .{kind}")
    space = take_memory_modifiers(i)
    first = 1 if i.name == "atom" else 0
    i.expect(first + (3 if does == "cas" else 2))
    arguments = ", ".join(i.value(k, kind) for k in range(first + 1, len(i.operands)))
    call = f"atomic_{does}<{CPP[kind]}>({i.address(first, space, bytes_of(kind))}, {arguments})"
    return i.result(kind, call) if first else f"{call};"


@family("membar", "fence")
def fence(i):
    i.take("sc", "acq_rel", default="acq_rel")
    i.take("gl", *SCOPES)
    i.expect(0)
    return ""

"""What each instruction of PTX is in C++, by families (PTX ISA, chapter 9). A function takes what it knows off the
instruction: what is left, as another modifier, is refused. It returns statements; their functions are machine.hpp's."""

from instruction import CPP, FLOATS, INTEGERS, Instruction
from module import Unknown, bytes_of

FAMILIES = {}
ROUNDINGS = {"rn": "kNearest", "rz": "kZero", "rm": "kDown", "rp": "kUp"}


def family(*names):
    def named(function):
        FAMILIES.update((name, function) for name in names)
        return function
    return named


def translated(i: Instruction):
    if i.name not in FAMILIES:
        raise Unknown(f"instruction {i.name}")
    code = FAMILIES[i.name](i)
    i.ended()
    return code


def is_float(i):
    return bool(i.modifiers) and i.modifiers[-1] in FLOATS.split()


def values(i, kind, count):
    """The operands behind the destination."""
    i.expect(count + 1)
    return [i.value(k, kind) for k in range(1, count + 1)]


def float_result(i, kind, call, arguments):
    """Of call(arguments) with what every arithmetic instruction of floats may have: .ftz, .sat."""
    flushed, saturated = i.has("ftz"), i.has("sat")
    if kind == "f64" and (flushed or saturated):
        raise Unknown("modifier of .f32")
    if flushed:
        arguments = [f"flushed({a})" for a in arguments]
    value = f"{call}({', '.join(arguments)})"
    if saturated:
        value = f"saturated({value})"
    return i.result(kind, f"flushed({value})" if flushed else value)


def rounded(i, default="rn"):
    return ROUNDINGS[i.take(*ROUNDINGS, default=default)]


# Arithmetic.
@family("add", "sub")
def add(i):
    if is_float(i):
        kind = i.type(FLOATS)
        return float_result(i, kind, f"{i.name}<{rounded(i)}>", values(i, kind, 2))
    kind = i.type(INTEGERS)
    a, b = values(i, "u" + kind[1:], 2)
    return i.result(kind, f"{a} {'+' if i.name == 'add' else '-'} {b}")


@family("mul", "mad")
def multiply(i):
    if is_float(i):
        if i.name == "mad":
            raise Unknown("mad of floats")
        kind = i.type(FLOATS)
        return float_result(i, kind, f"mul<{rounded(i)}>", values(i, kind, 2))
    kind = i.type(INTEGERS)
    part = i.take("lo", "hi", "wide")
    if part == "wide" and kind[1:] == "64":
        raise Unknown("mul.wide of 64 bits")
    to = kind[0] + str(2 * int(kind[1:])) if part == "wide" else kind
    i.expect(3 if i.name == "mul" else 4)
    product = f"mul_{part}<{CPP[kind]}>({i.value(1, kind)}, {i.value(2, kind)})"
    if i.name == "mul":
        return i.result(to, product)
    unsigned = "u" + to[1:]
    return i.result(to, f"({CPP[unsigned]}){product} + {i.value(3, unsigned)}")


@family("fma")
def fma(i):
    kind = i.type(FLOATS)
    return float_result(i, kind, f"fma<{ROUNDINGS[i.take(*ROUNDINGS)]}>", values(i, kind, 3))


@family("div")
def divide(i):
    if is_float(i):
        kind = i.type(FLOATS)
        return float_result(i, kind, f"div<{ROUNDINGS[i.take(*ROUNDINGS)]}>", values(i, kind, 2))
    kind = i.type(INTEGERS)
    return i.result(kind, f"quotient<{CPP[kind]}>({', '.join(values(i, kind, 2))})")


@family("rem")
def remainder(i):
    kind = i.type(INTEGERS)
    return i.result(kind, f"remainder<{CPP[kind]}>({', '.join(values(i, kind, 2))})")


@family("min", "max")
def least(i):
    kind = i.type(INTEGERS + " " + FLOATS)
    arguments = values(i, kind, 2)
    if kind[0] == "f":
        return float_result(i, kind, f"{i.name}imum<{CPP[kind]}>", arguments)
    return i.result(kind, f"{i.name}imum<{CPP[kind]}>({', '.join(arguments)})")


@family("abs", "neg")
def sign(i):
    kind = i.type("s16 s32 s64 " + FLOATS)
    call = f"{'magnitude' if i.name == 'abs' else 'minus'}<{CPP[kind]}>"
    if kind[0] == "f":
        return float_result(i, kind, call, values(i, kind, 1))
    return i.result(kind, f"{call}({values(i, kind, 1)[0]})")


@family("copysign")
def copysign(i):
    kind = i.type(FLOATS)
    signed, value = values(i, kind, 2)
    return i.result(kind, f"std::copysign({value}, {signed})")


@family("sqrt", "rcp")
def root(i):
    if "approx" in i.modifiers:
        return approximate(i)
    kind = i.type(FLOATS)
    return float_result(i, kind, f"{i.name}<{ROUNDINGS[i.take(*ROUNDINGS)]}>", values(i, kind, 1))


@family("rsqrt", "ex2", "lg2", "sin", "cos", "tanh")
def approximate(i):
    i.take("approx")
    kind = i.type(FLOATS if i.name == "rcp" else "f32")
    if kind == "f64":
        i.take("ftz")  # there is no other
        return i.result(kind, f"rcp_approximately({values(i, kind, 1)[0]})")
    return float_result(i, kind, f"{i.name}_approximately", values(i, kind, 1))


# Bits.
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


# Comparisons.
@family("setp")
def compare(i):
    kind = i.type("b16 b32 b64 " + INTEGERS + " " + FLOATS)
    by = {"b": ("eq", "ne"), "s": ("eq", "ne", "lt", "le", "gt", "ge"),
          "u": ("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"),
          "f": ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")}[kind[0]]
    comparison, combined = i.take(*by), i.take("and", "or", "xor", default="")
    flushed = kind == "f32" and i.has("ftz")
    i.expect(4 if combined else 3)
    a, b = i.value(1, kind), i.value(2, kind)
    if flushed:
        a, b = f"flushed({a})", f"flushed({b})"
    test = f"is_{comparison}<{CPP[kind]}>({a}, {b})"
    other = f"!{test}"
    if combined:
        with_ = {"and": "&", "or": "|", "xor": "^"}[combined]
        test, other = (f"(bool)({t}) {with_} (bool)({i.value(3, 'pred')})" for t in (test, other))
    first, _, second = i.operands[0].partition("|")
    code = f"const bool first = {test}, second = {other}; (void)second; {i.set_predicate(first.strip(), 'first')}"
    return code + (i.set_predicate(second.strip(), "second") if second else "")


@family("selp")
def select(i):
    kind = i.type("b16 b32 b64 " + INTEGERS + " " + FLOATS)
    i.expect(4)
    bits = "b" + kind[1:]
    return i.result(bits, f"{i.value(3, 'pred')} ? {i.value(1, bits)} : {i.value(2, bits)}")


# Moves and conversions.
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


@family("cvt")
def convert(i):
    kinds = "u8 s8 f16 " + INTEGERS + " " + FLOATS
    source, target = i.type(kinds), i.type(kinds)
    rounding = i.take(*ROUNDINGS, "rni", "rzi", "rmi", "rpi", default="")
    flushed, saturated = i.has("ftz"), i.has("sat")
    i.expect(2)
    value, from_float, to_float = i.value(1, source), source[0] == "f", target[0] == "f"
    must_round = to_float and (not from_float or bytes_of(target) < bytes_of(source))
    whole = rounding.endswith("i") and rounding[1:] != ""
    if from_float and not to_float and not whole or must_round and (whole or not rounding) or \
            rounding and not whole and not must_round or whole and not from_float:
        raise Unknown(f"rounding .{rounding} from .{source} to .{target}")
    if flushed and "f32" not in (source, target):
        raise Unknown("modifier .ftz")
    if flushed and source == "f32":
        value = f"flushed({value})"
    if whole:
        value = f"whole<{ROUNDINGS[rounding[:-1]]}>({value})"
    if from_float and not to_float:
        value = f"to_integer<{CPP[target]}>({value})"
    elif to_float:
        value = f"to_float<{ROUNDINGS[rounding] if must_round else 'kNearest'}, {CPP[target]}>({value})"
        value = f"saturated({value})" if saturated else value
        value = f"flushed({value})" if flushed and target == "f32" else value
    elif saturated:
        value = f"clamped<{CPP[target]}>({value})"
    return i.result(target, value)


# Memory. One thread runs at a time: order, scope and caches change nothing.
ORDERS = ("volatile", "relaxed", "acquire", "release", "acq_rel", "weak")
SCOPES = ("cta", "cluster", "gpu", "sys")
CACHES = ("ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc")
SPACES = ("global", "shared", "local", "param", "const")


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


# Control.
@family("bra")
def branch(i):
    i.has("uni")
    i.expect(1)
    return f"goto {i.f.label(i.operands[0])};"


@family("ret", "exit")
def leave(i):
    i.has("uni")
    i.expect(0)
    return "return;"


@family("trap")
def trap(i):
    i.expect(0)
    return 'stop("trap");'


@family("nanosleep")
def sleep(i):
    i.type("u32")
    i.expect(1)
    return ""


# Blocks and warps.
@family("bar", "barrier")
def barrier(i):
    i.has("cta")
    i.has("aligned")
    if i.has("warp"):
        i.take("sync")
        i.expect(1)
        return f"wait_for_lanes({i.value(0, 'u32')});"
    reduces = i.take("red", "sync") == "red"
    if not reduces:
        i.expect(1)
        return "wait_for_threads(0);" if i.operands[0] == "0" else not_the_first(i)
    kind = i.type("pred u32")
    how = i.take("popc" if kind == "u32" else "and", "or") if kind == "pred" else i.take("popc")
    i.expect(3)
    if i.operands[1] != "0":
        not_the_first(i)
    counted = f"wait_for_threads({i.value(2, 'pred')})"
    return i.result(kind, {"popc": counted, "or": f"{counted} > 0", "and": f"{counted} == threads_of_block()"}[how])


def not_the_first(i):
    raise Unknown("barrier that is not 0, of all threads")


@family("shfl")
def shuffle(i):
    i.type("b32")
    i.take("sync")
    mode = i.take("up", "down", "bfly", "idx")
    i.expect(5)
    to, _, valid = i.operands[0].partition("|")
    arguments = ", ".join(i.value(k, "u32") for k in range(1, 5))
    code = f"bool valid = false; const uint32_t value = shuffled_{mode}({arguments}, valid); {i.result('b32', 'value', to.strip())}"
    return code + (f" {i.set_predicate(valid.strip(), 'valid')}" if valid else "")


@family("vote")
def vote(i):
    i.take("sync")
    mode = i.take("ballot", "any", "all", "uni")
    kind = i.type("b32" if mode == "ballot" else "pred")
    i.expect(3)
    return i.result(kind, f"vote_{mode}({i.value(2, 'u32')}, {i.value(1, 'pred')})")


@family("match")
def match(i):
    kind = i.type("b32 b64")
    i.take("sync")
    mode = i.take("any", "all")
    i.expect(3)
    to, _, equal = i.operands[0].partition("|")
    code = f"bool equal = false; const uint32_t lanes = match_{mode}<{CPP[kind]}>({i.value(2, 'u32')}, {i.value(1, kind)}, equal); "
    return code + "(void)equal; " + i.result("b32", "lanes", to.strip()) + (f" {i.set_predicate(equal.strip(), 'equal')}" if equal else "")


@family("redux")
def reduce(i):
    kind = i.type("u32 s32 b32")
    i.take("sync")
    does = i.take("and", "or", "xor") if kind == "b32" else i.take("add", "min", "max")
    i.expect(3)
    return i.result(kind, f"reduced_{does}<{CPP[kind]}>({i.value(2, 'u32')}, {i.value(1, kind)})")

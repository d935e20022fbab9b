"""Arithmetic, comparisons, conversions (PTX ISA, sections 9.7.1, 9.7.3, 9.7.6, cvt)."""

from families import family, values
from instruction import CPP, FLOATS, INTEGERS
from module import Unknown, bytes_of

ROUNDINGS = {"rn": "kNearest", "rz": "kZero", "rm": "kDown", "rp": "kUp"}


def is_float(i):
    return bool(i.modifiers) and i.modifiers[-1] in FLOATS.split()


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
    kind = i.type(FLOATS)
    return float_result(i, kind, f"{i.name}<{ROUNDINGS[i.take(*ROUNDINGS)]}>", values(i, kind, 1))


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

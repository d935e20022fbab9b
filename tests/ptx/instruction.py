"""One instruction: its modifiers, its operands as C++, and the place of its result."""

import re

from module import Unknown, bytes_of

CPP = {"u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t", "s8": "int8_t", "s16": "int16_t", "s32": "int32_t",
       "s64": "int64_t", "b8": "uint8_t", "b16": "uint16_t", "b32": "uint32_t", "b64": "uint64_t", "f16": "Half", "f32": "float",
       "f64": "double", "pred": "bool"}
SPECIAL = {f"%{theirs}.{d}": f"{ours}.{d}" for theirs, ours in
           (("tid", "threadIdx"), ("ntid", "blockDim"), ("ctaid", "blockIdx"), ("nctaid", "gridDim")) for d in "xyz"}
SPECIAL |= {"%laneid": "lane()", "%warpid": "warp()", "%lanemask_eq": "(1u << lane())",
            "%lanemask_lt": "((1u << lane()) - 1u)", "%lanemask_le": "((2u << lane()) - 1u)",
            "%lanemask_gt": "~((2u << lane()) - 1u)", "%lanemask_ge": "~((1u << lane()) - 1u)", "WARP_SZ": "32u"}
INTEGERS = "u16 u32 u64 s16 s32 s64"
FLOATS = "f32 f64"


def split(text):
    """Operands, by commas outside of brackets."""
    parts, depth, begun = [], 0, 0
    for at, c in enumerate(text):
        depth += (c in "{[(") - (c in "}])")
        if c == "," and depth == 0:
            parts.append(text[begun:at].strip())
            begun = at + 1
    return parts + [text[begun:].strip()] if text.strip() else []


class Instruction:
    def __init__(self, function, text):
        head, _, rest = text.partition(" ")
        self.f, self.text = function, text
        self.name, *self.modifiers = head.replace("::", "@").split(".")
        self.operands = split(rest)

    # Modifiers are taken one by one; what nobody took is not known.
    def take(self, *names, default=None):
        """The one of `names` that is there."""
        for name in names:
            if name in self.modifiers:
                self.modifiers.remove(name)
                return name
        if default is None:
            raise Unknown(f"none of .{', .'.join(names)}")
        return default

    def has(self, *names):
        return bool(self.take(*names, default="")) if names else False

    def type(self, allowed):
        """The last modifier."""
        if not self.modifiers or self.modifiers[-1] not in allowed.split():
            raise Unknown(f"type .{self.modifiers[-1] if self.modifiers else ''}")
        return self.modifiers.pop()

    def expect(self, *counts):
        if len(self.operands) not in counts:
            raise Unknown(f"{len(self.operands)} operands")

    def ended(self):
        if self.modifiers:
            raise Unknown(f"modifier .{self.modifiers[0].replace('@', '::')}")

    def value(self, k, kind):
        """Operand k, as C++ of that type."""
        return self.value_of(self.operands[k], kind)

    def value_of(self, text, kind):
        if kind == "pred":
            return self.predicate(text)
        if text == "WARP_SZ" or text.startswith("%") and self.f.register(text) is None:
            return f"({CPP[kind]})({self.special(text)})"
        number = re.fullmatch(r"(-?)(0[xX][0-9a-fA-F]+|\d+)U?", text)
        if number and kind[0] != "f":
            return f"({CPP[kind]})({number[1]}{number[2]}{'ll' if number[1] else 'ull'})"
        real = re.fullmatch(r"0([fFdD])([0-9a-fA-F]+)", text)
        if real and len(real[2]) == (8 if real[1] in "fF" else 16):
            return self.as_type(f"0x{real[2]}ull", kind, 4 if real[1] in "fF" else 8)
        width = self.f.register(text)
        if width is not None:
            return self.as_type(self.f.variable(text), kind, bytes_of(width), width)
        return f"({CPP[kind]})({self.place(text)})"

    def as_type(self, bits, kind, size, width="b"):
        if width == "pred" or size < bytes_of(kind) or kind[0] == "f" and size != bytes_of(kind):
            raise Unknown(f"operand of {size} bytes for .{kind}")
        return f"from_bits<{CPP[kind]}>({bits})" if kind[0] == "f" else f"({CPP[kind]}){bits}"

    def special(self, text):
        if text not in SPECIAL:
            raise Unknown(f"operand {text}")
        return SPECIAL[text]

    def place(self, text):
        """The address of a variable: of .shared in its window, of others for everyone."""
        if text in self.f.places:
            space, offset = self.f.places[text]
            return f"{offset}ull" if space == "shared" else f"(uint64_t)(uintptr_t)(local + {offset})"
        if text in self.f.parameters:
            return f"(uint64_t)(uintptr_t)(P + {self.f.parameters[text][0]})"
        if text in self.f.globals:
            return f"(uint64_t)(uintptr_t){self.f.globals[text]}"
        raise Unknown(f"operand {text}")

    def predicate(self, text):
        if re.fullmatch(r"-?\d+", text):
            return "false" if int(text) == 0 else "true"
        negated, name = ("!", text[1:].strip()) if text.startswith("!") else ("", text)
        if self.f.register(name) != "pred":
            raise Unknown(f"predicate {text}")
        return negated + self.f.variable(name)

    def set_predicate(self, name, value):
        if name != "_" and self.f.register(name) != "pred":
            raise Unknown(f"predicate {name}")
        return "" if name == "_" else f"{self.f.variable(name)} = {value};"

    def result(self, kind, value, to=None):
        """The destination takes a value of that type, which a wider register extends by its sign or by zeros."""
        to = self.operands[0] if to is None else to
        if kind == "pred":
            return self.set_predicate(to, value)
        if to == "_":
            return f"(void)({value});"
        width = self.f.register(to)
        if width is None or width == "pred" or bytes_of(width) < bytes_of(kind) or kind[0] == "f" and bytes_of(width) != bytes_of(kind):
            raise Unknown(f"destination {to} of .{kind}")
        if kind[0] == "f":
            return f"{self.f.variable(to)} = to_bits<{CPP[kind]}>({value});"
        return f"{self.f.variable(to)} = ({CPP['u' + width[1:]]})({CPP[kind]})({value});"

    def vector(self, k):
        """The parts of operand k, {a, b}."""
        text = self.operands[k]
        return split(text[1:-1]) if text.startswith("{") else [text]

    def address(self, k, space, size):
        """A pointer to `size` bytes that operand k, [base+offset], names: checked when it runs, those of parameters by name here."""
        found = re.fullmatch(r"\[\s*(.+?)\s*(?:\+\s*(-?\d+))?\s*\]", self.operands[k])
        if not found:
            raise Unknown(f"address {self.operands[k]}")
        base, offset = found[1], int(found[2] or 0)
        if space == "param" and self.f.register(base) is None:
            if base not in self.f.parameters:
                raise Unknown(f"parameter {base}")
            begin, bytes_ = self.f.parameters[base]
            if offset < 0 or offset + size > bytes_ or (begin + offset) % size:
                raise Unknown(f"{size} bytes at {offset} of a parameter of {bytes_}")
            return f"P + {begin + offset}"
        window = {"": "generic", "const": "global"}.get(space, space)
        kind = "b64" if self.f.register(base) in (None, "b64") else "b32"
        return f"{window}_at<{size}>(frame, (uint64_t){self.value_of(base, kind)} + ({offset}ll))"

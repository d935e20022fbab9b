#!/usr/bin/env python3
"""Writes python/espalier/_declared.py: the structures, codes and functions of include/espalier.h for
ctypes. `--check` says whether it is what the header says (`make check`).

The header keeps to what is read here: enums with numbers, `typedef struct NAME { .. } NAME;` of
numbers and pointers, `typedef TYPE (*NAME)(..);` of a function, functions that begin with
ESPALIER_API. Anything else stops this script.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADER, DECLARED = ROOT / "include" / "espalier.h", ROOT / "python" / "espalier" / "_declared.py"
NUMBERS = {
    "int": "c_int", "size_t": "c_size_t", "double": "c_double", "float": "c_float",
    "int32_t": "c_int32", "int64_t": "c_int64", "uint8_t": "c_uint8", "uint64_t": "c_uint64",
}  # fmt: skip
HEAD = '''"""include/espalier.h for ctypes, made by scripts/declare_header.py: make it anew, do not change it."""

from __future__ import annotations

# fmt: off
from ctypes import CFUNCTYPE, POINTER, Structure, {names}
from typing import Any
'''


def ctype(words, structs):
    """Of a type as C writes it. A pointer to numbers is an address, which arrays of NumPy have."""
    base, stars = re.fullmatch(
        r"([\w ]+?)\s*([* ]*)", re.sub(r"\bconst\b", "", words).strip()
    ).groups()
    stars = stars.count("*")
    if base == "char" and stars:
        made, stars = "c_char_p", stars - 1
    elif stars and base not in structs:
        made, stars = "c_void_p", stars - 1
    elif base in structs:
        made = base
    else:
        made = "None" if base == "void" else NUMBERS[base]
    return "POINTER(" * stars + made + ")" * stars


def split_declaration(text):
    """(type, name) of each of `const int32_t *heads, *tails`."""
    first, *others = (part.strip() for part in text.split(","))
    type_name, stars, name = re.fullmatch(r"(.*?)\s*(\**)\s*(\w+)", first).groups()
    found = [(f"{type_name}{stars}", name)]
    base = type_name.rstrip("* ") if others else type_name
    for part in others:
        stars, name = re.fullmatch(r"(\**)\s*(\w+)", part).groups()
        found.append((f"{base}{stars}", name))
    return found


def declare(header):
    text = re.sub(r"/\*.*?\*/", " ", header, flags=re.S)
    text = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    text = re.sub(r'extern "C" \{|^\}\s*$', " ", text, flags=re.M)
    structs, calls, lines, functions = [], [], [], []
    for part in re.finditer(r"([^;{}]+(?:\{[^}]*\})?[^;{}]*);", text):
        words = " ".join(part.group(1).split())
        if found := re.fullmatch(r"enum \w+ \{(.*)\}", words):
            lines += [item.strip().removeprefix("ESPALIER_") for item in found.group(1).split(",")]
        elif re.fullmatch(r"typedef struct (\w+) \1", words):
            pass  # a handle
        elif found := re.fullmatch(r"typedef (.+?)\(\*(\w+)\)\((.*)\)", words):  # of a function
            kind, name, arguments = found.groups()
            kinds = [kind, *(split_declaration(item)[0][0] for item in arguments.split(","))]
            lines.append(f"{name} = CFUNCTYPE({', '.join(ctype(of, structs) for of in kinds)})")
            structs.append(name)
            calls.append(name)
        elif found := re.fullmatch(r"typedef struct (\w+) \{(.*)\} \1", words):
            members = [
                item
                for text in found.group(2).split(";")
                if text.strip()
                for item in split_declaration(text.strip())
            ]
            lines += ["", "", f"class {found.group(1)}(Structure):", "    _fields_ = ["]
            lines += [f'        ("{name}", {ctype(kind, structs)}),' for kind, name in members] + [
                "    ]"
            ]
            structs.append(found.group(1))
        elif found := re.fullmatch(r"ESPALIER_API (.+?)(\w+)\((.*)\)", words):
            kind, name, arguments = found.groups()
            kinds = [
                split_declaration(item)[0][0]
                for item in arguments.split(",")
                if item.strip() != "void"
            ]
            kinds = ", ".join(ctype(item, structs) for item in kinds)
            functions.append(f'    "{name}": ({ctype(kind, structs)}, [{kinds}]),')
        else:
            sys.exit(f"{HEADER}: scripts/declare_header.py cannot read this: {words}")
    body = "\n".join([*lines, "", "", "STRUCTURES = (", *(f"    {name}," for name in structs if name not in calls), ")"])
    body += "\nFUNCTIONS: dict[str, tuple[Any, list[Any]]] = {\n" + "\n".join(functions) + "\n}\n"
    used = sorted(set(re.findall(r"\bc_\w+", body)))
    return HEAD.replace("{names}", ", ".join(used)) + "\n" + body


def main():
    made = declare(HEADER.read_text())
    if sys.argv[1:] != ["--check"]:
        DECLARED.write_text(made)
    elif not DECLARED.exists() or DECLARED.read_text() != made:
        sys.exit(
            f"{DECLARED.relative_to(ROOT)} is not what include/espalier.h says: python3 scripts/declare_header.py"
        )
    else:
        print("declarations ok")


if __name__ == "__main__":
    main()

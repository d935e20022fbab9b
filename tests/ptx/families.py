"""The table of instructions: which function translates one, by its name. The families are in of_*.py (PTX ISA, chapter 9). A function
takes what it knows off the instruction: what is left, as another modifier, is refused. It returns statements of C++; the functions
in them are machine.hpp's."""

from instruction import Instruction
from module import Unknown

FAMILIES = {}


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


def values(i, kind, count):
    """The operands behind the destination."""
    i.expect(count + 1)
    return [i.value(k, kind) for k in range(1, count + 1)]

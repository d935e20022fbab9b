#!/usr/bin/env python3
"""translate.py FILE OUT.cpp: kernels as nvcc compiled them, as C++ that runs on the emulation's fibers.

FILE is PTX (FILE.ptx), or an object of nvcc's, whose PTX is taken. A kernel becomes a function: a register is a variable that
holds its bits, an instruction a statement (families.py) that calls what machine.hpp defines, a label a label. What is not
known ends with FILE:LINE: kernel NAME: and what it is: nothing is guessed.
"""

import pathlib
import re
import sys

import of_bits  # each fills the table of families
import of_memory
import of_numbers
import of_threads
from fatbin import Unreadable, ptx_of
from families import translated
from instruction import Instruction
from module import Module, Unknown, variable_of

REGISTER_WIDTHS = {"pred": "bool", "b8": "uint8_t", "b16": "uint16_t", "b32": "uint32_t", "b64": "uint64_t"}


def width_of(kind):
    """The register of a type: its bits alone."""
    if kind == "pred":
        return kind
    found = re.fullmatch(r"[busf](8|16|32|64)", kind)
    if not found:
        raise Unknown(f"type .{kind}")
    return "b" + found[1]


def aligned(offset, align):
    return -(-offset // align) * align


class Function:
    """A kernel while it is translated: what its names stand for."""

    def __init__(self, kernel, variables):
        self.kernel = kernel
        self.out = []
        self.scopes = [{}]
        self.parameters, self.parameter_bytes = self.laid_out(kernel.parameters)
        self.places = {}  # of .shared and .local, in bytes from the beginning of the window
        self.bytes = {"shared": 0, "local": 0}
        self.globals = {v.name: f"V{k}" for k, v in enumerate(variables) if v.space != "shared"}
        words = set(re.findall(r"[\w$]+", " ".join(s.text for s in kernel.statements))) if variables else set()
        for variable in sorted((v for v in variables if v.space == "shared" and v.name in words), key=lambda v: v.count == 0):
            self.place(variable)  # one without a size, which the launch gives, comes last
        self.labels = {s.text for s in kernel.statements if s.kind == "label"}

    @staticmethod
    def laid_out(variables):
        places, end = {}, 0
        for v in variables:
            places[v.name] = (aligned(end, v.align), v.bytes)
            end = places[v.name][0] + v.bytes
        return places, end

    def place(self, variable):
        offset = aligned(self.bytes[variable.space], variable.align)
        self.places[variable.name] = (variable.space, offset)
        self.bytes[variable.space] = offset + variable.bytes

    def register(self, name):
        """Its width, as b32, or None."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
            series = re.fullmatch(r"(.*?)(\d+)", name)
            if series and series[1] + "<" in scope and int(series[2]) < scope[series[1] + "<"][1]:
                return scope[series[1] + "<"][0]
        return None

    def variable(self, name):
        return "R_" + re.sub(r"[^\w]", "_", name.lstrip("%"))

    def label(self, name):
        if name not in self.labels:
            raise Unknown(f"label {name}")
        return "T_" + re.sub(r"[^\w]", "_", name)

    def declare(self, text):
        words = text.split()
        if words[0] == ".pragma":
            return
        if words[0] in (".shared", ".local"):
            self.place(variable_of(words[0][1:], text[len(words[0]):], None))
            return
        if words[0] != ".reg":
            raise Unknown(words[0])
        width, names = width_of(words[1][1:]), []
        for name in "".join(words[2:]).split(","):
            series = re.fullmatch(r"(%?[\w$]+)<(\d+)>", name)
            if series:
                self.scopes[-1][series[1] + "<"] = (width, int(series[2]))
                names += [f"{series[1]}{k}" for k in range(int(series[2]))]
            else:
                self.scopes[-1][name] = width
                names.append(name)
        self.out.append(f"{REGISTER_WIDTHS[width]} " + ", ".join(map(self.variable, names)) + ";")

    def translate(self):
        """The C++ of its body."""
        for statement in self.kernel.statements:
            try:
                self.translate_statement(statement)
            except Unknown as unknown:
                raise Unknown(f"{unknown} in: {statement.text}", statement.line) from None
        local = f"alignas(16) char local[{self.bytes['local']}];" if self.bytes["local"] else "char* const local = nullptr;"
        frame = f"const Frame frame{{P, {self.parameter_bytes}, local, {self.bytes['local']}}};"
        return [local, frame] + self.out

    def translate_statement(self, statement):
        if statement.kind == "{":
            self.scopes.append({})
            self.out.append("{")
        elif statement.kind == "}":
            self.scopes.pop()
            self.out.append("}")
        elif statement.kind == "label":
            self.out.append(self.label(statement.text) + ":;")
        elif statement.kind == "directive":
            self.declare(statement.text)
        else:
            text, guard = statement.text, ""
            found = re.match(r"@(!?)\s*(%?[\w$]+)\s+(.*)", text)
            if found:
                if self.register(found[2]) != "pred":
                    raise Unknown(f"guard {found[2]}")
                guard, text = f"if ({found[1]}{self.variable(found[2])}) ", found[3]
            self.out.append(f"{guard}{{ {translated(Instruction(self, text))} }}")


def cpp_of(module):
    """A file of C++."""
    out = ['#include "machine.hpp"', "namespace {", "using namespace ptx;"]
    names = [v for v in module.variables if v.space != "shared"]
    for v in names:
        values = v.values.strip().strip("{}")
        values = re.sub(r"0[fFdD]([0-9a-fA-F]{8,16})", r"0x\1", values)
        if re.search(r"[A-Za-z_$]{2,}", re.sub(r"0x[0-9a-fA-F]+", "", values)):
            raise Unknown(f"value of {v.name}: {values[:60]}")
        k = names.index(v)
        out.append(f"alignas({max(v.align, 8)}) {REGISTER_WIDTHS[width_of(v.kind)]} V{k}[{max(v.count, 1)}] = {{{values}}};  // {v.name}")
    table = []
    for k, kernel in enumerate(module.kernels):
        function = Function(kernel, names + [v for v in module.variables if v.space == "shared"])
        try:
            body = function.translate()
        except Unknown as unknown:
            raise Unknown(f"kernel {kernel.name}: {unknown}", unknown.line or kernel.line) from None
        out += [f"void kernel_{k}(const char* P) {{  // {kernel.name}", *("  " + line for line in body), "}"]
        places = ", ".join(f"{{{offset}, {size}}}" for offset, size in function.parameters.values())
        table.append(f'{{"{kernel.name}", kernel_{k}, {{{places}}}, {function.bytes["shared"]}, {kernel.most_threads}}},')
    out += ["const Kernels kernels({", *("  " + line for line in table), "});"]
    out += ["const Variables variables({", *(f"  {{V{k}, sizeof V{k}}}," for k in range(len(names))), "});", "}", ""]
    return "\n".join(out)


def main():
    source, target = sys.argv[1:3]
    try:
        texts = [pathlib.Path(source).read_text()] if source.endswith(".ptx") else ptx_of(source)
        if not texts:
            raise Unreadable(f"{source}: has no PTX: build with -gencode arch=compute_90,code=compute_90")
        parts = []
        for number, text in enumerate(texts):
            if not source.endswith(".ptx"):
                source = f"{target.removesuffix('.cpp')}.{number}.ptx"
                pathlib.Path(source).write_text(text)
            parts.append(cpp_of(Module(text)))
    except Unreadable as unreadable:
        sys.exit(str(unreadable))
    except Unknown as unknown:
        sys.exit(f"{source}:{unknown.line}: {unknown}")
    if len(parts) > 1:
        sys.exit(f"{sys.argv[1]}: PTX of {len(parts)} units in one object")
    pathlib.Path(target).write_text(parts[0])


if __name__ == "__main__":
    main()

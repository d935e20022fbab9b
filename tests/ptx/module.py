"""Reads PTX: what a module declares, and the statements of its kernels, each with its line."""

import re
from dataclasses import dataclass, field

TOKENS = re.compile(r"[{};]|[$%\w]+\s*:(?!:)|\n|[^{};\n]+?(?=[{};\n])")
PARAMETER = re.compile(r"\.param\s+(?:\.align\s+(\d+)\s+)?\.(\w+)\s+(?:\.ptr\s*(?:\.\w+\s*)*?(?:\.align\s+\d+\s+)?)?([\w$]+)(?:\[(\d+)\])?$")
VARIABLE = re.compile(r"(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$%]+)(?:\[(\d*)\])?(?:\s*=\s*(.*))?$", re.S)


class Unknown(Exception):
    """What the translator does not know, or what is no PTX."""

    def __init__(self, what, line=None):
        super().__init__(what)
        self.line = line


def bytes_of(kind):
    """Of a type, as b32 or pred."""
    return 1 if kind == "pred" else int(kind.lstrip("busf")) // 8


@dataclass
class Variable:
    """An array of a state space: .global, .const, .shared, .local, or a parameter."""
    space: str
    name: str
    kind: str
    align: int
    count: int
    values: str = ""

    @property
    def bytes(self):
        return self.count * bytes_of(self.kind)


@dataclass
class Statement:
    kind: str  # "{", "}", "label", "directive", "instruction"
    text: str
    line: int


@dataclass
class Kernel:
    name: str
    line: int
    parameters: list
    statements: list = field(default_factory=list)
    most_threads: int = 1024


def variable_of(space, text, line):
    """.align 4 .b8 name[12] = {...}"""
    found = VARIABLE.match(text.strip())
    if not found:
        raise Unknown(f"declaration of .{space} {text}", line)
    align, kind, name, count, values = found.groups()
    return Variable(space, name, kind, int(align or bytes_of(kind)), int(count or (0 if count == "" else 1)), values or "")


def without_comments(text):
    """Lines stay where they are. Lines of .loc and .file end with their line, not with a semicolon."""
    text = re.sub(r"/\*.*?\*/", lambda found: "\n" * found.group().count("\n"), text, flags=re.S)
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r"^[ \t]*\.(loc|file)\b[^\n]*$", "", text, flags=re.M)


def statements(text, line):
    """Of a body; `line` is that of its first character. Braces inside of a statement are those of a vector."""
    pending, begun = "", line
    for token in TOKENS.findall(text + "\n"):
        if token == "\n":
            line += 1
            pending += " " if pending else ""
        elif token == "{" and not pending.strip() or token == "}" and "{" not in pending:
            yield Statement(token, token, line)
            pending = ""
        elif token == ";":
            words = " ".join(pending.split())
            if words:
                yield Statement("directive" if words.startswith(".") else "instruction", words, begun)
            pending = ""
        elif token.rstrip().endswith(":") and not pending.strip():
            yield Statement("label", token.strip()[:-1].strip(), line)
        else:
            if not pending.strip():
                begun = line
            pending += token
    if pending.strip():
        raise Unknown(f"statement without its end: {pending.strip()[:80]}", begun)


def end_of_braces(text, start):
    """Behind the brace that closes the one before `start`."""
    depth = 1
    for found in re.compile(r"[{}]").finditer(text, start):
        depth += 1 if found.group() == "{" else -1
        if depth == 0:
            return found.end()
    raise Unknown("a brace that is not closed", text.count("\n", 0, start) + 1)


class Module:
    def __init__(self, text):
        self.variables, self.kernels = [], []
        text = without_comments(text)
        at = 0
        head = re.compile(r"\s*((?:\.(?:visible|weak|extern|common)\s+)*)\.(\w+)")
        while (found := head.match(text, at)) is not None:
            line = text.count("\n", 0, found.start(2)) + 1
            at = self.read(text, found.group(2), found.end(), line)
        if text[at:].strip():
            raise Unknown(f"{text[at:].strip()[:60]}", text.count("\n", 0, at + len(text[at:]) - len(text[at:].lstrip())) + 1)

    def read(self, text, what, at, line):
        """What begins with .what and goes on at `at`; where the next begins."""
        if what in ("version", "target", "address_size"):
            return text.index("\n", at)
        if what == "section":
            return end_of_braces(text, text.index("{", at) + 1)
        if what in ("global", "const", "shared"):
            end = text.index(";", at)
            self.variables.append(variable_of(what, text[at:end], line))
            return end + 1
        if what == "entry":
            return self.read_kernel(text, at, line)
        raise Unknown(f".{what}", line)

    def read_kernel(self, text, at, line):
        open_brace = text.index("{", at)
        found = re.match(r"\s*([\w$]+)\s*(?:\((.*?)\))?([^(){]*)$", text[at:open_brace], re.S)
        if not found:
            raise Unknown(f"head of a kernel: {text[at:open_brace].strip()[:80]}", line)
        name, parameters, directives = found.groups()
        kernel = Kernel(name, line, [self.parameter(words, line) for words in (parameters or "").split(",") if words.strip()])
        bound = re.search(r"\.(?:maxntid|reqntid)\s+(\d+)(?:\s*,\s*(\d+))?(?:\s*,\s*(\d+))?", directives)
        if bound:
            kernel.most_threads = int(bound[1]) * int(bound[2] or 1) * int(bound[3] or 1)
        end = end_of_braces(text, open_brace + 1)
        kernel.statements = list(statements(text[open_brace + 1:end - 1], text.count("\n", 0, open_brace) + 1))
        self.kernels.append(kernel)
        return end

    @staticmethod
    def parameter(words, line):
        found = PARAMETER.match(" ".join(words.split()))
        if not found:
            raise Unknown(f"parameter {words.strip()}", line)
        align, kind, name, count = found.groups()
        return Variable("param", name, kind, int(align or bytes_of(kind)), int(count or 1))

"""Short names of kernels from mangled ones: c++filt does not know how nvcc mangles lambdas (Unvdl).

A mangled name (Itanium C++ ABI, section 5.1) is read as a tree of names, types and groups, which
are opened by N, I, F, J, X, Z or a lambda and closed by E. Of substitutions (S1_) nothing is shown.
"""

import collections
import re

TYPES = {"b": "bool", "i": "int32_t", "j": "uint32_t", "l": "int64_t", "m": "uint64_t",
         "f": "float", "d": "double"}
TOKEN = re.compile(r"L(?P<type>[a-z]|N\w*?E|S\w*?_)(?P<value>n?\d+)E"   # a number
                   r"|S[0-9A-Z]*_|S[tabsiod]|T\d*_"                     # an earlier part
                   r"|(?P<lambda>Unv\w?dl)\d*_|(?P<index>\d)_(?![_G])"  # a lambda, its number
                   r"|(?P<length>\d+)|.")                               # a name and its length

Group = collections.namedtuple("Group", "opener parts")
Name = collections.namedtuple("Name", "text")


def number(token):
    if token["type"] == "b":
        return "true" if token["value"] == "1" else "false"
    return token["value"].replace("n", "-")


def parse(mangled):
    """The parts of a mangled name: Name, Group, int (the number of a lambda), or other letters."""
    at, stack = len("_Z"), [Group("", [])]
    while at < len(mangled):
        token = TOKEN.match(mangled, at)
        at, text, parts = token.end(), token.group(), stack[-1].parts
        if token["length"]:
            parts.append(Name(mangled[at:at + int(text)]))
            at += int(text)
        elif token["value"]:
            parts.append(Name(number(token)))
        elif text == "E" and len(stack) > 1:
            stack.pop()
        elif token["lambda"] or text in "NIFJXZ":
            stack.append(Group("lambda" if token["lambda"] else text, []))
            parts.append(stack[-1])
        else:
            parts.append(int(token["index"]) if token["index"] else text)
    return stack[0].parts


def groups(parts, opener):
    return [part for part in parts if isinstance(part, Group) and part.opener == opener]


def last_name(parts):
    return ([part.text for part in parts if isinstance(part, Name)] or ["?"])[-1]


def arguments(parts):
    """The template arguments of a name that are types or numbers: `<float, 4>`."""
    shown = []
    for part in [part for group in groups(parts, "I")[-1:] for part in group.parts]:
        if isinstance(part, Name):
            shown.append(part.text)
        elif isinstance(part, Group) and part.opener == "N":
            shown.append(last_name(part.parts) + arguments(part.parts))
        elif isinstance(part, str) and part in TYPES:
            shown.append(TYPES[part])
    return f"<{', '.join(shown)}>" if shown else ""


def lambda_of(parts):
    """Where a template's name has a lambda for an argument: the parts of the name of the function
    that has the lambda, and its number there; of the innermost where they are nested. Else None."""
    for group in groups(parts, "I"):
        for place, part in enumerate(group.parts):
            if isinstance(part, Group) and part.opener == "Z":
                function = (groups(part.parts, "N") or [part])[0].parts
                made = groups(group.parts[place + 1:place + 2], "lambda")
                found = [index for each in made for index in each.parts if isinstance(index, int)]
                return lambda_of(function) or (function, (found or [1])[0])
    return None


def describe(mangled, namespace):
    """(the kernel's name, its template arguments, ` in` the function whose lambda it runs), or None
    for a kernel of another namespace."""
    nested = groups(parse(mangled), "N")
    if not nested or nested[0].parts[0] != Name(namespace):
        return None
    where, inner = "", lambda_of(nested[0].parts)
    if inner:
        where = f" in `{last_name(inner[0])}{arguments(inner[0])}`"
        where += f" #{inner[1]}" if inner[1] > 1 else ""
    return last_name(nested[0].parts), arguments(nested[0].parts), where

"""Names of kernels that fit into a table, from mangled ones.

Most kernels run a lambda, and are named by themselves and by the function that the lambda is in:
`for_each_kernel` in `transpose` #2 runs the second lambda of transpose.
"""

import collections
import re
import subprocess

TYPES = {"int": "int32_t", "long": "int64_t", "unsigned long": "uint64_t"}
OWN = re.compile(r"(void )?espalier::")
NAMESPACES = re.compile(r"^void |\(anonymous namespace\)::|espalier::")


def demangle(names):
    """{mangled name: text}."""
    done = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True,
                          check=True)
    texts = dict(zip(names, done.stdout.splitlines()))
    return {name: shorten(name) if text.startswith("_ZN8espalier") else text
            for name, text in texts.items()}


def shorten(mangled):
    """A name that c++filt cannot read, of a lambda in a template for another lambda, shortened."""
    text, at, token = "", len("_ZN"), re.compile(r"S[0-9A-Z]*_|(\d+)|IZN")
    while found := token.match(mangled, at):
        at = found.end()
        if found[1]:
            name, at = mangled[at:at + int(found[1])], at + int(found[1])
        elif found[0] == "IZN":
            text += f"{name}<"
    given = {"i": "<int>", "l": "<long>"}.get(mangled[at + 1], "") if mangled[at] == "I" else ""
    return "espalier::" + text + name + given + "()::{lambda()#1}>" * text.count("<")


def template_arguments(text, at):
    """The arguments between text[at] = "<" and its ">", and the place behind that."""
    depth, begin, given = 0, at + 1, []
    for place in range(at, len(text)):
        depth += (text[place] in "<({[") - (text[place] in ">)}]")
        if depth == 0 or (depth == 1 and text[place] == ","):
            given.append(text[begin:place].strip())
            begin = place + 1
        if depth == 0:
            return given, place + 1
    return given, len(text)


def head(text):
    """(the name, its template arguments) of the function that a text begins with."""
    at = 0
    while True:
        name = re.compile(r"\w*").match(text, at)
        given, at = [], name.end()
        if text[at:at + 1] == "<":
            given, at = template_arguments(text, at)
        if text[at:at + 2] != "::":
            return name.group(), given
        at += 2


def within(argument):
    """What for_each_in_rows wraps a function in is not shown."""
    name, inner = head(NAMESPACES.sub("", argument))
    return inner[0] if name == "OfElement" else argument


def describe(text):
    """(a kernel's name, its template arguments, in which function the lambda is that it runs)."""
    name, given = head(NAMESPACES.sub("", text))
    given = [within(each) for each in given]
    shown = [TYPES.get(each, each) for each in given if "{lambda" not in each]
    for each in given:
        function, made, number = each.rpartition("::{lambda(")
        if made:
            inner, its_arguments, where = describe(function)
            number = re.sub(r".*#(\d+)}", r"\1", number)
            inner += f"<{', '.join(its_arguments)}>" if its_arguments else ""
            return name, shown, f" in `{inner}`" + (f" #{number}" if number != "1" else "") + where
    return name, shown, ""


def instances(name, lists):
    """`name<a/b, c>` for the lists of arguments (a, c) and (b, c)."""
    for position in reversed(range(max(map(len, lists)))):
        alike = collections.defaultdict(list)
        for each in lists:
            alike[each[:position], each[position + 1:]].extend(each[position:position + 1])
        lists = [(*before, *(["/".join(choice)] if choice else []), *behind)
                 for (before, behind), choice in alike.items()]
    return " ".join(f"`{name}<{', '.join(each)}>`" if each else f"`{name}`" for each in lists)

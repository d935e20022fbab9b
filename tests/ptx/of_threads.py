"""Control, and what the threads of a block or warp do together (PTX ISA, sections 9.7.12, 9.7.13)."""

from families import family
from instruction import CPP
from module import Unknown


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


# Between launches that overlap, as CUB asks for them: here one has ended before the next begins.
@family("griddepcontrol")
def between_launches(i):
    i.take("launch_dependents", "wait")
    i.expect(0)
    return ""


@family("nanosleep")
def sleep(i):
    i.type("u32")
    i.expect(1)
    return ""


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
    how = i.take("and", "or") if kind == "pred" else i.take("popc")
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

"""Instructions of one thread: each form on 25,000 operands, with --long on 10^5, all corners among them, against what is expected, bit for bit.

A form is an instruction with its modifiers and types; forms of the same operands stand in one kernel, which stores one result
a form. Operands and results are arrays of bits, unsigned.
"""

import itertools
import os

import numpy as np

from tests.ptx.kernels import Kernels, random_numbers

LONG = bool(os.environ.get("ESPALIER_LONG"))
THREADS, BLOCKS = 256, 392 if LONG else 98
COUNT = THREADS * BLOCKS
CORNERS = 20000 if LONG else 10000  # at most so many of the first operands are combinations of corners
NAMES = "abce"  # of operands; %d is the result


def width_of(kind):
    return int(kind[1:])


def bits_type(kind):
    return np.dtype(f"u{width_of(kind) // 8}")


def signed(value, width):
    """The integer that `width` bits are in two's complement."""
    return value - (1 << width) if value >> (width - 1) else value


def integer_corners(width):
    top = 1 << (width - 1)
    some = [0, 1, 2, 3, 7, 8, width - 1, width, width + 1, 255, top - 1, top, top + 1, -1, -2, -3, -255, -256]
    return sorted({value % (1 << width) for value in some})


def draw_integers(random, count, width):
    """As many short ones as long ones, of either sign."""
    values = random.integers(0, 1 << 64, count, np.uint64) >> random.integers(64 - width, 64, count).astype(np.uint64)
    values = np.where(random.integers(0, 2, count) == 1, ~values, values)
    return values.astype(np.dtype(f"u{width // 8}"))


def count_corners(_):
    return [0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 255, 256, 257, 1 << 31, (1 << 32) - 1]


def draw_counts(random, count, _):
    """Widths and places of shifts and fields: mostly up to 80, the others anything of 32 bits."""
    near, far = random.integers(0, 81, count), random.integers(0, 1 << 32, count)
    return np.where(random.integers(0, 8, count) == 0, far, near).astype(np.uint32)


def float_corners(width):
    """Zeros, subnormals, ones, what lies beside them, the largest, infinities and NaNs, of both signs."""
    fraction = {16: 10, 32: 23, 64: 52}[width]
    exponents = (1 << (width - 1 - fraction)) - 1
    one, infinity = (exponents >> 1) << fraction, exponents << fraction
    normal, half = 1 << fraction, 1 << (fraction - 1)
    some = [0, 1, 2, normal - 1, normal, normal + 1, one - normal, one - 1, one, one + 1, one + half, one + normal,
            infinity - 1, infinity, infinity + 1, infinity + half + 5]
    return some + [value | 1 << (width - 1) for value in some]


def draw_floats(random, count, width):
    """A third of any bits; a third near one, so that sums cancel and products stay; a third of small numbers with few digits,
    which meet ties, or subnormal."""
    kind, fraction = bits_type(f"f{width}"), {16: 10, 32: 23, 64: 52}[width]
    one = ((1 << (width - 1 - fraction)) - 1 >> 1) << fraction
    any_bits = random.integers(0, (1 << width) - 1, count, np.uint64, endpoint=True)
    sign = any_bits >> np.uint64(width - 1) << np.uint64(width - 1)
    near = sign | (np.uint64(one) + (any_bits & np.uint64((1 << (fraction + 2)) - 1)) - np.uint64(1 << (fraction + 1)))
    short = near & ~np.uint64((1 << (fraction - fraction // 3)) - 1)
    short = np.where(random.integers(0, 2, count) == 0, short, sign | any_bits & np.uint64((1 << fraction) - 1))
    return np.choose(random.integers(0, 3, count), [any_bits, near, short]).astype(kind)


# What an operand is: its type, its corners, and how others are drawn.
OPERANDS = {f"{letter}{width}": (f"{letter}{width}", integer_corners, draw_integers) for letter in "usb" for width in (16, 32, 64)}
OPERANDS |= {f"f{width}": ("b16" if width == 16 else f"f{width}", float_corners, draw_floats) for width in (16, 32, 64)}
OPERANDS["n32"] = ("u32", count_corners, draw_counts)  # a count of bits
for width_ in (16, 32, 64):  # divisors: not zero
    for letter_, kind_ in (("v", "u"), ("w", "s")):
        OPERANDS[f"{letter_}{width_}"] = (f"{kind_}{width_}", lambda width: integer_corners(width)[1:],
                                          lambda random, count, width: np.maximum(draw_integers(random, count, width), 1))


def operands_of(kinds):
    """Arrays of bits, one an operand."""
    random = random_numbers()
    corners = list(itertools.product(*[OPERANDS[kind][1](width_of(kind)) for kind in kinds]))
    if len(corners) > CORNERS:
        corners = [corners[k] for k in random.permutation(len(corners))[:CORNERS]]
    drawn = [OPERANDS[kind][2](random, COUNT, width_of(kind)) for kind in kinds]
    for k, values in enumerate(zip(*corners)):
        drawn[k][:len(corners)] = np.array(values, np.uint64).astype(drawn[k].dtype)
    return drawn


class Form:
    """`text`: statements that leave their result in %d, of operands %a, %b, %c, %e; by default one instruction. `expected`
    takes arrays of bits and returns one. `same(got, expected)` says where a result will do."""

    def __init__(self, instruction, operands, result, expected, text=None, same=np.equal):
        self.instruction, self.operands, self.result = instruction, tuple(operands.split()), result
        self.expected, self.same = expected, same
        self.text = text or f"{instruction} %d, " + ", ".join(f"%{name}" for name in NAMES[:len(self.operands)]) + ";"


def with_signs(operands, arrays):
    """Signed, where the type is."""
    return [array.view(f"i{array.itemsize}") if kind[0] in "sw" else array for kind, array in zip(operands.split(), arrays)]


def of_integers(operands, result, function):
    """What is expected of a function of Python's integers."""
    def expected(*arrays):
        mask = (1 << width_of(result)) - 1
        values = [array.tolist() for array in with_signs(operands, arrays)]
        return np.array([function(*some) & mask for some in zip(*values)], bits_type(result))
    return expected


def of_arrays(operands, result, function):
    """The same of a function of arrays, for what has no carry."""
    return lambda *arrays: function(*with_signs(operands, arrays)).astype(bits_type(result))


class Forms:
    """Forms, by operands, each group a kernel of `kernels`."""

    def __init__(self, kernels, name, forms):
        self.kernels, self.groups, self.name = kernels, {}, name
        for form in forms:
            self.groups.setdefault(form.operands, []).append(form)
        for operands, group in self.groups.items():
            kernels.add(self.kernel_of(operands), len(operands) + 1, self.body(operands, group))

    def kernel_of(self, operands):
        return "_".join((self.name, *operands))

    @staticmethod
    def places(group):
        """The byte where each form's results begin; the last is the size of all."""
        return np.cumsum([0] + [COUNT * width_of(form.result) // 8 for form in group]).tolist()

    def body(self, operands, group):
        lines = ["  .reg .pred %p, %q, %r;", "  .reg .b64 %at1, %at2, %at4, %at8;", "  .reg .b32 %t;"]
        for k, kind in enumerate(operands):
            size = width_of(kind) // 8
            lines += [f"  .reg .{OPERANDS[kind][0]} %{NAMES[k]};", f"  mul.wide.u32 %at{size}, %i, {size};",
                      f"  add.s64 %at{size}, %g{k}, %at{size};", f"  ld.global.b{8 * size} %{NAMES[k]}, [%at{size}];"]
        lines += [f"  mul.wide.u32 %at{size}, %i, {size};\n  add.s64 %at{size}, %g{len(operands)}, %at{size};" for size in (2, 4, 8)]
        for form, place in zip(group, self.places(group)):
            kind = "b16" if form.result == "f16" else form.result
            size = width_of(kind) // 8
            lines += ["  {", f"  .reg .{kind} %d;", f"  {form.text}", f"  st.global.b{8 * size} [%at{size}+{place}], %d;", "  }"]
        return "\n".join(lines)

    def results(self):
        """Runs all kernels: (form, its operands, its results) each."""
        for operands, group in self.groups.items():
            arrays, places = operands_of(operands), self.places(group)
            files = arrays + [np.zeros(places[-1], np.uint8)]
            out = self.kernels.run(self.kernel_of(operands), BLOCKS, THREADS, files)[-1]
            for form, place in zip(group, places):
                kind = bits_type(form.result)
                yield form, arrays, out[place:place + COUNT * kind.itemsize].view(kind)

    def check(self, test):
        """A subtest for each form."""
        for form, arrays, got in self.results():
            self.compare(test, form, arrays, got)

    @staticmethod
    def compare(test, form, arrays, got):
        with test.subTest(form.instruction, operands=" ".join(form.operands)):
            expected = form.expected(*arrays)
            wrong = np.flatnonzero(~form.same(got, expected))
            if len(wrong):
                k = wrong[0]
                operands = ", ".join(f"{int(array[k]):#x}" for array in arrays)
                test.fail(f"{len(wrong)} of {COUNT} differ; of {operands}: {int(got[k]):#x}, expected {int(expected[k]):#x}")


def tests_of(name, *families):
    """A base of a class of tests: one for each family, a function that yields its forms."""
    kernels = Kernels(name)
    forms = {family.__name__: Forms(kernels, family.__name__, family()) for family in families}
    tests = {f"test_{family}": lambda test, some=some: some.check(test) for family, some in forms.items()}
    return type("OfForms", (), {"setUpClass": kernels.build} | tests)

"""atom and red, as PTX ISA defines them: each operation on many places of their own, in global and shared memory and by generic
addresses, and by all threads on the same places, as far as the order shows in no result."""

import operator
import unittest

import numpy as np

from tests.ptx.forms import BLOCKS, COUNT, THREADS, draw_integers, signed, width_of
from tests.ptx.kernels import Kernels, random_numbers

KERNELS = Kernels("atomic_instructions")
VARIANTS = ("global", "shared", "generic", "red.global", "red.shared")

# What is left of `a`, of integers with the type's sign.
INTEGER = {"add": operator.add, "min": min, "max": max, "and": operator.and_, "or": operator.or_, "xor": operator.xor,
           "exch": lambda a, b: b, "inc": lambda a, b: 0 if a >= b else a + 1, "dec": lambda a, b: b if a == 0 or a > b else a - 1}
OPERATIONS = {32: [("add", "u32"), ("add", "s32"), ("min", "u32"), ("min", "s32"), ("max", "u32"), ("max", "s32"), ("inc", "u32"),
                   ("dec", "u32"), ("and", "b32"), ("or", "b32"), ("xor", "b32"), ("exch", "b32"), ("cas", "b32")],
              64: [("add", "u64"), ("min", "u64"), ("min", "s64"), ("max", "u64"), ("max", "s64"), ("and", "b64"), ("or", "b64"),
                   ("xor", "b64"), ("exch", "b64"), ("cas", "b64")]}


def statements(operation, kind, variant, place, width):
    """The old value goes to %to + place, the new one behind those of all threads, where it is at first."""
    size, behind = width // 8, place + COUNT * width // 8
    word, operands = f"{operation}.{kind}", "%b, %c" if operation == "cas" else "%b"
    at = "[%slot]" if variant.endswith("shared") else f"[%to+{behind}]"
    if variant.startswith("red"):
        change = f"{variant}.{word} {at}, {operands};"
    else:
        change = f"atom{'.' + variant if variant != 'generic' else ''}.{word} %old, {at}, {operands};"
    if variant.endswith("shared"):
        change = f"st.shared.b{width} [%slot], %a; {change} ld.shared.b{width} %new, [%slot]; " \
                 f"st.global.b{width} [%to+{behind}], %new;"
    loads = " ".join(f"ld.global.b{width} %{name}, [%{file}];" for name, file in (("a", "from"), ("b", "by"), ("c", "third")))
    return f"{{ .reg .b{width} %a, %b, %c, %old, %new; {loads} mov.b{width} %old, 0; {change} " \
           f"st.global.b{width} [%to+{place}], %old; }}"


def cases(width):
    """(operation, type, variant); red has neither exch nor cas."""
    return [(name, kind, variant) for name, kind in OPERATIONS[width] for variant in VARIANTS
            if not (variant.startswith("red") and name in ("exch", "cas"))]


for width_ in OPERATIONS:
    size_ = width_ // 8
    KERNELS.add(f"alone_{width_}", 4, f".shared .align 8 .b8 slots[{THREADS * 8}];\n.reg .b32 %slot; .reg .b64 %from, %by, %third, %to;\n"
                "mov.u32 %slot, slots; mad.lo.u32 %slot, %thread, 8, %slot;\n" +
                "".join(f"mul.wide.u32 %{name}, %i, {size_}; add.s64 %{name}, %{name}, %g{k};\n"
                        for k, name in enumerate(("from", "by", "third", "to"))) +
                "\n".join(statements(*case, 2 * k * COUNT * size_, width_) for k, case in enumerate(cases(width_))))

# %g0: one word a thread; %g1: counters; %g2: what each thread was given, four words.
KERNELS.add("together", 3, """.shared .align 8 .b8 of_block[16]; .reg .b64 %at, %out, %wide; .reg .b32 %a, %d, %slot; .reg .pred %p;
mul.wide.u32 %at, %i, 4; add.s64 %at, %g0, %at; ld.global.u32 %a, [%at];
mul.wide.u32 %out, %i, 20; add.s64 %out, %g2, %out;
atom.global.add.u32 %d, [%g1], 1; st.global.u32 [%out], %d;
atom.global.inc.u32 %d, [%g1+8], 99; st.global.u32 [%out+4], %d;
atom.global.dec.u32 %d, [%g1+16], 99; st.global.u32 [%out+8], %d;
add.s32 %slot, %i, 1;
atom.global.exch.b32 %d, [%g1+24], %slot; st.global.u32 [%out+12], %d;
and.b32 %d, %i, 63; mul.wide.u32 %at, %d, 8; add.s64 %at, %at, %g1;
atom.global.cas.b32 %d, [%at+512], 0, %slot; st.global.u32 [%out+16], %d;
red.global.min.s32 [%g1+32], %a; red.global.max.u32 [%g1+40], %a; red.global.and.b32 [%g1+48], %a; red.global.or.b32 [%g1+56], %a;
red.global.xor.b32 [%g1+64], %a; cvt.u64.u32 %wide, %a; red.global.add.u64 [%g1+72], %wide; atom.add.u64 %at, [%g1+80], %wide;
setp.ne.u32 %p, %thread, 0; @%p bra ZEROED; mov.b64 %at, 0; st.shared.u64 [of_block], %at; st.shared.u64 [of_block+8], %at;
ZEROED: bar.sync 0;
red.shared.add.u32 [of_block+4], 1; atom.shared.add.u64 %at, [of_block+8], %wide;
bar.sync 0;
@%p bra DONE;
ld.shared.u32 %d, [of_block+4]; red.global.add.u32 [%g1+88], %d;
ld.shared.u64 %wide, [of_block+8]; atom.global.max.u64 %at, [%g1+96], %wide;
DONE:""")


class AtomicInstructions(unittest.TestCase):
    setUpClass = KERNELS.build

    def operands(self, width):
        """Half of the second operands are the first, for cas, or near it, for inc and dec."""
        random = random_numbers()
        a, b, c = (draw_integers(random, COUNT, width) for _ in range(3))
        near = a + random.integers(0, 3, COUNT).astype(a.dtype) - a.dtype.type(1)
        return a, np.where(random.integers(0, 2, COUNT) == 1, b, near), c

    def expected(self, name, kind, a, b, c):
        if name == "cas":
            return np.where(a == b, c, a)
        width = width_of(kind)
        sign = (lambda value: signed(value, width)) if kind[0] == "s" else lambda value: value
        return np.array([INTEGER[name](sign(x), sign(y)) & ((1 << width) - 1) for x, y in zip(a.tolist(), b.tolist())], a.dtype)

    def test_alone(self):
        for width in (32, 64):
            all_cases = cases(width)
            operands = self.operands(width)
            out = np.zeros((len(all_cases), 2, COUNT), operands[0].dtype)
            out[:, 1] = operands[0]
            out = KERNELS.run(f"alone_{width}", BLOCKS, THREADS, [*operands, out])[3]
            for (name, kind, variant), (old, new) in zip(all_cases, out):
                with self.subTest(f"{variant} {name}.{kind}"):
                    np.testing.assert_array_equal(old, 0 if variant.startswith("red") else operands[0])
                    np.testing.assert_array_equal(new, self.expected(name, kind, *operands))

    def test_together(self):
        data = draw_integers(random_numbers(), COUNT, 32)
        before = np.zeros(128, np.uint64)
        before[6] = 0xffffffff
        _, counters, given = KERNELS.run("together", BLOCKS, THREADS, [data, before, np.zeros((COUNT, 5), np.uint32)])
        low = (counters & 0xffffffff).tolist()
        self.assertEqual(low[0], COUNT)
        np.testing.assert_array_equal(np.sort(given[:, 0]), np.arange(COUNT))
        rounds = np.arange(COUNT) % 100
        np.testing.assert_array_equal(np.sort(given[:, 1]), np.sort(rounds))
        self.assertEqual(low[1], COUNT % 100)
        np.testing.assert_array_equal(np.sort(given[:, 2]), np.sort(-rounds % 100))
        self.assertEqual(low[2], -COUNT % 100)
        np.testing.assert_array_equal(np.sort(np.append(given[:, 3], low[3])), np.arange(COUNT + 1))
        winners = np.flatnonzero(given[:, 4] == 0)
        self.assertEqual(sorted((winners % 64).tolist()), list(range(64)))
        self.assertEqual(low[64:], [1 + winners[winners % 64 == slot][0] for slot in range(64)])
        after = np.array(low[64:])[np.arange(COUNT) % 64]
        np.testing.assert_array_equal(given[:, 4], np.where(np.isin(np.arange(COUNT), winners), 0, after))
        wide = data.astype(np.uint64)
        least = min(int(data.view(np.int32).min()), 0) & 0xffffffff
        bits = [int(function.reduce(data)) for function in (np.bitwise_and, np.bitwise_or, np.bitwise_xor)]
        self.assertEqual(low[4:9], [least, int(data.max()), *bits])
        self.assertEqual(counters[9:13].tolist(), [int(wide.sum())] * 2 + [COUNT, int(wide.reshape(BLOCKS, THREADS).sum(1).max())])


if __name__ == "__main__":
    unittest.main()

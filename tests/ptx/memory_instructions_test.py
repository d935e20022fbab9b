"""Loads and stores, as PTX ISA defines them: every width and vector, every space, every way to name an address. A load extends
by the sign of its type to the register."""

import unittest

import numpy as np

from tests.ptx.forms import draw_integers
from tests.ptx.kernels import Kernels, random_numbers

THREADS, BLOCKS = 256, 392
COUNT = THREADS * BLOCKS
KERNELS = Kernels("memory_instructions")
TYPES = [f"{letter}{width}" for width in (8, 16, 32, 64) for letter in "bus"] + ["f32", "f64"]


def width_of(kind):
    return int(kind[1:])


def register_of(kind):
    return kind if kind[0] == "f" else f"b{max(width_of(kind), 16)}"


def address(name, file, size):
    return f"mul.wide.u32 %{name}, %i, {size}; add.s64 %{name}, %g{file}, %{name};"


# One element a thread, into registers as wide as the type and wider: [(type, register)].
LOADS = [(kind, f"b{width}") for kind in TYPES if kind[0] != "f" for width in (16, 32, 64) if width >= width_of(kind)]
LOADS += [("f32", "f32"), ("f64", "f64")]
# To 64 bits, with zeros above.
TO_64 = {16: "mov.b64 %w, {%d, %none, %none, %none};", 32: "mov.b64 %w, {%d, %zero};", 64: "mov.b64 %w, %d;"}
KERNELS.add("loads", 2, ".reg .b64 %from, %to; .reg .b32 %zero; .reg .b16 %none; mov.b32 %zero, 0; mov.b16 %none, 0;\n" +
            address("to", 1, 8 * len(LOADS)) +
            "".join(f"\n{{ .reg .{register} %d; .reg .b64 %w; {address('from', 0, width_of(kind) // 8)} "
                    f"ld.global.{kind} %d, [%from+8]; {TO_64[width_of(register)]} st.global.b64 [%to+{8 * k}], %w; }}"
                    for k, (kind, register) in enumerate(LOADS)))

# A vector a thread, its elements stored in the opposite order, from %g0 to a part of %g1 for each: [(type, elements)].
VECTORS = [(kind, count) for kind in TYPES for count in (2, 4) if width_of(kind) * count <= 128]


def vectors(space):
    lines = [".reg .b64 %from, %to;"]
    for k, (kind, count) in enumerate(VECTORS):
        size, names = width_of(kind) // 8 * count, [f"%d{n}" for n in range(count)]
        lines.append(f"{{ .reg .{register_of(kind)} {', '.join(names)}; {address('from', 0, size)} {address('to', 1, size)} "
                     f"ld{space}.v{count}.{kind} {{{', '.join(names)}}}, [%from]; "
                     f"st{space}.v{count}.{kind} [%to+{k * COUNT * 16}], {{{', '.join(reversed(names))}}}; }}")
    return "\n".join(lines)


KERNELS.add("vectors_global", 2, vectors(".global"))
KERNELS.add("vectors_generic", 2, "cvta.global.u64 %g0, %g0; cvta.global.u64 %g1, %g1;\n" + vectors(""))
# A store of a part of a register writes no more than that.
STORES = [(kind, width) for kind in ("b8", "u8", "s8", "b16", "u16", "s16", "b32") for width in (16, 32, 64)
          if width > width_of(kind)]
KERNELS.add("stores", 2, ".reg .b64 %to, %from;\n" + "\n".join(
    f"{{ .reg .b{width} %d; {address('from', 0, 8)} {address('to', 1, 8)} ld.global.b{width} %d, [%from]; "
    f"st.global.{kind} [%to+{k * COUNT * 8}], %d; }}"
    for k, (kind, width) in enumerate(STORES)))
KERNELS.add("constants", 1, ".reg .b64 %to; .reg .f32 %f; mov.f32 %f, 0f40000000;\n" + address("to", 0, 64) + """
st.global.u32 [%to], 305419896; st.global.s32 [%to+4], -2; st.global.u16 [%to+8], 65535; st.global.u8 [%to+10], 7;
st.global.f32 [%to+12], 0f3F800000; st.global.f64 [%to+16], 0dBFF0000000000000; st.global.u64 [%to+24], -1;
st.global.v2.f32 [%to+32], {%f, 0f00000001}; st.global.v4.u32 [%to+48], {1, %i, 3, 4294967295};""")
# Words that say how memory is to be cached or ordered change no value.
ACCESSES = [("ld.global.nc.u32", "st.volatile.global.u32"), ("ld.volatile.global.u32", "st.global.u32"),
            ("ld.relaxed.gpu.global.u32", "st.relaxed.gpu.global.u32"),
            ("ld.acquire.gpu.global.u32", "st.release.gpu.global.u32"), ("ld.global.cg.u32", "st.global.cg.u32")]
KERNELS.add("accesses", 2, ".reg .b64 %from, %to; .reg .b32 %d;\n" + address("from", 0, 4) + address("to", 1, 4) + "\n".join(
    f"{load} %d, [%from]; {store} [%to+{4 * COUNT * k}], %d;" for k, (load, store) in enumerate(ACCESSES)))

# Through shared memory: a thread writes a vector of four words, reads that of the thread at the other end; addresses are 32 and
# 64 bits wide, the array's name with an offset, and generic ones.
KERNELS.add("shared", 2, """.shared .align 16 .b8 of_block[8192];
.reg .b64 %wide, %generic, %back, %from, %to; .reg .b32 %narrow, %other, %d<4>;
""" + address("from", 0, 16) + address("to", 1, 64) + """
mov.u64 %wide, of_block; mov.u32 %narrow, of_block;
ld.global.v4.u32 {%d0, %d1, %d2, %d3}, [%from];
mad.lo.u32 %narrow, %thread, 16, %narrow;
st.shared.v4.u32 [%narrow+4096], {%d0, %d1, %d2, %d3};
bar.sync 0;
sub.u32 %other, %size, %thread;
mad.wide.u32 %wide, %other, 16, %wide;
ld.shared.v2.u64 {%back, %generic}, [%wide+4080];
st.global.v2.u64 [%to], {%back, %generic};
cvta.shared.u64 %generic, %wide;
ld.v4.u32 {%d0, %d1, %d2, %d3}, [%generic+4080];
st.global.v4.u32 [%to+16], {%d0, %d1, %d2, %d3};
bar.sync 0;
st.u32 [%generic+4084], %i;
bar.sync 0;
cvta.to.shared.u64 %back, %generic;
sub.u64 %back, %back, %wide;
st.global.u64 [%to+32], %back;
ld.shared.u32 %d0, [%narrow+4100];
st.global.u32 [%to+40], %d0;
ld.shared.u16 %d1, [of_block+4102];
st.global.u32 [%to+44], %d1;
mov.u32 %d2, of_block;
cvt.u64.u32 %back, %d2;
cvta.shared.u64 %back, %back;
ld.u8 %d3, [%back+4100];
st.global.u32 [%to+48], %d3;
""")

# A thread's local memory is its own: it keeps what was written while all others of the block write theirs.
KERNELS.add("local", 2, """.local .align 16 .b8 __local_depot0[64];
.reg .b64 %SP, %SPL, %from, %to, %w; .reg .b32 %a, %b, %at; .reg .b16 %h;
mov.b64 %SPL, __local_depot0; cvta.local.u64 %SP, %SPL;
""" + address("from", 0, 4) + address("to", 1, 32) + """
ld.global.u32 %a, [%from];
st.local.v2.u32 [%SPL+8], {%a, %i};
not.b32 %b, %a;
st.u32 [%SP+20], %b;
bar.sync 0;
ld.v2.u32 {%a, %b}, [%SP+8]; st.global.v2.u32 [%to], {%b, %a};
ld.local.u32 %b, [%SPL+20]; st.global.u32 [%to+8], %b;
ld.local.s8 %b, [%SPL+9]; st.global.u32 [%to+12], %b;
and.b32 %at, %i, 3; mad.wide.u32 %w, %at, 4, %SP; add.s64 %w, %w, 32; st.u32 [%w], %i;
mad.wide.u32 %w, %at, 4, %SPL; ld.local.u32 %b, [%w+32]; st.global.u32 [%to+16], %b;
""")

# A pointer is eight bytes of parameters, which may be read in parts, by name or by address.
KERNELS.entries.append(""".visible .entry parameters(.param .u64 parameters_0, .param .align 8 .b8 parameters_1[8])
{
.reg .b64 %to, %a, %b, %at; .reg .b32 %low, %high, %c, %d; .reg .b16 %h;
ld.param.u64 %to, [parameters_0];
ld.param.u64 %a, [parameters_1]; st.global.u64 [%to], %a;
ld.param.u32 %high, [parameters_1+4]; ld.param.u32 %low, [parameters_1]; mov.b64 %b, {%low, %high}; st.global.u64 [%to+8], %b;
ld.param.v2.u32 {%low, %high}, [parameters_1]; mov.b64 %b, {%low, %high}; st.global.u64 [%to+16], %b;
ld.param.u8 %h, [parameters_1+2]; st.global.u16 [%to+24], %h;
mov.b64 %at, parameters_1; ld.param.u16 %h, [%at+4]; st.global.u16 [%to+26], %h;
ld.param.s8 %c, [parameters_1+1]; st.global.u32 [%to+28], %c;
st.global.u64 [%to+32], %to;
cvta.param.u64 %at, %at; ld.u64 %b, [%at]; st.global.u64 [%to+40], %b;
ret;
}
""")

# Variables of the module, with what they hold at first.
KERNELS.globals += """.global .align 4 .u32 words[3] = {1, 4294967295, 305419896};
.const .align 8 .b8 bytes[8] = {1, 2, 3, 4, 5, 6, 7, 255};
.global .align 8 .f64 real = 0d3FF8000000000000;
.const .align 4 .f32 reals[2] = {0f3F800000, 0fFF800000};
.global .align 1 .b8 empty[5];
.global .align 4 .u32 counter;
"""
KERNELS.add("variables", 1, """.reg .b64 %a, %to; .reg .b32 %d; .reg .f32 %f;
""" + address("to", 0, 64) + """
ld.global.u32 %d, [words+8]; st.global.u32 [%to], %d;
mov.u64 %a, words; ld.global.u32 %d, [%a+4]; st.global.u32 [%to+4], %d;
ld.const.u64 %a, [bytes]; st.global.u64 [%to+8], %a;
ld.const.s8 %d, [bytes+7]; st.global.u32 [%to+16], %d;
ld.const.f32 %f, [reals+4]; st.global.f32 [%to+20], %f;
ld.global.u64 %a, [real]; st.global.u64 [%to+24], %a;
mov.u64 %a, bytes; cvta.const.u64 %a, %a; ld.u16 %d, [%a+2]; st.global.u32 [%to+32], %d;
ld.global.u8 %d, [empty+4]; st.global.u32 [%to+36], %d;
atom.global.add.u32 %d, [counter], 1; st.global.u32 [%to+40], %d;
""")


class MemoryInstructions(unittest.TestCase):
    setUpClass = KERNELS.build

    def test_loads_extend_by_the_sign(self):
        data = draw_integers(random_numbers(), COUNT + 1, 64)
        got = KERNELS.run("loads", BLOCKS, THREADS, [data, np.zeros((COUNT, len(LOADS)), np.uint64)])[1]
        for k, (kind, register) in enumerate(LOADS):
            with self.subTest(kind, register=register):
                values = data.view(f"{'i' if kind[0] == 's' else 'u'}{width_of(kind) // 8}")[64 // width_of(kind):][:COUNT]
                np.testing.assert_array_equal(got[:, k], values.astype(f"u{width_of(register) // 8}").astype(np.uint64))

    def test_stores_write_no_more_than_their_type(self):
        data, before = draw_integers(random_numbers(), COUNT, 64), np.full(COUNT * len(STORES), 0xa5a5a5a5a5a5a5a5, np.uint64)
        got = KERNELS.run("stores", BLOCKS, THREADS, [data, before])[1].reshape(-1, COUNT)
        for k, (kind, width) in enumerate(STORES):
            with self.subTest(kind, register=width):
                mask = np.uint64((1 << width_of(kind)) - 1)
                np.testing.assert_array_equal(got[k], data & mask | before[:COUNT] & ~mask)

    def test_stores_of_constants(self):
        got = KERNELS.run("constants", 1, 3, [np.full((3, 16), 0xeeeeeeee, np.uint32)])[0]
        self.assertEqual(got[2].tolist(), [305419896, 0xfffffffe, 0xee07ffff, 0x3f800000, 0, 0xbff00000, 0xffffffff, 0xffffffff,
                                           0x40000000, 1, 0xeeeeeeee, 0xeeeeeeee, 1, 2, 3, 0xffffffff])

    def test_vectors(self):
        data = draw_integers(random_numbers(), COUNT * 2, 64)
        for kernel in ("vectors_global", "vectors_generic"):
            got = KERNELS.run(kernel, BLOCKS, THREADS, [data, np.zeros(COUNT * 16 * len(VECTORS), np.uint8)])[1]
            for k, (kind, count) in enumerate(VECTORS):
                with self.subTest(kernel, kind=kind, count=count):
                    element = np.dtype(f"u{width_of(kind) // 8}")
                    bytes_of_all = COUNT * count * element.itemsize
                    expected = data.view(np.uint8)[:bytes_of_all].view(element).reshape(COUNT, count)[:, ::-1]
                    stored = got[k * COUNT * 16:][:bytes_of_all].view(element).reshape(COUNT, count)
                    np.testing.assert_array_equal(stored, expected)

    def test_words_about_caches_and_order_change_nothing(self):
        data = draw_integers(random_numbers(), COUNT, 32)
        got = KERNELS.run("accesses", BLOCKS, THREADS, [data, np.zeros((len(ACCESSES), COUNT), np.uint32)])[1]
        for k, words in enumerate(ACCESSES):
            with self.subTest(" ".join(words)):
                np.testing.assert_array_equal(got[k], data)

    def test_shared_memory(self):
        data = draw_integers(random_numbers(), COUNT * 4, 32).reshape(COUNT, 4)
        got = KERNELS.run("shared", BLOCKS, THREADS, [data, np.zeros((COUNT, 16), np.uint32)])[1]
        other = data.reshape(BLOCKS, THREADS, 4)[:, ::-1].reshape(COUNT, 4)
        block, thread = divmod(np.arange(COUNT), THREADS)
        writer = block * THREADS + THREADS - 1 - thread  # of the second word of the thread's vector
        last = block * THREADS + THREADS - 1
        np.testing.assert_array_equal(got[:, :4], other)
        np.testing.assert_array_equal(got[:, 4:8], other)
        np.testing.assert_array_equal(got[:, 8:10], 0)
        np.testing.assert_array_equal(got[:, 10], writer)
        np.testing.assert_array_equal(got[:, 11], last >> 16)
        np.testing.assert_array_equal(got[:, 12], last & 255)

    def test_local_memory(self):
        data = draw_integers(random_numbers(), COUNT, 32)
        got = KERNELS.run("local", BLOCKS, THREADS, [data, np.zeros((COUNT, 8), np.uint32)])[1]
        number = np.arange(COUNT, dtype=np.uint32)
        second_byte = (data >> 8).astype(np.int8).astype(np.int32).view(np.uint32)
        for k, expected in enumerate((number, data, ~data, second_byte, number)):
            np.testing.assert_array_equal(got[:, k], expected)

    def test_parameters(self):
        out = KERNELS.run("parameters", 1, 1, [np.zeros(6, np.uint64), np.zeros(1, np.uint64)])[0]
        pointer = int(out[0])
        self.assertNotIn(pointer, (0, int(out[4])))
        self.assertEqual(int(out[1]), pointer)
        self.assertEqual(int(out[2]), pointer)
        self.assertEqual(int(out[5]), pointer)
        self.assertEqual(int(out[3]) & 0xffff, pointer >> 16 & 255)
        self.assertEqual(int(out[3]) >> 16 & 0xffff, pointer >> 32 & 0xffff)
        self.assertEqual(int(out[3]) >> 32, int(np.array(pointer >> 8 & 255, np.uint8).view(np.int8)) & 0xffffffff)

    def test_variables(self):
        got = KERNELS.run("variables", 2, 32, [np.zeros((64, 16), np.uint32)])[0]
        self.assertEqual(got[7, :10].tolist(), [305419896, 4294967295, 0x04030201, 0xff070605, 0xffffffff, 0xff800000, 0, 0x3ff80000,
                                                0x0403, 0])
        self.assertEqual(sorted(got[:, 10].tolist()), list(range(64)))


if __name__ == "__main__":
    unittest.main()

"""Instructions by which the lanes of a warp, or the threads of a block, meet, as PTX ISA defines them, on 10^5 lanes.

Lanes meet in groups: the members of a mask. Each warp here is one group, or two to four of any lanes, so that the groups of a
warp are at one instruction at the same time. An oracle sees all lanes of all warps as arrays of shape (warps, 32).
"""

import unittest

import numpy as np

from tests.ptx.kernels import Kernels, random_numbers

THREADS, BLOCKS, LANES = 256, 392, 32
COUNT = THREADS * BLOCKS
WARPS = COUNT // LANES
LANE = np.arange(LANES)
UNEVEN = 100  # threads of a block whose last warp has four lanes

KERNELS = Kernels("warp_instructions")


def places(operands, results):
    """Registers %v0, %v1, ... of the thread's words in each file of operands, and %out, where its first result goes."""
    lines = ["  .reg .pred %p, %q;", f"  .reg .b32 %v<{operands + 1}>, %t, %u, %d;", "  .reg .b64 %at, %out;"]
    for k in range(operands):
        lines += [f"  mad.wide.u32 %at, %i, 4, %g{k};", f"  ld.global.u32 %v{k}, [%at];"]
    return "\n".join(lines + [f"  mad.wide.u32 %out, %i, {4 * results}, %g{operands};"])


def with_results(operands, texts):
    """A body: each text leaves a word in %d."""
    lines = [places(operands, len(texts))]
    for k, text in enumerate(texts):
        lines += [f"  {text}", f"  st.global.u32 [%out+{4 * k}], %d;"]
    return "\n".join(lines)


SHUFFLES = ("up", "down", "bfly", "idx")
KERNELS.add("shuffles", 4, with_results(3, [f"shfl.sync.{mode}.b32 %d|%p, %v0, %v1, %v2, 0xffffffff; selp.u32 %t, 1, 0, %p; "
                                            "shl.b32 %t, %t, 31; xor.b32 %d, %d, %t;" for mode in SHUFFLES] +
                                       [f"shfl.sync.{mode}.b32 %d, %v0, 1, {0 if mode == 'up' else 31}, -1;" for mode in SHUFFLES]))
# One lane of the group, %v1, is the source of all: its value goes to lanes of %v2, the mask.
KERNELS.add("shuffles_in_groups", 4, with_results(3, [
    "shfl.sync.idx.b32 %d, %v0, %v1, 31, %v2;", "shfl.sync.idx.b32 %d|%p, %v0, %v1, 31, %v2; selp.u32 %d, %d, 0, %p;"]))

PREDICATE = "and.b32 %t, %v0, 1; setp.ne.u32 %p, %t, 0; "
TO_WORD = " selp.u32 %d, 1, 0, %q;"
VOTES = [f"vote.sync.{mode}.pred %q, {sign}%p, %v1;" for mode in ("any", "all", "uni") for sign in ("", "!")]
BALLOTS = [f"vote.sync.ballot.b32 %d, {sign}%p, %v1;" for sign in ("", "!")]
KERNELS.add("votes", 3, with_results(2, [PREDICATE + ballot for ballot in BALLOTS] + [PREDICATE + vote + TO_WORD for vote in VOTES]))
KERNELS.add("matches", 3, with_results(2, [
    "match.any.sync.b32 %d, %v0, %v1;", "match.all.sync.b32 %d|%q, %v0, %v1;", "match.all.sync.b32 %d|%q, %v0, %v1;" + TO_WORD,
    "{ .reg .b64 %wide; mov.b64 %wide, {0, %v0}; match.any.sync.b64 %d, %wide, %v1; }",
    "{ .reg .b64 %wide; mov.b64 %wide, {0, %v0}; match.all.sync.b64 %d|%q, %wide, %v1; }"]))
REDUCTIONS = [(name, kind) for name in ("add", "min", "max") for kind in ("u32", "s32")]
REDUCTIONS += [(name, "b32") for name in ("and", "or", "xor")]
KERNELS.add("reductions", 3, with_results(2, [f"redux.sync.{name}.{kind} %d, %v0, %v1;" for name, kind in REDUCTIONS]))

KERNELS.globals += ".shared .align 4 .b8 words_of_block[1024];\n"
TO_SHARED = "mov.u32 %u, words_of_block; mad.lo.u32 %t, %thread, 4, %u; "
# Each lane reads what the next of its group, %v1, wrote; each thread what the last-but-its-number wrote.
KERNELS.add("barriers", 4, with_results(3, [
    TO_SHARED + "st.shared.u32 [%t], %v0; bar.warp.sync %v2; and.b32 %t, %thread, 0xffffffe0; add.s32 %t, %t, %v1; "
                "mad.lo.u32 %t, %t, 4, %u; ld.shared.u32 %d, [%t];",
    "bar.sync 0; " + TO_SHARED + "not.b32 %d, %v0; st.shared.u32 [%t], %d; barrier.sync 0; sub.s32 %d, %size, %thread; "
                                 "mad.lo.u32 %t, %d, 4, %u; ld.shared.u32 %d, [%t+-4];",
    PREDICATE + "bar.red.popc.u32 %d, 0, %p;", PREDICATE + "bar.red.popc.u32 %d, 0, !%p;",
    "setp.lt.u32 %p, %v0, 0xff000000; bar.red.and.pred %q, 0, %p;" + TO_WORD,
    "setp.lt.u32 %p, %v0, 0x01000000; bar.red.or.pred %q, 0, %p;" + TO_WORD]))

REGISTERS = [f"%{name}.{axis}" for name in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"]
REGISTERS += ["%laneid", "%lanemask_eq", "%lanemask_le", "%lanemask_lt", "%lanemask_ge", "%lanemask_gt", "WARP_SZ"]
KERNELS.add("special_registers", 1, with_results(0, [f"mov.u32 %d, {name};" for name in REGISTERS]))


def warps(array):
    return array.reshape(WARPS, LANES)


def groups(random):
    """For each lane, the mask of its group: all 32 lanes, or those that drew the same of up to four numbers."""
    number = random.integers(0, random.integers(1, 5, WARPS)[:, None], (WARPS, LANES))
    same = number[:, :, None] == number[:, None, :]
    return same, (same << LANE).sum(2).astype(np.uint32)


def words(random):
    return random.integers(0, 1 << 32, (WARPS, LANES)).astype(np.uint32)


def run(kernel, results, *operands):
    """(warps, 32) for each result."""
    files = [operand.reshape(-1) for operand in operands] + [np.zeros(COUNT * results, np.uint32)]
    out = KERNELS.run(kernel, BLOCKS, THREADS, files)[-1]
    return [warps(out[k::results]) for k in range(results)]


class WarpInstructions(unittest.TestCase):
    setUpClass = KERNELS.build

    def equal(self, names, got, expected):
        self.assertEqual(len(names), len(expected))
        for name, one, other in zip(names, got, expected):
            with self.subTest(name):
                wrong = np.argwhere(one != other)
                if len(wrong):
                    warp, lane = wrong[0]
                    self.fail(f"{len(wrong)} differ; in warp {warp}, lane {lane}: {int(one[warp, lane]):#x}, "
                              f"expected {int(other[warp, lane]):#x}")

    def test_shuffles(self):
        """Segments of 2 to 32 lanes, and any segments and bounds; bits of the operands that count for nothing are set too."""
        random = random_numbers()
        a, b, c = words(random), words(random), words(random)
        width = 1 << random.integers(1, 6, WARPS)[:, None]
        usual = (32 - width << 8 | 31 * random.integers(0, 2, WARPS)[:, None]).astype(np.uint32)
        c = np.where(np.arange(WARPS)[:, None] % 4 < 3, usual | c & np.uint32(0xffffe0e0), c)
        got = run("shuffles", 8, a, b, c)
        offset, bound, segment = (b & 31).astype(int), (c & 31).astype(int), (c >> 8 & 31).astype(int)
        last, first = (LANE & segment) | (bound & ~segment), LANE & segment
        source = {"up": LANE - offset, "down": LANE + offset, "bfly": LANE ^ offset, "idx": first | offset & ~segment}
        expected = []
        for mode in SHUFFLES:
            inside = source[mode] >= last if mode == "up" else source[mode] <= last
            taken = np.take_along_axis(a, np.where(inside, source[mode], LANE), 1)
            expected.append(taken ^ inside.astype(np.uint32) << np.uint32(31))
        expected += [a[:, np.maximum(LANE - 1, 0)], a[:, np.minimum(LANE + 1, 31)], a[:, LANE ^ 1], a[:, np.ones(LANES, int)]]
        self.equal([f"shfl.sync.{mode} {form}" for form in ("d|p", "d") for mode in SHUFFLES], got, expected)

    def test_shuffles_in_groups(self):
        random = random_numbers()
        same, masks = groups(random)
        a = words(random)
        # The source of a group: its lane with the highest number drawn.
        rank = random.permuted(np.tile(LANE, (WARPS, 1)), axis=1)
        source = np.argmax(np.where(same, rank[:, None, :], -1), 2)
        taken = np.take_along_axis(a, source, 1)
        self.equal(["d", "d|p"], run("shuffles_in_groups", 2, a, source.astype(np.uint32), masks), [taken, taken])

    def test_votes(self):
        random = random_numbers()
        same, masks = groups(random)
        # Many groups of one mind.
        of_warp = random.integers(0, 2, (2, WARPS, 1)).astype(np.uint32)
        a = np.where(of_warp[0] == 1, words(random), of_warp[1])
        expected, rest = [], []
        for holds in ((a & 1) == 1, (a & 1) == 0):
            among = same & holds[:, None, :]
            expected.append((among << LANE).sum(2))
            some, every = among.any(2), (among == same).all(2)
            rest.append((some, every, every | ~some))
        expected += [votes[k] for k in range(3) for votes in rest]
        self.equal(BALLOTS + VOTES, run("votes", 8, a, masks), expected)

    def test_matches(self):
        random = random_numbers()
        same, masks = groups(random)
        a = random.integers(0, random.integers(1, 6, WARPS)[:, None], (WARPS, LANES)).astype(np.uint32) * np.uint32(0x40000001)
        equal = same & (a[:, :, None] == a[:, None, :])
        every = (equal == same).all(2)
        any_mask, all_mask = (equal << LANE).sum(2), np.where(every, masks, 0)
        self.equal(["any.b32", "all.b32", "all.b32 p", "any.b64", "all.b64"], run("matches", 5, a, masks),
                   [any_mask, all_mask, every, any_mask, all_mask])

    def test_reductions(self):
        random = random_numbers()
        same, masks = groups(random)
        a = words(random) >> random.integers(0, 32, (WARPS, LANES)).astype(np.uint32)
        a = np.where(random.integers(0, 2, (WARPS, LANES)) == 1, ~a, a)
        expected = []
        for name, kind in REDUCTIONS:
            values = a.view(np.int32).astype(np.int64) if kind == "s32" else a.astype(np.int64)
            values = np.broadcast_to(values[:, None, :], same.shape)
            neutral = {"add": 0, "min": 1 << 40, "max": -(1 << 40), "and": -1, "or": 0, "xor": 0}[name]
            function = {"add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
                        "xor": np.bitwise_xor}[name]
            expected.append((function.reduce(np.where(same, values, neutral), axis=2) & 0xffffffff).astype(np.uint32))
        self.equal([f"{name}.{kind}" for name, kind in REDUCTIONS], run("reductions", len(REDUCTIONS), a, masks), expected)

    def test_barriers(self):
        random = random_numbers()
        same, masks = groups(random)
        a = words(random)
        # The next lane of the group, the first after the last.
        after = np.where(same, (LANE[None, None, :] - LANE[None, :, None] - 1) % LANES, LANES)
        next_lane = np.argmin(after, 2)
        got = run("barriers", 6, a, next_lane.astype(np.uint32), masks)
        blocks = a.reshape(BLOCKS, THREADS)
        odd = (blocks & 1).sum(1)
        every = [np.broadcast_to(value[:, None], blocks.shape) for value in
                 (odd, THREADS - odd, (blocks < 0xff000000).all(1), (blocks < 0x01000000).any(1))]
        expected = [np.take_along_axis(a, next_lane, 1), ~blocks[:, ::-1], *every]
        self.assertTrue(0 < every[2].mean() < 1 and 0 < every[3].mean() < 1)
        self.equal(["bar.warp.sync", "bar.sync", "popc", "popc !", "and", "or"], got, [warps(one.reshape(-1)) for one in expected])

    def test_special_registers(self):
        blocks = 3
        got, = KERNELS.run("special_registers", blocks, UNEVEN, [np.zeros((blocks * UNEVEN, len(REGISTERS)), np.uint32)])
        block, thread = divmod(np.arange(blocks * UNEVEN), UNEVEN)
        lane = thread % 32
        one, below = 1 << lane, (1 << lane) - 1
        expected = dict.fromkeys(REGISTERS, 0)
        expected |= {"%tid.x": thread, "%ntid.x": UNEVEN, "%ctaid.x": block, "%nctaid.x": blocks, "%laneid": lane, "WARP_SZ": 32}
        expected |= dict.fromkeys(("%ntid.y", "%ntid.z", "%nctaid.y", "%nctaid.z"), 1)
        expected |= {"%lanemask_eq": one, "%lanemask_lt": below, "%lanemask_le": below | one,
                     "%lanemask_gt": 0xffffffff ^ (below | one), "%lanemask_ge": 0xffffffff ^ below}
        for k, name in enumerate(REGISTERS):
            with self.subTest(name):
                np.testing.assert_array_equal(got[:, k], expected[name])


if __name__ == "__main__":
    unittest.main()

"""Branches, loops, guards, scopes and ends of threads, as PTX ISA defines them, on 10^5 threads."""

import unittest

import numpy as np

from tests.ptx.kernels import Kernels, random_numbers

THREADS, BLOCKS = 256, 392
COUNT = THREADS * BLOCKS
KERNELS = Kernels("control_flow")
OPERAND = """.reg .b64 %at, %to; .reg .b32 %a, %b, %t, %d; .reg .pred %p, %q;
mul.wide.u32 %at, %i, 4; add.s64 %to, %g1, %at; add.s64 %at, %g0, %at;
ld.global.u32 %a, [%at];
"""
END = "\nst.global.u32 [%to], %d;"

# Euclid's, of %a and 360360: a loop with its test at the head, left by a guarded branch.
KERNELS.add("loop", 2, OPERAND + """mov.u32 %d, 360360;
$L__BB0_1:
.pragma "nounroll";
setp.eq.s32 %p, %a, 0;
@%p bra $L__BB0_2;
rem.u32 %t, %d, %a;
mov.b32 %d, %a;
mov.b32 %a, %t;
bra.uni $L__BB0_1;
$L__BB0_2:""" + END)
# A label of the same name in another kernel, and a guard that does not hold: nothing changes, memory neither.
KERNELS.add("guards", 2, OPERAND + """mov.u32 %d, 7;
setp.lt.s32 %p, %a, 0;
not.pred %q, %p;
@%p mov.u32 %d, 1;
@!%p add.s32 %d, %d, 1;
@%q bra $L__BB0_1;
add.s32 %d, %d, 100;
$L__BB0_1:
@!%q mad.lo.s32 %d, %d, 3, %d;
@%p ld.global.u32 %t, [%g0];
@%p st.global.u32 [%at], %d;""" + END)
# A name declared within braces is another register there, and the outer one is as it was behind them.
KERNELS.add("scopes", 2, OPERAND + """mov.u32 %d, 5;
{
.reg .b32 %d;
mov.u32 %d, %a;
{ .reg .b32 %d; mov.u32 %d, 9; add.s32 %a, %a, %d; }
add.s32 %a, %a, %d;
}
{ .reg .b32 inner; .reg .b16 rs<3>; cvt.u16.u32 rs2, %a; cvt.u32.u16 inner, rs2; xor.b32 %a, %a, inner; }
add.s32 %d, %d, %a;""" + END)
# Some threads end before others; those that are left meet in their warps.
KERNELS.add("ends", 2, OPERAND + """mov.u32 %d, 0;
and.b32 %t, %thread, 32;
setp.ne.s32 %p, %t, 0;
@%p ret;
st.global.u32 [%to], %a;
shr.u32 %t, %thread, 6;
setp.eq.s32 %p, %t, 3;
@%p exit;
griddepcontrol.wait; membar.gl; fence.acq_rel.gpu; membar.cta; fence.sc.sys; griddepcontrol.launch_dependents;
redux.sync.add.u32 %d, %a, 0xffffffff;""" + END)
# A test at the foot, a loop in a loop, a branch that no one takes: the sum of the odd numbers below %a % 16, %a / 16 % 16
# times.
KERNELS.add("nested", 2, OPERAND + """mov.u32 %d, 0;
and.b32 %b, %a, 15; bfe.u32 %a, %a, 4, 4;
OUTER:
setp.eq.u32 %p, %a, 0; @%p bra DONE;
mov.u32 %t, 0;
INNER:
setp.ge.u32 %q, %t, %b; @%q bra BEHIND;
{ .reg .pred %p; .reg .b32 %odd; and.b32 %odd, %t, 1; setp.eq.u32 %p, %odd, 1; @%p add.u32 %d, %d, %t; }
add.u32 %t, %t, 1;
setp.lt.u32 %q, %t, %b;
@%q bra INNER;
BEHIND:
sub.u32 %a, %a, 1;
setp.gt.u32 %q, %a, 15; @%q bra OUTER;
bra OUTER;
DONE:""" + END)


class ControlFlow(unittest.TestCase):
    setUpClass = KERNELS.build

    def run_on(self, kernel, data):
        return KERNELS.run(kernel, BLOCKS, THREADS, [data, np.full(COUNT, 0xdeadbeef, np.uint32)])

    def setUp(self):
        self.data = random_numbers().integers(0, 1 << 32, COUNT).astype(np.uint32)

    def test_loop(self):
        np.testing.assert_array_equal(self.run_on("loop", self.data)[1], np.gcd(self.data.astype(np.int64), 360360))

    def test_guards(self):
        after, got = self.run_on("guards", self.data)
        negative = self.data >> 31 == 1
        np.testing.assert_array_equal(got, np.where(negative, 404, 8))
        np.testing.assert_array_equal(after, np.where(negative, 404, self.data))

    def test_scopes(self):
        sums = self.data * np.uint32(2) + np.uint32(9)
        np.testing.assert_array_equal(self.run_on("scopes", self.data)[1], np.uint32(5) + (sums & np.uint32(0xffff0000)))

    def test_ends(self):
        warps = self.data.reshape(BLOCKS, 8, 32)
        expected = np.full(warps.shape, 0xdeadbeef, np.uint32)
        expected[:, 0:6:2] = warps[:, 0:6:2].sum(2, dtype=np.uint32)[:, :, None]
        expected[:, 6] = warps[:, 6]
        np.testing.assert_array_equal(self.run_on("ends", self.data)[1], expected.reshape(-1))

    def test_nested_loops(self):
        odd = self.data % 16 // 2
        np.testing.assert_array_equal(self.run_on("nested", self.data)[1], odd * odd * (self.data // 16 % 16))


if __name__ == "__main__":
    unittest.main()

"""What ends a program on a GPU ends it here: the words name kernel, block and thread.

A vector is aligned as a whole: an address that would do for one of its elements traps. A space has its window.
"""

import unittest

import numpy as np

from tests.ptx.kernels import Kernels

KERNELS = Kernels("traps")
# Thread 5 of block 1 alone does what traps.
ONE_THREAD = """.shared .align 16 .b8 of_trap[64]; .local .align 16 .b8 of_thread[64];
.reg .pred %p; .reg .b64 %a, %b; .reg .b32 %d<4>; shl.b32 %d0, %block, 16; or.b32 %d0, %d0, %thread;
setp.ne.u32 %p, %d0, 0x10005;
@%p bra END;
"""
TRAPS = {
    "misaligned_load": "ld.global.u32 %d0, [%g0+2];",
    "misaligned_byte_of_16": "ld.global.u16 %d0, [%g0+1];",
    "misaligned_store": "st.global.u64 [%g0+4], %g0;",
    "vector_of_two": "ld.global.v2.u32 {%d0, %d1}, [%g0+4];",
    "vector_of_four": "ld.global.v4.u32 {%d0, %d1, %d2, %d3}, [%g0+8];",
    "vector_of_bytes": "ld.global.v4.u8 {%d0, %d1, %d2, %d3}, [%g0+2];",
    "vector_stored": "st.global.v2.u64 [%g0+8], {%g0, %g0};",
    "vector_generic": "ld.v4.u32 {%d0, %d1, %d2, %d3}, [%g0+4];",
    "vector_shared": "st.shared.v2.u32 [of_trap+4], {%d0, %d0};",
    "vector_local": "mov.u64 %a, of_thread; ld.local.v4.u32 {%d0, %d1, %d2, %d3}, [%a+8];",
    "misaligned_shared": "ld.shared.u32 %d0, [of_trap+6];",
    "misaligned_atomic": "atom.global.add.u32 %d0, [%g0+2], 1;",
    "misaligned_reduction": "red.shared.add.u32 [of_trap+1], 1;",
    "null": "mov.b64 %a, 0; ld.global.u32 %d0, [%a];",
    "null_generic": "mov.b64 %a, 16; st.u32 [%a], %d0;",
    "far": "mov.b64 %a, 0x7000000000000000; ld.global.u32 %d0, [%a];",
    "shared_beyond": "mov.b32 %d0, 0x1000000; ld.shared.u32 %d1, [%d0];",
    "shared_far": "mov.b64 %a, of_trap; st.shared.u32 [%a+1048576], %d0;",
    "shared_by_global": "st.shared.u32 [%g0], %d0;",
    "global_by_shared": "mov.b64 %a, of_trap; ld.global.u32 %d0, [%a];",
    "generic_by_shared": "mov.b64 %a, of_trap; ld.u32 %d0, [%a];",
    "atomic_null": "mov.b64 %a, 0; atom.global.add.u32 %d0, [%a], 1;",
    "trap_instruction": "trap;",
    "lane_outside": "shfl.sync.idx.b32 %d0, %d0, 0, 31, 0x20;",
}
for name_, text_ in TRAPS.items():
    KERNELS.add(name_, 1, ONE_THREAD + text_ + "\nEND:")
KERNELS.add("none", 1, ONE_THREAD + """ld.global.u32 %d0, [%g0+4]; st.global.u64 [%g0+8], %g0; ld.global.v2.u32 {%d0, %d1}, [%g0+8];
ld.global.v4.u32 {%d0, %d1, %d2, %d3}, [%g0+16]; ld.global.v4.u8 {%d0, %d1, %d2, %d3}, [%g0+4]; st.global.v2.u64 [%g0+16], {%g0, %g0};
ld.v4.u32 {%d0, %d1, %d2, %d3}, [%g0+496]; st.shared.v2.b32 [of_trap+56], {%d0, %d0}; ld.shared.u32 %d0, [of_trap+60];
mov.u64 %a, of_thread; ld.local.v4.u32 {%d0, %d1, %d2, %d3}, [%a+48]; atom.global.add.u32 %d0, [%g0+4], 1;
red.shared.add.u32 [of_trap+4], 1; cvta.shared.u64 %a, 0; ld.u32 %d0, [%a]; shfl.sync.idx.b32 %d0, %d0, 5, 31, 0x20;
END:""")


class Traps(unittest.TestCase):
    setUpClass = KERNELS.build

    def test_each_is_named(self):
        for name in TRAPS:
            with self.subTest(name):
                said = KERNELS.trap(name, 3, 64, [np.zeros(64, np.uint64)])
                self.assertRegex(said, rf"emulated CUDA: kernel {name}, block 1, thread 5: \w+")

    def test_the_same_by_right_addresses_are_none(self):
        KERNELS.run("none", 3, 64, [np.zeros(64, np.uint64)])


if __name__ == "__main__":
    unittest.main()

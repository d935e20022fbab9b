"""What the translator does not know it refuses: exit 1, with file, line and kernel, and no C++ that guesses.

The ends of rules count as well: a rounding that an instruction must have and lacks, a register beyond those declared, the byte
behind a parameter.
"""

import pathlib
import shutil
import tempfile
import unittest

from tests.ptx.kernels import HEAD, translate

# {what: (statement, a word that the message must have)}.
REFUSED = {
    "instruction": ("frobnicate.b32 %r1, %r2;", "frobnicate"),
    "instruction that PTX has": ("lop3.b32 %r1, %r2, %r3, %r4, 0x96;", "lop3"),
    "approximation, for bits are a law": ("ex2.approx.f32 %f1, %f2;", "ex2"),
    "approximate root": ("sqrt.approx.f32 %f1, %f2;", "sqrt"),
    "approximate quotient": ("div.approx.f32 %f1, %f2, %f3;", "div"),
    "approximate reciprocal": ("rcp.approx.ftz.f64 %d1, %d2;", "rcp"),
    "modifier": ("add.foo.s32 %r1, %r2, %r3;", "foo"),
    "modifier of another instruction": ("sub.wide.s32 %r1, %r2, %r3;", "wide"),
    "modifier of another type": ("add.sat.u64 %w1, %w2, %w3;", "sat"),
    "ftz of doubles": ("add.ftz.f64 %d1, %d2, %d3;", "ftz"),
    "ftz of a comparison of doubles": ("setp.lt.ftz.f64 %p1, %d1, %d2;", "ftz"),
    "ftz of a comparison of integers": ("setp.lt.ftz.s32 %p1, %r1, %r2;", "ftz"),
    "mode": ("mul.s32 %r1, %r2, %r3;", "mul"),
    "mode of shf": ("shf.l.b32 %r1, %r2, %r3, %r4;", "shf"),
    "mode of prmt": ("prmt.b32.rc8 %r1, %r2, %r3, %r4;", "prmt"),
    "mode of shfl": ("shfl.sync.sideways.b32 %r1, %r2, 1, 31, -1;", "shfl"),
    "mode of vote": ("vote.sync.most.pred %p1, %p2, -1;", "vote"),
    "operation of atom": ("atom.global.sub.u32 %r1, [%w1], %r2;", "sub"),
    "operation of redux": ("redux.sync.mul.u32 %r1, %r2, -1;", "mul"),
    "rounding": ("fma.ra.f32 %f1, %f2, %f3, %f4;", "fma"),
    "rounding of cvt": ("cvt.rna.f32.f64 %f1, %d1;", "rna"),
    "no rounding of fma": ("fma.f32 %f1, %f2, %f3, %f4;", "fma"),
    "no rounding of div": ("div.f64 %d1, %d2, %d3;", "div"),
    "no rounding to a float": ("cvt.f32.s32 %f1, %r1;", "cvt"),
    "no rounding to an integer": ("cvt.s32.f32 %r1, %f1;", "cvt"),
    "no rounding to a shorter float": ("cvt.f32.f64 %f1, %d1;", "cvt"),
    "rounding of floats to an integer": ("cvt.rn.s32.f32 %r1, %f1;", "cvt"),
    "rounding to integers to a float": ("cvt.rni.f32.s32 %f1, %r1;", "cvt"),
    "comparison": ("setp.near.s32 %p1, %r1, %r2;", "near"),
    "boolean": ("setp.lt.nand.s32 %p1, %r1, %r2, %p2;", "nand"),
    "type": ("add.s24 %r1, %r2, %r3;", "s24"),
    "type of a load": ("ld.global.b128 %w1, [%w2];", "b128"),
    "type of an instruction": ("popc.f32 %r1, %f1;", "popc"),
    "type of cvt": ("cvt.rn.bf16.f32 %h1, %f1;", "bf16"),
    "space": ("ld.surface.u32 %r1, [%w1];", "surface"),
    "vector": ("ld.global.v3.u32 {%r1, %r2, %r3}, [%w1];", "v3"),
    "elements of a vector": ("ld.global.v4.u32 {%r1, %r2}, [%w1];", "ld"),
    "too few operands": ("add.s32 %r1, %r2;", "add"),
    "too many operands": ("add.s32 %r1, %r2, %r3, %r4;", "add"),
    "operand of ret": ("ret %r1;", "ret"),
    "register": ("add.s32 %r1, %x, %r2;", "%x"),
    "result": ("add.s32 %x, %r1, %r2;", "%x"),
    "register beyond those declared": ("mov.u32 %r1, %r9;", "%r9"),
    "predicate": ("@%x mov.u32 %r1, %r2;", "%x"),
    "special register": ("mov.u32 %r1, %frob;", "%frob"),
    "register of another scope": ("{ .reg .b32 %in; } mov.u32 %r1, %in;", "%in"),
    "register in an address": ("ld.global.u32 %r1, [%x+4];", "%x"),
    "variable": ("mov.u64 %w1, nothing;", "nothing"),
    "label": ("bra NOWHERE;", "NOWHERE"),
    "parameter": ("ld.param.u64 %w1, [wrong_7];", "wrong_7"),
    "parameter, beyond": ("ld.param.u32 %r1, [wrong_0+8];", "wrong_0"),
    "parameter, across": ("ld.param.u64 %w1, [wrong_0+4];", "wrong_0"),
    "parameter, before": ("ld.param.u32 %r1, [wrong_0+-4];", "wrong_0"),
    "parameter, vector": ("ld.param.v2.u64 {%w1, %w2}, [wrong_0];", "wrong_0"),
    "declaration": (".texref tex;", "texref"),
    "call": ("call.uni nothing;", "call"),
}
KERNEL = """.visible .entry {name}(.param .u64 {name}_0)
{{
  .reg .b32 %r<9>; .reg .b64 %w<9>; .reg .f32 %f<9>; .reg .f64 %d<9>; .reg .b16 %h<9>; .reg .pred %p<9>;
  /* two lines,
     and */ mov.u32 %r1, 0;

  {statement}
  ret;
}}
"""
LINE = 7  # of the statement in its kernel


class Refusals(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="espalier-ptx-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def test_each_is_named_with_its_line(self):
        before = HEAD + "// a comment\n" + KERNEL.format(name="right", statement="add.s32 %r1, %r2, %r3;")
        for what, (statement, word) in REFUSED.items():
            with self.subTest(what):
                done, _ = translate(before + KERNEL.format(name="wrong", statement=statement), self.folder, "some")
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertRegex(done.stdout, rf"(?m)^\S*some\.ptx:{before.count(chr(10)) + LINE}: kernel wrong: .*")
                self.assertIn(word, done.stdout)
                self.assertNotIn("Traceback", done.stdout)
                self.assertNotIn("kernel right", done.stdout)

    def test_what_is_known_is_translated(self):
        done, out = translate(HEAD + KERNEL.format(name="right", statement="add.s32 %r1, %r2, %r3;"), self.folder)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        self.assertTrue(out.exists())


if __name__ == "__main__":
    unittest.main()

"""espalier verify: what is computed here is what is compiled in, on every grid; what is not is named by its cause.

Laws: every line agrees on every number of ranks, by threads, on the emulated GPU, with ranks that keep no batch, and in a folder
that takes no file; nothing is left anywhere. A library that flushes denormal numbers to zero or rounds upwards is named, and so
are -ffast-math and -ffp-contract=fast, where the code that asks is compiled with them. What makes no sense ends with exit code 2.
"""

import os
import pathlib
import platform
import shlex
import shutil
import subprocess
import unittest

from tests.app.program import EMULATED, LONG, PROGRAM, ROOT, ProgramTest, espalier, on_gpus

NO_FILES = "/proc"  # a folder in which nobody can make one, root neither
FLUSH = {"x86_64": "#include <xmmintrin.h>\n#define FLUSH _mm_setcsr(_mm_getcsr() | 0x8040)\n",
         "aarch64": "#define FLUSH __builtin_aarch64_set_fpcr(__builtin_aarch64_get_fpcr() | 1u << 24)\n"}
AT_START = "__attribute__((constructor)) static void at_start(void) { %s; }\n"


class VerifyTest(ProgramTest):
    def agree(self, *arguments, **options):
        """All lines do. Returns the output."""
        options.setdefault("timeout", 900)  # ranks that wait for each other on a busy machine
        output = self.succeed("verify", *arguments, **options)
        lines = [line for line in output.splitlines() if " same " in line or " near " in line]
        self.assertRegex(output, rf"(?m)^{len(lines)} lines, all as expected$")
        self.assertNotIn("DIFFERS", output)
        return output

    def differ(self, first, words, *arguments, **options):
        """The first line that differs, and what the error says of it."""
        code, output = espalier("verify", *arguments, **options)
        self.assertEqual(code, 1, output)
        differing = [line for line in output.splitlines() if "DIFFERS" in line]
        self.assertTrue(differing and differing[0].startswith(first), output)
        error = [line for line in output.splitlines() if line.startswith("espalier: error:")]
        self.assertEqual(len(error), 1, output)
        for word in [first, *words]:
            self.assertIn(word, error[0])
        return differing

    def library(self, name, code):
        """Built from C, to be preloaded."""
        source, built = self.folder / f"{name}.c", self.folder / f"{name}.so"
        source.write_text(code)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", built, source, "-lm"], check=True)
        return dict(os.environ, LD_PRELOAD=str(built))

    def test_every_line_agrees(self):
        alone = self.agree(cwd=NO_FILES)
        self.assertIn("draws      labor  ", alone)
        # On two ranks a checkpoint goes again by files.
        for ranks, threads, more in ((2, 2, ("--folder", self.folder)), (3, 1, ("--replication", 1))):
            output = self.agree(*more, ranks=ranks, env=dict(os.environ, OMP_NUM_THREADS=str(threads)))
            self.assertEqual(list(self.folder.iterdir()), [])
            self.assertIn(f"{threads} thread", output)
            for schedule in ("pull", "push", "staged", "staged-oblivious"):
                self.assertIn(f"labor by {schedule}", output)
        for sampler in ("graphsage", "labor", "ladies", "fastgcn"):
            self.assertIn(f"draws      {sampler}", alone)
        for layer in ("sage", "gcn", "gat", "gin", "rgcn", "rgat", "hgt"):
            self.assertIn(f"forward    {layer}", alone)
            self.assertIn(f"training   {layer}", alone)

    @unittest.skipUnless(LONG, "long: eight ranks")
    def test_more_ranks_than_batches_Long(self):
        output = self.agree("--replication", 8, ranks=8)
        self.assertIn("an epoch has 7 batches: some of the 8 ranks keep none", output)

    def test_what_makes_no_sense(self):
        self.fail_with(2, ["--replication 3", "does not divide", "2"], "verify", "--replication", 3, ranks=2)
        self.fail_with(2, ["run.device", "auto", "cpu", "cuda"], "verify", "--device", "gpu")
        self.fail_with(2, ["--folder", NO_FILES, "that all ranks can write to"], "verify", "--folder", NO_FILES)
        self.fail_with(2, ["--replication 0"], "verify", "--replication", 0)

    @unittest.skipUnless(platform.machine() in FLUSH and shutil.which("cc"), "no C compiler, or another kind of processor")
    def test_a_library_that_flushes_to_zero_is_named(self):
        head = FLUSH[platform.machine()]
        flushes = self.library("flush", head + AT_START % "FLUSH")
        self.assertEqual(len(self.differ("arithmetic numbers below the normal ones", ["flushed to zero", "LD_PRELOAD"], env=flushes)), 1)
        on_one = '#include <stdlib.h>\n#include <string.h>\n' + head + AT_START % (
            'const char* rank = getenv("OMPI_COMM_WORLD_RANK"); if (rank && !strcmp(rank, "1")) FLUSH')
        lines = self.differ("arithmetic numbers below the normal ones", ["flushed"], "--replication", 2, ranks=2, env=self.library("on_one", on_one))
        self.assertIn("on 1 of 2 ranks, first rank 1", lines[0])

    @unittest.skipUnless(shutil.which("cc"), "no C compiler")
    def test_a_library_that_rounds_upwards_is_named(self):
        self.differ("arithmetic direction of rounding", ["fesetround"],
                    env=self.library("upwards", "#include <fenv.h>\n" + AT_START % "fesetround(FE_UPWARD)"))

    def test_values_can_be_printed_anew(self):
        table = self.succeed("-q", "verify", "--print-values")
        self.assertEqual(table, (ROOT / "src/app/verify_values.inl.hpp").read_text())

    @unittest.skipUnless(LONG, "long: every grid of more ranks")
    def test_every_grid_Long(self):
        for ranks in (3, 4, 6, 8):
            self.agree(ranks=ranks, timeout=600)

    @unittest.skipUnless(LONG and os.path.exists(EMULATED), "long, or the emulated program was not built: make emulated")
    def test_the_emulated_gpu_agrees_Long(self):
        for ranks in (1, 2):
            output = self.agree("--device", "cuda", ranks=ranks, timeout=900, **on_gpus(ranks))
            self.assertIn("losses agree to 4 digits", output)
            for line in output.splitlines():
                self.assertTrue(" near " not in line or line.split()[0] in ("forward", "training", "with", "restart"), line)

    def compiled_with(self, *flags):
        """The program, of which the code that asks about arithmetic was compiled with these flags, too."""
        environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
        source, program, built = "src/base/arithmetic_rules.cpp", self.folder / "espalier", self.folder / "arithmetic.o"
        target = os.path.relpath(PROGRAM, ROOT)
        library = str(pathlib.Path(target).parent / "libespalier.a")
        plan = subprocess.run(["make", "-n", "-W", source, f"BUILD={pathlib.Path(target).parent}", target], cwd=ROOT, check=True,
                              env=environment, stdout=subprocess.PIPE, text=True).stdout.splitlines()
        compile_, = (shlex.split(line) for line in plan if line.endswith(f" {source}"))
        link, = (shlex.split(line) for line in plan if f" -o {target} " in line)
        compile_[compile_.index("-o") + 1], link[link.index("-o") + 1] = str(built), str(program)
        link.insert(link.index(library), str(built))
        for command in ([*(word for word in compile_ if word not in ("-MMD", "-MP")), *flags], link):
            subprocess.run(command, cwd=ROOT, check=True)
        return str(program)

    @unittest.skipUnless(LONG, "long: links the program anew")
    def test_flags_that_change_arithmetic_are_named_Long(self):
        self.differ("arithmetic order of sums", ["-ffast-math"], program=self.compiled_with("-ffast-math"))
        self.differ("arithmetic NaN, infinity, -0", ["-ffast-math"], program=self.compiled_with("-ffinite-math-only"))

    @unittest.skipUnless(LONG and (platform.machine() == "aarch64" or " fma " in pathlib.Path("/proc/cpuinfo").read_text()),
                         "long, or a processor that cannot contract")
    def test_contraction_is_named_Long(self):
        self.differ("arithmetic products and sums", ["-ffp-contract=fast"], program=self.compiled_with("-ffp-contract=fast"))

"""Kernels lose a barrier, a lane, an atomic or a fill, or go an index too far: a line of the source is changed, its file is compiled
anew and put before the library, and a test of kernels runs, watched. It must fail, with the words of who looks for such an error
(docs/gpu-kernels.md). Each kind of error in five kernels: some minutes, so in test-long. As the source is, these tests pass: make
race-check, make memory-check.
"""

import collections
import os
import pathlib
import shlex
import subprocess
import tempfile
import unittest

from tests import watched

ROOT = pathlib.Path(__file__).resolve().parents[2]
WATCHED_AS = {"races": "ESPALIER_WATCH_RACES", "memory": "ESPALIER_WATCH_MEMORY"}
SANITIZER = {"races": "thread", "memory": "address"}
LONG = os.environ.get("ESPALIER_LONG")

# A line of `file`, and what is put there; a header's change is seen by the kernels of `by`. The test that then fails.
Plant = collections.namedtuple("Plant", "file line instead test by", defaults=(None,))

BARRIERS = [
    Plant("nn/cross_entropy.cu", "    __syncthreads();\n    if (t < half)", "    if (t < half)", "nn/losses_test"),
    Plant("sample/graphsage.cu", "offsets[first + k];\n  __syncthreads();", "offsets[first + k];", "sample/device_sampler_test"),
    Plant("sample/graphsage.cu", "  __syncthreads();\n  for (auto at", "  for (auto at", "sample/device_sampler_test"),
    Plant("sample/each_entry.hpp", "  __syncthreads();\n  // `lanes`", "  // `lanes`", "sample/device_sampler_test", "sample/graphsage.cu"),
    Plant("sample/device_race.hpp", "first[at] = moved;\n    __syncwarp();", "first[at] = moved;", "sample/device_sampler_test",
          "sample/graphsage.cu"),
]
BLOCKS = [
    Plant("sparse/select_columns.cu", "atomicOr(marks.words + word, 1u << (column % kWordBits));",
          "marks.words[word] |= 1u << (column % kWordBits);", "sample/ladies_test"),
    Plant("sparse/segmented_rows.cu", "atomicAdd(sums + (list - first) * stride + column, static_cast<unsigned long long>(value));",
          "sums[(list - first) * stride + column] += value;", "sparse/segmented_rows_test"),
    Plant("sample/local_ids.cu", "atomicOr(word, mask);", "*word |= mask;", "sample/device_local_ids_test"),
    Plant("dense/first_not_finite.cu", "atomicMax(most, static_cast<unsigned long long>(size - k));",
          "if (*most < static_cast<unsigned long long>(size - k)) *most = size - k;", "dense/first_not_finite_test"),
    Plant("train/gradient_reduction.cu", "atomicMax(bounds + tensor.number, static_cast<unsigned long long>(largest));",
          "if (bounds[tensor.number] < largest) bounds[tensor.number] = largest;", "train/gradient_reduction_test"),
]
INDICES = [
    Plant("dense/gather.cu", "pack < packs; pack", "pack <= packs; pack", "dense/gather_test"),
    Plant("nn/segment_products.cu", "e < of.ends[k]; ++e) sum +=", "e <= of.ends[k]; ++e) sum +=", "nn/segment_products_test"),
    Plant("sparse/transpose.cu", "columns + 1, [=]", "columns + 2, [=]", "sparse/transpose_test"),
    Plant("dense/relation_sums.cu", "const auto end = block.indptr[v + 1];\n                     for (auto e",
          "const auto end = block.indptr[v + 1] + 1;\n                     for (auto e", "dense/relation_sums_test"),
    Plant("dense/spmm.cu", "if (row >= block.rows) return;", "if (row > block.rows) return;", "dense/spmm_test"),
]
READS = [
    Plant("sparse/segmented_rows.cu", "    fill_zero(cuda, dense);\n", "", "sparse/segmented_rows_test"),
    Plant("sparse/select_columns.cu", "    fill_zero(cuda, words);\n", "", "sample/ladies_test"),
    Plant("sample/local_ids.cu", "  fill_zero(cuda, known);\n", "", "sample/device_local_ids_test"),
    Plant("sample/fastgcn.cu", "  fill_zero(cuda, s.taken);\n", "", "sample/fastgcn_test"),
    Plant("dense/first_not_finite.cu", "  fill_zero(cuda, behind);\n", "", "dense/first_not_finite_test"),
]
SHUFFLES = [
    Plant("nn/link_losses.cu", "if (i >= examples) return;", "if (i >= examples || threadIdx.x % kWarp == 31) return;", "nn/link_losses_test"),
    Plant("nn/link_scores.cu", "if (i >= rows.links.count) return;", "if (i + threadIdx.x % 2 >= rows.links.count) return;", "nn/link_scores_test"),
    Plant("nn/normalization.cu", "row = row_of_thread(), active = row < rows ? width : 0;\n  float *from",
          "row = row_of_thread(), active = width;\n  if (row >= rows) return;\n  float *from", "nn/normalization_test"),
    Plant("sparse/segmented_rows.cu", "if (tile >= tiles) return;", "if (tile >= tiles || threadIdx.x % kWarp > 20) return;",
          "sparse/segmented_rows_test"),
    Plant("sparse/select_columns.cu", "  const auto* const words = marks.words", "  if (lane >= piece.size) return;\n  const auto* const words = marks.words",
          "sample/ladies_test"),
]


def value(variable):
    """Of a variable of the Makefile, as words."""
    done = subprocess.run(["make", "-s", "--no-print-directory", "--eval", f"value: ; @echo '$({variable})'", "value"], cwd=ROOT,
                          stdout=subprocess.PIPE, text=True, check=True)
    return shlex.split(done.stdout)


def run_command(command):
    done = subprocess.run([str(word) for word in command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise AssertionError(f"{command[0]} ended with {done.returncode}:\n{done.stdout[-3000:]}")
    return done.stdout


@unittest.skipUnless(LONG, "for make test-long")
class LongPlantedKernels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.compile, cls.links = value("EMULATE") + value("WATCHED_FLAGS"), {}

    def link_command(self, kind, room):
        """That of the room's tests, which are made first, and the path of what it makes."""
        program = f"build/{kind}/tests/{room}/all_tests"
        if program not in self.links:
            run_command(["make", program])
            lines = run_command(["make", "-n", f"--assume-new=build/{kind}/libespalier.a", program]).splitlines()
            self.links[program] = shlex.split(next(line for line in lines if f" -o {program} " in line))
        return self.links[program], program

    def planted(self, plant, kind, folder):
        """The program of the plant's test, with it."""
        source, compiled = ROOT / "src" / plant.file, ROOT / "src" / (plant.by or plant.file)
        text = source.read_text()
        self.assertEqual(text.count(plant.line), 1, f"{plant.file} has not, or has twice: {plant.line}")
        (folder / source.name).write_text(text.replace(plant.line, plant.instead))
        if plant.by:
            (folder / compiled.name).write_text(compiled.read_text())
        run_command([*self.compile, f"-I{compiled.parent}", f"-D{WATCHED_AS[kind]}", f"-fsanitize={SANITIZER[kind]}", "-MF", folder / "d",
                     "-c", "-o", folder / "planted.o", "-x", "c++", folder / compiled.name])
        link, program = self.link_command(kind, plant.test.partition("/")[0])
        at = link.index(program)
        # The first definition of a function counts.
        run_command([*link[:at], folder / "program", folder / "planted.o", "-Wl,-z,muldefs", *link[at + 1:]])
        return folder / "program"

    def expect_seen(self, plants, kind, words):
        self.assertEqual(len(plants), 5)
        for plant in plants:
            with self.subTest(plant=plant), tempfile.TemporaryDirectory() as folder:
                program = self.planted(plant, kind, pathlib.Path(folder))

                def run(env):
                    done = subprocess.run([program, f"--file={plant.test.partition('/')[2]}.cu", "--gtest_brief=1"], env=env,
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
                    return (0, int(done.returncode != 0), 0), done.stdout
                env = dict(os.environ, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
                counts, output = watched.run_with_fills(run, f"for {kind}", env)
                self.assertEqual(counts[1], 1, output[-2000:])
                self.assertIn(words, output)

    def test_a_barrier_that_is_gone(self):
        self.expect_seen(BARRIERS, "races", "data race")

    def test_a_race_between_blocks(self):
        self.expect_seen(BLOCKS, "races", "data race")

    def test_an_index_too_far(self):
        self.expect_seen(INDICES, "memory", "ERROR: AddressSanitizer: use-after-poison")

    def test_a_read_of_nothing(self):
        self.expect_seen(READS, "memory", "depends on what nobody wrote")

    def test_a_shuffle_with_a_lane_that_left(self):
        self.expect_seen(SHUFFLES, "races", "lanes of the mask, never reach")


if __name__ == "__main__":
    unittest.main()

"""gpu_static.py: reads ptxas' reports, names kernels, works out occupancy; by a sample, by hand."""

import contextlib
import io

import gpu_static
from tests.app.program import FolderTest

SPACE = "51_GLOBAL__N__2e30e74c_12_graphsage_cu_d2ccf6bc_27052"
MULTIPLY = f"_ZN8espalier{SPACE}13multiply_rowsIfLi4ELi32ELb1EEEvPfb"
# for_each_kernel<the second lambda of weight_offsets<int>>.
WEIGHTS = (f"_ZN8espalier15for_each_kernelIZNS_{SPACE}14weight_offsetsIiEENS_11DeviceArrayIlEE"
           "RKNS_4CudaERKNS1_12WeightedRowsIT_EEEUllE0_EEvlS9_")
# for_each_entry_kernel<a lambda of for_each_kept<a lambda of take_whole_rows<long>>>, which c++filt
# of binutils 2.40 cannot read.
NESTED = (f"_ZN8espalier21for_each_entry_kernelIZNS_13for_each_keptIZNS_{SPACE}15take_whole_rows"
          "IlEEvRKNS_4CudaERKNS2_12WeightedRowsIT_EERKNS_11KeptEntriesERNS_16DeviceRowEntriesIS8_EEE"
          "UllllE_EEvS6_PKcSE_RKS8_EUlllE_EEvPKllllliS8_")
CUB = "_ZN3cub17CUB_300001_SM_80027scan4ScanI4PolicyEEvv"


def report(name, machine, registers, stack=0, stores=0, loads=0, shared=0):
    """What ptxas -v says of a kernel."""
    rest = f", {stack} bytes cumulative stack size" if stack else ""
    rest += f", {shared} bytes smem" if shared else ""
    spills = f"{stores} bytes spill stores, {loads} bytes spill loads"
    return (f"ptxas info    : Compiling entry function '{name}' for '{machine}'\n"
            f"ptxas info    : Function properties for {name}\n"
            f"    {stack} bytes stack frame, {spills}\n"
            f"ptxas info    : Used {registers} registers, used 0 barriers{rest}, 52 bytes cmem[0]\n"
            "ptxas info    : Compile time = 7.512 ms\n")


# A function that is not inlined is reported beside its kernels, and is none.
FUNCTION = ("ptxas info    : Function properties for __internal_trig_reduction\n"
            "    40 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n")
SAMPLE = "".join(["ptxas info    : 0 bytes gmem\n",
                  report(MULTIPLY, "sm_80", 48, stack=16, stores=20, loads=24),
                  report(WEIGHTS, "sm_80", 40), report(NESTED, "sm_80", 32, shared=49152),
                  report(CUB, "sm_80", 32, stack=8), FUNCTION, report(MULTIPLY, "sm_90", 56),
                  report(WEIGHTS, "sm_90", 40), report(NESTED, "sm_90", 32, shared=49152),
                  report(CUB, "sm_90", 32)])

SOURCE = """
inline constexpr int kWarp = 32;
inline constexpr int kColumns = kWarp, kChunks = 8;
template <class F>
__global__ void __launch_bounds__(kColumns* kChunks) for_each_kernel(long count, F function) {}
__global__ void __launch_bounds__(kWarp)
    multiply_rows(float* y) {}
__global__ void __launch_bounds__(256, at_once(4)) for_each_entry_kernel() {}
"""


class GpuStatic(FolderTest):
    def setUp(self):
        super().setUp()
        for room in ("obj/sample", "src/sample"):
            (self.folder / room).mkdir(parents=True)
        (self.folder / "src/sample/draw.cu").write_text(SOURCE)
        self.write("draw", SAMPLE)

    def write(self, name, text):
        (self.folder / f"obj/sample/{name}.cu.ptxas").write_text(text)

    def run_script(self):
        output = io.StringIO()
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            code = gpu_static.main([str(self.folder / "obj"), str(self.folder / "src")])
        return code, output.getvalue().splitlines()

    def table(self):
        """The rows of cells below the table's head, and the last line."""
        code, lines = self.run_script()
        self.assertEqual(code, 0)
        rows = [line.strip("|").split("|") for line in lines if line.startswith("|")]
        return [[cell.strip() for cell in row] for row in rows[2:]], lines[-1]

    def test_the_table_holds_what_the_reports_say(self):
        rows, last = self.table()
        draw = "sample/draw.cu"
        # 48 registers allow 40 warps; but blocks of one warp are at most 32 of 64.
        self.assertEqual(rows[0], ["`multiply_rows<float, 4, 32, true>`", draw, "48 / 56", "16 / 0",
                                   "20, 24 / 0", "0", "32", "50 %"])
        # 48 KiB and 1 of the system fit 3 times into 164 KiB, 4 times into 228; 8 warps each.
        self.assertEqual(rows[1], ["`for_each_entry_kernel` in `for_each_kept` in "
                                   "`take_whole_rows<int64_t>`", draw, "32", "0", "0", "49152",
                                   "256", "38 % / 50 %"])
        # 40 registers: 1280 a warp, 12 warps of a quarter's 16384, 48 of 64: 6 blocks of 8 warps.
        self.assertEqual(rows[2], ["`for_each_kernel` in `weight_offsets<int32_t>` #2", draw, "40",
                                   "0", "0", "0", "256", "75 %"])
        self.assertEqual(len(rows), 3)
        self.assertEqual(last, "3 kernels, 1 with a stack frame or spills; "
                               "1 kernel of CUB, 1 with a stack frame or spills")

    def test_instances_alike_share_a_row(self):
        other = MULTIPLY.replace("If", "Id")
        self.write("draw", report(MULTIPLY, "sm_80", 40) + report(other, "sm_80", 40))
        rows, last = self.table()
        self.assertEqual([row[0] for row in rows],
                         ["`multiply_rows<double/float, 4, 32, true>`"])
        self.assertTrue(last.startswith("2 kernels, 0 with"), last)

    def test_occupancy_by_hand(self):
        occupancy = gpu_static.occupancy
        self.assertEqual(occupancy("sm_90", registers=32, threads=256, shared=0), 1.0)
        # 176 registers: 5632 a warp, 2 warps of a quarter, 8 of 64: one block of 8 warps.
        self.assertEqual(occupancy("sm_80", registers=176, threads=256, shared=0), 8 / 64)
        # 255 registers: 8192 a warp, 8 warps; a block of 32 does not fit.
        self.assertEqual(occupancy("sm_80", registers=255, threads=1024, shared=0), 0)
        self.assertIsNone(occupancy("sm_70", registers=32, threads=256, shared=0))
        self.assertIsNone(occupancy("sm_80", registers=32, threads=None, shared=0))

    def test_a_report_whose_source_is_gone_is_left_out(self):
        self.write("gone", report(MULTIPLY.replace("If", "Id"), "sm_80", 40, stack=8))
        self.assertTrue(self.table()[1].startswith("3 kernels, 1 with"))

    def test_without_reports_it_says_what_to_do(self):
        (self.folder / "obj/sample/draw.cu.ptxas").unlink()
        code, lines = self.run_script()
        self.assertEqual(code, 2)
        self.assertIn("make gpu-static", lines[-1])

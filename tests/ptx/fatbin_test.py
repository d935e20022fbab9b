"""The PTX of an object is the same however nvcc compressed it; of several capabilities the newest is taken. Needs nvcc, no GPU."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

from tests.ptx.planted_test import NVCC

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from fatbin import ptx_of  # noqa: E402

SOURCE = "".join(f"__global__ void kernel_{k}(int* x) {{ x[threadIdx.x] += {k}; }}\n" for k in range(20))


@unittest.skipUnless(NVCC, "no nvcc")
class Fatbin(unittest.TestCase):
    def ptx(self, folder, *flags):
        source, built = folder / "kernels.cu", folder / "kernels.o"
        source.write_text(SOURCE)
        done = subprocess.run([*NVCC, *flags, "-c", "-o", built, source], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)
        (text,) = ptx_of(built)
        return text

    def test_compressed_or_not(self):
        with tempfile.TemporaryDirectory(prefix="espalier-test-") as folder:
            folder = pathlib.Path(folder)
            one = ["-gencode", "arch=compute_90,code=compute_90"]
            plain = self.ptx(folder, "-no-compress", *one)
            self.assertIn(".target sm_90", plain)
            self.assertEqual(plain.count(".entry "), 20)
            known = subprocess.run([*NVCC, "--help"], stdout=subprocess.PIPE, text=True).stdout
            for mode in [[]] + [[f"-compress-mode={mode}"] for mode in ("size", "speed") if "-compress-mode" in known]:  # speed: LZ4
                self.assertEqual(self.ptx(folder, *mode, *one).strip(), plain.strip(), mode)
            several = self.ptx(folder, "-gencode", "arch=compute_80,code=[compute_80,sm_80]", "-gencode", "arch=compute_90,code=[compute_90,sm_90]")
            self.assertEqual(several.strip(), plain.strip())


if __name__ == "__main__":
    unittest.main()

"""No kernel leans on an instruction that a GPU only approximates, for bits are a law (docs/gpu.md); one that has to is listed here.
Reads the PTX of `make as-compiled`."""

import pathlib
import re
import subprocess
import unittest

from tests.ptx.kernels import ROOT

PTX = sorted((ROOT / "build/ptx/obj").glob("*/*.ptx"))
# By instruction: the functions that the kernels belong to.
LISTED = {}


def owner(kernel):
    """Of the readable name of a kernel: its own name, or of for_each_kernel<...> that of the function whose lambda it runs."""
    names = re.findall(r"espalier::(?:\(anonymous namespace\)::)?(\w+)", kernel)
    return next(name for name in names if name not in ("for_each_kernel", "OfElement"))


@unittest.skipUnless(PTX, "what nvcc compiled was not translated: make as-compiled")
class ApproximateKernels(unittest.TestCase):
    def test_they_are_the_listed_ones(self):
        found = {}
        for path in PTX:
            for kernel in re.split(r"^(?=(?:\.visible )?\.entry)", path.read_text(), flags=re.M)[1:]:
                for instruction in set(re.findall(r"\b(\w+\.approx[.\w]*)", kernel)):
                    found.setdefault(instruction, set()).add(re.search(r"\.entry ([\w$]+)", kernel)[1])
        for instruction, kernels in found.items():
            names = subprocess.run(["c++filt"], input="\n".join(kernels), stdout=subprocess.PIPE, text=True, check=True).stdout
            found[instruction] = {owner(name) for name in names.splitlines()}
        self.assertEqual(found, LISTED)


if __name__ == "__main__":
    unittest.main()

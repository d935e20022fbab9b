"""bin/run of the bundle, as scripts/make_bundle.sh writes it, with empty files for CUDA's libraries.

Laws: a program is started with the folders that hold this program's CUDA before all others; a CUDA of
another version, whose names differ, does not serve: the program for CPUs runs, and the first library
that is missing is named.
"""

import os
import re
import subprocess

from tests.app.program import ROOT, FolderTest

LIBRARIES = ("libcudart.so.13", "libcublas.so.13", "libcusparse.so.12", "libnccl.so.2")


class Run(FolderTest):
    def setUp(self):
        super().setUp()
        text = (ROOT / "scripts" / "make_bundle.sh").read_text()
        script = re.search(r"<<'RUN'\n(.*?)^RUN$", text, re.S | re.M).group(1)
        # What this machine has is not there.
        self.script("bundle/bin/run", re.sub(r"/usr/l(ocal/cuda|ib/x86_64-linux-gnu)", f"{self.folder}/none", script))
        self.script("bundle/lib/of_cuda", "".join(f"{name}\n" for name in LIBRARIES))
        self.script("gpu", '#!/bin/bash\necho "GPU $LD_LIBRARY_PATH"\n')
        self.script("cpu", "#!/bin/bash\necho CPU\n")
        # The folder where pip puts libraries.
        self.script("bin/python3", f"#!/bin/bash\necho '{self.folder / 'site'}'\n")

    def put(self, folder, *names):
        for name in names:
            self.script(f"{folder}/{name}", "")

    def run_it(self):
        env = {"PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}", "CUDA_HOME": str(self.folder / "cuda")}
        run = subprocess.run([self.folder / "bundle/bin/run", "--without-cuda", self.folder / "cpu", self.folder / "gpu"],
                             env=env, capture_output=True, text=True, check=True, timeout=60)
        return run.stdout + run.stderr

    def folders(self):
        return [os.path.relpath(path, self.folder) for path in self.run_it().split()[1].split(":") if path]

    def test_another_cuda_does_not_serve(self):
        self.put("cuda/lib64", "libcudart.so.12", "libcublas.so.12", "libcusparse.so.12", "libnccl.so.2")
        output = self.run_it()
        self.assertIn("CPU", output)
        self.assertIn("no libcudart.so.13 of CUDA here", output)

    def test_pip_comes_before_a_toolkit_that_lacks_one(self):
        self.put("cuda/lib64", "libcudart.so.12", "libcusparse.so.12")
        self.put("site/nvidia/cu13/lib", *LIBRARIES)
        folders = self.folders()
        self.assertLess(folders.index("site/nvidia/cu13/lib"), folders.index("cuda/lib64"))

    def test_a_whole_toolkit_comes_first(self):
        self.put("cuda/lib64", *LIBRARIES)
        self.put("site/nvidia/cublas/lib", "libcublas.so.12", "libcusparse.so.12")
        folders = self.folders()
        self.assertLess(folders.index("cuda/lib64"), folders.index("site/nvidia/cublas/lib"))

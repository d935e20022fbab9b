"""The package: one version with the program, typed, installed by pip, without torch or any optional
library."""

import ast
import shutil
import sys
import zipfile

from tests.app.program import ROOT, FolderTest, espalier as run_program, run_python
from tests.python import needs

import espalier

PACKAGE = ROOT / "python" / "espalier"
SOURCES = sorted(PACKAGE.rglob("*.py"))


class Package(FolderTest):
    def test_it_has_the_version_of_the_program(self):
        self.assertEqual(run_program("version")[1].split(), ["espalier", espalier.__version__])

    def test_what_is_imported_at_once_is_numpy_and_h5py(self):
        allowed = set(sys.stdlib_module_names) | {"numpy", "h5py", "espalier"}
        for path in SOURCES:
            for node in ast.parse(path.read_text()).body:
                names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and node.level == 0:
                    names = [node.module]
                self.assertLessEqual({name.partition(".")[0] for name in names}, allowed, path)

    def test_every_function_has_its_types(self):
        for path in SOURCES:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.FunctionDef):
                    said = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
                    self.assertTrue(node.returns, f"{path}: {node.name}")
                    without = [item.arg for item in said if item.annotation is None and item.arg != "self"]
                    self.assertEqual(without, [], f"{path}: {node.name}")

    def test_files_are_short(self):
        for path in SOURCES:
            self.assertLessEqual(len(path.read_text().splitlines()), 300, path)

    @needs("pip")
    @needs("wheel")
    def test_pip_builds_it(self):
        # A copy, as somebody takes it to another machine: a build leaves nothing in the checkout.
        copy = shutil.copytree(ROOT / "python", self.folder / "python")
        apart = ("--no-index", "--no-deps", "--no-build-isolation")
        done = run_python("-m", "pip", "wheel", *apart, "-q", "-w", self.folder, copy)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        [wheel] = self.folder.glob("*.whl")
        self.assertTrue(wheel.name.startswith(f"espalier-{espalier.__version__}-py3-none-any"))
        with zipfile.ZipFile(wheel) as packed:
            names = packed.namelist()
            for path in [*SOURCES, PACKAGE / "py.typed"]:
                self.assertIn(str(path.relative_to(PACKAGE.parent)), names)
            [entry] = [name for name in names if name.endswith("entry_points.txt")]
            self.assertEqual(packed.read("espalier/made_from.txt").decode(), f"{self.folder}\n")
            words = "espalier-tables = espalier.tables.command:main"
            self.assertIn(words, packed.read(entry).decode())

"""pyproject.toml says what the package is; here it learns from which checkout it was installed, whose
library it loads where no other is found (espalier/library.py)."""

import pathlib

from setuptools import setup
from setuptools.command.build_py import build_py

CHECKOUT = pathlib.Path(__file__).resolve().parent.parent


class BuildPy(build_py):
    def run(self):
        super().run()
        if not self.editable_mode:
            note = pathlib.Path(self.build_lib) / "espalier" / "made_from.txt"
            note.write_text(f"{CHECKOUT}\n", encoding="utf-8")


setup(cmdclass={"build_py": BuildPy})

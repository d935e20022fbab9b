"""The package has the program's version, which one line of a header says."""

import pathlib
import re

from setuptools import setup

HERE = pathlib.Path(__file__).resolve().parent
HEADER = HERE.parent / "include" / "espalier" / "base" / "version.hpp"
PACKED = HERE / "PKG-INFO"  # in an archive of the package alone

if HEADER.exists():
    version = re.search(r'kVersion = "([^"]+)"', HEADER.read_text()).group(1)
else:
    version = re.search(r"^Version: (\S+)", PACKED.read_text(), re.M).group(1)
setup(version=version)

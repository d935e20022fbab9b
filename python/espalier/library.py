"""libespalier.so, by ctypes: where it is, whether it is this package's, what its errors become.

It is looked for in $ESPALIER_LIBRARY; where `make install` put it, above this package, in
sys.prefix or beside the program in PATH; in build/cuda or build/cpu of the checkout that the package is
in or was installed from; and where the loader looks. Its names stay its own (RTLD_LOCAL), so that h5py's HDF5
and torch's libraries live beside it.
"""

from __future__ import annotations

import ctypes
import functools
import os
import pathlib
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from . import _declared
from .errors import DataError, JobError
from .version import VERSION

NAME = "libespalier.so"
PACKAGE = pathlib.Path(__file__).resolve().parent
MADE_FROM = "made_from.txt"  # the checkout that pip installed from (python/setup.py)


def places() -> Iterator[pathlib.Path]:
    """Where the library may be, the first that exists counts."""
    yield from (folder / NAME for folder in PACKAGE.parents if folder.name == "lib")
    yield pathlib.Path(sys.prefix) / "lib" / NAME
    program = shutil.which("espalier")
    if program is not None:
        yield pathlib.Path(program).resolve().parent.parent / "lib" / NAME
    note = PACKAGE / MADE_FROM
    checkouts = [PACKAGE.parents[1]]
    if note.exists():
        checkouts.append(pathlib.Path(note.read_text(encoding="utf-8").strip()))
    yield from (of / "build" / kind / NAME for of in checkouts for kind in ("cuda", "cpu"))


def _open(path: str) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError as problem:
        raise DataError(f"cannot load {path}: {problem}") from None


def _find() -> ctypes.CDLL:
    named = os.environ.get("ESPALIER_LIBRARY")
    if named:
        return _open(named)
    for path in places():
        if path.exists():
            return _open(str(path))
    try:
        return ctypes.CDLL(NAME, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError as problem:
        absent = "cannot open shared object file" in str(problem)
        how = "" if absent else f" ({problem})"
        raise DataError(
            f"{NAME} of Espalier {VERSION} is not there{how}: `make` in a checkout builds it, "
            "`make install PREFIX=DIR` installs it; ESPALIER_LIBRARY=PATH says where it is"
        ) from None


@functools.cache
def library() -> Any:
    """The library, with what each function takes and gives."""
    found = _find()
    try:
        found.espalier_version.restype = ctypes.c_char_p
        version = found.espalier_version().decode()
    except AttributeError:
        raise DataError(f"{found._name} is no library of Espalier") from None
    if version != VERSION:
        raise DataError(
            f"{found._name} has version {version}, and this package is of {VERSION}: `make` (or "
            "`make install`) and `pip install ./python` of one checkout bring both"
        )
    for name, (result, arguments) in _declared.FUNCTIONS.items():
        function = getattr(found, name, None)
        if function is None:
            raise DataError(
                f"{found._name} has no {name}: it is older than this package, `make` builds it anew"
            )
        function.restype, function.argtypes = result, arguments
    return found


def program() -> str:
    """The program `espalier`: the one that called Python, beside the library, or that of PATH."""
    if caller := os.environ.get("ESPALIER_PROGRAM"):
        return caller
    folder = pathlib.Path(library()._name).resolve().parent
    for path in (folder / "espalier", folder.parent / "bin" / "espalier"):
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    found = shutil.which("espalier")
    if found is None:
        raise DataError(f"the program `espalier` is neither beside {folder / NAME} nor in PATH")
    return found


KINDS: dict[int, Callable[[str], Exception]] = {
    _declared.USAGE: DataError,
    _declared.INPUT: DataError,
    _declared.MEMORY: MemoryError,
    _declared.DIVERGED: FloatingPointError,
}
AGREED = "espalier_agreed"  # an attribute of exceptions that all ranks raise


def fail(code: int) -> NoReturn:
    """What the library's last error is in Python."""
    text = (library().espalier_error() or b"").decode(errors="replace")
    error = KINDS.get(code, JobError)(text)
    if code in KINDS:
        setattr(error, AGREED, code)
    raise error


def check(code: int) -> int:
    """Of a call: OK, END or STOPPED, or it raises."""
    if code not in (_declared.OK, _declared.END, _declared.STOPPED):
        fail(code)
    return code


def options(kind: type[ctypes.Structure], **members: Any) -> Any:
    return kind(struct_size=ctypes.sizeof(kind), **members)

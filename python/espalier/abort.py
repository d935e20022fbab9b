"""An exception on one rank ends all, so that no other waits for it."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any

from .library import AGREED

_installed = False


def end_all(library: Any, error: BaseException) -> None:
    """Prints the traceback and ends every rank."""
    sys.stdout.flush()
    print("".join(traceback.format_exception(error)), end="", file=sys.stderr, flush=True)
    code = 130 if isinstance(error, KeyboardInterrupt) else 1
    library.espalier_abort(code, f"{type(error).__name__}: {error}".encode())


def abort_on_errors(library: Any, rank: int) -> None:
    """What nobody catches ends all ranks from now on, but for errors that all have, which rank 0
    tells."""
    global _installed
    if _installed:
        return
    _installed = True
    before, process = sys.excepthook, os.getpid()

    def ended(kind: Any, error: BaseException, trace: Any) -> None:
        agreed = hasattr(error, AGREED)
        if os.getpid() == process and not agreed:
            end_all(library, error)
        if os.getpid() != process or rank == 0:
            before(kind, error, trace)

    sys.excepthook = ended

"""Ctrl-C, agreed by the ranks of a job whose loop over batches it ends."""

from __future__ import annotations

import os
import signal
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

from . import _declared
from .library import AGREED

if TYPE_CHECKING:
    from .loader import Loader

SLICE = 0.1  # seconds between looks at signals


class Interrupts:
    """While a loop goes over batches on several ranks, Ctrl-C, or SIGINT of a batch system, to one
    or to all of them raises KeyboardInterrupt on all, before the same step or behind the last. A
    second one, or one that the others do not come to, raises it here."""

    PATIENCE = 5.0  # seconds of waiting for others

    def __init__(self, loader: Loader, alone: bool) -> None:
        self._loader, self._alone = weakref.ref(loader), alone
        self.wished = False  # and not agreed yet
        self._before: Any = None
        self._depth = 0

    def __enter__(self) -> None:
        self._depth += 1
        if self._depth > 1 or self._alone:
            return
        if threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._ask)

    def __exit__(self, kind: Any, *_: object) -> None:
        self._depth -= 1
        if self._depth > 0 or self._before is None:
            return
        if signal.getsignal(signal.SIGINT) == self._ask:
            signal.signal(signal.SIGINT, self._before)
        self._before = None
        if self.wished and kind is GeneratorExit:  # the loop was left: nobody will come to agree
            self.wished = False
            # Raised in here it would be lost: a generator that is closed has nobody to tell.
            again = threading.Timer(SLICE, os.kill, (os.getpid(), signal.SIGINT))
            again.daemon = True
            again.start()

    def _ask(self, number: int, frame: Any) -> None:
        loader = self._loader()
        if self.wished or loader is None or not loader.wish_to_stop():
            signal.default_int_handler(number, frame)
        self.wished = True

    def check(self, waits_since: float) -> None:
        """While others are waited for."""
        if self.wished and time.monotonic() - waits_since > self.PATIENCE:
            raise KeyboardInterrupt

    def agreed(self) -> KeyboardInterrupt:
        self.wished = False
        error = KeyboardInterrupt("a rank was interrupted; all stop here")
        setattr(error, AGREED, _declared.STOPPED)
        return error

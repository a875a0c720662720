"""How a command ends that is stopped from outside."""

import signal
import threading
from collections.abc import Callable
from types import FrameType

_BY_HAND, _TERMINATED = 128 + signal.SIGINT, 128 + signal.SIGTERM  # as shells have them
_was_terminated = False


def watch() -> None:
    """From now on SIGTERM stops the command as Ctrl-C does."""
    global _was_terminated
    _was_terminated = False
    _handle(_as_by_hand)


def end() -> None:
    """All is done: SIGTERM ends the process at once."""
    _handle(signal.SIG_DFL)


def exit_code() -> int:
    """Of a command that was stopped: 143 by SIGTERM, 130 by hand."""
    return _TERMINATED if _was_terminated else _BY_HAND


def _handle(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)


def _as_by_hand(number: int, frame: FrameType | None) -> None:
    global _was_terminated
    _was_terminated = True
    raise KeyboardInterrupt

"""How a command ends that is stopped from outside."""

import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType

_BY_HAND, _TERMINATED = 128 + signal.SIGINT, 128 + signal.SIGTERM  # as shells have them
_was_terminated = False
_former_hook = sys.unraisablehook
_AGAIN_S = 0.02
RESUMABLE = "the same command again resumes it"
_IMPORTING = "<frozen importlib._bootstrap>"


class Resumable(KeyboardInterrupt):
    """A job was stopped that the same command resumes."""


def watch() -> None:
    """From now on SIGTERM stops the command as Ctrl-C does, and neither is lost."""
    global _was_terminated, _former_hook
    _was_terminated = False
    _handle(signal.SIGTERM, _stop)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored
        _handle(signal.SIGINT, _stop)
    if sys.unraisablehook is not _not_lost:
        _former_hook, sys.unraisablehook = sys.unraisablehook, _not_lost


def end() -> None:
    """All is done: SIGTERM ends the process at once."""
    _handle(signal.SIGTERM, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is _stop:
        _handle(signal.SIGINT, signal.default_int_handler)
    sys.unraisablehook = _former_hook


def exit_code() -> int:
    """Of a command that was stopped: 143 by SIGTERM, 130 by hand."""
    return _TERMINATED if _was_terminated else _BY_HAND


def _handle(
    number: signal.Signals, handler: Callable[[int, FrameType | None], object] | signal.Handlers
) -> None:
    if threading.current_thread() is threading.main_thread():
        signal.signal(number, handler)


def _stop(number: int, frame: FrameType | None) -> None:
    """Not within an import: packages take an exception there for one of their own, go on without a
    part of themselves, or end the process."""
    global _was_terminated
    _was_terminated |= number == signal.SIGTERM
    while frame is not None:
        if frame.f_code.co_filename == _IMPORTING:
            _send_again(number)
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _not_lost(unraisable: "sys.UnraisableHookArgs") -> None:
    """A signal that comes while a finaliser or a callback of the garbage collector is at work has
    its exception raised there, where Python drops it: it is sent again, a moment later."""
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        _former_hook(unraisable)
        return
    _send_again(signal.SIGTERM if _was_terminated else signal.SIGINT)


def _send_again(number: int) -> None:
    again = threading.Timer(_AGAIN_S, signal.raise_signal, (number,))
    again.daemon = True
    again.start()

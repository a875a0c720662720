"""A signal stops a command wherever it is at work."""

import signal
import subprocess
import sys

import pytest

_PROGRAM = """
import gc, signal, sys, time
from sfumato.cli import stopping

sent = []

def within_the_collector(phase, info):
    if not sent:
        sent.append(1)
        signal.raise_signal(signal.{name})

stopping.watch()
gc.callbacks.append(within_the_collector)
try:
    gc.collect()
    for _ in range(200):  # the signal is sent again within Python, which a long sleep does not hear
        time.sleep(0.1)
    sys.exit(1)
except KeyboardInterrupt:
    sys.exit(stopping.exit_code())
"""


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_not_lost_in_a_callback(stop: signal.Signals) -> None:
    program = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)" + (
        _PROGRAM.format(name=stop.name)
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 128 + stop and not ended.stderr


def test_what_else_is_raised_in_a_callback_is_said() -> None:
    program = "import gc; from sfumato.cli import stopping; stopping.watch()\n" + (
        "gc.callbacks.append(lambda phase, info: 1 / 0); gc.collect(); gc.callbacks.clear()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert "ZeroDivisionError" in ended.stderr

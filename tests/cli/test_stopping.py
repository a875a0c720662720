"""A signal stops a command wherever it is at work."""

import signal
import subprocess
import sys
from pathlib import Path

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


_IMPORTING = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from sfumato.cli import stopping

stopping.watch()
try:
    import swallowing
    for _ in range(200):
        time.sleep(0.1)
    sys.exit(1)
except KeyboardInterrupt:
    sys.exit(stopping.exit_code() if swallowing.whole else 1)
"""


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_within_an_import_stops_after_it(stop: signal.Signals, tmp_path: Path) -> None:
    """As pyarrow does, which goes on without pandas if its import fails in any way."""
    (tmp_path / "swallowing.py").write_text(
        "import signal\nwhole = False\ntry:\n"
        f"    signal.raise_signal({stop.value})\n    whole = True\nexcept BaseException:\n    pass\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", _IMPORTING],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
    )
    assert ended.returncode == 128 + stop and not ended.stderr


def test_ctrl_c_that_is_ignored_stays_so() -> None:
    program = (
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "from sfumato.cli import stopping\n"
        "stopping.watch(); signal.raise_signal(signal.SIGINT); stopping.end()\n"
        "assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN"
    )
    subprocess.run([sys.executable, "-c", program], timeout=60, check=True)

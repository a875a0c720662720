"""What a test does without something that it needs: it is skipped aloud, or fails where CI is
set."""

import os
from typing import NoReturn

import pytest


def wanting(reason: str) -> NoReturn:
    """Leave the test, saying what was NOT tested and why."""
    if os.environ.get("CI"):
        pytest.fail(reason + " (CI is set, so this is a failure)", pytrace=False)
    pytest.skip(reason)

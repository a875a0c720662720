"""For tests and for the examples in docstrings: files are written without waiting for the disk, and
each example writes in a folder of its own."""

import os
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

# The machine stays up: thousands of files that wait for its disk would take a minute.  What is
# called, and in which order, is still seen by the tests that look at it.
os.fsync = lambda handle: None


@pytest.fixture(autouse=True)
def _folder_of_an_example(request: pytest.FixtureRequest) -> Iterator[None]:
    if not isinstance(request.node, pytest.DoctestItem):
        yield
        return
    with TemporaryDirectory() as folder, chdir(Path(folder)):
        yield

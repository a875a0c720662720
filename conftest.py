"""The examples in docstrings write files, each in a folder of its own."""

from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


@pytest.fixture(autouse=True)
def _folder_of_an_example(request: pytest.FixtureRequest) -> Iterator[None]:
    if not isinstance(request.node, pytest.DoctestItem):
        yield
        return
    with TemporaryDirectory() as folder, chdir(Path(folder)):
        yield

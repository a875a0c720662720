"""Every mechanism of the registry in turn."""

import pytest

from sfumato.mechanism.base import Mechanism
from tests.mechanism.registry import MECHANISMS


@pytest.fixture(params=MECHANISMS, ids=str)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def mechanism(name: str) -> Mechanism:
    return MECHANISMS[name]()

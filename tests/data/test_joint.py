"""Tables of many users are multiplied by what they hold, not by their size."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from sfumato.data import joint as tables
from sfumato.data.joint import Joint


class _NotTurned(sparse.csr_matrix):
    """A matrix that only its own rows may be taken of, as the product with a sparse table does."""

    @property
    def T(self) -> Any:
        raise AssertionError("multiplied with the whole table")


def test_a_table_of_many_users_is_multiplied_by_its_entries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random = np.random.default_rng(0)
    some = sparse.random(1500, 900, density=0.01, random_state=0, format="csr")
    joint = Joint(some / some.sum())
    rows = random.random((900, 7))
    rows /= rows.sum(axis=1, keepdims=True)
    assert joint.sparse is None
    found = [joint.times(rows), joint.times(_NotTurned(rows))]
    monkeypatch.setattr(tables, "_LARGE", joint.table.size)
    for one in found:
        assert isinstance(one, np.ndarray)
        np.testing.assert_allclose(one, joint.times(rows), rtol=1e-12, atol=0)

"""While a problem is solved, matrix products take one thread; afterwards as many as before."""

import subprocess
import sys
from collections.abc import Iterator
from threading import Barrier, Thread

import pytest

import sfumato as sf
from sfumato.solver.baselines import Coin
from sfumato.threads import _pools, one_thread

ONE = [1] * len(_pools())


def _counts() -> list[int]:
    return [pool.number() for pool in _pools()]


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Two threads for every library, whatever the environment began with."""
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    assert ONE, "the wheels of NumPy and SciPy bring OpenBLAS"
    before = _counts()
    for pool in _pools():
        pool.limit(2)
    yield _counts()
    for pool, count in zip(_pools(), before, strict=True):
        pool.limit(count)


def test_inside_there_is_one_thread_and_afterwards_as_many_as_before(two: list[int]) -> None:
    assert two == [2] * len(ONE)
    with pytest.raises(KeyError), one_thread():
        assert _counts() == ONE
        with one_thread():
            pass
        assert _counts() == ONE
        raise KeyError
    assert _counts() == two


def test_a_number_that_the_user_set_is_left_alone(
    two: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    with one_thread():
        assert _counts() == two


def test_of_two_solves_at_a_time_the_last_to_end_restores_the_number(two: list[int]) -> None:
    both, ended = Barrier(2, timeout=60), Barrier(2, timeout=60)
    seen = []

    def first() -> None:
        with one_thread():
            both.wait()
        ended.wait()

    other = Thread(target=first)
    other.start()
    with one_thread():
        both.wait()
        ended.wait()
        seen.append(_counts())
    other.join()
    assert seen == [ONE]
    assert _counts() == two


def test_solve_takes_one_thread(two: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    solve = Coin.solve

    def watched(self, problem, how):  # type: ignore[no-untyped-def]
        seen.append(_counts())
        return solve(self, problem, how)

    monkeypatch.setattr(Coin, "solve", watched)
    data = sf.Samples(secret=[0, 1], truth=[[0, 0], [100, 0]], secrets=("ann", "bob"))
    sf.solve(sf.Problem(data, max_loss=45, cell_m=20), sf.Coin())
    assert seen == [ONE]
    assert _counts() == two


@pytest.mark.parametrize(("said", "used"), [(None, 1), ("2", 2)])
def test_nets_compute_on_one_thread_unless_the_environment_says_otherwise(
    said: str | None, used: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PJRT_NPROC", raising=False)
    monkeypatch.delenv("NPROC", raising=False)
    if said is not None:
        monkeypatch.setenv("PJRT_NPROC", said)
    code = """
from pathlib import Path
import jax, sfumato.nets
jax.numpy.ones((300, 300)).sum().block_until_ready()
names = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
print(sum("XLAEigen" in name for name in names))
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(ended.stdout) == used

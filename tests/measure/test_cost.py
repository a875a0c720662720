"""What a judgement takes is said before it begins, and what does not fit is refused."""

import numpy as np
import pytest

from benchmarks.crowd import town
from sfumato.data.grid import Grid
from sfumato.data.synthetic import four_corners
from sfumato.errors import ProblemError
from sfumato.measure.cost import judging_cost
from sfumato.mechanism.custom import Function
from sfumato.mechanism.laplace import PlanarLaplace
from sfumato.mechanism.simple import Coin
from sfumato.mechanism.wrap import Snapped

DATA = four_corners(0).test
CROWD = town(300, 3000)  # more users than a table is held for
NOISE = Snapped(PlanarLaplace(0.01), Grid(cell_m=25))
COIN = Coin(keep=0.5, place=(0.0, 0.0))


def test_noise_is_integrated_for_few_users_and_sampled_for_many() -> None:
    few, fine = (
        judging_cost(Snapped(PlanarLaplace(0.01), Grid(cell_m=side)), DATA) for side in (25, 5)
    )
    assert fine.seconds > few.seconds and fine.bytes > few.bytes
    assert NOISE.window(DATA.joint()) is not None and NOISE.window(CROWD.joint()) is None
    little, much = (judging_cost(NOISE, CROWD, hits=hits) for hits in (1, 1000))
    # three million reports of 100 bytes
    assert much.bytes - little.bytes == pytest.approx(999 * 3000 * 100)
    assert much.seconds > little.seconds


def test_a_law_costs_by_its_rows_and_a_function_by_its_reports() -> None:
    def still(truth: np.ndarray, random: np.random.Generator) -> np.ndarray:
        return truth

    coin, sampled = judging_cost(COIN, DATA), judging_cost(Function(still), DATA)
    assert sampled.seconds > coin.seconds + 0.2
    assert sampled.bytes - coin.bytes > 90 * 500 * len(DATA)


@pytest.mark.parametrize("mechanism", [NOISE, COIN], ids=["noise", "coin"])
def test_what_does_not_fit_is_refused_with_what_would(
    mechanism: Snapped | Coin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.memory.free_bytes", lambda: 1e8)
    with pytest.raises(ProblemError, match=r"3,000 check-ins of 300 users needs about 0\.\d GB"):
        judging_cost(mechanism, CROWD)

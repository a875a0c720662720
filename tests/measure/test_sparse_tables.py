"""A table of many users is held sparse; every figure is that of the whole table."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from sfumato.data import joint as joints
from sfumato.data import samples as data
from sfumato.data.grid import Grid
from sfumato.data.joint import Joint
from sfumato.data.samples import EVERYBODY_ELSE, Samples
from sfumato.errors import DataError, ProblemError
from sfumato.measure import estimate, exact, worst
from sfumato.measure.bound import Claim, bound_grid
from sfumato.measure.certificate import known_leakages
from sfumato.measure.judge import judge
from sfumato.mechanism.laplace import PlanarLaplace
from sfumato.mechanism.law import merge_on_grid
from sfumato.mechanism.simple import Coin
from sfumato.mechanism.wrap import Snapped
from sfumato.solver import Coin as CoinSolver
from sfumato.solver import Problem
from sfumato.studio.preview import report_table, save_table
from sfumato.study.solve import solve

RANDOM = np.random.default_rng(3)
PLACES = RANDOM.normal(0, 300, (9, 2)).round()
SECRET, COLUMN = RANDOM.integers(12, size=150), RANDOM.integers(9, size=150)
GRID = Grid(cell_m=50)


def _table() -> np.ndarray:
    table = np.zeros((12, 9))
    np.add.at(table, (SECRET, COLUMN), 1 / 150)
    return table


@pytest.fixture
def few_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of more than forty entries are held sparse."""
    for module in (joints, data, estimate):
        monkeypatch.setattr(module, "MOST_DENSE", 40)


def _both(request: pytest.FixtureRequest) -> tuple[Joint, Joint]:
    whole = Joint(_table(), places=PLACES)
    request.getfixturevalue("few_entries")
    held = Joint(sparse.csr_matrix(_table()), places=PLACES)
    assert held.sparse is not None and whole.sparse is None
    return whole, held


@pytest.mark.parametrize(
    "measure",
    [
        exact.entropy,
        exact.conditional_entropy,
        exact.mutual_information,
        exact.bayes_error,
        exact.min_entropy_leakage,
        worst.worst_report,
        worst.exposed,
        worst.error_per_secret,
        worst.exposed_per_secret,
        estimate.square_of_information,
    ],
)
def test_a_measure_of_a_sparse_table_is_that_of_the_whole_one(
    measure: Any, request: pytest.FixtureRequest
) -> None:
    whole, held = _both(request)
    assert measure(held) == pytest.approx(measure(whole), abs=1e-12)


def test_guesses_learnt_on_one_sparse_table_err_on_another_as_they_do_whole(
    request: pytest.FixtureRequest,
) -> None:
    other = np.roll(_table(), 1, axis=1)
    whole, held = _both(request)
    expected = exact.error_of_guess(whole, Joint(other))
    found = exact.error_of_guess(held, Joint(sparse.csr_matrix(other)))
    assert found == pytest.approx(expected, abs=1e-12)


def test_the_whole_table_of_many_users_is_refused_in_a_sentence(
    request: pytest.FixtureRequest,
) -> None:
    _, held = _both(request)
    with pytest.raises(ProblemError, match="whole table of 12 users and 9 places"):
        _ = held.table


@pytest.mark.parametrize("mechanism", [Coin(keep=0.3, place=(10.0, 10.0)), "merged"])
def test_a_law_worked_out_in_parts_is_the_law(
    mechanism: Any, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many users, and of few users with many truths."""
    merged = mechanism == "merged"
    coin = Coin(keep=0.3, place=(10.0, 10.0)) if merged else mechanism
    whole, held = _both(request)
    monkeypatch.setattr("sfumato.mechanism.law._TRUTHS_AT_ONCE", 4)
    expected, worked_out = coin.law(whole), []
    rows = Coin.rows
    monkeypatch.setattr(
        Coin, "rows", lambda self, truth: worked_out.append(len(truth)) or rows(self, truth)
    )
    monkeypatch.setattr("sfumato.mechanism.law.TRUTHS_WHOLE", 8)
    for joint in (held, whole):
        worked_out.clear()
        found = coin.law(joint)
        assert worked_out == [4, 4, 1] and expected is not None and found is not None
        if merged:
            found = merge_on_grid(found, Grid(cell_m=400))
        law = merge_on_grid(expected, Grid(cell_m=400)) if merged else expected
        assert found.loss == pytest.approx(law.loss)
        assert found.loss_of == pytest.approx(law.loss_of)
        assert found.most_loss == pytest.approx(law.most_loss)
        assert exact.bayes_error(found.joint) == pytest.approx(exact.bayes_error(law.joint))


def test_hits_of_many_users_are_estimated_as_those_of_few(
    request: pytest.FixtureRequest,
) -> None:
    samples = Samples(SECRET, PLACES[COLUMN], tuple(map(str, range(12))))
    noise = Snapped(PlanarLaplace(0.01), GRID)

    def judged() -> Any:
        again = Samples(samples.secret, samples.truth, samples.secrets)
        law = noise.law(again.joint())
        reports = noise.sample(np.repeat(again.truth, 20, axis=0), seed=1)
        secret = np.repeat(again.secret, 20)
        options = {"secrets": 12, "hits": 20}
        found = [
            function(secret, reports, GRID, **options)
            for function in (
                estimate.estimate_bayes_error,
                estimate.estimate_information,
                estimate.estimate_exposed,
            )
        ]
        return law, [(one.value, one.low, one.high) for one in found]

    law, whole = judged()
    request.getfixturevalue("few_entries")
    no_law, held = judged()
    assert law is not None and no_law is None
    for one, other in zip(whole, held, strict=True):
        assert other == pytest.approx(one, abs=1e-12)


def test_noise_is_judged_without_a_table_of_users_and_cells(few_entries: None) -> None:
    samples = Samples(SECRET, PLACES[COLUMN], tuple(map(str, range(12))))
    found = judge(Snapped(PlanarLaplace(0.01), GRID), samples, sampled_on=GRID, fitted_on=samples)
    assert found.bayes_error.kind == "estimate" and found.learnt_error is not None
    assert found.loss.low < 200 < found.loss.high * 1.05


def test_the_checker_takes_a_sparse_claim() -> None:
    shares = RANDOM.dirichlet(np.ones(12), size=9)
    losses = np.linalg.norm(PLACES[:, None] - PLACES[None], axis=-1)
    bounds = [
        bound_grid(Claim(table, max_loss=80.0), shares, [1e-3], lambda chosen: losses[:, chosen])
        for table in (_table(), sparse.csr_matrix(_table()))
    ]
    assert bounds[0] == pytest.approx(bounds[1], abs=1e-15)


def test_what_is_known_without_solving_is_the_same_for_a_sparse_table(
    request: pytest.FixtureRequest,
) -> None:
    def known() -> tuple[float, float]:
        samples = Samples(SECRET, PLACES[COLUMN], tuple(map(str, range(12))))
        return known_leakages(Problem(samples, max_loss=80, cell_m=50))

    whole = known()
    request.getfixturevalue("few_entries")
    assert known() == pytest.approx(whole, abs=1e-12)


def test_the_studio_keeps_and_reads_a_sparse_table(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    samples = Samples(SECRET, PLACES[COLUMN], tuple(map(str, range(12))))
    solve(Problem(samples, max_loss=80, cell_m=50), CoinSolver()).save(tmp_path / "run")
    whole, held = _both(request)
    beliefs = []
    for joint in (whole, held):
        save_table(tmp_path / "run", joint)
        beliefs.append(report_table(tmp_path / "run").belief(PLACES[:4]))
    assert beliefs[0] == pytest.approx(beliefs[1])


def test_users_with_few_check_ins_are_one_secret_and_a_note_says_so() -> None:
    samples = Samples([0, 0, 0, 1, 2, 2], np.arange(12).reshape(6, 2) * 100.0, ("a", "b", "c"))
    pooled = samples.pooled(3)
    assert pooled.secrets == ("a", EVERYBODY_ELSE) and pooled.counts.tolist() == [3, 3]
    assert "2 users with fewer than 3 check-ins (3 of 6 check-ins)" in pooled.notes[-1]
    assert samples.pooled(1) is samples
    with pytest.raises(DataError, match="all would be pooled"):
        samples.pooled(9)

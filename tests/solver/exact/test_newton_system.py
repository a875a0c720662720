"""Newton's system by either side is the system written out in full."""

from dataclasses import replace

import numpy as np
import pytest

from sfumato.solver.exact.newton_system import Pieces, ReportSide, TruthSide, smaller_side


def _pieces(truths: int, reports: int, guesses: int, budgets: int) -> Pieces:
    random = np.random.default_rng((truths, reports, guesses, budgets))
    return Pieces(
        ratio=random.uniform(0.5, 2.0, (truths, reports)),
        loss=random.uniform(0.0, 3.0, (truths, reports)),
        weights=random.uniform(0.0, 1.0, (truths, guesses)),
        small=0.05 * random.normal(size=(reports, guesses, guesses - 1)),
        charges=random.uniform(0.1, 1.0, (truths, budgets)),
        corner=random.uniform(0.5, 1.0, budgets),
    )


def _in_full(pieces: Pieces) -> np.ndarray:
    """D - A A', entry by entry, as the module's first lines say it."""
    truths, reports = pieces.ratio.shape
    budgets = len(pieces.corner)
    matrix = np.zeros((truths + budgets, truths + budgets))
    for w in range(truths):
        matrix[w, w] = pieces.ratio[w].sum()
        for k in range(budgets):
            border = pieces.charges[w, k] * (pieces.ratio[w] * pieces.loss[w]).sum()
            matrix[w, truths + k] = matrix[truths + k, w] = border
            for other in range(budgets):
                squares = (pieces.ratio[w] * pieces.loss[w] ** 2).sum()
                both = pieces.charges[w, k] * pieces.charges[w, other]
                matrix[truths + k, truths + other] += both * squares
    matrix[range(truths, truths + budgets), range(truths, truths + budgets)] += pieces.corner
    for z in range(reports):
        for column in range(pieces.small.shape[2]):
            own = pieces.ratio[:, z] * (pieces.weights @ pieces.small[z, :, column])
            spent = [(charge * own * pieces.loss[:, z]).sum() for charge in pieces.charges.T]
            slab = np.concatenate([own, spent])
            matrix -= np.outer(slab, slab)
    return matrix


@pytest.mark.parametrize("side", [TruthSide, ReportSide])
@pytest.mark.parametrize(("truths", "reports"), [(9, 4), (4, 9)])
@pytest.mark.parametrize("budgets", [0, 1, 3])
def test_either_side_solves_the_system_written_out_in_full(
    side: type[TruthSide] | type[ReportSide], truths: int, reports: int, budgets: int
) -> None:
    pieces = _pieces(truths, reports, 3, budgets)
    matrix = _in_full(pieces)
    assert np.linalg.eigvalsh(matrix).min() > 0  # else the case says nothing
    right = np.random.default_rng(1).normal(size=len(matrix))
    np.testing.assert_allclose(side(pieces).solve(right), np.linalg.solve(matrix, right), rtol=1e-7)


def test_the_side_with_fewer_numbers_is_factored() -> None:
    assert isinstance(smaller_side(_pieces(9, 2, 3, 1)), ReportSide)
    assert isinstance(smaller_side(_pieces(4, 9, 3, 1)), TruthSide)


def test_a_system_that_is_not_positive_definite_is_said() -> None:
    pieces = replace(_pieces(4, 9, 3, 1), small=_pieces(4, 9, 3, 1).small * 40)
    assert np.linalg.eigvalsh(_in_full(pieces)).min() < -1
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        TruthSide(pieces)

"""The dense heart of a Newton step: one symmetric system in the truths and budgets, or its mirror
in the reports.

Eliminating the law and the scores leaves  (D - A A') x = b  with D an arrow (a diagonal over
truths, bordered by the budgets) and A of truths + budgets rows and reports x (guesses - 1) columns.
Whichever side is smaller is factored: D - A A' itself, or I - A' D^-1 A, from which the answer
follows by Woodbury's identity.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.blas import dsyrk, dtrsm

from sfumato.solver.exact.task import Charges, Limits, PerPair, Weights

# added to the unit diagonal, in turn, until the factor exists
_SHIFTS = 1e-14, 1e-12, 1e-10, 1e-8


@dataclass(frozen=True)
class Pieces:
    """What the system is made of.

    ratio: law / reduced cost, truths x reports.  loss: truths x reports.  weights: truths x
    guesses.
    small: reports x guesses x (guesses - 1), the factors per report.  charges: truths x budgets.
    corner: what the budgets' own slacks add to their diagonal.
    """

    ratio: PerPair
    loss: PerPair
    weights: Weights
    small: Annotated[np.ndarray, "reports guesses guesses-1"]
    charges: Charges
    corner: Limits

    def slab(self, column: int, out: np.ndarray) -> None:
        """One slab of A, (truths + budgets) x reports, for one column of the small factors."""
        truths = len(self.ratio)
        np.matmul(self.weights, self.small[:, :, column].T, out=out[:truths])
        out[:truths] *= self.ratio
        for k, charge in enumerate(self.charges.T):
            out[truths + k] = np.einsum("w,wz,wz->z", charge, out[:truths], self.loss)


class TruthSide:
    """D - A A' by its Cholesky factor."""

    def __init__(self, pieces: Pieces) -> None:
        truths, reports = pieces.ratio.shape
        size = truths + len(pieces.corner)
        matrix = np.zeros((size, size), order="F")
        slab = np.empty((size, reports))
        for column in range(pieces.small.shape[2]):
            pieces.slab(column, slab)
            matrix = dsyrk(-1.0, slab.T, beta=1.0, c=matrix, trans=1, lower=1, overwrite_c=1)
        height, first, second = _moments(pieces)
        border = (pieces.charges * first[:, None]).T
        matrix[truths:, :truths] += border
        matrix[truths:, truths:] += pieces.charges.T @ (pieces.charges * second[:, None])
        diagonal = np.arange(size)
        matrix[diagonal, diagonal] += np.concatenate([height, pieces.corner])
        self._scale = 1.0 / np.sqrt(matrix[diagonal, diagonal].clip(1e-300))
        matrix *= self._scale[:, None]
        matrix *= self._scale
        self._factor = _factor(matrix)

    def solve(self, right: np.ndarray) -> np.ndarray:
        """x with (D - A A') x = right."""
        return self._scale * cho_solve(self._factor, self._scale * right, check_finite=False)


class ReportSide:
    """The same by the factor of I - A' D^-1 A: smaller when reports x (guesses - 1) is below the
    number of truths."""

    def __init__(self, pieces: Pieces) -> None:
        truths, reports = pieces.ratio.shape
        budgets, columns = len(pieces.corner), pieces.small.shape[2]
        self._height, first, second = _moments(pieces)
        self._border = pieces.charges * first[:, None]  # truths x budgets
        spread = (second - first**2 / self._height).clip(0.0)
        corner = pieces.charges.T @ (pieces.charges * spread[:, None]) + np.diag(pieces.corner)
        self._corner = np.linalg.cholesky(corner) if budgets else corner
        self._wide = wide = np.empty((truths + budgets, reports * columns))  # A
        for column in range(columns):
            pieces.slab(column, wide[:, column * reports : (column + 1) * reports])
        half = wide.copy()  # D^-1/2 A
        half[truths:] -= self._border.T @ (wide[:truths] / self._height[:, None])
        if budgets:
            half[truths:] = dtrsm(1.0, self._corner, half[truths:], lower=1)
        half[:truths] /= np.sqrt(self._height)[:, None]
        matrix = np.asfortranarray(np.eye(reports * columns))
        matrix = dsyrk(-1.0, half.T, beta=1.0, c=matrix, lower=1, overwrite_c=1)
        self._factor = _factor(matrix)

    def solve(self, right: np.ndarray) -> np.ndarray:
        """x with (D - A A') x = right."""
        plain = self._arrow(right)
        return plain + self._arrow(
            self._wide @ cho_solve(self._factor, plain @ self._wide, check_finite=False)
        )

    def _arrow(self, right: np.ndarray) -> np.ndarray:
        """D^-1 right."""
        top, low = np.split(right, [len(self._height)])
        if len(low):
            low = cho_solve((self._corner, True), low - self._border.T @ (top / self._height))
        return np.concatenate([(top - self._border @ low) / self._height, low])


def smaller_side(pieces: Pieces) -> TruthSide | ReportSide:
    """The system on the side that costs less."""
    truths, reports = pieces.ratio.shape
    few_reports = 1.2 * reports * pieces.small.shape[2] < truths
    return ReportSide(pieces) if few_reports else TruthSide(pieces)


def _moments(pieces: Pieces) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums over reports of the ratio, times the loss, times its square."""
    ratio, loss = pieces.ratio, pieces.loss
    return (
        ratio.sum(axis=1),
        np.einsum("wz,wz->w", ratio, loss),
        np.einsum("wz,wz,wz->w", ratio, loss, loss),
    )


def _factor(matrix: np.ndarray) -> tuple[np.ndarray, bool]:
    """Cholesky factor of a matrix given by its lower half, with as small a shift as it needs."""
    diagonal = np.arange(len(matrix))
    for shift in _SHIFTS:
        matrix[diagonal, diagonal] += shift
        try:
            return cho_factor(matrix, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            continue
    raise np.linalg.LinAlgError("Newton's system is no longer positive definite")


def paired(weights: Weights, ratio: PerPair) -> Annotated[np.ndarray, "reports guesses guesses"]:
    """weights' D weights at each report, D the diagonal of its column of `ratio`."""
    first, second = np.triu_indices(weights.shape[1])
    matrices = np.empty((ratio.shape[1], weights.shape[1], weights.shape[1]))
    products = ((weights[:, first] * weights[:, second]).T @ ratio).T
    matrices[:, first, second] = matrices[:, second, first] = products
    return matrices

"""Numbers measured from samples: a value, an interval, and which way it errs."""

from dataclasses import asdict, dataclass
from typing import Any, Literal, SupportsFloat

import numpy as np
from scipy import sparse

from sfumato.data.grid import Grid
from sfumato.data.joint import MOST_DENSE, Joint, Pairs
from sfumato.errors import ProblemError
from sfumato.measure.exact import (
    bayes_error,
    best_guess_shares,
    best_guess_shares_of,
    mutual_information,
)
from sfumato.measure.worst import EXPOSED, exposed
from sfumato.randomness import generator

_DEVIATIONS = 1.96  # a 95 % interval
_OF_A_CELL = 3.0  # deviations of a cell's hits from 90 %: beyond them one such cell in some 300 is
_HALVES_SEED = 20  # which hits fall in which half; any fixed number will do
_CODES = 2**62  # room for combined cell and secret numbers


@dataclass(frozen=True, repr=False)
class Estimate:
    """A number with an interval and how it was got.

    `kind` is exact (computed from a law; the interval is rounding or left-out tails), estimate
    (measured from samples; a 95 % interval) or bound.  `errs` says in words which way it errs.

    It is read as a number by its value: `float(e)`, `f"{e:.3f}"`, `e < 0.5`.  Look at `low` and
    `high` before concluding.  Calculations are refused, since their interval would be lost.

    >>> Estimate.exact(0.25, within=0.01)
    <Estimate 0.25, 0.24 to 0.26 (exact)>
    >>> f"{Estimate.exact(0.25):.3f}", Estimate.exact(0.25) < 0.5
    ('0.250', True)
    """

    value: float
    low: float
    high: float
    kind: Literal["exact", "estimate", "bound"]
    cell_m: float | None = None
    hits: int | None = None
    errs: str = ""

    def __float__(self) -> float:
        return float(self.value)

    def __format__(self, form: str) -> str:
        return format(self.value, form) if form else repr(self)

    def __round__(self, digits: int | None = None) -> float:
        return round(self.value, digits)

    def __lt__(self, other: SupportsFloat) -> bool:
        return self.value < float(other)

    def __le__(self, other: SupportsFloat) -> bool:
        return self.value <= float(other)

    def __gt__(self, other: SupportsFloat) -> bool:
        return self.value > float(other)

    def __ge__(self, other: SupportsFloat) -> bool:
        return self.value >= float(other)

    def _calculated(self, other: object = None) -> float:
        raise ProblemError(
            "a calculation with an Estimate would lose its interval; expected a number: use"
            " .value, .low or .high"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = _calculated
    __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _calculated
    __pow__ = __neg__ = __abs__ = _calculated

    def __repr__(self) -> str:
        between = "" if self.low == self.high else f", {self.low:.4g} to {self.high:.4g}"
        return f"<Estimate {self.value:.4g}{between} ({self.kind})>"

    @classmethod
    def exact(
        cls, value: float, *, within: float = 0.0, cell_m: float | None = None, errs: str = ""
    ) -> "Estimate":
        """A computed number, off by at most `within`."""
        low = max(0.0, value - within) if value >= 0 else value - within  # no leakage is negative
        return cls(
            value=value, low=low, high=value + within, kind="exact", cell_m=cell_m, errs=errs
        )

    @classmethod
    def share(
        cls,
        value: float,
        count: int,
        *,
        cell_m: float | None = None,
        hits: int | None = None,
        errs: str = "",
    ) -> "Estimate":
        """A share of `count` tries, with Wilson's interval."""
        return cls(value, *wilson(value, count), "estimate", cell_m, hits, errs)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Counts:
    """Hits per secret and occupied cell: a table of whole numbers, sparse where it is large, and
    the cells' middles."""

    table: Any
    places: np.ndarray
    grid: Grid

    def joint(self, secrets: tuple[str, ...] = ()) -> Joint:
        """The frequencies as a table of probabilities."""
        return Joint(self.table / self.table.sum(), places=self.places, secrets=secrets)


def count_hits(secret: np.ndarray, reports: np.ndarray, grid: Grid, *, secrets: int) -> Counts:
    """Count hits by cell and secret.  Memory grows with the hits, never with the empty cells."""
    column, places = _occupied(reports, grid)
    return Counts(_counted(secret, column, (secrets, len(places))), places, grid)


def _counted(secret: np.ndarray, column: np.ndarray, shape: tuple[int, int]) -> Any:
    """How often each secret and column occur together."""
    secrets, columns = shape
    if secrets * columns > MOST_DENSE:
        hits = sparse.csr_matrix((np.ones(len(secret)), (secret, column)), shape=shape)
        hits.sum_duplicates()
        return hits
    flat = np.bincount(column * secrets + secret, minlength=columns * secrets)
    return flat.reshape(columns, secrets).T


def _occupied(reports: np.ndarray, grid: Grid) -> tuple[np.ndarray, np.ndarray]:
    """The number of each report's cell among the occupied ones, and their middles."""
    if not len(reports):
        raise ProblemError("no reports to measure; expected at least one")
    if not np.all(np.isfinite(reports)):
        raise ProblemError("a report is not two finite numbers of metres; remove or repair it")
    if not max(reports.max(), -reports.min()) / grid.cell_m < _CODES:
        raise ProblemError(
            f"the reports spread over more cells of {grid.cell_m:g} m than can be numbered;"
            " expected a larger cell"
        )
    across = np.floor((reports[:, 0] - grid.origin[0]) / grid.cell_m).astype(np.int64)
    up = np.floor((reports[:, 1] - grid.origin[1]) / grid.cell_m).astype(np.int64)
    low_across, low_up = int(across.min()), int(up.min())
    height = int(up.max()) - low_up + 1
    width = int(across.max()) - low_across + 1
    if width * height > _CODES:
        raise ProblemError(
            f"the reports spread over {width} x {height} cells of {grid.cell_m:g} m; expected a"
            " larger cell"
        )
    across -= low_across  # in place from here: the memory a hit takes is what limits large logs
    across *= height
    up -= low_up
    across += up
    code = across
    del across, up
    if width * height <= 2 * len(reports):  # few enough cells for a table with one entry each
        present = np.flatnonzero(np.bincount(code, minlength=width * height))
        number = np.empty(width * height, dtype=np.int64)
        number[present] = np.arange(len(present))
        column = number[code]
    else:
        present, column = np.unique(code, return_inverse=True)
    index = np.stack([present // height + low_across, present % height + low_up], axis=1)
    return column, grid.centre_of(index)


def estimate_bayes_error(
    secret: np.ndarray, reports: np.ndarray, grid: Grid, *, secrets: int, hits: int | None = None
) -> Estimate:
    """The paper's estimate of B(X|Z) from hits in cells, with an honest interval.

    B = 1 - sum_cells max_x hits(x, cell) / hits.  Unit: probability.  Higher is more private.
    Biased low with few hits per cell (a cell with one hit looks certain), high against the reports
    themselves because cells merge reports.  The interval is for the Bayes error on this grid: its
    low end is Wilson's for the estimate (whose mean is never above the truth); its high end is
    Wilson's for the error of guesses learnt on one half of the hits and judged on the other (no
    fitted guess beats the best).  Paper: section 5, "Bayes error estimation".
    """
    counts, first, second = _halves(secret, reports, grid, secrets=secrets)
    value = bayes_error(Joint(counts.table / len(secret)))
    crossed = 1 - (_caught(first, second) + _caught(second, first)) / len(secret)
    return Estimate(
        value=value,
        low=min(value, wilson(value, len(secret))[0]),
        high=max(value, wilson(float(crossed), len(secret))[1]),
        kind="estimate",
        cell_m=grid.cell_m,
        hits=hits,
        errs="low with few hits per cell; high against the reports themselves, which cells merge",
    )


def estimate_information(
    secret: np.ndarray, reports: np.ndarray, grid: Grid, *, secrets: int, hits: int | None = None
) -> Estimate:
    """I(X;Z) on a grid from hits.  Unit: bits.  Lower is more private.

    The plug-in value is biased high with few hits per cell and low against the reports themselves.
    High end: plug-in plus 1.96 standard errors, or 1.96 on the scale of sqrt(I) where that is more
    (the spread of an information near zero is not normal).  Low end: a posterior learnt on one half
    of the hits and scored on the other, E[log2 c(x|z)/p(x)], which no posterior can push above I,
    less 1.96 standard errors and less what outcomes too rare to be seen (Wilson's share for none)
    could take away.
    """
    counts, first, second = _halves(secret, reports, grid, secrets=secrets)
    joint = Joint(counts.table / len(secret))
    value = mutual_information(joint)
    prior = joint.prior[:, None]
    square_bits = square_of_information(joint)
    deviation = float(np.sqrt(max(0.0, square_bits - value**2) / len(secret)))
    stable = (np.sqrt(value) + _DEVIATIONS / np.sqrt(2 * np.log(2) * len(secret))) ** 2
    score, square, worst = 0.0, 0.0, 0.0
    for learnt, judged in ((first, second), (second, first)):
        if sparse.issparse(learnt):
            gains = _learnt_gains(learnt, judged, joint.prior, len(secret))
            score, square, worst = score + gains[0], square + gains[1], worst + gains[2]
            continue
        smooth = learnt + prior
        gain = np.log2(
            np.divide(smooth / smooth.sum(axis=0), prior, out=np.ones_like(smooth), where=prior > 0)
        )
        score += float(np.sum(judged * gain)) / len(secret)
        square += float(np.sum(judged * gain**2)) / len(secret)
        worst += float(judged.sum(axis=0) @ gain.min(axis=0)) / len(secret)
    unseen = wilson(0.0, len(secret))[1]
    crossed = (
        score
        - unseen * (score - worst)
        - _DEVIATIONS * float(np.sqrt(max(0.0, square - score**2) / len(secret)))
    )
    return Estimate(
        value=value,
        low=max(0.0, min(value, crossed)),
        high=max(value + _DEVIATIONS * deviation, float(stable)),
        kind="estimate",
        cell_m=grid.cell_m,
        hits=hits,
        errs="high with few hits per cell; low against the reports themselves, which cells merge",
    )


def square_of_information(joint: Joint) -> float:
    """E[ (log2 P(x|z) / P(x))^2 ]."""
    if joint.sparse is not None:
        secret, place, weight = joint.pairs
        bits = np.log2(weight / joint.place_probability[place] / joint.prior[secret])
        return float(np.sum(weight * bits**2))
    prior = joint.prior[:, None]
    spread = np.log2(
        np.divide(joint.posterior, prior, out=np.ones_like(joint.table), where=joint.table > 0)
    )
    return float(np.sum(joint.table * spread**2))


def _learnt_gains(
    learnt: sparse.csr_matrix, judged: sparse.csr_matrix, prior: np.ndarray, hits: int
) -> tuple[float, float, float]:
    """Of sparse tables of hits: mean and mean square of log2 c(x|z) / p(x) on the judged hits, c
    learnt with the prior as one more hit a cell; and its mean where the worst secret occurs, which
    was never seen in the cell, since among many secrets no cell has them all."""
    total = np.asarray(learnt.sum(axis=0)).ravel()
    # what was learnt where something is judged: zeros of the sum keep their place
    at = judged.tocoo()
    known = np.asarray(learnt[at.row, at.col]).ravel()
    gain = np.log2((known + prior[at.row]) / (total[at.col] + 1) / prior[at.row])
    per_place = np.asarray(judged.sum(axis=0)).ravel()
    worst = float(-(per_place @ np.log2(total + 1)))
    return float(at.data @ gain) / hits, float(at.data @ gain**2) / hits, worst / hits


def _caught(learnt: Any, judged: Any) -> float:
    """How many hits of one table the best guesses of the other name."""
    if not sparse.issparse(learnt):
        return float(np.sum(best_guess_shares(learnt) * judged))
    flat = learnt.tocoo()
    pairs = Pairs(flat.row, flat.col, flat.data)
    shares = best_guess_shares_of(pairs, learnt.shape[1])
    guesses = sparse.csr_matrix((shares, (flat.row, flat.col)), shape=learnt.shape)
    unseen = np.asarray(learnt.sum(axis=0)).ravel() == 0  # there any guess is as good
    blind = float(np.asarray(judged.sum(axis=0)).ravel()[unseen].sum()) / learnt.shape[0]
    return float(judged.multiply(guesses).sum()) + blind


def estimate_exposed(
    secret: np.ndarray, reports: np.ndarray, grid: Grid, *, secrets: int, hits: int | None = None
) -> Estimate:
    """Share of reports whose cell leaves one secret above 90 % posterior.

    Errs high with few hits per cell, by up to all of it: a cell with one hit looks certain.  The
    low end is therefore that of cells that one half of the hits picks and the other judges: where a
    guess is wrong in a share w of the hits in cells with a share s of all, at least s - 10 w of all
    hits are in cells in which it has more than 90 %, since in the others it is wrong one time in
    ten or more.  With Wilson's limits of both shares.  The high end counts all cells whose own
    hits are within three standard deviations of 90 %.
    """
    counts, first, second = _halves(secret, reports, grid, secrets=secrets)
    joint = counts.joint()
    value, count = exposed(joint), len(secret)
    halves = ((first, second), (second, first))
    picked, wrong = np.sum([_picked(*half, joint.prior) for half in halves], axis=0) / count
    least = wilson(picked, count)[0] - wilson(wrong, count)[1] / (1 - EXPOSED)
    return Estimate(
        value=value,
        low=min(value, max(0.0, least)),
        high=max(value, wilson(_perhaps(counts.table), count)[1]),
        kind="estimate",
        cell_m=grid.cell_m,
        hits=hits,
        errs="high with few hits per cell",
    )


def _perhaps(table: Any) -> float:
    """The share of hits in cells that may leave one secret above 90 %."""
    most = table.max(axis=0)
    most = np.asarray(most.todense() if sparse.issparse(most) else most, dtype=float).ravel()
    total = np.asarray(table.sum(axis=0), dtype=float).ravel()
    room = _OF_A_CELL * np.sqrt(EXPOSED * (1 - EXPOSED) * total)
    return float(total[most >= EXPOSED * total - room].sum() / total.sum())


def _picked(learnt: Any, judged: Any, prior: np.ndarray) -> tuple[float, float]:
    """How many hits of one table are in cells where the other gives its best guess more than 90 %,
    with the prior as one more hit a cell; and how many of these are not the guess."""
    if sparse.issparse(learnt):
        learnt, judged = learnt.tocsc(), judged.tocsc()
    guess = np.asarray(learnt.argmax(axis=0)).ravel()
    every = np.arange(len(guess))
    most, total = (
        np.asarray(counts).ravel() for counts in (learnt[guess, every], learnt.sum(axis=0))
    )
    sure = most + prior[guess] > EXPOSED * (total + 1)
    right = np.asarray(judged[guess, every]).ravel()[sure].sum()
    hits = np.asarray(judged.sum(axis=0)).ravel()[sure].sum()
    return float(hits), float(hits - right)


def estimate_mean(values: np.ndarray, *, hits: int | None = None) -> Estimate:
    """The mean of sampled numbers of at least 0 (a loss in metres) with a 95 % interval;
    unbiased."""
    mean = float(np.mean(values))
    error = _DEVIATIONS * float(np.std(values)) / np.sqrt(len(values))
    low = max(0.0, mean - error)
    return Estimate(mean, low, mean + error, "estimate", hits=hits, errs="unbiased")


def _halves(
    secret: np.ndarray, reports: np.ndarray, grid: Grid, *, secrets: int
) -> tuple[Counts, Any, Any]:
    """Counts of all hits and of two random halves of them, over the same cells."""
    column, places = _occupied(reports, grid)
    half = generator(_HALVES_SEED).random(len(column)) < 0.5
    shape = (secrets, len(places))
    first, second = (_counted(secret[part], column[part], shape) for part in (half, ~half))
    return Counts(first + second, places, grid), first, second


def wilson(share: float, count: int) -> tuple[float, float]:
    """Wilson's 95 % interval for a share (1927): unlike the plain one it has width when nothing or
    everything was seen."""
    extra = _DEVIATIONS**2 / count
    middle = (share + extra / 2) / (1 + extra)
    half = float(np.sqrt(max(share * (1 - share), 0.0) * extra + extra**2 / 4)) / (1 + extra)
    return max(0.0, middle - half), min(1.0, middle + half)

"""Repeated reports: what an adversary learns who sees several reports of one user, and what keeping
a report is worth."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations_with_replacement
from math import comb
from typing import Any

import numpy as np
from scipy.special import gammaln, logsumexp

from sfumato.data.categories import CategoricalData
from sfumato.data.grid import STICKY_CELL_M, Grid, Region
from sfumato.data.joint import Joint
from sfumato.data.samples import Samples
from sfumato.errors import ProblemError
from sfumato.files import array_hash
from sfumato.measure.estimate import Estimate, estimate_mean, wilson
from sfumato.measure.exact import bayes_error
from sfumato.measure.linked import ENDLESS, Linked, Reports, endless_linked_error, least_overlap
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.loss import Loss, euclidean
from sfumato.mechanism.rows import RowsOnDemand, rows_of_secrets
from sfumato.randomness import generator

COUNTS = (1, 2, 5, 10, 50)
DRAWS = 4000
MOST_COUNT = 10_000
_FEWEST_DRAWS = 200
_MOST_LOOKUPS = 1.5e9  # draws times reports times truths: about ten seconds
_MOST_HELD = 2e7  # draws times counts times users, of which logarithms are held: 160 MB
_MOST_PRODUCTS = 2e6  # lists of reports times truths (or reports of a list) that are held
_MOST_SUMS = 2e8  # lists times truths times reports of a list: about a second
_SAME = 1e-12  # chances closer than this are one


@dataclass(frozen=True)
class Repeated:
    """Bayes errors of adversaries who see `counts` reports of one user.  Higher is more private.

    Without a policy: `fresh`, all from one place, a new draw for each; `endless`, the same with as
    many reports as one likes; `places`, each from another place of the user, drawn as in the data;
    `overlap`, the least overlap of two users (`sfumato.measure.linked`), decides how fast that one
    falls.

    With the sticky policy all reports from one place and period are one report, however many there
    are.  `first`: the first report is kept and sent again (as the browser does); then n periods are
    as `fresh` and n places as `places`.
    `middle`: the middle of the place's cell of `sticky_cell_m` is answered (as `sanitize --sticky`
    does, which stores nothing); `middle_loss` is the expected loss then, `middle_periods` and
    `middle_places` what n periods and n places show.  None of the last five where truths have no
    cells (words).
    """

    counts: tuple[int, ...]
    fresh: tuple[Estimate, ...]
    places: tuple[Estimate, ...]
    endless: Estimate
    first: Estimate
    overlap: float
    sticky_cell_m: float | None = None
    middle: Estimate | None = None
    middle_loss: float | None = None
    middle_periods: tuple[Estimate, ...] | None = None
    middle_places: tuple[Estimate, ...] | None = None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "reports" if name == "counts" else name: value for name, value in asdict(self).items()
        }


def repeated_reports(
    mechanism: Mechanism,
    samples: Samples | CategoricalData,
    counts: Sequence[int] = COUNTS,
    *,
    sticky_cell_m: float | None = STICKY_CELL_M,
    grid: Grid | None = None,
    region: Region | None = None,
    loss: Loss = euclidean,
    draws: int = DRAWS,
    seed: int = 0,
) -> Repeated:
    """Measure repeated reports of a mechanism on data, with and without the sticky policy.

    Main arguments: `counts`, how many reports the adversary sees; `sticky_cell_m`, the side of the
    cell that is one place for the policy (None for no policy).  Other arguments: `grid` merges
    reports into its cells; `region`, where the middle of such a cell is moved to when it lies
    outside; `draws`, how many lists of reports are drawn where there are too many to go through.

    >>> from sfumato.data.synthetic import four_corners
    >>> from sfumato.mechanism.simple import Coin
    >>> samples = four_corners(0).train.split(20).train
    >>> repeated = repeated_reports(Coin(keep=0.2, place=(0.0, 0.0)), samples, (1, 10), draws=500)
    >>> repeated.fresh[0].value > repeated.fresh[1].value
    True
    """
    numbers = _checked(counts)
    samples = samples if mechanism.plane is None else samples.on_plane(mechanism.plane)
    before = samples.joint()
    law = _law(mechanism, before, grid)
    reported = law.joint(before)
    repeated = Repeated(
        numbers,
        fresh=estimate_repeated_bayes_error(before, law, numbers, draws=draws, seed=seed),
        places=linked_bayes_error(reported, numbers, within=law.within, draws=draws, seed=seed + 1),
        endless=Estimate.exact(endless_bayes_error(before, law), errs="for endless reports"),
        first=Estimate.exact(bayes_error(reported), within=law.within),
        overlap=least_overlap(reported),
    )
    if sticky_cell_m is None or isinstance(samples, CategoricalData):
        return repeated
    answered, of_truth = _answered(before, sticky_cell_m, region)
    kept = _law(mechanism, answered, grid)
    shown = kept.joint(answered)
    return replace(
        repeated,
        sticky_cell_m=sticky_cell_m,
        middle=Estimate.exact(bayes_error(shown), within=kept.within),
        middle_loss=_middle_loss(before, of_truth, kept, loss),
        middle_periods=estimate_repeated_bayes_error(
            answered, kept, numbers, draws=draws, seed=seed + 2
        ),
        middle_places=linked_bayes_error(
            shown, numbers, within=kept.within, draws=draws, seed=seed + 3
        ),
    )


def linked_bayes_error(
    joint: Joint,
    counts: Sequence[int],
    *,
    within: float = 0.0,
    draws: int = DRAWS,
    seed: int = 0,
) -> tuple[Estimate, ...]:
    """Bayes error of the adversary who sees n reports of n independent truths of one user, for each
    n of `counts`, from P(secret, report).

    B_n = 1 - sum over lists of max_x p(x) prod_i q_x(z_i).  To the adversary the user is then what
    a truth is for one place, so it is exact, or drawn, as `estimate_repeated_bayes_error` says.

    >>> from sfumato.data.joint import Joint
    >>> joint = Joint(np.array([[0.3, 0.2], [0.2, 0.3]]), places=np.eye(2))
    >>> [round(error.value, 3) for error in linked_bayes_error(joint, (1, 3))]
    [0.4, 0.352]
    """
    users = replace(rows_of_secrets(joint), within=within)
    return estimate_repeated_bayes_error(
        Joint(np.diag(joint.prior), secrets=joint.secrets), users, counts, draws=draws, seed=seed
    )


def linked_figures(joint: Joint, reports: Reports) -> Linked:
    """Bayes error and least overlap of linked reports, from P(secret, report).

    >>> joint = Joint(np.array([[0.3, 0.2], [0.2, 0.3]]), places=np.eye(2))
    >>> linked_figures(joint, "endless").bayes_error.value
    0.0
    >>> round(linked_figures(joint, 3).overlap, 3)
    0.98
    """
    if reports != ENDLESS:
        return Linked(reports, linked_bayes_error(joint, (reports,))[0], least_overlap(joint))
    error = Estimate.exact(endless_linked_error(joint), errs="for endless reports")
    return Linked(reports, error, least_overlap(joint))


def _checked(counts: Sequence[int]) -> tuple[int, ...]:
    if not counts or not all(1 <= count <= MOST_COUNT and count == int(count) for count in counts):
        given = ", ".join(map(str, counts)) or "none"
        raise ProblemError(f"numbers of reports are whole, from 1 to {MOST_COUNT}; got {given}")
    return tuple(sorted({int(count) for count in counts}))


def _law(mechanism: Mechanism, before: Joint, grid: Grid | None) -> RowsOnDemand:
    assert before.places is not None
    law = mechanism.rows_on(before.places, grid)
    if law is None:
        raise ProblemError(
            f"the law of this mechanism ('{mechanism.kind}') is not known, and repeated reports"
            " need it; snap it to a grid, or measure a mechanism whose law is known"
        )
    return law


def _answered(before: Joint, cell_m: float, region: Region | None) -> tuple[Joint, np.ndarray]:
    """P(secret, place that is answered) under the sticky policy, and the number of that place for
    each truth."""
    assert before.places is not None
    middles = Grid(cell_m=cell_m).snap(before.places)
    middles = middles if region is None else region.clamp(middles)
    places, column = np.unique(middles, axis=0, return_inverse=True)
    table = np.zeros((len(before.secrets), len(places)))
    np.add.at(table.T, column.ravel(), before.table.T)
    return Joint(table, places=places, secrets=before.secrets), column.ravel()


def _middle_loss(before: Joint, of_truth: np.ndarray, law: RowsOnDemand, loss: Loss) -> float:
    assert before.places is not None
    total = 0.0
    for truth, place in enumerate(of_truth):
        columns, chances = law.row(place)
        total += float(
            before.place_probability[truth]
            * (chances @ loss(before.places[truth], law.places[columns]))
        )
    return total


def endless_bayes_error(before: Joint, law: RowsOnDemand) -> float:
    """The Bayes error in the limit of many reports, where the truth's row of the law is known.

    1 - sum over distinct rows of max_x P(x, truths with that row).  No number of reports goes below
    it. Exact, up to chances closer than 1e-12, which count as one.
    """
    groups: dict[str, np.ndarray] = {}
    for truth in range(law.count):
        columns, chances = law.row(truth)
        rounded = np.round(chances / _SAME)
        positive = rounded > 0
        key = array_hash(columns[positive].astype(np.int64), rounded[positive])
        groups[key] = (
            groups[key] + before.table[:, truth] if key in groups else before.table[:, truth]
        )
    return max(0.0, 1 - float(sum(group.max() for group in groups.values())))


def estimate_repeated_bayes_error(
    before: Joint, law: RowsOnDemand, counts: Sequence[int], *, draws: int = DRAWS, seed: int = 0
) -> tuple[Estimate, ...]:
    """Bayes error of the adversary who sees n independent reports from one truth, for each n of
    `counts`.

    B_n = 1 - E max_x P(x | z_1..z_n),  P(x, z_1..z_n) = sum_w p(x,w) prod_i M(z_i | w).  Unit:
    probability.  Higher is more private.  Exact for n = 1 and where all lists of n reports can be
    gone through.  Elsewhere a truth and its reports are drawn and the posterior is computed from
    the law: unbiased, given the law.  Its interval is 1.96 standard errors, and on either side what
    outcomes too rare to be drawn (Wilson's share for none) could add.
    """
    if not draws >= 1:
        raise ProblemError(f"at least 1 list of reports must be drawn; got {draws}")
    numbers = _checked(counts)
    estimates: dict[int, Estimate] = {}
    for count in numbers:
        exact = bayes_error(law.joint(before)) if count == 1 else _by_all_lists(before, law, count)
        if exact is not None:
            estimates[count] = Estimate.exact(exact, within=count * law.within)
    left = tuple(count for count in numbers if count not in estimates)
    if left:
        lookups = _MOST_LOOKUPS / (left[-1] * law.count)
        by_memory = _MOST_HELD / (len(left) * len(before.secrets))
        most = max(_FEWEST_DRAWS, int(min(lookups, by_memory)))
        errors = 1 - _largest_posteriors(before, law, left, draws=min(draws, most), seed=seed)
        estimates |= {
            count: _mean_of_draws(errors[:, column], count * law.within)
            for column, count in enumerate(left)
        }
    return tuple(estimates[count] for count in numbers)


def _mean_of_draws(errors: np.ndarray, within: float) -> Estimate:
    plain = estimate_mean(errors)
    aside = wilson(0.0, len(errors))[1] + within
    return Estimate(
        value=plain.value,
        low=max(0.0, plain.low - aside),
        high=min(1.0, plain.high + aside),
        kind="estimate",
        hits=len(errors),
        errs="unbiased, given the law",
    )


def _by_all_lists(before: Joint, law: RowsOnDemand, count: int) -> float | None:
    """Exactly, over all lists of `count` reports up to their order; None where these are too
    many."""
    reports = len(law.places)
    ways = comb(reports + count - 1, count)
    if ways * max(law.count, count) > _MOST_PRODUCTS or ways * law.count * count > _MOST_SUMS:
        return None
    logs = np.stack([_logs(*law.row(truth), size=reports) for truth in range(law.count)])
    lists = np.array(list(combinations_with_replacement(range(reports), count)))
    # ln of how many orders a list has, if all differ
    likelihood = np.full((law.count, len(lists)), gammaln(count + 1))
    times, last = np.zeros(len(lists)), np.full(len(lists), -1)
    for report in lists.T:  # equal reports stand together: the k-th of them divides the orders by k
        times = np.where(report == last, times + 1, 1)
        likelihood += logs[:, report] - np.log(times)
        last = report
    return max(0.0, 1 - float((before.table @ np.exp(likelihood)).max(axis=0).sum()))


def _logs(columns: np.ndarray, chances: np.ndarray, *, size: int) -> np.ndarray:
    """ln M(. | truth): minus infinity where a report cannot be sent."""
    logs = np.full(size, -np.inf)
    positive = chances > 0
    logs[columns[positive]] = np.log(chances[positive])
    return logs


def _largest_posteriors(
    before: Joint, law: RowsOnDemand, counts: tuple[int, ...], *, draws: int, seed: int
) -> np.ndarray:
    """max_x P(x | first n reports) of drawn truths, shape (draws, counts).  Truth by truth: no
    table of all truths and reports."""
    random = generator(seed)
    truths = random.choice(
        law.count, size=draws, p=before.place_probability / before.place_probability.sum()
    )
    chance = random.random((draws, counts[-1]))
    reports = np.empty(chance.shape, dtype=np.int64)
    for truth in np.unique(truths):
        columns, chances = law.row(truth)
        heights = np.cumsum(chances)
        own = truths == truth
        entry = np.searchsorted(heights, chance[own] * heights[-1], side="right")
        reports[own] = columns[np.minimum(entry, len(columns) - 1)]
    starts = [0, *counts[:-1]]
    likelihood = np.full((draws, len(counts), len(before.secrets)), -np.inf)
    for truth in range(law.count):
        logs = _logs(*law.row(truth), size=len(law.places))
        so_far = np.cumsum(np.add.reduceat(logs[reports], starts, axis=1), axis=1)
        for secret in np.flatnonzero(before.table[:, truth]):
            kept = likelihood[:, :, secret]
            np.logaddexp(kept, so_far + np.log(before.table[secret, truth]), out=kept)
    return np.exp(likelihood.max(axis=2) - logsumexp(likelihood, axis=2))

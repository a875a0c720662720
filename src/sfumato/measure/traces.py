"""Whose trace is it?  Adversaries who see the reports of a whole trace, linked but without a name,
and who know each user from other traces.

What they know of a user is a law of places that is learned from named traces: the user's own
places, and, because people go to places where nobody saw them before, a back-off to wider and wider
cells around these and to everybody's places.  The weights of these levels are those that make the
named traces likeliest, each predicted from the user's others.  A law of places is pushed through
the mechanism's law; named reports are matched by the same back-off over reports.

Time grows with the rows times users and known places, memory with the longest trace.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
from scipy import sparse

from sfumato.data.grid import Grid
from sfumato.data.traces import Traces
from sfumato.errors import ProblemError
from sfumato.measure.estimate import Estimate
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.law import ReportChances, millimetres
from sfumato.mechanism.one_place import OnePlace, mean_distances, parts_of, recombined
from sfumato.mechanism.rows import MOST_ENTRIES
from sfumato.randomness import generator

_NARROWEST_M = 25.0  # the cells of the first level above single places
_WIDER = 4  # how many times as wide as those of the level below the cells of a level are
_UNSEEN = 0.5  # visits that a place has in advance (Krichevsky and Trofimov, 1981)
_STEPS, _STILL = 500, 1e-6  # of the weights' iteration: at most, and the change at which it ends
_SHARED = 0.5  # of the rows to be found, in periods of which their user has named traces
_REDRAWN, _FOLDS = 3, 3  # recombined periods per named one; of periods, to weigh these
_CLASSES = 64  # of numbers of check-ins
_PRACTICE = 200  # named traces on which mixtures are settled, each without itself

_MOST_PRACTICE = 2e7  # users times rows of those traces
_Joined = Literal["both", "law", "history"]

Who = Literal["law", "chain", "history", "period", "all", "counts"]
WHO: tuple[Who, ...] = ("law", "chain", "history", "period", "all")


def mixture_weights(likelihoods: np.ndarray) -> np.ndarray:
    """The weights of components that make rows likeliest: max of sum log(likelihoods @ weights).

    By expectation maximisation from equal weights; `likelihoods` has shape (rows, components).

    >>> mixture_weights(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])).round(3).tolist()
    [0.667, 0.333]
    """
    weights = np.full(likelihoods.shape[1], 1 / likelihoods.shape[1])
    rows = likelihoods[(likelihoods > 0).any(axis=1)]
    for _ in range(_STEPS if len(rows) else 0):
        after = weights * ((1 / (rows @ weights)) @ rows) / len(rows)
        still = np.abs(after - weights).max() < _STILL
        weights = after
        if still:
            break
    return weights


@dataclass(frozen=True, eq=False)
class PlaceLaws:
    """Where users go: P(place | user), learned from named visits with a back-off.

    P(w|x) = sum_s weight_s share_x(cell_s(w)) b(w) / b(cell_s(w)),  where share_x(c) is the share
    of x's visits in the cell c, b counts everybody's visits (and `_UNSEEN` at each place), and s
    goes from the place itself over wider and wider cells to the whole plane.

    `who`, `trace` and `points` are the user, the trace and the place in metres of each named visit;
    `more` are places that may be visited although nobody named was seen there.

    >>> visits = np.array([[0.0, 0.0], [0.0, 0.0], [900.0, 0.0], [900.0, 0.0]])
    >>> laws = PlaceLaws.learned(np.array([0, 0, 1, 1]), np.arange(4), visits, users=2)
    >>> laws.table().round(2).tolist()  # seen again in the other trace, so no need to look wider
    [[1.0, 0.0], [0.0, 1.0]]
    """

    places: np.ndarray = field(repr=False)
    levels: tuple[np.ndarray, ...] = field(repr=False)  # per level, the cell of each place
    counts: sparse.csr_matrix = field(repr=False)  # visits, users by places
    weights: np.ndarray
    predicted: np.ndarray = field(repr=False)  # of each visit, from the user's other traces

    @classmethod
    def learned(
        cls,
        who: np.ndarray,
        trace: np.ndarray,
        points: np.ndarray,
        *,
        users: int,
        more: np.ndarray | None = None,
    ) -> "PlaceLaws":
        """Learn the laws of `users` users."""
        every = points if more is None else np.vstack([points, more])
        places, place = np.unique(np.round(every, 3), axis=0, return_inverse=True)
        place = place.ravel()[: len(points)]
        if users * len(places) > MOST_ENTRIES:
            raise ProblemError(
                f"{users} users and {len(places)} places make a table that is too large; expected"
                " fewer users or a smaller area"
            )
        cells = Grid(cell_m=_NARROWEST_M).index(places - places.min(axis=0))
        levels = [np.arange(len(places))]
        while cells.any():
            levels.append(np.unique(cells, axis=0, return_inverse=True)[1].ravel())
            cells //= _WIDER
        levels.append(np.zeros(len(places), dtype=np.int64))
        counts = sparse.csr_matrix((np.ones(len(place)), (who, place)), shape=(users, len(places)))
        base = np.asarray(counts.sum(axis=0)).ravel() + _UNSEEN
        likelihoods = np.stack(
            [_left_out(who, trace, place, base, level) for level in levels], axis=1
        )
        several = _times(who) > _times(trace)  # visits of users with another trace
        weights = mixture_weights(likelihoods[several] if several.any() else likelihoods)
        return cls(places, tuple(levels), counts, weights, likelihoods @ weights)

    @cached_property
    def base(self) -> np.ndarray:
        """Everybody's visits at each place, and what each has in advance."""
        return np.asarray(np.asarray(self.counts.sum(axis=0)).ravel() + _UNSEEN)

    @cached_property
    def _shares(self) -> list[np.ndarray]:
        """Each place's share of its cell's visits, per level, times the level's weight."""
        return [
            weight * self.base / np.bincount(level, weights=self.base)[level]
            for level, weight in zip(self.levels, self.weights, strict=True)
        ]

    def _law(self, visits: np.ndarray) -> np.ndarray:
        """P(place) of a user with these visits, one number per place."""
        own = visits / (visits.sum() or 1.0)
        law = sum(
            np.bincount(level, weights=own)[level] * share
            for level, share in zip(self.levels, self._shares, strict=True)
        )
        law = self.base if not np.any(law) else law  # nothing is known of this user
        return np.asarray(law / law.sum())

    def table(self) -> np.ndarray:
        """P(place | user) of all users, shape (users, places)."""
        return np.stack([self._law(visits) for visits in self.counts.toarray()])

    def without(self, user: int, places: np.ndarray) -> np.ndarray:
        """The law of one user who was not seen at these places (numbers, with repetitions)."""
        visits = self.counts[user].toarray()[0]
        visits -= np.bincount(places, minlength=len(visits))
        return self._law(visits)

    def numbers(self, points: np.ndarray) -> np.ndarray:
        """The number of each point's place, -1 where it is none of them."""
        listed = {key: at for at, key in enumerate(millimetres(self.places))}
        return np.array([listed.get(key, -1) for key in millimetres(points)], dtype=np.int64)


def _times(*keys: np.ndarray) -> np.ndarray:
    """How often the combination of keys in each row occurs."""
    code = keys[0].astype(np.int64)
    for key in keys[1:]:
        code = np.unique(code * (int(key.max()) + 1) + key, return_inverse=True)[1].ravel()
    code = np.unique(code, return_inverse=True)[1].ravel()
    return np.asarray(np.bincount(code)[code])


def _left_out(
    who: np.ndarray, trace: np.ndarray, place: np.ndarray, base: np.ndarray, level: np.ndarray
) -> np.ndarray:
    """The chance of each visit at one level, by all that is known but for its own trace."""
    cell = level[place]
    here = _times(trace, cell)
    others = _times(who) - _times(trace)
    share = np.divide(_times(who, cell) - here, others, out=np.zeros(len(who)), where=others > 0)
    inside = np.bincount(level, weights=base)[cell] - here
    return np.asarray(share * (base[place] - _times(trace, place)) / inside)


# Adversaries --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """The share of traces whose user the best guess names, by adversary; lower is more private.

    `law` knows the mechanism's law and named true places; `chain` as well, with how each user goes
    from place to place; `history` has named reports of other traces and nothing else; `period` is
    `law` when names change with the period for which reports are kept, so that one period of a
    trace is all that is linked; `all` knows what `law` and `history` know; `counts` what `law`
    knows and how many check-ins named traces have.  Estimates with Wilson's 95 % interval over
    traces.  `loss_m` is the mean distance of the reports, in metres, and
    `loss_error_m` its standard error, by what users differ: a kept report is one draw, however
    often it is sent.
    """

    loss_m: float
    loss_error_m: float
    shares: Mapping[Who, Estimate]
    traces: int

    def __getitem__(self, who: Who) -> Estimate:
        return self.shares[who]

    @property
    def worst(self) -> Estimate:
        """Of the adversary who finds most."""
        return max(self.shares.values(), key=lambda share: share.value)


@dataclass(frozen=True, eq=False)
class Released:
    """What an adversary may know of how reports come about, and the reports of all rows of traces.

    `mechanism` is the one that draws, `answer` gives the place that is answered in place of a true
    one, `reports` are in metres.  `period` numbers the period of each row within which a report is
    kept for a place, None where each is a new draw.  Where whole periods may be sent from one
    place, `one_place` is the rule and `sent_from` the number of each row's place, -1 for the usual
    reports.
    """

    mechanism: Mechanism
    reports: np.ndarray = field(repr=False)
    period: np.ndarray | None = field(default=None, repr=False)
    answer: Callable[[np.ndarray], np.ndarray] = field(default=lambda points: points, repr=False)
    one_place: OnePlace | None = None
    sent_from: np.ndarray | None = field(default=None, repr=False)

    @property
    def usual(self) -> np.ndarray:
        """Which rows are reported as usual."""
        if self.sent_from is None:
            return np.ones(len(self.reports), dtype=bool)
        return self.sent_from < 0


def find_traces(
    traces: Traces,
    released: Released,
    who: Sequence[Who] = WHO,
    *,
    progress: Callable[[str], None] = lambda text: None,
) -> Found:
    """How often adversaries name the user of a trace from its reports.

    `traces`, of which the named ones are known with user, true places and reports, and the others
    are to be found; `released`, the reports of all rows and how they came about; `who`, the
    adversaries (see `Found`).  Where two users are as likely, a guess counts half.

    >>> from sfumato.data.samples import Samples
    >>> from sfumato.mechanism.simple import Identity
    >>> truth = np.array([[0.0, 0.0], [0.0, 0.0], [900.0, 0.0], [900.0, 0.0]])
    >>> traces = Traces.of(Samples([0, 0, 1, 1], truth, ("ann", "bob")), ["a", "b", "a", "b"])
    >>> find_traces(traces, Released(Identity(), truth), ("law", "history"))["law"].value
    1.0
    """
    return find_in_parts(traces, released, [traces.attacked], who, progress=progress)[0]


def find_in_parts(
    traces: Traces,
    released: Released,
    parts: Sequence[np.ndarray],
    who: Sequence[Who] = WHO,
    *,
    progress: Callable[[str], None] = lambda text: None,
) -> tuple[Found, ...]:
    """As `find_traces`, for several lists of numbers of traces: what is found in each."""
    users = len(traces.samples.secrets)
    numbers = np.unique(traces.trace[traces.named])
    prior = _log(np.bincount(traces.users[numbers], minlength=users))
    attack = _Attack.prepared(traces, released, who)
    done, total, findings = 0, sum(map(len, parts)), []
    for part in parts:
        hits: dict[Who, list[float]] = {name: [] for name in who}
        lost, sent = np.zeros(users), np.zeros(users)
        for number in part.tolist():
            if done % 100 == 0:
                progress(f"{done} of {total} traces")
            done += 1
            rows = traces.rows_of(number)
            user = int(traces.samples.secret[rows.start])
            off = traces.samples.truth[rows] - released.reports[rows]
            lost[user] += np.hypot(off[:, 0], off[:, 1]).sum()
            sent[user] += len(off)
            for name, scores in attack.scores(rows, who):
                hits[name].append(_hit(scores + prior, user))
        mean = float(lost.sum() / sent.sum())
        apart = lost - mean * sent
        findings.append(
            Found(
                loss_m=mean,
                loss_error_m=float(np.sqrt(apart @ apart) / sent.sum()),
                shares={name: _share(np.array(hits[name])) for name in who},
                traces=len(part),
            )
        )
    return tuple(findings)


def _log(values: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(values)


def _hit(scores: np.ndarray, user: int) -> float:
    """Whether the user is the best guess; where several are, the chance of naming the right one."""
    best = scores >= scores.max() - 1e-9
    return float(best[user] / best.sum())


def _share(hits: np.ndarray) -> Estimate:
    errs = "low: others may guess better"
    return Estimate.share(float(hits.mean()), len(hits), hits=len(hits), errs=errs)


class _View(NamedTuple):
    """P(report | user) of the reports of one trace, shape (users, reports), by what is known."""

    law: np.ndarray | None = None
    history: np.ndarray | None = None
    exact: np.ndarray | None = None  # the share of each user's named reports that are this one


@dataclass(frozen=True, eq=False)
class _Pushed:
    """P(report | user): the laws of places pushed through the mechanism, each report once."""

    table: np.ndarray  # P(place | user), users by places
    chances: ReportChances
    reports: np.ndarray  # each once
    number: np.ndarray  # of each row's report
    done: np.ndarray
    laws: np.ndarray | None  # users by reports; None where that is too large to be held

    @classmethod
    def empty(cls, table: np.ndarray, chances: ReportChances, reports: np.ndarray) -> "_Pushed":
        """Nothing computed yet."""
        each, number = np.unique(reports, axis=0, return_inverse=True)
        fits = len(table) * len(each) <= MOST_ENTRIES
        laws = np.empty((len(table), len(each))) if fits else None
        return cls(table, chances, each, number.ravel(), np.zeros(len(each), dtype=bool), laws)

    def of(self, rows: slice) -> np.ndarray:
        """Of the reports of some rows, shape (users, rows)."""
        at = self.number[rows]
        if self.laws is None:
            return self.chances.after(self.table, self.reports[at])
        new = np.unique(at[~self.done[at]])
        if len(new):
            self.laws[:, new] = self.chances.after(self.table, self.reports[new])
            self.done[new] = True
        return self.laws[:, at]

    def without(self, user: int, own: np.ndarray, rows: slice) -> np.ndarray:
        """The same where one user's law of places is `own`: each chance is worked out once."""
        at = self.number[rows]
        laws = self.chances.after(np.vstack([self.table, own]), self.reports[at])
        law = laws[:-1].copy()
        if self.laws is not None:
            self.laws[:, at], self.done[at] = law, True
        law[user] = laws[-1]
        return law


@dataclass(frozen=True, eq=False)
class _Places:
    """P(place | user, number of check-ins) of a rule for one place: its mean over the user's named
    periods, had they that many check-ins; over periods recombined of the user's check-ins; and over
    everybody's: mixed as makes the places of named periods likeliest, each predicted from others.
    """

    rule: OnePlace
    user: np.ndarray  # of each named period, then of each recombined one
    distances: np.ndarray
    drawn: np.ndarray  # is the period recombined?
    weights: np.ndarray  # of the user's own periods, of the recombined and of everybody's
    known: dict[int, np.ndarray] = field(default_factory=dict)  # by number of check-ins

    @classmethod
    def learned(cls, traces: Traces, released: Released) -> "_Places":
        """From the named traces, period by period."""
        rule, sent, periods = released.one_place, released.sent_from, released.period
        assert rule is not None and sent is not None and periods is not None
        named = np.flatnonzero(traces.named)
        keys = np.column_stack([traces.trace[named], periods[named]])
        order = np.lexsort(keys.T[::-1])
        first = np.flatnonzero(np.any(np.diff(keys[order], axis=0, prepend=-1), axis=1))
        rows, counts = named[order], np.diff(first, append=len(named))
        user, users = traces.samples.secret[rows[first]], len(rule.users)
        if rule.before:
            return cls(rule, user, np.empty((0, 0)), np.empty(0), np.empty(0))
        part = parts_of(traces.seconds, rule.parts, len(traces.trace))[rows]
        truth, random = traces.samples.truth[rows], generator(0)

        def redrawn(some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            """Users and distances of some periods, recombined of their own check-ins."""
            at, starts = np.repeat(some, counts), np.cumsum(counts[some]) - counts[some]
            who, when = np.repeat(user, counts)[at], part[at]
            draws = [
                mean_distances(recombined(who, truth[at], when, random), starts, rule.places, when)
                for _ in range(_REDRAWN)
            ]
            return np.tile(user[some], _REDRAWN), np.vstack(draws)

        distances = mean_distances(truth, first, rule.places, part)
        law = _with_usual(rule.chances(user, distances, counts))
        total, times = np.zeros((users, law.shape[1])), np.bincount(user, minlength=users)
        np.add.at(total, user, law)
        others = (total[user] - law) / np.maximum(times[user] - 1, 1)[:, None]
        row, at = np.arange(len(user)), sent[rows[first]]
        likely = np.column_stack([others[row, at], np.zeros(len(user)), law.mean(axis=0)[at]])
        fold = (row - np.searchsorted(user, user)) % _FOLDS
        for number in range(_FOLDS):
            who, far = redrawn(fold != number)
            for period in np.flatnonzero(fold == number).tolist():
                own = far[who == user[period]]
                chances = rule.chances(
                    who[who == user[period]], own, np.full(len(own), counts[period])
                )
                likely[period, 1] = _with_usual(chances)[:, at[period]].mean() if len(own) else 0.0
        drawn = redrawn(np.ones(len(user), dtype=bool))
        return cls(
            rule,
            np.append(user, drawn[0]),
            np.vstack([distances, drawn[1]]),
            np.repeat([False, True], [len(user), len(drawn[0])]),
            mixture_weights(likely[times[user] > 1]),
        )

    def of(self, count: int) -> np.ndarray:
        """Shape (users, places + 1): the last is the usual reports."""
        count = 0 if self.rule.before else count
        if count not in self.known:
            self.known[count] = self._of(count)
        return self.known[count]

    def _of(self, count: int) -> np.ndarray:
        users = len(self.rule.users)
        if self.rule.before:
            return _with_usual(self.rule.chances(np.arange(users)))
        law = self.rule.chances(self.user, self.distances, np.full(len(self.user), count))
        law = _with_usual(law)
        mean = np.zeros((2, users, law.shape[1]))
        np.add.at(mean, (self.drawn.astype(int), self.user), law)
        times = np.bincount(self.user[~self.drawn], minlength=users)[:, None]
        own, redrawn, every = self.weights
        mixed = (own * mean[0] + redrawn / _REDRAWN * mean[1]) / np.maximum(times, 1)
        return np.asarray(mixed + every * law[~self.drawn].mean(axis=0))


def _class_of(count: np.ndarray) -> np.ndarray:
    """Numbers of check-ins in classes, each a quarter wider than the one before."""
    classes = np.floor(np.log(count) / np.log(1.25)).astype(np.int64)
    return np.asarray(np.minimum(classes, _CLASSES - 1))


def _length_laws(traces: Traces) -> np.ndarray:
    """ln P(class of the number of check-ins | user) from named traces: the user's own, and a little
    of everybody's, as is best for each named trace by the user's others."""
    numbers = np.unique(traces.trace[traces.named])
    user, users = traces.users[numbers], len(traces.samples.secrets)
    kind = _class_of(np.bincount(traces.trace)[numbers])
    table = np.zeros((users, _CLASSES))
    np.add.at(table, (user, kind), 1.0)
    every = (table.sum(axis=0) + _UNSEEN) / (table.sum() + _UNSEEN * _CLASSES)
    times = table.sum(axis=1)
    others = (table[user, kind] - 1) / np.maximum(times[user] - 1, 1)
    likely = np.column_stack([others, every[kind]])[times[user] > 1]
    own, rest = mixture_weights(likely)
    return _log(own * table / np.maximum(times, 1)[:, None] + rest * every)


def _with_usual(chances: np.ndarray) -> np.ndarray:
    return np.column_stack([chances, np.maximum(1 - chances.sum(axis=1), 0.0)])


@dataclass(frozen=True, eq=False)
class _Attack:
    """What was learned from named traces, ready to look at others."""

    released: Released
    cache: "_Pushed | None"  # P(report | user) by the law
    chances: ReportChances | None
    history: np.ndarray | None  # P(report place | user)
    exact: np.ndarray | None  # shares of named reports, users by report places
    report_numbers: np.ndarray | None  # the report place of each row
    chain: "Chains | None"
    firsts: np.ndarray | None  # of each row: does it repeat no report of its trace and period?
    places: _Places | None = None
    lengths: np.ndarray | None = None  # ln P(number of check-ins, in classes | user)
    mixed: float = 0.0  # the weight of exact matches beside the law
    joined: _Joined = "both"  # what the adversary who knows all goes by
    once: Mapping[Who, bool] = field(default_factory=dict)  # is a repeated report left out?

    @classmethod
    def prepared(cls, traces: Traces, released: Released, who: Sequence[Who]) -> "_Attack":
        """Learn from the named traces."""
        named, users = traces.named, len(traces.samples.secrets)
        known = (traces.samples.secret[named], traces.trace[named])
        truth, reports = traces.samples.truth[named], released.reports
        laws = history = chances = cache = shares = numbers = chain = None
        if {"law", "chain", "period", "all", "counts"} & set(who):
            laws = PlaceLaws.learned(*known, truth, users=users)
            chances = _chances(released, laws.places)
            shown = np.unique(reports[released.usual], axis=0)
            unexplained = shown[~chances.possible(shown)]
            if len(unexplained):  # a report that no known place can have sent: perhaps the truth
                laws = PlaceLaws.learned(*known, truth, users=users, more=unexplained)
                chances = _chances(released, laws.places)
            table = laws.table()
            cache = _Pushed.empty(table, chances, reports)
            if "chain" in who:
                chain = Chains.learned(laws, known, truth, table)
        if {"history", "all"} & set(who):
            history = PlaceLaws.learned(
                known[0],
                _drawn_apart(traces, released)[named],
                reports[named],
                users=users,
                more=reports,
            )
            numbers = history.numbers(reports)
            shares = history.counts.toarray()
            shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1.0)
        spread = None if history is None else history.table()
        firsts = None
        if released.period is not None:
            keys = np.column_stack([traces.trace, released.period, reports])
            firsts = np.zeros(len(reports), dtype=bool)
            firsts[np.unique(keys, axis=0, return_index=True)[1]] = True
        places = None if released.one_place is None else _Places.learned(traces, released)
        lengths = _length_laws(traces) if "counts" in who else None
        attack = cls(
            released, cache, chances, spread, shares, numbers, chain, firsts, places, lengths
        )
        return attack._settled(traces, laws, history, who)

    def _settled(
        self,
        traces: Traces,
        laws: PlaceLaws | None,
        history: PlaceLaws | None,
        who: Sequence[Who],
    ) -> "_Attack":
        """How law and history are joined, and whether kept reports count once: as is best for some
        named traces, each looked at without itself."""
        kept = self.released.period is not None
        if not (kept or "all" in who):
            return self
        practice = self._practice(traces, laws, history)
        mixed = 0.0
        if "all" in who:
            pairs = [
                np.stack([view.law[user], view.exact[user]], axis=1)
                for user, _, view in practice
                if view.law is not None and view.exact is not None
            ]
            mixed = float(mixture_weights(np.vstack(pairs))[1]) if pairs else 0.0
        attack = replace(self, mixed=mixed)

        def hits_of(name: Who, attack: _Attack, thin: bool) -> float:
            trials = replace(attack, once={name: thin})
            return sum(
                _hit(trials._likelihoods(name, rows, view).sum(axis=1), user)
                for user, rows, view in practice
            )

        ways: tuple[_Joined, ...] = ("both", "law", "history")
        thinner = (True, False) if kept else (False,)
        once: dict[Who, bool] = {}
        for name in who:
            tried = [
                (replace(attack, joined=way), thin)
                for way in (ways if name == "all" else (attack.joined,))
                for thin in thinner
            ]
            hits = [hits_of(name, *trial) for trial in tried]
            best, once[name] = tried[int(np.argmax(hits))]
            attack = best
        return replace(attack, once=once)

    def _practice(
        self, traces: Traces, laws: PlaceLaws | None, history: PlaceLaws | None
    ) -> list[tuple[int, slice, _View]]:
        """Named traces as they look to who does not know these very ones."""
        numbers = np.unique(traces.trace[traces.named])
        place = None if laws is None else laws.numbers(traces.samples.truth)
        group, secret = _drawn_apart(traces, self.released), traces.samples.secret
        parts = np.unique(np.column_stack([secret, group])[traces.named], axis=0)
        several = np.bincount(parts[:, 0], minlength=len(traces.samples.secrets)) > 1
        views: list[tuple[int, slice, _View]] = []
        entries = 0
        for number in generator(0).permutation(numbers).tolist():
            rows = traces.rows_of(number)
            user = int(traces.samples.secret[rows.start])
            entries += (rows.stop - rows.start) * len(several)
            if len(views) == _PRACTICE or (views and entries > _MOST_PRACTICE):
                break
            if not several[user]:
                continue
            own = traces.named & (secret == user)
            same = own & np.isin(group, group[rows])
            if same.sum() == own.sum():  # nothing of the user is left
                continue
            law = None
            if laws is not None and place is not None and self.cache is not None:
                law = self.cache.without(user, laws.without(user, place[rows]), rows)
            view = self.view(rows, law)
            if history is not None and view.history is not None and view.exact is not None:
                assert self.report_numbers is not None
                at = self.report_numbers[rows]
                left_out = self.report_numbers[same]
                view.history[user] = history.without(user, left_out)[at]
                others = history.counts[user].toarray()[0]
                others -= np.bincount(left_out, minlength=len(others))
                view.exact[user] = others[at] / max(others.sum(), 1.0)
            views.append((user, rows, view))
        return views

    def view(self, rows: slice, law: np.ndarray | None = None) -> _View:
        """The reports of a trace as this adversary sees them; `law` where that is known."""
        history = exact = None
        if law is None and self.cache is not None:
            law = self.cache.of(rows)
        if self.history is not None and self.exact is not None:
            assert self.report_numbers is not None
            at = self.report_numbers[rows]
            history, exact = self.history[:, at], self.exact[:, at]
        return _View(law, history, exact)

    def _likelihoods(self, name: Who, rows: slice, view: _View) -> np.ndarray:
        """ln P(report | user) of the reports that count; 0 for all users at those that do not."""
        way = {"history": "history", "all": self.joined}.get(name, "law")
        if way == "history":
            assert view.history is not None
            chances = view.history
        else:
            assert view.law is not None
            chances = view.law
            if way == "both" and view.exact is not None:
                chances = (1 - self.mixed) * view.law + self.mixed * view.exact
        logs = _log(chances)
        logs[:, ~self._counts(name, rows) | ~np.isfinite(logs).any(axis=0)] = 0.0
        return logs if way == "history" else self._with_places(logs, rows)

    def _with_places(self, logs: np.ndarray, rows: slice) -> np.ndarray:
        """With what the places of whole periods tell, put to the first row of each; the reports of
        a period from one place tell no more than that."""
        if self.places is None:
            return logs
        sent, period = self.released.sent_from, self.released.period
        assert sent is not None and period is not None
        for piece in np.unique(period[rows]):
            at = np.flatnonzero(period[rows] == piece)
            place = int(sent[rows][at[0]])
            if place >= 0:
                logs[:, at] = 0.0
            logs[:, at[0]] += _log(self.places.of(len(at))[:, place])
        return logs

    def _counts(self, name: Who, rows: slice) -> np.ndarray:
        """Which rows of a trace count: all, or only those that repeat no report of their period."""
        if self.firsts is None or not self.once.get(name):
            return np.ones(rows.stop - rows.start, dtype=bool)
        return self.firsts[rows]

    def scores(self, rows: slice, who: Sequence[Who]) -> list[tuple[Who, np.ndarray]]:
        """ln P(reports | user) of all users, by adversary; of each single period for `period`."""
        view = self.view(rows)
        scores: list[tuple[Who, np.ndarray]] = []
        for name in who:
            if name == "chain":
                assert self.chain is not None and self.chances is not None and view.law is not None
                count = self._counts(name, rows) & self.released.usual[rows]
                chances = self.chances.of(self.released.reports[rows][count])
                places = self._with_places(np.zeros_like(view.law), rows).sum(axis=1)
                scores.append((name, self.chain.scores(chances, view.law[:, count]) + places))
                continue
            logs = self._likelihoods(name, rows, view)
            if name != "period":
                total = logs.sum(axis=1)
                if name == "counts":
                    assert self.lengths is not None
                    total = total + self.lengths[:, _class_of(np.array([logs.shape[1]]))[0]]
                scores.append((name, total))
                continue
            period = self.released.period
            pieces = np.arange(logs.shape[1]) if period is None else period[rows]
            for piece in np.unique(pieces):
                scores.append((name, logs[:, pieces == piece].sum(axis=1)))
        return scores


def _drawn_apart(traces: Traces, released: Released) -> np.ndarray:
    """The parts of named traces that are left out together to learn what reports of a user tell
    about other reports of theirs, a number for each row.

    These are the traces; but where several of them reach into one period, and share the reports
    that are kept for it, while traces to be found mostly lie in periods of which their user has no
    named trace, these are the periods.  Else matches would be counted on that never come.
    """
    period = released.period
    if period is None:
        return traces.trace
    keys = np.unique(np.column_stack([traces.samples.secret, period]), axis=0, return_inverse=True)[
        1
    ].ravel()
    known = np.isin(keys[~traces.named], keys[traces.named])
    both = np.unique(np.column_stack([traces.trace, keys])[traces.named], axis=0)
    shared = len(both) > len(np.unique(both[:, 1]))
    return keys if shared and known.size and known.mean() < _SHARED else traces.trace


def _chances(released: Released, places: np.ndarray) -> ReportChances:
    chances = released.mechanism.chances_at(released.answer(places))
    if chances is None:
        raise ProblemError(
            f"the law of this mechanism ('{released.mechanism.kind}') is not known, and"
            " adversaries on traces need it; snap it to a grid, or measure a mechanism whose law is"
            " known"
        )
    return chances


# Chains -------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Chains:
    """A Markov chain for each user over the user's own places and `elsewhere`.

    From one of the own places the next is, with chance `stay` the same, with chance `follow` as
    the user went on from there in named traces, else drawn from the user's law of places; from
    elsewhere, and where nothing is known, it is drawn.  Elsewhere stands for all other places, each
    visit with a place of its own.  With stay and follow 0 it is the product of the laws.

    The forward pass is exact: P(z_1..z_n | x) in n times (own places + known steps).
    """

    place: np.ndarray = field(repr=False)  # of each state
    user: np.ndarray = field(repr=False)  # of each state, in blocks
    chance: np.ndarray = field(repr=False)  # the law of places at each state
    steps: sparse.csr_matrix = field(repr=False)  # P(next state | state) as in named traces
    stay: float
    follow: float
    users: int

    @classmethod
    def learned(
        cls,
        laws: PlaceLaws,
        known: tuple[np.ndarray, np.ndarray],
        truth: np.ndarray,
        table: np.ndarray,
    ) -> "Chains":
        """From named visits in the order of time; the two chances are those that make each trace
        likeliest, predicted from the user's others."""
        who, trace = known
        owned = laws.counts.tocoo()
        order = np.lexsort((owned.col, owned.row))
        user, place = owned.row[order].astype(np.int64), owned.col[order].astype(np.int64)
        state_of = sparse.csr_matrix(
            (np.arange(1, len(user) + 1), (user, place)), shape=laws.counts.shape
        )
        visited = laws.numbers(truth)
        state = np.asarray(state_of[who, visited]).ravel() - 1
        within = np.flatnonzero(trace[1:] == trace[:-1])
        before, after = state[within], state[within + 1]
        size = len(user)
        steps = sparse.csr_matrix((np.ones(len(within)), (before, after)), shape=(size, size))
        total = np.asarray(steps.sum(axis=1)).ravel()
        steps = sparse.diags(np.divide(1.0, total, out=np.zeros(size), where=total > 0)) @ steps
        stay = follow = 0.0
        if len(within):
            drawn = laws.predicted[within + 1]
            own = trace[within + 1]
            others = _times(before) - _times(own, before)
            again = _times(before, after) - _times(own, before, after)
            went = np.where(others > 0, again / np.maximum(others, 1), drawn)
            likelihoods = np.stack([(before == after).astype(float), went, drawn], axis=1)
            stay, follow = (float(weight) for weight in mixture_weights(likelihoods)[:2])
        return cls(
            place,
            user,
            table[user, place],
            sparse.csr_matrix(steps),
            stay,
            follow,
            laws.counts.shape[0],
        )

    def scores(self, chances: np.ndarray, by_law: np.ndarray) -> np.ndarray:
        """ln P(reports | user), by the forward pass.

        `chances` is P(report | place), shape (places, reports); `by_law` is P(report | user) by the
        law of places, shape (users, reports).
        """
        emitted = chances[self.place]
        own = np.zeros_like(by_law)
        np.add.at(own, self.user, self.chance[:, None] * emitted)
        elsewhere = np.maximum(by_law - own, 0.0)  # P(elsewhere, report)
        follow = np.where(np.diff(self.steps.indptr) > 0, self.follow, 0.0)
        drawn = 1 - self.stay - follow
        onward = self.steps.T.tocsr()
        total = np.zeros(self.users)
        at, rest = np.zeros(len(self.place)), np.ones(self.users)  # before the first: elsewhere
        for step in range(chances.shape[1]):
            flow = np.bincount(self.user, weights=drawn * at, minlength=self.users) + rest
            at = self.stay * at + onward @ (follow * at) + flow[self.user] * self.chance
            at *= emitted[:, step]
            rest = flow * elsewhere[:, step]
            weight = np.bincount(self.user, weights=at, minlength=self.users) + rest
            if not weight.any():  # a report that nobody can have sent tells nothing
                at, rest = np.zeros(len(self.place)), np.ones(self.users)
                continue
            total += _log(weight)
            weight[weight == 0] = 1.0
            at, rest = at / weight[self.user], rest / weight
        return total

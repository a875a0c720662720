"""The best choice of one place for whole periods (`sfumato.mechanism.one_place`), and a proof.

Of periods i of users x, with shares p_i, n_i check-ins and mean distances c_iz to places z, and a
share f found of what is sent as usual, it lowers what who knows the law finds,

    V = sum_z max_x sum_{i of x} p_i m_iz + f sum_i p_i (1 - sum_z m_iz),

over chances m within sum_i p_i n_i sum_z m_iz c_iz <= L sum_i p_i n_i.  The dual has the guesses
b_xz >= 0 of who sees z, sum_x b_xz = 1, and a price of a metre:

    D = sum_i p_i min(f, min_z (b_xz + price n_i c_iz)) - price L sum_i p_i n_i.

The minimum is softened, so that the choice is a smooth function of the period and holds for those
to come.  Then the dual is smooth, mirror ascent raises it, and its slope is the choice.
"""

from dataclasses import dataclass, replace

import numpy as np

from sfumato.data.traces import Traces
from sfumato.errors import DataError, ProblemError, arg
from sfumato.mechanism.one_place import OnePlace, mean_distances
from sfumato.randomness import generator

SPREAD = 0.02  # of the softened minimum; in shares of periods found
_STEPS = 1000
_RATE, _PRICE_RATE, _FLOOR_RATE = 0.5, 0.25, 0.1  # of the ascent, falling as one over root steps
_SETTLED = 50  # steps after which the rates fall
_HALVINGS = 40
_PRICES = 1e-6, 1e6  # of the whole budget, in shares of periods found
_ACROSS = 24  # cells of candidates along the longer side of where check-ins are
_MOST, _SEEDS = 160, 40  # places; those around which finer ones are tried
_FOLDS = 3
_NEVER = 50.0  # spreads
_OFF_GRID_M = 0.5  # of the corner of a metre: usual reports are never there


@dataclass(frozen=True, eq=False)
class _Periods:
    """Periods: the user of each, its share, its check-ins, and all points one after another."""

    user: np.ndarray
    share: np.ndarray
    count: np.ndarray
    points: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, traces: Traces, numbers: np.ndarray) -> "_Periods":
        rows = [traces.rows_of(number) for number in numbers.tolist()]
        every = np.concatenate([np.arange(one.start, one.stop) for one in rows])
        count = np.array([one.stop - one.start for one in rows])
        user = np.array([traces.samples.secret[one.start] for one in rows])
        starts = np.cumsum(count) - count
        share = np.full(len(rows), 1 / len(rows))
        return cls(user, share, count.astype(float), traces.samples.truth[every], starts)

    @property
    def checkins(self) -> float:
        """Of a period, on average."""
        return float(self.share @ self.count)

    def of_users(self) -> "_Periods":
        """One for each user, who stands for all of the user's: what is known before a period."""
        each, first = np.unique(self.user, return_index=True)  # traces are user by user
        share = np.add.reduceat(self.share, first)
        count = np.add.reduceat(self.share * self.count, first) / share
        return _Periods(each, share, count, self.points, self.starts[first])

    def distances(self, places: np.ndarray) -> np.ndarray:
        return mean_distances(self.points, self.starts, places)


@dataclass(frozen=True, eq=False)
class OnePlaceFound:
    """A rule, and of the named periods: what one place costs them in metres, what who knows the law
    finds, and what is found at least by any choice among the rule's places of that loss."""

    rule: OnePlace
    loss_m: float
    found: float
    found_at_least: float


@dataclass(frozen=True)
class _Asked:
    """What a rule is made for."""

    users: tuple[str, ...]
    before: bool
    spread: float
    least_hidden: float
    as_usual: float

    def rule(
        self, periods: _Periods, distances: np.ndarray, places: np.ndarray, max_loss: float
    ) -> OnePlace:
        """The rule for periods, within a mean loss of these very periods."""
        guesses, usual = self._ascent(periods, distances, max_loss)
        low, high = np.array(_PRICES) / (max_loss * periods.checkins)
        made = OnePlace(places, self.users, guesses, usual, high, self.spread)
        for _ in range(_HALVINGS):
            middle = float(np.sqrt(low * high))
            made = replace(made, price=middle)
            over = _loss(periods, distances, _chances(made, periods, distances)) > max_loss
            low, high = (middle, high) if over else (low, middle)
        return replace(made, price=float(high))

    def _ascent(
        self, periods: _Periods, distances: np.ndarray, max_loss: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """The guesses b (users, places) and what usual reports tell, by user."""
        users, (count, size) = len(self.users), distances.shape
        present, first = np.unique(periods.user, return_index=True)  # periods are user by user
        shares = np.add.reduceat(periods.share, first)
        at = np.searchsorted(present, periods.user)
        weight = (periods.share * count).astype(np.float32)[:, None]
        metres = (periods.count / periods.checkins)[:, None] * distances / max_loss
        metres = metres.astype(np.float32)
        logs = np.zeros((len(present), size), dtype=np.float32)
        price, floor = 0.3, np.zeros(len(present))
        total_guesses, total_floor = np.zeros((len(present), size)), np.zeros(len(present))
        gain, off = np.empty_like(metres), np.empty_like(metres)  # kept: new ones cost more
        for step in range(_STEPS):
            guesses = np.exp(logs - logs.max(axis=0))
            guesses /= guesses.sum(axis=0)
            worth = ((self.as_usual + floor)[:, None] - guesses).astype(np.float32)
            np.take(worth, at, axis=0, out=gain, mode="clip")
            gain -= np.multiply(metres, np.float32(price), out=off)
            gain /= np.float32(self.spread)
            top = np.maximum(gain.max(axis=1, keepdims=True), 0.0)
            gain -= top
            np.exp(gain, out=gain)
            gain *= weight / (gain.sum(axis=1, keepdims=True) + np.exp(-top))
            sent = np.add.reduceat(gain, first)
            rate = 1 / np.sqrt(1 + step / _SETTLED)
            logs += np.float32(_RATE * rate) * sent
            used = float(np.einsum("ij,ij->", gain, metres)) / count
            price = float(np.clip(price * np.exp(_PRICE_RATE * rate * (used - 1)), *_PRICES))
            missed = self.least_hidden - sent.sum(axis=1) / count / shares
            floor = np.maximum(0.0, floor + _FLOOR_RATE * rate * missed)
            if 2 * step >= _STEPS:
                total_guesses += guesses
                total_floor += floor
        half = _STEPS - _STEPS // 2
        every, usual = np.zeros((users, size)), np.full(users, self.as_usual)
        every[present] = total_guesses / half
        usual[present] += total_floor / half
        return every, usual


def best_one_place(
    traces: Traces,
    max_loss: float,
    *,
    before: bool = False,
    least_hidden: float = 0.0,
    found_as_usual: float = 1.0,
    spread: float = SPREAD,
    seed: int = 0,
) -> OnePlaceFound:
    """The choice of one place for traces, each of which is a period, from the named ones.

    Main arguments: `traces`; `max_loss`, the mean distance in metres that one place may cost, over
    all check-ins, in periods to come; `before`, whether the choice is made when a period begins.
    Other arguments: `least_hidden`, the least share of each user's periods that are sent from one
    place; `found_as_usual`, the share of the periods that are found when sent as usual; `spread`,
    how soft the choice is; `seed`, of the thirds.

    Periods to come cost more than those that a choice is made from: rules made without a third of
    the periods say how much more, and the budget is kept for periods to come.
    """
    if not 0 < max_loss < np.inf:
        raise ProblemError(f"{arg('max_loss')} must be above 0 metres; got {max_loss}")
    if not 0 <= least_hidden < 1:
        raise ProblemError(
            f"the least share of periods from one place must be from 0 to below 1; got"
            f" {least_hidden}"
        )
    numbers = np.unique(traces.trace[traces.named])
    if len(numbers) < 2 * len(traces.samples.secrets):
        raise DataError(
            f"{traces.samples.name} has {len(numbers)} named traces of"
            f" {len(traces.samples.secrets)} users; expected two of each user on average, to choose"
            " one place for periods to come: bring more traces"
        )
    asked = _Asked(traces.samples.secrets, before, spread, least_hidden, found_as_usual)
    every = _Periods.of(traces, numbers)
    places = _places(asked, every.of_users() if before else every, max_loss)
    aimed = max_loss / _dearer(asked, traces, numbers, places, max_loss, seed)
    periods = every.of_users() if before else every
    distances = periods.distances(places)
    rule = asked.rule(periods, distances, places, aimed)
    chances = _chances(rule, periods, distances)
    return OnePlaceFound(
        _fixed(rule, periods, distances) if before else rule,
        _loss(periods, distances, chances),
        _told(periods, chances, len(asked.users), found_as_usual),
        _at_least(asked, rule, periods, aimed),
    )


def _chances(rule: OnePlace, periods: _Periods, distances: np.ndarray) -> np.ndarray:
    return rule.chances(periods.user, distances, periods.count)


def _loss(periods: _Periods, distances: np.ndarray, chances: np.ndarray) -> float:
    """The mean distance over all check-ins, those sent as usual counted as 0."""
    lost = periods.share * periods.count * (chances * distances).sum(axis=1)
    return float(lost.sum() / periods.checkins)


def _told(periods: _Periods, chances: np.ndarray, users: int, as_usual: float) -> float:
    """V."""
    sent = np.zeros((users, chances.shape[1]))
    np.add.at(sent, periods.user, periods.share[:, None] * chances)
    return float(sent.max(axis=0).sum() + as_usual * (1 - sent.sum()))


def _fixed(rule: OnePlace, periods: _Periods, distances: np.ndarray) -> OnePlace:
    """The rule with the users' own distances put into its cost; who was not seen is never sent from
    one place."""
    cost = np.full(rule.cost.shape, rule.usual.max() + _NEVER * rule.spread)
    cost[periods.user] = rule.cost[periods.user] + (rule.price * periods.count[:, None] * distances)
    return replace(rule, cost=cost, price=0.0)


def _places(asked: _Asked, periods: _Periods, max_loss: float) -> np.ndarray:
    """Candidates: cells with check-ins, then finer ones around those that are used most."""
    low, high = periods.points.min(axis=0), periods.points.max(axis=0)
    side = max(float((high - low).max()) / _ACROSS, 1.0)
    cells, visits = np.unique(
        np.floor((periods.points - low) / side).astype(np.int64), axis=0, return_counts=True
    )
    most = cells[np.argsort(-visits, kind="stable")[:_MOST]]
    places = low + (most + 0.5) * side
    around = np.array([(0, 0), (-1, -1), (-1, 1), (1, -1), (1, 1)]) * side / 4
    for seeds in (_SEEDS, None):
        distances = periods.distances(places)
        rule = asked.rule(periods, distances, places, max_loss)
        used = np.argsort(-(periods.share @ _chances(rule, periods, distances)), kind="stable")
        if seeds is None:
            places = places[used[:_MOST]]
        else:
            finer = (places[used[:seeds], None] + around).reshape(-1, 2)
            places = np.unique(np.vstack([finer, places[used[seeds:]]]), axis=0)
    return np.floor(places) + _OFF_GRID_M / 2


def _dearer(
    asked: _Asked,
    traces: Traces,
    numbers: np.ndarray,
    places: np.ndarray,
    max_loss: float,
    seed: int,
) -> float:
    """How many times the budget periods cost that a rule was made without."""
    users = traces.users[numbers]
    part = np.empty(len(numbers), dtype=np.int64)
    random = generator(seed)
    for user in np.unique(users).tolist():
        own = np.flatnonzero(users == user)
        part[own] = (random.permutation(len(own)) + random.integers(_FOLDS)) % _FOLDS
    lost = sent = 0.0
    for fold in range(_FOLDS):
        known, others = (
            _Periods.of(traces, numbers[some]) for some in (part != fold, part == fold)
        )
        made_of = known.of_users() if asked.before else known
        distances = made_of.distances(places)
        rule = asked.rule(made_of, distances, places, max_loss)
        off = others.distances(places)
        if asked.before:
            chances = _fixed(rule, made_of, distances).chances(others.user)
        else:
            chances = _chances(rule, others, off)
        lost += _loss(others, off, chances) * others.count.sum()
        sent += others.count.sum()
    return max(lost / sent / max_loss, 1e-3)


def _at_least(asked: _Asked, rule: OnePlace, periods: _Periods, max_loss: float) -> float:
    """D for the rule's places."""
    costs = rule.price * periods.count[:, None] * periods.distances(rule.places)
    values = np.minimum(asked.as_usual, (rule.cost[periods.user] + costs).min(axis=1))
    return max(0.0, float(periods.share @ values - rule.price * max_loss * periods.checkins))

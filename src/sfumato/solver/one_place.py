"""The best choice of one place for whole periods (`sfumato.mechanism.one_place`), and a proof.

Of periods i of users x, with shares p_i, n_i check-ins and mean distances c_iz to places z, and a
share f found of what is sent as usual, it lowers what who knows the law finds,

    V = sum_z max_x sum_{i of x} p_i m_iz + f sum_i p_i (1 - sum_z m_iz),

over chances m within sum_i p_i n_i sum_z m_iz c_iz <= L sum_i p_i n_i.  The dual has the guesses
b_xz >= 0 of who sees z, sum_x b_xz = 1, and a price of a metre:

    D = sum_i p_i min(f, min_z (b_xz + price n_i c_iz)) - price L sum_i p_i n_i.

The minimum is softened, so that the choice is a smooth function of the period and holds for those
to come.  Then the dual is smooth, mirror ascent raises it, and its slope is the choice.

Who sees the reports also sees how many they are.  Where the choice is made after a period, the
guesses therefore hang on the class of its number of check-ins, and each period stands in the
program once in every class, by its user's law of classes, half of which is everybody's.

It also recombines users' check-ins into periods that might have been: beside each period stand
some that are drawn anew from its user's check-ins.

Places are moved to where they cost least: to the median of the check-ins that are sent from them,
in each part of the week.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sfumato.data.traces import Traces
from sfumato.errors import DataError, ProblemError, arg
from sfumato.mechanism.one_place import PARTS, OnePlace, mean_distances, parts_of, recombined
from sfumato.randomness import generator

SPREAD = 0.02  # of the softened minimum; in shares of periods found
_AS_USUAL = 1.0  # the share of the periods that are found when sent as usual
CLASSES = 3  # of numbers of check-ins, with as many periods each
_EVERYBODY = 0.5  # how much of a user's law of classes is everybody's
_FIRST, _MOVING, _STEPS = 150, 60, 500  # of the ascent: for candidates, after each move, at last
_FOLD_STEPS = 200  # at last, where a rule only says what periods to come cost
_RATE, _PRICE_RATE, _FLOOR_RATE = 1.6, 0.25, 0.1  # of the ascent, falling as one over root steps
_SETTLED = 50  # steps after which the rates fall
_HALVINGS = 40
_PRICES = 1e-6, 1e6  # of the whole budget, in shares of periods found
_ACROSS = 24  # cells of candidates along the longer side of where check-ins are
_MOST, _SEEDS = 128, 32  # places; those around which finer ones are tried
_MOST_WEEKS, _PER_PLACE = 256, 10  # common weeks; check-ins for each place in a part, at least
_REDRAWN = 2  # recombined periods for each
_MOVES, _TOWARDS = 4, 4  # times that places are moved, and steps towards the median each time
_NEAR_M = 20.0  # nearer check-ins pull at a median no more than from here
_HARDLY = 0.02  # a period that is sent from a place more rarely does not move it
_FOLDS = 3
_NEVER = 50.0  # spreads
_OFF_GRID_M = 0.5  # of the corner of a metre: usual reports are never there


@dataclass(frozen=True, eq=False)
class _Periods:
    """Periods: the user of each, its share, its check-ins, and all points one after another, each
    with its part of the week."""

    user: np.ndarray
    share: np.ndarray
    count: np.ndarray
    points: np.ndarray
    part: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, traces: Traces, numbers: np.ndarray, parts: int) -> "_Periods":
        rows = [traces.rows_of(number) for number in numbers.tolist()]
        every = np.concatenate([np.arange(period.start, period.stop) for period in rows])
        count = np.array([period.stop - period.start for period in rows])
        user = np.array([traces.samples.secret[period.start] for period in rows])
        part = parts_of(traces.seconds, parts, len(traces.trace))[every]
        starts = np.cumsum(count) - count
        share = np.full(len(rows), 1 / len(rows))
        return cls(user, share, count.astype(float), traces.samples.truth[every], part, starts)

    @property
    def checkins(self) -> float:
        """Of a period, on average."""
        return float(self.share @ self.count)

    def of_users(self) -> "_Periods":
        """One for each user, who stands for all of the user's: what is known before a period."""
        each, first = np.unique(self.user, return_index=True)  # traces are user by user
        share = np.add.reduceat(self.share, first)
        count = np.add.reduceat(self.share * self.count, first) / share
        return _Periods(each, share, count, self.points, self.part, self.starts[first])

    def with_recombined(self, seed: int) -> "_Periods":
        """Each as it is and recombined of its user's check-ins some times, with equal shares."""
        times, random, points = _REDRAWN + 1, generator(seed), [self.points]
        who = np.repeat(self.user, np.diff(self.starts, append=len(self.points)))
        for _ in range(_REDRAWN):
            points.append(recombined(who, self.points, self.part, random))
        return _Periods(
            np.tile(self.user, times),
            np.tile(self.share / times, times),
            np.tile(self.count, times),
            np.vstack(points),
            np.tile(self.part, times),
            np.concatenate([self.starts + len(self.points) * copy for copy in range(times)]),
        )

    def distances(self, places: np.ndarray) -> np.ndarray:
        return mean_distances(self.points, self.starts, places, self.part)


@dataclass(frozen=True, eq=False)
class _Program:
    """The rows of the program: periods, each in every class of numbers of check-ins, class by class
    and user by user."""

    period: np.ndarray
    user: np.ndarray
    kind: np.ndarray
    share: np.ndarray
    count: np.ndarray

    @classmethod
    def of(cls, periods: _Periods, edges: np.ndarray, users: int) -> "_Program":
        kind, kinds = np.searchsorted(edges, periods.count, side="right"), len(edges) + 1
        total = np.bincount(kind, weights=periods.share, minlength=kinds)
        count = np.bincount(kind, weights=periods.share * periods.count, minlength=kinds)
        own = np.zeros((users, kinds))
        np.add.at(own, (periods.user, kind), periods.share)
        own /= np.maximum(own.sum(axis=1, keepdims=True), np.finfo(float).tiny)
        law = (1 - _EVERYBODY) * own + _EVERYBODY * total
        number = np.argsort(periods.user, kind="stable")
        user = np.tile(periods.user[number], kinds)
        each = np.repeat(np.arange(kinds), len(number))
        share = law[user, each] * np.tile(periods.share[number], kinds)
        if kinds == 1:
            return cls(number, user, each, share, periods.count[number])
        mean = count / np.maximum(total, np.finfo(float).tiny)
        return cls(np.tile(number, kinds), user, each, share, mean[each])

    @property
    def checkins(self) -> float:
        return float(self.share @ self.count)


@dataclass(frozen=True, eq=False)
class OnePlaceFound:
    """A rule, and of the named periods: what one place costs them in metres, what who knows the law
    finds, and what is found at least by any choice among the rule's places of that loss; the last
    two of the periods as they stand in the program."""

    rule: OnePlace
    loss_m: float
    found: float
    found_at_least: float


class _Ascent(NamedTuple):
    """How far the ascent is: it goes on from here when places have moved a little."""

    logs: np.ndarray
    price: float
    floor: np.ndarray
    steps: int


@dataclass(frozen=True, eq=False)
class _Asked:
    """What a rule is made for."""

    users: tuple[str, ...]
    before: bool
    least_hidden: float
    edges: np.ndarray
    parts: int

    def rule(
        self,
        periods: _Periods,
        places: np.ndarray,
        max_loss: float,
        steps: int,
        since: _Ascent | None = None,
    ) -> tuple[OnePlace, _Ascent]:
        """The rule for periods, within a mean loss of these very periods."""
        distances = periods.distances(places)
        guesses, usual, ascent = self._ascent(periods, distances, max_loss, steps, since)
        low, high = np.array(_PRICES) / (max_loss * periods.checkins)
        made = OnePlace(places, self.users, guesses, usual, self.edges, high, SPREAD)
        for _ in range(_HALVINGS):
            middle = float(np.sqrt(low * high))
            made = replace(made, price=middle)
            over = _loss(periods, distances, _chances(made, periods, distances)) > max_loss
            low, high = (middle, high) if over else (low, middle)
        return replace(made, price=float(high)), ascent

    def _ascent(
        self,
        periods: _Periods,
        distances: np.ndarray,
        max_loss: float,
        steps: int,
        since: _Ascent | None,
    ) -> tuple[np.ndarray, np.ndarray, _Ascent]:
        """The guesses b (classes, users, places) and what usual reports tell, by user."""
        program = _Program.of(periods, self.edges, len(self.users))
        users, kinds, size = len(self.users), len(self.edges) + 1, distances.shape[1]
        present, first = np.unique(program.kind * users + program.user, return_index=True)
        kind, who = present // users, present % users
        at = np.searchsorted(present, program.kind * users + program.user)
        blocks = np.searchsorted(kind, np.arange(kinds))
        of_kind = np.maximum(np.bincount(program.kind, program.share, kinds), 1e-9)
        each = (len(np.unique(who)) / of_kind[kind]).astype(np.float32)[:, None]
        shares = np.bincount(who, np.add.reduceat(program.share, first), users)
        weight = program.share.astype(np.float32)[:, None]
        metres = (program.count / program.checkins / max_loss)[:, None] * distances[program.period]
        metres = metres.astype(np.float32)
        if since is None:
            flat = np.zeros((len(present), size), dtype=np.float32)
            since = _Ascent(flat, 0.3, np.zeros(users), 0)
        logs, price, floor, done = since
        logs = logs.copy()
        total_guesses, total_floor = np.zeros((len(present), size)), np.zeros(users)
        gain, off = np.empty_like(metres), np.empty_like(metres)  # kept: new ones cost more
        for step in range(steps):
            guesses = np.exp(logs - np.maximum.reduceat(logs, blocks)[kind])
            guesses /= np.add.reduceat(guesses, blocks)[kind]
            worth = ((_AS_USUAL + floor[who])[:, None] - guesses).astype(np.float32)
            worth /= np.float32(SPREAD)
            np.take(worth, at, axis=0, out=gain, mode="clip")
            gain -= np.multiply(metres, np.float32(price / SPREAD), out=off)
            top = np.maximum(gain.max(axis=1, keepdims=True), 0.0)
            gain -= top
            np.exp(gain, out=gain)
            gain *= weight / (gain.sum(axis=1, keepdims=True) + np.exp(-top))
            sent = np.add.reduceat(gain, first)
            rate = 1 / np.sqrt(1 + (done + step) / _SETTLED)
            logs += np.float32(_RATE * rate) * each * sent
            used = float(np.einsum("ij,ij->", gain, metres))
            price = float(np.clip(price * np.exp(_PRICE_RATE * rate * (used - 1)), *_PRICES))
            hidden = np.bincount(who, sent.sum(axis=1), users)
            missed = self.least_hidden - hidden / np.maximum(shares, 1e-12)
            floor = np.maximum(0.0, floor + _FLOOR_RATE * rate * missed)
            if 2 * step >= steps:
                total_guesses += guesses
                total_floor += floor
        half = steps - steps // 2
        every = np.zeros((kinds, users, size))
        every[kind, who] = total_guesses / half
        usual = _AS_USUAL + np.where(shares > 0, total_floor / half, 0.0)
        return every, usual, _Ascent(logs, price, floor, done + steps)


def check_named(traces: Traces) -> None:
    """Refuse too few traces to make a rule of."""
    named = len(np.unique(traces.trace[traces.named]))
    if named < 2 * len(traces.samples.secrets):
        raise DataError(
            f"{traces.samples.name} has {named} named traces of"
            f" {len(traces.samples.secrets)} users; expected two of each user on average, to choose"
            " one place for periods to come: bring more traces"
        )


def best_one_place(
    traces: Traces,
    max_loss: float,
    *,
    before: bool = False,
    parts: int = 1,
    least_hidden: float = 0.0,
    seed: int = 0,
) -> OnePlaceFound:
    """The choice of one place for traces, each of which is a period, from the named ones.

    Main arguments: `traces`; `max_loss`, the mean distance in metres that one place may cost, over
    all check-ins, in periods to come; `before`, whether the choice is made when a period begins;
    `parts`, how many parts of the week have a place of their own (`PARTS`).
    Other arguments: `least_hidden`, the least share of each user's periods that are sent from one
    place; `seed`, of the thirds.

    Periods to come cost more than those that a choice is made from: rules made without a third of
    the periods say how much more, and the budget is kept for periods to come.
    """
    if not 0 < max_loss < np.inf:
        raise ProblemError(
            f"{arg('max_loss')} must be a finite number above 0 metres; got {max_loss}"
        )
    if not 0 <= least_hidden < 1:
        raise ProblemError(
            f"the least share of periods from one place must be from 0 to below 1; got"
            f" {least_hidden}"
        )
    if parts not in PARTS or (parts > 1 and traces.seconds is None):
        raise ProblemError(
            f"a week has {' or '.join(map(str, PARTS))} parts, and more than one where traces have"
            f" times; got {parts}"
        )
    check_named(traces)
    numbers = np.unique(traces.trace[traces.named])
    every = _Periods.of(traces, numbers, parts)
    edges = np.empty(0) if before else _edges(every.count)
    asked = _Asked(traces.samples.secrets, before, least_hidden, edges, parts)
    periods = every.of_users() if before else every.with_recombined(seed)
    aimed = max_loss / _dearer(asked, traces, numbers, max_loss, seed)
    rule = _made(asked, periods, max_loss, aimed, _STEPS)
    distances = periods.distances(rule.places)
    shares = _told(asked, rule, periods, distances)
    rule = _fixed(rule, periods, distances) if before else rule
    own = every.distances(rule.places)
    return OnePlaceFound(rule, _loss(every, own, _chances(rule, every, own)), *shares)


def _made(asked: _Asked, periods: _Periods, max_loss: float, aimed: float, steps: int) -> OnePlace:
    """The rule of these periods, from places of their own."""
    places, ascent = _moved(asked, periods, _places(asked, periods, max_loss), max_loss)
    return asked.rule(periods, places, aimed, steps, ascent)[0]


def _edges(counts: np.ndarray) -> np.ndarray:
    """Between classes of about as many periods."""
    edges = np.unique(np.ceil(np.quantile(counts, np.arange(1, CLASSES) / CLASSES)))
    return edges[edges > counts.min()]


def _chances(rule: OnePlace, periods: _Periods, distances: np.ndarray) -> np.ndarray:
    return rule.chances(periods.user, distances, periods.count)


def _loss(periods: _Periods, distances: np.ndarray, chances: np.ndarray) -> float:
    """The mean distance over all check-ins, those sent as usual counted as 0."""
    lost = periods.share * periods.count * (chances * distances).sum(axis=1)
    return float(lost.sum() / periods.checkins)


def _told(
    asked: _Asked, rule: OnePlace, periods: _Periods, distances: np.ndarray
) -> tuple[float, float]:
    """V of the rule, and D of its guesses for what the rule costs in the program."""
    program = _Program.of(periods, rule.edges, len(asked.users))
    far = distances[program.period]
    chances = rule.chances(program.user, far, program.count)
    sent = np.zeros(rule.cost.shape)
    np.add.at(sent, (program.kind, program.user), program.share[:, None] * chances)
    vulnerability = float(sent.max(axis=1).sum() + _AS_USUAL * (1 - sent.sum()))
    costs = rule.cost[program.kind, program.user] + rule.price * program.count[:, None] * far
    values = np.minimum(_AS_USUAL, costs.min(axis=1))
    spent = rule.price * (program.share * program.count) @ (chances * far).sum(axis=1)
    return vulnerability, max(0.0, float(program.share @ values - spent))


def _fixed(rule: OnePlace, periods: _Periods, distances: np.ndarray) -> OnePlace:
    """The rule with the users' own distances put into its cost; who was not seen is never sent from
    one place."""
    cost = np.full(rule.cost.shape, rule.usual.max() + _NEVER * rule.spread)
    own = rule.cost[0, periods.user] + rule.price * periods.count[:, None] * distances
    cost[0, periods.user] = np.minimum(own, cost[0, periods.user])
    return replace(rule, cost=cost, price=0.0)


def _places(asked: _Asked, periods: _Periods, max_loss: float) -> np.ndarray:
    """Candidates: cells with check-ins, then finer ones around those that are used most, the same
    in all parts of the week; for a week with parts also the users' own common weeks.  Few check-ins
    allow few common weeks: places moved to a handful of check-ins would fit these alone."""
    whole = replace(periods, part=np.zeros_like(periods.part))
    low, high = periods.points.min(axis=0), periods.points.max(axis=0)
    side = max(float((high - low).max()) / _ACROSS, 1.0)
    cells, visits = np.unique(
        np.floor((periods.points - low) / side).astype(np.int64), axis=0, return_counts=True
    )
    most = cells[np.argsort(-visits, kind="stable")[:_MOST]]
    places = low + (most + 0.5) * side
    around = np.array([(0, 0), (-1, -1), (-1, 1), (1, -1), (1, 1)]) * side / 4
    for seeds in (_SEEDS, None):
        used = _used(asked, whole, places[:, None], max_loss)
        if seeds is None:
            places = places[used[:_MOST]]
        else:
            finer = (places[used[:seeds], None] + around).reshape(-1, 2)
            places = np.unique(np.vstack([finer, places[used[seeds:]]]), axis=0)
    if asked.parts == 1:
        return places[:, None]
    weeks = np.vstack([np.repeat(places[:, None], asked.parts, axis=1), _of_users(asked, periods)])
    enough = len(periods.points) // (1 + _REDRAWN) // asked.parts // _PER_PLACE
    used = _used(asked, periods, weeks, max_loss)
    return weeks[used[: max(1, min(_MOST_WEEKS, enough))]]


def _used(asked: _Asked, periods: _Periods, places: np.ndarray, max_loss: float) -> np.ndarray:
    """The numbers of places, the most used first."""
    rule, _ = asked.rule(periods, places, max_loss, _FIRST)
    chances = _chances(rule, periods, periods.distances(places))
    return np.argsort(-(periods.share @ chances), kind="stable")


def _of_users(asked: _Asked, periods: _Periods) -> np.ndarray:
    """A common week like each user's: the medians of check-ins in both halves of days."""
    who = np.repeat(periods.user, np.diff(periods.starts, append=len(periods.points)))
    each, who = np.unique(who, return_inverse=True)
    even, near = np.ones(len(who)), np.tile(periods.points.mean(axis=0), (len(each), 1))
    for _ in range(_MOVES):
        near = _medians(near, who, periods.points, even)
    halves = np.repeat(near, 2, axis=0)
    for _ in range(_MOVES):
        halves = _medians(halves, 2 * who + periods.part % 2, periods.points, even)
    return halves.reshape(-1, 2, 2)[:, np.arange(asked.parts) % 2]


def _medians(
    near: np.ndarray, at: np.ndarray, points: np.ndarray, weight: np.ndarray
) -> np.ndarray:
    """Some steps from places towards the medians of the points at each (Weiszfeld's iteration);
    where there is none, a place stays."""
    for _ in range(_TOWARDS):
        pull = weight / np.maximum(np.hypot(*(points - near[at]).T), _NEAR_M)
        total = np.bincount(at, pull, len(near))
        means = [np.bincount(at, pull * axis, len(near)) for axis in points.T]
        median = np.column_stack(means) / np.maximum(total, 1e-300)[:, None]
        near = np.where((total > 0)[:, None], median, near)
    return near


def _moved(
    asked: _Asked, periods: _Periods, places: np.ndarray, max_loss: float
) -> tuple[np.ndarray, _Ascent | None]:
    """Places that cost less: each at the median, in each part of the week, of the check-ins that
    are sent from it, with the rule for the places before."""
    parts = places.shape[1]
    ascent: _Ascent | None = None
    for _ in range(_MOVES):
        steps = _FIRST if ascent is None else _MOVING
        rule, ascent = asked.rule(periods, places, max_loss, steps, ascent)
        chances = _chances(rule, periods, periods.distances(places))
        period, place = np.nonzero(chances > _HARDLY)
        ends = np.append(periods.starts[1:], len(periods.points))
        count = (ends - periods.starts)[period]
        each = np.repeat(np.arange(len(period)), count)
        row = np.arange(len(each)) - np.repeat(np.cumsum(count) - count, count)
        row += periods.starts[period][each]
        weight = periods.share[period] * periods.count[period] * chances[period, place] / count
        at, points = place[each] * parts + periods.part[row], periods.points[row]
        near = _medians(places.reshape(-1, 2), at, points, weight[each])
        places = near.reshape(places.shape)
    within = np.clip(places, periods.points.min(axis=0), periods.points.max(axis=0))
    return np.floor(within) + _OFF_GRID_M / 2, ascent


def _dearer(
    asked: _Asked, traces: Traces, numbers: np.ndarray, max_loss: float, seed: int
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
            _Periods.of(traces, numbers[some], asked.parts) for some in (part != fold, part == fold)
        )
        made_of = known.of_users() if asked.before else known.with_recombined(seed)
        rule = _made(asked, made_of, max_loss, max_loss, _FOLD_STEPS)
        if asked.before:
            rule = _fixed(rule, made_of, made_of.distances(rule.places))
        off = others.distances(rule.places)
        lost += _loss(others, off, _chances(rule, others, off)) * others.count.sum()
        sent += others.count.sum()
    return max(lost / sent / max_loss, 1e-3)

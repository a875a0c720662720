"""Adversaries who look at whole traces: exact on small cases, and not blind on others."""

from itertools import product

import numpy as np
import pytest
from scipy import sparse

from sfumato.data.grid import Grid
from sfumato.data.samples import Samples
from sfumato.data.traces import Traces
from sfumato.errors import ProblemError
from sfumato.measure.traces import Chains, PlaceLaws, Released, _Places, find_traces
from sfumato.mechanism.chance import Rows, Sticky, draw
from sfumato.mechanism.custom import Function
from sfumato.mechanism.laplace import PlanarLaplace
from sfumato.mechanism.one_place import OnePlace, recombined
from sfumato.mechanism.simple import Coin, Identity
from sfumato.mechanism.wrap import Snapped


def _traces(homes, *, traces=6, length=8, spread=300.0, places=None, seed=0):
    """Users about homes, every visit somewhere new; or at a few places of their own."""
    random = np.random.default_rng(seed)
    who, trace, truth = [], [], []
    for user, home in enumerate(homes):
        own = None if places is None else home + spread * random.normal(size=(places, 2))
        for number in range(traces):
            for _ in range(length):
                who.append(user)
                trace.append(number)
                new = home + spread * random.normal(size=2)
                truth.append(new if own is None else own[random.integers(places)])
    names = tuple(f"user {number}" for number in range(len(homes)))
    seconds = np.array(trace) * 7 * 86_400 + np.tile(np.arange(length), len(homes) * traces)
    return Traces.of(Samples(who, np.array(truth), names), trace, seconds=seconds)


HOMES = np.array([[800.0 * across, 800.0 * up] for across in range(4) for up in range(4)])


# Laws of places -----------------------------------------------------------------------------------


def test_laws_of_places_are_laws_and_each_visit_is_predicted_without_its_trace():
    traces = _traces(HOMES[:3], places=4)
    who, trace, truth = traces.samples.secret, traces.trace, traces.samples.truth
    laws = PlaceLaws.learned(who, trace, truth, users=3)
    assert np.allclose(laws.table().sum(axis=1), 1)
    number = laws.numbers(truth)
    for row in (0, 17, 40, len(who) - 1):  # the slow way: learn again without the trace
        rest = trace != trace[row]
        counts = np.zeros((3, len(laws.places)))
        np.add.at(counts, (who[rest], number[rest]), 1)
        base = counts.sum(axis=0) + 0.5
        chance = 0.0
        for level, weight in zip(laws.levels, laws.weights, strict=True):
            cell = level == level[number[row]]
            share = counts[who[row], cell].sum() / counts[who[row]].sum()
            chance += weight * share * base[number[row]] / base[cell].sum()
        assert np.isclose(laws.predicted[row], chance)


def test_who_never_goes_to_a_place_twice_is_still_found():
    """Weights that are learnt from exact visits alone leave the adversary blind here."""
    traces = _traces(HOMES)
    noise = Snapped(PlanarLaplace.for_loss(200), Grid(cell_m=25))
    reports = noise.sample(traces.samples.truth, seed=1)
    found = find_traces(traces, Released(noise, reports), ("law", "chain", "history", "all"))
    truth = Snapped(Identity(), Grid(cell_m=25))
    seen = Released(truth, truth.sample(traces.samples.truth))
    bare = find_traces(traces, seen, ("law", "history"))
    assert found.traces == 32  # two of six traces of each; a blind guess finds 6 %
    assert min(share.value for share in found.shares.values()) > 0.8
    assert min(share.value for share in bare.shares.values()) > 0.8


def test_nobody_is_found_where_nothing_is_reported():
    traces = _traces(HOMES[:4])
    fixed = Coin(keep=0.0, place=(0.0, 0.0))
    reports = fixed.sample(traces.samples.truth)
    found = find_traces(traces, Released(fixed, reports))
    assert all(share.value == pytest.approx(0.25) for share in found.shares.values())
    assert found.worst.low < 0.25 < found.worst.high


def test_a_coin_that_shows_a_new_place_gives_its_user_away():
    """The place shown is none that anybody named was at."""
    traces = _traces(HOMES[:4], spread=100.0)
    coin = Coin(keep=0.5, place=(0.0, 0.0))
    found = find_traces(
        traces, Released(coin, coin.sample(traces.samples.truth, seed=1)), ("law", "chain", "all")
    )
    assert min(share.value for share in found.shares.values()) > 0.85


def test_a_kept_report_is_a_name():
    """Named history finds who keeps reports forever, and does no better on a new key."""
    traces = _traces(np.zeros((12, 2)), places=6, spread=400.0)
    noise = Snapped(PlanarLaplace.for_loss(600), Grid(cell_m=25))
    names = np.array(traces.samples.secrets)[traces.samples.secret]
    rows, shares = Rows(names, traces.seconds), {}
    for period in ("forever", "week"):
        chance = Sticky(bytes(32), period)
        reports = draw(noise, traces.samples.truth, chance, rows).reports
        when = chance.periods(rows, len(reports))
        released = Released(noise, reports, when, chance.answered)
        shares[period] = find_traces(traces, released, ("law", "history", "all"))
    assert shares["forever"]["history"].value == 1.0
    assert shares["forever"]["all"].value >= shares["forever"]["law"].value
    assert shares["week"]["history"].value < 0.7
    assert shares["week"]["all"].value < 0.9


def test_whose_law_is_not_known_is_refused():
    traces = _traces(HOMES[:2])
    own = Function(lambda truth, chance: truth + chance)
    with pytest.raises(ProblemError, match="law of this mechanism"):
        find_traces(traces, Released(own, traces.samples.truth))


# Chains -------------------------------------------------------------------------------------------


def _by_all_paths(chains, seen, by_law, user):
    """P(reports | user): the sum over all sequences of states, one after the other."""
    own = np.flatnonzero(chains.user == user)
    rest = 1 - chains.chance[own].sum()
    start = np.append(chains.chance[own], rest)
    emitted = np.vstack([seen[chains.place[own]], np.zeros(seen.shape[1])])
    emitted[-1] = (by_law[user] - chains.chance[own] @ emitted[:-1]) / rest
    steps = chains.steps[own][:, own].toarray()
    move = np.zeros((len(own) + 1, len(own) + 1))
    for state in range(len(own)):
        follow = chains.follow if steps[state].any() else 0.0
        move[state] = (1 - chains.stay - follow) * start
        move[state, state] += chains.stay
        move[state, :-1] += follow * steps[state]
    move[-1] = start
    total = 0.0
    for path in product(range(len(own) + 1), repeat=seen.shape[1]):
        chance = start[path[0]] * emitted[path[0], 0]
        for step in range(1, len(path)):
            chance *= move[path[step - 1], path[step]] * emitted[path[step], step]
        total += chance
    return total


def test_the_forward_pass_is_the_sum_over_all_paths():
    random = np.random.default_rng(3)
    truth = np.array([[0.0, 0], [500, 0], [0, 0], [0, 700], [500, 0], [500, 0], [0, 700], [0, 0]])
    who, trace = np.array([0, 0, 0, 0, 1, 1, 1, 1]), np.array([0, 0, 1, 1, 2, 2, 3, 3])
    laws = PlaceLaws.learned(who, trace, truth, users=2, more=np.array([[900.0, 900.0]]))
    table = np.array([[0.4, 0.2, 0.3, 0.1], [0.1, 0.5, 0.2, 0.2]])  # any law of places will do
    chains = Chains.learned(laws, (who, trace), truth, table)
    assert chains.stay > 0 or chains.follow > 0
    seen = random.random((4, 5))
    by_law = table @ seen
    scores = chains.scores(seen, by_law)
    for user in (0, 1):
        assert np.isclose(np.exp(scores[user]), _by_all_paths(chains, seen, by_law, user))


def test_a_chain_without_memory_is_the_product_of_the_laws():
    table = np.array([[0.6, 0.4], [0.2, 0.8]])
    nothing = sparse.csr_matrix((3, 3))
    chains = Chains(
        np.array([0, 1, 1]), np.array([0, 0, 1]), np.array([0.6, 0.4, 0.8]), nothing, 0.0, 0.0, 2
    )
    seen = np.random.default_rng(0).random((2, 50))
    assert np.allclose(chains.scores(seen, table @ seen), np.log(table @ seen).sum(axis=1))


def test_a_chain_finds_who_goes_round_the_other_way():
    """Two users share three places and the time spent there, and differ in the order alone."""
    places = np.array([[0.0, 0.0], [3000.0, 0.0], [0.0, 3000.0]])
    order = {0: (0, 1, 2), 1: (2, 1, 0)}
    rows = [
        (user, trace, places[order[user][(step + trace) % 3]])
        for user in (0, 1)
        for trace in range(6)
        for step in range(12)
    ]
    who, trace, truth = (np.array(part) for part in zip(*rows, strict=True))
    seconds = np.arange(len(rows))
    traces = Traces.of(Samples(who, truth, ("there", "back")), trace, seconds=seconds)
    noise = Snapped(PlanarLaplace.for_loss(500), Grid(cell_m=25))
    found = find_traces(traces, Released(noise, noise.sample(truth, seed=2)), ("law", "chain"))
    assert found["chain"].value == 1.0
    assert found["law"].value < 1.0


def test_chances_of_cells_agree_with_those_that_are_integrated():
    noise = PlanarLaplace.for_loss(300)
    truth = np.array([[12.0, 7.0], [400.0, -90.0]])
    for cell_m in (25.0, 200.0):
        grid = Grid(cell_m=cell_m)
        exact = noise.rows_on(truth, grid)
        far = np.hypot(*(exact.places - truth[0]).T) < 900
        chances = Snapped(noise, grid).chances_at(truth).of(exact.places[far])
        for row in (0, 1):
            wanted = exact.row(row)[1][far]
            away = np.hypot(*(exact.places[far] - truth[row]).T) > cell_m
            assert np.allclose(chances[row][away], wanted[away], rtol=0.02)
            assert np.allclose(chances[row], wanted, rtol=0.1)


# One place for whole periods ----------------------------------------------------------------------


def test_recombined_checkins_are_the_users_own_of_that_half_of_the_day():
    random = np.random.default_rng(1)
    user, part = np.repeat(np.arange(3), 40), random.integers(14, size=120)
    points = np.column_stack([10 * user + part % 2, np.arange(120)]).astype(float)
    drawn = recombined(user, points, part, random)
    assert (drawn[:, 0] == points[:, 0]).all()
    assert 40 < len(np.unique(drawn[:, 1])) < 100  # with repetitions: 76 of 120 on average


@pytest.mark.parametrize("whole", [False, True])
def test_recombined_weeks_count_where_checkins_are_independent(whole):
    """Check-ins in one of two towns, each by itself or the whole week: then only weeks that a user
    had say which town the next is sent from."""
    users, weeks, length = 8, 12, 8
    random = np.random.default_rng(2)
    often = np.linspace(0.3, 0.7, users)[:, None, None]
    drawn = random.random((users, weeks, 1 if whole else length)) < often
    there = np.broadcast_to(drawn, (users, weeks, length)).ravel()
    user = np.repeat(np.arange(users), weeks * length)
    week = np.tile(np.repeat(np.arange(weeks), length), users)
    truth = np.column_stack([4000.0 * there, np.zeros(len(there))])
    names = tuple(map(str, range(users)))
    traces = Traces.of(Samples(user, truth, names), week, named=week < weeks - 1)
    towns = np.array([[[0.0, 0.0]], [[4000.0, 0.0]]])
    flat = np.zeros((1, users, 2))
    rule = OnePlace(towns, names, flat, np.full(users, 9.0), np.empty(0), 1e-5, 0.02)
    nearer = (there.reshape(-1, length).mean(axis=1) > 0.5).astype(int)
    sent = np.repeat(nearer, length)
    released = Released(
        Identity(), towns[sent, 0], period=traces.trace, one_place=rule, sent_from=sent
    )
    own, recombining, _ = _Places.learned(traces, released).weights
    assert own > recombining + 0.3 if whole else recombining > own + 0.3

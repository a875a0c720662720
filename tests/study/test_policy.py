"""How reports are kept is chosen by what is measured, and what is measured is what is applied."""

from dataclasses import replace

import numpy as np
import pytest

import sfumato as sf
from sfumato.data.samples import Samples
from sfumato.data.traces import Traces
from sfumato.deploy.keeping import chance_for, forever_warning, kept_by_service, manifest_keeping
from sfumato.deploy.protect import protect
from sfumato.deploy.release import release
from sfumato.errors import DataError, ProblemError
from sfumato.measure.traces import find_traces
from sfumato.mechanism.chance import Secure, Sticky
from sfumato.study.folder import keep_reports, load_run
from sfumato.study.policy import FEWEST_TRACES, choose_policy
from sfumato.study.record import NEVER, Keeping, RunRecord
from sfumato.study.traces import (
    chance_of,
    released_mechanism,
    released_reports,
    rows_of,
    seeded_key,
)

USERS, TRACES, LENGTH, PLACES = 10, 63, 4, 5


def _samples(spread=500.0):
    """Users with five places each, all in one small town: (who, trace, seconds, truth)."""
    random = np.random.default_rng(4)
    own = random.normal(0, spread, (USERS, PLACES, 2)).round(1)
    who = np.repeat(np.arange(USERS), TRACES * LENGTH)
    trace = np.tile(np.repeat(np.arange(TRACES), LENGTH), USERS)
    truth = own[who, random.integers(0, PLACES, len(who))]
    seconds = trace * 7 * 86_400 + np.tile(np.arange(LENGTH) * 86_400, USERS * TRACES)
    return who, trace, seconds, truth


@pytest.fixture(scope="module")
def traces():
    who, trace, seconds, truth = _samples()
    names = tuple(f"user {number}" for number in range(USERS))
    return Traces.of(Samples(who, truth, names), trace, seconds=seconds)


@pytest.fixture(scope="module")
def folder(traces, tmp_path_factory):
    """A run of planar Laplace noise on these users."""
    few = traces.samples.take(np.arange(0, len(traces.samples), 20))
    folder = tmp_path_factory.mktemp("policy") / "run"
    region = sf.data.Region((0.0, 0.0), 5000.0)
    problem = sf.Problem(replace(few, region=region), max_loss=600, cell_m=100)
    sf.solve(problem, sf.Laplace()).save(folder)
    return folder


@pytest.fixture(scope="module")
def choice(folder, traces):
    return choose_policy(load_run(folder), traces)


def test_a_rotating_period_is_chosen_where_kept_reports_are_names(choice):
    ways = {way.keeping.words: way for way in choice.ways}
    forever, fresh = ways["kept forever"], ways["a new draw for each report"]
    assert forever.shown["history"].value > fresh.shown["history"].value + 0.2
    assert forever.shown["all"].value > 0.9
    assert choice.best.keeping.period not in ("forever", NEVER) and choice.best.eligible
    assert all(
        choice.best.chosen_by.worst.value <= way.chosen_by.worst.value
        for way in choice.ways
        if way.eligible
    )
    assert choice.best.shown.traces + choice.best.chosen_by.traces == USERS * TRACES // 3
    shared = ways["kept forever, one for all users"]
    assert not shared.eligible and shared.shown != forever.shown
    text = str(choice)
    assert f"→ {choice.best.keeping.words}" in text and "sees all" in text
    fewest = min(way.shown.worst.value for way in choice.ways if way.eligible)
    for way in (choice.best, fresh):  # where the half that is shown would have chosen another
        said = f"In the table, which did not choose, {choice.best.keeping.words} has fewer"
        assert (said in str(replace(choice, best=way))) == (way.shown.worst.value > fewest)
    assert fresh.shown.worst.value > fewest == choice.best.shown.worst.value
    over = replace(fresh, within_budget=False)
    none = str(replace(choice, ways=(over,), best=over))
    assert "No way is within the budget" in none and "smallest share found" not in none


@pytest.mark.parametrize(("named_days", "days_each"), [(None, 1), (7, 1), (None, 2)])
def test_seeing_all_finds_as_much_as_the_law_where_days_share_the_reports_of_a_week(
    named_days, days_each
):
    """Named days of one week repeat each other's kept reports, days of later weeks repeat none;
    also where all named days are of one week, so that no named report is left without it, and where
    some traces reach into two weeks."""
    users, days, length = 12, 42, 4
    random = np.random.default_rng(4)
    own = random.normal(0, 800, (users, PLACES, 2)).round(1)
    who, day = np.repeat(np.arange(users), days * length), np.repeat(np.arange(days), length)
    truth = own[who, random.integers(0, PLACES, len(who))]
    day = np.tile(day, users)
    names = tuple(f"user {number}" for number in range(users))
    named = None if named_days is None else day < named_days
    samples, seconds = Samples(who, truth, names), day * 86_400
    rows = Traces.of(samples, day // days_each, seconds=seconds, named=named)
    noise = sf.mechanism.Snapped(sf.mechanism.PlanarLaplace(2 / 400), sf.Grid(cell_m=100))
    chance = chance_of(Keeping("week"), seeded_key(1), "", seed=1)
    region = sf.data.Region((0.0, 0.0), 12_000.0)
    found = find_traces(rows, released_reports(rows, noise, chance, region), ("law", "all"))
    assert found["law"].value > 0.6 and found["all"].value >= found["law"].value - 0.02


def test_few_traces_choose_nothing(folder, traces):
    rows = traces.samples.secret < 2
    some = traces.samples.take(rows).renumbered()
    cut = Traces.of(some, traces.trace[rows], seconds=traces.seconds[rows])
    assert len(cut.attacked) < FEWEST_TRACES
    with pytest.raises(DataError, match="at least 200"):
        choose_policy(load_run(folder), cut)
    with pytest.raises(DataError, match="without times"):
        choose_policy(load_run(folder), replace(traces, seconds=None))
    hours = traces.seconds // 3600 % 24  # hours of the day taken for seconds
    with pytest.raises(DataError, match="at least a day"):
        choose_policy(load_run(folder), replace(traces, seconds=hours))


def test_all_found_is_a_table_and_no_traceback(traces, tmp_path):
    """The truth itself: every way finds all, and one is recommended all the same."""
    region = sf.data.Region((0.0, 0.0), 5000.0)
    far = Samples(
        traces.samples.secret, traces.samples.truth, traces.samples.secrets, region=region
    )
    sf.solve(
        sf.Problem(far.take(np.arange(0, len(far), 20)), max_loss=1e-3, cell_m=100), sf.Coin()
    ).save(tmp_path / "run")
    found = choose_policy(load_run(tmp_path / "run"), traces)
    assert found.best.shown["all"].value > 0.9
    assert "Nearly all traces are found" in str(found)


def test_the_choice_is_written_into_the_run_and_followed(folder, choice, traces):
    run = keep_reports(load_run(folder), choice.keeping)
    again = load_run(folder)
    assert again.record.keeping == run.record.keeping == choice.keeping
    assert RunRecord.read(folder / "run.json").keeping.found["kept forever"]["history"] > 0.5
    chance = chance_for(again, bytes(32))
    assert isinstance(chance, Sticky) and chance.period == choice.keeping.period
    with pytest.raises(ProblemError, match="come from a key"):
        chance_for(again, None)
    assert isinstance(chance_for(again, None, period=NEVER), Secure)
    told = manifest_keeping(again, release(again))
    assert told["period"] == kept_by_service(again).period == choice.keeping.period
    shown = choice.keeping.found["kept forever"]["history"]
    assert f"{shown:.0%}" in forever_warning(again)


def test_a_run_that_keeps_nothing_is_kept_for_an_hour_by_what_answers_requests(folder):
    """A new draw for each request would average to the place."""
    run = load_run(folder)
    run = replace(run, record=replace(run.record, keeping=Keeping(NEVER)))
    told = manifest_keeping(run, release(run))
    assert (told["period"], told["seconds"]) == (kept_by_service(run).period, 3600)


def test_what_was_measured_is_what_is_applied(folder, traces):
    """The reports that `policy` measures are those that `sanitize` writes with the same key."""
    for lattice_m in (None, 300.0):
        run = load_run(folder)
        keeping = Keeping("week", lattice_m=lattice_m)
        run = replace(run, record=replace(run.record, keeping=keeping))
        chance = chance_for(run, seeded_key(0))
        measured = released_reports(traces, released_mechanism(run), chance, run.region)
        truth = traces.samples.truth
        written = protect(
            release(run), truth[:, 0], truth[:, 1], chance=chance, rows=rows_of(traces)
        )
        assert np.allclose(written.first, measured.reports[:, 0])
        assert np.allclose(written.second, measured.reports[:, 1])


def test_a_cap_holds_for_what_is_measured_and_kept(traces):
    """Under a cap the middle of a cell is answered by the tightened mechanism, in both."""
    from tests.deploy.conftest import codebook

    net = replace(codebook(sf.Grid(side_m=3000.0, cells=60)), max_distance=900.0, keep=0.0)
    near = traces.samples.truth[np.hypot(*traces.samples.truth.T) < 350]
    chance = Sticky(bytes(32), "forever", cell_m=100.0)
    some = Traces.of(
        Samples(np.arange(len(near)) % 2, near, ("ann", "bob")), np.arange(len(near)) // 20
    )
    released = released_reports(some, net, chance, None)
    assert len(near) > 50
    off = released.reports - some.samples.truth
    assert np.hypot(off[:, 0], off[:, 1]).max() <= 900.0
    assert released.mechanism.max_distance == pytest.approx(900.0 - 100.0 / 2**0.5)

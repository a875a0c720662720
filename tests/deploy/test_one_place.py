"""One place for whole weeks, from `sfumato policy` to a sanitized file: what was measured is what is
done, in whatever order rows come, and what cannot follow refuses."""

import json
from dataclasses import replace

import numpy as np
import pytest

import sfumato as sf
from sfumato.deploy.keeping import chance_for, kept_by_service, manifest_keeping
from sfumato.deploy.one_file import Policy
from sfumato.deploy.release import release
from sfumato.deploy.sanitize import one_by_one, sanitize
from sfumato.deploy.table import Reporter
from sfumato.errors import DataError, FileError, ProblemError
from sfumato.mechanism.one_place import parts_of
from sfumato.study import policy
from sfumato.study.folder import keep_reports, load_run
from sfumato.study.record import NEVER, Keeping, RunRecord
from sfumato.study.traces import check_traces
from tests.deploy.test_sticky import KEY
from tests.solver.test_one_place import traces_of

BUDGET = 500.0
KEPT = Policy(keep=("user",), over_budget=True)


@pytest.fixture(scope="module")
def traces():
    return traces_of(weeks=34)


@pytest.fixture(scope="module")
def run(traces, tmp_path_factory):
    """A run of little noise on these users."""
    folder = tmp_path_factory.mktemp("one-place") / "run"
    region = sf.data.Region.around(traces.samples.truth, margin_m=500.0)
    few = traces.samples.take(np.arange(0, len(traces.samples), 20))
    problem = sf.Problem(replace(few, region=region), max_loss=100, cell_m=200)
    sf.solve(problem, sf.Laplace()).save(folder)
    check_traces(load_run(folder), traces)
    return folder


@pytest.fixture(scope="module", params=[("after", 1), ("before", 1), ("after", 14)], ids=str)
def choice(request, run, traces):
    when, parts = request.param
    with pytest.MonkeyPatch.context() as patched:  # the other ways have tests of their own
        patched.setattr(policy, "ways_of", lambda *_, **__: [Keeping(NEVER), Keeping("week")])
        return policy.choose_policy(
            load_run(run), traces, one_place=when, parts=parts, max_loss=BUDGET
        )


@pytest.fixture
def kept(choice, run, tmp_path):
    """The run with that choice."""
    copied = tmp_path / "run"
    copied.mkdir()
    for path in run.iterdir():
        (copied / path.name).write_bytes(path.read_bytes())
    keep_reports(load_run(copied), choice.keeping)
    return copied


def _table(path, traces, rows):
    names = np.array(traces.samples.secrets)[traces.samples.secret]
    lines = [
        f"{names[row]},{traces.seconds[row]},{traces.samples.truth[row, 0]:.3f},"
        f"{traces.samples.truth[row, 1]:.3f}\n"
        for row in rows
    ]
    path.write_text("user,time,x,y\n" + "".join(lines))
    return path


def _sanitized(run, path):
    out = path.with_suffix(".out.csv")
    record = sanitize(run, path, out, chance=chance_for(load_run(run), KEY), policy=KEPT)
    lines = [line.split(",") for line in out.read_text().splitlines()[1:]]
    return np.array([[float(x), float(y)] for _, _, x, y in lines]), record


def test_it_is_measured_and_recommended(choice):
    best = choice.best
    assert best.keeping.one_place is not None and best.within_budget
    others = [way for way in choice.ways if way is not best]
    assert best.shown["law"].value < min(way.shown["law"].value for way in others) - 0.1
    assert best.shown["law"].value > 0.2
    place = "one place" if best.keeping.one_place.parts == 1 else "one common week"
    assert f"{place} for some weeks, the others kept for a week" in str(choice)
    # the places of a common week fit few weeks closely, and folds have fewer: it costs less
    least = 0.75 if best.keeping.one_place.parts == 1 else 0.6
    assert least * BUDGET < best.shown.loss_m < 1.25 * BUDGET


def test_a_record_keeps_it(choice, kept):
    told = RunRecord.read(kept / "run.json").keeping
    assert told is not None and told.one_place is not None
    assert told.one_place.fingerprint == choice.keeping.one_place.fingerprint
    assert told.words == choice.keeping.words and release(load_run(kept)).budget.max_loss == BUDGET
    assert (kept / "run.json").stat().st_mode & 0o077 == 0  # it has users beside places


def test_a_file_follows_it_in_any_order(choice, kept, traces, tmp_path):
    rows = np.flatnonzero(~traces.named)
    mixed = np.random.default_rng(3).permutation(rows)
    straight, record = _sanitized(kept, _table(tmp_path / "a.csv", traces, rows))
    shuffled, _ = _sanitized(kept, _table(tmp_path / "b.csv", traces, mixed))
    assert (shuffled == straight[np.searchsorted(rows, mixed)]).all()
    written = choice.keeping.one_place.places.round(release(load_run(kept)).decimals)
    parts = written.shape[1]
    places = {tuple(place) for place in written.reshape(-1, 2).tolist()}
    at = np.array([tuple(one) in places for one in straight.tolist()])
    seen, hidden = set(), []
    for trace in traces.attacked.tolist():
        own = np.searchsorted(rows, np.arange(*traces.rows_of(trace).indices(len(traces.trace))))
        part = parts_of(traces.seconds[rows[own]], parts, len(own))
        seen |= set(part.tolist())
        hidden.append((written[:, part] == straight[own]).all(axis=(1, 2)).any())
        assert hidden[-1] == at[own].all()  # all from one place's parts, or not all from places
        assert hidden[-1] or parts > 1 or not at[own].any()  # of many places some are on the grid
    assert len(seen) == parts
    assert 0.2 < np.mean(hidden) < 0.9
    assert record["chance"]["one_place"] == choice.keeping.one_place.fingerprint
    assert record["mechanism"]["max_loss"] == BUDGET


def test_what_knows_no_users_refuses(kept):
    loaded = load_run(kept)
    for asked in (kept_by_service, lambda one: manifest_keeping(one, release(one))):
        with pytest.raises(ProblemError, match="knows no users"):
            asked(loaded)


def test_engines_follow_a_choice_before_a_week_alone(choice, kept):
    if choice.keeping.one_place.before:
        reporter = Reporter.of(kept, key=KEY, row=None, keep=("user",), over_budget=True)
        again = Reporter.from_parts(*reporter.as_parts())
        assert again.kept.one_place.fingerprint == choice.keeping.one_place.fingerprint
        return
    with pytest.raises(DataError, match="batch by batch"):
        Reporter.of(kept, key=KEY, row=None)


def test_strangers_and_noise_outside_are_refused(kept, traces, tmp_path):
    path = _table(tmp_path / "a.csv", traces, range(40))
    path.write_text(path.read_text().replace("u00", "eve"))
    with pytest.raises(DataError, match="the first is 'eve'"):
        _sanitized(kept, path)
    assert not path.with_suffix(".out.csv").exists()
    told = {"chance": chance_for(load_run(kept), KEY), "policy": replace(KEPT, outside="laplace")}
    with pytest.raises(DataError, match="outside would tell"):
        sanitize(kept, path, tmp_path / "out.csv", **told)


def test_what_does_not_go_together_is_refused(run, traces):
    loaded = load_run(run)
    with pytest.raises(ProblemError, match="as well"):
        policy.choose_policy(loaded, traces, max_loss=BUDGET)
    with pytest.raises(ProblemError, match="as well"):
        policy.choose_policy(loaded, traces, parts=14)
    for metres in (float("nan"), float("inf"), -1.0):
        with pytest.raises(ProblemError, match="finite number above 0 metres; got"):
            policy.choose_policy(loaded, traces, one_place="after", max_loss=metres)
    with pytest.raises(ProblemError, match="leaves nothing for one place"):
        policy.choose_policy(loaded, traces, one_place="after", max_loss=10.0)
    with pytest.raises(ProblemError, match="expected max_loss, the mean loss of all weeks"):
        policy.choose_policy(loaded, traces, one_place="after")
    with pytest.raises(ValueError, match="within a budget"):
        Keeping("week", one_place=object())
    with pytest.raises(ValueError, match="a user's period"):
        Keeping("week", one_place=object(), max_loss=BUDGET, by_user=False)


def test_a_stopped_folder_goes_on_with_the_same_weeks_alone(choice, kept, traces, tmp_path):
    """Where a week's other rows decide on its place, new rows would tear the week apart."""
    source, target = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    _table(source / "a.csv", traces, range(0, 300, 2))
    _table(source / "b.csv", traces, range(1, 300, 2))

    def stopping(protection, tasks, progress):
        yield from one_by_one(protection, tasks[:1], progress)
        raise KeyboardInterrupt

    told = {"chance": chance_for(load_run(kept), KEY), "policy": KEPT}
    with pytest.raises(KeyboardInterrupt):
        sanitize(kept, source, target, runner=stopping, **told)
    _table(source / "b.csv", traces, [*range(1, 300, 2), *[1] * 2000])
    if choice.keeping.one_place.before:
        assert sanitize(kept, source, target, **told)["rows_out"] == 2300
        return
    with pytest.raises(FileError, match="other settings or other data"):
        sanitize(kept, source, target, **told)


def test_a_resumed_folder_has_the_same_bytes(kept, traces, tmp_path):
    source, target, whole = tmp_path / "in", tmp_path / "out", tmp_path / "whole"
    source.mkdir()
    _table(source / "a.csv", traces, range(0, 300, 2))
    _table(source / "b.csv", traces, range(1, 300, 2))
    told = {"chance": chance_for(load_run(kept), KEY), "policy": KEPT}

    def stopping(protection, tasks, progress):
        yield from one_by_one(protection, tasks[:1], progress)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sanitize(kept, source, target, runner=stopping, **told)
    sanitize(kept, source, target, **told)
    sanitize(kept, source, whole, **told)
    for name in ("a.csv", "b.csv"):
        assert (target / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.parametrize(
    ("name", "forged", "says"),
    [
        ("places", lambda old: (np.array(old) + 1e6).tolist(), "outside the run's region"),
        ("cost", lambda old: (np.array(old) - 1e9).tolist(), "is damaged"),
        ("usual", lambda old: [1e300 for _ in old], "is damaged"),
        ("spread", lambda old: -old, "is damaged"),
        ("spread", lambda old: 1e-320, "is damaged"),
        ("price", lambda old: "cheap", "is damaged"),
        ("price", lambda old: "0", "is damaged"),
        ("price", lambda old: True, "is damaged"),
        ("price", lambda old: [old], "is damaged"),
        ("places", lambda old: (np.array(old) + 1e300).tolist(), "is damaged"),
        ("usual", lambda old: [10**400 for _ in old], "is not a whole run record"),
        ("usual", lambda old: [str(one) for one in old], "is damaged"),
        ("users", lambda old: "".join(chr(97 + row) for row in range(len(old))), "is damaged"),
        ("users", lambda old: dict.fromkeys(old, 1), "is damaged"),
        ("users", lambda old: list(range(len(old))), "is damaged"),
        ("edges", lambda old: [-1.0, *old[1:]], "is damaged"),
    ],
)
def test_a_forged_rule_without_its_checksum_is_refused(kept, name, forged, says, tmp_path, typed):
    path = kept / "run.json"
    document = json.loads(path.read_text())
    del document["checksum"]
    path.write_text(json.dumps(document))
    load_run(kept)  # a record without its checksum is taken
    rule = document["keeping"]["one_place"]
    rule[name] = forged(rule[name])
    path.write_text(json.dumps(document))
    with pytest.raises(FileError, match=says):
        load_run(kept)
    (tmp_path / "a.csv").write_text("user,time,x,y\nu00,5,0,0\n")
    ended = typed("sanitize", kept, "a.csv", "out.csv", "--keep", "user")
    assert ended.returncode == 2 and says in ended.stderr and not (tmp_path / "out.csv").exists()


def test_rows_without_a_place_decide_nothing(kept, traces, tmp_path):
    rows = np.flatnonzero(~traces.named)
    alone, _ = _sanitized(kept, _table(tmp_path / "a.csv", traces, rows))
    path = _table(tmp_path / "b.csv", traces, rows)
    lines = path.read_text().splitlines()
    empty = [",".join(line.split(",")[:2]) + "," for line in lines[1:]]
    path.write_text("\n".join([*lines, *(line + "," for line in empty), "u00,-9,,", ""]))
    out = path.with_suffix(".out.csv")
    sanitize(kept, path, out, chance=chance_for(load_run(kept), KEY), policy=KEPT)
    same = [line.split(",") for line in out.read_text().splitlines()[1 : len(lines)]]
    assert (np.array([[float(x), float(y)] for _, _, x, y in same]) == alone).all()
    path.write_text(f"{lines[0]}\nu00,5,,\n")
    out.unlink()
    record = sanitize(kept, path, out, chance=chance_for(load_run(kept), KEY), policy=KEPT)
    assert record["rows_out"] == 1

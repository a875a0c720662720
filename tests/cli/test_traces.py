"""`measure --traces` and `policy`: whose trace is it, and what is refused."""

import shlex
import shutil

import numpy as np
import pytest

import sfumato as sf
from sfumato.data.recipe import Recipe
from sfumato.study import policy
from sfumato.study.folder import load_run

USERS, TRACES, LENGTH = 4, 6, 5


def rows_of_traces(traces=TRACES, places=None):
    """CSV rows of users who live 1.5 km apart and never go to a place twice, or only to some."""
    random = np.random.default_rng(0)
    steps = random.normal(0, 200, (places or USERS * traces * LENGTH, 2))
    rows = []
    for user in range(USERS):
        for trace in range(traces):
            for hour in range(LENGTH):
                step = steps[random.integers(places) if places else len(rows)]
                x, y = step + 700 + 1500 * np.array([user % 2, user // 2])
                when = (trace * 7 * 24 + 8 + hour) * 3600
                rows.append(f"u{user},{trace},{when},{x:.1f},{y:.1f}\n")
    return rows


def write(path, rows, header="user,week,time,x,y\n"):
    path.write_text(header + "".join(rows))
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A run of planar Laplace noise, and the traces that it was made from."""
    folder = tmp_path_factory.mktemp("traces")
    recipe = Recipe(str(write(folder / "traces.csv", rows_of_traces())), region=(1500, 1500, 6000))
    problem = sf.Problem(recipe.load().train, max_loss=150, cell_m=100)
    sf.solve(problem, sf.Laplace()).save(folder / "run", recipe=recipe)
    return folder


def test_traces_are_found_and_the_truth_stands_beside(sfumato, place):
    told = ("--traces", place / "traces.csv", "--trace", "week", "--time", "time")
    found = sfumato("measure", place / "run", *told, "--json").document["traces"]
    assert list(found["found"]) == [
        *("run", "truth", "planar laplace", "snapped to 2 km", "snapped to 5 km")
    ]
    run, far = found["found"]["run"], found["found"]["snapped to 5 km"]
    assert found["users"] == USERS and run["traces"] == 8 and found["rows"] == 40
    for who in ("law", "chain", "history"):
        assert 0 <= run[who]["low"] <= run[who]["value"] <= run[who]["high"] <= 1
    assert run["law"]["value"] > 0.8 > far["law"]["value"]
    text = sfumato("measure", place / "run", *told).out
    assert "traces found ↓, 8 traces of 4 users" in text and "named history" in text


@pytest.mark.parametrize(
    ("rows", "told", "says"),
    [
        (rows_of_traces(), (), "give both or neither"),
        (rows_of_traces(), ("--trace", "no"), "no column 'no'"),
        (rows_of_traces(1), ("--trace", "week"), "at least two traces"),
        (
            [*rows_of_traces(), "u9,0,0,0,0\n"],
            ("--trace", "week"),
            "1 user(s) are unknown to",
        ),
        (
            [*rows_of_traces(), "u1,0,0,90000,0\n"],
            ("--trace", "week"),
            "made for, the first is of user 'u1'",
        ),
    ],
)
def test_traces_that_cannot_be_measured_are_one_sentence(
    sfumato, place, tmp_path, rows, told, says
):
    ended = sfumato("measure", place / "run", "--traces", write(tmp_path / "t.csv", rows), *told)
    assert ended.code == 2 and says in ended.err and ended.err.count("error:") == 1
    assert not ended.out


def test_a_policy_is_chosen_written_and_followed(sfumato, place, tmp_path, monkeypatch):
    """On 204 traces to be found; sanitize then wants a key, and keeps reports by it."""
    every = policy.ways_of
    kept_by = ("never", "week", "forever")  # fewer ways, for time
    monkeypatch.setattr(
        policy, "ways_of", lambda *a, **b: [w for w in every(*a, **b) if w.period in kept_by][:3]
    )
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "runs" / "learned"
    shutil.copytree(place / "run", run)
    table = write(tmp_path / "checkins.csv", rows_of_traces(153, places=3))
    told = shlex.split(sfumato("policy", "-h").out.strip().splitlines()[-1])[2:]  # its example
    left = sfumato(*told, "--no-write", "--json").document
    assert left["written"] is False and load_run(run).record.keeping is None
    ended = sfumato(*told)
    assert ended.code == 0 and f"→ {left['recommended']}" in ended.out
    kept = load_run(run).record.keeping
    assert kept.words == left["recommended"] and kept.traces == 102
    drop = ("--drop", "user", "--over-budget")
    refused = sfumato("sanitize", run, table, tmp_path / "no.csv", *drop)
    assert refused.code == 2 and "--key" in refused.err and not (tmp_path / "no.csv").exists()
    key = ("--key", tmp_path / "key")
    assert sfumato("sanitize", run, table, tmp_path / "kept.csv", *drop, *key).code == 0
    assert sfumato("sanitize", run, table, tmp_path / "new.csv", *drop, "--fresh").code == 0
    forever = sfumato(
        "sanitize", run, table, tmp_path / "ever.csv", *drop, *key, "--sticky", "forever"
    )
    assert forever.code == 0 and "identifies its user: on your traces" in forever.err


@pytest.mark.parametrize(
    ("rows", "told", "says"),
    [
        (rows_of_traces(), ("--time", "time"), "8 traces to be found; expected at least 200"),
        (rows_of_traces(153), (), "without times"),
        (
            rows_of_traces(),
            ("--one-place", "after"),
            "name the column of the time with --time; and traces.csv has 8 traces to be found;"
            " expected at least 200, to tell ways of keeping apart: bring more traces, or cut them"
            " shorter; and one place needs a budget of its own; expected --max-loss",
        ),
        (rows_of_traces(1), ("--time", "time"), "at least two traces"),
        (rows_of_traces(153), ("--time", "time", "--lattice-m", "0"), "above 0 metres"),
        (rows_of_traces(), ("--time", "time", "--max-loss", "9"), "give --one-place as well"),
    ],
)
def test_a_policy_that_cannot_be_chosen_is_one_sentence(sfumato, place, tmp_path, rows, told, says):
    table = write(tmp_path / "traces.csv", rows)
    ended = sfumato("policy", place / "run", table, "--trace", "week", *told)
    assert ended.code == 2 and says in ended.err and ended.err.count("error:") == 1
    assert load_run(place / "run").record.keeping is None

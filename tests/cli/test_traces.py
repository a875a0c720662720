"""`measure --traces`: whose trace is it, and what is refused."""

import numpy as np
import pytest

import sfumato as sf
from sfumato.data.recipe import Recipe

USERS, TRACES, LENGTH = 4, 6, 5


def rows_of_traces(traces=TRACES, seed=0):
    """CSV rows of users who live 1.5 km apart and never go to a place twice."""
    random = np.random.default_rng(seed)
    rows = []
    for user in range(USERS):
        for trace in range(traces):
            for hour in range(LENGTH):
                x, y = random.normal(0, 200, 2) + 700 + 1500 * np.array([user % 2, user // 2])
                when = f"2020-{1 + trace // 4:02d}-{1 + 7 * (trace % 4):02d}T{8 + hour:02d}:00:00"
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
            [*rows_of_traces(), "u9,0,2020-01-01T00:00:00,0,0\n"],
            ("--trace", "week"),
            "1 user(s) are unknown to",
        ),
        (
            [*rows_of_traces(), "u1,0,2020-01-01T00:00:00,90000,0\n"],
            ("--trace", "week"),
            "outside the region",
        ),
    ],
)
def test_traces_that_cannot_be_measured_are_one_sentence(
    sfumato, place, tmp_path, rows, told, says
):
    ended = sfumato("measure", place / "run", "--traces", write(tmp_path / "t.csv", rows), *told)
    assert ended.code == 2 and says in ended.err and ended.err.count("error:") == 1
    assert not ended.out

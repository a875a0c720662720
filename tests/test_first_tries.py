"""What a person types first, without reading: each try works, or a sentence says what to type."""

import copy
import json
import multiprocessing
import pickle
import pydoc
import subprocess
import sys
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import polars as pl
import pytest

import sfumato as sf

COLUMNS = {
    "user": ["ann", "ann", "bob", "bob", "ann", "bob"],
    "lat": [48.8560, 48.8565, 48.8565, 48.8570, 48.8561, 48.8569],
    "lon": [2.3400, 2.3410, 2.3410, 2.3420, 2.3402, 2.3418],
}


def blur(truth: np.ndarray, random: np.random.Generator) -> np.ndarray:
    return truth + random.normal(0, 20, truth.shape)


class Here:
    """What stands in a notebook after its first cells."""

    @cached_property
    def split(self) -> sf.Split:
        people = sf.read_checkins(COLUMNS)
        test = sf.Samples(people.secret, people.truth + 3.0, people.secrets, people.plane)
        return sf.Split(people, test)

    @cached_property
    def test(self) -> sf.Samples:
        assert self.split.test is not None
        return self.split.test

    @cached_property
    def problem(self) -> sf.Problem:
        return sf.Problem(self.split.train, max_loss=45, cell_m=20)

    @cached_property
    def solution(self) -> sf.Solution:
        return sf.solve(self.problem, sf.Coin())

    @cached_property
    def optimum(self) -> sf.Solution:
        return sf.solve(self.problem, sf.Exact())

    @cached_property
    def estimate(self) -> sf.Estimate:
        return sf.Estimate(0.25, 0.2, 0.3, "estimate")

    @cached_property
    def compared(self) -> Any:
        return sf.compare([self.solution, self.optimum], on=self.test)

    @cached_property
    def frontier(self) -> Any:
        return sf.frontier(self.problem, [45.0, 60.0], gap=0.05)


@pytest.fixture(scope="module")
def here() -> Here:
    return Here()


def _own(here: Here, mine: Any) -> Any:
    """The row of a mechanism of one's own beside the optimum."""
    return sf.compare([here.optimum, mine], on=here.test, hits=50).rows[1]


def _again(thing: Any) -> Any:
    copy.deepcopy(thing)
    return pickle.loads(pickle.dumps(thing))


def _frame() -> pd.DataFrame:
    return pd.DataFrame(COLUMNS)


def _points(crs: int | None = 2154) -> geopandas.GeoDataFrame:
    frame = _frame()
    points = geopandas.points_from_xy(frame["lon"], frame["lat"], crs=None if crs is None else 4326)
    made = geopandas.GeoDataFrame(frame[["user"]], geometry=points)
    return made if crs is None else made.to_crs(crs)


# name: the try, and what is true of what comes of it
WORKS: dict[str, tuple[Callable[[Here], Any], Callable[[Any], bool]]] = {
    "Problem(split)": (
        lambda o: (sf.Problem(o.split, max_loss=45).samples, o.split.train),
        lambda found: found[0] is found[1],
    ),
    "Problem(objective=name)": (
        lambda o: sf.Problem(o.split, max_loss=45, objective="information").objective.name,
        lambda name: name == "information",
    ),
    "solve(problem, name)": (lambda o: sf.solve(o.problem, "coin").name, lambda n: n == "coin"),
    "solve(problem, class)": (lambda o: sf.solve(o.problem, sf.Coin).name, lambda n: n == "coin"),
    "solve(problem, solver=name)": (
        lambda o: sf.solve(o.problem, solver="laplace").name,
        lambda name: name == "laplace",
    ),
    "judge(solution, data)": (
        lambda o: sf.judge(o.solution, o.test),
        lambda found: found.learnt_error is not None,
    ),
    "judge(function, data, grid=)": (
        lambda o: sf.judge(blur, o.test, grid=sf.Grid(cell_m=25), hits=20),
        lambda found: found.bayes_error.kind == "estimate",
    ),
    "solution.judge(test)": (
        lambda o: (o.solution.judge(o.test), sf.judge(o.solution.mechanism, o.test)),
        lambda both: both[0].loss == both[1].loss,
    ),
    "compare(one solution)": (
        lambda o: sf.compare(o.solution, on=o.test),
        lambda c: len(c.rows) == 1,
    ),
    "compare([function])": (
        lambda o: _own(o, blur),
        lambda row: (row.name, row.contender.max_loss) == ("blur", 45),
    ),
    "compare([lambda])": (
        lambda o: _own(o, lambda truth, random: truth),
        lambda row: row.name == "function",
    ),
    "compare([mechanism])": (
        lambda o: _own(o, sf.mechanism.Identity()),
        lambda row: row.name == "identity",
    ),
    "own function has a gap": (
        lambda o: _own(o, blur).gap,
        lambda gap: gap.estimated and 0 < gap.value <= 1 - gap.bounds.plane,
    ),
    "own law has a gap": (
        lambda o: _own(o, sf.mechanism.Identity()).gap,
        lambda gap: not gap.estimated and gap.value == pytest.approx(5 / 6 - gap.bounds.plane),
    ),
    "own mechanism over the budget has none": (
        lambda o: _own(o, lambda truth, random: truth + 200.0),
        lambda row: row.gap is None and row.over_by > 0,
    ),
    "float(estimate)": (lambda o: float(o.estimate), lambda value: value == 0.25),
    "f'{estimate:.3f}'": (lambda o: f"{o.estimate:.3f}", lambda text: text == "0.250"),
    "f'{estimate}'": (lambda o: f"{o.estimate}", lambda text: "0.2 to 0.3" in text),
    "round(estimate, 1)": (lambda o: round(o.estimate, 1), lambda value: value == 0.2),
    "estimate < 0.5": (
        lambda o: (o.estimate < 0.5, o.estimate >= 0.5, o.estimate < 0.1, o.estimate <= o.estimate),
        lambda found: found == (True, False, False, True),
    ),
    "sorted(estimates)": (
        lambda o: sorted([o.estimate, sf.Estimate.exact(0.1)])[0].value,
        lambda value: value == 0.1,
    ),
    "numpy.array(estimates)": (
        lambda o: np.array([o.estimate], dtype=float).mean(),
        lambda value: value == 0.25,
    ),
    "solution.bayes_error": (
        lambda o: (o.solution.bayes_error, o.solution.measured.bayes_error),
        lambda both: both[0] == both[1],
    ),
    "solution.loss": (lambda o: o.solution.loss, lambda loss: 0 < loss <= 45 * (1 + 1e-9)),
    "solution.information_bits": (
        lambda o: o.solution.information_bits,
        lambda bits: 0 <= bits.value <= 1,
    ),
    "comparison.to_pandas()": (
        lambda o: o.compared.to_pandas().set_index("mechanism"),
        lambda frame: frame.loc["exact", "gap"] < 0.01 and frame["loss"].between(0, 60).all(),
    ),
    "DataFrame(comparison.rows)": (
        lambda o: pd.DataFrame(o.compared.rows),
        lambda frame: len(frame) == 2,
    ),
    "polars.DataFrame(comparison)": (
        lambda o: pl.DataFrame(o.compared),
        lambda frame: frame["mechanism"].to_list() == ["coin", "exact"],
    ),
    "comparison.plot()": (
        lambda o: o.compared.plot(),
        lambda figure: figure._repr_png_().startswith(b"\x89PNG"),
    ),
    "comparison[name], for row in comparison": (
        lambda o: (o.compared["coin"], o.compared[0], next(iter(o.compared))),
        lambda rows: rows[0] is rows[1] is rows[2],
    ),
    "len(comparison)": (lambda o: len(o.compared), lambda rows: rows == 2),
    "frontier.plot()": (
        lambda o: o.frontier.plot(),
        lambda figure: len(figure.axes) == 2,
    ),
    "frontier.to_pandas()": (
        lambda o: o.frontier.to_pandas(),
        lambda frame: (frame["bayes_error"] <= frame["bayes_error_bound"] + 1e-9).all(),
    ),
    "frontier(problem, 60)": (
        lambda o: sf.frontier(o.problem, 60, gap=0.05).budgets.tolist(),
        lambda budgets: budgets == [60.0],
    ),
    "read_checkins(pandas)": (
        lambda o: (sf.read_checkins(_frame()), o.split.train),
        lambda both: both[0].hash == both[1].hash,
    ),
    "read_checkins(pandas, categories)": (
        lambda o: (sf.read_checkins(_frame().astype({"user": "category"})), o.split.train),
        lambda both: both[0].hash == both[1].hash,
    ),
    "read_checkins(polars)": (
        lambda o: (sf.read_checkins(pl.DataFrame(COLUMNS)), o.split.train),
        lambda both: both[0].hash == both[1].hash,
    ),
    "read_checkins(rows)": (
        lambda o: (sf.read_checkins(_frame().to_dict("records")), o.split.train),
        lambda both: both[0].hash == both[1].hash,
    ),
    "read_checkins(geopandas)": (
        lambda o: (sf.read_checkins(_points()), o.split.train),
        lambda both: np.allclose(both[0].truth, both[1].truth, atol=1e-3),
    ),
    "samples.to_pandas()": (
        lambda o: (sf.read_checkins(o.split.train.to_pandas()), o.split.train),
        lambda both: np.allclose(both[0].truth, both[1].truth, atol=1e-6),
    ),
    "polars.DataFrame(split)": (
        lambda o: pl.DataFrame(o.split),
        lambda frame: frame["split"].to_list() == ["train"] * 6 + ["test"] * 6,
    ),
    "Samples(secret=names)": (
        lambda o: sf.Samples(secret=["b", "a", "b"], truth=[[0, 0], [100, 0], [0, 100]]),
        lambda made: (made.secrets, made.secret.tolist()) == (("a", "b"), [1, 0, 1]),
    ),
    "Samples(secret=numbers)": (
        lambda o: sf.Samples(secret=[1, 0], truth=[[0, 0], [100, 0]]),
        lambda made: made.secrets == ("0", "1"),
    ),
    "pickle and deepcopy": (
        lambda o: [
            (type(_again(thing)), type(thing))
            for thing in (o.split, o.problem, o.solution, o.optimum, o.compared, o.frontier)
        ],
        lambda pairs: all(again is kind for again, kind in pairs),
    ),
    "train, test = split": (
        lambda o: tuple(o.split),
        lambda parts: [len(part) for part in parts] == [6, 6],
    ),
    "compare(solution, data)": (
        lambda o: sf.compare(o.solution, o.test),
        lambda c: len(c.rows) == 1,
    ),
    "certify(solution)": (
        lambda o: (sf.certify(o.solution), sf.certify(o.optimum)),
        lambda both: all(one.gap.value + 1e-9 >= 0 for one in both) and "leaks" in str(both[0]),
    ),
    "help(sfumato)": (
        lambda o: pydoc.plain(pydoc.render_doc(sf)).splitlines(),
        lambda lines: len(lines) < 60 and any("sf.Problem(" in line for line in lines),
    ),
}

# name: the try, and what the sentence must hold
SAYS: dict[str, tuple[Callable[[Here], Any], str]] = {
    "Problem(path)": (lambda o: sf.Problem("log.csv", max_loss=45), "read_checkins"),
    "Problem(frame)": (lambda o: sf.Problem(_frame(), max_loss=45), "read_checkins"),
    "Problem(data) without a budget": (lambda o: sf.Problem(o.split), "max_loss"),
    "Problem(data, budget as text)": (
        lambda o: sf.Problem(o.split, max_loss="45"),  # type: ignore[arg-type]
        "is a number; got the text '45'",
    ),
    "mechanism.sample(data)": (
        lambda o: o.solution.mechanism.sample(o.test),
        r"sample\(data\.truth\)",
    ),
    "mechanism.sample(frame)": (
        lambda o: o.solution.mechanism.sample(_frame()[["lat", "lon"]]),
        r"sf\.deploy\.report\(frame, 'run'\)",
    ),
    "read_checkins(lazy polars)": (
        lambda o: sf.read_checkins(pl.LazyFrame(COLUMNS)),
        r"frame\.collect\(\)",
    ),
    "compare(dictionary)": (
        lambda o: sf.compare({"mine": o.solution}, on=o.test),  # type: ignore[dict-item]
        r"list\(named\.values\(\)\)",
    ),
    "compare([folder])": (
        lambda o: sf.compare(["run"], on=o.test),  # type: ignore[list-item]
        r"sf\.load_run\('run'\)",
    ),
    "data.split(share)": (lambda o: o.test.split(0.8), r"split\(80, 20\)"),  # type: ignore[arg-type]
    "compare(solution, solution)": (
        lambda o: sf.compare(o.solution, o.optimum),  # type: ignore[arg-type]
        r"compare\(\[first, second\]",
    ),
    "solve(data, solver)": (lambda o: sf.solve(o.split.train, sf.Coin()), r"sf\.Problem\(data"),
    "solve(problem, misspelt)": (
        lambda o: sf.solve(o.problem, "lapalce"),
        "did you mean 'laplace'",
    ),
    "solve(problem, mechanism)": (
        lambda o: sf.solve(o.problem, sf.mechanism.Identity()),
        r"sf\.Coin\(\)",
    ),
    "judge(function, data)": (lambda o: sf.judge(blur, o.test), r"grid=sf\.Grid\(cell_m=25\)"),
    "judge(solution, split)": (lambda o: sf.judge(o.solution, o.split), r"data\.test"),
    "judge(class, data)": (
        lambda o: sf.judge(sf.mechanism.Identity, o.test),
        r"write it with \(\) behind",
    ),
    "judge(function of one argument)": (
        lambda o: sf.judge(lambda truth: truth, o.test),
        r"def blur\(truth, random\)",
    ),
    "frontier(data, budgets)": (
        lambda o: sf.frontier(o.split.train, [45]),  # type: ignore[arg-type]
        r"sf\.frontier\(sf\.Problem\(data",
    ),
    "sanitize(solution)": (
        lambda o: sf.sanitize(o.solution, "in.csv", "out.csv"),  # type: ignore[arg-type]
        r"solution\.save\('run'\)",
    ),
    "sanitize(frame)": (
        lambda o: sf.sanitize("run", _frame(), "out.csv"),  # type: ignore[arg-type]
        r"sf\.deploy\.report answers data frames",
    ),
    "assess(solution)": (
        lambda o: sf.assess(o.solution),  # type: ignore[arg-type]
        r"solution\.save\('run'\)",
    ),
    "compare(on=split)": (lambda o: sf.compare([o.solution], on=o.split), r"on=data\.test"),
    "1 - estimate": (lambda o: 1 - o.estimate, r"\.value"),
    "abs(estimate)": (lambda o: abs(o.estimate), r"\.value"),
    "-estimate": (lambda o: -o.estimate, r"\.value"),
    "read_checkins(None)": (lambda o: sf.read_checkins(None), "file, a data frame"),
    "read_checkins(frame without users)": (
        lambda o: sf.read_checkins(_frame().drop(columns="user")),
        "no column for the user",
    ),
    "read_checkins(geopandas without crs)": (
        lambda o: sf.read_checkins(_points(crs=None)),
        "set_crs",
    ),
    "read_checkins(geopandas of areas)": (
        lambda o: sf.read_checkins(_points().set_geometry(_points().buffer(5))),
        "centroid",
    ),
    "Samples(secret=a name that is not listed)": (
        lambda o: sf.Samples(secret=["c"], truth=[[0, 0]], secrets=("a", "b")),
        "'c' is not among secrets",
    ),
    "Samples(truth in degrees)": (
        lambda o: sf.Samples(secret=["a", "b"], truth=[[48.85, 2.34], [48.86, 2.35]]),
        "read_checkins",
    ),
}


def test_there_are_at_least_42_of_them() -> None:
    assert len(WORKS) + len(SAYS) >= 42


@pytest.mark.parametrize("name", WORKS)
def test_a_first_try_works(here: Here, name: str) -> None:
    attempt, holds = WORKS[name]
    assert holds(attempt(here))


@pytest.mark.parametrize("name", SAYS)
def test_or_a_sentence_says_what_to_type(here: Here, name: str) -> None:
    attempt, words = SAYS[name]
    with pytest.raises(sf.SfumatoError, match=words) as error:
        attempt(here)
    assert "\n" not in str(error.value)


def test_seeds_can_be_solved_in_other_processes(here: Here) -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        (found,) = pool.map(partial(sf.solve, here.problem), [sf.Coin()])
    assert found.loss == here.solution.loss


def test_a_run_is_certified_by_the_name_of_its_folder(here: Here, tmp_path: Path) -> None:
    _frame().to_csv(tmp_path / "data.csv", index=False)
    here.solution.save(tmp_path / "run")
    found = sf.certify(str(tmp_path / "run"), source=str(tmp_path / "data.csv"))
    assert found.gap.leakage == here.solution.leakage


def test_a_run_that_was_saved_from_python_is_assessed_on_data_that_are_named(
    here: Here, tmp_path: Path
) -> None:
    here.solution.save(tmp_path / "run")
    with pytest.raises(sf.SfumatoError, match="where its data is; name it with data FILE"):
        sf.assess(tmp_path / "run")


def test_in_a_plain_install_a_sentence_says_what_to_install() -> None:
    code = (
        "import sys\n"
        "class Blocked:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name in ('jax', 'equinox', 'pandas', 'matplotlib', 'jinja2'):\n"
        "            raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Blocked())\n"
        "import sfumato as sf\n"
        "people = sf.Samples(secret=['a', 'b'] * 9, truth=[[0, 0], [300, 0]] * 9)\n"
        "compared = sf.compare([sf.mechanism.Identity()], on=people)\n"
        "assert compared._repr_html_() is None\n"
        "problem = sf.Problem(people, max_loss=45)\n"
        "learn, play = (lambda: sf.solve(problem)), (lambda: sf.solve(problem, 'game'))\n"
        "for attempt in (people.to_pandas, compared.plot, compared.plot, learn, play):\n"
        "    try: attempt()\n"
        "    except sf.SfumatoError as error: print(error)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = ended.stdout.splitlines()
    assert len(lines) == 5
    assert lines[0].endswith("run: pip install 'sfumato[pandas]'")
    assert lines[1] == lines[2] and lines[1].endswith("run: pip install 'sfumato[report]'")
    assert all(line.endswith("run: pip install 'sfumato[learn]'") for line in lines[3:])


def test_a_name_that_is_not_there_says_what_to_type(here: Here) -> None:
    for thing, name, words in (
        (here.solution, "sample", r"solution\.mechanism\.sample\(truth\)"),
        (here.split.train, "users", r"type data\.secrets"),
        (here.compared, "summary", r"print\(comparison\)"),
        (here.solution, "nothing", r"a Solution has no 'nothing'; it has .*mechanism, .*solver"),
        (here.solution, "bayes_eror", r"did you mean 'bayes_error'\?"),
        (sf.Solution, "load", r"type sf\.load_run\('run'\)"),
        (here.split.train, "to_polars", r"polars\.DataFrame\(data\)"),
        (here.split.train, "iloc", "it has .*to_pandas"),
        (here.compared, "best", r"max\(comparison, key="),
        (sf.judge(here.solution, here.test), "mutual_information", "information_bits"),
        (here.solution, "certify", r"sf\.certify\(solution\)"),
        (here.solution, "predict", r"solution\.mechanism\.sample\(truth\)"),
        (here.compared, "to_csv", r"comparison\.to_pandas\(\)\.to_csv"),
        (here.split.train, "describe", r"data\.to_pandas\(\)\.describe\(\)"),
        (sf.Exact(), "fit", r"type sf\.solve\(sf\.Problem"),
        (sf, "read_csv", r"did you mean sfumato\.read_checkins\?"),
        (sf, "demo", r"help\(sfumato\) lists"),
    ):
        with pytest.raises(AttributeError, match=words):
            getattr(thing, name)


def test_an_argument_that_is_not_there_says_what_to_type(here: Here) -> None:
    attempts: tuple[tuple[Callable[..., Any], dict[str, Any], str], ...] = (
        (sf.Problem, {"samples": here.split, "budget": 45}, "Problem has no .*; type max_loss"),
        (sf.Problem, {"samples": here.split, "maxloss": 45}, "did you mean max_loss"),
        (sf.solve, {"problem": here.problem, "method": "coin"}, "type solver"),
        (sf.solve, {"problem": here.split.train, "max_loss": 45}, r"sf\.Problem\(data"),
        (sf.solve, {"problem": here.problem, "x": 1}, "it takes problem, solver, seed"),
        (sf.compare, {"solutions": [here.solution], "data": here.test}, "type on$"),
        (sf.Samples, {"secret": _frame()}, r"type sf\.read_checkins\(frame\)"),
        (sf.Samples, {"users": ["a", "b"], "truth": [[0, 0], [9, 9]]}, "type secret"),
        (sf.Grid, {"cell": 25}, "type cell_m"),
        (sf.Codebook, {"place": 5}, "did you mean places"),
        (sf.Laplace, {"epsilon": 0.1}, r"sf\.mechanism\.PlanarLaplace"),
        (sf.Coin, {"x": 1}, "it takes none"),
        (sf.Coin().solve, {"problem": here.problem}, r"type sf\.solve\(sf\.Problem"),
        (sf.read_checkins, {"path": COLUMNS, "user": "user"}, "type secret"),
        (here.test.split, {"test_size": 0.2}, r"type data\.split\(80, 20\)"),
        (here.test.split, {}, r"type data\.split\(80, 20\)"),
        (here.solution.mechanism.sample, {"truth": [0, 0], "random_state": 1}, "type seed"),
        (sf.frontier, {"problem": here.problem, "start": 45}, "type budgets"),
        (sf.frontier, {"problem": here.problem}, r"type sf\.frontier\(problem, \["),
    )
    for attempt, given, words in attempts:
        with pytest.raises(TypeError, match=words):
            attempt(**given)


def test_an_argument_too_many_says_what_there_are() -> None:
    with pytest.raises(TypeError, match="Grid: too many positional arguments; it takes cell_m="):
        sf.Grid(25)  # type: ignore[misc]


def test_what_to_type_works(here: Here) -> None:
    """Each sentence that a value gives in place of a name is typed as it stands."""
    data, solution, comparison = here.split.train, here.solution, here.compared
    judgement = sf.judge(solution, here.test)
    known = {"sf": sf, "polars": pl, "solution": solution, "comparison": comparison}
    for kind, more in (
        (sf.Samples, {"data": data}),
        (type(comparison), {"data": here.split, "json": json}),
        (type(judgement), {"judgement": judgement, "data": here.split}),
    ):
        for typed in kind.instead.values():
            if ".csv'" not in typed and ".html'" not in typed and "80, 20" not in typed:
                eval(typed.replace("split(10)", "split(2)"), {**known, **more})


def test_the_package_of_a_commands_name_says_what_to_call(here: Here) -> None:
    with pytest.raises(TypeError, match=r"sf\.judge\(solution, data\.test\)"):
        sf.measure(here.solution)  # type: ignore[operator]

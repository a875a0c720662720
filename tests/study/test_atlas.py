"""Atlases: solved tile by tile, resumed, kept in one run folder, used like any other run."""

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from matplotlib.figure import Figure

from sfumato.data.plane import COUNTRY_M, Plane
from sfumato.data.samples import Samples
from sfumato.data.synthetic import four_corners
from sfumato.deploy.bundle import export
from sfumato.deploy.sanitize import sanitize
from sfumato.errors import FileError, MechanismError, ProblemError
from sfumato.measure.exact import bayes_error
from sfumato.measure.judge import judge
from sfumato.mechanism.laplace import PlanarLaplace
from sfumato.render import figures
from sfumato.render.html import map_html
from sfumato.render.text import atlas_lines
from sfumato.show import text
from sfumato.solver import Coin, Exact, Laplace
from sfumato.study.atlas import AtlasPlan, AtlasRun, load_atlas, one_by_one, solve_atlas
from sfumato.study.folder import load_run

PLANE = Plane(46.0, 2.0)
PLAN = AtlasPlan(Coin(), users_per_tile=4, fewest_checkins=20, cell_m=100.0)


def _towns(plane: Plane, towns: np.ndarray, users: int = 5, each: int = 8) -> Samples:
    """Some users in each town, and one user in every town."""
    random = np.random.default_rng(0)
    home = np.repeat(np.arange(len(towns)), users * each)
    secret = np.arange(len(home)) // each
    every = np.arange(len(towns))
    truth = towns[np.concatenate([home, every])]
    secret = np.concatenate([secret, np.full(len(towns), secret.max() + 1)])
    return Samples(secret, truth + random.normal(0.0, 300.0, truth.shape), plane=plane)


CITY = _towns(PLANE, np.array([[0, 0], [3000, 0], [3000, 3000], [0, 3500], [9000, 9000]], float))


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> AtlasRun:
    folder = tmp_path_factory.mktemp("atlas") / "run"
    return solve_atlas(CITY, folder, max_loss=200.0, plan=PLAN, test=CITY)


def test_every_tile_keeps_the_budget_and_so_does_the_whole(city: AtlasRun) -> None:
    assert city.answered["coin"] >= 3 and city.answered["planar laplace"] >= 1
    for line in city.tiles:
        assert line["measured"]["loss"]["value"] <= 200.0 * (1 + 1e-3)  # wide cells
    whole = city.run.record.train["loss"]
    known = judge(city.mechanism, CITY)
    assert whole["kind"] == "exact" == known.loss.kind
    assert abs(whole["value"] - known.loss.value) <= 1e-6


def test_who_is_told_the_tile_guesses_no_worse_and_knows_no_less(city: AtlasRun) -> None:
    """The stated figures bound those of the law of the whole atlas."""
    train, law = city.run.record.train, city.mechanism.law(CITY.joint())
    assert law is not None
    assert train["bayes_error"]["kind"] == "bound"
    assert train["bayes_error"]["low"] <= bayes_error(law.joint) + 1e-5
    known = judge(city.mechanism, CITY)
    assert train["information_bits"]["high"] >= known.information_bits.value - 1e-4
    assert train["worst_report"] >= known.worst_report - 1e-4
    assert city.run.record.test is not None


def test_a_stopped_job_is_resumed_and_gives_the_same_mechanism(
    city: AtlasRun, tmp_path: Path
) -> None:
    folder, solved = tmp_path / "run", []

    def stopped(work: Path, tiles: list[int]) -> Iterable[int]:
        for tile in one_by_one(work, tiles[:3]):
            solved.append(tile)
            yield tile
        written = {path: path.stat().st_ino for path in (work / "tiles").iterdir()}
        list(one_by_one(work, solved))
        assert written == {path: path.stat().st_ino for path in (work / "tiles").iterdir()}
        raise KeyboardInterrupt

    def counted(work: Path, tiles: list[int]) -> Iterable[int]:
        assert not set(tiles) & set(solved)
        yield from one_by_one(work, tiles)

    with pytest.raises(KeyboardInterrupt):
        solve_atlas(CITY, folder, max_loss=200.0, plan=PLAN, runner=stopped)
    assert not folder.exists() and len(solved) == 3
    with pytest.raises(FileError, match="stopped job with other settings"):
        solve_atlas(CITY, folder, max_loss=250.0, plan=PLAN)
    again = solve_atlas(CITY, folder, max_loss=200.0, plan=PLAN, runner=counted)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    one, other = (run.mechanism.arrays() for run in (city, again))
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[name], other[name]) for name in one)

    def nothing(work: Path, tiles: list[int]) -> Iterable[int]:
        raise AssertionError("it is done")

    known = solve_atlas(CITY, folder, max_loss=200.0, plan=PLAN, runner=nothing)
    assert known.run.record == again.run.record
    with pytest.raises(FileError, match="holds a run"):
        solve_atlas(CITY, folder, max_loss=250.0, plan=PLAN)


def test_a_tile_that_the_job_did_not_solve_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run"

    def changed(work: Path, tiles: list[int]) -> Iterable[int]:
        yield from one_by_one(work, tiles)
        PlanarLaplace(1.0).save(next((work / "tiles").glob("*.npz")))

    with pytest.raises(FileError, match="is not the one that this job solved"):
        solve_atlas(CITY, folder, max_loss=200.0, plan=PLAN, runner=changed)
    assert not folder.exists()


def test_a_job_that_fails_before_its_first_tile_leaves_nothing(tmp_path: Path) -> None:
    def failing(work: Path, tiles: list[int]) -> Iterable[int]:
        raise ProblemError("no tile can be solved")
        yield

    with pytest.raises(ProblemError, match="no tile"):
        solve_atlas(CITY, tmp_path / "run", max_loss=200.0, plan=PLAN, runner=failing)
    assert not list(tmp_path.iterdir())


def test_held_out_figures_of_a_run_without_them_are_asked_for_anew(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    solve_atlas(CITY, folder, max_loss=200.0, plan=PLAN)
    with pytest.raises(FileError, match="holds a run"):
        solve_atlas(CITY, folder, max_loss=200.0, plan=PLAN, test=CITY)


def test_sanitize_and_export_take_an_atlas_as_they_take_a_run(
    city: AtlasRun, tmp_path: Path
) -> None:
    latitude, longitude = PLANE.to_degrees(CITY.truth)
    lines = [f"{a:.7f},{b:.7f}" for a, b in zip(latitude, longitude, strict=True)]
    (tmp_path / "in.csv").write_text("lat,lon\n" + "\n".join(lines) + "\n")
    record = sanitize(city.run.folder, tmp_path / "in.csv", tmp_path / "out.csv")
    assert record["rows_out"] == len(CITY)
    manifest = export(city.run.folder, tmp_path / "all")
    assert manifest["mechanism_hash"] == city.run.record.mechanism_hash
    assert manifest["region"]["side_m"] == city.mechanism.tiling.region.side_m
    assert manifest["draws"] == city.mechanism.draws
    with pytest.raises(FileError, match="has no tile 999 with check-ins"):
        export(city.run.folder, tmp_path / "bundle", tile=999)
    assert not (tmp_path / "bundle").exists()


def test_a_tile_is_exported_with_its_own_figures(city: AtlasRun, tmp_path: Path) -> None:
    line = city.tiles[0]
    manifest = export(city.run.folder, tmp_path / "bundle", tile=line["tile"])
    side = city.mechanism.tiling.sides_m[line["tile"]] + 2 * city.mechanism.tiling.overlap_m
    assert manifest["region"]["side_m"] == side
    assert manifest["measured"]["training"]["bayes_error"] == line["measured"]["bayes_error"]
    assert manifest["mechanism_hash"] != city.run.record.mechanism_hash


def test_the_report_is_a_map_without_a_location(city: AtlasRun) -> None:
    page = map_html(city)
    assert page == map_html(load_atlas(city.run.folder))
    assert page.count("data:image/png") == 2 and "Planar Laplace" not in page
    assert f"{len(city.mechanism.tiling)} tiles" in page
    least_m = 2 * city.mechanism.tiling.overlap_m  # whatever the number of users
    assert f"quarters are at least {least_m:g} m wide" in page
    for name in (f"{CITY.truth[0, 0]:.1f}", f"{CITY.truth[0, 1]:.1f}"):
        assert name not in page
    assert "<h1>Atlas of samples</h1>" in page
    assert page.count("Scroll the map sideways") == 2 and "figure img { max-width: none }" in page
    assert page.index("Scroll the table") < page.index(">tile</th>")  # shown on a phone
    told = dict(atlas_lines(city))
    assert (
        told["Bayes error of a blind guess, tile known"] == f"{city.as_dict()['blind_error']:.3f}"
    )
    assert "Bayes error, at least" in text(city)
    likeliest = np.bincount(CITY.secret).max() / len(CITY)
    assert city.blind <= 1 - likeliest  # who is told the tile guesses no worse
    assert json.dumps(city.as_dict()["answered_by"]) == json.dumps(city.answered)


def test_the_map_numbers_its_tiles_and_leaves_those_without_a_figure_empty(
    city: AtlasRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tile beside one with check-ins may answer some of them by chance and have none itself; where
    one user was there is no Bayes error, and one user."""
    tiling, drawn, coloured = city.mechanism.tiling, [], []

    def kept(draw: Callable[[Figure], None], size: object, *, dpi: int, transparent: bool) -> str:
        figure = Figure()
        draw(figure)
        texts = {one.get_text(): one for one in figure.axes[0].texts}
        drawn.append(set(texts))
        (scale,) = (one for word, one in texts.items() if word.endswith("m"))
        assert scale.get_position()[1] < 0 and scale.get_transform() == figure.axes[0].transAxes
        sizes = {one.get_fontsize() * dpi / 72 for one in texts.values()}  # pixels, unscaled
        assert min(sizes) >= 9
        coloured.append(len(figure.axes[0].collections[1].get_paths()))
        assert transparent and not len(figure.axes[0].collections[0].get_facecolor())
        return "data:image/png;base64,"

    monkeypatch.setattr(figures, "_address", kept)
    empty = {**city.tiles[0], "checkins": 0, "users": 0}
    single = {**city.tiles[0], "users": 1}
    for made in (city, *(replace(city, tiles=(one, *city.tiles[1:])) for one in (empty, single))):
        drawn.clear()
        coloured.clear()
        map_html(made)
        counts = {line["tile"]: line["users"] for line in made.tiles}
        for least, of, words in zip((2, 1), coloured, drawn, strict=True):
            numbers = {tile for tile, users in counts.items() if users >= least}
            wide = {tile for tile in numbers if tiling.sides_m[tile] >= 0.03 * tiling.region.side_m}
            assert of == len(numbers) and len(wide) > 3
            assert {word for word in words if word.isdecimal()} == {str(tile) for tile in wide}


def test_a_tile_in_which_nobody_can_be_taken_for_another_has_no_bayes_error(city: AtlasRun) -> None:
    """Its error of 0 is no failure of its mechanism; the reason is said once."""
    single = {**city.tiles[0], "users": 1}
    made = replace(city, tiles=(single, *city.tiles[1:]))
    few, dashes = len(made.alone), 2 * len(made.alone)
    assert made.alone == {line["tile"] for line in made.tiles if line["users"] < 2} and few > 1
    page = map_html(made)
    assert page.count("<td>-</td>") == dashes and page.count("taken for another") == 1
    assert f"In {few} of the {len(made.tiles)} tiles near check-ins there was one user or" in text(
        made
    )
    lines = tuple({**line, "users": 2 + number} for number, line in enumerate(made.tiles))
    full = replace(city, tiles=lines)
    assert "another" not in text(full) and "<td>-</td>" not in map_html(full)
    nobody = replace(city, tiles=tuple({**line, "users": 1} for line in city.tiles))
    assert "In no tile were two users" in text(nobody)
    assert dict(atlas_lines(nobody))["Bayes error, at least ↑"] == "-"


def test_a_resumed_job_and_a_finished_one_say_so(tmp_path: Path) -> None:
    def stopped(work: Path, tiles: list[int]) -> Iterable[int]:
        yield from one_by_one(work, tiles[:2])
        raise KeyboardInterrupt

    said: list[str] = []
    ask = {"max_loss": 200.0, "plan": PLAN, "progress": said.append}
    with pytest.raises(KeyboardInterrupt):
        solve_atlas(CITY, tmp_path / "run", runner=stopped, **ask)  # type: ignore[arg-type]
    assert not any("already" in line for line in said)
    solve_atlas(CITY, tmp_path / "run", **ask)  # type: ignore[arg-type]
    assert any("resumed: 2 of" in line for line in said)
    solve_atlas(CITY, tmp_path / "run", **ask)  # type: ignore[arg-type]
    assert "nothing is solved again" in said[-1]


def test_a_country_has_planes_of_its_own_and_keeps_the_budget(tmp_path: Path) -> None:
    """Towns 800 km apart.  The noise of tiles with one user is sampled: 4 standard errors of 500
    reports of one check-in are 4 * 142/sqrt(500) = 26 m."""
    plane = Plane(46.0, 2.0, COUNTRY_M)
    towns = np.array([[-400_000, -400_000], [400_000, 400_000], [-400_000, 399_000]], float)
    data = _towns(plane, towns)
    alone = Samples([data.secret.max() + 1], [[0.0, 0.0]], plane=plane)
    data = Samples(
        np.append(data.secret, alone.secret), np.vstack([data.truth, alone.truth]), plane=plane
    )
    made = solve_atlas(data, tmp_path / "run", max_loss=200.0, plan=PLAN)
    assert made.answered["coin"] >= 3
    for line in made.tiles:
        assert line["measured"]["loss"]["value"] <= 226.0
    run = load_run(tmp_path / "run")
    assert run.record.data.plane == plane == run.mechanism.plane
    with pytest.raises(MechanismError, match="planes of their own"):
        export(tmp_path / "run", tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()
    latitude, longitude = plane.to_degrees(towns)
    rows = "\n".join(f"{a:.7f},{b:.7f}" for a, b in zip(latitude, longitude, strict=True))
    (tmp_path / "in.csv").write_text(f"lat,lon\n{rows}\n-35.0,-170.0\n")
    record = sanitize(
        tmp_path / "run", tmp_path / "in.csv", tmp_path / "out.csv", policy=_laplace_outside()
    )
    assert record["rows_out"] == 4 and record["outside"]["rows"] == 1


def _laplace_outside() -> object:
    from sfumato.deploy.one_file import Policy

    return Policy(outside="laplace", over_budget=True)


@pytest.mark.parametrize("users_per_tile", [1, 1000])
def test_one_check_in_for_each_user_is_answered(users_per_tile: int, tmp_path: Path) -> None:
    truth = np.random.default_rng(4).normal(0.0, 2000.0, (80, 2))
    data = Samples(np.arange(80), truth, plane=PLANE)
    plan = AtlasPlan(Coin(), users_per_tile=users_per_tile, cell_m=50.0)
    made = solve_atlas(data, tmp_path / "run", max_loss=100.0, plan=plan)
    assert set(made.answered) == ({"coin"} if users_per_tile == 1000 else {"planar laplace"})
    assert 0 <= made.run.record.train["bayes_error"]["low"] < 0.99
    assert made.run.record.to_come is None  # nothing was held out


def test_an_area_narrower_than_two_overlaps_is_one_tile(tmp_path: Path) -> None:
    """Unless an overlap was asked for: that of four budgets was refused as if somebody had."""
    data = four_corners(seed=0).train
    one = Samples(data.secret, np.zeros_like(data.truth), plane=data.plane)  # 1200 m wide
    for name, samples, max_loss in (("small", data, 3000.0), ("one place", one, 600.0)):
        plan = AtlasPlan(Laplace(), users_per_tile=1)
        run = solve_atlas(samples, tmp_path / name, max_loss=max_loss, plan=plan)
        assert len(run.tiles) == 1
        asked = replace(plan, overlap_m=4 * max_loss)
        with pytest.raises(ProblemError, match="half the side"):
            solve_atlas(samples, tmp_path / "asked", max_loss=max_loss, plan=asked)


def test_what_makes_no_atlas_is_refused_in_a_sentence(tmp_path: Path) -> None:
    one = Samples(np.zeros(5, dtype=int), np.random.default_rng(0).normal(0, 9e3, (5, 2)))
    for data, max_loss, plan, sentence in (
        (one, 150.0, PLAN, "holds one user"),
        (CITY, 20.0, PLAN, "above the side of a cell"),
        (CITY, float("nan"), PLAN, "above the side of a cell"),
        (CITY, 100.0, AtlasPlan(Laplace(), overlap_m=-1.0), "half the side of the smallest tile"),
    ):
        with pytest.raises(ProblemError, match=sentence):
            solve_atlas(data, tmp_path / "run", max_loss=max_loss, plan=plan)
    with pytest.raises(ProblemError, match="solved by codebook, coin, laplace; got exact"):
        AtlasPlan(Exact())
    with pytest.raises(ProblemError, match="is at least 1; got 0"):
        AtlasPlan(fewest_checkins=0)
    for cell_m in (float("nan"), float("inf"), 0.0):
        with pytest.raises(ProblemError, match="cell_m must be above 0 metres"):
            AtlasPlan(cell_m=cell_m)
    assert not list(tmp_path.iterdir())


def test_what_was_compiled_for_one_tile_is_dropped_after_some(tmp_path: Path) -> None:
    """Kept for all, the compiler ended an atlas of 84 tiles: no memory mapping was left."""
    program = jax.jit(lambda number: number + 1)
    program(1.0)
    assert program._cache_size() == 1
    plan = AtlasPlan(Coin(), users_per_tile=3, fewest_checkins=10)
    atlas = solve_atlas(four_corners(0).train, tmp_path / "run", max_loss=100, plan=plan)
    assert len(atlas.tiles) >= 4
    assert program._cache_size() == 0

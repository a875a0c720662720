"""An assessment has the figures of the measures, says what was not assessed, and holds no place."""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import sfumato as sf
from sfumato import cli
from sfumato.data.read import write_split
from sfumato.data.recipe import Recipe
from sfumato.errors import DataError, ProblemError
from sfumato.measure.outlook import Outlook
from sfumato.measure.where import where
from sfumato.mechanism.simple import Coin, Identity
from sfumato.render.assessment import NOT, assessment_html, assessment_markdown
from sfumato.study.assess import assess
from sfumato.study.atlas import AtlasPlan, solve_atlas
from sfumato.study.folder import RECORD, load_run
from sfumato.study.solve import solve_and_save
from tests.browser import launched

PLANE = sf.Plane(48.8584, 2.3482)
HEADINGS = (
    "Singling out",
    "Linkability",
    "Inference",
    "threat model",
    "Data features",
    "average and maximum risk",
    "Adversarial testing",
    "motivated intruder",
    "re-evaluation",
    "Governance",
)


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> tuple[Path, Path, sf.Samples]:
    """An exact run of three users with few places, so with a certificate, and its data."""
    folder = tmp_path_factory.mktemp("assess")
    random = np.random.default_rng(4)
    middles = np.array([[0.0, 0.0], [300.0, 0.0], [0.0, 300.0]])
    secret = np.repeat(np.arange(3), 14)
    truth = (
        middles[secret] + random.integers(-3, 4, (42, 2)) * 40.0 + random.uniform(-9, 9, (42, 2))
    )
    samples = sf.Samples(secret=secret, truth=truth, secrets=("ada", "bob", "cy"), plane=PLANE)
    write_split(sf.Split(samples), folder / "data.csv")
    words = [folder / "data.csv", "--max-loss", 120, "--cell-m", 60, "--solver", "exact"]
    words += ["--gap", 0.01, "--out", folder / "run"]
    ended = CliRunner().invoke(cli.cli, ["solve", *map(str, words)])
    assert ended.exit_code == 0, ended.output
    run = sf.load_run(folder / "run")
    return folder / "run", folder / "data.csv", run.recipe.data()[0]


@pytest.fixture(scope="module")
def found(small):
    return assess(small[0])


def test_a_proof_that_was_stopped_is_read_and_not_taken_up(small, tmp_path):
    shutil.copytree(small[0], tmp_path / "run")
    run = load_run(tmp_path / "run")
    replace(run.record, proof="stopped").write(run.folder / RECORD)
    best = assess(run.folder).risk("one report").best
    assert best is not None and load_run(run.folder).record.proof == "stopped"


def test_check_ins_held_out_of_the_training_data_are_counted(small, tmp_path):
    shutil.copytree(small[0], tmp_path / "run")
    run = load_run(tmp_path / "run")
    share = sf.Estimate(0.5, 0.4, 0.6, "estimate")
    told = Outlook(sf.Estimate(99, 90, 110, "estimate"), share, share, share, 0.5, checkins=2306)
    replace(run.record, to_come=told).write(run.folder / RECORD)
    found = assess(run.folder)
    assert found.held_out == 2306
    assert "measured on 2,306 check-ins that were held out" in assessment_markdown(found)
    assert "held-out check-ins" not in assessment_markdown(found).partition("Data:")[0]


def test_what_held_out_check_ins_lose_stands_beside_what_is_expected(tmp_path):
    recipe = Recipe("four-corners", per_user=(12, 6))
    data = recipe.load()
    problem = sf.Problem(data.train, max_loss=173, cell_m=100)
    solve_and_save(problem, sf.Coin(), tmp_path / "run", recipe=recipe, test=data.test)
    run = load_run(tmp_path / "run")
    fitted = replace(run.record.to_come, loss=sf.Estimate(170, 165, 175, "estimate"), folds=4)
    replace(run.record, to_come=fitted, max_loss=171.0).write(run.folder / RECORD)
    found = assess(run.folder)
    assert found.loss.value == 170 and found.held_out_loss.value > 171 > found.held_out_loss.low
    said = assessment_markdown(found).partition("Data:")[0]
    assert f"{found.held_out_loss.value:,.0f} m (" in said and "on 24 held-out check-ins" in said
    assert "over the budget, by no more than chance explains" in said


def test_what_is_not_certain_does_not_read_100_percent(found):
    def row(chance: float) -> str:
        worst = replace(found.risk("the worst report"), figure=sf.Estimate.exact(chance))
        risks = (*found.risks[:2], worst, *found.risks[3:])
        text = assessment_markdown(replace(found, risks=risks))
        return next(line for line in text.splitlines() if "The maximum risk" in line)

    assert ">99.9%" in row(0.9998) and ">99.9%" not in row(1.0) and "100.0%" in row(1.0)


def test_without_a_proof_none_is_spoken_of_and_the_command_is_named(small, found, tmp_path):
    bare = shutil.copytree(small[0], tmp_path / "run")
    (bare / "certificate.npz").unlink()
    words = ["assess", str(bare), "--out", str(tmp_path / "page.md"), "--data", str(small[1])]
    assert "hint" not in CliRunner().invoke(cli.cli, words).output
    ended = CliRunner().invoke(cli.cli, words[:-2])
    assert f"hint: the column 'proven best' is empty; sfumato certify {bare}" in ended.output
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "Nothing was proved about the best possible" in page and "the proven best on" not in page
    assert found.proved_best and "the proven best on the training" in assessment_markdown(found)


def test_the_figures_are_those_of_the_measures(small, found):
    run, _, samples = small
    judged = sf.judge(sf.load_run(run).mechanism, samples)
    one = found.risk("one report")
    assert one.figure.value == pytest.approx(1 - judged.bayes_error.value)
    assert one.blind == pytest.approx(1 / 3) and one.truth == pytest.approx(1.0)
    assert one.best is not None and one.blind <= one.best <= one.figure.value + 1e-9
    assert found.risk("the worst report").figure.value == judged.worst_report
    linked = [risk.figure.value for risk in found.risks if risk.name == "linked reports"]
    assert one.figure.value < linked[0] < linked[1]


def test_what_was_not_assessed_says_so_and_nothing_is_called_anonymous(found):
    for text in (assessment_html(found), assessment_markdown(found)):
        assert text.count(NOT) > 5 and "anonymous" not in text.lower()
        assert all(heading in text for heading in HEADINGS)
        assert "Next review" in text and "Keeper of the key" in text
        assert "ada" not in re.findall(r"[a-z]+", text)
    assert found.risk("two tables joined").figure is None


def test_no_coordinate_of_the_data_is_in_it(small, found):
    """To four decimals of a degree (11 m), and to a metre on the plane."""
    _, _, samples = small
    latitude, longitude = samples.plane.to_degrees(samples.truth)
    texts = (
        assessment_html(found),
        assessment_markdown(found),
        json.dumps(found.as_dict()),
    )
    for text in texts:
        assert len(text) > 1000
        for value in (*latitude, *longitude):
            assert f"{value:.4f}"[:-1] not in text
        for x, y in samples.truth:
            assert f"{x:.1f}" not in text or f"{y:.1f}" not in text


def test_an_assessment_of_paris_holds_no_coordinate_of_paris(gowalla_paris, tmp_path):
    """Every check-in of the file, to six decimals of a degree, and to four where the assessment has
    no such numbers of its own; and no user."""
    words = [gowalla_paris, "--square", "48.8584,2.3482,6500", "--top-users", 6, "--max-loss", 518]
    words += ["--per-user", "30+10", "--solver", "coin", "--out", tmp_path / "run"]
    ended = CliRunner().invoke(cli.cli, ["solve", *map(str, words)])
    assert ended.exit_code == 0, ended.output
    found = assess(tmp_path / "run")
    every = sf.read_checkins(gowalla_paris)
    degrees = np.concatenate(every.plane.to_degrees(every.truth))
    assert len(degrees) > 10_000
    page, text = assessment_html(found), assessment_markdown(found)
    numbers = {
        name: set(re.findall(r"[0-9]+\.[0-9]+", whole))
        for name, whole in (("page", page), ("text", text), ("json", json.dumps(found.as_dict())))
    }
    for decimals, names in ((4, ("page", "text")), (6, ("page", "text", "json"))):
        places = {f"{abs(value):.{decimals}f}" for value in degrees.tolist()}
        for name in names:
            cut = {f"{float(number):.{decimals}f}" for number in numbers[name] if len(number) > 6}
            assert numbers[name] and not places & cut
    users = set(sf.load_run(tmp_path / "run").record.data.users)
    assert len(users) == 6 and not users & set(re.findall(r"[0-9]+", text))


def test_the_words_of_each_row_say_who_sees_what(found):
    text = assessment_markdown(found)
    assert "The same" not in text and text.count("### 8 ") == 1
    (row,) = [line for line in text.splitlines() if "made from it" in line]
    assert row.split(" | ")[2:4] == ["0.50", "1.00"]  # an area under a curve is no share
    (row,) = [line for line in text.splitlines() if "at a sensitive place" in line]
    assert "none was listed" in row and row.split(" | ")[1:5] == [NOT] * 4
    intruder = found.risk("a trained intruder").figure
    assert intruder.kind == "estimate" and intruder.low < intruder.value < intruder.high
    linked = [line for line in text.splitlines() if "that they are one user's" in line]
    assert len(linked) == 2 and all(NOT not in line.split(" | ")[3] for line in linked)


def test_where_is_between_the_truth_and_a_blind_guess():
    random = np.random.default_rng(1)
    places = random.uniform(-500, 500, (40, 2))
    even = np.full(40, 1 / 40)
    told = [where(Coin(keep, (0.0, 0.0)), places, even) for keep in (0.0, 0.3, 0.7, 1.0)]
    errors = [one.error_m for one in told]
    assert errors[0] == pytest.approx(told[0].blind_m) and errors[3] == 0.0
    np.testing.assert_allclose(errors, np.array([1.0, 0.7, 0.3, 0.0]) * errors[0], atol=1e-9)


def test_a_sensitive_place_is_guessed_as_often_as_the_truth_is_told():
    places = np.arange(10)[:, None] * np.array([100.0, 0.0])
    near = np.arange(10) < 3
    for keep in (0.0, 0.5, 1.0):
        told = where(Coin(keep, (-1.0, 0.0)), places, np.full(10, 0.1), near_sensitive=near)
        assert told.sensitive == pytest.approx(0.7 + 0.3 * keep) and told.sensitive_blind == 0.7


def test_many_places_are_drawn_and_counted():
    places = np.random.default_rng(2).uniform(-500, 500, (1000, 2))
    told = where(Identity(), places, np.full(1000, 1e-3))
    assert told.places == 300 and told.error_m == 0.0 and told.blind_m > 200


@pytest.mark.parametrize("ending", ["html", "md", "json"])
def test_the_command_writes_each_kind(small, tmp_path, ending):
    run, _, samples = small
    latitude, longitude = samples.plane.to_degrees(samples.truth[:3])
    lines = [f"{a:.6f},{b:.6f}\n" for a, b in zip(latitude, longitude, strict=True)]
    (tmp_path / "clinics.csv").write_text("lat,lon\n" + "".join(lines))
    target = tmp_path / f"assessment.{ending}"
    words = [str(run), "--out", str(target)]
    ended = CliRunner().invoke(
        cli.cli, ["assess", *words, "--sensitive", str(tmp_path / "clinics.csv")]
    )
    assert ended.exit_code == 0, ended.output
    text = target.read_text()
    assert "3 places" in text or json.loads(text)["sensitive_places"] == 3
    assert lines[0].split(",")[0][:-3] not in text


def test_bad_input_is_one_sentence_and_nothing_is_written(small, tmp_path):
    run, _, _ = small
    (tmp_path / "empty.csv").write_text("lat,lon\n")
    (tmp_path / "names.csv").write_text("clinic\nx\n")
    for name, words in (("empty.csv", "0 rows"), ("names.csv", "no columns lat and lon")):
        with pytest.raises(DataError, match=words):
            assess(run, sensitive=tmp_path / name)
    with pytest.raises(ProblemError, match="above 0 metres"):
        assess(run, sensitive=tmp_path / "empty.csv", sensitive_m=float("nan"))
    ended = CliRunner().invoke(cli.cli, ["assess", str(run), "--out", str(tmp_path / "a.pdf")])
    assert ended.exit_code == 2 and not (tmp_path / "a.pdf").exists()


def test_an_atlas_is_assessed_or_refused_with_what_would_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(5)
    secret = np.repeat(np.arange(4), 20)
    middles = np.array([[-1000.0, 0.0], [1000.0, 0.0]])
    truth = middles[secret % 2] + np.round(random.normal(0, 60, (80, 2)), -1)
    samples = sf.Samples(secret, truth, tuple("abcd"), plane=PLANE)
    write_split(sf.Split(samples), tmp_path / "data.csv")
    plan = AtlasPlan(sf.Coin(), users_per_tile=2, overlap_m=100, fewest_checkins=5)
    solve_atlas(samples, tmp_path / "run", max_loss=60, plan=plan)
    words = [tmp_path / "run", "--data", tmp_path / "data.csv", "--out", tmp_path / "a.json"]
    ended = CliRunner().invoke(cli.cli, ["assess", *map(str, words)])
    assert ended.exit_code == 0, ended.output
    (tmp_path / "a.json").unlink()
    monkeypatch.setattr("sfumato.study.assess.MOST_ENTRIES", 30)
    monkeypatch.setattr("sfumato.study.assess.measure", None)  # refused before anything is measured
    with pytest.raises(ProblemError, match=r"4 users with .* about \d users would fit"):
        assess(tmp_path / "run", data=tmp_path / "data.csv")
    assert not (tmp_path / "a.json").exists()


_OVER_THE_EDGE = """[...document.querySelectorAll("td, th")].filter((cell) => {
  const inside = document.createRange();
  inside.selectNodeContents(cell);
  return inside.getBoundingClientRect().right > cell.getBoundingClientRect().right - 4;
}).map((cell) => cell.innerText)"""


@pytest.mark.parametrize("width", [390, 768, 900])
def test_no_word_of_a_table_touches_the_edge_of_its_cell(small, tmp_path, width):
    (tmp_path / "page.html").write_text(assessment_html(assess(small[0])))
    with launched() as browser:
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto((tmp_path / "page.html").as_uri())
        assert page.evaluate(_OVER_THE_EDGE) == []

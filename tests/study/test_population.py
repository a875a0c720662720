"""Runs certified for check-ins to come; bounds that are cross-fitted inside the training data."""

from dataclasses import replace

import numpy as np
import pytest

import sfumato as sf
from sfumato.data.recipe import Recipe
from sfumato.data.samples import Samples
from sfumato.errors import DataError, ProblemError
from sfumato.solver.deadline import Deadline
from sfumato.solver.exact import best_within
from sfumato.study.population import (
    CrossFitted,
    blocks_of,
    certify_to_come,
    cross_fitted_bound,
    refuse_shared,
)

CENTRES = np.array([[0.0, 0.0], [250.0, 0.0], [120.0, 220.0]])
NAMES = ("anna", "ben", "cleo")


def draw(each: int, seed: int) -> Samples:
    rng = np.random.default_rng(seed)
    secret = np.repeat(np.arange(3), each)
    truth = np.round(CENTRES[secret] + rng.uniform(-60, 60, (3 * each, 2)), 1)
    return Samples(secret, truth, NAMES, name=f"drawn {seed}")


def write(path, samples: Samples, *, times: bool = False):
    rows = [f"user,x,y{',time' * times}"]
    for at, (x, y) in enumerate(samples.truth):
        rows.append(f"{samples.secrets[samples.secret[at]]},{x},{y}{f',{at}' * times}")
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    recipe = Recipe(str(write(folder / "train.csv", draw(30, 0))))
    problem = sf.Problem(recipe.load().train, max_loss=70, cell_m=50)
    sf.solve(problem, sf.Exact(gap=0.01)).save(folder / "exact", recipe=recipe)
    sf.solve(problem, sf.Coin()).save(folder / "coin", recipe=recipe)
    return folder


def test_a_run_is_certified_by_a_file_and_by_samples_alike(folder):
    held = draw(200, 1)
    by_file = certify_to_come(folder / "exact", write(folder / "held.csv", held))
    assert by_file.proved == certify_to_come(folder / "exact", held).proved
    low, high = by_file.proved.bracket
    assert 0 < low < high < 2 / 3 and by_file.proved.checkins == 600
    assert by_file.as_dict()["sentence"] == str(by_file)
    assert certify_to_come(folder / "exact", held, confidence=0.5).proved.width < high - low


def test_few_check_ins_say_how_many_would_do(folder):
    few = certify_to_come(folder / "exact", draw(8, 1)).proved
    assert few.bracket[1] > 1  # a bound at the mechanism's own loss, weaker than a blind guess
    assert "lies within 0.0000 and 0.6667" in str(few)
    assert f"About {few.needed():,} check-ins would bring that to within 0.06" in str(few)
    nothing = replace(few, least_grid=few.blind, least_plane=few.blind)
    assert f"About {nothing.needed():,} check-ins would bring what is known" in str(nothing)


def test_the_certificate_of_another_run_on_the_same_data_serves(folder):
    found = certify_to_come(folder / "coin", draw(200, 1), other=folder / "exact")
    assert not found.made_now and not (folder / "coin" / "certificate.npz").exists()
    assert not found.proved.on_grid  # the coin says the truth itself: only the plane's bound is its


def test_the_test_part_of_the_recipe_is_held_out(tmp_path):
    source = write(tmp_path / "all.csv", draw(60, 2))
    recipe = Recipe(str(source), per_user=(30, 30))
    problem = sf.Problem(recipe.load().train, max_loss=70, cell_m=50)
    sf.solve(problem, sf.Exact(gap=0.01, plane=False)).save(tmp_path / "run", recipe=recipe)
    assert certify_to_come(tmp_path / "run", "test").proved.checkins == 90
    with pytest.raises(DataError, match="90 of 180 held-out check-ins are training check-ins"):
        certify_to_come(tmp_path / "run", source)


@pytest.mark.parametrize(
    ("held", "reason"),
    [
        (draw(30, 0), "all 90 check-ins"),
        (replace(draw(40, 3), secrets=("x", "y", "z")), "holds none of the 3 users"),
        (draw(40, 3).of_users(("anna", "ben")), r"0 check-in\(s\) of user cleo"),
        (draw(40, 3).take(np.r_[0:40, 40:80, 80]), r"1 check-in\(s\) of user cleo"),
        (draw(2, 3), "prove nothing about check-ins to come; expected about"),
    ],
)
def test_what_is_no_held_out_data_is_refused(folder, held, reason):
    with pytest.raises(DataError, match=reason):
        certify_to_come(folder / "coin", held, other=folder / "exact")
    assert not (folder / "coin" / "certificate.npz").exists()


def test_training_rows_among_the_held_out_ones_are_counted(folder):
    train, fresh = draw(30, 0), draw(30, 5)
    rows = [3, 40, 41, 77]
    both = replace(
        fresh,
        secret=np.concatenate([fresh.secret, train.secret[rows]]),
        truth=np.concatenate([fresh.truth, train.truth[rows]]),
    )
    with pytest.raises(DataError, match="4 of 94 held-out check-ins are training check-ins"):
        certify_to_come(folder / "exact", both)


def test_repeated_visits_are_no_training_rows():
    """Users who go to ten places each come back to them; a copy of the training data does not
    pass."""
    rng = np.random.default_rng(0)

    def visits(each):
        secret = np.repeat(np.arange(3), each)
        place = rng.integers(0, 10, 3 * each)
        return Samples(secret, 100.0 * np.column_stack([secret, place]), NAMES)

    train = visits(40)
    refuse_shared(train, visits(40))
    half = visits(20)
    copied = replace(
        half,
        secret=np.concatenate([half.secret, [0] * 30]),
        truth=np.concatenate([half.truth, draw(30, 0).truth[:30]]),
    )
    with pytest.raises(DataError, match="30 of 90"):
        refuse_shared(draw(30, 0), copied)


def test_with_times_only_the_same_row_is_the_same_check_in(tmp_path):
    train = draw(30, 0)
    trained = write(tmp_path / "train.csv", train, times=True)
    lines = trained.read_text().splitlines()
    later = [lines[0], *(",".join([*line.split(",")[:3], "9999"]) for line in lines[1:40])]
    (tmp_path / "later.csv").write_text("\n".join(later) + "\n")
    refuse_shared(train, train.take(np.arange(39)), files=(trained, tmp_path / "later.csv"))
    (tmp_path / "copied.csv").write_text("\n".join([*later, *lines[60:67]]) + "\n")
    with pytest.raises(DataError, match=r"7 of the held-out check-ins .* place and time"):
        refuse_shared(train, train.take(np.arange(39)), files=(trained, tmp_path / "copied.csv"))


def test_where_the_column_of_times_is_empty_repeated_visits_are_no_training_rows(tmp_path):
    rng = np.random.default_rng(0)
    secret = np.repeat(np.arange(3), 80)
    place = 100.0 * np.column_stack([secret, rng.integers(0, 10, len(secret))])
    both = Samples(secret, place, NAMES)
    train, test = both.take(np.arange(0, 240, 2)), both.take(np.arange(1, 240, 2))
    files = []
    for name, part in (("train.csv", train), ("test.csv", test)):
        written = write(tmp_path / name, part, times=True).read_text().splitlines()
        lines = [written[0], *(line.rpartition(",")[0] + "," for line in written[1:])]
        files.append(tmp_path / name)
        files[-1].write_text("\n".join(lines) + "\n")
    refuse_shared(train, test, files=(files[0], files[1]))


def test_a_confidence_is_between_0_and_1(folder):
    for confidence in (0.0, 1.0, 95.0, float("nan")):
        with pytest.raises(ProblemError, match="lies between 0 and 1"):
            certify_to_come(folder / "exact", draw(40, 3), confidence=confidence)


def test_a_cross_fitted_bound_holds_for_the_population():
    """The best mechanism for 3,000 check-ins of the law stands in for the law's best: it is known
    to within a hundredth."""
    whole = draw(1000, 99)
    problem = sf.Problem(draw(40, 0), max_loss=70, cell_m=50)
    best = best_within(
        sf.Problem(
            whole.take(np.arange(0, 3000, 12)), max_loss=70, region=problem.region, cell_m=50
        ),
        gap=2e-3,
    )
    missed = 0
    for seed in range(8):
        one = sf.Problem(draw(40, seed), max_loss=70, region=problem.region, cell_m=50)
        found = cross_fitted_bound(one, folds=4, seed=seed, confidence=0.8)
        assert isinstance(found, CrossFitted) and found.judged == 90 and found.blocks == 4
        assert found.least <= found.estimate and found.best_error == 1 - found.least
        missed += found.least > best.leakage + 0.01
    assert missed <= 4  # of 8 at 80 %: more have a chance of 1 %
    assert found.least > 1 / 3  # it says more than the blind guess


def test_cross_fitting_needs_a_check_in_of_each_user_in_each_fold():
    samples = draw(5, 0)
    blocks = blocks_of(samples, 5, seed=0)
    assert sorted(np.concatenate(blocks).tolist()) == list(range(15))
    assert all(np.bincount(samples.secret[rows]).tolist() == [1, 1, 1] for rows in blocks)
    with pytest.raises(DataError, match=r"user anna has 5 check-in\(s\); expected at least 6"):
        blocks_of(samples, 6, seed=0)
    with pytest.raises(ProblemError, match="at least 2"):
        blocks_of(samples, 1, seed=0)


def test_no_time_gives_no_bound():
    problem = sf.Problem(draw(20, 0), max_loss=70, cell_m=50)
    assert cross_fitted_bound(problem, deadline=Deadline.after(1e-9)) is None

"""Samples, joints, selection steps, and the four corners."""

from pathlib import Path

import numpy as np
import pytest

from sfumato.data.categories import CategoricalData
from sfumato.data.grid import Grid, Region
from sfumato.data.joint import Joint
from sfumato.data.plane import Plane, inside_square
from sfumato.data.recipe import Recipe
from sfumato.data.samples import Samples, overlap_weights
from sfumato.data.synthetic import SEBASTOPOL, four_corners
from sfumato.errors import DataError, ProblemError, SfumatoError


def _three() -> Samples:
    """Ann 3 times, Bob twice, Cid once."""
    return Samples(
        secret=[0, 0, 0, 1, 1, 2],
        truth=[[0, 0], [0, 0], [10, 0], [10, 0], [60, 60], [61, 61]],
        secrets=("ann", "bob", "cid"),
    )


def test_the_joint_of_samples_is_counted_at_their_own_points() -> None:
    joint = _three().joint()
    assert joint.places is not None and joint.places.tolist() == [
        [0, 0],
        [10, 0],
        [60, 60],
        [61, 61],
    ]
    assert (joint.table * 6).round(12).tolist() == [[2, 1, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1]]
    assert joint.secrets == ("ann", "bob", "cid")


def test_samples_on_a_grid_are_counted_by_cell() -> None:
    joint = _three().on(Grid(cell_m=25))
    assert joint.places is not None and joint.places.tolist() == [[12.5, 12.5], [62.5, 62.5]]
    assert (joint.table * 6).round(12).tolist() == [[3, 0], [1, 1], [0, 1]]


def test_a_joint_goes_through_a_channel_by_the_law_of_total_probability() -> None:
    joint = Joint([[0.5, 0.0], [0.25, 0.25]]).through(np.array([[0.5, 0.5], [0.0, 1.0]]))
    assert joint.table.tolist() == [[0.25, 0.25], [0.125, 0.375]]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ([[0.5, 0.6]], "sum to 1; got 1.1"),
        ([[1.5, -0.5]], "negative number or NaN"),
        ([[float("nan"), 1.0]], "negative number or NaN"),
        ([0.5, 0.5], "a row per secret and a column per place"),
        (np.empty((0, 2)), "a row per secret and a column per place"),
    ],
)
def test_a_table_that_is_no_distribution_is_refused(table: object, words: str) -> None:
    with pytest.raises(ProblemError, match=words):
        Joint(table)  # type: ignore[arg-type]


def test_a_joint_with_too_few_names_or_places_is_refused() -> None:
    with pytest.raises(ProblemError, match="one place per column"):
        Joint([[0.5, 0.5]], places=np.zeros((3, 2)))
    with pytest.raises(ProblemError, match="one name per row"):
        Joint([[0.5, 0.5]], secrets=("a", "b"))
    with pytest.raises(ProblemError, match="the channel has 3 rows for 2 places"):
        Joint([[0.5, 0.5]]).through(np.eye(3))


def test_samples_do_not_change_behind_our_back() -> None:
    truth = np.zeros((2, 2))
    samples = Samples(secret=[0, 1], truth=truth, secrets=("a", "b"))
    truth[0, 0] = 7
    assert samples.truth[0, 0] == 0
    with pytest.raises(ValueError, match="read-only"):
        samples.truth[0, 0] = 7


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_a_truth_that_is_not_finite_is_refused_with_its_row(bad: float) -> None:
    with pytest.raises(DataError, match=r"1 point\(s\) are not finite \(first in data row 2\)"):
        Samples(secret=[0, 1], truth=[[0, 0], [bad, 0]], secrets=("a", "b"))


def test_samples_of_odd_shapes_are_refused() -> None:
    with pytest.raises(DataError, match="n secrets and n points of 2 coordinates"):
        Samples(secret=[0], truth=[[0, 0], [1, 1]], secrets=("a",))
    with pytest.raises(DataError, match="no check-ins left"):
        Samples(secret=[], truth=np.empty((0, 2)), secrets=("a",))
    with pytest.raises(DataError, match="numbered from 0 to 0; got 0 to 1"):
        Samples(secret=[0, 1], truth=[[0, 0], [1, 1]], secrets=("a",))


def test_the_hash_is_of_who_was_where_and_nothing_else() -> None:
    one, other = _three(), _three()
    assert one.hash == other.hash
    assert one.hash != one.take(np.arange(6)[::-1]).hash
    assert one.hash != Samples(one.secret, one.truth, ("ann", "bob", "cyd")).hash
    assert one.hash != Samples(one.secret, one.truth + 1e-9, one.secrets).hash


def test_top_users_keeps_the_most_frequent_and_numbers_them_afresh() -> None:
    top = _three().top_users(2)
    assert top.secrets == ("ann", "bob") and top.counts.tolist() == [3, 2]


def test_asking_for_more_users_than_there_are_is_refused() -> None:
    with pytest.raises(DataError, match=r"has 3 user\(s\) here; 4 were asked for"):
        _three().top_users(4)
    with pytest.raises(DataError, match="must be at least 1; got 0"):
        _three().top_users(0)


def test_a_split_draws_without_replacement_and_shares_no_check_in() -> None:
    samples = Samples(
        secret=np.repeat([0, 1], 10), truth=np.arange(40.0).reshape(20, 2), secrets=("a", "b")
    )
    split = samples.split(6, 4, seed=3)
    assert split.test is not None
    assert split.train.counts.tolist() == [6, 6] and split.test.counts.tolist() == [4, 4]
    assert sorted(split.all.truth[:, 0]) == samples.truth[:, 0].tolist()
    assert split.train.secrets == split.test.secrets == ("a", "b")


def test_a_split_repeats_with_its_seed_and_differs_with_another() -> None:
    samples = four_corners(0).train
    assert samples.split(20, 5, seed=1).train.hash == samples.split(20, 5, seed=1).train.hash
    assert samples.split(20, 5, seed=1).train.hash != samples.split(20, 5, seed=2).train.hash


def test_asking_for_more_check_ins_than_a_user_has_is_refused_by_name() -> None:
    with pytest.raises(
        DataError,
        match=r"user bob has 2 check-ins to draw from; 2\+1 were asked for, and 1 of 2 users has 3:",
    ):
        _three().take(np.arange(5)).renumbered().split(2, 1)
    with pytest.raises(DataError, match=r"user cid has 1 check-in to .* 2 of 3 users have 2:"):
        _three().split(1, 1)
    with pytest.raises(DataError, match=r"got 0\+3"):
        _three().split(0, 3)


def test_a_split_without_test_holds_all_in_training() -> None:
    split = four_corners(0).train.split(10)
    assert split.test is None and split.all is split.train


def test_carving_holds_out_a_share_of_each_secret_by_seed() -> None:
    train, held = four_corners(0).train.carve(0.25, seed=5)
    assert train.counts.tolist() == [360] * 4 and held.counts.tolist() == [120] * 4
    assert held.hash == four_corners(0).train.carve(0.25, seed=5)[1].hash
    assert held.hash != four_corners(0).train.carve(0.25, seed=6)[1].hash


@pytest.mark.parametrize("seed", [-1, 1.5, True, "7"])
def test_a_seed_that_is_no_whole_number_is_refused(seed: object) -> None:
    with pytest.raises(SfumatoError, match="a seed is a whole number, 0 or more"):
        four_corners(seed)  # type: ignore[arg-type]


# Overlap ------------------------------------------------------------------------------------------


def test_a_check_in_weighs_less_where_another_is_more_at_home() -> None:
    """By hand: in the cell about the origin Ann has 2/3 of hers, Bob 1/4 of his; in the next one
    Ann 1/3, Bob 3/4."""
    truth = [[0, 0], [10, 0], [500, 0], [0, 5], [500, 1], [510, 0], [490, 0]]
    samples = Samples(secret=[0, 0, 0, 1, 1, 1, 1], truth=truth, secrets=("ann", "bob"))
    assert overlap_weights(samples, 0.15).tolist() == [1, 1, 0.15, 0.15, 1, 1, 1]
    assert overlap_weights(samples, 1.0).tolist() == [1] * 7


def test_equal_shares_thin_nobody() -> None:
    samples = Samples(secret=[0, 1], truth=[[0, 0], [1, 1]], secrets=("ann", "bob"))
    assert overlap_weights(samples, 0.0).tolist() == [1, 1]


def test_one_overlap_cell_is_centred_on_the_origin() -> None:
    """Points at +-240 m lie in one 500 m cell, a point at 260 m in the next."""
    samples = Samples(
        secret=[0, 1, 1, 1], truth=[[-240, 0], [240, 0], [260, 0], [270, 0]], secrets=("a", "b")
    )
    assert overlap_weights(samples, 0.5).tolist() == [1, 0.5, 1, 1]


def test_weight_zero_leaves_overlapping_check_ins_out_and_counts_what_is_left() -> None:
    truth = [[0, 0], [10, 0], [500, 0], [0, 5], [500, 1], [510, 0], [490, 0]]
    samples = Samples(secret=[0, 0, 0, 1, 1, 1, 1], truth=truth, secrets=("ann", "bob"))
    train = samples.split(2, 0, overlap_weight=0.0).train
    assert set(map(tuple, train.truth[train.secret == 0])) == {(0, 0), (10, 0)}
    with pytest.raises(DataError, match="user ann has 2 check-ins to draw from"):
        samples.split(3, 0, overlap_weight=0.0)


def test_a_thinned_draw_takes_overlapping_check_ins_at_the_odds_of_its_weight() -> None:
    """One draw out of 1 overlapping (0.25) and 3 others: chance 0.25/3.25 = 1/13.

    Over 1500 seeds the share has a standard error of 0.0069; a weight that was ignored (1/4) or
    squared (1/49) is 8 of these away.
    """
    truth = [[0, 0], [500, 0], [510, 0], [520, 0], [0, 1], [1, 0], [2, 0], [3, 0]]
    samples = Samples(secret=[0] * 4 + [1] * 4, truth=truth, secrets=("a", "b"))
    drawn = [
        samples.split(1, seed=seed, overlap_weight=0.25).train.truth[0, 0] == 0
        for seed in range(1500)
    ]
    assert np.mean(drawn) == pytest.approx(1 / 13, abs=4.5 * 0.0069)


@pytest.mark.parametrize("weight", [-0.1, 1.1, float("nan")])
def test_an_overlap_weight_that_is_no_share_is_refused(weight: float) -> None:
    with pytest.raises(DataError, match="the overlap weight lies between 0 and 1"):
        overlap_weights(_three(), weight)


def test_a_thinned_draw_gives_training_and_test_one_law() -> None:
    """Half of the rows weigh 0.2.  Of 20 + 20 drawn rows the light ones fall on either side alike.

    Over 200 seeds each side holds about 1000 light rows with a standard deviation below 30; a draw
    that took the heavy rows first into training would put at least 200 more into test.
    """
    home = np.repeat([[0.0, 0.0], [500.0, 0.0]], 40, axis=0)
    truth = np.concatenate([home, np.repeat([[500.0, 0.0]], 60, axis=0), np.zeros((50, 2))])
    samples = Samples(secret=np.repeat([0, 1], [80, 110]), truth=truth, secrets=("a", "b"))
    light = np.zeros(2)
    for seed in range(200):
        split = samples.split(20, 20, seed=seed, overlap_weight=0.2)
        assert split.test is not None
        light += [np.sum(part.truth[part.secret == 0, 0] > 0) for part in (split.train, split.test)]
    assert abs(light[0] - light[1]) < 4.5 * 30 * 2**0.5 < 200


# Squares ------------------------------------------------------------------------------------------


def test_a_square_keeps_what_lies_in_it_and_centres_the_plane_there() -> None:
    corners = four_corners(0).all
    lat, lon = Plane(*SEBASTOPOL).to_degrees(np.array([[150.0, 150.0]]))
    red = corners.in_square(float(lat[0]), float(lon[0]), 100)
    assert red.secrets == ("red",) and len(red) == 600
    assert np.linalg.norm(red.truth, axis=1).max() <= 45.001
    assert red.plane == Plane(float(lat[0]), float(lon[0]))


def test_a_square_moves_the_region_with_the_plane() -> None:
    lat, lon = Plane(*SEBASTOPOL).to_degrees(np.array([[150.0, 150.0]]))
    region = four_corners(0).all.in_square(float(lat[0]), float(lon[0]), 700).region
    assert region is not None and region.side_m == 6500
    assert region.centre == pytest.approx((-150, -150), abs=0.01)


def test_an_empty_square_is_refused_and_a_swapped_one_named() -> None:
    corners = four_corners(0).all
    with pytest.raises(
        DataError,
        match=(
            r"none of 2400 check-ins lies in the 500 m square around 48\.9,2\.3482: move or widen"
        ),
    ):
        corners.in_square(48.9, 2.3482, 500)
    with pytest.raises(DataError, match="latitude and longitude are probably swapped") as caught:
        inside_square(
            np.array([2.3482]), np.array([48.8584]), (48.8584, 2.3482, 500), source="log.csv"
        )
    assert caught.value.hint == (
        "name the columns with lat and lon, or write the square's latitude first"
    )


@pytest.mark.parametrize("side", [0, -1, float("nan"), float("inf")])
def test_a_square_without_a_side_is_refused(side: float) -> None:
    with pytest.raises(DataError, match="side of the square must be above 0 metres"):
        four_corners(0).all.in_square(*SEBASTOPOL, side)


@pytest.mark.parametrize(("lat", "lon"), [(91, 0), (0, 181), (float("nan"), 0), (0, float("nan"))])
def test_a_square_about_no_place_on_earth_is_refused(lat: float, lon: float) -> None:
    with pytest.raises(DataError, match="is not latitude,longitude in degrees"):
        four_corners(0).all.in_square(lat, lon, 100)


def test_a_square_across_the_antimeridian_is_refused_not_halved() -> None:
    lat, lon = np.array([-17.0, -17.0]), np.array([179.99, -179.99])
    with pytest.raises(DataError, match="antimeridian"):
        inside_square(lat, lon, (-17.0, 179.995, 10_000), source="fiji.csv")
    kept, _, _ = inside_square(lat, lon, (-17.0, 179.9, 20_000), source="fiji.csv")
    assert kept.tolist() == [0]


def test_a_square_needs_degrees() -> None:
    with pytest.raises(DataError, match="is in plane metres"):
        _three().in_square(0, 0, 100)


def test_users_are_kept_by_name_and_an_unknown_one_is_refused(tmp_path: Path) -> None:
    kept = four_corners(0).train.of_users(("yellow", "red"))
    assert kept.secrets == ("red", "yellow") and kept.counts.tolist() == [480, 480]
    with pytest.raises(DataError, match="no user 'pink'"):
        kept.of_users(("pink",))
    with pytest.raises(DataError, match="no user was named"):
        kept.of_users(())
    split = Recipe("four-corners", users=("red", "blue")).load()
    assert (
        split.train.secrets == ("blue", "red") and split.test is not None and len(split.test) == 240
    )
    file = tmp_path / "log.csv"
    file.write_text("user,x,y\nann,0,0\nben,1,1\ncat,2,2\n", encoding="utf-8")
    again = Recipe.from_dict(Recipe(str(file), users=("ben", "ann")).as_dict())
    assert again.load().train.secrets == ("ann", "ben")


# Four corners -------------------------------------------------------------------------------------


def test_four_corners_are_discs_of_45_m_about_a_square_of_300_m() -> None:
    data = four_corners(seed=4)
    assert data.test is not None
    assert data.train.counts.tolist() == [480] * 4 and data.test.counts.tolist() == [120] * 4
    everything = data.all
    corners = {"blue": (-150, 150), "red": (150, 150), "green": (-150, -150), "yellow": (150, -150)}
    for number, name in enumerate(everything.secrets):
        away = np.linalg.norm(everything.truth[everything.secret == number] - corners[name], axis=1)
        assert away.max() <= 45
        # Uniform on the disc: the mean distance is 2/3 of 45 m with a standard error of 0.43 m over
        # 600; uniform in radius gives 22.5 m.
        assert away.mean() == pytest.approx(30, abs=4.5 * 0.43)
    assert everything.region == Region((0.0, 0.0), 6500.0) and everything.plane == Plane(
        48.8584, 2.3482
    )


def test_four_corners_repeat_with_their_seed() -> None:
    assert four_corners(3).train.hash == four_corners(3).train.hash != four_corners(4).train.hash


def test_a_name_with_half_a_letter_is_refused() -> None:
    with pytest.raises(DataError, match=r"x: name 2 holds half of a letter.*UTF-8"):
        Samples(np.array([0, 1]), np.array([[0.0, 0.0], [90.0, 0.0]]), ("a", "b\ud800"), name="x")
    joint = Joint(np.eye(2) / 2, secrets=("a", "b"))
    with pytest.raises(DataError, match="name 3 holds half of a letter"):
        CategoricalData(joint, ("\udfff", "y"), ("x", "y"), np.zeros((2, 2)))

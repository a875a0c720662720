"""What `measure` and `compare` say of repeated reports and of users who are not in the data."""

import re

import pytest


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A coin, Laplace and an exact channel on 12 + 12 check-ins of each user of four-corners."""
    import sfumato as sf
    from sfumato.data.recipe import Recipe

    folder = tmp_path_factory.mktemp("runs")
    recipe = Recipe("four-corners", per_user=(12, 12))
    problem = sf.Problem(recipe.load().train, max_loss=173, cell_m=100)
    for solver in (sf.Coin(), sf.Laplace(), sf.Exact(plane=False)):
        sf.solve(problem, solver).save(folder / solver.name, recipe=recipe)
    return folder


def test_many_reports_of_a_coin_hide_as_its_law_says(sfumato, runs):
    ended = sfumato(
        "measure", runs / "coin", "--reports-per-user", "5,1,2", "--sticky-cell-m", 200, "--json"
    )
    found = ended.document["repeated"]
    assert set(found) == {"training data", "test data"}
    training = found["training data"]
    assert training["reports"] == [1, 2, 5] and training["sticky_cell_m"] == 200
    one = ended.document["bayes_error"]["value"]
    for count, estimate in zip((1, 2, 5), training["fresh"], strict=True):  # 3/4 (1 - keep)^n
        assert estimate["low"] - 1e-9 <= 0.75 * (one / 0.75) ** count <= estimate["high"] + 1e-9
    assert training["first"]["value"] == pytest.approx(one) and training["first"]["kind"] == "exact"
    assert training["fresh"][2]["kind"] == "estimate" and "unbiased" in training["fresh"][2]["errs"]
    assert training["middle_loss"] > 0 and training["middle"]["kind"] == "exact"


def test_many_reports_are_a_table_that_says_what_remains(sfumato, runs):
    ended = sfumato("measure", runs / "laplace", "--reports-per-user", "1,2,5")
    assert ended.code == 0
    for words in (
        "by number of reports seen, test data",
        "the first report kept",
        "middle of its 25 m cell",
        "other periods and other places",
    ):
        assert words in ended.out


def test_users_left_out_are_solved_once_and_kept(sfumato, runs, tmp_path):
    ended = sfumato(
        "measure", runs / "coin", "--leave-one-out", "--keep", tmp_path / "kept", "--json"
    )
    left = ended.document["left_out"]
    assert {one["user"] for one in left} == {"blue", "green", "red", "yellow"}
    for one in left:
        user = next(user for user in one["test data"]["per_user"] if user["user"] == one["user"])
        was = next(
            user for user in ended.document["test"]["per_user"] if user["user"] == one["user"]
        )
        assert (
            user["loss"] > was["loss"] + 50
        )  # the fixed place moves away from the corner of the user left out
    assert re.search(r"left out \w+ \(4 of 4\): solved", ended.err)
    again = sfumato("measure", runs / "coin", "--leave-one-out", "--keep", tmp_path / "kept")
    assert "read again" in again.err and "left out of training, test data" in again.out


def test_the_exact_channels_file_is_marked_as_listing_its_points(sfumato, runs):
    found = sfumato("measure", runs / "exact", "--json").document["membership"]
    assert found["listed"] == 1 and "lists its training points" in found["verdict"]
    assert found["auc"]["nearer to a place in the file"]["value"] == 1
    laplace = sfumato("measure", runs / "laplace", "--json").document["membership"]
    assert laplace["listed"] == 0


def test_other_shares_stand_in_measure_and_compare(sfumato, runs):
    found = sfumato("measure", runs / "coin", "--json").document
    shares = found["other_shares"]["training data"]
    assert shares["given"]["bayes_error"]["value"] == pytest.approx(found["bayes_error"]["value"])
    assert len(shares["doubled"]) == 4 and shares["bayes_capacity"] >= 1
    ended = sfumato("compare", runs / "coin", runs / "exact", "--details")
    assert "error, equal shares" in ended.out and "lists 100% of its training points" in ended.out
    row = sfumato("compare", runs / "coin", "--json").document["mechanisms"][0]
    assert (
        row["other_shares"]["equal"]["blind_error"] == pytest.approx(0.75)
        and row["membership"]["listed"] == 0
    )
    assert row["left_out"] == []


def test_the_page_shows_who_is_not_in_the_data(sfumato, runs, tmp_path):
    ended = sfumato(
        "compare",
        runs / "coin",
        runs / "laplace",
        "--leave-one-out",
        "--html",
        tmp_path / "page.html",
    )
    assert ended.code == 0 and "laplace: left out" in ended.err
    page = (tmp_path / "page.html").read_text()
    assert "Who is not in the data" in page and "each user left out of training in turn" in page
    assert "distinguishes training points" in page and "whatever the shares" in page


REFUSED = {
    "no number": (["--reports-per-user", "1,many"], ["'1,many'", "1,2,5,10,50"]),
    "no report": (["--reports-per-user", "0"], ["'0'", "at least 1"]),
    "too many reports": (["--reports-per-user", "20000"], ["from 1 to 10000", "20000"]),
    "a place of no width": (
        ["--reports-per-user", "1", "--sticky-cell-m", "0"],
        ["above 0 metres"],
    ),
    "a place that is not a number": (
        ["--reports-per-user", "1", "--sticky-cell-m", "nan"],
        ["above 0 metres"],
    ),
    "a place alone": (["--sticky-cell-m", "100"], ["goes with --reports-per-user"]),
    "a folder alone": (["--keep", "kept"], ["goes with --leave-one-out"]),
    "other data": (["--leave-one-out", "--data", "four-corners"], ["does not go with --data"]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_makes_no_sense_is_refused(sfumato, runs, name):
    options, words = REFUSED[name]
    ended = sfumato("measure", runs / "coin", *options)
    assert ended.code == 2 and ended.out == ""
    error = [line for line in ended.err.splitlines() if line.startswith("error: ")]
    assert len(error) == 1 and all(word in error[0] for word in words), ended.err


def test_a_file_of_reports_cannot_answer(sfumato, tmp_path):
    (tmp_path / "reports.csv").write_text("user,x,y\na,0,0\nb,1,1\n")
    ended = sfumato("measure", tmp_path / "reports.csv", "--reports-per-user", "1,2")
    assert ended.code == 2 and "measured of a run" in ended.err


def test_a_kept_run_of_another_question_is_refused(sfumato, runs, tmp_path):
    assert (
        sfumato("measure", runs / "coin", "--leave-one-out", "--keep", tmp_path / "kept").code == 0
    )
    ended = sfumato("measure", runs / "laplace", "--leave-one-out", "--keep", tmp_path / "kept")
    assert ended.code == 2 and "another problem, solver or seed" in ended.err


def test_users_of_other_data_are_not_left_out(sfumato, runs):
    ended = sfumato("compare", runs / "coin", "--leave-one-out", "--data", "four-corners")
    assert ended.code == 2 and "without --data" in ended.err

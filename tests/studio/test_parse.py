"""What the page sends is a value of its kind, or a sentence in the page's words."""

from typing import Any

import pytest

from sfumato.data.recipe import Recipe
from sfumato.errors import ProblemError, SfumatoError, arg
from sfumato.studio import parse


@pytest.mark.parametrize("body", [b"[1]", b"{", b"1", b'{"a": NaN}', b'{"a": "\\ud800"}', b"\xff"])
def test_what_is_no_json_object_is_refused(body: bytes) -> None:
    with pytest.raises(ProblemError, match="not a JSON object"):
        parse.document(body)
    assert parse.document(b"") == {}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("12", "is a number; got '12'"),
        (True, "is a number"),
        ([1], "is a number"),
        (1e300, "of ordinary size"),
        (float("inf"), "of ordinary size"),
        (0, "must be above 0"),
        (-3.5, "must be above 0; got -3.5"),
    ],
)
def test_a_budget_is_a_number_above_0(value: Any, words: str) -> None:
    with pytest.raises(ProblemError, match="the budget, in metres") as refused:
        parse.budget({"max_loss": value}, missing="")
    assert words in str(refused.value)


def test_what_is_missing_is_none_or_says_what_to_do() -> None:
    assert parse.cell_m({}) is None and parse.time_limit({"time_limit": ""}) is None
    assert parse.budget({"max_loss": 173}, missing="") == 173.0
    with pytest.raises(ProblemError, match="is missing; set the slider"):
        parse.budget({}, missing="; set the slider")


def test_a_seed_and_a_count_are_whole() -> None:
    assert parse.whole({"seed": 3.0}, "seed", what="the seed") == 3
    assert parse.whole({}, "seed", what="the seed", default=7) == 7
    for value in (2.5, -1):
        with pytest.raises(ProblemError, match="the seed is a whole number, 0 or more"):
            parse.whole({"seed": value}, "seed", what="the seed")
    assert parse.reports({"reports": 5}) == 5
    with pytest.raises(ProblemError, match="1 or more; got 0"):
        parse.reports({"reports": 0})


def test_texts_of_a_request_are_read_and_anything_else_is_refused() -> None:
    assert parse.words({"solver": "coin"}, "solver") == "coin" and parse.words({}, "solver") is None
    assert parse.texts({"runs": ["a", "b"]}, "runs") == ["a", "b"] and parse.texts({}, "runs") == []
    for asked in ({"runs": "a"}, {"runs": [1]}, {"runs": {}}):
        with pytest.raises(ProblemError, match="a list of texts"):
            parse.texts(asked, "runs")
    with pytest.raises(ProblemError, match="'solver' is text"):
        parse.words({"solver": 3}, "solver")


def test_the_data_panel_makes_a_recipe() -> None:
    asked = {"square": [48.8, 2.3, 4500], "users": ["ann"], "train": 8, "test": 2, "lat": "y"}
    assert parse.recipe_of(asked, "log.csv") == Recipe(
        "log.csv", square=(48.8, 2.3, 4500.0), users=("ann",), per_user=(8, 2), lat="y"
    )
    assert parse.recipe_of({"top_users": 6}, "log.csv") == Recipe("log.csv", top_users=6)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"square": [48.8, 2.3]}, "fill in all three"),
        ({"square": "48.8,2.3,4500"}, "fill in all three"),
        ({"test": 3}, "how many training check-ins"),
        ({"top_users": 0}, "1 or more"),
    ],
)
def test_a_selection_that_makes_no_sense_is_a_sentence(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(ProblemError, match=words):
        parse.recipe_of(asked, "log.csv")


def test_sentences_name_the_fields_of_the_page() -> None:
    error = SfumatoError(f"set {arg('max_loss')} or {arg('min_bayes_error')}")
    assert parse.in_page(error) == "set the field Budget or min bayes error"
    assert parse.in_page(ValueError("as it is")) == "as it is"

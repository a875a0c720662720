"""Which columns of a table hold the place, the user and the time: by name, or refused."""

import pytest

from sfumato.deploy.columns import Columns, check_header, find_columns, find_optional, users
from sfumato.errors import DataError

NAMES = ["id", "Latitude", "LON", "uid", "time"]


def test_usual_names_are_found_in_any_case() -> None:
    found = find_columns(NAMES, source="log.csv", degrees=True, asks_user=True, asks_time=True)
    assert found == Columns("Latitude", "LON", "uid", "time")
    assert find_columns(["x", "y"], source="log.csv", degrees=False) == Columns("x", "y")


def test_a_name_that_is_given_counts_and_must_be_there() -> None:
    found = find_columns([*NAMES, "n"], source="log.csv", degrees=True, lat="n")
    assert found.first == "n"
    with pytest.raises(DataError, match="has no column 'north'; it has 5 others"):
        find_columns(NAMES, source="log.csv", degrees=True, lat="north")


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["id", "lon"], "no column for lat"),
        (["lat", "latitude", "lon"], "several columns for lat"),
    ],
)
def test_none_and_several_are_refused(names: list[str], words: str) -> None:
    with pytest.raises(DataError, match=words):
        find_columns(names, source="log.csv", degrees=True)


def test_one_column_is_not_both_coordinates() -> None:
    with pytest.raises(DataError, match="cannot be both lat and lon"):
        find_columns(NAMES, source="log.csv", degrees=True, lat="LON")


def test_a_name_like_a_coordinate_and_a_name_that_is_there_twice_are_refused() -> None:
    assert check_header(NAMES, source="log.csv") == NAMES
    with pytest.raises(DataError, match="column 2 holds a number like a coordinate") as refused:
        check_header(["lat", "48.85837"], source="log.csv")
    assert "48.85837" not in str(refused.value)
    with pytest.raises(DataError, match="the column 'lat' twice"):
        check_header(["lat", "lon", "lat"], source="log.csv")


def test_a_number_of_the_row_is_no_user_unless_it_is_said_to_be() -> None:
    assert users(NAMES, None) == ["uid"] and users(NAMES, "id") == ["id", "uid"]
    assert find_optional(["id", "lat"], user=None, time=None, source="log.csv") == (None, None)
    assert find_optional(NAMES, user="id", time=None, source="log.csv") == ("id", "time")

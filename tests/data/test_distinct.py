"""Rows that repeat, each once."""

import numpy as np
import pytest

from sfumato.data import distinct as module
from sfumato.data.distinct import Numbered, distinct, note, unique_points


@pytest.mark.parametrize("rows", [300, 40_000])
def test_rows_are_found_again_bit_by_bit(rows: int) -> None:
    random = np.random.default_rng(0)
    places = np.vstack(
        [random.normal(0, 1e3, (90, 2)), [[0.0, -0.0], [np.nan, 1.0], [1.0, np.nan]]]
    )
    points = places[random.integers(0, len(places), rows)]
    found = distinct(points)
    assert found is not None
    assert found[0][found[1]].tobytes() == points.tobytes()
    assert len(found[0]) == len({row.tobytes() for row in points})


@pytest.mark.parametrize("rows", [100, 1_000, 40_000])
def test_rows_that_differ_are_left_alone(rows: int) -> None:
    assert distinct(np.random.default_rng(0).normal(size=(rows, 2))) is None


def test_two_rows_of_one_key_are_not_taken_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FACTORS", (0, 0))
    assert distinct(np.tile([[1.0, 2.0], [3.0, 4.0]], (300, 1))) is None


def test_a_note_is_not_believed_of_an_array_that_was_changed() -> None:
    places, number = np.arange(20.0).reshape(10, 2), np.arange(4_000) % 10
    points = places[number]
    note(points, places, number)
    assert distinct(points) == (places, number)  # the very arrays
    points[7] = 0.5
    found = distinct(points)
    assert found is not None and len(found[0]) == 11
    assert np.array_equal(found[0][found[1]], points)
    note(places, places, np.arange(10))  # nothing repeats: not noted
    assert distinct(places) is None


@pytest.mark.parametrize("most", [5, 10**6])
def test_points_are_numbered_as_by_sorting_all_of_them(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(module, "_AT_ONCE", 64)
    monkeypatch.setattr(module, "_MOST_MERGED", most)
    random = np.random.default_rng(1)
    points = np.round(random.normal(0, 2, (1000, 2)))
    places, number = unique_points(points)
    wanted, column = np.unique(points, axis=0, return_inverse=True)
    assert np.array_equal(places, wanted) and np.array_equal(number, column.ravel())
    assert np.array_equal(places[number], points)


def test_known_rows_are_found_again_and_new_ones_are_numbered_behind_them() -> None:
    random = np.random.default_rng(2)
    every = np.vstack([random.normal(0, 1e3, (200, 2)), [[0.0, -0.0], [np.nan, 1.0]]])
    known = Numbered(every[:150])
    points = every[np.append(np.arange(len(every)), random.integers(0, 150, 2000))]
    found = known.numbers(points)
    assert found is not None and len(found[0]) == 52
    assert np.vstack([every[:150], found[0]])[found[1]].tobytes() == points.tobytes()
    again = known.with_more(found[0]).numbers(points)
    assert again is not None and not len(again[0])
    assert np.array_equal(again[1], found[1])
    assert known.numbers(points[:200]) is None  # too few
    assert known.numbers(random.normal(size=(2000, 2))) is None  # all new
    assert known.numbers(every[np.arange(2000) % 30]) is None  # few of those that are known


def test_a_row_whose_key_another_has_is_not_taken_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FACTORS", (0, 0))
    assert Numbered(np.array([[1.0, 2.0]])).numbers(np.tile([[3.0, 4.0]], (300, 1))) is None

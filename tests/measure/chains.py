"""Random finite chains X - W - Z - Y with whole-number weights, so that fractions are exact."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from hypothesis import strategies as st

from sfumato.data.joint import Joint
from sfumato.measure.exact import mutual_information


def tables(rows: int, columns: int) -> st.SearchStrategy[np.ndarray]:
    """Whole numbers from 0 to 12, not all zero."""
    whole = st.lists(st.integers(0, 12), min_size=rows * columns, max_size=rows * columns)
    return whole.filter(any).map(lambda numbers: np.array(numbers).reshape(rows, columns))


def channels(rows: int, columns: int) -> st.SearchStrategy[np.ndarray]:
    """Rows of whole numbers, none all zero, divided by their sums."""
    row = st.lists(st.integers(0, 9), min_size=columns, max_size=columns).filter(any)
    return st.lists(row, min_size=rows, max_size=rows).map(
        lambda found: np.array(found) / np.sum(found, axis=1, keepdims=True)
    )


@dataclass(frozen=True)
class Chain:
    """P(x,w), two mechanisms P(z|w), a classifier P(y|z), and a loss d(w,z)."""

    weights: np.ndarray
    mechanism: np.ndarray
    other: np.ndarray
    classifier: np.ndarray
    distance: np.ndarray

    @property
    def joint(self) -> Joint:
        return Joint(self.weights / self.weights.sum())

    def loss(self, mechanism: np.ndarray) -> float:
        return float(self.joint.place_probability @ np.sum(mechanism * self.distance, axis=1))


@st.composite
def chains(draw: st.DrawFn) -> Chain:
    secrets, truths, reports = (
        draw(st.integers(1, 4)),
        draw(st.integers(1, 4)),
        draw(st.integers(1, 4)),
    )
    return Chain(
        weights=draw(tables(secrets, truths)),
        mechanism=draw(channels(truths, reports)),
        other=draw(channels(truths, reports)),
        classifier=draw(channels(reports, secrets)),
        distance=draw(tables(truths, reports)).astype(float),
    )


@st.composite
def joints(draw: st.DrawFn, most: int = 5) -> Joint:
    weights = draw(tables(draw(st.integers(1, most)), draw(st.integers(1, most))))
    return Joint(weights / weights.sum())


def best_classifier(joint: Joint) -> tuple[float, np.ndarray]:
    """max over C of I(X;Y), by trying them all: I is convex in C, so a deterministic classifier
    attains it."""
    secrets, reports = joint.table.shape
    found = [np.eye(secrets)[list(guesses)] for guesses in product(range(secrets), repeat=reports)]
    worth = [mutual_information(joint.through(classifier)) for classifier in found]
    return max(worth), found[int(np.argmax(worth))]


def bayes_error_in_fractions(weights: np.ndarray) -> Fraction:
    """1 - sum_z max_x, exactly."""
    return 1 - Fraction(int(weights.max(axis=0).sum()), int(weights.sum()))

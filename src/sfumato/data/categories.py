"""Data that are not places: a table P(secret, truth) with truths in words, and a loss of the user's
own."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from sfumato.data.joint import Joint, check_names
from sfumato.data.plane import Plane
from sfumato.data.read import read_table
from sfumato.errors import DataError
from sfumato.files import array_hash
from sfumato.show import InNotebooks


@dataclass(frozen=True, eq=False, repr=False)
class LossMatrix:
    """A loss that is looked up: `matrix` has one row per truth and one column per report.

    Truth k and report k are written as the place (k, 0), so that every mechanism and measure that
    works on places works on categories too.
    """

    matrix: np.ndarray
    __name__ = "loss matrix"
    unit = ""  # whatever its table counts

    def __call__(self, truth: np.ndarray, report: np.ndarray) -> np.ndarray:
        return self.matrix[
            np.asarray(truth)[..., 0].astype(int), np.asarray(report)[..., 0].astype(int)
        ]


@dataclass(frozen=True, eq=False, repr=False)
class CategoricalData(InNotebooks):
    """P(secret, truth) for any finite secret and truth, with the loss of each (truth, report).

    >>> joint = Joint(np.eye(2) / 2, secrets=("a", "b"))
    >>> table = CategoricalData(joint, ("x", "y"), ("x", "y"), np.array([[0, 1], [1, 0]]))
    >>> table.report_name(np.array([[1.0, 0.0]]))
    ['y']
    """

    probabilities: Joint
    truths: tuple[str, ...]
    reports: tuple[str, ...]
    losses: np.ndarray
    name: str = "table"
    notes: tuple[str, ...] = ()
    plane: ClassVar[Plane | None] = None
    region = None

    def __post_init__(self) -> None:
        losses = np.array(self.losses, dtype=float)
        shape = (len(self.truths), len(self.reports))
        if self.probabilities.table.shape[1] != len(self.truths) or losses.shape != shape:
            raise DataError(
                f"{self.name}: {self.probabilities.table.shape[1]} columns of probabilities,"
                f" {len(self.truths)} truths and a loss of shape {losses.shape}; expected one"
                f" column per truth and losses of shape {shape}"
            )
        check_names((*self.secrets, *self.truths, *self.reports), source=self.name)
        if not (np.all(losses >= 0) and np.all(np.isfinite(losses))):
            raise DataError(
                f"{self.name}: losses are finite numbers of at least 0; got a negative one, an"
                " infinite one or NaN",
                hint="for pairs that must never occur, write a large loss and set a hard cap",
            )
        object.__setattr__(self, "losses", losses)

    def __repr__(self) -> str:
        return f"<CategoricalData {self.name!r}: {self.described}>"

    def __len__(self) -> int:
        return len(self.truths)

    @property
    def described(self) -> str:
        """How many there are, in words."""
        return f"{len(self)} truths and {len(self.secrets)} secrets"

    @property
    def secrets(self) -> tuple[str, ...]:
        """The names of the secrets."""
        return self.probabilities.secrets

    @cached_property
    def hash(self) -> str:
        """SHA-256 over names, probabilities and losses."""
        names = np.frombuffer(
            "\n".join([*self.secrets, "", *self.truths, "", *self.reports]).encode(), dtype=np.uint8
        )
        return array_hash(names, self.probabilities.table, self.losses)

    @property
    def loss(self) -> LossMatrix:
        """The loss as a function of (truth, report)."""
        return LossMatrix(self.losses)

    @property
    def report_places(self) -> np.ndarray:
        """Report k at (k, 0)."""
        return _along(len(self.reports))

    def on_plane(self, plane: Plane | None) -> "CategoricalData":
        """Itself: categories lie on no plane."""
        return self

    def joint(self) -> Joint:
        """P(secret, truth) with truth k at (k, 0); truths of probability zero left out."""
        return self._joint

    @cached_property
    def _joint(self) -> Joint:
        possible = self.probabilities.place_probability > 0
        return Joint(
            self.probabilities.table[:, possible],
            places=_along(len(self.truths))[possible],
            secrets=self.secrets,
        )

    def report_name(self, places: np.ndarray) -> list[str]:
        """The words for reports."""
        return [self.reports[int(place[0])] for place in np.atleast_2d(places)]

    def truth_place(self, words: list[str]) -> np.ndarray:
        """The places that stand for truths in words."""
        unknown = [word for word in words if word not in self.truths]
        if unknown:
            raise DataError(
                f"'{unknown[0]}' is not a truth of {self.name}; expected one of"
                f" {', '.join(self.truths[:8])}"
            )
        return _along(len(self.truths))[[self.truths.index(word) for word in words]]


def _along(count: int) -> np.ndarray:
    return np.stack([np.arange(count, dtype=float), np.zeros(count)], axis=1)


def read_categories(probabilities: str | Path, losses: str | Path) -> CategoricalData:
    """Read a table from two CSV files.

    `probabilities` has columns secret, truth, probability (or count); `losses` has columns truth,
    report, loss, one row for every pair.

    >>> _ = Path("p.csv").write_text("secret,truth,count\\nann,tea,3\\nbob,coffee,1\\n")
    >>> rows = "tea,tea,0\\ntea,coffee,1\\ncoffee,tea,1\\ncoffee,coffee,0\\n"
    >>> _ = Path("l.csv").write_text("truth,report,loss\\n" + rows)
    >>> read_categories("p.csv", "l.csv")
    <CategoricalData 'p.csv': 2 truths and 2 secrets>
    """
    first, second = Path(probabilities), Path(losses)
    table = _columns(first, ("secret", "truth"), ("probability", "count"))
    costs = _columns(second, ("truth", "report"), ("loss",))
    secrets, truths = (tuple(dict.fromkeys(column)) for column in (table[0], table[1]))
    reports = tuple(dict.fromkeys(costs[1]))
    unknown = [word for word in truths if word not in set(costs[0])]
    if unknown:
        raise DataError(
            f"{second.name} has no loss for the truth '{unknown[0]}'; expected a row for every"
            " truth and report"
        )
    weights = np.zeros((len(secrets), len(truths)))
    for secret, truth, weight in zip(*table, strict=True):
        weights[secrets.index(secret), truths.index(truth)] += weight
    if not (np.all(weights >= 0) and 0 < weights.sum() < np.inf):
        raise DataError(
            f"{first.name}: probabilities are numbers of at least 0 that are not all 0; repair"
            " the column"
        )
    matrix = np.full((len(truths), len(reports)), np.nan)
    for truth, report, cost in zip(*costs, strict=True):
        if truth in truths:
            if not np.isnan(matrix[truths.index(truth), reports.index(report)]):
                raise DataError(
                    f"{second.name} gives the loss of truth '{truth}' and report '{report}' twice;"
                    " keep one row for each pair"
                )
            matrix[truths.index(truth), reports.index(report)] = cost
    if np.any(np.isnan(matrix)):
        row, column = np.argwhere(np.isnan(matrix))[0]
        raise DataError(
            f"{second.name} has no loss for truth '{truths[row]}' and report '{reports[column]}';"
            " expected every pair"
        )
    return CategoricalData(
        Joint(weights / weights.sum(), secrets=secrets), truths, reports, matrix, name=first.name
    )


def _columns(
    path: Path, words: tuple[str, str], numbers: tuple[str, ...]
) -> tuple[list[str], list[str], list[float]]:
    table = read_table(path, words=words)
    number = next((name for name in numbers if name in table.column_names), None)
    absent = [name for name in words if name not in table.column_names] + (
        [] if number else [numbers[0]]
    )
    if absent:
        raise DataError(
            f"{path.name} has no column '{absent[0]}'; expected {', '.join((*words, numbers[0]))}"
        )
    assert number is not None
    try:
        values = [float(value) for value in table[number].to_pylist()]
    except (TypeError, ValueError):
        raise DataError(
            f"{path.name}: column '{number}' holds something other than numbers; repair it"
        ) from None
    if not all(value >= 0 for value in values):
        raise DataError(
            f"{path.name}: column '{number}' holds a negative number or NaN; expected finite"
            " numbers of at least 0"
        )
    if number == "probability" and not abs(sum(values) - 1) <= 1e-6:
        raise DataError(
            f"{path.name}: the probabilities sum to {sum(values):.6g}; expected 1 (call the column"
            " 'count' for weights)"
        )
    columns = [table[name].to_pylist() for name in words]
    if any(word is None for column in columns for word in column):
        raise DataError(
            f"{path.name}: a row has no value in '{words[0]}' or '{words[1]}'; expected a word in"
            " each row"
        )
    return ([str(word) for word in columns[0]], [str(word) for word in columns[1]], values)

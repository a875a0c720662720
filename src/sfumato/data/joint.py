"""A finite table P(secret, place): the thing that every exact measure is a function of."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from sfumato.errors import DataError, ProblemError


@dataclass(frozen=True, eq=False, repr=False)
class Joint:
    """P(secret, place) as a table, one row a secret, one column a place (a truth, a report or a
    guess).

    `places` gives each column's position in metres, shape (places, 2), where there is one.

    >>> Joint.uniform(secrets=4, places=1).prior.tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    table: np.ndarray
    places: np.ndarray | None = None
    secrets: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        table = np.array(self.table, dtype=float)
        if table.ndim != 2 or not table.shape[0] or not table.shape[1]:
            raise ProblemError(
                "a joint table has a row per secret and a column per place; got shape"
                f" {table.shape}"
            )
        if not np.all(table >= 0):
            raise ProblemError("a joint table holds probabilities; got a negative number or NaN")
        if not abs(table.sum() - 1) <= 1e-6:
            raise ProblemError(
                f"the probabilities of a joint table sum to 1; got {table.sum():.9g}"
            )
        if self.places is not None and len(self.places) != table.shape[1]:
            raise ProblemError(
                f"{table.shape[1]} columns but {len(self.places)} places; expected one place a"
                " column"
            )
        names = self.secrets or tuple(str(row) for row in range(table.shape[0]))
        if len(names) != table.shape[0]:
            raise ProblemError(
                f"{table.shape[0]} rows but {len(names)} names of secrets; expected one name a row"
            )
        table.flags.writeable = False
        object.__setattr__(self, "table", table)
        object.__setattr__(self, "secrets", tuple(names))

    def __repr__(self) -> str:
        return f"<Joint: {self.table.shape[0]:,} secrets, {self.table.shape[1]:,} places>"

    @classmethod
    def uniform(cls, *, secrets: int, places: int) -> "Joint":
        """All pairs equally likely."""
        return cls(np.full((secrets, places), 1 / (secrets * places)))

    @property
    def prior(self) -> np.ndarray:
        """P(secret)."""
        return self.table.sum(axis=1)

    @property
    def place_probability(self) -> np.ndarray:
        """P(place)."""
        return self.table.sum(axis=0)

    @property
    def posterior(self) -> np.ndarray:
        """P(secret | place), a column a place; columns of probability zero hold zeros."""
        total = self.place_probability
        return np.divide(self.table, total, out=np.zeros_like(self.table), where=total > 0)

    def through(self, channel: Any) -> "Joint":
        """P(secret, report) after a channel: a row-stochastic matrix, or an object with `matrix`
        and `reports`.

        J(x, z) = sum_w p(x, w) M(z | w).
        """
        matrix = getattr(channel, "matrix", channel)
        if matrix.shape[0] != self.table.shape[1]:
            raise ProblemError(
                f"the channel has {matrix.shape[0]} rows for {self.table.shape[1]} places; expected"
                " one each"
            )
        table = np.asarray((matrix.T @ self.table.T).T)
        return Joint(table, places=getattr(channel, "reports", None), secrets=self.secrets)


def check_names(names: tuple[str, ...], *, source: str) -> None:
    """Refuse names that no file can hold: half a pair of surrogates is no letter."""
    for number, name in enumerate(names, 1):
        try:
            name.encode()
        except UnicodeEncodeError:
            raise DataError(
                f"{source}: name {number} holds half of a letter (a lone surrogate); expected text"
                " that UTF-8 can write: read the names again with the right encoding"
            ) from None


def by_number(name: str) -> tuple[int, int, str, str]:
    """Whole numbers first, by size; then words."""
    digits = name.lstrip("0")
    return (0, len(digits), digits, name) if name.isdecimal() else (1, 0, name, name)

"""A finite table P(secret, place): the thing that every exact measure is a function of."""

from functools import cached_property
from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy import sparse

from sfumato.errors import DataError, ProblemError, arg

_LARGE, _FEW = 1_000_000, 0.05  # entries and share above 0 of tables multiplied as sparse ones
MOST_DENSE = 20_000_000  # entries of a table that is held whole (160 MB); a larger one is sparse

Table = Annotated[np.ndarray, "secrets places"]


class Joint:
    """P(secret, place) as a table: one row per secret, one column per place (a truth, a report or
    a guess).

    `table` may be given as a SciPy sparse matrix.  One of more than twenty million entries stays
    sparse: `sparse` then holds it (None for the others), every measure of `sfumato.measure` works
    on it, and what needs the whole `table` refuses in a sentence.  `places` gives each column's
    position in metres, shape (places, 2), where there is one.

    >>> Joint.uniform(secrets=4, places=1).prior.tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    def __init__(
        self,
        table: Any,
        places: np.ndarray | None = None,
        secrets: tuple[str, ...] = (),
    ) -> None:
        self.sparse: sparse.csr_matrix | None = None
        if sparse.issparse(table):
            table = sparse.csr_matrix(table, dtype=float)
            if table.shape[0] * table.shape[1] > MOST_DENSE:
                table.sum_duplicates()
                table.eliminate_zeros()
                self.sparse = table
            else:
                table = table.toarray()
        if self.sparse is None:
            table = np.array(table, dtype=float)
        if table.ndim != 2 or not table.shape[0] or not table.shape[1]:
            raise ProblemError(
                "a joint table has a row per secret and a column per place; got shape"
                f" {table.shape}"
            )
        values = table if self.sparse is None else table.data
        if not np.all(values >= 0):
            raise ProblemError("a joint table holds probabilities; got a negative number or NaN")
        if not abs(values.sum() - 1) <= 1e-6:
            raise ProblemError(
                f"the probabilities of a joint table sum to 1; got {values.sum():.9g}"
            )
        if places is not None and len(places) != table.shape[1]:
            raise ProblemError(
                f"{table.shape[1]} columns but {len(places)} places; expected one place per column"
            )
        names = secrets or tuple(str(row) for row in range(table.shape[0]))
        if len(names) != table.shape[0]:
            raise ProblemError(
                f"{table.shape[0]} rows but {len(names)} names of secrets; expected one name per"
                " row"
            )
        values.flags.writeable = False
        self._dense = None if self.sparse is not None else table
        self.shape: tuple[int, int] = table.shape
        self.places = places
        self.secrets: tuple[str, ...] = tuple(names)

    def __repr__(self) -> str:
        return f"<Joint: {self.shape[0]:,} secrets, {self.shape[1]:,} places>"

    @classmethod
    def uniform(cls, *, secrets: int, places: int) -> "Joint":
        """All pairs equally likely."""
        return cls(np.full((secrets, places), 1 / (secrets * places)))

    @property
    def table(self) -> Table:
        """The whole table; refused where it is held sparse."""
        if self._dense is None:
            rows, columns = self.shape
            raise ProblemError(
                f"this needs a whole table of {rows:,} users and {columns:,} places,"
                f" {rows * columns * 8 / 1e9:.3g} GB, and cannot work in parts; take fewer users"
                " with"
                f" {arg('top_users')}, or fewer places in a smaller {arg('square')}"
            )
        return self._dense

    @property
    def matrix(self) -> Any:
        """The table as it is held: whole or sparse."""
        return self.table if self.sparse is None else self.sparse

    @property
    def pairs(self) -> "Pairs":
        """The entries above 0: rows, columns and values, in order of the rows."""
        if self.sparse is None:
            rows, columns = np.nonzero(self.table)
            return Pairs(rows, columns, self.table[rows, columns])
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.sparse.indptr))
        return Pairs(rows, self.sparse.indices, self.sparse.data)

    @cached_property
    def prior(self) -> np.ndarray:
        """P(secret)."""
        return np.asarray(self.matrix.sum(axis=1)).ravel()

    @cached_property
    def place_probability(self) -> np.ndarray:
        """P(place)."""
        return np.asarray(self.matrix.sum(axis=0)).ravel()

    @property
    def posterior(self) -> np.ndarray:
        """P(secret | place), one column per place; columns of probability zero hold zeros."""
        total = self.place_probability
        return np.divide(self.table, total, out=np.zeros_like(self.table), where=total > 0)

    def mean_of(self, values: np.ndarray) -> np.ndarray:
        """sum over places of P(secret, place) times a value of the place, for each secret."""
        return np.asarray(self.matrix @ values)

    def through(self, channel: Any) -> "Joint":
        """P(secret, report) after a channel: a row-stochastic matrix, or an object with `matrix`
        and `reports`.

        J(x, z) = sum_w p(x, w) M(z | w).
        """
        matrix = getattr(channel, "matrix", channel)
        if matrix.shape[0] != self.shape[1]:
            raise ProblemError(
                f"the channel has {matrix.shape[0]} rows for {self.shape[1]} places; expected"
                " one each"
            )
        return Joint(
            self.times(matrix), places=getattr(channel, "reports", None), secrets=self.secrets
        )

    def times(self, matrix: Any) -> Any:
        """The table times a matrix of places x reports; sparse where both are."""
        return product(self.matrix, matrix)


def product(table: Any, matrix: Any) -> Any:
    """A table of secrets x places, or some of its columns, times a matrix of places x reports;
    sparse where both are."""
    if sparse.issparse(table):
        return table @ matrix
    if table.size > _LARGE:  # of many users most entries are 0
        few = sparse.csr_matrix(table)
        if few.nnz < _FEW * table.size:
            made = few @ matrix
            return made.toarray() if sparse.issparse(made) else np.asarray(made)
    return np.asarray((matrix.T @ table.T).T)


class Pairs(NamedTuple):
    """Entries of a table: the number of the secret, that of the place, and the probability."""

    secret: np.ndarray
    place: np.ndarray
    weight: np.ndarray


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

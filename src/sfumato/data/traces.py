"""Traces: check-ins of one user that belong together, in the order of time."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.data.plane import Plane
from sfumato.data.read import read_checkins, read_table
from sfumato.data.samples import Samples
from sfumato.data.times import seconds_of
from sfumato.errors import DataError, arg

_ATTACKED = 3  # of every three traces of a user the last is attacked, where no column says which


@dataclass(frozen=True, eq=False)
class Traces:
    """Check-ins in traces, trace by trace and in the order of time.

    `trace` numbers the trace of each row; `named` says of each row whether its trace is known with
    the user's name (then an adversary learns from it) or is to be found; `seconds` since 1970, None
    where times are not known.  `Traces.of` puts rows of any order in order.

    >>> samples = Samples([0, 0, 1, 1], [[0, 0], [9, 0], [0, 9], [9, 9]], ("ann", "bob"))
    >>> Traces.of(samples, ["a", "b", "a", "b"]).named.tolist()  # the last is to be found
    [True, False, True, False]
    """

    samples: Samples
    trace: np.ndarray = field(repr=False)
    named: np.ndarray = field(repr=False)
    seconds: np.ndarray | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        samples: Samples,
        trace: Any,
        *,
        seconds: np.ndarray | None = None,
        named: np.ndarray | None = None,
    ) -> "Traces":
        """Rows of any order, with the name of each row's trace: a trace is a name and a user.

        Without `named` the last third of each user's traces, one at least, is to be found: last by
        their first times, else by their first rows.  Rows without times keep their order.
        """
        _, name = np.unique(np.asarray(trace).astype(str), return_inverse=True)
        _, first, number = np.unique(
            samples.secret * (int(name.max()) + 1) + name.ravel(),
            return_index=True,
            return_inverse=True,
        )
        number = number.ravel()
        began = first if seconds is None else _least(seconds, number, len(first))
        order = np.lexsort((first, began, samples.secret[first]))  # by user, then by time
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        number = rank[number]
        rows = np.lexsort((np.arange(len(number)) if seconds is None else seconds, number))
        number = number[rows]
        ordered = samples.take(rows)
        if named is None:
            known = _all_but_the_last_third(ordered.secret, number)
        else:
            known = np.asarray(named, dtype=bool)[rows]
            share = np.bincount(number, weights=known) / np.bincount(number)
            if not np.all((share == 0) | (share == 1)):
                raise DataError(
                    f"{samples.name}: a trace is both training and test; expected each trace in one"
                    " part"
                )
        traces = cls(ordered, number, known, None if seconds is None else seconds[rows])
        return traces._checked()

    def _checked(self) -> "Traces":
        """Every user whose traces are to be found is known from others."""
        source, users = self.samples.name, len(self.samples.secrets)
        if users < 2:
            raise DataError(
                f"{source} holds traces of one user; expected at least two: there is nobody to be"
                " confused with"
            )
        known = np.bincount(self.samples.secret[self.named], minlength=users) > 0
        missing = int((~known).sum())
        if missing:
            raise DataError(
                f"{source}: {missing} of {users} users have no trace in the training part; expected"
                f" one at least, known by name: leave these users out, or move a trace"
                f" of theirs with {arg('split')}"
            )
        if self.named.all():
            raise DataError(
                f"{source} has no trace to be found: each user has one trace, or none is of the"
                " test part; expected at least two traces of some users, one known by name"
                " and one to be found"
            )
        return self

    def cut(self, period: np.ndarray) -> "Traces":
        """Each trace cut where the number of the period changes from one row to the next."""
        ends = (np.diff(self.trace) != 0) | (np.diff(period) != 0)
        return replace(self, trace=np.concatenate([[0], np.cumsum(ends)]))

    @property
    def users(self) -> np.ndarray:
        """The user of each trace, by number."""
        return self.samples.secret[np.flatnonzero(np.diff(self.trace, prepend=-1))]

    @property
    def attacked(self) -> np.ndarray:
        """The numbers of the traces that are to be found."""
        return np.unique(self.trace[~self.named])

    def rows_of(self, trace: int) -> slice:
        """The rows of one trace, in the order of time."""
        start, stop = np.searchsorted(self.trace, [trace, trace + 1])
        return slice(int(start), int(stop))


def _least(values: np.ndarray, number: np.ndarray, count: int) -> np.ndarray:
    least = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(least, number, values)
    return least


def _all_but_the_last_third(secret: np.ndarray, trace: np.ndarray) -> np.ndarray:
    """Which rows are of traces that are known by name; traces are numbered user by user."""
    starts = np.flatnonzero(np.diff(trace, prepend=-1))
    user = secret[starts]
    count = np.bincount(user)
    at = np.arange(len(user)) - np.concatenate([[0], np.cumsum(count)])[user]
    attacked = np.where(count > 1, np.maximum(count // _ATTACKED, 1), 0)
    return (at < (count - attacked)[user])[trace]


def read_traces(
    path: str | Path,
    *,
    trace: str,
    time: str | None = None,
    split: str | None = None,
    secret: str | None = None,
    lat: str | None = None,
    lon: str | None = None,
    plane: Plane | None = None,
) -> Traces:
    """Read traces from a CSV or Parquet file whose rows may be in any order.

    Main arguments: `path`; `trace`, the column that names the trace of a row (a trace is a name and
    a user: a column of days will do); `time`, the column of the time (ISO 8601 or seconds), without
    which the rows of a trace are in order as they come.  Other arguments: `split`, a column with
    the words train (known by name) and test (to be found); `secret`, `lat`, `lon` and `plane`
    as in `read_checkins`.
    """
    given = Path(path)
    samples = read_checkins(given, secret=secret, lat=lat, lon=lon, plane=plane)
    table = read_table(given, words=(trace, split, secret))
    for name in (trace, time, split):
        if name is not None and table.column_names.count(name) != 1:
            raise DataError(
                f"{given.name} has no column '{name}'; it has {', '.join(table.column_names)}"
            )
    names = _texts(table[trace], source=given.name, column=trace)
    seconds = None
    if time is not None:
        seconds = seconds_of(table[time].combine_chunks(), source=given.name, column=time)
    named = None
    if split is not None:
        words = _texts(table[split], source=given.name, column=split)
        odd = sorted(set(words.tolist()) - {"train", "test"})
        if odd:
            raise DataError(f"{given.name}: '{odd[0]}' in column '{split}'; expected train or test")
        named = words == "train"
    return Traces.of(replace(samples, notes=()), names, seconds=seconds, named=named)


def _texts(values: Any, *, source: str, column: str) -> np.ndarray:
    import pyarrow as pa

    if values.null_count:
        raise DataError(
            f"{source}: {values.null_count} row(s) have no value in '{column}'; expected one in"
            " each row"
        )
    return np.array(values.cast(pa.string()).to_pylist())

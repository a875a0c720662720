"""pandas: the columns of the place get new values, all others are the very same."""

from typing import Any

import pandas as pd
import pyarrow as pa

from sfumato.deploy.table import Reporter
from sfumato.errors import DataError

ORDER = "sfumato order of rows"


def reported(frame: pd.DataFrame, reporter: Reporter) -> pd.DataFrame:
    """A new frame with reports in place of true locations; every other column is that of `frame`,
    and so is the index, whose levels are answered, dropped and refused as columns are.

    >>> import sfumato as sf
    >>> problem = sf.Problem(sf.four_corners(seed=0).train, max_loss=173)
    >>> sf.solve(problem, sf.Coin()).save("run")
    >>> frame = pd.DataFrame({"id": [1, 2], "lat": [48.86, 48.85], "lon": [2.35, 2.34]})
    >>> made = sf.deploy.report(frame, "run", key=bytes(32), row="id")
    >>> list(made.columns), len(made), bool(made["id"].equals(frame["id"]))
    (['id', 'lat', 'lon'], 2, True)
    """
    answered = reporter.whole(as_arrow(frame).append_column(ORDER, pa.array(range(len(frame)))))
    return replaced(frame, answered)


def as_arrow(frame: pd.DataFrame) -> pa.Table:
    """A frame as an Arrow table, its index among the columns unless it only counts."""
    if not all(isinstance(name, str) for name in frame.columns):
        raise DataError(
            "the frame has columns whose names are not text; expected names as text: rename them"
        )
    try:
        return pa.Table.from_pandas(frame)
    except (pa.ArrowException, TypeError, ValueError):
        raise DataError(
            "the frame has a column whose values are of several types; expected one type per"
            " column: convert or drop it first"
        ) from None


def replaced(frame: pd.DataFrame, answered: pa.Table, **given: Any) -> pd.DataFrame:
    """The rows of a frame that were answered, with those columns that changed.  Notes on the frame
    (`attrs`) stay behind."""
    order = answered[ORDER].to_numpy()
    kept = [name for name in frame.columns if name in answered.column_names or name in given]
    made = frame[kept] if len(order) == len(frame) else frame[kept].iloc[order]
    made = made.copy(deep=False)
    made.attrs = {}
    before = as_arrow(made)
    levels = as_arrow(frame.iloc[:1]).schema.pandas_metadata["index_columns"]
    if all(isinstance(level, str) for level in levels):  # else it only counts
        made.index = _index(made.index, levels, before, answered)
    for name in kept:
        if name in given:
            made[name] = given[name]
        elif not answered[name].equals(before[name]):
            values = answered[name].to_pandas()
            values.index = made.index
            made[name] = values
    return made


def _index(index: Any, levels: list[str], before: pa.Table, answered: pa.Table) -> Any:
    """The index out of those levels that were answered, with what was answered; one that counts
    where none is left.  It is built anew: levels and categories may hold values of no row."""
    kept, names = [], []
    for number, level in enumerate(levels):
        if level not in answered.column_names:
            continue
        same = answered[level].equals(before[level])
        kept.append(index.get_level_values(number) if same else answered[level].to_pandas())
        names.append(index.names[number])
    if not kept:
        return pd.RangeIndex(len(index))
    if len(kept) > 1:
        return pd.MultiIndex.from_arrays(kept, names=names)
    return pd.Index(kept[0], name=names[0])

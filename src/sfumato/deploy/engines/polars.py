"""Polars: frames and lazy frames."""

import polars as pl

from sfumato.deploy.table import Reporter
from sfumato.errors import DataError


def reported(
    frame: "pl.DataFrame | pl.LazyFrame", reporter: Reporter
) -> "pl.DataFrame | pl.LazyFrame":
    """A new frame with reports in place of true locations, lazy if `frame` is.

    A lazy frame is answered when it is collected, all rows at once.

    >>> import sfumato as sf
    >>> problem = sf.Problem(sf.four_corners(seed=0).train, max_loss=173)
    >>> sf.solve(problem, sf.Coin()).save("run")
    >>> frame = pl.DataFrame({"id": [1, 2], "lat": [48.86, 48.85], "lon": [2.35, 2.34]})
    >>> sf.deploy.report(frame, "run", key=bytes(32), row="id").shape
    (2, 3)
    """
    if isinstance(frame, pl.LazyFrame):
        schema = {
            name: pl.String if named and name in named else kind
            for named in [_renamed(frame, reporter)]
            for name, kind in frame.collect_schema().items()
            if name not in reporter.policy.drop
        }
        return frame.map_batches(
            lambda whole: _answered(whole, reporter), schema=schema, streamable=False
        )
    if not isinstance(frame, pl.DataFrame):
        raise DataError(f"a Polars {type(frame).__name__} came; expected a DataFrame or LazyFrame")
    return _answered(frame, reporter)


def _answered(frame: pl.DataFrame, reporter: Reporter) -> pl.DataFrame:
    made = reporter.whole(frame.to_arrow())
    out = pl.from_arrow(made)
    assert isinstance(out, pl.DataFrame)
    return out


def _renamed(frame: pl.LazyFrame, reporter: Reporter) -> tuple[str, ...]:
    """The column of users that gets pseudonyms, if any."""
    if reporter.policy.pseudonym is None:
        return ()
    empty = pl.DataFrame(schema=frame.collect_schema()).to_arrow()
    user = reporter.plan(empty.schema).columns.user
    return () if user is None else (user,)

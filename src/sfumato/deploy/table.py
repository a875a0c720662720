"""Reports for tables in memory and for streams of record batches: Arrow in, Arrow out.

`report` looks at whose table it is and asks that engine's file.  What engines call is `Reporter`.
An engine computes rows again when a task fails or a cache is lost, so every draw is keyed: computed
again, a row gets the same report, byte for byte.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.deploy.columns import Columns, check_header, find_columns, find_optional, has_place
from sfumato.deploy.geometry import (
    Geometry,
    boxes,
    decode,
    encode,
    find_geometry,
    written_field,
    written_notes,
)
from sfumato.deploy.keeping import chance_for
from sfumato.deploy.one_file import (
    Answer,
    Answers,
    Policy,
    Protection,
    check_names,
    refuse_over_budget,
)
from sfumato.deploy.parquet_table import (
    BLOCK_ROWS,
    ParquetBlock,
    cleared,
    compact,
    harmless,
    unnoted,
    unreadable,
)
from sfumato.deploy.pseudonym import read_key
from sfumato.deploy.release import Release, release
from sfumato.deploy.search import remade
from sfumato.errors import DataError, arg, missing_extra
from sfumato.mechanism.chance import Chance, Keyed, Secure, Sticky, check_key
from sfumato.study.folder import Run, load_run
from sfumato.study.record import NEVER

_SOURCE = "the table"
_ENGINES = {  # by the package that a table is of: the file that answers it
    "pandas": "pandas",
    "geopandas": "geopandas",
    "polars": "polars",
    "duckdb": "duckdb",
    "pyspark": "spark",
}


def report(
    table: Any,
    run: str | Path | Run | Release,
    *,
    key: bytes | str | Path | None = None,
    row: str | None = None,
    **options: Any,
) -> Any:
    """The same table with reports of a run's mechanism in place of true locations.

    Main arguments: `table`, an Arrow table or record batch, or a frame of pandas, GeoPandas, Polars
    (also lazy), Spark or DuckDB (a relation); what comes back is of the same kind, for DuckDB an
    Arrow table, which it reads by its name.  `run`, a run folder.  `key`, 32 secret bytes or a key
    file: a row's report is the same whenever it is computed again.  `row`, the column that names a
    row; without it user and time tell rows apart.

    Other arguments, as for `sanitize`: `lat`, `lon`, `user`, `time` name columns; `drop` leaves
    columns out, `keep` lets them pass although they name the user or tell the place; `pseudonym`,
    `outside`, `new_places`, `over_budget`.

    A place may also be a geometry of points (WKB, GeoParquet, GeoDataFrame).  Coordinates are in
    the table's own unit; the loss is in metres.

    >>> import pyarrow as pa, sfumato as sf
    >>> problem = sf.Problem(sf.four_corners(seed=0).train, max_loss=173)
    >>> sf.solve(problem, sf.Coin()).save("run")
    >>> table = pa.table({"id": [1, 2], "lat": [48.86, 48.86], "lon": [2.35, 2.35]})
    >>> first = report(table, "run", key=bytes(32), row="id")
    >>> first.equals(report(table, "run", key=bytes(32), row="id"))
    True
    """
    reporter = Reporter.of(run, key=key, row=row, **options)
    home = type(table).__module__.partition(".")[0].lstrip("_")
    if home == "pyarrow" and hasattr(table, "num_rows"):
        return reporter.whole(table)
    if home not in _ENGINES:
        raise DataError(
            f"a {type(table).__module__}.{type(table).__name__} came; expected a table of Arrow,"
            " pandas, GeoPandas, Polars, DuckDB or Spark"
        )
    try:
        engine = import_module(f"sfumato.deploy.engines.{_ENGINES[home]}")
    except ModuleNotFoundError as error:
        raise missing_extra(error) or error from None
    return engine.reported(table, reporter)


@dataclass(frozen=True)
class Reporter:
    """A mechanism, a key and a policy, ready to answer record batches.

    It is made once: where the run is read, and once per worker from `as_parts`.  `kept` is how the
    run says to keep reports; without it each row has a draw of its own.
    """

    release: Release
    key: bytes
    policy: Policy
    row: str | None = None
    kept: Sticky | None = None

    @classmethod
    def of(
        cls,
        run: "str | Path | Run | Release",
        *,
        key: bytes | str | Path | None,
        row: str | None,
        **options: Any,
    ) -> "Reporter":
        """From what a caller gives; `options` are fields of a `Policy`."""
        policy, secret = Policy.of(**options), _key(key)
        if isinstance(run, Release):
            if run.keeping is not None and run.keeping.period != NEVER:
                raise DataError(
                    f"the release is of a run whose reports are {run.keeping.words}; expected the"
                    " run itself, which says how: give its folder"
                )
            return cls(run, secret, policy, row)
        read = run if isinstance(run, Run) else load_run(run)
        chance = chance_for(read, secret)
        kept = chance if isinstance(chance, Sticky) else None
        if kept is not None and kept.one_place is not None and not kept.one_place.before:
            raise DataError(
                f"{read.folder} chooses one place for a period when it is over, and engines bring"
                " rows batch by batch; expected sfumato sanitize, or a choice before a period"
            )
        return cls(release(read, new_places=policy.new_places), secret, policy, row, kept)

    def as_parts(self) -> tuple[bytes, str]:
        """The mechanism's file and the rest as JSON, for another process.  The key is in it."""
        protection = Protection(self.release, self.kept or Secure(), self.policy)
        mechanism, rest = protection.as_parts()
        return mechanism, json.dumps({**rest, "key": self.key.hex(), "row": self.row})

    @classmethod
    def from_parts(cls, mechanism: bytes, rest: str) -> "Reporter":
        """What `as_parts` took apart; built once per process."""
        return _built(mechanism, rest)

    def plan(self, schema: Any) -> "Plan":
        """Which columns play a part in tables of this schema, and what goes out; refuses what
        cannot be answered before any row is looked at."""
        names = check_header([str(name) for name in schema.names], source=_SOURCE)
        policy, degrees = self.policy, self.release.plane is not None
        for field in schema:
            if unreadable(field.type) and field.name not in policy.drop:
                raise DataError(
                    f"{_SOURCE}: column '{field.name}' holds {field.type}; expected plain values:"
                    " decode runs (pyarrow.compute.run_end_decode), cast views within others, or"
                    " drop it"
                )
        geometry = find_geometry(schema, source=_SOURCE, without=policy.drop) if degrees else None
        user, time = find_optional(names, user=policy.user, time=policy.time, source=_SOURCE)
        if self.row is not None and self.row not in names:
            raise DataError(
                f"{_SOURCE} has no column '{self.row}' to name its rows; look at its header"
            )
        place = find_columns(
            [*names, *(() if geometry is None else geometry.names)],
            source=_SOURCE,
            degrees=degrees,
            lat=_place(policy.lat, names, geometry, 0),
            lon=_place(policy.lon, names, geometry, 1),
        )
        columns = Columns(place.first, place.second, user, time, self.row)
        check_names(names, policy, columns, source=_SOURCE)
        if policy.pseudonym is not None and (
            user is None or (policy.pseudonym.asks_time and time is None)
        ):
            raise DataError(f"{_SOURCE} has no columns of user and time to make pseudonyms of")
        self._refuse_unkept(columns)
        return Plan(columns, geometry, schema, self._written(schema, columns, geometry))

    def _refuse_unkept(self, columns: Columns) -> None:
        """A table that does not say whose reports, or of when, are to be kept."""
        if self.kept is None:
            return
        asked = {
            "user": self.kept.asks_user and columns.user is None,
            "time": self.kept.asks_time and columns.time is None,
        }
        for name in (name for name, missing in asked.items() if missing):
            raise DataError(
                f"{_SOURCE} has no column of the {name}, and the run keeps reports per"
                f" {self.kept.period if name == 'time' else name}; expected one",
                hint=f"name it with {arg(name)}",
            )

    def _written(self, schema: Any, columns: Columns, geometry: Geometry | None) -> Any:
        fields = []
        for field in schema:
            if field.name in self.policy.drop:
                continue
            made = unnoted(field).with_type(remade(field.type, unnoted))
            if field.name in (columns.first, columns.second):
                made = made.with_nullable(True)
            elif geometry is not None and field.name == geometry.column:
                made = written_field(field).with_nullable(True)
            elif geometry is not None and field.name in geometry.boxes:
                made = made.with_nullable(True)
            elif self.policy.pseudonym is not None and field.name == columns.user:
                made = made.with_type(pa.string())
            fields.append(made)
        notes = dict(harmless(schema.metadata, fields) or {})
        if geometry is not None:
            notes |= written_notes(schema, geometry)
        return pa.schema(fields, metadata=notes or None)

    def stream(self, batches: Iterable[Any], plan: "Plan") -> Iterator[Any]:
        """Each batch answered; the first that cannot be ends the stream."""
        answers = self._answers(plan)
        for batch in batches:
            answer = answers.of(_Block(batch, plan.geometry))
            answers.stop_at_refused(whole=False)
            assert answer is not None
            yield _replaced(batch, answer, plan)

    def whole(self, table: Any) -> Any:
        """All rows of a table or a batch, or none; their loss is set beside the run's budget."""
        if not table.num_rows:
            raise DataError(f"{_SOURCE} has 0 rows; expected at least one")
        plan = self.plan(table.schema)
        answers = self._answers(plan)
        made, blocks = [], []
        whole = pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
        for batch in whole.to_batches(max_chunksize=BLOCK_ROWS):
            blocks.append(_Block(batch, plan.geometry))
            answer = answers.of(blocks[-1])
            if answer is not None:
                made.append(_replaced(batch, answer, plan))
        answers.stop_at_refused()
        if self.kept is None:
            _refuse_repeats(blocks, plan.columns)
        refuse_over_budget(answers.protection, answers.tally, source=_SOURCE)
        out = pa.Table.from_batches(made, schema=plan.written)
        if not isinstance(table, pa.RecordBatch):
            return out
        (joined,) = out.combine_chunks().to_batches() or [plan.written.empty_table().to_batches()]
        return joined

    def _answers(self, plan: "Plan") -> Answers:
        columns = plan.columns
        chance: Chance = self.kept or Keyed(
            self.key,
            str(self.release.figures["mechanism_hash"]),
            by_user=columns.user is not None,
            by_time=columns.time is not None,
            by_name=columns.row is not None,
        )
        also = () if plan.geometry is None else (plan.geometry.column, *plan.geometry.boxes)
        protection = Protection(self.release, chance, self.policy)
        names = list(plan.schema.names)
        return Answers(protection, columns, names, source=_SOURCE, replaced=also)


@dataclass(frozen=True)
class Plan:
    """How tables of one schema are answered: the columns that play a part, the geometry if there is
    one, and the schemas of what comes in and goes out."""

    columns: Columns
    geometry: Geometry | None
    schema: Any
    written: Any


class _Block(ParquetBlock):
    """A record batch whose place may stand in a geometry."""

    def __init__(self, batch: Any, geometry: Geometry | None) -> None:
        super().__init__(batch, source=_SOURCE)
        self._geometry = geometry
        self._seconds: dict[str, np.ndarray] = {}

    def numbers(self, name: str) -> np.ndarray:
        if self._geometry is None or name not in self._geometry.names:
            return super().numbers(name)
        both = decode(
            self.batch.column(self._geometry.column), name=self._geometry.column, source=_SOURCE
        )
        return both[self._geometry.names.index(name)]

    def seconds(self, name: str) -> np.ndarray:
        if name not in self._seconds:
            try:
                self._seconds[name] = super().seconds(name)
            except DataError as error:
                words = f"name another column with {arg('time')}, or take it out of the table"
                raise DataError(str(error), hint=f"draws are keyed by the time: {words}") from None
        return self._seconds[name]


def _refuse_repeats(blocks: list[_Block], columns: Columns) -> None:
    """Rows of one user, time and name at one place would share a report, and so tell that they are
    at one place."""
    parts: dict[str, Any] = {}
    for name in (name for name in (columns.user, columns.row) if name is not None):
        column = pa.chunked_array([block.batch.column(name) for block in blocks])
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        parts[name] = column.cast(pa.string())
    if columns.time is not None:
        parts["the time"] = pa.array(
            np.concatenate([block.seconds(columns.time) for block in blocks])
        )
    keys = pa.table(list(parts.values()), names=[str(number) for number in range(len(parts))])
    repeats = keys.num_rows - keys.group_by(keys.column_names).aggregate([]).num_rows
    if repeats:
        by = [name for name in (columns.user, columns.time, columns.row) if name is not None]
        raise DataError(
            f"{_SOURCE}: {repeats} of {keys.num_rows} rows repeat another row's"
            f" {', '.join(repr(name) for name in by)}, which identify rows, and would"
            " share its report; expected no repeats",
            hint=f"name a column that numbers the rows with {arg('row')}",
        )


def _replaced(batch: Any, answer: Answer, plan: Plan) -> Any:
    """The batch with reports wherever the place stood."""
    new = {plan.columns.first: answer.first, plan.columns.second: answer.second}
    columns = []
    for field in plan.written:
        if field.name in new:
            values = new[field.name]
            gone = np.isnan(values)
            column = pa.array(values, mask=gone if gone.any() else None)
            columns.append(column.cast(field.type, safe=False))
        elif plan.geometry is not None and field.name == plan.geometry.column:
            columns.append(encode(answer.first, answer.second, field.type))
        elif plan.geometry is not None and field.name in plan.geometry.boxes:
            columns.append(boxes(field.type, answer.first, answer.second))
        elif answer.users is not None and field.name == plan.columns.user:
            columns.append(pa.array(answer.users, pa.string()))
        else:
            columns.append(cleared(compact(batch.column(field.name))))
    made = pa.record_batch(columns, schema=plan.written)
    return made if answer.keep is None else made.filter(pa.array(answer.keep))


def _place(
    given: str | None, names: list[str], geometry: Geometry | None, which: int
) -> str | None:
    """The column that is named; without one, the geometry's where a table has no other."""
    if given is not None or geometry is None or has_place(names):
        return given
    return geometry.names[which]


def _key(given: bytes | str | Path | None) -> bytes:
    """The secret key, or that of a key file; none is refused with the reason."""
    if given is None:
        raise DataError(
            f"no {arg('key')} was given; an engine computes rows again when a task fails or a"
            " cache is lost, and a second draw of a row reveals more than one, so draws are made"
            " from a key of 32 bytes: give one, or a key file"
        )
    if isinstance(given, (str, Path)):
        return read_key(Path(given))
    return check_key(given)


@lru_cache(maxsize=4)
def _built(mechanism: bytes, rest: str) -> Reporter:
    document = json.loads(rest)
    protection = Protection.from_parts(mechanism, document)
    kept = protection.chance if isinstance(protection.chance, Sticky) else None
    key, row = bytes.fromhex(document["key"]), document["row"]
    return Reporter(protection.release, key, protection.policy, row, kept)

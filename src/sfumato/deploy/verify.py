"""An output is read back before it gets its name, by another parser, beside the input.

What must hold: the same rows in the same order, every untouched column equal, every changed column
exactly what was drawn, and no true coordinate of the input in any other place.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

from sfumato.data.arrow import to_arrow
from sfumato.deploy.damaged import readable
from sfumato.deploy.search import Coordinates, Searched, extent, floats, plain_values
from sfumato.errors import DataError

_ROWS = 65_536
_BUFFER = 1 << 20  # bytes of a column that are read at once; else a whole group is held
_CSV_BYTES = 1 << 22  # four times the longest row that is read


@dataclass(frozen=True)
class Written:
    """What is written of a table: its columns of coordinates with their decimals, and `user`
    where its names are replaced; the columns `without` are left out.

    `passing` are columns in which a true coordinate may stand, because somebody said so.
    """

    first: str
    second: str
    decimals: int
    degrees: bool = True
    user: str | None = None
    without: tuple[str, ...] = ()
    passing: tuple[str, ...] = ()

    @property
    def changed(self) -> list[str]:
        """Columns that do not stay as they were."""
        return [self.first, self.second, *([] if self.user is None else [self.user])]


@dataclass
class Noted:
    """What was written, noted as it was: how many rows, which, and a checksum of each changed
    column; and between which numbers the true coordinates lie, where that is known."""

    rows_in: int = 0
    ranges: list[tuple[float, float]] | None = None
    _kept: list[tuple[int, np.ndarray | None]] = field(default_factory=list)
    checksums: list[int] = field(default_factory=list)

    def rows(self, count: int, keep: np.ndarray | None) -> None:
        """Take in a block; `keep` says which of its rows went out, None for all."""
        self.rows_in += count
        self._kept.append((count, None if keep is None or keep.all() else np.packbits(keep)))

    def truths(self, *coordinates: np.ndarray) -> None:
        """Take in the true coordinates of a block."""
        pairs = zip(self.ranges or [(np.inf, -np.inf)] * 2, map(extent, coordinates), strict=True)
        self.ranges = [
            (min(so_far[0], block[0]), max(so_far[1], block[1])) for so_far, block in pairs
        ]

    def columns(self, written: Iterable[Iterable[Any]]) -> None:
        """Take in what went out of each changed column, in one stream of bytes or several.  The
        draft is nobody's but ours, so checksums need to find faults alone, not forgeries."""
        for place, data in enumerate(part for column in written for part in column):
            if place == len(self.checksums):
                self.checksums.append(0)
            self.checksums[place] = crc32(data, self.checksums[place])

    def masks(self) -> Iterator[tuple[int, np.ndarray | None]]:
        """Rows of the input by blocks, small ones together, with those that went out."""
        masks: list[np.ndarray] = []
        size, whole = 0, True
        for number, (count, packed) in enumerate(self._kept, 1):
            whole &= packed is None
            masks.append(
                np.ones(count, dtype=bool)
                if packed is None
                else np.unpackbits(packed, count=count).astype(bool)
            )
            size += count
            if size >= _ROWS or number == len(self._kept):
                yield size, None if whole else np.concatenate(masks)
                masks, size, whole = [], 0, True


@dataclass(frozen=True)
class CsvFile:
    """A file and how it is cut."""

    path: Path
    delimiter: str
    packed: bool


def read_back_csv(
    source: CsvFile,
    draft: CsvFile,
    noted: Noted,
    *,
    names: list[str],
    header: bool,
    written: Written,
    shown: str,
) -> None:
    """Compare a CSV draft with its input, both read by Arrow's parser; raises where they differ."""
    kept = [name for name in names if name not in written.without]
    fault = _Fault(shown)
    places = [names.index(name) for name in kept]
    given = _Rows(_csv_batches(source, len(names), places))
    own = [names.index(name) for name in (written.first, written.second)]

    def coordinates() -> _Rows:
        rows = _Rows(_csv_batches(source, len(names), own))
        rows.take(int(header))
        return rows

    drafted = _Rows(_csv_batches(draft, len(kept), list(range(len(kept)))))
    searched = Searched(degrees=written.degrees, packed=False)
    if header:
        with readable(source.path):
            top, other = given.take(1), drafted.take(1)
        for before, after in zip(top.columns, other.columns, strict=True):
            fault.unless(before.equals(after), "its first line")
        searched.names([column[0].as_py().decode("utf-8", "replace") for column in other.columns])
    _compare(
        given,
        drafted,
        noted,
        searched,
        fault,
        source=source.path,
        written=written,
        read=kept,
        columns=kept,
        places=_Places(coordinates, source.path),
        stream=lambda column: streams(column.combine_chunks()),
    )


def read_back_parquet(
    source: Path, draft: Path, noted: Noted, *, names: list[str], written: Written, shown: str
) -> None:
    """Compare a Parquet draft with its input, both opened afresh; raises where they differ.

    A footer may name smallest and largest values, and names and notes of columns: it may hold no
    true coordinate that the rows that go out do not hold.
    """
    fault = _Fault(shown)
    kept = [name for name in names if name not in written.without]
    searched = Searched(degrees=written.degrees, packed=True)
    with readable(source, "a Parquet file"):
        files = [
            parquet.ParquetFile(path, buffer_size=_BUFFER, pre_buffer=False)
            for path in (source, draft)
        ]
    try:
        schema = files[1].schema_arrow
        fault.unless(schema.names == kept, "the names of its columns")
        searched.names([schema.to_string(truncate_metadata=False)], _footer(draft))
        if noted.ranges is not None:
            searched.within(noted.ranges)
        read = [name for name in kept if name not in written.changed] or [written.first]
        given = _Rows(_parquet_batches(files[0], read))
        drafted = _Rows(_parquet_batches(files[1], kept))
        own = [written.first, written.second]
        _compare(
            given,
            drafted,
            noted,
            searched,
            fault,
            source=source,
            written=written,
            read=read,
            columns=kept,
            places=_Places(lambda: _Rows(_parquet_batches(files[0], own)), source),
            stream=bytes_of,
        )
    finally:
        for file in files:
            file.close()


def streams(texts: Any) -> tuple[Any, Any]:
    """The bytes of a column of bytes and the lengths of its values: hashed block after block, they
    give the same hash wherever blocks end."""
    return joined_bytes(texts), np.diff(_offsets(texts))


def joined_bytes(texts: Any) -> Any:
    """All values of an Arrow column of bytes, one behind the other, as a buffer."""
    offsets = _offsets(texts)
    data = texts.buffers()[2] if len(texts) else None
    return b"" if data is None else data[int(offsets[0]) : int(offsets[-1])]


def _offsets(texts: Any) -> np.ndarray:
    if not len(texts):
        return np.zeros(1, dtype=np.int32)
    return np.frombuffer(texts.buffers()[1], dtype=np.int32)[texts.offset :][: len(texts) + 1]


def bytes_of(column: Any) -> tuple[Any, ...]:
    """The bytes of a changed column, whatever its blocks were."""
    if pa.types.is_string(column.type):
        return streams(column.cast(pa.binary()).combine_chunks())
    return (doubles(column),)


def doubles(column: Any) -> np.ndarray:
    """A column of numbers as doubles with one kind of NaN, which also stands for no value."""
    values = floats(column)
    gone = np.isnan(values)
    return np.ascontiguousarray(np.where(gone, np.nan, values) if gone.any() else values)


def _compare(
    given: "_Rows",
    drafted: "_Rows",
    noted: Noted,
    searched: Searched,
    fault: "_Fault",
    *,
    source: Path,
    written: Written,
    read: list[str],
    columns: list[str],
    places: "_Places",
    stream: Callable[[Any], Iterable[Any]],
) -> None:
    """Row by row; `read` are the names of what is given in their order, `columns` those of what is
    drafted."""
    again, done = Noted(), 0
    again.columns([b""] for _ in noted.checksums)
    for count, keep in noted.masks():
        for start in range(0, count, _ROWS):
            with readable(source):
                block = given.take(min(_ROWS, count - start))
            fault.unless(block.num_rows == min(_ROWS, count - start), "how many rows there are")
            truths = cache(partial(_coordinates, block, read, written, places, done))
            done, mine = done + block.num_rows, truths
            searched.truths(truths)
            if keep is not None:
                kept = keep[start : start + _ROWS]
                block = block.filter(to_arrow(kept))
                mine = cache(partial(_some, truths, kept))
            if not block.num_rows:
                continue
            with readable(source):
                out = drafted.take(block.num_rows)
            fault.unless(out.num_rows == block.num_rows, "how many rows there are")
            again.columns(stream(out.column(columns.index(name))) for name in written.changed)
            for name, column in zip(columns, out.columns, strict=True):
                if name not in written.changed:
                    before = block.column(read.index(name))
                    fault.unless(_equal(before, column), f"the column '{name}'")
                    if name not in written.passing:
                        searched.column(name, column, mine)
                if name in (*written.changed, *written.passing):
                    searched.released(column)
    with readable(source):
        fault.unless(not given.take(1).num_rows, "how many rows there are")
        fault.unless(not drafted.take(1).num_rows, "how many rows there are")
    fault.unless(again.checksums == noted.checksums, "the places that were drawn")
    if searched.asks(noted.ranges or [(-np.inf, np.inf)]):
        for values in places.all():
            searched.true(values)
    searched.raise_for(source.name, noted.rows_in)


def _coordinates(
    block: Any, read: list[str], written: Written, places: "_Places", start: int
) -> list[np.ndarray]:
    """The true coordinates of a block's rows: its own, or if it has none, read now."""
    own = [written.first, written.second]
    if all(name in read for name in own):
        return [floats(block.column(read.index(name))) for name in own]
    return places.of(start, block.num_rows)


def _some(coordinates: Coordinates, keep: np.ndarray) -> list[np.ndarray]:
    return [values[keep] for values in coordinates()]


class _Places:
    """The true coordinates of the input, read when they are asked for."""

    def __init__(self, opened: "Callable[[], _Rows]", source: Path) -> None:
        self._opened, self._source = opened, source
        self._rows: _Rows | None = None
        self._next = 0

    def of(self, start: int, count: int) -> list[np.ndarray]:
        """Those of some rows; none before those of an earlier call."""
        self._rows = self._rows or self._opened()
        with readable(self._source):
            while self._next < start and self._rows.take(min(_ROWS, start - self._next)).num_rows:
                self._next = min(self._next + _ROWS, start)
            rows = self._rows.take(count)
        self._next = start + count
        return [floats(column) for column in rows.columns]

    def all(self) -> Iterator[np.ndarray]:
        """Those of all rows, by blocks."""
        rows = self._opened()
        while True:
            with readable(self._source):
                block = rows.take(_ROWS)
            if not block.num_rows:
                return
            yield from map(floats, block.columns)


class _Fault:
    """What is said of an output that is not what it should be.  It never gets its name."""

    def __init__(self, shown: str) -> None:
        self._shown = shown

    def unless(self, holds: bool, what: str) -> None:
        """Raise where something does not hold."""
        if not holds:
            raise DataError(
                f"{self._shown} was read back by another parser and differs in {what}; nothing was"
                " written: two parsers probably read the input differently, so write it in a"
                " plainer form"
            )


def _equal(before: Any, after: Any) -> bool:
    if before.equals(after):
        return True
    # NaN is not equal to itself, alone or within a list.
    return bool(
        before.type == after.type and repr(plain_values(before)) == repr(plain_values(after))
    )


class _Rows:
    """Batches, given out again by any number of rows."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self._batches = batches
        self._held: list[Any] = []

    def take(self, rows: int) -> Any:
        """The next rows as a table, fewer only at the end."""
        have = sum(batch.num_rows for batch in self._held)
        while have < rows:
            batch = next(self._batches, None)
            if batch is None:
                break
            self._held.append(batch)
            have += batch.num_rows
        if not self._held:
            return pa.table({})
        table = pa.Table.from_batches(self._held)
        self._held = table.slice(rows).to_batches()
        return table.slice(0, rows)


def _csv_batches(file: CsvFile, width: int, places: list[int]) -> Iterator[Any]:
    """The fields at some places of all records as bytes, the header among them."""
    with file.path.open("rb") as raw, readable(file.path):
        names = [f"f{place}" for place in range(width)]
        stream: Any = pa.PythonFile(raw, mode="r")
        if file.packed:
            stream = pa.CompressedInputStream(stream, "gzip")
        if not file.path.stat().st_size:
            return
        reader = csv.open_csv(
            stream,
            read_options=csv.ReadOptions(
                use_threads=False, block_size=_CSV_BYTES, column_names=names
            ),
            parse_options=csv.ParseOptions(delimiter=file.delimiter, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                check_utf8=False,
                column_types=dict.fromkeys(names, pa.binary()),
                include_columns=[names[place] for place in places],
                strings_can_be_null=False,
            ),
        )
        yield from reader


def _parquet_batches(file: Any, names: list[str]) -> Iterator[Any]:
    """All rows, group by group: Arrow does not read dictionaries within lists across groups."""
    for group in range(file.metadata.num_row_groups):
        yield from file.iter_batches(
            batch_size=_ROWS, row_groups=[group], columns=names, use_threads=False
        )


def _footer(path: Path) -> bytes:
    """The last part of a Parquet file: schema, notes, smallest and largest values."""
    with path.open("rb") as file:
        end = file.seek(0, 2)
        file.seek(max(0, end - 8))
        size = int.from_bytes(file.read(4), "little")
        file.seek(max(0, end - 8 - size))
        return file.read(size)

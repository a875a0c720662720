"""Parquet files, a block of rows at a time: other columns, types and order as they came."""

import json
import re
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from math import exp
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
from pyarrow import compute, parquet

from sfumato.data.arrow import to_arrow, to_numpy
from sfumato.data.times import seconds_of
from sfumato.deploy.columns import check_header
from sfumato.deploy.damaged import readable
from sfumato.deploy.search import remade, timeless
from sfumato.deploy.verify import Noted, Written, bytes_of, read_back_parquet
from sfumato.errors import DataError, arg

BLOCK_ROWS = 131_072
_MOST_ROWS_A_GROUP = 1 << 20
_BUFFER = 1 << 20
MOST_BLOCK_BYTES = 1 << 30  # of a block's values that have no fixed size, when they are unpacked
_STEP_ROWS = 1_024  # rows that are unpacked at once to learn their size
_KIND = "a Parquet file"
_FIELD_NUMBER = b"PARQUET:field_id"
_DICTIONARY_BYTES = 1 << 20  # at which Arrow gives a dictionary up
_TELLING_ROWS = 32_768  # below which a dictionary is tried without a look


class ParquetBlock:
    """Some consecutive rows."""

    def __init__(self, batch: Any, *, source: str) -> None:
        self.batch = batch
        self._source = source

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    def numbers(self, name: str) -> np.ndarray:
        column = self.batch.column(name)
        if not is_number(column.type):
            raise DataError(
                f"{self._source}: column '{name}' holds {column.type}; expected degrees or metres"
                " as numbers"
            )
        try:
            return to_numpy(column.cast(pa.float64()))
        except (pa.ArrowException, ValueError, UnicodeDecodeError):
            raise DataError(
                f"{self._source}: column '{name}' holds values that are not numbers; remove or"
                " repair these rows"
            ) from None

    def text(self, name: str) -> np.ndarray:
        column = self.batch.column(name)
        if column.null_count:
            raise DataError(
                f"{self._source}: {column.null_count} row(s) have no value in '{name}'; expected"
                " one in each row"
            )
        try:
            if pa.types.is_dictionary(column.type):
                column = column.dictionary_decode()
            return np.array(unviewed(column).cast(pa.string()).to_pylist(), dtype=object)
        except (pa.ArrowException, UnicodeDecodeError):
            raise DataError(
                f"{self._source}: column '{name}' holds {column.type}; expected text or whole"
                " numbers"
            ) from None

    def seconds(self, name: str) -> np.ndarray:
        return seconds_of(self.batch.column(name), source=self._source, column=name)

    def values(self, name: str, rows: np.ndarray) -> list[Any]:
        """The values of a column in some rows, as they are; times as whole numbers, since a number
        may call itself a time."""
        with readable(Path(self._source), _KIND):
            column = unviewed(self.batch.column(name)).take(to_arrow(rows))
            return timeless(column).to_pylist()

    def column(self, name: str) -> Any:
        return unviewed(self.batch.column(name))


class ParquetTable:
    """A Parquet file to be read in blocks and written again with two columns changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with readable(path, _KIND):
            self._file = parquet.ParquetFile(path, buffer_size=_BUFFER, pre_buffer=False)
            self.names: list[str] = [str(name) for name in self._file.schema_arrow.names]
            self.schema = self._file.schema_arrow
        check_header(self.names, source=path.name)
        with readable(path, _KIND):
            # Of the footer only these two counts are looked at: asking for a damaged group's own
            # can end the process.
            rows, groups = self._file.metadata.num_rows, self._file.metadata.num_row_groups
            self._group_rows = int(min(max(1, -(-rows // max(groups, 1))), _MOST_ROWS_A_GROUP))

    def close(self) -> None:
        self._file.close()

    def blocks(self, *, without: tuple[str, ...] = ()) -> Iterator[ParquetBlock]:
        kept = [name for name in self.names if name not in without]
        self._refuse_huge(kept)
        with readable(self.path, _KIND):
            batches = self._file.iter_batches(
                batch_size=BLOCK_ROWS, columns=kept, use_threads=False
            )
        while True:
            with readable(self.path, _KIND):
                batch = next(batches, None)
                if batch is None:
                    return
                batch.validate()
            yield ParquetBlock(batch.select(kept), source=self.path.name)

    def _refuse_huge(self, kept: list[str]) -> None:
        """Refuse a file with a block too large for memory: a text that repeats is stored once, so
        the size of the file and its footer say nothing of it."""
        loose = [name for name in kept if not _is_fixed(self.schema.field(name).type)]
        if not loose:
            return
        sizes: deque[int] = deque(maxlen=BLOCK_ROWS // _STEP_ROWS)
        with readable(self.path, _KIND):
            for step in self._file.iter_batches(
                batch_size=_STEP_ROWS, columns=loose, use_threads=False
            ):
                sizes.append(sum(_unpacked_bytes(column) for column in step.columns))
                if sum(sizes) > MOST_BLOCK_BYTES:
                    raise DataError(
                        f"{self.path.name} unpacks to more than {MOST_BLOCK_BYTES:,} bytes in"
                        f" {BLOCK_ROWS:,} rows, too many to hold in memory; leave its columns of"
                        f" long values out with {arg('drop')}"
                    )

    @contextmanager
    def sink(
        self, target: IO[bytes], written: Written, *, packed: bool = False
    ) -> Iterator["ParquetSink"]:
        """Write a file of the same kind to `target`; Parquet has packing of its own."""
        schema = self.schema
        for name in written.without:
            schema = schema.remove(schema.get_field_index(name))
        if written.user is not None:
            place = schema.get_field_index(written.user)
            schema = schema.set(place, schema.field(place).with_type(pa.string()))
        fields = [unnoted(field).with_type(remade(field.type, unnoted)) for field in schema]
        schema = pa.schema(fields, metadata=harmless(schema.metadata, fields))
        with ExitStack() as stack:

            def opened(coded: list[str]) -> Any:
                steps = {
                    field.name: "DELTA_BINARY_PACKED"
                    for field in schema
                    if field.name not in coded
                    and pa.types.is_temporal(field.type)
                    and "." not in field.name  # it would name a part of a nested column as well
                }
                writer = parquet.ParquetWriter(
                    target, schema, use_dictionary=coded, column_encoding=steps
                )
                return stack.enter_context(writer)

            sink = ParquetSink(opened, schema, written, self._group_rows)
            yield sink
            if sink.noted.rows_in == 0:
                opened(schema.names)

    def read_back(
        self, draft: Path, noted: Noted, written: Written, *, packed: bool = False, shown: str
    ) -> None:
        """Compare what was written with this file, both opened afresh."""
        read_back_parquet(self.path, draft, noted, names=self.names, written=written, shown=shown)


class ParquetSink:
    """Takes blocks with their new columns; `opened` gives the writer, which tries dictionaries for
    some columns, and writes times of others as steps from row to row: a log's are small."""

    def __init__(
        self,
        opened: Callable[[list[str]], Any],
        schema: Any,
        written: Written,
        group_rows: int,
    ) -> None:
        self._opened, self._schema, self._group_rows = opened, schema, group_rows
        self._writer: Any = None
        self._places = [(schema.get_field_index(name), name) for name in written.changed]
        self._coordinates = (written.first, written.second)
        self._coded = any(field.type != _decoded(field.type) for field in schema)
        self.noted = Noted()

    def write(
        self,
        block: ParquetBlock,
        first: np.ndarray,
        second: np.ndarray,
        keep: np.ndarray | None,
        users: np.ndarray | None = None,
    ) -> None:
        """One block; `keep` says which rows go out, None for all of the file; `users` are new names
        of users.

        Dictionaries are cut to the values that go out: one may hold values of no row, or of rows
        that stay behind.
        """
        columns = [block.batch.column(name) for name in self._schema.names]
        new: list[Any] = [first, second, *([] if users is None else [users])]
        for (place, name), values in zip(self._places, new, strict=True):
            field = self._schema.field(name)
            if pa.types.is_string(field.type):
                columns[place] = pa.array(values, pa.string())
                continue
            gone = np.isnan(values) if field.nullable else None
            columns[place] = to_arrow(values, gone).cast(field.type, safe=False)
        batch = pa.record_batch(columns, schema=self._schema)
        if keep is not None:
            batch = batch.filter(to_arrow(keep))
        if self._coded:
            batch = pa.record_batch(
                [compact(column) for column in batch.columns], schema=self._schema
            )
        self.noted.truths(*(block.numbers(name) for name in self._coordinates))
        self.noted.rows(len(block), keep)
        self.noted.columns(
            bytes_of(pa.chunked_array([batch.column(place)])) for place, _ in self._places
        )
        if self._writer is None:
            names = (name for name in batch.schema.names if _repeats(batch.column(name)))
            self._writer = self._opened(list(names))
        self._writer.write_batch(batch, row_group_size=self._group_rows)


def _repeats(column: Any) -> bool:
    """Whether a dictionary of a column's values may stay below the size at which Arrow gives it
    up; told by its first rows, which then have fewer different values than if they were drawn
    evenly from as many as fit."""
    if not _is_fixed(column.type) or len(column) < _TELLING_ROWS:
        return True
    column = column.slice(0, _TELLING_ROWS)
    fits = _DICTIONARY_BYTES / max(1, column.type.bit_width / 8)
    expected = fits * (1 - exp(-len(column) / fits))
    return int(compute.count_distinct(column).as_py()) <= expected


def is_number(kind: Any) -> bool:
    return bool(pa.types.is_float32(kind) or pa.types.is_float64(kind) or pa.types.is_decimal(kind))


def _is_fixed(kind: Any) -> bool:
    """Whether all values of a type have the same small size."""
    return bool(pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind))


def _unpacked_bytes(column: Any) -> int:
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return int(column.nbytes)


def compact(column: Any) -> Any:
    """The same values and type; a dictionary holds only what the rows hold, in its old order."""
    if pa.types.is_dictionary(column.type):
        used = compute.unique(column.indices.drop_null()).sort()
        places = compute.index_in(column.indices, value_set=used).cast(column.type.index_type)
        return pa.DictionaryArray.from_arrays(
            places, column.dictionary.take(used), ordered=column.type.ordered
        )
    decoded = _decoded(column.type)
    return column if decoded == column.type else column.cast(decoded).cast(column.type)


def cleared(column: Any) -> Any:
    """The same values and type in memory that holds nothing else: under a null, or between the
    items of lists, it may hold values that no row has, and Arrow sends them along."""
    kind, kinds = column.type, pa.types
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, cleared(column.storage))
    if kinds.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(
            cleared(column.indices), cleared(column.dictionary), ordered=kind.ordered
        )
    if kinds.is_struct(kind) and kind.num_fields:
        mask = column.is_null() if column.null_count else None
        parts = [cleared(part) for part in column.flatten()]  # null where the whole is
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=mask)
    if (plain := unviewed(column)) is not column:
        return cleared(plain).cast(kind)
    nested = kinds.is_nested(kind)
    if not nested and not column.null_count:
        return column
    made = column.take(to_arrow(np.arange(len(column))))
    if kinds.is_list(kind) or kinds.is_large_list(kind):
        mask = made.is_null() if made.null_count else None
        own = type(made)
        return own.from_arrays(made.offsets, cleared(made.values), type=kind, mask=mask)
    return made


def unviewed(column: Any) -> Any:
    """A column of views of text or bytes as plain text or bytes: Arrow computes little on views."""
    if pa.types.is_string_view(column.type):
        return column.cast(pa.large_string())
    return column.cast(pa.large_binary()) if pa.types.is_binary_view(column.type) else column


def unreadable(kind: Any) -> bool:
    """Whether a type is run-end encoded, or has views or such within: nothing here computes on
    it."""
    if pa.types.is_run_end_encoded(kind):
        return True
    inner = [kind.field(place).type for place in range(kind.num_fields)]
    inner += [kind.value_type] if pa.types.is_dictionary(kind) else []
    views = (pa.types.is_string_view, pa.types.is_binary_view)
    return any(unreadable(part) or any(view(part) for view in views) for part in inner)


def _decoded(kind: Any) -> Any:
    """A type without dictionaries."""
    if pa.types.is_dictionary(kind):
        return kind.value_type
    return remade(
        kind,
        lambda field: (
            field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        ),
    )


def unnoted(field: Any) -> Any:
    """A column without its notes, but for its number, by which some readers find it."""
    number = (field.metadata or {}).get(_FIELD_NUMBER, b"")
    return field.with_metadata({_FIELD_NUMBER: number} if number.isdigit() else None)


_PANDAS_NOTES = {
    "num_categories": int,
    "ordered": bool,
    "precision": int,
    "scale": int,
    "timezone": str,
    "encoding": str,
}
_TYPE = re.compile(r"[A-Za-z0-9_]{1,40}(\[[A-Za-z0-9_, :/+-]{1,40}\])?")
_ZONE = re.compile(r"UTF-8|[A-Za-z_]{1,30}(/[A-Za-z_+-]{1,30}){0,2}|[+-][0-9]{2}:[0-9]{2}")


def harmless(metadata: dict[bytes, bytes] | None, fields: list[Any]) -> dict[bytes, bytes] | None:
    """What pandas needs to read the table back, built anew from the keys that pandas knows; other
    notes on a file may hold places (a bounding box, say) and are left out."""
    stored = (metadata or {}).get(b"pandas")
    if stored is None:
        return None
    names = {field.name for field in fields}
    try:
        notes = json.loads(stored)
        columns = [
            column
            for column in map(_pandas_column, notes["columns"])
            if column["field_name"] in names
        ]
        index = [entry for entry in map(_pandas_index, notes["index_columns"]) if entry is not None]
        index = [entry for entry in index if isinstance(entry, dict) or entry in names]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    made = {"index_columns": index, "column_indexes": [], "columns": columns}
    return {b"pandas": json.dumps(made).encode()}


def _pandas_column(column: dict[str, Any]) -> dict[str, Any]:
    """One column's note, with what is known of types and categories and no more."""
    note = column.get("metadata") or {}
    kept = {
        key: note[key]
        for key, kind in _PANDAS_NOTES.items()
        if key in note
        and type(note[key]) is kind
        and (kind is not str or _ZONE.fullmatch(note[key]))
    }
    made = {"name": column["name"], "field_name": column.get("field_name", column["name"])}
    for key in ("pandas_type", "numpy_type"):
        if not _TYPE.fullmatch(column[key]):
            raise ValueError(key)
        made[key] = column[key]
    if made["name"] not in (None, made["field_name"]):  # an index without a name has None
        raise ValueError("field_name")
    return made | {"metadata": kept or None}


def _pandas_index(index: Any) -> Any:
    """A column's name, or a range of whole numbers."""
    if isinstance(index, str):
        return index
    numbers = {key: index[key] for key in ("start", "stop", "step")}
    if index["kind"] != "range" or any(type(value) is not int for value in numbers.values()):
        return None
    return {"kind": "range", "name": None, **numbers}

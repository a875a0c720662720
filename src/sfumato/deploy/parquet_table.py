"""Parquet files, a block of rows at a time: other columns, types and order as they came."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from sfumato.deploy.reading import readable, seconds_of
from sfumato.errors import DataError

BLOCK_ROWS = 65_536
_MOST_ROWS_A_GROUP = 1 << 20
_BUFFER = 1 << 20
_KIND = "a Parquet file"
_FIELD_NUMBER = b"PARQUET:field_id"


class ParquetBlock:
    """Some consecutive rows."""

    def __init__(self, batch: Any, *, source: str) -> None:
        self.batch = batch
        self._source = source

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    def numbers(self, name: str) -> np.ndarray:
        """A column as numbers, NaN where it is empty.  Errors name rows, never values."""
        import pyarrow as pa

        column = self.batch.column(name)
        if not _is_number(column.type):
            raise DataError(
                f"{self._source}: column '{name}' holds {column.type}; expected degrees or metres"
                " as numbers"
            )
        try:
            return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=float)
        except (pa.ArrowException, ValueError, UnicodeDecodeError):
            raise DataError(
                f"{self._source}: column '{name}' holds values that are not numbers; remove or"
                " repair these rows"
            ) from None

    def text(self, name: str) -> np.ndarray:
        """A column as words."""
        import pyarrow as pa

        column = self.batch.column(name)
        if column.null_count:
            raise DataError(
                f"{self._source}: {column.null_count} row(s) have no value in '{name}'; expected"
                " one in each row"
            )
        try:
            if pa.types.is_dictionary(column.type):
                column = column.dictionary_decode()
            return np.array(column.cast(pa.string()).to_pylist(), dtype=object)
        except (pa.ArrowException, UnicodeDecodeError):
            raise DataError(
                f"{self._source}: column '{name}' holds {column.type}; expected text or whole"
                " numbers"
            ) from None

    def seconds(self, name: str) -> np.ndarray:
        """A column of times as whole seconds since 1970 (UTC where no zone is given)."""
        return seconds_of(self.batch.column(name), source=self._source, column=name)

    def values(self, name: str, rows: int) -> list[Any]:
        """The first values of a column, as they are."""
        found: list[Any] = self.batch.column(name).slice(0, rows).to_pylist()
        return found


class ParquetTable:
    """A Parquet file to be read in blocks and written again with two columns changed."""

    def __init__(self, path: Path) -> None:
        from pyarrow import parquet

        self.path = path
        with readable(path, _KIND):
            self._file = parquet.ParquetFile(path, buffer_size=_BUFFER, pre_buffer=False)
            self.names: list[str] = [str(name) for name in self._file.schema_arrow.names]
            self._schema = self._file.schema_arrow
            twice = sorted({name for name in self.names if self.names.count(name) > 1})
        if twice:
            raise DataError(
                f"{path.name} has the column '{twice[0]}' twice; expected each name once: rename or"
                " remove one"
            )
        with readable(path, _KIND):
            # Of the footer only these two counts are looked at: asking for a damaged group's own
            # can end the process.
            rows, groups = self._file.metadata.num_rows, self._file.metadata.num_row_groups
            self._group_rows = int(min(max(1, -(-rows // max(groups, 1))), _MOST_ROWS_A_GROUP))

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def blocks(self, *, without: tuple[str, ...] = ()) -> Iterator[ParquetBlock]:
        """All rows, in order."""
        kept = [name for name in self.names if name not in without]
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

    @contextmanager
    def sink(
        self,
        target: IO[bytes],
        *,
        packed: bool,
        first: str,
        second: str,
        decimals: int,
        without: tuple[str, ...] = (),
    ) -> Iterator["ParquetSink"]:
        """Write a file of the same kind to `target`; Parquet has packing of its own."""
        import pyarrow as pa
        from pyarrow import parquet

        schema = self._schema
        for name in without:
            schema = schema.remove(schema.get_field_index(name))
        fields = [_unnoted(field).with_type(_remade(field.type, _unnoted)) for field in schema]
        schema = pa.schema(fields, metadata=_harmless(schema.metadata, without))
        with parquet.ParquetWriter(target, schema) as writer:
            yield ParquetSink(writer, schema, first, second, self._group_rows)


class ParquetSink:
    """Takes blocks with their new coordinates."""

    def __init__(self, writer: Any, schema: Any, first: str, second: str, group_rows: int) -> None:
        self._writer, self._schema, self._group_rows = writer, schema, group_rows
        self._places = [
            (schema.get_field_index(name), schema.field(name)) for name in (first, second)
        ]

    def write(
        self, block: ParquetBlock, first: np.ndarray, second: np.ndarray, keep: np.ndarray | None
    ) -> None:
        """One block; `keep` says which rows go out, None for all of the file.

        Where it is given, dictionaries are cut to the values that go out: a block shares its own
        with rows that do not.
        """
        import pyarrow as pa

        columns = [block.batch.column(name) for name in self._schema.names]
        for (place, field), values in zip(self._places, (first, second), strict=True):
            gone = np.isnan(values)
            mask = gone if field.nullable and gone.any() else None
            columns[place] = pa.array(values, mask=mask).cast(field.type, safe=False)
        batch = pa.record_batch(columns, schema=self._schema)
        if keep is not None:
            kept = batch.filter(pa.array(keep))
            batch = pa.record_batch(
                [_compact(column) for column in kept.columns], schema=self._schema
            )
        self._writer.write_batch(batch, row_group_size=self._group_rows)


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_float32(kind) or pa.types.is_float64(kind) or pa.types.is_decimal(kind))


def _compact(column: Any) -> Any:
    """The same values and type; a dictionary holds only what the rows hold, in its old order."""
    import pyarrow as pa
    from pyarrow import compute

    if pa.types.is_dictionary(column.type):
        used = compute.unique(column.indices.drop_null()).sort()
        places = compute.index_in(column.indices, value_set=used).cast(column.type.index_type)
        return pa.DictionaryArray.from_arrays(
            places, column.dictionary.take(used), ordered=column.type.ordered
        )
    decoded = _remade(
        column.type,
        lambda field: (
            field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        ),
    )
    return column if decoded == column.type else column.cast(decoded).cast(column.type)


def _unnoted(field: Any) -> Any:
    """A column without its notes, but for its number, by which some readers find it."""
    number = (field.metadata or {}).get(_FIELD_NUMBER, b"")
    return field.with_metadata({_FIELD_NUMBER: number} if number.isdigit() else None)


def _remade(kind: Any, change: Callable[[Any], Any]) -> Any:
    """A type with all its inner fields changed."""
    import pyarrow as pa

    def inner(field: Any) -> Any:
        changed = change(field)
        return changed.with_type(_remade(changed.type, change))

    if pa.types.is_struct(kind):
        return pa.struct([inner(kind.field(place)) for place in range(kind.num_fields)])
    if pa.types.is_map(kind):
        return pa.map_(inner(kind.key_field), inner(kind.item_field), keys_sorted=kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(inner(kind.value_field), kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(inner(kind.value_field))
    return pa.list_(inner(kind.value_field)) if pa.types.is_list(kind) else kind


def _harmless(
    metadata: dict[bytes, bytes] | None, without: tuple[str, ...]
) -> dict[bytes, bytes] | None:
    """What pandas needs to read the table back; other notes on a file may hold places (a bounding
    box, say) and are left out."""
    stored = (metadata or {}).get(b"pandas")
    if stored is None:
        return None
    try:
        notes = json.loads(stored)
        notes["columns"] = [
            column for column in notes["columns"] if column.get("name") not in without
        ]
        notes["index_columns"] = [
            column for column in notes["index_columns"] if column not in without
        ]
        notes.pop("attributes", None)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return {b"pandas": json.dumps(notes).encode()}

"""CSV files as text, a block of lines at a time: all other fields stay as they were, byte for
byte."""

import gzip
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from sfumato.data.read import SNAP_COLUMNS, looks_like_snap
from sfumato.deploy.reading import readable, seconds_of, whole_seconds
from sfumato.errors import DataError

_BLOCK_ROWS = 32_768
_LONGEST_RECORD = 1 << 20
_DELIMITERS = ",;\t|"
_TEXT: dict[str, Any] = {"encoding": "utf-8", "errors": "surrogateescape", "newline": ""}


class CsvBlock:
    """Some consecutive records, each a list of fields as they stand in the file, quotes and all."""

    def __init__(
        self,
        records: list[list[str]],
        ends: list[str],
        names: list[str],
        *,
        source: str,
        start: int,
    ) -> None:
        self.records, self.ends, self._names, self._source, self._start = (
            records,
            ends,
            names,
            source,
            start,
        )

    def __len__(self) -> int:
        return len(self.records)

    def _fields(self, name: str) -> list[str]:
        place = self._names.index(name)
        return [_unquoted(record[place]) for record in self.records]

    def numbers(self, name: str) -> np.ndarray:
        """A column as numbers, NaN where it is empty.  Errors name rows, never values."""
        fields = self._fields(name)
        try:
            return np.array([float(field) if field.strip() else np.nan for field in fields])
        except ValueError:
            bad = [row for row, field in enumerate(fields) if not _is_number(field)]
            raise DataError(
                f"{self._source}: {len(bad)} value(s) of '{name}' among rows {self._start + 1} to"
                f" {self._start + len(fields)} are not numbers (first in row"
                f" {self._start + bad[0] + 1}); remove or repair these rows"
            ) from None

    def text(self, name: str) -> np.ndarray:
        """A column as words."""
        fields = self._fields(name)
        empty = sum(not field for field in fields)
        if empty:
            raise DataError(
                f"{self._source}: {empty} row(s) have no value in '{name}'; expected one in"
                " each row"
            )
        return np.array(fields, dtype=object)

    def seconds(self, name: str) -> np.ndarray:
        """A column of times as whole seconds since 1970 (UTC where no zone is given)."""
        import pyarrow as pa

        fields = self._fields(name)
        values = [field.strip() for field in fields]
        if all(re.fullmatch(r"-?[0-9]{1,30}", value) for value in values):
            return whole_seconds(
                np.array([float(value) for value in values]), source=self._source, column=name
            )
        safe = [value if value.isascii() else None for value in values]
        return seconds_of(pa.array(safe, pa.string()), source=self._source, column=name)

    def values(self, name: str, rows: int) -> list[Any]:
        """The first values of a column, as they are."""
        place = self._names.index(name)
        return [_unquoted(record[place]) for record in self.records[:rows]]


class CsvTable:
    """A CSV or SNAP file, plain or gzipped, to be read in blocks and written again with two columns
    changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._open() as source, readable(path):
            first, end = next(_records(source, path), ("", ""))
        if not first:
            raise DataError(
                f"{path.name} is empty or begins with an empty line; expected a CSV or Parquet file"
            )
        self.header: str | None = None
        if looks_like_snap(first):
            self.delimiter, self.names = "\t", list(SNAP_COLUMNS)
        else:
            mark = "\ufeff" if first.startswith("\ufeff") else ""
            self.header, self._end = first, end
            self.delimiter = max(_DELIMITERS, key=first.count)
            self.names = [
                _unquoted(name).strip() for name in _split(first.removeprefix(mark), self.delimiter)
            ]

    def close(self) -> None:
        """Nothing is held open."""

    @contextmanager
    def _open(self) -> Iterator[IO[str]]:
        with readable(self.path):
            raw: Any = self.path.open("rb")
        unpacked: Any = gzip.GzipFile(fileobj=raw) if self.path.name.endswith(".gz") else raw
        with raw, io.TextIOWrapper(unpacked, **_TEXT) as source:
            yield source

    def blocks(self, *, without: tuple[str, ...] = ()) -> Iterator[CsvBlock]:
        """All rows, in order."""
        with self._open() as source:
            records: list[list[str]] = []
            ends: list[str] = []
            start, width = 0, len(self.names)
            lines = _records(source, self.path)
            if self.header is not None:
                next(lines)
            for record, end in lines:
                if not record and width > 1:
                    if not ends:
                        raise DataError(
                            f"{self.path.name} begins with an empty line; expected one row a line:"
                            " remove it"
                        )
                    ends[-1] += end  # an empty line stays where it is
                    continue
                if len(records) == _BLOCK_ROWS:
                    yield CsvBlock(records, ends, self.names, source=self.path.name, start=start)
                    start += len(records)
                    records, ends = [], []
                fields = _split(record, self.delimiter)
                if len(fields) != width:
                    number = start + len(records) + 1
                    raise DataError(
                        f"{self.path.name}: row {number} has {len(fields)} fields; expected {width}"
                        " as in its first line"
                    )
                records.append(fields)
                ends.append(end)
            if records:
                yield CsvBlock(records, ends, self.names, source=self.path.name, start=start)

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
    ) -> Iterator["CsvSink"]:
        """Write a file of the same kind to `target`, `packed` by gzip or plain."""
        kept = [place for place, name in enumerate(self.names) if name not in without]
        places = (self.names.index(first), self.names.index(second))
        # No name and no time in the gzip header: they would differ from run to run.
        raw: Any = (
            gzip.GzipFile(filename="", mode="wb", fileobj=target, mtime=0, compresslevel=6)
            if packed
            else target
        )
        with io.TextIOWrapper(raw, **_TEXT, write_through=False) as text:
            if self.header is not None:
                mark = "\ufeff" if self.header.startswith("\ufeff") else ""
                names = _split(self.header.removeprefix(mark), self.delimiter)
                text.write(
                    mark + self.delimiter.join(names[place] for place in kept) + (self._end or "\n")
                )
            yield CsvSink(text, self.delimiter, places, kept, decimals)


class CsvSink:
    """Takes blocks with their new coordinates, written to a fixed number of decimals."""

    def __init__(
        self,
        target: IO[str],
        delimiter: str,
        places: tuple[int, int],
        kept: list[int],
        decimals: int,
    ) -> None:
        self._target, self._delimiter, self._places, self._kept = target, delimiter, places, kept
        self._form = f"%.{decimals}f"

    def write(
        self, block: CsvBlock, first: np.ndarray, second: np.ndarray, keep: np.ndarray | None
    ) -> None:
        """One block; `keep` says which rows go out, None for all."""
        form, (one, two) = self._form, self._places
        chosen = range(len(block)) if keep is None else np.flatnonzero(keep).tolist()
        lines = []
        across, up = first.tolist(), second.tolist()
        every = len(self._kept) == len(block.records[0]) if len(block) else True
        for row in chosen:
            record = block.records[row]
            record[one] = "" if across[row] != across[row] else form % across[row]
            record[two] = "" if up[row] != up[row] else form % up[row]
            lines.append(
                self._delimiter.join(record if every else [record[place] for place in self._kept])
                + block.ends[row]
            )
        self._target.write("".join(lines))


def _records(source: IO[str], path: Path) -> Iterator[tuple[str, str]]:
    """Records with their line ends; a quoted field may hold line breaks."""
    held: list[str] = []
    quotes = size = 0
    while True:
        with readable(path):
            line = source.readline(_LONGEST_RECORD)
        if not line:
            break
        held.append(line)
        size += len(line)
        quotes += line.count('"')
        if size >= _LONGEST_RECORD:
            raise DataError(
                f"{path.name} has a row of more than {_LONGEST_RECORD} characters; a quote is"
                " probably not closed: repair it"
            )
        if quotes % 2 == 0:
            yield _cut("".join(held))
            held, quotes, size = [], 0, 0
    if held:
        raise DataError(f"{path.name} ends inside a quoted field; make or copy it again")


def _cut(line: str) -> tuple[str, str]:
    """A record and its line end."""
    for end in ("\r\n", "\n", "\r"):
        if line.endswith(end):
            return line[: -len(end)], end
    return line, ""


def _split(record: str, delimiter: str) -> list[str]:
    """The fields of a record as they stand, quotes kept."""
    if '"' not in record:
        return record.split(delimiter)
    fields, start, quoted = [], 0, False
    for place, letter in enumerate(record):
        if letter == '"':
            quoted = not quoted
        elif letter == delimiter and not quoted:
            fields.append(record[start:place])
            start = place + 1
    fields.append(record[start:])
    return fields


def _unquoted(field: str) -> str:
    if len(field) > 1 and field.startswith('"') and field.endswith('"'):
        return field[1:-1].replace('""', '"')
    return field


def _is_number(field: str) -> bool:
    try:
        float(field if field.strip() else "nan")
    except ValueError:
        return False
    return True

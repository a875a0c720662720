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
from sfumato.data.times import seconds_of, whole_seconds
from sfumato.deploy.columns import check_header
from sfumato.deploy.damaged import readable
from sfumato.deploy.verify import CsvFile, Noted, Written, read_back_csv
from sfumato.errors import DataError

_BLOCK_ROWS = 32_768
_LONGEST_RECORD = 1 << 20
_DELIMITERS = ",;\t|"
_UNPACKED = 1 << 28  # bytes of a gzipped file that are read without asking how small it was packed
_MOST_TIMES = 250  # its size, beyond that; a table packs to a tenth, gzip at most to a thousandth
_TEXT: dict[str, Any] = {"encoding": "utf-8", "errors": "surrogateescape", "newline": ""}
_READ = _TEXT | {"encoding": "utf-8-sig"}
_MARK = b"\xef\xbb\xbf"


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

    def values(self, name: str, rows: np.ndarray) -> list[Any]:
        """The values of a column in some rows, as they are."""
        place = self._names.index(name)
        return [_unquoted(self.records[row][place]) for row in rows.tolist()]


class CsvTable:
    """A CSV or SNAP file, plain or gzipped, to be read in blocks and written again with some
    columns changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._open() as source, readable(path):
            first, end, self.delimiter = _first_record(source, path)
        with self._open_bytes() as plain, readable(path):
            self._mark = "\ufeff" if plain.read(3) == _MARK else ""
        line = self.delimiter.join(first)
        if not line:
            raise DataError(
                f"{path.name} is empty or begins with an empty line; expected a CSV or Parquet file"
            )
        self.header: list[str] | None = None
        if looks_like_snap(line):
            self.delimiter, self.names = "\t", list(SNAP_COLUMNS)
        else:
            self.header, self._end = first, end
            names = [_unquoted(name).strip() for name in first]
            self.names = check_header(names, source=path.name)

    def close(self) -> None:
        """Nothing is held open."""

    @contextmanager
    def _open_bytes(self) -> Iterator[Any]:
        with readable(self.path):
            raw = self.path.open("rb")
        with raw:
            yield _Unpacked(self.path, raw) if is_packed(self.path) else raw

    @contextmanager
    def _open(self) -> Iterator[IO[str]]:
        with self._open_bytes() as plain, io.TextIOWrapper(plain, **_READ) as source:
            yield source

    def blocks(self, *, without: tuple[str, ...] = ()) -> Iterator[CsvBlock]:
        """All rows, in order."""
        with self._open() as source:
            records: list[list[str]] = []
            ends: list[str] = []
            start, width = 0, len(self.names)
            lines = _records(
                source, self.path, self.delimiter, header=self.header is not None, width=width
            )
            if self.header is not None:
                next(lines)
            for fields, end in lines:
                if len(fields) != width:
                    if fields == [""]:
                        if not ends:
                            raise DataError(
                                f"{self.path.name} begins with an empty line; expected one row per"
                                " line: remove it"
                            )
                        ends[-1] += end  # an empty line stays where it is
                        continue
                    number = start + len(records) + 1
                    raise DataError(
                        f"{self.path.name}: row {number} has {len(fields)} fields; expected {width}"
                        " as in its first line"
                    )
                if len(records) == _BLOCK_ROWS:
                    yield CsvBlock(records, ends, self.names, source=self.path.name, start=start)
                    start += len(records)
                    records, ends = [], []
                records.append(fields)
                ends.append(end)
            if records:
                yield CsvBlock(records, ends, self.names, source=self.path.name, start=start)

    @contextmanager
    def sink(self, target: IO[bytes], written: Written, *, packed: bool) -> Iterator["CsvSink"]:
        """Write a file of the same kind to `target`, `packed` by gzip or plain."""
        kept = [place for place, name in enumerate(self.names) if name not in written.without]
        # No name and no time in the gzip header: they would differ from run to run.
        raw: Any = (
            gzip.GzipFile(filename="", mode="wb", fileobj=target, mtime=0, compresslevel=6)
            if packed
            else target
        )
        with io.TextIOWrapper(raw, **_TEXT, write_through=False) as text:
            if self.header is not None:
                names = self.delimiter.join(self.header[place] for place in kept)
                text.write(self._mark + names + (self._end or "\n"))
            yield CsvSink(text, self, kept, written)

    def read_back(
        self, draft: Path, noted: Noted, written: Written, *, packed: bool, shown: str
    ) -> None:
        """Compare what was written with this file, both read by another parser."""
        read_back_csv(
            CsvFile(self.path, self.delimiter, packed=is_packed(self.path)),
            CsvFile(draft, self.delimiter, packed=packed),
            noted,
            names=self.names,
            header=self.header is not None,
            written=written,
            shown=shown,
        )


class CsvSink:
    """Takes blocks with their new columns; coordinates are written to a fixed number of
    decimals."""

    def __init__(self, target: IO[str], table: CsvTable, kept: list[int], written: Written) -> None:
        self._target, self._delimiter, self._kept = target, table.delimiter, kept
        self._places = [table.names.index(name) for name in written.changed]
        self._form = f"%.{written.decimals}f"
        self.noted = Noted()

    def write(
        self,
        block: CsvBlock,
        first: np.ndarray,
        second: np.ndarray,
        keep: np.ndarray | None,
        users: np.ndarray | None = None,
    ) -> None:
        """One block; `keep` says which rows go out, None for all; `users` are new names of
        users."""
        form = self._form
        chosen = range(len(block)) if keep is None else np.flatnonzero(keep).tolist()
        columns = [
            ["" if value != value else form % value for value in values.tolist()]
            for values in (first, second)
        ]
        if users is not None:
            columns.append(users.tolist())
        every = len(self._kept) == len(block.records[0]) if len(block) else True
        lines = []
        for row in chosen:
            record = block.records[row]
            for place, column in zip(self._places, columns, strict=True):
                record[place] = column[row]
            lines.append(
                self._delimiter.join(record if every else [record[place] for place in self._kept])
                + block.ends[row]
            )
        self.noted.rows(len(block), keep)
        self.noted.columns(
            _digestible([column[row] for row in chosen] if keep is not None else column)
            for column in columns
        )
        self._target.write("".join(lines))


def _digestible(texts: list[str]) -> bytes:
    return "".join(text + "\x1f" for text in texts).encode()


def is_packed(path: Path) -> bool:
    """Whether a name says that the file is gzipped."""
    return path.name.lower().endswith(".gz")


class _Unpacked(gzip.GzipFile):
    """A gzipped file that stops where it unpacks to far more than a table does."""

    def __init__(self, path: Path, packed: IO[bytes]) -> None:
        super().__init__(fileobj=packed, mode="rb")
        self._named = path.name
        self._most = max(_UNPACKED, _MOST_TIMES * path.stat().st_size)

    def read1(self, size: int = -1) -> bytes:
        data = super().read1(size)
        if self.tell() > self._most:
            raise DataError(
                f"{self._named} unpacks to more than {_MOST_TIMES} times its size, which no table"
                " does; unpack it first if it is one"
            )
        return data


def _first_record(source: IO[str], path: Path) -> tuple[list[str], str, str]:
    """The fields of the first record, its line end and the delimiter that suits it best."""
    best: tuple[list[str], str, str] = ([], "", ",")
    refusal: DataError | None = None
    start = source.read(_LONGEST_RECORD)
    for delimiter in _DELIMITERS:
        try:
            fields, end = next(
                _records(io.StringIO(start, newline=""), path, delimiter), ([""], "")
            )
        except DataError as error:
            refusal = refusal or error
            continue
        if len(fields) > len(best[0]):
            best = fields, end, delimiter
    if refusal is not None and not best[0]:
        raise refusal
    return best


def _records(
    source: IO[str], path: Path, delimiter: str, *, header: bool = True, width: int = 0
) -> Iterator[tuple[list[str], str]]:
    """Records as fields, quotes kept, each with its line end; a quoted field may hold line breaks.

    The grammar is strict: a quote opens a field only as its first letter and closes it only before
    a delimiter or a line end; two quotes inside are one.  About anything else readers disagree, and
    where they do a true place can pass as part of a text, so it is refused.  So is a row over
    several lines that all have a whole row's delimiters: two quotes that were no field's bounds
    glue the rows between them together.
    """
    mark = re.escape(delimiter)
    field = re.compile(rf'("[^"]*(?:""[^"]*)*"|[^"{mark}]*)({mark}|\Z)')
    held: list[str] = []
    quotes = size = 0
    row, usual_end = (0 if header else 1), None
    for line in _lines(source, path):
        held.append(line)
        size += len(line)
        quotes += line.count('"')
        if size >= _LONGEST_RECORD:
            raise DataError(
                f"{path.name}: {_named(row)} has more than {_LONGEST_RECORD} characters; a quote is"
                " probably not closed: repair it"
            )
        if "\0" in line:
            raise DataError(
                f"{path.name}: {_named(row)} holds a zero byte; expected text in UTF-8: make or"
                " copy it again"
            )
        if quotes % 2:  # within a quoted field, which goes on in the next line
            continue
        record, end = _cut("".join(held))
        if end == "\r" and usual_end not in (None, "\r"):
            raise DataError(
                f"{path.name}: {_named(row)} holds a carriage return that ends no other line;"
                " expected such a field in quotes"
            )
        fields = _split(record, field) if quotes else record.split(delimiter)
        if fields is None or (
            len(held) > 1 < width and all(line.count(delimiter) >= width - 1 for line in held)
        ):
            raise _quote_refusal(path, row)
        yield fields, end
        usual_end = usual_end or end
        row += record != ""
        held, quotes, size = [], 0, 0
    if held:
        raise _quote_refusal(path, row)


def _lines(source: IO[str], path: Path) -> Iterator[str]:
    with readable(path):
        while line := source.readline(_LONGEST_RECORD):
            yield line


def _quote_refusal(path: Path, row: int) -> DataError:
    return DataError(
        f"{path.name}: {_named(row)} has a quote that does not open or close a whole field, or is"
        " never closed, or quotes whole rows; expected fields with quotes to be quoted whole, and"
        " quotes within them doubled"
    )


def _named(row: int) -> str:
    return f"row {row}" if row else "its first line"


def _cut(line: str) -> tuple[str, str]:
    """A record and its line end."""
    for end in ("\r\n", "\n", "\r"):
        if line.endswith(end):
            return line[: -len(end)], end
    return line, ""


def _split(record: str, field: re.Pattern[str]) -> list[str] | None:
    """The fields of a record as they stand, quotes kept; None where a quote is out of place."""
    fields, place = [], 0
    while True:
        found = field.match(record, place)
        if found is None:
            return None
        fields.append(found[1])
        if not found[2]:
            return fields
        place = found.end()


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

"""CSV files as text, a block of lines at a time: all other fields stay as they were, byte for
byte."""

import gzip
import io
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
from pyarrow import compute

from sfumato.data.arrow import bytes_column, to_arrow, to_numpy, without_empty
from sfumato.data.read import SNAP_COLUMNS, looks_like_snap
from sfumato.data.times import seconds_of, whole_seconds
from sfumato.deploy.columns import check_header
from sfumato.deploy.damaged import readable
from sfumato.deploy.verify import CsvFile, Noted, Written, joined_bytes, read_back_csv, streams
from sfumato.errors import DataError

_BLOCK_ROWS = 32_768
_BLOCK_BYTES = 1 << 22  # of lines
_DIGITS = np.isin(np.arange(256), list(b"0123456789.eE+-"))
_LONGEST_RECORD = 1 << 20
_DELIMITERS = ",;\t|"
_UNPACKED = 1 << 28  # bytes of a gzipped file that are read without asking how small it was packed
_MOST_TIMES = 250  # its size, beyond that; a table packs to a tenth, gzip at most to a thousandth
_TEXT: dict[str, Any] = {"encoding": "utf-8", "errors": "surrogateescape", "newline": ""}
_READ = _TEXT | {"encoding": "utf-8-sig"}
_MARK = b"\xef\xbb\xbf"
_QUOTE = b'"'


class CsvBlock(ABC):
    """Some consecutive records of a table; `start` is how many stand before them."""

    def __init__(self, table: "CsvTable", start: int) -> None:
        self._names, self._source, self._start = table.names, table.path.name, start
        self._delimiter = table.delimiter

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def values(self, name: str, rows: np.ndarray) -> list[Any]:
        """The values of a column in some rows, as they are."""

    def column(self, name: str) -> Any:
        """A column's fields as bytes."""
        fields = [field.encode("utf-8", "surrogateescape") for field in self._fields(name)]
        return pa.array(fields, pa.binary())

    @abstractmethod
    def lines(self, new: dict[int, Any], kept: list[int], chosen: np.ndarray) -> Any:
        """The bytes that are written of some rows: the columns `kept`, by number, with Arrow's
        texts `new` of these rows in some of them."""

    def _fields(self, name: str) -> list[str]:
        return self.values(name, np.arange(len(self)))

    def numbers(self, name: str) -> np.ndarray:
        fields = self._fields(name)
        try:
            return np.array([float(field) if field.strip() else np.nan for field in fields])
        except ValueError:
            bad = [row for row, field in enumerate(fields) if not _is_number(field)]
            raise DataError(
                f"{self._source}: {len(bad)} value(s) of '{name}' among data rows {self._start + 1}"
                f" to {self._start + len(fields)} are not numbers (first in data row"
                f" {self._start + bad[0] + 1}); remove or repair these rows"
            ) from None

    def text(self, name: str) -> np.ndarray:
        fields = self._fields(name)
        empty = sum(not field for field in fields)
        if empty:
            raise DataError(
                f"{self._source}: {empty} row(s) have no value in '{name}'; expected one in"
                " each row"
            )
        return np.array(fields, dtype=object)

    def seconds(self, name: str) -> np.ndarray:
        fields = self._fields(name)
        values = [field.strip() for field in fields]
        if all(re.fullmatch(r"-?[0-9]{1,30}", value) for value in values):
            return whole_seconds(
                np.array([float(value) for value in values]), source=self._source, column=name
            )
        safe = [value if value.isascii() else None for value in values]
        return seconds_of(pa.array(safe, pa.string()), source=self._source, column=name)


class QuotedBlock(CsvBlock):
    """Records as lists of fields as they stand in the file, quotes and all."""

    def __init__(
        self, table: "CsvTable", start: int, records: list[list[str]], ends: list[str]
    ) -> None:
        super().__init__(table, start)
        self.records, self.ends = records, ends

    def __len__(self) -> int:
        return len(self.records)

    def values(self, name: str, rows: np.ndarray) -> list[Any]:
        place = self._names.index(name)
        return [_unquoted(self.records[row][place]) for row in rows.tolist()]

    def lines(self, new: dict[int, Any], kept: list[int], chosen: np.ndarray) -> bytes:
        columns = {place: column.to_pylist() for place, column in new.items()}
        lines = []
        for at, row in enumerate(chosen.tolist()):
            record = self.records[row]
            for place, column in columns.items():
                record[place] = column[at].decode()
            lines.append(self._delimiter.join([record[place] for place in kept]) + self.ends[row])
        return "".join(lines).encode("utf-8", "surrogateescape")


class PlainBlock(CsvBlock):
    """Lines as the bytes that they are, without a line end in a field: fields lie between
    delimiters.

    `edges` (rows, fields + 1): a field is what lies from its edge up to the byte before the next
    one.  `end` ends all lines, but perhaps not the last.
    """

    def __init__(
        self, table: "CsvTable", start: int, data: bytes, edges: np.ndarray, end: bytes
    ) -> None:
        super().__init__(table, start)
        self.data, self._edges, self._end = data, edges, end
        self._letters = np.frombuffer(data, dtype=np.uint8)
        self._quotes = _QUOTE in data

    def __len__(self) -> int:
        return len(self._edges)

    def values(self, name: str, rows: np.ndarray) -> list[Any]:
        bounds, data = self._bounds(name, rows), self.data
        texts = [
            data[start:stop].decode("utf-8", "surrogateescape") for start, stop in bounds.tolist()
        ]
        return [text.replace('""', '"') for text in texts] if self._quotes else texts

    def column(self, name: str) -> Any:
        texts = self._between(self._bounds(name, slice(None)))
        return compute.replace_substring(texts, b'""', b'"') if self._quotes else texts

    def numbers(self, name: str) -> np.ndarray:
        texts = self._between(self._bounds(name, slice(None)))
        if not _DIGITS[np.frombuffer(texts.buffers()[2] or b"", dtype=np.uint8)].all():
            return super().numbers(name)
        texts = pa.Array.from_buffers(pa.string(), len(texts), texts.buffers())
        try:
            return to_numpy(without_empty(texts).cast(pa.float64()))
        except pa.ArrowException:
            return super().numbers(name)

    def _bounds(self, name: str, rows: np.ndarray | slice) -> np.ndarray:
        """Where the values of a column begin and end, without the quotes around them."""
        place = self._names.index(name)
        bounds = np.stack([self._edges[rows, place], self._edges[rows, place + 1] - 1], axis=1)
        if self._quotes:
            first = self._letters.take(bounds[:, 0], mode="clip")
            quoted = (first == _QUOTE[0]) & (bounds[:, 0] < bounds[:, 1])
            bounds += np.stack([quoted, -quoted.astype(int)], axis=1)
        return bounds

    def _between(self, bounds: np.ndarray) -> Any:
        """The bytes between places, which rise."""
        places = bounds.ravel()
        offsets = pa.py_buffer(places.astype(np.int32))
        parts = pa.Array.from_buffers(
            pa.binary(), len(places) - 1, [None, offsets, pa.py_buffer(self.data)]
        )
        return parts.take(to_arrow(np.arange(0, len(places), 2)))

    def _cut(self, first: int, end: int, rows: np.ndarray | slice) -> Any:
        """The bytes of neighbouring fields, with the delimiters between them, in some rows."""
        return self._between(
            np.stack([self._edges[rows, first], self._edges[rows, end] - 1], axis=1)
        )

    def lines(self, new: dict[int, Any], kept: list[int], chosen: np.ndarray) -> Any:
        if not len(chosen):
            return b""
        parts: list[Any] = []
        first = 0
        while first < len(kept):
            end = first + 1
            if kept[first] in new:
                parts.append(new[kept[first]])
            else:  # neighbours that stay as they are go out together
                while end < len(kept) and kept[end] == kept[end - 1] + 1 and kept[end] not in new:
                    end += 1
                parts.append(self._cut(kept[first], kept[end - 1] + 1, chosen))
            after = self._delimiter.encode() if end < len(kept) else self._end
            parts += bytes_column([after])
            first = end
        data: Any = joined_bytes(compute.binary_join_element_wise(*parts, *bytes_column([b""])))
        unended = chosen[-1] == len(self) - 1 and not self.data.endswith(b"\n")
        return data[: len(data) - len(self._end)] if unended else data


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
    def _open(self, start: int = 0) -> Iterator[IO[str]]:
        """The text from a byte on."""
        with self._open_bytes() as plain:
            with readable(self.path):
                plain.seek(start)
            with io.TextIOWrapper(plain, **(_TEXT if start else _READ)) as source:
                yield source

    def blocks(self, *, without: tuple[str, ...] = ()) -> Iterator[CsvBlock]:
        """All rows, in order.  From the first block on that holds anything but lines of as many
        fields, records are read one by one."""
        first = "" if self.header is None else self.delimiter.join(self.header) + self._end
        place, rows = len((self._mark + first).encode("utf-8", "surrogateescape")), 0
        for data in self._whole_lines(place):
            block = plain_block(self, rows, data)
            if block is None:
                yield from self._one_by_one(place, rows)
                return
            yield block
            place, rows = place + len(data), rows + len(block)

    def _whole_lines(self, start: int) -> Iterator[bytes]:
        """The file from a byte on, cut between lines; a line that could have empty ones behind it
        is kept back for them."""
        with self._open_bytes() as plain, readable(self.path):
            plain.seek(start)
            lines = b""
            while more := plain.read1(_BLOCK_BYTES):
                lines += more
                if len(lines) < _BLOCK_BYTES:
                    continue
                end = lines.rfind(b"\n", 0, max(0, lines.rfind(b"\n"))) + 1
                yield lines[:end] if end else lines
                lines = lines[end:]
            if lines:
                yield lines

    def _one_by_one(self, place: int, start: int) -> Iterator[QuotedBlock]:
        """The records from a byte on, of which `start` stand before."""
        with self._open(place) as source:
            records: list[list[str]] = []
            ends: list[str] = []
            width = len(self.names)
            lines = _records(
                source,
                self.path,
                self.delimiter,
                row=start + 1,
                width=width,
                usual_end=self._end if self.header is not None else "\n" if start else None,
            )
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
                        f"{self.path.name}: data row {number} has {len(fields)} fields; expected"
                        f" {width} as in its first line"
                    )
                if len(records) == _BLOCK_ROWS:
                    yield QuotedBlock(self, start, records, ends)
                    start += len(records)
                    records, ends = [], []
                records.append(fields)
                ends.append(end)
            if records:
                yield QuotedBlock(self, start, records, ends)

    @contextmanager
    def sink(self, target: IO[bytes], written: Written, *, packed: bool) -> Iterator["CsvSink"]:
        kept = [place for place, name in enumerate(self.names) if name not in written.without]
        with ExitStack() as stack:
            raw: Any = target
            if packed:  # no name and no time in the header: they would differ from run to run
                raw = stack.enter_context(
                    gzip.GzipFile(filename="", mode="wb", fileobj=target, mtime=0, compresslevel=6)
                )
            if self.header is not None:
                names = self.delimiter.join(self.header[place] for place in kept)
                text = self._mark + names + (self._end or "\n")
                raw.write(text.encode("utf-8", "surrogateescape"))
            yield CsvSink(raw, self, kept, written)

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

    def __init__(
        self, target: IO[bytes], table: CsvTable, kept: list[int], written: Written
    ) -> None:
        self._target, self._kept = target, kept
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
        chosen = np.arange(len(block)) if keep is None else np.flatnonzero(keep)
        columns = [self._texts(values[chosen]) for values in (first, second)]
        if users is not None:
            columns.append(pa.array(users[chosen].tolist(), pa.string()).cast(pa.binary()))
        self.noted.rows(len(block), keep)
        self.noted.columns(map(streams, columns))
        new = dict(zip(self._places, columns, strict=True))
        self._target.write(block.lines(new, self._kept, chosen))

    def _texts(self, values: np.ndarray) -> Any:
        """Coordinates as they are written, each different one once."""
        coded = to_arrow(values).dictionary_encode()
        texts = [
            "" if value != value else self._form % value for value in coded.dictionary.to_pylist()
        ]
        return bytes_column([text.encode() for text in texts]).take(coded.indices)


def plain_block(table: CsvTable, start: int, data: bytes) -> PlainBlock | None:
    """Lines that need no reading one by one: quotes around whole fields alone and no line end
    within, no zero byte, one kind of line end, no line empty or too long, and as many fields in
    each as the table has; None for all others."""
    width, end = len(table.names), b"\n"
    if b"\0" in data:
        return None
    if b"\r" in data:
        end = b"\r\n"
        if not data.count(b"\r") == data.count(end) == data.count(b"\n"):
            return None
    letters = np.frombuffer(data, dtype=np.uint8)
    stops = np.flatnonzero(letters == ord("\n"))
    marks = np.flatnonzero(letters == ord(table.delimiter))
    if _QUOTE in data:
        quotes = np.flatnonzero(letters == _QUOTE[0])
        if len(quotes) % 2 or (np.searchsorted(quotes, stops) % 2).any():  # a line end within
            return None
        if not _quote_fields(letters, quotes, table.delimiter):
            return None
        marks = marks[np.searchsorted(quotes, marks) % 2 == 0]
    if not data.endswith(b"\n"):
        stops = np.append(stops, len(data) + len(end) - 1)
    starts = np.concatenate([[0], stops[:-1] + 1])
    stops = stops + (2 - len(end))
    lengths = stops - starts
    if (
        len(marks) != (width - 1) * len(stops)
        or not 1 < lengths.min() <= lengths.max() < _LONGEST_RECORD
    ):
        return None
    edges = np.empty((len(stops), width + 1), dtype=np.int64)
    edges[:, 0], edges[:, 1:-1], edges[:, -1] = starts, marks.reshape(len(stops), -1) + 1, stops
    if np.any(edges[:, 1:] <= edges[:, :-1]):  # a delimiter that belongs to another line
        return None
    return PlainBlock(table, start, data, edges, end)


def _quote_fields(letters: np.ndarray, quotes: np.ndarray, delimiter: str) -> bool:
    """Whether quotes, an even number, stand in pairs around fields, but for doubled ones within
    these: a pair opens behind a delimiter or a line end and closes before one, and where it closes
    just before the next pair opens, both are one field's."""
    opens, closes = quotes[::2], quotes[1::2]
    bound = np.zeros(256, dtype=bool)
    bound[[ord(delimiter), ord("\n"), ord("\r")]] = True
    first = (opens == 0) | bound[letters.take(opens - 1, mode="wrap")]
    last = (closes == len(letters) - 1) | bound[letters.take(closes + 1, mode="clip")]
    doubled = opens[1:] == closes[:-1] + 1
    first[1:] |= doubled
    last[:-1] |= doubled
    return bool(first.all() and last.all())


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
    source: IO[str],
    path: Path,
    delimiter: str,
    *,
    row: int = 0,
    width: int = 0,
    usual_end: str | None = None,
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
    lines: list[str] = []
    quotes = size = 0
    for line in _lines(source, path):
        lines.append(line)
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
        record, end = _cut("".join(lines))
        if end == "\r" and usual_end not in (None, "\r"):
            raise DataError(
                f"{path.name}: {_named(row)} holds a carriage return that ends no other line;"
                " expected such a field in quotes"
            )
        fields = _split(record, field) if quotes else record.split(delimiter)
        if fields is None or (
            len(lines) > 1 < width and all(line.count(delimiter) >= width - 1 for line in lines)
        ):
            raise _quote_refusal(path, row)
        yield fields, end
        usual_end = usual_end or end
        row += record != ""
        lines, quotes, size = [], 0, 0
    if lines:
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
    return f"data row {row}" if row else "its first line"


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
        match = field.match(record, place)
        if match is None:
            return None
        fields.append(match[1])
        if not match[2]:
            return fields
        place = match.end()


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

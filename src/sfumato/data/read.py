"""Tables in, Samples out: SNAP check-in files, CSV and Parquet, plain or gzipped."""

import gzip
import re
import zlib
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from sfumato.arguments import guided
from sfumato.data.frames import arrow_table
from sfumato.data.joint import by_number
from sfumato.data.plane import Plane, check_degrees, inside_square
from sfumato.data.samples import Samples, Split
from sfumato.data.synthetic import four_corners
from sfumato.errors import DataError, FileError, arg
from sfumato.files import written_beside
from sfumato.memory import check_fits

USUAL = {
    "secret": ("user", "user_id", "userid", "uid", "secret", "id"),
    "lat": ("lat", "latitude"),
    "lon": ("lon", "lng", "long", "longitude"),
    "x": ("x", "x_m"),
    "y": ("y", "y_m"),
    "time": ("time", "timestamp", "datetime", "date", "created_at", "utc"),
}
_PARQUET = (".parquet", ".pq")
SNAP_COLUMNS = ["user", "time", "latitude", "longitude", "location"]


@guided(user="secret", users="secret", latitude="lat", longitude="lon", lng="lon")
def read_checkins(
    path: str | Path | Any,
    *,
    square: tuple[float, float, float] | None = None,
    plane: Plane | None = None,
    secret: str | None = None,
    lat: str | None = None,
    lon: str | None = None,
    seed: int = 0,
    wide: bool = False,
) -> Samples:
    """Read who was where.

    Main arguments: `path`, the name "four-corners", or a file: SNAP check-ins (tab separated, no
    header), CSV or Parquet with a header, each also as .gz (Parquet compresses itself); or a data
    frame of pandas, Polars or GeoPandas, an Arrow table, or columns by name.
    `square` keeps the check-ins within (latitude, longitude, side in metres) and centres the plane
    there; it is applied before anything is projected, so a file of the whole world works.  `plane`
    puts the metres on a plane that other data lie on: `plane=train.plane` for a file of test data.

    Other arguments: `secret`, `lat`, `lon` name the columns where they are not among the usual
    ones; `seed` is for data made by a formula; `wide` lets the data spread over a country, up to
    1,000 km from its middle, for an atlas alone.

    >>> read_checkins("four-corners")
    <Samples 'four-corners': 2,400 check-ins of 4 users>
    """
    if square is not None and plane is not None:
        raise DataError(
            f"{arg('square')} centres the plane on the square; it does not go with {arg('plane')}:"
            " select the square, then move the data with on_plane"
        )
    if isinstance(path, str | Path) and str(path) == "four-corners":
        if any(name is not None for name in (secret, lat, lon)):
            raise DataError(
                "four-corners has no columns to choose from; leave out the names of the secret,"
                " latitude and longitude"
            )
        data = four_corners(seed=seed).all
        if square is not None:
            return data.in_square(*square)
        return data if plane is None else data.on_plane(plane)
    if isinstance(path, str | Path):
        table, source = read_table(Path(path), words=(secret,)), Path(path).name
    else:
        table, source = arrow_table(path), "table"
    names = _columns(table.column_names, source=source, secret=secret, lat=lat, lon=lon)
    if not table.num_rows:
        raise DataError(f"{source} holds no rows; expected one row per check-in")
    users, codes = _users(table[names["secret"]], source=source, column=names["secret"])
    notes: tuple[str, ...] = ()
    if "split" in table.column_names:
        notes = ("the column 'split' was not read: its test rows count as training rows",)
    if "lat" in names:
        latitude = numbers(table[names["lat"]], source=source, column=names["lat"])
        longitude = numbers(table[names["lon"]], source=source, column=names["lon"])
        check_degrees(latitude, longitude, source=source)
        if square is None:
            plane = plane or Plane.about(latitude, longitude, wide=wide)
            kept, points = np.arange(len(codes)), plane.to_metres(latitude, longitude)
        else:
            kept, points, plane = inside_square(latitude, longitude, square, source=source)
        samples = Samples(codes[kept], points, users, plane=plane, name=source)
    else:
        if square is not None or plane is not None:
            raise DataError(
                f"{source} is in plane metres (columns x and y);"
                f" {arg('square' if plane is None else 'plane')} needs degrees"
            )
        points = np.stack(
            [numbers(table[names[axis]], source=source, column=names[axis]) for axis in "xy"],
            axis=1,
        )
        samples = Samples(codes, points, users, name=source)
    return replace(samples.renumbered(), notes=notes)


def _check_fits(path: Path, columns: float) -> None:
    """Refuse a file that is larger than what memory is free, by its size or that of its columns,
    before it is read whole."""
    check_fits(
        max(columns, float(path.stat().st_size)),
        what=f"reading {path.name}",
        advice="cut out the area, the users and the columns that are wanted first",
    )


def read_table(path: Path, *, words: tuple[str | None, ...] = ()) -> Any:
    """The rows of a file as an Arrow table; SNAP files get their usual column names.

    Columns named in `words`, and those usual for a secret, are read as text: 007 and 7 are two
    users.
    """
    import pyarrow as pa
    from pyarrow import csv, parquet

    if not path.exists():
        here = "" if path.is_absolute() else " in this folder"
        raise DataError(
            f"there is no file {path}{here}; expected 'four-corners' or a SNAP, CSV or Parquet file"
        )
    if path.is_dir():
        raise DataError(f"{path} is a folder; expected one SNAP, CSV or Parquet file")
    if not path.stat().st_size:
        raise DataError(f"{path.name} is empty; expected a SNAP, CSV or Parquet file of check-ins")
    odd: list[Any] = []  # rows with another number of fields than the first line

    def noted(row: Any) -> str:
        odd.append(row)
        return "error"

    try:
        if path.suffix in _PARQUET:
            footer = parquet.read_metadata(path)
            _check_fits(path, 8.0 * footer.num_rows * footer.num_columns)
            return parquet.read_table(path)
        _check_fits(path, 0.0)
        first = _first_line(path)
        if looks_like_snap(first):
            return csv.read_csv(
                path,
                read_options=csv.ReadOptions(column_names=SNAP_COLUMNS),
                parse_options=csv.ParseOptions(delimiter="\t", invalid_row_handler=noted),
                convert_options=csv.ConvertOptions(
                    column_types={"user": pa.string(), "location": pa.string(), "time": pa.string()}
                ),
            )
        if first.lstrip()[:1] in ("[", "{"):
            raise DataError(
                f"{path.name} looks like JSON; expected a SNAP, CSV or Parquet file: save it as CSV"
            )
        delimiter = max(",;\t", key=first.count)
        header = [name.strip().strip('"') for name in first.rstrip("\r\n").split(delimiter)]
        options: dict[str, Any] = {
            "parse_options": csv.ParseOptions(delimiter=delimiter, invalid_row_handler=noted),
            "convert_options": csv.ConvertOptions(
                column_types={
                    name: pa.string()
                    for name in header
                    if name in words or name.lower() in USUAL["secret"]
                },
                strings_can_be_null=True,
                null_values=[""],
            ),
        }
        try:
            return csv.read_csv(path, **options)
        except pa.ArrowInvalid:  # one thread knows the line that it stops at
            return csv.read_csv(path, read_options=csv.ReadOptions(use_threads=False), **options)
    except UnicodeEncodeError:
        raise DataError(
            f"the name of {path.name!a} is not text that can be read; rename the file"
        ) from None
    except (pa.ArrowException, OSError, UnicodeDecodeError, EOFError, zlib.error) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        advice = "repair it or write it again"
        if odd:  # the library's own words have the row itself: a true place
            row = odd[-1]
            reason = f"CSV parse error: Expected {row.expected_columns} columns, got"
            reason += f" {row.actual_columns}"
            reason += "" if row.number is None else f" in line {row.number}"
        elif isinstance(error, UnicodeDecodeError) or _is_not_text(path):
            reason, advice = "it is not text in UTF-8", "save it in UTF-8"
        raise DataError(
            f"{path.name} cannot be read as a SNAP, CSV or Parquet file: {reason}; {advice}"
        ) from None


def _opened(path: Path) -> IO[str]:
    opened = gzip.open if path.suffix == ".gz" else open
    return cast(IO[str], opened(path, "rt", encoding="utf-8-sig"))


def _first_line(path: Path) -> str:
    with _opened(path) as source:
        return source.readline(1 << 16)


def _is_not_text(path: Path) -> bool:
    """Whether a file of text has a byte that is none in UTF-8."""
    if path.suffix in _PARQUET:
        return False
    try:
        with _opened(path) as source:
            while source.read(1 << 20):
                pass
    except UnicodeDecodeError:
        return True
    except (OSError, EOFError, zlib.error):  # damaged in another way
        pass
    return False


def user_column(path: Path) -> str:
    """The column of the user in a table that was read by its usual names; `user` for SNAP, and
    where the file can no longer be read."""
    try:
        if path.suffix.lower() in _PARQUET:
            from pyarrow import parquet

            names = [str(name) for name in parquet.read_schema(path).names]
        else:
            names = [name.strip(' "') for name in re.split(r"[,;\t]", _first_line(path).strip())]
    except (OSError, ValueError, EOFError, zlib.error):  # Arrow's are of the first two kinds
        return "user"
    usual = [name for name in names if name.lower() in USUAL["secret"]]
    return min(usual, key=lambda name: USUAL["secret"].index(name.lower()), default="user")


def looks_like_snap(line: str) -> bool:
    fields = line.rstrip("\r\n").split("\t")
    if len(fields) != len(SNAP_COLUMNS):
        return False
    try:
        return len([float(fields[place]) for place in (2, 3)]) == 2
    except ValueError:
        return False


def _columns(
    present: list[str], *, source: str, secret: str | None, lat: str | None, lon: str | None
) -> dict[str, str]:
    """Which column plays which part, by the names given or the usual ones."""
    lowered = [name.lower() for name in present]
    twice = sorted({name for name in lowered if lowered.count(name) > 1})
    columns: dict[str, str] = {}
    for part, given in (("secret", secret), ("lat", lat), ("lon", lon), ("x", None), ("y", None)):
        if given is not None:
            if given not in present:
                raise DataError(
                    f"{source} has no column '{given}'; it has {_listed(present)}",
                    hint=f"name one of these with {arg(part)}",
                )
            matches = [given]
            doubled = matches if present.count(given) > 1 else []
        else:
            matches = [name for name in present if name.lower() in USUAL[part]]
            doubled = [name for name in matches if name.lower() in twice]
        if doubled:
            raise DataError(
                f"{source} has the column '{doubled[0]}' twice; expected it once: rename or"
                " remove one"
            )
        if len(matches) > 1:
            ranked = sorted(matches, key=lambda name: USUAL[part].index(name.lower()))
            if part != "secret" or ranked[0].lower() == "id":
                raise DataError(
                    f"{source} has several columns for {part}: {_listed(matches)}; say which",
                    hint=f"name it with {arg(part)}",
                )
            matches = ranked
        if matches:
            columns[part] = matches[0]
    for first, second in (("lat", "lon"), ("secret", "lat"), ("secret", "lon")):
        if first in columns and columns[first] == columns.get(second):
            raise DataError(
                f"{source}: '{columns[first]}' is named as {arg(first)} and as"
                f" {arg(second)}; expected two"
                " columns"
            )
    if "secret" not in columns:
        raise DataError(
            f"{source} has no column for the user; expected one of {_listed(USUAL['secret'][:4])},"
            f" it has {_listed(present)}",
            hint=f"name it with {arg('secret')}",
        )
    if not ({"lat", "lon"} <= columns.keys() or {"x", "y"} <= columns.keys()):
        raise DataError(
            f"{source} has no columns for the place; expected latitude and longitude, or x and y in"
            f" metres; it has {_listed(present)}",
            hint=f"name them with {arg('lat')} and {arg('lon')}",
        )
    if not {"lat", "lon"} <= columns.keys():
        columns.pop("lat", None)
    return columns


def _listed(names: Any) -> str:
    shown = [f"'{name}'" for name in list(names)[:8]]
    return ", ".join(shown) + (", …" if len(names) > 8 else "")


def _users(values: Any, *, source: str, column: str) -> tuple[tuple[str, ...], np.ndarray]:
    import pyarrow as pa

    try:
        encoded = values.cast(pa.string()).combine_chunks().dictionary_encode()
        names = encoded.dictionary.to_pylist()
    except (pa.ArrowException, UnicodeDecodeError):
        raise DataError(
            f"{source}: column '{column}' holds {values.type}; expected users as text or whole"
            " numbers"
        ) from None
    empty = values.null_count + sum(not name for name in names if name is not None)
    if empty:
        raise DataError(
            f"{source}: {empty} row(s) have no value in '{column}'; expected a user in each row"
        )
    order = sorted(range(len(names)), key=lambda row: by_number(names[row]))
    number = np.empty(len(names), dtype=np.int64)
    number[order] = np.arange(len(names))
    return tuple(names[row] for row in order), number[np.asarray(encoded.indices)]


def numbers(values: Any, *, source: str, column: str) -> np.ndarray:
    """A column of an Arrow table as numbers, NaN where it is empty."""
    import pyarrow as pa

    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        for row, text in enumerate(values.to_pylist()):
            try:
                float(text if text is not None else "nan")
            except ValueError:
                raise DataError(
                    f"{source}: '{text}' in column '{column}', row {row + 1}, is not a number; "
                    + (
                        "write numbers with a decimal point"
                        if re.fullmatch(r"[+-]?\d+,\d+", text.strip())
                        else "correct it or remove the row"
                    )
                ) from None
    try:
        return np.asarray(values.cast(pa.float64()).fill_null(float("nan")).to_numpy(), dtype=float)
    except (pa.ArrowException, ValueError):
        raise DataError(
            f"{source}: column '{column}' holds {values.type}; expected numbers"
        ) from None


def write_split(split: Split, path: Path) -> None:
    """Write user and place (degrees, or plane metres where the data came so); with test data also a
    column `split`."""
    from pyarrow import csv, parquet

    table = split.to_arrow()
    name = path.name.lower()
    with written_beside(path) as beside:
        if name.endswith(_PARQUET):
            parquet.write_table(table, beside)
        elif name.endswith(".csv.gz"):
            with gzip.open(beside, "wb") as packed:
                csv.write_csv(table, packed)
        elif name.endswith(".csv"):
            csv.write_csv(table, beside)
        else:
            raise FileError(
                f"{path.name} has an ending that sfumato does not write; expected .csv, .csv.gz or"
                " .parquet"
            )

"""Tables by structure, sound and unsound, with the truth hidden in many ways: whatever is said or
written, no true coordinate of the input is in it.

The mechanism is planar Laplace on cells, written to six decimals, so a report never has the digits
of a truth.  The number of cases is 1,600 here, or 0.8 of SFUMATO_FUZZ.
"""

import gzip
import json
import os
import struct
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import sfumato as sf
from sfumato.deploy import sanitize as module
from sfumato.deploy.one_file import Policy
from sfumato.deploy.pseudonym import Pseudonym
from sfumato.deploy.release import release
from sfumato.deploy.sanitize import sanitize
from sfumato.errors import SfumatoError
from sfumato.mechanism.chance import Sticky

CASES = int(os.environ.get("SFUMATO_FUZZ", "2000"))
KEY = bytes(range(32))
_SETTINGS = {
    "deadline": None,
    "database": None,
    "derandomize": True,
    "phases": (Phase.generate,),
    "suppress_health_check": list(HealthCheck),
}
_TRIED: dict[str, int] = {}


@pytest.fixture(scope="module")
def quick(runs, tmp_path_factory):
    """The run, loaded once, and a folder of its own."""
    run = sf.load_run(runs / "laplace")
    loaded = release(run)
    patch = pytest.MonkeyPatch()
    patch.setattr(module, "load_run", lambda name: run)
    patch.setattr(module, "release", lambda run, new_places: loaded)
    # Pages as they are, so that a search of the file's bytes sees all values.
    patch.setattr(parquet, "ParquetWriter", partial(parquet.ParquetWriter, compression="none"))
    shared = Path("/dev/shm")
    folder = tmp_path_factory.mktemp("fuzz")
    if shared.is_dir() and os.access(shared, os.W_OK):
        import tempfile

        with tempfile.TemporaryDirectory(dir=shared) as quick_folder:
            yield Path(quick_folder)
    else:
        yield folder
    patch.undo()


# Truths ------------------------------------------------------------------------------------------


@st.composite
def truths(draw, rows):
    """Different places in the region (a few outside) with nine to fourteen decimals."""
    decimals = draw(st.integers(9, 14))
    seed = draw(st.integers(0, 2**32 - 1))
    random = np.random.default_rng(seed)
    latitude = np.round(48.857 + random.uniform(-0.01, 0.01, rows), decimals)
    longitude = np.round(2.347 + random.uniform(-0.01, 0.01, rows), decimals)
    if rows and draw(st.integers(0, 4)) == 0:
        latitude[0] = np.round(latitude[0] + draw(st.sampled_from([1.0, -30.0, 0.2])), decimals)
    return latitude, longitude


def told(latitude: np.ndarray, longitude: np.ndarray, *, packed: bool) -> list[bytes]:
    """What would tell a truth: its digits to seven decimals cut or rounded, as a whole number, and
    as binary numbers."""
    found: list[bytes] = []
    for value in np.concatenate([latitude, longitude]).tolist():
        cut, whole = f"{abs(value):.12f}"[:-5], round(abs(value) * 1e7)
        found += [cut.encode(), f"{abs(value):.7f}".encode(), cut.replace(".", ",").encode()]
        found += [str(whole).encode()]
        if packed:
            found += [struct.pack("<d", value), struct.pack(">d", value), struct.pack("<q", whole)]
    return found


def hidden(kind: str, row: int, latitude: np.ndarray, longitude: np.ndarray) -> object:
    """A value that tells the truth of its row, or of another row."""
    lat, lon = float(latitude[row]), float(longitude[row])
    other = float(latitude[(row + 1) % len(latitude)])
    return {
        "text": repr(lat),
        "seven": f"{lat:.7f}",
        "zeros": f"{lon!r}000",
        "comma": f"{lat:.8f}".replace(".", ","),
        "json": json.dumps({"type": "Point", "coordinates": [lon, lat]}),
        "wkt": f"POINT ({lon} {lat})",
        "url": f"https://maps.example/?q={lat:.7f}%2C{lon:.7f}&z=17",
        "e7": str(round(lat * 1e7)),
        "e7 in a text": f"id={round(lon * 1e7)};",
        "other": repr(other),
        "other seven": f"near {other:.7f}",
        "wkb": struct.pack("<BIdd", 1, 1, lon, lat).hex(),
        "note": f"was at {lat:.9f} today",
    }[kind]


KINDS = (
    "text",
    "seven",
    "zeros",
    "comma",
    "json",
    "wkt",
    "url",
    "e7",
    "e7 in a text",
    "other",
    "other seven",
    "wkb",
    "note",
)
WORDS = st.text(
    st.characters(codec="utf-8", exclude_characters="\x00\r", exclude_categories=("Cs",)),
    max_size=8,
)
INNOCENT = st.one_of(
    WORDS,
    st.sampled_from(["", "a, b", 'say "no"', "two\nlines", "é\u2028", "48.85", "2", "-", "NaN"]),
    st.integers(-(10**6), 10**6).map(str),
    st.floats(0, 100).map(lambda value: f"{value:.2f}"),
)


@st.composite
def policies(draw, names):
    """Settings; hidden columns are never let pass."""
    users = [name for name in ("user", "uid") if name in names]
    way = draw(st.sampled_from(["keep", "drop", "pseudonym", "nothing"]))
    options = {"outside": draw(st.sampled_from(["refuse", "drop", "laplace", "clamp"]))}
    if users and way in ("keep", "drop"):
        options[way] = tuple(users)
    if users and way == "pseudonym":
        period = draw(st.sampled_from(["forever", "day"]))
        options["pseudonym"] = Pseudonym(KEY, period)
    chance = Sticky(KEY, "forever") if draw(st.integers(0, 4)) == 0 and users else None
    return Policy(**options), chance


def check(folder: Path, name: str, data: bytes, marks: list[bytes], policy, chance) -> None:
    """Sanitize one table and look at all that there is afterwards."""
    source, target = folder / name, folder / name.replace("in.", "out.")
    source.write_bytes(data)
    said = b""
    try:
        record = sanitize("run", source, target, policy=policy, chance=chance)
        said = json.dumps(record).encode()
        _TRIED["written"] = _TRIED.get("written", 0) + 1
    except SfumatoError as error:
        said = f"{error}\n{error.hint}".encode("utf-8", "surrogateescape")
        _TRIED["refused"] = _TRIED.get("refused", 0) + 1
        assert sorted(os.listdir(folder)) == [name], "something is left over"
    source.unlink()
    for path in list(folder.iterdir()):
        content = path.read_bytes()
        said += b"\n" + (gzip.decompress(content) if path.name.endswith(".gz") else content)
        path.unlink()
    assert not [mark for mark in marks if mark in said], "a true coordinate came out"


# CSV ---------------------------------------------------------------------------------------------


def _field(text: str, delimiter: str, always: bool) -> str:
    if always or any(letter in text for letter in f'{delimiter}"\n\r') or text != text.strip():
        return '"' + text.replace('"', '""') + '"'
    return text


@st.composite
def csv_cases(draw):
    rows = draw(st.integers(0, 8))
    latitude, longitude = draw(truths(rows))
    delimiter, end = draw(st.sampled_from(",;\t|")), draw(st.sampled_from(["\n", "\r\n", "\r"]))
    names = [
        "lat",
        "lon",
        *draw(st.permutations(["user", "a", "b", "time"]))[: draw(st.integers(0, 4))],
    ]
    hides = draw(st.sampled_from([None] * 12 + list(KINDS)))
    share = draw(st.sampled_from(["all", "one"]))
    only = draw(st.integers(0, max(rows - 1, 0)))
    always = draw(st.booleans())
    lines = []
    for row in range(rows):
        fields = []
        for name in names:
            if name == "lat":
                text = repr(float(latitude[row]))
            elif name == "lon":
                text = repr(float(longitude[row]))
            elif name == "time":
                text = f"2010-10-{19 + row % 9}T23:55:27Z"
            elif name == "user":
                text = f"u{row % 3}"
            elif name == "a" and hides and (share == "all" or row == only):
                text = str(hidden(hides, row, latitude, longitude))
            else:
                text = draw(INNOCENT)
            fields.append(_field(text, delimiter, always))
        lines.append(fields)
    if hides and rows and draw(st.integers(0, 9)) == 0:
        names[-1] = (
            f"{names[-1]} {float(latitude[only])!r}" if names[-1] not in ("lat", "lon") else "lon"
        )
    order = draw(st.permutations(range(len(names))))
    table = [[_field(names[place], delimiter, always) for place in order]]
    table += [[fields[place] for place in order] for fields in lines]
    table = [list(fields) for fields in table]
    fault = draw(
        st.sampled_from(
            [None] * 14 + ["quote", "escape", "open", "ragged", "return", "zero", "glue"]
        )
    )
    at = draw(st.integers(0, len(table) - 1))
    place = draw(st.integers(0, len(names) - 1))
    if fault in ("quote", "escape", "return", "zero"):
        extra = {"quote": '5" pipe', "escape": '\\"', "return": "a\rb", "zero": "\0"}[fault]
        table[at][place] = table[at][place] + extra
    elif fault == "open":
        table[at][place] = '"' + table[at][place].strip('"')
    elif fault == "ragged":
        table[at] = table[at][:-1] if draw(st.booleans()) else [*table[at], "x"]
    elif fault == "glue":  # two bare quotes, some rows apart
        for line in {at, draw(st.integers(0, len(table) - 1))}:
            table[line][place] = table[line][place].strip('"') + '"'
    text = end.join(delimiter.join(fields) for fields in table) + draw(st.sampled_from([end, ""]))
    if draw(st.integers(0, 9)) == 0:
        text = text.replace(end, end + end, 1)
    data = draw(st.sampled_from(["", "\ufeff"])).encode() + text.encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 19)) == 0:
        data = data.replace(b"e", b"\xff\xfe", 1)
    name = draw(st.sampled_from(["in.csv", "in.csv", "in.tsv", "in.CSV.GZ", "in.csv.gz"]))
    if name.lower().endswith("gz"):
        data = gzip.compress(data, compresslevel=1, mtime=0)
        name = name.lower()
    policy, chance = draw(policies(names))
    return name, data, told(latitude, longitude, packed=False), policy, chance


@pytest.mark.timeout(14_400)
def test_no_true_coordinate_leaves_a_csv_file(quick):
    _TRIED.clear()

    @settings(max_examples=max(1, CASES * 6 // 10), **_SETTINGS)
    @given(csv_cases())
    def run(case):
        check(quick, *case)

    run()
    print(f"CSV: {_TRIED}")
    assert min(_TRIED.values()) > 0.1 * sum(_TRIED.values())  # both sides of the border


# Parquet -----------------------------------------------------------------------------------------


def _column(draw, kind: str, rows: int, values: list) -> pa.Array:
    """Values of a kind as one of its types."""
    if kind == "text":
        array = pa.array([None if value is None else str(value) for value in values], pa.string())
        form = draw(st.sampled_from(["plain", "large", "coded", "list", "struct", "map", "bytes"]))
        if form == "large":
            return array.cast(pa.large_string())
        if form == "coded":
            return array.dictionary_encode()
        if form == "list":
            return pa.array([[value] for value in array.to_pylist()], pa.list_(pa.string()))
        if form == "struct":
            return pa.array([{"x": value} for value in array.to_pylist()])
        if form == "map":
            pairs = [[("k", value)] for value in array.to_pylist()]
            return pa.array(pairs, pa.map_(pa.string(), pa.string()))
        return array.cast(pa.binary()) if form == "bytes" else array
    return pa.array(values)


_TIMES = [
    pa.timestamp("s"),
    pa.timestamp("ms", tz="UTC"),
    pa.timestamp("ns"),
    pa.timestamp("ns", tz="Europe/Paris"),
    pa.date32(),
    pa.time64("ns"),
    pa.duration("ns"),
]


@st.composite
def parquet_cases(draw):
    rows = draw(st.integers(0, 8))
    latitude, longitude = draw(truths(rows))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    gaps = random.random(rows) < draw(st.sampled_from([0.0, 0.0, 0.3]))
    columns: dict[str, pa.Array] = {
        "lat": pa.array(latitude, mask=gaps),
        "lon": pa.array(longitude),
    }
    if draw(st.booleans()):
        columns["user"] = pa.array([f"u{row % 3}" for row in range(rows)], pa.string())
    if draw(st.booleans()):
        whole = pa.array(random.integers(0, 86_400_000_000_000, rows), pa.int64())
        kind = draw(st.sampled_from(_TIMES))
        columns["time"] = _times(whole, kind)
    if draw(st.booleans()):
        words = [None if random.random() < 0.2 else draw(INNOCENT) for _ in range(rows)]
        columns["b"] = _column(draw, "text", rows, words)
    if draw(st.booleans()):
        columns["n"] = pa.array(random.integers(0, 10**9, rows))
    hides = draw(
        st.sampled_from([None] * 10 + ["double", "float list", "scaled", "binary", *KINDS])
    )
    only = draw(st.integers(0, max(rows - 1, 0))) if draw(st.booleans()) else None
    if hides and rows:
        columns["a"] = _hiding(draw, hides, only, latitude, longitude)
    table = pa.table(columns) if columns else pa.table({})
    spare = draw(st.sampled_from([None, None, "schema", "field", "pandas", "unused"]))
    if spare and rows:
        table = _spare(table, spare, repr(float(latitude[0])))
    target = pa.BufferOutputStream()
    options = {
        "compression": draw(st.sampled_from(["none", "snappy", "zstd"])),
        "use_dictionary": draw(st.booleans()),
        "row_group_size": draw(st.sampled_from([1, 3, 100])),
        "write_page_index": draw(st.booleans()),
        "use_deprecated_int96_timestamps": draw(st.integers(0, 3)) == 0,
    }
    parquet.write_table(table, target, **options)
    policy, chance = draw(policies(table.column_names))
    data = target.getvalue().to_pybytes()
    return "in.parquet", data, told(latitude[~gaps], longitude, packed=True), policy, chance


def _times(whole: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_date32(kind):
        small = pa.array([value // 10**10 for value in whole.to_pylist()], pa.int32())
        return small.cast(kind)
    return whole.cast(kind)


def _hiding(draw, kind, only, latitude, longitude) -> pa.Array:
    rows = range(len(latitude))
    shown = [only is None or row == only for row in rows]
    if kind == "double":
        return pa.array(latitude, mask=~np.array(shown))
    if kind == "float list":
        pairs = [[float(b), float(a)] for a, b in zip(latitude, longitude, strict=True)]
        return pa.array([pair if show else None for pair, show in zip(pairs, shown, strict=True)])
    if kind == "scaled":
        return pa.array(np.round(longitude * 1e7).astype(np.int64), mask=~np.array(shown))
    if kind == "binary":
        made = [struct.pack("<BIdd", 1, 1, longitude[row], latitude[row]) for row in rows]
        return pa.array([value if show else None for value, show in zip(made, shown, strict=True)])
    values = [
        hidden(kind, row, latitude, longitude) if show else "plain"
        for row, show in zip(rows, shown, strict=True)
    ]
    return _column(draw, "text", len(values), values)


def _spare(table: pa.Table, where: str, text: str) -> pa.Table:
    """The truth beside the rows: in notes, or in a dictionary's value that no row has."""
    if where == "schema":
        return table.replace_schema_metadata({"geo": f"bbox {text}"})
    if where == "field":
        field = table.schema.field(0).with_metadata({"note": text})
        return table.cast(table.schema.set(0, field))
    if where == "pandas":
        column = {"name": "lat", "field_name": "lat", "pandas_type": "float64"}
        column |= {"numpy_type": "float64", "metadata": {"seen": text}}
        notes = {"columns": [column], "index_columns": [], "seen": text, "column_indexes": [text]}
        return table.replace_schema_metadata({"pandas": json.dumps(notes)})
    codes = pa.array([0] * table.num_rows, pa.int8())
    return table.append_column("coded", pa.DictionaryArray.from_arrays(codes, ["plain", text]))


@pytest.mark.timeout(14_400)
def test_no_true_coordinate_leaves_a_parquet_file(quick):
    _TRIED.clear()

    @settings(max_examples=max(1, CASES * 2 // 10), **_SETTINGS)
    @given(parquet_cases())
    def run(case):
        check(quick, *case)

    run()
    print(f"Parquet: {_TRIED}")
    assert min(_TRIED.values()) > 0.1 * sum(_TRIED.values())

"""Tables with the truth hidden in another form are refused, each with how; innocent tables pass."""

import base64
import json
import os
import struct
import zlib
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest

from sfumato.deploy import codes, recognise
from sfumato.deploy.one_file import Policy
from sfumato.deploy.sanitize import sanitize
from sfumato.errors import DataError
from tests.deploy.tables import write_parquet

ROWS = 60
RANDOM = np.random.default_rng(3)
LATITUDE = 48.857 + RANDOM.uniform(-0.02, 0.02, ROWS)
LONGITUDE = 2.347 + RANDOM.uniform(-0.02, 0.02, ROWS)
PLACES = list(zip(LATITUDE.tolist(), LONGITUDE.tolist(), strict=True))
EARTH_M = 6378137.0


def _geohash(latitude: float, longitude: float, letters: int) -> str:
    """By the definition: halve the ranges in turn."""
    sides, bits = [[-180.0, 180.0], [-90.0, 90.0]], ""
    for number in range(letters * 5):
        side, value = sides[number % 2], (longitude, latitude)[number % 2]
        middle = sum(side) / 2
        bits += str(int(value >= middle))
        side[value < middle] = middle
    digits = [int(bits[start : start + 5], 2) for start in range(0, len(bits), 5)]
    return "".join("0123456789bcdefghjkmnpqrstuvwxyz"[digit] for digit in digits)


def _s2(latitude: float, longitude: float, level: int) -> int:
    """The cell whose middle is nearest, found child by child."""

    def off(number: int) -> float:
        box = codes.s2([f"{number:016x}"])[1]
        return float(np.hypot(box.latitude - latitude, (box.longitude - longitude) * 0.66).item())

    step = 1 << (2 * (30 - 8))
    starts = [
        (0x47E66 >> 3 << 47) & -(step << 1) | step | child * (step << 1) for child in range(-64, 64)
    ]
    number = min((one for one in starts if len(codes.s2([f"{one:016x}"])[0])), key=off)
    for depth in range(9, level + 1):
        last, step = number & -number, 1 << (2 * (30 - depth))
        children = [(number - last) + step * (2 * child + 1) for child in range(4)]
        number = min(children, key=off)
    return number


def _h3(latitude: float, longitude: float) -> str:
    """An id with the bits of a cell of resolution 9: one per 200 m."""
    cell = round(latitude * 500) * 7919 + round(longitude * 330)
    digits = [cell // 7**place % 7 for place in range(9)] + [7] * 6
    number = 1 << 59 | 9 << 52 | 12 << 45
    for step, digit in enumerate(digits, 1):
        number |= digit << (45 - 3 * step)
    return f"{number:x}"


def _quadkey(latitude: float, longitude: float, zoom: int) -> str:
    across = int((longitude + 180) / 360 * 2**zoom)
    down = int((1 - np.arcsinh(np.tan(np.radians(latitude))) / np.pi) / 2 * 2**zoom)
    pairs = zip(f"{across:0{zoom}b}", f"{down:0{zoom}b}", strict=True)
    return "".join(str(int(x) + 2 * int(y)) for x, y in pairs)


def _tile(latitude: float, longitude: float) -> str:
    key = _quadkey(latitude, longitude, 16)
    across, down = (int("".join(str(int(one) >> bit & 1) for one in key), 2) for bit in (0, 1))
    return f"https://tiles.example/16/{across}/{down}.png"


def _dms(value: float) -> str:
    minutes, seconds = divmod(value * 3600, 60)
    degrees, minutes = divmod(minutes, 60)
    return f"{degrees:.0f}°{minutes:.0f}'{seconds:.1f}\""


def _polyline(latitude: float, longitude: float) -> str:
    text = ""
    for value in (latitude, longitude):
        left = round(value * 1e5) << 1
        while left >= 32:
            text += chr((left & 31 | 32) + 63)
            left >>= 5
        text += chr(left + 63)
    return text


def _mercator_y(latitude: float) -> float:
    return EARTH_M * float(np.arcsinh(np.tan(np.radians(latitude))))


HIDDEN = {
    "geojson": lambda a, b: json.dumps(
        {"type": "Point", "coordinates": [round(b, 6), round(a, 6)]}
    ),
    "list in a text": lambda a, b: f"[{a:.5f}, {b:.5f}]",
    "pair": lambda a, b: f"({a:.4f};{b:.4f})",
    "wkt": lambda a, b: f"SRID=4326;POINT ({b:.6f} {a:.6f})",
    "wkb in hexadecimal": lambda a, b: struct.pack("<BIdd", 1, 1, b, a).hex().upper(),
    "wkb of the other order": lambda a, b: struct.pack(">BIdd", 0, 1, b, a).hex(),
    "wkb in base 64": lambda a, b: base64.b64encode(struct.pack("<BIdd", 1, 1, b, a)).decode(),
    "map address": lambda a, b: f"https://maps.example/@{a:.5f},{b:.5f},17z",
    "map address, escaped": lambda a, b: f"https://maps.example/?q={a:.5f}%2C{b:.5f}",
    "geo address": lambda a, b: f"geo:{a:.5f},{b:.5f};u=35",
    "ten-millionths": lambda a, b: round(a * 1e7),
    "millionths": lambda a, b: round(b * 1e6),
    "ten-millionths in json": lambda a, b: json.dumps({"latitudeE7": round(a * 1e7)}),
    "radians": lambda a, b: f"{np.radians(a):.9f}",
    "web mercator x": lambda a, b: round(np.radians(b) * EARTH_M, 1),
    "web mercator y": lambda a, b: round(_mercator_y(a), 1),
    "plane metres": lambda a, b: round((a - 48) * 111_200 + (b - 2) * 900, 2),
    "minus the latitude": lambda a, b: -a,
    "dms": lambda a, b: f"{_dms(a)}N {_dms(b)}E",
    "nmea": lambda a, b: f"{int(a) * 100 + a % 1 * 60:.4f}",
    "decimal comma": lambda a, b: f"{a:.6f}".replace(".", ","),
    "geohash": lambda a, b: _geohash(a, b, 8),
    "coarse geohash": lambda a, b: _geohash(a, b, 6).upper(),
    "plus code": codes.plus_code,
    "short plus code": lambda a, b: codes.plus_code(a, b)[4:] + " Paris",
    "quadkey": lambda a, b: _quadkey(a, b, 17),
    "tile": _tile,
    "polyline": _polyline,
    "s2 token": lambda a, b: f"{_s2(a, b, 16):016x}".rstrip("0"),
    "s2 number": lambda a, b: str(_s2(a, b, 18)),
    "h3": _h3,
    "h3 number": lambda a, b: str(int(_h3(a, b), 16)),
    "hexadecimal millionths": lambda a, b: hex(int(a * 1e6)),
    "hexadecimal, moved": lambda a, b: f"{int((a - 40) * 2e5):x}",
    "a float of four bytes": lambda a, b: struct.pack(">f", b).hex(),
    "base 36": lambda a, b: np.base_repr(int(a * 3e6) + 7, 36).lower(),
    "a number behind a prefix": lambda a, b: f"id{int((a - 48) * 31_415):05d}",
    "base 64 of base 64": lambda a, b: base64.b64encode(
        base64.b64encode(struct.pack("<dd", a, b))
    ).decode(),
    "base 32": lambda a, b: base64.b32encode(struct.pack("<dd", a, b)).decode(),
    "a text in base 32": lambda a, b: base64.b32encode(f"{a:.5f} {b:.5f}".encode()).decode(),
    "a hexadecimal text in base 64": lambda a, b: base64.b64encode(
        struct.pack(">dd", a, b).hex().encode()
    ).decode(),
}


def _refused(runs, tmp_path, table: pa.Table) -> None:
    """Refused as Parquet and, where the kind of column has a text, as CSV; passes when kept."""
    source = write_parquet(tmp_path / "in.parquet", table)
    with pytest.raises(DataError, match=r"reveals the place in other columns: 'a' \(") as refused:
        sanitize(runs / "laplace", source, tmp_path / "out.parquet")
    assert "48.8" not in str(refused.value) and os.listdir(tmp_path) == ["in.parquet"]
    policy = Policy(keep=("a",))
    record = sanitize(runs / "laplace", source, tmp_path / "out.parquet", policy=policy)
    assert record["columns_that_tell_the_place"] == ["a"]
    policy = Policy(drop=("a",))
    sanitize(runs / "laplace", source, tmp_path / "less.parquet", policy=policy)


@pytest.mark.parametrize("kind", HIDDEN)
def test_a_hidden_copy_of_the_place_is_refused(runs, tmp_path, kind):
    values = [HIDDEN[kind](a, b) for a, b in PLACES]
    _refused(runs, tmp_path, pa.table({"lat": LATITUDE, "lon": LONGITUDE, "a": values}))
    lines = [
        f'{a!r},{b!r},"{str(value).replace(chr(34), chr(34) * 2)}"\n'
        for (a, b), value in zip(PLACES, values, strict=True)
    ]
    (tmp_path / "in.csv").write_text("lat,lon,a\n" + "".join(lines))
    with pytest.raises(DataError, match=r"reveals the place in other columns: 'a' \("):
        sanitize(runs / "laplace", tmp_path / "in.csv", tmp_path / "out.csv")
    assert not (tmp_path / "out.csv").exists()


NESTED = {
    "wkb": pa.array([struct.pack("<BIdd", 1, 1, b, a) for a, b in PLACES]),
    "list": pa.array([[b, a] for a, b in PLACES]),
    "structure": pa.array([{"where": {"y": a, "x": b}} for a, b in PLACES]),
    "floats": pa.array(LATITUDE.astype(np.float32)),
    "map": pa.array([[("p", str(a))] for a, _ in PLACES], pa.map_(pa.string(), pa.string())),
    "coded": pa.array([_geohash(a, b, 7) for a, b in PLACES]).dictionary_encode(),
    "of the row before": pa.array(np.roll(LATITUDE, 1)),
    "behind zeros": pa.array(
        [[0.0] * (row * 7 % 20) + [a + 7, b - 3] for row, (a, b) in enumerate(PLACES)]
    ),
    "between zeros": pa.array(
        [
            [0.0] * (row * 7 % 20) + [3 * a, 0.0, 1 - b] + [0.0] * (row * 5 % 17)
            for row, (a, b) in enumerate(PLACES)
        ]
    ),
    "between values that are none": pa.array(
        [
            [np.nan] * (row * 7 % 20) + [3 * a] + [np.nan] * (18 + row % 5)
            for row, (a, _) in enumerate(PLACES)
        ]
    ),
    "none in two thirds of the rows": pa.array(
        [3 * a if row % 3 == 0 else np.nan for row, (a, _) in enumerate(PLACES)]
    ),
    "infinite in two thirds of the rows": pa.array(
        [3 * a if row % 3 == 0 else np.inf for row, (a, _) in enumerate(PLACES)]
    ),
    "a word for none in two thirds of the rows": pa.array(
        [f"{3 * a:.6f}" if row % 3 == 0 else "NULL" for row, (a, _) in enumerate(PLACES)]
    ),
    "in a third of the rows": pa.array(
        [_geohash(a, b, 7) if row % 3 == 0 else "unknown" for row, (a, b) in enumerate(PLACES)]
    ),
}


@pytest.mark.parametrize("kind", NESTED)
def test_a_hidden_copy_in_a_type_of_parquet_is_refused(runs, tmp_path, kind):
    _refused(runs, tmp_path, pa.table({"lat": LATITUDE, "lon": LONGITUDE, "a": NESTED[kind]}))


def test_a_copy_that_begins_in_a_later_block_is_refused(runs, tmp_path, monkeypatch):
    monkeypatch.setattr("sfumato.deploy.parquet_table.BLOCK_ROWS", 20)
    hidden = [_geohash(a, b, 8) if row > 30 else "" for row, (a, b) in enumerate(PLACES)]
    _refused(runs, tmp_path, pa.table({"lat": LATITUDE, "lon": LONGITUDE, "a": hidden}))


@pytest.mark.parametrize("filler", [-1, "unknown"])
def test_names_of_places_are_refused_also_where_some_are_not_known(filler):
    random = np.random.default_rng(5)
    names = np.arange(400) % 40
    first, second = 48.8 + names * 0.001, 2.3 + names * 0.001
    values = [filler if random.random() < 0.2 else f"venue {name * 7919 % 1009}" for name in names]
    looked = recognise.Looked({"venue": values}, first, second)
    found = recognise.telling([looked], degrees=True, cell_m=25.0)
    assert found == {"venue": "values that go with one place each"}
    random.shuffle(values)
    looked = recognise.Looked({"venue": values}, first, second)
    assert not recognise.telling([looked], degrees=True, cell_m=25.0)


INNOCENT = {
    "prices": RANDOM.uniform(0, 100, ROWS).round(2),
    "fine prices": RANDOM.uniform(0, 100, ROWS),
    "ids": RANDOM.integers(10**8, 10**10, ROWS),
    "row numbers": np.arange(ROWS),
    "names": [f"visit {row * 7919 % 1009}" for row in range(ROWS)],
    "home city": [["Paris", "Lyon", "Lille"][row % 3] for row in range(ROWS)],
    "another town": [
        f"{45.76 + row % 5 / 100:.4f}, {4.83 + row % 7 / 100:.4f}" for row in range(ROWS)
    ],
    "times": [f"2010-10-{10 + row % 20}T{row % 24:02}:55:27Z" for row in range(ROWS)],
    "seconds": 1_287_532_527 + RANDOM.integers(0, 10**6, ROWS),
    "stars": RANDOM.integers(0, 5, ROWS),
    "flags": RANDOM.random(ROWS) < 0.5,
    "hashes": [f"{number:032x}" for number in RANDOM.integers(2**60, 2**62, ROWS)],
    "tokens": [base64.b64encode(RANDOM.bytes(18)).decode() for _ in range(ROWS)],
    "hexadecimal ids": [f"{number:x}" for number in RANDOM.integers(2**20, 2**32, ROWS)],
    "short codes": [np.base_repr(number, 36) for number in RANDOM.integers(36**4, 36**6, ROWS)],
    "tokens in base 32": [base64.b32encode(RANDOM.bytes(15)).decode() for _ in range(ROWS)],
    "ids in order": [f"id{row:05d}" for row in range(ROWS)],
    "lists behind zeros": [
        [0.0] * (row % 20) + [RANDOM.uniform(40, 60), RANDOM.uniform(0, 9)] for row in range(ROWS)
    ],
    "versions": [f"1.{row % 9}.{row}" for row in range(ROWS)],
    "scores": RANDOM.random(ROWS),
    "words": [["gbsuv", "coffee", "dusk", "u0000"][row % 4] for row in range(ROWS)],
    "addresses of pages": [f"https://shop.example/{row * 31}/item?id={row}" for row in range(ROWS)],
    "a noisy latitude": LATITUDE + RANDOM.normal(0, 0.01, ROWS),
}


COARSER = {
    "rounded to 100 m": [f"{a:.3f}" for a, _ in PLACES],
    "cell of a grid": [f"cell {int(a * 2000)} x {int(b * 2000)}" for a, b in PLACES],
    "military grid": [
        f"31UDQ{48000 + (b - 2.34) * 73000:05.0f}{11000 + (a - 48.85) * 111200:05.0f}"
        for a, b in PLACES
    ],
    "steps from the row before": np.diff(LATITUDE, prepend=LATITUDE[0]).round(6),
    "steps to the row after, in metres": (np.diff(LATITUDE, append=LATITUDE[-1]) * 111_200).round(
        1
    ),
    "persian digits": [
        f"{a:.6f}".translate({48 + n: 0x6F0 + n for n in range(10)}) for a, _ in PLACES
    ],
    "wide digits in a text": [
        f"at {a:.5f} {b:.5f}".translate({48 + n: 0xFF10 + n for n in range(10)}) for a, b in PLACES
    ],
    "small digits": [
        f"{a:.6f}".translate({48 + n: 0x2080 + n for n in range(10)}) for a, _ in PLACES
    ],
}


def _woven(latitude: float, longitude: float) -> int:
    """Bits in turn, of parts of a small square: no geohash."""
    parts = [
        int((value - low) / 0.1 * 2**12) for value, low in ((longitude, 2.3), (latitude, 48.8))
    ]
    return sum(
        (part >> bit & 1) << 2 * bit + axis for bit in range(12) for axis, part in enumerate(parts)
    )


def _metres(latitude: float, longitude: float) -> tuple[float, float]:
    return (longitude - 2.347) * 73_200, (latitude - 48.857) * 111_200


MANY = 400
SPREAD = np.random.default_rng(4).normal((48.857, 2.347), (0.012, 0.018), (MANY, 2)).round(6)
OTHER = np.random.default_rng(5)
FURTHER = {  # of many places, none of them twice
    "cell of a grid, row by row": [
        int((b - 2.2) * 1000) + 400 * int((a - 48.7) * 1000) for a, b in SPREAD
    ],
    "woven bits": [_woven(*place) for place in SPREAD],
    "rank along a curve": np.argsort(np.argsort([_woven(*place) for place in SPREAD])),
    "a second fix nearby": (SPREAD[:, 0] + OTHER.normal(0, 4e-4, MANY)).round(6),
    "a logarithm": np.log(SPREAD[:, 0] - 48),
    "distance from a place": [round(np.hypot(*_metres(*place)) / 1000, 2) for place in SPREAD],
    "distance in a text": [f"{np.hypot(*_metres(*place)):.0f} m away" for place in SPREAD],
    "seconds of a minute": [round(a % 1 * 3600 % 60, 2) for a, _ in SPREAD],
    "last digits": [int(b * 1e5) % 1000 for _, b in SPREAD],
    "geohash in an address": [
        f"https://geohash.example/{_geohash(*at, 8)}?z=1" for at in SPREAD.tolist()
    ],
    "geohash in parts": [f"{(code := _geohash(*at, 9))[:3]}-{code[3:]}" for at in SPREAD.tolist()],
    "plus code in an address": [
        f"https://plus.example/{codes.plus_code(*at)}" for at in SPREAD.tolist()
    ],
    "plus code behind a town": [f"Paris, {codes.plus_code(*at)[4:]}" for at in SPREAD.tolist()],
    "packed and compressed": [
        base64.b64encode(zlib.compress(f"{a},{b}".encode())).decode() for a, b in SPREAD
    ],
    "a signed token": [
        f"eyJhIjoxfQ.{base64.urlsafe_b64encode(json.dumps([a, b]).encode()).decode()}.c2ln"
        for a, b in SPREAD
    ],
    "the number of a device": [
        str(UUID(bytes=struct.pack("<dd", *place))) for place in SPREAD.tolist()
    ],
}


@pytest.mark.parametrize("kind", FURTHER)
def test_a_function_of_places_that_do_not_repeat_is_refused(kind):
    columns = {"a": np.asarray(FURTHER[kind]).tolist(), "b": OTHER.normal(0, 1, MANY).tolist()}
    looked = recognise.Looked(columns, *SPREAD.T)
    assert set(recognise.telling([looked], degrees=True, cell_m=25.0)) == {"a"}


def test_columns_that_tell_the_place_only_together_are_refused_and_no_other():
    mask = OTHER.normal(0, 10, MANY)
    columns = {
        "a": (SPREAD[:, 0] + mask).tolist(),
        "b": [f"{value:.9f}" for value in mask],
        "c": OTHER.normal(0, 1, MANY).tolist(),
    }
    looked = recognise.Looked(columns, *SPREAD.T)
    how = "a coordinate, together with others"
    assert recognise.telling([looked], degrees=True, cell_m=25.0) == {"a": how, "b": how}
    alone = recognise.Looked({name: columns[name] for name in "ac"}, *SPREAD.T)
    assert not recognise.telling([alone], degrees=True, cell_m=25.0)


@pytest.mark.parametrize("shuffled", [False, True])
def test_what_counts_along_straight_ways_passes_in_any_order_of_the_rows(shuffled):
    """A simulated way: equal steps in equal times.  In another order the times say which rows
    follow each other."""
    random = np.random.default_rng(6)
    ways = random.normal((48.857, 2.347), 0.01, (2, 1, 2))
    ways = ways + random.normal(0, 1e-4, (2, 1, 2)) * np.arange(100)[:, None]
    first, second = ways.reshape(-1, 2).round(6).T
    if not shuffled:
        first, second = first[:100], second[:100]
    seconds = np.concatenate([np.arange(100) * 10, 5000 + np.arange(100) * 10])[: len(first)]
    order = random.permutation(len(first)) if shuffled else np.arange(len(first))
    columns = {
        "epoch": seconds + 1_600_000_000,
        "left": (seconds.max() - seconds) / 60,
        "battery": 100 - seconds // 60,
        "speed": random.gamma(2, 5, len(first)).round(1),
        "time": np.array([f"12:{n // 60 % 60:02}:{n % 60:02}" for n in seconds]),
    }
    looked = recognise.Looked(
        {name: values[order].tolist() for name, values in columns.items()},
        first[order],
        second[order],
        times=columns["epoch"][order].tolist(),
    )
    assert recognise.telling([looked], degrees=True, cell_m=25.0) == {}


@pytest.mark.parametrize("kind", COARSER)
def test_a_copy_that_is_coarse_stepwise_or_in_other_digits_is_refused(runs, tmp_path, kind):
    latitude, longitude = LATITUDE.round(5), LONGITUDE.round(5)
    _refused(runs, tmp_path, pa.table({"lat": latitude, "lon": longitude, "a": COARSER[kind]}))


@pytest.mark.parametrize("kind", INNOCENT)
def test_an_innocent_table_passes(runs, tmp_path, kind):
    table = pa.table({"lat": LATITUDE, "lon": LONGITUDE, "a": INNOCENT[kind]})
    source = write_parquet(tmp_path / "in.parquet", table)
    record = sanitize(runs / "laplace", source, tmp_path / "out.parquet")
    assert record["rows_out"] == ROWS and record["columns_that_tell_the_place"] == []


def test_codes_are_decoded_as_their_makers_say():
    """Values from the codes' own documents and from maps of Paris."""
    assert codes.plus_code(20.3700625, 2.7821875) == "7FG49QCJ+2V"
    paris = (48.8566, 2.3522)
    for decode, text in (
        ("the place as a geohash", "u09tvw0"),
        ("the place as a Maidenhead locator", "JN18eu"),
        ("the place as a quadkey", "12022001101"),
        ("the id of an S2 cell", "47e66e1c"),
        ("the id of an S2 cell", str(0x47E66E1C << 32)),
        ("the place as a map's tile", "12/2074/1409"),
    ):
        rows, boxes = codes.DECODERS[decode](["no code", text, ""])
        assert rows.tolist() == [1], text
        off = abs(boxes.latitude - paris[0]), abs(boxes.longitude - paris[1])
        assert off[0] < 0.05 and off[1] < 0.09, text
    box = codes.polyline("_p~iF~ps|U")
    assert box is not None and (box.latitude, box.longitude) == (38.5, -120.2)
    assert codes.is_h3("8928308280fffff") and codes.is_h3("617700169958293503")
    assert not codes.is_h3("8928308280ffff0") and not codes.is_h3("123456789012345678")


def _whole_numbers() -> np.ndarray:
    """Of every length, with and without a sign; with quadkeys, geohashes, cells of S2 and of H3
    among them."""
    random = np.random.default_rng(5)
    size = [int(random.integers(10**length)) for length in range(1, 19) for _ in range(40)]
    keys = [int("".join(map(str, random.integers(0, 4, length)))) for length in range(9, 19)]
    cells = [(number >> 1 << 1 | 1) << 40 for number in random.integers(2**22, size=40).tolist()]
    named = [int(_h3(*place), 16) for place in PLACES[:9]] + [0x8928308280FFFFF, 892830828044444]
    edges = [0, 9, 10, 2**52 - 1, 2**52, 10**16, 10**18, 2**63 - 1]
    found = [*size, *keys, *cells, *named, *edges]
    return np.array([*found, *(-one for one in found)], dtype=np.int64)


def test_whole_numbers_are_decoded_as_their_texts():
    values = _whole_numbers()
    texts, whole = [str(value) for value in values.tolist()], codes.Whole(values)
    for how, decode in codes.DECODERS.items():
        (rows, box), (others, other) = decode(texts), decode(whole)
        order = np.argsort(others)
        assert rows.tolist() == others[order].tolist(), how
        for one, two in zip(box, other, strict=True):
            one, two = (np.broadcast_to(part, len(rows)) for part in (one, two))
            assert np.allclose(one, two[order], rtol=0, atol=1e-12), how
    cells = codes.are_h3(whole)
    assert cells.tolist() == [codes.is_h3(text) for text in texts] and cells.sum() >= 10
    assert (whole.length == [len(text.lstrip("-")) for text in texts]).all()


@pytest.mark.parametrize("hidden", [None, "halves", "text", "geohash", "minus"])
def test_whole_numbers_tell_the_place_as_their_texts_do(hidden):
    """The two ways through, beside each other, with the numbers themselves set aside."""
    random = np.random.default_rng(6)
    first, second = 48.857 + random.uniform(-0.02, 0.02, (2, 400))
    values = random.integers(10**11, 10**12, 400)
    if hidden == "halves":
        values = np.round(first * 1e5).astype(int) * 10**7 + np.round(second * 1e5).astype(int)
    if hidden == "text":
        values[::3] = np.round(first[::3] * 1e7)
    if hidden in ("geohash", "minus"):
        values = np.array([*map(_geohash_52, first.tolist(), second.tolist())])
    if hidden == "minus":
        values = -values
    truths = recognise._Truths(first, second, 1e-4, True)
    rows, texts = np.arange(400), list(enumerate(map(str, values.tolist())))
    expected = recognise._of_numbers(rows, values.astype(object), truths) or recognise._of_codes(
        texts, 400, truths
    )
    assert recognise._of_whole(rows, values, truths) == expected
    assert (expected is None) == (hidden is None)


def _texts() -> list[str]:
    """Codes of all kinds, cut, joined and with other letters in some."""
    random = np.random.default_rng(7)
    letters = list("0123abcdefghxyzABCDEFRXZ?@[~_/,: -+.=\n\u212a\u00b2")
    made = ["".join(random.choice(letters, size)) for size in range(1, 26) for _ in range(60)]
    known = [
        "u09tvw0",
        "JN18eu",
        "JN18eu37ab",
        "12022001101",
        "47e66e1c",
        "12/2074/1409",
        "a 12-3 4",
    ]
    known += [
        str(0x47E66E1C << 32),
        "-5170012345678901234",
        "_p~iF~ps|U",
        "U09TVW0\u212a",
        "a\n11 2 3",
    ]
    known += [str(_geohash_52(*place)) for place in PLACES[:20]]
    known += [base64.b64encode(struct.pack("<dd", *place)).decode() for place in PLACES[:5]]
    known += [struct.pack(">dd", *place).hex() for place in PLACES[:5]] + ["0x" + "ab" * 8]
    known += ["\\x" + "0F" * 9, "\n482312", " 1,5e3 ", "2010-10-19T23:55:27Z", "1e5", "٤٨"]
    return [*made, *known, *(one[1:] for one in known), *(one + one for one in known)]


def test_texts_are_sorted_out_by_their_looks_and_none_is_lost():
    texts = _texts()
    looks = codes.Looks(texts)
    for how, decode in codes.DECODERS.items():
        (rows, box), (others, other) = decode(texts), looks.decoded(decode)
        assert rows.tolist() == others.tolist(), how
        assert all(np.array_equal(one, two) for one, two in zip(box, other, strict=True)), how
        assert len(rows), how
    for pattern, found in (
        (recognise._LIKE_NUMBERS, lambda text: recognise._as_number(text) is not None),
        (recognise._LIKE_BYTES, lambda text: any(True for _ in recognise._packed(text))),
        (recognise._LIKE_HALVES, recognise._halves),
    ):
        told = {at for at, text in enumerate(texts) if found(text)}
        assert told and told <= {*looks.like(pattern)}, pattern
        assert len(looks.like(pattern)) < len(texts), pattern


@pytest.mark.parametrize(
    "form", ["{:04d}-{:02d} {:05d}Z", "{:012d}", "a{:03d}", "no digit", "{:020d}"]
)
def test_numbers_of_texts_that_look_alike_are_read_at_once(form):
    values = np.random.default_rng(8).integers(0, 90, (50, 3)).tolist()
    texts = [form.format(*row) for row in values]
    alike = recognise._numbers_alike(codes.Looks(texts))
    each = [recognise._numbers(text) for text in texts]
    assert alike == (None if form == "{:020d}" else each)
    assert recognise._numbers_alike(codes.Looks([*texts, "7.5"])) is None


def _geohash_52(latitude: float, longitude: float) -> int:
    sides, number = [[-180.0, 180.0], [-90.0, 90.0]], 0
    for bit in range(52):
        side, value = sides[bit % 2], (longitude, latitude)[bit % 2]
        middle = sum(side) / 2
        number = number * 2 + int(value >= middle)
        side[value < middle] = middle
    return number


@pytest.mark.parametrize("seed", range(3))
def test_times_and_counters_on_a_nearly_straight_way_pass(runs, tmp_path, seed):
    random = np.random.default_rng(seed)
    bend = np.cumsum(random.normal(0, 0.01, ROWS))
    columns = {
        "lat": (48.857 + np.cumsum(1e-4 * np.cos(bend))).round(5),
        "lon": (2.347 + np.cumsum(1e-4 * np.sin(bend)) + random.normal(0, 2e-5, ROWS)).round(5),
        "battery": 100 - np.arange(ROWS) // 7,
        "order": [f"A{10_000_000 + row * 3 // 2}" for row in range(ROWS)],
    }
    source = write_parquet(tmp_path / "in.parquet", pa.table(columns))
    assert sanitize(runs / "laplace", source, tmp_path / "out.parquet")["rows_out"] == ROWS


@pytest.mark.parametrize("digits", [400, 308, 25])
def test_numbers_without_end_in_a_text_are_no_coordinates_and_no_fault(runs, tmp_path, digits):
    """They are infinite as floats: as whole degrees of a sexagesimal number that was a traceback."""
    rows = "".join(f"48.85{row}1,2.34{row}1,{'9' * digits} 5 7\n" for row in range(9))
    (tmp_path / "in.csv").write_text("lat,lon,note\n" + rows)
    record = sanitize(runs / "laplace", tmp_path / "in.csv", tmp_path / "out.csv")
    assert record["rows_out"] == 9


@pytest.mark.parametrize("huge", ["1e9999999", "1e9999999999999999999", "1e-9999999999999999999"])
def test_numbers_beyond_all_bounds_are_no_coordinates_and_no_fault(runs, tmp_path, huge):
    rows = "".join(f"48.85{row}1,2.34{row}1,{huge if row == 5 else row}\n" for row in range(9))
    (tmp_path / "in.csv").write_text("lat,lon,note\n" + rows)
    record = sanitize(runs / "laplace", tmp_path / "in.csv", tmp_path / "out.csv")
    assert record["rows_out"] == 9


def test_lines_are_found_as_by_least_squares_one_column_at_a_time():
    random = np.random.default_rng(11)
    first, second = random.normal(48, 0.1, 300), random.normal(2, 0.1, 300)
    level = np.full(300, 48.0)  # an axis that says nothing
    line = 3e6 * first - 1e6 * second + 1e9
    columns = {
        "exact": line,
        "rounded": np.round(line / 4e4),
        "mostly": np.where(random.random(300) < 0.2, 0.0, line),
        "one huge": np.where(np.arange(300) == 7, 1e35, line),
        "noise": random.normal(0, 1, 300),
        "few": np.arange(300) % 3.0,
    }
    found = recognise._linear(
        np.arange(300), np.stack(list(columns.values())), (first, second), [None] * len(columns)
    )
    assert dict(zip(columns, found[:, 0].tolist(), strict=True)) == {
        "exact": True,
        "rounded": True,
        "mostly": True,
        "one huge": True,
        "noise": False,
        "few": False,
    }
    alone = 2.0 * second[None] + 7
    assert recognise._linear(np.arange(300), alone, (level, second), [None]).all()


def _looked(random, values):
    """Rows at 60 places about Paris with a column of whole numbers that `values` makes of them."""
    places = random.normal((48.857, 2.347), 0.01, (60, 2))
    latitude, longitude = places[random.integers(0, 60, 400)].T
    column = np.asarray(values(latitude, longitude)).astype(np.int64).tolist()
    around = tuple(np.roll(axis, -step) for step in (-1, 1) for axis in (latitude, longitude))
    return recognise.Looked({"id": column}, latitude, longitude, around)


WHOLE = {
    "a copy": lambda first, second: np.round(first * 1e6),
    "a line": lambda first, second: first * 3e6 - second * 1e6,
    "halves": lambda first, second: np.floor((first - 48) * 1e4) * 10**5 + np.floor(second * 1e4),
    "steps": lambda first, second: np.diff(first, prepend=first[0]) * 1e7,
    "last digits": lambda first, second: (
        np.arange(400) * 97 % 1000 * 10**6 + np.round((first - 48.8) * 3e6)
    ),
    "a name": lambda first, second: (
        np.round(first * 1e7) * 7919 % 1009 * 1000 + np.round(second * 1e7) * 104729 % 997
    ),
}


@pytest.mark.parametrize("kind", WHOLE)
def test_a_column_that_tells_in_one_of_several_blocks_is_found_as_in_that_block_alone(kind):
    random = np.random.default_rng(13)

    def noise(first, second):
        return random.integers(0, 10**9, len(first))

    telling = _looked(random, WHOLE[kind])
    blocks = [_looked(random, noise) for _ in range(7)]
    alone = recognise.telling([telling], degrees=True, cell_m=25.0)
    assert alone["id"]
    together = [*blocks[:4], telling, *blocks[4:]]
    assert recognise.telling(together, degrees=True, cell_m=25.0) == alone
    assert not recognise.telling(blocks, degrees=True, cell_m=25.0)
    fewer = recognise.Looked(  # a block with fewer rows is looked at by itself
        {"id": telling.columns["id"][:300]}, telling.first[:300], telling.second[:300]
    )
    assert recognise.telling([*blocks, fewer], degrees=True, cell_m=25.0) or kind == "steps"

"""Codes for places that can be taken apart without a library: each gives the box that it names.

Those that whole numbers fit are taken apart for all texts at once: a column of numbers has many.
"""

import re
import unicodedata
from collections.abc import Callable
from functools import cached_property
from math import floor
from typing import Any, NamedTuple

import numpy as np

EARTH_M = 6378137.0  # the sphere of Web Mercator
_SLACK = 1.01  # of half a box: a place on its edge belongs to either


class Box(NamedTuple):
    """The middle of a box of the Earth and its half sides, in degrees; or arrays of these."""

    latitude: Any
    longitude: Any
    half_height: Any
    half_width: Any

    def holds(self, latitude: Any, longitude: Any) -> Any:
        """Whether a place lies in it."""
        east = (longitude - self.longitude + 180) % 360 - 180
        return (abs(latitude - self.latitude) <= self.half_height * _SLACK + 1e-9) & (
            abs(east) <= self.half_width * _SLACK + 1e-9
        )


Boxes = tuple[np.ndarray, Box]  # which texts are such codes, and their boxes


def _each(
    decode: Callable[[str], Box | None], *, digits: bool = False
) -> Callable[["list[str] | Whole"], Boxes]:
    """A code that is taken apart text by text; `digits` says that it may have digits alone."""

    def boxes(texts: "list[str] | Whole") -> Boxes:
        if isinstance(texts, Whole):
            texts = []
        whole = "".join(texts)
        if not digits and whole.isascii() and whole.isdigit():
            texts = []
        hits = [(at, box) for at, text in enumerate(texts) if (box := decode(text)) is not None]
        numbers = np.array([box for _, box in hits], dtype=float).reshape(-1, 4)
        return np.array([at for at, _ in hits], dtype=int), Box(*numbers.T)

    return boxes


def _parsed(
    texts: list[str], pattern: re.Pattern[str], number: Callable[[str], int]
) -> tuple[np.ndarray, np.ndarray]:
    """Which texts fit a pattern, and the numbers that they stand for, of 64 bits."""
    hits = [(at, number(text)) for at, text in enumerate(texts) if pattern.fullmatch(text)]
    return (
        np.array([at for at, _ in hits], dtype=int),
        np.array([value for _, value in hits], dtype=np.uint64),
    )


class Whole:
    """Whole numbers of 63 bits and a sign, as the texts that they are written as."""

    def __init__(self, values: np.ndarray) -> None:
        self.values, self.size = values, np.abs(values)
        self.length = np.searchsorted(_TENS, self.size, "right") + (self.size == 0)

    @cached_property
    def digits(self) -> np.ndarray:
        """Shape (19, n), from the last one on."""
        return np.stack([self.size // ten % 10 for ten in _TENS])

    def read(self, least: int, most: int, base: int) -> tuple[np.ndarray, np.ndarray]:
        """Which of them have n digits and no sign, and what these are in another base."""
        rows = np.flatnonzero((self.values >= 0) & (self.length >= least) & (self.length <= most))
        if base == 10:
            return rows, self.size[rows].astype(np.uint64)
        number = np.zeros(len(rows), dtype=np.uint64)
        for digit in self.digits[most - 1 :: -1, rows] if len(rows) else ():
            number = number * np.uint64(base) + digit.astype(np.uint64)
        return rows, number


_TENS = 10 ** np.arange(19)


def _even_bits(number: np.ndarray) -> np.ndarray:
    """The number that every second bit makes, from the last one on."""
    number = number & np.uint64(0x5555555555555555)
    for shift in (1, 2, 4, 8, 16):
        mask = np.uint64((2**64 - 1) // (2 ** (2 * shift) + 1))
        number = (number | number >> np.uint64(shift)) & mask
    return number


def _unwoven(number: np.ndarray, bits: Any, pole: float) -> Box:
    """Longitude and latitude whose bits alternate, longitude first."""
    odd = np.asarray(bits) % 2 == 1
    evens, odds = _even_bits(number), _even_bits(number >> np.uint64(1))
    half_width, half_height = 180.0 / 2.0 ** ((bits + 1) // 2), pole / 2.0 ** (bits // 2)
    return Box(
        (2 * np.where(odd, odds, evens).astype(float) + 1) * half_height - pole,
        (2 * np.where(odd, evens, odds).astype(float) + 1) * half_width - 180,
        half_height,
        half_width,
    )


_GEOHASH = re.compile(r"[0-9b-hjkmnp-z]{5,12}")
_GEOHASH_DIGITS = str.maketrans(
    "0123456789bcdefghjkmnpqrstuvwxyz", "0123456789abcdefghijklmnopqrstuv"
)


def geohash(texts: list[str] | Whole) -> Boxes:
    """Geohashes of at least five letters (5 km)."""
    if isinstance(texts, Whole):
        rows, number = texts.read(5, 12, 32)
        return rows, _unwoven(number, 5 * texts.length[rows], 90.0)
    texts = [text.lower() for text in texts]
    rows, number = _parsed(  # Python has letters of its own for the digits of base 32
        texts, _GEOHASH, lambda text: int(text.translate(_GEOHASH_DIGITS), 32)
    )
    return rows, _unwoven(number, 5 * np.array([len(texts[row]) for row in rows], dtype=int), 90.0)


_LOCATOR = re.compile(r"[A-Ra-r]{2}[0-9]{2}[A-Xa-x]{2}(?:[0-9]{2}(?:[A-Xa-x]{2})?)?")


def maidenhead(text: str) -> Box | None:
    """A Maidenhead locator of at least six letters (5 km)."""
    if not _LOCATOR.fullmatch(text):
        return None
    place = [-180.0, -90.0]
    size = [360.0, 180.0]
    for number, letter in enumerate(text.upper()):
        parts = (18, 10, 24, 10, 24)[number // 2]
        size[number % 2] /= parts
        digit = int(letter) if letter.isdigit() else ord(letter) - ord("A")
        place[number % 2] += digit * size[number % 2]
    return Box(place[1] + size[1] / 2, place[0] + size[0] / 2, size[1] / 2, size[0] / 2)


def _tile(zoom: Any, across: Any, down: Any) -> Box:
    def latitude(row: Any) -> Any:
        return np.degrees(np.arctan(np.sinh(np.pi * (1 - 2 * row / 2.0**zoom))))

    north, south = latitude(down), latitude(down + 1)
    width = 360 / 2.0**zoom
    return Box((north + south) / 2, (across + 0.5) * width - 180, (north - south) / 2, width / 2)


_QUADKEY = re.compile(r"[0-3]{11,23}")
_TILE = re.compile(r"(?<![0-9])([0-9]{1,2})[/_,: -]([0-9]{1,7})[/_,: -]([0-9]{1,7})(?![0-9])")


def quadkey(texts: list[str] | Whole) -> Boxes:
    """Quadkeys of a map's tiles, of at least zoom 11 (20 km)."""
    if not isinstance(texts, Whole):
        return _each(_quadkey, digits=True)(texts)
    rows, _ = texts.read(11, 23, 10)
    rows = rows[(texts.digits[:, rows] <= 3).all(axis=0)]
    bits = 2 ** np.arange(len(_TENS))
    digits = texts.digits[:, rows]
    return rows, _tile(texts.length[rows], bits @ (digits & 1), bits @ (digits >> 1))


def _quadkey(text: str) -> Box | None:
    if not _QUADKEY.fullmatch(text):
        return None
    across = int("".join(str(int(digit) & 1) for digit in text), 2)
    down = int("".join(str(int(digit) >> 1) for digit in text), 2)
    return _tile(len(text), across, down)


def tile(text: str) -> Box | None:
    """A map's tile as zoom/x/y, of at least zoom 11."""
    match = _TILE.search(text[:300])
    if not match or not 11 <= (zoom := int(match[1])) <= 23:
        return None
    across, down = int(match[2]), int(match[3])
    if across >= 2**zoom or down >= 2**zoom:
        return None
    return _tile(zoom, across, down)


_S2_POSITION = np.array([[0, 1, 3, 2], [0, 2, 3, 1], [3, 2, 0, 1], [3, 1, 0, 2]])
_S2_TURN = np.array([1, 0, 0, 3])
_S2_FACES: tuple[Callable[[np.ndarray, np.ndarray], tuple[Any, Any, Any]], ...] = (
    lambda u, v: (1, u, v),
    lambda u, v: (-u, 1, v),
    lambda u, v: (-u, -v, 1),
    lambda u, v: (-1, -v, -u),
    lambda u, v: (v, -1, -u),
    lambda u, v: (v, u, -1),
)
_S2_NUMBER = re.compile(r"-?[0-9]{17,20}")
_S2 = re.compile(rf"{_S2_NUMBER.pattern}|[0-9a-fA-F]{{5,16}}")


def s2(texts: list[str] | Whole) -> Boxes:
    """S2 cells of at least level 8 (40 km), as tokens or whole numbers."""
    if isinstance(texts, Whole):
        rows, number = texts.read(5, 16, 16)
        number <<= (4 * (16 - texts.length[rows])).astype(np.uint64)
        long = np.flatnonzero(texts.length >= 17)
        rows = np.concatenate([rows, long])
        number = np.concatenate([number, texts.values[long].astype(np.uint64)])
    else:
        rows, number = _parsed(texts, _S2, _s2_number)
    face = (number >> np.uint64(61)).astype(int)
    lowest = np.maximum(number & ~number + np.uint64(1), np.uint64(1))  # the last bit that is set
    last = np.round(np.log2(lowest)).astype(int)
    level = 30 - last // 2
    some = (number != 0) & (face <= 5) & (last % 2 == 0) & (level >= 8)
    rows, number, face, level = rows[some], number[some], face[some], level[some]
    i, j = np.zeros((2, len(rows)), dtype=int)
    turn = face & 1
    for step in range(level.max(initial=0)):
        bits = (number >> np.uint64(59 - 2 * step) & np.uint64(3)).astype(int)
        ij, deeper = _S2_POSITION[turn, bits], step < level
        i, j = np.where(deeper, i << 1 | ij >> 1, i), np.where(deeper, j << 1 | ij & 1, j)
        turn = turn ^ _S2_TURN[bits]
    size = 2.0**level
    u, v = (_s2_stretched((part + 0.5) / size) for part in (i, j))
    x, y, z = np.empty((3, len(rows)))
    for number_of, place in enumerate(_S2_FACES):
        mine = face == number_of
        x[mine], y[mine], z[mine] = place(u[mine], v[mine])
    flat = np.hypot(x, y)
    half = 90 / size  # a cell's side is at most some 1.6 of a quarter circle's part
    widened = half / np.maximum(0.05, flat / np.hypot(flat, z))
    return rows, Box(np.degrees(np.arctan2(z, flat)), np.degrees(np.arctan2(y, x)), half, widened)


def _s2_number(text: str) -> int:
    if len(text) > 16:  # no token is as long
        return int(text) % 2**64
    return int(text, 16) << 4 * (16 - len(text))


def _s2_stretched(part: np.ndarray) -> np.ndarray:
    return np.where(part >= 0.5, (4 * part * part - 1) / 3, (1 - 4 * (1 - part) ** 2) / 3)


_POLYLINE = re.compile(r"[?-~]{6,2000}")


def polyline(text: str) -> Box | None:
    """The first point of a Google polyline of five decimals."""
    if not _POLYLINE.fullmatch(text):
        return None
    numbers, value, shift = [], 0, 0
    for letter in text:
        part = ord(letter) - 63
        value |= (part & 31) << shift
        shift += 5
        if part < 32:
            numbers.append((~(value >> 1) if value & 1 else value >> 1) / 1e5)
            value = shift = 0
        if len(numbers) == 2:
            return Box(numbers[0], numbers[1], 1e-4, 1e-4)
    return None


_WHOLE = re.compile(r"[0-9]{10,16}")
_MERCATOR_POLE = 85.05112878  # where Web Mercator ends, and with it the numbers of Redis


def whole_geohash(texts: list[str] | Whole, pole: float = 90.0) -> Boxes:
    """Geohashes as whole numbers of 52 bits."""
    if isinstance(texts, Whole):
        rows, number = texts.read(10, 16, 10)
    else:
        rows, number = _parsed(texts, _WHOLE, int)
    some = number >> np.uint64(52) == 0
    latitude, longitude, half_height, half_width = _unwoven(number[some], 52, pole)
    return rows[some], Box(latitude, longitude, half_height + 1e-6, half_width + 1e-6)


def redis_geohash(texts: list[str] | Whole) -> Boxes:
    """The same as Redis has them: latitudes end where Web Mercator does."""
    return whole_geohash(texts, _MERCATOR_POLE)


DECODERS: dict[str, Callable[[list[str] | Whole], Boxes]] = {
    "the place as a geohash": geohash,
    "the place as a geohash in a whole number": whole_geohash,
    "the place as a geohash of Redis": redis_geohash,
    "the place as a Maidenhead locator": _each(maidenhead),
    "the place as a quadkey": quadkey,
    "the place as a map's tile": _each(tile),
    "the id of an S2 cell": s2,
    "the place as a polyline": _each(polyline),
}


_POINTS = str.maketrans("\u066b\uff0e\uff0c", "..,")  # Arabic and full-width


def plain_digits(text: str) -> str:
    """A text with the digits of all scripts, raised and lowered ones too, as 0 to 9, and their
    decimal points and commas as ours."""
    if text.isascii():
        return text
    digits = (str(unicodedata.digit(letter, letter)) for letter in text)
    return "".join(digits).translate(_POINTS)


# What a text looks like: digits as 0, letters of hexadecimal numbers as a, other letters as z.
_LOOKS = str.maketrans(
    "0123456789abcdefABCDEFghijklmnopqrstuvwxyzGHIJKLMNOPQRSTUVWXYZ",
    "0" * 10 + "a" * 12 + "z" * 40,
)
_LIKE = {
    geohash: re.compile(r"[0az]{5,12}"),
    whole_geohash: re.compile(r"0{10,16}"),
    redis_geohash: re.compile(r"0{10,16}"),
    quadkey: re.compile(r"0{11,23}"),
    s2: re.compile(r"-?0{17,20}|[0a]{5,16}"),
    DECODERS["the place as a Maidenhead locator"]: re.compile(
        r"[az]{2}00[az]{2}(?:00(?:[az]{2})?)?"
    ),
    DECODERS["the place as a map's tile"]: re.compile(
        r".*(?<!0)0{1,2}[/_,: -]0{1,7}[/_,: -]0{1,7}(?!0).*", re.DOTALL
    ),
    DECODERS["the place as a polyline"]: re.compile(r"[az?@\[\\\]^_`{|}~]{6,}"),
}


class Looks:
    """Texts by what they look like: a column has few kinds of them, and of a kind that cannot be
    some code none is taken apart."""

    def __init__(self, texts: list[str]) -> None:
        self.texts, self.looks = texts, [text.translate(_LOOKS) for text in texts]
        self.kinds = {*self.looks}

    def like(self, pattern: re.Pattern[str]) -> list[int]:
        """Which texts look like a pattern; any may that has letters beyond ASCII."""
        kinds = {kind for kind in self.kinds if not kind.isascii() or pattern.fullmatch(kind)}
        if len(kinds) == len(self.kinds):
            return list(range(len(self.texts)))
        return [at for at, kind in enumerate(self.looks) if kind in kinds] if kinds else []

    def decoded(self, decode: Callable[[list[str] | Whole], Boxes]) -> Boxes:
        """What a decoder makes of them."""
        some = self.like(_LIKE[decode])
        rows, box = decode([self.texts[at] for at in some])
        return np.array(some, dtype=int)[rows], box


_PLUS = re.compile(
    r"([23456789CFGHJMPQRVWX]{4}|[23456789CFGHJMPQRVWX]{8})\+([23456789CFGHJMPQRVWX]{2,7})"
)
_PLUS_LETTERS = "23456789CFGHJMPQRVWX"


def is_plus_code(text: str, latitude: float, longitude: float) -> bool:
    """Whether a text begins with a plus code (Open Location Code), whole or short, of a place."""
    match = _PLUS.match(text.upper()) if "+" in text else None
    if not match:
        return False
    code = plus_code(latitude, longitude)
    start, end = match.groups()
    return code[:8].endswith(start) and code[9:11] == end[:2]


def plus_code(latitude: float, longitude: float) -> str:
    """The plus code of a place, of ten digits (14 m)."""
    up = min(floor((latitude + 90) * 8000), 180 * 8000 - 1)
    across = floor((longitude + 180) * 8000) % (360 * 8000)
    letters = ""
    for _ in range(5):
        letters = _PLUS_LETTERS[up % 20] + _PLUS_LETTERS[across % 20] + letters
        up, across = up // 20, across // 20
    return letters[:8] + "+" + letters[8:]


_H3 = re.compile(r"8[0-9a-fA-F]{14}|[0-9]{18}")


def is_h3(text: str) -> bool:
    """Whether a text is the id of an H3 cell of at least resolution 4 (25 km); its bits fit hardly
    any other id."""
    text = text.strip()
    return bool(_H3.fullmatch(text)) and bool(
        _has_h3_bits(int(text, 16 if len(text) == 15 else 10))
    )


def are_h3(whole: Whole) -> np.ndarray:
    """The same of whole numbers."""
    mask = np.zeros(len(whole.values), dtype=bool)
    for rows, number in (whole.read(15, 15, 16), whole.read(18, 18, 10)):
        mask[rows] = _has_h3_bits(number.astype(np.int64))
    return mask


def _has_h3_bits(number: Any) -> Any:
    resolution = number >> 52 & 15
    fits = (number >> 59 == 1) & (number >> 56 & 7 == 0) & (resolution >= 4)
    fits &= (number >> 45 & 127) < 122
    for step in range(1, 16):
        fits &= (number >> (45 - 3 * step) & 7 == 7) == (step > resolution)
    return fits

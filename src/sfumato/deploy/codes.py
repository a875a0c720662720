"""Codes for places that can be taken apart without a library: each gives the box that it names."""

import re
from collections.abc import Callable
from math import atan, atan2, degrees, floor, hypot, pi, sinh
from typing import NamedTuple

EARTH_M = 6378137.0  # the sphere of Web Mercator
_SLACK = 1.01  # of half a box: a place on its edge belongs to either


class Box(NamedTuple):
    """The middle of a box of the Earth and its half sides, in degrees."""

    latitude: float
    longitude: float
    half_height: float
    half_width: float

    def holds(self, latitude: float, longitude: float) -> bool:
        """Whether a place lies in it."""
        east = (longitude - self.longitude + 180) % 360 - 180
        return (
            abs(latitude - self.latitude) <= self.half_height * _SLACK + 1e-9
            and abs(east) <= self.half_width * _SLACK + 1e-9
        )


_GEOHASH = re.compile(r"[0-9b-hjkmnp-z]{5,12}")
_GEOHASH_DIGITS = str.maketrans(
    "0123456789bcdefghjkmnpqrstuvwxyz", "0123456789abcdefghijklmnopqrstuv"
)


def geohash(text: str) -> Box | None:
    """A geohash of at least five letters (5 km)."""
    text = text.lower()
    if not _GEOHASH.fullmatch(text):
        return None
    number = int(text.translate(_GEOHASH_DIGITS), 32)  # Python's letters for the digits of base 32
    bits = f"{number:0{5 * len(text)}b}"
    across, up = bits[::2], bits[1::2]
    half_width, half_height = 180.0 / 2 ** len(across), 90.0 / 2 ** len(up)
    return Box(
        (2 * int(up, 2) + 1) * half_height - 90,
        (2 * int(across, 2) + 1) * half_width - 180,
        half_height,
        half_width,
    )


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


def _tile(zoom: int, across: int, down: int) -> Box:
    def latitude(row: float) -> float:
        return degrees(atan(sinh(pi * (1 - 2 * row / 2**zoom))))

    north, south = latitude(down), latitude(down + 1)
    width = 360 / 2**zoom
    return Box((north + south) / 2, (across + 0.5) * width - 180, (north - south) / 2, width / 2)


_QUADKEY = re.compile(r"[0-3]{11,23}")
_TILE = re.compile(r".*?(?<![0-9])([0-9]{1,2})[/_,: -]([0-9]{1,7})[/_,: -]([0-9]{1,7})(?![0-9]).*")


def quadkey(text: str) -> Box | None:
    """A quadkey of a map's tile, of at least zoom 11 (20 km)."""
    if not _QUADKEY.fullmatch(text):
        return None
    across = int("".join(str(int(digit) & 1) for digit in text), 2)
    down = int("".join(str(int(digit) >> 1) for digit in text), 2)
    return _tile(len(text), across, down)


def tile(text: str) -> Box | None:
    """A map's tile as zoom/x/y, of at least zoom 11."""
    found = _TILE.fullmatch(text[:300])
    if not found:
        return None
    zoom, across, down = (int(part) for part in found.groups())
    if not 11 <= zoom <= 23 or across >= 2**zoom or down >= 2**zoom:
        return None
    return _tile(zoom, across, down)


_S2_POSITION = ((0, 1, 3, 2), (0, 2, 3, 1), (3, 2, 0, 1), (3, 1, 0, 2))
_S2_TURN = (1, 0, 0, 3)
_S2_FACES: tuple[Callable[[float, float], tuple[float, float, float]], ...] = (
    lambda u, v: (1, u, v),
    lambda u, v: (-u, 1, v),
    lambda u, v: (-u, -v, 1),
    lambda u, v: (-1, -v, -u),
    lambda u, v: (v, -1, -u),
    lambda u, v: (v, u, -1),
)
_S2_TOKEN = re.compile(r"[0-9a-fA-F]{5,16}")
_S2_NUMBER = re.compile(r"-?[0-9]{17,20}")


def s2(text: str) -> Box | None:
    """An S2 cell of at least level 8 (40 km), as a token or a whole number."""
    if _S2_NUMBER.fullmatch(text):
        number = int(text) % 2**64
    elif _S2_TOKEN.fullmatch(text):
        number = int(text, 16) << 4 * (16 - len(text))
    else:
        return None
    face = number >> 61
    if number == 0 or face > 5:
        return None
    last = (number & -number).bit_length() - 1
    level = 30 - last // 2
    if last % 2 or level < 8:
        return None
    i = j = 0
    turn = face & 1
    for step in range(level):
        bits = number >> (59 - 2 * step) & 3
        ij = _S2_POSITION[turn][bits]
        i, j = i << 1 | ij >> 1, j << 1 | ij & 1
        turn ^= _S2_TURN[bits]
    u, v = (_s2_stretched((part + 0.5) / 2**level) for part in (i, j))
    x, y, z = _S2_FACES[face](u, v)
    latitude = degrees(atan2(z, hypot(x, y)))
    half = 90 / 2**level  # a cell's side is at most some 1.6 of a quarter circle's part
    widened = half / max(0.05, hypot(x, y) / hypot(x, y, z))
    return Box(latitude, degrees(atan2(y, x)), half, widened)


def _s2_stretched(part: float) -> float:
    return (4 * part * part - 1) / 3 if part >= 0.5 else (1 - 4 * (1 - part) ** 2) / 3


def polyline(text: str) -> Box | None:
    """The first point of a Google polyline of five decimals."""
    if not 6 <= len(text) <= 2_000 or any(not 63 <= ord(letter) <= 126 for letter in text):
        return None
    found, value, shift = [], 0, 0
    for letter in text:
        part = ord(letter) - 63
        value |= (part & 31) << shift
        shift += 5
        if part < 32:
            found.append((~(value >> 1) if value & 1 else value >> 1) / 1e5)
            value = shift = 0
        if len(found) == 2:
            return Box(found[0], found[1], 1e-4, 1e-4)
    return None


_WHOLE = re.compile(r"[0-9]{10,16}")
_MERCATOR_POLE = 85.05112878  # where Web Mercator ends, and with it the numbers of Redis


def _whole_geohash(text: str, pole: float) -> Box | None:
    if not _WHOLE.fullmatch(text) or int(text) >> 52:
        return None
    bits = f"{int(text):052b}"
    across, up = int(bits[::2], 2), int(bits[1::2], 2)
    half_width, half_height = 180.0 / 2**26, pole / 2**26
    return Box(
        (2 * up + 1) * half_height - pole,
        (2 * across + 1) * half_width - 180,
        half_height + 1e-6,
        half_width + 1e-6,
    )


def whole_geohash(text: str) -> Box | None:
    """A geohash as a whole number of 52 bits."""
    return _whole_geohash(text, 90.0)


def redis_geohash(text: str) -> Box | None:
    """The same as Redis has it: latitudes end where Web Mercator does."""
    return _whole_geohash(text, _MERCATOR_POLE)


DECODERS: dict[str, Callable[[str], Box | None]] = {
    "the place as a geohash": geohash,
    "the place as a geohash in a whole number": whole_geohash,
    "the place as a geohash of Redis": redis_geohash,
    "the place as a Maidenhead locator": maidenhead,
    "the place as a quadkey": quadkey,
    "the place as a map's tile": tile,
    "the id of an S2 cell": s2,
    "the place as a polyline": polyline,
}


_PLUS = re.compile(
    r"([23456789CFGHJMPQRVWX]{4}|[23456789CFGHJMPQRVWX]{8})\+([23456789CFGHJMPQRVWX]{2,7})"
)
_PLUS_LETTERS = "23456789CFGHJMPQRVWX"


def is_plus_code(text: str, latitude: float, longitude: float) -> bool:
    """Whether a text begins with a plus code (Open Location Code), whole or short, of a place."""
    found = _PLUS.match(text.upper())
    if not found:
        return False
    code = plus_code(latitude, longitude)
    start, end = found.groups()
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


def is_h3(text: str) -> bool:
    """Whether a text is the id of an H3 cell of at least resolution 4 (25 km); its bits fit hardly
    any other id."""
    text = text.strip().lower()
    if re.fullmatch(r"8[0-9a-f]{14}", text):
        number = int(text, 16)
    elif re.fullmatch(r"[0-9]{18}", text):
        number = int(text)
    else:
        return False
    resolution = number >> 52 & 15
    digits = [number >> (45 - 3 * step) & 7 for step in range(1, 16)]
    return (
        number >> 59 == 1
        and number >> 56 & 7 == 0
        and resolution >= 4
        and (number >> 45 & 127) < 122
        and all(digit != 7 for digit in digits[:resolution])
        and all(digit == 7 for digit in digits[resolution:])
    )

"""The icons of the browser extension: a place, and the smoke around it that a report is drawn from.

python -m tools.icons [FOLDER]
"""

import struct
import sys
import zlib
from pathlib import Path

import numpy as np

SIZES = (16, 32, 48, 128)
_BLUE = (0, 66, 157)
_SAMPLES = 4  # per pixel and axis
FOLDER = Path(__file__).resolve().parents[1] / "web" / "extension"


def icon(size: int) -> bytes:
    """A PNG of a disc that fades out to its edge, with a ring of paper around a full middle."""
    steps = (np.arange(size * _SAMPLES) + 0.5) / (size * _SAMPLES) * 2 - 1
    radius = np.hypot(steps[:, None], steps[None, :])
    middle, paper = radius < 0.36, radius < 0.5
    smoke = np.clip(1.1 * np.clip(1 - radius, 0, 1) ** 0.8, 0, 0.85)
    opacity = np.where(paper, 1.0, smoke)
    white = np.where(paper & ~middle, 1.0, 0.0)

    def pixels(values: np.ndarray) -> np.ndarray:
        return values.reshape(size, _SAMPLES, size, _SAMPLES).mean(axis=(1, 3))

    alpha = pixels(opacity)
    share = np.divide(pixels(white * opacity), alpha, out=np.zeros_like(alpha), where=alpha > 0)
    colours = [share * 255 + (1 - share) * value for value in _BLUE]
    rows = np.rint(np.stack([*colours, alpha * 255], axis=-1)).astype(np.uint8)
    lines = b"".join(b"\0" + row.tobytes() for row in rows)

    def chunk(name: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    head = struct.pack(">IIBBBBB", size, size, 8, 6, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(lines, 9)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    for size in SIZES:
        (target / f"icon-{size}.png").write_bytes(icon(size))

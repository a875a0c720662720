"""Where chance comes from: the operating system, unless a seed asks for a repeatable draw.

Every mechanism is a plain function of the truth and of a few numbers uniform on [0, 1).  This is
the only place that makes those numbers, so the same mechanism runs with secure chance, with a seed,
in a browser, or with numbers derived from a key.
"""

import os

import numpy as np

from sfumato.errors import SfumatoError


def uniforms(rows: int, columns: int, *, seed: int | None = None) -> np.ndarray:
    """Numbers uniform on [0, 1) with 53 random bits each, shape (rows, columns).

    Without a seed they come from the operating system's secure source; with one they repeat.

    >>> uniforms(2, 1, seed=7).shape
    (2, 1)
    """
    if seed is None:
        bits = np.frombuffer(os.urandom(8 * rows * columns), dtype=np.uint64)
        return (bits >> np.uint64(11)).reshape(rows, columns) * 2.0**-53
    return generator(seed).random((rows, columns))


def generator(seed: int) -> np.random.Generator:
    """A repeatable NumPy generator for a whole, non-negative seed."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not seed >= 0:
        raise SfumatoError(f"a seed is a whole number, 0 or more; got {seed!r}")
    return np.random.default_rng(int(seed))

"""What reading a CSV and a Parquet file share: a damaged file is one sentence."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sfumato.errors import DataError


@contextmanager
def readable(path: Path, kind: str | None = None) -> Iterator[None]:
    """Any failure of a damaged file as one sentence.  What the library says may quote values, so it
    is not passed on."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"there is no file {path.name}; expected a CSV or Parquet file") from None
    except DataError:
        raise
    except Exception as error:
        # a damaged file raises anything: zip, value, key, memory or Arrow's own errors
        words = "" if kind is None else f" as {kind}"
        raise DataError(
            f"{path.name} cannot be read{words} ({type(error).__name__}); make or copy it again"
        ) from None

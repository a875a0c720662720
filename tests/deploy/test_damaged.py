"""A damaged file is one sentence, which quotes nothing of what is in it."""

import zlib
from pathlib import Path

import pyarrow as pa
import pytest

from sfumato.deploy.damaged import readable
from sfumato.errors import DataError

PLACE = "48.8584,2.3482"
FILE = Path("somewhere/log.csv")


@pytest.mark.parametrize(
    "error",
    [
        pa.ArrowInvalid(f"CSV parse error: row {PLACE}"),
        zlib.error(f"Error -3 near {PLACE}"),
        UnicodeDecodeError("utf-8", PLACE.encode(), 0, 1, "invalid start byte"),
        KeyError(PLACE),
        MemoryError(PLACE),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_a_library_raises_names_the_file_and_the_kind_of_error_alone(
    error: Exception,
) -> None:
    with pytest.raises(DataError) as said, readable(FILE):
        raise error
    kind = type(error).__name__
    assert str(said.value) == f"log.csv cannot be read ({kind}); make or copy it again"
    # nor does a traceback show it: the cause is not kept
    assert said.value.__suppress_context__ and said.value.__cause__ is None


def test_the_kind_of_file_is_named_where_it_is_known() -> None:
    expected = r"^log.csv cannot be read as a Parquet file \(OSError\);"
    with pytest.raises(DataError, match=expected), readable(FILE, "a Parquet file"):
        raise OSError(PLACE)


def test_a_sentence_of_ours_passes_as_it_is() -> None:
    ours = DataError("log.csv has no column 'lat'", hint="look at its header")
    with pytest.raises(DataError) as said, readable(FILE):
        raise ours
    assert said.value is ours


def test_a_file_that_is_not_there_is_not_called_damaged(tmp_path: Path) -> None:
    missing = tmp_path / "none.csv"
    expected = "^there is no file none.csv; expected a CSV or Parquet"
    with pytest.raises(DataError, match=expected), readable(missing):
        missing.open("rb")


def test_a_stop_by_hand_is_no_damage() -> None:
    with pytest.raises(KeyboardInterrupt), readable(FILE):
        raise KeyboardInterrupt

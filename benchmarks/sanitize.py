"""Sanitizing against reading and writing the same file with no change, in processor time and in
memory: four million rows of Parquet in which no place repeats, and a real log as Parquet and as CSV,
short and long, and with users in quotes: the check-ins of San Francisco, repeated in new orders,
each with a time.

Each side runs in a process of its own, in turn, with one thread; a process reports its processor
seconds and its peak memory.

python -m benchmarks sanitize, or benchmarks.sanitize [ROWS] for other sizes
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

ROWS = 4_000_000
REPEATS = 3
REAL_REPEATS = 5
REAL_ROWS = {
    "real.parquet": 4_000_000,
    "long.parquet": 40_000_000,
    "real.csv": 1_000_000,
    "long.csv": 10_000_000,
    "quoted.csv": 1_000_000,
}
REAL = {  # codebooks for the real log: the default, and one with an eighth of its places
    "default": "the default codebook (1,024 places)",
    "real": "a codebook of 128 places",
}
AT_MOST = {"laplace": 3.0, "learned": 4.0}
REAL_AT_MOST = 2.0
CSV_ROWS_A_SECOND = 3 * 140_000  # three times what was measured before lines were cut by bytes
AT_MOST_BYTES = 10**9
AT_MOST_GROWTH = 1.1  # peak at all rows over peak at a tenth of them
_HOME = Path(__file__).resolve().parent.parent / ".bench" / "sanitize"
_GROUP = 1 << 20


def table(rows: int) -> Path:
    """Check-ins about the corners of four-corners: user, time, place, venue; made on first use."""
    import pyarrow as pa
    from pyarrow import parquet

    from sfumato.data.synthetic import four_corners

    path = _HOME / f"{rows}.parquet"
    if path.exists():
        return path
    _HOME.mkdir(parents=True, exist_ok=True)
    data = four_corners(seed=0).all
    assert data.plane is not None
    random = np.random.default_rng(1)
    beside = path.with_suffix(".part")
    writer = None
    for start in range(0, rows, _GROUP):
        count = min(_GROUP, rows - start)
        truth = data.truth[random.integers(0, len(data), count)] + random.normal(0, 5, (count, 2))
        latitude, longitude = data.plane.to_degrees(truth)
        times = (1_262_304_000 + start + np.arange(count)).astype("datetime64[s]")
        columns = {
            "user": random.integers(0, 200_000, count),
            "time": times,
            "latitude": latitude,
            "longitude": longitude,
        }
        part = pa.table(columns | {"venue": random.integers(0, 500_000, count).astype(np.int32)})
        writer = writer or parquet.ParquetWriter(beside, part.schema)
        writer.write_table(part)
    assert writer is not None
    writer.close()
    beside.rename(path)
    return path


def real_log(name: str) -> Path:
    """San Francisco's check-ins in order after order, a second apart; made on first use."""
    import pyarrow as pa
    from pyarrow import csv, parquet

    path, rows = _HOME / name, REAL_ROWS[name]
    if path.exists():
        return path
    _HOME.mkdir(parents=True, exist_ok=True)
    log = csv.read_csv(_san_francisco())
    random, step = np.random.default_rng(2), min(rows, ROWS)
    beside = path.with_suffix(".part")
    with ExitStack() as stack:
        writer: Any = None
        for start in range(0, rows, step):
            orders = [random.permutation(len(log)) for _ in range(-(-step // len(log)))]
            part = log.take(pa.array(np.concatenate(orders)[:step]))
            times = (1_262_304_000 + start + np.arange(step)).astype("datetime64[s]")
            place = log.column_names.index("timestamp")
            part = part.set_column(place, "timestamp", pa.array(times))
            if path.stem == "quoted":
                part = part.set_column(0, "user", part["user"].cast(pa.string()))
            kind = parquet.ParquetWriter if path.suffix == ".parquet" else csv.CSVWriter
            writer = writer or stack.enter_context(kind(beside, part.schema))
            writer.write_table(part)
    beside.rename(path)
    return path


def _san_francisco() -> Path:
    from paper.experiments import data_folder

    return data_folder() / "gowalla-sanfrancisco.csv.gz"


def runs() -> dict[str, Path]:
    """A run of planar Laplace, one of a codebook with 128 places, and one of each codebook for the
    real log."""
    import sfumato as sf

    corners = sf.Problem(sf.four_corners(seed=0).train, max_loss=173)
    city = sf.Problem(sf.read_checkins(_san_francisco()), max_loss=300)
    short = sf.Codebook(made_for="these", places=128, steps=60, distillation=0.0)
    found = {}
    for name, problem, solver in (
        ("laplace", corners, sf.Laplace()),
        ("learned", corners, _learned()),
        ("real", city, short),
        ("default", city, sf.Codebook()),
    ):
        found[name] = _HOME / name
        if not (found[name] / "run.json").exists():
            sf.solve(problem, solver, seed=0, proof="none").save(found[name])
    return found


def _learned() -> Any:
    from paper.runs.learned import settings

    return settings("resampled", 2)


def copy(source: Path, target: Path) -> None:
    """The limit: the same file read and written by blocks by Arrow, nothing changed."""
    from pyarrow import csv, parquet

    from sfumato.deploy.parquet_table import BLOCK_ROWS

    if source.suffix == ".csv":
        options = csv.ReadOptions(use_threads=False, block_size=1 << 22)
        with csv.open_csv(source, options) as lines, csv.CSVWriter(target, lines.schema) as writer:
            for batch in lines:
                writer.write_batch(batch)
        return
    found = parquet.ParquetFile(source, buffer_size=1 << 20, pre_buffer=False)
    with parquet.ParquetWriter(target, found.schema_arrow) as writer:
        for batch in found.iter_batches(batch_size=BLOCK_ROWS, use_threads=False):
            writer.write_batch(batch, row_group_size=_GROUP)


def _measured(what: str, source: Path, target: Path) -> dict[str, float]:
    """Do it in a process of its own."""
    words = [sys.executable, "-m", "benchmarks.sanitize", "--one", what, str(source), str(target)]
    environment = {
        **os.environ,
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "ARROW_IO_THREADS": "1",
    }
    done = subprocess.run(words, check=True, capture_output=True, text=True, env=environment)
    target.unlink()
    target.with_name(target.name + ".record.json").unlink(missing_ok=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _one(what: str, source: Path, target: Path) -> None:
    import pyarrow as pa

    from sfumato.deploy.one_file import Policy
    from sfumato.deploy.sanitize import sanitize  # imports are not part of the time
    from sfumato.mechanism.base import kinds

    kinds()  # imports every mechanism
    pa.set_cpu_count(1)
    before, clock = time.process_time(), time.perf_counter()
    if what == "copy":
        copy(source, target)
    else:
        drop = ("location_id",) if what in REAL else ()  # it names the place
        sanitize(_HOME / what, source, target, policy=Policy(keep=("user",), drop=drop))
    spent = {"cpu_seconds": time.process_time() - before, "seconds": time.perf_counter() - clock}
    print(json.dumps(spent | {"peak_bytes": _peak_bytes()}))


def _peak_bytes() -> int:
    """The most memory that this process held (getrusage would count its parent before the
    start)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 1024


def run(rows: int = ROWS) -> dict[str, Any]:
    """Medians of processor seconds in turn, ratios to the copy, and peaks at a tenth of the rows
    and at all of them."""
    whole, part = table(rows), table(rows // 10)
    made = runs()
    names = ["copy", *AT_MOST]
    assert made.keys() == {*AT_MOST, *REAL}
    seconds: dict[str, list[float]] = {name: [] for name in names}
    peaks: dict[str, list[float]] = {name: [] for name in names}
    with tempfile.TemporaryDirectory(dir=_HOME) as folder:
        for _ in range(REPEATS):
            for name in names:
                found = _measured(name, whole, Path(folder) / "out.parquet")
                seconds[name].append(found["cpu_seconds"])
                peaks[name].append(found["peak_bytes"])
        small = {
            name: _measured(name, part, Path(folder) / "out.parquet")["peak_bytes"]
            for name in names
        }
        real = {name: _real(real_log(name), Path(folder)) for name in REAL_ROWS}
    ratio = {name: median(seconds[name]) / median(seconds["copy"]) for name in AT_MOST}
    growth = {name: max(peaks[name]) / small[name] for name in AT_MOST}
    most = max(max(peaks[name]) for name in AT_MOST)
    return {
        "name": "sanitizing against copying",
        "command": "python -m benchmarks sanitize",
        "rows": rows,
        "repeats": REPEATS,
        "cpu_seconds": {name: median(seconds[name]) for name in names},
        "ratio": ratio,
        "at_most": AT_MOST,
        "peak_bytes": {name: max(peaks[name]) for name in names},
        "peak_bytes_at_a_tenth": small,
        "growth": growth,
        "real": real,
        "at_most_bytes": AT_MOST_BYTES,
        "at_most_growth": AT_MOST_GROWTH,
        "met": (
            all(ratio[name] <= AT_MOST[name] for name in AT_MOST)
            and most < AT_MOST_BYTES
            and max(growth.values()) <= AT_MOST_GROWTH
            and all(one["ratio"] <= REAL_AT_MOST for log in real.values() for one in log.values())
            and real["real.csv"]["default"]["rows_a_second"] >= CSV_ROWS_A_SECOND
        ),
    }


def _real(source: Path, folder: Path) -> dict[str, dict[str, float]]:
    """A real log, by codebook (a long or quoted one by the default alone): processor seconds of
    both sides in turn, their ratio, our rows per second."""
    codebooks = [name for name in REAL if source.stem == "real" or name == "default"]
    spent: dict[str, list[float]] = {name: [] for name in ("copy", *codebooks)}
    for _ in range(REPEATS if source.stem == "long" else REAL_REPEATS):
        for name, seconds in spent.items():
            seconds.append(_measured(name, source, folder / f"out{source.suffix}")["cpu_seconds"])
    theirs, count = median(spent["copy"]), REAL_ROWS[source.name]
    return {
        name: {
            "rows": count,
            "cpu_seconds": median(spent[name]),
            "copy_cpu_seconds": theirs,
            "ratio": median(spent[name]) / theirs,
            "rows_a_second": count / median(spent[name]),
        }
        for name in codebooks
    }


def rows(found: dict[str, Any]) -> list[tuple[str, str, str, dict[str, Any]]]:
    """Lines of RESULTS.md, where this was run."""
    if "sanitize" not in found:
        return []
    one = found["sanitize"]
    count = f"{one['rows'] / 1e6:g} million rows of Parquet"
    names = {"laplace": "planar Laplace", "learned": "the learned codebook"}
    kinds = {"quoted.csv": "CSV with users in quotes"}
    lines = [
        (
            f"sanitize {count} with {names[name]}: processor time, ratio to a copy",
            f"{one['ratio'][name]:.1f}",
            f"at most {most:g}",
            one,
        )
        for name, most in one["at_most"].items()
    ]
    lines += [
        (
            "rows per second on one core, " + names[name],
            f"{one['rows'] / one['cpu_seconds'][name]:,.0f}",
            "",
            one,
        )
        for name in names
    ]
    for name, log in one["real"].items():
        for codebook, part in log.items():
            kind = kinds.get(name, "CSV" if name.endswith(".csv") else "Parquet")
            checkins = f"{part['rows'] / 1e6:g} million check-ins of San Francisco as {kind}"
            wanted = name == "real.csv" and codebook == "default"
            lines += [
                (
                    f"sanitize {checkins} with {REAL[codebook]}: processor time, ratio to a copy",
                    f"{part['ratio']:.1f}",
                    f"at most {REAL_AT_MOST:g}",
                    one,
                ),
                (
                    "the same: rows per second on one core",
                    f"{part['rows_a_second']:,.0f}",
                    f"at least {CSV_ROWS_A_SECOND:,}" if wanted else "",
                    one,
                ),
            ]
    peak, growth = max(one["peak_bytes"][name] for name in names), max(one["growth"].values())
    lines += [
        (
            "peak memory of the process, MB",
            f"{peak / 1e6:.0f}",
            f"below {one['at_most_bytes'] / 1e6:.0f}",
            one,
        )
    ]
    return [
        *lines,
        (
            "ratio of this peak to that with a tenth of the rows",
            f"{growth:.2f}",
            f"at most {one['at_most_growth']}",
            one,
        ),
    ]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        _one(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
    else:
        print(json.dumps(run(int(sys.argv[1]) if len(sys.argv) > 1 else ROWS), indent=2))

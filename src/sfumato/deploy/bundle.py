"""A bundle for devices: mechanism.onnx, manifest.json, vectors.json; checked to the last byte when
it is loaded."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.deploy.graphs import graph_of
from sfumato.deploy.keeping import manifest_keeping
from sfumato.deploy.onnx_file import OPSET
from sfumato.deploy.release import NewPlaces, Release, accuracy, release, to_come, training_samples
from sfumato.deploy.web_files import copy_extension, web_files
from sfumato.errors import FileError, SfumatoError, arg
from sfumato.files import check_can_be_made, folder_beside, plain
from sfumato.measure.repeated import repeated_reports
from sfumato.mechanism.atlas import Atlas
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.channel import Channel
from sfumato.mechanism.simple import Coin
from sfumato.randomness import uniforms
from sfumato.study.atlas import NAME as ATLAS
from sfumato.study.atlas import tile_of
from sfumato.study.certify import certify_run
from sfumato.study.folder import Run, load_run
from sfumato.version import __version__

FORMAT = "sfumato bundle 1"
FILES = ("mechanism.onnx", "vectors.json")
_CERTIFICATE = "certificate.npz"
MOST_BYTES = 16 << 20
_HASH_FIELD = "manifest_sha256"
_BLANK = "0" * 64  # stands for the manifest's own hash while it is hashed
_VECTORS = 64
_LINKED = (1, 5, 10, 50)  # kept reports of one user from different places
_LINKED_SAMPLES, _LINKED_DRAWS = 2_000, 2_000
# metres and chance: a vector whose report changes within so little is left out
_NUDGES = (1e-6, 1e-5)
_PROVED = (
    *("objective", "unit", "leakage", "bound_grid", "bound_plane", "gap", "gap_plane"),
    *("reports_on_grid", "within_budgets"),
)
_FIGURES = ("loss", "bayes_error", "information_bits", "exposed", "worst_report", "outside")


def export(
    run: str | Path,
    target: str | Path,
    *,
    reveal_truths: bool = False,
    with_certificate: bool = False,
    new_places: NewPlaces = "average",
    page: bool = False,
    extension: bool = False,
    tile: int | None = None,
) -> dict[str, Any]:
    """Write a bundle of a run's mechanism; gives its manifest.

    A mechanism whose file would list places of the data (a channel, a remap) is refused unless
    `reveal_truths`. The run's certificate tells places of the data too, and stays out unless
    `with_certificate`. `new_places` says how a mechanism of given places answers others.  `page`
    puts the page and its modules beside the bundle; `extension` writes a browser extension with the
    bundle in its folder `bundle`.  Of an atlas one `tile` can be exported, for its square and the
    overlap about it; without it all of them are.
    Lengths in the manifest are in metres, leakage as in run.json.

    >>> import sfumato as sf
    >>> problem = sf.Problem(sf.four_corners(seed=0).train, max_loss=173)
    >>> sf.solve(problem, sf.Coin()).save("run")
    >>> export("run", "bundle")["accuracy_m"]
    3860.0
    """
    if page and extension:
        raise FileError(
            f"{arg('page')} and {arg('extension')} write different folders; give one of them"
        )
    loaded = load_run(run)
    if tile is not None:
        if not isinstance(loaded.mechanism, Atlas):
            raise FileError(
                f"{loaded.folder} is no atlas and has no tiles; leave {arg('tile')} out"
            )
        loaded = tile_of(loaded, tile)
    released = release(loaded, new_places=new_places)
    folder = Path(target)
    if released.mechanism.lists_truths and not reveal_truths:
        raise FileError(
            f"the mechanism of {loaded.folder} lists true locations of its data, and a bundle is"
            " given to others; expected one that lists none, such as a codebook",
            hint=f"{arg('reveal_truths')} exports it all the same",
        )
    if isinstance(released.mechanism, Channel) and not released.mechanism.answers_new:
        raise FileError(
            f"the mechanism of {loaded.folder} has no answer for places that it was not made for,"
            " and a device visits other places; solve it again",
            hint=f"{arg('new_places')} nearest answers them as the nearest known place, which hides"
            " less than planar Laplace noise",
        )
    if folder.exists():
        raise FileError(f"{folder} exists; name a new folder for the bundle")
    check_can_be_made(folder)
    graph, vectors = graph_of(released.mechanism), _vectors(released)
    stored = {"mechanism.onnx": graph, "vectors.json": _json(vectors)}
    if with_certificate:
        try:
            stored[_CERTIFICATE] = (loaded.folder / _CERTIFICATE).read_bytes()
        except OSError:
            raise FileError(
                f"{loaded.folder} has no certificate to put into the bundle; sfumato certify makes"
                " one"
            ) from None
    manifest = _manifest(loaded, released, reveal_truths=reveal_truths)
    manifest["holds_certificate"] = with_certificate
    if extension:
        manifest["many_reports"] = _many_reports(loaded, released)
    manifest["files"] = {
        name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
        for name, data in stored.items()
    }
    stored["manifest.json"] = _sealed(manifest)
    for name, data in stored.items():
        if len(data) > MOST_BYTES:
            raise FileError(
                f"{name} would be {len(data)} bytes and a device reads at most {MOST_BYTES};"
                " nothing was written: solve with larger cells or a smaller net, or export one"
                f" {arg('tile')} of an atlas"
            )
    inner = "bundle" if extension else "."
    with folder_beside(folder) as beside:
        (beside / inner).mkdir(exist_ok=True)
        for name, data in stored.items():
            (beside / inner / name).write_bytes(data)
        if extension:
            copy_extension(beside)
        if page:
            for source in web_files():
                shutil.copyfile(source, beside / source.name)
    return load_bundle(folder / inner)


def _json(document: Any) -> bytes:
    return (json.dumps(plain(document), indent=1, allow_nan=False) + "\n").encode()


def _sealed(manifest: dict[str, Any]) -> bytes:
    """The manifest with the hash of its own bytes, taken with zeros in the hash's place."""
    blank = _json({**manifest, _HASH_FIELD: _BLANK})
    return blank.replace(_BLANK.encode(), hashlib.sha256(blank).hexdigest().encode())


def load_bundle(folder: str | Path) -> dict[str, Any]:
    """Read a bundle's manifest, checking every byte of every file.

    >>> import sfumato as sf
    >>> problem = sf.Problem(sf.four_corners(seed=0).train, max_loss=173)
    >>> sf.solve(problem, sf.Coin()).save("run")
    >>> _ = sf.export("run", "bundle")
    >>> load_bundle("bundle")["kind"]
    'coin'
    """
    source = Path(folder)
    text = _read(source / "manifest.json")
    try:
        manifest = json.loads(text.decode("utf-8"))
        said = manifest[_HASH_FIELD]
        files = {
            name: (manifest["files"][name]["sha256"], manifest["files"][name]["bytes"])
            for name in (*FILES, *({_CERTIFICATE} & manifest["files"].keys()))
        }
        sound = (
            manifest["format"] == FORMAT
            and isinstance(said, str)
            and len(said) == 64
            and text.count(said.encode()) == 1
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        raise FileError(
            f"{source} holds no manifest of this version; expected '{FORMAT}': export it again"
        ) from None
    if (
        not sound
        or hashlib.sha256(text.replace(said.encode(), _BLANK.encode())).hexdigest() != said
    ):
        raise FileError(
            f"{source / 'manifest.json'} was changed after it was written; export the bundle again"
        )
    for name, (digest, size) in files.items():
        data = _read(source / name)
        if len(data) != size or hashlib.sha256(data).hexdigest() != digest:
            raise FileError(
                f"{source / name} is not the file that the manifest names; export the bundle again"
            )
    return manifest


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as source:
            data = source.read(MOST_BYTES + 1)
    except OSError as error:
        raise FileError(
            f"cannot read {path}: {error.strerror}; expected a bundle that sfumato export wrote"
        ) from None
    if len(data) > MOST_BYTES:
        raise FileError(
            f"{path} is larger than any bundle of ours; expected at most {MOST_BYTES} bytes"
        )
    return data


def _manifest(run: Run, released: Release, *, reveal_truths: bool) -> dict[str, Any]:
    plane = released.plane
    test = run.record.test
    return {
        "format": FORMAT,
        _HASH_FIELD: _BLANK,
        "made_by": f"sfumato {__version__}",
        "solver": run.record.solver,
        "kind": released.figures["kind"],
        "mechanism_hash": released.figures["mechanism_hash"],
        "onnx": {
            "opset": OPSET,
            "inputs": {"truth": ["n", 2], "chance": ["n", released.mechanism.draws]},
            "output": "report",
        },
        "draws": released.mechanism.draws,
        "units": {
            "plane": "metres",
            "written": "metres" if plane is None else "degrees",
            "chance": "uniform on [0, 1)",
        },
        "plane": (
            None if plane is None else {"latitude": plane.latitude, "longitude": plane.longitude}
        ),
        "region": {"centre": list(released.region.centre), "side_m": released.region.side_m},
        "grid": released.grid.as_dict(),
        "decimals": released.decimals,
        **accuracy(run, released),
        "budget": {
            "max_loss": run.max_loss,
            "max_distance": run.record.max_distance,
            "loss_function": run.record.loss_function,
        },
        "measured": {
            "training": {name: run.record.train.get(name) for name in _FIGURES},
            "test": None if test is None else {name: test.get(name) for name in _FIGURES},
        },
        "to_come": _expected(run),
        "keeping": manifest_keeping(run, released),
        "proved": _proved(run),
        "truth_share": released.mechanism.keep if isinstance(released.mechanism, Coin) else None,
        "holds_true_locations": reveal_truths and released.mechanism.lists_truths,
    }


def _expected(run: Run) -> dict[str, Any]:
    """What to expect of check-ins to come: the run's own estimate, else its figures on held-out
    check-ins, else that nobody has looked."""
    names = ("loss", "bayes_error", "information_bits", "exposed")
    expected, test = to_come(run), run.record.test
    if expected is not None:
        known = {name: expected[name] for name in (*names, "confidence", "checkins")}
        stated = {**known, "blind_error": _blind_error(run, expected.get("blind_error"))}
        cross = expected["how"] == "cross-fitted"
        return {**stated, "from": "folds of its training data" if cross else "held-out check-ins"}
    if test is not None:
        known = {name: test.get(name) for name in names}
        return {**known, "blind_error": _blind_error(run), "from": "held-out check-ins"}
    return {
        **dict.fromkeys(names),
        "why": "not measured; figures on training points may be better than what will come",
    }


def _blind_error(run: Run, stated: float | None = None) -> float | None:
    """How often a guess of the user that sees no report is wrong: as the run's record states, else
    by the users' shares of its training data; None where nobody can say."""
    if stated is not None or run.record.solver == ATLAS:  # an atlas's figures are for known tiles
        return stated
    samples = training_samples(run)
    return None if samples is None else 1 - float(samples.counts.max() / len(samples))


def _many_reports(run: Run, released: Release) -> dict[str, Any]:
    """What an adversary who sees several kept reports of one user makes of them: how often the best
    guess of the user is wrong."""
    samples = training_samples(run)
    if samples is None:
        return {"why": "not measured: the run's data could not be read again"}
    if len(samples) > _LINKED_SAMPLES:
        step = -(-len(samples) // _LINKED_SAMPLES)
        samples = samples.take(np.arange(0, len(samples), step))
    repeated = repeated_reports(
        released.mechanism,
        samples,
        _LINKED,
        grid=released.grid,
        region=released.region,
        draws=_LINKED_DRAWS,
    )
    places = repeated.middle_places or repeated.places
    return {
        "counts": _LINKED,
        "places": [figure.value for figure in places],
        "low": [figure.low for figure in places],
        "high": [figure.high for figure in places],
        "from": f"{len(samples)} training check-ins",
    }


def _proved(run: Run) -> dict[str, Any]:
    """The bound of the run's certificate and the gap to it, worked out again from the data."""
    if run.record.solver == ATLAS:
        why = "nothing is proved of an atlas"
    elif not (run.folder / _CERTIFICATE).exists():
        why = "the run has no certificate; sfumato certify makes one"
    else:
        try:
            proved = certify_run(run.folder, finish=False).as_dict()
            return {name: proved[name] for name in _PROVED}
        except SfumatoError:
            why = "the run's data could not be read again, so nothing was proved"
    return {"bound_grid": None, "gap": None, "why": why}


def _vectors(released: Release) -> dict[str, Any]:
    """Truths spread over the region (none from the data), numbers, and the reports that must come
    out."""
    mechanism, region = released.mechanism, released.region
    truth = (uniforms(8 * _VECTORS, 2, seed=1) - 0.5) * region.side_m * 0.98 + np.array(
        region.centre
    )
    first, second = truth[:, 0], truth[:, 1]
    if released.plane is not None:
        # written with 7 decimals, about a centimetre, so that all start from the same degrees
        first, second = (np.round(part, 7) for part in released.plane.to_degrees(truth))
        truth = released.plane.to_metres(first, second)
    chance = uniforms(len(truth), mechanism.draws, seed=2)
    reports = mechanism.report(truth, chance)
    steady = np.flatnonzero(_steady(mechanism, truth, chance, reports))[:_VECTORS]
    if len(steady) < _VECTORS // 2:
        raise FileError(
            "reports of this mechanism change with the last digits of its input; it cannot be"
            " exported to a device"
        )
    written = np.stack(released.written(reports), axis=1)
    names = ("x", "y") if released.plane is None else ("latitude", "longitude")
    return {
        "format": "sfumato vectors 1",
        "vectors": [
            {
                "input": dict(zip(names, (first[row], second[row]), strict=True)),
                "truth": truth[row],
                "chance": chance[row],
                "report": reports[row],
                "written": dict(zip(names, written[row], strict=True)),
            }
            for row in steady
        ],
    }


def _steady(
    mechanism: Mechanism, truth: np.ndarray, chance: np.ndarray, reports: np.ndarray
) -> np.ndarray:
    """Which reports stay when the input moves by less than rounding could."""
    metres, share = _NUDGES
    steady = np.ones(len(truth), dtype=bool)
    for side in (-1, 1):
        for moved, number in ((metres, 0.0), (0.0, share)):
            other = mechanism.report(
                truth + side * moved, np.clip(chance + side * number, 0.0, 1 - 2.0**-53)
            )
            steady &= np.abs(other - reports).max(axis=1) <= 10 * metres
    return steady

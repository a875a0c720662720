"""The vectors of a bundle give the same reports in Python, in ONNX Runtime, in Node and in
Chromium; and quickly."""

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import sfumato as sf
from sfumato.deploy.release import release
from sfumato.randomness import uniforms
from tests.browser import launched
from tests.web.conftest import KINDS, rule_of
from tests.web.device import in_node, served

_SAME_M = 1e-6
_FASTEST_MS = 1.0
_TIMES = """
const times = [];
for (let i = 0; i < 400; i++) {
  const start = performance.now();
  for (let j = 0; j < 5; j++) device.report(place);
  times.push((performance.now() - start) / 5);
}
const median = times.sort((a, b) => a - b)[200];
"""


def _vectors(folder: Path) -> dict[str, np.ndarray]:
    found = json.loads((folder / "vectors.json").read_text())["vectors"]
    return {
        name: np.array([vector[name] for vector in found]) for name in ("truth", "chance", "report")
    }


@pytest.mark.parametrize("kind", KINDS)
def test_python_gives_the_reports_of_the_vectors(runs, bundles, kind):
    vectors = _vectors(bundles / kind)
    assert len(vectors["truth"]) >= 32
    found = release(sf.load_run(runs / kind), new_places=rule_of(kind)).mechanism.report(
        vectors["truth"], vectors["chance"]
    )
    assert np.abs(found - vectors["report"]).max() <= _SAME_M


@pytest.mark.parametrize("kind", KINDS)
def test_onnx_runtime_with_standard_operators(runs, bundles, kind):
    file = (bundles / kind / "mechanism.onnx").read_bytes()
    model = onnx.load_from_string(file)
    onnx.checker.check_model(model, full_check=True)
    assert {item.domain for item in model.opset_import} == {""} and not any(
        "Random" in item.op_type for item in model.graph.node
    )
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    vectors = _vectors(bundles / kind)
    (found,) = session.run(["report"], {"truth": vectors["truth"], "chance": vectors["chance"]})
    assert np.abs(found - vectors["report"]).max() <= _SAME_M
    # And on many more points; only those within rounding of a border may differ.
    released = release(sf.load_run(runs / kind), new_places=rule_of(kind))
    truth = (uniforms(20_000, 2, seed=3) - 0.5) * released.region.side_m + np.array(
        released.region.centre
    )
    chance = uniforms(20_000, released.mechanism.draws, seed=4)
    (found,) = session.run(["report"], {"truth": truth, "chance": chance})
    assert (
        np.abs(found - released.mechanism.report(truth, chance)).max(axis=1) > _SAME_M
    ).sum() <= 1


@pytest.mark.parametrize("kind", KINDS)
def test_node_gives_the_reports_of_the_vectors_and_takes_less_than_a_millisecond(
    runs, bundles, kind
):
    script = """
    const device = await load(given.folder);
    const place = given.place;
    """
    script += (
        _TIMES
        + "console.log(JSON.stringify({ reports: device.reportsFor(given.truth, given.chance),"
        " median }));"
    )
    released = release(sf.load_run(runs / kind), new_places=rule_of(kind))
    truth = (uniforms(2000, 2, seed=3) - 0.5) * released.region.side_m + np.array(
        released.region.centre
    )
    chance = uniforms(2000, released.mechanism.draws, seed=4)
    vectors = _vectors(bundles / kind)
    given = {
        "folder": str(bundles / kind),
        "place": {"latitude": 48.857, "longitude": 2.347},
        "truth": [*vectors["truth"].tolist(), *truth.tolist()],
        "chance": [*vectors["chance"].tolist(), *chance.tolist()],
    }
    found = in_node(script, given)
    reports, count = np.array(found["reports"]), len(vectors["truth"])
    assert np.abs(reports[:count] - vectors["report"]).max() <= _SAME_M
    assert (
        np.abs(reports[count:] - released.mechanism.report(truth, chance)).max(axis=1) > _SAME_M
    ).sum() <= 1
    assert found["median"] < _FASTEST_MS


def test_degrees_and_metres_are_the_planes_own(bundles):
    """The module's plane against Python's, to a micrometre, over the region and its corners."""
    manifest = json.loads((bundles / "laplace" / "manifest.json").read_text())
    plane = sf.Plane(**manifest["plane"])
    points = (uniforms(500, 2, seed=5) - 0.5) * 20_000
    latitude, longitude = plane.to_degrees(points)
    script = f"""
    const {{ plane }} = await import(given.module);
    const made = plane({json.dumps(manifest["plane"])});
    const metres = given.places.map(([a, b]) => made.toMetres(a, b));
    console.log(JSON.stringify({{ metres, degrees: given.points.map((point) => made.toDegrees(point)) }}));
    """
    from tests.web.device import WEB

    given = {
        "module": (WEB / "plane.js").as_uri(),
        "places": np.stack([latitude, longitude], axis=1).tolist(),
        "points": points.tolist(),
    }
    found = in_node(script, given)
    assert np.abs(np.array(found["metres"]) - plane.to_metres(latitude, longitude)).max() < 1e-6
    assert (
        np.abs(np.array(found["degrees"]) - np.stack([latitude, longitude], axis=1)).max() < 1e-11
    )


def test_chromium_gives_the_reports_of_the_vectors_and_takes_less_than_a_millisecond(bundles):
    """All kinds in one browser: vectors, and the median time of a report."""
    with served(bundles) as address, launched() as browser:
        page = browser.new_page()
        for kind in KINDS:
            page.goto(f"{address}/{kind}/index.html")
            vectors = _vectors(bundles / kind)
            script = (
                "async (given) => { const { load } = await import('./sfumato.js'); const device ="
                " await load('.');"
            )
            script += "const place = { latitude: 48.857, longitude: 2.347 };" + _TIMES
            script += "return { reports: device.reportsFor(given.truth, given.chance), median }; }"
            found = page.evaluate(
                script, {name: vectors[name].tolist() for name in ("truth", "chance")}
            )
            assert np.abs(np.array(found["reports"]) - vectors["report"]).max() <= _SAME_M, kind
            assert found["median"] < _FASTEST_MS, kind

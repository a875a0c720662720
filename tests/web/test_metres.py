"""A run on data in plane metres: sanitized by x and y, exported with x and y, not served."""

import numpy as np
import pytest
from click.testing import CliRunner

import sfumato as sf
from sfumato import cli
from sfumato.deploy.bundle import export
from sfumato.deploy.one_file import Policy
from sfumato.deploy.sanitize import sanitize
from sfumato.errors import DataError
from tests.web.device import in_node


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("metres")
    truth = np.random.default_rng(0).normal(0, 200, (120, 2))
    samples = sf.Samples(secret=np.arange(120) % 3, truth=truth, secrets=("ann", "ben", "cid"))
    sf.solve(sf.Problem(samples, max_loss=150, cell_m=40), sf.Laplace()).save(folder / "run")
    return folder / "run"


def test_a_table_in_metres_is_sanitized_in_metres(run, tmp_path):
    (tmp_path / "in.csv").write_text(
        "who,x,y\n" + "".join(f"u{row},{row},{-row}\n" for row in range(200))
    )
    policy = Policy(keep=("who",))
    record = sanitize(run, tmp_path / "in.csv", tmp_path / "out.csv", policy=policy)
    rows = [line.split(",") for line in (tmp_path / "out.csv").read_text().splitlines()[1:]]
    assert [row[0] for row in rows] == [f"u{row}" for row in range(200)] and record["decimals"] == 1
    grid = sf.load_run(run).grid
    places = np.array([[float(row[1]), float(row[2])] for row in rows])
    assert (
        grid is not None and np.abs(grid.snap(places) - places).max() <= 0.05
    )  # the middles of cells, to a decimal


def test_columns_that_tell_the_place_in_metres(run, tmp_path):
    """Venues of 5 m, and a copy rounded to 5 m; small numbers are not taken for coordinates."""
    random = np.random.default_rng(1)
    venues = np.round(random.uniform(-300, 300, (40, 2)) / 10) * 10
    drawn = random.integers(0, 40, 400)
    rows = venues[drawn] + random.uniform(-2, 2, (400, 2))
    lines = [
        f"{x:.2f},{y:.2f},v{venue},{5 * round(x / 5)},{random.integers(0, 60)}\n"
        for (x, y), venue in zip(rows, drawn, strict=True)
    ]
    (tmp_path / "in.csv").write_text("x,y,venue,rough_x,age\n" + "".join(lines))
    with pytest.raises(DataError, match=r"'venue' \(.*\), 'rough_x' \("):
        sanitize(run, tmp_path / "in.csv", tmp_path / "out.csv")
    policy = Policy(keep=("rough_x", "venue"))
    record = sanitize(run, tmp_path / "in.csv", tmp_path / "out.csv", policy=policy)
    assert record["columns_that_tell_the_place"] == ["rough_x", "venue"]


def test_a_bundle_on_metres_answers_metres_alone(run, tmp_path):
    manifest = export(run, tmp_path / "dist")
    assert manifest["plane"] is None and manifest["units"]["written"] == "metres"
    script = """
    const device = await load(given);
    let degrees = "answered";
    try { device.report({ latitude: 1, longitude: 2 }); } catch (error) { degrees = error.message; }
    console.log(JSON.stringify({ report: device.report({ x: 10, y: 20 }), degrees }));
    """
    found = in_node(script, str(tmp_path / "dist"))
    assert found["report"].keys() == {"x", "y", "accuracy"} and "x and y" in found["degrees"]


def test_the_service_speaks_degrees(run, tmp_path):
    tokens = str(tmp_path / "tokens")
    words = ["serve", str(run), "--port", "0", "--token-file", tokens]
    ended = CliRunner().invoke(cli.cli, words)
    assert "plane metres" in str(ended.exception)

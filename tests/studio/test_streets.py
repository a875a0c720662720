"""Streets that the person brings are drawn below the map, and nothing is asked from elsewhere."""

import json
from pathlib import Path
from typing import Any

import pytest

from sfumato.errors import DataError
from sfumato.studio.streets import read_streets
from tests.browser import wait_until
from tests.studio.data import PARIS
from tests.studio.server import Served, served

_LINE = [[PARIS[1] - 0.1, PARIS[0]], [PARIS[1] + 0.1, PARIS[0]]]
_DRAWN = """() => {
  const canvas = document.querySelector("canvas");
  return canvas.width && canvas.getContext("2d").getImageData(0, 0, 9, 9).data.some(Boolean);
}"""  # whether the ground is drawn
_GROUND = """() => {
  const canvas = document.querySelector("canvas");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let found = 0;
  for (let row = 0; row < canvas.height; row++) {
    let changes = 0;
    for (let at = 4; at < 4 * canvas.width; at += 4) {
      const here = 4 * row * canvas.width + at;
      changes += data[here] !== data[here - 4];
    }
    found += changes > 200;
  }
  return found;
}"""


def _written(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document))
    return path


def test_lines_and_edges_are_read_as_latitude_and_longitude(tmp_path: Path) -> None:
    area = {"type": "MultiPolygon", "coordinates": [[[[1, 2], [3, 4], [1, 2]]]]}
    features = [
        {"type": "Feature", "geometry": {"type": "LineString", "coordinates": _LINE}},
        {"type": "Feature", "geometry": {"type": "GeometryCollection", "geometries": [area]}},
        {"type": "Feature", "geometry": {"type": "Point", "coordinates": [5, 6]}},
        {"type": "Feature", "geometry": None},
    ]
    path = _written(tmp_path / "a.json", {"type": "FeatureCollection", "features": features})
    street, edge = read_streets(path)
    assert street == [[lat, round(lon, 6)] for lon, lat in _LINE]
    assert edge == [[2, 1], [4, 3], [2, 1]]


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ({"type": "LineString", "coordinates": [[650_000, 6_860_000], [1, 2]]}, "no GeoJSON in d"),
        ({"type": "LineString", "coordinates": [[None, 2], [1, 2]]}, "no GeoJSON in degrees"),
        ([1, 2], "no GeoJSON in degrees"),
        ({"type": "LineString", "coordinates": [[1], [2]]}, "no GeoJSON in degrees"),
        ({"type": "LineString", "coordinates": ["12", "34"]}, "no GeoJSON in degrees"),
        ({"type": "LineString", "coordinates": [[10**400, 2], [1, 2]]}, "no GeoJSON in degrees"),
        ({"type": "MultiLineString", "coordinates": [[]]}, "holds no line"),
        ({"type": "Point", "coordinates": [5, 6]}, "holds no line"),
    ],
)
def test_what_is_no_line_in_degrees_is_refused(tmp_path: Path, document: Any, says: str) -> None:
    with pytest.raises(DataError, match=says):
        read_streets(_written(tmp_path / "a.json", document))
    with pytest.raises(DataError, match="cannot be read"):
        read_streets(tmp_path / "missing.json")


def test_streets_lie_below_the_points_of_the_file_that_was_named(
    browser: Any, studio: Served, small: Path, tmp_path: Path
) -> None:
    """A dashed street along a parallel, where the graticule has whole lines only."""
    (lon, lat), (end, _) = _LINE
    steps = [lon + (end - lon) * step / 10_000 for step in range(10_001)]
    dashes = [[[a, lat], [b, lat]] for a, b in zip(steps[::2], steps[1::2], strict=False)]
    streets = {"type": "MultiLineString", "coordinates": dashes}
    path = _written(tmp_path / "streets.geojson", streets)
    with served(str(small), "--streets", str(path)) as mine:
        for address, drawn in ((mine.address, True), (studio.address, False)):
            page = browser.new_page()
            asked: list[str] = []
            page.on("request", lambda request, to=asked: to.append(request.url))
            page.goto(address)
            page.get_by_text("18 check-ins of 3 users", exact=False).first.wait_for(timeout=90_000)
            wait_until(page, f"Boolean(document.querySelector('canvas')) && ({_DRAWN})()")
            wait_until(page, f"(({_GROUND})() > 0) === {str(drawn).lower()}")
            assert all(url.startswith(address.rsplit("/", 2)[0]) for url in asked)
            page.close()

"""The page itself: speed with many points, keyboard, names for screen readers, phone and dark,
tiles, and formulas shared with Python."""

import http.server
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.data.plane import Plane
from sfumato.render.figures import COLOURS, MARKERS
from sfumato.studio.app import STATIC
from tests.browser import wait_until
from tests.studio.data import PARIS, checkins
from tests.studio.server import Served, served

_POINTS = 100_000


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkins(
        tmp_path_factory.mktemp("many") / "many.csv", users=10, each=_POINTS // 10, apart_m=3000
    )


def test_a_hundred_thousand_points_load_and_pan_at_thirty_frames_a_second(
    page: Any, many: Path
) -> None:
    begin = time.perf_counter()
    page.set_input_files("#file", str(many))
    page.get_by_text("100,000 check-ins of 10 users").first.wait_for()
    wait_until(page, "document.querySelector('.map').map.scene.points?.x.length === 100000")
    loaded = time.perf_counter() - begin
    page.get_by_text("Reading", exact=False).wait_for(state="hidden")
    rates = []
    for _ in range(3):  # the best of three: the machine may be busy with other tests
        rates.append(_panned(page))
        if rates[-1] >= 30:
            break
    print(f"\n100,000 points: loaded in {loaded:.1f} s, panned at {max(rates):.0f} frames a second")
    assert max(rates) >= 30


def test_a_file_chosen_before_the_page_has_its_session_is_not_lost(
    browser: Any, studio: Served, small: Path
) -> None:
    context = browser.new_context()
    page, held = context.new_page(), []
    page.route("**/api/session", lambda route: held.append(route))  # noqa: PLW0108 (Playwright reads the signature)
    page.goto(studio.address)
    page.get_by_role("button", name="Four corners").wait_for()
    wait_until(page, "document.readyState === 'complete'")
    page.set_input_files("#file", str(small))
    held[0].continue_()
    page.get_by_text("18 check-ins of 3 users").first.wait_for(timeout=30_000)
    context.close()


def _panned(page: Any) -> float:
    """Frames a second while the map is dragged about for 120 frames."""
    box = page.locator(".map").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    told = page.evaluate(_PAN)
    page.mouse.up()
    assert told["seen"] > 100 and told["drawn"] > 100  # the picture moved, and was drawn anew
    return 1000 * (len(told["times"]) - 1) / (told["times"][-1] - told["times"][0])


_PAN = """() => new Promise(done => {
  const top = document.querySelector(".map canvas:last-of-type"), { map } = document.querySelector(".map");
  const times = [], seen = new Set(), before = map.frames, box = top.getBoundingClientRect();
  const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
  const frame = now => {
    times.push(now); seen.add(map.view.x.toFixed(6));
    const angle = times.length / 9, at = { clientX: x + 150 * Math.sin(angle), clientY: y + 100 * Math.cos(angle) };
    top.dispatchEvent(new PointerEvent("pointermove", { ...at, pointerId: [...map.gestures.pointers.keys()][0], bubbles: true }));
    if (times.length < 120) requestAnimationFrame(frame); else done({ times, seen: seen.size, drawn: map.frames - before });
  };
  requestAnimationFrame(frame); })"""


def test_every_control_has_a_name_and_the_panels_work_from_the_keyboard(page: Any) -> None:
    page.get_by_role("button", name="small.csv").focus()
    page.keyboard.press("Enter")
    page.get_by_text("18 check-ins of 3 users", exact=False).first.wait_for()
    tab = page.get_by_role("tab", name="Data")
    tab.focus()
    tabs = page.get_by_role("tab").all()
    assert len(tabs) >= 5
    for shown in tabs:
        assert shown.get_attribute("aria-selected") == "true"
        assert page.evaluate(_NAMELESS) == []
        page.keyboard.press("ArrowRight")
    assert page.get_by_role("tab", name="Data").get_attribute("aria-selected") == "true"
    # The map moves by keys.
    page.get_by_role("application").focus()
    wait_until(page, "document.querySelector('.map').map !== undefined")
    before = page.evaluate("({...document.querySelector('.map').map.view})")
    for key in ("ArrowRight", "ArrowUp", "+"):
        page.keyboard.press(key)
    after = page.evaluate("({...document.querySelector('.map').map.view})")
    assert (
        after["x"] > before["x"] and after["y"] > before["y"] and after["scale"] > before["scale"]
    )
    page.keyboard.press("0")
    assert page.evaluate("document.querySelector('.map').map.view.scale") == pytest.approx(
        before["scale"]
    )
    # Everything in the panel is reached by Tab alone.
    page.get_by_role("tab", name="Data").focus()
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()")
        )
    assert {"Four corners", "file", "lat", "side", "Use this view", "top", "Select"} <= reached


_NAMELESS = """() => [...document.querySelectorAll("button, a[href], input, select, [tabindex='0']")].filter(one => {
  const label = one.id && document.querySelector(`label[for="${one.id}"]`);
  const name = one.getAttribute("aria-label") || label?.textContent || one.closest("label")?.textContent || one.textContent;
  return !name?.trim(); }).map(one => one.outerHTML)"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_is_wider_than_the_screen(
    browser: Any, studio: Served, scheme: str
) -> None:
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, color_scheme=scheme, has_touch=True
    )
    page = context.new_page()
    page.goto(studio.address)
    page.get_by_role("button", name="small.csv").click()
    page.get_by_text("18 check-ins of 3 users", exact=False).first.wait_for()
    for tab in page.get_by_role("tab").all():
        tab.click()
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, tab.inner_text()
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    light = sum(int(number) for number in re.findall(r"\d+", ground)[:3]) > 380
    assert light == (scheme == "light")
    page.get_by_role("button", name="Theme").click()  # dark by choice, whatever the system says
    wait_until(page, "getComputedStyle(document.body).backgroundColor === 'rgb(20, 24, 28)'")
    context.close()


def test_colours_and_markers_are_those_of_the_report() -> None:
    script = (STATIC / "looks.js").read_text(encoding="utf-8")
    lists = {
        name: tuple(re.findall(r'"([^"]+)"', values))
        for name, values in re.findall(r"export const (\w+) = \[(.*?)\];", script)
    }
    assert lists == {"COLOURS": COLOURS, "MARKERS": MARKERS}


def test_the_pages_plane_is_the_librarys(page: Any) -> None:
    plane = Plane(*PARIS)
    points = np.array([[0.0, 0.0], [1234.5, -987.6], [-150_000.0, 90_000.0], [30.0, 190_000.0]])
    latitude, longitude = plane.to_degrees(points)
    told = page.evaluate(
        """async ([plane, points]) => { const flat = (await import("./static/plane.js")).plane(plane);
        return points.map((point) => { const found = flat.toDegrees(point); return [...found, ...flat.toMetres(...found)]; }); }""",
        [{"latitude": plane.latitude, "longitude": plane.longitude}, points.tolist()],
    )
    assert np.allclose(
        np.array(told)[:, :2], np.stack([latitude, longitude], axis=1), atol=1e-9, rtol=0
    )
    assert np.allclose(np.array(told)[:, 2:], points, atol=1e-3)


def test_the_progress_of_a_cross_fitted_solver_never_falls(page: Any) -> None:
    folds = [{"round": part, "done": (part + 1) / 3, "folds": 4} for part in range(3)]
    net = [{"round": part, "done": (part + 1) / 3, "loss": 90.0} for part in range(3)]
    told, alone = page.evaluate(
        """async ([folds, net]) => { const { progressOf } = await import("./static/progress.js");
        const each = records => records.map((_, at) => progressOf(records.slice(0, at + 1)));
        return [each([...folds, ...net]), each(net)]; }""",
        [folds, net],
    )
    shares = [one["share"] for one in told]
    assert shares == sorted(shares) and shares[-1] == pytest.approx(1)
    assert told[0]["words"] == "1 of 2: cross-fitting on 4 folds, round 1"
    assert told[-1]["words"] == "2 of 2: learning, round 3"
    assert [one["share"] for one in alone] == pytest.approx([1 / 3, 2 / 3, 1])
    assert alone[0]["words"] == "round 1"


def test_between_two_budgets_the_bound_is_that_of_the_larger(page: Any) -> None:
    curve = {
        "objective": "bayes",
        "cell_m": 50,
        "budgets": [100, 110, 120],
        "reached": [0.3, 0.4, 0.45],
        "bound": [0.31, 0.42, 0.46],
    }
    told = page.evaluate(
        """async curve => { const { provedAt } = await import("./static/proof.js");
        return [90, 100, 105, 120, 130].map(at => provedAt(curve, at)); }""",
        curve,
    )
    assert told[0] is None
    assert [one["bound"] for one in told[1:]] == [0.31, 0.42, 0.46, 0.46]
    assert [one["reached"] for one in told[1:]] == pytest.approx([0.3, 0.35, 0.45, 0.45])


@pytest.fixture
def tile_server() -> Iterator[tuple[str, list[tuple[str, dict[str, str]]]]]:
    """A server of one picture that notes what it was asked."""
    asked: list[tuple[str, dict[str, str]]] = []
    picture = (
        b'<svg xmlns="http://www.w3.org/2000/svg" width="256" height="256"><rect width="256"'
        b' height="256" fill="#8ac"/></svg>'
    )

    class Tiles(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, dict(self.headers)))
            self.send_response(200)
            self.send_header("Content-Type", "image/svg+xml")
            self.end_headers()
            self.wfile.write(picture)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tiles)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/{{z}}/{{x}}/{{y}}.svg", asked
    server.shutdown()
    server.server_close()
    thread.join()


def test_tiles_are_fetched_only_from_the_address_that_was_given(
    browser: Any, small: Path, tile_server: tuple[str, list[tuple[str, dict[str, str]]]]
) -> None:
    address, asked = tile_server
    with served(str(small), "--tiles", address) as studio:
        page = browser.new_page()
        page.goto(studio.address)
        page.get_by_text("18 check-ins of 3 users", exact=False).first.wait_for()
        page.get_by_text("its owner sees where you look").wait_for()
        until = time.monotonic() + 10
        while not asked and time.monotonic() < until:
            page.wait_for_timeout(100)
        page.close()
    zoom, x, y = (
        int(part) for part in re.fullmatch(r"/(\d+)/(\d+)/(\d+)\.svg", asked[0][0]).groups()
    )
    # The tile that holds the middle of the data is among those next to the first that was asked
    # for.
    column = (PARIS[1] + 180) / 360 * 2**zoom
    row = (1 - np.arcsinh(np.tan(np.radians(PARIS[0]))) / np.pi) / 2 * 2**zoom
    assert abs(x - column) < 6 and abs(y - row) < 6
    assert all(
        studio.token not in str(headers) and "Referer" not in headers for _, headers in asked
    )

"""The extension's reports, in Node: kept by a keyed hash, as far off as was said, never the truth."""

import functools
import io

import numpy as np
import pytest
from PIL import Image

from sfumato.deploy.bundle import load_bundle
from tests.web.device import WEB, in_node
from tools import icons

_HEAD = """
const {{ report, importKey, cellOf, mechanismFor }} = await import(given.folder + "/reports.js");
const {{ siteOf, hostOf, ruleFor, checked, DEFAULTS }} = await import(given.folder + "/settings.js");
const {{ load: read }} = await import(given.folder + "/sfumato.js");
const device = await read(given.folder.replace("file://", "") + "/bundle");
const key = await importKey(new Uint8Array(32).fill(given.key ?? 7));
const drawn = async (more) => (await report({{ key, site: "a", rule: {{ rule: "hide", metres: null }}, device, now: 1e12, ...more }}));
const out = await (async () => {{ {script} }})();
console.log(JSON.stringify(out));
"""
HERE = {"latitude": 48.857, "longitude": 2.347}


@pytest.fixture
def in_extension(extension_folder):
    def run(script, **given):
        folder = extension_folder.as_uri()
        return in_node(_HEAD.format(script=script), {"folder": folder, "here": HERE, **given})

    return run


def _metres(places, centre=HERE):
    places = np.array([[place["latitude"], place["longitude"]] for place in places])
    scale = np.array([111_320, 111_320 * np.cos(np.radians(centre["latitude"]))])
    return np.hypot(*((places - [centre["latitude"], centre["longitude"]]) * scale).T)


def test_a_report_depends_on_key_site_cell_and_period_and_on_nothing_else(in_extension):
    script = """
      const at = async (more) => JSON.stringify((await drawn({ place: given.here, ...more })).report);
      const near = { ...given.here, latitude: given.here.latitude + 1e-7 };
      const many = async (vary) => new Set(await Promise.all(Array.from({ length: 30 }, (_, i) => at(vary(i))))).size;
      return {
        same: [await at({}), await at({ place: near }), await at({ now: 1e12 + 3600e3 })],
        sites: await many((i) => ({ site: `s${i}` })),
        periods: await many((i) => ({ now: 1e12 + i * 86400e3 })),
        cells: await many((i) => ({ place: { ...given.here, latitude: given.here.latitude + i / 1000 } })),
        back: [await at({ now: 1e12 - 86400e3 }), await at({ now: 1e12 })],
      };"""
    found = in_extension(script)
    assert len(set(found["same"])) == 1
    assert min(found["sites"], found["periods"], found["cells"]) > 4  # cells of 250 m: few are near
    assert found["back"][1] == found["same"][0]  # a clock that went back draws nothing new
    assert in_extension(script, key=8)["same"][0] != found["same"][0]


@pytest.mark.parametrize("seconds", [0, -1, "day", False])
def test_a_bundle_that_keeps_for_no_time_is_kept_for_an_hour(in_extension, seconds):
    """New draws of one place would average to it."""
    found = in_extension(
        """
      const told = { manifest: { ...device.manifest, keeping: { seconds: given.seconds, cell_m: 25, within_m: null } } };
      const rule = { rule: "hide", metres: 60 };
      const many = async (step) => new Set(await Promise.all(Array.from({ length: 30 }, async (_, i) =>
        JSON.stringify((await drawn({ place: given.here, device: told, rule, now: 3600e6 + i * step })).report)))).size;
      return [await many(100e3), (await many(3600e3)) > 4];""",
        seconds=seconds,
    )
    assert found == [1, True]


@pytest.mark.parametrize(
    ("rule", "metres"),
    [({"metres": None}, 173), ({"metres": 600}, 600), ({"metres": 60}, 60)],
    ids=["the bundle", "the bundle and noise", "planar Laplace"],
)
def test_reports_are_as_far_off_as_was_said_and_accuracy_covers_95_of_100(
    in_extension, extension_folder, rule, metres
):
    """2,000 periods at one place.  A mean distance over the budget by 10 % would be five standard
    errors away (planar Laplace: deviation 0.7 of the mean, so 1.6 %)."""
    found = in_extension(
        "return Promise.all(Array.from({ length: 2000 }, async (_, i) => (await drawn({ place:"
        " given.here, now: 1e12 + i * 86400e3, rule: { rule: 'hide', ...given.rule } })).report));",
        rule=rule,
    )
    off = _metres(found)
    assert 0.6 * metres < off.mean() < 1.06 * metres + 10  # 10 m: the middle of the cell
    accuracy = {report["accuracy"] for report in found}
    assert len(accuracy) == 1 and (off <= accuracy.pop()).mean() > 0.945
    if metres == 173:
        bundle = load_bundle(extension_folder / "bundle")
        assert found[0]["accuracy"] == bundle["accuracy_m"]


def test_no_report_is_the_truth_and_none_lies_off_the_grid(in_extension):
    found = in_extension("""
      const rule = { rule: "hide", metres: 500 };
      const all = await Promise.all(Array.from({ length: 300 }, async (_, i) => (await drawn({ place: given.here, device: null, rule, now: 1e12 + i * 86400e3 })).report));
      return all.map((report) => { const cell = cellOf(report);
        return [Math.abs(cell.latitude - report.latitude), Math.abs(cell.longitude - report.longitude), report.latitude !== given.here.latitude]; });""")
    assert max(row[0] for row in found) < 6e-6 and max(row[1] for row in found) < 6e-6
    assert all(row[2] for row in found)


@pytest.mark.parametrize(
    "place",
    [None, {}, {"latitude": "48", "longitude": 2}, {"latitude": 91, "longitude": 0}],
)
def test_what_is_no_place_is_refused_without_repeating_it(in_extension, place):
    said = in_extension(
        "try { await drawn({ place: given.place }); return 'answered'; }"
        " catch (problem) { return problem.message; }",
        place=place,
    )
    assert said == "a place is a latitude and a longitude"


def test_the_poles_and_the_date_line_have_cells(in_extension):
    found = in_extension(
        "return [[90, 0], [-90, 180], [0, 180], [0, -180], [89.99999, 179.99999]].map(([latitude,"
        " longitude]) => cellOf({ latitude, longitude }));"
    )
    assert all(abs(cell["latitude"]) <= 90 and abs(cell["longitude"]) <= 180 for cell in found)
    assert found[2]["name"] == found[3]["name"]


@pytest.mark.parametrize(
    ("address", "site"),
    [
        ("https://www.example.org/a?b", "example.org"),
        ("https://a.b.example.co.uk", "example.co.uk"),
        ("http://127.0.0.1:8000/", "127.0.0.1"),
        ("http://[::1]/", "[::1]"),
        ("http://localhost:1/", "localhost"),
        ("https://Example.ORG.", "example.org"),
        ("about:blank", None),
        ("chrome://settings", None),
        ("data:text/html,x", None),
    ],
)
def test_subdomains_are_one_site(in_extension, address, site):
    assert in_extension("return siteOf(given.address)", address=address) == site


@pytest.mark.parametrize(
    ("settings", "off", "hidden"),
    [
        (
            {"list": ["alice.github.io"]},
            ["alice.github.io", "www.alice.github.io"],
            ["evil.github.io", "github.io", "evilalice.github.io"],
        ),
        (
            {"list": ["https://www.impots.gouv.fr/x"]},
            ["www.impots.gouv.fr"],
            ["impots.gouv.fr", "douane.gouv.fr"],
        ),
        ({"list": ["org"]}, [], ["example.org"]),
        (
            {"sites": {"shop.vercel.app": {"rule": "off"}}},
            ["shop.vercel.app"],
            ["evil.vercel.app", "vercel.app", "a.shop.vercel.app"],
        ),
        ({"sites": {"vercel.app": {"rule": "off"}}}, ["vercel.app"], ["evil.vercel.app"]),
        (
            {"listed": "only", "list": ["maps.example.org"]},
            ["example.com"],
            ["maps.example.org", "www.example.org"],
        ),
        (
            {"list": ["www.example.org"], "sites": {"maps.example.org": {"rule": "hide"}}},
            [],
            ["www.example.org", "maps.example.org", "example.org"],
        ),
    ],
)
def test_the_true_place_goes_by_the_whole_host(in_extension, settings, off, hidden):
    """Hosts that share a name's end may be other people's: only protection joins them."""
    found = in_extension(
        "const all = checked({ ...DEFAULTS, ...given.settings });"
        " return given.hosts.map((host) => ruleFor(all, hostOf(`https://${host}/`), false).rule);",
        settings=settings,
        hosts=[*off, *hidden],
    )
    assert found == ["off"] * len(off) + ["hide"] * len(hidden)


def test_a_site_without_a_name_is_refused(in_extension):
    assert in_extension("return ruleFor(DEFAULTS, null, false).rule") == "refuse"


@functools.cache
def _files():
    found = (path.name for path in (WEB / "extension").iterdir() if path.suffix != ".png")
    return sorted(found)


def test_the_extension_names_no_other_machine():
    for name in _files():
        text = (WEB / "extension" / name).read_text()
        for found in ("http://", "https://"):
            places = [part.split('"')[0][:40] for part in text.split(found)[1:]]
            assert all(part.startswith(("www.w3.org", "${text}`", "*/*")) for part in places), (
                name,
                places,
            )


@pytest.mark.parametrize("size", icons.SIZES)
def test_icons_are_what_their_program_draws(size):
    def pixels(data):
        return np.asarray(Image.open(io.BytesIO(data)))

    drawn = pixels(icons.icon(size))
    kept = pixels((WEB / "extension" / f"icon-{size}.png").read_bytes())
    assert drawn.shape == (size, size, 4) and np.array_equal(drawn, kept)
    assert drawn[0, 0, 3] == 0 and tuple(drawn[size // 2, size // 2]) == (0, 66, 157, 255)

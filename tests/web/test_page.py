"""The page in Chromium with a faked location: the truth, the report, the spread; and nothing
leaves."""

import json
import re

import pytest

import sfumato as sf
from sfumato.deploy.bundle import export
from sfumato.measure.judge import judge
from tests.browser import launched
from tests.web.device import WEB, served

HERE = {"latitude": 48.857, "longitude": 2.347}


@pytest.fixture(scope="module")
def browser():
    with launched() as found:
        yield found


def _opened(browser, address, *, place=HERE, permissions=("geolocation",)):
    context = browser.new_context(geolocation=place, permissions=list(permissions))
    page = context.new_page()
    page.problems, page.asked = [], []
    page.on("console", lambda message: page.problems.append(message.text))
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("request", lambda request: page.asked.append(request.url))
    page.goto(f"{address}/index.html")
    page.wait_for_selector("#locate:enabled", timeout=20_000)
    return page


def test_you_are_here_and_the_site_sees_this(bundles, browser):
    with served(bundles / "laplace") as address:
        page = _opened(browser, address)
        page.click("#locate")
        page.wait_for_selector("#facts:not([hidden])", timeout=20_000)
        assert page.text_content("#truth") == "48.85700, 2.34700"
        seen = page.text_content("#report")
        assert re.fullmatch(r"48\.\d{1,6}, 2\.\d{1,6}", seen) and seen != "48.857, 2.347"
        assert page.locator("#spread circle").count() == 400
        assert page.locator("#marks .truth").count() == page.locator("#marks .report").count() == 1
        assert int(page.text_content("#distance").removesuffix(" m")) > 0
        page.click("#locate")  # asking again gives the same report: it is kept
        page.wait_for_timeout(300)
        assert page.text_content("#report") == seen
        assert page.problems == []
        # Only the page's own files were asked for, and none with a place in its address.
        assert all(url.startswith(address) and "48.8" not in url for url in page.asked)
        assert (
            page.evaluate("localStorage.length + sessionStorage.length + document.cookie.length")
            == 0
        )


def test_a_place_without_a_report_leaves_no_earlier_one_on_the_page(bundles, browser):
    with served(bundles / "laplace") as address:
        page = _opened(browser, address)
        page.click("#locate")
        page.wait_for_selector("#facts:not([hidden])", timeout=20_000)
        page.context.set_geolocation({"latitude": 40, "longitude": 2})
        page.click("#locate")
        page.wait_for_selector("#state.bad", timeout=20_000)
        assert "outside the region" in page.text_content("#state")
        assert not any(page.is_visible(shown) for shown in ("#map", "#caption", "#facts"))


def test_the_page_says_what_to_expect_of_check_ins_to_come(bundles, tmp_path, browser):
    with served(bundles / "laplace") as address:  # a run without held-out figures
        said = _opened(browser, address).text_content("#about")
    assert "was not measured" in said and "budget 173 m" in said and "%" not in said
    data = sf.four_corners(seed=0)
    coin = sf.solve(sf.Problem(data.train, max_loss=173, cell_m=250), sf.Coin())
    coin.save(tmp_path / "run", test=judge(coin.mechanism, data.test))
    manifest = export(tmp_path / "run", tmp_path / "dist", page=True)
    with served(tmp_path / "dist") as address:
        said = _opened(browser, address).text_content("#about")
    loss = manifest["to_come"]["loss"]["value"]
    assert f"{loss:.0f} m off on average (budget 173 m)" in said and "held-out check-ins" in said
    assert manifest["measured"]["training"]["loss"]["value"] != loss
    plain = said.replace("\xa0", "")
    assert f"It reports your true place {manifest['truth_share']:.0%}" in plain
    blind = manifest["to_come"]["blind_error"]
    assert f"Without a report, a guess is wrong {blind:.0%} of the time" in plain
    assert blind == pytest.approx(0.75)


def test_a_bundle_that_does_not_state_the_blind_guess_is_shown_without_it(bundles, browser):
    """Bundles of earlier versions; the page's own words, on a manifest as they have it."""
    figures = {
        "loss": {"value": 170.0},
        "bayes_error": {"value": 0.6},
        "from": "held-out check-ins",
    }
    source = (WEB / "page.js").read_text().replace("about(device.manifest)", "about(OLDER)")
    older = {"to_come": figures, "budget": {"max_loss": 173}, "region": {"side_m": 6500}}
    with served(bundles / "laplace") as address:
        context = browser.new_context()
        page = context.new_page()
        page.route(
            "**/page.js",
            lambda route: route.fulfill(
                body=f"const OLDER = {json.dumps(older)};\n{source}", content_type="text/javascript"
            ),
        )
        page.goto(f"{address}/index.html")
        page.wait_for_selector("#locate:enabled", timeout=20_000)
        said = page.text_content("#about").replace("\xa0", " ")
    assert "wrong 60 % of the time. Estimated from" in said and "Without a report" not in said


def test_the_policy_of_the_page_lets_nothing_out(bundles, browser):
    with served(bundles / "laplace") as address:
        page = _opened(browser, address)
        outcome = page.evaluate("fetch('http://192.0.2.1/').then(() => 'sent', () => 'refused')")
        assert outcome == "refused" and any(
            "Content Security Policy" in problem for problem in page.problems
        )


def test_outside_the_region_no_report_is_drawn(bundles, browser):
    with served(bundles / "laplace") as address:
        page = _opened(browser, address, place={"latitude": -33.9, "longitude": 151.2})
        page.click("#locate")
        page.wait_for_selector("#state.bad", timeout=20_000)
        assert "outside the region" in page.text_content("#state")
        assert page.locator("#facts").is_hidden() and page.text_content("#report") == ""


def test_without_permission_it_says_so(bundles, browser):
    with served(bundles / "laplace") as address:
        page = _opened(browser, address, permissions=())
        page.click("#locate")
        page.wait_for_selector("#state.bad", timeout=20_000)
        assert "did not give a location" in page.text_content("#state")


def test_opened_as_a_file_it_says_what_to_do(bundles, browser):
    page = browser.new_page()
    page.goto((bundles / "laplace" / "index.html").as_uri())
    assert not page.locator("#about .late").is_visible()
    page.locator("#about .late").wait_for(state="visible")
    assert "python -m http.server" in page.text_content("#about")

"""The five panels, end to end in a real browser."""

import io
import json
import re
import shlex
import zipfile
from pathlib import Path
from typing import Any

import pytest

from sfumato import cli
from sfumato.deploy.bundle import load_bundle
from sfumato.study.folder import load_run
from tests.browser import wait_until
from tests.studio.data import checkins
from tests.studio.server import served

_QUESTION = "Who sent this report?"


def _choose(page: Any, name: str) -> None:
    page.get_by_role("tab", name=name).click()


def _solve(page: Any, solver: str, budget: str, *, cell: str = "100", keep: bool = True) -> None:
    _choose(page, "Solve")
    page.fill("#budget-number", budget)
    page.select_option("#solver", solver)
    page.fill("#cell", cell)
    page.get_by_role("button", name="Solve", exact=True).click()
    page.locator("#result").wait_for()
    if keep:
        page.get_by_role("button", name="Keep", exact=True).click()
        page.get_by_text("Kept for comparing").wait_for()


def _drawn(page: Any, at: int = 1) -> int:
    """How many pixels of the points' canvas are not empty."""
    return page.evaluate(
        """at => { const canvas = document.querySelectorAll(".map canvas")[at];
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        let seen = 0; for (let i = 3; i < data.length; i += 4) if (data[i]) seen += 1; return seen; }""",
        at,
    )


def test_what_solving_takes_is_said_before_it_begins(page: Any) -> None:
    page.get_by_role("button", name="Four corners").click()
    page.get_by_text("2,400 check-ins of 4 users, 1,920 to learn from").wait_for()
    _choose(page, "Solve")
    page.fill("#budget-number", "173")
    page.select_option("#solver", "codebook")
    page.get_by_text("the proof that follows takes at most 2 minutes more").wait_for()
    page.select_option("#solver", "laplace")
    page.get_by_text("It takes about 10 seconds of one core and 0.2 GB of memory.").wait_for()
    page.fill("#limit", "30")
    page.select_option("#solver", "codebook")
    page.get_by_text("the time limit ends it earlier and keeps the best so far").wait_for()
    page.fill("#limit", "600")
    page.get_by_text("(the time limit ends it and keeps its best bound)").wait_for()


def test_data_four_corners_region_and_users(page: Any) -> None:
    page.get_by_role("button", name="Four corners").click()
    page.get_by_text(
        "2,400 check-ins of 4 users, 1,920 to learn from and 480 to test on"
    ).wait_for()
    wait_until(page, "document.querySelector('.map').map.frames > 1")
    assert _drawn(page) > 2000 and page.locator(".legend li").all_inner_texts() == [
        "blue",
        "red",
        "green",
        "yellow",
    ]
    # A user is left out.
    page.get_by_role("checkbox", name="green").uncheck()
    page.get_by_role("button", name="Select", exact=True).click()
    page.get_by_text("1,800 check-ins of 3 users, 1,440 to learn from").wait_for()
    assert page.locator(".legend li").all_inner_texts() == ["blue", "red", "yellow"]
    # A square is drawn on the map about the upper half.
    page.get_by_role("checkbox", name="green").check()
    page.get_by_role("button", name="Draw a square").click()
    wait_until(page, "document.querySelector('.map').map.scene.drawing")
    box = page.locator(".map").bounding_box()
    page.mouse.move(box["x"] + 100, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 300, box["y"] + 180, steps=4)
    page.mouse.up()
    wait_until(page, "document.querySelector('#side').value !== ''")
    side = float(page.input_value("#side"))
    scale = page.evaluate("document.querySelector('.map').map.view.scale")
    assert side == pytest.approx(200 / scale, abs=1)
    # The square about the whole view holds everybody again.
    page.get_by_role("button", name="Use this view").click()
    wait_until(page, f"Number(document.querySelector('#side').value) > {side}")
    assert float(page.input_value("#side")) > side and page.input_value("#lat").startswith("48.85")
    page.get_by_role("button", name="Select", exact=True).click()
    page.get_by_text("2,400 check-ins of 4 users, 2,400 to learn from").wait_for()
    # So does nothing at all in a square elsewhere: a sentence.
    page.fill("#lat", "10")
    page.get_by_role("button", name="Select", exact=True).click()
    page.get_by_role("alert").get_by_text("None of 2400 check-ins lies in the").wait_for()


def test_data_by_drag_and_drop_and_a_bad_file_says_why(page: Any, tmp_path: Path) -> None:
    def drop(name: str, content: str) -> None:
        page.evaluate(
            """([name, content]) => { const moved = new DataTransfer(); moved.items.add(new File([content], name));
            document.querySelector(".drop").dispatchEvent(new DragEvent("drop", { dataTransfer: moved, bubbles: true })); }""",
            [name, content],
        )

    drop("dropped.csv", checkins(tmp_path / "x.csv", users=5, each=4).read_text())
    page.get_by_text("20 check-ins of 5 users", exact=False).first.wait_for()
    assert page.locator("#panel strong").first.inner_text() == "dropped.csv"
    drop("bad.csv", "name,where\na,b\n")
    page.get_by_role("alert").get_by_text(
        "bad.csv has no column for the user", exact=False
    ).wait_for()
    assert page.get_by_text("20 check-ins of 5 users", exact=False).count()  # what was there stays
    page.set_input_files(
        "#file",
        {
            "name": "metres.csv",
            "mimeType": "text/csv",
            "buffer": b"user,x,y\na,0,0\nb,100,0\nb,90,10\n",
        },
    )
    page.get_by_text("3 check-ins of 2 users", exact=False).first.wait_for()
    assert page.get_by_role("alert").filter(visible=True).count() == 0
    page.get_by_text("This data is in plane metres").wait_for()


def test_solve_the_slider_snaps_to_what_is_proved_and_refines(page: Any) -> None:
    _choose(page, "Solve")
    page.locator("#proof").wait_for()
    page.get_by_text("is reached").nth(1).wait_for()  # information, too
    slider = page.locator("#budget")
    step, least = float(slider.get_attribute("step")), float(slider.get_attribute("min"))
    page.fill("#cell", "100")
    slider.focus()
    page.keyboard.press("Home")
    values = []
    for _ in range(4):
        budget = float(page.input_value("#budget-number"))
        assert (budget - least) / step == pytest.approx(round((budget - least) / step), abs=1e-6)
        values.append(float(page.locator("#proof strong").first.inner_text()))
        for _ in range(6):
            page.keyboard.press("ArrowRight")
    assert values == sorted(values) and values[0] < values[-1]  # more loss hides better
    page.get_by_text("For reports on 100 m cells. Refined.").wait_for()
    reached, bound = (
        float(re.search(r"[\d.]+", text)[0])
        for text in page.locator("#proof dd").first.inner_text().split("\n")[::-1][:2]
    )
    assert 0 <= bound - reached <= 0.0035
    page.fill("#cell", "10")
    page.fill("#budget-number", f"{0.9 * least:g}")  # below the curve, on finer cells
    page.get_by_text("For reports on 10 m cells. Refined.").wait_for()
    page.fill("#budget-number", "a few")
    page.get_by_role("button", name="Solve", exact=True).click()
    page.get_by_role("alert").get_by_text("is a number; got 'a few'", exact=False).wait_for()


def test_a_budget_is_refined_after_the_panel_was_left_and_the_page_loaded_again(page: Any) -> None:
    _choose(page, "Solve")
    page.fill("#cell", "100")
    page.fill("#budget-number", "120")
    page.get_by_text("For reports on 100 m cells. Refined.").wait_for()
    page.fill("#budget-number", "110")
    _choose(page, "Data")  # before the slider has rested
    _choose(page, "Solve")
    page.get_by_text("For reports on 100 m cells. Refined.").wait_for()
    page.reload()
    page.get_by_text("Your work on this page was restored").wait_for()
    _choose(page, "Solve")
    page.get_by_text("m cells. Refined.").wait_for()


def test_compare_attack_and_take_away(
    page: Any, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _solve(page, "exact", "120")
    exact = page.locator("#result").inner_text()
    assert "of 120 m" in exact and _drawn(page) > 50
    _compare(page)
    _attack(page)
    _take(page, small, tmp_path, monkeypatch)


def _compare(page: Any) -> None:
    _choose(page, "Compare")
    page.get_by_role("button", name="Add laplace, coin at 120 m").click()
    page.locator("#figures tbody tr").nth(2).wait_for()
    heads = page.locator("#figures tbody th").all_inner_texts()
    assert heads == ["exact, 120 m", "laplace, 120 m", "coin, 120 m"]
    errors = [
        float(text) for text in page.locator("#figures tbody td:nth-child(3)").all_inner_texts()
    ]
    assert errors[0] >= max(
        errors[1:2]
    )  # the optimum hides better than the noise on the same cells
    assert float(page.locator("#figures tbody td:nth-child(8)").first.inner_text()) <= 0.0011
    assert page.locator("#users tbody tr").count() == 3
    # One check-in: where each mechanism sends it, and what is then believed.
    page.get_by_role("button", name="next check-in").click()
    page.locator(".bars").nth(2).wait_for()
    for run in range(3):
        shares = [
            int(text.split()[0])
            for text in page.locator(".bars").nth(run).locator(".value").all_inner_texts()
        ]
        assert sum(shares) == pytest.approx(100, abs=2)
        wait_until(page, f"document.querySelectorAll('.map')[{run}].map.scene.marks.length === 11")
        assert (
            page.evaluate(f"document.querySelectorAll('.map')[{run}].map.scene.heat.cells.length")
            > 0
        )
    page.get_by_label("Report of coin").select_option("5")
    # The same by a click on the map itself.
    page.get_by_role("button", name="all check-ins").click()
    page.locator(".maps .map").first.click(position={"x": 60, "y": 60})
    page.locator(".bars").first.wait_for()


def _attack(page: Any) -> None:
    _choose(page, "Attack")
    page.select_option("#against", label="coin, 120 m")
    page.get_by_role("button", name="Begin").click()
    right = 0
    for round_number in range(20):
        page.get_by_text(f"Round {round_number + 1} of 20", exact=False).first.wait_for()
        page.get_by_role("group", name=_QUESTION).get_by_role("button").nth(
            round_number % 3
        ).click()
        verdict = page.locator(".verdict strong").first.inner_text()
        assert verdict in ("Right.", "Wrong.")
        right += verdict == "Right."
        if round_number < 19:
            page.get_by_role("button", name="Next report").click()
    final = page.locator("#final").inner_text()
    assert f"You were right {right} times of 20." in final
    expected, share = (
        float(number)
        for number in re.search(
            r"expects ([\d.]+) of 20 \(1 − Bayes error = ([\d.]+)\)", final
        ).groups()
    )
    assert expected == pytest.approx(20 * share, abs=0.06) and 20 / 3 - 0.06 <= expected <= 20


def _take(page: Any, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _choose(page, "Take away")  # of a run that can be handed out, not of the exact one
    page.locator("#command").wait_for()
    assert "exact" not in page.locator("#which option:checked").inner_text()
    page.select_option("#which", label="exact, 120 m")
    page.locator("#command").get_by_text("--solver exact").wait_for()
    with page.expect_download() as report:
        page.get_by_role("link", name="Download report.html").click()
    text = Path(report.value.path()).read_text(encoding="utf-8")
    assert "<html" in text and "exact" in text and "coin" in text and 'src="http' not in text
    with page.expect_download() as folder:
        page.get_by_role("link", name=re.compile(r"Download exact-120m-\d\.zip")).click()
    with zipfile.ZipFile(io.BytesIO(Path(folder.value.path()).read_bytes())) as archive:
        archive.extractall(tmp_path)
        name = archive.namelist()[0].split("/")[0]
    taken = load_run(tmp_path / name)
    assert json.loads((tmp_path / name / "run.json").read_text())["data"]["recipe"][
        "source"
    ].endswith("small.csv")
    # A bundle of the exact channel would list true places: refused in words.  That of planar
    # Laplace is whole.
    refused = page.locator("#no-bundle").inner_text()
    assert "lists true locations" in refused and "reveal" not in refused
    page.select_option("#which", label="laplace, 120 m")
    with page.expect_download() as bundle:
        page.get_by_role("link", name=re.compile("laplace-120m-.*-device.zip")).click()
    with zipfile.ZipFile(io.BytesIO(Path(bundle.value.path()).read_bytes())) as archive:
        archive.extractall(tmp_path / "device")
    assert load_bundle(next((tmp_path / "device").iterdir()))["solver"] == "laplace"
    page.select_option("#which", label="exact, 120 m")
    page.locator("#command").get_by_text("--solver exact").wait_for()
    # The command line repeats the run: the same mechanism, byte for byte.
    command = shlex.split(page.locator("#command").inner_text())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", command)
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert not left.value.code
    again = load_run(tmp_path / command[command.index("--out") + 1])
    assert again.record.mechanism_hash == taken.record.mechanism_hash


def test_empty_panels_say_what_comes_first(browser: Any) -> None:
    with served() as studio:
        page = browser.new_page()
        page.goto(studio.address)
        for name in ("Solve", "Compare", "Attack", "Take away"):
            _choose(page, name)
            assert page.get_by_role("button", name="Go to Data").count() == 1
        page.get_by_role("button", name="Go to Data").click()
        held: list[Any] = []
        page.route("**/data", lambda route: held.append(route))  # noqa: PLW0108 (Playwright reads the signature)
        page.get_by_role("button", name="Four corners").click()
        for name in ("Solve", "Compare"):
            _choose(page, name)
            assert page.locator(".empty").get_by_text("Reading …").is_visible()
        held[0].continue_()
        _choose(page, "Solve")
        page.locator("#solver").wait_for()
        page.close()

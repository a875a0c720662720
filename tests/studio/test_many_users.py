"""A file of many users: each can be found, fewer are proposed; and every figure is explained."""

from pathlib import Path
from typing import Any

from tests.browser import wait_until
from tests.studio.data import checkins


def test_many_users_are_searched_and_fewer_are_proposed(page: Any, tmp_path: Path) -> None:
    page.set_input_files("#file", str(checkins(tmp_path / "many.csv", users=140, each=2)))
    page.get_by_text("280 check-ins of 140 users", exact=False).first.wait_for()
    assert page.locator(".users label").count() == 100
    assert page.get_by_text("The 100 most frequent of 140 users").is_visible()
    looks = page.locator(".legend .swatch").evaluate_all("all => all.map((one) => one.outerHTML)")
    assert len(looks) == len(set(looks)) == 24
    page.fill("#find-user", "USER13")
    assert page.locator(".users label").count() == 11  # 13 and 130 to 139
    page.get_by_role("button", name="Untick those found").click()
    page.get_by_role("button", name="Select", exact=True).click()
    page.get_by_text("258 check-ins of 129 users", exact=False).first.wait_for()
    page.get_by_role("button", name="Tick those found", exact=True).click()
    page.get_by_role("button", name="Keep the 6 most frequent").click()
    page.get_by_text("12 check-ins of 6 users", exact=False).first.wait_for()
    assert page.get_by_role("button", name="Keep the 6 most frequent").count() == 0
    page.fill("#find-user", "")
    ticked = "document.querySelectorAll('.users input:checked').length"
    wait_until(page, f"{ticked} === 6")
    assert page.input_value("#top") == "6"
    page.locator(".users input:checked").first.uncheck()
    assert page.input_value("#top") == ""  # the ticks say who is meant
    page.get_by_role("button", name="Select", exact=True).click()
    page.get_by_text("10 check-ins of 5 users", exact=False).first.wait_for()
    wait_until(page, f"{ticked} === 5")


def test_a_rare_user_with_a_short_name_is_found(page: Any, tmp_path: Path) -> None:
    """User 1 has one check-in, and 120 users whose names hold a 1 have two each."""
    rows = ["1,48.86,2.35"]
    rows += [f"1{user:03},{48.86 + user / 1e4},2.35" for user in range(120) for _ in range(2)]
    (tmp_path / "short.csv").write_text("user,lat,lon\n" + "\n".join(rows) + "\n")
    page.set_input_files("#file", str(tmp_path / "short.csv"))
    page.get_by_text("241 check-ins of 121 users", exact=False).first.wait_for()
    page.fill("#find-user", "1")
    assert page.locator(".users label").count() == 100
    assert page.locator(".users label").first.inner_text().split() == ["1", "1"]


def test_of_many_users_the_most_frequent_are_in_the_legend_and_a_quarter_is_proposed(
    page: Any, tmp_path: Path
) -> None:
    """Forty users are together, and each was once 20 km to the north; two are frequent."""
    rows = [
        f"u{user},{48.86 + user % 7 / 1000},{2.35 + row / 1000}"
        for user in range(40)
        for row in range(3)
    ]
    rows += [f"u{user},49.04,2.35" for user in range(40)]
    rows += [f"u{user},48.861,2.352" for user in (38, 39) for _ in range(5)]
    (tmp_path / "wide.csv").write_text("user,lat,lon\n" + "\n".join(rows) + "\n")
    page.set_input_files("#file", str(tmp_path / "wide.csv"))
    page.get_by_text("170 check-ins of 40 users", exact=False).first.wait_for()
    names = page.locator(".legend li").all_inner_texts()
    assert names[:2] == ["u38", "u39"] and "16 more" in names[-1]
    page.get_by_role("button", name="Keep the 6 most frequent of the busiest 5 km").click()
    page.get_by_text("check-ins of 6 users", exact=False).first.wait_for()
    assert page.input_value("#side") == "5000"
    assert abs(float(page.input_value("#lat")) - 48.863) < 0.02


def test_the_name_of_a_figure_leads_to_what_it_means(page: Any) -> None:
    page.get_by_role("button", name="Four corners").click()
    page.get_by_text("2,400 check-ins of 4 users", exact=False).first.wait_for()
    page.get_by_role("link", name="blind guess").focus()
    page.keyboard.press("Enter")
    assert page.locator("#means-blind").get_by_text("No mechanism hides better").is_visible()
    assert page.evaluate("document.activeElement.id") == "means-blind"
    page.evaluate("scrollTo(0, 9999)")
    page.get_by_role("tab", name="Solve").click()
    wait_until(page, "scrollY === 0")  # a panel is read from its beginning
    for term in page.locator("a.term").all():
        assert page.locator(term.get_attribute("href")).count() == 1


def test_every_panel_says_what_the_figures_mean(page: Any) -> None:
    page.get_by_role("button", name="Four corners").click()
    page.get_by_text("2,400 check-ins of 4 users", exact=False).first.wait_for()
    for panel in ("Data", "Solve", "Compare", "Attack", "Take away"):
        page.get_by_role("tab", name=panel).click()
        assert page.get_by_text("What do the figures mean?").is_visible()
    page.get_by_text("What do the figures mean?").click()
    terms = page.locator(".glossary dt").all_inner_texts()
    assert {"Bayes error ↑", "Exposed ↓", "Gap ↓", "Budget", "Blind guess"} <= set(terms)


def test_of_many_users_the_sender_has_a_bar_too(page: Any) -> None:
    rows = page.evaluate(
        """async () => {
          const at = (name) => new URL(name, document.querySelector("script[src]").src).href;
          const { html, render } = await import(at("html.js"));
          const { Bars } = await import(at("parts.js"));
          const users = Array.from({ length: 20 }, (_, at) => ({ name: `u${at}` }));
          const values = users.map((_, at) => (20 - at) / 210);
          const place = document.createElement("div");
          render(html`<${Bars} users=${users} values=${values} sender="u19" label="" />`, place);
          return [...place.querySelectorAll(".who")].map((one) => one.textContent);
        }"""
    )
    assert rows == [*(f"u{at}" for at in range(12)), "u19 ✓"]

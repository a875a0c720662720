"""The documentation site is whole: links hold, every public name and command is there, and nothing
comes from elsewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sfumato.cli import _COMMANDS
from sfumato.mechanism.loss import LOSSES
from tests.browser import launched
from tools import site

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make site` builds it; a warning fails the build."""
    folder = tmp_path_factory.mktemp("site")
    made = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "-d", str(folder)],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    return folder


def test_every_public_name_and_every_command_is_in_the_reference(built: Path) -> None:
    for space, names in site.spaces().items():
        page = (built / f"reference/{space}.html").read_text("utf-8")
        headings = set(
            re.findall(rf"</code>\s+{re.escape(space)}\.(\w+)\n", page.replace("<wbr>", ""))
        )
        assert headings == set(names), space
    pages = {path.stem for path in (built / "reference/commands").glob("*.html")}
    assert pages == set(_COMMANDS)
    solve = (built / "reference/commands/solve.html").read_text("utf-8")
    assert "--max-loss" in solve and "sfumato solve four-corners" in solve
    assert f"[{'|'.join(LOSSES)}]" in solve
    for page in (built / "reference").rglob("*.html"):
        assert not re.search(r"<td>\s*</td>", page.read_text("utf-8")), page  # all is said
    names = (built / "reference/sfumato.html").read_text("utf-8")
    assert "solver.setting.setting" not in names  # a default, not how it is made
    assert "Number of report places; unless set, by area" in names


def test_a_signature_has_the_public_name(built: Path) -> None:
    names = (built / "reference/sfumato.html").read_text("utf-8")
    assert '<span class="nf">certify</span>' in names and "certify_run</span>" not in names


def test_a_cell_with_a_sentence_is_marked_as_long() -> None:
    long, short = "how often the best single guess of the secret is wrong", "0.60"
    assert (
        site.on_page_content(f'<td>{short}</td><td style="x">{long}</td>')
        == f'<td>{short}</td><td class="long" style="x">{long}</td>'
    )


def test_examples_in_docstrings_are_code(built: Path) -> None:
    for space in site.spaces():
        assert "&gt;&gt;&gt; " not in re.sub(
            r"<code>.*?</code>",
            "",
            (built / f"reference/{space}.html").read_text("utf-8"),
            flags=re.S,
        )


def test_a_page_loads_nothing_from_elsewhere(built: Path) -> None:
    pages = list(built.rglob("*.html"))
    assert len(pages) > 80
    for page in pages:
        loaded = re.findall(
            r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=\"?(?:https?:)?//[^>]*",
            page.read_text("utf-8"),
        )
        assert not loaded, (page, loaded)
    assert "bayes_error" in (built / "search/search_index.js").read_text("utf-8")


def test_a_printed_table_keeps_its_lines_whole(built: Path) -> None:
    code = '<div class="highlight"><pre><span></span><code>{}</code></pre></div>'
    table = "mechanism  loss m  Bayes error\nlaplace     173.0        0.240"
    assert site.on_page_content(code.format(table)).startswith('<div class="highlight columns">')
    command = "sfumato solve four-corners --max-loss 173\nsfumato data  x  y"
    assert site.on_page_content(code.format(command)).startswith('<div class="highlight"><pre>')
    remarks = "a  # one\nb  # two\nc  # three"
    assert "columns" in site.on_page_content(code.format(remarks))
    assert "columns" not in site.on_page_content(code.format(remarks[:-9]))
    for name in ("compare", "many-reports", "mechanisms-of-your-own", "not-only-places"):
        assert "highlight columns" in (built / f"guides/{name}.html").read_text("utf-8")


def test_a_line_ends_neither_in_an_option_nor_in_an_interval(built: Path) -> None:
    whole = '<span class="whole">{}</span>'
    code = "<p><code>sfumato solve four-corners --max-loss 173 -o x-y</code> --bare</p>"
    assert site.on_page_content(code) == code.replace(
        "--max-loss", whole.format("--max-loss")
    ).replace("-o", whole.format("-o"))
    interval = '<span class="interval">{}</span>'
    for cell in ("(0.59 to 0.62)", "1.5 ± 0.2", "[3, 4]"):
        text = f"<td>0.61 {cell} (read to us)</td>"
        assert site.on_page_content(text) == text.replace(cell, interval.format(cell))
    assert site.on_page_content("<td>1,000 m</td>") == f"<td>{whole.format('1,000 m')}</td>"
    assert site.on_page_content("<td>at most 4</td>") == f"<td>{whole.format('at most 4')}</td>"
    link = '<td><a href="a.b.c--d"><code>a.b.c</code></a></td>'
    assert site.on_page_content(link) == link.replace(">a.b.c<", ">a.<wbr>b.<wbr>c<")
    assert "measure.<wbr>bayes_error" in (built / "reference/sfumato.measure.html").read_text()
    table = (built / "reference/commands/measure.html").read_text("utf-8")
    assert not re.search(r"<td>[^<]*\s--[a-z]", re.sub(r"<code>.*?</code>", "", table))


def test_a_figure_leads_to_its_picture(built: Path) -> None:
    page = (built / "index.html").read_text("utf-8")
    assert re.search(r'<a class="figure" href="images/demo.png"><img alt="[^"]+"', page)
    for path in built.rglob("*.html"):
        for image in re.findall(r"<img [^>]*>", path.read_text("utf-8")):
            source = re.search(r'src="([^"]+)"', image)
            assert re.search(r'alt="[^"]+"', image) and source, (path, image[:80])
            assert source[1].startswith("data:") or (path.parent / source[1]).is_file(), source[1]
    style = (built / "stylesheets/site.css").read_text("utf-8")
    for name in re.findall(r"url\(\.\./([^)]+)\)", style):
        assert (built / name).is_file(), name


def test_the_page_for_a_wrong_address_has_its_style_as_a_file_too(built: Path) -> None:
    page = (built / "404.html").read_text("utf-8")
    loaded = re.findall(r'<(?:link|script)[^>]* (?:href|src)="([^"]+)"', page)
    assert len(loaded) > 4 and all((built / name).is_file() for name in loaded), loaded
    assert page.index('<base href="/">') < page.index("stylesheet")  # on a server: from its root


def test_a_link_to_nowhere_fails_the_build(caplog: pytest.LogCaptureFixture) -> None:
    lines = list(site._lines(["See [it](nowhere.md)."], "docs/guides/x.md", "guides/x.md"))
    assert lines == ["See [it](nowhere.md)."]
    assert "docs/guides/nowhere.md, which is not there" in caplog.text
    assert all(record.levelname == "WARNING" for record in caplog.records)


def test_links_out_of_the_documents_lead_to_their_pages_and_lists_are_lists() -> None:
    lines = [
        "Two things",
        "- [changes](../../CHANGELOG.md#x)",
        "- [code](../../src/sfumato/show.py)",
    ]
    assert list(site._lines(lines, "docs/guides/x.md", "guides/x.md")) == [
        "Two things",
        "",
        "- [changes](../changes.md#x)",
        "- code",
    ]


def test_the_list_of_all_documents_is_a_page_of_its_own(built: Path) -> None:
    """The README stands first on the site; its link to the list led back to itself."""
    assert '<a href="documents.html">All documents</a>' in (built / "index.html").read_text("utf-8")
    listed = (built / "documents.html").read_text("utf-8")
    for name in ("guides/install", "concepts/the-chain", "changes", "reproduction/deviations"):
        assert f'href="{name}.html"' in listed


_CONTRAST = """() => {
  const light = (colour) => { const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3)
    .map((part) => part / 255).map((part) => part > .04 ? ((part + .055) / 1.055) ** 2.4 : part / 12.92);
    return .2126 * r + .7152 * g + .0722 * b + .05; };
  const code = getComputedStyle(document.querySelector(".md-content p a > code"));
  const pair = [light(code.color), light(code.backgroundColor)];
  return Math.max(...pair) / Math.min(...pair); }"""
_SCROLLS = """() => [...document.querySelectorAll(".md-content p img")]
  .map((image) => [image, image.closest("p")])
  .filter(([image, p]) => p.scrollWidth > p.clientWidth && image.width > 500)
  .map(([image, p]) => getComputedStyle(p, "::after").position)"""


def test_dark_links_can_be_read_and_wide_figures_show_on_a_phone_that_they_go_on(
    built: Path,
) -> None:
    """Links in code had a contrast of 4.2: the theme's own rule for dark pages was the stronger."""
    with launched() as browser:
        phone = browser.new_page(color_scheme="dark", viewport={"width": 390, "height": 844})
        phone.goto((built / "concepts/regions-and-grids.html").as_uri())
        assert phone.evaluate(_CONTRAST) >= 4.5
        for name, wide in (("reproduction/whole", 9), ("notebooks/your-own-mechanism", 1)):
            phone.goto((built / f"{name}.html").as_uri())
            found = phone.evaluate(_SCROLLS)
            assert len(found) >= wide and set(found) == {"sticky"}, (name, found)
            assert phone.evaluate("document.documentElement.scrollWidth") <= 390

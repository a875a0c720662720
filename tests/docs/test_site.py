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
        headings = set(re.findall(rf"</code>\s+{re.escape(space)}\.(\w+)\n", page))
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
    assert site.on_page_content(code.format(command)) == code.format(command)
    for name in ("compare", "many-reports", "mechanisms-of-your-own", "not-only-places"):
        assert "highlight columns" in (built / f"guides/{name}.html").read_text("utf-8")


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

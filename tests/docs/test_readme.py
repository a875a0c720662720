"""What the documents show is what the code does."""

import contextlib
import gzip
import io
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sfumato as sf
from sfumato.solver.codebook import settings

_ROOT = Path(__file__).resolve().parents[2]
_README = _ROOT / "README.md"
_PAGES = [
    _README,
    _ROOT / "CHANGELOG.md",
    _ROOT / "CONTRIBUTING.md",
    *sorted((_ROOT / "docs").rglob("*.md")),
]
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_WITHIN = {
    "loss m": 2.0,
    "Bayes error ↑": 0.02,
    "exposed ↓": 2.0,
}
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def _blocks(page: Path) -> list[str]:
    """A page's python blocks; those that show a prompt are doctests, and test_pages.py runs
    them."""
    return [
        block
        for block in _BLOCK.findall(page.read_text(encoding="utf-8"))
        if not block.startswith(">>>")
    ]


def _name(page: Path) -> str:
    return page.relative_to(_ROOT).as_posix()


def _run(page: Path) -> str:
    """Run a page's python blocks in order, in one namespace; gives what they print."""
    printed = io.StringIO()
    names: dict[str, object] = {}
    with contextlib.redirect_stdout(printed):
        for block in _blocks(page):
            exec(compile(block, _name(page), "exec"), names)
    return printed.getvalue()


def _printed_rows(text: str) -> list[list[str]]:
    """The rows of the comparison table in a terminal's text, by column; cells are two or more
    blanks apart."""
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("mechanism "))
    rows = []
    for line in lines[start:]:
        if line.startswith("on "):
            break
        rows.append(re.split(r"\s{2,}", line.strip()))
    return rows


def _markdown_rows(text: str) -> list[list[str]]:
    """The rows of the Markdown table that begins with the column `mechanism`."""
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("| mechanism |"))
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return [rows[0], *rows[2:]]


def _by_column(rows: list[list[str]]) -> list[dict[str, str]]:
    """Each row under the heads of the first."""
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def _learn_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few check-ins and few steps for lines whose figures nobody shows; the demo learns in full."""
    few = sf.four_corners(seed=0).train.split(15, 5)
    monkeypatch.setattr(sf, "four_corners", lambda seed: few)
    monkeypatch.setattr(settings, "_STEPS", 100)


def test_the_readmes_lines_run(monkeypatch: pytest.MonkeyPatch) -> None:
    _learn_little(monkeypatch)
    assert len(_blocks(_README)) == 1
    assert [row[0] for row in _printed_rows(_run(_README))] == [
        "mechanism",
        "laplace",
        "codebook",
        "exact",
    ]


def test_the_readmes_table_is_what_the_demo_prints(
    tmp_path: Path, optimised: dict[str, str]
) -> None:
    command = [sys.executable, "-m", "sfumato", "demo", "--out", str(tmp_path / "demo")]
    ended = subprocess.run(command, env=optimised, capture_output=True, text=True, check=True)
    shown = _by_column(_markdown_rows(_README.read_text(encoding="utf-8")))
    printed = _by_column(_printed_rows(ended.stdout))
    assert [row["mechanism"] for row in shown] == [row["mechanism"] for row in printed]
    for ours, theirs in zip(shown, printed, strict=True):
        # The last digits of a learner are those of a machine's rounding: another ends at another
        # law as good.
        solved = ours["mechanism"] == "codebook"
        for column, text in ours.items():
            within = _WITHIN.get(column, 0.0) if solved else 0.0
            assert re.sub(_NUMBER, "", text) == re.sub(_NUMBER, "", theirs[column])
            numbers = zip(
                re.findall(_NUMBER, text), re.findall(_NUMBER, theirs[column]), strict=True
            )
            assert all(abs(float(a) - float(b)) <= within for a, b in numbers), column
            if column == "loss m":
                assert float(re.findall(_NUMBER, theirs[column])[0]) <= 173, ours["mechanism"]
    (best,) = re.findall(r"Bayes error of at most (0\.\d+)", ended.stdout)
    (told,) = re.findall(
        r"It is \[proved\].+ has more than (0\.\d+), if", _README.read_text("utf-8")
    )
    assert abs(float(best) - float(told)) <= 0.01


# test_extend.py follows extend.md.
_WITH_CODE = [
    page for page in _PAGES if page != _README and page.name != "extend.md" and _blocks(page)
]


@pytest.mark.parametrize("page", _WITH_CODE, ids=_name)
def test_the_code_of_a_page_runs_and_prints_the_tables_shown(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(_ROOT / "examples")
    random = np.random.default_rng(0)
    with gzip.open(
        "checkins.txt.gz", "wt", encoding="utf-8"
    ) as snap:  # stands for the SNAP file that a reader has
        for user in range(6):
            for north, east in random.normal(0, 0.003, (110, 2)):
                snap.write(
                    f"{user}\t2010-10-19T23:55:27Z\t{48.8584 + north:.6f}\t{2.3482 + east:.6f}\t22847\n"
                )
    pairs = random.normal(0, 150, (400, 4))
    np.savetxt(
        "pairs.csv", pairs, delimiter=",", header="truth_x,truth_y,report_x,report_y", comments=""
    )
    if page.name == "learned.md":
        _learn_little(monkeypatch)
    printed = _run(page).splitlines()
    text = page.read_text(encoding="utf-8")
    shown = re.findall(r"^    (mechanism .*(?:\n    .+)*)", text, re.MULTILINE)
    assert all(line.strip() in printed for table in shown for line in table.splitlines())


def test_the_table_of_hits_is_what_its_lines_print() -> None:
    page = _ROOT / "docs" / "concepts" / "exact-estimated-bounded.md"
    printed = re.findall(
        r"^(\d+) <Estimate ([\d.]+), ([\d.]+) to ([\d.]+) ", _run(page), re.MULTILINE
    )
    shown = re.findall(
        r"^\| (\d+) \| ([\d.]+) \| ([\d.]+) to ([\d.]+) \|$",
        page.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    assert shown == [
        (hits, *(f"{float(number):.3f}" for number in numbers)) for hits, *numbers in printed
    ]
    assert len(shown) == 4


def _anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as the usual renderers make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    }


@pytest.mark.parametrize("page", _PAGES, ids=_name)
def test_relative_links_resolve(page: Path) -> None:
    broken = []
    for link in _LINK.findall(page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        found = target.exists() and (
            not anchor or (target.suffix == ".md" and anchor in _anchors(target))
        )
        if not found:
            broken.append(link)
    assert not broken

"""The page around the figures: style, skeleton, tables, and what does not change from report to
report."""

from collections.abc import Sequence
from html import escape
from string import Template

_STYLE = """
:root {
  color-scheme: light dark;
  --paper: #fbfaf8; --card: #fff; --ink: #1d2329; --soft: #5b656e; --line: #d9dcdf;
  --warn: #7a2d00; --warn-paper: #fff1e3; --warn-line: #e08a3c;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #14181c; --card: #1d2329; --ink: #e8eaec; --soft: #a3adb6; --line: #3a424a;
    --warn: #ffd2a8; --warn-paper: #3a2412; --warn-line: #b3651d;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); }
body { font: 16px/1.55 system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif; }
main { max-width: 74rem; margin: 0 auto; padding: 1.5rem 1.25rem 4rem; }
h1 { font-size: clamp(1.5rem, 1.1rem + 2vw, 2.1rem); line-height: 1.2; margin: 1.25rem 0 0.5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.3rem; margin: 2.5rem 0 0.5rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 0.25rem; }
p, li, dd { max-width: 50rem; }
a { color: inherit; }
small, caption, figcaption, .note { color: var(--soft); font-size: 0.88rem; }
.lead { font-size: 1.12rem; margin: 0.5rem 0; overflow-wrap: anywhere; }
.banner { border: 2px solid var(--warn-line); background: var(--warn-paper); color: var(--warn); border-radius: 8px; padding: 0.7rem 1rem; }
.banner p { margin: 0; max-width: none; }
nav { font-size: 0.92rem; margin: 1rem 0 0; display: flex; flex-wrap: wrap; gap: 0.2rem 1.1rem; }
.scroll { overflow-x: auto; margin: 0.75rem 0 1rem; border: 1px solid var(--line); border-radius: 8px; background: var(--card); }
table { border-collapse: collapse; width: 100%; font-size: 0.92rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding: 0.6rem 0.7rem; }
caption span { display: inline-block; position: sticky; left: 0.7rem; max-width: min(100%, calc(100vw - 4rem)); }
th, td { padding: 0.45rem 0.7rem; text-align: right; vertical-align: top; border-top: 1px solid var(--line); }
thead th { vertical-align: bottom; }
thead th[colspan] { text-align: center; overflow-wrap: anywhere; }
th:first-child, td:first-child { text-align: left; }
th[scope=row] { position: sticky; left: 0; background: var(--card); min-width: 6.5rem; max-width: 14rem; overflow-wrap: break-word; }
td { white-space: nowrap; }
td small { display: block; }
.texts td, .texts th { text-align: left; }
.texts td { white-space: normal; overflow-wrap: anywhere; min-width: 9rem; }
.over { color: var(--warn); font-weight: 600; }
.panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 19rem), 1fr)); gap: 1.1rem; margin: 1rem 0; }
.two { grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); }
.stack { display: grid; gap: 1.1rem; align-content: space-between; }
figure { margin: 0; border: 1px solid var(--line); border-radius: 8px; background: var(--card); overflow: hidden; }
figure h3 { margin: 0; padding: 0.6rem 0.9rem; overflow-wrap: anywhere; }
figure div { background: #fff; }
figure img { display: block; width: 100%; max-width: 34rem; margin: 0 auto; height: auto; }
figcaption { padding: 0.55rem 0.9rem 0.7rem; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 0.3rem 1.1rem; padding: 0; margin: 0.75rem 0; max-width: none; }
.legend li { overflow-wrap: anywhere; }
.mark { width: 1.05em; height: 1.05em; vertical-align: -0.16em; margin-right: 0.4em; overflow: visible; }
dt { font-weight: 600; margin-top: 0.7rem; }
dd { margin: 0; }
code { font: 0.86em/1.4 ui-monospace, "Liberation Mono", Menlo, monospace; }
@media (max-width: 40rem) {
  main { padding: 1rem 0.8rem 3rem; }
  th, td { padding: 0.4rem 0.55rem; }
  th[scope=row] { max-width: 8rem; }
}
@media print {
  :root {
    color-scheme: light;
    --paper: #fff; --card: #fff; --ink: #000; --soft: #444; --line: #bbb; --warn: #000; --warn-paper: #fff; --warn-line: #000;
  }
  @page { margin: 14mm; }
  body { font-size: 10pt; }
  main { max-width: none; padding: 0; }
  nav { display: none; }
  .scroll { overflow: visible; border: 0; }
  table { font-size: 8pt; }
  th, td { padding: 0.2rem 0.3rem; }
  small { font-size: 6.5pt; }
  th[scope=row] { position: static; min-width: 0; }
  figure, tr, .banner, dd { break-inside: avoid; }
  h2, h3, dt, caption, thead { break-after: avoid; }
  .panels { grid-template-columns: repeat(auto-fill, minmax(5.4cm, 1fr)); gap: 0.5rem; }
  .two { grid-template-columns: 1fr 1fr; }
  caption span { position: static; max-width: none; }
}
"""

_PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>$title</title>
<style>$style</style>
</head>
<body>
<main>
<div class="banner" role="note"><p><strong>This page contains true locations.</strong>
It shows where named users really were. Keep it as you keep the data; do not publish it.</p></div>
<h1>$title</h1>
<p class="lead">$summary</p>
<nav aria-label="Sections">$links</nav>
$sections
</main>
</body>
</html>
""")

HOW_TO_READ = """
<dl>
<dt>Loss</dt><dd>The distance between truth and report, on average over the check-ins. Compare leakage only at equal loss.</dd>
<dt>Bayes error ↑</dt><dd>The chance that the best single guess of the user is wrong, for an adversary who knows the mechanism and
the law of these very points. Higher is more private. The ceiling is the error of a guess that sees no report.</dd>
<dt>Information ↓</dt><dd>What a report tells about the user, in bits, on average. Lower is more private.</dd>
<dt>Exposed ↓</dt><dd>The share of reports after which one user is more than 90% likely.</dd>
<dt>Worst report ↓</dt><dd>The largest chance that any possible report gives to any user. 1 means that some report gives somebody
away.</dd>
<dt>Learnt error ↑</dt><dd>The error of an adversary who learnt the best guesses on training data and is judged on this data. It
is one adversary: a better one may err less.</dd>
<dt>Geo-indistinguishability ↓</dt><dd>The largest epsilon per metre by which two truths can be told apart by their reports. ∞
means that one truth sends a report that another never sends: no guarantee of this kind holds.</dd>
<dt>Cell side</dt><dd>Leakage is measured on square cells of this side. Merging reports into cells can only raise the Bayes error
and lower the information. Figures on different cells are different facts.</dd>
<dt>Exact, estimate, bound</dt><dd><em>Exact</em> is computed from the mechanism's law on this data; nothing is sampled.
<em>Estimate</em> is measured from drawn reports and stands with its 95% interval; with few reports a cell the Bayes error comes
out too low, information and exposed too high.
<em>Bound</em> holds for every mechanism within the budget.</dd>
</dl>
<h3>What is not protected</h3>
<ul>
<li>Averages are not worst cases. A mean loss or a mean error can hide one user who is always found. Read the users' table and the
worst cases.</li>
<li>Each figure is for one report. Who reports many times tells more each time, unless a report is kept and sent again.</li>
<li>Only the link from report to user among the users here is judged. Time, speed, device and account are not hidden.</li>
<li>The figures hold for this data. Other people and other places can leak more.</li>
</ul>
"""


def page(*, title: str, summary: str, sections: Sequence[tuple[str, str, str]]) -> str:
    """The whole document.  `title` is plain text, `summary` is HTML, a section is (id, plain
    heading, HTML)."""
    links = " ".join(f'<a href="#{name}">{escape(heading)}</a>' for name, heading, _ in sections)
    bodies = "\n".join(
        f'<section aria-labelledby="{name}">\n<h2'
        f' id="{name}">{escape(heading)}</h2>\n{body}\n</section>'
        for name, heading, body in sections
    )
    return _PAGE.substitute(
        title=escape(title), style=_STYLE, summary=summary, links=links, sections=bodies
    )


def table(caption: str, head: str, rows: Sequence[Sequence[str]], *, look: str = "") -> str:
    """A table whose rows begin with a heading.  All given as HTML; `head` is the rows of the
    head."""
    body = "\n".join(
        f'<tr><th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in rest) + "</tr>"
        for first, *rest in rows
    )
    kind = f' class="{look}"' if look else ""
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(caption)}">'
        f"<table{kind}><caption><span>{escape(caption)}</span></caption>\n"
        f"<thead>{head}</thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def head_row(names: Sequence[str], *, span: int = 1) -> str:
    """One row of column headings, plain text; with `span`, all but the first stretch over that many
    columns."""
    first, *rest = [
        escape(name).replace(" ↑", "&nbsp;↑").replace(" ↓", "&nbsp;↓") for name in names
    ]
    scope = 'scope="col"' if span == 1 else f'scope="colgroup" colspan="{span}"'
    return (
        f'<tr><th scope="col">{first}</th>'
        + "".join(f"<th {scope}>{name}</th>" for name in rest)
        + "</tr>"
    )


def figure(address: str, alt: str, *, heading: str = "", note: str = "") -> str:
    """A picture with words for those who cannot see it.  `note` is HTML; the rest is plain text."""
    title = f"<h3>{escape(heading)}</h3>" if heading else ""
    below = f"<figcaption>{note}</figcaption>" if note else ""
    return f'<figure>{title}<div><img src="{address}" alt="{escape(alt)}"></div>{below}</figure>'

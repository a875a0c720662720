"""What the documentation site (`make site`, `mkdocs.yml`) has beside the pages of docs/: the
reference, made from the code; the notebooks; and the pages that lie elsewhere in the repository.

MkDocs calls the functions whose names start with `on_`.
"""

import ast
import html
import inspect
import logging
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from posixpath import dirname, join, normpath, relpath
from types import ModuleType
from typing import Any

import click
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import sfumato
from sfumato.cli import cli
from tools import notebooks

ROOT = Path(__file__).parents[1]
LOG = logging.getLogger("mkdocs.plugins.site")  # a warning of this one fails a strict build
# Where a page of the repository that is not in docs/ stands on the site.
ELSEWHERE = {
    "README.md": "index.md",
    "docs/index.md": "documents.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "benchmarks/RESULTS.md": "benchmarks.md",
    "paper/deviations.md": "reproduction/deviations.md",
    "examples/new-city/README.md": "guides/new-city.md",
}
SPACES = ("data", "mechanism", "adversary", "measure", "solver", "deploy")
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^\s*```")
_CODE = re.compile(r'<div class="highlight">(?=<pre>(.*?)</pre>)', re.DOTALL)
_TAG = re.compile(r"<[^>]+>")
_COLUMNS = re.compile(r"\S {2,}(?=\S)")  # what stands between two columns
_LONG = 28
_OPTION = re.compile(r"(--[a-z][a-z-]*)")
_ITEM = re.compile(r"^([-*]|\d+\.) ")
_FIGURE = re.compile(r'<p>(<img [^>]*src="(?![^"]*studio-)([^"]+\.png)"[^>]*>)</p>')
_LONG_CELL = re.compile(r"<td(?=[^>]*>[^<]{45})")
_SPAN = re.compile(r"<code>.*?</code>|<td[^>]*>.*?</td>|<h2 .*?</h2>", re.DOTALL)
_DASHED = re.compile(r"(?<![\w&/.-])(-{1,2}[a-z][\w-]*)(?![^<]*>)")  # an option
_NUMBER = r"[-−≈]?\d[\d.,]*"
_INTERVAL = re.compile(
    rf"\({_NUMBER} to {_NUMBER}\)|\[{_NUMBER}, {_NUMBER}\]|{_NUMBER} ± {_NUMBER}"
)
_UNIT = re.compile(
    rf"(?:{_NUMBER} (?:m|km|s|MB|GB|%)(?!\w)|at (?:most|least) {_NUMBER}%?)(?![^<]*</span>)"
)
_DOTTED = re.compile(r"\b[a-z]+\.[a-z]+\.[\w.]+(?![^<]*>)")  # a name in a package


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made, and put the README first, where the list of pages was."""
    pages = {uri: (ROOT / name).read_text("utf-8") for name, uri in ELSEWHERE.items()}
    pages |= dict(reference())
    pages |= {f"notebooks/{p.stem}.md": notebooks.page(p) for p in notebooks.FOLDER.glob("*.ipynb")}
    for uri, text in pages.items():
        known = files.get_file_from_path(uri)
        if known is not None:
            files.remove(known)
        files.append(File.generated(config, uri, content=text))
    config.nav = _filled(config.nav, [file.src_uri for file in files.documentation_pages()])
    return files


def _filled(nav: Any, uris: list[str]) -> Any:
    """The navigation in which a folder (`guides/`) stands for those of its pages that are named
    nowhere."""
    named: set[str] = set()

    def collect(entry: Any) -> None:
        if isinstance(entry, str):
            named.add(entry)
        else:
            for inner in entry.values() if isinstance(entry, dict) else entry:
                collect(inner)

    def fill(entry: Any) -> Iterator[Any]:
        if isinstance(entry, dict):
            yield {
                title: inner if isinstance(inner, str) else [x for y in inner for x in fill(y)]
                for title, inner in entry.items()
            }
        elif entry.endswith("/"):
            yield from sorted(
                uri for uri in uris if dirname(uri) + "/" == entry and uri not in named
            )
        else:
            yield entry

    collect(nav)
    return [x for y in nav for x in fill(y)]


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Links as they are on the site, lists as they are on GitHub."""
    uri = page.file.src_uri
    home = {there: here for here, there in ELSEWHERE.items()}.get(uri, f"docs/{uri}")
    return "\n".join(_lines(markdown.splitlines(), home, uri))


def on_post_template(output_content: str, template_name: str, **_: Any) -> str:
    """404.html, which a server shows at any address, also has its style when opened as a file."""
    if template_name != "404.html":
        return output_content
    base = (
        """<script>if (location.protocol !== "file:") document.write('<base href="/">')</script>"""
    )
    relative = re.sub(
        r'((?:href|src)=")/', r"\1", output_content.replace('"base": "/"', '"base": "."')
    )
    return relative.replace("<head>", f"<head>{base}", 1)


def on_page_content(content: str, **_: Any) -> str:
    """Mark blocks of code that hold a table: its lines stay whole, and it scrolls.  Say where else
    a line may end, and where not, and which cells hold a sentence.  A figure leads to the picture
    in its own size, and a function has its public name."""
    for called, name in _renamed().items():
        content = content.replace(
            f'<span class="nf">{called}</span>', f'<span class="nf">{name}</span>'
        )
    content = _LONG_CELL.sub('<td class="long"', content)
    content = _FIGURE.sub(r'<p><a class="figure" href="\2">\1</a></p>', content)
    return _SPAN.sub(_ends, _CODE.sub(_marked, content))


def _ends(found: re.Match[str]) -> str:
    """A line ends neither within an option, before a unit nor within an interval, but may after a
    name's dot."""
    text = found[0]
    if text.startswith("<h2"):
        return _dotted(text)
    if text.startswith("<td"):
        text = _INTERVAL.sub(r'<span class="interval">\g<0></span>', text)
        text = _UNIT.sub(r'<span class="whole">\g<0></span>', text)
        text = re.sub(r"<code>.*?</code>", lambda one: _dotted(one[0]), text)
    return _DASHED.sub(r'<span class="whole">\1</span>', text) if "<code>" in text else text


def _dotted(text: str) -> str:
    return _DOTTED.sub(lambda name: name[0].replace(".", ".<wbr>"), text)


def _marked(found: re.Match[str]) -> str:
    lines = html.unescape(_TAG.sub("", found[1])).splitlines()
    table = sum(len(_COLUMNS.findall(line.strip())) > 1 for line in lines) > 1
    table |= sum(" # " in line for line in lines) > 2  # remarks beside commands
    return '<div class="highlight columns">' if table else found[0]


def _lines(lines: list[str], home: str, uri: str) -> Iterator[str]:
    code = False
    before = ""
    for line in lines:
        if _FENCE.match(line):
            code = not code
        if not code and not line.startswith("    "):
            line = _LINK.sub(lambda found: _linked(found, home, uri), line)
            starts = (_ITEM.match(line) and not _ITEM.match(before)) or (
                line.startswith("|") and not before.startswith("|")
            )
            if starts and before.strip() and not before.startswith(" "):
                yield ""  # Python-Markdown wants an empty line before a list and before a table
        yield line
        before = line


def _linked(found: re.Match[str], home: str, uri: str) -> str:
    text, link = found.groups()
    if re.match(r"[a-z]+:|#", link):
        return found.group()
    path, mark, anchor = link.partition("#")
    target = normpath(join(dirname(home), path))
    if uri.startswith("reference/"):
        return found.group()
    if not (ROOT / target).exists():
        LOG.warning(f"{home} links to {target}, which is not there")
    if target in ELSEWHERE:
        there = ELSEWHERE[target]
    elif target.startswith("docs/"):
        there = target.removeprefix("docs/").replace(".ipynb", ".md")
    else:  # code and data: no pages
        return text
    return f"[{text}]({relpath(there, dirname(uri) or '.')}{mark}{anchor})"


def spaces() -> dict[str, list[str]]:
    """The public names: of `sfumato` itself and of each package below it."""
    found = {
        "sfumato": [
            name
            for name in dir(sfumato)
            if not name.startswith("_") and not isinstance(getattr(sfumato, name), ModuleType)
        ]
    }
    for space in SPACES:
        package = import_module(f"sfumato.{space}")
        found[package.__name__] = [
            name
            for name in sorted(package.__all__)
            if name not in found["sfumato"] or getattr(package, name) is not getattr(sfumato, name)
        ]
    return found


@cache
def _renamed() -> dict[str, str]:
    """The functions that are public under another name than they have in the code."""
    named = [(getattr(sfumato, name), name) for name in spaces()["sfumato"]]
    return {
        value.__name__: name for value, name in named if getattr(value, "__name__", name) != name
    }


def reference() -> Iterator[tuple[str, str]]:
    """The pages of the reference: one per package, one per command, and an overview."""
    overview = [
        "# Reference",
        "",
        "Here you find every public name and every command, made from the code.",
        "",
    ]
    for space, names in spaces().items():
        package = import_module(space)
        overview += [f"## [{space}]({space}.md)", "", "| name | what it is |", "|---|---|"]
        title = "# The package sfumato" if space == "sfumato" else f"# {space}"
        text = [title, "", _first(package.__doc__), ""]
        for name in names:
            value = getattr(package, name)
            path = f"{getattr(value, '__module__', space)}.{getattr(value, '__qualname__', name)}"
            if not hasattr(value, "__qualname__"):
                path = f"{space}.{name}"
            text += [f"::: {path}", "    options:", f"      heading: {space}.{name}"]
            text += [f"      toc_label: {name}", ""]
            line = _first(
                value.__doc__ if hasattr(value, "__qualname__") else _below(package, name)
            )
            overview.append(f"| [`{name}`][{path}] | {line.replace('|', chr(92) + '|')} |")
        overview.append("")
        yield f"reference/{space}.md", "\n".join(text)
    overview += ["## Commands", "", "| command | what it does |", "|---|---|"]
    context = click.Context(cli, info_name="sfumato")
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command is not None
        overview.append(f"| [`sfumato {name}`](commands/{name}.md) | {_first(command.help)} |")
        yield f"reference/commands/{name}.md", _command(command, context)
    yield "reference/index.md", "\n".join(overview) + "\n"


def _below(package: ModuleType, name: str) -> str:
    """The string that stands below a value in its package: what says what it is."""
    lines = ast.parse(inspect.getsource(package)).body
    named = [f"{name}:", f"{name} ="]
    for line, after in pairwise(lines):
        if ast.unparse(line).startswith(tuple(named)) and isinstance(after, ast.Expr):
            return str(ast.literal_eval(after.value))
    return ""


def _first(text: str | None) -> str:
    """The first sentence of a docstring, on one line."""
    paragraph = " ".join((text or "").strip().split("\n\n")[0].split())
    return re.split(r"(?<=[.?!]) ", paragraph)[0]


def _command(command: click.Command, parent: click.Context) -> str:
    """A command's own help as a page."""
    context = click.Context(command, parent=parent, info_name=command.name)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    paragraphs = [" ".join(part.split()) for part in (command.help or "").split("\n\n")]
    text = [f"# sfumato {command.name}", "", f"    {usage}", ""]
    for part in paragraphs:
        text += [_OPTION.sub(r"`\1`", html.escape(part, quote=False)), ""]
    for line in (command.epilog or "").replace("\b\n", "").strip().splitlines():
        title, _, example = line.partition(": ")
        text += [f"{title}:", "", f"    {example.strip()}", ""]
    rows = [
        record
        for one in command.get_params(context)
        if isinstance(one, click.Option) and (record := one.get_help_record(context))
    ]
    text += ["| option | what it does |", "|---|---|"]
    for option, words in rows:
        said = _OPTION.sub(r"`\1`", html.escape(words, quote=False).replace("|", "\\|"))
        shown = f"`{option}`"  # a bar in code separates no cells
        if len(option) > _LONG:  # a line may end between two choices
            shown = f"<code>{html.escape(option).replace('|', '&#124;<wbr>')}</code>"
        text.append(f"| {shown} | {said} |")
    return "\n".join(text) + "\n"

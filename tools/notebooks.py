"""Run the notebooks of docs/notebooks in this process and write their outputs into them.

    python -m tools.notebooks           # all, in place
    python -m tools.notebooks FILE OUT  # one, into another file

No kernel is started: cells are Python without magics, and what they print, the value of a last line
and the figures that are left open are their outputs.
"""

import ast
import base64
import contextlib
import html
import io
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")  # no window is opened

FOLDER = Path(__file__).parents[1] / "docs/notebooks"


def run(path: Path) -> dict[str, Any]:
    """A notebook with the outputs that its cells have now; they run in an empty folder that has
    the committed results beside it, as docs/notebooks has."""
    book = json.loads(path.read_text("utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    with tempfile.TemporaryDirectory() as root:
        here = Path(root, "notebooks")
        here.mkdir()
        results = shutil.ignore_patterns("*.png", "*.md")
        shutil.copytree(FOLDER.parent / "reproduction", Path(root, "reproduction"), ignore=results)
        for number, cell in enumerate(book["cells"]):
            cell["id"] = f"cell-{number}"
            if cell["cell_type"] == "code":
                count += 1
                cell["execution_count"] = count
                with contextlib.chdir(here):
                    cell["outputs"] = list(_outputs("".join(cell["source"]), names, count))
    return book


def _outputs(source: str, names: dict[str, Any], count: int) -> Iterator[dict[str, Any]]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    value = None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, "<cell>", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    if printed.getvalue():
        yield {"output_type": "stream", "name": "stdout", "text": _split(printed.getvalue())}
    if value is not None:
        yield {
            "output_type": "execute_result",
            "execution_count": count,
            "metadata": {},
            "data": _shown(value),
        }


def _shown(value: Any) -> dict[str, Any]:
    data: dict[str, Any] = {"text/plain": _split(repr(value))}
    if hasattr(value, "_repr_png_"):
        data["image/png"] = base64.b64encode(value._repr_png_()).decode()
    elif hasattr(value, "_repr_html_") and (text := value._repr_html_()):
        data["text/html"] = _split(text)
    elif hasattr(value, "_repr_markdown_"):
        data["text/markdown"] = _split(value._repr_markdown_())
    return data


def _split(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def page(path: Path) -> str:
    """A notebook as a page of the site."""
    parts = []
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {"text/plain": output.get("text", [])})
            if "image/png" in data:
                alt = html.escape(f"What {source.splitlines()[-1]} draws")
                parts.append(f'<img alt="{alt}" src="data:image/png;base64,{data["image/png"]}">')
            elif "text/html" in data:
                text = "".join(line.strip() + "\n" for line in data["text/html"] if line.strip())
                parts.append(f'<div class="output">\n{text}</div>')
            elif "text/markdown" in data:
                parts.append("".join(data["text/markdown"]))
            else:
                parts.append("```text\n" + "".join(data["text/plain"]).rstrip("\n") + "\n```")
    return "\n\n".join(parts) + "\n"


def main() -> None:
    given = [Path(word) for word in sys.argv[1:]]
    pairs = [(given[0], given[1])] if given else [(p, p) for p in sorted(FOLDER.glob("*.ipynb"))]
    for path, target in pairs:
        text = json.dumps(run(path), indent=1, ensure_ascii=False) + "\n"
        target.write_text(text, encoding="utf-8")
        print(target)


if __name__ == "__main__":
    main()

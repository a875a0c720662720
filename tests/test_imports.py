"""The package has no import cycle, not even one inside a function or for type checkers."""

import ast
import subprocess
import sys
from pathlib import Path

import sfumato

ROOT = Path(sfumato.__file__).parent


def _imports() -> dict[str, set[str]]:
    """For each module of the package the modules that it names in an import, wherever it stands.

    `sfumato` itself is left out: it is what puts the rooms together, and nothing imports names
    from it but modules.
    """
    paths = {
        ".".join(("sfumato", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(
            ".__init__"
        ): path
        for path in ROOT.rglob("*.py")
    }
    found: dict[str, set[str]] = {}
    for name, path in paths.items():
        found[name] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named: list[str] = []
            if isinstance(node, ast.Import):
                named = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                whole = [f"{node.module}.{alias.name}" for alias in node.names]
                named = [one if one in paths else node.module for one in whole]
            found[name] |= {one for one in named if one in paths and one not in ("sfumato", name)}
    del found["sfumato"]
    return found


def _cycles(imports: dict[str, set[str]]) -> list[list[str]]:
    """Strongly connected modules, by Tarjan's algorithm."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    cycles = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(imports[name]):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            at = stack.index(name)
            if len(stack) - at > 1:
                cycles.append(sorted(stack[at:]))
            del stack[at:]

    for name in sorted(imports):
        if name not in index:
            visit(name)
    return cycles


def test_no_module_imports_itself_by_way_of_others():
    assert _cycles(_imports()) == []


def test_a_cycle_would_be_found():
    assert _cycles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [["b", "c"]]
    assert "sfumato.data.samples" in _imports()["sfumato.solver.problem"]


def test_solving_does_not_load_the_heavy_parts_of_scipy():
    """They take 40 MB."""
    code = (
        "import sys, sfumato.study.solve;"
        " print([name for name in ('scipy.stats', 'scipy.optimize') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.strip() == "[]"

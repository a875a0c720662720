"""A package's names: written once, in the stub beside its `__init__.py`, imported on first use."""

import ast
from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any


def homes(package_file: str) -> dict[str, tuple[str, str]]:
    """Where each name of a package comes from: its module and its name there."""
    origins: dict[str, tuple[str, str]] = {}
    for node in ast.parse(Path(package_file).with_suffix(".pyi").read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            origins |= {name.asname or name.name: (node.module, name.name) for name in node.names}
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            origins |= {
                target.id: origins.pop(node.value.id)
                for target in node.targets
                if isinstance(target, ast.Name)
            }
    return origins


def lazy(package: str, package_file: str) -> tuple[Callable[[str], Any], list[str]]:
    """`__getattr__` and `__all__` for a package whose stub lists its names."""
    where = homes(package_file)

    def look_up(name: str) -> Any:
        if name not in where:
            said = _moved(package, package_file, name)
            if not said and (close := get_close_matches(name, where, n=1, cutoff=0.62)):
                said = f"; did you mean {package}.{close[0]}?"
            said = said or f"; help({package}) lists what it has"
            raise AttributeError(f"{package} has no '{name}'{said}")
        module, own = where[name]
        if module == package:
            return import_module(f"{package}.{own}")
        return getattr(import_module(module), own)

    return look_up, list(where)


def _moved(package: str, package_file: str, name: str) -> str:
    """Where a name is to be found now, if a package below has it."""
    for stub in sorted(Path(package_file).parent.glob("*/__init__.pyi")):
        if name in homes(str(stub)):
            return f"; it is {package}.{stub.parent.name}.{name}"
    return ""

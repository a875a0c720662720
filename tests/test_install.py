"""The plain install is enough for what does not learn, draw or serve; the rest is declared where it
is used, pinned with hashes, and listed."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from sfumato.errors import EXTRAS, MissingExtra, missing_extra, require
from tools import components

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "sfumato"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Where each extra may be imported: a file or folder of src/sfumato.
ROOMS = {
    "learn": ("adversary", "nets.py", "solver"),
    "report": ("render", "studio/serve.py"),
    "serve": ("deploy/service.py", "deploy/server.py", "studio"),
    "cluster": ("deploy/engines/dask.py",),
    "pandas": ("deploy/engines/pandas.py", "deploy/engines/geopandas.py"),
    "geopandas": ("deploy/engines/geopandas.py",),
    "polars": ("deploy/engines/polars.py",),
    "duckdb": ("deploy/engines/duckdb.py",),
    "spark": ("deploy/engines/spark.py",),
}


def _names(lines: list[str]) -> set[str]:
    return {canonicalize_name(Requirement(line).name) for line in lines}


def _imported() -> dict[str, set[Path]]:
    """The packages of others that src/ imports, anywhere in a file, with the files."""
    found: dict[str, set[Path]] = {}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [one.name for one in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            elif isinstance(node, ast.Call) and ast.unparse(node.func) == "import_module":
                names = [one.value for one in node.args if isinstance(one, ast.Constant)]
            for name in names:
                top = name.partition(".")[0]
                if top not in sys.stdlib_module_names and top != "sfumato":
                    found.setdefault(top, set()).add(path.relative_to(SOURCE))
    return found


def test_what_is_imported_is_declared_and_an_extra_is_used_only_where_it_may_be() -> None:
    core = _names(PROJECT["dependencies"])
    imported = _imported()
    assert {"numpy", "jax", "matplotlib", "starlette"} <= set(imported)
    for module, files in imported.items():
        extra = next((one for one, modules in EXTRAS.items() if module in modules), None)
        if extra is None:
            assert module in core, f"{module} is imported by {files} and not declared"
            continue
        assert module in _names(PROJECT["optional-dependencies"][extra])
        elsewhere = [
            path for path in files if not any(path.is_relative_to(room) for room in ROOMS[extra])
        ]
        assert not elsewhere, f"{module} belongs to [{extra}] and is imported by {elsewhere}"


def test_what_is_declared_is_imported() -> None:
    declared = _names(PROJECT["dependencies"]).union(
        *(_names(PROJECT["optional-dependencies"][extra]) for extra in EXTRAS)
    )
    by_another = {"h11"}  # the class of uvicorn's that is imported needs it
    assert declared - by_another <= set(_imported()) | {"equinox"}
    assert {name for names in EXTRAS.values() for name in names} <= declared


def test_dev_and_all_bring_every_extra() -> None:
    def closed(extra: str) -> set[str]:
        found = {extra}
        for line in PROJECT["optional-dependencies"][extra]:
            one = Requirement(line)
            if one.name == "sfumato":
                found = found.union(*(closed(inner) for inner in one.extras))
        return found

    assert closed("all") < closed("dev") and closed("engines") < closed("dev")
    assert set(EXTRAS) <= closed("all") | closed("engines")
    assert {"learn", "report", "serve", "cluster"} <= closed("all")  # what the commands need
    assert {"learn", "report", "serve"} <= closed("studio")


_BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
from sfumato.cli import main
for words in {commands!r}:
    sys.argv = ["sfumato", *words]
    try:
        main()
    except SystemExit as ended:
        if ended.code:
            raise
"""


def _plain(folder: Path, *commands: str) -> subprocess.CompletedProcess[str]:
    """Commands where no extra can be imported, up to the first that fails."""
    blocked = {name for names in EXTRAS.values() for name in names}
    return subprocess.run(
        [
            sys.executable,
            "-c",
            _BLOCKED.format(blocked=blocked, commands=[words.split() for words in commands]),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        check=False,
    )


def test_solving_measuring_and_sanitizing_need_no_extra(tmp_path: Path) -> None:
    (tmp_path / "places.csv").write_text("lat,lon\n48.857,2.347\n48.858,2.348\n")
    ended = _plain(
        tmp_path,
        "solve four-corners --max-loss 173 --solver laplace --out laplace",
        "solve four-corners --max-loss 173 --solver coin --out coin",
        "measure laplace",
        "compare laplace coin",
        "sanitize laplace places.csv sanitized.csv",
        "frontier four-corners --per-user 20 --from 200 --to 250 --points 2 --cell-m 200",
        "export laplace bundle",
    )
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "bundle" / "manifest.json").exists()  # the last was reached
    assert (tmp_path / "sanitized.csv").read_text().count("\n") == 3


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        ("serve run --token-file clients.json", "serve"),
        ("studio --no-open", "studio"),
        ("demo", "learn,report"),
        # before any work: there is no run and no file to read
        ("solve none.csv --max-loss 173 --solver game --out run", "learn"),
        ("solve none.csv --max-loss 173 --out run", "learn"),
        ("atlas none.csv --max-loss 173 --out run", "learn"),
        ("atlas none.csv --max-loss 173 --solver coin --out run --report map.html", "report"),
        ("measure run --attack neural", "learn"),
        ("compare run --html report.html", "report"),
        ("assess run --out assessment.html", "report"),
        ("frontier four-corners --from 1 --to 2 --figure frontier.png", "report"),
    ],
)
def test_a_missing_extra_is_a_sentence(tmp_path: Path, words: str, extra: str) -> None:
    ended = _plain(tmp_path, words)
    assert ended.returncode == 2 and f"pip install 'sfumato[{extra}]'" in ended.stderr
    assert "Traceback" not in ended.stderr and list(tmp_path.iterdir()) == []


def test_a_module_of_nobody_is_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing_extra(ModuleNotFoundError("x", name="x")) is None
    assert "sfumato[learn]" in str(missing_extra(ModuleNotFoundError("x", name="jax.numpy")))
    monkeypatch.setitem(EXTRAS, "learn", ("no_such_module",))
    with pytest.raises(MissingExtra, match="no_such_module"):
        require("serve", "learn", bring="studio")


def test_the_lock_holds_a_hash_for_everything_and_no_address() -> None:
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert "://" not in text and "--index" not in text and "--find-links" not in text
    parts = re.split(r"\n(?=\S)", text.strip())
    assert all(part.count("--hash=sha256:") >= 1 for part in parts)
    locked = {canonicalize_name(Requirement(part.partition(" \\")[0]).name) for part in parts}
    declared = _names(PROJECT["dependencies"]).union(
        *(_names(lines) for lines in PROJECT["optional-dependencies"].values())
    )
    assert declared - {"sfumato"} <= locked


def test_the_list_of_components_says_what_wants_each() -> None:
    found = components.document()
    wanted = {one["name"]: one["properties"][0]["value"] for one in found["components"]}
    assert wanted["numpy"] == wanted["pyarrow"] == "the plain install"
    assert wanted["jaxlib"] == "learn" and wanted["preact"] == "the studio's page"
    assert "pytest" not in wanted and found["bomFormat"] == "CycloneDX"
    references = {one["bom-ref"] for one in found["components"]}
    assert {one for edge in found["dependencies"] for one in edge["dependsOn"]} <= references
    assert all(
        one["version"] and one["licenses"][0]["license"]["name"] for one in found["components"]
    )

"""What a release is made of agrees with itself; with -m paper it is built and installed."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_conda_recipe_wants_what_the_package_wants() -> None:
    text = (ROOT / "conda/meta.yaml").read_text("utf-8")
    text = re.sub(r"{{.*?}}", "x", re.sub(r"{%.*?%}", "", text))
    wanted = yaml.safe_load(text)["requirements"]
    plain = {Requirement(line.replace(" ", "")) for line in wanted["run"]}
    python = Requirement(f"python{PROJECT['requires-python']}")
    assert plain == {*map(Requirement, PROJECT["dependencies"]), python}
    extras = {
        Requirement(line.replace(" ", "").replace("matplotlib-base", "matplotlib"))
        for line in wanted["run_constrained"]
    }
    declared = PROJECT["optional-dependencies"]
    for extra in ("learn", "report", "serve", "cluster"):
        assert {*map(Requirement, declared[extra])} <= extras


def test_the_addresses_of_the_package_are_those_that_its_documents_name() -> None:
    """No address is invented: each stands in the README, and what is missing is said."""
    readme = (ROOT / "README.md").read_text("utf-8")
    assert PROJECT["urls"] and all(address in readme for address in PROJECT["urls"].values())
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    missing = {"Paper", "Repository", "Documentation", "Issues", "Changelog"} - PROJECT[
        "urls"
    ].keys()
    assert all(f"# {name} = " in text for name in missing)


def test_hooks_run_what_is_installed_and_fetch_nothing() -> None:
    (only,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    assert only["repo"] == "local"
    tools = {hook["entry"].split()[0].removeprefix(".venv/bin/") for hook in only["hooks"]}
    assert all(hook["language"] == "system" for hook in only["hooks"])
    assert tools == {"ruff", "lint-imports", "mypy"}  # those of `make lint types`


def test_workflows_test_three_systems_and_publish_without_a_password() -> None:
    folder = ROOT / ".github/workflows"
    tests, release = (
        yaml.safe_load((folder / f"{name}.yml").read_text("utf-8")) for name in ("tests", "release")
    )
    systems = tests["jobs"]["tests"]["strategy"]["matrix"]["os"]
    assert {name.partition("-")[0] for name in systems} == {"ubuntu", "macos", "windows"}
    assert release["jobs"]["publish"]["permissions"] == {"id-token": "write"}
    assert release["jobs"]["publish"]["needs"] == "build"
    assert "secrets." not in (folder / "release.yml").read_text("utf-8")
    jobs = [*tests["jobs"].values(), *release["jobs"].values()]
    used = [step["uses"] for job in jobs for step in job["steps"] if "uses" in step]
    # By commit: a tag can be moved to other code, which would publish in our name.
    assert len(used) == 7 and all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", name) for name in used)


@pytest.mark.paper
def test_the_wheel_and_the_sdist_hold_what_they_need_and_work_alone(tmp_path: Path) -> None:
    built = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path / "dist")]
    subprocess.run(built, cwd=ROOT, check=True, capture_output=True)
    (wheel,), (sdist,) = (list((tmp_path / "dist").glob(end)) for end in ("*.whl", "*.tar.gz"))
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
    assert {"sfumato/_version.py", "sfumato/py.typed", "sfumato/__init__.pyi"} <= names
    assert {"sfumato/web/sfumato.js", "sfumato/studio/static/index.html"} <= names
    with tarfile.open(sdist) as packed_source:
        tops = {name.split("/")[1] for name in packed_source.getnames() if "/" in name}
    assert {"src", "web", "LICENSE", "PKG-INFO"} <= tops and not {"tests", "runs"} & tops
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    for number, file in enumerate((wheel, sdist)):
        fresh = tmp_path / f"fresh{number}"
        venv.create(fresh)
        uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet"]
        subprocess.run([*uv, "--python", str(fresh / "bin/python"), str(file)], check=True)
        for words in ("--version", "solve four-corners --max-loss 173 --solver coin --out run"):
            command = [str(fresh / "bin/sfumato"), *words.split()]
            subprocess.run(command, cwd=fresh, env=plain, check=True, capture_output=True)

"""What sfumato is made of, as a CycloneDX document: every package that the plain install or an
extra brings, with version and licence, from the metadata of what is installed here; and what the
studio's page carries with it.

    python -m tools.components --out components.cdx.json
"""

import argparse
import json
import re
from importlib.metadata import PackageNotFoundError, distribution, metadata
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from sfumato.errors import EXTRAS

VENDOR = Path(__file__).parents[1] / "src/sfumato/studio/static/vendor"


def required(name: str, extras: frozenset[str]) -> dict[str, frozenset[str]]:
    """The packages that one asks for on this platform, each with the extras asked of it."""
    found: dict[str, frozenset[str]] = {}
    for line in distribution(name).requires or []:
        one = Requirement(line)
        wanted = one.marker is None or any(
            one.marker.evaluate({"extra": extra}) for extra in (extras or {""})
        )
        if wanted:
            key = canonicalize_name(one.name)
            found[key] = found.get(key, frozenset()) | frozenset(one.extras)
    return found


def closure(extras: frozenset[str]) -> dict[str, set[str]]:
    """Every package that sfumato with some extras brings, with the names that each asks for."""
    edges: dict[str, set[str]] = {}
    done: set[tuple[str, frozenset[str]]] = set()
    open_names = [("sfumato", extras)]
    while open_names:
        name, asked = open_names.pop()
        if (name, asked) in done:
            continue
        done.add((name, asked))
        try:
            needs = required(name, asked)
        except PackageNotFoundError:
            raise SystemExit(
                f"error: {name} is not installed; install all extras first (make)"
            ) from None
        edges.setdefault(name, set()).update(needs)
        open_names += needs.items()
    return edges


def licence(name: str) -> str:
    """What the package says of its licence, in a line."""
    head = metadata(name)
    given = head.get("License-Expression") or ""
    classes = [
        line.rpartition(" :: ")[2]
        for line in head.get_all("Classifier") or []
        if line.startswith("License :: OSI Approved :: ")
    ]
    first = (head.get("License") or "").strip().partition("\n")[0][:80]
    return given or " or ".join(classes) or first or "not said"


def carried() -> list[dict[str, Any]]:
    """The scripts that the studio's page carries, from the table beside them."""
    table = (VENDOR / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \S+\.mjs \| (\S+) ([\d.]+),.* \| (.+) \(LICENSE", table, re.MULTILINE)
    return [
        {
            "type": "library",
            "bom-ref": f"pkg:npm/{name}@{version}",
            "name": name,
            "version": version,
            "purl": f"pkg:npm/{name}@{version}",
            "licenses": [{"license": {"name": licence_name}}],
            "properties": [{"name": "sfumato:wanted-by", "value": "the studio's page"}],
        }
        for name, version, licence_name in sorted(set(rows))
    ]


def document() -> dict[str, Any]:
    """The whole list, in a fixed order."""
    plain = closure(frozenset())
    by_extra = {extra: closure(frozenset({extra})) for extra in EXTRAS}
    edges = dict(plain)
    for found in by_extra.values():
        for name, needs in found.items():
            edges[name] = edges.get(name, set()) | needs

    def reference(name: str) -> str:
        return f"pkg:pypi/{name}@{distribution(name).version}"

    def component(name: str) -> dict[str, Any]:
        extras = [extra for extra, found in by_extra.items() if name in found]
        wanted = "the plain install" if name in plain else ", ".join(extras)
        return {
            "type": "library",
            "bom-ref": reference(name),
            "name": name,
            "version": distribution(name).version,
            "purl": reference(name),
            "licenses": [{"license": {"name": licence(name)}}],
            "properties": [{"name": "sfumato:wanted-by", "value": wanted}],
        }

    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": reference("sfumato"),
                "name": "sfumato",
                "version": distribution("sfumato").version,
                "purl": reference("sfumato"),
            }
        },
        "components": [component(name) for name in sorted(edges) if name != "sfumato"] + carried(),
        "dependencies": [
            {"ref": reference(name), "dependsOn": sorted(map(reference, edges[name]))}
            for name in sorted(edges)
        ],
    }


def main() -> None:
    """Write the list."""
    parser = argparse.ArgumentParser(description="Write what sfumato is made of, as CycloneDX.")
    parser.add_argument("--out", type=Path, default=Path("components.cdx.json"))
    out: Path = parser.parse_args().out
    found = document()
    out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"{len(found['components'])} components in {out}")


if __name__ == "__main__":
    main()

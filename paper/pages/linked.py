"""linked.md, made from linked.json.

python -m paper.pages.linked
"""

from pathlib import Path
from typing import Any

from paper.experiments import RESULTS
from paper.pages.template import filled
from paper.runs.linked import COUNTS, DATA, MADE_FOR
from paper.tables import table
from sfumato.files import read_json, write_text

_NAMES = {
    "four-corners": ("four corners", 4),
    "paris": ("Paris", 6),
    "stockholm": ("Stockholm", 6),
    "san-francisco": ("San Francisco", 6),
}
_TEN = COUNTS.index(10)
_WANTED = 1.5  # times the Bayes error of ten reports of the mechanism for one

Rows = dict[tuple[str, float, str], dict[str, Any]]


def _figures(row: dict[str, Any]) -> list[str]:
    """Of training and held-out check-ins, side by side."""
    parts = [
        [
            f"{found['loss_m']:.0f}",
            *(f"{error['value']:.3f}" for error in found["bayes_errors"]),
            f"{found['overlap']:.3f}",
        ]
        for found in (row["train"], row["test"])
    ]
    return ["/".join(both) for both in zip(*parts, strict=True)]


def _all_alike(row: dict[str, Any]) -> bool:
    """Whether no number of reports tells anything."""
    return all(row[part]["overlap"] > 0.9995 for part in ("train", "test"))


def _most_of_ten(proof: dict[str, Any], users: int) -> float:
    """What no mechanism's Bayes error of ten reports goes beyond: that of one report; and, as some
    two of `users` with equal shares overlap by at most r, 1 - 2/users + r^10/users."""
    alike = min(1.0, proof["overlap_at_most"]) ** 10
    return float(min(proof["bayes_error_at_most"], 1 - 2 / users + alike / users))


def _ratio(rows: Rows, name: str, budget: float) -> list[str] | None:
    ten, one = (rows.get((name, budget, made_for)) for made_for in ("10", "1"))
    if ten is None or one is None:
        return None
    cells = [_NAMES[name][0], f"{budget:g}"]
    proof = rows.get((name, budget, "proof"))
    values = {}
    for part in ("train", "test"):
        first, other = (row[part]["bayes_errors"][_TEN]["value"] for row in (one, ten))
        values[part] = first, other / first
        cells.append(f"{other / first:.2f}")
    if proof is None:
        return [*cells, "not run", "", "", ""]
    most = _most_of_ten(proof, _NAMES[name][1])
    room = _WANTED * values["train"][0] <= most
    met = "yes" if values["train"][1] >= _WANTED else "no"
    alike = min(1.0, proof["overlap_at_most"])
    bounds = [f"{one:.3f}" for one in (proof["bayes_error_at_most"], alike, most)]
    return [*cells, met if room else "no room", *bounds]


def page(folder: Path = RESULTS) -> str:
    """Every row that was run."""
    found = read_json(folder / "linked.json", what="results on linked reports")["rows"]
    rows: Rows = {(row["data"], row["budget_m"], row["made_for"]): row for row in found}
    settings = [(name, budget) for name in _NAMES for budget in DATA[name][1]]
    heads = ["data", "budget, m", "made for"]
    own = ["loss, m", *(f"B{count}" for count in COUNTS), "least overlap"]
    order = sorted(map(str, MADE_FOR), key=lambda one: (not one.isdigit(), one.zfill(3)))
    made = [
        (name, budget, made_for, row)
        for name, budget in settings
        for made_for in order
        if (row := rows.get((name, budget, made_for))) is not None
    ]
    alike = dict.fromkeys((name, budget) for name, budget, _, row in made if _all_alike(row))
    lines = [
        [_NAMES[name][0], f"{budget:g}", made_for, *_figures(row)]
        for name, budget, made_for, row in made
        if (name, budget) not in alike
    ]
    equal = [
        f"With {' or '.join(f'{budget:g}' for one, budget in alike if one == name)} m all users of"
        f" {_NAMES[name][0]} have one law, whatever it is made for."
        for name in dict.fromkeys(name for name, _ in alike)
    ]
    endless = {
        _NAMES[name][0]: [
            f"{proof['endless_m']:.1f}",
            f"{proof['endless_at_least_m']:.1f}",
            f"{proof['endless_m'] / proof['endless_at_least_m'] - 1:.2%}",
        ]
        for name, budget in settings  # the same for each budget
        if (proof := rows.get((name, budget, "proof"))) is not None
    }
    ratios = [line for one in settings if (line := _ratio(rows, *one)) is not None]
    missing = []
    for name, budget in settings:
        left = [one for one in [*order, "proof"] if (name, budget, one) not in rows]
        if left:
            missing.append(f"{_NAMES[name][0]}, {budget:g} m ({', '.join(left)})")
    return filled(
        "linked.md",
        rows=table([*heads, *own], lines),
        equal=" ".join(equal),
        endless=table(
            ["data", "endless budget, m", "not below, m", "gap"],
            [[name, *cells] for name, cells in endless.items()],
        ),
        ratios=table(
            [
                "data",
                "budget, m",
                "training",
                "held-out",
                f"{_WANTED:g} reached",
                "B1 at most",
                "least overlap at most",
                "B10 at most",
            ],
            ratios,
        ),
        missing=f"Not run yet (made for): {'; '.join(missing)}." if missing else "",
    )


if __name__ == "__main__":
    write_text(RESULTS / "linked.md", page())

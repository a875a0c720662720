"""linked.md, made from linked.json.

python -m paper.pages.linked
"""

from pathlib import Path
from typing import Any

from paper.experiments import RESULTS
from paper.pages.template import filled
from paper.runs.linked import COUNTS, DATA, DRAW, MADE_FOR
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


def _tens(every: list[dict[str, Any]], made_for: str, part: str) -> dict[int, float]:
    """The Bayes error of ten reports, by draw."""
    return {
        row["draw"]: row[part]["bayes_errors"][_TEN]["value"]
        for row in every
        if row["made_for"] == made_for
    }


def _ratio(
    every: list[dict[str, Any]], name: str, budget: float
) -> tuple[list[str], int, str] | None:
    """Made for ten over made for one: of the means over the draws that have both, and the range;
    the number of draws, and whether the aim is reached."""
    every = [row for row in every if (row["data"], row["budget_m"]) == (name, budget)]
    means, cells = {}, []
    for part in ("train", "test"):
        one, ten = (_tens(every, made_for, part) for made_for in ("1", "10"))
        draws = sorted(one.keys() & ten.keys())
        if not draws:
            return None
        means[part] = tuple(
            sum(errors[draw] for draw in draws) / len(draws) for errors in (one, ten)
        )
        ratios = [ten[draw] / one[draw] for draw in draws]
        both = f"{means[part][1] / means[part][0]:.2f}"
        cells.append(
            both if len(draws) == 1 else f"{both} ({min(ratios):.2f} to {max(ratios):.2f})"
        )
    cells = [_NAMES[name][0], f"{budget:g}", *cells]
    proof = next((row for row in every if row["made_for"] == "proof"), None)
    if proof is None:
        return [*cells, "", "", ""], len(draws), "without a proof"
    most = _most_of_ten(proof, _NAMES[name][1])
    room = _WANTED * means["train"][0] <= most
    met = "reached" if means["train"][1] >= _WANTED * means["train"][0] else "missed"
    alike = min(1.0, proof["overlap_at_most"])
    bounds = [f"{bound:.3f}" for bound in (proof["bayes_error_at_most"], alike, most)]
    return [*cells, *bounds], len(draws), met if room else "impossible"


def page(folder: Path = RESULTS) -> str:
    """Every row that was run."""
    found = read_json(folder / "linked.json", what="results on linked reports")["rows"]
    rows: Rows = {
        (row["data"], row["budget_m"], row["made_for"]): row for row in found if row["draw"] == DRAW
    }
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
        f" {_NAMES[name][0]} have one law, for any number of reports."
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
    several = [one for one in settings if one not in alike]
    compared = [line for one in several if (line := _ratio(found, *one)) is not None]
    aims: dict[str, list[str]] = {}
    for (name, budget, *_), _, met in compared:
        aims.setdefault(met, []).append(f"{name}, {budget} m")
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
                "B1 at most",
                "least overlap at most",
                "B10 at most",
            ],
            [cells for cells, _, _ in compared],
        ),
        draws=max((count for _, count, _ in compared), default=0),
        wanted=f"{_WANTED:g}",
        aim="; ".join(
            f"{met} in {'every row' if len(aims) == 1 else ' and '.join(names)}"
            for met, names in aims.items()
        ),
        missing=f"Not run yet (made for): {'; '.join(missing)}." if missing else "",
    )


if __name__ == "__main__":
    write_text(RESULTS / "linked.md", page())

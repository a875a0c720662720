"""weeks.md, made from weeks.json and weeks_ways.json.

python -m paper.pages.weeks
"""

from pathlib import Path
from typing import Any

from paper.experiments import RESULTS
from paper.pages.template import filled
from paper.runs.weeks import ANY, LOSSES, ONE_PLACE, wanted, wanted_ways
from paper.tables import table
from sfumato.files import read_json, write_text
from sfumato.study.policy import FOUR

_WHO = {
    "law": "law",
    "chain": "chain",
    "history": "named history",
    "period": "one period",
    "all": "sees all",
    "truths": "learnt from truths",
}
_COLUMNS = [who for who in _WHO if who not in ("chain", "period")]
_PRINTED = ((818, 0.693), (1994, 0.333))  # LSTM-TrajGAN's published outputs


def _share(found: list[float] | None) -> str:
    if found is None:
        return "-"
    return f"{100 * found[0]:.1f}"


def _width(rows: list[dict[str, Any]]) -> str:
    """How far intervals reach, in points."""
    far = [
        max(high - value, value - low) for row in rows for value, low, high in row["found"].values()
    ]
    return f"{100 * max(far):.1f}"


def _one_place(rows: list[dict[str, Any]]) -> list[str]:
    who = {**_WHO, "counts": "law and counts"}
    del who["period"], who["chain"]  # a week is the period; a chain finds what the law does
    heads = ["weeks from", "budget, m", "loss, m", *who.values()]
    heads += ["hidden", "users never, always", "at least"]
    lines = [
        [
            _short(row["reported"]),
            f"{row['budget']:,}",
            f"{row['loss_m']:,.0f}&nbsp;±&nbsp;{1.96 * row['loss_error_m']:,.0f}",
            *(_share(row["found"].get(one)) for one in who),
            f"{100 * row['hidden']:.0f}",
            f"{row['users_never_hidden']}, {row['users_always_hidden']}",
            f"{100 * row['at_least_of_this_kind']:.1f}",
        ]
        for row in rows
    ]
    return table(heads, lines)


def _short(name: str) -> str:
    """The way of choosing in one or two words, as the page explains them."""
    return name.replace("chosen ", "").replace(" a week", "").replace(" of each user's weeks", "")


def _plain(row: dict[str, Any]) -> bool:
    return bool(row["reported"].startswith(("truth", "snapped", *ONE_PLACE)))


def _line(row: dict[str, Any]) -> list[str]:
    found = row["found"]
    return [
        row["reported"],
        f"{row['loss_m']:,.0f}",
        *(_share(found.get(who)) for who in _COLUMNS),
    ]


def _fresh(row: dict[str, Any]) -> str:
    return "" if _plain(row) or row["kept"] != "never" else " with a fresh draw for each report"


def _chains(rows: list[dict[str, Any]]) -> str:
    """Where the chain was measured beside the law."""
    parts = [
        f"{_share(row['found']['chain'])} of {row['reported']} at {row['loss_m']:,.0f} m"
        f"{_fresh(row)}"
        for row in rows
        if "chain" in row["found"]
    ]
    return f"*Chain* finds {', '.join(parts)}."


def _verdict(rows: list[dict[str, Any]]) -> str:
    """By who knows the law, beside what is printed, at no more than the printed loss."""
    parts: list[str] = []
    for loss, printed in _PRINTED:
        best = min(
            (row for row in rows if row["loss_m"] <= loss),
            key=lambda row: row["found"]["law"][0],
        )
        share = best["found"]["law"]
        more = "more" if share[0] > printed else "fewer"
        near = " (the interval includes it)" if share[1] <= printed <= share[2] else ""
        parts.append(f"{more} at {loss:,} m{near}")
    return f"Compared with the printed share, *law* finds {', '.join(parts)}."


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["loss_m"], row["reported"], row["kept"]


def _table(rows: list[dict[str, Any]]) -> list[str]:
    """Where reports are drawn, those kept for a week."""
    heads = ["reported", "loss, m", *(_WHO[who] for who in _COLUMNS)]
    return table(heads, [_line(row) for row in rows if _plain(row) or row["kept"] == "week"])


def _beside(rows: list[dict[str, Any]]) -> list[str]:
    """Ours at no more than a published loss: the one of which the law finds fewest, and the one of
    which fewest are found by who learnt from truths."""
    lines = []
    for loss, printed in _PRINTED:
        within = [row for row in rows if row["loss_m"] <= loss]
        best: list[dict[str, Any]] = []
        for who in ("law", "truths"):
            one = min(within, key=lambda row: row["found"][who][0])
            best += [one] if one not in best else []
        for row in best:
            cells = [_short(row["reported"]) + _fresh(row)]
            shares = [_share(row["found"][who]) for who in ("truths", "law", "all")]
            lines.append(
                [f"{loss:,}", f"{100 * printed:.1f}", *cells, f"{row['loss_m']:,.0f}", *shares]
            )
    heads = ["LSTM-TrajGAN, loss m", "found, % (printed)", "here", "loss, m"]
    return table([*heads, *(_WHO[who] for who in ("truths", "law", "all"))], lines)


def _ways(document: dict[str, Any], *, best: bool = False) -> list[list[str]]:
    """All ways of keeping of one mechanism, or the recommended one alone."""
    lines = []
    for way in document["ways"]:
        chosen = way["way"] == document["recommended"]
        shares = [_share([way[who][end] for end in ("value", "low", "high")]) for who in FOUR]
        loss = f"{way['loss_m']:,.0f}" + ("" if way["within_budget"] else " !")
        if best and chosen:
            budget = f"{document['budget']:,}"
            lines.append([document["reported"], budget, way["way"], loss, *shares])
        elif not best:
            mark = "**" if chosen else ""
            lines.append([f"{mark}{way['way']}{mark}", loss, *shares])
    return lines


def _plain_ways(document: dict[str, Any]) -> dict[str, Any]:
    """Without lattices and reports for all users."""
    kept = [
        way
        for way in document["ways"]
        if way["keeping"]["by_user"] and way["keeping"]["lattice_m"] is None
    ]
    return document | {"ways": kept}


def _missing(todo: list[dict[str, Any]], rows: list[dict[str, Any]]) -> str:
    """A sentence on what was not run yet, empty if all was."""
    left = [one for one in todo if not any(row.items() >= one.items() for row in rows)]
    names = dict.fromkeys(f"{one['reported']} at {one['budget']:,} m" for one in left)
    return f" Not run yet: {', '.join(names)}." if left else ""


def page(folder: Path = RESULTS) -> str:
    """All that was measured."""
    every = read_json(folder / "weeks.json", what="weeks")["rows"]
    ways = read_json(folder / "weeks_ways.json", what="ways of keeping")["rows"]
    rows = [row for row in every if row["reported"] != ANY]
    places = [row for row in rows if row["reported"] in ONE_PLACE]
    others = [row for row in rows if row["reported"] not in ONE_PLACE]
    (noise,) = (
        one for one in ways if (one["reported"], one["budget"]) == ("planar laplace", LOSSES[0])
    )
    four = [_WHO[who] for who in FOUR]
    recommended = [
        line for one in ways if one["budget"] in LOSSES[:2] for line in _ways(one, best=True)
    ]
    return filled(
        "weeks.md",
        missing=_missing(wanted(), every),
        missing_ways=_missing(wanted_ways(), ways),
        traces=f"{rows[0]['traces']:,}",
        settings=rows[0]["settings"],
        width=_width(rows),
        rows=_table(sorted(others, key=_order)),
        one_place=_one_place(sorted(places, key=lambda row: (row["budget"], row["reported"]))),
        beside=_beside(rows),
        verdict=_verdict(rows),
        chains=_chains(others),
        proved=table(
            ["loss, m", "found at least, %"],
            [
                [f"{row['budget']:,}", f"{100 * row['at_least']:.1f}"]
                for row in sorted(every, key=lambda row: row["budget"])
                if row["reported"] == ANY
            ],
        ),
        over=any(cell.endswith(" !") for line in recommended for cell in line),
        recommended=table(["reported", "budget, m", "recommended", "loss, m", *four], recommended),
        ways=table(["way of keeping", "loss, m", *four], _ways(_plain_ways(noise))),
    )


if __name__ == "__main__":
    write_text(RESULTS / "weeks.md", page())

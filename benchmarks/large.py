"""Rows of RESULTS.md for thousands of users and for tiles, from city.json, osaka.json and
atlas.json, which commands of their own write."""

from pathlib import Path
from typing import Any

from sfumato.files import read_json

_HERE = Path(__file__).resolve().parent
Row = tuple[str, str, str, str]
CITY_S, CITY_GB = 600, 4
OSAKA_S, OSAKA_GAP = 300, 0.1
CITY_TILES, COUNTRY_TILES = 25, 1000
_TILES = "python -m benchmarks.atlas"
_LOSSES = ("loss_m", "median_loss_m", "loss_of_one_in_a_thousand_m", "loss_off_the_places_m")
_OVERLAPS = (("none", 0), ("two budgets", 2), ("four budgets", 4))


def kept() -> dict[str, Any]:
    """What the commands wrote."""
    files = {name: _HERE / f"{name}.json" for name in ("city", "osaka", "atlas")}
    return {name: read_json(path, what=f"the results of {name}") for name, path in files.items()}


def rows_of(found: dict[str, Any]) -> list[Row]:
    """Figure, measured, wanted, command."""
    return [*_city(found["city"]), *_osaka(found["osaka"]), *_atlas(found["atlas"])]


def _city(found: dict[str, Any]) -> list[Row]:
    proof, rows = found["proof"], []
    name = f"San Francisco, {proof['users']:,} users apart, {proof['budget_m']:.0f} m"
    for one in found["mechanisms"]:
        how = "for check-ins to come" if one["made_for"] == "new" else "for these check-ins"
        which, command = f"{name}, learned {how}", "python -m benchmarks.city learn"
        gap = 1 - 1 / one["times_proven_least"]
        rows += [
            (
                f"{which}: processor seconds",
                f"{one['seconds_learning']:.0f}",
                f"at most {CITY_S}",
                command,
            ),
            (f"{which}: peak GB", f"{one['bytes'] / 1e9:.2f}", f"at most {CITY_GB}", command),
            (
                f"{which}: vulnerability, times a blind guess, bits, relative gap to the proven least",
                f"{one['vulnerability']:.4f}, {one['times_blind']:.2f},"
                f" {one['bits_above_blind']:.2f}, {gap:.0%}",
                "",
                command,
            ),
        ]
    command = "python -m benchmarks.city to-come"
    for way in dict.fromkeys(one["way"] for one in found["to_come"]):
        ones = [one for one in found["to_come"] if one["way"] == way]
        right = [
            f"{min(values):.4f} to {max(values):.4f}"
            for values in ([one["right"] for one in ones], [one["right_by_these"] for one in ones])
        ]
        loss = [sum(one[key] for one in ones) / len(ones) for key in _LOSSES]
        rows += [
            (
                f"{name}, half of the check-ins known, {way}: later senders guessed by who knows three"
                f" quarters, and by who knows the later quarter, over {len(ones)} draws",
                ", ".join(right),
                "",
                command,
            ),
            (
                "the same: loss m, median, of one in a thousand, 20 m off the places",
                ", ".join(f"{value:.0f}" for value in loss),
                "",
                command,
            ),
        ]
    return [
        *rows,
        (
            f"{name}, proof: least vulnerability, times a blind guess, bits",
            f"{proof['least_vulnerability_proved']:.4f}, {proof['least_times_blind']:.2f},"
            f" {proof['least_bits_above_blind']:.2f}",
            "",
            "python -m benchmarks.city",
        ),
        (
            f"{name}, proof: processor seconds, to check it, peak GB",
            f"{proof['seconds_proof']:.0f}, {proof['seconds_checking']:.1f},"
            f" {proof['bytes'] / 1e9:.2f}",
            "",
            "python -m benchmarks.city",
        ),
    ]


def _osaka(found: dict[str, Any]) -> list[Row]:
    rows, command = [], found["command"]
    for one in found["rows"]:
        name = f"Osaka, {found['users']:,} users x 1,024 regions, {one['budget_m']:,.0f} m"
        rows += [
            (
                f"{name}: processor seconds to learn",
                f"{one['seconds_learning']:.0f}",
                f"at most {OSAKA_S}",
                command,
            ),
            (
                f"{name}: relative gap of the vulnerability",
                f"{one['relative_gap']:.1%}",
                f"at most {OSAKA_GAP:.0%}",
                command,
            ),
            (f"{name}: processor seconds to prove", f"{one['seconds_proof']:.0f}", "", command),
        ]
    return rows


def _atlas(found: dict[str, Any]) -> list[Row]:
    rows = []
    for key, kind, command in (
        ("city", "codebooks", f"{_TILES} city DATA RUN"),
        ("edges of coins", "coins", f"{_TILES} edges RUN"),
    ):
        one = found[key]
        name = f"atlas of San Francisco, {kind}"
        rows.append((f"{name}: tiles", f"{one['tiles']}", f"at least {CITY_TILES}", command))
        for where in ("within a tile", "near an edge"):
            part = one["blended"][where]
            rows.append(
                (
                    f"{name}, {where}: loss m, Bayes error",
                    f"{part['loss']:.1f}, {part['error']:.3f}",
                    "",
                    command,
                )
            )
        more, budget = one["side"]["more than one tile alone"], one["side"]["patch_m"] / 2
        for said, times in _OVERLAPS:
            side = more[f"edge, overlap {times * budget:.0f} m"]
            rows.append(
                (
                    f"{name}, overlap {said}: how much more often the side of an edge is guessed"
                    " than with one tile alone",
                    f"{side['mean']:.3f} [{side['low']:.3f}, {side['high']:.3f}]",
                    "",
                    command,
                )
            )
    one, command = found["country"], f"{_TILES} country"
    same = one["worker_killed"] and one["same_mechanism"] and one["same_figures"]
    return [
        *rows,
        (
            "atlas of a synthetic country: tiles, with check-ins",
            f"{one['tiles']:,}, {one['tiles_with_checkins']:,}",
            f"at least {COUNTRY_TILES:,}",
            command,
        ),
        (
            "the same on two workers, one killed half-way: same mechanism and figures",
            "yes" if same else "no",
            "yes",
            command,
        ),
        (
            "the same: seconds (wall), alone and on two workers with one killed",
            f"{one['wall_s_alone']:.0f}, {one['wall_s_two_workers_one_killed']:.0f}",
            "",
            command,
        ),
    ]

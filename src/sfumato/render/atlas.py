"""The report of an atlas: a map of its tiles, with the figures of each, as one HTML file."""

import numpy as np

from sfumato.measure.estimate import Estimate
from sfumato.render.figures import tiles_figure
from sfumato.render.html import rendered
from sfumato.render.text import atlas_lines, shown
from sfumato.study.atlas import AtlasRun

_HEADS = ("tile", "side, m", "users", "check-ins", "mechanism", "loss, m", "Bayes error ↑", "blind")


def map_html(made: AtlasRun) -> str:
    """One self-contained page; the same run gives the same bytes."""
    record, tiling = made.run.record, made.mechanism.tiling
    error, users = np.full(len(tiling), np.nan), np.zeros(len(tiling))
    noise = np.array(
        [made.mechanism.mechanisms[n].kind == "planar laplace" for n in made.mechanism.which]
    )
    rows = []
    for line in made.tiles:
        tile, measured = line["tile"], line["measured"]
        if line["checkins"]:  # others are near check-ins that their neighbours answer
            error[tile], users[tile] = measured["bayes_error"]["value"], line["users"]
        rows.append(
            (
                tile,
                f"{tiling.sides_m[tile]:.0f}",
                line["users"],
                line["checkins"],
                line["kind"],
                shown(Estimate(**measured["loss"]), "{:.1f}"),
                shown(Estimate(**measured["bayes_error"])),
                f"{line['blind']:.3f}",
            )
        )
    captions = {
        "Bayes error of each tile; white: no check-in; hatched: planar Laplace noise; the numbers"
        " are those of the table below, where a tile is wide enough": error,
        "Users of each tile": np.where(users > 0, users, np.nan),
    }
    return rendered(
        "atlas.html.j2",
        name=record.data.name,
        status=record.status,
        max_loss=record.max_loss,
        users=len(record.data.users),
        checkins=record.data.rows,
        users_per_tile=record.settings["users_per_tile"],
        overlap_m=record.settings["overlap_m"],
        summary=atlas_lines(made),
        figures=[(words, tiles_figure(tiling, one, noise)) for words, one in captions.items()],
        heads=_HEADS,
        rows=rows,
    )

"""sfumato atlas"""

from functools import partial
from pathlib import Path
from typing import Any

import click

from sfumato.cli.options import (
    as_json,
    check_file,
    foreseen,
    option,
    print_json,
    recipe_of,
    region,
    resumable,
    say_notes,
    seed_option,
    selection,
    test_file,
    working,
)
from sfumato.cli.settings import solver_from, solver_options
from sfumato.study.atlas import FEWEST_CHECKINS, TILE_SOLVERS, USERS_PER_TILE

_EXAMPLE = (
    "\b\nExample: sfumato atlas four-corners --max-loss 100 --users-per-tile 3 --solver coin"
    " --out runs/atlas"
)


@click.command("atlas", epilog=_EXAMPLE)
@click.argument("source", metavar="DATA")
@selection
@test_file
@region
@option("--max-loss METRES", "The budget of every tile: metres off, on average.", required=True)
@option(
    "--users-per-tile N",
    "Quarter a square as long as more users than this were there.",
    default=USERS_PER_TILE,
)
@option(
    "--overlap METRES",
    "Distance from an edge within which either tile may report, by chance [default: four budgets].",
    "overlap_m",
)
@option(
    "--fewest-checkins N",
    "Give tiles with fewer check-ins, or with one user, planar Laplace noise of the budget.",
    default=FEWEST_CHECKINS,
)
@option(
    "--solver",
    "How the other tiles are solved.",
    type=click.Choice(TILE_SOLVERS),
    default=TILE_SOLVERS[0],
)
@partial(solver_options, of=TILE_SOLVERS)
@option("--cell-m METRES", "Side of a cell.", default=25.0)
@seed_option("the solver")
@option(
    "--cluster ADDRESS", "Solve the tiles on this dask cluster (pip install 'sfumato[cluster]')."
)
@option("--out DIR", "The run folder.", required=True)
@option("--replace", "Replace the run that is in the folder already.")
@option("--report FILE", "Also write the map: one HTML file with a figure for each tile.")
@as_json
def command(
    source: str,
    users_per_tile: int,
    overlap_m: float | None,
    fewest_checkins: int,
    solver: str,
    cell_m: float,
    cluster: str | None,
    out: Path,
    replace: bool,
    report: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Cover a city or a country: cut the map into tiles by where people are, find a mechanism for
    each, and write one run folder, which sanitize and serve take like any other.

    A square is quartered as long as more than --users-per-tile users were there; no tile is
    narrower than two overlaps.  Near an edge either tile may report, by chance.

    Give the same command again to resume a job that was stopped, with or without a cluster.
    """
    from sfumato import show
    from sfumato.errors import require
    from sfumato.files import check_can_be_made, write_text
    from sfumato.render.commands import next_text
    from sfumato.study.atlas import AtlasPlan, Runner, one_by_one, solve_atlas

    if report is not None:
        check_file("report", report, ".html", ".htm")
        require("report", bring="report")
    check_can_be_made(out)
    chosen = solver_from(options, solver)
    plan = AtlasPlan(chosen, users_per_tile, overlap_m, fewest_checkins, cell_m)
    recipe = recipe_of(source, options, wide=True)
    split = recipe.load()
    say_notes(split.train.notes)
    runner: Runner = one_by_one
    if cluster is not None:
        from sfumato.deploy.engines.dask import tiles_on_cluster

        runner = tiles_on_cluster(cluster)
    with resumable(), working(f"an atlas of {split.train.described}") as tell:
        made = solve_atlas(
            split.train,
            out,
            plan=plan,
            recipe=recipe,
            test=split.test,
            runner=runner,
            progress=tell,
            replace_run=replace,
            **options,
        )
    if report is not None:
        from sfumato.render.html import map_html

        write_text(report, map_html(made))
    if as_json:
        print_json(made.as_dict())
    else:
        click.echo(show.text(made))
        click.echo(f"Written to {out}" + ("" if report is None else f"; the map: {report}"))
        plane = made.run.record.data.plane
        wide = plane is not None and plane.wide
        tile = made.tiles[0]["tile"] if wide else None
        click.echo(next_text(out, recipe, drop=foreseen(out, recipe), tile=tile))

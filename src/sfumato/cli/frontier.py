"""sfumato frontier"""

from pathlib import Path
from typing import Any

import click

from sfumato.cli.options import (
    as_json,
    grid_options,
    loss_option,
    print_json,
    recipe_of,
    region,
    say_notes,
    selection,
    working,
)

_EXAMPLE = "\b\nExample: sfumato frontier four-corners --from 100 --to 250 --points 3 --cell-m 100"


@click.command("frontier", epilog=_EXAMPLE)
@click.argument("source", metavar="DATA")
@selection
@region
@click.option(
    "--from", "first", type=float, required=True, metavar="LOSS", help="The smallest budget."
)
@click.option("--to", "last", type=float, required=True, metavar="LOSS", help="The largest budget.")
@click.option(
    "--points", type=click.IntRange(min=2), default=20, show_default=True, help="How many budgets."
)
@loss_option
@grid_options
@click.option(
    "--gap", type=float, default=0.005, show_default=True, help="How tight the curve is proved."
)
@click.option(
    "--run",
    "runs",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Place this run on it; may be repeated.",
)
@click.option(
    "--time-limit",
    type=float,
    metavar="S",
    help="Stop after S seconds with what is proved so far.",
)
@click.option(
    "--figure",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also draw it: a .png or .svg file.",
)
@as_json
def command(
    source: str,
    first: float,
    last: float,
    points: int,
    cell_m: float | None,
    cells: int | None,
    loss: str | None,
    gap: float,
    runs: tuple[Path, ...],
    time_limit: float | None,
    figure: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """The proven best trade-off between loss and leakage, with Laplace, the coin and runs placed on
    it."""
    from sfumato.mechanism.loss import LOSSES
    from sfumato.render.figures import check_figure, draw_frontier
    from sfumato.study.trade_off import trade_off

    if figure is not None:
        check_figure(figure)
    recipe = recipe_of(source, options)
    data, _ = recipe.data()
    say_notes(data.notes)
    with working(f"proving the frontier at {points} budgets") as tell:
        found = trade_off(
            data,
            first=first,
            last=last,
            points=points,
            cell_m=cell_m,
            cells=cells,
            gap=gap,
            loss=LOSSES[loss or "euclidean"].function,
            runs=runs,
            time_limit=time_limit,
            progress=tell,
        )
    if as_json:
        print_json(found.as_dict())
    else:
        click.echo(str(found))
    if figure is not None:
        draw_frontier(found, figure)
        if not as_json:
            click.echo(f"figure: {figure}")

"""sfumato frontier"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sfumato.cli.options import (
    as_json,
    grid_options,
    loss_option,
    option,
    print_json,
    recipe_of,
    region,
    say_notes,
    selection,
    working,
)

if TYPE_CHECKING:
    from sfumato.measure.linked import Reports

_EXAMPLE = (
    "\b\nLinked reports: sfumato frontier four-corners --per-user 40 --from 100 --to 250"
    " --points 4 --cell-m 100 --reports 1,10,endless\n"
    "Example: sfumato frontier four-corners --from 100 --to 250 --points 3 --cell-m 100"
)


@click.command("frontier", epilog=_EXAMPLE)
@click.argument("source", metavar="DATA")
@selection
@region
@option("--from LOSS", "The smallest budget, in the unit of --loss.", "first", required=True)
@option("--to LOSS", "The largest budget, in the unit of --loss.", "last", required=True)
@option("--points N", "How many budgets.", type=click.IntRange(min=2), default=20)
@loss_option
@grid_options()
@option(
    "--gap GAP",
    "Largest gap between what is reached and the bound, as a probability and in bits.",
    default=0.005,
)
@option(
    "--reports N,...,endless",
    "The frontier for these numbers of reports of one user, as 1,5,10,50,endless.",
    "counts",
)
@option("--run RUN", "Show this run on the frontier; may be repeated.", "runs", multiple=True)
@option(
    "--time-limit S",
    "Stop proving after S seconds; placing Laplace and the coin takes some seconds more.",
)
@option("--figure FILE", "Also draw the frontier: a .png or .svg file.", "--out")
@as_json
def command(
    source: str,
    points: int,
    loss: str | None,
    counts: "tuple[Reports, ...] | None",
    runs: tuple[Path, ...],
    figure: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """The proven best trade-off between loss and leakage, with Laplace, the coin and runs placed on
    it.

    With --reports: the Bayes error against the budget when several reports of one user are seen
    together, how similar users can be made, and the loss from which linking is useless.
    """
    from sfumato.files import check_writable
    from sfumato.mechanism.loss import LOSSES
    from sfumato.study.linked import linked_trade_off
    from sfumato.study.trade_off import trade_off

    if counts is not None and runs:
        raise click.UsageError("--reports makes a mechanism for each; it does not go with --run")
    if figure is not None:
        from sfumato.render.figures import check_figure, draw_frontier

        check_figure(figure)
        check_writable(figure)
    recipe = recipe_of(source, options)
    data, _ = recipe.data()
    say_notes(data.notes)

    def plan(problem: Any, expected: Any) -> None:
        from sfumato.render import brief

        limit_s = options["time_limit"]
        click.echo(brief.frontier_plan_text(problem, points, expected, limit_s=limit_s), err=True)

    asked = {
        **options,
        "foretold": plan,
        "points": points,
        "loss": LOSSES[loss or "euclidean"].function,
    }
    order = ", each time where it is known least" if counts is None else ""
    with working(f"proving the frontier at {points} budgets{order}") as tell:
        curves: Any
        if counts is not None:
            curves = linked_trade_off(data, counts=counts, **asked, progress=tell)
        else:
            curves = trade_off(data, runs=runs, **asked, progress=tell)
    if counts is None and options["time_limit"] is not None:
        widest = max(curves.frontier.bayes.gap, curves.frontier.information.gap)
        if widest > options["gap"]:
            time_up = f"the time was up before both curves were within {options['gap']:g}"
            more = "a longer --time-limit, or fewer check-ins (--per-user N), narrows them"
            say_notes([f"{time_up}; {more}"])
    if as_json:
        print_json(curves.as_dict())
    else:
        click.echo(str(curves))
    if figure is not None:
        draw_frontier(curves, figure)
        if not as_json:
            click.echo(f"figure: {figure}")

"""sfumato solve"""

from pathlib import Path
from typing import Any

import click

from sfumato.cli.options import as_json, grid_options, print_json, recipe_of, say_notes, selection, working

_EXAMPLE = "\b\nExample: sfumato solve four-corners --max-loss 173 --solver coin --out runs/coin"
_SOLVERS = ("laplace", "coin")


@click.command("solve", epilog=_EXAMPLE)
@click.argument("source", metavar="DATA")
@selection
@click.option("--max-loss", type=float, required=True, metavar="METRES", help="The budget: metres off, on average.")
@click.option("--solver", type=click.Choice(_SOLVERS), default="laplace", show_default=True, help="How to find the mechanism.")
@grid_options
@click.option("--seed", type=click.IntRange(min=0), default=0, metavar="N", help="Seed of the solver.")
@click.option("--time-limit", type=float, metavar="S", help="Stop after so many seconds with the best so far.")
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="RUN", help="The run folder to write.")
@as_json
def command(
    source: str,
    max_loss: float,
    solver: str,
    cell_m: float | None,
    cells: int | None,
    seed: int,
    time_limit: float | None,
    out: Path,
    as_json: bool,
    **options: Any,
) -> None:
    """Find a mechanism for DATA within a loss budget and write a run folder.

    Without --per-user all of DATA is training data (four-corners brings its own split).
    """
    from sfumato.measure.judge import judge
    from sfumato.report.summary import measured_text
    from sfumato.solver import SOLVERS, Problem, solve
    from sfumato.solver.run import check_target, save_solution

    check_target(out)
    recipe = recipe_of(source, options)
    split = recipe.load()
    say_notes(split.train.notes)
    problem = Problem(split.train, max_loss=max_loss, cell_m=cell_m, cells=cells)
    with working(f"solving with {solver} within {max_loss:g} m"):
        solution = solve(problem, SOLVERS[solver](), seed=seed, time_limit=time_limit)
        test = None
        if split.test is not None:
            test = judge(solution.mechanism, split.test, loss=problem.loss, region=problem.region, fitted_on=split.train)
    save_solution(solution, out, recipe=recipe, test=test)
    if as_json:
        print_json({**solution.as_dict(), "test": None if test is None else test.as_dict(), "run": str(out)})
    else:
        click.echo(measured_text(solution.name, {"training data": solution.measured, "test data": test}, max_loss=max_loss))
        click.echo(f"{solution.status}  {solution.seconds:.1f} s.  Written to {out}")

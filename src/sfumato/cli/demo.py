"""sfumato demo"""

from pathlib import Path

import click

from sfumato.cli.options import as_json, print_json, working

_EXAMPLE = "\b\nExample: sfumato demo --out demo"
_MAX_LOSS = 173.0


@click.command("demo", epilog=_EXAMPLE)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("demo"),
    show_default=True,
    metavar="DIR",
    help="Folder to write.",
)
@as_json
def command(out: Path, as_json: bool) -> None:
    """Hide four users in Paris within 173 m on average, compare the mechanisms, write a report.

    Writes a run folder for each mechanism and report.html.
    """
    from dataclasses import replace

    from sfumato.data.recipe import Recipe
    from sfumato.report.compare import compare
    from sfumato.solver import SOLVERS, Problem, solve
    from sfumato.solver.run import check_target, save_solution

    recipe = Recipe("four-corners")
    data = recipe.load()
    problem = Problem(data.train, max_loss=_MAX_LOSS)
    solutions = []
    for name, settings in (
        ("laplace", {}),
        ("coin", {}),
        ("codebook", {"certify": False}),
        ("exact", {}),
    ):  # the game takes minutes
        check_target(out / name)
        with working(f"{name}: hiding {len(data.train.secrets)} users within {_MAX_LOSS:g} m"):
            solutions.append(solve(problem, SOLVERS[name](**settings), seed=0))
    # The exact solver's proof is one for every mechanism of this problem: the learned one need not
    # prove it again.
    solutions[2] = replace(solutions[2], certificate=solutions[3].certificate)
    with working("comparing on test data"):
        comparison = compare(solutions, on=data.test)
        comparison.html(out / "report.html")
    for solution, row in zip(solutions, comparison.rows, strict=True):
        save_solution(solution, out / solution.name, recipe=recipe, test=row.measured)
    if as_json:
        print_json(comparison.as_dict())
    else:
        click.echo(str(comparison))
        click.echo(f"report: {out / 'report.html'} (contains true locations)")

"""sfumato demo"""

from pathlib import Path

import click

from sfumato.cli import machine
from sfumato.cli.options import as_json, print_json, rounds_to, working

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
    machine.keep_compiled()
    from sfumato.errors import require

    require("learn", "report", bring="learn,report")
    from sfumato.data.recipe import Recipe
    from sfumato.solver import Codebook, Coin, Exact, Laplace, Problem
    from sfumato.study.compare import compare
    from sfumato.study.solve import Kept, solve_and_save

    recipe = Recipe("four-corners")
    data = recipe.load()
    problem = Problem(data.train, max_loss=_MAX_LOSS)
    kept: dict[str, Kept] = {}
    # The game takes minutes.  The exact solver's proof is one for every mechanism of this problem:
    # the learned one need not prove it again.
    for solver in (Laplace(), Coin(), Exact(), Codebook()):
        with working(
            f"{solver.name}: hiding {len(data.train.secrets)} users within {_MAX_LOSS:g} m"
        ) as tell:
            proof = kept["exact"].solution.certificate if solver.name == "codebook" else None
            kept[solver.name] = solve_and_save(
                problem,
                solver,
                out / solver.name,
                recipe=recipe,
                test=data.test,
                replace=True,
                certificate=proof,
                proof="none",
                progress=rounds_to(tell, unit="m"),
            )
    names = ("laplace", "coin", "codebook", "exact")
    with working("comparing on test data"):
        comparison = compare([kept[name].solution for name in names], on=data.test)
        comparison.html(out / "report.html")
    if as_json:
        print_json(comparison.as_dict())
    else:
        click.echo(str(comparison))
        click.echo(f"report: {out / 'report.html'} (contains true locations)")

"""sfumato demo"""

from pathlib import Path

import click

from sfumato.cli import machine
from sfumato.cli.options import as_json, option, print_json, rounds_to, working

_EXAMPLE = "\b\nExample: sfumato demo --out demo"
_MAX_LOSS = 173.0
_STEPS = 1500  # of 1,500 that the codebook takes unless told otherwise: a minute, not two
_CONFIDENCE = 0.85


@click.command("demo", epilog=_EXAMPLE)
@option("--out DIR", "Folder to write.", default=Path("demo"))
@as_json
def command(out: Path, as_json: bool) -> None:
    """Hide four synthetic users within 173 m on average, compare the mechanisms, write a report.

    Takes about a minute.  Writes a run folder for each mechanism and report.html.
    """
    machine.keep_compiled()
    from sfumato.errors import FileError, require
    from sfumato.files import check_can_be_made

    if out.exists() and not out.is_dir():
        raise FileError(f"{out} is a file; name a new folder")
    check_can_be_made(out)
    require("learn", "report", bring="learn,report")
    from sfumato.data.recipe import Recipe
    from sfumato.render import brief
    from sfumato.solver import Codebook, Coin, Laplace, Problem
    from sfumato.study.compare import compare
    from sfumato.study.solve import solve_and_save

    recipe = Recipe("four-corners")
    data = recipe.load()
    problem = Problem(data.train, max_loss=_MAX_LOSS)
    solutions = []
    for solver in (Laplace(), Coin(), Codebook(confidence=_CONFIDENCE)):
        with working(
            f"{solver.name}: hiding {len(data.train.secrets)} users within {_MAX_LOSS:g} m"
        ) as tell:
            kept = solve_and_save(
                problem,
                solver,
                out / solver.name,
                recipe=recipe,
                test=data.test,
                replace=True,
                proof="quick" if solver.name == "codebook" else "none",
                progress=rounds_to(tell, unit="m"),
            )
        solutions.append(kept.solution)
    with working("comparing on held-out check-ins"):
        comparison = compare(solutions, on=data.test)
        comparison.html(out / "report.html")
    if as_json:
        print_json(comparison.as_dict())
        return
    click.echo(brief.compared_text(comparison))
    last = comparison.rows[-1]
    click.echo(f"Best possible: {brief.best_text(last.gap, name=last.name)}")
    click.echo(f"report: {out / 'report.html'} (contains true locations)")
    click.echo(
        f"Next: open {out / 'report.html'}; your own file: sfumato solve checkins.csv --max-loss"
        " 200 --out runs/mine; all of it on a page: sfumato studio"
    )

"""sfumato solve"""

import time
from pathlib import Path
from typing import Any

import click

from sfumato.cli import machine, stopping
from sfumato.cli.options import (
    as_json,
    details,
    foreseen,
    grid_options,
    loss_option,
    option,
    print_json,
    recipe_of,
    region,
    rounds_to,
    say_notes,
    seed_option,
    selection,
    test_file,
    working,
)
from sfumato.cli.settings import solver_from, solver_options
from sfumato.measure.linked import Reports
from sfumato.mechanism.loss import LOSSES, traits_of
from sfumato.solver import DEFAULT, SOLVERS, Problem
from sfumato.solver.outcome import FULL, NONE, QUICK, Effort

_EXAMPLE = (
    "\b\nFor ten reports of one user (some 3 minutes): sfumato solve four-corners"
    " --max-loss 173 --reports 10 --out runs/ten\n"
    "The loss from which linking is useless: sfumato solve four-corners"
    " --reports endless --out runs/endless\n"
    "Example: sfumato solve four-corners --max-loss 173 --out runs/learned"
)


@click.command("solve", epilog=_EXAMPLE)
@click.argument("source", metavar="DATA")
@selection
@test_file
@region
@option(
    "--losses FILE",
    "For categories instead of places: a CSV file with columns truth, report, loss; DATA then"
    " has columns secret, truth and count (or probability).",
    type=str,
)
@loss_option
@option("--max-loss METRES", "The budget: metres off, on average.")
@option(
    "--user-max-loss METRES|NAME=METRES,...",
    "A budget for each user, on average (codebook, exact).",
)
@option("--max-distance METRES", "A hard cap: no report further off than this (codebook, exact).")
@option(
    "--min-bayes-error B",
    "Instead of a budget: find the smallest loss with this Bayes error, 0 to 1 (exact solver).",
)
@option(
    "--reports N|endless",
    "How many reports of one user are seen together (codebook, exact); endless, without a"
    " budget, finds the smallest loss at which any number of reports reveals nothing (exact).",
    default="1",
)
@option(
    "--objective GOAL",
    "What is minimised: bayes (right guesses of the user), information, overlap (how well"
    " two users are told apart), two-guesses, guess-or-pass or target:USER.",
    default="bayes",
)
@option(
    "--solver",
    "Which solver [default: codebook; exact for categories and for --min-bayes-error].",
    type=click.Choice(list(SOLVERS)),
)
@solver_options
@grid_options()
@option(
    "--bound-to-come",
    "Also prove, from the training data alone, what no mechanism within the budget can exceed"
    " on check-ins to come (certify RUN --data train does it later).",
)
@option(
    f"--proof {NONE}|{QUICK}|{FULL}",
    "After the mechanism is written, prove how little any mechanism can leak: no proof, one to"
    " within 0.01, or one to within 0.002 that also holds anywhere on the plane; without"
    f" --time-limit, two minutes at most unless you ask for {FULL} [default: {FULL} for the"
    f" codebook, {NONE} for others; exact proves as it solves].",
)
@seed_option("the solver")
@option(
    "--time-limit S",
    "Stop learning, solving and proving after S seconds and keep the best so far; compiling and"
    " measuring take some seconds more, up to a minute with thousands of places.",
)
@option("--out RUN", "The run folder to write.")
@option("--replace", "Replace the run that is in RUN already.")
@option("--resume RUN", "Resume learning that was stopped; give all other options as before.")
@details
@as_json
def command(
    source: str,
    losses: str | None,
    loss: str | None,
    max_loss: float | None,
    user_max_loss: dict[str, float] | None,
    max_distance: float | None,
    min_bayes_error: float | None,
    reports: Reports,
    objective: str,
    solver: str | None,
    cell_m: float | None,
    cells: int | None,
    bound_to_come: bool,
    proof: Effort | None,
    seed: int,
    time_limit: float | None,
    out: Path | None,
    resume: Path | None,
    replace: bool,
    details: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Find a mechanism for DATA within a loss budget and write a run folder.

    DATA is four-corners or a file: SNAP check-ins, CSV (also .gz) or Parquet.  Without --per-user
    or --test all of DATA is training data (four-corners brings its own split).
    """
    start = time.perf_counter()
    machine.keep_compiled()
    from sfumato import show
    from sfumato.cli.options import for_each
    from sfumato.data.categories import CategoricalData
    from sfumato.files import check_can_be_made
    from sfumato.measure.objective import objective_named
    from sfumato.render import brief, text
    from sfumato.render.commands import next_text
    from sfumato.solver.outcome import Ended, Proving
    from sfumato.study.certify import gaps_of
    from sfumato.study.folder import check_target, stopped_learning
    from sfumato.study.population import check_folds, check_test_file, cross_fit_run
    from sfumato.study.solve import Kept, foretold, proof_limit, solve_and_save

    budgets = (max_loss, user_max_loss, max_distance)
    seeks_loss = min_bayes_error is not None or (reports == "endless" and not any(budgets))
    solver = solver or (DEFAULT if losses is None and not seeks_loss else "exact")
    chosen = solver_from(options, solver)
    given = {"--losses": losses, "--min-bayes-error": min_bayes_error}
    given["--reports"] = None if reports == 1 else reports
    other = next((name for name, value in given.items() if value is not None), None)
    if bound_to_come and other is not None:
        raise click.UsageError(
            f"--bound-to-come needs check-ins and a budget; it does not go with {other}"
        )
    if proof is not None and solver == "exact":
        raise click.UsageError("the exact solver proves as it solves; leave --proof out")
    out = _target(out, resume, solver)
    check_target(out, replace=replace or resume is not None)
    check_can_be_made(out)
    recipe, data, held_out = recipe_of(source, options, losses=losses).prepared()
    say_notes(data.notes)
    if held_out is not None and not isinstance(data, CategoricalData):
        check_test_file(recipe, data, held_out)
    if bound_to_come:
        check_folds(data)
    if loss is not None and isinstance(data, CategoricalData):
        raise click.UsageError("--loss is for places; the losses of categories are in their table")
    problem = Problem(
        data,
        max_loss=max_loss,
        loss=LOSSES[loss or "euclidean"].function,
        cell_m=cell_m,
        cells=cells,
        user_max_loss=None if user_max_loss is None else for_each(user_max_loss, data.secrets),
        max_distance=max_distance,
        objective=objective_named(objective, data.secrets),
        min_bayes_error=min_bayes_error,
        reports=reports,
    )
    effort = proof or (FULL if solver == DEFAULT else NONE)
    expected = foretold(chosen, problem, effort)
    proof_s = proof_limit(proof, limited=time_limit is not None)
    plan = brief.plan_text(problem, solver, expected, effort, limit_s=time_limit, proof_s=proof_s)
    begun = printed = False

    def figures(kept: Kept) -> None:
        seconds = time.perf_counter() - start
        if not as_json:
            said = text.kept_text if details else brief.kept_text
            click.echo(said(kept, seconds=seconds))

    def written(kept: Kept) -> None:
        nonlocal printed
        printed = True
        figures(kept)
        click.echo(
            f"{out} is written and can be used; proving how far it is from the best possible"
            " (Ctrl-C keeps the best bound so far) …",
            err=True,
        )

    def heard(line: dict[str, Any]) -> None:
        nonlocal begun
        begun = begun or ("round" in line and SOLVERS[solver].resumable)
        rounds(line)

    hint = f"hint: the same command with --resume {out} in place of --out resumes it"
    if resume is None and SOLVERS[solver].resumable and stopped_learning(out):
        say_notes([f"{out} holds learning that was stopped; this starts anew"])
        click.echo(hint, err=True)
    try:
        click.echo(plan, err=True)
        with working("solving") as tell:
            rounds = rounds_to(tell, unit=traits_of(problem.loss).unit)
            kept = solve_and_save(
                problem,
                chosen,
                out,
                recipe=recipe,
                test=held_out,
                seed=seed,
                time_limit=time_limit,
                progress=heard,
                resume=resume is not None,
                replace=replace,
                proof=proof,
                written=written,
            )
    except KeyboardInterrupt:  # before there is a mechanism; the checkpoint has the rounds
        if begun:
            click.echo(hint, err=True)
        raise
    solution = kept.solution
    if kept.not_tested is not None:
        say_notes([f"not measured on the test data: {kept.not_tested}"])
    bound = None
    if bound_to_come and solution.ending.ended is not Ended.STOPPED:
        with working("cross-fitting certificates") as tell:
            bound = cross_fit_run(out, progress=tell)
    if as_json:
        extra = {} if bound is None else {"bound_to_come": bound.as_dict()}
        print_json({**kept.as_dict(), "run": str(out), **extra})
    else:
        if not printed:
            figures(kept)
        # the exact solver's status has it
        gap = gaps_of([solution], None)[0] if solution.ending.proof is not None else None
        if solution.ending.proof is not None:
            said = text.proof_text(solution, gap) if details else brief.proof_text(kept, gap)
            click.echo(said)
        if bound is not None:
            click.echo(show.text(bound))
        if not details:
            listed = solution.mechanism.lists_truths
            drop = foreseen(out, recipe)
            click.echo(next_text(out, recipe, drop=drop, lists_truths=listed))
        if solution.ending.ended is Ended.STOPPED and solution.ending.resumable:
            click.echo(hint, err=True)
    if solution.ending.proof in (Proving.STOPPED, Proving.TIME_LIMIT):
        click.echo(f"hint: sfumato certify {out} takes the proof up again", err=True)
    if solution.ending.proof is Proving.STOPPED:
        raise click.exceptions.Exit(stopping.exit_code())
    if solution.ending.ended is Ended.STOPPED:  # the run is whole, the learning is not
        raise click.exceptions.Exit(stopping.exit_code())


def _target(out: Path | None, resume: Path | None, solver: str) -> Path:
    if out is not None and resume is not None:
        raise click.UsageError(
            "name the run folder once: --out for a new run, --resume to resume one"
        )
    if resume is not None and not SOLVERS[solver].resumable:
        able = " and ".join(f"the {name}" for name, kind in SOLVERS.items() if kind.resumable)
        raise click.UsageError(f"only {able} can be resumed; got --solver {solver}")
    target = out or resume
    if target is None:
        raise click.UsageError("Missing option '--out': name a new run folder, --out runs/mine")
    return target

"""What a command prints unless details are asked for: few lines, columns in one order."""

import gzip
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import sfumato as sf
from sfumato.cli.options import EXACT_NAMES
from sfumato.data.recipe import Recipe
from sfumato.measure.certificate import Bounds
from sfumato.measure.estimate import Estimate
from sfumato.measure.objective import Bayes, Overlap
from sfumato.measure.outlook import Outlook
from sfumato.memory import Expected
from sfumato.render import brief, text
from sfumato.render.commands import next_text, selected_text
from sfumato.render.names import printable
from sfumato.render.text import gap_missing, gap_text, proved_text, relative_text
from sfumato.solver.outcome import FULL, NONE, QUICK, Distillation, Effort, Ending, Learned
from sfumato.study.certify import Certified, Gap, Relative
from sfumato.study.measure import TRAINING, measure
from sfumato.study.solution import Solution
from sfumato.study.solve import Kept, solve_and_save

RECIPE = Recipe("four-corners", per_user=(12, 6))
COLUMNS = ["loss m", "Bayes error ↑", "exposed ↓", "worst report ↓"]
FITTED = Outlook(
    Estimate(180.0, 175.0, 185.0, "estimate"),
    Estimate(0.512, 0.481, 0.543, "estimate"),
    Estimate(0.61, 0.5, 0.72, "estimate"),
    Estimate(0.2, 0.1, 0.3, "estimate"),
    leakage=0.488,
    checkins=480,
    folds=4,
)
GAP = Gap(Bayes(), 0.4, Bounds(0.35, None, 9), True, 0.25, 170.0, True)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    data, folder = RECIPE.load(), tmp_path_factory.mktemp("brief") / "coin"
    problem = sf.Problem(data.train, max_loss=173, cell_m=100)
    return solve_and_save(problem, sf.Coin(), folder, recipe=RECIPE, test=data.test, proof="quick")


def _columns(text: str) -> list[str]:
    return [column for column in COLUMNS if column in text.splitlines()[0]]


def test_solve_says_it_in_ten_lines(kept: Kept) -> None:
    text = brief.kept_text(kept, seconds=61.4)
    after = [brief.proof_text(kept, GAP), next_text(kept.folder, Recipe("four-corners"))]
    lines = [*text.splitlines(), *after]
    assert len(lines) <= 10
    assert lines[0].split()[:4] == ["coin,", "budget", "173", "m"] and _columns(text) == COLUMNS
    assert lines[1].startswith("on check-ins to come") and "[" in lines[1]
    assert "on held-out check-ins" not in text  # they are what the first row was measured on
    assert "a blind guess" in text and "0.750" in text and "Worst case: " in text
    assert f"Written to {kept.folder} after 61 s." in text
    assert "at most 0.650" in lines[-2] and "this mechanism has 0.600" in lines[-2]


def test_cross_fitted_figures_stand_above_held_out_ones_and_are_marked(kept: Kept) -> None:
    lines = brief.kept_text(replace(kept, to_come=FITTED), seconds=1.0).splitlines()
    assert [line.split("  ")[0] for line in lines[1:4]] == [
        "on check-ins to come",
        "on held-out check-ins",
        "on training check-ins",
    ]
    assert "≈180.0 [175.0, 185.0]!" in lines[1]


def test_what_held_out_check_ins_cost_over_the_budget_is_said(kept: Kept, tmp_path: Path) -> None:
    fitted = replace(kept, to_come=FITTED)
    loss = kept.test.loss_of_sample
    assert loss is not None and loss.low < 170 < loss.value
    within = replace(fitted, solution=_of_budget(kept, 170.0))
    said = f"Held-out check-ins lose {loss.value:.1f} m on average, over the budget of 170 m"
    assert f"{said}, by no more than chance explains" in brief.kept_text(within, seconds=1.0)
    alone = replace(kept.test, checkins=1)
    assert "explains (one check-in has no interval)" in brief.kept_text(
        replace(within, test=alone), seconds=1.0
    )
    over = replace(fitted, solution=_of_budget(kept, 0.9 * loss.low))
    assert "Warning: held-out check-ins" in brief.kept_text(over, seconds=1.0)
    assert "by more than chance explains" in text.kept_text(over, seconds=1.0)
    for budget in (loss.value, 1e3):
        kept_so = replace(fitted, solution=_of_budget(kept, budget))
        assert "eld-out check-ins lose" not in brief.kept_text(kept_so, seconds=1.0)


def test_measure_says_where_a_loss_is_over_the_budget(kept: Kept) -> None:
    loss = kept.test.loss_of_sample
    assert loss is not None
    measured = replace(measure(kept.folder), max_loss=0.9 * loss.low)
    named = replace(measured, judged={"other.csv": kept.test}, priors=None)
    said = f"Warning: the check-ins of other.csv lose {loss.value:.1f} m on average, over the"
    trained = measured.judged[TRAINING].loss.value
    for printed in (brief.measured_text, text.measured_text):
        assert f"{said} budget of {measured.max_loss:g} m, by more than chance" in printed(named)
        assert f"Warning: training check-ins lose {trained:.1f} m" in printed(measured)
        assert "lose" not in printed(replace(measured, max_loss=1e3))
    within = replace(named, max_loss=(loss.low + loss.value) / 2)
    assert "The check-ins of other.csv lose" in brief.measured_text(within)


def _of_budget(kept: Kept, max_loss: float) -> Solution:
    return replace(kept.solution, problem=replace(kept.solution.problem, max_loss=max_loss))


def test_a_loss_that_is_not_the_one_progress_ended_at_is_explained(kept: Kept) -> None:
    facts = Learned(1500, 1500, 1.0, Distillation.DONE, 2500, 0.0, None, 173.0, None)
    learned = replace(kept.solution, ending=Ending(facts=facts), history=({"loss": 160.04},))
    fitted = replace(kept, solution=learned, to_come=FITTED)
    loss = f"{learned.measured.loss.value:.1f} m"
    said = "Learning ended at a loss of 160.0 m; then the noise was set for the budget"
    assert f"{said} on check-ins to come: {loss} on the training" in brief.kept_text(
        fitted, seconds=1.0
    )
    surely = replace(fitted, solution=replace(learned, solver=sf.Codebook(confidence=0.95)))
    assert f"{said} on check-ins to come with 95 % confidence: {loss}" in text.kept_text(
        surely, seconds=1.0
    )
    these = replace(fitted, to_come=None)
    assert f"{said}: {loss} on the training" in text.kept_text(these, seconds=1.0)
    same = replace(learned, history=({"loss": learned.measured.loss.value},))
    coin = replace(learned, ending=Ending(facts=replace(facts, instead="the coin")))
    for one in (same, coin, kept.solution):
        assert "Learning ended" not in brief.kept_text(replace(fitted, solution=one), seconds=1.0)


def test_it_says_why_check_ins_to_come_use_less_than_the_budget(kept: Kept) -> None:
    """2 % of 190 m is 3.8 m: 180 m are less than that, 187 m are not."""
    facts = Learned(1500, 1500, 1.0, Distillation.DONE, 2500, 0.0, None, 190.0, None)
    spent = kept.solution.measured.loss.value
    surely = replace(
        _of_budget(kept, 190.0), ending=Ending(facts=facts), solver=sf.Codebook(confidence=0.95)
    )
    sure = "expected to use 5.3% less than the budget, so that they keep it with 95 % confidence."
    why = "the training check-ins, which must keep it too, use it up."
    near = replace(FITTED, loss=Estimate(187.0, 182.0, 192.0, "estimate"))
    below = replace(FITTED, loss=Estimate(0.9 * spent, 0.8 * spent, 0.95 * spent, "estimate"))
    averaged = replace(surely, solver=sf.Codebook())
    used_up = replace(averaged, problem=replace(averaged.problem, max_loss=spent))
    for solution, to_come, said in (
        (surely, FITTED, sure),
        (used_up, below, why),
        (surely, near, None),
        (surely, None, None),
        (averaged, FITTED, None),
        (replace(surely, ending=Ending(facts=replace(facts, loss=170.0))), FITTED, None),
    ):
        for printed in (brief.kept_text, text.kept_text):
            found = printed(replace(kept, solution=solution, to_come=to_come), seconds=1.0)
            assert ("less than the budget" in found) is (said is not None)
            assert said is None or said in found


def test_measure_and_compare_have_the_columns_of_solve(kept: Kept) -> None:
    measured = measure(kept.folder)
    text = brief.measured_text(measured)
    assert _columns(text) == COLUMNS and len(text.splitlines()) <= 10
    unknown = brief.measured_text(replace(measured, to_come=FITTED))
    row = next(line for line in unknown.splitlines() if line.startswith("on check-ins to come"))
    assert row.endswith(" -") and "worst report -: it is the largest of all" in unknown
    assert "worst report -" not in text
    assert "Best possible: " in text and measured.gap is not None
    compared = brief.compared_text(sf.compare([kept.solution], on=RECIPE.load().test))
    head = compared.splitlines()[0]
    assert _columns(compared) == COLUMNS and head.startswith("mechanism") and "gap ↓" in head
    assert "24 held-out check-ins of 4 users; a blind guess errs 0.750" in compared


def test_on_training_data_a_comparison_leads_with_check_ins_to_come(kept: Kept) -> None:
    fitted = replace(kept.solution, outlook=FITTED)
    head, row = brief.compared_text(sf.compare([fitted])).splitlines()[:2]
    assert head.index("to come: loss m") < head.index("worst report")
    assert "≈0.512 [0.481, 0.543]" in row


def test_a_bound_that_says_nothing_is_not_printed_as_one() -> None:
    assert brief.best_text(None).startswith("Nothing proved yet")
    assert "certify runs/a proves" in brief.best_text(None, "runs/a")
    nothing = replace(GAP, bounds=Bounds(0.25, None, 9))
    assert "not get below the 0.750 of a blind guess" in brief.best_text(nothing)
    off_grid = brief.best_text(replace(GAP, on_grid=False))
    assert "at most 0.650" in off_grid and "on the grid" in off_grid


def test_linked_reports_of_many_users_are_not_said_to_be_provable(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    linked = replace(kept.solution, problem=replace(kept.solution.problem, reports=10))
    of_few = brief.proof_text(replace(kept, solution=linked), None)
    monkeypatch.setattr(brief, "MOST_LINKED", 3)
    of_many = brief.proof_text(replace(kept, solution=linked), None)
    assert "certify" in of_few and "certify" not in of_many
    assert of_many == "Best possible: not proved for linked reports of more than 3 users."


def test_a_plan_says_how_much_it_is_and_what_would_make_it_less(kept: Kept) -> None:
    problem = kept.solution.problem
    wide = sf.Samples(
        secret=[0, 1, 0, 1],
        truth=[[0, 0], [90_000, 0], [0, 90_000], [400, 400]],
        secrets=("a", "b"),
    )
    far = sf.Problem(wide, max_loss=300, cell_m=500)

    def plan(problem: sf.Problem, effort: Effort, limit_s: float | None = None) -> str:
        expected = Expected(100.0, 7e8)
        return brief.plan_text(problem, "codebook", expected, effort, limit_s=limit_s)

    text = plan(problem, FULL)
    assert "48 check-ins of 4 users" in text and "2 minutes of one core and 0.7 GB" in text
    assert "to reduce this: --proof quick" in text
    assert "to reduce this: --square" in plan(far, FULL) and "90.0 × 90.0 km" in plan(far, FULL)
    assert "reduce" not in plan(problem, QUICK) and "reduce" not in plan(problem, FULL, 200.0)
    assert "proof" not in plan(problem, NONE)
    assert "; the proof that follows may take longer" in text and "(Ctrl-C ends" in text
    limited = brief.plan_text(problem, "codebook", Expected(9, 7e8), FULL, proof_s=90)
    assert "about 10 seconds of one core" in limited
    assert "takes at most 1.5 minutes more (Ctrl-C" in limited
    assert "(--time-limit ends" in plan(problem, FULL, 200.0)
    assert plan(problem, FULL, 60.0).endswith(
        "--time-limit ends it earlier and keeps the best so far"
    )
    assert "to reduce this: --square" in plan(far, NONE)
    short = brief.plan_text(far, "coin", Expected(9, 7e8), NONE)
    assert short.endswith("0.7 GB of memory")  # nothing to reduce
    unknown = brief.plan_text(problem, "exact", None, NONE)
    assert unknown.endswith("beforehand; --time-limit SECONDS ends it with the best so far")
    wide = brief.plan_text(problem, "exact", Expected(40, 3e8, within=4), NONE)
    assert "it takes 10 seconds to 3 minutes of one core and 0.3 GB of memory" in wide


def test_the_page_says_what_solving_takes() -> None:
    said = brief.plan_on_page(Expected(40, 3e8), FULL, proof_s=120)
    assert said.startswith("It takes about 40 seconds of one core and 0.3 GB of memory; the proof")
    assert said.endswith("takes at most 2 minutes more (Stop ends it and keeps its best bound).")
    assert "(the time limit ends it" in brief.plan_on_page(Expected(40, 3e8), FULL, limit_s=60)
    assert "; the time limit ends it earlier" in brief.plan_on_page(
        Expected(40, 3e8), FULL, limit_s=30
    )
    assert "not known beforehand" in brief.plan_on_page(None, NONE)


def test_the_next_command_is_for_the_file_that_was_given(tmp_path: Path) -> None:
    file = tmp_path / "checkins.csv.gz"
    file.write_bytes(gzip.compress(b'"id","Uid",lat,lon\n'))
    assert " reports.csv.gz --drop Uid;" in next_text(Path("runs/a"), Recipe(str(file)))
    listed = next_text(Path("a b"), Recipe("four-corners"), lists_truths=True)
    assert listed == "Next: sfumato measure 'a b' --details"
    categories = next_text(Path("runs/a"), Recipe(str(file), losses="losses.csv"))
    assert categories == "Next: sfumato measure runs/a --details"
    said = next_text(Path("runs/a"), Recipe(str(file), secret="who"))
    assert f"sanitize runs/a {file} reports.csv.gz --secret who --drop who;" in said
    several = next_text(Path("runs/a"), Recipe(str(file)), drop=("Uid", "a, b"))
    assert """ reports.csv.gz --drop 'Uid,"a, b"';""" in several
    square = Recipe(str(file), square=(48.85, 2.35, 900.0), per_user=(8, 2))
    assert "reports.csv.gz --drop Uid --outside drop;" in next_text(Path("runs/a"), square)
    some = next_text(Path("runs/a"), replace(square, users=("ann b", "c"), secret="who"))
    chosen = "--secret who --square 48.85,2.35,900 --users 'ann b,c' --out selected.csv"
    assert f"data {file} {chosen} && sfumato sanitize runs/a selected.csv" in some
    assert "export runs/a dist --page" in next_text(Path("runs/a"), Recipe("four-corners"))


def test_held_out_rows_of_a_selection_do_not_become_training_rows() -> None:
    said = selected_text(Path("chosen.csv"), Recipe("log.csv", top_users=6))
    assert said.startswith("Next: sfumato solve chosen.csv --max-loss")
    drawn = Recipe("log.csv", top_users=6, pool_below=3, per_user=(8, 2), overlap_weight=0.15)
    said = selected_text(Path("chosen.csv"), drawn)
    draw = "--top-users 6 --pool-below 3 --per-user 8+2 --overlap-weight 0.15"
    assert said.startswith(f"Next: sfumato solve log.csv {draw} --max-loss")
    assert said.endswith("(not chosen.csv, whose held-out rows would be training rows)")
    said = selected_text(Path("chosen.csv"), replace(drawn, per_user=(8, 0)))
    assert said == "Next: sfumato solve chosen.csv --max-loss 200 --out runs/mine"


def test_a_missing_gap_has_its_reason_beside_it(kept: Kept) -> None:
    found = sf.compare([kept.solution, sf.mechanism.Identity()], on=RECIPE.load().test)
    rows = found.rows
    bare, off = replace(rows[1], gap=None), replace(GAP, on_grid=False)
    nothing = replace(rows[0], gap=replace(GAP, bounds=Bounds(0.25, None, 9)))
    rows = (bare, replace(rows[0], gap=off), nothing, replace(bare, gap=GAP))
    found = replace(found, rows=rows)
    assert text.gaps_missing(found) == (
        "over the proved budget on training check-ins, or held to another (identity), its reports"
        " are not on the grid of the proof: certify proves for any (coin), nothing is proved beyond"
        " a blind guess: certify may prove more (coin)"
    )
    assert f"gap -: {text.gaps_missing(found)}" in str(found)
    over = replace(rows[1], gap=None)
    over = replace(over, contender=replace(over.contender, status="", max_loss=1.0))
    assert "over its budget (coin)" in text.gaps_missing(replace(found, rows=(*rows, over)))
    asked = "no proof was asked for: certify makes one (identity)"
    assert text.gaps_missing(replace(found, rows=(bare,))) == asked
    alone = sf.compare([sf.load_run(kept.folder)], on=RECIPE.load().test)
    assert "gap -: the training data was not given (train=) (coin)" in str(alone)


def test_a_short_measure_of_samples_has_intervals_and_cells(tmp_path: Path) -> None:
    rows = [f"{user},{100 * user + step % 7},{step % 5}" for user in (0, 1) for step in range(60)]
    (tmp_path / "reports.csv").write_text("user,x,y\n" + "\n".join(rows))
    measured = measure(tmp_path / "reports.csv")
    assert "without columns truth_x and truth_y the loss is not known" in measured.notes[0]
    text = brief.measured_text(measured)
    row = next(line for line in text.splitlines() if line.startswith("on "))
    assert row.count("[") == 2 and "counted on cells of 25 m, with 95 % intervals" in text


def test_a_mechanism_as_good_as_a_blind_guess_has_nothing_left_to_prove(kept: Kept) -> None:
    unproved = Bounds(0.25, None, 9)
    near, far = (replace(GAP, bounds=unproved, leakage=leakage) for leakage in (0.2509, 0.26))
    assert brief.best_text(near) == (
        "A Bayes error of 0.750 on the training check-ins, that of a blind guess; this mechanism"
        " has 0.749 there."
    )
    assert brief.best_text(far).startswith("Not known: ")
    assert "proved" in brief.best_text(replace(near, bounds=Bounds(0.2505, None, 9)))
    anywhere = replace(GAP, on_grid=False, bounds=Bounds(0.30, 0.29, 9))
    assert "at most 0.710 on the training check-ins (proved for reports anywhere)" in (
        brief.best_text(anywhere)
    )
    problem = kept.solution.problem
    said = [proved_text(near, problem), str(Certified(kept.solution, problem, near, False))]
    assert all("no mechanism leaks less than the 0.2500 of a blind guess" in one for one in said)
    row = sf.compare([kept.solution], on=RECIPE.load().test).rows[0]
    assert gap_text(replace(near, on_grid=False)) == "0.001" == gap_text(near)
    assert gap_missing(replace(row, gap=near)) == ""
    crowd = replace(near, blind=0.001, leakage=0.004, bounds=Bounds(0.001, None, 9))
    assert brief.best_text(crowd).startswith("Not known: ")  # four times as often as a blind one
    many = replace(crowd, users=3000)
    beside = " The best guess is right 4.0 times as often as a blind one (2.00 bits)."
    assert brief.best_text(many) == brief.best_text(crowd) + beside
    assert proved_text(many, problem) == proved_text(crowd, problem) + beside
    few, all_of_them = (str(Certified(kept.solution, problem, gap, True)) for gap in (crowd, many))
    assert all_of_them == few + beside


def test_what_is_proved_of_linked_reports_is_said_in_overlaps() -> None:
    said = brief.best_text(replace(GAP, objective=Overlap(), blind=0.0))
    assert said == (
        "With every mechanism some two users overlap by at most 0.6500 per report on the"
        " training check-ins (proved); with this mechanism the least overlap is 0.6000 there."
    )


HOSTILE = (
    "-x",
    "it's",
    'q"uo',
    "$(touch no)",
    "new\nline",
    "a\u2028b",
    "\x1b[2J",
    "cr\rx",
    "\u202e",
)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_next_command_names_columns_as_a_shell_and_the_option_read_them(
    name: str, tmp_path: Path
) -> None:
    """A terminal obeys no letter of it, and it is one line."""
    file = tmp_path / "table.csv"
    file.write_text("user,lat,lon\n")
    said = next_text(Path("a"), Recipe(str(file)), drop=("user", name))
    assert printable(said) == said
    word = said.partition(" --drop ")[2].partition("; all figures")[0]
    read = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, check=True)
    assert EXACT_NAMES.convert(read.stdout.decode(), None, None) == ("user", name)


@pytest.mark.parametrize("ending", ["parquet", "csv.gz", "csv"])
def test_a_next_command_is_said_of_a_file_that_was_damaged_since(
    ending: str, tmp_path: Path
) -> None:
    file = tmp_path / f"table.{ending}"
    file.write_bytes(b"\xff\x1f\x8b")
    assert " --drop user;" in next_text(Path("a"), Recipe(str(file)))


def test_the_plan_of_a_frontier_says_how_much_it_is_and_what_ends_it(kept: Kept) -> None:
    problem = kept.solution.problem
    text = brief.frontier_plan_text(problem, 20, Expected(60.0, 3e8, within=6.0))
    assert "a frontier at 20 budgets for 48 check-ins of 4 users" in text and " places in " in text
    assert "10 seconds to 6 minutes of one core and 0.3 GB of memory" in text
    assert "--time-limit SECONDS ends it" in text and "to reduce this: --per-user N" in text
    limited = brief.frontier_plan_text(problem, 20, Expected(60.0, 3e8), limit_s=30.0)
    assert limited.endswith("--time-limit ends it earlier and keeps the best bounds so far")
    soon = brief.frontier_plan_text(problem, 20, Expected(6.0, 3e8))
    assert "reduce" not in soon and "--time-limit" not in soon
    assert "not known beforehand" in brief.frontier_plan_text(problem, 20, None)


def test_what_rounding_puts_below_zero_is_no_negative_zero(kept: Kept) -> None:
    assert "as a blind one (0.00 bits)" in relative_text(Relative(1 - 1e-12, 1.0))
    below = replace(GAP, leakage=GAP.bounds.grid - 1e-9)
    certified = str(Certified(kept.solution, kept.solution.problem, below, False))
    assert certified.endswith("gap 0.0000.") and gap_text(below) == "0.000"

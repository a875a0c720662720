"""What a terminal shows: tables that line up, estimates that are marked, sentences of values."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.measure.certificate import Bounds
from sfumato.measure.estimate import Estimate
from sfumato.measure.judge import Judgement, judge_reports
from sfumato.measure.membership import Membership
from sfumato.measure.objective import Bayes
from sfumato.measure.prior import under_priors
from sfumato.measure.repeated import repeated_reports
from sfumato.render import brief
from sfumato.render.estimates import shown
from sfumato.render.text import (
    comparison_text,
    exposed_note,
    file_tells,
    in_unit,
    judged_text,
    left_out_text,
    measured_text,
    membership_text,
    priors_text,
    proved_text,
    repeated_text,
    round_text,
    text_table,
    verdict_text,
)
from sfumato.solver.frontier import Curve
from sfumato.study.certify import Gap
from sfumato.study.compare import Compared, Comparison, Contender
from sfumato.study.leave_one_out import LeftOutUser
from sfumato.study.measure import Measured
from sfumato.study.trade_off import Placed, TradeOff

DATA = sf.Samples(
    secret=[0, 0, 1, 1],
    truth=[[0, 0], [100, 0], [100, 0], [200, 0]],
    secrets=("ann", "\x1b[31mbob"),
)
PROBLEM = sf.Problem(DATA, max_loss=45, cell_m=20)
MECHANISM = sf.mechanism.Coin(0.5, (100.0, 0.0))
HALF = Estimate(0.5, 0.4, 0.6, "estimate", hits=20)


@pytest.fixture(scope="module")
def judged() -> Judgement:
    return sf.judge(MECHANISM, DATA)


def test_columns_line_up_and_names_cannot_steer_the_terminal() -> None:
    lines = text_table(["name", "value"], [["\x1b[31mbob", "1.5"], ["ann", "10.25"]]).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert "\x1b" not in "".join(lines) and lines[1].startswith("\\x1b[31mbob")


def test_an_unknown_figure_is_not_known_and_an_estimate_is_marked() -> None:
    assert shown(Estimate(float("nan"), 0, 0, "estimate")) == "not known"
    assert shown(HALF, "{:.1%}") == "≈50.0%"
    assert shown(HALF, interval=True) == "≈0.500 [0.400, 0.600]"
    assert in_unit("3", "m²") == "3 m²" and in_unit("3", "") == "3"


def test_the_users_who_are_easiest_to_guess_are_shown_where_there_are_many(
    judged: Judgement,
) -> None:
    one = judged.per_user[0]
    users = tuple(replace(one, name=f"user{n:02}", error=n / 100) for n in range(25))
    text = judged_text("many", {"test data": replace(judged, per_user=users)}, max_loss=45)
    assert "loss, metres (budget 45)" in text and "… and 5 users who are harder to guess" in text
    assert "user00" in text and "user19" in text and "user20" not in text


def test_other_shares_are_said_or_refused(judged: Judgement) -> None:
    text = priors_text(under_priors(judged), "test data")
    assert "ann twice (least error)" in text and "Whatever the shares" in text
    refused = priors_text(None, "test data")
    assert "not computed; this needs the mechanism's law in one table" in refused
    assert "sf.mechanism.Channel" in refused


def test_an_exposed_share_that_may_be_much_smaller_says_why(judged: Judgement) -> None:
    """With one report per cell all look exposed, and none need be."""
    wide = replace(HALF, value=0.421, low=0.0, high=0.43)
    note = exposed_note(replace(judged, exposed=wide))
    assert "errs high" in note and "begins at 0.0%" in note and "--cell-m" in note
    assert exposed_note(replace(judged, exposed=replace(wide, low=0.4))) == ""
    assert exposed_note(replace(judged, exposed=replace(wide, kind="exact"))) == ""
    random = np.random.default_rng(0)
    secret, reports = np.arange(40) % 2, random.uniform(-900, 900, (40, 2))
    found = judge_reports(secret, reports, sf.Grid(cell_m=25), names=("ann", "bob"))
    assert found.exposed.value > 0.9 and found.exposed.low == 0
    measured = Measured(name="log.csv", judged={"log.csv": found})
    for text in (measured_text(measured), brief.measured_text(measured)):
        assert text.count("The exposed share errs high") == 1


def test_what_a_function_has_no_figure_for_says_why_and_what_to_do() -> None:
    data = sf.four_corners(seed=0).train.split(12, 12)
    coin = sf.solve(sf.Problem(data.train, max_loss=173, cell_m=100), sf.Coin())

    def mine(truth: np.ndarray, random: np.random.Generator) -> np.ndarray:
        return truth + random.normal(0, 100, truth.shape)

    text = comparison_text(sf.compare([coin, mine], on=data.test, hits=5))
    assert "not computed" in text and "; not computed: needs the mechanism's law" in text
    assert "an sf.mechanism.Channel of reports and their chances has it" in text
    assert "not tested" in text and "; not tested: needs the training check-ins" in text
    alone = comparison_text(sf.compare([coin], on=data.test))
    assert "not computed" not in alone and "not tested" not in alone


def test_repeated_reports_have_a_column_per_count_and_one_for_endless() -> None:
    many = repeated_reports(MECHANISM, DATA, (1, 3), sticky_cell_m=25.0)
    head = repeated_text(many, "test data").splitlines()[0].split()
    assert head[-3:] == ["1", "3", "endless"]
    assert "the middle of its 25 m cell answered" in repeated_text(many, "test data")


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (Membership(30, {}, 1.0), "lists its training points"),
        (Membership(30, {}, 0.25), "25.0% of the training points are in the file"),
        (Membership(4, {}, 0.0), "Not tested: 4 places"),
        (Membership(30, {"near": HALF}, 0.0), "None of these scores"),
        (
            Membership(30, {"near": replace(HALF, value=0.9, low=0.8)}, 0.0),
            "score 'near' distinguishes",
        ),
    ],
)
def test_a_membership_test_ends_in_a_verdict(found: Membership, sentence: str) -> None:
    assert sentence in verdict_text(found) == found.verdict == found.as_dict()["verdict"]
    assert membership_text(found).endswith(found.verdict)


def test_what_a_file_tells_fits_in_a_cell_of_a_table() -> None:
    assert file_tells(None) == file_tells(Membership(4, {}, 0.0)) == "not tested"
    assert file_tells(Membership(30, {}, 0.25)) == "lists 25% of its training points"
    assert file_tells(Membership(30, {"near": HALF}, 0.0)) == "≈0.500 [0.400, 0.600]"


def test_a_round_says_what_it_has_reached() -> None:
    learned = {"done": 0.5, "loss": 12.0, "bayes_error": 0.25, "information_bits": 0.125}
    said = "50% learned: loss 12.0 m², Bayes error 0.2500, 0.1250 bits on training data"
    assert round_text(learned, unit="m²") == said
    proof: dict[str, Any] = {"proof_bound": 0.25, "proof_least": 0.275, "proof_gap": 0.002}
    proof["certificate"] = SimpleNamespace(objective="information")
    assert round_text(proof, unit="m") == (
        "the least leakage possible on this grid lies between 0.2500 and 0.2750 (0.0250 apart; the"
        " proof ends at 0.002)"
    )
    proof |= {"proof_gap": None, "certificate": SimpleNamespace(objective="bayes")}
    assert round_text(proof, unit="m") == (
        "the largest Bayes error possible on this grid lies between 0.7250 and 0.7500 (0.0250"
        " apart, 9% of the leakage)"
    )
    assert round_text({"progress": "a column", "seconds": 1.0}, unit="m") is None
    assert round_text({"resumed": learned}, unit="m²") == f"resumed where it was stopped: {said}"
    played = {
        **{"round": 0, "lattice_m": 75.0, "payoff": 0.5, "loss": 12.0, "accuracy_train": 0.6},
        **{"accuracy_validation": 0.4, "validation_bayes_error": 0.5},
    }
    text = round_text(played, unit="m")
    assert text is not None and text.startswith("round 1, lattice 75 m: payoff 0.5000, loss 12.0 m")


@pytest.mark.parametrize(("bound", "said"), [(0.6, "leaks less than 0.6000"), (0.5, "nothing")])
def test_a_bound_that_is_only_the_blind_guess_proves_nothing(bound: float, said: str) -> None:
    gap = Gap(Bayes(), 0.7, Bounds(bound, None, 9), True, 0.5, 45.0, True)
    assert said in proved_text(gap, PROBLEM)


def test_users_left_out_stand_below_what_all_users_gave(judged: Judgement) -> None:
    left_out = LeftOutUser("ann", MECHANISM, {"test data": judged}, "")
    lines = left_out_text([left_out], "test data", judged, name="coin").splitlines()
    assert lines[0].startswith("coin: left out of training, test data")
    assert [line.split()[0] for line in lines[1:]] == ["nobody", "ann"]


def test_a_comparison_says_who_is_over_the_budget_and_what_the_marks_mean(
    judged: Judgement,
) -> None:
    over = Compared(Contender("over", MECHANISM, max_loss=1.0), judged)
    about = Compared(Contender("about", MECHANISM), replace(judged, exposed=HALF))
    text = str(Comparison(DATA, None, (over, about), None))
    first, second = text.splitlines()[1:3]
    assert first.split()[1].endswith("!") and "! over its budget here" in text
    assert "≈50.0%" in second and "!" not in second
    assert text.count("not tested") == 3 and "; not tested: needs" in text  # two rows, one reason
    assert "a blind guess errs 0.500" in text


def test_a_trade_off_says_who_passes_the_curve_and_in_which_unit() -> None:
    found = sf.frontier(PROBLEM, np.array([45.0, 60.0]), gap=0.005)
    inside, better = Placed("inside", 50.0, 0.1, 0.9), Placed("better", 50.0, 0.9, 0.0)
    text = str(TradeOff(found, (inside, better)))
    assert "max loss m" in text and "reports on 20 m cells\nproved to" in text
    assert "before them: the best found" in text
    assert text.endswith(
        "better: above the curve somewhere, with reports that are not on these cells"
    )
    assert "above the curve" not in str(TradeOff(found, (inside,)))


def test_a_budget_at_which_nothing_is_proved_has_no_bound_in_the_table() -> None:
    blind, proved = (0.5, 0.0), (1.1, -0.01)  # at 60 and 80 it is no more than what a guess leaks
    budgets, reached = np.array([45.0, 60.0, 80.0]), np.array([0.7, 0.6, 0.5])
    curve = Curve(Bayes(), budgets, reached, np.array([blind, proved]), 1)
    assert curve.beyond_blind.tolist() == [True, False, True]
    found = replace(sf.frontier(PROBLEM, budgets), bayes=curve)
    rows = [line.split() for line in str(TradeOff(found, ())).splitlines()[1:4]]
    assert [row[2] for row in rows] == ["0.3500", "-", "0.5000"]
    assert "-: nothing proved there beyond a blind guess" in str(TradeOff(found, ()))

"""How a solve ended is a value; its sentence says why, and what was found."""

from dataclasses import replace

import pytest

from sfumato.measure.estimate import Estimate
from sfumato.render.endings import ending_sentence, proof_sentence
from sfumato.show import text
from sfumato.solver.outcome import (
    Calibrated,
    Distillation,
    Ended,
    Ending,
    Learned,
    LearningFailed,
    LimitsCost,
    LossProved,
    Played,
    Proved,
    Proving,
    TruthShare,
)

LEARNED = Learned(
    steps=1500,
    all_steps=1500,
    share=1.0,
    distillation=Distillation.DONE,
    most_places=2500,
    keep=0.0,
    loss=None,
    budget=173.0,
    limits=None,
)
PLAYED = Played(
    rounds=3, all_rounds=20, released_round=2, lattice_m=75.0, by_validation=True, keep=0.0
)


@pytest.mark.parametrize(
    ("ending", "sentence"),
    [
        (Ending(facts=Calibrated(172.99, 173.0, 25.0)), "Calibrated: 172.99 m of 173 m."),
        (
            Ending(facts=Calibrated(150.0, 173.0, 25.0, exact=False)),
            "Within the budget: 150.00 m of 173 m.",
        ),
        (
            Ending(facts=Calibrated(None, 173.0, 500.0)),
            "No noise fits 173 m on 500 m cells; the truth's cell is reported.",
        ),
        (Ending(facts=TruthShare(0.189)), "The truth is reported 18.9% of the time."),
        (
            Ending(facts=Proved(0.3901, 0.3892, 0.0009, "probability", 676)),
            "Optimal within 0.0009 (probability): leaks 0.3901, no mechanism on these 676 reports"
            " leaks less than 0.3892.",
        ),
        (
            Ending(Ended.TIME_LIMIT, LossProved(0.5, 140.0, 120.5)),
            "Time limit: a loss for a Bayes error of 0.5: 140.00; no mechanism on this grid reaches"
            " it below 120.50.",
        ),
        (Ending(facts=LEARNED), "Learned in 1500 steps."),
        (
            Ending(Ended.STOPPED, replace(LEARNED, share=0.05)),
            "Stopped by hand at 5% of the learning.",
        ),
        (
            Ending(Ended.TIME_LIMIT, replace(LEARNED, steps=300)),
            "Time limit: learned in 300 steps of 1500.",
        ),
        (
            Ending(Ended.TIME_LIMIT, replace(LEARNED, steps=300, compared=False)),
            "Time limit: learned in 300 steps of 1500.  There was no time to compare it with planar"
            " Laplace.",
        ),
        (
            Ending(facts=replace(LEARNED, distillation=Distillation.TOO_MANY_PLACES)),
            "Learned in 1500 steps without distillation: there are more than 2500 places.",
        ),
        (
            Ending(facts=replace(LEARNED, keep=0.05, loss=12.0)),
            "Learned in 1500 steps.  The truth's cell is reported 5.00% of the time to keep the"
            " budget.  On the training check-ins it spends 12.0 m of the 173 m.",
        ),
        (
            Ending(facts=replace(LEARNED, keep=0.25)),
            "Learned in 1500 steps.",
        ),
        (
            Ending(facts=replace(LEARNED, keep=0.25, instead="the coin")),
            "Learned in 1500 steps.  On check-ins to come the coin hides better than what was"
            " learned, so it is returned.",
        ),
        (
            Ending(Ended.TIME_LIMIT, PLAYED),
            "Time limit: 3 of 20 rounds; round 2 on a lattice of 75 m was the best on validation"
            " data.",
        ),
        (
            Ending(facts=replace(PLAYED, by_validation=False, rounds=20)),
            "Played all rounds; round 2 on a lattice of 75 m is the last.",
        ),
        (
            Ending(facts=PLAYED, exceeded=(181.204, 173.0)),
            "Loss bound exceeded: 181.20 m over 173 m.",
        ),
    ],
)
def test_an_ending_reads_as_one_plain_sentence(ending: Ending, sentence: str) -> None:
    assert ending_sentence(ending) == sentence


def test_a_proof_that_ended_early_is_said_and_a_whole_one_needs_no_word() -> None:
    assert proof_sentence(Ending(proof=Proving.STOPPED)) == (
        "The proof was stopped: the best bound so far is kept."
    )
    assert proof_sentence(Ending(proof=Proving.TIME_LIMIT)) == "Time limit: the proof ended early."
    assert proof_sentence(Ending(proof=Proving.FULL)) == proof_sentence(Ending()) == ""


def test_warnings_are_values_of_an_ending_with_sentences_of_their_own() -> None:
    over = (Estimate(383.04, 370.0, 396.0, "estimate"), 300.0)
    failed = replace(LEARNED, keep=0.1, loss=12.0)
    ending = Ending(facts=failed, over_to_come=over)
    assert [*map(text, ending.warnings)] == [
        "Warning: the truth's cell is reported 10.00% of the time to keep the budget: the learning"
        " failed; more places or steps may help.",
        "Warning: on check-ins to come the loss is 383.0 m (370.0 to 396.0), over the budget of"
        " 300 m.",
    ]
    assert "Warning" not in ending_sentence(ending) and "10.00%" not in ending_sentence(ending)
    assert Ending(facts=replace(PLAYED, keep=0.1)).warnings == (LearningFailed(0.1),)
    assert Ending(facts=replace(LEARNED, keep=0.0999)).warnings == ()
    assert Ending(facts=replace(failed, instead="the coin")).warnings == ()
    assert Ending(facts=failed, exceeded=(181.2, 173.0)).warnings == ()


def test_worst_case_limits_say_what_they_cost_and_how_geo_epsilon_was_measured() -> None:
    cost = LimitsCost(0.60, 0.55, 173.0, 170.0, 0.028, 0.0135, 900)
    said = ending_sentence(Ending(facts=replace(LEARNED, limits=cost)))
    assert "cost 0.0500 of Bayes error (0.6000 to 0.5500, 173.0 m to 170.0 m)" in said
    assert "0.028 per metre at the data's points (exact); at least 0.0135 over the region" in said


@pytest.mark.parametrize("ended", list(Ended))
def test_a_solver_without_facts_of_its_own_still_ends_in_a_sentence(ended: Ended) -> None:
    assert ending_sentence(Ending(ended)).endswith(".")

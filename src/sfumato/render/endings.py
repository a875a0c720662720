"""How a solve ended, in a sentence."""

from sfumato.measure.linked import Linked
from sfumato.render.estimates import shown
from sfumato.show import text
from sfumato.solver.outcome import (
    Calibrated,
    Distillation,
    Ended,
    Ending,
    EndlessProved,
    Learned,
    LearningFailed,
    LimitsCost,
    LossProved,
    OverlapProved,
    OverToCome,
    Played,
    Proved,
    Proving,
    TruthShare,
)

_BETWEEN = "  "  # sentences
_PROOFS = {
    Proving.TIME_LIMIT: "Time limit: the proof ended early.",
    Proving.STOPPED: "The proof was stopped: the best bound so far is kept.",
    Proving.NO_MEMORY: (
        "A proof needs more memory than is free: solve for fewer users or with larger cells."
    ),
}


@text.register
def ending_sentence(ending: Ending) -> str:
    """One sentence, or a few: why the solver stopped and what it can say of what it found."""
    said = _said(ending, ending.loss_unit and f" {ending.loss_unit}")
    if ending.linked is not None:
        said += f"{_BETWEEN}{linked_sentence(ending.linked)}"
    return said


@text.register
def failed_sentence(failed: LearningFailed) -> str:
    """A warning."""
    return (
        f"Warning: the truth's cell is reported {failed.share:.2%} of the time to keep the budget:"
        " the learning failed; more places or steps may help."
    )


@text.register
def over_sentence(over: OverToCome) -> str:
    """A warning."""
    loss, unit = over.loss, over.unit and f" {over.unit}"
    return (
        f"Warning: on check-ins to come the loss is {loss.value:.1f}{unit} ({loss.low:.1f} to"
        f" {loss.high:.1f}), over the budget of {over.budget:g}{unit}."
    )


def linked_sentence(linked: Linked, *, on: str = "") -> str:
    """What is left when several reports of one user are seen together.

    >>> from sfumato.measure.estimate import Estimate
    >>> linked_sentence(Linked(10, Estimate(0.11, 0.1, 0.12, "estimate"), 0.8))
    'For 10 reports seen together: Bayes error ≈0.110, least overlap of two users 0.8000.'
    """
    start = "The same" if on else f"For {linked.reports} reports seen together"
    error, overlap = shown(linked.bayes_error), linked.overlap
    return f"{start}{on}: Bayes error {error}, least overlap of two users {overlap:.4f}."


def proof_sentence(ending: Ending, *, bound: bool = True) -> str:
    """How the proof that followed a solve ended, with a bound or without, where it ended early;
    else nothing."""
    if ending.proof is Proving.STOPPED and not bound:
        return "The proof was stopped before its first bound."
    return "" if ending.proof is None else _PROOFS.get(ending.proof, "")


def _said(ending: Ending, unit: str) -> str:
    if ending.exceeded is not None:
        loss, budget = ending.exceeded
        return f"Loss bound exceeded: {loss:.2f}{unit} over {budget:g}{unit}."
    late = ending.ended is Ended.TIME_LIMIT
    match ending.facts:
        case Calibrated(loss=None, budget=budget, cell_m=cell_m):
            return (
                f"No noise fits {budget:g}{unit} on {cell_m:g} m cells; the truth's cell is"
                " reported."
            )
        case Calibrated(loss=float(loss), budget=budget, exact=exact):
            verdict = "Calibrated" if exact else "Within the budget"
            return f"{verdict}: {loss:.2f}{unit} of {budget:g}{unit}."
        case TruthShare(share=share):
            return f"The truth is reported {share:.1%} of the time."
        case Proved() as facts:
            return (
                f"{'Time limit: proved only to within' if late else 'Optimal within'}"
                f" {facts.gap:.2g} ({facts.unit}): leaks {facts.leakage:.4f}, no mechanism on these"
                f" {facts.reports:,} reports leaks less than {facts.bound:.4f}."
            )
        case LossProved() as facts:
            return (
                f"{'Time limit: a loss' if late else 'Smallest loss'} for a Bayes error of"
                f" {facts.bayes_error:g}: {facts.loss:.2f}; no mechanism"
                f" {'on this grid' if unit else 'with these reports'} reaches it"
                f" below {facts.bound:.2f}."
            )
        case OverlapProved() as facts:
            return (
                f"{'Time limit: any' if late else 'Any'} two users overlap by at least"
                f" {facts.overlap:.4f} per report; no mechanism on these {facts.reports:,} reports"
                f" keeps every pair above {facts.bound:.4f}."
            )
        case EndlessProved() as facts:
            return (
                f"{'Time limit: a loss' if late else 'Smallest loss'} at which no number of"
                f" reports tells anything: {facts.loss:.4g}{unit}; no mechanism on this grid does"
                f" it below {facts.bound:.4g}{unit}."
            )
        case Learned() as facts:
            return _BETWEEN.join(_learned(ending, facts, unit))
        case Played() as facts:
            return _BETWEEN.join([_played(ending.ended, facts), *_kept(ending, facts)])
    return {
        Ended.FINISHED: "Finished.",
        Ended.TIME_LIMIT: "Time limit: the best so far.",
        Ended.STOPPED: "Stopped by hand: the best so far.",
    }[ending.ended]


def _learned(ending: Ending, facts: Learned, unit: str) -> list[str]:
    ended, done = ending.ended, f"earned in {facts.steps} steps"
    if ended is Ended.STOPPED:
        start = f"Stopped by hand at {facts.share:.0%} of the learning"
    elif facts.distillation is Distillation.NO_TIME:
        start = f"Time limit: l{done}, without distillation"
    elif ended is Ended.TIME_LIMIT:
        start = f"Time limit: l{done} of {facts.all_steps}"
    elif facts.distillation is Distillation.NO_LAW:
        start = f"L{done} without distillation: no law on these places keeps the budgets"
    elif facts.distillation is Distillation.TOO_MANY_PLACES:
        start = f"L{done} without distillation: there are more than {facts.most_places} places"
    else:
        start = f"L{done}"
    parts = [f"{start}."]
    if not facts.compared:
        parts.append("There was no time to compare it with planar Laplace.")
    if not facts.searched:
        parts.append(
            "There was no time to refine the budget on training check-ins: it is a first estimate."
        )
    if facts.reports is not None:
        parts.append(
            f"On check-ins to come a net learned for one report hides {facts.reports} reports"
            " better,"
            " so it is returned."
        )
    if facts.instead is not None:
        parts.append(
            f"On check-ins to come {facts.instead} hides better than what was learned, so it is"
            " returned."
        )
        return parts
    parts += _kept(ending, facts)
    if facts.loss is not None:
        parts.append(
            f"On the training check-ins it spends {facts.loss:.1f}{unit} of the"
            f" {facts.budget:g}{unit}."
        )
    if facts.limits is not None:
        parts += _limits(facts.limits, unit)
    return parts


def _limits(cost: LimitsCost, unit: str) -> list[str]:
    parts = [
        f"The worst-case limits cost {cost.bayes_error_without - cost.bayes_error:.4f} of Bayes"
        f" error ({cost.bayes_error_without:.4f} to {cost.bayes_error:.4f},"
        f" {cost.loss_without:.1f}{unit} to {cost.loss:.1f}{unit}) compared with the same net"
        " without them."
    ]
    if cost.geo_epsilon is not None:
        parts.append(
            f"Geo-indistinguishable to {cost.geo_epsilon:.4g} per metre at the data's points"
            f" (exact); at least {cost.geo_epsilon_region:.4g} over the region (its worst pair"
            f" among {cost.lattice_points} places of a lattice)."
        )
    return parts


def _played(ended: Ended, facts: Played) -> str:
    rounds = f"{facts.rounds} of {facts.all_rounds} rounds"
    start = {
        Ended.FINISHED: "Played all rounds",
        Ended.TIME_LIMIT: f"Time limit: {rounds}",
        Ended.STOPPED: f"Stopped by hand: {rounds}",
    }[ended]
    why = "was the best on validation data" if facts.by_validation else "is the last"
    return f"{start}; round {facts.released_round} on a lattice of {facts.lattice_m:g} m {why}."


def _kept(ending: Ending, facts: Learned | Played) -> list[str]:
    """How often the truth's cell is reported, where no warning says it."""
    if facts.keep <= 0 or LearningFailed(facts.keep) in ending.warnings:
        return []
    return [f"The truth's cell is reported {facts.keep:.2%} of the time to keep the budget."]

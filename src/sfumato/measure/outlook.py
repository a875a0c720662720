"""What to expect of a mechanism on check-ins to come."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from math import ceil, floor, isfinite, log10
from typing import Any, Literal

from sfumato.measure.estimate import Estimate, square_of_information, wilson
from sfumato.measure.exact import mutual_information
from sfumato.measure.judge import Judgement
from sfumato.measure.objective import Objective

_SAYS = 0.10  # a loss that is known less closely than this part of the budget says little
_ENOUGH = 0.05
_DEVIATIONS = 1.96  # a 95 % interval


@dataclass(frozen=True, repr=False)
class Outlook:
    """Loss and leakage on check-ins to come, with intervals at `confidence`.

    `how` says what they were measured on: check-ins that were held out of the whole learning, or
    folds of the training data, each by a mechanism that was learned without it.  `checkins` is the
    number of check-ins behind the figures; `folds` is 0 for held-out data.  `leakage` is the
    problem's objective, and `baselines` that of simple mechanisms at the same budget on the same
    check-ins.  `blind_error` is the Bayes error of a guess that sees no report; records that are
    older lack it.

    >>> loss = Estimate(300.0, 290.0, 310.0, "estimate")
    >>> error = Estimate(0.5, 0.45, 0.55, "estimate")
    >>> Outlook(loss, error, error, error, leakage=0.5, checkins=492, folds=4)
    <Outlook: loss 300, Bayes error 0.500 on 492 check-ins to come (cross-fitted)>
    """

    loss: Estimate
    bayes_error: Estimate
    information_bits: Estimate
    exposed: Estimate
    leakage: float
    checkins: int
    folds: int = 0
    confidence: float = 0.95
    baselines: Mapping[str, float] = field(default_factory=dict)
    blind_error: float | None = None

    @property
    def how(self) -> Literal["cross-fitted", "held-out"]:
        return "cross-fitted" if self.folds else "held-out"

    @classmethod
    def held_out(cls, judged: Judgement, objective: Objective) -> "Outlook | None":
        """From a judgement on check-ins that were held out; None where the data is no sample.

        The 95 % intervals treat each check-in as one observation.  Those of the Bayes error and of
        exposed reports are Wilson's, that of information is by the spread of its logarithms: all
        are rather too wide.  The upper end of the Bayes error is that of the guesses learnt on
        training data, as the error of the check-ins' own law is low with few of them, and never
        above that of a blind guess.
        """
        loss, count = judged.loss_of_sample, judged.checkins
        if loss is None or count is None or not isfinite(loss.value):
            return None
        error, bits = judged.bayes_error.value, judged.information_bits.value
        guessed = error if judged.learnt_error is None else judged.learnt_error.value
        spread = square_of_information(judged.joint) - mutual_information(judged.joint) ** 2
        off = _DEVIATIONS * (max(0.0, spread) / count) ** 0.5
        exposed, blind = judged.exposed.value, 1 - float(judged.joint.prior.max())
        few = "with few check-ins"
        return cls(
            loss=loss,
            bayes_error=Estimate(
                error,
                wilson(error, count)[0],
                max(error, min(blind, wilson(max(error, guessed), count)[1])),
                "estimate",
                errs=f"low {few}",
            ),
            information_bits=Estimate(
                bits, max(0.0, bits - off), bits + off, "estimate", errs=f"high {few}"
            ),
            exposed=Estimate(exposed, *wilson(exposed, count), "estimate", errs=f"high {few}"),
            leakage=objective.leakage(judged.joint),
            checkins=count,
            blind_error=blind,
        )

    def over(self, budget: float) -> bool:
        """Whether the loss is over a budget by more than its interval."""
        return self.loss.low > budget * (1 + 1e-9)

    def says_little(self, budget: float) -> bool:
        """Whether the interval of the loss is wider than 10 % of the budget to either side."""
        return not self._half_width <= _SAYS * budget

    def checkins_for(self, budget: float, *, within: float = _ENOUGH) -> int | None:
        """About how many check-ins would tell the loss to `within` of the budget, to either side:
        n (half width / (within budget))^2, rounded up to two digits.  None where a single check-in
        tells nothing of their spread.

        >>> loss, other = Estimate(300.0, 240.0, 360.0, "estimate"), Estimate.exact(0.5)
        >>> outlook = Outlook(loss, other, other, other, leakage=0.5, checkins=120)
        >>> outlook.says_little(300), outlook.checkins_for(300)  # 120 * (60 / 15)^2 = 1920
        (True, 2000)
        """
        needed = self.checkins * (self._half_width / (within * budget)) ** 2
        if not isfinite(needed):
            return None
        step = 10 ** max(0, floor(log10(max(needed, 1.0))) - 1)
        return max(1, ceil(needed / step - 1e-9)) * step

    @property
    def _half_width(self) -> float:
        return (self.loss.high - self.loss.low) / 2

    def __repr__(self) -> str:
        return (
            f"<Outlook: loss {self.loss.value:.4g}, Bayes error {self.bayes_error.value:.3f} on"
            f" {self.checkins:,} check-ins to come ({self.how})>"
        )

    def as_dict(self) -> dict[str, Any]:
        """For JSON: lengths in metres, information in bits."""
        return {"how": self.how, **asdict(self), "baselines": dict(self.baselines)}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "Outlook":
        """From JSON."""
        figures = ("loss", "bayes_error", "information_bits", "exposed")
        known = {"blind_error": None, **document}
        stored = {part.name: known[part.name] for part in fields(cls)}
        return cls(**stored | {name: Estimate(**document[name]) for name in figures})

"""What to expect of a mechanism on check-ins to come."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sfumato.measure.estimate import Estimate


@dataclass(frozen=True, repr=False)
class Outlook:
    """Loss and leakage on check-ins to come, with intervals at `confidence`.

    `how` says what they were measured on: check-ins that were held out of the whole learning, or
    folds of the training data, each by a mechanism that was learned without it.  `checkins` is the
    number of check-ins behind the figures; `folds` is 0 for held-out data.  `leakage` is the
    problem's objective, and `baselines` that of simple mechanisms at the same budget on the same
    check-ins.

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

    @property
    def how(self) -> Literal["cross-fitted", "held-out"]:
        return "cross-fitted" if self.folds else "held-out"

    def __repr__(self) -> str:
        return (
            f"<Outlook: loss {self.loss.value:.4g}, Bayes error {self.bayes_error.value:.3f} on"
            f" {self.checkins:,} check-ins to come ({self.how})>"
        )

    def as_dict(self) -> dict[str, Any]:
        """For JSON: lengths in metres, information in bits."""
        return {
            "how": self.how,
            "loss": self.loss.as_dict(),
            "bayes_error": self.bayes_error.as_dict(),
            "information_bits": self.information_bits.as_dict(),
            "exposed": self.exposed.as_dict(),
            "leakage": self.leakage,
            "checkins": self.checkins,
            "folds": self.folds,
            "confidence": self.confidence,
            "baselines": dict(self.baselines),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "Outlook":
        """From JSON."""
        names = ("loss", "bayes_error", "information_bits", "exposed")
        return cls(
            **{name: Estimate(**document[name]) for name in names},
            leakage=document["leakage"],
            checkins=document["checkins"],
            folds=document["folds"],
            confidence=document["confidence"],
            baselines=document["baselines"],
        )

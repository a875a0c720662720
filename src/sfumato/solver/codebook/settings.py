"""What a codebook is learned with."""

from dataclasses import dataclass
from typing import Any

from sfumato.errors import ProblemError, arg
from sfumato.solver.setting import setting

CLOSEST = {
    "resampled_share": 0.0,
    "places": 256,
    "wave_scale": 8.0,
    "steps": 5000,
    "distillation": 0.4,
}


@dataclass(frozen=True)
class CodebookSettings:
    """Places, steps, limits and the net; see the fields."""

    places: int = setting(128, "How many report places there are.", option="N")
    steps: int = setting(1500, "Steps of learning.", option="N")
    resampled_share: float | None = setting(
        None,
        "Share of the objective that is judged on resampled training data, moved about as far as"
        " check-ins lie from each other: 0 comes closest to the bound on the training data, more"
        " holds better for new check-ins (0.5 unless set, 0.7 where no user has 200 check-ins).",
        option="SHARE",
    )
    blend: float = setting(
        0.0, "Share of mutual information in what is lowered besides the objective.", option="SHARE"
    )
    max_posterior: float | None = setting(
        None,
        "The largest posterior that any single report may give any user, on the training data.",
        option="P",
    )
    max_exposed: float | None = setting(
        None,
        "The largest share of reports that may leave one user above 90 % posterior.",
        option="SHARE",
    )
    geo_epsilon: float | None = setting(
        None, "Geo-indistinguishability per metre, at most, at the data's points.", option="E"
    )
    hidden: tuple[int, ...] = setting((64, 64), "Units of the net's hidden layers.")
    waves: int = setting(64, "Sines and cosines of the truth that the net sees.")
    wave_scale: float = setting(4.0, "How fast the waves are; more makes a finer net.")
    rate: float = setting(3e-3, "Learning rate of Adam.")
    redraws: int = setting(4, "Resampled data sets per step, at least.")
    distillation: float = setting(
        0.0,
        "Share of the steps, at the end, in which the net is taught the optimal law on its places,"
        " as the exact solver finds it for the training data.",
    )
    certify: bool = setting(True, "Prove a bound as well.", option="flag")

    def __post_init__(self) -> None:
        if not (
            self.places >= 2
            and self.steps >= 1
            and self.waves >= 1
            and self.redraws >= 1
            and self.rate > 0
            and self.hidden
        ):
            raise ProblemError(
                "a codebook needs 2 places, 1 step, 1 wave, 1 redraw, a layer and a rate above 0,"
                f" at least; got {self}"
            )
        shares = ("resampled_share", "blend", "max_posterior", "max_exposed", "distillation")
        for name in shares:
            value = getattr(self, name)
            least_ok = value is None or (value > 0 if name == "max_posterior" else value >= 0)
            if not (least_ok and (value is None or value <= 1)):
                raise ProblemError(f"{arg(name)} is a share between 0 and 1; got {value}")
        limited = (self.max_posterior, self.max_exposed, self.geo_epsilon) != (None, None, None)
        if self.distillation == 1 or (self.distillation and limited):
            raise ProblemError(
                f"{arg('distillation')} is a share below 1 of the steps and knows no worst-case"
                " limits; leave one out"
            )
        if self.geo_epsilon is not None and not self.geo_epsilon > 0:
            raise ProblemError(f"{arg('geo_epsilon')} is above 0 per metre; got {self.geo_epsilon}")

    @classmethod
    def closest(cls, **changes: Any) -> Any:
        """Settings that come closest to the bound on the training data: no resampling, a finer net,
        more places, distillation.

        They fit the very check-ins that they were given; the default holds better for others.
        """
        return cls(**{**CLOSEST, **changes})

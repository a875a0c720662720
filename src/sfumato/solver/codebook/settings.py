"""What a codebook is learned with."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from sfumato.data.samples import MANY_USERS, Samples
from sfumato.errors import ProblemError, arg
from sfumato.measure.objective import Bayes
from sfumato.solver.problem import Problem
from sfumato.solver.setting import setting

NEW, THESE = "new", "these"
_STEPS, _MOST_STEPS = 1500, 8000
_FEWEST_PLACES, _MOST_PLACES = 128, 1024
# report places per square of the budget's side that holds a check-in, and where users have many
_PLACES_PER_SQUARE, _PLACES_PER_RICH_SQUARE = 1.0, 3.0
_WAVE_SCALE, _USUAL_SPREAD = 4.0, 4.0  # the waves of data that spreads over four budgets
_IMITATED = 3000, 0.25, 3  # where users are many: steps, share of moved truths, times as fast waves
_WIDER = 4  # times as many units and waves
_FEWEST_IMITATED = 1000  # steps: with fewer a law is not followed, and learning alone is better
_ENOUGH_EACH = 12  # check-ins of a check-in's user, on average; fewer are fitted too closely
_MOST_OF_LAW = 12_000_000  # truths times places: more are not followed, and take memory
_FEW = 200  # check-ins of the largest user; with fewer they are trusted less
_RESAMPLED, _RESAMPLED_OF_FEW = 0.5, 0.7
_WORK = 2**18  # truths times places that a step looks at, and as many redrawn ones
_FEWEST_ROWS, _ROWS_OF_THESE = 256, 2048
BATCH = 512  # check-ins of a step where users are many


class Capacity(NamedTuple):
    """The settings that may be left open, none of them open (see `CodebookSettings`), whether no
    user has many check-ins, and how many times wider the net is than the settings say."""

    places: int
    steps: int
    wave_scale: float
    resampled_share: float
    distillation: float
    few: bool
    wider: int = 1


@dataclass(frozen=True)
class CodebookSettings:
    """Places, steps, limits and the net; see the fields."""

    made_for: Literal["new", "these"] = setting(
        NEW,
        "Keep the budget and hide users on check-ins to come (new), or on the given ones alone"
        " (these), as close to the bound as possible.",
        option="WHOM",
        flag="--for",
    )
    confidence: float | None = setting(
        None,
        "Keep the budgets with this confidence, such as 0.95, in a later period with at least a"
        " quarter as many check-ins as the data (with more than 200 users: over all check-ins to"
        " come). Unless set, they are kept in expectation.",
        option="P",
    )
    places: int | None = setting(
        None, "Number of report places; unless set, by area, budget and data.", option="N"
    )
    steps: int | None = setting(
        None, "Steps of learning, rounded up to a multiple of 20.", option="N"
    )
    resampled_share: float | None = setting(
        None,
        "Share of the objective that is judged on resampled training data, moved about as far as"
        " check-ins lie from each other; unless set, by what the mechanism is for.",
    )
    blend: float = setting(
        0.0,
        "Share of mutual information that is minimised along with the objective.",
        option="SHARE",
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
        None, "Largest geo-indistinguishability, per metre, at the data's points.", option="E"
    )
    hidden: tuple[int, ...] = setting(
        (64, 64),
        "Units of the net's hidden layers; four times as many where it imitates a law (with more"
        " than 200 users).",
    )
    waves: int = setting(
        64,
        "Sines and cosines of the truth that the net sees; four times as many where it imitates a"
        " law.",
    )
    wave_scale: float | None = setting(None, "How fast the waves are; more makes a finer net.")
    rate: float = setting(3e-3, "Learning rate of Adam.")
    redraws: int = setting(4, "Resampled data sets per step, at least.")
    distillation: float | None = setting(
        None,
        "Share of the steps, at the end, in which the net imitates the optimal law on its places,"
        " as the exact solver finds it for the training data.",
    )

    def __post_init__(self) -> None:
        if self.made_for not in (NEW, THESE):
            raise ProblemError(f"{arg('made_for')} is {NEW} or {THESE}; got {self.made_for!r}")
        if self.confidence is not None and not 0.5 <= self.confidence < 1:
            raise ProblemError(
                f"{arg('confidence')} is at least 0.5 and below 1; got {self.confidence}"
            )
        if self.confidence is not None and self.made_for == THESE:
            raise ProblemError(
                f"{arg('confidence')} is about check-ins to come; leave it out where the mechanism"
                " is made for these alone"
            )
        if not (
            (self.places is None or self.places >= 2)
            and (self.steps is None or self.steps >= 1)
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
        if self.distillation == 1 or (self.distillation and self.limited):
            raise ProblemError(
                f"{arg('distillation')} is a share below 1 of the steps and does not go with"
                " worst-case limits; leave one out"
            )
        if self.geo_epsilon is not None and not self.geo_epsilon > 0:
            raise ProblemError(f"{arg('geo_epsilon')} is above 0 per metre; got {self.geo_epsilon}")

    @property
    def limited(self) -> bool:
        """Whether a worst-case limit is set."""
        return (self.max_posterior, self.max_exposed, self.geo_epsilon) != (None, None, None)

    def imitates(self, problem: Problem) -> bool:
        """Whether a net for many users imitates a law: where it is asked to; or where it takes
        enough steps, the truths are not too many, and users, if it is for check-ins to come, have
        enough check-ins."""
        if self.distillation is not None or not imitable(problem):
            return bool(self.distillation) and imitable(problem)
        enough = self.steps is None or self.steps >= _FEWEST_IMITATED
        if self.made_for == NEW:
            assert isinstance(problem.samples, Samples)
            counts = problem.samples.counts.astype(float)
            enough = enough and float(counts @ counts / counts.sum()) >= _ENOUGH_EACH
        return enough and len(problem.places) <= most_imitated(self.places)

    def capacity(self, problem: Problem) -> Capacity:
        """What was left open, as this problem needs it.

        The report places and the waves follow from how many squares of the budget's side hold a
        check-in, and from how far the check-ins spread in units of the budget.  More places take
        more steps; where users have few check-ins, neither gains anything.  Where users are many,
        the net imitates a law from the first step, if it can, which takes a wider net.
        """
        assert isinstance(problem.samples, Samples)
        few = int(problem.samples.counts.max()) < _FEW
        crowd = len(problem.samples.secrets) > MANY_USERS
        imitates = crowd and self.imitates(problem)
        if self.made_for == THESE and not imitates:
            capacity = Capacity(256, 5000, 8.0, 0.0, 0.0 if self.limited else 0.4, few)
        else:
            squares = np.unique(np.floor(problem.places / problem.scale_m), axis=0)
            spread = np.sqrt(problem.places.var(axis=0).mean()) / problem.scale_m
            rich = not few and not crowd
            per_square = _PLACES_PER_RICH_SQUARE if rich else _PLACES_PER_SQUARE
            places = np.clip(per_square * len(squares), _FEWEST_PLACES, _MOST_PLACES)
            steps = _STEPS
            if rich:
                steps = min(int(_STEPS * places / _FEWEST_PLACES), _MOST_STEPS)
            capacity = Capacity(
                places=int(places),
                steps=steps,
                wave_scale=_WAVE_SCALE * max(1.0, float(spread) / _USUAL_SPREAD),
                resampled_share=_RESAMPLED_OF_FEW if few else _RESAMPLED,
                distillation=0.0,
                few=few,
            )
        if imitates:
            steps, moved, faster = _IMITATED
            capacity = capacity._replace(
                steps=steps,
                wave_scale=faster * capacity.wave_scale,
                resampled_share=moved if self.made_for == NEW else 0.0,
                distillation=1.0,
                wider=_WIDER,
            )
        given = {name: getattr(self, name, None) for name in capacity._fields}
        return capacity._replace(**{name: v for name, v in given.items() if v is not None})


def imitable(problem: Problem) -> bool:
    """Whether a first-order method finds a law for many users: for the Bayes error, with no cap."""
    return isinstance(problem.objective, Bayes) and problem.max_distance is None


def most_imitated(places: int | None) -> int:
    """At how many truths a law on that many places (unless set, as many as there may be) is
    imitated, at most."""
    return _MOST_OF_LAW // (places or _MOST_PLACES)


def rows_in_a_step(settings: CodebookSettings, capacity: Capacity) -> int:
    """How many truths a step of learning looks at, at most."""
    if settings.made_for == THESE:
        return _ROWS_OF_THESE
    return max(_FEWEST_ROWS, _WORK // capacity.places)

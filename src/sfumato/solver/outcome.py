"""What a solver is, and what it gives back: a mechanism, and how the solve ended as a value (its
sentence is made in `sfumato.render.endings`)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from sfumato.arguments import guided
from sfumato.measure.certificate import Certificate
from sfumato.measure.estimate import Estimate
from sfumato.measure.linked import Linked
from sfumato.measure.outlook import Outlook
from sfumato.mechanism.base import Mechanism
from sfumato.memory import Expected
from sfumato.show import Guided
from sfumato.solver.deadline import NEVER, Deadline
from sfumato.solver.problem import Problem

Progress = Callable[[dict[str, Any]], None]  # called with a record of each round or step
Checkpoint = Path | None  # the file of a resumable solver's state

Effort = Literal["none", "quick", "full"]  # of the proof that follows a solve
NONE: Effort = "none"
QUICK: Effort = "quick"
FULL: Effort = "full"
_TYPE = "sf.solve(sf.Problem(data, max_loss=METRES), solver)"
FOR_THE_PROOF = 0.2  # of a time limit
_FAILED = 0.1  # a mechanism that reports the truth's cell this often did not learn its budget


class Proving(Enum):
    """How the proof that followed a solve came to its end; the values stand in run.json under
    "proof"."""

    FULL = "full"
    QUICK = "quick"
    TIME_LIMIT = "time limit"
    STOPPED = "stopped"  # by hand
    NO_MEMORY = "no memory"  # nothing is proved


class Ended(Enum):
    """Why a solve came to its end; the values stand in run.json under "ended"."""

    FINISHED = "finished"
    TIME_LIMIT = "time limit"
    STOPPED = "stopped"  # by hand


class Distillation(Enum):
    """What became of the distillation that a codebook was asked for."""

    DONE = "done"
    NO_TIME = "no time"
    TOO_MANY_PLACES = "too many places"
    NO_LAW = "no law"  # no law on the report places keeps the budgets


def proof_line(
    certificate: Certificate, bound: float, least: float, gap: float | None
) -> dict[str, Any]:
    """What progress is called with at each better proof: the least leakage lies between `bound` and
    `least`, in the objective's unit, and the proof ends where they are `gap` apart (None: after a
    number of steps)."""
    return {
        "proof_bound": bound,
        "proof_least": least,
        "proof_gap": gap,
        "certificate": certificate,
    }


@dataclass(frozen=True)
class Calibrated:
    """Noise was scaled to a budget, both in metres; `loss` is None where no noise fits."""

    loss: float | None
    budget: float
    cell_m: float
    exact: bool = True


@dataclass(frozen=True)
class TruthShare:
    """The truth is reported with this chance."""

    share: float


@dataclass(frozen=True)
class Proved:
    """The leakage that was reached and the bound that no mechanism on `reports` reports goes below,
    in `unit`."""

    leakage: float
    bound: float
    gap: float
    unit: str
    reports: int


@dataclass(frozen=True)
class LossProved:
    """The smallest loss found for a Bayes error, and the loss that no mechanism goes below."""

    bayes_error: float
    loss: float
    bound: float


@dataclass(frozen=True)
class OverlapProved:
    """The least overlap that was reached and the one that no mechanism on `reports` reports goes
    beyond."""

    overlap: float
    bound: float
    reports: int


@dataclass(frozen=True)
class EndlessProved:
    """The smallest loss found at which no number of reports tells anything, and the loss that no
    such mechanism goes below."""

    loss: float
    bound: float


@dataclass(frozen=True)
class LimitsCost:
    """What worst-case limits cost: Bayes error and loss without and with them; geo-epsilon per
    metre at the data's points and (at least) over the region, where it was asked for."""

    bayes_error_without: float
    bayes_error: float
    loss_without: float
    loss: float
    geo_epsilon: float | None = None
    geo_epsilon_region: float | None = None
    lattice_points: int = 0


@dataclass(frozen=True)
class Learned:
    """A codebook: `steps` of `all_steps` done, `share` of the schedule; how the law was brought
    within its limits.

    `keep` is the chance that the truth's own cell is reported; `loss` is set where it stays well
    below `budget`; `instead` names the baseline that was returned because it hides check-ins to
    come better; `compared` is false where there was no time to try planar Laplace, `searched` where
    there was none to search on for the budget on training data; `reports` is how many were asked
    for, where what is learned for one report hides them better.
    """

    steps: int
    all_steps: int
    share: float
    distillation: Distillation
    most_places: int
    keep: float
    loss: float | None
    budget: float | None
    limits: LimitsCost | None
    instead: str | None = None
    compared: bool = True
    searched: bool = True
    reports: int | None = None


@dataclass(frozen=True)
class Played:
    """A game: `rounds` of `all_rounds`, the round and lattice that were released, and the chance
    that the truth's own cell is reported."""

    rounds: int
    all_rounds: int
    released_round: int
    lattice_m: float
    by_validation: bool
    keep: float


Facts = (
    Calibrated | TruthShare | Proved | LossProved | OverlapProved | EndlessProved | Learned | Played
)


@dataclass(frozen=True)
class LearningFailed:
    """A learned mechanism keeps its budget only by reporting the truth's cell with this chance."""

    share: float


@dataclass(frozen=True)
class OverToCome:
    """The loss on check-ins to come is above the budget by more than its interval."""

    loss: Estimate
    budget: float
    unit: str


@dataclass(frozen=True)
class Ending:
    """How a solve ended.

    `facts` is what the solver knows of it; `resumable`, whether a checkpoint holds learning that
    can be resumed; `exceeded`, the measured loss and the budget where the first is above the
    second; `over_to_come`, the loss on check-ins to come and the budget where the first is above
    the second by more than its interval; `linked`, what is left on the training data when several
    reports are seen together, where it was made for that; `proof`, how the proof that followed
    ended, None where none did; `loss_unit`, the unit of every loss among these.
    """

    ended: Ended = Ended.FINISHED
    facts: Facts | None = None
    resumable: bool = False
    exceeded: tuple[float, float] | None = None
    over_to_come: tuple[Estimate, float] | None = None
    linked: Linked | None = None
    proof: Proving | None = None
    loss_unit: str = "m"

    @property
    def warnings(self) -> tuple[LearningFailed | OverToCome, ...]:
        """What marks a fit that failed."""
        warnings: list[LearningFailed | OverToCome] = []
        match self.facts:
            case Learned(instead=None, keep=share) | Played(keep=share) if self.exceeded is None:
                warnings += [LearningFailed(share)] if share >= _FAILED else []
        if self.over_to_come is not None:
            warnings.append(OverToCome(*self.over_to_come, self.loss_unit))
        return tuple(warnings)


@dataclass(frozen=True, eq=False)
class Outcome:
    """A solver's mechanism, how the solve ended, its history, its proof, and what to expect of
    check-ins to come.  `proof` is the effort of the proof that is to follow."""

    mechanism: Mechanism
    ending: Ending = Ending()
    history: tuple[dict[str, Any], ...] = field(default=())
    certificate: Certificate | None = None
    outlook: Outlook | None = None
    proof: Effort = NONE


@dataclass(frozen=True)
class Conditions:
    """What a solve is given besides its problem: a seed, when to stop, whom to call with a record
    of each round, the file of a resumable solver's state, and the effort of the proof that is
    asked for after it (None: as the solver has it)."""

    seed: int = 0
    deadline: Deadline = NEVER
    progress: Progress | None = None
    checkpoint: Checkpoint = None
    proof: Effort | None = None


@runtime_checkable
class Foretelling(Protocol):
    """A solver that can say what a problem will take, and refuse what does not fit."""

    def expected(self, problem: Problem) -> Expected | None:
        """What it will take; None where that is not known beforehand."""


class Solver(Protocol):
    """A frozen dataclass of settings that can solve a problem."""

    @property
    def name(self) -> str:
        """The word for it on the command line and in tables."""

    @property
    def resumable(self) -> bool:
        """Whether it keeps a checkpoint, from which a stopped solve is resumed."""

    def solve(self, problem: Problem, how: Conditions) -> Outcome:
        """Find a mechanism; never look at anything but the problem."""


class Solving(Guided):
    """A solver of ours: answers what it is often asked for with what to type."""

    instead: ClassVar[dict[str, str]] = dict.fromkeys(("fit", "fit_transform", "run"), _TYPE)

    def __init_subclass__(cls) -> None:
        if "solve" in vars(cls):
            cls.solve = guided(how=_TYPE)(cls.solve)  # type: ignore[attr-defined]

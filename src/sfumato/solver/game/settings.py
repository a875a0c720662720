"""What a game is played with; `GameSettings.paper` is the paper's own recipe."""

from dataclasses import dataclass, replace
from math import log
from typing import Any, Literal

from sfumato.errors import ProblemError, arg
from sfumato.mechanism.generator import LEVELS
from sfumato.solver.game.payoff import (
    Budget,
    CrossEntropy,
    Multiplier,
    MutualInformation,
    Payoff,
    Softplus,
)
from sfumato.solver.setting import setting

_PAPER_REGION = (0.0, 0.0, 3250.0)  # centre and half side, in metres
_SHOWN = ("exact", "snapped", "smeared")


@dataclass(frozen=True)
class ClassifierConfig:
    """The adversary's net and how it is fitted in each turn."""

    hidden: tuple[int, ...] = setting(
        (60, 100, 51), "Units of the classifier's hidden layers.", option="N,N,..."
    )
    reports: int = setting(
        13_824, "Least number of reports that the classifier learns from per turn.", option="N"
    )
    epochs: int = setting(1, "Passes of the classifier over these reports per turn.", option="N")
    batch: int = setting(512, "Reports per step of the classifier.", option="N")
    rate: float = setting(2e-3, "Learning rate of the classifier's Adam.", option="RATE")
    payoff: Payoff = setting(CrossEntropy(), "What it raises.")
    restart: bool = setting(False, "Fit the classifier from scratch in each turn.", option="flag")


@dataclass(frozen=True)
class GeneratorConfig:
    """The mechanism's net and how it is improved in each turn."""

    hidden: tuple[int, ...] = setting(
        (100, 100, 100), "Units of the generator's hidden layers.", option="N,N,..."
    )
    steps: int | None = setting(
        None,
        "Steps of the generator per turn, rounded up to whole epochs (4 unless epochs are set).",
        option="N",
    )
    epochs: int | None = setting(
        None, "Passes of the generator over the truths per turn, in place of steps.", option="N"
    )
    batch: int = setting(512, "Truths per step of the generator.", option="N")
    rate: float = setting(1e-3, "Learning rate of the generator's Adam.", option="RATE")
    seeds: int = setting(4, "Reports of each truth in a step of the generator.", option="N")
    restart_adam: bool = setting(False, "Begin each turn with Adam's moments at 0.")
    fade: bool = setting(True, "Let the rate fall to 0 over the rounds.")
    levels: int = setting(LEVELS, "Number of seeds of the released mechanism.", option="N")

    def epochs_of(self, steps_per_epoch: int) -> int:
        """Passes over the truths per turn."""
        return self.epochs or -(-(self.steps or 4) // steps_per_epoch)


@dataclass(frozen=True)
class LaplaceStart:
    """The planar Laplace noise that the generator imitates before the first round."""

    loss_m: float | None = setting(
        None,
        "Mean loss in metres of the noise that the generator imitates first; the budget unless"
        " set.",
        option="METRES",
    )
    turns: float = setting(3.0, "Turns of the spiral on which one seed draws the noise.")
    steps: int = setting(1000, "Steps of imitation; 0 for none.")


@dataclass(frozen=True)
class GameSettings:
    """Rounds, lattices, payoff and budget, and the settings of both nets."""

    rounds: int = setting(20, "Rounds, each of `turns` turns.", option="N")
    turns: int = setting(
        10, "Turns per round: fit the classifier once, improve the generator once.", option="N"
    )
    lattices: tuple[float, ...] = setting(
        (0.0, 0.43, 1.0),
        "Widths of lattices that reports lie on while learning, as shares of the budget (0: the"
        " problem's grid); a game is played for each, and validation data choose one.",
        option="SHARE,SHARE,...",
    )
    validation: float = setting(
        0.125,
        "Share of the training data that is held back to choose the best round.",
        option="SHARE",
    )
    payoff: Payoff = setting(MutualInformation(root=True), "What the generator minimises.")
    budget: Budget = setting(Multiplier(), "How the loss budget is held while learning.")
    classifier: ClassifierConfig = setting(ClassifierConfig(), "The adversary.")
    generator: GeneratorConfig = setting(GeneratorConfig(), "The mechanism.")
    start: LaplaceStart = setting(LaplaceStart(), "What the generator imitates first.")
    shown: Literal["exact", "snapped", "smeared"] = setting(
        "smeared",
        "How the nets see reports while learning: as they are, moved to the lattice, or (the"
        " classifier) anywhere in the lattice's cell.",
        option="HOW",
    )
    short_batches: bool = setting(False, "Learn from the last, short batch of an epoch too.")
    region_m: tuple[float, float, float] | None = setting(
        None, "Centre and half side of the region scaled to [-1, 1]; the data's spread unless set."
    )
    calibrate: bool = setting(True, "Bring the released round within the budget.", option="flag")
    best: bool = setting(True, "Release the best round by validation data, not the last.")

    def __post_init__(self) -> None:
        classifier, generator = self.classifier, self.generator
        counts = (
            *(self.rounds, self.turns, classifier.reports, classifier.epochs, classifier.batch),
            *(generator.batch, generator.seeds, generator.levels),
        )
        if not (all(count >= 1 for count in counts) and self.lattices and self.start.steps >= 0):
            raise ProblemError(
                "a game needs rounds, turns, batches, epochs, seeds and levels of at least 1, and"
                f" a lattice; got {self}"
            )
        if generator.steps is not None and generator.epochs is not None:
            raise ProblemError(
                f"name {arg('generator_steps')} or {arg('generator_epochs')} per turn, not both;"
                f" got {generator.steps} and {generator.epochs}"
            )
        if not (
            all(n is None or n >= 1 for n in (generator.steps, generator.epochs))
            and classifier.rate > 0
            and generator.rate > 0
        ):
            raise ProblemError(f"both nets must learn: steps and rates above 0; got {self}")
        if not (0 < self.validation < 1 and all(share >= 0 for share in self.lattices)):
            raise ProblemError(
                f"{arg('validation')} is a share between 0 and 1, {arg('lattices')} are shares from"
                f" 0 up; got {self.validation}, {self.lattices}"
            )
        if self.shown not in _SHOWN:
            raise ProblemError(f"{arg('shown')} is one of {', '.join(_SHOWN)}; got '{self.shown}'")

    def changed(self, **changes: Any) -> Any:
        """The same game with some settings changed; a part's setting is named after the part, as in
        `classifier_epochs`, `generator_rate` or `start_steps`."""
        parts: dict[str, dict[str, Any]] = {"classifier": {}, "generator": {}, "start": {}}
        own = {}
        for name, value in changes.items():
            part, _, setting_of_part = name.partition("_")
            if part in parts and setting_of_part:
                parts[part][setting_of_part] = value
            else:
                own[name] = value
        nested = {name: replace(getattr(self, name), **new) for name, new in parts.items() if new}
        return replace(self, **nested, **own)

    @classmethod
    def paper(cls, experiment: int) -> Any:
        """The paper's recipe.  What it does not print is ours: see paper/deviations.md, "The
        game"."""
        if experiment not in (1, 2, 3, 4):
            raise ProblemError(f"the paper has experiments 1 to 4; got {experiment}")
        half_m = {1: 100, 2: 60, 3: 400, 4: 180}[experiment]  # epsilon = ln 2 / half_m
        max_loss_m = {1: 270, 2: 173, 3: 1150, 4: 518}[experiment]
        one_report = experiment < 3  # per location; ten for Gowalla
        return cls(
            rounds=25 if experiment == 2 else 150,
            turns=1,
            lattices=(0.0,),
            validation=0.1,
            payoff=MutualInformation(),
            budget=Softplus(unit=1 / max_loss_m),
            classifier=ClassifierConfig(
                reports=1 if one_report else 4430, epochs=3000, rate=1e-3, restart=True
            ),
            generator=GeneratorConfig(
                epochs=100 if experiment == 1 else 30,
                batch=128 if experiment == 1 else 512,
                rate=1e-4,
                seeds=1 if one_report else 10,
                restart_adam=True,
                fade=False,
            ),
            start=LaplaceStart(loss_m=2 * half_m / log(2), turns=6.0, steps=5000),
            shown="exact",
            short_batches=True,
            region_m=_PAPER_REGION,
            calibrate=False,
        )

"""The game of the paper's Algorithm 1, as a solver."""

from collections.abc import Callable
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any

from sfumato.data.categories import CategoricalData
from sfumato.errors import ProblemError
from sfumato.mechanism.generator import LEVELS
from sfumato.solver.game.budget import Budget, Multiplier, Softplus
from sfumato.solver.game.payoff import CrossEntropy, MutualInformation, Payoff
from sfumato.solver.problem import Problem
from sfumato.solver.solution import Outcome

_PAPER_REGION = (0.0, 0.0, 3250.0)  # centre and half side, in metres
_MUTUAL_INFORMATION = MutualInformation(root=True)
_CROSS_ENTROPY = CrossEntropy()
_MULTIPLIER = Multiplier()


@dataclass(frozen=True)
class Game:
    """Generator against classifier: the paper's two nets and payoff, with a faster recipe.
    `Game.paper` is the paper's own.

    Main arguments: `rounds`, and `turns` in each (a turn fits the classifier once and improves the
    generator once); `payoff`, what the generator minimises; `budget`, how the loss budget is held
    while learning.

    Other arguments: `lattices`, shares of the budget: for each, a game of its own is played whose
    reports lie on a lattice that many metres wide (0 is the problem's grid), and the validation
    data chooses between them; `validation`, the share of the training data that only chooses;
    `pool`, reports the classifier learns from in a turn; `classifier_payoff`, what it raises;
    `generator_steps` in a turn (rounded up to whole epochs) or `generator_epochs`; `fresh_moments`,
    whether the generator's Adam begins anew each turn; `seeds` for each truth of a batch; `snap`,
    whether both nets learn on reports moved to the lattice, and `smear`, whether the classifier
    sees them anywhere in their cell; `fade`, whether the generator's rate falls to 0 over the
    rounds; `start_loss_m`, the mean loss of the planar Laplace noise that is imitated first (the
    budget unless set); `region_m`, the centre and half side that are scaled to [-1, 1] (else the
    data's own spread); `levels`, see `GeneratorNet`; `calibrate`, bring the best round within the
    budget; `best`, give the best round by validation rather than the last.
    """

    rounds: int = 20
    turns: int = 10
    lattices: tuple[float, ...] = (0.0, 0.43, 1.0)
    payoff: Payoff = _MUTUAL_INFORMATION
    budget: Budget = _MULTIPLIER
    validation: float = 0.125
    pool: int = 13_824
    classifier_hidden: tuple[int, ...] = (60, 100, 51)
    classifier_epochs: int = 1
    classifier_batch: int = 512
    classifier_rate: float = 2e-3
    classifier_payoff: Payoff = _CROSS_ENTROPY
    restart_classifier: bool = False
    generator_hidden: tuple[int, ...] = (100, 100, 100)
    generator_steps: int = 4
    generator_epochs: int | None = None
    generator_batch: int = 512
    generator_rate: float = 1e-3
    fresh_moments: bool = False
    seeds: int = 4
    snap: bool = True
    smear: bool = True
    fade: bool = True
    short_batches: bool = False
    start_loss_m: float | None = None
    spiral_turns: float = 3.0
    teaching_steps: int = 1000
    region_m: tuple[float, float, float] | None = None
    levels: int = LEVELS
    calibrate: bool = True
    best: bool = True
    name = "game"

    def __post_init__(self) -> None:
        counts = (
            self.rounds,
            self.turns,
            self.pool,
            self.classifier_epochs,
            self.classifier_batch,
            self.generator_batch,
            self.seeds,
        )
        if not (
            all(count >= 1 for count in counts)
            and self.levels >= 1
            and self.lattices
            and self.teaching_steps >= 0
        ):
            raise ProblemError(
                "a game needs rounds, turns, batches, epochs, seeds and levels of at least 1, and"
                f" a lattice; got {self}"
            )
        if not (
            (self.generator_epochs or self.generator_steps) >= 1
            and self.classifier_rate > 0
            and self.generator_rate > 0
        ):
            raise ProblemError(f"both nets must learn: steps and rates above 0; got {self}")
        if not (0 < self.validation < 1 and all(share >= 0 for share in self.lattices)):
            raise ProblemError(
                "validation is a share between 0 and 1, lattices are shares from 0 up; got"
                f" {self.validation}, {self.lattices}"
            )

    @classmethod
    def paper(cls, experiment: int) -> "Game":
        """The paper's recipe.  What it does not print is ours: see paper/deviations.md, "The
        game"."""
        if experiment not in (1, 2, 3, 4):
            raise ProblemError(f"the paper has experiments 1 to 4; got {experiment}")
        half_m = {1: 100, 2: 60, 3: 400, 4: 180}[experiment]  # epsilon = ln 2 / half_m
        max_loss_m = {1: 270, 2: 173, 3: 1150, 4: 518}[experiment]
        return cls(
            rounds=25 if experiment == 2 else 150,
            turns=1,
            lattices=(0.0,),
            payoff=MutualInformation(),
            budget=Softplus(unit=1 / max_loss_m),
            validation=0.1,
            pool=1 if experiment < 3 else 4430,  # one report a location; ten for Gowalla
            classifier_epochs=3000,
            classifier_rate=1e-3,
            restart_classifier=True,
            generator_epochs=100 if experiment == 1 else 30,
            generator_batch=128 if experiment == 1 else 512,
            generator_rate=1e-4,
            fresh_moments=True,
            seeds=1 if experiment < 3 else 10,
            snap=False,
            fade=False,
            short_batches=True,
            start_loss_m=2 * half_m / log(2),
            spiral_turns=6.0,
            teaching_steps=5000,
            region_m=_PAPER_REGION,
            calibrate=False,
        )

    def solve(
        self,
        problem: Problem,
        *,
        seed: int,
        time_limit: float | None,
        progress: Callable[[dict[str, Any]], None] | None = None,
        checkpoint: Path | None = None,
    ) -> Outcome:
        """Play; keep the best round by validation data; bring it within the budget on the training
        data.

        With `checkpoint` every round is written to that file; if it exists the game goes on from
        there, to the very mechanism that it would have found undisturbed.
        """
        if isinstance(problem.samples, CategoricalData):
            raise ProblemError(
                f"{problem.samples.name} holds words; the game learns on places: use the exact"
                " solver"
            )
        from sfumato.solver.game.play import Match

        problem.check_feasible()
        return Match(self, problem, seed).play(
            time_limit=time_limit, progress=progress, checkpoint=checkpoint
        )

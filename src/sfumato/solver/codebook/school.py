"""Learning a codebook from the first step to the mechanism that is released."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.spatial import cKDTree

from sfumato.data.samples import Samples
from sfumato.errors import ProblemError
from sfumato.files import array_hash
from sfumato.measure.certificate import claim_of
from sfumato.measure.exact import bayes_error, mutual_information
from sfumato.measure.objective import Gain
from sfumato.mechanism.codebook import CodebookNet
from sfumato.mechanism.law import euclidean
from sfumato.nets import glorot
from sfumato.solver.codebook.learn import Plan, Scene, State, first_state, learn
from sfumato.solver.codebook.lesson import MOST_TRUTHS, best_law
from sfumato.solver.codebook.proof import certificate_for
from sfumato.solver.codebook.release import Limits, within_limits
from sfumato.solver.codebook.settings import Codebook
from sfumato.solver.game import checkpoint as files
from sfumato.solver.problem import Problem
from sfumato.solver.solution import Outcome

_PARTS = 20  # of the learning: a line of history and a checkpoint after each
_ROWS = 2048  # truths that a step looks at
_FEW = 200  # below so many check-ins of the largest user they are trusted less
_DOUBT, _DOUBT_OF_FEW = 0.5, 0.7
_REDRAWN, _REDRAWN_OF_FEW = 1 / 5, 1 / 16  # share of a user's check-ins in a redraw
_FEWEST, _MOST = 4, 64
_FOR_THE_PROOF = 0.2  # of a time limit
_UNCOMPILED = 0.2  # guess of the first part's time that was not compiling
_LAST_LAYER = 0.3  # of Glorot's width: begin near the same chances for all


class School:
    """One codebook on one problem."""

    def __init__(self, settings: Codebook, problem: Problem, seed: int) -> None:
        assert isinstance(problem.samples, Samples)
        self.settings, self.problem, self.seed, self.samples = (
            settings,
            problem,
            seed,
            problem.samples,
        )
        self.centre = problem.joint.place_probability @ problem.places
        spread = np.sqrt(
            problem.joint.place_probability @ ((problem.places - self.centre) ** 2).mean(axis=1)
        )
        self.unit_m = float(max(spread, problem.grid.cell_m))
        self._taught: Scene | None = None

    def run(
        self,
        *,
        time_limit: float | None,
        progress: Callable[[dict[str, Any]], None] | None,
        checkpoint: Path | None,
    ) -> Outcome:
        """All parts, or as many as the time allows; then the release."""
        begin = time.perf_counter()
        state, history = self._first_or_saved(checkpoint)
        steps = max(1, self.settings.steps // _PARTS)
        done = history[-1]["done"] if history else 0.0
        stopped = f"Learned in {_PARTS * steps} steps"
        took: list[float] = []  # seconds of each part; compiling is in the first
        alone = (
            1 - self.settings.lesson if len(self.problem.places) <= MOST_TRUTHS else 1.0
        )  # the share without a lesson
        if self.settings.lesson and alone == 1:
            stopped = f"{stopped} without a lesson: there are more than {MOST_TRUTHS} places"
        while done < 1 - 1e-9:
            try:
                part, start = len(history), time.perf_counter()
                left = (
                    None
                    if time_limit is None
                    else time_limit * (1 - _FOR_THE_PROOF * self.settings.certify) - (start - begin)
                )
                until = self._until(part, done, took, left)
                if done < alone - 1e-9:
                    until = min(until, alone)
                    state = self._on_the_grid(state) if done < alone / 2 <= until + 1e-9 else state
                    scene, share = self.scene, (done / alone, until / alone)
                elif left is not None and took and left < took[0]:
                    stopped = (
                        f"Time limit: learned in {len(history) * steps} steps, without a lesson"
                    )
                    break
                else:
                    state = self._on_the_grid(state)
                    taught = self._lesson(state, left)
                    if taught is None:
                        stopped = (
                            f"Learned in {part * steps} steps without a lesson: no law on these"
                            " places keeps the budgets"
                        )
                        break
                    scene, share = (
                        taught,
                        ((done - alone) / (1 - alone), (until - alone) / (1 - alone)),
                    )
                state, notes = learn(
                    state,
                    scene,
                    jax.random.key(self.seed),
                    part * steps,
                    share,
                    plan=self.plan,
                    steps=steps,
                )
                if not all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(state)):
                    raise ProblemError(
                        f"learning ran into numbers that are not finite at {until:.0%}; lower the"
                        " rate or raise the budget"
                    )
                done = until
                took.append(time.perf_counter() - start)
                line, mechanism = self._line(state, part, done, notes)
                history = [*history, line]
                if checkpoint is not None:
                    files.save(checkpoint, state, of=self._name(), notes={"history": history})
                if progress is not None:
                    progress({**line, "mechanism": mechanism})
            except KeyboardInterrupt:
                if not history:
                    raise
                stopped = f"Stopped by hand at {done:.0%} of the learning"
                break
        if len(history) < _PARTS and done >= 1 - 1e-9:
            stopped = f"Time limit: learned in {len(history) * steps} steps of {_PARTS * steps}"
        return self._release(self._on_the_grid(state), history, stopped, time_limit, begin)

    def _until(self, part: int, done: float, took: list[float], left: float | None) -> float:
        """The share of the learning that the next part ends at: its even share, or what the clock
        demands."""
        even = abs(done - part / _PARTS) < 1e-9  # else a clock has hurried it, now or before
        until = (part + 1) / _PARTS if even else done + 1 / _PARTS
        if left is not None and took:
            seconds = took[-1] if len(took) > 1 else took[0] * _UNCOMPILED
            until = max(until, done + (1 - done) * seconds / max(left, 1e-9))
        return min(1.0, until)

    def _release(
        self,
        state: State,
        history: list[dict[str, Any]],
        stopped: str,
        time_limit: float | None,
        begin: float,
    ) -> Outcome:
        learned = self.mechanism(state)
        learned = replace(
            learned, places=self.problem.grid.snap(learned.places)
        )  # the middles of cells to the last bit
        released = within_limits(learned, self.problem, Limits.of(self.settings))
        certificate = None
        if self.settings.certify:
            left = (
                None if time_limit is None else max(1.0, time_limit - (time.perf_counter() - begin))
            )
            try:
                certificate = certificate_for(self.problem, seed=self.seed, time_limit=left)
            except KeyboardInterrupt:
                stopped = f"{stopped}; the proof was stopped by hand"
        return Outcome(
            released.mechanism, f"{stopped}.  {released.text}".strip(), tuple(history), certificate
        )

    def mechanism(self, state: State) -> CodebookNet:
        """The state as it would be used, before the limits."""
        net = [(np.asarray(weights), np.asarray(bias)) for weights, bias in state.weights.net]
        return CodebookNet(
            places=np.asarray(state.weights.places, float) * self.unit_m + self.centre,
            layers=tuple(net),
            waves=np.asarray(self.scene.waves),
            grid=self.problem.grid,
            centre_m=(float(self.centre[0]), float(self.centre[1])),
            unit_m=self.unit_m,
            slope=float(np.exp(state.weights.slope)) / self.unit_m,
            max_distance=self.problem.max_distance if self.problem.loss is euclidean else None,
        )

    def _line(
        self, state: State, part: int, done: float, notes: dict
    ) -> tuple[dict[str, Any], CodebookNet]:
        mechanism = self.mechanism(state)
        law = mechanism.law(self.problem.joint, loss=self.problem.loss)
        assert law is not None
        line = {
            "round": part,
            "done": done,
            "payoff": float(notes["payoff"]),
            "loss": law.loss,
            "bayes_error": bayes_error(law.joint),
            "information_bits": mutual_information(law.joint),
        }
        return line, mechanism

    def _on_the_grid(self, state: State) -> State:
        """Move the places to the middles of cells: what is released lies on the problem's grid."""
        places = np.asarray(state.weights.places, float) * self.unit_m + self.centre
        region = self.problem.region
        assert region is not None
        snapped = (self.problem.grid.snap(region.clamp(places)) - self.centre) / self.unit_m
        return state._replace(
            weights=state.weights._replace(places=jnp.asarray(snapped, jnp.float32))
        )

    def _lesson(self, state: State, left: float | None) -> Scene | None:
        """The scene with the best law on the places, which no longer move: found once, and again by
        a run that goes on."""
        if self._taught is None:
            law = best_law(
                self.problem, self.problem.grid.snap(self.mechanism(state).places), time_limit=left
            )
            self._taught = (
                None if law is None else self.scene._replace(lesson=jnp.asarray(law, jnp.float32))
            )
        return self._taught

    @cached_property
    def scene(self) -> Scene:
        problem, joint = self.problem, self.problem.joint
        claim = claim_of(problem)
        table = np.asarray(claim.joint, float)
        prior = table.sum(axis=1)
        charges, users, limits = [], [], []
        if claim.max_loss is not None:
            charges, users, limits = [joint.place_probability], [prior], [claim.max_loss]
        if claim.user_max_loss is not None:
            charges += list(table)
            users += list(np.diag(prior))
            limits += list(prior * claim.user_max_loss)
        truths = (problem.places - self.centre) / self.unit_m
        samples = (self.samples.truth - self.centre) / self.unit_m
        gaps = cKDTree(samples).query(samples, k=min(2, len(samples)))[0][:, -1]
        height = np.cumsum(table, axis=1) / np.maximum(prior, 1e-300)[:, None]
        random = np.random.default_rng((self.seed, 2))
        pace = np.geomspace(0.3, 3.0, self.settings.waves) * self.settings.wave_scale
        gains = (
            problem.objective.matrix(joint.secrets)
            if isinstance(problem.objective, Gain)
            else np.eye(len(table))
        )
        # A cap or a user without data: arrays of the right shape all the same.
        arrays = {
            "truths": truths,
            "table": table,
            "height": height,
            "gaps": gaps,
            "charges": np.reshape(charges, (-1, table.shape[1])),
            "user_charges": np.reshape(users, (-1, len(table))),
            "limits": np.maximum(limits, 1e-9),
            "cap": (
                np.inf
                if problem.max_distance is None
                else self.problem._cap_as_distance / self.unit_m
            ),
            "gains": gains,
            "waves": random.normal(size=(2, self.settings.waves)) * pace,
        }
        return Scene(**{name: jnp.asarray(value, jnp.float32) for name, value in arrays.items()})

    @cached_property
    def plan(self) -> Plan:
        settings, problem = self.settings, self.problem
        most = int(self.samples.counts.max())
        share, doubt = (_REDRAWN_OF_FEW, _DOUBT_OF_FEW) if most < _FEW else (_REDRAWN, _DOUBT)
        per_user = int(np.clip(round(share * most), _FEWEST, _MOST))
        return Plan(
            loss=None if problem.loss is euclidean else problem.loss,
            unit_m=self.unit_m,
            information=problem.objective.name == "information",
            doubt=doubt if settings.doubt is None else settings.doubt,
            blend=settings.blend,
            redraws=max(settings.redraws, min(_MOST // per_user, 12)),
            per_user=per_user,
            rows=min(_ROWS, len(problem.places)),
            rate=settings.rate,
            max_posterior=settings.max_posterior,
            max_exposed=settings.max_exposed,
            geo_epsilon=settings.geo_epsilon,
        )

    def _first_or_saved(self, checkpoint: Path | None) -> tuple[State, list[dict[str, Any]]]:
        state = self._first()
        if checkpoint is None or not checkpoint.exists():
            return state, []
        state, notes = files.load(checkpoint, state, of=self._name())
        return jax.tree.map(jnp.asarray, state), notes["history"]

    def _first(self) -> State:
        """Half of the places at truths, half anywhere between three of them; a net that prefers
        nothing much."""
        random = np.random.default_rng((self.seed, 3))
        truths = np.asarray(self.scene.truths, float)
        mass = self.problem.joint.place_probability
        count = self.settings.places
        drawn = truths[random.choice(len(truths), size=(count - count // 2, 3), p=mass)]
        between = (drawn * random.dirichlet([1, 1, 1], size=len(drawn))[..., None]).sum(axis=1)
        at = truths[random.choice(len(truths), size=count // 2, replace=len(truths) < count // 2)]
        sizes = (2 + 2 * self.settings.waves, *self.settings.hidden, count)
        net = glorot(jax.random.key(self.seed), sizes)
        net[-1] = (net[-1][0] * _LAST_LAYER, net[-1][1])
        budget = self.problem.scale_m / self.unit_m
        return first_state(net, np.vstack([at, between]), 1 / budget, len(self.scene.limits))

    def _name(self) -> str:
        """What a checkpoint must agree with to be gone on from."""
        problem = self.problem
        budgets = (problem.max_loss, problem.user_max_loss, problem.max_distance, problem.objective)
        settings = f"{self.settings!r} {self.plan._replace(loss=None)!r} {self.seed}"
        words = (
            f"{settings} {budgets!r} {problem.loss.__name__} {problem.grid.as_dict()}"
            f" {problem.samples.hash}"
        )
        return array_hash(np.frombuffer(words.encode(), dtype=np.uint8))

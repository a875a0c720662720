"""One round of the game, compiled once: turns of fitting the classifier and improving the
generator."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from sfumato.nets import Net, forward
from sfumato.solver.game import chance
from sfumato.solver.game.frame import Frame
from sfumato.solver.game.start import no_moments, teach_laplace
from sfumato.solver.game.train import ADAM, fit_classifier, generate, improve_generator

if TYPE_CHECKING:
    from sfumato.solver.game.settings import Game

# Settings that a round does not depend on, made equal so that they do not compile it again.
_NOT_IN_A_ROUND: dict[str, Any] = {
    "rounds": 1,
    "lattices": (0.0,),
    "validation": 0.5,
    "start_loss_m": None,
    "teaching_steps": 0,
    "levels": 1,
    "calibrate": True,
    "best": True,
}


class Players(NamedTuple):
    """All that changes from round to round: both nets, Adam's moments, the price of loss."""

    generator: Net
    generator_moments: Any
    price: Any
    classifier: Net
    classifier_moments: Any


class Scene(NamedTuple):
    """What stays: scaled truths with their users for learning and for validation, the frame, the
    budget."""

    truth: Any
    user: Any
    held_truth: Any
    held_user: Any
    frame: Frame
    max_loss: Any


def first_players(
    game: "Game", scene: Scene, random: np.random.Generator, *, users: int
) -> Players:
    """Glorot's start for both nets; the generator is then taught planar Laplace noise that spends
    the budget."""
    generator = chance.first_net(random, (3, *game.generator_hidden, 2))
    classifier = chance.first_net(random, (2, *game.classifier_hidden, users))
    mean_loss = float(
        (scene.max_loss if game.start_loss_m is None else game.start_loss_m) / scene.frame.unit
    )
    if game.teaching_steps:
        generator = teach_laplace(
            random,
            generator,
            scene.truth,
            mean_loss=mean_loss,
            turns=game.spiral_turns,
            steps=game.teaching_steps,
        )
    return Players(
        generator, no_moments(generator), np.float32(1.0), classifier, no_moments(classifier)
    )


def play_round(
    game: "Game",
    loss: Callable,
    random: np.random.Generator,
    players: Players,
    base: Net,
    scene: Scene,
    fade: float,
) -> tuple[Players, dict[str, Any]]:
    """`game.turns` times: draw reports, fit the classifier, improve the generator against it.
    Returns notes of the last turn."""
    turns = chance.of_round(game, random, count=len(scene.user))
    held = chance.stratified(random, (chance.HELD_COPIES, len(scene.held_user)), axis=0)
    return _compiled(
        replace(game, **_NOT_IN_A_ROUND), loss, players, base, scene, turns, held, np.float32(fade)
    )


@partial(jax.jit, static_argnums=(0, 1))
def _compiled(
    game: "Game",
    loss: Callable,
    players: Players,
    base: Net,
    scene: Scene,
    turns: chance.Turns,
    held: Any,
    fade: Any,
) -> tuple[Players, dict[str, Any]]:
    def turn(players: Players, now: chance.Turns) -> tuple[Players, Any]:
        reports = draw(players.generator, scene.truth, now.pool, scene.frame, snap=game.snap)
        if now.pool_smear is not None:
            reports = scene.frame.show(reports, now.pool_smear.reshape(2, -1))
        begin = (
            (base, ADAM.init(base))
            if game.restart_classifier
            else (players.classifier, players.classifier_moments)
        )
        classifier, classifier_moments, accuracy = fit_classifier(
            *begin,
            reports,
            jnp.tile(scene.user, now.pool.shape[0]),
            now.pool_order,
            payoff=game.classifier_payoff,
            rate=game.classifier_rate,
            batch=game.classifier_batch,
            short=game.short_batches,
        )
        seen = _accuracy(
            classifier,
            draw(players.generator, scene.held_truth, held, scene.frame, snap=game.snap),
            scene.held_user,
        )
        generator, generator_moments, price, (payoff, spent) = improve_generator(
            players.generator,
            ADAM.init(players.generator) if game.fresh_moments else players.generator_moments,
            players.price,
            against=classifier,
            truth=scene.truth,
            user=scene.user,
            order=now.order,
            seeds=now.seeds,
            smear=now.smear,
            snap=game.snap,
            frame=scene.frame,
            payoff=game.payoff,
            budget=game.budget,
            loss=loss,
            max_loss=scene.max_loss,
            rate=game.generator_rate * fade,
            thrift=fade,
            batch=game.generator_batch,
            short=game.short_batches,
        )
        notes = {
            "payoff": payoff,
            "loss": spent,
            "accuracy_train": accuracy,
            "accuracy_validation": seen,
        }
        return Players(generator, generator_moments, price, classifier, classifier_moments), notes

    players, notes = jax.lax.scan(turn, players, turns)
    return players, {name: value[-1] for name, value in notes.items()}


def draw(generator: Net, truth: Any, seeds: Any, frame: Frame, *, snap: bool) -> Any:
    """Scaled reports of every truth, one for each row of seeds (copies, truths)."""
    reports = generate(generator, jnp.tile(truth, (seeds.shape[0], 1)), seeds.reshape(-1))
    return frame.snap(reports) if snap else reports


def _accuracy(classifier: Net, reports: Any, user: Any) -> Any:
    """How often the classifier is right on reports of validation truths, which it never learnt
    from."""
    right = jnp.argmax(forward(classifier, reports), axis=1) == jnp.tile(
        user, reports.shape[0] // user.shape[0]
    )
    return right.mean()

"""Small programs to solve, the same written out in full, and the checker's word on a solution."""

from typing import Any

import numpy as np
from scipy.optimize import linprog

from sfumato.measure.bound import Claim, bound_grid
from sfumato.solver.exact.column_generation import Optimum
from sfumato.solver.exact.task import Task


def full_program(
    joint: np.ndarray,
    loss: np.ndarray,
    max_loss: float | None = None,
    user_max_loss: np.ndarray | None = None,
    cap: float | None = None,
    gains: np.ndarray | None = None,
) -> float:
    """The whole linear program, one variable per pair, by HiGHS."""
    weights = joint.T if gains is None else joint.T @ gains.T
    truths, reports = loss.shape
    size = truths * reports + reports
    rows, limits = [], []
    for z in range(reports):
        for guess in range(weights.shape[1]):
            row = np.zeros(size)
            row[z : truths * reports : reports] = weights[:, guess]
            row[truths * reports + z] = -1
            rows.append(row)
            limits.append(0.0)
    charges = [] if max_loss is None else [(joint.sum(axis=0), max_loss)]
    if user_max_loss is not None:
        charges += [(joint[x], joint[x].sum() * user_max_loss[x]) for x in range(len(joint))]
    for charge, limit in charges:
        rows.append(np.concatenate([(charge[:, None] * loss).ravel(), np.zeros(reports)]))
        limits.append(limit)
    equal = np.zeros((truths, size))
    for w in range(truths):
        equal[w, w * reports : (w + 1) * reports] = 1
    top = np.where(loss.ravel() <= (np.inf if cap is None else cap), None, 0.0)
    bounds = [(0, one) for one in top] + [(None, None)] * reports
    goal = np.r_[np.zeros(truths * reports), np.ones(reports)]
    answer = linprog(
        goal, np.array(rows), limits, equal, np.ones(truths), bounds=bounds, method="highs"
    )
    assert answer.status == 0
    return float(answer.fun)


def random_problem(seed: int) -> tuple[np.random.Generator, np.ndarray, np.ndarray, dict[str, Any]]:
    """Shared and owned truths, unequal priors, distances and arbitrary losses, budgets of every
    kind, gains: by turns."""
    rng = np.random.default_rng(seed)
    secrets, truths, reports = rng.integers(2, 5), rng.integers(3, 9), rng.integers(3, 9)
    joint = rng.exponential(size=(secrets, truths))
    if seed % 2:
        joint *= rng.random(joint.shape) < 0.5
        joint[rng.integers(secrets, size=truths), np.arange(truths)] += 0.3
        joint[np.arange(secrets), rng.integers(truths, size=secrets)] += 0.2
    joint /= joint.sum()
    if seed % 3 == 0:
        loss = rng.random((truths, reports)) * 10
    else:
        loss = np.linalg.norm(
            rng.random((truths, 1, 2)) * 10 - rng.random((1, reports, 2)) * 10, axis=2
        )
    options: dict[str, Any] = {}
    least = loss.min(axis=1)
    spread = loss.mean(axis=1) - least
    if seed % 5 in (0, 1, 2):
        options["max_loss"] = float(joint.sum(axis=0) @ (least + rng.random() * spread))
    if seed % 5 in (2, 3):
        options["user_max_loss"] = (joint @ (least + rng.random() * spread)) / joint.sum(axis=1)
    if seed % 5 in (1, 4):
        options["cap"] = float(max(least.max(), np.quantile(loss, 0.7)))
    if seed % 7 == 0:
        options["gains"] = rng.normal(size=(rng.integers(2, 6), secrets))
    return rng, joint, loss, options


def task_of(joint: np.ndarray, loss: np.ndarray, **options: Any) -> Task:
    return Task(joint, lambda i: loss[:, i], loss.shape[1], **options)


def checked(joint: np.ndarray, loss: np.ndarray, best: Optimum, **options: Any) -> float:
    """The bound as the independent checker finds it."""
    if options.pop("information", False):
        options["objective"] = "information"
    elif "gains" in options:
        options["objective"] = "gain"
    return bound_grid(Claim(joint, **options), best.scores, best.multipliers, lambda i: loss[:, i])


def scattered(
    count: int, secrets: int, cells: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Truths of a few secrets on a square of 100 m, and cells over it."""
    truths = np.random.default_rng(0).random((count, 2)) * 100
    joint = np.zeros((secrets, count))
    joint[np.arange(count) % secrets, np.arange(count)] = 1 / count
    axis = (np.arange(cells) + 0.5) * 100 / cells
    centres = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    return joint, truths, centres, np.linalg.norm(truths[:, None] - centres, axis=2)

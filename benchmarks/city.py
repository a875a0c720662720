"""What is proved for all 6,571 users of San Francisco within 300 m, each a secret: processor seconds,
peak memory, and the least vulnerability of any mechanism, with that of a blind guess.

`learn`, after it, learns a codebook for check-ins to come and one for these alone, and says how far
their vulnerabilities on these check-ins are above it.  `to-come` learns from half of each user's
check-ins and lets an adversary who knows three quarters of them guess the senders of the rest, one
report each.  Results go to benchmarks/city.json.

python -m benchmarks.city
python -m benchmarks.city learn
python -m benchmarks.city to-come
"""

import json
import math
import resource
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from paper.experiments import data_folder
from sfumato.data.distinct import unique_points
from sfumato.data.read import read_checkins
from sfumato.data.samples import Samples
from sfumato.files import write_json
from sfumato.mechanism.codebook import CodebookNet
from sfumato.mechanism.loss import euclidean
from sfumato.solver import Codebook, Problem
from sfumato.solver.exact.first_order import first_order_certificate
from sfumato.study.solve import solve

_RESULTS = Path(__file__).with_name("city.json")
BUDGET, STEPS = 300.0, 200
SETTINGS = {"new": Codebook(), "these": Codebook(made_for="these")}
_MOST_S, _MOST_BYTES = 600.0, 4e9
SEEDS = (1, 2, 3)
_OFF_M = 20.0
WAYS = {"imitates a law": Codebook(), "learned alone": Codebook(distillation=0.0)}


def problem() -> Problem:
    """All users, each apart."""
    samples = read_checkins(data_folder() / "gowalla-sanfrancisco.csv.gz")
    return Problem(samples, max_loss=BUDGET)


def proved() -> dict[str, Any]:
    """The proof, from noise."""
    asked = problem()
    start = time.process_time()
    heard: list[tuple[float, float]] = []
    certificate = first_order_certificate(
        asked,
        steps=STEPS,
        on_proof=lambda _, bound, __: heard.append((time.process_time() - start, bound)),
    )
    proof_s = time.process_time() - start
    assert certificate is not None and certificate.on_plane is not None
    least, blind = certificate.bound(asked).grid, float(asked.joint.prior.max())
    sides = certificate.on_plane.cells.sides_m
    return {
        "users": len(asked.samples.secrets),
        "places": len(asked.places),
        "budget_m": BUDGET,
        "steps": STEPS,
        "cells": len(sides),
        "narrowest_cell_m": float(sides.min()),
        "seconds_proof": proof_s,
        "seconds_checking": time.process_time() - start - proof_s,
        "bytes": _peak(),
        "blind": blind,
        "least_vulnerability_proved": least,
        "least_times_blind": least / blind,
        "least_bits_above_blind": math.log2(least / blind),
        "bounds_by_second": heard,
    }


def learned(whom: str, least: float, blind: float) -> dict[str, Any]:
    """One mechanism beside the proven least."""
    start = time.process_time()
    solution = solve(problem(), SETTINGS[whom], proof="none")
    spent = time.process_time() - start
    return {
        "made_for": whom,
        "settings": repr(SETTINGS[whom]),
        "loss_m": solution.loss,
        "seconds_learning": spent,
        "bytes": _peak(),
        "vulnerability": solution.leakage,
        "times_blind": solution.leakage / blind,
        "bits_above_blind": math.log2(solution.leakage / blind),
        "times_proven_least": solution.leakage / least,
        "met": spent <= _MOST_S and _peak() <= _MOST_BYTES,
    }


def to_come(seed: int) -> list[dict[str, Any]]:
    """Each way of learning, and noise on the same places at the same budget, on one split."""
    whole = problem()
    samples = whole.samples
    part = _quarters(samples, seed)
    fit, known, later = (samples.take(some) for some in (part < 2, part < 3, part == 3))
    nets = {}
    for name, settings in WAYS.items():
        learned = solve(replace(whole, samples=fit), settings, seed=seed, proof="none").mechanism
        assert isinstance(learned, CodebookNet)
        nets[name] = learned
    nets["noise"] = _noise(learned, fit)
    found = []
    for name, net in nets.items():
        found.append({"seed": seed, "way": name} | guessed(net, known, later))
        print(json.dumps(found[-1]), flush=True)
    return found


def guessed(net: CodebookNet, known: Samples, later: Samples) -> dict[str, float]:
    """Expected losses of later check-ins, also of places 20 m off, and how often the adversary is
    right: with the best guess at each report by the check-ins that are known, and, as an upper end,
    by the later ones."""
    truths, place = unique_points(np.concatenate([known.truth, later.truth]))
    rows = net.rows(truths).distinct()
    tables, start = [], 0
    for samples in (known, later):
        each = np.ones(len(samples)), (samples.secret, place[start : start + len(samples)])
        counts = sparse.csr_matrix(each, shape=(len(samples.secrets), len(truths)))
        tables.append((counts @ rows.matrix).toarray())
        start += len(samples)
    table, truth = tables
    right = truth[table.argmax(axis=0), np.arange(table.shape[1])].sum()
    losses = rows.losses(truths, euclidean)[place[len(known) :]]
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, len(later))
    moved = later.truth + _OFF_M * np.column_stack([np.cos(angle), np.sin(angle)])
    return {
        "loss_m": float(losses.mean()),
        "median_loss_m": float(np.median(losses)),
        "loss_of_one_in_a_thousand_m": float(np.quantile(losses, 0.999)),
        "loss_off_the_places_m": float(net.rows(moved).losses(moved, euclidean).mean()),
        "right": float(right) / len(later),
        "right_by_these": float(truth.max(axis=0).sum()) / len(later),
    }


def _quarters(samples: Samples, seed: int) -> np.ndarray:
    """A number from 0 to 3 for each check-in, each for a quarter of each user's."""
    random = np.random.default_rng((seed, 11))
    order = np.lexsort((random.random(len(samples)), samples.secret))
    rank = np.empty(len(samples))
    rank[order] = np.arange(len(samples)) - np.repeat(
        np.cumsum(samples.counts) - samples.counts, samples.counts
    )
    offset = random.random(len(samples.counts))[samples.secret]
    return np.asarray(4 * (((rank + offset) / samples.counts[samples.secret]) % 1), dtype=int)


def _noise(net: CodebookNet, samples: Samples) -> CodebookNet:
    """The net without what it learned, with the slope that spends the budget."""
    flat = replace(net, layers=tuple((0 * weights, 0 * bias) for weights, bias in net.layers))
    truths, place = unique_points(samples.truth)
    low, high = 0.0, 100 / BUDGET
    for _ in range(20):
        middle = (low + high) / 2
        rows = replace(flat, slope=middle).rows(truths)
        kept = rows.losses(truths, euclidean)[place].mean() <= BUDGET
        low, high = (low, middle) if kept else (middle, high)
    return replace(flat, slope=high)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0


def main() -> None:
    """The proof, or the mechanisms beside the proof that is kept."""
    if sys.argv[1:] == ["to-come"]:
        found = json.loads(_RESULTS.read_text())
        found["to_come"] = [line for seed in SEEDS for line in to_come(seed)]
        write_json(_RESULTS, found)
    elif sys.argv[1:] != ["learn"]:
        command = "python -m benchmarks.city [learn | to-come]"
        found: dict[str, Any] = {"command": command, "proof": proved()}
        print(json.dumps(found, indent=1), flush=True)
        write_json(_RESULTS, found)
    else:
        found = json.loads(_RESULTS.read_text())
        least, blind = (found["proof"][name] for name in ("least_vulnerability_proved", "blind"))
        found["mechanisms"] = [learned(whom, least, blind) for whom in SETTINGS]
        print(json.dumps(found["mechanisms"], indent=1))
        write_json(_RESULTS, found)


if __name__ == "__main__":
    main()

"""The accuracy that a site is told: one honest number for all truths, so that it says nothing about
any."""

from typing import Any

import numpy as np

from sfumato.data.samples import Samples
from sfumato.deploy.release import Release
from sfumato.errors import SfumatoError
from sfumato.mechanism.channel import Channel
from sfumato.study.folder import Run

_SHARE = 0.95
_STEP_M = 10.0
_REPORTS = 200_000


def accuracy(run: Run, released: Release) -> dict[str, Any]:
    """The distance that 95 % of reports stay within, rounded up to 10 m, and for which truths.

    For the run's training data where it can be read again; else for truths spread evenly over the
    region.
    """
    samples = training_samples(run)
    truth = None if samples is None else samples.truth
    where = "the run's training data"
    mechanism = released.mechanism
    if isinstance(mechanism, Channel) and not mechanism.answers_new:
        truth, where = mechanism.truths, "the places that the mechanism was made for"
    if truth is None:
        side = np.linspace(-0.5, 0.5, 101) * released.region.side_m
        truth = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2) + np.array(
            released.region.centre
        )
        where = "truths spread evenly over the region"
    truth = np.resize(truth, (max(_REPORTS, len(truth)), 2))
    off = released.distance(truth, released.mechanism.sample(truth, seed=0))
    metres = max(_STEP_M, float(np.ceil(np.quantile(off, _SHARE) / _STEP_M) * _STEP_M))
    return {
        "accuracy_m": metres,
        "accuracy_means": f"95 % of reports lie within this distance of the truth, for {where}",
    }


def training_samples(run: Run) -> Samples | None:
    """The run's training check-ins, read again; None where that cannot be."""
    try:
        data = None if run.recipe is None else run.recipe.data()[0]
    except SfumatoError:
        return None
    known = isinstance(data, Samples) and data.hash == run.record.data.hash
    return data if known and isinstance(data, Samples) else None

"""The exact channel at places that it was not made for: python -m benchmarks.new_places [4:10 2:0 …]

For each experiment and draw: loss and Bayes error on held-out check-ins, where new places get
the average over near rows or the nearest row, and of planar Laplace noise of the same loss.
Solved channels are kept in runs/new-places; a solve takes some minutes.  Settings were chosen on
draws 10 to 13 of the Gowalla experiments; figures use draws 20 to 43.
"""

import sys
from dataclasses import replace

import numpy as np

import sfumato as sf
from paper.experiments import EXPERIMENTS, ROOT, load
from sfumato.measure.judge import judge
from sfumato.mechanism.base import load_mechanism
from sfumato.mechanism.channel import Channel
from sfumato.mechanism.laplace import PlanarLaplace
from sfumato.solver.exact.new_places import average_for

_KEPT = ROOT / "runs" / "new-places"
_DRAWS = ("4:10", "4:11", "4:12", "2:0", "2:1")
_FRESH = 1000  # seeds of four-corners that are no draw of an experiment


def channel_of(number: int, seed: int, problem: sf.Problem) -> Channel:
    """The exact channel of a draw, solved once."""
    path = _KEPT / f"{number}_{seed}.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        sf.solve(problem, sf.Exact(gap=2e-3, plane=False)).mechanism.save(path)
    channel = load_mechanism(path)
    assert isinstance(channel, Channel)
    return channel


def main(draws: tuple[str, ...]) -> None:
    """One line per draw and rule."""
    print(
        "draw   rule      new  bandwidth  loss      new places  Bayes error  Laplace at that loss"
    )
    for draw in draws:
        number, seed = map(int, draw.split(":"))
        experiment = EXPERIMENTS[number - 1]
        data = load(experiment.data, seed)
        held = data.test if experiment.data == "gowalla" else load("synthetic", _FRESH + seed).train
        assert held is not None
        problem = sf.Problem(data.train, max_loss=experiment.max_loss_m)
        channel = channel_of(number, seed, problem)
        average = average_for(problem, channel)
        assert average is not None
        new = ~channel.knows(held.truth)
        for name, mechanism, wide in (
            ("average", replace(channel, average=average), f"{average.bandwidth_m:.0f} m"),
            ("nearest", replace(channel, average=None, nearest=True), "-"),
        ):
            found = judge(mechanism, held)
            law = mechanism.law(held.take(np.flatnonzero(new)).joint())
            laplace = judge(PlanarLaplace.for_loss(found.loss.value), held, grid=problem.grid)
            assert law is not None
            print(
                f"{draw:6} {name:8} {new.mean():4.0%}  {wide:>9}  {found.loss.value:6.1f} m"
                f"  {law.loss:8.1f} m  {found.bayes_error.value:11.3f}"
                f"  {laplace.bayes_error.value:20.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main(tuple(sys.argv[1:]) or _DRAWS)

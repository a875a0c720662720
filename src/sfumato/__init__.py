"""sfumato: obfuscation mechanisms that hide who you are within a loss budget.

Names are imported when they are first used, so that `sfumato -h` answers at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sfumato import show
from sfumato.version import __version__

if TYPE_CHECKING:
    from sfumato.adversary.cells import Cells
    from sfumato.adversary.neighbours import Neighbours
    from sfumato.adversary.neural import Neural
    from sfumato.data.categories import CategoricalData, read_categories
    from sfumato.data.grid import Grid, Region
    from sfumato.data.joint import Joint
    from sfumato.data.plane import Plane
    from sfumato.data.read import read_checkins
    from sfumato.data.samples import Samples, Split
    from sfumato.data.synthetic import four_corners
    from sfumato.errors import SfumatoError
    from sfumato.measure.certificate import Certificate, load_certificate
    from sfumato.measure.estimate import Estimate
    from sfumato.measure.judge import Judgement, judge
    from sfumato.measure.membership import membership_test
    from sfumato.measure.objective import Bayes, Gain, Information
    from sfumato.measure.prior import under_priors
    from sfumato.measure.repeated import repeated_reports
    from sfumato.mechanism.base import Mechanism, load_mechanism
    from sfumato.mechanism.channel import Channel
    from sfumato.mechanism.codebook import CodebookNet
    from sfumato.mechanism.custom import Function, Recorded
    from sfumato.mechanism.generator import GeneratorNet
    from sfumato.mechanism.laplace import PlanarLaplace
    from sfumato.mechanism.law import euclidean, squared
    from sfumato.mechanism.simple import Identity, constant
    from sfumato.mechanism.wrap import Clamped, Remapped, Snapped
    from sfumato.report.compare import Entry, compare
    from sfumato.solver import Codebook, Coin, Exact, Game, Laplace, Problem
    from sfumato.solver.attack import certificate_from_attacker
    from sfumato.solver.frontier import frontier
    from sfumato.solver.game import CrossEntropy, MutualInformation
    from sfumato.study.folder import load_run
    from sfumato.study.leave_one_out import leave_one_out
    from sfumato.study.solution import Solution
    from sfumato.study.solve import solve

_HOME = {
    "sfumato.adversary.cells": ("Cells",),
    "sfumato.adversary.neighbours": ("Neighbours",),
    "sfumato.adversary.neural": ("Neural",),
    "sfumato.data.grid": ("Grid", "Region"),
    "sfumato.data.joint": ("Joint",),
    "sfumato.data.plane": ("Plane",),
    "sfumato.data.read": ("read_checkins",),
    "sfumato.data.samples": ("Samples", "Split"),
    "sfumato.data.synthetic": ("four_corners",),
    "sfumato.data.categories": ("CategoricalData", "read_categories"),
    "sfumato.errors": ("SfumatoError",),
    "sfumato.measure.estimate": ("Estimate",),
    "sfumato.measure.certificate": ("Certificate", "load_certificate"),
    "sfumato.measure.judge": ("Judgement", "judge"),
    "sfumato.measure.membership": ("membership_test",),
    "sfumato.measure.objective": ("Bayes", "Gain", "Information"),
    "sfumato.measure.prior": ("under_priors",),
    "sfumato.measure.repeated": ("repeated_reports",),
    "sfumato.mechanism.base": ("Mechanism", "load_mechanism"),
    "sfumato.mechanism.channel": ("Channel",),
    "sfumato.mechanism.codebook": ("CodebookNet",),
    "sfumato.mechanism.generator": ("GeneratorNet",),
    "sfumato.mechanism.laplace": ("PlanarLaplace",),
    "sfumato.mechanism.law": ("euclidean", "squared"),
    "sfumato.mechanism.custom": ("Function", "Recorded"),
    "sfumato.mechanism.simple": ("Identity", "constant"),
    "sfumato.mechanism.wrap": ("Clamped", "Remapped", "Snapped"),
    "sfumato.report.compare": ("Entry", "compare"),
    "sfumato.solver": (
        "Codebook",
        "Coin",
        "Exact",
        "Game",
        "Laplace",
        "Problem",
    ),
    "sfumato.solver.attack": ("certificate_from_attacker",),
    "sfumato.solver.frontier": ("frontier",),
    "sfumato.solver.game": ("CrossEntropy", "MutualInformation"),
    "sfumato.study.folder": ("load_run",),
    "sfumato.study.leave_one_out": ("leave_one_out",),
    "sfumato.study.solution": ("Solution",),
    "sfumato.study.solve": ("solve",),
}
_WHERE = {name: module for module, names in _HOME.items() for name in names}

show.worded_by(lambda: import_module("sfumato.render.notebook"))

__all__ = ["__version__", *_WHERE]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"sfumato has no '{name}'")
    return getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)

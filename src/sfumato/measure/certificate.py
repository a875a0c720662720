"""Certificates: a proof, in a file, that no mechanism within the budgets leaks less than a number.

A certificate holds a probability vector for each report (how an adversary would guess there) and a
price for each budget.  `bound` works the proof out again from the data alone, with the arithmetic
of `sfumato.measure.bound`, which shares no code with any solver.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy.spatial import cKDTree

from sfumato.data.grid import Grid
from sfumato.data.joint import Joint
from sfumato.errors import FileError
from sfumato.files import read_arrays, written_beside
from sfumato.measure.bound import CertificateError, Claim, bound_grid, bound_plane
from sfumato.measure.objective import Gain, Objective
from sfumato.mechanism.law import Loss, euclidean

_FORMAT = "sfumato certificate 1"
_MOST_PAIRS = 4e8  # truths times cells up to which all cells of the region are checked
_LN2 = float(np.log(2))


class Claimed(Protocol):
    """What a certificate needs to know of a problem."""

    @property
    def samples(self) -> Any: ...
    @property
    def joint(self) -> Joint: ...
    @property
    def places(self) -> np.ndarray: ...
    @property
    def reports(self) -> np.ndarray: ...
    @property
    def grid(self) -> Grid: ...
    @property
    def loss(self) -> Loss: ...
    @property
    def loss_is_distance(self) -> bool: ...
    @property
    def max_loss(self) -> float | None: ...
    @property
    def user_limits(self) -> np.ndarray | None: ...
    @property
    def max_distance(self) -> float | None: ...
    @property
    def objective(self) -> Objective: ...


@dataclass(frozen=True)
class Bounds:
    """The least leakage of any mechanism within the budgets, in the objective's unit.

    `grid` is for reports on the problem's grid (`cells` of them were checked), `plane` for reports
    anywhere; None where the plane was not proved (words, or a loss that is not the distance).
    """

    grid: float
    plane: float | None
    cells: int

    def or_better(self, other: "Bounds") -> "Bounds":
        """What two proofs of one problem prove together: the larger of each."""
        planes = [each.plane for each in (self, other) if each.plane is not None]
        return Bounds(
            max(self.grid, other.grid), max(planes, default=None), max(self.cells, other.cells)
        )


@dataclass(frozen=True, eq=False)
class Proof:
    """Shares of guesses at places, with prices of the budgets; `half_sides` for cells of the
    plane."""

    places: np.ndarray
    shares: np.ndarray
    multipliers: np.ndarray
    half_sides: np.ndarray | None = None

    def __post_init__(self) -> None:
        places, shares = np.asarray(self.places), np.asarray(self.shares)
        if not (
            places.ndim == 2
            and places.shape[1:] == (2,)
            and shares.ndim == 2
            and 0 < len(shares) == len(places)
        ):
            raise CertificateError(
                f"a proof needs a row of shares for each place; got shapes {shares.shape} and"
                f" {places.shape}"
            )
        if not np.all(np.isfinite(places)):
            raise CertificateError("the places of a proof must be finite numbers")
        if self.half_sides is not None and np.shape(self.half_sides) != (len(places),):
            raise CertificateError(
                "a proof for the plane needs a half side for each cell; got shape"
                f" {np.shape(self.half_sides)}"
            )


@dataclass(frozen=True, eq=False)
class Certificate:
    """A proof for one data set, one objective and one set of budgets."""

    objective: str
    data_hash: str
    max_loss: float | None
    user_limits: np.ndarray | None
    max_distance: float | None
    on_grid: Proof
    on_plane: Proof | None = None

    @classmethod
    def of(cls, problem: Claimed, on_grid: Proof, on_plane: Proof | None = None) -> "Certificate":
        """A certificate for a problem."""
        return cls(
            problem.objective.name,
            problem.samples.hash,
            problem.max_loss,
            problem.user_limits,
            problem.max_distance,
            on_grid,
            on_plane,
        )

    def bound(self, problem: Claimed) -> Bounds:
        """Work the proof out again for a problem; refuses a problem that it was not made for."""
        self._check(problem)
        claim = claim_of(problem)
        on_grid, cells = bound_on_the_grid(problem, self.on_grid)
        plane = None
        if self.on_plane is not None and problem.loss is euclidean:
            proof = self.on_plane
            assert proof.half_sides is not None
            plane = bound_plane(
                claim,
                proof.shares,
                proof.multipliers,
                problem.places,
                proof.places,
                proof.half_sides,
            )
        unit = _LN2 if problem.objective.name == "information" else 1.0
        # Whatever is reported, the blind guess is there; and what holds on the plane holds on the
        # grid.
        blind = problem.objective.leakage(
            Joint(problem.joint.prior[:, None], secrets=problem.joint.secrets)
        )
        blind -= 1e-12 * (1 + abs(blind))  # room for the rounding of whoever it is held against
        plane = None if plane is None else max(plane / unit, blind)
        return Bounds(
            grid=max(on_grid / unit, blind, -np.inf if plane is None else plane),
            plane=plane,
            cells=cells,
        )

    def _check(self, problem: Claimed) -> None:
        if self.data_hash != problem.samples.hash:
            raise CertificateError(
                f"this certificate is for other data ({self.data_hash[:12]}…);"
                f" {problem.samples.name} is {problem.samples.hash[:12]}…: name the data that it"
                " was made for"
            )
        if self.objective != problem.objective.name:
            raise CertificateError(
                f"this certificate is for the objective {self.objective}, not"
                f" {problem.objective.name}"
            )
        mine = _budget_text(self.max_loss, self.user_limits, self.max_distance)
        theirs = _budget_text(problem.max_loss, problem.user_limits, problem.max_distance)
        if mine != theirs:
            raise CertificateError(f"this certificate is for the budget {mine}, not {theirs}")

    def save(self, path: str | Path) -> None:
        """Write the certificate to one file (NumPy arrays, nothing pickled)."""
        arrays: dict[str, np.ndarray] = {
            "format": np.array(_FORMAT),
            "objective": np.array(self.objective),
            "data_hash": np.array(self.data_hash),
            "max_loss": _optional(self.max_loss),
            "max_distance": _optional(self.max_distance),
            "user_limits": np.array([] if self.user_limits is None else self.user_limits),
        }
        for name, proof in (("grid", self.on_grid), ("plane", self.on_plane)):
            if proof is not None:
                arrays |= {
                    f"{name}.places": proof.places,
                    f"{name}.shares": proof.shares,
                    f"{name}.multipliers": proof.multipliers,
                }
                if proof.half_sides is not None:
                    arrays[f"{name}.half_sides"] = proof.half_sides
        with written_beside(path) as beside, beside.open("wb") as target:
            np.savez_compressed(target, allow_pickle=False, **arrays)


def load_certificate(path: str | Path) -> Certificate:
    """Read a certificate that `save` wrote."""
    arrays = read_arrays(path, what="certificate")
    try:
        if str(arrays["format"]) != _FORMAT:
            raise FileError(f"{path} is not a certificate of this version; expected '{_FORMAT}'")
        limits = arrays["user_limits"]
        return Certificate(
            objective=str(arrays["objective"]),
            data_hash=str(arrays["data_hash"]),
            max_loss=_number(arrays["max_loss"]),
            user_limits=limits if len(limits) else None,
            max_distance=_number(arrays["max_distance"]),
            on_grid=Proof(arrays["grid.places"], arrays["grid.shares"], arrays["grid.multipliers"]),
            on_plane=_plane_proof(arrays),
        )
    except KeyError as error:
        raise FileError(
            f"{path} is not a certificate file: the array {error} is missing; make or copy it again"
        ) from None
    except FileError:
        raise
    except CertificateError as error:
        raise FileError(f"{path} is not a certificate: {error}") from None
    except (TypeError, ValueError):  # an array of another shape or type
        raise FileError(
            f"{path} is not a certificate file: an array is not what it should be; make or copy it"
            " again"
        ) from None


def claim_of(problem: Claimed) -> Claim:
    """The claim that a bound is about, as plain arrays."""
    objective = problem.objective
    kind = objective.name if objective.name in ("bayes", "information") else "gain"
    gains = objective.matrix(problem.joint.secrets) if isinstance(objective, Gain) else None
    return Claim(
        joint=problem.joint.table,
        objective=kind,
        gains=gains,
        max_loss=problem.max_loss,
        user_max_loss=problem.user_limits,
        cap=problem.max_distance,
    )


def bound_on_the_grid(problem: Claimed, proof: Proof) -> tuple[float, int]:
    """What the proof proves for reports on the grid (nats for information), and how many cells were
    looked at.

    These are all cells of the region, each with the shares of the nearest one in the proof; where
    they are too many (or the reports are words), the problem's own list of reports.
    """
    places, count = (
        problem.reports,
        problem.grid.cells_per_side if problem.loss_is_distance else None,
    )
    if count is not None and count * count * len(problem.places) <= _MOST_PAIRS:
        places = problem.grid.centres()
    nearest = (
        cKDTree(proof.places).query(places)[1]
        if places is not proof.places
        else np.arange(len(places))
    )
    bound = bound_grid(
        claim_of(problem),
        proof.shares[nearest],
        proof.multipliers,
        lambda reports: problem.loss(problem.places[:, None, :], places[None, reports, :]),
    )
    return bound, len(places)


def _plane_proof(arrays: dict[str, np.ndarray]) -> Proof | None:
    if "plane.places" not in arrays:
        return None
    return Proof(
        arrays["plane.places"],
        arrays["plane.shares"],
        arrays["plane.multipliers"],
        arrays["plane.half_sides"],
    )


def _optional(value: float | None) -> np.ndarray:
    return np.array([] if value is None else [value], dtype=float)


def _number(stored: np.ndarray) -> float | None:
    return float(stored[0]) if len(stored) else None


def _budget_text(
    max_loss: float | None, user_limits: np.ndarray | None, max_distance: float | None
) -> str:
    parts = [] if max_loss is None else [f"{max_loss:.9g} on average"]
    if user_limits is not None:
        parts.append("per user " + "/".join(f"{limit:.9g}" for limit in user_limits))
    if max_distance is not None:
        parts.append(f"{max_distance:.9g} at most")
    return ", ".join(parts)

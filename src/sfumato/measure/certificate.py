"""Certificates: a proof, in a file, that no mechanism within the budgets leaks less than a number.

A certificate holds a probability vector for each report (how an adversary would guess there) and a
price for each budget.  `bound` works the proof out again from the data alone, with the arithmetic
of `sfumato.measure.bound`, which shares no code with any solver.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from sfumato.data.grid import Grid
from sfumato.data.joint import Joint
from sfumato.data.samples import MANY_USERS
from sfumato.errors import FileError
from sfumato.files import read_arrays, written_beside
from sfumato.measure.bound import CertificateError, Claim, bound_grid, bound_plane
from sfumato.measure.cells import Cells
from sfumato.measure.objective import Endless, Objective, blind_leakage
from sfumato.measure.recheck import Question, Rechecked, recheck
from sfumato.mechanism.loss import Loss, traits_of
from sfumato.show import InNotebooks

_FORMAT = "sfumato certificate 2"
_ARRAYS = {  # kind and number of axes
    "format": ("U", 0),
    "objective": ("U", 0),
    "data_hash": ("U", 0),
    "max_loss": ("<f8", 1),
    "max_distance": ("<f8", 1),
    "user_limits": ("<f8", 1),
    "grid.places": ("<f8", 2),
    "grid.shares": ("<f8", 2),
    "grid.multipliers": ("<f8", 1),
    "grid.pair_weights": ("<f8", 1),
    "plane.root": ("<f8", 1),
    "plane.cells": ("<i8", 2),
    "plane.shares": ("<f8", 2),
    "plane.multipliers": ("<f8", 1),
}
_OF_FORMAT_1 = ("plane.places", "plane.half_sides")  # read, so that the format can be named
_LARGE = 1 << 26  # bytes; packed, more might look like a file that unpacks without end
_MOST_TEXT = 300  # letters
_FARTHEST_M = 1e12  # beyond it distances to places may overflow
_MOST_NAMED = 12  # budgets of users in a sentence
_MOST_USERS = 1_000_000
_MOST_KNOWN = 256  # reports that are tried as the place for all
_MOST_PAIRS = 4e8  # truths times cells up to which all cells of the region are checked


class Claimed(Protocol):
    """What a certificate needs to know of a problem."""

    @property
    def samples(self) -> Any: ...
    @property
    def joint(self) -> Joint: ...
    @property
    def places(self) -> np.ndarray: ...
    @property
    def report_places(self) -> np.ndarray: ...
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

    `grid` is for reports on the problem's grid: `cells` of its `all_cells` were looked at (all of
    them, unless truths times cells are beyond 4e8: then those near the truths' hull).  `plane` is
    for reports anywhere; None where the plane was not proved (categories, or a loss that is not the
    distance).
    """

    grid: float
    plane: float | None
    cells: int
    all_cells: int | None = None

    def or_better(self, other: "Bounds") -> "Bounds":
        """What two proofs of one problem prove together: the larger of each."""
        planes = [each.plane for each in (self, other) if each.plane is not None]
        return Bounds(
            max(self.grid, other.grid),
            max(planes, default=None),
            max(self.cells, other.cells),
            self.all_cells,
        )


@dataclass(frozen=True, eq=False)
class Proof:
    """Shares of guesses at places, with prices of the budgets; for overlaps with the weights of
    the pairs of users (`sfumato.measure.bound` says what shares are then)."""

    places: np.ndarray
    shares: np.ndarray
    multipliers: np.ndarray
    pair_weights: np.ndarray | None = None

    def __repr__(self) -> str:
        return f"<Proof at {len(self.places)} places>"

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
        if not np.all(np.abs(places) < _FARTHEST_M):
            raise CertificateError("the places of a proof must be finite numbers of metres")


@dataclass(frozen=True, eq=False)
class PlaneProof:
    """Shares of guesses on cells of the plane, with prices of the budgets; for overlaps the weights
    of the pairs are those of the proof on the grid."""

    cells: Cells
    shares: np.ndarray
    multipliers: np.ndarray

    def __repr__(self) -> str:
        return f"<PlaneProof on {len(self.cells)} cells>"

    def __post_init__(self) -> None:
        shape = np.shape(self.shares)
        if len(shape) != 2 or not 0 < shape[0] == len(self.cells):
            raise CertificateError(
                f"a proof for the plane needs a row of shares for each of its {len(self.cells)}"
                f" cells; got shape {shape}"
            )


@dataclass(frozen=True, eq=False)
class Certificate(InNotebooks):
    """A proof for one data set, one objective and one set of budgets.

    Its bound is in the objective's unit (a probability or bits): no mechanism within the budgets
    leaks less.

    >>> import sfumato as sf
    >>> places = [[0, 0], [100, 0], [100, 0], [200, 0]]
    >>> data = sf.Samples(secret=[0, 0, 1, 1], truth=places, secrets=("ann", "bob"))
    >>> problem = sf.Problem(data, max_loss=45, cell_m=20)
    >>> certificate = sf.solve(problem, sf.Exact()).certificate
    >>> round(certificate.bound(problem).grid, 3)
    0.525
    """

    objective: str
    data_hash: str
    max_loss: float | None
    user_limits: np.ndarray | None
    max_distance: float | None
    on_grid: Proof
    on_plane: PlaneProof | None = None

    def __repr__(self) -> str:
        budget = "" if self.max_loss is None else f" within {self.max_loss:g}"
        plane = "" if self.on_plane is None else " and anywhere on the plane"
        return f"<Certificate for {self.objective}{budget}: reports on its grid{plane}>"

    @classmethod
    def of(
        cls, problem: Claimed, on_grid: Proof, on_plane: PlaneProof | None = None
    ) -> "Certificate":
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
        many = problem.joint.sparse is not None or problem.joint.shape[0] > MANY_USERS
        if many and self.on_plane is not None:  # what holds on the plane stands for the grid
            on_grid, cells = -np.inf, _all_cells(problem) or 0
        else:
            on_grid, cells = bound_on_the_grid(problem, self.on_grid)
        plane = None
        if self.on_plane is not None and traits_of(problem.loss).is_distance:
            proof = self.on_plane
            claim = replace(claim_of(problem), pair_weights=self.on_grid.pair_weights)
            plane = bound_plane(claim, proof.shares, proof.multipliers, problem.places, proof.cells)
        unit = problem.objective.nats
        # Whatever is reported, the blind guess is there; and what holds on the plane holds on the
        # grid.
        blind = blind_leakage(problem.objective, problem.joint)
        blind -= 1e-12 * (1 + abs(blind))  # room for the rounding of whoever it is held against
        plane = None if plane is None else max(_in_unit(plane, unit), blind)
        grid = max(_in_unit(on_grid, unit), blind, -np.inf if plane is None else plane)
        known_on_grid, known_on_plane = known_leakages(problem)
        refuse_above(grid, known_on_grid)
        if plane is not None:
            refuse_above(plane, min(known_on_grid, known_on_plane))
        return Bounds(grid, plane, cells, _all_cells(problem))

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
        mine = _budget(self.max_loss, self.user_limits, self.max_distance)
        theirs = _budget(problem.max_loss, problem.user_limits, problem.max_distance)
        if mine != theirs:
            raise CertificateError(
                f"this certificate is for the budget {_text_of(mine)}, not {_text_of(theirs)}"
            )

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
        arrays |= {
            "grid.places": self.on_grid.places,
            "grid.shares": self.on_grid.shares,
            "grid.multipliers": self.on_grid.multipliers,
        }
        if self.on_grid.pair_weights is not None:
            arrays["grid.pair_weights"] = self.on_grid.pair_weights
        if self.on_plane is not None:
            cells = self.on_plane.cells
            arrays |= {
                "plane.root": np.array([*cells.corner, cells.side_m]),
                "plane.cells": cells.index,
                "plane.shares": self.on_plane.shares,
                "plane.multipliers": self.on_plane.multipliers,
            }
        stored = {name: _as_stored(name, array) for name, array in arrays.items()}
        large = sum(array.nbytes for array in stored.values()) > _LARGE
        write = np.savez if large else np.savez_compressed
        with written_beside(path, private=True) as beside, beside.open("wb") as target:
            write(target, allow_pickle=False, **stored)


def load_certificate(path: str | Path) -> Certificate:
    """Read a certificate that `save` wrote.

    >>> import sfumato as sf
    >>> places = [[0, 0], [100, 0], [100, 0], [200, 0]]
    >>> data = sf.Samples(secret=[0, 0, 1, 1], truth=places, secrets=("ann", "bob"))
    >>> sf.solve(sf.Problem(data, max_loss=45, cell_m=20), sf.Exact()).save("run")
    >>> load_certificate("run/certificate.npz")
    <Certificate for bayes within 45: reports on its grid and anywhere on the plane>
    """
    arrays = read_arrays(path, what="certificate", names={*_ARRAYS, *_OF_FORMAT_1})
    try:
        if str(arrays["format"]) != _FORMAT:
            raise FileError(
                f"{path} is not a certificate of this version; expected '{_FORMAT}': remove it, and"
                " `sfumato certify` makes it again"
            )
        _check_arrays(arrays)
        limits = arrays["user_limits"]
        if len(limits) > _MOST_USERS:
            raise CertificateError(f"it holds budgets of {len(limits)} users")
        return Certificate(
            objective=str(arrays["objective"]),
            data_hash=str(arrays["data_hash"]),
            max_loss=_number(arrays["max_loss"]),
            user_limits=limits if len(limits) else None,
            max_distance=_number(arrays["max_distance"]),
            on_grid=Proof(
                arrays["grid.places"],
                arrays["grid.shares"],
                arrays["grid.multipliers"],
                arrays.get("grid.pair_weights"),
            ),
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
    except (TypeError, ValueError, OverflowError):  # an array of another shape or type
        raise FileError(
            f"{path} is not a certificate file: an array is not what it should be; make or copy it"
            " again"
        ) from None


def claim_of(problem: Claimed) -> Claim:
    """The claim that a bound is about, as plain arrays.  For endless reports the bound is on the
    loss: its budget is 0."""
    return Claim(
        joint=problem.joint.matrix,
        objective=problem.objective.scores,
        gains=problem.objective.gains(problem.joint.secrets),
        max_loss=0.0 if isinstance(problem.objective, Endless) else problem.max_loss,
        user_max_loss=problem.user_limits,
        cap=problem.max_distance,
    )


def bound_on_the_grid(problem: Claimed, proof: Proof) -> tuple[float, int]:
    """What the proof proves for reports on the grid (nats for information), and how many cells were
    looked at.

    These are all cells of the region, each with the shares of the nearest one in the proof; where
    they are too many (or the reports are words), the problem's own list of reports.
    """
    places = reports_checked(problem)
    nearest = np.arange(len(places)) if places is proof.places else _nearest(proof.places, places)
    bound = bound_grid(
        replace(claim_of(problem), pair_weights=proof.pair_weights),
        proof.shares[nearest],
        proof.multipliers,
        lambda reports: problem.loss(problem.places[:, None, :], places[None, reports, :]),
    )
    return bound, len(places)


def reports_checked(problem: Claimed) -> np.ndarray:
    """The reports that a bound on the grid looks at."""
    cells = _all_cells(problem)
    if cells is not None and cells * len(problem.places) <= _MOST_PAIRS:
        return problem.grid.centres()
    return problem.report_places


def question_of(problem: Claimed) -> Question:
    """The same as `claim_of`, for the second checker: plain numbers only."""
    if problem.joint.sparse is not None:
        users, places = problem.joint.shape
        raise CertificateError(
            f"rational arithmetic goes through a whole table, and {users:,} users with {places:,}"
            " places are too many for it; the first checker took them, piece by piece"
        )
    claim, reports, truths = claim_of(problem), reports_checked(problem), problem.places
    limits, gains = problem.user_limits, claim.gains
    traits = traits_of(problem.loss)
    known = {1: "distance", 2: "square"}.get(traits.power or 0)

    def losses(number: int) -> list[float]:
        return [float(loss) for loss in problem.loss(truths, reports[None, number])]

    return Question(
        objective=claim.objective,
        joint=claim.joint.tolist(),
        gains=None if gains is None else np.asarray(gains, dtype=float).tolist(),
        max_loss=claim.max_loss,
        user_max_loss=None if limits is None else limits.tolist(),
        cap=claim.cap,
        truths=truths.tolist(),
        reports=reports.tolist(),
        loss=known or losses,
        nearest=lambda places: _nearest(np.array(places), reports).tolist(),
        plane=traits.is_distance,
    )


def check_again(
    path: str | Path,
    problem: Claimed,
    bounds: Bounds,
    *,
    progress: Callable[[float], None] = lambda share: None,
) -> Rechecked:
    """Hold bounds against the second checker, which works the file out in rational arithmetic."""
    rechecked = recheck(path, question_of(problem), progress=progress)
    for name, first, second in (
        ("grid", bounds.grid, rechecked.grid),
        ("plane", bounds.plane, rechecked.plane),
    ):
        if first is not None and second is not None and not first <= second:
            raise CertificateError(
                f"the two checkers disagree on the {name}: {first!r} and {float(second)!r}; trust"
                " neither, and report it"
            )
    return rechecked


def _nearest(places: np.ndarray, reports: np.ndarray) -> np.ndarray:
    """For each report the number of the nearest place."""
    return np.asarray(cKDTree(places).query(reports)[1])


def known_leakages(problem: Claimed) -> tuple[float, float]:
    """The leakage of mechanisms that need no solving and keep the budgets: on the grid's reports
    and on the plane; infinite where there is none.

    Each flips a coin between one place for all and the nearest report of the truth (on the plane,
    for distances, the truth itself).  A bound above one of them is false.
    """
    claim, joint = claim_of(problem), problem.joint
    reports, truths = problem.report_places, problem.places
    if isinstance(problem.objective, Endless):  # one place for all tells nothing
        tried = reports[:: 1 + len(reports) // _MOST_KNOWN]
        cost = problem.loss(truths[:, None, :], tried[None, :, :])
        cost = joint.place_probability @ np.where(cost <= (claim.cap or np.inf), cost, np.inf)
        return float(cost.min()), np.inf
    charges, limits = claim.budgets()
    if problem.loss_is_distance:
        nearest = cKDTree(reports).query(truths)[1]
    else:
        nearest = np.concatenate(
            [
                problem.loss(part[:, None, :], reports[None, :, :]).argmin(axis=1)
                for part in np.array_split(truths, 1 + len(truths) * len(reports) // 2_000_000)
            ]
        )
    tried = reports[:: 1 + len(reports) // _MOST_KNOWN]
    to_tried = problem.loss(truths[:, None, :], tried[None, :, :])
    # the place for all that is least over the budgets
    over = [to_tried.max(axis=0) / (claim.cap or np.inf)]
    over += [
        charge @ to_tried / max(limit, 1e-300)
        for charge, limit in zip(charges, limits, strict=True)
    ]
    best = int(np.argmin(np.max(over, axis=0)))
    place_for_all = to_tried[:, best]
    used, column = np.unique(nearest, return_inverse=True)
    if joint.sparse is None:
        moved: Any = np.zeros((len(joint.prior), len(used)))
        np.add.at(moved.T, column.ravel(), joint.table.T)
    else:
        to = (np.arange(len(column.ravel())), column.ravel())
        onto = sparse.csr_matrix((np.ones(len(to[0])), to), shape=(len(to[0]), len(used)))
        moved = joint.sparse @ onto

    def leakage(near: np.ndarray, table: Any) -> float:
        chance = _chance(claim, charges, limits, near, place_for_all)
        if chance is None:
            return np.inf
        stack: Any = sparse.hstack if sparse.issparse(table) else np.hstack
        both = stack([(1 - chance) * table, chance * joint.prior[:, None]])
        return problem.objective.leakage(Joint(both / both.sum(), secrets=joint.secrets))

    on_grid = leakage(problem.loss(truths, reports[nearest]), moved)
    if not traits_of(problem.loss).is_distance:
        return on_grid, np.inf
    return on_grid, leakage(np.zeros(len(truths)), joint.matrix)


def _chance(
    claim: Claim,
    charges: np.ndarray,
    limits: np.ndarray,
    near: np.ndarray,
    place_for_all: np.ndarray,
) -> float | None:
    """How often the coin may fall for the place for all; None where the other side is over the
    budgets already."""
    low, high = charges @ near, charges @ place_for_all
    if np.any(low > limits) or (claim.cap is not None and near.max() > claim.cap):
        return None
    if claim.cap is not None and place_for_all.max() > claim.cap:
        return 0.0
    over = high > limits
    shares = (limits[over] - low[over]) / (high[over] - low[over])
    return float(np.min(shares, initial=1.0))


def refuse_above(bound: float, known: float) -> None:
    """Refuse a bound that is above the leakage of a mechanism within the budgets."""
    if not bound <= known + 1e-9 * (1 + abs(known)):
        raise CertificateError(
            f"this certificate claims more than a known mechanism allows: at least {bound:.6g},"
            f" where a mechanism within the budgets leaks {known:.6g}; it is refused"
        )


def _all_cells(problem: Claimed) -> int | None:
    """How many cells the region has, for a loss that grows with the distance."""
    count = problem.grid.cells_per_side if problem.loss_is_distance else None
    return None if count is None else count * count


def _in_unit(bound: float, unit: float) -> float:
    """Nats as bits, rounded down."""
    return bound if unit == 1.0 else bound / unit - 4 * 2.0**-53 * abs(bound / unit)


def _as_stored(name: str, array: np.ndarray) -> np.ndarray:
    kind, _ = _ARRAYS[name]
    return np.asarray(array, dtype=None if kind == "U" else kind, order="C")


def _check_arrays(arrays: dict[str, np.ndarray]) -> None:
    for name, array in arrays.items():
        if name not in _ARRAYS:
            raise CertificateError(f"it holds an array {name!r} that no certificate has")
        kind, axes = _ARRAYS[name]
        fits = (
            array.dtype.kind == "U" and array.dtype.itemsize <= 4 * _MOST_TEXT
            if kind == "U"
            else array.dtype.str == kind
        )
        if not fits or array.ndim != axes:
            raise CertificateError(
                f"the array {name!r} is of another kind, {array.dtype} of shape {array.shape}"
            )


def _plane_proof(arrays: dict[str, np.ndarray]) -> PlaneProof | None:
    if not any(name.startswith("plane.") for name in arrays):
        return None
    x, y, side = arrays["plane.root"].tolist()
    return PlaneProof(
        Cells((x, y), side, arrays["plane.cells"]),
        arrays["plane.shares"],
        arrays["plane.multipliers"],
    )


def _optional(value: float | None) -> np.ndarray:
    return np.array([] if value is None else [value], dtype=float)


def _number(stored: np.ndarray) -> float | None:
    if len(stored) > 1:
        raise ValueError("not a number or none")
    return float(stored[0]) if len(stored) else None


def _budget(
    max_loss: float | None, user_limits: np.ndarray | None, max_distance: float | None
) -> tuple[list[str], list[str], list[str]]:
    """Budgets to nine digits: on average, per user, at most."""
    per_user = [] if user_limits is None else user_limits.tolist()
    average, most = ([] if limit is None else [limit] for limit in (max_loss, max_distance))
    first, second, third = (
        [f"{limit:.9g}" for limit in part] for part in (average, per_user, most)
    )
    return first, second, third


def _text_of(budget: tuple[list[str], list[str], list[str]]) -> str:
    average, per_user, most = budget
    users = "/".join(per_user[:_MOST_NAMED]) + ("/…" if len(per_user) > _MOST_NAMED else "")
    parts = [f"{limit} on average" for limit in average]
    parts += [f"per user {users}"] if per_user else []
    return ", ".join([*parts, *(f"{limit} at most" for limit in most)])

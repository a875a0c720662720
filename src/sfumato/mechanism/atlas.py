"""Many mechanisms as one: a tile of the map each, blended near the edges."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy import sparse

from sfumato.data.grid import Grid, Region
from sfumato.data.joint import Joint
from sfumato.data.plane import Plane
from sfumato.data.tiles import Tiling
from sfumato.errors import MechanismError
from sfumato.mechanism.base import Mechanism, inner_arrays, inner_mechanisms
from sfumato.mechanism.codebook import CodebookNet
from sfumato.mechanism.law import Law, ReportRows, blended
from sfumato.mechanism.loss import Loss
from sfumato.mechanism.rows import RowsOnDemand
from sfumato.mechanism.wrap import Snapped


@dataclass(frozen=True, eq=False)
class Atlas(Mechanism):
    """Moves the truth by up to the tiling's overlap, at random; the tile at the moved point answers
    for the true one.

    So its law is the blend  sum_t a_t(w) P_t(z | w)  with the weights of `Tiling`, its loss the
    same blend of losses.  `which` numbers the mechanism of each tile, as tiles may share one.  All
    reports are middles of cells of `grid`, one lattice for all tiles, so that no report tells by
    its last digits which tile it is from.  On a wide plane each tile has a plane of its own, which
    touches in its middle, and its mechanism works in the metres of that.

    >>> from sfumato.mechanism.simple import constant
    >>> tiles = np.array([[1, column, row] for row in (0, 1) for column in (0, 1)])
    >>> tiling = Tiling(Region((0.0, 0.0), 800.0), tiles, 50.0)
    >>> atlas = Atlas(tiling, (constant((-200.0, 0.0)), constant((200.0, 0.0))), [0, 1, 0, 1],
    ...     Grid(cell_m=25.0))
    >>> atlas.rows(np.array([[25.0, 9.0]])).matrix.toarray().tolist()  # never the truth's own cell
    [[0.25, 0.0, 0.75]]
    """

    tiling: Tiling
    mechanisms: tuple[Mechanism, ...]
    which: np.ndarray = field(repr=False)
    grid: Grid
    kind = "atlas"

    def __post_init__(self) -> None:
        which = np.asarray(self.which)
        object.__setattr__(self, "which", which)
        if which.shape != (len(self.tiling),) or which.dtype.kind not in "iu":
            raise MechanismError(
                f"an atlas has a mechanism for each of its {len(self.tiling)} tiles; got shape"
                f" {which.shape}"
            )
        if not (which.min() >= 0 and which.max() < len(self.mechanisms)):
            raise MechanismError(
                f"the tiles' mechanisms are numbered 0 to {len(self.mechanisms) - 1}; got"
                f" {which.min()} to {which.max()}"
            )
        nets = [mechanism for mechanism in self.mechanisms if isinstance(mechanism, CodebookNet)]
        for net in nets:
            net.share_room(len(nets))

    @property
    def draws(self) -> int:  # type: ignore[override]
        return 2 + max(mechanism.draws for mechanism in self.mechanisms)

    @property
    def lists_truths(self) -> bool:  # type: ignore[override]
        return any(mechanism.lists_truths for mechanism in self.mechanisms)

    def places_in_file(self) -> np.ndarray:
        parts = [np.empty((0, 2))]
        for tile, number in enumerate(self.which):
            places = self.mechanisms[number].places_in_file()
            parts.append(_moved(places, self.plane_of(tile), self.plane) if len(places) else places)
        return np.vstack(parts)

    def plane_of(self, tile: int) -> Plane | None:
        """The plane that the mechanism of a tile works on."""
        return plane_of(self.tiling, tile, self.plane)

    @cached_property
    def _sheets(self) -> dict[tuple[int, Plane | None], Mechanism]:
        return {}

    def sheet(self, tile: int) -> Mechanism:
        """The mechanism of one tile alone, on the atlas's plane and lattice."""
        key = (tile, self.plane)
        if key not in self._sheets:
            inner = self.mechanisms[self.which[tile]]
            self._sheets[key] = on_sheet(inner, self.plane_of(tile), self.plane, self.grid)
        return self._sheets[key]

    def _report(self, truth: np.ndarray, chance: np.ndarray) -> np.ndarray:
        moved = truth + (2 * chance[:, :2] - 1) * self.tiling.overlap_m
        tile = self.tiling.locate(moved)
        order = np.argsort(tile, kind="stable")
        reports = np.empty(truth.shape)
        for rows in np.split(order, np.flatnonzero(np.diff(tile[order])) + 1):
            if len(rows):
                sheet = self.sheet(int(tile[rows[0]]))
                reports[rows] = sheet.report(truth[rows], chance[rows, 2 : 2 + sheet.draws])
        return reports

    def rows(self, truth: np.ndarray) -> ReportRows | None:
        weights = self.tiling.weights(truth).tocsc()
        parts, places = [sparse.csr_matrix((len(truth), 0))], [np.empty((0, 2))]
        for tile in np.flatnonzero(np.diff(weights.indptr)):
            entries = slice(weights.indptr[tile], weights.indptr[tile + 1])
            at, share = weights.indices[entries], weights.data[entries]
            rows = self.sheet(int(tile)).rows(truth[at])
            if rows is None:
                return None
            flat = rows.matrix.tocoo()
            shape = (len(truth), rows.matrix.shape[1])
            chances = (flat.data * share[flat.row], (at[flat.row], flat.col))
            parts.append(sparse.csr_matrix(chances, shape=shape))
            places.append(rows.places)
        return ReportRows(sparse.hstack(parts, format="csr"), np.vstack(places)).distinct()

    def rows_on(self, truth: np.ndarray, grid: Grid | None = None) -> RowsOnDemand | None:
        listed = super().rows_on(truth, grid)
        if listed is not None:
            return listed
        weights = self.tiling.weights(truth)
        parts = {}
        for tile in np.unique(weights.indices):
            at = np.flatnonzero(weights[:, [tile]].toarray())
            rows = self.sheet(int(tile)).rows_on(truth[at])
            if rows is None:
                return None
            parts[int(tile)] = (rows, {int(truth): row for row, truth in enumerate(at)})
        every = np.vstack([rows.places for rows, _ in parts.values()])
        places, column = np.unique(every, axis=0, return_inverse=True)
        sizes = np.cumsum([0, *(len(rows.places) for rows, _ in parts.values())])
        first = dict(zip(parts, sizes, strict=False))

        def row(number: int) -> tuple[np.ndarray, np.ndarray]:
            total, shares = np.zeros(len(places)), weights[[number]]
            for tile, share in zip(shares.indices.tolist(), shares.data, strict=True):
                rows, row_of = parts[tile]
                columns, chances = rows.row(row_of[number])
                total[column.ravel()[first[tile] + columns]] += share * chances
            columns = np.flatnonzero(total)
            return columns, total[columns]

        within = max(rows.within for rows, _ in parts.values())
        blend = RowsOnDemand(len(truth), places, row, within)
        return blend if grid is None else blend.merged(grid)

    def _law(self, joint: Joint, loss: Loss) -> Law | None:
        law = super()._law(joint, loss)
        if law is not None:
            return law
        assert joint.places is not None
        parts = []
        for tile in np.unique(self.tiling.weights(joint.places).indices):
            mass, before = weighted(joint, self.tiling.share(int(tile), joint.places))
            assert before is not None
            part = self.sheet(int(tile)).law(before, loss=loss)
            if part is None:
                return None
            parts.append((mass, part))
        return blended(parts)

    def arrays(self) -> dict[str, np.ndarray]:
        region, inner = self.tiling.region, {}
        for number, mechanism in enumerate(self.mechanisms):
            inner.update(inner_arrays(mechanism, part=f"{number}."))
        return {
            "region": np.array([*region.centre, region.side_m]),
            "squares": self.tiling.squares,
            "overlap": np.array(self.tiling.overlap_m),
            "which": self.which,
            "grid": self.grid.as_array(),
            **inner,
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "Atlas":
        x, y, side = (float(number) for number in arrays["region"])
        tiling = Tiling(Region((x, y), side), arrays["squares"], float(arrays["overlap"]))
        mechanisms = tuple(inner_mechanisms(arrays))
        return cls(tiling, mechanisms, arrays["which"], Grid.from_array(arrays["grid"]))


def plane_of(tiling: Tiling, tile: int, plane: Plane | None) -> Plane | None:
    """The plane of a tile: the atlas's own, or on a wide one a plane that touches in the tile's
    middle."""
    if plane is None or not plane.wide:
        return plane
    latitude, longitude = plane.to_degrees(tiling.middles[tile][None, :])
    return Plane(float(latitude[0]), float(longitude[0]))


def on_sheet(inner: Mechanism, own: Plane | None, plane: Plane | None, grid: Grid) -> Mechanism:
    """A mechanism of a tile's own plane on the plane and the lattice of its atlas."""
    return Snapped(inner if own == plane else _Moved(inner, own, plane), grid)


def weighted(joint: Joint, share: np.ndarray) -> tuple[float, Joint | None]:
    """The probability that a tile answers, by its share of each place; and P(secret, truth) given
    that, None where it never does."""
    assert joint.places is not None
    at = np.flatnonzero(share * joint.place_probability)
    mass = float(share @ joint.place_probability)
    if not len(at):
        return 0.0, None
    columns = joint.matrix[:, at]
    table = sparse.csr_matrix(columns) @ sparse.diags(share[at] / mass)
    return mass, Joint(table, places=joint.places[at], secrets=joint.secrets)


@dataclass(frozen=True, eq=False)
class _Moved(Mechanism):
    """A mechanism of the plane `own`, on another."""

    inner: Mechanism
    own: Plane | None
    other: Plane | None

    @property
    def draws(self) -> int:  # type: ignore[override]
        return self.inner.draws

    def _local(self, truth: np.ndarray) -> np.ndarray:
        """Truths on the tile's own plane, which refuses those that it does not reach."""
        if self.own is None or self.other is None:
            return truth
        return self.own.to_metres(*self.other.to_degrees(truth))

    def _report(self, truth: np.ndarray, chance: np.ndarray) -> np.ndarray:
        local = self._local(truth)
        return _moved(self.inner.report(local, chance), self.own, self.other)

    def rows(self, truth: np.ndarray) -> ReportRows | None:
        rows = self.inner.rows(self._local(truth))
        if rows is None:
            return None
        return ReportRows(rows.matrix, _moved(rows.places, self.own, self.other))


def _moved(points: np.ndarray, own: Plane | None, other: Plane | None) -> np.ndarray:
    """Points of one plane in the metres of another."""
    if own == other or own is None or other is None:
        return points
    return other.flattened(*own.to_degrees(points))[0]

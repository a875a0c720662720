"""Drawn (secret, truth) pairs on a plane, and their split into training and test."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from sfumato.arguments import guided, guided_class
from sfumato.data.distinct import unique_points
from sfumato.data.frames import Tabular
from sfumato.data.grid import Grid, Region
from sfumato.data.joint import MOST_DENSE, Joint, by_number, check_names
from sfumato.data.plane import Plane, inside_square, looks_like_degrees
from sfumato.errors import DataError, arg
from sfumato.files import array_hash
from sfumato.randomness import generator
from sfumato.show import InNotebooks

_OVERLAP_CELL_M = 500.0
EVERYBODY_ELSE = "everybody else"
MANY_USERS = 200  # beyond it users with few check-ins are pooled unless it is set otherwise
POOL_BELOW = 4


@guided_class(
    truth="sf.read_checkins(frame) for a table, or give secret and truth (metres)",
    user="secret",
    users="secret",
    points="truth",
)
@dataclass(frozen=True, eq=False, repr=False)
class Samples(Tabular, InNotebooks):
    """Who was where: `secret` numbers into `secrets`, `truth` in metres on a plane, one row per
    check-in.

    `plane` says where the plane touches the Earth (None for data that came in metres); `region` is
    where reports may lie, when the data carries one.

    Secrets may also come by name; `secrets` then lists them all.

    >>> Samples(secret=[0, 1, 1], truth=[[0, 0], [100, 0], [0, 100]], secrets=("ann", "bob"))
    <Samples 'samples': 3 check-ins of 2 users>
    >>> Samples(secret=["ann", "bob", "bob"], truth=[[0, 0], [100, 0], [0, 100]])
    <Samples 'samples': 3 check-ins of 2 users>
    """

    instead: ClassVar[dict[str, str]] = {
        "users": "data.secrets",
        "df": "data.to_pandas()",
        "head": "data.to_pandas().head()",
        "describe": "data.to_pandas().describe()",
        "to_polars": "polars.DataFrame(data)",
        "to_csv": "data.to_pandas().to_csv('file.csv')",
        "to_numpy": "data.secret, data.truth",
        "x": "data.truth[:, 0]",
        "y": "data.truth[:, 1]",
        "n": "len(data)",
        "shape": "data.truth.shape",
        "sample": "data.split(10).train",
        "train_test_split": "data.split(80, 20)",
        "only": "data.among(('ann', 'bob'))",
        "select": "data.among(('ann', 'bob'))",
        "plot": "sf.compare(sf.mechanism.Identity(), data).html('map.html')",
    }

    secret: np.ndarray
    truth: np.ndarray
    secrets: tuple[str, ...] = ()
    plane: Plane | None = None
    region: Region | None = None
    name: str = "samples"
    notes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        secret = self._numbered()
        truth = np.array(self.truth, dtype=float)
        if truth.ndim != 2 or truth.shape[1] != 2 or secret.shape != truth.shape[:1]:
            raise DataError(
                f"expected n secrets and n points of 2 coordinates; got {secret.shape} and"
                f" {truth.shape}"
            )
        if not len(secret):
            raise DataError(
                f"{self.name}: no check-ins left; expected at least one: loosen the selection"
            )
        bad = np.flatnonzero(~np.isfinite(truth).all(axis=1))
        if bad.size:
            raise DataError(
                f"{self.name}: {bad.size} point(s) are not finite (first in data row {bad[0] + 1});"
                " remove or repair them"
            )
        if not (secret.min() >= 0 and secret.max() < len(self.secrets)):
            raise DataError(
                f"secrets are numbered from 0 to {len(self.secrets) - 1}; got {secret.min()} to"
                f" {secret.max()}"
            )
        check_names(self.secrets, source=self.name)
        several = len(np.unique(secret)) > 1
        if (several or self.plane is not None) and looks_like_degrees(truth, self.plane):
            raise DataError(
                f"{self.name}: the truths look like degrees; expected metres on a plane: read them"
                " with read_checkins, or convert them with Plane(latitude, longitude).to_metres",
                hint="where they are metres, say so with Samples(..., plane=plane)",
            )
        secret.flags.writeable = truth.flags.writeable = False
        object.__setattr__(self, "secret", secret)
        object.__setattr__(self, "truth", truth)

    def _numbered(self) -> np.ndarray:
        """The secrets as numbers into `secrets`, which are named here where they are not yet."""
        given = np.asarray(self.secret)
        if given.dtype.kind in "iu" or not given.size:
            if not self.secrets:
                count = int(given.max(initial=0)) + 1
                object.__setattr__(self, "secrets", tuple(map(str, range(count))))
            return np.array(given, dtype=np.int64)
        if given.dtype.kind not in "UO" or not all(isinstance(name, str) for name in given.flat):
            raise DataError(
                f"{self.name}: expected each secret as a name or as a number into {arg('secrets')};"
                f" got {given.dtype}"
            )
        names = tuple(self.secrets) or tuple(sorted(set(given.tolist()), key=by_number))
        number = {name: row for row, name in enumerate(names)}
        unknown = next((name for name in given.flat if name not in number), None)
        if unknown is not None:
            raise DataError(
                f"{self.name}: the secret '{unknown}' is not among {arg('secrets')}; name it there,"
                " or leave them out"
            )
        object.__setattr__(self, "secrets", names)
        return np.array([number[name] for name in given.flat], dtype=np.int64).reshape(given.shape)

    def columns(self) -> dict[str, Any]:
        """User and place: degrees, or plane metres where the data came so."""
        user = [self.secrets[number] for number in self.secret]
        if self.plane is None:
            return {"user": user, "x": self.truth[:, 0], "y": self.truth[:, 1]}
        latitude, longitude = self.plane.to_degrees(self.truth)
        return {"user": user, "lat": latitude, "lon": longitude}

    def __repr__(self) -> str:
        return f"<Samples {self.name!r}: {len(self):,} check-ins of {len(self.secrets):,} users>"

    def __len__(self) -> int:
        return len(self.secret)

    @property
    def counts(self) -> np.ndarray:
        """Check-ins of each secret."""
        return np.bincount(self.secret, minlength=len(self.secrets))

    @cached_property
    def hash(self) -> str:
        """SHA-256 over names, secrets and truths: the same pairs in the same order give the same
        hash."""
        names = np.frombuffer("\n".join(self.secrets).encode(), dtype=np.uint8)
        return array_hash(names, self.secret, self.truth)

    @property
    def described(self) -> str:
        """How many there are and where, in words: swapped columns show."""
        users = len(self.secrets)
        words = f"{len(self):,} check-ins of {users:,} user{'s' * (users != 1)}"
        if self.plane is None:
            return words
        latitude, longitude = self.plane.to_degrees(np.median(self.truth, axis=0)[None, :])
        return (
            f"{words} around latitude {float(latitude[0]):.2f}, longitude {float(longitude[0]):.2f}"
        )

    def take(self, rows: np.ndarray, *, name: str | None = None) -> "Samples":
        """The rows given (numbers or a mask), in that order; all secrets keep their numbers."""
        return replace(
            self, secret=self.secret[rows], truth=self.truth[rows], name=name or self.name
        )

    def joint(self) -> Joint:
        """P(secret, truth) at the data's own points, never rounded; each check-in weighs 1/n."""
        return self._joint

    @cached_property
    def _joint(self) -> Joint:
        return self._table(*unique_points(self.truth))

    def on(self, grid: Grid) -> Joint:
        """P(secret, cell) over the cells of a grid that hold a point."""
        index, column = np.unique(grid.index(self.truth), axis=0, return_inverse=True)
        return self._table(grid.centre_of(index), column.ravel())

    def _table(self, places: np.ndarray, column: np.ndarray) -> Joint:
        if len(self.secrets) * len(places) > MOST_DENSE:
            shape = (len(self.secrets), len(places))
            once = np.ones(len(self), np.int32)
            table = sparse.csr_matrix((once, (self.secret, column)), shape=shape)
            table.sum_duplicates()
            return Joint(table / len(self), places=places, secrets=self.secrets)
        flat = np.bincount(
            self.secret * len(places) + column, minlength=len(self.secrets) * len(places)
        )
        return Joint(
            flat.reshape(len(self.secrets), len(places)) / len(self),
            places=places,
            secrets=self.secrets,
        )

    def on_plane(self, plane: Plane | None) -> "Samples":
        """The same check-ins in metres on another plane, so that data of two files can meet.

        >>> from sfumato.data.synthetic import four_corners
        >>> moved = four_corners(0).test.on_plane(Plane(48.86, 2.35))
        >>> moved.plane == Plane(48.86, 2.35)
        True
        """
        if plane == self.plane:
            return self
        if plane is None or self.plane is None:
            raise DataError(
                f"{self.name} is in {'plane metres' if self.plane is None else 'degrees'} and"
                f" the other data in {'plane metres' if plane is None else 'degrees'}; expected"
                " the same"
                " of both: bring both in degrees, or give Samples(..., plane=) the plane that its"
                " metres lie on"
            )
        truth = plane.to_metres(*self.plane.to_degrees(self.truth))
        return replace(self, truth=truth, plane=plane, region=self._region_on(plane))

    def _region_on(self, plane: Plane) -> Region | None:
        """The same square of the Earth on another plane."""
        if self.region is None or self.plane is None:
            return None
        x, y = plane.to_metres(*self.plane.to_degrees(np.array([self.region.centre])))[0]
        return Region(centre=(float(x), float(y)), side_m=self.region.side_m)

    def in_square(self, latitude: float, longitude: float, side_m: float) -> "Samples":
        """The check-ins in a square about (latitude, longitude), on a plane that touches there."""
        if self.plane is None:
            raise DataError(
                f"{self.name} is in plane metres; a square about a latitude and longitude needs"
                " degrees"
            )
        lat, lon = self.plane.to_degrees(self.truth)
        keep, points, plane = inside_square(
            lat, lon, (latitude, longitude, side_m), source=self.name
        )
        placed: Any = {"truth": points, "plane": plane, "region": self._region_on(plane)}
        return replace(self, secret=self.secret[keep], **placed).renumbered()

    def of_users(self, names: tuple[str, ...]) -> "Samples":
        """The check-ins of the secrets named."""
        unknown = [name for name in names if name not in self.secrets]
        if unknown or not names:
            odd = f"there is no user '{unknown[0]}' in it" if unknown else "no user was named"
            raise DataError(f"{self.name}: {odd}; expected names of its users")
        chosen = [number for number, name in enumerate(self.secrets) if name in set(names)]
        return self.take(np.isin(self.secret, chosen)).renumbered()

    def among(self, names: tuple[str, ...]) -> "Samples":
        """The check-ins of the secrets named, numbered as there: test data beside its training
        data."""
        number = {name: row for row, name in enumerate(names)}
        new = np.array([number.get(name, -1) for name in self.secrets])[self.secret]
        if not (new >= 0).any():
            raise DataError(
                f"{self.name} holds none of the training data's users ({names[0]}, …); expected"
                " check-ins of the same users, by the same names"
            )
        kept = new >= 0
        return replace(self, secret=new[kept], truth=self.truth[kept], secrets=names)

    def top_users(self, count: int) -> "Samples":
        """The check-ins of the `count` secrets with the most of them (ties by name)."""
        if not count >= 1:
            raise DataError(f"the number of users to keep must be at least 1; got {count}")
        present = int((self.counts > 0).sum())
        if present < count:
            raise DataError(
                f"{self.name} has {present} user(s) here; {count} were asked for: ask for fewer or"
                " widen the area"
            )
        best = np.argsort(-self.counts, kind="stable")[:count]
        return self.take(np.isin(self.secret, best)).renumbered()

    def pooled(self, below: int) -> "Samples":
        """The users with fewer than `below` check-ins as one secret, "everybody else", the last;
        a note says how many they are.  To guess that secret right is to say that it was one of
        them, so that what is measured is at least what is told of the users themselves.

        >>> few = Samples([0, 0, 1, 2], [[0, 0], [9, 0], [50, 0], [99, 0]], ("ann", "bob", "cleo"))
        >>> few.pooled(2).secrets, few.pooled(2).counts.tolist()
        (('ann', 'everybody else'), [2, 2])
        """
        if not below >= 1:
            raise DataError(f"{arg('pool_below')} is at least 1 check-in; got {below}")
        rare = (self.counts > 0) & (self.counts < below)
        if rare.sum() < 2:
            return self
        if EVERYBODY_ELSE in self.secrets:
            raise DataError(
                f"{self.name} has a user of the name '{EVERYBODY_ELSE}', which is the name of the"
                " pooled ones; rename it"
            )
        if rare.all():
            raise DataError(
                f"{self.name}: no user has {below} check-ins, so that all would be pooled; set"
                f" {arg('pool_below')} to less"
            )
        kept = np.flatnonzero(~rare)
        number = np.full(len(self.secrets), len(kept))
        number[kept] = np.arange(len(kept))
        names = (*(self.secrets[row] for row in kept), EVERYBODY_ELSE)
        note = (
            f"{int(rare.sum()):,} users with fewer than {below} check-ins"
            f" ({int(self.counts[rare].sum()):,} of {len(self):,} check-ins) are pooled as"
            f" '{EVERYBODY_ELSE}'"
        )
        return replace(self, secret=number[self.secret], secrets=names, notes=(*self.notes, note))

    def some_of_each(self, each: int, random: np.random.Generator) -> np.ndarray:
        """Rows of `each` check-ins of every user, of all where there are fewer, in order."""
        rows = [
            random.permutation(np.flatnonzero(self.secret == user))[:each]
            for user in range(len(self.secrets))
        ]
        return np.sort(np.concatenate(rows))

    @guided(
        test_size="data.split(80, 20)",
        train_size="data.split(80, 20)",
        frac="data.split(80, 20)",
        train="data.split(80, 20)",
        random_state="seed",
    )
    def split(
        self, train: int, test: int = 0, *, seed: int = 0, overlap_weight: float = 1.0
    ) -> "Split":
        """Draw `train` + `test` check-ins of each secret without replacement.

        `overlap_weight` below 1 makes check-ins in cells where another secret is more at home rarer
        (see `overlap_weights`).
        """
        if not (train >= 1 and test >= 0):
            raise DataError(
                "expected numbers of check-ins per user, at least 1 for training, as split(80, 20);"
                f" got {train}+{test}"
            )
        weights = overlap_weights(self, overlap_weight)
        random = generator(seed)
        parts: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
        for secret, name in enumerate(self.secrets):
            rows = np.flatnonzero(self.secret == secret)
            usable = int((weights[rows] > 0).sum())
            if usable < train + test:
                enough = int((np.bincount(self.secret, weights > 0) >= train + test).sum())
                raise DataError(
                    f"user {name} has {usable} check-in{'s' * (usable != 1)} to draw from;"
                    f" {train}+{test} were asked for, and {enough:,} of {len(self.secrets):,} users"
                    f" ha{'s' if enough == 1 else 've'} {train + test:,}: ask for fewer, or keep"
                    f" only more frequent users with {arg('top_users')}"
                )
            chance = weights[rows] / weights[rows].sum()
            # A weighted draw takes heavy rows first; shuffled, both parts follow one law.
            drawn = random.permutation(
                random.choice(rows, size=train + test, replace=False, p=chance)
            )
            parts[0].append(drawn[:train])
            parts[1].append(drawn[train:])
        test_part = (
            self.take(np.concatenate(parts[1]), name=f"{self.name} (test)") if test else None
        )
        return Split(
            train=self.take(np.concatenate(parts[0]), name=f"{self.name} (train)"), test=test_part
        )

    def carve(self, share: float, *, seed: int) -> tuple["Samples", "Samples"]:
        """Training and validation parts of training data: a share of each secret's check-ins, by
        seed."""
        random = generator(seed)
        chosen = np.zeros(len(self), dtype=bool)
        for secret in range(len(self.secrets)):
            rows = np.flatnonzero(self.secret == secret)
            chosen[random.permutation(rows)[: round(share * len(rows))]] = True
        return self.take(~chosen), self.take(chosen, name=f"{self.name} (validation)")

    def renumbered(self) -> "Samples":
        """The same check-ins with the secrets that have none left out."""
        present = np.flatnonzero(self.counts)
        if not present.size:
            raise DataError(
                f"{self.name}: no check-ins left after the selection; widen the area or loosen the"
                " steps"
            )
        number = np.full(len(self.secrets), -1)
        number[present] = np.arange(len(present))
        return replace(
            self, secret=number[self.secret], secrets=tuple(self.secrets[row] for row in present)
        )


@dataclass(frozen=True, eq=False, repr=False)
class Split(Tabular, InNotebooks):
    """Training samples, and test samples that no solver ever sees.

    >>> from sfumato.data.synthetic import four_corners
    >>> four_corners(seed=0)
    <Split 'four-corners': 1,920 training, 480 test check-ins>
    """

    instead: ClassVar[dict[str, str]] = {
        "plot": "sf.compare(sf.mechanism.Identity(), data.train).html('map.html')"
    }

    train: Samples
    test: Samples | None = None

    def __iter__(self) -> Iterator[Samples | None]:
        """So that `train, test = data` works."""
        return iter((self.train, self.test))

    def columns(self) -> dict[str, Any]:
        """As those of `all`; with test data also a column `split`."""
        columns = self.all.columns()
        if self.test is not None:
            columns["split"] = np.repeat(["train", "test"], [len(self.train), len(self.test)])
        return columns

    def __repr__(self) -> str:
        test = "no" if self.test is None else f"{len(self.test):,}"
        return f"<Split {self.train.name!r}: {len(self.train):,} training, {test} test check-ins>"

    @property
    def all(self) -> Samples:
        """Training and test together, training first."""
        if self.test is None:
            return self.train
        return replace(
            self.train,
            secret=np.concatenate([self.train.secret, self.test.secret]),
            truth=np.concatenate([self.train.truth, self.test.truth]),
        )


def overlap_weights(samples: Samples, weight: float) -> np.ndarray:
    """Weights for a draw that thins the overlap between secrets: `weight` or 1 for each check-in.

    A check-in weighs less where another secret has a larger share of its own check-ins in the same
    cell (cells of 500 m, one of them centred on the plane's origin).  The paper filters its Gowalla
    data "to reduce the overlapping" and does not say how; this is our reading of it.
    """
    if not 0 <= weight <= 1:
        raise DataError(f"the overlap weight lies between 0 and 1; got {weight}")
    grid = Grid.over(Region(centre=(0.0, 0.0), side_m=_OVERLAP_CELL_M), cells=1)
    _, column = np.unique(grid.index(samples.truth), axis=0, return_inverse=True)
    column = column.ravel()
    cells = int(column.max()) + 1
    counts = np.bincount(samples.secret * cells + column, minlength=len(samples.secrets) * cells)
    share = counts.reshape(len(samples.secrets), cells) / np.maximum(samples.counts, 1)[:, None]
    own = share[samples.secret, column]
    return np.where(share.max(axis=0)[column] > own, weight, 1.0)

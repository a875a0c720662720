"""How data was got, so that a run can say it and read it again."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.data.categories import CategoricalData, read_categories
from sfumato.data.grid import Region
from sfumato.data.read import read_checkins
from sfumato.data.samples import MANY_USERS, POOL_BELOW, Samples, Split
from sfumato.data.synthetic import four_corners
from sfumato.errors import DataError, FileError, arg


@dataclass(frozen=True)
class Recipe:
    """A source and the selection steps on it, in the order in which they are applied.

    `square` and `region` are (latitude, longitude, side in metres); for data in plane metres
    `region` is (x, y, side).  `users` names the users to keep.  `per_user` is (training, test)
    check-ins of each user; without it everything is training data (four-corners alone brings its
    own split); `test` names a file of test data instead, of which the check-ins of training users
    count.  `pool_below` makes one secret of the users with fewer check-ins (`Samples.pooled`).
    `losses` is the second file of a table of words (`sfumato.data.categories`).  `wide` lets the
    data spread over a country, as an atlas does.
    """

    source: str
    secret: str | None = None
    lat: str | None = None
    lon: str | None = None
    square: tuple[float, float, float] | None = None
    top_users: int | None = None
    users: tuple[str, ...] | None = None
    per_user: tuple[int, int] | None = None
    overlap_weight: float | None = None
    data_seed: int = 0
    region: tuple[float, float, float] | None = None
    losses: str | None = None
    test: str | None = None
    pool_below: int | None = None
    wide: bool | None = None

    def prepared(self) -> "tuple[Recipe, Samples | CategoricalData, Samples | None]":
        """The recipe of a solve, with its training and test data: where there are more than 200
        users, those with fewer than four check-ins are pooled unless the recipe says otherwise or
        has test data of its own."""
        train, test = self.data()
        if self.pool_below is not None or self.per_user is not None or test is not None:
            return self, train, test
        if isinstance(train, CategoricalData) or len(train.secrets) <= MANY_USERS:
            return self, train, test
        if not (train.counts >= POOL_BELOW).any():
            return self, train, test
        return replace(self, pool_below=POOL_BELOW), train.pooled(POOL_BELOW), test

    def data(self) -> tuple[Samples | CategoricalData, Samples | None]:
        """Training and test data; a table of words where `losses` names its losses."""
        if self.losses is None:
            split = self.load()
            return split.train, split.test
        if self.as_dict().keys() - {"source", "losses", "data_seed", "wide"}:
            raise DataError(
                f"a table of categories takes no selection; {arg('losses')} goes with the table"
                " alone"
            )
        return read_categories(self.source, self.losses), None

    def load(self) -> Split:
        """Read and select."""
        if self.overlap_weight is not None and self.per_user is None:
            raise DataError(
                "an overlap weight is for drawing check-ins of each user",
                hint=f"add {arg('per_user')}",
            )
        if self.test is not None and self.per_user is not None and self.per_user[1]:
            raise DataError(
                f"test data come from {arg('test')} or from {arg('per_user')}, not from both; leave"
                " one out"
            )
        kept = {"source", "users", "overlap_weight", "data_seed", "region", "losses", "wide"}
        if self.source == "four-corners" and self.as_dict().keys() <= kept:
            split = four_corners(seed=self.data_seed)
            if self.users is not None and split.test is not None:
                split = Split(split.train.of_users(self.users), split.test.of_users(self.users))
        else:
            split = self._selected()
        if self.region is None:
            return split
        region = self._region(split.train)
        test = None if split.test is None else replace(split.test, region=region)
        return Split(train=replace(split.train, region=region), test=test)

    def _selected(self) -> Split:
        samples = self._read(self.source)
        if self.users is not None:
            samples = samples.of_users(self.users)
        if self.top_users is not None:
            samples = samples.top_users(self.top_users)
        if self.pool_below is not None:
            samples = samples.pooled(self.pool_below)
        split = Split(train=samples)
        if self.per_user is not None:
            weight = 1.0 if self.overlap_weight is None else self.overlap_weight
            split = samples.split(*self.per_user, seed=self.data_seed, overlap_weight=weight)
        if self.test is None:
            return split
        given = self._read(self.test).on_plane(split.train.plane)
        test = given.among(split.train.secrets)
        note = (
            f"{len(given) - len(test):,} of {len(given):,} test check-ins, of other users, left out"
        )
        notes = (*split.train.notes, *((note,) if len(test) < len(given) else ()))
        return Split(replace(split.train, notes=notes), test)

    def _read(self, source: str) -> Samples:
        return read_checkins(
            source,
            square=self.square,
            secret=self.secret,
            lat=self.lat,
            lon=self.lon,
            seed=self.data_seed,
            wide=bool(self.wide),
        )

    def _region(self, samples: Samples) -> Region:
        assert self.region is not None
        first, second, side_m = self.region
        if samples.plane is None:
            return Region(centre=(first, second), side_m=side_m)
        middle = np.array([first]), np.array([second])
        if not samples.plane.flattened(*middle)[1].all():
            raise DataError(
                f"the middle of the region, {first:g},{second:g}, lies more than"
                f" {samples.plane.reach_m / 1000:.0f} km from the data; write {arg('region')} as"
                " latitude,longitude,side in metres"
            )
        x, y = samples.plane.to_metres(*middle)[0]
        return Region(centre=(float(x), float(y)), side_m=side_m)

    def as_dict(self) -> dict[str, Any]:
        """For a run file: only what was set."""
        record = {name: value for name, value in asdict(self).items() if value is not None}
        if self.source != "four-corners":
            record["source"] = str(Path(self.source))
        if self.test is not None:
            record["test"] = str(Path(self.test))
        return record

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> "Recipe":
        """Read back what `as_dict` wrote."""
        try:
            settings: dict[str, Any] = {
                name: tuple(value) if isinstance(value, list) else value
                for name, value in record.items()
            }
            return cls(**settings)
        except TypeError:
            raise FileError(
                f"the run's record of its data is damaged; name the data with {arg('data')}"
            ) from None

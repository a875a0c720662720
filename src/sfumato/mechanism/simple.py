"""Mechanisms that are one line long, and the baseline that every other must beat."""

from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from sfumato.errors import MechanismError
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.law import ReportRows


@dataclass(frozen=True)
class Identity(Mechanism):
    """Reports the truth.

    >>> Identity().sample([30.0, 40.0]).tolist()
    [30.0, 40.0]
    """

    kind = "identity"
    lists_truths = False
    draws = 0

    def _report(self, truth: np.ndarray, chance: np.ndarray) -> np.ndarray:
        return truth.copy()

    def rows(self, truth: np.ndarray) -> ReportRows:
        return ReportRows(sparse.identity(len(truth), format="csr"), truth)

    def arrays(self) -> dict[str, np.ndarray]:
        return {}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "Identity":
        return cls()


@dataclass(frozen=True)
class Coin(Mechanism):
    """Reports the truth with chance `keep`, one fixed place otherwise.

    Trivial, gives the user away `keep` of the time, and hard to beat on average: what does not beat
    it is not worth shipping.

    >>> Coin(keep=1.0, place=(0.0, 0.0)).sample([30.0, 40.0]).tolist()
    [30.0, 40.0]
    """

    keep: float
    place: tuple[float, float] = field(repr=False)
    kind = "coin"
    lists_truths = False

    def __post_init__(self) -> None:
        if not 0 <= self.keep <= 1:
            raise MechanismError(
                f"the chance to keep the truth lies between 0 and 1; got {self.keep}"
            )
        if not np.all(np.isfinite(self.place)):
            raise MechanismError(
                f"the fixed place must be two finite numbers of metres; got {self.place}"
            )

    def _report(self, truth: np.ndarray, chance: np.ndarray) -> np.ndarray:
        return np.where(chance < self.keep, truth, np.array(self.place))

    def rows(self, truth: np.ndarray) -> ReportRows:
        kept = sparse.identity(len(truth), format="csr") * self.keep
        fixed = sparse.csr_matrix(np.full((len(truth), 1), 1 - self.keep))
        return ReportRows(
            sparse.hstack([kept, fixed], format="csr"), np.vstack([truth, self.place])
        )

    def arrays(self) -> dict[str, np.ndarray]:
        return {"keep": np.array(self.keep), "place": np.array(self.place, dtype=float)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray]) -> "Coin":
        x, y = arrays["place"]
        return cls(keep=float(arrays["keep"]), place=(float(x), float(y)))


def constant(place: tuple[float, float]) -> Coin:
    """Always the same place: a coin that never keeps the truth.

    >>> constant((0.0, 0.0)).sample([30.0, 40.0]).tolist()
    [0.0, 0.0]
    """
    return Coin(keep=0.0, place=(float(place[0]), float(place[1])))

"""One clock: a time limit becomes a deadline once, and the deadline is handed down."""

import math
import time
from dataclasses import dataclass

from sfumato.errors import ProblemError


class OutOfTime(Exception):
    """A computation that can only be whole was left at its deadline."""


@dataclass(frozen=True)
class Deadline:
    """A moment of `time.perf_counter`; infinite where there is no time limit."""

    moment: float = math.inf

    @classmethod
    def after(cls, seconds: float | None) -> "Deadline":
        """That many seconds from now; None is never."""
        if seconds is None:
            return cls()
        if not seconds > 0:
            raise ProblemError(f"the time limit must be above 0 seconds; got {seconds}")
        return cls(time.perf_counter() + seconds)

    @property
    def limited(self) -> bool:
        """Whether there is a time limit at all."""
        return math.isfinite(self.moment)

    @property
    def left(self) -> float:
        """Seconds left: infinite without a limit, negative when it is passed."""
        return self.moment - time.perf_counter()

    @property
    def passed(self) -> bool:
        """Whether no time is left."""
        return self.left <= 0

    def check(self) -> None:
        """Raise OutOfTime where no time is left."""
        if self.passed:
            raise OutOfTime

    def share(self, share: float) -> "Deadline":
        """The moment at which this share of the time left is used up."""
        return Deadline(self.moment - (1 - share) * self.left) if self.limited else self

    def no_sooner_than(self, seconds: float) -> "Deadline":
        """The same, or that many seconds from now where that is later."""
        return Deadline(max(self.moment, time.perf_counter() + seconds))


NEVER = Deadline()

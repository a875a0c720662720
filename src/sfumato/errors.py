"""What sfumato says when it cannot go on: one sentence, at most one hint, exit code 2."""


class SfumatoError(ValueError):
    """A mistake in what came in.  Says what came, what was expected and what to do.

    The command line prints the sentence (and the hint on a line of its own) and leaves with code 2.
    """

    def __init__(self, sentence: str, *, hint: str | None = None) -> None:
        super().__init__(sentence)
        self.hint = hint


class DataError(SfumatoError):
    """The data cannot be read or used as it is."""


class ProblemError(SfumatoError):
    """The problem makes no sense: an impossible budget, a missing secret."""


class MechanismError(SfumatoError):
    """A mechanism was built wrongly or asked for a point that it does not know."""


class FileError(SfumatoError):
    """A file of ours is missing, damaged or not ours."""

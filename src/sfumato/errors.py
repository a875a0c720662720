"""What sfumato says when it cannot go on: one sentence, at most one hint, exit code 2.

A sentence names an argument by `arg("max_loss")`.  In Python it reads max_loss; the command line
and the studio's page put their own words there, so no room but theirs knows an option by its flag.
"""

from collections.abc import Callable
from importlib.util import find_spec

_OPEN, _CLOSE = "\ue000", "\ue001"  # private-use letters: no data of a user holds them


def arg(name: str) -> str:
    """The name of an argument, marked within a sentence so that a skin can say it in its own
    words."""
    return f"{_OPEN}{name}{_CLOSE}"


class SfumatoError(ValueError):
    """A mistake in what came in.  Says what came, what was expected and what to do.

    The command line prints the sentence (and the hint on a line of its own) and leaves with code 2.

    >>> error = SfumatoError(f"{arg('max_loss')} must be above 0; got -5")
    >>> str(error), error.field
    ('max_loss must be above 0; got -5', 'max_loss')
    >>> error.sentence(lambda name: "--" + name.replace("_", "-"))
    '--max-loss must be above 0; got -5'
    """

    def __init__(self, sentence: str, *, hint: str | None = None) -> None:
        self._marked, self._marked_hint = sentence, hint
        super().__init__(_worded(sentence, str))

    @property
    def field(self) -> str | None:
        """The first argument that the sentence names."""
        _, opened, rest = self._marked.partition(_OPEN)
        return rest.partition(_CLOSE)[0] if opened else None

    def sentence(self, word_for: Callable[[str], str]) -> str:
        """The sentence with each argument named by `word_for`."""
        return _worded(self._marked, word_for)

    @property
    def hint(self) -> str | None:
        """What to do, with arguments named as in Python."""
        return self.hint_in(str)

    def hint_in(self, word_for: Callable[[str], str]) -> str | None:
        """The hint with each argument named by `word_for`."""
        return None if self._marked_hint is None else _worded(self._marked_hint, word_for)


def raise_all(*checks: Callable[[], object]) -> None:
    """Make all checks, and refuse in one sentence what any of them refuses.

    >>> def odd(number):
    ...     if number % 2:
    ...         raise SfumatoError(f"{number} is odd")
    >>> raise_all(lambda: odd(1), lambda: odd(2), lambda: odd(3))
    Traceback (most recent call last):
    sfumato.errors.SfumatoError: 1 is odd; and 3 is odd
    """
    refused = []
    for check in checks:
        try:
            check()
        except SfumatoError as error:
            refused.append(error)
    if refused:
        first = refused[0]
        hints = [error._marked_hint for error in refused if error._marked_hint is not None]
        sentence = "; and ".join(error._marked for error in refused)
        raise type(first)(sentence, hint=next(iter(hints), None)) from None


def _worded(marked: str, word_for: Callable[[str], str]) -> str:
    first, *rest = marked.split(_OPEN)
    return first + "".join(
        word_for(name) + after for name, _, after in (part.partition(_CLOSE) for part in rest)
    )


class DataError(SfumatoError):
    """The data cannot be read or used as it is."""


class ProblemError(SfumatoError):
    """The problem makes no sense: an impossible budget, a missing secret."""


class MechanismError(SfumatoError):
    """A mechanism was built wrongly or asked for a point that it does not know."""


class FileError(SfumatoError):
    """A file of ours is missing, damaged or not ours."""


# What the plain install leaves out, by the extra of pyproject.toml that brings it.
EXTRAS = {
    "learn": ("jax", "optax", "equinox"),
    "report": ("matplotlib", "jinja2", "markupsafe"),
    "serve": ("starlette", "uvicorn", "h11"),
    "cluster": ("distributed",),
    "pandas": ("pandas",),
    "geopandas": ("geopandas",),
    "polars": ("polars",),
    "duckdb": ("duckdb",),
    "spark": ("pyspark",),
}


class MissingExtra(SfumatoError):
    """Something that the plain install leaves out is needed.

    >>> print(MissingExtra("jax", "learn"))
    this needs jax, which the plain install leaves out; run: pip install 'sfumato[learn]'
    """

    def __init__(self, module: str, extra: str) -> None:
        super().__init__(
            f"this needs {module}, which the plain install leaves out; run:"
            f" pip install 'sfumato[{extra}]'"
        )


def missing_extra(error: ImportError) -> MissingExtra | None:
    """The sentence for a module that could not be found, if an extra brings it."""
    name = (error.name or "").partition(".")[0]
    for extra, modules in EXTRAS.items():
        if name in modules:
            return MissingExtra(name, extra)
    return None


def require(*extras: str, bring: str) -> None:
    """Refuse at once where a module of some extras is missing; `bring` is the extra to name."""
    for module in (module for extra in extras for module in EXTRAS[extra]):
        try:
            present = find_spec(module) is not None
        except ImportError:
            present = False
        if not present:
            raise MissingExtra(module, bring)

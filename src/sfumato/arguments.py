"""An argument that a function does not have or lacks: the sentence says what to type."""

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from typing import ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


def guided(**instead: str) -> Callable[[Callable[_Given, _Made]], Callable[_Given, _Made]]:
    """Answer a name that `function` does not take with the one to type; `instead` holds those
    that are often tried, and those that are often left out.

    >>> @guided(budget="max_loss")
    ... def solve(problem, *, max_loss=None):
    ...     return max_loss
    >>> solve(1, max_loss=2)
    2
    >>> solve(1, budget=2)
    Traceback (most recent call last):
    TypeError: solve has no argument 'budget'; type max_loss
    >>> solve(1, x=2)
    Traceback (most recent call last):
    TypeError: solve has no argument 'x'; it takes problem, max_loss
    >>> solve(1, 2)
    Traceback (most recent call last):
    TypeError: solve: too many positional arguments; it takes problem, max_loss=
    """

    def wrap(function: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
        called = function.__qualname__.removesuffix(".__init__")
        signature = inspect.signature(function)
        taken = [name for name in signature.parameters if name != "self"]
        by_name = {
            name for name, one in signature.parameters.items() if one.kind is one.KEYWORD_ONLY
        }
        listed = ", ".join(f"{name}=" if name in by_name else name for name in taken) or "none"

        @wraps(function)
        def call(*args: _Given.args, **given: _Given.kwargs) -> _Made:
            for name in given:
                if name not in taken:
                    near = get_close_matches(name, taken, n=1, cutoff=0.62)
                    said = f"it takes {', '.join(taken) or 'none'}"
                    if name in instead:
                        said = f"type {instead[name]}"
                    elif near:
                        said = f"did you mean {near[0]}?"
                    raise TypeError(f"{called} has no argument '{name}'; {said}")
            try:
                signature.bind(*args, **given)
            except TypeError as error:
                left_out = next((name for name in instead if f"'{name}'" in str(error)), None)
                said = f"it takes {listed}" if left_out is None else f"type {instead[left_out]}"
                raise TypeError(f"{called}: {error}; {said}") from None
            return function(*args, **given)

        return call

    return wrap


def guided_class(**instead: str) -> Callable[[type[_Made]], type[_Made]]:
    """The same for what makes a value of a class."""

    def wrap(kind: type[_Made]) -> type[_Made]:
        kind.__init__ = guided(**instead)(kind.__init__)  # type: ignore[misc, method-assign]
        return kind

    return wrap

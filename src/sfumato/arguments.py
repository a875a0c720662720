"""An argument that a function does not have: the sentence says which one to type."""

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from functools import wraps
from typing import ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


def guided(**instead: str) -> Callable[[Callable[_Given, _Made]], Callable[_Given, _Made]]:
    """Answer a name that `function` does not take with the one to type; `instead` holds those
    that are often tried.

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
    """

    def wrap(function: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
        called = function.__qualname__.removesuffix(".__init__")
        taken = [name for name in inspect.signature(function).parameters if name != "self"]

        @wraps(function)
        def call(*args: _Given.args, **given: _Given.kwargs) -> _Made:
            for name in given:
                if name not in taken:
                    near = get_close_matches(name, taken, n=1, cutoff=0.62)
                    said = f"it takes {', '.join(taken)}"
                    if name in instead:
                        said = f"type {instead[name]}"
                    elif near:
                        said = f"did you mean {near[0]}?"
                    raise TypeError(f"{called} has no argument '{name}'; {said}")
            return function(*args, **given)

        return call

    return wrap


def guided_class(**instead: str) -> Callable[[type[_Made]], type[_Made]]:
    """The same for what makes a value of a class."""

    def wrap(kind: type[_Made]) -> type[_Made]:
        kind.__init__ = guided(**instead)(kind.__init__)  # type: ignore[misc, method-assign]
        return kind

    return wrap

"""Shapes in annotations are checked at every call while tests run.

The package writes a shape as `Annotated[np.ndarray, "truths reports"]`, which costs it nothing and
needs no library.  Here such annotations become jaxtyping's, and beartype checks them: an axis of
one name has one length within a call.  All other annotations are left to mypy.
"""

from collections.abc import Callable
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import jaxtyping
from beartype import beartype
from jaxtyping import Shaped, install_import_hook

MODULES = (
    "sfumato.nets",
    "sfumato.mechanism.layers",
    "sfumato.solver.exact",
    "sfumato.solver.game",
    "sfumato.solver.codebook.learn",
)


def switch_on() -> None:
    """Check the shapes of all functions and dataclasses of the modules, which must not have been
    imported yet.  What has no shape is left as it is: a wrapper about each function, made again at
    every call for those within others, took a quarter of the exact solver's time."""
    jaxtyping.jaxtyped = _where_there_are_shapes(jaxtyping.jaxtyped)
    install_import_hook(MODULES, "tests.shapes.checked")


def _where_there_are_shapes(jaxtyped: Any) -> Any:
    """What the hook writes above every function and class."""

    def decorator(**options: Any) -> Callable:
        def decorate(thing: Any) -> Any:
            hints = () if isinstance(thing, type) else thing.__annotations__.values()
            if not isinstance(thing, type) and all(shape_in(hint) is Any for hint in hints):
                return thing
            return jaxtyped(thing, **options)

        return decorate

    return decorator


def checked(function: Callable) -> Callable:
    """The function with its shapes checked: what jaxtyping's hook puts around each."""
    hints = {name: shape_in(hint) for name, hint in function.__annotations__.items()}
    function.__annotations__ = {name: hint for name, hint in hints.items() if hint is not Any}
    return beartype(function) if function.__annotations__ else function


def shape_in(hint: Any) -> Any:
    """An annotation of which only shapes are left, as jaxtyping writes them."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return Shaped[Any, parts[1]]
    if origin in (Union, UnionType):
        shapes = [part if part is type(None) else shape_in(part) for part in parts]
        return Any if Any in shapes else Union[tuple(shapes)]  # noqa: UP007
    if origin is tuple and Ellipsis not in parts:
        shapes = [shape_in(part) for part in parts]
        return Any if set(map(id, shapes)) == {id(Any)} else tuple[tuple(shapes)]
    return Any

"""Settings of solvers as options: made from the fields of their dataclasses, where each is
documented."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import Field, fields, is_dataclass
from functools import partial
from types import NoneType
from typing import Any, Literal, get_args, get_origin

import click

from sfumato.cli.options import COUNT, NUMBER, Written
from sfumato.errors import require
from sfumato.solver import SOLVERS


def _numbers(text: str, *, kind: type[int] | type[float]) -> tuple[float, ...]:
    try:
        return tuple(kind(part) for part in text.split(","))
    except ValueError:
        kinds = "whole numbers" if kind is int else "numbers"
        raise ValueError(f"'{text}' is not {kinds} with commas, as 60,100") from None


def _settings(settings: Any) -> Iterator[tuple[str, Field[Any]]]:
    """The settings that are options, by name; those of a part carry its name in front."""
    for field in fields(settings):
        if field.metadata.get("option"):
            yield field.name, field
        if is_dataclass(field.default):
            for name, inner in _settings(field.default):
                yield f"{field.name}_{name}", inner


def _offered(solvers: Collection[str]) -> dict[str, dict[str, Field[Any]]]:
    """The settings that are options, by name and by solver."""
    options: dict[str, dict[str, Field[Any]]] = {}
    for solver, settings in SOLVERS.items():
        for name, field in _settings(settings) if solver in solvers else ():
            options.setdefault(name, {})[solver] = field
    return options


def own_flags() -> dict[str, str]:
    """The flags of settings that are not named after the setting."""
    offered = _offered(SOLVERS).items()
    flags = {name: next(iter(by.values())).metadata["flag"] for name, by in offered}
    return {name: flag for name, flag in flags.items() if flag is not None}


def _flag(name: str, field: Field[Any]) -> str:
    """A setting that is on unless set is switched off by its option."""
    named: str | None = field.metadata["flag"]
    return named or f"--{'no-' if field.default is True else ''}{name.replace('_', '-')}"


def _parameter(name: str, field: Field[Any]) -> str:
    """The option's name in a command: that of its flag, where it has one of its own."""
    named: str | None = field.metadata["flag"]
    return name if named is None else named.lstrip("-").replace("-", "_")


def _type(kind: Any) -> Any:
    """What click reads a setting of this type as."""
    if get_origin(kind) is Literal:
        return click.Choice(get_args(kind))
    if get_origin(kind) is tuple:
        return Written("N,N,...", partial(_numbers, kind=get_args(kind)[0]))
    kind = next(member for member in get_args(kind) or (kind,) if member is not NoneType)
    return {int: COUNT, float: NUMBER}.get(kind, kind)


def _shown(default: Any) -> str:
    if isinstance(default, tuple):
        return ",".join(f"{number:g}" for number in default)
    return default if isinstance(default, str) else f"{default:g}"


def _option(name: str, solvers: dict[str, Field[Any]]) -> Any:
    field = next(iter(solvers.values()))
    text = f"{field.metadata['help']} ({', '.join(solvers)})"
    if isinstance(field.default, bool):
        off = f"Do not {text[0].lower()}{text[1:]}" if field.default else text
        return click.option(
            _flag(name, field),
            _parameter(name, field),
            flag_value=not field.default,
            default=None,
            help=off,
        )
    kind = _type(field.type)
    return click.option(
        _flag(name, field),
        _parameter(name, field),
        type=kind,
        metavar=None if isinstance(kind, click.Choice) else field.metadata["option"],
        help=text if field.default is None else f"{text} [default: {_shown(field.default)}]",
    )


def solver_options(
    command: Callable[..., Any], *, of: Collection[str] = tuple(SOLVERS)
) -> Callable[..., Any]:
    """Add every setting that a solver offers."""
    for name, solvers in reversed(_offered(of).items()):
        command = _option(name, solvers)(command)
    return command


def solver_from(options: dict[str, Any], solver: str) -> Any:
    """Take the settings out of the options and make the solver; refuse those of another one, and a
    solver that is not installed."""
    given: dict[str, Any] = {}
    of_parts: dict[str, Any] = {}
    for name, solvers in _offered(SOLVERS).items():
        value = options.pop(_parameter(name, next(iter(solvers.values()))), None)
        if value is None:
            continue
        if solver not in solvers:
            _refuse(_flag(name, next(iter(solvers.values()))), " or ".join(solvers), solver)
        (given if name == solvers[solver].name else of_parts)[name] = value
    if SOLVERS[solver].resumable:  # it learns
        require("learn", bring="learn")
    made = SOLVERS[solver](**given)
    return made.changed(**of_parts) if of_parts else made


def _refuse(flag: str, owner: str, solver: str) -> None:
    raise click.UsageError(f"{flag} is an option of --solver {owner}; got --solver {solver}")

"""Settings of solvers as options: made from the fields of their dataclasses, where each is
documented."""

from collections.abc import Callable
from dataclasses import Field, fields
from types import NoneType
from typing import Any, get_args

import click

from sfumato.solver import SOLVERS


def _offered() -> dict[str, dict[str, Field[Any]]]:
    """The settings that are options, by name and by solver."""
    found: dict[str, dict[str, Field[Any]]] = {}
    for solver, settings in SOLVERS.items():
        for field in fields(settings):
            if field.metadata.get("option"):
                found.setdefault(field.name, {})[solver] = field
    return found


def _flag(field: Field[Any]) -> str:
    """A setting that is on unless set is switched off by its option."""
    return f"--{'no-' if field.default is True else ''}{field.name.replace('_', '-')}"


def _option(solvers: dict[str, Field[Any]]) -> Any:
    field = next(iter(solvers.values()))
    text = f"{field.metadata['help']} ({', '.join(solvers)})"
    if isinstance(field.default, bool):
        off = f"Do not {text[0].lower()}{text[1:]}" if field.default else text
        return click.option(
            _flag(field), field.name, flag_value=not field.default, default=None, help=off
        )
    kind = next(kind for kind in get_args(field.type) or (field.type,) if kind is not NoneType)
    return click.option(
        _flag(field),
        type=click.IntRange(min=1) if kind is int else kind,
        metavar=field.metadata["option"],
        help=text if field.default is None else f"{text} [default: {field.default:g}]",
    )


def solver_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add every setting that a solver offers, and the codebook's `--closest`."""
    command = click.option(
        "--closest",
        is_flag=True,
        help="Come close to the bound on DATA; hides new check-ins less. (codebook)",
    )(command)
    for solvers in reversed(_offered().values()):
        command = _option(solvers)(command)
    return command


def solver_from(options: dict[str, Any], solver: str) -> Any:
    """Take the settings out of the options and make the solver; refuse those of another one."""
    closest, given = options.pop("closest"), {}
    for name, solvers in _offered().items():
        value = options.pop(name)
        if value is None:
            continue
        if solver not in solvers:
            _refuse(_flag(next(iter(solvers.values()))), " or ".join(solvers), solver)
        given[name] = value
    if not closest:
        return SOLVERS[solver](**given)
    if solver != "codebook":
        _refuse("--closest", "codebook", solver)
    return SOLVERS[solver].closest(**given)


def _refuse(flag: str, owner: str, solver: str) -> None:
    raise click.UsageError(f"{flag} is an option of --solver {owner}; got --solver {solver}")

"""Options of the codebook solver on the command line."""

from collections.abc import Callable
from typing import Any

import click

_OPTIONS = {
    "blend": ("SHARE", "Share of mutual information in what is lowered besides the objective."),
    "resampled_share": (
        "SHARE",
        "Weight of resampled and moved check-ins: 0 fits the training data, 1 distrusts it.",
    ),
    "max_posterior": (
        "P",
        "No single report may give any user more than this posterior, on the training data.",
    ),
    "max_exposed": (
        "SHARE",
        "At most this share of reports may leave one user above 90 % posterior.",
    ),
    "geo_epsilon": ("E", "Geo-indistinguishability per metre, at most, at the data's points."),
}


def codebook_options(command: Callable) -> Callable:
    """Add the options that only the codebook knows."""
    flag = click.option(
        "--closest",
        is_flag=True,
        help="Come close to the bound on DATA; hides new check-ins less. (codebook)",
    )
    command = flag(command)
    for name, (metavar, text) in reversed(_OPTIONS.items()):
        command = click.option(
            f"--{name.replace('_', '-')}", type=float, metavar=metavar, help=f"{text} (codebook)"
        )(command)
    return command


def codebook_settings(options: dict[str, Any], solver: str) -> dict[str, Any]:
    """Take them out of the options again; refuse them for another solver."""
    closest = options.pop("closest")
    given = {name: value for name in _OPTIONS if (value := options.pop(name)) is not None}
    if (given or closest) and solver != "codebook":
        first = next(iter(given), "closest").replace("_", "-")
        raise click.UsageError(f"--{first} is an option of the codebook; got --solver {solver}")
    if not closest:
        return given
    from sfumato.solver.codebook.settings import CLOSEST

    return {**CLOSEST, **given}

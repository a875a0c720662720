"""The command line: parse, call, print.  Nothing heavy is imported before a command runs."""

import difflib
import io
import os
import sys
from importlib import import_module
from typing import Any

import click

from sfumato.cli import machine, stopping
from sfumato.errors import SfumatoError, missing_extra
from sfumato.render.names import printable
from sfumato.version import __version__

_COMMANDS = {
    "demo": "Hide four synthetic users, compare the mechanisms and write a report.",
    "data": "Select check-ins from a file and write them to another.",
    "solve": "Find a mechanism for data and a loss budget; write a run folder.",
    "atlas": "Cover a country: a mechanism for each tile of a map, in one run folder.",
    "measure": "Measure a run, or any reports in a CSV file.",
    "compare": "Put runs side by side on the same data; write a report.",
    "certify": "Prove how far a run is from the best mechanism that can exist.",
    "assess": "Write a two-page risk assessment that shows no location.",
    "frontier": "Prove the best possible trade-off between loss and leakage.",
    "policy": "Choose how long reports are kept, by how often whole traces reveal their user.",
    "sanitize": "Replace the places in a table by reports of a run's mechanism.",
    "export": "Write a bundle for devices: the mechanism as ONNX, a manifest, test vectors.",
    "serve": "Answer geolocation requests on this machine with reports of a run's mechanism.",
    "studio": "Open a local page: bring data, set a budget, watch, compare, attack, take away.",
}
_SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class _Commands(click.Group):
    """Imports a command's module when it is asked for, and suggests the nearest word for a misspelt
    one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = import_module(f"sfumato.cli.{cmd_name}").command
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and args[0] not in _COMMANDS and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], _COMMANDS, n=1)
            ctx.fail(
                f"there is no command '{args[0]}'."
                + (f" Did you mean '{near[0]}'?" if near else f" Commands: {', '.join(_COMMANDS)}.")
            )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_Commands, context_settings=_SETTINGS, epilog="Example: sfumato demo --out demo")
@click.version_option(__version__, prog_name="sfumato", message="%(prog)s %(version)s")
def cli() -> None:
    """Change locations within a budget of metres, so that they hide who sent them."""


def main() -> None:
    """Run a command; a mistake in what came in is one sentence and exit code 2."""
    machine.one_thread()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # an arrow that a terminal cannot show is no reason to stop
            stream.reconfigure(errors="replace")
    stopping.watch()
    try:
        code = cli.main(standalone_mode=False)
        stopping.end()
    except (click.exceptions.Abort, KeyboardInterrupt) as error:
        hint = stopping.RESUMABLE if isinstance(error.__cause__, stopping.Resumable) else None
        text = "stopped; what was not finished was not written"
        _stop(text, hint=hint, code=stopping.exit_code())
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        sys.exit(0)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        hint = None if context is None else f"{context.command_path} -h lists what it takes"
        _stop(error.format_message(), hint=hint)
    except SfumatoError as error:
        _stop(printable(error.sentence(_option)), hint=error.hint_in(_option))
    except ImportError as error:
        missing = missing_extra(error)
        if missing is None:
            raise
        _stop(str(missing))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except MemoryError:
        _stop("out of memory; use a larger cell or less data")
    except OSError as error:
        name = printable(str(error.filename or "a file"))
        _stop(f"{name} cannot be used: {error.strerror or error}")
    else:
        sys.exit(code if isinstance(code, int) else 0)


def _option(name: str) -> str:
    """An argument of Python as the command's own option: --max-loss, not max_loss."""
    named = next((word for word in sys.argv[1:] if word in _COMMANDS), None)
    command = None if named is None else cli.get_command(click.Context(cli), named)
    if command is None:
        return name
    from sfumato.cli.settings import own_flags

    for flag in (f"--{name.replace('_', '-')}", own_flags().get(name)):
        for param in command.params:
            if name == param.name or flag in param.opts:
                return max(param.opts, key=len)
    return name


def _stop(sentence: str, *, hint: str | None = None, code: int = 2) -> None:
    stopping.end()
    click.echo(f"error: {sentence}", err=True)
    if hint:
        click.echo(f"hint: {hint}", err=True)
    # its threads may be compiling, and do not survive an orderly end
    if code == stopping.exit_code() and "jax" in sys.modules:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)
    sys.exit(code)

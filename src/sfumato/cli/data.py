"""sfumato data"""

from pathlib import Path
from typing import Any

import click

from sfumato.cli.options import as_json, option, print_json, recipe_of, say_notes, selection
from sfumato.errors import FileError

_EXAMPLE = "\b\nExample: sfumato data four-corners --out four-corners.csv"


@click.command("data", epilog=_EXAMPLE)
@click.argument("source", metavar="DATA")
@selection
@option("--out FILE", "A .csv, .csv.gz or .parquet file.", required=True)
@as_json
def command(source: str, out: Path, as_json: bool, **options: Any) -> None:
    """Select check-ins from a file and write them to another.

    DATA is four-corners or a file: SNAP check-ins, CSV (also .gz) or Parquet.  With --per-user the
    file has a column `split` with the words train and test.
    """
    from sfumato.data.read import write_split
    from sfumato.render.commands import selected_text

    if out.exists() and Path(source).exists() and out.samefile(source):
        raise FileError(
            f"{out} is the file that is read; expected another one to write: name it with --out"
        )
    recipe = recipe_of(source, options)
    split = recipe.load()
    say_notes(split.train.notes)
    write_split(split, out)
    test = 0 if split.test is None else len(split.test)
    users = {
        name: int(count) for name, count in zip(split.train.secrets, split.all.counts, strict=True)
    }
    held_out = dict(
        zip(users, [0] * len(users) if split.test is None else split.test.counts, strict=True)
    )
    if as_json:
        print_json(
            {
                "file": str(out),
                "train": len(split.train),
                "test": test,
                "users": users,
                "hash": split.train.hash,
            }
        )
    else:
        click.echo(
            f"{out}: {len(split.train)} training and {test} test check-ins of {len(users)} users"
        )
        for name, count in users.items():
            click.echo(
                f"  {name}: {count - held_out[name]}" + (f" + {held_out[name]}" if test else "")
            )
        click.echo(selected_text(out, recipe))

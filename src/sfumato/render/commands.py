"""The command to type next, once a step is done."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from sfumato.data.read import user_column
from sfumato.data.recipe import Recipe
from sfumato.render.names import listed, printable, shell_word


def next_text(
    run: Path,
    recipe: Recipe,
    *,
    drop: Sequence[str] = (),
    tile: int | None = None,
    lists_truths: bool = False,
) -> str:
    """What to do with a run folder that was just written: sanitize the table that it is of, without
    the columns to `drop`, for some of its users alone after they are selected.  Of an atlas that is
    too wide for a device, a tile to export.  A mechanism whose file lists true places is not
    exported; one of categories is neither: a table of places has none."""
    figures = f"sfumato measure {shell_word(str(run))} --details"
    if recipe.losses is not None or (lists_truths and not Path(recipe.source).is_file()):
        return f"Next: {figures}"
    return f"Next: {_use(run, recipe, drop, tile)}; all figures: {figures}"


def sanitizes_itself(recipe: Recipe) -> bool:
    """Whether the table of a recipe is sanitized as it is: no user is left out."""
    return recipe.users is None and recipe.top_users is None and Path(recipe.source).is_file()


def _use(run: Path, recipe: Recipe, drop: Sequence[str], tile: int | None) -> str:
    source = Path(recipe.source)
    if not source.is_file():
        export = f"sfumato export {shell_word(str(run))} dist --page"
        return export if tile is None else f"{export} --tile {tile}"
    ending = "".join(source.suffixes[-2:]) if source.suffix == ".gz" else source.suffix
    if sanitizes_itself(recipe):
        words = ["sfumato", "sanitize", str(run), str(source), f"reports{ending}"]
        words += _column_words(recipe)
        words += ["--drop", listed(drop or [recipe.secret or user_column(source)])]
        words += [] if recipe.square is None else ["--outside", "drop"]
        return _joined(words)
    every_row = replace(recipe, per_user=None, overlap_weight=None, data_seed=0, pool_below=None)
    chosen = _joined(selection_words(every_row))
    return (
        f"sfumato data {shell_word(str(source))} {chosen} --out selected.csv && sfumato"
        f" sanitize {shell_word(str(run))} selected.csv reports.csv --drop user"
    )


def selected_text(out: Path, recipe: Recipe) -> str:
    """What to do with a selection that was just written.  A file with held-out rows is not solved
    itself: they would be training rows."""
    words, source, why = "", shell_word(str(out)), ""
    held_out = 0 if recipe.per_user is None else recipe.per_user[1]
    if held_out or (recipe.per_user is None and recipe.source == "four-corners"):
        words = " ".join(["", *map(shell_word, selection_words(recipe))])
        source = shell_word(recipe.source)
        why = f" (not {printable(str(out))}, whose held-out rows would be training rows)"
    return f"Next: sfumato solve {source}{words} --max-loss 200 --out runs/mine{why}"


def selection_words(recipe: Recipe) -> list[str]:
    """The options that select so.

    >>> selection_words(Recipe("log.csv", users=("ann", "bob"), per_user=(8, 2)))
    ['--users', 'ann,bob', '--per-user', '8+2']
    """
    words = _column_words(recipe)
    if recipe.square is not None:
        numbers = (repr(float(value)).removesuffix(".0") for value in recipe.square)
        words += ["--square", ",".join(numbers)]
    if recipe.users is not None:
        words += ["--users", listed(recipe.users)]
    if recipe.top_users is not None:
        words += ["--top-users", str(recipe.top_users)]
    if recipe.pool_below is not None:
        words += ["--pool-below", str(recipe.pool_below)]
    if recipe.per_user is not None:
        words += ["--per-user", "{}+{}".format(*recipe.per_user)]
    if recipe.overlap_weight is not None:
        words += ["--overlap-weight", f"{recipe.overlap_weight:.12g}"]
    if recipe.data_seed:
        words += ["--data-seed", str(recipe.data_seed)]
    return words


def _column_words(recipe: Recipe) -> list[str]:
    """The options that name columns."""
    given = ((name, getattr(recipe, name)) for name in ("secret", "lat", "lon"))
    return [word for name, value in given if value is not None for word in (f"--{name}", value)]


def _joined(words: Sequence[str]) -> str:
    return " ".join(map(shell_word, words))

"""What is taken away: the run folder as an archive, and the command line that repeats it."""

import io
import shlex
import shutil
import zipfile
from pathlib import Path
from typing import Any

from sfumato.data.recipe import Recipe
from sfumato.errors import SfumatoError
from sfumato.render.commands import selection_words


def zipped(folder: Path) -> bytes:
    """A folder's files in an archive, under the folder's name."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, f"{folder.name}/{path.relative_to(folder)}")
    return stream.getvalue()


def bundle_of(run: Path, target: Path) -> str | None:
    """Write the device bundle of a run, with the page that uses it; None, or the sentence that says
    why there is none."""
    from sfumato.deploy.bundle import export

    shutil.rmtree(target, ignore_errors=True)
    try:
        export(run, target, page=True)
    except SfumatoError as error:
        return str(error).replace(str(run), "this run")
    return None


def command_line(task: dict[str, Any], recipe: Recipe, *, out: str) -> str:
    """The command that does the same.

    >>> task = {"solver": "coin", "max_loss": 173.0, "objective": "bayes", "cell_m": None}
    >>> task |= {"seed": 1, "time_limit": None, "reports": 1}
    >>> command_line(task, Recipe("four-corners", users=("red",)), out="runs/coin")
    'sfumato solve four-corners --users red --max-loss 173 --solver coin --seed 1 --out runs/coin'
    """
    parts = ["sfumato", "solve", recipe.source]
    parts += selection_words(recipe)
    parts += ["--max-loss", f"{task['max_loss']:.12g}", "--solver", task["solver"]]
    parts += [] if task["objective"] == "bayes" else ["--objective", task["objective"]]
    parts += [] if task["reports"] == 1 else ["--reports", str(task["reports"])]
    for name, option in (("cell_m", "--cell-m"), ("time_limit", "--time-limit")):
        parts += [] if task[name] is None else [option, f"{task[name]:g}"]
    return shlex.join([*parts, "--seed", str(task["seed"]), "--out", out])

"""A run folder that is opened again: its data, its figures, and its table of reports."""

import shutil
from pathlib import Path

from sfumato.data.samples import Samples
from sfumato.errors import ProblemError
from sfumato.render.text import outlook_note
from sfumato.studio.dataset import Loaded, load
from sfumato.studio.preview import save_table
from sfumato.studio.session import PageRun
from sfumato.study.folder import load_run
from sfumato.study.measure import data_of
from sfumato.study.question import problem_of


def reopened(path: Path, folder: Path) -> tuple[Loaded, PageRun]:
    """The data of a run and the run as one that was kept, copied into `folder`."""
    run = load_run(path)
    record, train = run.record, data_of(run, source=None)[0]
    if not isinstance(train, Samples) or run.recipe is None or record.max_loss is None:
        raise ProblemError(
            f"{path} has categories or no average budget; the studio opens runs on places with one"
        )
    loaded = load(run.recipe, run.recipe.source)
    problem = problem_of(run, loaded.split.train)
    judged = problem.judge(run.mechanism)
    name = f"{record.solver}-{record.max_loss:g}m-{path.resolve().name}"
    kept = folder / "runs" / name
    kept.parent.mkdir(exist_ok=True)
    shutil.copytree(path, kept, dirs_exist_ok=True)
    save_table(kept, judged.joint)
    asked = {
        **{"solver": record.solver, "max_loss": record.max_loss, "objective": record.objective},
        "seed": record.seed,
    }
    task = {
        **asked,
        **{"kind": "solve", "reports": record.reports, "cell_m": problem.grid.cell_m},
        **{"time_limit": None, "resumable": False, "opened": str(path)},
    }
    figures = {
        **asked,
        **record.train,
        "leakage": problem.objective.leakage(judged.joint),
        "to_come": None if record.to_come is None else record.to_come.as_dict(),
        "test": record.test,
        **{"status": record.status, "ended": record.ended, "proof": record.proof},
        **{"seconds": record.seconds, "warnings": record.warnings},
        "to_come_note": outlook_note(record.to_come, record.max_loss),
    }
    page_run = PageRun(name, kept, task, True, "done", figures, record.status, problem.grid.cell_m)
    return loaded, page_run

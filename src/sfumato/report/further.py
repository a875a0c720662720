"""What `sfumato measure` adds to the figures of a run: other users, repeated reports, what the file
tells."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.data.categories import CategoricalData
from sfumato.data.grid import STICKY_CELL_M, Grid
from sfumato.data.samples import Samples
from sfumato.errors import ProblemError
from sfumato.measure.judge import Judgement
from sfumato.measure.membership import certificate_membership, membership_test
from sfumato.measure.prior import under_priors
from sfumato.measure.repeated import repeated_reports
from sfumato.mechanism.law import Loss
from sfumato.report.others import left_out_text, membership_text, priors_text, repeated_text
from sfumato.study.folder import Run
from sfumato.study.leave_one_out import leave_one_out
from sfumato.study.question import problem_of, seed_of, solver_of


@dataclass(frozen=True)
class Asked:
    """What else to measure.  `reports` are the numbers of reports that an adversary sees; empty for
    none."""

    reports: tuple[int, ...] = ()
    sticky_cell_m: float | None = None
    leave_one_out: bool = False
    keep: Path | None = None
    progress: Callable[[str], None] | None = None

    def __post_init__(self) -> None:
        if self.sticky_cell_m is not None and not self.reports:
            raise ProblemError(
                "--sticky-cell-m says what a place is for repeated reports; it goes with"
                " --reports-per-user"
            )
        if self.sticky_cell_m is not None and not 0 < self.sticky_cell_m < float("inf"):
            raise ProblemError(
                "the cell within which a report is kept must be above 0 metres; got"
                f" {self.sticky_cell_m}"
            )
        if self.keep is not None and not self.leave_one_out:
            raise ProblemError(
                "--keep is the folder of runs of users left out; it goes with --leave-one-out"
            )

    @property
    def anything(self) -> bool:
        """Whether something was asked for that only a run can answer."""
        return bool(self.reports) or self.leave_one_out


def further(
    run: Run,
    parts: Mapping[str, Samples | CategoricalData],
    judged: Mapping[str, Judgement | None],
    asked: Asked,
    *,
    own_data: bool,
    grid: Grid | None,
    loss: Loss,
    hits: int,
    seed: int,
) -> tuple[dict[str, Any], str]:
    """For JSON, and as text.  `parts` and `judged` hold the data and its judgements by name, the
    training data first."""
    measured = {label: found for label, found in judged.items() if found is not None}
    label, first = next(iter(parts.items()))
    priors = {name: under_priors(found) for name, found in measured.items()}
    extra: dict[str, Any] = {
        "other_shares": {
            name: None if found is None else found.as_dict() for name, found in priors.items()
        }
    }
    said = [priors_text(priors[label], label)]
    test = parts.get("test data")
    if own_data and isinstance(first, Samples) and isinstance(test, Samples):
        file = membership_test(run.mechanism, first, test, grid=grid, loss=loss, seed=seed)
        extra["membership"] = file.as_dict()
        said.append(membership_text(file))
        if run.certificate is not None:
            proof = certificate_membership(run.certificate, first, test, seed=seed)
            extra["membership_of_certificate"] = proof.as_dict()
            said.append(membership_text(proof, file="the certificate"))
    if asked.reports:
        cell = STICKY_CELL_M if asked.sticky_cell_m is None else asked.sticky_cell_m
        extra["repeated"] = {}
        for name, data in parts.items():
            many = repeated_reports(
                run.mechanism,
                data,
                asked.reports,
                sticky_cell_m=cell,
                grid=grid,
                region=run.region,
                loss=loss,
                seed=seed,
            )
            extra["repeated"][name] = many.as_dict()
            said.append(repeated_text(many, name))
    if asked.leave_one_out:
        if not own_data:
            raise ProblemError(
                "users are left out of the run's own training data; --leave-one-out does not go"
                " with --data"
            )
        places = {name: data for name, data in parts.items() if isinstance(data, Samples)}
        found = leave_one_out(
            problem_of(run, first),
            solver_of(run),
            on=places,
            seed=seed_of(run),
            grid=grid,
            hits=hits,
            keep=asked.keep,
            progress=asked.progress,
        )
        extra["left_out"] = [one.as_dict() for one in found]
        said += [left_out_text(found, name, measured[name]) for name in places]
    return extra, "\n\n".join(said)

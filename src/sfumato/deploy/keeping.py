"""How reports are kept by what is deployed: as the run says, unless another way is asked for."""

from dataclasses import replace
from typing import Any

from sfumato.deploy.release import Release
from sfumato.errors import ProblemError, arg
from sfumato.mechanism.chance import PERIODS, Chance
from sfumato.study.folder import Run
from sfumato.study.record import NEVER, Keeping
from sfumato.study.traces import chance_of

DEFAULT = Keeping("day")  # a rotating period, where nobody has chosen
_WIDEST_M = 1e9


def chance_for(
    run: Run,
    key: bytes | None,
    *,
    period: str | None = None,
    cell_m: float | None = None,
) -> Chance:
    """Where the chance of a table's reports comes from.

    `period` and `cell_m` stand in for what the run says; `key` is needed where reports are kept.  A
    run that says nothing has a new draw for each report.
    """
    if cell_m is not None and not 0 < cell_m < _WIDEST_M:
        raise ProblemError(f"{arg('sticky_cell_m')} must be above 0 metres; got {cell_m:g}")
    keeping = run.record.keeping
    chosen = period or (NEVER if keeping is None else keeping.period)
    if chosen == NEVER:
        return chance_of(None, b"", "")
    if key is None:
        raise ProblemError(
            f"reports of {run.folder} are kept ({chosen}), and kept reports come from a key; name"
            f" its file with {arg('key')}, or ask for a new draw for each row with {arg('fresh')}"
        )
    if keeping is None or period is not None:  # asked for explicitly
        keeping = Keeping(chosen, (keeping or DEFAULT).cell_m)
    kept = keeping if cell_m is None else replace(keeping, cell_m=cell_m)
    return chance_of(kept, key, run.record.mechanism_hash)


def refuse_one_place(run: Run, what: str) -> None:
    """Refuse a run that sends whole periods from one place where users are not known by name."""
    keeping = run.record.keeping
    if keeping is not None and keeping.one_place is not None:
        raise ProblemError(
            f"{run.folder} sends some periods from one place, chosen by user, and {what} knows no"
            " users; expected sanitize, or another way of keeping: choose it with sfumato policy"
        )


def kept_by_service(run: Run) -> Keeping:
    """How a service keeps reports: as the run says, else for a day.  What answers requests never
    draws anew for each: an hour is the least."""
    refuse_one_place(run, "what answers requests")
    keeping = run.record.keeping or DEFAULT
    return Keeping("hour", keeping.cell_m) if keeping.period == NEVER else keeping


def manifest_keeping(run: Run, released: Release) -> dict[str, Any]:
    """What a bundle says of keeping, by the rule of a service (`kept_by_service`): for how many
    seconds (null for ever) a cell of `cell_m` metres has one report, and within which distance of
    the cell's middle reports must lie so that the run's cap holds in all of the cell (null for no
    cap)."""
    refuse_one_place(run, "a bundle")
    kept = kept_by_service(run)
    cap = getattr(released.mechanism, "max_distance", None)
    left = None if cap is None else cap - kept.cell_m / 2**0.5
    if left is not None and not left > 0:
        raise ProblemError(
            f"reports kept for a cell of {kept.cell_m:g} m cannot all be within the run's cap of"
            f" {cap:g} m; choose a smaller cell with sfumato policy"
        )
    return {
        "period": kept.period,
        "seconds": PERIODS[kept.period],
        "cell_m": kept.cell_m,
        "within_m": left,
    }


def forever_warning(run: Run) -> str:
    """What is known of keeping this run's reports forever, as one sentence."""
    keeping = run.record.keeping
    shares = {} if keeping is None else keeping.found
    forever, fresh = shares.get(Keeping("forever").words), shares.get(Keeping(NEVER).words)
    if keeping is None or forever is None or fresh is None:
        return (
            "a report that is kept forever identifies its user to anyone who has seen it with a"
            " name; sfumato policy measures how often that finds the traces of your data"
        )
    return (
        "a report that is kept forever identifies its user: on your traces, an adversary with named"
        f" kept reports of other traces finds {forever['history']:.0%}, and {fresh['history']:.0%}"
        f" with a new draw for each (sfumato policy, {keeping.traces} traces)"
    )

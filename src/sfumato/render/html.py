"""The report: a comparison as one HTML file that needs nothing from outside.

The words stand in `templates/`; here is what they are filled with.  Everything that a template
shows is escaped, and passes through `printable` first.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from importlib.resources import files
from math import inf, isfinite, isnan
from typing import Any

import numpy as np
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from sfumato.data.categories import CategoricalData
from sfumato.data.grid import Grid, Region
from sfumato.data.samples import Samples, Split
from sfumato.data.tiles import NARROWEST
from sfumato.errors import ProblemError
from sfumato.measure.certificate import Certificate
from sfumato.measure.estimate import Estimate
from sfumato.measure.judge import PerUser
from sfumato.measure.tables import TABLE_MEASURES
from sfumato.mechanism.base import Mechanism
from sfumato.randomness import generator
from sfumato.render import figures
from sfumato.render.brief import best_text
from sfumato.render.estimates import mark, shown
from sfumato.render.glossary import TERMS
from sfumato.render.names import printable
from sfumato.render.text import (
    alone_text,
    atlas_lines,
    gap_missing,
    left_out_heads,
    left_out_rows,
    tables_line,
    too_few,
)
from sfumato.show import html, page
from sfumato.solver.frontier import Frontier
from sfumato.study.atlas import AtlasRun
from sfumato.study.compare import Compared, Comparison
from sfumato.study.measure import Measured
from sfumato.study.record import versions
from sfumato.study.solution import Solution
from sfumato.study.trade_off import TradeOff

PICTURE_SEED = 0
_MOST_POINTS = 2000  # points per picture
# points in all pictures; with coarser pictures where there are many, this keeps the file below 2 MB
_ALL_POINTS = 9000
_FEW_POINTS = 600  # fewer check-ins than this are reported several times each
_CROWD = 0.05  # a place with more than this share of the reports is spoken of
_MOST_NAMED = 60  # users in the legend
_MOST_USERS = 200  # users in the table
_TINY = 0.001  # an exact number whose interval is narrower than this is shown without it


@page.register
def report_html(comparison: Comparison) -> str:
    """The comparison as one self-contained page.  The same comparison gives the same bytes.

    The page contains true locations, and says so.
    """
    rows, on = comparison.rows, comparison.on
    if isinstance(on, CategoricalData):
        raise ProblemError(
            "the report is for places; a comparison on categories has no map: print it as a table"
            " instead"
        )
    prior = on.counts[on.counts > 0] / len(on)
    blind, entropy = float(1 - prior.max()), float(-np.sum(prior * np.log2(prior)))
    groups = best_within_budgets(rows)
    curves = [
        (row, figures.history_figure(rounds, row.contender.max_loss, unit=row.loss_unit), rounds)
        for row in rows
        if (rounds := figures.released_rounds(row.contender.history))
    ]
    estimates = (e for row in rows for e in (row.measured.bayes_error, *row.measured.over_grids))
    return rendered(
        "report.html.j2",
        on=on,
        train=comparison.train,
        region=comparison.region,
        rows=rows,
        held_out=all(row.held_out for row in rows),
        warned=[(row, warning) for row in rows for warning in row.contender.warnings],
        too_few=too_few,
        proved=best_text,
        groups=groups,
        tags={row: tag for group in groups for row, tag in group.tags.items()},
        blind=blind,
        entropy=entropy,
        infinity=inf,
        pictures=_pictures(rows, on),
        charts=_charts(rows, blind, entropy),
        users=_users(rows, on),
        worst=[_worst(row) for row in rows],
        left_out=[(row, part) for row in rows for part in _left_out(row)],
        left_out_heads=left_out_heads,
        curves=[(row, curve, len(rounds)) for row, curve, rounds in curves if curve is not None],
        measures=[measure.head for measure in TABLE_MEASURES.values()],
        tables=map(tables_line, rows),
        hits=sorted({e.hits for e in estimates if e.hits is not None}),
        versions=versions(),
    )


def rendered(template: str, **values: object) -> str:
    """A template of ours, filled in."""
    return environment().get_template(template).render(values)


@cache
def environment() -> Environment:
    """Our templates, with what they may call."""
    templates = files("sfumato.render") / "templates"
    environment = Environment(
        loader=FunctionLoader(lambda name: (templates / name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests["nan"] = isnan
    environment.globals["terms"] = TERMS
    environment.filters.update(
        amount=amount,
        gap_missing=gap_missing,
        described=described,
        interval=interval,
        listed=listed,
        percent=lambda share, digits=1: f"{share:.{digits}%}",
        share=lambda share: f"{share:.1%}" if share >= 0.001 else f"{100 * share:.1g}%",
        mark=mark,
        shown=shown,
        swatch=figures.swatch,
        zip=zip,
    )
    return environment


def _finalized(value: object) -> object:
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def interval(estimate: Estimate, form: str = "{:.3f}") -> str:
    """From where to where it may lie; nothing for an exact number without room."""
    if estimate.kind == "exact" and estimate.high - estimate.low < _TINY:
        return ""
    return f"{form.format(estimate.low)} to {form.format(estimate.high)}"


def listed(names: Iterable[str], most: int = 12) -> str:
    """Names in a row.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    given = list(names)
    if len(given) > most:
        return f"{', '.join(given[:most])} and {len(given) - most} more"
    return given[0] if len(given) == 1 else f"{', '.join(given[:-1])} and {given[-1]}"


def amount(value: float) -> str:
    """A number with one decimal, or with two digits where that would show nothing.

    >>> amount(172.94), amount(0.0021), amount(0)
    ('172.9', '0.0021', '0')
    """
    return f"{value:.1f}" if abs(value) >= 0.1 else f"{value:.2g}"


@dataclass(frozen=True, eq=False)
class BestWithin:
    """Mechanisms of one budget: who kept it, and who of those hides the senders best.

    `close` are those whose Bayes error cannot be told apart from that of `best`, which exposes
    least of those that do not expose more on check-ins to come than the largest error's;
    `less_exposed` is who exposes least of all, where that is less than half of
    what `best` exposes.
    """

    budget: float | None
    rows: tuple[Compared, ...]
    kept: tuple[Compared, ...]
    over: tuple[Compared, ...]
    best: Compared | None = None
    close: tuple[Compared, ...] = ()
    less_exposed: Compared | None = None

    @property
    def tags(self) -> dict[Compared, str]:
        """Words beside the names of the best, where there is a choice."""
        if self.best is None or len(self.rows) < 2:
            return {}
        top = max(self.kept, key=lambda row: row.measured.bayes_error.value)
        if top is self.best:
            return {top: "best within its budget"}
        return {
            top: "largest Bayes error here",
            self.best: "within chance of the largest, exposes least",
        }

    @property
    def fewest(self) -> bool:
        """Whether `best` exposes the fewest reports of those alike."""
        alike = [] if self.best is None else [self.best, *self.close]
        shares = [row.measured.exposed.value for row in alike]
        return shares == [] or shares[0] == min(shares)

    @property
    def unknown(self) -> bool:
        """Whether no loss is known, so that nobody can be the best."""
        return all(isnan(row.measured.loss.value) for row in self.rows)


def best_within_budgets(rows: Sequence[Compared]) -> list[BestWithin]:
    """For each budget, of the mechanisms that keep it and have the largest Bayes error, as far as
    that can be told, the one that exposes least, here and on check-ins to come."""
    budgets = dict.fromkeys(row.contender.max_loss for row in rows)
    return [
        _best_within(tuple(row for row in rows if row.contender.max_loss == budget), budget)
        for budget in budgets
    ]


def _best_within(rows: tuple[Compared, ...], budget: float | None) -> BestWithin:
    over = tuple(row for row in rows if row.over_by > 0)
    kept = tuple(row for row in rows if row not in over and not isnan(row.measured.loss.value))
    if not kept:
        return BestWithin(budget, rows, kept, over)
    errors = _comparable(kept)
    top = max(kept, key=lambda row: errors[row].value)
    alike = [row for row in kept if row is top or errors[row].high >= errors[top].low]
    to_come = _exposed_to_come(kept)
    less = [row for row in alike if to_come[row] <= to_come[top]]
    best = min(less, key=lambda row: row.measured.exposed.value)
    close = tuple(row for row in alike if row is not best)
    least = min(kept, key=lambda row: row.measured.exposed.value)
    far_less = least.measured.exposed.high < best.measured.exposed.low / 2
    return BestWithin(budget, rows, kept, over, best, close, least if far_less else None)


def _comparable(rows: Sequence[Compared]) -> dict[Compared, Estimate]:
    """Bayes errors that can be compared: those on check-ins to come, with their intervals, where
    all have them; else as measured, or on the finest common grid where the cells differ."""
    to_come = {row: row.to_come.bayes_error for row in rows if row.to_come is not None}
    if len(to_come) == len(rows):
        return to_come
    if len({row.measured.bayes_error.cell_m for row in rows}) > 1 and all(
        row.measured.over_grids for row in rows
    ):
        return {row: row.measured.over_grids[0] for row in rows}
    return {row: row.measured.bayes_error for row in rows}


def _exposed_to_come(rows: Sequence[Compared]) -> dict[Compared, float]:
    """Exposed shares on check-ins to come where all have them, else as measured."""
    to_come = {row: row.to_come.exposed.value for row in rows if row.to_come is not None}
    if len(to_come) == len(rows):
        return to_come
    return {row: row.measured.exposed.value for row in rows}


@dataclass(frozen=True)
class Picture:
    """Reports on a map.  `beyond` of the `reports` lie outside it; `crowd` is the share of them at
    one place, 0 where no place is crowded."""

    address: str
    reports: int
    beyond: int
    crowd: float


@dataclass(frozen=True)
class Pictures:
    """Truth beside the reports of the same check-ins, in one window."""

    truth: str
    reports: tuple[Picture, ...]
    checkins: int
    reports_each: int
    side_m: float
    named: int
    seed: int = PICTURE_SEED


def _pictures(rows: Sequence[Compared], on: Samples) -> Pictures:
    most = max(1, min(_MOST_POINTS, _ALL_POINTS // (len(rows) + 1)))
    chosen = generator(PICTURE_SEED).permutation(len(on))[:most]
    again = max(1, min(_FEW_POINTS, most) // len(chosen))
    truth, secret = on.truth[chosen], on.secret[chosen]
    budgets = [row.contender.max_loss for row in rows if row.contender.max_loss is not None]
    window = figures.window_of(on.truth, min(budgets, default=0.0))
    dpi = round(min(150.0, 150 * (6 / (len(rows) + 1)) ** 0.5))
    pictures = []
    for row in rows:
        truths, secrets = np.repeat(truth, again, axis=0), np.repeat(secret, again)
        reports = row.contender.mechanism.sample(truths, seed=PICTURE_SEED)
        mixed = generator(PICTURE_SEED).permutation(len(reports))
        drawn = figures.points_figure(reports[mixed], secrets[mixed], window, behind=truth, dpi=dpi)
        pictures.append(_picture(drawn, reports, window))
    drawn = figures.points_figure(truth, secret, window, dpi=dpi)
    named = min(len(on.secrets), _MOST_NAMED)
    return Pictures(drawn, tuple(pictures), len(chosen), again, window.side_m, named)


def _picture(address: str, reports: np.ndarray, window: Region) -> Picture:
    beyond = int((~window.contains(reports)).sum())
    _, count = np.unique(np.round(reports, 3), axis=0, return_counts=True)
    crowded = count.max() > max(1, _CROWD * len(reports))
    crowd = float(count.max() / len(reports)) if crowded else 0.0
    return Picture(address, len(reports), beyond, crowd)


def _charts(rows: Sequence[Compared], blind: float, entropy: float) -> dict[str, str]:
    names = [row.contender.name for row in rows]
    grids = [row.measured.over_grids for row in rows]
    return {
        "grids": figures.grids_figure(names, grids, blind) if any(grids) else "",
        "information": figures.bars_figure(
            names,
            [row.measured.information_bits for row in rows],
            label="bits",
            most=entropy,
            most_label=f"all there is, {entropy:.2f}",
        ),
        "exposed": figures.bars_figure(
            names,
            [row.measured.exposed for row in rows],
            label="share of reports",
            most=1.0,
            most_label="all",
            percent=True,
        ),
    }


@dataclass(frozen=True)
class User:
    """One user, by each mechanism; None where a mechanism was not judged on the user."""

    number: int
    name: str
    checkins: int
    found: tuple[PerUser | None, ...]


def _users(rows: Sequence[Compared], on: Samples) -> list[User]:
    """All users or, where they are many, those who are easiest to guess."""
    per_row = [{user.name: user for user in row.measured.per_user} for row in rows]
    users = [
        User(number, name, int(on.counts[number]), tuple(by_name.get(name) for by_name in per_row))
        for number, name in enumerate(on.secrets)
    ]
    if len(users) <= _MOST_USERS:
        return users

    def least_error(user: User) -> float:
        return min((person.error for person in user.found if person is not None), default=inf)

    return sorted(users, key=least_error)[:_MOST_USERS]


@dataclass(frozen=True)
class Extreme:
    """The users for whom a figure is the worst, and the figure."""

    names: tuple[str, ...]
    value: float


@dataclass(frozen=True)
class Worst:
    """The worst cases of one mechanism.  `share` of its reports give `of` the chance
    `posterior`."""

    posterior: float
    of: tuple[str, ...]
    share: float
    easiest: Extreme | None
    exposed: Extreme | None
    dearest: Extreme | None


def _worst(row: Compared) -> Worst:
    joint, worst = row.measured.joint, row.measured.worst_report
    pairs, total = joint.pairs, joint.place_probability
    top = pairs.weight >= (worst - 1e-9) * total[pairs.place]
    return Worst(
        posterior=worst,
        of=tuple(joint.secrets[user] for user in np.unique(pairs.secret[top])),
        share=float(total[np.unique(pairs.place[top])].sum()),
        easiest=_extreme(row, lambda user: user.error, sign=-1),
        exposed=_extreme(row, lambda user: user.exposed),
        dearest=_extreme(row, lambda user: user.loss),
    )


def _extreme(row: Compared, figure: Callable[[PerUser], float], *, sign: int = 1) -> Extreme | None:
    known = [user for user in row.measured.per_user if isfinite(figure(user))]
    if not known:
        return None
    top = max(sign * figure(user) for user in known)
    whom = [user for user in known if sign * figure(user) >= top - 1e-9]
    return Extreme(tuple(user.name for user in whom), figure(whom[0]))


@dataclass(frozen=True)
class LeftOutTable:
    """Users left out of training in turn, judged on one set of data."""

    label: str
    lines: list[list[str]]


def _left_out(row: Compared) -> list[LeftOutTable]:
    labels = dict.fromkeys(label for user in row.left_out for label in user.judged)
    return [
        LeftOutTable(label, left_out_rows(row.left_out, label, row.measured)) for label in labels
    ]


def described(thing: Any) -> str:
    """A mechanism or a part of one in words that do not change from run to run.

    Of arrays only their size is said: they may hold true locations, and nobody reads them.
    """
    if isinstance(thing, Grid):
        return f"{thing.cell_m:g} m cells" + (
            "" if thing.region is None else f" over {thing.region.side_m:g} m"
        )
    if isinstance(thing, (float, np.floating)):
        return f"{thing:.6g}"
    if isinstance(thing, (bool, int, str)) or thing is None:
        return str(thing)
    if isinstance(thing, (tuple, list)):
        return f"({', '.join(described(part) for part in thing)})"
    if is_dataclass(thing):
        name = thing.kind if isinstance(thing, Mechanism) else type(thing).__name__.lower()
        given = {part.name: getattr(thing, part.name) for part in fields(thing)}
        sizes = {part: _numbers_in(value) for part, value in given.items()}
        usual = {part.name: part.default for part in fields(thing)}
        said = [
            _part_described(part, value)
            for part, value in given.items()
            if not sizes[part] and not _is_usual(value, usual[part])
        ]
        if total := sum(sizes.values()):
            said.append(f"{total:,} numbers")
        return f"{name} ({', '.join(said)})" if said else name
    return str(getattr(thing, "__name__", type(thing).__name__))


def _part_described(part: str, value: Any) -> str:
    """A part's name and value in words; a part that says what it is needs no name."""
    if part in _NAMELESS:
        return described(value)
    words, unit = _WORDS.get(part, (part.removesuffix("_m").replace("_", " "), ""))
    return f"{words} {described(value)}{unit or ' m' * part.endswith('_m')}"


# parts of mechanisms by what they are, and what others mean
_NAMELESS = frozenset({"inner", "mechanisms", "grid", "region", "tiling", "rule"})
_WORDS = {
    "epsilon": ("epsilon", " per metre"),
    "keep": ("keeps the truth with chance", ""),
    "max_distance": ("never further off than", " m"),
    "far": ("far away on", ""),
}


def _is_usual(value: Any, default: Any) -> bool:
    """Whether a part is as it is unless somebody sets it."""
    return default is not MISSING and bool(value == default)


def _numbers_in(thing: Any) -> int:
    """How many numbers stand in an array, or in arrays within tuples; 0 where there is none."""
    if isinstance(thing, (tuple, list)):
        return sum(_numbers_in(part) for part in thing)
    return int(np.size(thing)) if hasattr(thing, "shape") else 0


# Notebooks: small tables without any coordinate of the data ---------------------------------------

# the macro of notebook.html.j2 for each class
_TABLES: dict[type, str] = {
    Samples: "samples",
    Split: "split",
    CategoricalData: "categories",
    Solution: "solution",
    Comparison: "comparison",
    Measured: "measured",
    Frontier: "frontier",
    TradeOff: "trade_off",
    Certificate: "certificate",
}


def _table(value: object) -> str:
    macros = environment().get_template("notebook.html.j2").module
    return str(getattr(macros, _TABLES[type(value)])(value)).strip()


for _class in _TABLES:
    html.register(_class, _table)


# The report of an atlas --------------------------------------------------------------------------

_HEADS = ("tile", "side, m", "users", "check-ins", "mechanism", "loss, m", "Bayes error ↑", "blind")


def map_html(made: AtlasRun) -> str:
    """One self-contained page; the same run gives the same bytes."""
    record, tiling = made.run.record, made.mechanism.tiling
    error, users = np.full(len(tiling), np.nan), np.zeros(len(tiling))
    noise = np.array(
        [made.mechanism.mechanisms[n].kind == "planar laplace" for n in made.mechanism.which]
    )
    rows = []
    for line in made.tiles:
        tile, measured = line["tile"], line["measured"]
        alone = tile in made.alone
        if line["checkins"]:  # others are near check-ins that their neighbours answer
            users[tile] = line["users"]
        if not alone:
            error[tile] = measured["bayes_error"]["value"]
        rows.append(
            (
                tile,
                f"{tiling.sides_m[tile]:.0f}",
                line["users"],
                line["checkins"],
                line["kind"],
                shown(Estimate(**measured["loss"]), "{:.1f}"),
                "-" if alone else shown(Estimate(**measured["bayes_error"])),
                "-" if alone else f"{line['blind']:.3f}",
            )
        )
    captions = {
        "Bayes error of each tile; empty: fewer than two users; hatched: planar Laplace noise; the"
        " numbers are those of the table below, where a tile is wide enough": error,
        "Users of each tile": np.where(users > 0, users, np.nan),
    }
    return rendered(
        "atlas.html.j2",
        name=record.data.name,
        status=record.status,
        max_loss=record.max_loss,
        users=len(record.data.users),
        checkins=record.data.rows,
        users_per_tile=record.settings["users_per_tile"],
        overlap_m=record.settings["overlap_m"],
        narrowest_m=NARROWEST * record.settings["overlap_m"],
        summary=atlas_lines(made),
        figures=[
            (words, figures.tiles_figure(tiling, values, noise))
            for words, values in captions.items()
        ],
        heads=_HEADS,
        rows=rows,
        alone=alone_text(made),
    )

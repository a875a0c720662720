"""An assessment in the headings that an officer must fill: as HTML and as Markdown.

No place of the data and no user's name is in it, and no verdict: what is too much is the reader's
to say.
"""

from dataclasses import dataclass

from sfumato.measure.estimate import Estimate
from sfumato.render.html import rendered
from sfumato.show import page
from sfumato.study.assess import Assessment, Risk

NOT = "not assessed"
_HEAD = ("adversary", "figure", "blind guess", "if the truth were sent", "proven best", "meaning")
_KNOWS = "Knows where each of the {users} users tends to be, and the mechanism. Sees "
_WORDS = {
    "one report": (
        _KNOWS + "one report and guesses who sent it.",
        "How often the best guess of the sender is right: the average risk.",
    ),
    "the user found most often": (
        _KNOWS + "one report of the user who is found most often.",
        "The average hides this user; on these check-ins.",
    ),
    "the worst report": (
        _KNOWS + "one report, the one that tells most.",
        "The maximum risk: after one of the reports that can occur, one user has this probability.",
    ),
    "exposed reports": (
        _KNOWS + "one report.",
        "The share of reports after which one user has a probability above 90 %.",
    ),
    "information": (
        _KNOWS + "one report, and counts bits instead of guesses.",
        "Bits that a report tells about the sender, on average.",
    ),
    "linked reports": (
        _KNOWS + "{count} reports from places of one user, and that they are one user's.",
        "How often the best guess of the sender is right then.",
    ),
    "endless reports from one place": (
        _KNOWS + "as many reports from one place as it likes, each drawn anew.",
        "The limit; kept reports (--sticky) avoid it within their period.",
    ),
    "two tables joined": (
        "Has another release of the same people. Joins it with this one.",
        "Needs the other release; ask for it.",
    ),
    "in the training data": (
        "Has the mechanism's file and a check-in. Guesses whether the mechanism was made from it.",
        "Area under the curve, 0.5 is a toss: what the file tells about the check-ins that it was"
        " made from.",
    ),
    "a trained intruder": (
        "Motivated, with no special skill: has counted who was reported in which cell on other"
        " check-ins. Sees one report and guesses by that.",
        "How often a simple attack that was really run is right; a better one may do more.",
    ),
    "people who are not in the data": (
        "Sees reports of people whom the mechanism was not made for.",
        "sfumato measure --leave-one-out assesses it; it takes one solve per user.",
    ),
    "the place": (
        "Knows the places and how frequent each is, and the mechanism. Sees one report and guesses"
        " where it was sent from.",
        "Metres between the best guess of the place and the true place, on average: higher is more"
        " private.",
    ),
    "a sensitive place": (
        "Knows the places and how frequent each is, and the mechanism. Sees one report and guesses"
        " whether the sender was at a sensitive place ({sensitive}).",
        "How often that guess is right. Compare with the blind guess, not with zero.",
    ),
}
_WP29 = {
    "Singling out": (
        "one report",
        "the user found most often",
        "the worst report",
        "exposed reports",
    ),
    "Linkability": ("linked reports", "endless reports from one place", "two tables joined"),
    "Inference": ("the place", "a sensitive place", "information", "in the training data"),
}


@dataclass(frozen=True)
class Line:
    """One adversary, in words."""

    adversary: str
    figure: str
    blind: str
    truth: str
    best: str
    meaning: str

    @property
    def cells(self) -> tuple[str, ...]:
        return (self.adversary, self.figure, self.blind, self.truth, self.best, self.meaning)


@dataclass(frozen=True)
class Section:
    """A heading, what is said under it, fields to fill in, and a table where there is one."""

    heading: str
    level: int
    sentences: tuple[str, ...] = ()
    to_fill: tuple[str, ...] = ()
    lines: tuple[Line, ...] = ()


@page.register
def assessment_html(assessment: Assessment) -> str:
    """As a page that loads nothing from elsewhere."""
    return rendered(
        "assessment.html.j2", sections=_sections(assessment), head=_HEAD, made=assessment.made
    )


def assessment_markdown(assessment: Assessment) -> str:
    """As Markdown, of the same words."""
    parts = ["# Assessment of a location release", ""]
    for section in _sections(assessment):
        parts += [f"{'#' * section.level} {section.heading}", ""]
        parts += [*section.sentences, ""] if section.sentences else []
        parts += [*(f"- {name}: ____________" for name in section.to_fill), ""]
        if section.lines:
            parts += [f"| {' | '.join(_HEAD)} |", "|---|---|---|---|---|---|"]
            parts += [f"| {' | '.join(line.cells)} |" for line in section.lines]
            parts += [""]
    return "\n".join(parts).replace("\n\n\n", "\n\n")


def _sections(assessment: Assessment) -> list[Section]:
    told = assessment
    budget = "none" if told.max_loss is None else f"{told.max_loss:g} {told.loss_unit}"
    figures = {
        None: "the check-ins at hand",
        "held-out": f"{told.held_out:,} check-ins that were held out, for check-ins to come",
        "cross-fitted": "folds of the training data, for check-ins to come",
    }[told.to_come]
    sections = [
        Section(
            "What was released",
            2,
            (
                f"Reports of a mechanism ({told.solver}, hash {told.mechanism_hash[:16]}) in place"
                f" of true locations, within a budget of {budget} on average; measured loss"
                f" {_number(told.loss, told.loss_unit)}.",
                f"Data: {told.users} users, {told.checkins:,} check-ins"
                f" (hash {told.data_hash[:16]}). Average figures are measured on {figures}, with"
                " 95 % intervals; figures without an interval are computed for the check-ins at"
                " hand. The proven best is what no mechanism within the budget goes below on the"
                " training check-ins.",
                "This page gives risks, not a verdict. What is acceptable is the reader's to say."
                " It contains no location of the data and no name of a user.",
            ),
        ),
        Section("Opinion 05/2014 of the Article 29 Working Party", 2),
    ]
    sections += [Section(heading, 3, lines=_lines(told, names)) for heading, names in _WP29.items()]
    cell = "as the mechanism gives them" if told.cell_m is None else f"cells of {told.cell_m:g} m"
    sections += [
        Section("ISO/IEC 27559", 2),
        Section(
            "6 Context: threat model",
            3,
            (
                "Adversaries know the mechanism, its settings and the users' habits; they do not"
                " know the true place. Each row of the tables says what else it sees and how often."
                " Not assessed: adversaries who see time, network address, device or account.",
            ),
            ("Who receives the release", "Other data that they can reach"),
        ),
        Section(
            "7 Data features",
            3,
            (
                f"{told.users} users, {told.checkins:,} check-ins. Reports: {cell}. Direct"
                " identifiers, times and other columns: as the record of sanitize says.",
                f"Guesses of the place were looked at for {told.places} places.",
            ),
            ("Columns released", "Retention of the true data"),
        ),
        Section(
            "8 Identifiability: average and maximum risk, adversarial testing",
            3,
            (
                f"Average risk, one report: {_figure(told, 'one report')}. Maximum risk: the worst"
                f" report {_figure(told, 'the worst report')}, the user found most often"
                f" {_figure(told, 'the user found most often')}. The rows under singling out have"
                " what they are compared with. Adversarial testing: the attack that was run, under"
                " the motivated intruder.",
            ),
        ),
        Section(
            "9 Governance and re-evaluation",
            3,
            (
                "The figures hold for this mechanism and people like those in the data. Assess"
                " again when the data, the budget, the receivers or the reporting change.",
            ),
            (
                "Keeper of the key (--key) and of the run folder",
                "Date on which the key is destroyed",
                "Next review",
                "Thresholds applied, and by whom",
                "Signed",
            ),
        ),
        Section(
            "Information Commissioner's Office: the motivated intruder",
            2,
            lines=_lines(told, ("a trained intruder", "people who are not in the data")),
        ),
    ]
    return sections


def _lines(assessment: Assessment, names: tuple[str, ...]) -> tuple[Line, ...]:
    return tuple(
        _line(assessment, risk) for name in names for risk in assessment.risks if risk.name == name
    )


def _line(assessment: Assessment, risk: Risk) -> Line:
    adversary, meaning = _WORDS[risk.name]
    count = assessment.sensitive_places
    listed = f"{count} places of your own list" if count else "none was listed"
    return Line(
        adversary=adversary.format(users=assessment.users, count=risk.count, sensitive=listed),
        figure=NOT if risk.figure is None else _number(risk.figure, risk.unit),
        blind=_plain(risk.blind, risk.unit),
        truth=NOT if risk.truth is None else _number(risk.truth, risk.unit),
        best=_plain(risk.best, risk.unit),
        meaning=meaning,
    )


def _figure(assessment: Assessment, name: str) -> str:
    risk = assessment.risk(name)
    return NOT if risk.figure is None else _number(risk.figure, risk.unit)


def _plain(value: float | None, unit: str) -> str:
    if value is None:
        return NOT
    if unit == "share":
        return f"{value:.1%}"
    return f"{value:,.0f} m" if unit == "m" else f"{value:.2f} {unit}".rstrip()


def _number(found: Estimate | float, unit: str) -> str:
    """A value with its interval, where it has one."""
    if not isinstance(found, Estimate):
        return _plain(found, unit)
    value, low, high = (_plain(one, unit) for one in (found.value, found.low, found.high))
    return value if low == high else f"{value} ({low} to {high})"

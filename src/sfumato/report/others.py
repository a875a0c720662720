"""Who is not in the data, and who reports often: what was measured, in words for a terminal."""

from collections.abc import Sequence
from math import isnan

from sfumato.measure.estimate import Estimate
from sfumato.measure.judge import Judgement, PerUser
from sfumato.measure.membership import Membership
from sfumato.measure.prior import Priors, UnderPrior
from sfumato.measure.repeated import Repeated
from sfumato.report.table import text_table
from sfumato.study.leave_one_out import LeftOutUser, user_of

WHAT_REMAINS = (
    "Keeping reports does not cover other periods and other places: each brings a report of its"
    " own."
)


def repeated_rows(found: Repeated) -> list[list[str]]:
    """Bayes errors: a column a number of reports and one for endlessly many, a row a way of sending
    them."""
    same = len(found.counts) + 1
    rows = [
        ["one place, a new draw for each", *map(shown, found.fresh), shown(found.endless)],
        ["one place and period, the first report kept", *[shown(found.first)] * same],
    ]
    if found.middle is not None:
        rows.append(
            [
                f"one place and period, the middle of its {found.sticky_cell_m:g} m cell answered",
                *[shown(found.middle)] * same,
            ]
        )
        rows.append(
            [
                "one place, a new period for each, middles answered",
                *map(shown, found.middle_periods or ()),
                "-",
            ]
        )
    rows.append(["another place of the user for each", *map(shown, found.places), "-"])
    if found.middle_places is not None:
        rows.append(
            [
                "another place of the user for each, middles answered",
                *map(shown, found.middle_places),
                "-",
            ]
        )
    return rows


def repeated_notes(found: Repeated) -> list[str]:
    """How the figures were got, what keeping costs, and what it leaves open."""
    groups = (found.fresh, found.places, found.middle_periods, found.middle_places)
    drawn = [one for several in groups for one in several or () if one.kind == "estimate"]
    said = []
    if drawn:
        wide = max(max(one.high - one.value, one.value - one.low) for one in drawn)
        least = min(one.hits or 0 for one in drawn)
        said.append(
            f"≈ from at least {least} lists of reports drawn from the law: unbiased, given the law,"
            f" and within {wide:.3f} (95 %)."
        )
    if found.middle_loss is not None:
        said.append(f"Answering middles costs {found.middle_loss:.1f} m on average.")
    return [*said, WHAT_REMAINS]


def repeated_text(found: Repeated, label: str) -> str:
    """Repeated reports on one set of data."""
    head = [f"Bayes error ↑ by number of reports seen, {label}", *map(str, found.counts), "endless"]
    return "\n".join([text_table(head, repeated_rows(found)), " ".join(repeated_notes(found))])


def priors_text(found: Priors | None, label: str) -> str:
    """Loss and leakage under other shares of the users."""
    if found is None:
        return "Other shares of the users: not computed, the figures are estimated from samples."
    chosen = [found.given, found.equal, found.easiest, found.dearest]
    names = [
        "as in the data",
        "equal",
        f"{found.easiest.name} twice (least error)",
        f"{found.dearest.name} twice (most loss)",
    ]
    lines = [[name, *_under(one)] for name, one in zip(names, chosen, strict=True)]
    return (
        text_table(
            [
                f"shares of the users, {label}",
                "loss m",
                "Bayes error ↑",
                "a blind guess",
                "info bits ↓",
            ],
            lines,
        )
        + "\n"
        + capacity(found)
    )


def _under(one: UnderPrior) -> list[str]:
    return [
        f"{one.loss:.1f}",
        f"{one.bayes_error.value:.3f}",
        f"{one.blind:.3f}",
        f"{one.information_bits.value:.3f}",
    ]


def capacity(found: Priors) -> str:
    """What holds for all shares, in a sentence."""
    return (
        f"Whatever the shares: the best guess is right at most {found.capacity:.2f} times as often"
        f" as a blind one, and the loss is at most {found.largest_loss:.1f} m."
    )


LEFT_OUT_HEADS = (
    "loss m",
    "Bayes error ↑",
    "user's loss m",
    "in training",
    "user's error ↑",
    "in training",
    "user exposed ↓",
    "in training",
)


def left_out_rows(found: Sequence[LeftOutUser], label: str, trained: Judgement) -> list[list[str]]:
    """One row for the mechanism that saw everybody, then one a user left out: all users' figures,
    the user's, and what they were."""
    rows = [["nobody", _metres(trained.loss), shown(trained.bayes_error), *["-"] * 6]]
    for one in found:
        judged = one.judged[label]
        pair = one.of_user(label), user_of(trained, one.user)
        rows.append([one.user, _metres(judged.loss), shown(judged.bayes_error), *_pairs(*pair)])
    return rows


def _pairs(out: PerUser | None, trained: PerUser | None) -> list[str]:
    forms = (("loss", "{:.1f}"), ("error", "{:.3f}"), ("exposed", "{:.1%}"))
    return [_part(user, part, form) for part, form in forms for user in (out, trained)]


def _part(user: PerUser | None, part: str, form: str) -> str:
    return "-" if user is None or isnan(getattr(user, part)) else form.format(getattr(user, part))


def left_out_text(
    found: Sequence[LeftOutUser], label: str, trained: Judgement, *, name: str = ""
) -> str:
    """What leaving each user out of training did, on one set of data."""
    return text_table(
        [f"{name and f'{name}: '}left out of training, {label}", *LEFT_OUT_HEADS],
        left_out_rows(found, label, trained),
    )


def membership_text(found: Membership, *, file: str = "the file") -> str:
    """What the file of the mechanism, or of the certificate, tells about its training points."""
    if not found.scores:
        return f"what {file} tells about its training points: {found.verdict}"
    lines = [
        [name, f"≈{auc.value:.3f} [{auc.low:.3f}, {auc.high:.3f}]"]
        for name, auc in found.scores.items()
    ]
    head = f"is a place a training point? {found.points} against {found.points} held out"
    return f"{text_table([head, 'AUC (0.5 is a toss)'], lines)}\n{found.verdict}"


def shown(estimate: Estimate) -> str:
    """Three decimals; estimates are marked."""
    return f"{'≈' if estimate.kind == 'estimate' else ''}{estimate.value:.3f}"


def _metres(estimate: Estimate) -> str:
    return (
        "-"
        if isnan(estimate.value)
        else f"{'≈' if estimate.kind == 'estimate' else ''}{estimate.value:.1f}"
    )

"""What each figure means, in a sentence or three: one source for the report and the studio."""

# by the word that links to it: its name with the way that is more private, and what it means
TERMS: dict[str, tuple[str, str]] = {
    "loss": (
        "Loss",
        "The distance between truth and report, on average over the check-ins. Compare leakage only"
        " at equal loss.",
    ),
    "error": (
        "Bayes error ↑",
        "The probability that the best single guess of the user is wrong, for an adversary who"
        " knows the mechanism and the law of these very points. Higher is more private. The ceiling"
        " is the error of a guess that sees no report.",
    ),
    "exposed": (
        "Exposed ↓",
        "The share of reports after which one user is more than 90% likely. A mechanism can have a"
        " high Bayes error and still expose some of its reports: the error is an average.",
    ),
    "gap": (
        "Gap ↓",
        "How much more the mechanism leaks on the training data than is proved necessary: no"
        " mechanism within the same budget leaks less than the proved bound. 0 is the best"
        " possible.",
    ),
    "information": (
        "Information ↓",
        "What a report reveals about the user, in bits, on average. Lower is more private.",
    ),
    "worst": (
        "Worst report ↓",
        "The largest probability that any possible report gives to any user. 1 means that some"
        " report gives somebody away.",
    ),
    "learnt": (
        "Learnt error ↑",
        "The error of an adversary who learnt the best guesses on training data and is judged on"
        " this data. It is one adversary: a better one may err less.",
    ),
    "epsilon": (
        "Geo-indistinguishability ↓",
        "The largest epsilon per metre by which two truths can be told apart by their reports. ∞"
        " means that one truth sends a report that another never sends: no guarantee of this kind"
        " holds.",
    ),
    "cells": (
        "Cells",
        "Leakage is measured on the mechanism's own reports or, where they are too many, on square"
        " cells of this side. Merging reports into cells can only raise the Bayes error and lower"
        " the information. Figures on different cells are different facts.",
    ),
}
# of the page alone
STUDIO_TERMS: dict[str, tuple[str, str]] = {
    **TERMS,
    "budget": (
        "Budget",
        "How far off reports may be on average. A mechanism is made to stay within it.",
    ),
    "to-come": (
        "To come",
        "What to expect of check-ins that are not in the data, with 95% intervals: measured on"
        " check-ins that the mechanism was not made from.",
    ),
    "bound": (
        "Best possible",
        "A bound with a proof: no mechanism within the budget has a higher Bayes error (or reveals"
        " less information) on the training data.",
    ),
    "blind": (
        "Blind guess",
        "The error of always guessing the user with the most check-ins. No mechanism hides better.",
    ),
}

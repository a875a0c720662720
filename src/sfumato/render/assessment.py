"""An assessment in the headings that an officer must fill: as HTML and as Markdown.

The words stand in `templates/assessment.words.j2`.  No place of the data and no user's name is in
it, and no verdict: what is too much is the reader's to say.
"""

import re
from html import unescape

from sfumato.measure.estimate import Estimate
from sfumato.render.html import rendered
from sfumato.show import page
from sfumato.study.assess import Assessment

NOT = "not assessed"


@page.register
def assessment_html(assessment: Assessment) -> str:
    """As a page that loads nothing from elsewhere."""
    return rendered("assessment.html.j2", assessment=assessment, number=_number)


def assessment_markdown(assessment: Assessment) -> str:
    """As Markdown, of the same words."""
    filled = rendered("assessment.md.j2", assessment=assessment, number=_number)
    return re.sub(r"\n{3,}", "\n\n", unescape(filled)).strip() + "\n"  # escaped, as all templates


def _number(figure: Estimate | float | None, unit: str) -> str:
    """A value with its interval, where it has one."""
    if isinstance(figure, Estimate):
        value, low, high = (
            _number(number, unit) for number in (figure.value, figure.low, figure.high)
        )
        return value if low == high else f"{value} ({low} to {high})"
    if figure is None:
        return NOT
    if unit == "share":  # what is not certain does not read 100 %
        return ">99.9%" if 0.9995 <= figure < 1 - 1e-12 else f"{figure:.1%}"
    return f"{figure:,.0f} m" if unit == "m" else f"{figure:.2f} {unit}".rstrip()

"""sfumato assess"""

import json
from pathlib import Path
from typing import Any

import click

from sfumato.cli.options import PATH, as_json, check_file, option, print_json, seed_option, working

_EXAMPLE = "\b\nExample: sfumato assess runs/coin --out assessment.html"
_ENDINGS = (".html", ".md", ".json")


@click.command("assess", epilog=_EXAMPLE)
@click.argument("run", metavar="RUN", type=PATH)
@option("--out FILE", "Where to write it: a file that ends in .html, .md or .json.", required=True)
@option("--data DATA", "Assess on all of this data instead of the run's own.")
@option("--sensitive FILE", "A table of sensitive places, one latitude and longitude per row.")
@option(
    "--sensitive-m METRES",
    "How near a true place must be to count as at a sensitive one [default: 100].",
)
@seed_option("sampled reports")
@as_json
def command(run: Path, out: Path, as_json: bool, **options: Any) -> None:
    """Write a two-page risk assessment of a run, for those who approve it; no location of the data.

    The headings are those of Opinion 05/2014 (singling out, linkability, inference), ISO/IEC 27559
    and the ICO's motivated intruder.  Each row has the adversary in words, a figure, the same for a
    blind guess and for the truth, and the proven best.  It gives no verdict; review date and
    custody of the key are left for you to fill in.
    """
    from sfumato.errors import require
    from sfumato.files import write_text
    from sfumato.study.assess import assess

    check_file("out", out, *_ENDINGS)
    if out.suffix.lower() != ".json":
        require("report", bring="report")
    with working(f"assessing {run}") as tell:
        assessment = assess(run, progress=tell, **options)
    if out.suffix.lower() == ".json":
        text = json.dumps(assessment.as_dict(), indent=2) + "\n"
    else:
        from sfumato.render.assessment import assessment_html, assessment_markdown

        html = out.suffix.lower() == ".html"
        text = assessment_html(assessment) if html else assessment_markdown(assessment)
    write_text(out, text)
    if as_json:
        print_json(assessment.as_dict())
    else:
        known = sum(risk.figure is not None for risk in assessment.risks)
        rest = len(assessment.risks) - known
        click.echo(
            f"{out}: what {known} adversaries can find out, without a place of the data"
            + f"; {rest} more are not assessed" * (rest > 0)
        )
        if not assessment.proved_best and options["data"] is None:
            click.echo(
                f"hint: the column 'proven best' is empty; sfumato certify {run} proves one",
                err=True,
            )

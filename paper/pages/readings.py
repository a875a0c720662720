"""readings.md, made from readings.json.

python -m paper.pages.readings
"""

from pathlib import Path

from paper.experiments import RESULTS
from paper.pages.template import filled
from paper.tables import table
from sfumato.files import read_json, write_text

_SMALL = 0.025  # readings that move no figure as far are told in a sentence


def page(folder: Path = RESULTS) -> str:
    """What each reading moves."""
    document = read_json(folder / "readings.json", what="the figures of the readings")
    rows, small = [], []
    for name, found in document["readings"].items():
        most = max(one["moved"] for one in found.values())
        if 0 < most < _SMALL:
            small.append(f"{name} {most:.3f}")
            continue
        cells = (
            "{largest:.3f}; {moved:.3f}".format(**found[number]) if number in found else "-"
            for number in "1234"
        )
        rows.append([name, *cells])
    heads = ["reading", *(f"experiment {number}" for number in "1234")]
    return filled("readings.md", readings=table(heads, rows)[:-1], small="; ".join(small))


def main(folder: Path = RESULTS) -> None:
    write_text(folder / "readings.md", page(folder))


if __name__ == "__main__":
    main()

"""readings.md, made from readings.json.

python -m paper.pages.readings
"""

from pathlib import Path

from paper.experiments import RESULTS
from paper.pages.template import filled
from paper.tables import table
from sfumato.files import read_json, write_text


def page(folder: Path = RESULTS) -> str:
    """What each reading moves."""
    document = read_json(folder / "readings.json", what="the figures of the readings")
    rows = [
        [
            name,
            *(
                "{largest:.3f}; {moved:.3f}".format(**found[number]) if number in found else "-"
                for number in "1234"
            ),
        ]
        for name, found in document["readings"].items()
    ]
    heads = ["reading", *(f"experiment {number}" for number in "1234")]
    return filled("readings.md", readings=table(heads, rows)[:-1])


def main(folder: Path = RESULTS) -> None:
    write_text(folder / "readings.md", page(folder))


if __name__ == "__main__":
    main()

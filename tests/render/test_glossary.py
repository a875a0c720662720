"""The headings of the report and of the studio lead to words that explain them."""

import re
from importlib.resources import files

from sfumato.render.glossary import STUDIO_TERMS, TERMS


def _texts(package: str, folder: str, ending: str) -> str:
    found = (files(package) / folder).iterdir()
    return "\n".join(path.read_text("utf-8") for path in found if path.name.endswith(ending))


def test_every_term_has_a_name_and_whole_sentences() -> None:
    for name, text in STUDIO_TERMS.values():
        assert name[0].isupper() and text.endswith(".") and "  " not in text


def test_the_headings_of_the_report_lead_to_terms_that_there_are() -> None:
    asked = re.findall(r'term\("about-([a-z-]+)"', _texts("sfumato.render", "templates", ".j2"))
    assert set(asked) == set(TERMS)  # and every term is led to


def test_the_headings_of_the_studio_have_terms() -> None:
    page = _texts("sfumato.studio", "static", "panel-compare.js")
    heads = re.search(r"HEADS = \[(.*?)\n\];", page, re.DOTALL)
    assert heads is not None
    asked = re.findall(r'\[\s*"([a-z-]+)",', heads[1])
    assert len(asked) >= 5 and set(asked) <= set(STUDIO_TERMS), set(asked) - set(STUDIO_TERMS)


def test_the_studio_says_what_the_report_says() -> None:
    assert TERMS.items() <= STUDIO_TERMS.items()

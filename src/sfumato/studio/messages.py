"""Sentences of the library as the page says them."""

_IN_PAGE = {
    "select a smaller area with --square LAT,LON,METRES": "choose a smaller area under Region",
    "with --top-users": "under Users",
    "--square": "Region",
}


def in_page(sentence: str) -> str:
    """The same sentence where it names options of the command line that the page has fields for.

    >>> in_page("ask for fewer, or keep only more frequent users with --top-users")
    'ask for fewer, or keep only more frequent users under Users'
    """
    for option, field in _IN_PAGE.items():
        sentence = sentence.replace(option, field)
    return sentence

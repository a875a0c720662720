"""Names that users chose: hostile input, made safe to show."""

from unicodedata import category

# control characters, invisible and direction-changing marks, halves of surrogate pairs, line ends
_UNSAFE = ("Cc", "Cf", "Cs", "Zl", "Zp")
_JOINERS = "\u200c\u200d"  # Persian, Indic scripts and emoji are spelt with these


def printable(name: str) -> str:
    r"""A name with all that a terminal would obey written out as escapes.

    Every text that goes to a terminal, a log or a figure and holds a user's, a column's or a
    file's name passes through here (`render.text` calls it for each cell of a table); the HTML
    templates call it for everything they show.  Different names stay different, but for names
    that spell such an escape out themselves.

    >>> print(printable("\x1b[31mAnna\u202e"))
    \x1b[31mAnna\u202e
    >>> print(printable("Zoë 日本"))
    Zoë 日本
    """
    if name.isascii() and name.isprintable():
        return name
    return "".join(
        char.encode("unicode_escape").decode()
        if category(char) in _UNSAFE and char not in _JOINERS
        else char
        for char in name
    )

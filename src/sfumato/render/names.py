"""Names that users chose: hostile input, made safe to show."""

import csv
import io
import shlex
from collections.abc import Iterable
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


def listed(names: Iterable[str]) -> str:
    r"""Names as one option takes them, with quotes about those that hold a comma or a line end.

    >>> print(listed(["plain", "Paris, France"]))
    plain,"Paris, France"
    """
    line = io.StringIO(newline="")
    csv.writer(line, lineterminator="\r\n").writerow(names)  # these two letters are quoted
    return line.getvalue().removesuffix("\r\n")


def shell_word(word: str) -> str:
    r"""A word of a command that is shown: quoted for a shell, and one that a terminal would obey
    written out as escapes that bash and zsh read back.

    >>> print(shell_word("it's"), shell_word("\x1b[2Jred\n"))
    'it'"'"'s' $'\u001b[2Jred\u000a'
    """
    if printable(word) == word:
        return shlex.quote(word)
    return "$'" + "".join(map(_in_ansi_quotes, word)) + "'"


def _in_ansi_quotes(char: str) -> str:
    if char in "\\'":
        return f"\\{char}"
    if printable(char) == char:
        return char
    if "\udc80" <= char <= "\udcff":  # a byte of a file's name that is no text
        return f"\\x{ord(char) - 0xDC00:02x}"
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"

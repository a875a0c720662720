"""Columns that name the user one to one beside the column that does: e-mail addresses, numbers of
devices, names; also within a longer text.  And what links rows of one user without a name."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from itertools import compress, pairwise
from operator import contains, itemgetter
from typing import Any

import numpy as np

_SURE = 20  # users, and repeated rows, from which on a column is refused before the last row
_REPEATS = 8  # repeated rows below which nothing is said
_OTHERS = 0.05  # of the users, may have the commonest value of another
_AGREE = 0.64  # chance that two rows of a user agree, if a fifth of the rows hold fillers
_AGREE_SURELY = 0.9
_HOPELESS = 0.3
_USERS, _VALUES = 500, 3  # of a part, and of each of its users, that count for the whole folder
_STAY = 64  # values of a user that stay where parts are added
_BEYOND, _ALWAYS = 0.1, 0.9  # of neighbouring rows, more than by chance; of few users
_OF_OTHERS = 0.3  # of the rows of other users that have a value by chance, where it links rows
_WITHIN = 0.5  # of a block's rows, whose texts hold their user's name, before these are counted
_BY_CHANCE = 0.2  # of a user's rows, on average, that hold the next user's
_LONGEST_ZEROS = 32  # before a number
_LONG_NAME = 4  # letters of a name that stands in a text hardly by chance
_NAMES_WITHIN = "\0"  # behind the name of a column whose texts are counted by these alone
_OTHER = ""  # for the rows of a user with other values; an empty value is none

_Counts = dict[Any, dict[Any, int]]  # a Counter takes ten times as long to make


class OneToOne:
    """Which columns go one to one with the users, over the blocks of a table.

    Of each column the values of each user are counted.  Where two rows of a user seldom agree, as
    in most columns, the counts are forgotten, and it is counted anew when the rows have doubled: a
    column may begin to name users later.  A value that names its user may be missing in some rows,
    or be replaced there by something else.  Texts that hold their user's name are counted a second
    time, by the name alone.
    """

    def __init__(self) -> None:
        self._counts: dict[str, _Counts] = {}
        self._rows: Counter[str] = Counter()
        self._due: Counter[str] = Counter()  # rows at which a column is judged before the last row
        self._sure: set[str] = set()
        self._asleep: set[str] = set()  # not counted until it is due

    def note(self, users: Sequence[Any], columns: Mapping[str, Sequence[Any]]) -> None:
        """Take in some rows: whose they are, and what stands in other columns."""
        names = _Names(users)
        for name, values in columns.items():
            self._count(name, users, values)
            within = names.within(values)
            if within is not None:
                self._count(name + _NAMES_WITHIN, users, within)

    def _count(self, name: str, users: Sequence[Any], values: Sequence[Any]) -> None:
        if name in self._asleep and self._rows[name] < self._due[name]:
            self._rows[name] += len(users)
            return
        self._asleep.discard(name)
        counts = self._counts.setdefault(name, {})
        for (user, value), count in _pairs(users, values).items():
            if not (_empty(user) or _empty(value)):
                own = counts.setdefault(user, {})
                own[value] = own.get(value, 0) + count
        self._judge(name, rows=len(users), forget=True)

    def _judge(self, name: str, *, rows: int, forget: bool) -> None:
        """What is certain of a column; whenever its rows have doubled, as it takes time."""
        self._rows[name] += rows
        if self._rows[name] < self._due[name]:
            return
        self._due[name] = 2 * self._rows[name]
        again = _again(self._counts[name])
        if forget and len(again) >= _SURE and _agreement(again) < _HOPELESS:
            self._asleep.add(name)
            self._counts[name] = {}
        elif _names(self._counts[name], sure=True):
            self._sure.add(name)

    def naming(self, *, sure: bool = False) -> list[str]:
        """The columns that do by the rows so far; `sure`: those of which later rows change
        nothing."""
        named = [
            name.removesuffix(_NAMES_WITHIN)
            for name, counts in self._counts.items()
            if name in self._sure or (not sure and _names(counts, sure=False))
        ]
        return [*dict.fromkeys(named)]

    def digested(self) -> "OneToOne":
        """What can be kept and added to that of other parts: the commonest values of some users,
        the same in every part, and all of it as digests."""
        users = {user for counts in self._counts.values() for user in counts}
        chosen = sorted(((_digest(user), user) for user in users), key=itemgetter(0))[:_USERS]
        made = OneToOne()
        for name, counts in self._counts.items():
            made._counts[name] = {
                digest: _few(counts[user]) for digest, user in chosen if user in counts
            }
        return made

    def add(self, other: "OneToOne") -> None:
        """Take in what was counted in other rows; of each user some values stay, of equally common
        ones the newest."""
        for name, counts in other._counts.items():
            into = self._counts.setdefault(name, {})
            for user, values in counts.items():
                known = into.setdefault(user, {})
                for value, count in values.items():
                    known[value] = known.get(value, 0) + count
                for value, count in sorted(known.items(), key=itemgetter(1))[:-_STAY]:
                    if value != _OTHER:
                        known[_OTHER] = known.get(_OTHER, 0) + count
                        del known[value]
            rows = sum(sum(values.values()) for values in counts.values())
            self._judge(name, rows=rows, forget=False)

    def as_dict(self) -> dict[str, _Counts]:
        """For JSON, when it is digested."""
        return self._counts

    @classmethod
    def from_dict(cls, stored: dict[str, dict[str, dict[str, int]]]) -> "OneToOne":
        """Build what `as_dict` took apart."""
        made = cls()
        for name, counts in stored.items():
            made._counts[name] = {user: dict(values) for user, values in counts.items()}
        return made


class _Names:
    """The names of the users of some rows, as they may stand within texts."""

    def __init__(self, users: Sequence[Any]) -> None:
        self._users = users

    @cached_property
    def _own(self) -> list[str]:
        return [_NOWHERE if _empty(user) else _written(user) for user in self._users]

    @cached_property
    def _next(self) -> list[str] | None:
        """For each row the name of another user; None where there is but one."""
        known = dict.fromkeys(self._own)
        known.pop(_NOWHERE, None)
        several = dict(zip(known, [*known][1:] + [*known][:1], strict=True))
        if len(several) < 2:
            return None
        return [several.get(name, _NOWHERE) for name in self._own]

    def within(self, values: Sequence[Any]) -> list[Any] | None:
        """The values of a column, but each text that holds its user's name as that user; None
        unless most do and few hold another's."""
        if str not in {*map(type, values)}:
            return None
        texts = [value.lower() if type(value) is str else "" for value in values]
        if sum(map(contains, texts, self._own)) < _WITHIN * len(texts):
            return None
        own = [*map(_holds, texts, self._own)]
        if sum(own) < _WITHIN * len(texts):
            return None
        if self._next is None:
            by_chance = max(map(len, self._own)) < _LONG_NAME
        else:
            by_chance = self._per_user(map(_holds, texts, self._next)) > _BY_CHANCE
        if by_chance:
            return None
        return [
            user if there else value
            for there, user, value in zip(own, self._users, values, strict=True)
        ]

    def _per_user(self, holds: Iterable[bool]) -> float:
        """The share of rows that hold something, on average over users: one with most rows does not
        outweigh the others."""
        rows, hits = Counter(self._own), Counter(compress(self._own, holds))
        return sum(hits[name] / count for name, count in rows.items()) / len(rows)


_NOWHERE = "\0"


def _written(user: Any) -> str:
    whole = isinstance(user, float) and user.is_integer()
    return str(int(user) if whole else user).lower()


def _holds(text: str, name: str) -> bool:
    """Whether a name stands in a text, not as a part of a longer word or number.

    >>> _holds("https://s/u17/1", "u17"), _holds("id00017", "17"), _holds("u170", "17")
    (True, True, False)
    """
    start = text.find(name)
    while start >= 0:
        end = start + len(name)
        before = text[max(0, start - _LONGEST_ZEROS) : start]
        before = before.rstrip("0") if name[0].isdigit() else before
        if not (_joined(before[-1:], name[0]) or _joined(name[-1], text[end : end + 1])):
            return True
        start = text.find(name, start + 1)
    return False


def _joined(first: str, second: str) -> bool:
    """Whether two letters, or two digits, belong to one word or number."""
    return (first.isalpha() and second.isalpha()) or (first.isdigit() and second.isdigit())


def together(users: Sequence[Any]) -> bool:
    """Whether rows of one user stand together, far more often than in any order.

    >>> together(["ann"] * 8 + ["bob"] * 8), together(["ann", "bob"] * 8)
    (True, False)
    """
    pairs = len(users) - 1
    if pairs < _REPEATS:
        return False
    same = sum(user == other for user, other in pairwise(users)) / pairs
    by_chance = sum((count / len(users)) ** 2 for count in Counter(users).values())
    return same > min(2 * by_chance + _BEYOND, _ALWAYS)


def linking(users: Sequence[Any], columns: Mapping[str, Sequence[Any]]) -> list[str]:
    """Columns in which rows with the same value are of one user, far more often than by chance: the
    number of a trace or of a session links them, though each user has several.

    >>> users = ["ann", "bob"] * 12
    >>> linking(users, {"trace": [f"{user}{at // 8}" for at, user in enumerate(users)]})
    ['trace']
    >>> linking(users, {"day": [at // 8 for at in range(24)]})
    []
    """
    by_chance = max(Counter(map(_hashable, users)).values(), default=0) / max(1, len(users))
    found = []
    for name, values in columns.items():
        rows: dict[Any, list[int]] = {}  # of each value, by its users
        for (user, value), count in _pairs(users, values).items():
            if not (_empty(user) or _empty(value)):
                rows.setdefault(value, []).append(count)
        repeated = sum(map(sum, rows.values())) - len(rows)
        of_one = sum(map(max, rows.values())) - len(rows)
        others = repeated - of_one
        if repeated >= _REPEATS and others < _OF_OTHERS * (1 - by_chance) * repeated:
            found.append(name)
    return found


def sorted_by(values: np.ndarray) -> bool:
    """Whether rows only rise or only fall in a number, many times.

    >>> sorted_by(np.arange(30.0)), sorted_by(np.array([1.0, 2.0, 2.0]))
    (True, False)
    """
    steps = np.diff(values[np.isfinite(values)])
    return bool(np.sum(steps != 0) >= _SURE and (np.all(steps >= 0) or np.all(steps <= 0)))


def _names(counts: _Counts, *, sure: bool) -> bool:
    """Whether a user's rows agree, mostly, on a value on which no other's do."""
    again = _again(counts)
    among = again if len(again) > 1 else counts
    least, repeats, agree = (_SURE, _SURE, _AGREE_SURELY) if sure else (2, _REPEATS, _AGREE)
    if len(among) < least or _agreement(again) < agree:
        return False
    owners = Counter(value for values in counts.values() for value in values)
    owners[_OTHER] = len(counts) + 1
    commonest = {
        max(values, key=lambda value: (value != _OTHER, values[value], -owners[value]))
        for values in among.values()
    }
    seen_again = sum(
        count - 1
        for values in counts.values()
        for value, count in values.items()
        if value != _OTHER
    )
    return seen_again >= repeats and len(commonest) >= (1 - _OTHERS) * len(among)


def _again(counts: _Counts) -> _Counts:
    """Users of more than one row."""
    return {
        user: values
        for user, values in counts.items()
        if len(values) > 1 or sum(values.values()) > 1
    }


def _agreement(again: _Counts) -> float:
    """The chance that two rows of a user hold the same value, on average over users."""
    total = 0.0
    for values in again.values():
        rows = sum(values.values())
        same = sum(count * (count - 1) for value, count in values.items() if value != _OTHER)
        total += same / (rows * (rows - 1))
    return total / max(1, len(again))


def _few(values: dict[Any, int]) -> dict[Any, int]:
    few = {_digest(value): count for value, count in Counter(values).most_common(_VALUES)}
    if others := sum(values.values()) - sum(few.values()):
        few[_OTHER] = others
    return few


def _digest(value: Any) -> str:
    return blake2b(str(value).encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()


def _empty(value: Any) -> bool:
    return value is None or value == "" or value != value  # NaN


def _pairs(users: Sequence[Any], values: Sequence[Any]) -> Counter[tuple[Any, Any]]:
    """How often each user has each value."""
    try:
        return Counter(zip(users, values, strict=True))
    except TypeError:  # lists and the like
        return Counter(zip(map(_hashable, users), map(_hashable, values), strict=True))


def _hashable(value: Any) -> Any:
    return value if isinstance(value, (str, int, float, bytes)) or value is None else repr(value)

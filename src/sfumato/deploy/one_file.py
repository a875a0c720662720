"""One file: read in blocks, protect, write, name when it is whole."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar

import numpy as np

from sfumato.data.read import USUAL
from sfumato.deploy.columns import Columns, find_columns, has_place, users
from sfumato.deploy.coordinates import clamped, truths
from sfumato.deploy.csv_table import CsvTable
from sfumato.deploy.geometry import find_geometry
from sfumato.deploy.known import KnownUsers
from sfumato.deploy.naming import OneToOne, linking, sorted_by, together
from sfumato.deploy.parquet_table import ParquetTable
from sfumato.deploy.protect import POLICIES, Outside, protect
from sfumato.deploy.pseudonym import Pseudonym
from sfumato.deploy.recognise import Looked, telling
from sfumato.deploy.release import NEW_PLACES, NewPlaces, Release
from sfumato.deploy.spent import Ledger
from sfumato.deploy.verify import Noted, Written
from sfumato.errors import DataError, arg
from sfumato.files import file_hash, written_beside
from sfumato.mechanism.chance import Chance, Rows, Secure, Sticky
from sfumato.render.names import listed, shell_word

_SHOWN = 5  # rows named in a refusal
_LOOKED_AT = 5_000  # rows of the first block in which columns that tell the place are looked for
_LATER = 400  # rows of a later block
_APART = 4_096  # rows from one such block to the next, at least, once the first rows are looked at:
# a block of a wide table holds some hundred, and a thousand columns passed at 60 rows per second
_FORESEEN = 1_000_000  # rows of a file in which columns to drop are looked for before it is begun
_AT_ONCE = 8  # later blocks that are looked at together
_STAYS = 31 << 20  # bytes; the C library lets at most 32 MB stay
ENOUGH_ROWS = 1000  # with fewer, a table's loss is not said: it would tell about single rows
_TIMES = USUAL["time"]
ENDINGS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz", ".parquet", ".pq")


@dataclass(frozen=True)
class Policy:
    """What is asked for beside the mechanism.

    `drop` are columns to leave out; `keep` are columns to let pass although they name the user or
    tell the place; `pseudonym` gives users new names; `new_places` is the rule for places that a
    mechanism of given places has no row for; `over_budget` lets a table pass whose reports
    cost more than the run's budget.
    """

    lat: str | None = None
    lon: str | None = None
    user: str | None = None
    time: str | None = None
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    pseudonym: Pseudonym | None = None
    outside: Outside = "refuse"
    new_places: NewPlaces = "average"
    over_budget: bool = False

    def __post_init__(self) -> None:
        for name, known in (("outside", POLICIES), ("new_places", NEW_PLACES)):
            given = getattr(self, name)
            if given not in known:
                raise DataError(f"{arg(name)} is one of {', '.join(known)}; got {given!r}")
        if not (self.pseudonym is None or isinstance(self.pseudonym, Pseudonym)):
            raise DataError(
                f"{arg('pseudonym')} is a Pseudonym, of a key and a period; got a"
                f" {type(self.pseudonym).__name__}"
            )

    @classmethod
    def of(cls, **options: Any) -> "Policy":
        """From what a caller gives: one column to drop or keep may be a text alone."""
        known = [option.name for option in fields(cls)]
        unknown = sorted(options.keys() - set(known))
        if unknown:
            raise TypeError(f"there is no argument '{unknown[0]}'; expected {', '.join(known)}")
        for name in {"drop", "keep"} & options.keys():
            given = options[name]
            options[name] = (given,) if isinstance(given, str) else tuple(given)
        return cls(**options)

    def words(self) -> dict[str, Any]:
        """Plain values that tell policies apart by what they write, without a key."""
        named = None if self.pseudonym is None else self.pseudonym.words()
        words = {**asdict(replace(self, pseudonym=None)), "pseudonym": named}
        del words["over_budget"]  # it decides whether the file gets its name, not what is in it
        return words


@dataclass(frozen=True)
class Protection:
    """What tables are answered with: a release, where its chance comes from, and what else is asked
    for.  Rows of others than the users `known` are counted; None for none."""

    release: Release
    chance: Chance
    policy: Policy
    known: KnownUsers | None = None

    def as_parts(self) -> tuple[bytes, dict[str, Any]]:
        """The mechanism's file and the rest as plain values, for another process.  Keys are in
        it."""
        mechanism, release = self.release.as_parts()
        named = self.policy.pseudonym
        return mechanism, {
            "release": release,
            "policy": asdict(replace(self.policy, pseudonym=None)),
            "pseudonym": None if named is None else [named.key.hex(), named.period],
            "kept": self.chance.as_dict() if isinstance(self.chance, Sticky) else None,
            "known": None if self.known is None else list(self.known.names),
        }

    @classmethod
    def from_parts(cls, mechanism: bytes, rest: dict[str, Any]) -> "Protection":
        """Build what `as_parts` took apart."""
        policy, named, kept = dict(rest["policy"]), rest["pseudonym"], rest["kept"]
        known = rest["known"]
        if named is not None:
            policy["pseudonym"] = Pseudonym(bytes.fromhex(named[0]), named[1])
        return cls(
            Release.from_parts(mechanism, rest["release"]),
            Secure() if kept is None else Sticky.from_dict(kept),
            Policy.of(**policy),
            None if known is None else KnownUsers(tuple(known)),
        )


@dataclass
class Tally:
    """Counts of a file, or of several; no place, and values of rows only to compare `users`, which
    are digests where they are kept."""

    rows_in: int = 0
    rows_out: int = 0
    without_place: int = 0
    outside: int = 0
    of_others: int | None = None  # rows of users whom the run does not know, where this is known
    losses: Ledger = field(default_factory=Ledger)
    betraying: list[str] = field(default_factory=list)
    users: OneToOne = field(default_factory=OneToOne)
    together: bool = False  # the order of the rows tells which are of one user
    linking: list[str] = field(default_factory=list)  # columns that do
    by_place: bool = False  # it follows a coordinate
    source_hash: str = ""  # of the part that was read
    target_hash: str = ""  # of what was written

    def add(self, other: "Tally") -> None:
        """Take another file's counts in."""
        for name in ("rows_in", "rows_out", "without_place", "outside"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if other.of_others is not None:
            self.of_others = (self.of_others or 0) + other.of_others
        self.losses.join(other.losses)
        self.betraying = sorted({*self.betraying, *other.betraying})
        self.users.add(other.users)
        self.together |= other.together
        self.linking = sorted({*self.linking, *other.linking})
        self.by_place |= other.by_place

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        counted = {"losses": self.losses.as_dict(), "users": self.users.as_dict()}
        return {**vars(self), **counted}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> "Tally":
        """Build what `as_dict` took apart."""
        losses, users = Ledger.from_dict(stored["losses"]), OneToOne.from_dict(stored["users"])
        return cls(**{**stored, "losses": losses, "users": users})


class Block(Protocol):
    """Some consecutive rows of a table.  Errors name rows, never values."""

    def __len__(self) -> int: ...

    def numbers(self, name: str) -> np.ndarray:
        """A column as numbers, NaN where it is empty."""

    def text(self, name: str) -> np.ndarray:
        """A column as text, a value in each row."""

    def seconds(self, name: str) -> np.ndarray:
        """A column of times as whole seconds since 1970."""

    def values(self, name: str, rows: np.ndarray) -> list[Any]:
        """The values of a column in some rows, as they are."""

    def column(self, name: str) -> Any:
        """A column as Arrow has it; the text of a file as bytes."""


_Block = TypeVar("_Block", bound=Block)
_Written = TypeVar("_Written", bound=Block, contravariant=True)


class Sink(Protocol[_Written]):
    """The file that is being written, with notes for reading it back."""

    noted: Noted

    def write(
        self,
        block: _Written,
        first: np.ndarray,
        second: np.ndarray,
        keep: np.ndarray | None,
        users: np.ndarray | None = None,
    ) -> None:
        """One block with its new coordinates; `keep` says which rows go out, None for all; `users`
        are new names of users."""


class Table(Protocol[_Block]):
    """A kind of file that can be sanitized: read in blocks, written again with two columns
    changed."""

    path: Path
    names: list[str]

    def close(self) -> None:
        """Let go of the file."""

    def blocks(self, *, without: tuple[str, ...] = ()) -> Iterator[_Block]:
        """All rows, in order; the columns `without` need not be read."""

    def sink(
        self, target: IO[bytes], written: Written, *, packed: bool
    ) -> AbstractContextManager[Sink[_Block]]:
        """Write a file of the same kind to `target`; `packed` by gzip, where the kind has that."""

    def read_back(
        self, draft: Path, noted: Noted, written: Written, *, packed: bool, shown: str
    ) -> None:
        """Compare what was written with this file; raises where they differ."""


def is_table(path: Path) -> bool:
    """Whether a name has an ending that can be sanitized."""
    return path.name.lower().endswith(ENDINGS)


def open_table(path: Path) -> Table[Any]:
    """A file by its ending."""
    if not is_table(path):
        raise DataError(
            f"{path.name} has an ending that sfumato does not sanitize; expected one of"
            f" {', '.join(ENDINGS)}"
        )
    if not path.is_file():
        raise DataError(f"there is no file {path.name}; expected a CSV or Parquet file")
    return ParquetTable(path) if path.name.lower().endswith((".parquet", ".pq")) else CsvTable(path)


def _columns_of(table: Table[Any], protection: Protection) -> Columns:
    chance, policy, named = protection.chance, protection.policy, protection.policy.pseudonym
    return find_columns(
        table.names,
        source=table.path.name,
        degrees=protection.release.plane is not None,
        lat=policy.lat,
        lon=policy.lon,
        user=policy.user,
        time=policy.time,
        asks_user=chance.asks_user or named is not None,
        asks_time=chance.asks_time or (named is not None and named.asks_time),
    )


def rows_of_file(
    protection: Protection, source: Path
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The truths in metres, the users and the seconds of all rows of a file, and which of them have
    a place that is answered."""
    table = open_table(source)
    try:
        columns = _columns_of(table, protection)
        truth, users, seconds = [np.empty((0, 2))], [np.empty(0, dtype=object)], [np.empty(0)]
        known = [np.empty(0, dtype=bool)]
        for block in table.blocks():
            first, second = block.numbers(columns.first), block.numbers(columns.second)
            points, apart = _answered(protection, first, second)
            truth.append(points)
            known.append(~apart)
            if columns.user is not None:
                users.append(block.text(columns.user))
            count = len(block)
            seconds.append(np.zeros(count) if columns.time is None else block.seconds(columns.time))
        return (
            np.vstack(truth),
            np.concatenate(users),
            np.concatenate(seconds).astype(np.int64),
            np.concatenate(known),
        )
    finally:
        table.close()


def _answered(
    protection: Protection, first: np.ndarray, second: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The truths that are answered, and which rows are set apart."""
    truth = truths(protection.release, first, second)
    points, outside = truth.points.copy(), truth.outside
    if outside is not None and protection.policy.outside == "clamp":
        points[outside] = clamped(protection.release, first[outside], second[outside])
        outside = None
    masks = [mask for mask in (truth.missing, truth.impossible, outside) if mask is not None]
    return points, np.logical_or.reduce([np.zeros(len(points), dtype=bool), *masks])


def sanitize_file(
    protection: Protection,
    source: Path,
    target: Path,
    *,
    replaces: bool = True,
    before_naming: Callable[[Tally], None] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Tally:
    """Sanitize one file; the target appears under its name only when every row is in it.

    `before_naming` is called with the counts when all is written; without `replaces` a file that
    has the target's name by then is an error.
    """
    table = open_table(source)
    try:
        policy, columns = protection.policy, _columns_of(table, protection)
        _refuse_geometry(table, policy, source=source.name)
        looked = Answers(protection, columns, table.names, source=source.name)
        check_names(
            table.names,
            policy,
            columns,
            source=source.name,
            refused=lambda: _first_refused(table, columns, looked),
        )
        written = Written(
            columns.first,
            columns.second,
            decimals=protection.release.decimals,
            degrees=protection.release.plane is not None,
            without=policy.drop,
            passing=policy.keep,
            user=None if policy.pseudonym is None else columns.user,
        )
        packed = target.name.lower().endswith(".gz")
        with written_beside(target, replaces=replaces) as beside:
            with beside.open("wb") as raw, table.sink(raw, written, packed=packed) as sink:
                tally = _all_blocks(protection, table, columns, sink, progress)
            # Here the file is whole and has no name yet: it is looked at once more.
            table.read_back(beside, sink.noted, written, packed=packed, shown=target.name)
            tally.target_hash = file_hash(beside)
            if before_naming is not None:
                before_naming(tally)
        return tally
    finally:
        table.close()


def _refuse_geometry(table: Table[Any], policy: Policy, *, source: str) -> None:
    """A file whose places stand in a geometry alone."""
    if isinstance(table, ParquetTable) and policy.lat is None and not has_place(table.names):
        geometry = find_geometry(table.schema, source=source, without=policy.drop)
        if geometry is not None:
            raise DataError(
                f"{source} has its places in the geometry '{geometry.column}'; expected columns of"
                " latitude and longitude",
                hint="read it as a table and hand it to sfumato.deploy.report, which replaces"
                " geometries",
            )


def sanitize_part(
    protection: Protection,
    source: Path,
    target: Path,
    *,
    progress: Callable[[int], None] | None = None,
) -> Tally:
    """Sanitize a part of a folder; its counts hold the hash of what was read, by which a job that
    is resumed knows it again."""
    before, content = _stamp(source), file_hash(source)
    tally = sanitize_file(protection, source, target, progress=progress)
    if _stamp(source) != before:
        raise DataError(
            f"{source.name} changed while it was read; sanitize it when it no longer changes"
        )
    tally.source_hash, tally.users = content, tally.users.digested()
    return tally


def _stamp(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def _all_blocks(
    protection: Protection,
    table: Table[Any],
    columns: Columns,
    sink: Sink[Any],
    progress: Callable[[int], None] | None,
) -> Tally:
    # Once an array of this size was freed, memory of smaller ones stays with the process (glibc);
    # else each array of each block is got from the system anew, page by page.
    np.empty(_STAYS, dtype=np.uint8)
    answers = Answers(protection, columns, table.names, source=table.path.name)
    for block in table.blocks(without=answers.unread):
        answer = answers.of(block)
        if answer is not None:
            sink.write(block, answer.first, answer.second, answer.keep, answer.users)
        if progress is not None:
            progress(len(block))
    answers.stop_at_refused()
    return answers.tally


@dataclass(frozen=True)
class Answer:
    """New coordinates of a block's rows, which of them go out (None for all), and new names of
    users where there are any."""

    first: np.ndarray
    second: np.ndarray
    keep: np.ndarray | None
    users: np.ndarray | None


class Answers:
    """The blocks of one table, answered in turn, with what is counted and refused on the way.

    `replaced` are further columns that hold the place and are replaced by the report's.
    """

    def __init__(
        self,
        protection: Protection,
        columns: Columns,
        names: list[str],
        *,
        source: str,
        replaced: tuple[str, ...] = (),
    ) -> None:
        self.protection, self._policy = protection, protection.policy
        self._columns, self._names, self._source = columns, names, source
        self._replaced = replaced
        self._known = _users_with_budgets(protection, names)
        self._user = columns.user or next(iter(users(names, protection.policy.user)), None)
        self.tally = Tally()
        self._outside = Refused("places outside the mechanism's region")
        self._impossible = Refused("no possible coordinates")
        self._new = Refused("places that the mechanism was not made for")
        self._look_from = 0  # rows before the next block that is looked at
        self._looked: list[Looked] = []  # rows of later blocks, not looked at yet

    @property
    def unread(self) -> tuple[str, ...]:
        """Columns that are left out and not needed."""
        needed = {self._columns.time, self._columns.row, self._user} - {None}
        if self._known is not None:
            needed |= {self._known.column}
        return tuple(name for name in self._policy.drop if name not in needed)

    def of(self, block: Block) -> Answer | None:
        """The answer to a block; None once a row was refused, as nothing goes out then."""
        columns, policy, tally = self._columns, self._policy, self.tally
        first, second = block.numbers(columns.first), block.numbers(columns.second)
        if tally.rows_in < _LOOKED_AT or tally.rows_in >= self._look_from:
            self._look_at(block, first, second)
            self._look_from = tally.rows_in + _APART
        if not tally.rows_in or len(self._looked) == _AT_ONCE:
            refuse_columns(self._source, [], tally.users.naming(sure=True), self._telling())
        if not tally.rows_in:
            tally.by_place = sorted_by(first) or sorted_by(second)
        if not tally.rows_in and self._user in policy.drop:
            few = np.arange(min(len(block), _LOOKED_AT))
            tally.together = together(block.values(self._user, few))
        self._count_others(block)
        rows = Rows(
            users=block.text(columns.user) if columns.user is not None else None,
            seconds=block.seconds(columns.time) if columns.time is not None else None,
            names=block.text(columns.row) if columns.row is not None else None,
        )
        release, chance = self.protection.release, self.protection.chance
        reports = protect(release, first, second, chance=chance, rows=rows, outside=policy.outside)
        self._impossible.note(reports.impossible, tally.rows_in)
        self._new.note(reports.new, tally.rows_in)
        if policy.outside == "refuse":
            self._outside.note(reports.outside, tally.rows_in)
        keep = None
        # also where a block loses no row: it may share a dictionary with one that does
        if policy.outside == "drop":
            keep = np.ones(len(block), dtype=bool) if reports.outside is None else ~reports.outside
        tally.rows_in += len(block)
        tally.rows_out += len(block) if keep is None else int(keep.sum())
        tally.without_place += 0 if reports.missing is None else int(reports.missing.sum())
        tally.outside += 0 if reports.outside is None else int(reports.outside.sum())
        counted = reports.counted
        tally.losses.add(
            reports.draw[counted],
            reports.cost[counted],
            None if self._known is None else self._known.of(block)[counted],
        )
        if self._outside.count or self._impossible.count or self._new.count:
            return None
        named = None if policy.pseudonym is None else policy.pseudonym.of(rows)
        return Answer(reports.first, reports.second, keep, named)

    def stop_at_refused(self, *, whole: bool = True) -> None:
        """Raise for the rows that were refused, if any, and where this is the `whole` table for
        columns that are seen to name the user only by all of it."""
        naming = self.naming if whole else self.tally.users.naming(sure=True)
        refuse_columns(self._source, [], naming, self._telling())
        self._impossible.raise_for(
            self._source,
            self.tally.rows_in,
            "expected degrees (or metres): remove or repair these rows",
            hint=None,
        )
        self._outside.raise_for(
            self._source,
            self.tally.rows_in,
            "say what to do with them",
            hint=f"{arg('outside')} drop, laplace or clamp; sfumato sanitize -h explains",
        )
        self._new.raise_for(
            self._source,
            self.tally.rows_in,
            "solve again for places to come",
            hint=f"{arg('new_places')} nearest answers them as the nearest known place, which hides"
            " less than planar Laplace noise",
        )

    @property
    def naming(self) -> list[str]:
        """Columns that name the user one to one, by the rows so far."""
        return self.tally.users.naming()

    def telling(self, block: Block, first: np.ndarray, second: np.ndarray) -> dict[str, str]:
        """Columns of a block that tell the place, each with how, unless somebody said to keep
        them."""
        self._look_at(block, first, second)
        return self._telling()

    def _count_others(self, block: Block) -> None:
        """Take in how many rows are of users whom the run does not know."""
        known = self.protection.known
        if known is None or self._user is None:
            return
        others = known.others(block.column(self._user))
        if others is not None:
            self.tally.of_others = (self.tally.of_others or 0) + others

    def _look_at(self, block: Block, first: np.ndarray, second: np.ndarray) -> None:
        """Take some rows of a block, in which columns that tell the place or name the user are
        looked for."""
        columns, policy = self._columns, self._policy
        apart = {
            columns.first,
            columns.second,
            *self._replaced,
            *policy.drop,
            *users(self._names, policy.user),
        }
        if policy.pseudonym is not None:
            apart |= {columns.user}  # type: ignore[arg-type]
        count = min(len(block), _LATER if self.tally.rows_in else _LOOKED_AT)
        rows = np.unique(np.linspace(0, len(block) - 1, count).astype(int))
        looked = {name: block.values(name, rows) for name in self._names if name not in apart}
        around = tuple(
            axis[np.clip(rows + step, 0, len(block) - 1)]
            for step in (-1, 1)
            for axis in (first, second)
        )
        time = columns.time or next((name for name in self._names if name.lower() in _TIMES), None)
        times = () if time is None else block.values(time, rows)
        self._looked.append(Looked(looked, first[rows], second[rows], around, times))
        if self._user is not None and looked:
            said = (*users(self._names, policy.user), *policy.keep)
            others = {name: values for name, values in looked.items() if name not in said}
            whose = block.values(self._user, rows)
            self.tally.users.note(whose, others)
            if not self.tally.rows_in and self._user in policy.drop:
                self.tally.linking = linking(whose, others)

    def _telling(self) -> dict[str, str]:
        """The same of all blocks of which rows were taken and not looked at yet."""
        looked, self._looked = self._looked, []
        release, keep = self.protection.release, self._policy.keep
        columns = telling(looked, degrees=release.plane is not None, cell_m=release.grid.cell_m)
        kept = (name for name in columns if name in keep)
        self.tally.betraying = sorted({*self.tally.betraying, *kept})
        return {name: how for name, how in columns.items() if name not in keep}


def columns_to_drop(release: Release, policy: Policy, source: Path) -> tuple[str, ...]:
    """The columns of a file that would be refused: those of users, those that name them one to one
    and those that tell the place, by its first million rows."""
    table = open_table(source)
    try:
        protection = Protection(release, Secure(), policy)
        columns = _columns_of(table, protection)
        answers = Answers(protection, columns, table.names, source=source.name)
        telling: dict[str, str] = {}
        for block in table.blocks():
            first, second = block.numbers(columns.first), block.numbers(columns.second)
            telling |= answers.telling(block, first, second)
            answers.tally.rows_in += len(block)
            if answers.tally.rows_in >= _FORESEEN:
                break
        named = (*users(table.names, policy.user), *answers.naming, *telling)
        return tuple(dict.fromkeys(name for name in named if name not in policy.drop))
    finally:
        table.close()


def _first_refused(
    table: Table[Any], columns: Columns, answers: Answers
) -> tuple[list[str], dict[str, str]]:
    """The columns that name the user, and those that tell the place, in a table's first block."""
    for block in table.blocks():
        first, second = block.numbers(columns.first), block.numbers(columns.second)
        telling = answers.telling(block, first, second)
        return answers.naming, telling
    return [], {}


def refuse_columns(
    source: str, naming: list[str], one_to_one: list[str], telling: dict[str, str]
) -> None:
    """Stop at columns that name the user, by their own name or `one_to_one`, or tell the place, all
    of them in one sentence."""
    if not (naming or one_to_one or telling):
        return
    shown = [f"'{name}'" for name in naming]
    shown += [
        f"'{name}' (one value for each user, or the user's name within)" for name in one_to_one
    ]
    parts = []
    if shown:
        parts.append(
            f"names the user in its column{'s' * (len(shown) > 1)} {', '.join(shown)}, which is"
            " what the mechanism hides"
        )
    if telling:
        columns = ", ".join(f"'{name}' ({how})" for name, how in telling.items())
        parts.append(f"reveals the place in other columns: {columns}")
    names = shell_word(listed((*naming, *one_to_one, *telling)))
    new = f", give new names to '{naming[0]}' with {arg('pseudonym')}" if naming else ""
    raise DataError(
        f"{source} {', and '.join(parts)}; say what to do with {'each' if ',' in names else 'it'}",
        hint=f"leave out with {arg('drop')} {names}{new}, or let pass with {arg('keep')} {names}",
    )


@dataclass(frozen=True)
class _UsersWithBudgets:
    """The column that names users, and the numbers of those who have budgets of their own."""

    column: str
    numbers: dict[str, int]

    def of(self, block: Block) -> np.ndarray:
        """The number of each row's user, -1 for others."""
        names = block.values(self.column, np.arange(len(block)))
        return np.array([self.numbers.get(str(name), -1) for name in names], dtype=np.int64)


def _users_with_budgets(protection: Protection, names: list[str]) -> _UsersWithBudgets | None:
    """None where nobody has a budget, or where the table does not say who its rows are of."""
    column, limits = protection.policy.user, protection.release.budget.user_max_loss
    if column is None:
        column = next(iter(users(names, None)), None)
    if not limits or column is None:
        return None
    return _UsersWithBudgets(column, {user: number for number, user in enumerate(limits)})


@dataclass
class Refused:
    """Rows that stop a job: how many, and the first of them by number."""

    why: str
    count: int = 0
    first: list[int] = field(default_factory=list)

    def note(self, mask: np.ndarray | None, start: int) -> None:
        """Take in the rows of a block."""
        if mask is None:
            return
        rows = np.flatnonzero(mask)
        self.count += len(rows)
        self.first += (rows[: _SHOWN - len(self.first)] + start + 1).tolist()

    def raise_for(self, name: str, rows: int, advice: str, *, hint: str | None) -> None:
        """One sentence with the count and the first rows; never what is in them."""
        if self.count:
            shown = ", ".join(map(str, self.first))
            more = ", …" if self.count > len(self.first) else ""
            raise DataError(
                f"{name}: {self.count} of {rows} rows hold {self.why} (data rows {shown}{more});"
                f" {advice}",
                hint=hint,
            )


def check_names(
    names: list[str],
    policy: Policy,
    columns: Columns,
    *,
    source: str,
    refused: Callable[[], tuple[list[str], dict[str, str]]] = lambda: ([], {}),
) -> None:
    """Refuse columns to drop or keep that are not there, or that play another part, and columns
    of users of which nothing is said, together with those that are `refused` for their values."""
    for option in ("drop", "keep"):
        for name in getattr(policy, option):
            if name not in names:
                raise DataError(f"{source} has no column '{name}' to {option}; look at its header")
            if name in (columns.first, columns.second):
                raise DataError(
                    f"the column '{name}' holds the place, which is replaced; it cannot be"
                    f" {'dropped' if option == 'drop' else 'kept'} as well"
                )
    both = sorted({*policy.drop} & {*policy.keep})
    named = None if policy.pseudonym is None else columns.user
    if named is not None and named in (*policy.drop, *policy.keep):
        both.append(named)
    if both:
        raise DataError(
            f"the column '{both[0]}' can be dropped, kept or given pseudonyms; expected one of them"
        )
    said = (*policy.drop, *policy.keep, named)
    naming = [name for name in users(names, policy.user) if name not in said]
    if naming:
        others, telling = refused()
        refuse_columns(source, naming, others, telling)


def refuse_over_budget(protection: Protection, whole: Tally, *, source: str) -> None:
    """Refuse a table whose reports cost more than the run's budgets by more than chance explains,
    unless it is wanted all the same.  Of a short table no figure is said: it would tell about
    single rows."""
    budget, spent = protection.release.budget, whole.losses.whole
    over = whole.losses.against(budget)
    if protection.policy.over_budget or not over:
        return
    what = []
    if over.whole:
        limit = f"budget of {budget.max_loss:g} {budget.unit}"
        what.append(
            f"its reports would be {spent.mean:,.0f} {budget.unit} off on average, over the {limit}"
            if spent.count >= ENOUGH_ROWS
            else f"its reports would be over the {limit}"
        )
    if over.users:
        what.append(f"{over.users} user(s) would be over budgets of their own")
    raise DataError(
        f"{source}: {', and '.join(what)}, by more than chance explains; nothing was written",
        hint="these places are unlike those that the run was made for: solve with data like them,"
        f" or write them all the same with {arg('over_budget')}",
    )

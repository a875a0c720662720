"""Columns that name users one to one beside the user's own are refused, and no others."""

import numpy as np
import pyarrow as pa
import pytest

from sfumato.deploy.naming import OneToOne, linking
from sfumato.deploy.one_file import Policy
from sfumato.deploy.sanitize import one_by_one, sanitize
from sfumato.deploy.table import report
from sfumato.errors import DataError
from tests.deploy.tables import write_parquet

RANDOM = np.random.default_rng(22)


def _table(rows: int, users: int, *, in_order: bool = False) -> pa.Table:
    user = RANDOM.integers(0, users, rows)
    user = np.sort(user) if in_order else user
    return pa.table(
        {
            "user": user,
            "email": [f"u{one}@example.org" for one in user.tolist()],
            "plan": [("free", "paid")[one % 2] for one in user.tolist()],
            "device": [f"{one % 2 + 50}-{day}" for day, one in enumerate(user.tolist())],
            "lat": 48.857 + RANDOM.uniform(-0.01, 0.01, rows),
            "lon": 2.347 + RANDOM.uniform(-0.01, 0.01, rows),
            "time": 1_700_000_000 + RANDOM.permutation(rows) * 977,
        }
    )


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("users", [3, 50])
def test_an_address_beside_the_user_is_refused_as_the_user_is(runs, tmp_path, users, kind):
    table = _table(400, users)
    source = tmp_path / f"in.{kind}"
    if kind == "parquet":
        write_parquet(source, table)
    else:
        table.to_pandas().to_csv(source, index=False)
    with pytest.raises(
        DataError, match=r"'user', 'email' \(one value for each user, or"
    ) as refused:
        sanitize(runs / "laplace", source, tmp_path / f"out.{kind}")
    assert "drop user,email" in str(refused.value.hint)
    with pytest.raises(DataError, match=r"column 'email' \(one value") as refused:
        sanitize(runs / "laplace", source, tmp_path / f"out.{kind}", drop="user")
    assert "pseudonym" not in str(refused.value.hint)
    assert [path.name for path in tmp_path.iterdir()] == [source.name]
    record = sanitize(
        runs / "laplace", source, tmp_path / f"out.{kind}", policy=Policy.of(drop=("user", "email"))
    )
    assert record["rows_out"] == 400
    kept = Policy.of(drop="user", keep="email")
    assert (
        sanitize(runs / "laplace", source, tmp_path / f"o.{kind}", policy=kept)["rows_out"] == 400
    )


def test_a_table_in_the_order_of_its_users_is_looked_at_to_its_end(runs, tmp_path, monkeypatch):
    """Its first block is of one user, of whom every constant column may be a name."""
    monkeypatch.setattr("sfumato.deploy.parquet_table.BLOCK_ROWS", 50)
    source = write_parquet(tmp_path / "in.parquet", _table(400, 5, in_order=True))
    with pytest.raises(DataError, match=r"column 'email'"):
        sanitize(runs / "laplace", source, tmp_path / "out.parquet", drop="user")
    assert not (tmp_path / "out.parquet").exists()


def test_a_table_in_memory_is_refused_too(runs):
    with pytest.raises(DataError, match=r"column 'email'"):
        report(_table(400, 30), runs / "laplace", key=bytes(32), drop=("user",))


@pytest.mark.parametrize(
    ("values", "names"),
    [
        (lambda user, row: f"{user}@b", True),
        (lambda user, row: f"{user}@b" if row % 50 else None, True),  # some are missing
        (lambda user, row: [user, "x"], True),
        (lambda user, row: f"{user}-{row == 7}", True),  # one user has two
        (lambda user, row: row, False),
        (lambda user, row: user // 2, False),  # two users share one
        (lambda user, row: f"{user * 37 % 41}-{row % 3}", False),  # three for each
        (lambda user, row: f"https://s/{user}/{row}" if row % 9 else "", True),
        (lambda user, row: "same", False),
        (lambda user, row: "", False),
    ],
)
@pytest.mark.parametrize("nested", [False, True])
def test_what_is_one_to_one_is_found_and_nothing_else(values, names, nested):
    numbers = [int(number) for number in RANDOM.integers(0, 30, 600)]
    users = [{"id": number} if nested else number for number in numbers]
    names = names and not (nested and "https" in str(values(0, 1)))  # such a name is in no address
    found = OneToOne()
    for start in range(0, 600, 200):
        some = users[start : start + 200]
        column = [values(numbers[start + at], start + at) for at in range(200)]
        found.note(some, {"column": column})
    assert found.naming() == ["column"] * names == found.naming(sure=True)


@pytest.mark.parametrize(
    ("filler", "rows"),
    [
        (lambda row: "unknown", 600),
        (lambda row: f"filler {row}", 600),
        (lambda row: f"{row * 7 % 30}@b", 600),  # of another user
        (lambda row: "unknown", 90),
        (lambda row: float("nan"), 600),
    ],
)
def test_fillers_in_a_tenth_of_the_rows_do_not_hide_a_name(filler, rows):
    found = OneToOne()
    users = [row % 30 for row in range(rows)]
    filled = np.random.default_rng(rows).random(rows) < 0.1
    found.note(
        users,
        {"mail": [f"{u}@b" if not filled[row] else filler(row) for row, u in enumerate(users)]},
    )
    assert found.naming() == ["mail"]


@pytest.mark.parametrize(
    "values",
    [
        lambda user, row: f"town {user % 24 + 50}" if row % 7 else "",  # six of 24 have two users
        lambda user, row: "same" if row % 7 else f"filler {row}",
        lambda user, row: f"{user * 37 % 41}-{row // 30 % 2}",  # two devices, half of the time each
        lambda user, row: f"trip {row // 3}",
        lambda user, row: "same" if user == 0 else row,
    ],
)
def test_with_fillers_in_mind_what_names_nobody_still_passes(values):
    found = OneToOne()
    for start in range(0, 600, 200):
        rows = range(start, start + 200)
        found.note([row % 30 for row in rows], {"c": [values(row % 30, row) for row in rows]})
    assert found.naming() == [] == found.naming(sure=True)


def _folder(path, *, users, files_of=lambda user: [user], fillers=False):
    """CSV parts with twelve rows of each user; without more, one user in each part."""
    parts = {}
    for user in range(users):
        for visit in range(12):
            files = list(files_of(user))
            mail = f"filler {user}" if fillers and visit == user % 12 else f"u{user}@b"
            lat, lon = RANDOM.normal((48.857, 2.347), 0.004)
            town = ("Paris", "Lyon")[user % 2]
            lines = parts.setdefault(files[visit % len(files)], [])
            lines.append(f"{user},{mail},{town},{visit},{lat:.6f},{lon:.6f}")
    path.mkdir()
    for file, lines in parts.items():
        text = "\n".join(["user,mail,town,number,lat,lon", *lines])
        (path / f"{file}.csv").write_text(text + "\n")
    return path


@pytest.mark.parametrize("fillers", [False, True])
@pytest.mark.parametrize("users", [3, 40])
@pytest.mark.parametrize(
    "files_of",
    [lambda user: [user], lambda user: range(12), lambda user: [user // 10, "rest"]],
    ids=["one user in each", "each user once in each", "some users in each"],
)
def test_a_name_is_seen_over_all_parts_of_a_folder(runs, tmp_path, files_of, users, fillers):
    source = _folder(tmp_path / "in", users=users, files_of=files_of, fillers=fillers)
    with pytest.raises(DataError, match=r"column 'mail' \(one value for each user") as refused:
        sanitize(runs / "laplace", source, tmp_path / "out", drop="user")
    assert str(refused.value.hint).endswith("keep mail")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    record = sanitize(runs / "laplace", source, tmp_path / "out", drop="user", keep="mail")
    assert record["rows_out"] == 12 * users


def test_a_name_is_seen_with_the_parts_that_a_stopped_job_had_done(runs, tmp_path):
    source = _folder(tmp_path / "in", users=6)

    def stop_before_the_end(protection, tasks, progress):
        yield from one_by_one(protection, tasks[:5], progress)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sanitize(
            runs / "laplace", source, tmp_path / "out", drop="user", runner=stop_before_the_end
        )
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob(".*/done/*"))
    assert b"mail" in kept and b"u0@b" not in kept
    with pytest.raises(DataError, match=r"column 'mail'"):
        sanitize(runs / "laplace", source, tmp_path / "out", drop="user")


def test_users_who_come_once_say_nothing_of_other_columns():
    found = OneToOne()
    found.note(list(range(500)), {"time": list(range(500))})
    assert found.naming() == []


def test_a_column_that_names_users_after_noisy_rows_is_found() -> None:
    users = [f"u{number % 30}" for number in range(3000)]
    found = OneToOne()
    for block in range(8):
        noise = [f"{block}-{row}" for row in range(len(users))]
        found.note(users, {"mail": [f"{user}@x.org" for user in users] if block else noise})
    assert found.naming() == ["mail"]


def test_parts_of_noise_before_parts_that_name_users_do_not_hide_them() -> None:
    users = [f"u{number}" for number in range(30)]
    whole = OneToOne()
    for part in range(200):
        noise = [f"{part}-{row}" for row in range(len(users))]
        one = OneToOne()
        one.note(users, {"mail": noise if part < 10 else [f"{user}@x.org" for user in users]})
        whole.add(one.digested())
    assert whole.naming() == ["mail"]


_WITHIN = {
    "in an address": lambda user, row: f"https://s/{user}/{row}",
    "before a number": lambda user, row: f"{user}-{row}",
    "in a path": lambda user, row: f"/home/{user}/photos/{row}.jpg",
    "in other letters": lambda user, row: f"Visit {row} of {user.upper()}.",
    "in nine of ten rows": lambda user, row: f"{user};{row}" if row % 10 else f"guest;{row}",
}


@pytest.mark.parametrize("people", ["u{:02d}", "{}", "ann{}"])
@pytest.mark.parametrize("form", _WITHIN)
def test_a_user_named_within_a_text_is_found(form, people):
    found = OneToOne()
    for start in range(0, 600, 200):
        rows = range(start, start + 200)
        users = [people.format(row * 7 % 31) for row in rows]
        texts = [_WITHIN[form](user, row) for user, row in zip(users, rows, strict=True)]
        found.note(users, {"text": texts})
    assert found.naming() == ["text"]


@pytest.mark.parametrize("people", ["user{}", "{}"])
def test_users_named_within_texts_of_files_of_their_own_are_found(people):
    whole = OneToOne()
    for number in range(1000, 1012):
        part, user = OneToOne(), people.format(number)
        part.note([user] * 5, {"url": [f"https://s/{user}/{row}" for row in range(5)]})
        whole.add(part.digested())
    assert whole.naming() == ["url"]


_HONEST = {
    "prices": lambda random, row: f"{random.lognormal(3, 1):.2f}",
    "hashes": lambda random, row: random.bytes(16).hex(),
    "ids": lambda random, row: f"id{row:06d}",
    "addresses": lambda random, row: f"https://shop.example/{random.integers(900)}?page={row % 9}",
    "times": lambda random, row: f"2010-10-{1 + row % 28:02d}T{row % 24:02d}:55:{row % 60:02d}Z",
    "network addresses": lambda random, row: ".".join(map(str, random.integers(0, 256, 4))),
    "texts": lambda random, row: ("late again", "table for 2", "ann was here", "no 7")[row % 4],
}


@pytest.mark.parametrize("people", ["u{}", "{}", "ann"])
@pytest.mark.parametrize("users", [3, 40])
def test_no_user_is_named_within_an_honest_text(people, users):
    random, found = np.random.default_rng(4), OneToOne()
    names = np.sort([people.format(number) for number in random.integers(0, users, 1200)])
    for start in range(0, 1200, 300):
        rows = range(start, start + 300)
        texts = {form: [make(random, row) for row in rows] for form, make in _HONEST.items()}
        found.note(names[rows].tolist(), texts)
    assert found.naming() == []


def test_a_table_with_its_users_in_addresses_is_refused(runs, tmp_path):
    table = _table(400, 40)
    urls = [f"https://s/u{user}/{row}" for row, user in enumerate(table["user"].to_pylist())]
    source = write_parquet(tmp_path / "in.parquet", table.append_column("url", pa.array(urls)))
    with pytest.raises(DataError, match=r"column 'url' \(one value for each user, or the user's n"):
        sanitize(runs / "laplace", source, tmp_path / "out.parquet", drop=("user", "email"))


@pytest.mark.parametrize("people", [("1", "7"), ("item", "guest")])
def test_texts_that_hold_the_name_of_the_user_with_most_rows_in_all_rows_pass(people):
    users = [people[row % 7 == 0] for row in range(700)]
    texts = ["1 item" if row % 10 else "2 items" for row in range(700)]
    found = OneToOne()
    found.note(users, {"bought": texts})
    assert found.naming() == []


@pytest.mark.parametrize(
    ("value", "links"),
    [
        (lambda user, row: f"u{user}-w{row // 150}", True),
        (lambda user, row: (user * 7919 + row // 150 * 104_729) % 999_983, True),
        (lambda user, row: f"{user}/{row // 150}" if row % 10 else "unknown", True),
        (lambda user, row: [user, row // 150], True),
        (lambda user, row: row, False),
        (lambda user, row: row // 3, False),  # a clock
        (lambda user, row: int(RANDOM.integers(40)), False),
        (lambda user, row: user // 2, False),
        (lambda user, row: "same", False),
        (lambda user, row: None, False),
        (lambda user, row: float("nan"), False),
    ],
)
@pytest.mark.parametrize("most", [0.0, 0.9])  # of the rows are of one user
def test_a_number_of_a_trace_links_rows_and_other_columns_do_not(value, links, most):
    users = [0 if RANDOM.random() < most else int(RANDOM.integers(30)) for _ in range(900)]
    column = [value(user, row) for row, user in enumerate(users)]
    assert linking(users, {"column": column}) == ["column"] * links


def test_rows_of_one_user_alone_are_linked_by_no_column():
    assert linking(["ann"] * 50, {"day": [at // 9 for at in range(50)]}) == linking([], {}) == []

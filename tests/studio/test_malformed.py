"""Every address of the studio, asked with wrong types, missing keys and deep JSON, answers with a
sentence: never with 500, never with what was sent."""

import json
import random
from typing import Any

import pytest

from sfumato.studio.handlers import HANDLERS
from tests.studio.server import Page, Served

_VALUES: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    1e308,
    10**400,
    "",
    "x",
    "\x1b[31m\x00",
    "\ud800",
    "../../etc/passwd",
    [],
    {},
    [[]],
    [None],
    ["x", 3],
    {"a": {"b": []}},
    [48.8, 2.3, 1e400],
    [48.8, 2.3, -5],
]
_KEYS = [
    "source",
    "square",
    "users",
    "top_users",
    "train",
    "test",
    "secret",
    "lat",
    "lon",
    "discard",
    "solver",
    "max_loss",
    "objective",
    "reports",
    "cell_m",
    "seed",
    "time_limit",
    "run",
    "runs",
    "kept",
    "x",
    "y",
    "user",
    "previous",
    "session",
]
_GOOD = {
    "source": "given",
    "solver": "coin",
    "max_loss": 150,
    "x": 0.0,
    "y": 0.0,
    "runs": [],
    "user": "user0",
}
_BODIES = [
    b"",
    b"[",
    b"{",
    b"[]",
    b"null",
    b"3",
    b'"x"',
    b"\xff\xfe",
    b'{"x": NaN}',
    b'{"max_loss": Infinity}',
    b'{"a": "\\ud800"}',
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b'{"x": 1' + b"0" * 5000 + b"}",
]


def _plain_sentence(status: int, answer: Any, what: str) -> None:
    assert status in (200, 400), (status, answer, what)
    if status == 400:
        assert set(answer) == {"error"} and answer["error"], what
        said = answer["error"]
        assert "Traceback" not in said and "\n" not in said and len(said) < 600, what


@pytest.fixture(scope="module")
def page(studio: Served) -> Any:
    with Page(studio) as opened:
        opened.ask("data", {"source": "given"})
        yield opened


@pytest.mark.parametrize("name", [*HANDLERS, "data"])
def test_an_odd_request_is_a_sentence(studio: Served, page: Page, name: str) -> None:
    path = f"api/{page.id}/{name}"
    for body in _BODIES:
        status, answer = studio.try_to_ask(path, body=body)
        _plain_sentence(status, answer, f"{name} {body[:40]!r}")
    chance = random.Random(name)
    for round_number in range(60):
        asked = {key: value for key, value in _GOOD.items() if chance.random() < 0.7}
        for key in chance.sample(_KEYS, chance.randint(1, 4)):
            asked[key] = chance.choice(_VALUES)
        asked.pop("discard", None)
        if name in ("solve", "data") and round_number % 10:
            asked["max_loss"] = chance.choice([None, True, "x", [], 10**400])
            asked["source"] = chance.choice([None, True, "x", [], {}])
        status, answer = studio.try_to_ask(path, body=json.dumps(asked).encode())
        _plain_sentence(status, answer, f"{name} {json.dumps(asked)[:300]}")
    studio.try_to_ask(f"api/{page.id}/stop")
    page.events.clear()


@pytest.mark.parametrize("path", ["api/session", "api/discard", "api/nobody/state", "api//state"])
def test_so_is_one_without_a_session(studio: Served, path: str) -> None:
    for body in [
        *_BODIES,
        *(json.dumps({"previous": one, "session": one}).encode() for one in _VALUES),
    ]:
        status, _, answer = studio.request(
            "POST",
            f"/{studio.token}/{path}",
            body=body,
            headers={"Origin": f"http://{studio.host}"},
        )
        if path == "api//state":
            assert status == 404
        else:
            _plain_sentence(status, json.loads(answer), f"{path} {body[:40]!r}")


@pytest.mark.parametrize(
    "path",
    [
        "events",
        "points",
        "files/x/run.zip",
        "files/%00/bundle.zip",
        "files/../report.html",
        "files/x/%ff",
        "file?name=%00",
        "file?name=%ff%fe",
        "file?name=" + "x" * 5000,
        "file",
    ],
)
def test_an_odd_address_is_answered_with_a_sentence(studio: Served, path: str) -> None:
    method = "POST" if path.startswith("file") and not path.startswith("files") else "GET"
    with Page(studio) as page:
        for session in (page.id, "nobody", "%00", "..", "%ff"):
            if session == page.id and path == "events":
                continue  # it answers with a stream
            status, _, answer = studio.request(
                method,
                f"/{studio.token}/api/{session}/{path}",
                body=b"x" if method == "POST" else None,
                headers={"Origin": f"http://{studio.host}"},
            )
            assert status in (200, 400, 404), (status, answer, session)
            assert b"Traceback" not in answer

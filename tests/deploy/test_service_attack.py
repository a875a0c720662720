"""Somebody has seen a kept report and may ask the service: they do not find the cell behind it."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.data.grid import STICKY_CELL_M
from sfumato.deploy.clients import Clients
from sfumato.deploy.release import Release, release
from sfumato.deploy.service import MOST_PLACES, MOST_POINTS, Settings, service
from sfumato.errors import ProblemError
from tests import coroutines

TRUTH = (48.8571, 2.3472)
CLIENTS = Clients({"phone": "p" * 32, "site": "s" * 32})
SETTINGS = Settings(accuracy_m=400.0, rate=1e6, clients=CLIENTS)


@pytest.fixture(scope="module")
def released(runs) -> Release:
    return release(sf.load_run(runs / "laplace"))


class Asker:
    """Requests of one client to the application itself."""

    def __init__(self, app: Any, client: str) -> None:
        self.app, self.token = app, CLIENTS.tokens[client]

    def ask(self, path: str, body: Any) -> tuple[int, Any]:
        headers = {
            "host": "127.0.0.1",
            "content-type": "application/json",
            "authorization": f"Bearer {self.token}",
        }
        scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "server": ("127.0.0.1", 8765),
        }
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        coroutines.run(self.app(scope, receive, send))
        return sent[0]["status"], json.loads(b"".join(part.get("body", b"") for part in sent[1:]))

    def report(self, place: tuple[float, float]) -> Any:
        status, found = self.ask(
            "/v1/geolocate", {"location": dict(zip(("lat", "lng"), place, strict=True))}
        )
        return found["location"] if status == 200 else None


def cells_about(released: Release) -> tuple[np.ndarray, int]:
    """The middles of the 961 cells of 25 m about the true place, in a mixed order, and which of
    them is the true one."""
    assert released.plane is not None
    truth = released.plane.to_metres(*(np.array([part]) for part in TRUTH))
    side = np.arange(-15, 16) * STICKY_CELL_M
    around = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    order = np.random.default_rng(0).permutation(len(around))
    middles = sf.Grid(cell_m=STICKY_CELL_M).snap(truth) + around[order]
    return middles, int(np.flatnonzero(np.abs(around[order]).max(axis=1) == 0)[0])


def tabulate(asker: Asker, released: Release, seen: Any) -> list[int]:
    """The attack: ask for every cell, in batches as large as are answered, and keep the cells whose
    report is the one that was seen."""
    assert released.plane is not None
    middles, _ = cells_about(released)
    latitude, longitude = released.plane.to_degrees(middles)
    asked = [
        {"lat": a, "lng": b} for a, b in zip(latitude.tolist(), longitude.tolist(), strict=True)
    ]
    found: list[int] = []
    for size in (len(asked), MOST_PLACES, 1):
        for first in range(0, len(asked), size):
            status, answer = asker.ask("/v1/batch", {"locations": asked[first : first + size]})
            if status == 200:
                found += [
                    first + row
                    for row, one in enumerate(answer["reports"])
                    if one is not None and one["location"] == seen
                ]
        if found:
            break
    return found


def times_found(released: Release, settings: Settings, *, attacker: str, trials: int) -> int:
    """In how many of some services, each with its own key, the attacker finds the true cell among
    at most 20 of the 961."""
    _, true = cells_about(released)
    count = 0
    for _ in range(trials):
        app = service(released, settings)
        seen = Asker(app, "phone").report(TRUTH)
        assert seen is not None
        found = tabulate(Asker(app, attacker), released, seen)
        count += true in found and len(found) <= 20
    return count


def test_the_attack_finds_the_cell_where_a_client_may_ask_for_every_place(released):
    """What the limit and the clients' own keys are for: with neither, it succeeds every time."""
    lax = replace(SETTINGS, places=MOST_POINTS)
    assert times_found(released, lax, attacker="phone", trials=10) == 10


def test_another_client_finds_nothing_however_much_it_asks(released):
    """Its reports have another key.  Two independent reports of one place agree with chance 0.013
    (50 m cells, mean loss 173 m), so 0.3 of 20 are expected; 4 or more would be chance once in
    1,000."""
    lax = replace(SETTINGS, places=MOST_POINTS)
    assert times_found(released, lax, attacker="site", trials=20) < 4


def test_the_clients_own_token_finds_nothing_within_the_limit(released):
    """A batch of all cells is refused, and from then on everything: no answer tells which cells had
    been asked for before."""
    assert times_found(released, SETTINGS, attacker="phone", trials=10) == 0
    app = service(released, SETTINGS)
    phone = Asker(app, "phone")
    seen = phone.report(TRUTH)
    tabulate(phone, released, seen)
    assert phone.report(TRUTH) is None and phone.report((48.8601, 2.3402)) is None
    assert Asker(app, "site").report(TRUTH) is not None  # other clients do not pay for it


def test_small_batches_stop_at_the_limit(released):
    """One cell after the other: the first 50 are answered, the true cell's own request among them,
    so 49 of 960 others can be tried."""
    phone = Asker(service(released, SETTINGS), "phone")
    phone.report(TRUTH)
    assert released.plane is not None
    middles, true = cells_about(released)
    latitude, longitude = released.plane.to_degrees(np.delete(middles, true, axis=0)[:80])
    told = [
        phone.report(place) for place in zip(latitude.tolist(), longitude.tolist(), strict=True)
    ]
    assert [one is not None for one in told] == [True] * (MOST_PLACES - 1) + [False] * 31


def test_asking_often_for_one_place_gives_one_report(released):
    """So nothing is averaged: it was 1.5 m from a batch of fresh draws."""
    phone = Asker(service(released, SETTINGS), "phone")
    here = dict(zip(("lat", "lng"), TRUTH, strict=True))
    told = phone.ask("/v1/batch", {"locations": [here] * MOST_POINTS})[1]["reports"]
    assert len({json.dumps(one) for one in told}) == 1


def test_nobody_may_name_places_without_a_token():
    with pytest.raises(ProblemError, match="token_file"):
        Settings(accuracy_m=400.0)

"""The service answers geolocation requests, keeps reports, logs no coordinate and knows its
limits."""

import json
import socket
import stat
import time
from contextlib import nullcontext

import numpy as np
import pytest
from starlette.datastructures import Headers

import sfumato as sf
from sfumato.deploy.server import MOST_CONNECTIONS, REQUEST_S
from sfumato.deploy.service import INTERFACE, MOST_BYTES, MOST_POINTS, Bucket, Refusal, _check_host
from sfumato.study.folder import save_run
from tests.deploy.serving import JSON, serving
from tests.deploy.tables import DATA

HERE = {"lat": 48.857, "lng": 2.347}


@pytest.fixture(scope="module")
def served(runs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    with serving(runs / "laplace", folder / "log", "--rate", "10000") as found:
        yield found
    log = (folder / "log").read_text()
    assert (
        "48.8" not in log and "2.34" not in log and "Traceback" not in log and log.count("\n") == 2
    )


def test_a_report_in_the_usual_reply(served):
    status, found = served.ask("/v1/geolocate", {"location": HERE, "considerIp": False})
    assert (
        status == 200
        and found.keys() == {"location", "accuracy"}
        and found["location"].keys() == {"lat", "lng"}
    )
    assert found["location"] != HERE and abs(found["location"]["lat"] - 48.857) < 0.05
    assert served.ask("/v1/geolocate", {"location": HERE})[1] == found  # kept for the day
    near = {"lat": 48.857001, "lng": 2.347001}
    assert served.ask("/v1/geolocate", {"location": near})[1] == found


def test_with_a_place_of_its_own_it_answers_for_that_alone_and_for_all_alike(runs, tmp_path):
    """Nobody can name another place, so nothing can be tabulated; two clients have one draw, so
    nothing is gained by comparing."""
    (tmp_path / "place.json").write_text('{"lat": 48.8571, "lng": 2.3472}')
    at = ("--at", str(tmp_path / "place.json"))
    usual = {"considerIp": True, "wifiAccessPoints": [{"macAddress": "01:23:45:67:89:ab"}]}
    with serving(runs / "laplace", tmp_path / "log", *at, clients=("phone", "site")) as served:
        status, found = served.ask("/v1/geolocate", usual)
        assert status == 200 and abs(found["location"]["lng"] - 2.3472) < 0.05
        assert served.ask("/v1/geolocate", usual, client="site") == (200, found)
        assert served.raw("POST", "/v1/geolocate", b"", served.headers())[0] == 200
        for path, body in (
            ("/v1/geolocate", {"location": HERE}),
            ("/v1/geolocate", {"location": {"lat": 48.8571, "lng": 2.3472}}),
            ("/v1/batch", {"locations": [HERE]}),
        ):
            status, answer = served.ask(path, body)
            assert status == 400 and "place of its machine alone" in answer["error"]["message"]
        assert served.ask("/v1/geolocate", usual, client="nobody")[0] == 401
    said = (tmp_path / "log").read_text()  # the request to try names no place either
    assert "-d '{}'" in said and "Bearer TOKEN" in said and "LAT" not in said
    with serving(runs / "laplace", tmp_path / "open", *at, clients=()) as served:
        assert (
            served.ask("/v1/geolocate", usual)[0] == 200
        )  # no token: there is nothing to keep apart
        assert served.ask("/v1/geolocate", {"location": HERE})[0] == 400


def test_a_batch_keeps_its_order_and_says_null_outside(served):
    places = [HERE, {"lat": 10, "lng": 10}, {"lat": 48.86, "lng": 2.35}]
    status, found = served.ask("/v1/batch", {"locations": places})
    assert status == 200 and found["reports"][1] is None
    assert found["reports"][0] == served.ask("/v1/geolocate", {"location": HERE})[1]
    assert found["reports"][2] == served.ask("/v1/geolocate", {"location": places[2]})[1]


def test_it_says_once_that_reports_cost_more_than_the_budget(runs, tmp_path):
    """It cannot take back what it has sent.  No place stands in what it says."""
    plane = DATA.train.plane
    assert plane is not None
    far = np.random.default_rng(0).uniform(1500, 3000, (300, 2))
    places = [{"lat": lat, "lng": lng} for lat, lng in zip(*plane.to_degrees(far), strict=True)]
    with serving(runs / "codebook", tmp_path / "log", "--places", "1000") as found:
        for _ in range(3):
            assert found.ask("/v1/batch", {"locations": places})[0] == 200
    said = (tmp_path / "log").read_text()
    assert said.count("note: reports cost more than the run's budget") == 1
    assert said.count("\n") == 3 and "48." not in said


def test_places_that_a_mechanism_was_not_made_for_have_no_report(runs, tmp_path):
    with serving(runs / "nearest-channel", tmp_path / "log") as found:
        status, answer = found.ask("/v1/geolocate", {"location": HERE})
        assert status == 404 and "not one of the places" in answer["error"]["message"]
        assert found.ask("/v1/batch", {"locations": [HERE]})[1] == {"reports": [None]}
    with serving(runs / "nearest-channel", tmp_path / "other", "--new-places", "nearest") as found:
        assert found.ask("/v1/geolocate", {"location": HERE})[0] == 200


def test_accuracy_is_one_number_for_all_places_and_true(served, runs):
    """95 % of reports lie within it; it is the same everywhere, so it tells nothing."""
    found = [
        served.ask("/v1/geolocate", {"location": {"lat": 48.85 + step / 1000, "lng": 2.34}})[1][
            "accuracy"
        ]
        for step in range(8)
    ]
    assert len(set(found)) == 1
    off = np.hypot(
        *(
            sf.load_run(runs / "laplace").mechanism.sample(DATA.train.truth, seed=1)
            - DATA.train.truth
        ).T
    )
    assert (off <= found[0]).mean() > 0.93  # 1920 points: a deviation of 0.5 %


@pytest.mark.parametrize(
    ("path", "body", "headers", "status"),
    [
        ("/v1/geolocate", b'{"location": {"lat": 48.8577, "lng": "x"}}', JSON, 400),
        ("/v1/geolocate", b'{"location": {"lat": 948.8577, "lng": 2}}', JSON, 400),
        ("/v1/geolocate", b'{"location": {"lat": NaN, "lng": 2}}', JSON, 400),
        ("/v1/geolocate", b'{"location": {"lat": true, "lng": 2}}', JSON, 400),
        ("/v1/geolocate", b'{"location": {"lat": 10.8577, "lng": 2}}', JSON, 404),
        ("/v1/geolocate", b"{48.8577", JSON, 400),
        ("/v1/geolocate", b"[48.8577]", JSON, 400),
        ("/v1/geolocate", b"\xff\xfe", JSON, 400),
        ("/v1/geolocate", b"[" * 50_000, JSON, 400),
        ("/v1/geolocate", b" " * (MOST_BYTES + 1), JSON, 413),
        ("/v1/geolocate", b"{}", {"Content-Type": "text/plain"}, 415),
        ("/v1/geolocate", b"{}", {**JSON, "Host": "other.example"}, 403),
        ("/v1/geolocate", b"{}", {**JSON, "Origin": "https://other.example"}, 403),
        ("/v1/batch", b'{"locations": []}', JSON, 400),
        ("/v1/batch", b'{"locations": [{"lat": 48.8577}]}', JSON, 400),
        ("/v1/batch", json.dumps({"locations": [HERE] * (MOST_POINTS + 1)}).encode(), JSON, 400),
    ],
)
def test_a_bad_request_is_refused_without_repeating_it(served, path, body, headers, status):
    found, answer = served.raw("POST", path, body, {**served.headers(), **headers})
    assert found == status and b"8577" not in answer
    assert json.loads(answer)["error"]["code"] == status
    assert (b"'Content-Type: application/json'" in answer) == (status == 415)


def test_a_request_without_a_location_is_told_what_to_send(served):
    status, answer = served.ask("/v1/geolocate", {"lat": 48.8577, "lon": 2})
    assert status == 404 and answer["error"]["message"].endswith(
        'send {"location": {"lat": LAT, "lng": LNG}}'
    )


def test_other_paths_and_methods_are_refused_and_health_answers(served):
    status, answer = served.raw("GET", "/v1/geolocate", None, {})
    error = json.loads(answer)["error"]
    assert status == error["code"] == 405 and "another method" in error["message"]
    for path in ("/nothing", "/"):
        status, answer = served.raw("GET", path, None, {})
        assert status == 404 and b"POST /v1/geolocate" in answer
    assert served.get("/health") == (200, {"status": "ok"})


def test_the_openapi_document_describes_what_is_there(served):
    status, found = served.get("/openapi.json")
    assert (
        status == 200
        and found["openapi"].startswith("3.")
        and set(found["paths"]) == {"/v1/geolocate", "/v1/batch", "/openapi.json", "/health"}
    )
    names = set(found["components"]["schemas"])
    assert all(
        part.split('"')[0] in names for part in json.dumps(found).split("#/components/schemas/")[1:]
    )


def test_it_listens_on_loopback_alone(served):
    addresses = {
        info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, family=socket.AF_INET)
    } - {"127.0.0.1", "127.0.1.1"}
    for address in addresses:
        with socket.socket() as probe:
            probe.settimeout(2)
            assert probe.connect_ex((address, served.port)) != 0


def test_another_address_needs_a_word(runs):
    from click.testing import CliRunner

    from sfumato import cli

    ended = CliRunner().invoke(cli.cli, ["serve", str(runs / "laplace"), "--host", "0.0.0.0"])
    assert ended.exit_code == 2 and "--open-to-network" in ended.output


def test_on_all_addresses_it_answers_to_the_number_of_the_one_that_was_asked(runs, tmp_path):
    """127.0.0.2 stands for an address of the network; no name is answered to, nor another
    number."""
    with serving(
        runs / "laplace", tmp_path / "log", "--host", "0.0.0.0", "--open-to-network"
    ) as served:
        served.address = "127.0.0.2"
        assert served.ask("/v1/geolocate", {"location": HERE})[0] == 200
        for host in (
            "other.example",
            f"other.example:{served.port}",
            f"127.0.0.3:{served.port}",
            "127.0.0.2.other.example",
            "",
        ):
            assert served.ask("/v1/geolocate", {"location": HERE}, {"Host": host})[0] == 403, host
        assert (
            served.ask("/v1/geolocate", {"location": HERE}, {"Origin": "http://127.0.0.2"})[0]
            == 403
        )


@pytest.mark.parametrize(
    ("host", "local", "answered"),
    [
        ("192.168.1.20:8765", "192.168.1.20", True),
        ("192.168.1.20", "192.168.1.20", True),
        ("[fe80:0::1]:8765", "fe80::1%eth0", True),
        ("192.168.1.21:8765", "192.168.1.20", False),
        ("box.example:8765", "box.example", False),
        ("[fe80::2]:8765", "fe80::1", False),
    ],
)
def test_a_host_is_the_address_at_which_the_request_came_in(host, local, answered):
    with nullcontext() if answered else pytest.raises(Refusal):
        _check_host(Headers({"host": host}), frozenset({"localhost"}), (local, 8765))


@pytest.mark.parametrize("command", [("serve", "--at"), ("export",)])
def test_reports_beyond_the_edge_of_the_earth_are_refused_at_the_start(
    runs, tmp_path, typed, command
):
    """The coin's place is that of one report in 200,000, which no trial need meet."""
    (tmp_path / "place.json").write_text(json.dumps(HERE))
    run = sf.load_run(runs / "coin")
    coin = sf.mechanism.Coin(keep=1 - 1e-9, place=(1e8, 0.0))
    save_run(tmp_path / "run", run.record, coin)
    verb, *at = command
    ended = typed(verb, "run", *(["--at", "place.json"] if at else ["bundle"]))
    assert ended.returncode == 2 and "beyond the edge of the Earth" in ended.stderr
    assert not ended.stdout and not (tmp_path / "bundle").exists()


def test_too_many_requests_are_turned_away(runs, tmp_path):
    with serving(runs / "laplace", tmp_path / "log", "--rate", "5") as served:
        found = [served.ask("/v1/geolocate", {"location": HERE})[0] for _ in range(40)]
    assert set(found) == {200, 429} and found[:4] == [200] * 4


def test_a_bucket_fills_again():
    now = [0.0]
    bucket = Bucket(2.0, clock=lambda: now[0])
    assert [bucket.take() for _ in range(3)] == [True, True, False]
    now[0] += 0.5
    assert [bucket.take() for _ in range(2)] == [True, False]


def test_a_client_is_its_token(runs, tmp_path):
    """Each gets reports of its own; a token that is missing or wrong gets none, at the strangers'
    rate."""
    body = {"location": HERE}
    with serving(runs / "laplace", tmp_path / "log", clients=("phone", "site")) as served:
        # two clients get one cell by chance in about 1 of 100 draws: three places, in 1 of a million
        bodies = [body, *({"location": {**HERE, "lat": HERE["lat"] + off}} for off in (1e-3, 2e-3))]
        asked = [
            [served.ask("/v1/geolocate", each, client=one) for each in bodies]
            for one in served.tokens
        ]
        mine, theirs = (answers[0] for answers in asked)
        assert mine[0] == theirs[0] == 200 and asked[0] != asked[1]
        address = f"/v1/geolocate?key={served.tokens['phone']}"
        assert (
            json.loads(served.raw("POST", address, json.dumps(body).encode(), JSON)[1]) == mine[1]
        )
        for headers in (
            JSON,
            {**JSON, "Authorization": "Bearer x"},
            {**JSON, "Authorization": f"Basic {served.tokens['phone']}"},
            {**JSON, "Authorization": "Bearer \xff"},
        ):
            status, answer = served.raw("POST", "/v1/geolocate", json.dumps(body).encode(), headers)
            assert status == 401 and b"token" in answer
        found = [served.ask("/v1/geolocate", body, client="nobody")[0] for _ in range(120)]
        assert set(found) == {401, 429}
        assert served.ask("/v1/geolocate", body)[1] == mine[1]  # the clients do not wait for them
        file = tmp_path / "log.clients.json"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = json.loads(file.read_text())["clients"]
    with serving(runs / "laplace", tmp_path / "log", clients=("phone", "watch")) as served:
        assert {**before, "watch": served.tokens["watch"]} == served.tokens  # none is made anew
    assert not [
        token for token in served.tokens.values() if token in (tmp_path / "log").read_text()
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "say who may ask"),
        (("--client", "x"), "say who may ask"),
        (("--token-file", "F", "--client", "a\x1b[31mb"), "a client's name is"),
        (("--token-file", "F", "--client", ""), "a client's name is"),
        (("--token-file", "OPEN"), "others can read"),
        (("--token-file", "ODD"), "is not a token file of sfumato"),
        (("--token-file", "."), "is not a file"),
        (("--token-file", "no/where"), "cannot write"),
        (("--token-file", "F", "--keep", "never"), "--keep"),
        (("--token-file", "F", "--port", "PORT"), "cannot listen on port"),
    ],
)
def test_what_cannot_be_served_is_a_sentence(runs, tmp_path, monkeypatch, options, said):
    from click.testing import CliRunner

    from sfumato import cli
    from sfumato.errors import SfumatoError

    monkeypatch.chdir(tmp_path)
    (tmp_path / "OPEN").write_text("{}")
    (tmp_path / "OPEN").chmod(0o644)
    (tmp_path / "ODD").write_text('{"format": "sfumato clients 1", "clients": {"a": "short"}}')
    (tmp_path / "ODD").chmod(0o600)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = [port if word == "PORT" else word for word in ("--port", "0", *options)]
        ended = CliRunner().invoke(cli.cli, ["serve", str(runs / "laplace"), *words])
        sentence = (
            str(ended.exception) if isinstance(ended.exception, SfumatoError) else ended.output
        )
        assert ended.exit_code != 0 and said in sentence and "\x1b" not in sentence
        assert "PORT" not in options or (port in sentence and "while attempting" not in sentence)
        assert "PORT" not in options or not (tmp_path / "F").exists()


def test_connections_that_say_nothing_are_closed_and_few_are_held(served):
    """Silent ones, half a request and a body that does not come are closed in time; more than the
    limit at once; meanwhile a client that says something is answered."""
    begun = b"POST /v1/geolocate HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    starts = [b"", b"P", begun, begun + b"Content-Length: 100\r\n\r\n{"]
    begin = time.monotonic()
    held = [
        socket.create_connection(("127.0.0.1", served.port)) for _ in range(MOST_CONNECTIONS - 4)
    ]
    try:
        for number, one in enumerate(held):
            one.sendall(starts[number % len(starts)])
        assert served.ask("/v1/geolocate", {"location": HERE})[0] == 200
        more = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(20)]
        held += more
        assert sum(_closed(one, within=2) for one in more) >= 14  # those beyond the limit, at once
        assert all(_closed(one, within=REQUEST_S + 10) for one in held)
        assert time.monotonic() - begin < REQUEST_S + 15
        assert served.ask("/v1/geolocate", {"location": HERE})[0] == 200
    finally:
        for one in held:
            one.close()


def _closed(connection: socket.socket, *, within: float) -> bool:
    """Whether the other side closes it in time."""
    connection.settimeout(within)
    try:
        while connection.recv(1000):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True


def test_the_interface_is_typed_once():
    text = json.dumps(INTERFACE)
    assert f'"maxItems": {MOST_POINTS}' in text and INTERFACE["info"]["version"] == sf.__version__

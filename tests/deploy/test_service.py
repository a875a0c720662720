"""The service answers geolocation requests, keeps reports, logs no coordinate and knows its
limits."""

import json
import socket
from contextlib import nullcontext

import numpy as np
import pytest
from starlette.datastructures import Headers

import sfumato as sf
from sfumato.deploy.service import MOST_BYTES, Bucket, Refusal, _check_host
from tests.deploy.serving import JSON, serving
from tests.deploy.tables import DATA

HERE = {"lat": 48.857, "lng": 2.347}


@pytest.fixture(scope="module")
def served(runs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    (folder / "place.json").write_text('{"lat": 48.8571, "lng": 2.3472}')
    with serving(
        runs / "laplace", folder / "log", "--rate", "10000", "--at", str(folder / "place.json")
    ) as found:
        yield found
    log = (folder / "log").read_text()
    assert (
        "48.8" not in log and "2.34" not in log and "Traceback" not in log and log.count("\n") == 1
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


def test_the_usual_request_is_answered_with_the_machines_own_place(served):
    status, found = served.ask(
        "/v1/geolocate",
        {"considerIp": True, "wifiAccessPoints": [{"macAddress": "01:23:45:67:89:ab"}]},
    )
    assert status == 200 and abs(found["location"]["lng"] - 2.3472) < 0.05
    assert served.raw("POST", "/v1/geolocate", b"", JSON)[0] == 200


def test_a_batch_keeps_its_order_and_says_null_outside(served):
    places = [HERE, {"lat": 10, "lng": 10}, {"lat": 48.86, "lng": 2.35}]
    status, found = served.ask("/v1/batch", {"locations": places})
    assert status == 200 and found["reports"][1] is None
    assert found["reports"][0] == served.ask("/v1/geolocate", {"location": HERE})[1]
    assert found["reports"][2] == served.ask("/v1/geolocate", {"location": places[2]})[1]


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
        ("/v1/batch", json.dumps({"locations": [HERE] * 10_001}).encode(), JSON, 400),
    ],
)
def test_a_bad_request_is_refused_without_repeating_it(served, path, body, headers, status):
    found, answer = served.raw("POST", path, body, headers)
    assert found == status and b"8577" not in answer
    assert json.loads(answer)["error"]["code"] == status


def test_other_paths_and_methods(served):
    assert served.raw("GET", "/v1/geolocate", None, {})[0] == 405
    assert served.raw("GET", "/nothing", None, {})[0] == 404
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


def test_too_many_requests_are_turned_away(runs, tmp_path):
    with serving(runs / "laplace", tmp_path / "log", "--rate", "5", "--keep", "never") as served:
        found = [served.ask("/v1/geolocate", {"location": HERE})[0] for _ in range(40)]
    assert set(found) == {200, 429} and found[:4] == [200] * 4


def test_a_bucket_fills_again():
    now = [0.0]
    bucket = Bucket(2.0, clock=lambda: now[0])
    assert [bucket.take() for _ in range(3)] == [True, True, False]
    now[0] += 0.5
    assert [bucket.take() for _ in range(2)] == [True, False]


def test_never_kept_means_drawn_each_time(runs, tmp_path):
    with serving(runs / "laplace", tmp_path / "log", "--keep", "never") as served:
        found = served.ask("/v1/batch", {"locations": [HERE] * 200})[1]["reports"]
    assert len({json.dumps(report) for report in found}) > 20

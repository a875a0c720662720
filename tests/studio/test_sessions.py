"""One page, one session: jobs end with their page, pages do not disturb each other, the server
answers while solvers work."""

import json
import os
import statistics
import time
from pathlib import Path

import numpy as np
import pytest

from sfumato.studio.session import GRACE_S
from tests.studio.server import Page, Served


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


def _gone(pids: list[int], *, seconds: float = 20) -> bool:
    until = time.monotonic() + seconds
    while any(_alive(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.1)
    return not any(_alive(pid) for pid in pids)


def test_closing_a_page_stops_its_solver_and_leaves_the_other_page_at_work(studio: Served) -> None:
    with Page(studio) as one, Page(studio) as other:
        _closing_one_leaves_the_other(studio, one, other)


def _closing_one_leaves_the_other(studio: Served, one: Page, other: Page) -> None:
    for page in (one, other):
        page.ask("data", {"source": "four-corners"})
        page.ask("solve", {"solver": "exact", "max_loss": 120, "cell_m": 25})
    mine, theirs = (page.ask("state")["processes"] for page in (one, other))
    assert (
        len(mine) == len(theirs) == 2
        and not set(mine) & set(theirs)
        and all(map(_alive, mine + theirs))
    )

    waits = []
    for _ in range(20):  # the server answers while four processes work
        begin = time.perf_counter()
        other.ask("state")
        waits.append(time.perf_counter() - begin)
    print(
        f"\nanswers while solving: median {1000 * statistics.median(waits):.0f} ms, slowest"
        f" {1000 * max(waits):.0f} ms"
    )
    assert statistics.median(waits) < 0.5

    one.close()
    assert _gone(mine) and all(map(_alive, theirs))
    status, answer = studio.try_to_ask(f"api/{one.id}/state")
    assert status == 400 and "load it again" in answer["error"]
    assert other.ask("state")["solving"]
    other.close()
    assert _gone(theirs)


def test_a_page_loaded_again_finds_its_work_and_a_copied_one_shows_the_same(studio: Served) -> None:
    with Page(studio) as page:
        page.ask("data", {"source": "given"})
        assert studio.ask("api/session", {"previous": page.id})["session"] == page.id
        page.close()
        time.sleep(0.5)
        assert studio.ask("api/session", {"previous": page.id})["session"] == page.id
        assert page.ask("state")["data"]["name"] == "small.csv"


def test_two_pages_of_one_work_hear_the_same_and_closing_one_ends_nothing(studio: Served) -> None:
    with Page(studio) as one, Page(studio, one.id) as other:
        assert other.id == one.id
        one.ask("data", {"source": "given"})
        other.wait_for("changed")
        one.ask("solve", {"solver": "exact", "max_loss": 150, "cell_m": 20})
        other.wait_for("changed")
        running = [run for run in other.ask("state")["runs"] if run["state"] == "running"]
        assert len(running) == 1 and other.ask("state")["solving"]
        other.ask("stop")
        one.wait_for("solve-stopping")
        ended = {page: _ending(page) for page in (one, other)}
        assert ended[one] == ended[other]
        other.ask("solve", {"solver": "exact", "max_loss": 150, "cell_m": 20})
        other.close()
        time.sleep(GRACE_S + 1)
        assert one.ask("state")["runs"][-1]["state"] in ("running", "done")  # not stopped


def _ending(page: Page) -> dict:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for event in list(page.events):
            if event["kind"] in ("solve-stopped", "solve-done"):
                return event
        time.sleep(0.05)
    raise AssertionError("no ending in a minute")


def test_each_solver_says_a_whole_sentence_of_itself(studio: Served) -> None:
    """The line of a docstring ended in the middle: "calibrated to the budget on the"."""
    with Page(studio) as page:
        words = {one["name"]: one["words"] for one in page.ask("state")["solvers"]}
    assert words["laplace"].endswith("calibrated to the budget on the training data.")
    assert words["snap"] == "Reports the middle of the truth's cell."
    assert all(text.endswith(".") and "\n" not in text for text in words.values())


@pytest.mark.slow
def test_a_learner_stopped_before_and_after_it_has_a_mechanism_is_resumed(studio: Served) -> None:
    with Page(studio) as page:
        page.ask("data", {"source": "given"})
        assert {"codebook", "game"} <= {
            one["name"] for one in page.ask("state")["solvers"] if one["resumable"]
        }
        page.ask("solve", {"solver": "codebook", "max_loss": 150, "cell_m": 50})
        first = page.wait_for("solve-round", seconds=150)
        assert first["record"]["folds"] > 1 and "cloud" in first
        page.ask("stop")  # no mechanism is kept before all folds are learned
        stopped = page.wait_for("solve-stopped", seconds=60)
        run = stopped["run"]
        assert run["state"] == "interrupted" and run["solution"] is None
        assert "Resume continues" in stopped["error"]
        assert [one["id"] for one in page.ask("state")["runs"]] == [run["id"]]
        assert "no such run" in page.refused("attack", {"run": run["id"]})

        page.events.clear()
        page.ask("resume", {"run": run["id"]})
        while "folds" in first["record"]:
            first = page.wait_for("solve-round", seconds=150)
        assert np.isfinite(first["record"]["loss"])
        page.ask("stop")
        ended = page.wait_for("solve-done", seconds=100)
        assert ended["run"]["id"] == run["id"]
        assert ended["run"]["state"] == "interrupted" and "Stopped by hand" in ended["run"]["said"]

        page.events.clear()
        page.ask("resume", {"run": run["id"], "time_limit": 1})
        again = page.wait_for("solve-done", seconds=150)
        rounds = [
            event["record"]["round"]
            for event in page.events
            if event["kind"] == "solve-round" and "round" in event["record"]
        ]
        assert rounds and rounds[0] > first["record"]["round"]  # it did not begin anew
        assert again["run"]["solution"]["loss"]["value"] <= 150 * (1 + 1e-9)

        page.ask("solve", {"solver": "exact", "max_loss": 150, "cell_m": 50})
        page.ask("stop")
        assert "keeps nothing" in page.wait_for("solve-stopped", seconds=60)["error"]


def test_a_solver_stopped_at_once_says_so_and_another_can_start(studio: Served) -> None:
    with Page(studio) as page:
        page.ask("data", {"source": "given"})
        page.ask("solve", {"solver": "exact", "max_loss": 150, "cell_m": 50})
        page.ask("stop")
        page.ask("stop")
        assert "Stopped" in page.wait_for("solve-stopped")["error"]
        page.ask("solve", {"solver": "coin", "max_loss": 150})
        assert page.wait_for("solve-done")["run"]["state"] == "done"


def test_what_makes_no_sense_is_a_sentence(studio: Served, tmp_path: Path) -> None:
    with Page(studio) as page:
        assert "no data is chosen" in page.refused("solve", {"solver": "coin", "max_loss": 100})
        assert "choose four-corners or a file" in page.refused("data", {"source": "elsewhere"})
        assert "not a JSON object" in page.refused("solve", body=b"[")
        page.ask("file?name=../../odd.csv", body=b"user,lat,lon\na,not a number,2\n")
        assert "'not a number' in column 'lat'" in page.refused("data", {"source": "file"})
        page.ask("file?name=one.csv", body=b"user,lat,lon\na,48,2\na,48.001,2\n")
        assert "nobody to be confused with" in page.refused("data", {"source": "file"})
        page.ask("file?name=wide.csv", body=b"user,lat,lon\na,48,2\nb,10,40\n")
        assert "the field Region" in page.refused("data", {"source": "file"})
        page.ask("file?name=torn.parquet", body=b"PAR1 and then nothing")
        assert "torn.parquet" in page.refused("data", {"source": "file"})
        assert "no usable name" in page.refused("file?name=..", body=b"x")
        page.ask("data", {"source": "given"})
        for asked, said in (
            ({"solver": "coin", "max_loss": "many"}, "is a number; got 'many'"),
            ({"solver": "coin", "max_loss": -3}, "must be above 0"),
            ({"solver": "coin"}, "a budget in metres is missing"),
            ({"solver": "magic", "max_loss": 100}, "no solver 'magic'"),
            ({"solver": "coin", "max_loss": 100, "objective": "fame"}, "unknown objective 'fame'"),
            ({"solver": "coin", "max_loss": 100, "cell_m": 0}, "must be above 0"),
            ({"solver": "coin", "max_loss": 100, "seed": 1.5}, "whole number"),
            ({"solver": "coin", "max_loss": 100, "time_limit": -1}, "must be above 0"),
        ):
            assert said in page.refused("solve", asked)
        assert "no user 'nobody'" in page.refused("data", {"source": "given", "users": ["nobody"]})
        assert "fill in all three" in page.refused(
            "data", {"source": "given", "square": [48.8, None, 100]}
        )
        assert "no such run" in page.refused("preview", {"x": 0, "y": 0, "runs": ["none"]})
        assert "no game has begun" in page.refused("guess", {"user": "user0"})
        page.ask("solve", {"solver": "exact", "max_loss": 1, "cell_m": 500})
        until = time.monotonic() + 30
        while (
            not (failed := [event for event in page.events if event["kind"] == "solve-failed"])
            and time.monotonic() < until
        ):
            time.sleep(0.05)
        assert "the smallest possible loss is" in failed[0][
            "error"
        ] and "Traceback" not in json.dumps(failed)


@pytest.mark.parametrize("name", ["/etc/passwd", "..%2F..%2Fapp.py", "vendor/../../app.py"])
def test_only_the_pages_own_files_are_served(studio: Served, name: str) -> None:
    assert studio.request("GET", f"/{studio.token}/static/{name}")[0] in (400, 404)

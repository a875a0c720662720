"""The PWS Cup of 2019 (Osaka): its traces and its scores.

From the contest's rules and T. Murakami et al., "Designing a location trace anonymization contest",
PoPETs 2023.  Utility is the mean of max(0, 1 - d / 2 km).  I2 and I3 are 1 - the share of traces
that are given to the right user by the product of the visit frequencies of the reference traces
(1e-8 for a region never visited), of a tenth of the events (I2) or of those at 8 o'clock (I3).  T2
and T3 give no user two traces, and are 1 - the mean of max(0, 1 - d / 2 km) of the trace so given,
where a hospital counts ten times.  `law_known` is ours: all events, by the product of the laws of
the users' reports.  All are from 0 to 1; higher is more useful or more private.
"""

import csv
import gzip
from functools import cache
from typing import NamedTuple

import numpy as np

from paper.experiments import data_folder

USERS, EVENTS, SIDE = 2000, 40, 32
STEP_M = np.array([0.00375 * 91_000, 0.003125 * 111_000])  # of regions, by the contest's degrees
MIX = 0.01  # of everybody's visits in each user's, where the law is known
_REACH_M, _LEAST, _SHARE, _HOSPITAL = 2000.0, 1e-8, 0.1, 10.0
_AT_8 = np.arange(EVENTS) % 20 < 2


class Contest(NamedTuple):
    """Regions visited, users x events, and which regions are hospitals; places in metres."""

    reference: np.ndarray
    original: np.ndarray
    hospital: np.ndarray
    places: np.ndarray


@cache
def contest() -> Contest:
    """The files as arrays."""
    parts = {part: np.zeros((USERS, EVENTS), dtype=int) for part in ("reference", "original")}
    with gzip.open(data_folder() / "pwscup-osaka-traces.csv.gz", "rt") as rows:
        for row in csv.DictReader(rows):
            event = (int(row["time_id"]) - 1) % EVENTS
            parts[row["part"]][int(row["user"]) - 1, event] = int(row["reg_id"]) - 1
    with (data_folder() / "pwscup-osaka-regions.csv").open() as rows:
        hospital = np.array([row["hospital"] == "1" for row in csv.DictReader(rows)])
    at = np.arange(SIDE * SIDE)
    places = np.stack([at % SIDE, at // SIDE], axis=1) * STEP_M
    return Contest(parts["reference"], parts["original"], hospital, places)


def regions_of(reports: np.ndarray) -> np.ndarray:
    """The region of each report; outside, the nearest at the edge."""
    column, row = np.clip(np.rint(reports / STEP_M), 0, SIDE - 1).astype(int).T
    return np.asarray(row * SIDE + column)


def near(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """max(0, 1 - d / 2 km) of regions."""
    places = contest().places
    apart = np.linalg.norm(places[first] - places[second], axis=-1)
    return np.asarray(np.maximum(0.0, 1 - apart / _REACH_M))


def visits(events: np.ndarray) -> np.ndarray:
    """How often each user was in each region at these events of the reference traces."""
    counts = np.zeros((USERS, SIDE * SIDE))
    for event in np.flatnonzero(events):
        np.add.at(counts, (np.arange(USERS), contest().reference[:, event]), 1)
    return np.asarray(counts / events.sum())


def found(traces: np.ndarray, logs: np.ndarray, use: np.ndarray, *, once: bool) -> np.ndarray:
    """The likeliest user of each trace, by its events in `use`; with `once` no user has two."""
    free, users = np.zeros(USERS), np.zeros(USERS, dtype=int)
    by_region = np.ascontiguousarray(logs.T)
    for number, trace in enumerate(traces):
        users[number] = (by_region[trace[use[number]]].sum(axis=0) + free).argmax()
        free[users[number]] = -np.inf if once else 0.0
    return users


def scores(reports: np.ndarray, law: np.ndarray, seed: int) -> dict[str, float]:
    """Every score of one protected set of traces, in an order drawn by seed; `law` is P(region
    reported | region)."""
    random, truth = np.random.default_rng(seed), contest().original
    order = random.permutation(USERS)
    traces = reports[order]
    some = random.random((2, USERS, EVENTS)) < _SHARE
    home, whole = np.tile(_AT_8, (USERS, 1)), np.ones((USERS, EVENTS), dtype=bool)
    anywhere, at_8 = (np.log(np.maximum(visits(use), _LEAST)) for use in (whole[0], _AT_8))
    reported = (visits(whole[0]) * (1 - MIX) + MIX * visits(whole[0]).mean(axis=0)) @ law
    known = np.log(np.maximum(reported, _LEAST * _LEAST))
    weights = np.where(contest().hospital[truth], _HOSPITAL, 1.0)

    def wrong(logs: np.ndarray, use: np.ndarray) -> float:
        return 1 - float(np.mean(found(traces, logs, use, once=False) == order))

    def hidden(logs: np.ndarray, use: np.ndarray) -> float:
        inferred = np.empty_like(traces)
        inferred[found(traces, logs, use, once=True)] = traces
        return 1 - float(np.sum(weights * near(truth, inferred)) / weights.sum())

    return {
        "utility": float(near(truth, reports).mean()),
        "I2": wrong(anywhere, some[0]),
        "I3": wrong(at_8, home),
        "T2": hidden(anywhere, some[1]),
        "T3": hidden(at_8, home),
        "law_known": wrong(known, whole),
    }

"""What comes out of every path has the loss and the Bayes error of the mechanism: table, ONNX,
module, service, cluster.

The mechanism's figures are computed from its law; those of the output are estimated from 145 reports
of each of 55 truths.  A path must lie within the estimator's intervals, widened because thirteen
cases are judged at once (3.3 deviations in place of 1.96).

Power, by simulation (20 draws of each kind): sound reports were never refused.  Reports 10 % further
from the truth, on the grid, move the loss by 8, 20 and 4 m (laplace, net, codebook), where the
intervals reach 4.5, 4.5 and 3.5 m: caught in 20, 20 and 10 draws.  The truth's cell 5 % of the time
moves it by 8, 11 and 6 m: caught in all 20 of each.  The Bayes error alone is coarse: its intervals
reach 0.055, 0.011 and 0.024, and of these faults it caught 0 to 8 draws in 20.
"""

from dataclasses import replace

import numpy as np
import onnxruntime
import pyarrow as pa
import pytest
from pyarrow import parquet

import sfumato as sf
from sfumato.data.grid import STICKY_CELL_M, Grid
from sfumato.deploy.engines.dask import on_cluster
from sfumato.deploy.release import release
from sfumato.deploy.sanitize import sanitize
from sfumato.measure.judge import judge, judge_reports
from sfumato.randomness import uniforms
from tests.deploy.serving import serving
from tests.deploy.tables import DATA, write_parquet
from tests.deploy.test_cluster import clustered
from tests.web.conftest import rule_of
from tests.web.device import in_node

_DRAWN = DATA.train.take(np.linspace(0, len(DATA.train) - 1, 200).astype(int))
# At the middles of the cells that kept reports are for, one truth per cell: the service answers
# the middle, and one client's reports of a cell are one draw.
_MIDDLES = Grid(cell_m=STICKY_CELL_M).snap(_DRAWN.truth)
_FIRST = np.sort(np.unique(_MIDDLES, axis=0, return_index=True)[1])
SOME = replace(_DRAWN, truth=_MIDDLES).take(_FIRST)
HITS = 145
TRUTH = np.repeat(SOME.truth, HITS, axis=0)
SECRET = np.repeat(SOME.secret, HITS)
PLANE = DATA.train.plane
assert PLANE is not None
LATITUDE, LONGITUDE = PLANE.to_degrees(TRUTH)
KINDS = ("laplace", "net", "codebook")


def _table(folder, runs, kind, tmp_path, **options):
    table = pa.table({"latitude": LATITUDE, "longitude": LONGITUDE})
    write_parquet(tmp_path / "in" / "part.parquet", table)
    sanitize(runs / kind, tmp_path / "in", tmp_path / folder, **options)
    found = parquet.read_table(tmp_path / folder / "part.parquet")
    return found["latitude"].to_numpy(), found["longitude"].to_numpy()


def table_path(runs, bundles, kind, tmp_path):
    return _table("out", runs, kind, tmp_path)


def cluster_path(runs, bundles, kind, tmp_path):
    with clustered(tmp_path) as cluster:
        return _table("out", runs, kind, tmp_path, runner=on_cluster(cluster.address))


def onnx_path(runs, bundles, kind, tmp_path):
    released = release(sf.load_run(runs / kind), new_places=rule_of(kind))
    session = onnxruntime.InferenceSession(
        bundles / kind / "mechanism.onnx", providers=["CPUExecutionProvider"]
    )
    chance = uniforms(len(TRUTH), released.mechanism.draws)
    return released.written(session.run(["report"], {"truth": TRUTH, "chance": chance})[0])


def module_path(runs, bundles, kind, tmp_path):
    script = """
    const device = await load(given.folder);
    console.log(JSON.stringify(given.places.map(([latitude, longitude]) => {
      const report = device.report({ latitude, longitude });
      return [report.latitude, report.longitude];
    })));
    """
    places = np.stack([LATITUDE, LONGITUDE], axis=1).tolist()
    return np.array(in_node(script, {"folder": str(bundles / kind), "places": places})).T


def service_path(runs, bundles, kind, tmp_path):
    """One client per report of a truth: each has a key of its own."""
    clients = tuple(f"client-{number}" for number in range(HITS))
    found = np.empty((len(TRUTH), 2))
    options = ("--places", "1000")
    with serving(runs / kind, tmp_path / "log", *options, clients=clients) as served:
        places = [
            {"lat": lat, "lng": lng}
            for lat, lng in zip(LATITUDE[::HITS].tolist(), LONGITUDE[::HITS].tolist(), strict=True)
        ]
        for number, client in enumerate(clients):
            status, answer = served.ask("/v1/batch", {"locations": places}, client=client)
            assert status == 200
            found[number::HITS] = [
                (report["location"]["lat"], report["location"]["lng"])
                for report in answer["reports"]
            ]
    return found.T


PATHS = {
    "table": table_path,
    "onnx": onnx_path,
    "module": module_path,
    "service": service_path,
    "cluster": cluster_path,
}


# A cluster runs the table's own code: one kind is enough there.
_CASES = [
    (path, kind) for path in PATHS for kind in KINDS if path != "cluster" or kind == "laplace"
]


def off(exact, reports, grid):
    """Which figures of the reports are not the mechanism's."""
    cost = np.hypot(*(reports - TRUTH).T)
    found = judge_reports(SECRET, reports, grid, names=SOME.secrets, cost=cost)
    wide = 3.3 / 1.96
    wrong = {}
    for name in ("loss", "bayes_error"):
        true, estimate = getattr(exact, name), getattr(found, name)
        low = estimate.value - wide * (estimate.value - estimate.low)
        high = estimate.value + wide * (estimate.high - estimate.value)
        if not (low <= true.high and true.low <= high):
            wrong[name] = (true, estimate)
    return wrong


@pytest.mark.parametrize(("path", "kind"), _CASES)
def test_the_loss_and_the_bayes_error_are_the_mechanisms(runs, bundles, tmp_path, path, kind):
    released = release(sf.load_run(runs / kind), new_places=rule_of(kind))
    assert PLANE is not None
    reports = PLANE.to_metres(*PATHS[path](runs, bundles, kind, tmp_path))
    assert not off(judge(released.mechanism, SOME), reports, released.grid)

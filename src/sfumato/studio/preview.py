"""Where a run sends one point, and what the adversary then believes."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.spatial import cKDTree

from sfumato.data.joint import Joint
from sfumato.files import read_arrays, written_beside
from sfumato.mechanism.base import Mechanism
from sfumato.study.folder import load_run

_SAMPLES = 10
_MOST_CELLS = 3000
_FAINT = 1e-4  # of the likeliest report: what is rarer is not drawn


@dataclass(frozen=True, eq=False)
class ReportTable:
    """A mechanism and P(secret, report) on the training data."""

    mechanism: Mechanism
    places: np.ndarray
    posterior: Any  # secrets x places, sparse where users are many
    chance: np.ndarray
    tree: cKDTree

    def belief(self, reports: np.ndarray) -> np.ndarray:
        """P(secret | report), one row per report; one between the places that occur counts as
        the nearest of them."""
        beliefs = self.posterior[:, self.tree.query(reports)[1]].T
        return np.asarray(beliefs.toarray() if sparse.issparse(beliefs) else beliefs)


@lru_cache(maxsize=32)
def _report_table(folder: Path, stamp: int) -> ReportTable:
    """A run's mechanism and table; `stamp` changes when the table, which comes last, is written
    again."""
    arrays = read_arrays(table_path(folder), what="table of reports")
    table: Any = arrays.get("table")
    if table is None:
        parts = (arrays["data"], arrays["indices"], arrays["indptr"])
        table = sparse.csr_matrix(parts, shape=(len(parts[2]) - 1, len(arrays["places"])))
    joint = Joint(table, places=arrays["places"])
    occur = joint.place_probability > 0
    places = arrays["places"][occur]
    if joint.sparse is None:
        posterior: Any = joint.posterior[:, occur]
    else:
        scale = sparse.diags(1 / joint.place_probability[occur])
        posterior = sparse.csc_matrix(joint.sparse[:, np.flatnonzero(occur)] @ scale)
    return ReportTable(
        load_run(folder).mechanism,
        places,
        posterior,
        joint.place_probability[occur],
        cKDTree(places),
    )


def report_table(folder: Path) -> ReportTable:
    """The newest state of a run."""
    return _report_table(folder, table_path(folder).stat().st_mtime_ns)


def table_path(folder: Path) -> Path:
    """The file of P(secret, report) beside a run folder.  A budget of 173.5 m has a dot in the
    name: it is no suffix."""
    return folder.with_name(f"{folder.name}.table.npz")


def save_table(folder: Path, joint: Joint) -> None:
    """Write P(secret, report) beside a run folder."""
    assert joint.places is not None
    entries = joint.sparse
    table = (
        {"table": joint.table}
        if entries is None
        else {"data": entries.data, "indices": entries.indices, "indptr": entries.indptr}
    )
    with written_beside(table_path(folder)) as beside, beside.open("wb") as target:
        np.savez(target, allow_pickle=False, places=joint.places, **table)


def preview(folder: Path, truth: np.ndarray) -> dict[str, Any]:
    """The law at one truth as cells with chances, ten reports drawn from it, and the belief that
    each leaves."""
    table = report_table(folder)
    law = table.mechanism.law(Joint(np.ones((1, 1)), places=truth[None, :], secrets=("you",)))
    reports = table.mechanism.sample(np.repeat(truth[None, :], _SAMPLES, axis=0))
    answer: dict[str, Any] = {
        "samples": reports,
        "beliefs": table.belief(reports),
        "heat": None,
        "loss": None,
    }
    if law is not None:
        assert law.joint.places is not None
        chance = law.joint.place_probability
        order = np.argsort(-chance)[:_MOST_CELLS]
        order = order[chance[order] > _FAINT * chance[order[0]]]
        heat = np.column_stack([law.joint.places[order], chance[order]])
        answer |= {"heat": heat, "loss": law.loss, "drawn": float(chance[order].sum())}
    return answer

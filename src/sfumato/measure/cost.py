"""What a judgement takes, before it begins."""

import numpy as np

from sfumato.data.categories import CategoricalData
from sfumato.data.grid import Grid
from sfumato.data.samples import Samples
from sfumato.errors import arg
from sfumato.measure.judge import hits_for
from sfumato.mechanism.base import Mechanism
from sfumato.mechanism.law import TRUTHS_WHOLE
from sfumato.memory import Expected, check_fits

# Fitted to runs on one core (`python -m benchmarks foretold`): seconds of the start, per cell that
# noise is integrated over, per chance of a law at a place and for a pair of user and place, per
# report that is drawn.
START_S, _CELL_S, _CHANCE_S, _REPORT_S = 1.0, 8e-9, 1.5e-8, 1.4e-6
# Bytes of the start, per check-in, per user and report of a table, per chance of a law that is held
# whole, per report that is drawn.
_START_BYTES, _CHECKIN_BYTES, _TABLE_BYTES, _CHANCE_BYTES, _REPORT_BYTES = 220e6, 60, 28, 24, 100
_LOOKED_AT = 64  # truths whose rows tell how long rows are


def judging_cost(
    mechanism: Mechanism,
    samples: Samples | CategoricalData,
    *,
    grid: Grid | None = None,
    hits: int | None = None,
) -> Expected:
    """Seconds and bytes of `judge`; refuses what does not fit into memory and says what would.

    >>> from sfumato.data.synthetic import four_corners
    >>> from sfumato.mechanism.simple import Identity
    >>> judging_cost(Identity(), four_corners(seed=0).test).seconds < 10
    True
    """
    if isinstance(samples, CategoricalData):
        return Expected(START_S, _START_BYTES)
    joint = samples.joint()
    assert joint.places is not None
    users, truths = joint.shape
    seconds, size = START_S, _START_BYTES + _CHECKIN_BYTES * len(samples)
    window = mechanism.window(joint, grid)
    rows = None
    if window is None:
        rows = mechanism.rows(joint.places[:: -(-truths // _LOOKED_AT)])
    if window is not None:
        seconds += _CELL_S * window.terms
        size += _TABLE_BYTES * users * window.cells
    elif rows is not None:
        width = rows.matrix.nnz / rows.matrix.shape[0]
        few = joint.sparse is None
        pairs = np.count_nonzero(joint.table) if few else len(joint.pairs.weight)
        seconds += _CHANCE_S * (truths + pairs) * width
        # rows are worked out in parts where users or truths are many, and a user sends some of the
        # reports
        size += _CHANCE_BYTES * (truths if few and truths <= TRUTHS_WHOLE else 0) * width
        size += _TABLE_BYTES * min(users * max(len(rows.places), width), pairs * width)
    else:
        drawn = len(samples) * (hits_for(samples) if hits is None else hits)
        seconds, size = seconds + _REPORT_S * drawn, size + _REPORT_BYTES * drawn
    check_fits(
        size,
        what=f"measuring on {len(samples):,} check-ins of {users:,} users",
        advice=f"take larger cells ({arg('cell_m')}), or measure on fewer users",
    )
    return Expected(float(seconds), float(size))

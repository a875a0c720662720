"""What a notebook shows of a value: a small table without any coordinate of the data."""

from sfumato.data.categories import CategoricalData
from sfumato.data.samples import Samples, Split
from sfumato.measure.certificate import Certificate
from sfumato.render.html import environment
from sfumato.show import html
from sfumato.solver.frontier import Frontier
from sfumato.study.compare import Comparison
from sfumato.study.measure import Measured
from sfumato.study.solution import Solution
from sfumato.study.trade_off import TradeOff

# the macro of notebook.html.j2 for each class
_TABLES: dict[type, str] = {
    Samples: "samples",
    Split: "split",
    CategoricalData: "categories",
    Solution: "solution",
    Comparison: "comparison",
    Measured: "measured",
    Frontier: "frontier",
    TradeOff: "trade_off",
    Certificate: "certificate",
}


def _table(value: object) -> str:
    macros = environment().get_template("notebook.html.j2").module
    return str(getattr(macros, _TABLES[type(value)])(value)).strip()


for _class in _TABLES:
    html.register(_class, _table)

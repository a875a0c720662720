"""Change a location before it is sent, so that it hides who sent it within a loss budget.

    import sfumato as sf

    data = sf.four_corners(seed=0)  # or sf.read_checkins("log.csv").split(80, 20)
    problem = sf.Problem(data.train, max_loss=173)  # metres off, on average
    solution = sf.solve(problem, sf.Coin())
    print(sf.compare([solution], on=data.test))
    reports = solution.mechanism.sample(data.test.truth)

    data        read_checkins, read_categories, four_corners, Samples, Split, Plane, Grid
    problem     Problem
    solvers     Codebook, Exact, Game, Coin, Laplace
    answers     solve, judge, compare, Contender, certify, certify_to_come, frontier, leave_one_out,
                load_run, Solution, Certificate, Estimate
    to users    sanitize, assess, export
    the rest    sfumato.data, .mechanism, .adversary, .measure, .solver, .study, .deploy

`help(sfumato.solve)` explains one of them; every error of ours is a `SfumatoError`.
"""

# The names stand in `__init__.pyi`; each is imported when it is first used, so that `sfumato -h`
# answers at once.  There is no `__all__`: with one, `help(sfumato)` prints every docstring of ours.

from importlib import import_module

from sfumato import show
from sfumato.namespace import lazy
from sfumato.version import __version__ as __version__

__getattr__, _names = lazy(__name__, __file__)

show.worded_by(lambda: import_module("sfumato.render.text"))
show.worded_by(lambda: import_module("sfumato.render.endings"))
show.worded_by(lambda: import_module("sfumato.render.html"))
show.worded_by(lambda: import_module("sfumato.render.figures"))
show.worded_by(lambda: import_module("sfumato.render.assessment"))


def __dir__() -> list[str]:
    return sorted(_names)

"""What learning takes, before it begins."""

from sfumato.data.samples import Samples
from sfumato.errors import arg
from sfumato.memory import Expected, check_fits, free_bytes
from sfumato.solver.codebook.settings import (
    BATCH,
    NEW,
    Capacity,
    CodebookSettings,
    rows_in_a_step,
)
from sfumato.solver.exact.first_order import STEPS
from sfumato.solver.problem import Problem

# Fitted to runs on one core (`python -m benchmarks crowd`, `python -m benchmarks.city learn`):
# seconds of the start and of compiling; of a step, per row, and per row and place; of a sum over
# all truths, per truth, pair and user, and place; of a law that is measured, per truth and place.
_START_S = 3.0
_STEP_ROW_S, _STEP_PLACE_S = 4.7e-6, 1.2e-8
_SUM_TRUTH_S, _SUM_PAIR_S, _SUM_USER_S = 1e-8, 1.2e-9, 4.5e-8
_LAW_S = 4.3e-8
_SUMS = 60  # over all truths, in 1500 steps without distillation
_PARTS = 20  # after each of which a sum and a law are worked out
_LAWS = 40  # laws that are worked out while the budget is met
# The same for few users (`python -m benchmarks folds`): the start, and per step, row and place.
_FEW_START_S, _ROW_S = 8.0, 1.6e-8
_TIMES_OF_FOLDS = 3  # four nets of half the steps, and one that is released
_TIMES_FOR_SEVERAL = 5  # the folds' twice, for several reports and for one
_LAW_BYTES = 32.0  # per truth and place
# A step of the game that finds a teacher's law, per place and pair, truth and user; and its law.
_GAME_PAIR_S, _GAME_TRUTH_S, _GAME_USER_S = 1e-10, 2.5e-9, 1.5e-9
_TEACHER_BYTES = 12.0  # per truth and place
_START_BYTES, _BYTES_PER_CHECKIN, _BYTES_PER_ENTRY = 520e6, 60.0, 80.0


def few_cost(problem: Problem, settings: CodebookSettings) -> Expected:
    """Seconds and bytes, for a problem of few users."""
    capacity, truths = settings.capacity(problem), len(problem.places)
    nets = _TIMES_OF_FOLDS if problem.several is None else _TIMES_FOR_SEVERAL
    times = nets if settings.made_for == NEW else 1
    seconds = _FEW_START_S + times * capacity.steps * step_seconds(truths, settings, capacity)
    size = _START_BYTES + _LAW_BYTES * truths * capacity.places
    check_fits(
        size,
        what=f"learning from {truths:,} places",
        advice=f"keep fewer check-ins, or take fewer {arg('places')}",
    )
    return Expected(seconds, size)


def step_seconds(truths: int, settings: CodebookSettings, capacity: Capacity) -> float:
    """Of a step of one net, on one core."""
    rows = min(truths, rows_in_a_step(settings, capacity))
    times = 2 if settings.made_for == NEW else 1  # as many redrawn truths
    return times * rows * capacity.places * _ROW_S


def crowd_cost(problem: Problem, capacity: Capacity) -> Expected:
    """Seconds and bytes, for a problem of many users; refuses what does not fit into memory and
    says how many users would."""
    assert isinstance(problem.samples, Samples)
    users, truths = problem.joint.shape
    checkins, places = len(problem.samples), capacity.places
    pairs = len(problem.joint.pairs.weight)
    rows = truths if capacity.distillation and truths <= 2 * BATCH else BATCH
    seconds = _START_S + capacity.steps * rows * (_STEP_ROW_S + _STEP_PLACE_S * places)
    sums = _PARTS + (1 - capacity.distillation) * _SUMS * capacity.steps / 1500
    sum_s = _SUM_TRUTH_S * truths + _SUM_PAIR_S * pairs + _SUM_USER_S * users
    seconds += places * (sums * sum_s + (_PARTS + _LAWS) * _LAW_S * truths)
    size = _START_BYTES + _BYTES_PER_CHECKIN * checkins + _BYTES_PER_ENTRY * users * places
    if capacity.distillation:
        game = _GAME_PAIR_S * pairs + _GAME_TRUTH_S * truths + _GAME_USER_S * users
        seconds += STEPS * places * game
        size += _TEACHER_BYTES * truths * places
    free = free_bytes() or size
    fitting = max(2, int(users * (free - _START_BYTES) / max(size - _START_BYTES, 1)))
    check_fits(
        size,
        what=f"learning from {checkins:,} check-ins of {users:,} users",
        advice=(
            f"about {fitting:,} users would fit: keep those with {arg('top_users')}, pool more"
            f" with {arg('pool_below')}, or take fewer {arg('places')}"
        ),
    )
    return Expected(seconds, size)

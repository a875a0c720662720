"""Forged certificates: whatever is written into the file, no bound above the optimum is accepted.

The optimum is found by HiGHS from the definitions, by no code of the solver: on the grid, and for
the plane over the truths' places and a fine lattice, which no bound for the plane can be above.
"""

import io
import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from sfumato.data.samples import Samples
from sfumato.errors import SfumatoError
from sfumato.measure.certificate import claim_of, load_certificate
from sfumato.measure.objective import Gain
from sfumato.solver import Exact, Problem
from sfumato.study.solve import solve

CASES = int(os.environ.get("SFUMATO_FORGERIES", "5000"))
Arrays = dict[str, np.ndarray]


def users(seed: int, count: int, points: int) -> Samples:
    """Users about points of a circle of 100 m."""
    rng = np.random.default_rng(seed)
    angle = np.arange(count) / count * 2 * np.pi
    secret = np.repeat(np.arange(count), points)
    centres = 100 * np.column_stack([np.cos(angle), np.sin(angle)])
    truth = np.round(centres[secret] + rng.normal(0, 30, (count * points, 2)), 1)
    return Samples(secret, truth, tuple("abcdefgh"[:count]))


def least_leakage(problem: Problem, reports: np.ndarray) -> float:
    """By HiGHS: variables M(z|w) and one height t(z) of at least each guess's gain at z."""
    claim = claim_of(problem)
    truths, count = len(problem.places), len(reports)
    loss = problem.loss(problem.places[:, None, :], reports[None, :, :])
    gains = np.eye(len(claim.joint)) if claim.gains is None else claim.gains
    worth = gains @ claim.joint  # guesses x truths
    pairs = truths * count
    each = sparse.identity(count, format="csr")
    rows = [sparse.hstack([sparse.kron(guess[None, :], each), -each]) for guess in worth]
    right = [np.zeros(count)] * len(worth)
    for charge, limit in zip(*claim.budgets(), strict=True):
        rows.append(sparse.csr_matrix(np.r_[(charge[:, None] * loss).ravel(), np.zeros(count)]))
        right.append(np.array([limit]))
    allowed = np.inf if claim.cap is None else claim.cap
    upper = np.where(loss.ravel() <= allowed, 1.0, 0.0)
    found = linprog(
        np.r_[np.zeros(pairs), np.ones(count)],
        A_ub=sparse.vstack(rows),
        b_ub=np.concatenate(right),
        A_eq=sparse.hstack(
            [
                sparse.kron(sparse.identity(truths), np.ones((1, count))),
                sparse.csr_matrix((truths, count)),
            ]
        ),
        b_eq=np.ones(truths),
        bounds=np.column_stack(
            [np.r_[np.zeros(pairs), np.full(count, -np.inf)], np.r_[upper, np.full(count, np.inf)]]
        ),
        method="highs",
    )
    assert found.status == 0
    return float(found.fun)


@dataclass(frozen=True, eq=False)
class Case:
    """A problem, a true certificate's arrays, and the optimum on the grid and on the plane (at
    most)."""

    problem: Problem
    arrays: Arrays
    on_grid: float
    on_plane: float


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> list[Case]:
    """Three problems small enough to check a hundred proofs of in a second."""
    folder = tmp_path_factory.mktemp("true")
    budgets: list[dict[str, Any]] = [
        {"max_loss": 40.0},
        {"max_loss": 60.0, "max_distance": 120.0, "objective": Gain("guess-or-pass")},
        {"max_loss": None, "user_max_loss": {"a": 30.0, "b": 50.0}},
    ]
    found = []
    for number, options in enumerate(budgets):
        count = 2 if "user_max_loss" in options else 3
        problem = Problem(users(number, count, 3), cell_m=60.0, **options)
        certificate = solve(problem, Exact(), seed=0).certificate
        assert certificate is not None and certificate.on_plane is not None
        path = folder / f"{number}.npz"
        certificate.save(path)
        with np.load(path) as stored:
            arrays = dict(stored)
        axis = np.linspace(-150, 150, 11)
        fine = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
        on_grid = least_leakage(problem, problem.grid.centres())
        plane = least_leakage(problem, np.vstack([problem.places, fine]))
        true = load_certificate(path).bound(problem)
        assert true.plane is not None and true.plane <= min(plane, on_grid) + 1e-9
        assert on_grid - 3e-3 <= true.grid <= on_grid + 1e-9
        found.append(Case(problem, arrays, on_grid, min(plane, on_grid)))
    return found


EXTREME = [0.0, -0.0, 1.0, -1.0, 1e-300, 5e-324, 1e12, 1e15, 1e16, 1e300, np.inf, -np.inf, np.nan]


def a_number(rng: np.random.Generator, arrays: Arrays) -> None:
    """One number of one array, extreme or a little off."""
    name = rng.choice([n for n in arrays if arrays[n].dtype.kind in "fi" and arrays[n].size])
    array = arrays[name] = arrays[name].copy()
    at = int(rng.integers(array.size))
    if array.dtype.kind == "f":
        old = array.flat[at]
        array.flat[at] = rng.choice([*EXTREME, old * (1 + 1e-6), old * 2, old - 1, -old])
    else:
        array.flat[at] += rng.choice([-1, 1, 2, 30, 2**31, 2**62, -(2**62)])


def a_whole_array(rng: np.random.Generator, arrays: Arrays) -> None:
    """An array times a number, or shifted."""
    name = rng.choice([n for n in arrays if arrays[n].dtype.kind == "f" and arrays[n].size])
    by = rng.choice([0.0, 0.5, 2.0, 1 + 1e-7, 1e3, 1e6, 1e9, 1e15, -1.0])
    arrays[name] = arrays[name] * by if rng.random() < 0.7 else arrays[name] + by


def multipliers(rng: np.random.Generator, arrays: Arrays) -> None:
    for name in ("grid.multipliers", "plane.multipliers"):
        if rng.random() < 0.7:
            arrays[name] = arrays[name] * 10 ** rng.uniform(-3, 12)


def shares(rng: np.random.Generator, arrays: Arrays) -> None:
    """Scores above 1, rows that sum to nearly 1, rows of certainty, negative ones."""
    for name in ("grid.shares", "plane.shares"):
        table = arrays[name] = arrays[name].copy()
        some = rng.random(len(table)) < rng.choice([0.1, 1.0])
        kind = rng.integers(5)
        if kind == 0:
            table[some] *= 1 + 10 ** rng.uniform(-16, 1)
        elif kind == 1:
            table[some] = np.eye(table.shape[1])[rng.integers(0, table.shape[1], some.sum())]
        elif kind == 2:
            table[some, 0] += 5
            table[some, -1] -= 5
        elif kind == 3:
            table[some] = rng.dirichlet(np.ones(table.shape[1]), some.sum()) * (1 + 9e-7)
        else:
            table[some] = 1.0


def cells(rng: np.random.Generator, arrays: Arrays) -> None:
    """Cells moved, missing, doubled, overlapping, of another level."""
    table = arrays["plane.cells"] = arrays["plane.cells"].copy()
    row = int(rng.integers(len(table)))
    kind = rng.integers(7)
    if kind == 0:
        table[row, 1 + rng.integers(2)] += rng.choice([-3, -1, 1, 5])
    elif kind == 1:
        table[row, 0] += rng.choice([-9, -2, -1, 1, 2, 25, 40])
    elif kind == 2:
        table[:, 0] += rng.choice([-1, 1, 3])
    elif kind in (3, 4):
        some = rng.random(len(table)) < (0.5 if kind == 3 else 1 - 1 / len(table))
        for name in ("plane.cells", "plane.shares"):
            arrays[name] = arrays[name][some]
    elif kind == 5:
        for name in ("plane.cells", "plane.shares"):
            arrays[name] = np.concatenate([arrays[name], arrays[name][row : row + 1]])
    else:
        table[:, 1:] += rng.integers(-4, 5, 2)


def root(rng: np.random.Generator, arrays: Arrays) -> None:
    """The root moved, blown up, shrunk, of a billion kilometres."""
    table = arrays["plane.root"] = arrays["plane.root"].copy()
    kind = rng.integers(4)
    if kind == 0:
        table[:2] += rng.normal(0, 10 ** rng.uniform(-12, 8), 2)
    elif kind == 1:
        table[2] *= 10 ** rng.uniform(-6, 9)
    elif kind == 2:
        table *= 10 ** rng.uniform(-3, 9)
    else:
        table[:] = [-5e11, -5e11, 1e12]


def far_cells(rng: np.random.Generator, arrays: Arrays) -> None:
    """Few large cells far from all truths, with a price for the way to them."""
    side = 10 ** rng.uniform(2, 12)
    arrays["plane.root"] = np.array([-side / 2, -side / 2, side]) + rng.normal(
        0, side * rng.choice([0, 1e-6, 0.3, 2]), 3
    )
    level = int(rng.integers(0, 3))
    count = 1 << level
    table = np.array([[level, i, j] for i in range(count) for j in range(count)])
    arrays["plane.cells"] = table[rng.random(len(table)) < rng.choice([0.5, 1.0])]
    guesses = arrays["plane.shares"].shape[1]
    arrays["plane.shares"] = np.full((len(arrays["plane.cells"]), guesses), 1 / guesses)
    arrays["plane.multipliers"] = arrays["plane.multipliers"] * 10 ** rng.uniform(-9, 3)


def former_cells(rng: np.random.Generator, arrays: Arrays) -> None:
    """Cells as the first version had them: middles and half sides, moved apart."""
    half, apart = 10 ** rng.uniform(1, 12), 10 ** rng.uniform(-9, 6) * rng.integers(0, 2)
    signs = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
    guesses = arrays["plane.shares"].shape[1]
    for name in ("plane.root", "plane.cells"):
        del arrays[name]
    arrays["format"] = np.array("sfumato certificate 1")
    arrays["plane.places"] = signs * (half + apart / 2)
    arrays["plane.half_sides"] = np.full(4, half)
    arrays["plane.shares"] = np.full((4, guesses), 1 / guesses)
    arrays["plane.multipliers"] = arrays["plane.multipliers"] * 10 ** rng.uniform(-9, 3)


def a_shape(rng: np.random.Generator, arrays: Arrays) -> None:
    name = str(rng.choice(list(arrays)))
    array = arrays[name]
    arrays[name] = [
        array.reshape(-1),
        array[None],
        array.reshape(-1)[:0],
        array.T,
        np.concatenate([array.reshape(-1)] * 2),
        np.array(3.0),
        np.zeros((0, 2)),
        np.zeros((2, 0)),
    ][int(rng.integers(8))]


def a_kind(rng: np.random.Generator, arrays: Arrays) -> None:
    """Another type of number or of text."""
    name = str(rng.choice(list(arrays)))
    array = arrays[name]
    kind = str(
        rng.choice(["<f4", "<f2", ">f8", "<i8", "<u8", "<i4", "?", "<c16", "<U3", "S4", "<M8[s]"])
    )
    with np.errstate(all="ignore"):
        try:
            arrays[name] = array.astype(kind)
        except (ValueError, TypeError, RuntimeError, Warning):
            arrays[name] = np.zeros(array.shape, dtype=kind)


def a_name(rng: np.random.Generator, arrays: Arrays) -> None:
    """An array missing, or one more."""
    name = str(rng.choice(list(arrays)))
    if rng.random() < 0.5:
        del arrays[name]
    else:
        arrays[str(rng.choice(["x", "plane.half_sides", "plane.places", "grid."]))] = arrays[name]


def budgets(rng: np.random.Generator, arrays: Arrays) -> None:
    """Budgets swapped, or of another problem."""
    first, second = rng.choice(["max_loss", "max_distance", "user_limits"], 2, replace=False)
    arrays[first], arrays[second] = arrays[second], arrays[first]


def of_another(rng: np.random.Generator, arrays: Arrays, other: Arrays) -> None:
    """The proof of another problem under this one's name."""
    part = str(rng.choice(["grid.", "plane."]))
    for name in list(arrays):
        if name.startswith(part) and rng.random() < 0.8 and name in other:
            arrays[name] = other[name]


MUTATIONS: tuple[Callable[[np.random.Generator, Arrays], None], ...] = (
    a_number,
    a_whole_array,
    multipliers,
    shares,
    cells,
    root,
    far_cells,
    former_cells,
    a_shape,
    a_kind,
    a_name,
    budgets,
)


def forge(rng: np.random.Generator, arrays: Arrays, other: Arrays) -> None:
    """One to three changes."""
    for _ in range(int(rng.integers(1, 4))):
        try:
            with np.errstate(all="ignore"):
                if rng.random() < 0.05:
                    of_another(rng, arrays, other)
                else:
                    MUTATIONS[int(rng.integers(len(MUTATIONS)))](rng, arrays)
        except (KeyError, IndexError, ValueError, TypeError, ArithmeticError):
            continue  # an earlier change left nothing for this one


def write(path: Path, arrays: Arrays) -> None:
    """As NumPy does, without its time stamps and checks."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in arrays.items():
            body = io.BytesIO()
            np.lib.format.write_array(body, np.asarray(array), allow_pickle=False)
            archive.writestr(name + ".npy", body.getvalue())


def test_no_forged_certificate_is_accepted_above_the_optimum(
    cases: list[Case], tmp_path: Path
) -> None:
    """5,000 by default; SFUMATO_FORGERIES asks for more."""
    rng = np.random.default_rng(16)
    accepted = refused = 0
    for number in range(CASES):
        path = tmp_path / f"{number}.npz"  # a new name: to write over a file waits for the disk
        case = cases[number % len(cases)]
        arrays = dict(case.arrays)
        forge(rng, arrays, cases[(number + 1) % len(cases)].arrays)
        write(path, arrays)
        try:
            bounds = load_certificate(path).bound(case.problem)
        except SfumatoError:
            refused += 1
            continue
        finally:
            path.unlink()
        accepted += 1
        assert np.isfinite(bounds.grid) and bounds.grid <= case.on_grid + 1e-9
        assert bounds.plane is None or bounds.plane <= case.on_plane + 1e-9
    # neither side is empty: some changes leave a proof of something, most leave none
    assert accepted > CASES // 20 and refused > CASES // 5


def test_the_checks_against_known_mechanisms_are_not_what_the_forgeries_fail_on(
    cases: list[Case], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The arithmetic alone holds: without the last line of defence no forgery is above the optimum
    either."""
    monkeypatch.setattr("sfumato.measure.certificate.refuse_above", lambda *_: None)
    monkeypatch.setattr(f"{__name__}.CASES", CASES // 5)
    test_no_forged_certificate_is_accepted_above_the_optimum(cases, tmp_path)

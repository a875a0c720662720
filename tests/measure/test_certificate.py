"""Certificates in files: what is proved, for whom, and what is refused with its reason."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.data.categories import CategoricalData
from sfumato.data.grid import Region
from sfumato.data.joint import Joint
from sfumato.data.samples import Samples
from sfumato.errors import FileError
from sfumato.measure.bound import CertificateError, bound_grid
from sfumato.measure.cells import Cells
from sfumato.measure.certificate import (
    Certificate,
    PlaneProof,
    Proof,
    claim_of,
    known_leakages,
    load_certificate,
)
from sfumato.measure.objective import Bayes, Gain, Information, Objective
from sfumato.mechanism.channel import Channel
from sfumato.solver import Exact, Problem
from sfumato.solver.exact import best_within, plane_proof, task_of
from sfumato.study.solve import solve
from tests.solver.three_users import three_users

OBJECTIVES: tuple[Objective, ...] = (Bayes(), Information(), Gain("guess-or-pass"))


def problem_of(samples: Samples | None = None, **options: Any) -> Problem:
    return Problem(
        three_users(points=5) if samples is None else samples,
        **{"max_loss": 70.0, "cell_m": 100.0, **options},
    )


def some_certificate(problem: Problem, seed: int = 0, *, plane: bool = True) -> Certificate:
    """Random shares and multipliers: a valid proof of something, seldom of much."""
    rng = np.random.default_rng(seed)
    columns = (
        len(problem.joint.secrets)
        if not isinstance(problem.objective, Gain)
        else len(problem.objective.gains(problem.joint.secrets))
    )
    budgets = (problem.max_loss is not None) + (
        0 if problem.user_limits is None else len(problem.user_limits)
    )
    count = len(problem.report_places)
    prices = rng.exponential(0.005, budgets)
    on_grid = Proof(problem.report_places, rng.dirichlet(np.ones(columns), count), prices)
    on_plane = PlaneProof(
        Cells.over(problem.grid, problem.report_places),
        rng.dirichlet(np.ones(columns), count),
        prices,
    )
    return Certificate.of(problem, on_grid, on_plane if plane else None)


@pytest.fixture(scope="module")
def problem() -> Problem:
    return problem_of()


@pytest.fixture(scope="module")
def kept(problem: Problem, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("certificate") / "certificate.npz"
    some_certificate(problem).save(path)
    return path


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"max_loss": None, "user_max_loss": {"anna": 90.0, "ben": 60.0, "cleo": 70.0}},
        {"max_loss": None, "max_distance": 150.0},
        {
            "max_distance": 150.0,
            "user_max_loss": {"anna": 90.0, "ben": 60.0, "cleo": 70.0},
            "objective": Information(),
        },
    ],
    ids=["average", "per user", "cap", "all three"],
)
@pytest.mark.parametrize("plane", [True, False])
def test_a_certificate_that_was_saved_proves_the_same_again(
    options: dict[str, Any], plane: bool, tmp_path: Path
) -> None:
    asked = problem_of(**options)
    certificate = some_certificate(asked, plane=plane)
    certificate.save(tmp_path / "one.npz")
    again = load_certificate(tmp_path / "one.npz")
    assert again.bound(asked) == certificate.bound(asked)
    assert (again.bound(asked).plane is not None) == plane
    assert [path.name for path in tmp_path.iterdir()] == ["one.npz"]


def test_a_file_cut_at_any_length_is_refused(kept: Path, tmp_path: Path) -> None:
    whole = kept.read_bytes()
    cut = tmp_path / "cut.npz"
    for length in {
        0,
        1,
        3,
        4,
        30,
        100,
        500,
        *range(0, len(whole), max(1, len(whole) // 40)),
        len(whole) - 22,
        len(whole) - 1,
    }:
        cut.write_bytes(whole[:length])
        with pytest.raises(FileError, match="not a whole certificate file"):
            load_certificate(cut)


def test_a_damaged_file_is_refused_or_proves_the_same(
    kept: Path, problem: Problem, tmp_path: Path
) -> None:
    """A byte of an archive may mean nothing (a date); where it means something, the archive's own
    sums find it."""
    whole, proved = kept.read_bytes(), load_certificate(kept).bound(problem)
    spoilt = tmp_path / "spoilt.npz"
    refused = 0
    places = np.random.default_rng(1).integers(0, len(whole), 120)
    for place in places.tolist():
        spoilt.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        try:
            assert load_certificate(spoilt).bound(problem) == proved
        except (FileError, CertificateError):
            refused += 1
    assert refused > len(places) // 2


def test_zeros_at_the_end_of_a_cut_file_are_no_certificate(kept: Path, tmp_path: Path) -> None:
    whole = kept.read_bytes()
    (tmp_path / "sparse.npz").write_bytes(
        whole[: len(whole) // 2] + bytes(len(whole) - len(whole) // 2)
    )
    with pytest.raises(FileError, match="not a whole certificate file"):
        load_certificate(tmp_path / "sparse.npz")


def test_a_root_much_wider_than_the_truths_proves_nothing(
    problem: Problem, kept: Path, tmp_path: Path
) -> None:
    with np.load(kept) as stored:
        arrays = dict(stored)
    np.savez(tmp_path / "wide.npz", **{**arrays, "plane.root": arrays["plane.root"] * 1e5})
    with pytest.raises(CertificateError, match="m wide; expected at most"):
        load_certificate(tmp_path / "wide.npz").bound(problem)


def test_files_of_others_are_refused_with_the_reason(kept: Path, tmp_path: Path) -> None:
    path = tmp_path / "other.npz"
    with np.load(kept) as stored:
        arrays = dict(stored)
    for wrong, reason in (
        ({"grid.shares": np.eye(2)}, "the array 'format' is missing"),
        ({**arrays, "format": np.array("sfumato certificate 0")}, "of this version"),
        (
            {name: value for name, value in arrays.items() if name != "grid.shares"},
            "the array 'grid.shares' is missing",
        ),
        (
            {name: value for name, value in arrays.items() if name != "plane.cells"},
            "the array 'plane.cells' is missing",
        ),
        ({**arrays, "max_loss": np.array(3.0)}, "of another kind"),
        ({**arrays, "max_loss": np.ones(2)}, "not what it should be"),
        ({**arrays, "max_loss": np.array(["many"])}, "of another kind"),
        ({**arrays, "grid.shares": arrays["grid.shares"][:-1]}, "a row of shares for each place"),
        ({**arrays, "grid.places": arrays["grid.places"] * np.nan}, "finite"),
        ({**arrays, "plane.cells": arrays["plane.cells"][:-1]}, "row of shares for each of its"),
        ({**arrays, "plane.cells": arrays["plane.cells"] * 1.0}, "of another kind"),
        (
            {**arrays, "plane.root": arrays["plane.root"] * 1e15},
            "the root of the cells is a square",
        ),
        ({**arrays, "note": np.zeros(3)}, "an array 'note' that no file of its kind has"),
        ({**arrays, "plane.places": np.zeros((3, 2))}, "'plane.places' that no certificate has"),
    ):
        np.savez(path, **wrong)
        with pytest.raises(FileError, match=reason):
            load_certificate(path)
    np.save(tmp_path / "bare.npy", np.eye(3))
    # A pickle on purpose, of an empty dictionary: such a file must be refused, never opened.
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    (tmp_path / "words.npz").write_text("a certificate")
    for name in ("bare.npy", "objects.npy", "words.npz"):
        with pytest.raises(FileError, match="not a whole certificate file"):
            load_certificate(tmp_path / name)
    with pytest.raises(FileError, match="there is no certificate file"):
        load_certificate(tmp_path / "absent.npz")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"samples": three_users(seed=1, points=5)}, "is for other data"),
        ({"max_loss": 70.5}, "is for the budget 70 on average, not 70.5 on average"),
        ({"max_distance": 300.0}, "not 70 on average, 300 at most"),
        ({"max_loss": None, "max_distance": 300.0}, "not 300 at most"),
        ({"user_max_loss": dict.fromkeys(("anna", "ben", "cleo"), 70.0)}, "per user 70/70/70"),
        ({"objective": Information()}, "is for the objective bayes, not information"),
        ({"objective": Gain("two-guesses")}, "is for the objective bayes, not two-guesses"),
    ],
    ids=[
        "data",
        "budget",
        "a cap more",
        "a cap instead",
        "budgets per user",
        "information",
        "a gain",
    ],
)
def test_another_problem_is_refused_with_the_reason(
    kept: Path, options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(CertificateError, match=reason):
        load_certificate(kept).bound(problem_of(**options))


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("grid.shares", 0.9, "probability vector"),
        ("grid.multipliers", -1.0, "at least 0"),
        ("grid.multipliers", np.nan, "at least 0"),
        ("plane.root", np.array([1.0, 1.0, 0.5]), "do not cover the convex hull"),
    ],
)
def test_arrays_that_prove_nothing_are_refused(
    kept: Path, problem: Problem, tmp_path: Path, name: str, value: Any, reason: str
) -> None:
    """Whole files, with numbers that an adversary could not have: nothing is claimed from them."""
    with np.load(kept) as stored:
        arrays = dict(stored)
    np.savez(tmp_path / "bad.npz", **{**arrays, name: arrays[name] * value})
    with pytest.raises(CertificateError, match=reason):
        load_certificate(tmp_path / "bad.npz").bound(problem)


def test_places_beyond_all_distances_are_refused(kept: Path, tmp_path: Path) -> None:
    with np.load(kept) as stored:
        arrays = dict(stored)
    np.savez(tmp_path / "bad.npz", **{**arrays, "grid.places": arrays["grid.places"] * 0 + 1e300})
    with pytest.raises(FileError, match="finite numbers of metres"):
        load_certificate(tmp_path / "bad.npz")


def random_law(problem: Problem, seed: int, *, nearness_m: float = 60.0) -> np.ndarray:
    """A law on the problem's reports that keeps every cap, truths x reports, often with zeros."""
    rng = np.random.default_rng(seed)
    loss = problem.loss(problem.places[:, None, :], problem.report_places[None, :, :])
    law = rng.exponential(size=loss.shape) ** 3 * np.exp(-loss / nearness_m)
    if problem.max_distance is not None:
        law[loss > problem.max_distance] = 0.0
    return law / law.sum(axis=1, keepdims=True)


def budgets_kept_by(
    samples: Samples, law_seed: int, mode: int, objective: Objective
) -> tuple[Problem, Channel]:
    """A problem whose budgets a random law keeps with nothing to spare, and that law."""
    cap = 160.0 if mode in (2, 3) else None
    region = Region.around(samples.truth, margin_m=50)
    grid = Problem(samples, max_loss=1.0, cell_m=100.0, region=region, max_distance=cap)
    law = Channel(grid.places, grid.report_places, random_law(grid, law_seed))
    found = law.law(grid.joint)
    assert found is not None
    users = (
        dict(zip(samples.secrets, found.loss_of.tolist(), strict=True)) if mode in (1, 3) else None
    )
    budget = found.loss if mode in (0, 3) else None
    return (
        Problem(
            samples,
            budget,
            region=region,
            cell_m=100.0,
            user_max_loss=users,
            max_distance=cap,
            objective=objective,
        ),
        law,
    )


def leakage_of(problem: Problem, law: Channel) -> float:
    found = law.law(problem.joint)
    assert found is not None
    return problem.objective.leakage(found.joint)


@given(seed=st.integers(0, 10**6), mode=st.integers(0, 3), objective=st.sampled_from(OBJECTIVES))
def test_no_random_certificate_is_above_the_leakage_of_a_feasible_mechanism(
    seed: int, mode: int, objective: Objective
) -> None:
    problem, law = budgets_kept_by(three_users(seed % 7, points=3), seed, mode, objective)
    bounds = some_certificate(problem, seed).bound(problem)
    assert bounds.plane is not None
    assert max(bounds.grid, bounds.plane) <= leakage_of(problem, law) + 1e-12


@given(seed=st.integers(0, 10**6), mode=st.integers(0, 3), objective=st.sampled_from(OBJECTIVES))
def test_the_solvers_certificate_is_above_no_feasible_mechanism_and_not_far_below_its_own(
    seed: int, mode: int, objective: Objective
) -> None:
    """A bound that forgot a budget, a cap or a user would pass the random law, or fall from the
    solver's own."""
    problem, law = budgets_kept_by(three_users(seed % 7, points=3), seed, mode, objective)
    solution = solve(problem, Exact(plane=False))
    assert solution.certificate is not None
    bound = solution.certificate.bound(problem).grid
    assert bound <= leakage_of(problem, law) + 1e-12
    assert bound <= solution.leakage + 1e-12 and solution.leakage - bound < 3e-3


def test_the_bound_over_all_cells_is_at_most_the_bound_over_the_listed_ones() -> None:
    """Cells that miss the hull of the truths are not in the solver's list; the checker asks about
    them all the same."""
    problem = problem_of(region=Region((100.0, 80.0), 2600.0), cell_m=50.0, max_loss=60.0)
    assert len(problem.report_places) < 200 < 2500 < len(problem.grid.centres())
    certificate = solve(problem, Exact(plane=False)).certificate
    assert certificate is not None
    proof = certificate.on_grid
    loss = problem.loss(problem.places[:, None, :], problem.report_places[None, :, :])
    listed = bound_grid(
        claim_of(problem), proof.shares, proof.multipliers, lambda chosen: loss[:, chosen]
    )
    found = certificate.bound(problem)
    assert found.cells == len(problem.grid.centres())
    assert found.grid <= listed + 1e-12
    assert found.grid >= listed - 1e-3  # without a ring of cells about the hull it was 0.04 lower


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda one: one.name)
def test_the_plane_bound_is_below_the_grid_bound_is_below_the_leakage(
    objective: Objective, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = problem_of(objective=objective, cell_m=50.0, region=Region((100.0, 80.0), 500.0))
    monkeypatch.setattr(plane_proof, "_MAX_ROUNDS", 2)
    optimum = best_within(problem, gap=1e-4)
    on_cells = plane_proof.OnCells(task_of(problem), problem.places, optimum.multipliers)
    cells = plane_proof.split_until(
        on_cells,
        Cells.over(problem.grid, problem.report_places),
        optimum.scores,
        goal=optimum.bound,
    )
    on_plane = PlaneProof(cells.cells, cells.scores, cells.multipliers)
    whole = Certificate.of(
        problem, Proof(problem.report_places, optimum.scores, optimum.multipliers), on_plane
    ).bound(problem)
    law = Channel(problem.places, problem.report_places[optimum.reports], optimum.mechanism)
    assert whole.plane is not None
    assert whole.plane < whole.grid <= leakage_of(problem, law) + 1e-12
    assert leakage_of(problem, law) - whole.grid < 2e-3


def test_a_certificate_of_words_holds_for_its_table_only() -> None:
    joint = Joint(np.array([[0.3, 0.1, 0.1], [0.1, 0.1, 0.3]]), secrets=("yes", "no"))
    table = CategoricalData(
        joint,
        ("a", "b", "c"),
        ("a", "b", "c", "none"),
        np.array([[0, 1, 2, 3], [1, 0, 1, 3], [2, 1, 0, 3.0]]),
    )
    problem = Problem(table, max_loss=0.4)
    certificate = solve(problem, Exact()).certificate
    assert certificate is not None
    assert certificate.bound(problem).plane is None and certificate.bound(problem).cells == 4
    dearer = replace(table, losses=table.losses * 2)
    with pytest.raises(CertificateError, match="other data"):
        certificate.bound(Problem(dearer, max_loss=0.4))


def test_a_certificate_of_the_former_version_is_refused_with_how_to_make_it_anew(
    tmp_path: Path,
) -> None:
    """Its cells were rounded: four of a billion kilometres, moved apart, once proved 0.76 where a
    mechanism leaks 0.37."""
    some_certificate(problem_of(), plane=False).save(tmp_path / "former.npz")
    with np.load(tmp_path / "former.npz") as stored:
        arrays = dict(stored)
    arrays |= {
        "format": np.array("sfumato certificate 1"),
        "plane.places": np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]]) * 5e11,
        "plane.half_sides": np.full(4, 5e11),
        "plane.shares": np.full((4, 3), 1 / 3),
        "plane.multipliers": np.array([1e-6]),
    }
    np.savez(tmp_path / "former.npz", **arrays)
    with pytest.raises(FileError, match=r"expected 'sfumato certificate 2': remove it, and"):
        load_certificate(tmp_path / "former.npz")
    arrays["format"] = np.array("sfumato certificate 2")
    np.savez(tmp_path / "former.npz", **arrays)
    with pytest.raises(FileError, match=r"array 'plane\.places' that no certificate has"):
        load_certificate(tmp_path / "former.npz")


def test_cells_much_wider_than_the_data_are_refused() -> None:
    """So large that the check of the cover would forgive them 800 km."""
    problem = problem_of()
    certificate = some_certificate(problem, plane=False)
    for side, refused in ((1e6, False), (1.1e6, True)):
        corner = (-side / 2, -side / 2)
        cells = Cells(corner, side, np.array([[1, 0, 0], [1, 0, 1], [1, 1, 0], [1, 1, 1]]))
        whole = PlaneProof(cells, np.full((4, 3), 1 / 3), np.array([1e-6]))
        forged = replace(certificate, on_plane=whole)
        if refused:
            with pytest.raises(CertificateError, match=r"wide; expected at most 1\.024e\+06 m"):
                forged.bound(problem)
        else:  # large cells that do cover the hull: the blind guess
            assert forged.bound(problem).plane == pytest.approx(1 / 3)


def test_a_bound_above_a_known_mechanism_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever fault let it through: nothing is claimed that the coin within the budget refutes."""
    problem = problem_of()
    certificate = some_certificate(problem)
    for part in ("bound_grid", "bound_plane"):
        with monkeypatch.context() as patch:
            patch.setattr(f"sfumato.measure.certificate.{part}", lambda *_: 0.95)
            with pytest.raises(CertificateError, match="claims more than a known mechanism allows"):
                certificate.bound(problem)


@given(seed=st.integers(0, 10**6), mode=st.integers(0, 3), objective=st.sampled_from(OBJECTIVES))
def test_known_mechanisms_leak_no_less_than_the_optimum(
    seed: int, mode: int, objective: Objective
) -> None:
    problem, _ = budgets_kept_by(three_users(seed % 7, points=3), seed, mode, objective)
    certificate = solve(problem, Exact(plane=False)).certificate
    assert certificate is not None
    on_grid, _ = known_leakages(problem)
    assert certificate.bound(problem).grid <= on_grid


def test_files_that_tell_places_of_the_data_are_their_owners_alone(tmp_path: Path) -> None:
    from sfumato.mechanism.simple import Coin
    from sfumato.solver import learner

    problem = problem_of()
    some_certificate(problem).save(tmp_path / "certificate.npz")
    Channel.identity(problem.places).save(tmp_path / "channel.npz")
    learner.save(tmp_path / "checkpoint.npz", {"a": np.zeros(2)}, [], of="x")
    Coin(keep=0.5, place=(1.0, 2.0)).save(tmp_path / "coin.npz")
    modes = {path.stem: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes["certificate"] == modes["channel"] == modes["checkpoint"] == 0o600
    assert modes["coin"] & 0o044 == 0o044 & ~umask()


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

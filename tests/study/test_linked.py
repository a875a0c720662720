"""Runs for linked reports: kept, read back, certified, and the whole trade-off."""

from dataclasses import replace

import numpy as np
import pytest

import sfumato as sf
from sfumato.data.joint import Joint
from sfumato.data.recipe import Recipe
from sfumato.errors import ProblemError, SfumatoError
from sfumato.measure.bound import CertificateError
from sfumato.measure.certificate import check_again, load_certificate
from sfumato.measure.linked import overlap_at_least
from sfumato.measure.population import certify_population
from sfumato.study.certify import certify_run
from sfumato.study.linked import linked_trade_off
from sfumato.study.question import problem_of

CSV = "user,x,y\n" + "".join(f"{'abc'[n % 3]},{37 * n % 101},{53 * n % 89}\n" for n in range(24))


@pytest.fixture(scope="module")
def recipe(tmp_path_factory) -> Recipe:
    folder = tmp_path_factory.mktemp("data")
    (folder / "data.csv").write_text(CSV)
    return Recipe(str(folder / "data.csv"))


def _run(recipe, folder, *, cell_m=20, **asked):
    problem = sf.Problem(recipe.load().train, cell_m=cell_m, **asked)
    solution = sf.solve(problem, sf.Exact())
    solution.save(folder, recipe=recipe)
    return solution


@pytest.mark.parametrize(
    "asked", [{"max_loss": 12, "reports": 4}, {"max_loss": 12, "reports": "endless"}]
)
def test_a_run_says_for_how_many_reports_and_its_bound_holds(recipe, tmp_path, asked):
    made = _run(recipe, tmp_path / "run", **asked)
    run = sf.load_run(tmp_path / "run")
    assert run.record.reports == asked["reports"] and run.record.objective == "overlap"
    assert problem_of(run, recipe.load().train).reports == asked["reports"]
    assert f"For {asked['reports']} reports seen together" in run.record.status
    certified = certify_run(tmp_path / "run")
    assert certified.gap.value == pytest.approx(made.leakage - certified.gap.bounds.grid)
    assert certified.gap.value >= -1e-9 and "told apart at a rate of at least" in str(certified)
    if asked["reports"] == "endless":
        assert certified.gap.value <= 1.1e-3


def test_where_the_budget_makes_linking_useless_no_proof_is_missed(recipe, tmp_path):
    _run(recipe, tmp_path / "run", max_loss=25, reports="endless")
    assert "no mechanism can do better" in str(certify_run(tmp_path / "run"))


def test_the_endless_budget_is_certified_and_a_forged_one_refused(recipe, tmp_path):
    made = _run(recipe, tmp_path / "run", reports="endless")
    certified = certify_run(tmp_path / "run")
    assert certified.gap.bounds.grid <= made.loss <= certified.gap.bounds.grid * 1.001
    assert "linking is useless" in str(certified) and certified.as_dict()["unit"] == "m"
    assert sf.measure.least_overlap(made.measured.joint) == pytest.approx(1, abs=1e-9)
    certificate = load_certificate(tmp_path / "run" / "certificate.npz")
    proof = replace(certificate.on_grid, shares=certificate.on_grid.shares * 1e3)
    assert replace(certificate, on_grid=proof).bound(certified.problem).grid < made.loss
    twice = replace(certificate.on_grid, multipliers=np.array([4.0]))
    with pytest.raises(CertificateError, match="its multiplier is 1"):
        replace(certificate, on_grid=twice).bound(certified.problem)


def test_a_certificate_of_linked_reports_is_not_one_of_a_single_report(recipe, tmp_path):
    _run(recipe, tmp_path / "run", max_loss=20, reports=4)
    certificate = load_certificate(tmp_path / "run" / "certificate.npz")
    one = sf.Problem(recipe.load().train, cell_m=20, max_loss=20)
    with pytest.raises(CertificateError, match="for the objective overlap, not bayes"):
        certificate.bound(one)
    without = replace(certificate.on_grid, pair_weights=None)
    with pytest.raises(CertificateError, match="a weight of at least 0 for each"):
        replace(certificate, on_grid=without).bound(replace(one, reports=4))


@pytest.mark.parametrize("asked", [{"max_loss": 12, "reports": "endless"}, {"reports": "endless"}])
def test_the_plane_is_proved_too_and_both_checkers_say_so(recipe, tmp_path, asked):
    _run(recipe, tmp_path / "run", cell_m=5, **asked)
    certified = certify_run(tmp_path / "run")
    bounds, problem = certified.gap.bounds, certified.problem
    assert 0 < bounds.plane <= bounds.grid and "anywhere on the plane" in str(certified)
    assert bounds.plane > bounds.grid - (0.0081 if problem.max_loss else 0.05 * bounds.grid)
    path = tmp_path / "run" / "certificate.npz"
    found = check_again(path, problem, bounds)
    assert float(found.plane) == pytest.approx(bounds.plane, rel=1e-6)
    # Whatever is reported, anywhere: laws that keep the budget leak no less than the bound.
    random = np.random.default_rng(0)
    table, truths = problem.joint.table, problem.places
    for _ in range(50):
        reports = np.concatenate([truths, random.uniform(-20, 120, (10, 2))])
        cost = np.linalg.norm(truths[:, None] - reports[None], axis=2)
        law = random.gamma(0.3, size=cost.shape) * np.exp(-cost / random.uniform(3, 30))
        law = law / law.sum(axis=1, keepdims=True)
        if problem.max_loss is None:  # one law for all: what is reported depends on nothing
            law = np.tile(law.mean(axis=0), (len(law), 1))
            assert table.sum(axis=0) @ np.sum(law * cost, axis=1) >= bounds.plane
            continue
        spent = table.sum(axis=0) @ np.sum(law * cost, axis=1)
        stay = np.eye(len(truths), len(reports))
        share = min(1.0, problem.max_loss / spent)  # the truth itself costs nothing
        seen = Joint(table @ (share * law + (1 - share) * stay))
        assert 1 - sf.measure.least_overlap(seen) >= bounds.plane
    # A proof that claims more is refused by both.
    certificate = load_certificate(path)
    proof = certificate.on_plane
    assert proof is not None
    forged = replace(proof, multipliers=proof.multipliers * 4)
    if problem.max_loss is None:
        with pytest.raises(CertificateError, match="its multiplier is 1"):
            replace(certificate, on_plane=forged).bound(problem)
    kept = np.arange(len(proof.cells)) != proof.cells.holding(truths)[0]
    cut = replace(proof, cells=proof.cells[kept], shares=proof.shares[kept])
    with pytest.raises(CertificateError, match="do not cover"):
        replace(certificate, on_plane=cut).bound(problem)
    replace(certificate, on_plane=cut).save(path)
    with pytest.raises(SfumatoError):
        check_again(path, problem, bounds)


@pytest.mark.parametrize("asked", [{"max_loss": 9, "reports": "endless"}, {"reports": "endless"}])
def test_what_holds_for_check_ins_to_come_holds_for_their_law(recipe, tmp_path, asked):
    law = recipe.load().train  # as the law that check-ins are drawn from
    random = np.random.default_rng(5)

    def drawn(each):
        own = [random.choice(np.flatnonzero(law.secret == user), each) for user in range(3)]
        return law.take(np.concatenate(own))

    problem, held = sf.Problem(drawn(20), cell_m=20, **asked), drawn(800)
    made = sf.solve(problem, sf.Exact())
    proved = certify_population(made.certificate, problem, made.mechanism, held)
    best = sf.solve(replace(problem, samples=law), sf.Exact())  # for the law itself
    seen = made.mechanism.law(law.joint())
    assert 0.3 < 1 - proved.most <= sf.measure.least_overlap(seen.joint)
    if problem.max_loss is None:
        assert 0.5 * best.loss < proved.least_plane <= proved.least_grid <= best.loss
        assert "gives all users one law" in str(proved)
        return
    assert proved.least_plane <= proved.least_grid and 0 < proved.least_grid <= best.leakage
    assert "told apart at a rate of at least" in str(proved)
    assert "any two users overlap by at least" in str(proved) and "overlap at least" in repr(proved)


def test_the_least_overlap_of_a_law_is_above_what_samples_prove_nine_times_in_ten():
    random = np.random.default_rng(2)
    laws = np.array([[0.5, 0.3, 0.2, 0.0], [0.3, 0.3, 0.3, 0.1], [0.1, 0.2, 0.3, 0.4]])
    true = sf.measure.least_overlap(Joint(laws / 3))
    held = 0
    for _ in range(200):
        drawn = np.array([random.multinomial(60, law) for law in laws]) / 180
        low = overlap_at_least(Joint(drawn), np.full(3, 60), delta=0.1)
        assert low < sf.measure.least_overlap(Joint(drawn))
        held += low <= true
    assert held >= 180  # 0.9 of them; Cantelli holds with room


def test_the_trade_off_rises_with_the_budget_and_falls_with_the_reports(recipe):
    news, grown = [], []
    found = linked_trade_off(
        recipe.load().train,
        counts=(5, 1, "endless"),
        first=15,
        last=45,
        points=3,
        cell_m=20,
        progress=news.append,
        watch=lambda so_far: grown.append(len(so_far.points)),
    )
    assert grown == list(range(1, len(found.points) + 1))
    assert news[1].startswith("the loss from which linking is useless: round 1")
    assert "budget 1 of 4: laws for 5 reports, from start 3 of 3" in news  # none is silent for long
    assert found.counts == (1, 5) and found.endless is not None
    assert found.endless.loss in [point.max_loss for point in found.points]
    errors = np.array([[error.value for error in point.bayes_errors] for point in found.points])
    assert np.all(np.diff(errors, axis=0) >= 0) and np.all(errors[:, 0] >= errors[:, 1] - 1e-9)
    assert np.all(np.diff([point.overlap_bound for point in found.points]) >= -1e-6)
    assert all(point.overlap <= point.overlap_bound for point in found.points)
    assert found.endless.loss < 45 and found.points[-1].bayes_errors[1].value == pytest.approx(
        found.blind
    )
    assert "linking is useless" in str(found) and found.as_dict()["endless_budget"] is not None


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "many", 10**6, float("nan")])
def test_what_is_no_number_of_reports_is_refused(recipe, count):
    with pytest.raises(ProblemError, match="a whole number from 1 to 10000 or 'endless'"):
        sf.Problem(recipe.load().train, max_loss=20, reports=count)


def test_linked_reports_go_with_neither_information_nor_a_bayes_error(recipe):
    data = recipe.load().train
    with pytest.raises(ProblemError, match="got information"):
        sf.Problem(data, max_loss=20, reports=2, objective=sf.measure.Information())
    with pytest.raises(ProblemError, match="got a Bayes error"):
        sf.Problem(data, min_bayes_error=0.3, reports=2)

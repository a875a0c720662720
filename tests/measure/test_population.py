"""What is said of check-ins to come holds for populations whose law is known."""

from dataclasses import replace

import numpy as np
import pytest

import sfumato as sf
from sfumato.data.samples import Samples
from sfumato.errors import DataError
from sfumato.measure.bound import CertificateError
from sfumato.measure.certificate import Certificate, PlaneProof, Proof
from sfumato.measure.exact import bayes_error, mutual_information
from sfumato.measure.objective import Bayes, Gain, Information
from sfumato.measure.population import certify_population, evidence_of, least_scores
from sfumato.measure.to_come import figures_to_come, matched
from sfumato.solver.exact import best_within
from tests.measure.test_certificate import some_certificate

# Three users over twelve places, each with four of their own and a tenth of the check-ins anywhere.
PLACES = np.array([[x, y] for x in (0.0, 100.0, 200.0, 300.0) for y in (0.0, 90.0, 180.0)])
CHANCES = np.full((3, 12), 0.1 / 12)
for _user in range(3):
    CHANCES[_user, 4 * _user : 4 * _user + 4] += 0.9 * np.array([0.4, 0.3, 0.2, 0.1])
SHARES = np.array([0.5, 0.3, 0.2])
NAMES = ("anna", "ben", "cleo")


def draw(count: int, seed: int) -> Samples:
    rng = np.random.default_rng(seed)
    counts = (SHARES * count).astype(int)
    secret = np.repeat(np.arange(3), counts)
    place = np.concatenate([rng.choice(12, size=n, p=CHANCES[x]) for x, n in enumerate(counts)])
    return Samples(secret, PLACES[place], NAMES, name=f"drawn {seed}")


def population() -> Samples:
    """The law itself, as samples, enough that each place has about its share."""
    counts = np.rint(SHARES[:, None] * CHANCES * 20_000).astype(int)
    secret = np.repeat(np.arange(3), counts.sum(axis=1))
    places = np.concatenate([np.repeat(PLACES, counts[x], axis=0) for x in range(3)])
    return Samples(secret, places, NAMES, name="population")


def problem_of(samples: Samples, **options) -> sf.Problem:
    return sf.Problem(samples, **{"max_loss": 40.0, "cell_m": 60.0, **options})


@pytest.fixture(scope="module")
def made():
    """A certificate and two mechanisms from 200 check-ins, and the law's own figures."""
    problem = problem_of(draw(200, 0))
    exact = sf.solve(problem, sf.Exact(gap=0.005))
    whole = problem_of(population(), region=problem.region)
    best = best_within(whole, gap=1e-3)
    return problem, exact, sf.solve(problem, sf.Coin()), whole, best


def test_all_of_it_holds_together_for_a_known_law(made):
    """80 draws at 90 %: were it to fail in 20 % of them, 9 or fewer failures would have a chance of
    3 %."""
    problem, exact, coin, whole, best = made
    wrong = {"exact": 0, "coin": 0}
    for name, solved in (("exact", exact), ("coin", coin)):
        law = solved.mechanism.law(whole.joint, loss=whole.loss)
        for seed in range(1, 41):
            found = certify_population(
                exact.certificate, problem, solved.mechanism, draw(150, seed), confidence=0.9
            )
            kept = found.loss.low <= law.loss <= found.loss.high
            kept &= found.error <= bayes_error(law.joint) + 1e-3
            kept &= found.least_grid <= best.leakage + 1e-3
            kept &= found.least_plane <= best.leakage + 1e-3
            wrong[name] += not kept
    assert sum(wrong.values()) <= 9, wrong


def test_more_check_ins_narrow_the_bracket(made):
    problem, exact, _, _, _ = made
    few, many = (
        certify_population(exact.certificate, problem, exact.mechanism, draw(count, 3))
        for count in (100, 6000)
    )
    assert many.width < 0.5 * few.width and many.needed(0.0001) > 6000 and few.needed() > 100
    low, high = many.bracket
    assert low == many.error and high >= many.best_error and many.at_loss >= 40


@pytest.mark.parametrize("objective", [Bayes(), Information(), Gain("guess-or-pass")])
@pytest.mark.parametrize("budget", [{}, {"user_max_loss": dict.fromkeys(NAMES, 40.0)}])
def test_each_check_in_is_judged_as_the_certificate_judges_a_truth(objective, budget):
    """h by a slow loop over all reports, on the grid and on the plane."""
    samples = draw(60, 1)
    options = {"max_loss": None, **budget} if budget else {}
    problem = problem_of(samples, objective=objective, **options)
    certificate, held = some_certificate(problem, seed=2), draw(30, 2)
    for on_plane in (False, True):
        scores, low, high, _, _ = least_scores(certificate, problem, held, on_plane=on_plane)
        proof = certificate.on_plane if on_plane else certificate.on_grid
        for at in range(0, 30, 7):
            x, place = held.secret[at], held.truth[at]
            price = proof.multipliers.sum() if not budget else proof.multipliers[x]
            if on_plane:
                losses = proof.cells.least_distance(place[None, :])[0]
                shares = proof.shares
            else:
                centres = problem.grid.centres()
                losses = problem.loss(place[None, :], centres)
                near = np.argmin(
                    np.linalg.norm(centres[:, None] - proof.places[None], axis=2), axis=1
                )
                shares = proof.shares[near]
            score = _scores(objective, shares, samples.joint().prior)[:, x]
            expected = np.min(score + price * losses)
            assert scores[at] == pytest.approx(np.clip(expected, low, high), abs=1e-6)
        assert np.all((scores >= low) & (scores <= high))


def _scores(objective, shares, prior):
    if objective.scores == "information":
        return np.log((0.99 * shares + 0.01 * prior) / prior)
    gains = objective.gains(NAMES)
    return shares if gains is None else shares @ gains


def test_a_place_outside_the_training_hull_is_never_worth_more_than_reports_there(made):
    """Reports outside the cells get the score of the nearest point of the hull; whoever is there
    may report the place itself."""
    problem, exact, _, _, _ = made
    proof = exact.certificate.on_plane
    outside = np.array([[-500.0, 90.0], [700.0, 700.0], [150.0, -50.0]])
    held = Samples(np.array([0, 1, 2]), outside, NAMES)
    scores, _, _, _, _ = least_scores(exact.certificate, problem, held, on_plane=True)
    nearest = np.clip(outside, 0, [300.0, 180.0])
    for at, (score, place) in enumerate(zip(scores, nearest, strict=True)):
        own = proof.cells.least_distance(place[None, :])[0] == 0
        assert score <= proof.shares[own, at].max() + 1e-9


def test_scores_that_are_forged_prove_nothing_false(made):
    """Sure guesses and high prices are an adversary like any other; what is none is refused."""
    problem, exact, coin, _, best = made
    held = draw(400, 9)
    grid, plane = exact.certificate.on_grid, exact.certificate.on_plane
    sure = np.eye(3)[np.random.default_rng(0).integers(0, 3, len(grid.shares))]
    for shares, price in ((sure, 0.5), (sure, 1e-6), (grid.shares, 1e9)):
        forged = Certificate.of(problem, Proof(grid.places, shares, np.array([price])))
        found, _ = evidence_of(forged, problem, held, on_plane=False, delta=0.05)
        assert found.lower(0.05) <= best.leakage
    for shares, prices in (
        (2 * grid.shares, [0.01]),
        (grid.shares, [-0.01]),
        (-grid.shares, [0.1]),
    ):
        forged = replace(exact.certificate, on_grid=Proof(grid.places, shares, np.array(prices)))
        with pytest.raises(CertificateError):
            certify_population(forged, problem, coin.mechanism, held)
    half = PlaneProof(
        plane.cells[: len(plane.cells) // 2],
        plane.shares[: len(plane.cells) // 2],
        plane.multipliers,
    )
    with pytest.raises(CertificateError, match="do not cover"):
        certify_population(replace(exact.certificate, on_plane=half), problem, coin.mechanism, held)
    with pytest.raises(CertificateError, match="other data"):
        certify_population(exact.certificate, problem_of(held), coin.mechanism, draw(50, 3))


def test_figures_to_come_hold_for_a_known_law(made):
    _, exact, coin, whole, _ = made
    train = draw(200, 0)
    for mechanism in (exact.mechanism, coin.mechanism):
        law = mechanism.law(whole.joint, loss=whole.loss)
        inside = np.zeros(3)
        for seed in range(1, 31):
            found = figures_to_come(mechanism, draw(150, seed), train, confidence=0.9)
            truths = (law.loss, bayes_error(law.joint), mutual_information(law.joint))
            each = (found.loss, found.bayes_error, found.information_bits)
            inside += [
                one.low - 1e-3 <= truth <= one.high + 1e-3
                for one, truth in zip(each, truths, strict=True)
            ]
        assert inside.min() >= 24  # of 30 at 90 %: fewer have a chance of 1 %


def test_a_law_that_is_not_finite_has_a_loss_and_no_leakage(made):
    from sfumato.mechanism.laplace import PlanarLaplace

    problem, exact, _, _, _ = made
    found = certify_population(exact.certificate, problem, PlanarLaplace.for_loss(70), draw(400, 4))
    assert found.most is None and found.error is None and found.bracket is None
    assert found.loss.low < 70 < found.loss.high
    assert "nothing is proved of its leakage" in str(found)


def test_the_text_says_for_whom_and_shows_no_place(made):
    problem, exact, _, _, _ = made
    found = certify_population(exact.certificate, problem, exact.mechanism, draw(400, 4))
    said = str(found)
    assert said.startswith("On check-ins to come, with 95 % confidence (by 400 held-out check-ins")
    assert "even one that knows its user" in said and "on this 60 m grid: at most 0." in said
    record = found.as_dict()
    assert record["sentence"] == said and record["bracket"] == list(found.bracket)
    assert "[" not in repr(found) and repr(found).startswith("<PopulationCertificate: Bayes error")


def test_held_out_check_ins_must_be_of_the_same_users():
    train = draw(60, 0)
    other = replace(draw(60, 1), secrets=("dora", "emil", "fritz"))
    with pytest.raises(DataError, match="holds none of the 3 users"):
        matched(other, train)
    with pytest.raises(DataError, match=r"0 check-in\(s\) of user cleo"):
        matched(draw(60, 1).of_users(("anna", "ben")), train)
    mixed = replace(draw(60, 1), secrets=("ben", "cleo", "anna"))
    own = matched(mixed, train)
    assert own.secrets == NAMES and np.array_equal(own.secret, (mixed.secret + 1) % 3)

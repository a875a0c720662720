"""The coverage run: what it draws, what it says of each population, and its page."""

from pathlib import Path

import numpy as np

from paper.pages import coverage as pages
from paper.runs import coverage


def test_a_population_is_known_and_its_page_counts_what_holds(tmp_path: Path) -> None:
    coverage.main(tmp_path, range(6))
    rows = pages._rows(tmp_path)
    assert len(rows) == 6 * len(coverage.SIZES)
    assert {row["mechanism"] for row in rows} == {"exact", "coin"}
    for row in rows:
        assert row["error"][1] < row["best"][1] <= 1 - 1 / row["users"] + 1e-6
        assert row["loss"][1] < row["loss"][2] and row["interval"][0] < row["interval"][1]
    assert sum(row["fitted"] is not None for row in rows) == 2
    # of 18 trials at 95 %, fewer than 14 have a chance of 1e-3
    assert sum(pages._held(row)["all together"] for row in rows) >= 14
    wrong = rows[0] | {"best": [0.9, 0.5]}
    assert not pages._held(wrong)["all together"] and pages._held(rows[0])["loss"]
    pages.main(tmp_path)
    page = (tmp_path / "coverage.md").read_text(encoding="utf-8")
    assert "6 populations" in page and "18 trials" in page and (tmp_path / "coverage.png").exists()


def test_check_ins_are_drawn_from_each_users_own_law() -> None:
    whole, metres, drawn = coverage.population(4)
    sample = coverage.drawn_from(whole, 5000, (1, 2))
    assert sample.counts.tolist() == [5000] * drawn["users"] and metres > 0
    for user in range(drawn["users"]):
        law, seen = (one.truth[one.secret == user].mean(axis=0) for one in (whole, sample))
        assert np.all(np.abs(law - seen) < 10)  # metres: 5 standard errors of a spread of 140 m

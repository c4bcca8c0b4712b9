"""The Hosmer-Lemeshow test: by hand, edges, refusals."""

import numpy as np
import pytest
from scipy.stats import chi2

from calibrant import CalibrantError, hosmer_lemeshow_test
from calibrant.datasets import load_flares, simulate


def test_by_hand():
    # Two groups of four: one event where one is expected, four where two are.
    y, p = [1, 0, 0, 0, 1, 1, 1, 1], [0.25] * 4 + [0.5] * 4
    found = hosmer_lemeshow_test(y, p, n_groups=2)
    assert found.statistic == pytest.approx(2**2 / (4 * 0.5 * 0.5))
    assert found.degrees_of_freedom == 2
    assert found.p_value == pytest.approx(chi2.sf(4, 2))
    assert found.groups.n.tolist() == [4, 4]


def test_against_the_formula_on_sorted_rows():
    y, p = simulate("overconfident", 500, rng=1)
    order = np.argsort(p)
    groups = zip(np.split(y[order], 10), np.split(p[order], 10), strict=True)
    statistic = sum((a.sum() - b.sum()) ** 2 / (50 * b.mean() * (1 - b.mean())) for a, b in groups)
    found = hosmer_lemeshow_test(y, p)
    assert found.statistic == pytest.approx(statistic)
    assert found.p_value == pytest.approx(chi2.sf(statistic, 10))
    fitted = hosmer_lemeshow_test(y, p, fitted=True)
    assert fitted.degrees_of_freedom == 8
    assert fitted.p_value < found.p_value


def test_equal_scores_stay_together():
    y, p = load_flares("NOAA")
    found = hosmer_lemeshow_test(y, p)
    assert found.degrees_of_freedom == len(found.groups.n) < 10
    assert found.groups.n.sum() == found.n == 731
    assert "depends on the groups" in repr(found)


def test_size_on_new_data():
    rng = np.random.default_rng(0)
    rejected = [
        hosmer_lemeshow_test(*simulate("perfect", 500, rng=rng)).p_value < 0.05 for _ in range(400)
    ]
    assert 0.02 <= np.mean(rejected) <= 0.09


def test_certain_predictions():
    assert hosmer_lemeshow_test([0, 0, 1, 1], [0, 0, 1, 1], n_groups=2).p_value == 1
    wrong = hosmer_lemeshow_test([0, 1, 1, 1], [0, 0, 1, 1], n_groups=2)
    assert wrong.statistic == np.inf
    assert 0 < wrong.p_value < 1e-300


def test_refusals():
    with pytest.raises(CalibrantError, match="n_groups"):
        hosmer_lemeshow_test([0, 1], [0.2, 0.8], n_groups=1)
    with pytest.raises(CalibrantError, match="more than two different values"):
        hosmer_lemeshow_test([0, 1, 0], [0.2, 0.8, 0.8], fitted=True)
    with pytest.raises(CalibrantError, match="soft labels"):
        hosmer_lemeshow_test([0.5, 1], [0.2, 0.8])

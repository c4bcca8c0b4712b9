"""Leznik, "Soft Mean Expected Calibration Error" (2026): propositions and population values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import calibrant as cb
from tests.tolerances import nearly

PROBABILITIES = hnp.arrays(float, st.integers(1, 80), elements=st.floats(0, 1))


def posterior(k, x):
    return 1 / (1 + np.exp(-k * x))


@given(p=PROBABILITIES, seed=st.integers(0, 2**32 - 1), n_bins=st.integers(1, 20))
def test_proposition_1_hard_labels_give_the_ece(p, seed, n_bins):
    y = np.random.default_rng(seed).integers(0, 2, len(p))
    soft = cb.soft_label_ece(y.astype(float), p, n_bins=n_bins)
    total = 0.0
    for k in range(n_bins):
        rows = (p >= k / n_bins) & ((p < (k + 1) / n_bins) | (k == n_bins - 1))
        total += abs(y[rows].sum() - p[rows].sum()) / len(p)
    assert soft == pytest.approx(total, abs=1e-12)
    assert soft == nearly(cb.ece(y, p, n_bins=n_bins))


@given(p=PROBABILITIES, n_bins=st.integers(1, 50))
def test_proposition_2_the_posterior_itself_has_no_error(p, n_bins):
    assert cb.soft_label_ece(p, p, n_bins=n_bins) == 0.0


@pytest.mark.parametrize("k", [0.5, 1, 2, 5])
def test_proposition_3_thresholded_outcomes_leave_a_floor(k):
    # The limit is sum_b w_b abs(mean posterior - share above the threshold), whatever n.
    grid = (np.arange(400_000) + 0.5) / 400_000 * 6 - 3
    p = posterior(k, grid)
    limit = cb.ece((p > 0.5).astype(int), p, n_bins=10)
    assert limit > 0.01
    errors = []
    for n in (1000, 100_000):
        x = np.random.default_rng(n).uniform(-3, 3, n)
        p = posterior(k, x)
        errors.append(abs(cb.ece((p > 0.5).astype(int), p, n_bins=10) - limit))
        assert cb.soft_label_ece(p, p) == 0.0
    assert errors[1] < 0.004


def test_population_values():
    # Model A (the posterior at k = 2) against labels 1[x >= 0]: 0.1151 by quadrature.
    grid = (np.arange(1_000_000) + 0.5) / 1_000_000 * 6 - 3
    p = posterior(2, grid)
    assert cb.ece((grid >= 0).astype(int), p, n_bins=10) == pytest.approx(0.1151, abs=5e-5)

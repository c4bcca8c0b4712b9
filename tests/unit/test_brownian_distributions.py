"""Distributions of Brownian motion: precision in both tails, crossover, means and quantiles."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from calibrant.numerics import probability
from calibrant.numerics.probability import brownian_max, brownian_range
from tests.tolerances import ROUNDING
from tests.twins import brownian as twin

TWINS = {brownian_max: twin.max_cdf, brownian_range: twin.range_cdf}
BOTH = pytest.mark.parametrize("law", TWINS, ids=lambda law: law.name)
X = [0.1, 0.2, 0.5, 1.0, 1.25, 1.4, 1.5, 2.0, 2.1, 3.0, 5.0, 8.0, 10.16, 20.0, 30.0, 37.0]


@BOTH
@pytest.mark.parametrize("x", X)
def test_both_tails_against_four_hundred_digits(law, x):
    assert law.sf(x) == pytest.approx(twin.sf(TWINS[law], x), rel=ROUNDING, abs=0)
    assert law.cdf(x) == pytest.approx(float(TWINS[law](x)), rel=ROUNDING, abs=0)


def test_tails_reach_the_smallest_doubles():
    assert 0 < brownian_max.sf(37.5) < 1e-300
    assert 0 < brownian_range.sf(37.5) < 1e-300
    assert 0 < brownian_max.cdf(0.0423) < 1e-298
    assert 0 < brownian_range.cdf(0.0843) < 1e-297


@BOTH
def test_the_two_series_agree_across_the_crossover(law):
    x = np.linspace(0.75, 1.25, 201) * law.crossover
    together = law.lower(x).sum(axis=0) + law.upper(x).sum(axis=0)
    np.testing.assert_allclose(together, 1, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(law.cdf(x) + law.sf(x), 1, rtol=0, atol=ROUNDING)
    assert np.all(np.diff(law.cdf(x)) > 0)


@BOTH
def test_no_term_is_missing_at_the_crossover(law, monkeypatch):
    here = np.asarray(law.crossover)
    few = law.lower(here).sum(axis=0), law.upper(here).sum(axis=0)
    monkeypatch.setattr(probability, "_TERMS", 20)
    many = law.lower(here).sum(axis=0), law.upper(here).sum(axis=0)
    # Sums near 1 of other numbers of terms: each term may be rounded in another way.
    np.testing.assert_allclose(few, many, rtol=0, atol=1e-14)


@BOTH
def test_mean_by_integration(law):
    mean, _ = quad(law.sf, 0, 40, points=[law.crossover], epsabs=ROUNDING, limit=200)
    assert law.mean() == pytest.approx(mean, abs=ROUNDING)


def test_means():
    assert brownian_max.mean() == pytest.approx(math.sqrt(math.pi / 2), rel=ROUNDING)
    assert brownian_range.mean() == pytest.approx(2 * math.sqrt(2 / math.pi), rel=ROUNDING)


@BOTH
def test_quantiles_undo_the_distribution_function(law):
    q = np.array([1e-300, 1e-20, 1e-3, 0.05, 0.3, 0.5, 0.7, 0.95, 0.999])
    np.testing.assert_allclose(law.cdf(law.ppf(q)), q, rtol=1e-10)
    near_one = 1 - 2.0 ** -np.arange(1, 53)
    np.testing.assert_allclose(law.sf(law.ppf(near_one)), 1 - near_one, rtol=1e-12)


@BOTH
def test_quantiles_at_the_ends(law):
    assert law.ppf(0.0) == 0
    assert law.ppf(1.0) == math.inf
    assert np.isnan(law.ppf([-0.1, 1.1, math.nan])).all()


@BOTH
def test_beyond_the_ends(law):
    np.testing.assert_array_equal(law.cdf([-1.0, 0.0, 1e-200, math.inf]), [0, 0, 0, 1])
    np.testing.assert_array_equal(law.sf([-1.0, 0.0, 1e-200, math.inf]), [1, 1, 1, 0])
    assert math.isnan(law.cdf(math.nan))
    assert math.isnan(law.sf(math.nan))


@BOTH
def test_shapes(law):
    assert law.cdf(1.0).shape == ()
    assert law.sf([1.0, 2.0]).shape == (2,)
    assert law.ppf([[0.1, 0.2]]).shape == (1, 2)

"""The slow twins of the smooth family, on cases computed by hand."""

import numpy as np
import pytest
from scipy.integrate import quad

from tests.tolerances import ROUNDING
from tests.twins import smooth as twin


@pytest.mark.parametrize("x", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("s", [0.02, 0.3, 2.0])
def test_the_kernel_holds_all_its_mass(x, s):
    mass, _ = quad(lambda t: twin.reflected_gaussian(t, x, s), 0, 1, points=[x], limit=200)
    assert mass == pytest.approx(1.0, abs=1e-9)


def test_one_row():
    # h is the kernel times the residual: its integral is the residual's size at any scale.
    assert twin.smooth_error([1], [0.25], None, 0.1) == pytest.approx(0.75, abs=1e-12)
    assert twin.smooth_fixed_point([1], [0.25]) == pytest.approx(0.75, abs=1e-12)


def test_residuals_far_apart_do_not_meet():
    value = twin.smooth_error([1, 0], [0.2, 0.8], None, 0.01)
    assert value == pytest.approx((0.8 + 0.8) / 2, abs=1e-12)


def test_opposite_residuals_at_one_place_cancel():
    assert twin.smooth_error([1, 0], [0.5, 0.5], None, 0.1) == pytest.approx(0.0, abs=ROUNDING)


def test_two_opposite_residuals_on_the_line():
    # r phi(t) - r phi(t - d): integral of the absolute value = 2 r (2 Phi(d / 2s) - 1).
    from scipy.stats import norm

    value = twin.line_error([0.0, 1.0], [0.5, -0.5], 0.7)
    assert value == pytest.approx(2 * 0.5 * (2 * norm.cdf(0.5 / 0.7) - 1), abs=1e-12)


def test_uniform_noise_on_one_logit():
    # Mean of 1 - rho over [-1/2, 1/2] is 1/2 by symmetry.
    assert twin.uniform_logit_smoothed_error([0.0], [1], [1.0], 1.0) == pytest.approx(0.5)


def test_density_of_one_row_is_its_residual_on_average():
    # Mass stays in [0, 1], and t averages to p away from the ends.
    value = twin.density_error([1], [0.5], None, 0.05, "triweight")
    assert value == pytest.approx(0.5, abs=1e-9)


def test_sampling_approaches_the_integral():
    rng = np.random.default_rng(0)
    u = rng.normal(0, 1.5, 60)
    y = rng.integers(0, 2, 60)
    exact = twin.logit_smoothed_error(u, y, np.full(60, 1 / 60), 0.5)
    sampled = twin.sampled_logit_smoothed_error(u, y, 0.5, 20_000, rng)
    assert sampled == pytest.approx(exact, abs=0.005)

"""The integral of abs(f) from values on a grid."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant.numerics import smoothing
from calibrant.numerics.abs_integral import abs_integral, abs_integral_even, rough_abs_integral_even
from tests.tolerances import ROUNDING


def fine_integral(f, n=400_000):
    """Return the integral of abs(f) over [0, 1] by the midpoint rule, good to about 1e-11."""
    t = (np.arange(n) + 0.5) / n
    return np.abs(f(t)).mean()


@pytest.mark.parametrize("seed", range(20))
def test_cosine_series(seed):
    rng = np.random.default_rng(seed)
    b = rng.normal(size=9) / 2.0 ** np.arange(9)
    k = np.arange(9)

    def f(t):
        return np.cos(np.pi * np.outer(t, k)) @ b

    values = f(np.arange(101) / 100)
    integral, steepness = abs_integral_even(values)
    assert integral == pytest.approx(fine_integral(f), abs=1e-10)
    if not np.any(np.diff(np.sign(values))):
        assert steepness == 0


@pytest.mark.parametrize("seed", range(20))
def test_function_that_is_not_even(seed):
    rng = np.random.default_rng(seed)
    shift, slope = rng.uniform(-1, 1, 2)

    def f(t):
        return np.sin(7 * t + shift) + slope * t

    values = f(np.linspace(0, 1, 101))
    assert abs_integral(values) == pytest.approx(fine_integral(f), abs=1e-10)


def test_zero_at_a_grid_point_and_at_the_end():
    t = np.linspace(0, 1, 65)
    assert abs_integral(t - 0.5) == pytest.approx(0.25, abs=ROUNDING)
    assert abs_integral(0.5 - t) == pytest.approx(0.25, abs=ROUNDING)
    assert abs_integral(t) == pytest.approx(0.5, abs=ROUNDING)
    assert abs_integral(-t) == pytest.approx(0.5, abs=ROUNDING)
    assert abs_integral(1 - t) == pytest.approx(0.5, abs=ROUNDING)
    assert abs_integral(t - 1) == pytest.approx(0.5, abs=ROUNDING)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("where", [0.5, 0.3, 0.9])
@pytest.mark.parametrize("depth", [0.009, 0.001, 1e-4])
def test_dip_between_two_grid_points(sign, where, depth):
    n = 64
    centre = (20 + where) / n

    def f(t):
        return sign * ((t - centre) ** 2 * (1 + 0.3 * t) - depth / n**2)

    values = f(np.arange(n + 1) / n)
    assert np.all(values * sign > 0)  # nothing to be seen on the grid
    # A parabola with a slight lean: between its zeros lie 4/3 of half its width times its depth.
    dipped = 4 / 3 * np.sqrt(depth / (1 + 0.3 * centre)) / n * depth / n**2

    def antiderivative(t):
        return (t - centre) ** 3 / 3 * (1 + 0.3 * centre) + 0.3 * (t - centre) ** 4 / 4

    above = antiderivative(1.0) - antiderivative(0.0) - depth / n**2
    # A thousandth of what dips below, which is 5e-12 or more, and rounding.
    assert abs_integral(values) == pytest.approx(above + 2 * dipped, abs=1e-3 * dipped + 1e-14)


def test_nothing_at_all():
    assert abs_integral_even(np.zeros(64)) == (0, 0)
    assert abs_integral(np.zeros(64)) == 0


@pytest.mark.parametrize("scale", [0.01, 0.03, 0.1, 0.4])
def test_derivative_with_respect_to_the_scale(scale):
    rng = np.random.default_rng(5)
    p = rng.random(300)
    r = ((rng.random(300) < p) - p) / 300
    a = smoothing.spectrum([(p, [r])], 1, len(p), 0.005)[0]
    _, derivative = smoothing.l1_norm(a, scale)
    step = 1e-5 * scale
    above, below = (smoothing.l1_norm(a, scale + sign * step)[0] for sign in (1, -1))
    assert derivative == pytest.approx((above - below) / (2 * step), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_rough_integral_is_near(seed):
    rng = np.random.default_rng(seed)
    f = np.fft.irfft(rng.normal(size=9) / 2.0 ** np.arange(9), 400)[:201]
    rough, exact = rough_abs_integral_even(f), abs_integral_even(f)
    assert rough[0] == pytest.approx(exact[0], rel=1e-5)
    assert rough[1] == pytest.approx(exact[1], rel=0.02)


@pytest.mark.parametrize("size", [1e-300, 1e-170, 1e-20, 1e20])
def test_size_does_not_matter(size):
    f = np.fft.irfft(np.random.default_rng(1).normal(size=30), 128)[:65]
    # Squares of the smallest numbers are 0, and little harm comes of it.
    rel = 0.01 if size < 1e-100 else 1e-12
    for integral in (abs_integral_even, rough_abs_integral_even):
        assert integral(f * size)[0] == pytest.approx(size * integral(f)[0], rel=rel, abs=0)


def test_dips_of_even_functions():
    t = np.arange(65) / 64
    f = (np.cos(np.pi * t) - np.cos(np.pi * 20.4 / 64)) ** 2 - 1e-6
    assert np.all(f > 0)  # nothing to be seen on the grid
    _, steepness = abs_integral_even(f)
    # At both zeros f' is 2e-3 times the slope of the cosine, nearly.
    assert steepness == pytest.approx(4e-3 * np.pi * np.sin(np.pi * 20.4 / 64), rel=0.01)

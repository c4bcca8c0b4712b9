"""The integral of abs(f) from values on a grid."""

from __future__ import annotations

import numpy as np
import pytest

from calibrant import absolute, cosine
from calibrant.fixed_point import fixed_point
from tests.tolerances import ROUNDING, nearly


def fine_mean(f, n=400_000):
    """Return the mean of abs(f) over [0, 1] by the midpoint rule, good to about 1e-11."""
    t = (np.arange(n) + 0.5) / n
    return np.abs(f(t)).mean()


@pytest.mark.parametrize("seed", range(20))
def test_cosine_series(seed):
    rng = np.random.default_rng(seed)
    b = rng.normal(size=9) / 2.0 ** np.arange(9)
    k = np.arange(9)

    def f(t):
        return np.cos(np.pi * np.outer(t, k)) @ b

    period = f(np.arange(200) / 100)
    mean, steepness = absolute.even_mean(period)
    assert mean == pytest.approx(fine_mean(f), abs=1e-10)
    if not np.any(np.diff(np.sign(period[:101]))):
        assert steepness == 0


@pytest.mark.parametrize("seed", range(20))
def test_function_that_is_not_even(seed):
    rng = np.random.default_rng(seed)
    shift, slope = rng.uniform(-1, 1, 2)

    def f(t):
        return np.sin(7 * t + shift) + slope * t

    values = f(np.linspace(0, 1, 101))
    assert absolute.mean(values) == pytest.approx(fine_mean(f), abs=1e-10)


def test_zero_at_a_grid_point_and_at_the_end():
    t = np.linspace(0, 1, 65)
    assert absolute.mean(t - 0.5) == pytest.approx(0.25, abs=ROUNDING)
    assert absolute.mean(0.5 - t) == pytest.approx(0.25, abs=ROUNDING)
    assert absolute.mean(t) == pytest.approx(0.5, abs=ROUNDING)
    assert absolute.mean(-t) == pytest.approx(0.5, abs=ROUNDING)
    assert absolute.mean(1 - t) == pytest.approx(0.5, abs=ROUNDING)
    assert absolute.mean(t - 1) == pytest.approx(0.5, abs=ROUNDING)


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
    assert absolute.mean(values) == pytest.approx(above + 2 * dipped, abs=1e-3 * dipped + 1e-14)


def test_nothing_at_all():
    mean, steepness = absolute.even_mean(np.zeros(64))
    assert mean == 0
    assert steepness == 0
    assert absolute.mean(np.zeros(64)) == 0


@pytest.mark.parametrize("scale", [0.01, 0.03, 0.1, 0.4])
def test_derivative_with_respect_to_the_scale(scale):
    rng = np.random.default_rng(5)
    p = rng.random(300)
    r = ((rng.random(300) < p) - p) / 300
    a = cosine.spectrum(p, [r], 0.005)[0]
    _, derivative = cosine.abs_integral(a, scale)
    step = 1e-5 * scale
    above, below = (cosine.abs_integral(a, scale + sign * step)[0] for sign in (1, -1))
    assert derivative == pytest.approx(float(above - below) / (2 * step), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_rough_mean_is_near(seed):
    rng = np.random.default_rng(seed)
    f = np.fft.irfft(rng.normal(size=9) / 2.0 ** np.arange(9), 400)
    rough, exact = absolute.rough_even_mean(f), absolute.even_mean(f)
    assert rough[0] == pytest.approx(exact[0], rel=1e-5)
    assert rough[1] == pytest.approx(exact[1], rel=0.02)


@pytest.mark.parametrize("size", [1e-300, 1e-170, 1e-20, 1e20])
def test_size_does_not_matter(size):
    f = np.fft.irfft(np.random.default_rng(1).normal(size=30), 128)
    # Squares of the smallest numbers are 0, and little harm comes of it.
    rel = 0.01 if size < 1e-100 else 1e-12
    for mean in (absolute.even_mean, absolute.rough_even_mean):
        assert mean(f * size)[0] == pytest.approx(size * mean(f)[0], rel=rel, abs=0)


def test_many_functions():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3, 40)).cumsum(axis=1)
    assert absolute.mean(rows) == nearly(np.array([absolute.mean(f) for f in rows]))
    b = rng.normal(size=(3, 12)) / 1.5 ** np.arange(12)
    scale = np.array([0.1, 0.02, 0.5])
    integral, slope = cosine.abs_integral(b, scale)
    for i in range(3):
        assert (integral[i], slope[i]) == nearly(cosine.abs_integral(b[i], float(scale[i])))


def test_fixed_point_wherever_one_starts():
    def norm(s):
        return 0.3 - 0.5 * s, -0.5

    for start in (1e-9, 0.01, 0.2 - 1e-4, 0.2, 0.2 + 1e-4, 0.9, 7.0):
        assert fixed_point(norm, 0.01, start) == pytest.approx(0.2, abs=ROUNDING)
    assert fixed_point(norm, 0.21, 0.3) is None

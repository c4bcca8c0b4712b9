"""The norms of images: what noise adds to them, and the lower end that follows."""

import numpy as np
import pytest

import calibrant as cb
from calibrant.data.rows import Sample
from calibrant.datasets import simulate
from calibrant.inference import intervals
from calibrant.inference.intervals import View
from calibrant.measures.norms import L1Norm, L2Norm, MaxNorm, RangeNorm
from calibrant.measures.registry import measures
from tests.twins import intervals as twin


def name_of(norm):
    return type(norm).__name__


PROVED = pytest.mark.parametrize("norm", [L1Norm(), MaxNorm(), RangeNorm()], ids=name_of)


@PROVED
def test_no_image_in_the_rectangle_gains_more(norm):
    rng = np.random.default_rng(4)
    for _ in range(300):
        k = int(rng.integers(1, 7))
        h, slack = rng.normal(0, 1, k), rng.exponential(1, k) * (rng.random(k) < 0.8)
        # Corners of the rectangle too, where maxima are.
        g = h + slack * rng.choice([-1, 1, *rng.uniform(-1, 1, 3)], (40, k))
        noise = rng.normal(0, 1, (50, k))
        most = norm.most_added(h, slack, noise)
        for image in g:
            assert np.all(norm.of(image + noise) - norm.of(image) <= most + 1e-12)


def test_the_most_is_attained():
    rng = np.random.default_rng(5)
    h, slack, noise = rng.normal(0, 2, 5), np.ones(5), rng.normal(0, 1, (20, 5))
    least = L1Norm().least(h, slack)
    added = L1Norm().of(least + noise) - L1Norm().of(least)
    assert L1Norm().most_added(h, slack, noise) == pytest.approx(added)


def test_by_hand():
    # Within 1 of (3, 0.5) the least image is (2, 0); noise (-0.5, -1) adds -0.5 and 1 to it.
    h, slack, noise = np.array([3, 0.5]), np.ones(2), np.array([[-0.5, -1.0]])
    assert L1Norm().most_added(h, slack, noise) == pytest.approx([0.5])
    # The least maximum is 2, where the first coordinate is then; the second may reach 1.5.
    assert MaxNorm().most_added(h, slack, noise) == pytest.approx([-0.5])
    # From 0, where the second coordinate may be as well, noise gains 1 below and loses 0.5 above.
    assert RangeNorm().most_added(h, slack, noise) == pytest.approx([0.5])


@pytest.mark.parametrize(
    ("measure", "options", "formula"),
    [
        ("ece", {}, twin.added_to_absolute_sum),
        ("smooth_ece", {"bandwidth": 0.05}, twin.added_to_absolute_sum),
        ("ecce_mad", {}, twin.added_to_maximum),
    ],
)
@pytest.mark.parametrize("scenario", ["overconfident", "tenths"])
def test_the_lower_end_is_its_formula(measure, options, formula, scenario):
    y, p = simulate(scenario, 300, rng=2)
    error = measures()[measure].read(options)
    sample = Sample(y, p)
    view = View.of(error, sample, error(sample))
    images = view.of_noise(view.cells.noise(239, np.random.default_rng(1)))
    found = intervals._added(view, images, 0.05)
    assert found == pytest.approx(formula(view.observed, images, 0.05), rel=1e-9)


def test_noise_of_equal_sd_adds_alike_to_all_images_of_one_l2_norm():
    noise = np.random.default_rng(0).normal(0, 1, (40_000, 4))
    norms = [np.sort(L2Norm().of(image + noise)) for image in ([3, 0, 0, 0], [1.5, -1.5, 1.5, 1.5])]
    assert np.abs(norms[0] - norms[1])[400:-400].max() < 0.05


def test_linear_functions_bound_the_absolute_sum():
    images = np.array([[1, 2, -4, -1], [1, -2, 3, 0.5], [2, 2, 2, 2.0]])
    total, changed = L1Norm().linear_bounds(images, np.ones(4))
    assert total == pytest.approx(np.array([[-2], [2.5], [8]]))
    assert changed == pytest.approx(np.array([[4, 8, 0], [-0.5, -4.5, 1.5], [-4, 0, 4]]))
    random = np.random.default_rng(8).normal(0, 1, (50, 9))
    for family in L1Norm().linear_bounds(random, np.arange(1.0, 10)):
        assert np.all(MaxNorm().of(family) <= L1Norm().of(random) + 1e-12)


def test_a_clear_shift_has_a_lower_end_near_that_of_the_mean():
    # Predictions of 731 rows 6 points too high: the sum of all residuals alone says so.
    rng = np.random.default_rng(3)
    p = rng.beta(0.8, 1.6, 731)
    y = rng.random(731) < p - 0.06
    shift, sd = abs(np.mean(y - p)), np.std(y - p) / np.sqrt(731)
    for measure in ("smooth_ece", "ece"):
        assert cb.estimate(measure, y, p).low > shift - 3.5 * sd > 0


@pytest.mark.parametrize("norm", [L1Norm(), L2Norm(), MaxNorm(), RangeNorm()], ids=name_of)
def test_noise_adds_less_the_larger_an_image_is(norm):
    # The norm of x d + e is convex in x and grows as x N(d) at most.
    rng = np.random.default_rng(6)
    noise, d = rng.normal(0, 1, (100, 5)), rng.normal(0, 1, 5)
    added = [norm.of(x * d + noise) - x * norm.of(d) for x in (0, 0.5, 1, 2, 10)]
    assert np.all(np.diff(added, axis=0) <= 1e-12)


@pytest.mark.parametrize("norm", [L1Norm(), L2Norm(), MaxNorm(), RangeNorm()], ids=name_of)
def test_paths_grow(norm):
    rng = np.random.default_rng(7)
    for _ in range(50):
        h, sd = rng.normal(0, 2, 6), rng.uniform(0.5, 1, 6)
        for base, rise in norm.paths(h, sd):
            sizes = [float(norm.of(base + x * rise)) for x in (0, 1, 2)]
            assert sizes[0] < sizes[1] < sizes[2]


@pytest.mark.parametrize("norm", [L1Norm(), L2Norm(), MaxNorm(), RangeNorm()], ids=name_of)
@pytest.mark.parametrize(("x", "factor"), [(0.0, 1.0), (2.5, 1.0), (-0.5, 1.25)])
def test_norms_along_a_line(norm, x, factor):
    rng = np.random.default_rng(4)
    noise, base, rise = rng.standard_normal((7, 5)), *rng.standard_normal((2, 5))
    expected = [float(norm.of(factor * one + base + x * rise)) for one in noise]
    assert norm.along(noise, base, rise)(x, factor) == pytest.approx(expected)
    # Squares that cancel are not negative.
    assert norm.along(noise[:1], -noise[0], rise)(0.0, 1.0) == pytest.approx([0.0], abs=1e-7)

"""The canonical calibration error and its twin: hand-computed cases and edges."""

import math

import numpy as np
import pytest
from scipy.stats import dirichlet

from calibrant import CalibrantError, density_ece
from calibrant.measures import density as module
from tests.tolerances import ROUNDING, nearly
from tests.twins import canonical as twin


def canonical(prob, outcome, **options):
    return density_ece(outcome, prob, multiclass="canonical", **options)


def test_twin_kernel_is_a_dirichlet_density_over_its_peak():
    s, t, b = np.array([0.2, 0.3, 0.5]), np.array([0.1, 0.6, 0.3]), 0.1
    density = dirichlet(s / b + 1)
    ratio = density.logpdf(t) - density.logpdf(s)
    assert twin.log_kernel(s, t, b) == pytest.approx(ratio, abs=1e-12)
    assert twin.log_kernel(s, s, b) == 0


def test_two_rows():
    # Each row is judged by the other one alone, whatever the bandwidth.
    prob, outcome = [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]], [0, 1]
    hot = [twin.one_hot(c, 3) for c in outcome]
    assert twin.canonical_error(prob, hot, [1, 1], 0.1) == 0.5
    assert canonical(prob, outcome, bandwidth=0.1) == 0.5
    assert canonical(prob, outcome) == 0.5


def test_three_rows_by_hand():
    # Bandwidth 1, all rows of two classes; the kernel of t at s is (s1/t1)^t1 (s2/t2)^t2.
    prob, outcome = [[0.5, 0.5], [0.25, 0.75], [0.5, 0.5]], [0, 1, 1]
    far = (0.5 / 0.25) ** 0.25 * (0.5 / 0.75) ** 0.75
    # Row 0 sees row 1 (class 1) with weight `far` and row 2 (class 1) with weight 1; row 1 sees
    # rows 0 and 2 alike; row 2 sees row 0 (class 0) with weight 1 and row 1 with weight `far`.
    expected = (0.5 + abs(0.5 - 0.75) + abs(far / (1 + far) - 0.5)) / 3
    assert canonical(prob, outcome, bandwidth=1.0) == pytest.approx(expected, abs=ROUNDING)


def test_equal_rows_leave_the_class_frequencies():
    prob = np.tile([0.5, 0.25, 0.25], (8, 1))
    outcome = np.array([0, 0, 0, 0, 1, 1, 2, 2])
    # The other rows have frequencies 3/7 for class 0, 1/7 for classes 1 and 2.
    expected = (4 * (0.5 - 3 / 7) + 4 * (0.25 - 1 / 7)) / 8
    assert canonical(prob, outcome) == pytest.approx(expected, abs=ROUNDING)


def test_zero_probabilities_and_far_rows():
    # A row of zeros sees rows nearest to its face, however far they are.
    prob = np.array([[1.0, 0, 0], [0, 1.0, 0], [0.5, 0.5, 0], [0.2, 0.3, 0.5], [1e-320, 0, 1]])
    outcome = np.array([0, 1, 0, 2, 2])
    for bandwidth in (1.0, 1e-3):
        hot = [twin.one_hot(c, 3) for c in outcome]
        expected = twin.canonical_error(prob.tolist(), hot, [1] * 5, bandwidth)
        found = canonical(prob, outcome, bandwidth=bandwidth)
        assert math.isfinite(found)
        assert found == pytest.approx(expected, abs=1e-9)


def test_bandwidths_tried():
    # Two close clusters of different classes want the narrowest kernel, random labels the widest.
    prob = np.repeat([[0.5, 0.5], [0.54, 0.46]], 6, axis=0)
    clusters = prob, np.repeat([0, 1], 6)
    assert canonical(*clusters) == pytest.approx(canonical(*clusters, bandwidth=1 / 1024))
    rng = np.random.default_rng(0)
    noise = rng.dirichlet([1, 1, 1], 40), rng.integers(0, 3, 40)
    assert canonical(*noise) == nearly(canonical(*noise, bandwidth=1.0))


def test_one_row_is_refused():
    with pytest.raises(CalibrantError, match=r"at least two rows.*got 1"):
        canonical([[0.5, 0.25, 0.25]], [0])


def test_chunks_do_not_matter(monkeypatch):
    rng = np.random.default_rng(0)
    prob, outcome, w = rng.dirichlet([1, 1, 1], 50), rng.integers(0, 3, 50), rng.random(50) + 0.1
    whole = canonical(prob, outcome, sample_weight=w)
    for size in (350, 1):
        monkeypatch.setattr(module, "_CHUNK", size)
        found = canonical(prob, outcome, sample_weight=w)
        assert found == pytest.approx(whole, abs=ROUNDING)


def test_more_pairs_of_rows_than_can_be_compared_are_refused():
    prob = np.full((20_000, 3), 1 / 3)
    sentence = r"compares all pairs of rows, at most 1\d{4} here; got 20000: give a random sample"
    with pytest.raises(CalibrantError, match=sentence):
        canonical(prob, np.arange(20_000) % 3)

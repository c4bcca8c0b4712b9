"""Loess against one least-squares fit per row, directly and through cells."""

import numpy as np
import pytest

from calibrant.data.classes import one_problem
from calibrant.datasets import load_flares, simulate
from calibrant.inference.fitted_curve import FittedCurve
from calibrant.numerics import regression
from calibrant.numerics.regression import GaussianMeans, Loess, ScoreCells
from tests.twins.loess import loess


def fitted(y, p, w=None, name="loess"):
    """Return the fitted curve at every row."""
    curve = FittedCurve.of(one_problem(y, p, w, None, None, None), name)
    return np.asarray(p) + curve.deviation[np.searchsorted(curve.score, p)]


def test_the_twin_by_hand():
    # The nearest 3 of 4: at 0 the third has weight 0, and two points carry a line.
    assert loess([0, 1, 1, 0], [0.0, 0.25, 0.5, 1.0])[0] == pytest.approx(0)
    # All within reach of a parabola: it is reproduced.
    p = np.linspace(0, 1, 9)
    assert loess(p**2, p) == pytest.approx(p**2)


@pytest.mark.parametrize("rows", [7, 60, 61, 62, 63, 400])
def test_loess_of_any_scores(rows):
    y, p = simulate("overconfident", rows, rng=rows)
    assert fitted(y, p) == pytest.approx(loess(y, p), abs=1e-9)


def test_loess_of_tied_scores():
    y, p = load_flares("NOAA")
    assert fitted(y, p) == pytest.approx(loess(y, p), abs=1e-12)


@pytest.mark.parametrize("scores", [[0.2, 0.7], [0.1, 0.11, 0.9], [0.5]])
def test_loess_of_few_scores_is_their_means(scores):
    p = np.repeat(scores, 4)
    y = np.arange(len(p)) % 3 == 0
    assert fitted(y, p) == pytest.approx(loess(y, p), abs=1e-9)


def test_loess_of_weighted_rows():
    y, p = simulate("overconfident", 80, rng=3)
    w = np.random.default_rng(3).exponential(1, 80) + 0.1
    assert fitted(y, p, w) == pytest.approx(loess(y, p, w), abs=1e-9)
    assert fitted(y, p, 1000 * w) == pytest.approx(fitted(y, p, w), abs=1e-9)


def test_weight_two_is_the_row_twice():
    # Of 80 rows and of 160 three quarters are a whole number.
    y, p = simulate("overconfident", 80, rng=4)
    twice = fitted(np.repeat(y, 2), np.repeat(p, 2))[::2]
    assert fitted(y, p, np.full(80, 2.0)) == pytest.approx(twice, abs=1e-9)


def test_loess_reproduces_parabolas_and_kernels_constants():
    p = np.sort(np.random.default_rng(0).beta(0.5, 2, 300))
    w = np.ones(300)
    for smoother, value in ((Loess(300), 1 - 2 * p + 3 * p**2), (GaussianMeans(0.1), w)):
        matrix = smoother.matrix(p, w, p, smoother.reach(p, w, p))
        assert matrix @ value == pytest.approx(value, abs=1e-10)


@pytest.mark.parametrize("scores", [(1, 1), (0.5, 20), (0.1, 0.1)])
def test_cells_are_nearly_as_good_as_rows(scores, monkeypatch):
    rng = np.random.default_rng(1)
    p = rng.beta(*scores, 3000)
    y = rng.random(3000) < p**1.2
    some = fitted(y, p)
    monkeypatch.setattr(regression, "DIRECT", 5000)
    exact = fitted(y, p)
    # Outcomes are moved to the mean score of their cell.
    assert np.abs(some - exact).max() < 2e-3 * np.abs(exact - p).max() + 2e-4
    assert np.abs(some - p).mean() == pytest.approx(np.abs(exact - p).mean(), rel=1e-3)


def test_cells_hold_all_scores():
    x = np.array([0.0, 0.1, 0.1000001, 0.5, 0.9])
    cells = ScoreCells.of(x, np.array([1.0, 2, 3, 4, 5]), 4)
    assert cells.weight.sum() == 15
    assert cells.weight @ cells.score == pytest.approx(0.2 + 3 * 0.1000001 + 2 + 4.5)
    assert np.bincount(cells.index(x), [1, 2, 3, 4, 5]) == pytest.approx(cells.weight)


def test_kernel_means_by_hand():
    # Two scores, far from 0 and 1, at distance h: weights 1 and exp(-1/2).
    curve = FittedCurve.of(one_problem([0, 1], [0.45, 0.55], None, None, None, None), "kernel")
    k = np.exp(-0.5 * (0.1 / curve.smoother.bandwidth) ** 2)
    assert curve.deviation[0] == pytest.approx((-0.45 + 0.45 * k) / (1 + k), abs=1e-6)

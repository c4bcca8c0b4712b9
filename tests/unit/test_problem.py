"""The questions of a problem, asked of everything that answers them."""

from __future__ import annotations

import numpy as np
import pytest

import calibrant as cb
from calibrant import SketchError
from calibrant.data import rows as module
from calibrant.data import sketch_problem
from calibrant.data.binning import Bins, UniformBins
from calibrant.data.classes import ClassTable
from calibrant.data.problem import logit_range
from calibrant.data.rows import Sample
from calibrant.data.sketch_problem import problem_of
from tests.tolerances import ROUNDING

N = 500
RNG = np.random.default_rng(4)
P = np.concatenate((RNG.random(N - 4), [0.0, 1.0, 1e-6, 1 - 1e-6]))
Y = (RNG.random(N) < P).astype(float)

# The logit scale is asked less: see test_a_sketch_on_the_logit_scale.
WAYS = {
    "rows": lambda: Sample(Y, P),
    "rows not yet validated": lambda: Sample(Y, P, is_validated=False),
    "a class of a table": lambda: list(
        ClassTable(np.stack((1 - P, P), axis=1), Y.astype(int)).classwise().problems()
    )[1],
    "a sketch": lambda: problem_of(cb.Sketch().update(Y, P)),
}


@pytest.fixture(params=WAYS)
def problem(request):
    return WAYS[request.param]()


def test_what_it_is(problem):
    assert (problem.n, problem.weight) == (N, N)
    assert not problem.is_weighted
    assert not problem.is_soft
    assert problem.is_exact == (problem.cell_width == 0)


def test_sums_over_bins(problem):
    found = problem.totals(UniformBins.of(15), "rows", "pred", "true", "residual")
    index = np.minimum((P * 15).astype(int), 14)
    for sums, values in zip(found, (np.ones(N), P, Y, Y - P), strict=True):
        assert sums == pytest.approx(np.bincount(index, values, minlength=15), abs=1e-9)


@pytest.mark.parametrize("edges", [np.arange(16) / 15, np.array([0.0, 0.25, 0.3, 1.0])])
def test_sums_over_cells(problem, edges):
    bins = Bins(edges, np.diff(edges))
    found = problem.cell_sums(bins.index, bins.n_bins)
    assert found.shape == (5, 2, bins.n_bins)
    for outcome in (0, 1):
        index, p = bins.index(P[Y == outcome]), P[Y == outcome]
        for k, values in ((0, np.ones(len(p))), (2, p), (3, outcome - p)):
            expected = np.bincount(index, values, minlength=bins.n_bins)
            # A sketch knows the sums of its cells, here whole ones.
            assert found[k, outcome] == pytest.approx(expected, abs=1e-9)


def test_sums_over_all_rows(problem):
    assert problem.squared_error() == pytest.approx(((P - Y) ** 2).sum(), abs=1e-9)
    pooled = problem.pooled
    assert pooled.rows.sum() == N
    assert pooled.true.sum() == pytest.approx(Y.sum(), abs=ROUNDING)
    assert pooled.residual.sum() == pytest.approx((Y - P).sum(), abs=1e-9)
    assert np.all(np.diff(pooled.score) > 0)


def test_cosine_coefficients(problem):
    found = problem.spectrum(0.1, "residual")[0]
    k = np.arange(len(found))
    expected = ((Y - P) * np.cos(np.pi * k[:, None] * P)).sum(axis=1)
    # What smoothing leaves of them: exp(-(pi k 0.1)^2 / 2).
    left = np.exp(-0.5 * (0.1 * np.pi * k) ** 2)
    assert left * found == pytest.approx(left * expected, abs=1e-6)


def test_scores_are_sorted(problem):
    assert problem.scores == pytest.approx(np.sort(P), abs=problem.cell_width)


@pytest.mark.parametrize("most", [7, 50])
def test_few_of_many_scores_have_the_extremes(problem, most, monkeypatch):
    monkeypatch.setattr(module, "MOST_SCORES", most)
    monkeypatch.setattr(sketch_problem, "MOST_SCORES", most)
    monkeypatch.setattr(module, "BLOCK_ROWS", 64)
    found, inner = problem.scores, P[(P > 0) & (P < 1)]
    assert most <= len(found) <= most + 4
    assert np.all(np.diff(found) >= 0)
    near = problem.cell_width
    assert found[[0, -1]] == pytest.approx([0, 1], abs=near)
    within = found[(found > 0) & (found < 1)]
    assert within[[0, -1]] == pytest.approx([inner.min(), inner.max()], abs=near)


def test_range_of_logits():
    assert logit_range(Sample(Y, P)) == pytest.approx((np.log(1e-6), -np.log(1e-6)), rel=1e-5)
    certain = np.array([0.0, 1.0])
    assert logit_range(Sample(certain, certain)) is None


def test_what_a_sketch_does_not_know_is_refused():
    sketch = problem_of(cb.Sketch().update(Y, P))
    for ask in (lambda: sketch.rows, sketch.part, lambda: sketch.rows.pooled):
        with pytest.raises(SketchError, match="does not know single rows"):
            ask()
    with pytest.raises(SketchError, match="on the logit scale"):
        sketch.logit_line(1.0)


def test_a_sketch_on_the_logit_scale():
    sketch = problem_of(cb.Sketch(scale="logit").update(Y, P))
    assert (sketch.n, sketch.weight) == (N, N)
    bins = UniformBins.of(4)
    assert sketch.cell_sums(bins.index, 4)[0].sum() == N
    low, high = logit_range(sketch)
    assert (low, high) == pytest.approx((np.log(1e-6), -np.log(1e-6)), abs=0.01)
    for ask in (
        lambda: sketch.rows,
        lambda: sketch.pooled,
        lambda: sketch.totals(bins, "rows"),
        lambda: sketch.spectrum(0.1, "residual"),
        sketch.squared_error,
    ):
        with pytest.raises(SketchError, match="on the probability scale"):
            ask()

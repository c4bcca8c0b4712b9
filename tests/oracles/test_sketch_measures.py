"""Measures of a sketch against those of its rows: within the bound, always."""

from __future__ import annotations

import re

import numpy as np
import pytest

import calibrant as cb
from calibrant import CalibrantError, SketchError
from calibrant.data.rows import Sample
from calibrant.data.sketch_problem import problem_of
from calibrant.numerics import smoothing
from tests.tolerances import ROUNDING

SHAPES = {
    "continuous": lambda rng, n: rng.random(n),
    "beta": lambda rng, n: rng.beta(0.9, 0.7, n),
    "confident": lambda rng, n: rng.beta(5, 0.05, n),
    "hundredths": lambda rng, n: rng.integers(0, 101, n) / 100,
    "narrow": lambda rng, n: 0.5 + 1e-3 * rng.random(n),
    "ends": lambda rng, n: (rng.random(n) < 0.5).astype(float),
    "rare": lambda rng, n: rng.beta(0.3, 30, n),
    "beyond": lambda rng, n: np.where(rng.random(n) < 0.5, 1e-11, 1 - 1e-11),
}
QUESTIONS = [
    ("ece", {}),
    ("ece", {"n_bins": 12, "norm": "l2"}),
    ("ece", {"n_bins": 50, "norm": "max"}),
    ("smooth_ece", {}),
    ("smooth_ece", {"bandwidth": 0.01}),
    ("smooth_ece", {"bandwidth": 0.3}),
    ("ecce_mad", {}),
    ("ecce_r", {}),
    ("ecce_r", {"normalize": True}),
    ("brier_score", {}),
    ("density_ece", {}),
    ("density_ece", {"kernel": "triweight"}),
    ("density_ece", {"bandwidth": 0.05}),
    ("density_ece", {"bandwidth": 0.5, "kernel": "triweight"}),
]
LOGIT_QUESTIONS = [
    ("logit_smoothed_ece", {}),
    ("logit_smoothed_ece", {"sigma": 0.6}),
    ("logit_smoothed_ece", {"sigma": 10.0}),
    ("smooth_ece", {"scale": "logit"}),
    ("smooth_ece", {"scale": "logit", "bandwidth": 0.1}),
]


def rows(shape, n, calibrated, kind, seed=0):
    rng = np.random.default_rng(seed)
    p = SHAPES[shape](rng, n)
    truth = p if calibrated else np.clip(0.5 + 0.7 * (p - 0.5), 0, 1)
    y = truth if kind == "soft" else (rng.random(n) < truth).astype(float)
    return y, p, rng.random(n) + 0.1 if kind == "weighted" else None


@pytest.mark.parametrize(("n_cells", "kind"), [(50_400, "plain"), (600, "plain"), (600, "soft")])
@pytest.mark.parametrize(("n", "calibrated"), [(1, True), (40, False), (3000, True)])
@pytest.mark.parametrize("shape", SHAPES)
def test_within_the_bound(shape, n, calibrated, kind, n_cells):
    assert_within_the_bound(*rows(shape, n, calibrated, kind), n_cells)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("calibrated", [True, False])
def test_within_the_bound_under_weights(shape, calibrated):
    assert_within_the_bound(*rows(shape, 500, calibrated, "weighted"), 5040)


def assert_within_the_bound(y, p, w, n_cells):
    for scale, questions in (("probability", QUESTIONS), ("logit", LOGIT_QUESTIONS)):
        sketch = cb.Sketch(n_cells, scale).update(y, p, w)
        for name, options in questions:
            measure = getattr(cb, name)
            try:
                value, bound = measure(sketch, **options), cb.error_bound(sketch, name, **options)
            except CalibrantError as refusal:
                # Few cells do not resolve fine scales, and say so; others have nothing to say.
                refused = (
                    "without any there is no noise"
                    if n_cells == 50_400
                    else "must|no noise|soft labels"
                )
                assert re.search(refused, str(refusal))  # noqa: PT017
                continue
            try:
                exact = measure(y, p, sample_weight=w, **options)
            except CalibrantError as refusal:
                assert "must not spread scores so far" in str(refusal)  # noqa: PT017
                continue
            assert abs(value - exact) <= bound, (name, options, value, exact, bound)


@pytest.mark.parametrize("shape", ["continuous", "beta", "hundredths", "rare"])
def test_bound_of_smooth_errors_is_below_a_millionth(shape):
    y, p, _ = rows(shape, 3000, calibrated=False, kind="plain")
    sketch = cb.Sketch().update(y, p)
    assert cb.smooth_ece(sketch) >= 0.01
    assert cb.error_bound(sketch, "smooth_ece") <= 1e-6
    assert cb.error_bound(sketch, "smooth_ece", bandwidth=0.01) <= 1e-6


@pytest.mark.parametrize("n_bins", [1, 2, 5, 7, 10, 12, 15, 20, 25, 30, 50, 100, 50_400])
def test_every_count_of_bins_that_divides_the_cells_is_exact(n_bins):
    y, p, _ = rows("hundredths", 4000, calibrated=False, kind="plain")
    sketch = cb.Sketch().update(y, p)
    assert cb.ece(sketch, n_bins=n_bins) == pytest.approx(cb.ece(y, p, n_bins=n_bins), abs=ROUNDING)
    table, exact = cb.bin_table(sketch, n_bins=n_bins), cb.bin_table(y, p, n_bins=n_bins)
    assert np.array_equal(table.n, exact.n)
    np.testing.assert_allclose(table.mean_pred, exact.mean_pred, atol=ROUNDING)


def test_debiased_and_width_weighted_errors():
    y, p, _ = rows("continuous", 4000, calibrated=False, kind="plain")
    sketch = cb.Sketch().update(y, p)
    for options in ({"debias": True}, {"norm": "l2", "debias": True}, {"weighting": "width"}):
        assert cb.ece(sketch, **options) == pytest.approx(cb.ece(y, p, **options), abs=ROUNDING)


@pytest.mark.parametrize("method", ["smooth", "density", "binned"])
def test_reliability_curves(method):
    y, p, _ = rows("beta", 4000, calibrated=False, kind="plain")
    width = {} if method == "binned" else {"bandwidth": 0.05}
    curve = cb.reliability_curve(cb.Sketch().update(y, p), method=method, **width)
    exact = cb.reliability_curve(y, p, method=method, **width)
    np.testing.assert_allclose(curve.y, exact.y, atol=1e-7)
    assert curve.area == pytest.approx(exact.area, abs=1e-8)


def test_cumulative_curve_is_exact_at_the_ends_of_cells():
    y, p, _ = rows("continuous", 4000, calibrated=False, kind="plain")
    curve, exact = cb.cumulative_curve(cb.Sketch(100).update(y, p)), cb.cumulative_curve(y, p)
    last = np.searchsorted(exact.score, np.arange(1, 101) / 100, side="left") - 1
    np.testing.assert_allclose(curve.deviation[1:], exact.deviation[last], atol=ROUNDING)


@pytest.mark.parametrize("calibrated", [True, False])
def test_tests(calibrated):
    y, p, _ = rows("continuous", 4000, calibrated, kind="plain")
    sketch = cb.Sketch().update(y, p)
    for test in (cb.cumulative_test, cb.spiegelhalter_test):
        on_cells, on_rows = test(sketch), test(y, p)
        assert on_cells.statistic == pytest.approx(on_rows.statistic, abs=1e-3)
        assert on_cells.sigma == pytest.approx(on_rows.sigma, rel=1e-3)
        assert on_cells.n == on_rows.n
    drawn = cb.cumulative_test(sketch, method="monte_carlo", n_resamples=499)
    expected = cb.cumulative_test(y, p, method="monte_carlo", n_resamples=499)
    assert drawn.p_value == pytest.approx(expected.p_value, abs=0.08)


QUESTIONS_BEYOND_SKETCHES = [
    (cb.weak_calibration_error, {}),
    (cb.laplace_kernel_error, {}),
    (cb.interval_error, {}),
    (cb.ace, {}),
    (cb.ece, {"n_bins": 11}),
    (cb.ece, {"closed": "right"}),
    (cb.ece, {"assignment": "convex"}),
    (cb.ece, {"strategy": [0, 0.5, 1]}),
    (cb.ece, {"n_bins": "sweep"}),
    (cb.log_score, {}),
    (cb.score_decomposition, {}),
    (cb.reliability_curve, {"method": "isotonic"}),
    (cb.calibration_slope_test, {}),
    (cb.logit_smoothed_ece, {}),
    (cb.logit_smoothed_ece, {"noise": "uniform"}),
    (cb.smooth_ece, {"scale": "logit"}),
    (cb.smooth_ece, {"scale": np.sqrt}),
]


@pytest.mark.parametrize(("ask", "options"), QUESTIONS_BEYOND_SKETCHES)
def test_what_a_sketch_cannot_answer_it_says(ask, options):
    sketch = cb.Sketch().update([0, 1, 1], [0.25, 0.5, 0.75])
    with pytest.raises(SketchError):
        ask(sketch, None, **options)
    if ask in (cb.ece, cb.smooth_ece, cb.logit_smoothed_ece):
        with pytest.raises(SketchError):
            cb.error_bound(sketch, ask.__name__, **options)


@pytest.mark.parametrize("ask", [cb.ece, cb.smooth_ece, cb.ecce_mad, cb.brier_score])
def test_what_a_logit_sketch_cannot_answer_it_says(ask):
    sketch = cb.Sketch(scale="logit").update([0, 1, 1], [0.25, 0.5, 0.75])
    with pytest.raises(SketchError, match="needs a sketch on the probability scale"):
        ask(sketch)


@pytest.mark.parametrize(
    "extra", [{"y_prob": [0.5]}, {"sample_weight": [1]}, {"multiclass": "confidence"}]
)
def test_a_sketch_stands_alone(extra):
    with pytest.raises(CalibrantError, match="must be left out"):
        cb.ece(cb.Sketch().update([1], [0.5]), **extra)


def test_bound_where_silvermans_rule_asks_for_more_than_cells_resolve():
    rng = np.random.default_rng(0)
    p = 0.3 + 0.001 * rng.random(20_000)
    y = (np.sin(20_000 * np.pi * p) > 0).astype(float)
    for kernel in ("gaussian", "triweight"):
        sketch = cb.Sketch().update(y, p)
        off = abs(cb.density_ece(sketch, kernel=kernel) - cb.density_ece(y, p, kernel=kernel))
        assert off <= cb.error_bound(sketch, "density_ece", kernel=kernel)


def test_bound_of_a_walk_that_strays_within_cells_on_both_sides():
    # Two cells: in the first the walk goes up and comes back, in the second down and back.
    p = np.repeat([0.001, 0.499, 0.501, 0.502], [6, 12, 12, 12])
    y = np.repeat([1.0, 0.0, 0.0, 1.0], [6, 12, 12, 12])
    sketch = cb.Sketch(2).update(y, p)
    off = abs(cb.ecce_r(sketch) - cb.ecce_r(y, p))
    assert off <= cb.error_bound(sketch, "ecce_r")
    assert off > cb.error_bound(sketch, "ecce_r") / 2


def test_bound_of_a_root_near_nought():
    y, p = [1.0, 1.0, 0.0, 0.0, 0.0], [0.6449489742783179] * 5
    options = {"norm": "l2", "debias": True, "n_bins": 1}
    sketch = cb.Sketch().update(y, p)
    off = abs(cb.ece(sketch, **options) - cb.ece(y, p, **options))
    assert off <= cb.error_bound(sketch, "ece", **options)


def test_empty_sketch_is_refused():
    with pytest.raises(SketchError, match="empty"):
        cb.smooth_ece(cb.Sketch())


def test_error_bound_reads_its_words():
    sketch = cb.Sketch().update([0, 1], [0.25, 0.75])
    with pytest.raises(CalibrantError, match="measure must be"):
        cb.error_bound(sketch, "auc")
    with pytest.raises(CalibrantError, match="no option 'bins'"):
        cb.error_bound(sketch, "ece", bins=3)
    with pytest.raises(CalibrantError, match="must be a Sketch: rows have no such error"):
        cb.error_bound([0, 1])


@pytest.mark.parametrize("quantity", ["weight", "true", "pred", "residual"])
@pytest.mark.parametrize("offset", [-0.499, -0.1, 0.0, 0.25, 0.499])
def test_what_one_smoothed_row_lacks(quantity, offset):
    # The greatest part of a bound that rows can reach, one by one.
    n_cells = 1000
    for cell in (0, 400, 998):
        for outcome in (0.0, 1.0):
            p = np.array([(cell + 0.5 + offset) / n_cells])
            known = problem_of(cb.Sketch(n_cells).update([outcome], p))
            for scale in (0.008, 0.03):
                rows = Sample(np.array([outcome]), p).spectrum(scale, quantity)[0]
                lack, _ = smoothing.l1_norm(rows - known.spectrum(scale, quantity)[0], scale)
                assert lack <= known.spectrum_error(scale, quantity)

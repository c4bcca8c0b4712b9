"""Sample sizes and noise floors: by formula, by the intervals themselves, edges, refusals."""

import numpy as np
import pytest
from scipy.special import expit, logit

import calibrant as cb
from calibrant import CalibrantError, noise_floor, sample_size
from calibrant.measures.registry import measures

SCORES = np.random.default_rng(0).beta(2, 5, 20_000)


@pytest.mark.parametrize(("measure", "width"), [("o_e", 0.3), ("intercept", 0.5), ("slope", 0.4)])
def test_intervals_of_that_many_rows_are_that_wide(measure, width):
    planned = sample_size(measure, width, SCORES)
    rng = np.random.default_rng(1)
    widths = []
    for _ in range(20):
        p = rng.choice(SCORES, planned.n)
        found = getattr(cb.clinical_summary(rng.random(planned.n) < p, p, n_resamples=39), measure)
        widths.append(found.high - found.low)
    assert np.median(widths) == pytest.approx(width, rel=0.08)


@pytest.mark.parametrize("measure", ["smooth_ece", "ecce_r"])
def test_errors_of_that_many_rows_are_that_uncertain(measure):
    planned = sample_size(measure, 0.05, SCORES)
    rng = np.random.default_rng(1)
    widths = []
    for _ in range(15):
        p = rng.choice(SCORES, planned.n)
        found = cb.estimate(measure, rng.random(planned.n) < p, p, n_resamples=300)
        widths.append(found.high - found.low)
    assert np.median(widths) == pytest.approx(0.05, rel=0.2)


def test_slope_by_the_inverse_information():
    x = logit(SCORES)
    design = np.column_stack((np.ones_like(x), x))
    information = (design.T * (SCORES * (1 - SCORES))) @ design / len(x)
    error = 0.2 / (2 * 1.959963984540054)
    expected = np.linalg.inv(information)[1, 1] / error**2
    assert sample_size("slope", 0.2, SCORES).n == np.ceil(expected)


def test_prevalence_shifts_all_logits():
    planned = sample_size("o_e", 0.2, SCORES, prevalence=0.05)
    assert planned.prevalence == pytest.approx(0.05)
    assert planned.n_events == round(0.05 * planned.n)
    shift = logit(0.05) - logit(0.3)
    exact = expit(logit(np.full(5, 0.3)) + shift)
    assert sample_size("o_e", 0.2, [0.3], prevalence=0.05).n == sample_size("o_e", 0.2, exact).n


def test_narrower_and_surer_take_more():
    base = sample_size("slope", 0.2, SCORES).n
    assert sample_size("slope", 0.1, SCORES).n == pytest.approx(4 * base, abs=4)
    assert sample_size("slope", 0.2, SCORES, level=0.99).n > 1.7 * base
    assert "rows" in repr(sample_size("slope", 0.2, SCORES))


def test_far_beyond_what_is_simulated():
    near, far = (sample_size("ecce_r", width, SCORES).n for width in (1e-3, 1e-5))
    assert far == pytest.approx(1e4 * near, rel=0.3)


def test_noise_floor_by_another_simulation():
    p = SCORES[:400]
    floor = noise_floor(p, measures=["ece", cb.ecce_r], n_resamples=2000)
    rng = np.random.default_rng(7)
    drawn = [(cb.ece(y, p), cb.ecce_r(y, p)) for y in (rng.random((1000, 400)) < p).astype(float)]
    assert floor.measure == ("ece", "ecce_r")
    assert floor.mean == pytest.approx(np.mean(drawn, axis=0), rel=0.05)
    assert floor.high == pytest.approx(np.quantile(drawn, 0.95, axis=0), rel=0.08)


def test_noise_floor_has_every_measure():
    floor = noise_floor(SCORES[:100], n_resamples=39)
    assert set(floor.measure) == {name for name, info in measures().items() if info.make}
    score = dict(zip(floor.measure, floor.mean, strict=True))["brier_score"]
    assert score == pytest.approx(np.mean(SCORES[:100] * (1 - SCORES[:100])), rel=0.1)
    assert len(floor.to_frame()) == len(floor.measure)
    assert repr(floor).startswith("NoiseFloor(100 rows")


def test_noise_floor_refuses_what_takes_long():
    p = np.resize(SCORES, 100_000)
    with pytest.raises(CalibrantError, match="at most 4 for so many rows and measures; got 200"):
        noise_floor(p)
    with pytest.raises(CalibrantError, match=r"at most 10 .*: name fewer in measures, or the fast"):
        noise_floor(p, measures=["interval_error"])
    assert noise_floor(p, measures=["ece"], n_resamples=39).high > 0


def test_noise_floor_of_weighted_rows():
    p, w = SCORES[:200], np.tile([0.0, 1.0, 2.0, 5.0], 50)
    floor = noise_floor(p, measures=["ece"], sample_weight=w, n_resamples=300)
    assert floor.n == 150
    assert floor.mean[0] > noise_floor(p[w > 0], measures=["ece"], n_resamples=300).mean[0]


def test_refusals():
    with pytest.raises(CalibrantError, match="measure must be one of"):
        sample_size("auc", 0.1, SCORES)
    with pytest.raises(CalibrantError, match="width must be a positive number"):
        sample_size("slope", 0, SCORES)
    with pytest.raises(CalibrantError, match="two different values"):
        sample_size("slope", 0.1, [0.3, 0.3])
    with pytest.raises(CalibrantError, match="other than 0 and 1"):
        sample_size("o_e", 0.1, [1.0])
    with pytest.raises(CalibrantError, match="prevalence must lie between 0 and 1"):
        sample_size("o_e", 0.1, SCORES, prevalence=1.0)
    with pytest.raises(CalibrantError, match=r"y_prob must lie in \[0, 1\]"):
        noise_floor([20.0])
    with pytest.raises(CalibrantError, match="measure must be one of"):
        noise_floor(SCORES, measures=["auc"])

"""Scores and their decomposition."""

import math

import numpy as np
import pytest

import calibrant as cb
from tests.tolerances import ROUNDING

RNG = np.random.default_rng(7)
P = RNG.integers(1, 40, 300) / 40
Y = (RNG.random(300) < P**2).astype(int)
W = RNG.integers(1, 4, 300)


def test_by_hand():
    assert cb.brier_score([0, 1, 1], [0.5, 0.5, 1.0]) == pytest.approx(0.5 / 3)
    assert cb.brier_score([0, 1], [0.5, 1.0], sample_weight=[3, 1]) == pytest.approx(0.1875)
    assert cb.log_score([0, 1], [0.5, 0.25]) == pytest.approx((math.log(2) + math.log(4)) / 2)
    assert cb.brier_score([0.5], [0.25]) == 0.0625
    assert cb.log_score([0.5], [0.5]) == pytest.approx(math.log(2))


def test_certain_forecasts():
    assert cb.log_score([0, 1], [0.0, 1.0]) == 0.0
    assert cb.log_score([1], [0.0]) == math.inf
    assert cb.log_score([0], [1.0]) == math.inf
    assert cb.log_score([0, 1], [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]) == math.inf


def test_full_scores_of_classes():
    p = np.array([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]])
    assert cb.brier_score([0, 1], p) == pytest.approx((0.375 + 0.875) / 2)
    assert cb.log_score([0, 1], p) == pytest.approx((math.log(2) + math.log(4)) / 2)
    assert cb.brier_score(p, p) == 0.0
    soft = cb.log_score(p, p)
    assert soft == pytest.approx(1.5 * math.log(2))
    weighted = cb.brier_score([0, 1], p, sample_weight=[1, 3])
    assert weighted == pytest.approx((0.375 + 3 * 0.875) / 4)
    assert cb.brier_score([0, 1], p, multiclass="confidence") == pytest.approx(0.25)
    assert cb.brier_score([0, 1], p, multiclass=0) == pytest.approx((0.25 + 0.0625) / 2)


def test_scores_of_wide_tables_pass_through_blocks():
    p = RNG.dirichlet(np.ones(300), 700)
    y = RNG.integers(0, 300, 700)
    direct = np.mean(((p - np.eye(300)[y]) ** 2).sum(axis=1))
    assert cb.brier_score(y, p) == pytest.approx(direct, abs=ROUNDING)
    assert cb.log_score(y, p) == pytest.approx(-np.mean(np.log(p[np.arange(700), y])))


def test_scores_agree_with_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    assert cb.brier_score(Y, P, sample_weight=W) == pytest.approx(
        metrics.brier_score_loss(Y, P, sample_weight=W), abs=ROUNDING
    )
    assert cb.log_score(Y, P, sample_weight=W) == pytest.approx(
        metrics.log_loss(Y, P, sample_weight=W), abs=ROUNDING
    )


@pytest.mark.parametrize("score", ["brier", "log"])
@pytest.mark.parametrize("weights", [None, W])
def test_decomposition_adds_up_and_recalibrates(score, weights):
    parts = cb.score_decomposition(Y, P, score=score, sample_weight=weights)
    whole = {"brier": cb.brier_score, "log": cb.log_score}[score](Y, P, sample_weight=weights)
    assert parts.score == pytest.approx(whole, abs=ROUNDING)
    total = parts.miscalibration - parts.discrimination + parts.uncertainty
    assert total == pytest.approx(parts.score, abs=ROUNDING)
    assert min(parts.miscalibration, parts.discrimination, parts.uncertainty) > 0


def test_decomposition_agrees_with_isotonic_regression_of_scikit_learn():
    isotonic = pytest.importorskip("sklearn.isotonic")
    fit = isotonic.IsotonicRegression().fit_transform(P, Y, sample_weight=W)
    parts = cb.score_decomposition(Y, P, sample_weight=W)
    recalibrated = np.average((fit - Y) ** 2, weights=W)
    assert parts.miscalibration == pytest.approx(parts.score - recalibrated, abs=1e-12)


def test_decomposition_of_perfect_and_useless_forecasts():
    perfect = cb.score_decomposition([0, 1, 1, 0], [0, 1, 1, 0])
    assert (perfect.miscalibration, perfect.discrimination) == (0.0, 0.25)
    # Forecasts that rank nothing have no discrimination.
    useless = cb.score_decomposition([0, 1], [0.75, 0.75])
    assert (useless.miscalibration, useless.discrimination) == (0.0625, 0.0)
    impossible = cb.score_decomposition([0, 1], [1.0, 0.5], score="log")
    assert impossible.miscalibration == math.inf


def test_decomposition_refuses_other_scores():
    with pytest.raises(cb.CalibrantError, match="score must be one of 'brier', 'log'"):
        cb.score_decomposition(Y, P, score="crps")


def test_scores_of_one_column_take_no_reduction():
    with pytest.raises(cb.CalibrantError, match="needs one column of probabilities per class"):
        cb.brier_score(Y, P, multiclass="confidence")

"""Tests of rows that depend on each other: by hand, against row-by-row sums and statsmodels."""

import math

import numpy as np
import pytest
from scipy.special import logit
from scipy.stats import f, kurtosis, t

from calibrant import (
    CalibrantError,
    Sketch,
    bias_along,
    by_group,
    calibration_slope_test,
    compare,
    cumulative_test,
    spiegelhalter_test,
)
from tests.tolerances import ROUNDING

CLUSTER = np.arange(120) // 6


def sample(alike=0.4):
    """Return outcomes that are alike within 20 clusters of 6 rows, and their probabilities."""
    rng = np.random.default_rng(0)
    p = np.round(rng.uniform(0.05, 0.95, 120), 3)
    shared = rng.random(120) < alike
    return (np.where(shared, rng.random(20)[CLUSTER], rng.random(120)) < p).astype(int), p


def sums(values):
    return np.array([sum(values[CLUSTER == g]) for g in range(20)])


def test_slope_with_the_standard_errors_of_statsmodels():
    # GLM(y, add_constant(logit(p)), Binomial()).fit(cov_type="cluster", cov_kwds={"groups":
    # cluster, "use_correction": False}) of statsmodels 0.15; 20 / 19 is the correction here.
    y, p = sample()
    found = calibration_slope_test(y, p, clusters=CLUSTER)
    assert [found.joint_intercept, found.slope] == pytest.approx(
        [-0.52244985, 1.19887021], abs=1e-7
    )
    errors = np.array([0.26571665, 0.21922783]) * math.sqrt(20 / 19)
    assert [found.joint_intercept_error, found.slope_error] == pytest.approx(errors, rel=1e-6)
    assert found.n_clusters == 20
    assert repr(found).endswith("p = 0.18, n = 120 in 20 clusters)")


def test_slope_is_hotellings_test_of_the_scores_of_clusters():
    # So much alike that clusters vary more than independent rows in every direction.
    y, p = sample(0.9)
    found = calibration_slope_test(y, p, clusters=CLUSTER)
    x = np.column_stack([np.ones(120), logit(p)])
    scores = np.column_stack([sums((y - p) * one) for one in x.T])
    # Squares of single rows are replaced by their expected value under calibration.
    known = x.T @ ((p * (1 - p) - (y - p) ** 2)[:, None] * x)
    mean, covariance = scores.mean(axis=0), np.cov(scores.T) + known / 20
    statistic = 20 * mean @ np.linalg.inv(covariance) @ mean
    assert found.statistic == pytest.approx(statistic, rel=1e-9)
    assert found.p_value == pytest.approx(f.sf(statistic * 18 / (2 * 19), 2, 18), rel=1e-9)


def test_spiegelhalter_is_students_test_of_the_sums_of_clusters():
    y, p = sample(0.9)
    w = np.random.default_rng(1).exponential(1, 120)
    dofs = []
    for weight in (None, w):
        found = spiegelhalter_test(y, p, clusters=CLUSTER, sample_weight=weight)
        given = np.ones(120) if weight is None else w
        factor = given * (1 - 2 * p)
        total = sums(factor * (y - p))
        # Squares of single rows are replaced by their expected value under calibration.
        known = factor**2 @ (p * (1 - p) - (y - p) ** 2)
        z = total.sum() / math.sqrt(20 * total.var(ddof=1) + known)
        dofs.append(min(3 * 20 / kurtosis(total, fisher=False), 19))
        assert found.normalized == pytest.approx(z)
        assert found.statistic == pytest.approx(total.sum() / given.sum())
        assert found.p_value == pytest.approx(2 * t.sf(abs(z), dofs[-1]), rel=ROUNDING)
        assert found.n_clusters == 20
    assert max(dofs) < 19


def test_clusters_of_one_row_change_little():
    rng = np.random.default_rng(2)
    p = rng.uniform(0.02, 0.98, 2000)
    y = rng.random(2000) < p
    rows = np.arange(2000)
    for test in (calibration_slope_test, spiegelhalter_test, cumulative_test):
        assert test(y, p, clusters=rows).p_value == pytest.approx(test(y, p).p_value, abs=0.04)


def test_copies_are_no_evidence():
    y, p = sample()
    copies = np.tile(y, 30), np.tile(p, 30)
    own = np.tile(np.arange(120), 30)
    for test in (calibration_slope_test, spiegelhalter_test, cumulative_test):
        once, again = test(y, p, clusters=np.arange(120)), test(*copies, clusters=own)
        assert again.p_value == pytest.approx(once.p_value, abs=0.05)
        assert test(*copies).p_value < 0.5 * once.p_value


def test_variance_is_never_less_than_that_of_independent_rows():
    # In every cluster two residuals cancel.
    y, p = np.tile([0, 1], 30), np.tile([0.4, 0.6], 30)
    cluster = np.arange(60) // 2
    found, rows = (spiegelhalter_test(y, p, clusters=one) for one in (cluster, None))
    assert found.normalized == pytest.approx(rows.normalized)
    assert rows.p_value < found.p_value == pytest.approx(2 * t.sf(abs(rows.normalized), 29))
    y, p = sample()
    found, rows = (calibration_slope_test(y, p, clusters=one) for one in (CLUSTER, None))
    x = np.column_stack([np.ones(120), logit(p)])
    scores = np.column_stack([sums((y - p) * one) for one in x.T])
    known = x.T @ ((p * (1 - p) - (y - p) ** 2)[:, None] * x)
    total = scores.sum(axis=0)
    alone = total @ np.linalg.inv(20 * np.cov(scores.T) + known) @ total
    assert found.statistic < min(alone, rows.statistic)


def test_clusters_of_which_one_holds_most_rows_are_few():
    g = np.random.default_rng(0)
    p, cluster = g.random(400), np.maximum(np.arange(400) - 200, 0) // 4
    with pytest.warns(UserWarning, match="50 clusters are as good as 3, since 51% of the rows are"):
        calibration_slope_test(g.random(400) < p, p, clusters=cluster)


def test_range_by_hand():
    # Three clusters of one residual each, all at one score: the range is the absolute sum, 1/2 or
    # 3/2 whatever the signs.
    with pytest.warns(UserWarning, match="only 3 clusters"):
        found = cumulative_test([1, 1, 0], [0.5, 0.5, 0.5], clusters=[7, 8, 9], n_resamples=999)
    assert found.statistic == pytest.approx(1 / 6)
    assert found.p_value == 1
    assert found.sigma == pytest.approx(math.sqrt(0.75) / 3)
    assert found.method == "monte_carlo"
    with pytest.warns(UserWarning, match="only 3 clusters"):
        found = cumulative_test([1, 1, 1], [0.4, 0.5, 0.6], clusters=[7, 8, 9], n_resamples=3999)
    # Residuals .6, .5, .4 vary more than calibrated outcomes: 1.5 is reached by two of the eight
    # patterns of signs.
    assert found.p_value == pytest.approx(1 / 4, abs=0.03)
    assert repr(found).endswith("n = 3 in 3 clusters, monte_carlo)")


def test_cumulative_max_and_weights():
    y, p = sample()
    w = np.random.default_rng(3).exponential(1, 120)
    found = cumulative_test(
        y, p, clusters=CLUSTER, statistic="max", sample_weight=w, n_resamples=999
    )
    rows = cumulative_test(y, p, statistic="max", sample_weight=w)
    assert found.statistic == pytest.approx(rows.statistic)
    assert found.sigma == pytest.approx(math.sqrt((sums(w * (y - p)) ** 2).sum()) / w.sum())


@pytest.mark.parametrize("test", [calibration_slope_test, spiegelhalter_test, cumulative_test])
def test_refusals(test):
    y, p = sample()
    with pytest.raises(CalibrantError, match="clusters must hold at least 3 clusters; got 2"):
        test(y, p, clusters=np.arange(120) % 2)
    with pytest.raises(CalibrantError, match="clusters must have one label per row"):
        test(y, p, clusters=[1, 2, 3])
    with pytest.warns(UserWarning, match="only 5 clusters") as told:
        test(y, p, clusters=np.arange(120) % 5)
    assert told[0].filename == __file__
    if test is not calibration_slope_test:
        with pytest.raises(CalibrantError, match="sketch"):
            test(Sketch().update(y, p), clusters=CLUSTER)


def test_clusters_of_excluded_rows_do_not_count():
    y, p = [0, 1, 1, 0, 1, 0], [0.2, 0.4, 0.3, 0.6, 1.0, 0.0]
    with (
        pytest.warns(UserWarning, match="only 4 clusters"),
        pytest.raises(CalibrantError, match="at least 3 clusters; got 2"),
    ):
        calibration_slope_test(y, p, clusters=[1, 1, 2, 2, 3, 4])


def test_slope_leaves_out_predictions_of_0_and_1():
    y, p = sample()
    more = np.append(y, [1, 0, 1]), np.append(p, [1.0, 1.0, 0.0])
    found, alone = calibration_slope_test(*more), calibration_slope_test(y, p)
    assert found.n_excluded == 3
    assert (found.n, found.slope, found.p_value) == (alone.n, alone.slope, alone.p_value)
    assert repr(found).endswith("n = 120, without 3 predictions of 0 or 1)")
    assert repr(calibration_slope_test(*(one[:-2] for one in more))).endswith(
        "without 1 prediction of 0 or 1)"
    )
    clusters = calibration_slope_test(*more, clusters=np.append(CLUSTER, [0, 1, 2]))
    within = calibration_slope_test(y, p, clusters=CLUSTER)
    assert clusters.p_value == pytest.approx(within.p_value)
    assert clusters.slope_error == pytest.approx(within.slope_error)


def test_by_group():
    rng = np.random.default_rng(4)
    y, p = (np.concatenate(one) for one in zip(sample(), sample(), strict=True))
    group = np.repeat(["a", "b"], 120)
    cluster = np.concatenate((CLUSTER, CLUSTER + 100))
    found = by_group(y, p, group, clusters=cluster, rng=0)
    alone = cumulative_test(*sample(), clusters=CLUSTER, rng=rng)
    for row in found:
        assert row.test.n_clusters == 20
        assert row.test.statistic == pytest.approx(alone.statistic)
        assert row.p_value == pytest.approx(alone.p_value, abs=0.03)
    assert found["a"].smooth_ece != by_group(y, p, group)["a"].smooth_ece
    # Groups of one or two clusters are no test.
    cluster[120:] = 100 + np.arange(120) % 2
    few = by_group(y, p, group, clusters=cluster)["b"]
    assert few.test is None
    assert few.note == "fewer than 3 clusters: no test"
    assert (few.smooth_ece.low, few.smooth_ece.high) == (0, 1)
    with pytest.raises(CalibrantError, match="clusters must be left out"):
        by_group({"a": Sketch().update(y, p)}, clusters=cluster)


@pytest.mark.parametrize("measure", ["smooth_ece", "skce", "brier_score"])
def test_compare_warns_once_of_few_clusters(measure):
    y, p = sample()
    with pytest.warns(UserWarning, match="only 5 clusters") as told:
        compare(y, {"a": p, "b": p / 2}, measure=measure, clusters=np.arange(120) % 5)
    assert [one.filename for one in told] == [__file__]


def test_bias_along_warns_of_few_clusters():
    y, p = sample()
    with pytest.warns(UserWarning, match="only 5 clusters") as told:
        bias_along(y, p, CLUSTER, clusters=np.arange(120) % 5)
    assert told[0].filename == __file__

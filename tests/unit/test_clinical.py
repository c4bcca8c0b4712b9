"""clinical_summary: cases computed by hand, slow formulas, edges, refusals, the printed table."""

import math

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import norm, t

import calibrant as cb
from calibrant import CalibrantError, clinical_summary
from calibrant.datasets import load_flares, simulate
from tests.tolerances import assert_nearly_equal

MEASURES = [
    *("o_e", "intercept", "slope", "joint_intercept", "ici", "e50", "e90", "emax", "eci"),
    *("brier", "scaled_brier", "c_statistic"),
]
Z = norm.ppf(0.975)


def values(summary):
    return {name: getattr(summary, name).value for name in MEASURES}


def test_by_hand():
    # Two scores, three quarters of the rows in either window: means are the curve.
    y, p = [1, 0, 0, 0, 1, 1, 1, 1, 1, 0], [0.25] * 4 + [0.75] * 6
    found = clinical_summary(y, p)
    assert found.o_e.value == pytest.approx(6 / 5.5)
    deviation = np.repeat([0, 5 / 6 - 0.75], [4, 6])
    assert found.ici.value == pytest.approx(deviation.mean())
    assert found.e50.value == pytest.approx(1 / 12)
    assert found.emax.value == pytest.approx(1 / 12)
    assert found.eci.value == pytest.approx(
        (deviation**2).mean() / np.mean((0.6 - np.array(p)) ** 2)
    )
    assert found.brier.value == pytest.approx((8 * 0.0625 + 2 * 0.5625) / 10)
    assert found.scaled_brier.value == pytest.approx(1 - found.brier.value / 0.24)
    # 24 pairs of an event and a non-event: 15 ordered, 3 + 5 tied, 1 reversed.
    assert found.c_statistic.value == pytest.approx((15 + 8 / 2) / 24)
    assert found.slope.value == pytest.approx((math.log(5) + math.log(3)) / (2 * math.log(3)))
    assert (found.n, found.n_events, found.n_excluded) == (10, 6, 0)


def test_o_e_interval_is_that_of_a_ratio():
    y, p = load_flares("NOAA")
    found = clinical_summary(y, p).o_e
    n, ratio = len(y), y.sum() / p.sum()
    error = math.sqrt(n / (n - 1) * np.sum((y - ratio * p) ** 2)) / y.sum()
    assert (found.low, found.high) == pytest.approx(
        (ratio * math.exp(-Z * error), ratio * math.exp(Z * error))
    )


def test_c_statistic_by_pairs_and_by_delong():
    y, p = simulate("tenths", 150, rng=2)
    ones, zeros = p[y == 1], p[y == 0]
    pairs = (ones[:, None] > zeros) + 0.5 * (ones[:, None] == zeros)
    c = pairs.mean()
    variance = pairs.mean(axis=1).var(ddof=1) / len(ones)
    variance += pairs.mean(axis=0).var(ddof=1) / len(zeros)
    found = clinical_summary(y, p).c_statistic
    reach = Z * math.sqrt(variance) / (c * (1 - c))
    assert found.value == pytest.approx(c)
    assert (found.low, found.high) == pytest.approx(
        (expit(logit(c) - reach), expit(logit(c) + reach))
    )


def test_brier_scores_by_the_jackknife():
    # The delta method and the jackknife agree to first order.
    y, p = simulate("overconfident", 400, rng=5)
    n = len(y)
    loss = (y - p) ** 2
    without = 1 - ((loss.sum() - loss) / (n - 1)) / (
        (y.sum() - y) / (n - 1) * (1 - (y.sum() - y) / (n - 1))
    )
    error = math.sqrt((n - 1) / n * np.sum((without - without.mean()) ** 2))
    found = clinical_summary(y, p)
    assert found.scaled_brier.high - found.scaled_brier.low == pytest.approx(
        2 * Z * error, rel=0.01
    )
    width = 2 * Z * loss.std(ddof=1) / math.sqrt(n)
    assert found.brier.high - found.brier.low == pytest.approx(width)


def test_clusters_of_one_row_are_nearly_independent_rows():
    y, p = simulate("perfect", 800, rng=1)
    alone, grouped = clinical_summary(y, p), clinical_summary(y, p, clusters=np.arange(800))
    assert values(grouped) == pytest.approx(values(alone))
    for name in MEASURES:
        one, other = getattr(alone, name), getattr(grouped, name)
        assert other.high - other.low == pytest.approx(one.high - one.low, rel=0.2), name


def test_clusters_that_repeat_their_row_count_once():
    y, p = simulate("perfect", 300, rng=1)
    clusters = np.repeat(np.arange(300), 4)
    one = clinical_summary(y, p)
    other = clinical_summary(np.repeat(y, 4), np.repeat(p, 4), clusters=clusters)
    ratio = t.ppf(0.975, 299) / Z
    for name in ("brier", "scaled_brier"):
        a, b = getattr(one, name), getattr(other, name)
        assert b.value == pytest.approx(a.value)
        assert b.high - b.low == pytest.approx(ratio * (a.high - a.low)), name
    a, b = one.o_e, other.o_e
    assert math.log(b.high / b.low) == pytest.approx(ratio * math.log(a.high / a.low))


@pytest.mark.parametrize(("n", "critical"), [(300, Z), (50, t.ppf(0.975, 49))])
def test_sandwich_of_rows_and_of_clusters_by_its_formula(n, critical):
    y, p = simulate("overconfident", 300, rng=1)
    clusters = np.arange(300) * n // 300
    found = clinical_summary(y, p, clusters=clusters if n < 300 else None)
    x = logit(p)
    designs = {"intercept": np.ones((300, 1)), "slope": np.column_stack((np.ones(300), x))}
    for name, design in designs.items():
        offset, slope = (found.intercept.value, 1.0)
        if name == "slope":
            offset, slope = found.joint_intercept.value, found.slope.value
        m = expit(offset + slope * x)
        bread = np.linalg.inv((design.T * (m * (1 - m))) @ design)
        scores = np.array([((y - m)[clusters == g] @ design[clusters == g]) for g in range(n)])
        covariance = bread @ (scores.T @ scores) @ bread * n / (n - 1)
        width = 2 * critical * math.sqrt(covariance[-1, -1])
        one = getattr(found, name)
        assert one.high - one.low == pytest.approx(width, rel=1e-6)


def test_weight_two_is_the_row_twice():
    y, p = simulate("overconfident", 80, rng=4)
    twice = clinical_summary(np.repeat(y, 2), np.repeat(p, 2))
    weighted = clinical_summary(y, p, sample_weight=np.full(80, 2.0))
    skipped = ("e50", "e90")  # interpolated between rows, or not
    for name in (name for name in MEASURES if name not in skipped):
        assert values(weighted)[name] == pytest.approx(values(twice)[name], rel=1e-9), name


def test_weights_that_do_not_matter():
    y, p = simulate("overconfident", 200, rng=4)
    w = np.random.default_rng(0).exponential(1, 200)
    some, scaled = (clinical_summary(y, p, sample_weight=c * w) for c in (1.0, 8.0))
    assert_nearly_equal(values(scaled), pytest.approx(values(some)).expected)
    kept = w > 0.2
    zero = clinical_summary(y, p, sample_weight=np.where(kept, w, 0.0))
    assert_nearly_equal(zero, clinical_summary(y[kept], p[kept], sample_weight=w[kept]))


def test_order_and_complement():
    y, p = simulate("overconfident", 200, rng=6)
    found = values(clinical_summary(y, p))
    order = np.random.default_rng(0).permutation(200)
    assert values(clinical_summary(y[order], p[order])) == pytest.approx(found)
    other = values(clinical_summary(1 - y, 1 - p))
    for name in ("intercept", "joint_intercept"):
        assert other.pop(name) == pytest.approx(-found.pop(name))
    assert other.pop("o_e") != found.pop("o_e")
    assert other == pytest.approx(found)


def test_rows_without_a_logit_are_counted_and_left_out_of_logistic_fits():
    y, p = simulate("perfect", 300, rng=1)
    more = clinical_summary([*y, 1, 0, 1], [*p, 1.0, 0.0, 0.0])
    without = clinical_summary(y, p)
    assert more.n_excluded == 3
    assert "3 rows at 0 or 1 left out" in repr(more)
    for name in ("intercept", "slope", "joint_intercept"):
        assert_nearly_equal(getattr(more, name), getattr(without, name))
    assert more.brier.value == pytest.approx((300 * without.brier.value + 1) / 303)


def test_one_outcome_alone():
    found = clinical_summary([0] * 20, np.linspace(0.05, 0.5, 20))
    assert found.o_e.value == 0
    # No event where 5.5 were expected: Poisson's upper limit is log(40) events.
    assert found.o_e.high == pytest.approx(math.log(40) / 5.5)
    for name in ("intercept", "slope", "joint_intercept", "scaled_brier", "c_statistic"):
        assert math.isnan(getattr(found, name).value), name
    assert found.ici.value > 0
    assert found.to_dict()["slope"]["value"] is None


def test_outcomes_that_are_separated():
    found = clinical_summary([0, 0, 0, 1, 1, 1], [0.1, 0.2, 0.3, 0.6, 0.7, 0.8])
    assert found.c_statistic.value == 1
    # Of three pairs that could have been reversed none was.
    assert 0 < found.c_statistic.low < 0.5
    assert math.isnan(found.slope.value)
    assert math.isfinite(found.intercept.value)
    with pytest.warns(UserWarning, match="only 6 clusters"):
        grouped = clinical_summary(
            [0, 0, 0, 1, 1, 1], [0.1, 0.2, 0.3, 0.6, 0.7, 0.8], clusters=[*range(6)]
        )
    assert math.isnan(grouped.slope.high)


def test_one_score():
    found = clinical_summary([0, 1, 1, 1], [0.5] * 4)
    assert found.intercept.value == pytest.approx(math.log(3))
    assert math.isnan(found.slope.value)
    assert found.ici.value == pytest.approx(0.25)
    assert found.c_statistic.value == 0.5


def test_events_at_scores_next_to_zero_leave_the_intercept_unknown():
    found = clinical_summary([0, 1, 0, 1] * 30, [1e-200, 2e-200, 0.5, 0.9] * 30, n_resamples=39)
    assert (found.intercept.low, found.intercept.high) == (-math.inf, math.inf)


def test_float16_and_one_row():
    y, p = simulate("perfect", 100, rng=1)
    half = np.asarray(p, dtype=np.float16)
    assert values(clinical_summary(y, half)) == pytest.approx(
        values(clinical_summary(y, half.astype(float)))
    )
    assert clinical_summary([1], [0.25]).ici.value == pytest.approx(0.75)


def test_perfect_calibration_is_in_the_interval_of_calibrated_rows():
    y, p = simulate("perfect", 1000, rng=1)
    found = clinical_summary(y, p)
    for name in ("ici", "eci", "e50"):
        assert getattr(found, name).low == 0
    far = clinical_summary(*simulate("overconfident", 3000, rng=1))
    assert far.ici.low > 0.03


def test_kernel_smoother():
    y, p = simulate("overconfident", 1000, rng=1)
    loess, kernel = (clinical_summary(y, p, smoother=name) for name in ("loess", "kernel"))
    assert kernel.ici.value == pytest.approx(loess.ici.value, abs=0.02)
    assert kernel.slope == loess.slope
    assert "curve by kernel" in repr(kernel)


def test_the_curve_has_the_area_of_the_table():
    y, p = load_flares("NOAA")
    curve = cb.reliability_curve(y, p, method="loess")
    assert curve.area == pytest.approx(clinical_summary(y, p).ici.value)
    assert np.all(curve.low <= curve.y)
    assert np.all(curve.y <= curve.high)
    whole = cb.reliability_curve(y, p, method="loess", simultaneous=True)
    assert np.mean(whole.high - whole.low) > np.mean(curve.high - curve.low)
    consistent = cb.reliability_curve(y, p, method="loess", band="consistency")
    assert np.all(consistent.low <= consistent.x)
    assert cb.reliability_curve(y, p, method="loess", band=None).band is None
    with pytest.raises(CalibrantError, match="bandwidth is ignored"):
        cb.reliability_curve(y, p, method="loess", bandwidth=0.1)


def test_pointwise_band_by_hand():
    # A single score: the mean of 100 rows, with the standard error of a proportion.
    y, p = np.repeat([0, 1], [60, 40]), np.full(100, 0.4)
    curve = cb.reliability_curve(y, p, method="loess", n_resamples=9999)
    assert curve.y[0] == pytest.approx(0.4)
    assert curve.high[0] == pytest.approx(0.4 + Z * math.sqrt(0.24 / 100), abs=2e-3)


def test_the_printed_table():
    found = clinical_summary(*load_flares("NOAA"))
    lines = repr(found).splitlines()
    assert lines[0] == "ClinicalSummary(731 rows, 188 events; curve by loess)"
    assert lines[2].split() == ["O:E", "ratio", "0.94", "0.85", "to", "1.04"]
    assert len(lines) == 14
    assert found.to_markdown().splitlines()[2:5] == [
        "| measure | value | 95% interval |",
        "| --- | ---: | ---: |",
        "| O:E ratio | 0.94 | 0.85 to 1.04 |",
    ]
    assert r"measure & value & 95\% interval \\" in found.to_latex()
    assert r"Calibration intercept & $-$0.13 & $-$0.31 to 0.06 \\" in found.to_latex()
    frame = found.to_frame()
    assert list(frame.columns) == ["measure", "value", "low", "high"]
    assert frame["value"][2] == found.slope.value
    assert "<td>O:E ratio</td>" in found._repr_html_()


def test_same_seed_same_result():
    y, p = simulate("perfect", 200, rng=1)
    assert_nearly_equal(clinical_summary(y, p, rng=3), clinical_summary(y, p, rng=3))
    assert clinical_summary(y, p, rng=3).ici != clinical_summary(y, p, rng=4).ici


def test_refusals():
    y, p = simulate("perfect", 50, rng=1)
    with pytest.raises(CalibrantError, match="smoother must be one of 'loess', 'kernel'"):
        clinical_summary(y, p, smoother="spline")
    with pytest.raises(CalibrantError, match="soft labels"):
        clinical_summary(p, p)
    with pytest.raises(CalibrantError, match="level"):
        clinical_summary(y, p, level=95)
    with pytest.raises(CalibrantError, match="at least 3 clusters"):
        clinical_summary(y, p, clusters=[1] * 50)


def test_one_class_of_several():
    rng = np.random.default_rng(0)
    table = rng.dirichlet([1, 2, 3], 200)
    y = np.array([rng.choice(3, p=row) for row in table])
    one = clinical_summary(y, table, multiclass=2)
    assert_nearly_equal(one, clinical_summary(y == 2, table[:, 2]))

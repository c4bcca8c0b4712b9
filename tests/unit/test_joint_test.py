"""calibration_test: cases by hand, edges, laws, clusters, soft labels, sketches, tails."""

import math

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import chi2, norm

import calibrant as cb
from calibrant import CalibrantError, Sketch, calibration_test
from calibrant.data.rows import read_sample
from calibrant.data.validation import read_generator
from calibrant.inference.cell_noise import Clusters
from calibrant.inference.joint_test import PARTS, Statistics, joint_test
from calibrant.inference.null_simulation import NullCells

FEW = 199


def uniform(n, rng=0, truth=lambda p: p):
    rng = np.random.default_rng(rng)
    p = rng.random(n)
    return (rng.random(n) < truth(p)).astype(int), p


def assert_same(one, other):
    assert one.p_value == other.p_value
    for a, b in zip(one.parts, other.parts, strict=True):
        assert a.statistic == pytest.approx(b.statistic, rel=1e-6, abs=1e-8)
        assert a.p_value == b.p_value


def test_by_hand():
    # Residuals 1/2 and -3/4 with variances 1/4 and 3/16.
    found = calibration_test([1, 0], [0.5, 0.75], n_resamples=FEW)
    assert found["level"].statistic == pytest.approx(0.25 / math.sqrt(7 / 16))
    assert found["range"].statistic == pytest.approx(0.75 / math.sqrt(7 / 16))
    # Logits 0 and log 3, mean 3/7 log 3: factors -3/7 and 4/7 of log 3.
    spread = (0.5 * -3 / 7 - 0.75 * 4 / 7) / math.sqrt((9 / 4 + 16 * 3 / 16) / 49)
    assert found["spread"].statistic == pytest.approx(abs(spread))
    # Either score alone: half of the weight.
    z = max(0.5 / math.sqrt(1.25), 0.75 / math.sqrt(1 + 3 / 16))
    assert found["local"].statistic == pytest.approx(z - math.sqrt(2 * math.log(2)))
    # Outcomes (1, 1), (1, 0), (0, 1), (0, 0) have probabilities 3/8, 1/8, 3/8, 1/8; the sum of
    # residuals is 3/4, -1/4, -1/4, -5/4: at least 1/4 in absolute value always.
    assert found["level"].p_value == 1.0
    assert 0 < found.p_value <= 1


@pytest.mark.parametrize("name", ["NOAA", "DAFFS"])
def test_parts_that_other_tests_have_too(name):
    rows = cb.datasets.load_flares(name)
    found = calibration_test(*rows, n_resamples=FEW)
    assert found["range"].statistic == pytest.approx(cb.cumulative_test(*rows).normalized)
    inner = (rows.y_prob > 0) & (rows.y_prob < 1)
    slope = cb.calibration_slope_test(*rows)
    assert slope.n_excluded == np.count_nonzero(~inner)
    if inner.all():
        both = found["level"].statistic ** 2 + found["spread"].statistic ** 2
        assert both == pytest.approx(slope.statistic)


@pytest.mark.parametrize(
    ("truth", "part"),
    [
        (lambda p: p - 0.1 * (p > 0.1), "level"),
        (lambda p: expit(0.5 * logit(p)), "spread"),
        (lambda p: np.clip(p + 0.15 * np.sin(6 * np.pi * p), 0, 1), "smooth"),
        (lambda p: np.clip(p + 0.15 * np.sin(40 * np.pi * p), 0, 1), "fine"),
        (lambda p: np.clip(p + 0.45 * (np.abs(p - 0.5) < 0.02), 0, 1), "local"),
    ],
)
def test_every_part_finds_what_it_is_for(truth, part):
    found = calibration_test(*uniform(2000, 1, truth), n_resamples=FEW)
    assert found.p_value <= 0.02
    assert found[part].p_value == 1 / (FEW + 1)
    assert found[part].p_asymptotic < 0.01


def test_calibrated_predictions_are_not_flagged():
    found = calibration_test(*uniform(2000, 0), n_resamples=FEW)
    assert found.p_value > 0.1
    assert found.n == 2000
    assert found.n_clusters == 0
    assert type(found.p_value) is type(found["level"].p_value) is float


def test_seeds_and_row_order_and_zero_weights():
    y, p = uniform(300, 3)
    first = calibration_test(y, p, n_resamples=FEW)
    assert calibration_test(y, p, n_resamples=FEW, rng=0) == first
    assert calibration_test(y, p, n_resamples=FEW, rng=1) != first
    order = np.random.default_rng(0).permutation(300)
    assert_same(calibration_test(y[order], p[order], n_resamples=FEW), first)
    w = np.append(np.ones(300), 0)
    more = calibration_test(np.append(y, 1), np.append(p, 0.01), sample_weight=w, n_resamples=FEW)
    assert_same(more, first)
    scaled = calibration_test(y, p, sample_weight=np.full(300, 7.0), n_resamples=FEW)
    assert [one.statistic for one in scaled.parts] == pytest.approx(
        [one.statistic for one in first.parts], rel=1e-6, abs=1e-8
    )


def test_swapping_the_outcomes_changes_no_statistic():
    # Multiples of 1/64, whose differences from 1 are exact.
    rng = np.random.default_rng(4)
    p = rng.integers(1, 64, 400) / 64
    y = (rng.random(400) < p).astype(int)
    one, other = (calibration_test(*rows, n_resamples=FEW) for rows in ((y, p), (1 - y, 1 - p)))
    for a, b in zip(one.parts, other.parts, strict=True):
        assert a.statistic == pytest.approx(b.statistic, rel=1e-6, abs=1e-8)


def test_predictions_of_0_and_1():
    y, p = uniform(300, 5)
    y, p = np.concatenate((y, np.ones(100))), np.concatenate((p, np.ones(100)))
    right = calibration_test(y, p, n_resamples=FEW)
    y[-1] = 0
    one_wrong = calibration_test(y, p, n_resamples=FEW)
    y[-12:] = 0
    wrong = calibration_test(y, p, n_resamples=FEW)
    assert right["spread"].statistic == one_wrong["spread"].statistic == wrong["spread"].statistic
    assert one_wrong["local"].statistic < 3
    assert wrong["local"].p_value == wrong.p_value == 1 / (FEW + 1)
    # The interval of 100 rows without any noise, 12 of them wrong.
    expected = 12 - math.sqrt(2 * math.log(4))
    assert wrong["local"].statistic == pytest.approx(expected)


def test_a_single_row_and_a_single_score():
    assert calibration_test([1], [0.3], n_resamples=FEW).p_value > 0.05
    found = calibration_test([1, 0, 1, 0], [0.5] * 4, n_resamples=FEW)
    assert found["spread"].statistic == 0
    assert found["spread"].p_value == found.p_value == 1


def test_float16_and_labels():
    y, p = uniform(200, 6)
    p = p.astype(np.float16)
    assert_same(
        calibration_test(np.where(y, "yes", "no"), p, pos_label="yes", n_resamples=FEW),
        calibration_test(y, p.astype(float), n_resamples=FEW),
    )


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (([0, 1], [0.0, 1.0]), "y_prob must hold a prediction strictly between 0 and 1"),
        (([], []), "y_true must"),
        (([0, 1], [0.5, 1.5]), r"y_prob must lie in \[0, 1\]"),
    ],
)
def test_refusals(rows, sentence):
    with pytest.raises(CalibrantError, match=sentence):
        calibration_test(*rows)


def test_no_such_part():
    found = calibration_test(*uniform(20), n_resamples=FEW)
    with pytest.raises(CalibrantError, match="no part 'chance' here; there are: level, spread"):
        found["chance"]


def test_what_people_see():
    y, p = uniform(400, 7, lambda p: p**2)
    found = calibration_test(y, p, n_resamples=FEW)
    head, *table = repr(found).splitlines()
    assert head.startswith("CalibrationTest(p <= 0.005 by simulation, ")
    assert head.endswith(" asymptotically, n = 400, 199 resamples)")
    assert [line.split()[0] for line in table] == ["part", *PARTS]
    assert list(found.to_frame()["name"]) == list(PARTS)
    assert found.to_dict()["parts"][0]["name"] == "level"
    clustered = calibration_test(y, p, clusters=np.arange(400) // 10, n_resamples=FEW)
    assert "n = 400 in 40 clusters" in repr(clustered)
    assert "asymptotically" not in repr(clustered)


# Cells.


def test_many_rows_are_pooled_without_changing_much():
    y, p = uniform(20_000, 8, lambda p: np.clip(p + 0.03 * np.sin(6 * np.pi * p), 0, 1))
    rows = calibration_test(y, p, n_resamples=FEW)
    sketch = calibration_test(Sketch().update(y, p), n_resamples=FEW)
    null = NullCells.of(read_sample(y, p), None, read_generator(0))
    assert 500 <= len(null.cells.weight) <= 520
    for name in PARTS:
        assert rows[name].statistic == pytest.approx(sketch[name].statistic, rel=0.1, abs=0.1)
    assert rows["range"].statistic == pytest.approx(cb.cumulative_test(y, p).normalized, rel=0.03)
    assert rows["level"].statistic == pytest.approx(
        abs((y - p).sum()) / math.sqrt((p * (1 - p)).sum()), rel=1e-5
    )


@pytest.mark.parametrize("n", [500, 5000, 20_000])
@pytest.mark.parametrize("kind", ["uniform", "tenths", "rare", "weighted", "sketch"])
def test_simulated_totals_have_the_variance_of_outcomes(kind, n):
    rng = np.random.default_rng(n)
    p = {"tenths": rng.integers(0, 11, n) / 10, "rare": rng.beta(1, 99, n)}.get(kind, rng.random(n))
    w = rng.exponential(1, n) if kind == "weighted" else None
    y = (rng.random(n) < p).astype(int)
    if kind == "sketch":
        from calibrant.data.sketch_problem import problem_of

        problem = problem_of(Sketch().update(y, p))
    else:
        problem = read_sample(y, p, sample_weight=w)
    null = NullCells.of(problem, None, rng)
    observed, *drawn = null.batches(400, rng)
    totals = np.concatenate(drawn)
    w = np.ones(n) if w is None else w
    assert totals.shape[1] == len(null.cells.weight) <= 1030
    assert observed.sum() == pytest.approx((w * (y - p)).sum(), rel=1e-6, abs=1e-4 * w.sum() ** 0.5)
    expected = (w**2 * p * (1 - p)).sum()
    # A sum of 400 squares has a relative error of sqrt(2 / 400), 7%.
    assert totals.sum(axis=1).var() == pytest.approx(expected, rel=0.28)
    assert (totals**2).sum() / 400 == pytest.approx(expected, rel=0.1)


def test_scores_0_and_1_and_heavy_ones_have_their_own_cells():
    rng = np.random.default_rng(0)
    p = np.concatenate((rng.random(30_000), np.zeros(500), np.ones(500), np.full(500, 0.25)))
    null = NullCells.of(read_sample(np.zeros(len(p)), p), None, rng)
    weight = dict(zip(null.cells.score.tolist(), null.cells.weight.tolist(), strict=True))
    assert weight[0.0] == weight[1.0] == weight[0.25] == 500


# Clusters and soft labels.


def test_resamples_of_clusters_change_signs_together():
    rng = np.random.default_rng(1)
    y, p = uniform(60, 9)
    code = np.repeat(np.arange(12), 5)
    null = NullCells.of(read_sample(y, p), Clusters.of_codes(code, rng), rng)
    (drawn,) = list(null.batches(50, rng))[1:]
    order = np.argsort(p)
    r, cluster = (y - p)[order], code[order]
    signs = np.sign(drawn / r)
    scale = np.abs(drawn / r)[0, 0]
    assert scale >= 1 - 1e-12
    np.testing.assert_allclose(np.abs(drawn), scale * np.abs(np.tile(r, (50, 1))))
    for g in range(12):
        own = signs[:, cluster == g]
        assert (own == own[:, :1]).all()


def test_clusters_that_agree_are_less_evidence():
    y, p = uniform(50, 10, lambda p: np.clip(p - 0.1, 0, 1))
    copies = np.tile(y, 20), np.tile(p, 20)
    rows = calibration_test(*copies, n_resamples=FEW)
    clusters = calibration_test(*copies, clusters=np.tile(np.arange(50), 20), n_resamples=FEW)
    assert rows["level"].p_value < clusters["level"].p_value
    assert clusters.n_clusters == 50
    assert math.isnan(clusters.p_asymptotic)
    assert math.isnan(clusters["range"].p_asymptotic)


def test_few_clusters_cannot_reject():
    y, p = np.ones(40, dtype=int), np.full(40, 0.3)
    with pytest.warns(UserWarning, match="only 4 clusters: the variance") as told:
        found = calibration_test(y, p, clusters=np.arange(40) // 10, n_resamples=FEW)
    assert told[0].filename == __file__
    # 2 of 16 patterns of signs are as extreme.
    assert found.p_value == pytest.approx(1 / 8, abs=0.07)
    with pytest.raises(CalibrantError, match="clusters must hold at least 3 clusters; got 2"):
        calibration_test(y, p, clusters=np.arange(40) // 20)
    with pytest.raises(CalibrantError, match="sketch"):
        calibration_test(Sketch().update(y, p), clusters=np.arange(40))


def test_many_clusters_are_bundled():
    y, p = uniform(6000, 11)
    found = calibration_test(y, p, clusters=np.arange(6000) // 2, n_resamples=FEW)
    rows = calibration_test(y, p, n_resamples=FEW)
    assert found.n_clusters == 3000
    for name in ("level", "range", "smooth"):
        assert found[name].p_value == pytest.approx(rows[name].p_value, abs=0.2)


@pytest.mark.parametrize("n", [300, 3000])
def test_soft_labels(n):
    rng = np.random.default_rng(12)
    p = rng.uniform(0.2, 0.8, n)
    noise = rng.uniform(-0.1, 0.1, n)
    calibrated, shifted = (calibration_test(p + x + noise, p, n_resamples=FEW) for x in (0, 0.02))
    assert calibrated.p_value > 0.05 >= shifted.p_value
    assert math.isnan(shifted.p_asymptotic)
    assert calibration_test(p, p, n_resamples=FEW).p_value == 1


def test_soft_labels_of_a_sketch_and_of_certain_predictions():
    rng = np.random.default_rng(13)
    p = rng.uniform(0.2, 0.8, 500)
    sketch = Sketch().update(np.clip(p + rng.normal(0, 0.05, 500), 0, 1), p)
    assert calibration_test(sketch, n_resamples=FEW).p_value > 0.05
    certain = calibration_test([0.8, 0.9, 0.8, 0.4], [1.0] * 4, n_resamples=FEW)
    assert 0 < certain.p_value <= 1


def test_a_problem_can_be_tested():
    y, p = uniform(100, 14)
    problem = read_sample(y, p)
    assert joint_test(problem, None, FEW, read_generator(0)) == calibration_test(
        y, p, n_resamples=FEW
    )
    assert calibration_test(problem, n_resamples=FEW) == calibration_test(y, p, n_resamples=FEW)


# Asymptotic tails.


def tails(n, **at):
    y, p = uniform(n, 15)
    statistics = Statistics(NullCells.of(read_sample(y, p), None, read_generator(0)).cells, n)
    observed = np.array([at.get(name, 0.0) for name in PARTS])
    return dict(zip(PARTS, statistics.tails(observed), strict=True))


def test_tails():
    assert tails(500, level=3.0)["level"] == pytest.approx(2 * norm.sf(3))
    assert tails(500, spread=5.0)["spread"] == pytest.approx(2 * norm.sf(5))
    found = tails(500, range=4.63)["range"]
    assert found == pytest.approx(1.5e-5, rel=0.05)  # the flares of cumulative_test
    assert tails(500, fine=40.0)["fine"] == pytest.approx(64 * chi2.sf(40, 2))
    far = tails(500, level=1e9, spread=1e9, range=1e9, smooth=1e9, fine=1e9, local=1e9)
    assert all(0 < one < 1e-300 for one in far.values())


def test_tails_bound_simulated_ones():
    y, p = uniform(1000, 16)
    null = NullCells.of(read_sample(y, p), None, read_generator(0))
    statistics = Statistics(null.cells, 1000)
    drawn = np.concatenate([statistics(r) for r in null.batches(4000, read_generator(1))])
    for level in (0.01, 0.002):
        cut = np.quantile(drawn, 1 - level, axis=0)
        bounds = statistics.tails(cut)
        # Exact but for simulation (10 to 30%) where they are no bounds.
        assert bounds[:3] == pytest.approx(level, rel=0.6)
        assert (bounds[3:] >= 0.6 * level).all()


def test_the_smallest_p_values_go_on_beyond_simulation():
    y, p = uniform(3000, 17, lambda p: p**2)
    found = calibration_test(y, p, n_resamples=FEW)
    assert found.is_least
    assert found.p_value == 1 / (FEW + 1)
    assert 0 < found.p_asymptotic < 1e-9
    assert found.p_asymptotic == pytest.approx(6 * min(one.p_asymptotic for one in found.parts))

"""cumulative_test and subpopulation_test: results, refusals, edges."""

import math

import numpy as np
import pytest

from calibrant import CalibrantError, cumulative_test, ecce_mad, ecce_r, subpopulation_test
from calibrant.data.rows import Sample
from calibrant.inference import null_simulation
from calibrant.inference.null_simulation import (
    calibrated_outcomes,
    permuted_within,
    simulate,
)
from calibrant.measures.subpopulation import GroupCells
from calibrant.numerics.probability import brownian_max, brownian_range
from tests.tolerances import assert_nearly_equal, nearly

Y, P = [0, 1, 1, 1], [0.5, 0.625, 0.75, 0.75]


@pytest.mark.parametrize(
    ("statistic", "measure", "law"),
    [("range", ecce_r, brownian_range), ("max", ecce_mad, brownian_max)],
)
def test_asymptotic_result(statistic, measure, law):
    result = cumulative_test(Y, P, statistic=statistic)
    assert result.statistic == nearly(measure(Y, P))
    assert result.normalized == nearly(measure(Y, P, normalize=True))
    assert result.sigma == pytest.approx(math.sqrt(0.859375) / 4)
    assert result.p_value == nearly(law.sf(result.normalized))
    assert result.n == 4
    assert (result.test, result.method) == (f"calibration, {statistic}", "asymptotic")


def test_reprs_and_dictionaries():
    result = cumulative_test(Y, P)
    assert repr(result) == (
        "TestResult(calibration, range: 0.2188 = 0.944 sigma, p = 0.96, n = 4, asymptotic)"
    )
    assert result.to_dict()["p_value"] == result.p_value
    assert result == cumulative_test(Y, P)


def test_p_values_are_never_zero():
    n = 100_000
    result = cumulative_test(np.zeros(n), np.full(n, 0.9))
    assert result.normalized > 900
    assert result.p_value == 2.2250738585072014e-308
    simulated = cumulative_test(np.zeros(n), np.full(n, 0.9), method="monte_carlo", n_resamples=99)
    assert simulated.p_value == 0.01


def test_simulated_p_value_by_hand():
    # One row, p = .25, y = 1: reached with probability 1/4.
    result = cumulative_test([1], [0.25], method="monte_carlo", n_resamples=99_999)
    assert result.p_value == pytest.approx(0.25, abs=0.006)
    assert result.method == "monte_carlo"
    # The least surprising outcome is reached by every draw, ties in rounding included.
    assert cumulative_test([0], [0.25], method="monte_carlo", n_resamples=99).p_value == 1


@pytest.mark.parametrize("weights", [None, [0.3, 0.1, 0.2, 0.7]])
def test_rounding_does_not_part_equal_statistics(weights):
    # 0.3 three times and one outcome of 1 in 10 rows: statistics equal in exact arithmetic.
    p, y = [0.3, 0.3, 0.3, 0.1], [1, 0, 0, 0]
    result = cumulative_test(y, p, sample_weight=weights, method="monte_carlo", n_resamples=999)
    shuffled = cumulative_test(
        [0, 0, 1, 0] if weights is None else y,
        p,
        sample_weight=weights,
        method="monte_carlo",
        n_resamples=999,
    )
    assert result.p_value == shuffled.p_value


@pytest.mark.parametrize("tied", [False, True])
def test_simulated_p_values_do_not_depend_on_the_unit_of_weights(tied):
    rng = np.random.default_rng(9)
    p = rng.integers(1, 60, 300) / 60 if tied else rng.random(300)
    y = rng.random(300) < p**1.2
    simulated = {"method": "monte_carlo", "n_resamples": 999}
    alone = cumulative_test(y, p, **simulated)
    for weight in (1e-100, 0.3, 1e100):
        weighted = cumulative_test(y, p, sample_weight=np.full(300, weight), **simulated)
        assert weighted.p_value == alone.p_value
    # Heavy rows that leave nothing, or next to nothing, to chance.
    for certain in (1.0, 1e-300):
        rows = np.append(y, certain > 0.5), np.append(p, certain), np.append(np.ones(300), 1e19)
        heavy = cumulative_test(*rows[:2], sample_weight=rows[2], **simulated)
        assert heavy.p_value == pytest.approx(alone.p_value, abs=0.05)


def test_simulations_that_would_take_too_long_are_refused():
    rng = np.random.default_rng(0)
    p = rng.random(100_000)
    y, group = rng.random(100_000) < p, np.arange(100_000) % 5 == 0
    for call in (
        lambda: subpopulation_test(y, p, group=group, method="monte_carlo"),
        lambda: cumulative_test(y, p, method="monte_carlo"),
    ):
        with pytest.raises(
            CalibrantError, match=r"n_resamples must be at most \d+ for so many rows; got"
        ):
            call()


def test_same_seed_same_bytes():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = rng.random(200) < p
    first, again, other = (
        cumulative_test(y, p, method="monte_carlo", n_resamples=999, rng=seed) for seed in (7, 7, 8)
    )
    assert first == again
    assert first.p_value != other.p_value
    generator = cumulative_test(
        y, p, method="monte_carlo", n_resamples=999, rng=np.random.default_rng(7)
    )
    assert generator == first
    default = cumulative_test(y, p, method="monte_carlo", n_resamples=999)
    assert default == cumulative_test(y, p, method="monte_carlo", n_resamples=999, rng=0)


def test_the_global_state_is_left_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    cumulative_test(Y, P, method="monte_carlo", n_resamples=39)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize(
    ("keywords", "sentence"),
    [
        ({"statistic": "mad"}, "statistic must be one of 'range', 'max'; got 'mad'"),
        ({"method": "exact"}, "method must be one of 'asymptotic', 'monte_carlo'; got 'exact'"),
        ({"method": "exact", "clusters": [0, 1, 2]}, "method must be one of"),
        ({"n_resamples": 0}, "n_resamples must be a whole number of at least 39; got 0"),
        ({"n_resamples": 99.0}, "n_resamples must be a whole number of at least 39; got 99.0"),
        ({"n_resamples": True}, "n_resamples must be a whole number of at least 39; got True"),
        ({"rng": -1}, "rng must be a whole number of at least 0 or a numpy Generator; got -1"),
        ({"rng": None}, "rng must be a whole number of at least 0 or a numpy Generator; got None"),
        ({"multiclass": "classwise"}, "one binary problem"),
    ],
)
def test_options_refused(keywords, sentence):
    with pytest.raises(CalibrantError, match=sentence):
        cumulative_test(Y, P, **keywords)


@pytest.mark.parametrize("method", ["asymptotic", "monte_carlo"])
@pytest.mark.parametrize(
    "keywords", [{}, {"group": [1, 0]}, {"group": [1, 0], "against": "calibration"}]
)
def test_soft_labels_refused(method, keywords):
    test = subpopulation_test if keywords else cumulative_test
    with pytest.raises(
        CalibrantError, match=r"must be 0 or 1 for a test of .*noise of soft labels is unknown"
    ):
        test([0.5, 1.0], [0.5, 0.5], method=method, **keywords)


def test_predictions_of_zero_and_one_alone_refused():
    with pytest.raises(
        CalibrantError, match="a prediction strictly between 0 and 1 for a test of calibration"
    ):
        cumulative_test([0, 1], [0.0, 1.0])


@pytest.mark.parametrize(
    ("y", "p", "sentence"),
    [
        ([0, 1, 1], [0.0, 0.0, 1.0], "one of 0 has the outcome 1"),
        ([0, 1, 0], [0.0, 1.0, 1.0], "one of 1 has the outcome 0"),
    ],
)
@pytest.mark.parametrize("method", ["asymptotic", "monte_carlo"])
def test_certain_predictions_that_are_wrong(y, p, sentence, method):
    with pytest.raises(CalibrantError, match=f"calibration is refuted without a test.*{sentence}"):
        cumulative_test(y, p, method=method)
    with pytest.raises(CalibrantError, match=f"group against calibration is refuted.*{sentence}"):
        subpopulation_test(y, p, group=[1, 1, 1], against="calibration", method=method)


def test_doubling_weights_changes_nothing_but_doubling_rows_does():
    w = np.array([1.0, 2.0, 1.0, 0.5])
    once = cumulative_test(Y, P, sample_weight=w)
    assert_nearly_equal(cumulative_test(Y, P, sample_weight=2 * w), once)
    twice = cumulative_test(Y + Y, P + P, sample_weight=np.tile(w, 2))
    assert twice.statistic == pytest.approx(once.statistic)
    assert twice.sigma == pytest.approx(once.sigma / math.sqrt(2))


def test_group_against_calibration_is_the_test_of_its_rows():
    rng = np.random.default_rng(1)
    p = rng.random(60)
    y, group, w = rng.random(60) < p, rng.random(60) < 0.5, rng.random(60)
    for weight in (None, w):
        result = subpopulation_test(y, p, group=group, against="calibration", sample_weight=weight)
        alone = cumulative_test(
            y[group], p[group], sample_weight=None if weight is None else weight[group]
        )
        assert result.test == "group against calibration, range"
        assert (result.statistic, result.p_value) == nearly((alone.statistic, alone.p_value))
        assert result.n == group.sum()


def test_group_that_nothing_can_be_compared_with():
    sentence = "group cannot be compared with its population: all rows between"
    for group in ([1, 1, 1, 1], [1, 0, 0, 0]):
        with pytest.raises(CalibrantError, match=sentence):
            subpopulation_test([1, 1, 0, 0], P, group=group)
    # Others are near, but their outcomes are all alike, at shared scores or not.
    sentence = "group cannot be compared with its population: near none of its scores"
    for p in ([0.3, 0.3, 0.7, 0.7], [0.1, 0.3, 0.6, 0.7]):
        with pytest.raises(CalibrantError, match=sentence):
            subpopulation_test([0, 0, 1, 1], p, group=[1, 0, 0, 1])


def test_counts_are_dealt_only_among_rows_all_alike():
    member = np.array([True, False, True, False])
    shared, unequal = [0.1, 0.1, 0.7, 0.7], [0.1, 0.2, 0.7, 0.7]
    # Outcomes vary in one cell of two rows: one count is drawn for it, or two residuals.
    for p, w, size in [(shared, None, 1), (shared, [1.0, 2.0, 1.0, 1.0], 2), (unequal, None, 2)]:
        sample = Sample(np.array(Y), np.array(p), None if w is None else np.array(w))
        assert permuted_within(GroupCells.around(sample, member)).size == size


def test_a_group_is_not_blamed_for_its_scores():
    # Outcomes as predicted, to the row; in each cell the group has the lowest score.
    p = np.tile(np.repeat([0.1, 0.2, 0.3, 0.4], 100), 2)
    group = np.isin(p, [0.1, 0.3]) & (np.arange(800) < 400)
    y = np.concatenate([np.arange(100) < round(100 * s) for s in p[::100]])
    result = subpopulation_test(y, p, group=group)
    assert result.statistic == pytest.approx(0, abs=1e-12)


def test_group_test_sees_what_calibration_hides():
    # The population is calibrated; within it one half is too high and the other too low.
    rng = np.random.default_rng(2)
    p = rng.uniform(0.2, 0.8, 4000)
    group = rng.random(4000) < 0.5
    y = rng.random(4000) < p + np.where(group, 0.1, -0.1)
    assert cumulative_test(y, p).p_value > 0.01
    assert subpopulation_test(y, p, group=group).p_value < 1e-6
    assert subpopulation_test(y, p, group=group, method="monte_carlo").p_value == 1e-4


@pytest.mark.parametrize("weighted", [False, True])
def test_simulated_steps_have_the_mean_and_variance_they_should(weighted):
    rng = np.random.default_rng(4)
    p = rng.integers(1, 10, 80) / 10
    y, member = rng.random(80) < p, rng.random(80) < 0.4
    w = rng.integers(1, 4, 80) / 2 if weighted else None
    sample = Sample(y, p, w)
    cells = GroupCells.around(sample, member)
    nulls = [
        (
            calibrated_outcomes(sample),
            sample.pooled.weight_squared * _spread(sample.pooled.score),
        ),
        (permuted_within(cells), cells.variance[cells.variance > 0]),
    ]
    for hypothesis, variance in nulls:
        drawn = hypothesis.draw(slice(0, hypothesis.size), 40_000, np.random.default_rng(5))
        steps = np.add.reduceat(drawn, hypothesis.starts, axis=1, dtype=np.float64)
        steps = hypothesis.unit * (steps - hypothesis.expected)
        error = np.sqrt(variance / len(steps))
        assert np.all(np.abs(steps.mean(axis=0)) < 5 * error)
        np.testing.assert_allclose(steps.var(axis=0), variance, rtol=0.06)


def _spread(p):
    return p * (1 - p)


@pytest.mark.parametrize("weighted", [False, True])
def test_long_walks_are_cut_into_blocks(weighted, monkeypatch):
    rng = np.random.default_rng(6)
    # Pairs of rows with equal scores, with different weights or one of each in the group.
    p = np.repeat(rng.random(150), 2)
    member = rng.random(300) < 0.4 if weighted else np.arange(300) % 2 == 0
    y = rng.random(300) < p
    sample = Sample(y, p, rng.random(300) if weighted else None)
    cells = GroupCells.around(sample, member)
    for hypothesis in (calibrated_outcomes(sample), permuted_within(cells)):
        # One walk draws the same numbers in the same order, however it is cut.
        whole = simulate(hypothesis, 1, np.random.default_rng(0))
        with monkeypatch.context() as patched:
            patched.setattr(null_simulation, "_DRAWS", 16)
            np.testing.assert_allclose(simulate(hypothesis, 1, np.random.default_rng(0)), whole)

"""Cumulative errors and curves: hand-computed cases, edges, refusals."""

import math

import numpy as np
import pytest

from calibrant import CalibrantError, cumulative_curve, ecce_mad, ecce_r, subpopulation_curve
from calibrant.data import rows
from calibrant.data.rows import Sample
from tests.tolerances import ROUNDING, nearly

Y, P = [0, 1, 1, 1], [0.5, 0.625, 0.75, 0.75]  # steps -1/2, 3/8, 1/2, over 4


def test_by_hand():
    assert ecce_mad(Y, P) == 0.125
    assert ecce_r(Y, P) == 0.21875
    sigma = math.sqrt(0.25 + 0.234375 + 2 * 0.1875) / 4
    assert ecce_mad(Y, P, normalize=True) == pytest.approx(0.125 / sigma, rel=ROUNDING)
    assert ecce_r(Y, P, normalize=True) == pytest.approx(0.21875 / sigma, rel=ROUNDING)


def test_the_walk_starts_at_zero():
    # Every position is positive, so the lowest point is the start.
    assert ecce_r([1], [0.25]) == ecce_mad([1], [0.25]) == 0.75
    assert ecce_r([0], [0.25]) == ecce_mad([0], [0.25]) == 0.25


def test_ties_make_one_step():
    # Row by row the walk would reach 1/2 whichever row comes first; together they cancel.
    assert ecce_mad([1, 0], [0.5, 0.5]) == 0.0
    assert ecce_r([0, 1], [0.5, 0.5]) == 0.0


def test_weights_by_hand():
    # W = 4, steps 3/2 and -3/4
    assert ecce_mad([1, 0], [0.5, 0.75], sample_weight=[3, 1]) == 0.375
    assert ecce_r([1, 0], [0.5, 0.75], sample_weight=[3, 1]) == 0.375
    sigma = math.sqrt(9 * 0.25 + 0.1875) / 4
    normalized = ecce_r([1, 0], [0.5, 0.75], sample_weight=[3, 1], normalize=True)
    assert normalized == pytest.approx(0.375 / sigma, rel=ROUNDING)


def test_soft_labels_by_hand():
    assert ecce_r([0.25, 1.0], [0.5, 0.75]) == 0.125
    assert ecce_mad([0.1, 0.7], [0.1, 0.7]) == 0.0


def test_negative_zero_is_zero():
    assert ecce_mad([1, 0], [-0.0, 0.0]) == 0.5


def test_classes():
    prob = np.array([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5], [0.25, 0.625, 0.125]])
    y = [0, 2, 0]
    assert ecce_mad(y, prob) == ecce_mad([1, 1, 0], [0.5, 0.5, 0.625])
    each = [ecce_r(np.equal(y, c), prob[:, c]) for c in range(3)]
    assert ecce_r(y, prob, multiclass="classwise") == pytest.approx(np.mean(each), rel=ROUNDING)
    assert ecce_r(y, prob, multiclass=1) == each[1]


def test_soft_labels_have_no_sigma():
    with pytest.raises(CalibrantError, match=r"must be 0 or 1 for normalize=True.*soft labels"):
        ecce_mad([0.5, 1.0], [0.5, 0.75], normalize=True)


def test_no_noise_to_divide_by():
    assert ecce_mad([1, 0], [0.0, 1.0]) == 0.5
    with pytest.raises(CalibrantError, match=r"strictly between 0 and 1 for normalize=True"):
        ecce_mad([1, 0], [0.0, 1.0], normalize=True)


@pytest.mark.parametrize("kind", ["distinct", "tenths", "float32", "one value", "tied ends"])
def test_ties_pooled_in_blocks_are_the_same(kind, monkeypatch):
    rng = np.random.default_rng(3)
    p = {
        "distinct": lambda: rng.random(1000),
        "tenths": lambda: rng.integers(0, 11, 1000) / 10,
        "float32": lambda: (rng.random(1000) ** 9).astype(np.float32),
        "one value": lambda: np.full(1000, 0.29),
        "tied ends": lambda: np.repeat(rng.random(500), 2),
    }[kind]()
    y = rng.random(1000) < p**2
    whole = Sample(y, p).pooled
    monkeypatch.setattr(rows, "_BLOCK_ROWS", 64)
    for name, column in vars(Sample(y, p).pooled).items():
        assert column == nearly(getattr(whole, name))


def test_curve_by_hand():
    curve = cumulative_curve(Y, P)
    assert curve.fraction.tolist() == [0, 0.25, 0.5, 1]
    assert curve.score.tolist() == [0.5, 0.5, 0.625, 0.75]
    assert curve.deviation.tolist() == [0, -0.125, -0.03125, 0.09375]
    assert curve.sigma == pytest.approx(math.sqrt(0.859375) / 4)
    assert repr(curve) == (
        "CumulativeCurve(3 scores, deviation from -0.125 to +0.09375, sigma = 0.2318)"
    )
    assert curve.to_dict()["fraction"] == [0, 0.25, 0.5, 1]


def test_curve_of_soft_labels_has_no_sigma():
    curve = cumulative_curve([0.25, 1.0], [0.5, 0.75])
    assert curve.deviation.tolist() == [0, -0.125, 0]
    assert math.isnan(curve.sigma)


def test_curve_takes_one_problem():
    with pytest.raises(CalibrantError, match="one binary problem"):
        cumulative_curve([0, 1, 2], np.eye(3), multiclass="classwise")


def test_group_curve_by_hand():
    # Cells {.25, .375} and {.4375, .5}; see the twin's own test.
    p = [0.125, 0.25, 0.375, 0.4375, 0.5, 0.75]
    y, group = [1, 1, 0, 1, 0, 1], [False, True, False, False, True, False]
    curve = subpopulation_curve(y, p, group=group)
    assert curve.score.tolist() == [0.25, 0.25, 0.5]
    assert curve.fraction.tolist() == [0, 0.5, 1]
    # Residuals .75 and -.375, .5625 and -.5: half the differences, over 2 rows of the group.
    assert curve.deviation.tolist() == [0, 0.28125, 0.28125 - 0.265625]
    assert curve.sigma == pytest.approx(math.hypot(0.28125, 0.265625))
    alone = subpopulation_curve(y, p, group=group, against="calibration")
    assert alone.deviation == nearly(cumulative_curve([1, 0], [0.25, 0.5]).deviation)


def test_group_of_soft_labels_has_a_curve_without_sigma():
    curve = subpopulation_curve([0.5, 1.0], [0.5, 0.5], group=[True, False])
    assert curve.deviation.tolist() == [0, -0.25]
    assert math.isnan(curve.sigma)


def test_group_leaves_out_rows_without_weight():
    y, p = [1, 0, 1, 0], [0.5, 0.5, 0.5, 0.5]
    kept = subpopulation_curve(y[:3], p[:3], group=[1, 1, 0])
    with_zero = subpopulation_curve(y, p, group=[1, 1, 0, 1], sample_weight=[1, 1, 1, 0])
    assert with_zero.deviation == nearly(kept.deviation)
    assert with_zero.sigma == pytest.approx(kept.sigma)


def test_group_scores_that_are_neighbouring_doubles_keep_apart():
    for low in (0.3, np.nextafter(0.3, 1), 0.5, np.nextafter(0.5, 0)):
        high = np.nextafter(low, 1)
        p, group = [low, high, low], [True, True, False]
        curve = subpopulation_curve([1, 0, 0], p, group=group)
        assert curve.score.tolist() == [low, low, high]
        assert curve.deviation.tolist() == [0, 0.25, 0.25]


@pytest.mark.parametrize(
    ("group", "sentence"),
    [
        ([True], r"group must be true or false for each row, shape \(2,\); got \(1,\)"),
        ([[True, False]], r"shape \(2,\); got \(1, 2\)"),
        ([0, 3], r"group must be true or false for each row; got 3 at index 1: compare"),
        (["a", "b"], r"group must be true or false for each row; got 'a' at index 0"),
        ([False, False], r"group must select a row with positive weight"),
        ([True, True], "group cannot be compared with its population: all rows between"),
        ([True, False], "group cannot be compared with its population: all rows between"),
    ],
)
def test_groups_refused(group, sentence):
    with pytest.raises(CalibrantError, match=sentence):
        subpopulation_curve([0, 1], [0.25, 0.75], group=group)


def test_against_what():
    with pytest.raises(CalibrantError, match="against must be one of 'population', 'calibration'"):
        subpopulation_curve([0, 1], [0.25, 0.75], group=[1, 0], against="others")

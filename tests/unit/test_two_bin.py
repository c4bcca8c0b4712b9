"""The averaged two-bin error: twin, cases by hand, truthfulness, sketches, intervals."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cb
from calibrant import CalibrantError, SketchError, averaged_two_bin_error
from calibrant.data.classes import one_problem
from calibrant.measures.two_bin import TwoBinError
from tests.tolerances import ROUNDING, nearly

REFERENCES = json.loads(
    Path(__file__).parents[1].joinpath("references", "reference_values.json").read_text()
)
SETS = {
    "rain": lambda: cb.datasets.load_rain(),
    "flares_DAFFS": lambda: cb.datasets.load_flares("DAFFS"),
    "flares_NOAA": lambda: cb.datasets.load_flares("NOAA"),
    "resnet34": lambda: cb.datasets.load_imagenet("resnet34"),
    "densenet161": lambda: cb.datasets.load_imagenet("densenet161"),
}


def double_sum(y, p, w=None):
    """Return the error in exact fractions, straight from the double sum: the slow twin."""
    w = [1] * len(p) if w is None else w
    y, p, w = ([Fraction(v) for v in column] for column in (y, p, w))
    rows = [(wi * (yi - pi), pi) for yi, pi, wi in zip(y, p, w, strict=True)]
    pairs = (a * b * (1 - abs(s - t)) for a, s in rows for b, t in rows)
    return sum(pairs) / sum(w) ** 2


def null_mean(p):
    """Return the mean of the error under perfect calibration, from the notes of the function."""
    return float(np.mean(np.multiply(p, np.subtract(1, p)))) / len(p)


def test_by_hand():
    # C is -1/8 between the scores and 0 beyond them: half of (1/64 + 1/64).
    assert averaged_two_bin_error([0, 1], [0.25, 0.75]) == 1 / 64
    assert double_sum([0, 1], [0.25, 0.75]) == Fraction(1, 64)
    # One score: all rows are in one bin, whatever the cut.
    assert averaged_two_bin_error([1, 1], [0.25, 0.25]) == 0.75**2
    assert averaged_two_bin_error([1], [0.0]) == averaged_two_bin_error([0], [1.0]) == 1
    assert averaged_two_bin_error([0.3, 0.6], [0.3, 0.6]) == 0
    # (4/64 - 2/16) / (4 - 2).
    assert averaged_two_bin_error([0, 1], [0.25, 0.75], unbiased=True) == -1 / 32


LABELS = st.integers(0, 16).map(lambda k: k / 16)
# Soft labels with predictions of 0 and 1 alone would look swapped.
SCORES = st.integers(0, 15).map(lambda k: k / 16)
ROWS = st.lists(st.tuples(LABELS, SCORES, st.integers(1, 4)), min_size=1, max_size=12)


@given(ROWS)
@settings(deadline=None)
def test_equals_the_double_sum(rows):
    y, p, w = zip(*rows, strict=True)
    found = averaged_two_bin_error(y, p, sample_weight=w)
    assert found == pytest.approx(float(double_sum(y, p, w)), abs=1e-12)
    mean = float(np.average(np.subtract(y, p), weights=w))
    assert mean**2 / 2 - ROUNDING <= found <= 1
    # Weights are rows repeated; order does not matter; neither does which outcome is called 1.
    repeated = [np.repeat(column, w) for column in (y, p)]
    assert averaged_two_bin_error(*repeated) == pytest.approx(found, abs=ROUNDING)
    turned = averaged_two_bin_error(1 - np.array(y), 1 - np.array(p), sample_weight=w)
    assert turned == pytest.approx(found, abs=ROUNDING)


@pytest.mark.parametrize("name", SETS)
def test_reference_values(name):
    y, p = SETS[name]()
    expected = REFERENCES[name]["section_11"]
    assert averaged_two_bin_error(y, p) == pytest.approx(expected["atb"], abs=1e-12)
    unbiased = averaged_two_bin_error(y, p, unbiased=True)
    assert unbiased == pytest.approx(expected["atb_unbiased"], abs=1e-12)
    assert null_mean(p) == pytest.approx(expected["atb_null_mean"], abs=1e-12)


def expected_error(report, truth, **options):
    """Return the mean of the error over all outcomes of rows with these true probabilities."""
    outcomes = np.array([*product([0, 1], repeat=len(truth))])
    probability = np.prod(np.where(outcomes, truth, 1 - np.asarray(truth)), axis=1)
    return float(probability @ [averaged_two_bin_error(y, report, **options) for y in outcomes])


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_truth_has_the_smallest_mean(n):
    rng = np.random.default_rng(n)
    for _ in range(3):
        truth = rng.choice([0.0, 0.1, 0.3, 0.3, 0.62, 0.9], n)
        best = expected_error(truth, truth)
        assert best == pytest.approx(null_mean(truth), abs=1e-12)
        others = [
            np.full(n, truth.mean()),
            np.clip(np.round(truth), 0.01, 1),
            rng.random(n),
            0.9 * truth + 0.05,
        ]
        others += [np.clip(truth + 0.05 * rng.standard_normal(n), 0, 1) for _ in range(3)]
        for report in others:
            excess = expected_error(report, truth) - best
            # What is lost is the error of the report with the truth as soft labels.
            assert excess == pytest.approx(averaged_two_bin_error(truth, report), abs=1e-12)
            assert excess >= -1e-12


def test_unbiased():
    truth, report = [0.25, 0.5, 0.875], [0.5, 0.25, 0.75]
    population = [
        (truth[i] - report[i]) * (truth[j] - report[j]) * (1 - abs(report[i] - report[j]))
        for i in range(3)
        for j in range(3)
        if i != j
    ]
    found = expected_error(report, truth, unbiased=True)
    assert found == pytest.approx(np.mean(population), abs=1e-12)
    assert expected_error(truth, truth, unbiased=True) == pytest.approx(0, abs=1e-12)
    w = np.array([1.0, 2.0, 3.0])
    r = np.array([0.0, 1.0, 1.0]) - report
    own, whole = float(w**2 @ r**2), w.sum() ** 2
    biased = averaged_two_bin_error([0, 1, 1], report, sample_weight=w)
    expected = (whole * biased - own) / (whole - float(w @ w))
    unbiased = averaged_two_bin_error([0, 1, 1], report, sample_weight=w, unbiased=True)
    assert unbiased == pytest.approx(expected, abs=ROUNDING)
    with pytest.raises(CalibrantError, match="at least two rows"):
        averaged_two_bin_error([1], [0.5], unbiased=True)


def test_classes():
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet([1, 1, 1], 60), rng.integers(0, 3, 60)
    for options in ({}, {"unbiased": True}):
        each = [averaged_two_bin_error(y, p, multiclass=c, **options) for c in range(3)]
        found = averaged_two_bin_error(y, p, multiclass="classwise", **options)
        assert found == nearly(np.mean(each))
    confidence = averaged_two_bin_error(y == p.argmax(axis=1), p.max(axis=1))
    assert averaged_two_bin_error(y, p) == nearly(confidence)


def test_half_precision_and_rows_of_weight_0():
    y, p = [0, 1, 1, 0], np.array([0.1, 0.6, 0.9, 0.6], dtype=np.float16)
    expected = float(double_sum(y, p.astype(float)))
    assert averaged_two_bin_error(y, p) == nearly(expected)
    w = [1, 1, 1, 1, 0]
    assert averaged_two_bin_error([*y, 1], [*p, 0.0], sample_weight=w) == nearly(expected)


def test_the_bound_of_a_sketch_holds():
    rng = np.random.default_rng(11)
    widest = 0.0
    for k in range(1000):
        n, n_cells = int(rng.integers(1, 60)), int(rng.integers(1, 40))
        p = [rng.random(n), rng.beta(0.2, 2, n), rng.integers(0, 21, n) / 20][k % 3]
        y = rng.random(n) if k % 5 == 0 else (rng.random(n) < p**1.5).astype(float)
        w = rng.random(n) + 0.1 if k % 4 == 0 else None
        unbiased = w is None and n > 1 and k % 2 == 0
        sketch = cb.Sketch(n_cells).update(y, p, w)
        exact = averaged_two_bin_error(y, p, sample_weight=w, unbiased=unbiased)
        off = abs(averaged_two_bin_error(sketch, unbiased=unbiased) - exact)
        bound = cb.error_bound(sketch, "averaged_two_bin_error", unbiased=unbiased)
        assert off <= bound, (k, off, bound)
        widest = max(widest, off / bound)
    # Not so wide that it says nothing.
    assert widest > 0.05


def test_of_a_fine_sketch_the_bound_is_small():
    y, p = cb.datasets.load_imagenet("resnet34")
    sketch = cb.Sketch().update(y, p)
    assert cb.error_bound(sketch, "averaged_two_bin_error") < 1e-6
    weighted = cb.Sketch().update([0, 1], [0.2, 0.7], [1.0, 2.0])
    with pytest.raises(SketchError, match="unbiased must be False for a sketch of weighted rows"):
        averaged_two_bin_error(weighted, unbiased=True)


def test_the_image_has_the_error_for_its_square():
    y, p = cb.datasets.load_rain()  # tenths, all within cells
    problem, error = one_problem(y, p, None, None, None, None), TwoBinError()
    image = error.image(problem, error(problem))
    sums = problem.cell_sums(image.cell_of, image.n_cells).sum(axis=1)
    norm = float(image.norm.of(image.of_totals(sums[3], sums[0])))
    # Scores are known to a cell of 512.
    assert norm**2 == pytest.approx(error(problem), rel=0.01)


@pytest.mark.parametrize(("slope", "n"), [(1.0, 300), (0.8, 300), (0.6, 2000)])
def test_intervals_cover(slope, n):
    rng = np.random.default_rng(5)
    target = np.random.default_rng(1).beta(2, 2, 20_000)
    truth = averaged_two_bin_error(0.5 + slope * (target - 0.5), target)
    inside = 0
    for _ in range(150):
        p = rng.beta(2, 2, n)
        y = rng.random(n) < 0.5 + slope * (p - 0.5)
        found = cb.estimate("averaged_two_bin_error", y, p, n_resamples=200, rng=rng)
        inside += found.low <= truth <= found.high
    # 95% nominal; 150 samples show it to within 1.8%, twice that and a bit is allowed for.
    assert inside / 150 >= 0.91


def test_in_assess_and_compare():
    y, p = cb.datasets.load_flares("DAFFS")
    found = cb.assess(y, p, n_resamples=100)["averaged_two_bin_error"]
    assert 0 < found.low < found.value < found.high
    _, other = cb.datasets.load_flares("NOAA")
    models = {"DAFFS": p, "NOAA": other}
    found = cb.compare(y, models, measure="averaged_two_bin_error", n_resamples=400)
    (pair,) = found.pairs
    expected = averaged_two_bin_error(y, p) - averaged_two_bin_error(y, other)
    assert pair.difference == nearly(expected)
    assert 0 < pair.low < expected < pair.high
    with pytest.raises(CalibrantError, match="no interval for averaged_two_bin_error with"):
        cb.estimate("averaged_two_bin_error", y, p, unbiased=True)

"""Błasiok and Nakkiran (2023): the headline facts, from a quick run."""

import math

import numpy as np
import pytest

from calibrant.datasets import SCENARIOS
from studies.smooth_ece import RELPLOT, RELPLOT_STEP, moved, moved_sample


@pytest.fixture(scope="module")
def run(quickly):
    return quickly("smooth-ece")


def test_smooth_errors_of_the_bundled_data(run):
    found = {row.data: f"{row.smece:.4f}" for row in run.tables["diagrams"]}
    assert found == {
        "resnet34": "0.0779",
        "flares DAFFS": "0.0674",
        "rain": "0.1337",
        "flares NOAA": "0.0408",
        "densenet161": "0.0564",
    }


def test_the_diagram_shows_smooth_error_to_within_a_bandwidth(run):
    for row in run.tables["diagrams"]:
        assert abs(row.visible - row.smece) <= math.sqrt(2 / math.pi) * row.smece


def test_half_mass_at_the_ends_explains_the_released_program(run):
    for row in run.tables["diagrams"]:
        assert row.half_ends == pytest.approx(float(RELPLOT[row.data]), abs=RELPLOT_STEP)
        differs = abs(row.smece - float(RELPLOT[row.data])) > RELPLOT_STEP
        assert differs == (row.data in ("rain", "densenet161"))


def test_small_moves_change_binned_error_but_not_the_smooth_one(run):
    found = {(row.data, row.measure): row.mean for row in run.tables["moved"]}
    binned, smooth = ([found[d, m] for d in "123"] for m in ("ECE, 20 bins", "smECE"))
    assert binned[0] == pytest.approx(0.06, abs=0.01)
    assert binned[2] == pytest.approx(0.31, abs=0.01)
    assert np.ptp(smooth) < 0.005


def test_moves_by_hand():
    y, p = np.array([1, 0, 1, 0, 1, 0]), np.array([0.02, 0.02, 0.07, 0.07, 0.93, 0.97])
    expected = [0.07, 0.02, 0.07, 0.02, 0.98, 0.92]
    assert moved(y, p, cell=0.1, fraction=1.0) == pytest.approx(expected)
    assert moved(y, p, cell=0.1, fraction=0.5) == pytest.approx((p + expected) / 2)


def test_no_prediction_moves_far_and_all_outcomes_part():
    before, half, after = (moved_sample(k, 5000, np.random.default_rng(1)) for k in (1, 2, 3))
    assert np.array_equal(before[0], after[0])
    assert np.abs(half[1] - before[1]).max() <= 0.025 + 1e-12
    assert np.abs(after[1] - before[1]).max() <= 0.05 + 1e-12
    is_upper = np.floor(20 * after[1]).astype(int) % 2 == 1
    assert np.mean(is_upper == (after[0] == 1)) > 0.999  # but for rounding at edges


def test_smooth_error_is_consistent(run):
    rows = run.tables["consistency"]
    assert len({row.family for row in rows}) == 9
    for row in rows:
        # If dCE is anywhere between its bounds, these must hold.
        assert row.smece >= row.lower / 2
        assert row.smece <= 2 * math.sqrt(row.upper)


def test_both_ends_of_consistency_are_needed(run):
    rows = run.tables["consistency"]
    for row in rows:
        if row.family == "shift":
            assert row.smece == pytest.approx(row.parameter, rel=1e-6)
            assert row.upper == pytest.approx(row.parameter, rel=1e-6)
        if row.family == "two points" and row.parameter < 0.01:
            assert row.smece / math.sqrt(row.lower) == pytest.approx(0.63, abs=0.03)


def test_errors_of_samples_fall_as_theorem_9_says(run):
    powers = [c for c in run.tables["comparisons"] if c.table == "Theorem 9"]
    assert len(powers) == 3
    for one in powers:
        assert one.ours == pytest.approx(-0.5, abs=4 * one.error)
    for row in run.tables["sizes"]:
        if row.start != "smECE":
            assert row.quantile * math.sqrt(row.m * float(row.start)) < 0.3


def test_the_synthetic_set(run):
    truth = SCENARIOS["skewed"]
    p = np.linspace(0, 1, 101)
    z = 2 * p - 1
    published = (z + 0.2 * np.sin(4 * np.pi * z) + 1) / 2
    assert truth.outcome_probability(p) == pytest.approx(published, abs=1e-12)
    (row,) = (row for row in run.tables["skewed"] if row.measure == "smECE")
    assert row.mean == pytest.approx(truth.smooth_ece(), abs=0.004)


def test_what_the_diagram_shows_of_calibrated_halves(run):
    for row in run.tables["constants"]:
        assert row.constant == pytest.approx(math.sqrt(2 / math.pi), abs=1e-5)


def test_what_deviates(run):
    found = {(c.table, c.row, c.column) for c in run.tables["comparisons"] if c.is_remarkable}
    assert found == {
        ("Data", "rain", "n"),
        ("relplot", "rain", "smECE"),
        ("relplot", "densenet161", "smECE"),
    }

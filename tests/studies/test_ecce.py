"""Arrieta-Ibarra et al. (2022): the headline facts, from a quick run."""

import random

import numpy as np
import pytest

import calibrant as cb
from studies import ecce
from studies.staircase import cantor_staircase


@pytest.fixture(scope="module")
def run(quickly):
    return quickly("ecce")


@pytest.fixture(scope="module")
def means(run):
    return {(r.n, r.transform, r.outcomes, r.measure): r.mean for r in run.tables["sizes"]}


def test_figure_7_to_the_digit(run):
    rows = {r.statistic: r for r in run.tables["cumulative"] if r.data == "sqrt"}
    assert f"{rows['max'].value:.5f}" == "0.01243"
    assert f"{rows['max'].normalized:.3f}" == "5.512"
    assert f"{rows['max'].p_value:.1e}" == "7.1e-08"
    assert f"{rows['range'].value:.5f}" == "0.02291"
    assert f"{rows['range'].normalized:.2f}" == "10.16"


def test_printed_p_values(run):
    for row in run.tables["p_values"]:
        if row.printed != "0":
            assert f"{row.p_value:.1e}" == row.printed


def test_ece_has_a_noise_floor_that_ecce_has_not(means):
    small, large = 2**12, 2**14
    for transform in ecce.TRANSFORMS:
        ece, mad = (
            means[large, transform, "calibrated", measure]
            / means[small, transform, "calibrated", measure]
            for measure in ("ECE2", "ECCE-MAD")
        )
        assert ece == pytest.approx(1, abs=0.15)
        assert mad < 0.75
        assert means[large, transform, "calibrated", "ECE2"] == pytest.approx(1 / 96, rel=0.06)
        # What is wrong is seen by the cumulative errors and hardly by the others.
        assert means[large, transform, "staircase", "ECCE-R / sigma"] > 5
        assert means[large, transform, "staircase", "ECE1"] < 0.11


def test_normalized_means_of_calibrated_data(run):
    limits = {"ECCE-MAD / sigma": 1.2533, "ECCE-R / sigma": 1.5958}
    for row in run.tables["null"]:
        if row.measure in limits:
            assert row.mean == pytest.approx(
                limits[row.measure], abs=4 * row.deviation / row.data_sets**0.5
            )


def test_floors_are_those_of_theorems_1_and_8(run):
    floors = {(r.transform, r.outcomes): r.ece2 for r in run.tables["floors"]}
    for transform in ecce.TRANSFORMS:
        assert floors[transform, "calibrated"] == pytest.approx(1 / 96, rel=1e-3)
        assert floors[transform, "staircase"] > floors[transform, "calibrated"]


def test_more_bins_more_error(run):
    rows = [r for r in run.tables["bins"] if (r.data, r.bins) == ("identity", "equal count")]
    assert [r.m for r in rows] == [2**e for e in range(2, 13)]
    assert rows[-1].ece1 > 5 * rows[0].ece1


def test_nothing_deviates(run):
    comparisons = run.tables["comparisons"]
    assert {c.table for c in comparisons} == {"Figure 7", "P-values", "Limits", "Noise floor"}
    assert max(abs(c.deviation) for c in comparisons) < 4


def test_draws_are_those_of_the_published_program():
    draws = ecce._as_published(ecce.SEED)
    python = random.Random(987654321)
    for n in (700, 5):
        assert draws.random(n).tolist() == [python.random() for _ in range(n)]
    data = cantor_staircase(1000, "square")
    again = ecce._as_published(ecce.SEED).random(1000) <= data.true_prob
    assert np.array_equal(again, data.y_true)


def test_what_the_published_program_counts_in_other_bins():
    """Twin of the released rule: go on by at most one bin an observation, closed on the right."""
    n_bins = 4096
    for transform, n, same in (("square", 8192, True), ("sqrt", 8192, False)):
        y, p = cantor_staircase(n, transform)
        place, at = [], 0
        for score in p:
            at += score > (at + 1) / n_bins
            place.append(at)
        count = np.bincount(place)
        gap = np.bincount(place, y - p)[count > 0] / count[count > 0]
        released = np.abs(gap).sum() / n_bins
        ours = cb.ece(y, p, n_bins=n_bins, weighting="width")
        if same:
            assert released == pytest.approx(ours, abs=1e-12)
        else:
            assert f"{released:.4f}" == "0.3216"
            assert f"{ours:.4f}" == "0.2373"

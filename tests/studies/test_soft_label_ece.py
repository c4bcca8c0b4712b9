"""Leznik (2026): the headline facts, from a quick run."""

import math

import numpy as np
import pytest

from studies import soft_label_ece
from studies.soft_label_ece import SIZES, STEEPNESS


@pytest.fixture(scope="module")
def run(quickly):
    return quickly("soft-label-ece")


@pytest.fixture(scope="module")
def population(run):
    return {(r.k, r.model, r.measure, r.rows): r.value for r in run.tables["population"]}


@pytest.fixture(scope="module")
def errors(run):
    return {(r.k, r.n, r.model, r.measure, r.rows): r for r in run.tables["errors"]}


def test_the_posterior_itself_has_no_error_in_any_sample(errors, population):
    for key, row in errors.items():
        if key[2:4] == ("A", "SMECE"):
            assert (row.mean, row.deviation) == (0.0, 0.0)
    assert all(population[k, "A", "SMECE", "all"] == 0 for k in STEEPNESS)


def test_its_ece_settles_on_another_value(errors, population):
    assert population[2.0, "A", "ECE", "all"] == pytest.approx(0.1151, abs=5e-5)
    rows = [errors[2.0, n, "A", "ECE", "all"] for n in SIZES]
    for row in rows:
        assert row.mean == pytest.approx(
            0.1151, abs=4 * row.deviation / math.sqrt(row.replications)
        )
    assert rows[-1].deviation < rows[0].deviation / 3


@pytest.mark.parametrize(
    ("model", "rows", "values"),
    [
        ("B", "all", {2.0: 0.0766, 1.0: 0.1379}),
        ("C", "all", {2.0: 0.1375}),
        ("D", "p < 1", {2.0: 0.0967}),
        (
            "D",
            "all",
            {0.5: 0.1500, 1.0: 0.1374, 2.0: 0.1100, 5.0: 0.0891, 10.0: 0.0820, 50.0: 0.0764},
        ),
        ("E", "all", dict.fromkeys(STEEPNESS, 0.25)),
    ],
)
def test_population_values(population, model, rows, values):
    for k, value in values.items():
        assert population[k, model, "SMECE", rows] == pytest.approx(value, abs=5e-5)


@pytest.mark.parametrize("model", "ABCD")
def test_population_values_against_a_fine_grid(population, model):
    x = (np.arange(600_000) + 0.5) / 100_000 - 3
    for k in (1.0, 10.0):
        p, labels = soft_label_ece._predictions(k, x)[model], soft_label_ece._labels(k, x)
        # Ten bins of which the last also holds 1, the obvious way.
        place = np.minimum(np.floor(p * 10), 9)
        for measure, y in labels.items():
            sums = np.bincount(place.astype(int), y - p)
            assert population[k, model, measure, "all"] == pytest.approx(
                np.abs(sums).sum() / len(x), abs=1e-5
            )


def test_ece_prefers_the_overconfident_model_at_every_k(errors):
    for k in STEEPNESS:
        a, b = (errors[k, 5000, model, "ECE", "all"].mean for model in "AB")
        assert b < a


def test_rankings(run):
    right = {(r.k, r.pair, r.measure, r.rows): r.accuracy for r in run.tables["ranking"]}
    for k in STEEPNESS:
        assert right[k, "A vs B", "SMECE", "all"] == 1
        assert right[k, "A vs B", "ECE", "all"] == 0
    assert right[0.5, "all pairs", "ECE", "p < 1"] == pytest.approx(0.403, abs=0.01)
    assert right[0.5, "all pairs", "SMECE", "p < 1"] == pytest.approx(0.9)
    # With all rows, B and D are nearly tied at k = 1; without p = 1 D always looks better.
    assert right[1.0, "B vs D", "SMECE", "p < 1"] == 0
    assert 0.2 < right[1.0, "B vs D", "SMECE", "all"] < 0.6
    # Table 6 prints 0.961, Table 5 implies 0.47.
    assert 0.25 < right[2.0, "C vs E", "ECE", "p < 1"] < 0.7


def test_every_published_number_is_compared_and_only_one_cannot_be_right(run):
    comparisons = run.tables["comparisons"]
    counts = {t: sum(c.table == t for c in comparisons) for t in {c.table for c in comparisons}}
    assert counts == {
        "Table 2": 20,
        "Table 3": 30,
        "Table 4": 30,
        "Table 5": 12,
        "Table 6": 20,
        "Table 7": 50,
        "Table 8": 50,
    }
    # Few replications: ranks of C and E by ECE, which are 0.0026 apart, are not compared.
    beyond = {(c.table, c.row, c.column) for c in comparisons if abs(c.deviation) > 4}
    assert beyond - {("Table 2", m, "rank by ECE") for m in "CE"} == {("Table 6", "C vs E", "ECE")}

"""The study of intervals: its headline facts from a quick run, and files of blocks put together."""

import math
from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import calibrant as cb
from calibrant.datasets import SCENARIOS
from studies import coverage
from studies.frame import to_csv
from studies.sparse import SPARSE
from tests.tolerances import assert_same_text, nearly
from tests.twins.bands import bootstrap_curves
from tests.twins.bootstrap import row_bootstrap


@pytest.fixture(scope="module")
def run(quickly):
    return quickly("coverage")


def test_naive_intervals_never_hold_perfect_calibration_and_ours_do(run):
    fraction = {
        (r.scenario, r.measure, r.method): r.covered / r.repetitions for r in run.tables["pooled"]
    }
    for measure in ("smooth_ece", "ece"):
        assert fraction["perfect", measure, "percentile"] == 0
        assert fraction["perfect", measure, "uniform"] >= 0.9
    assert fraction["perfect", "smooth_ece", "relplot"] < 0.7
    assert fraction["overconfident", "smooth_ece", "uniform"] >= 0.88


@pytest.mark.parametrize("scenario", ["perfect", "sinusoidal", "tenths", "softmax"])
def test_population_values(scenario):
    exact = SCENARIOS[scenario]
    for measure, value in {
        "smooth_ece": exact.smooth_ece(),
        "ece": exact.binned_ece(15),
        "ecce_mad": exact.ecce_mad(),
        "ecce_r": exact.ecce_r(),
    }.items():
        assert coverage.truth(scenario, measure) == pytest.approx(value, abs=1e-10)


def test_the_whole_study_has_every_cell():
    (part,) = coverage.parts(False)
    assert len(set(part.cells)) == len(part.cells)
    samples = Counter(cell[:4] for cell in part.cells)
    repetitions = part.measure.keywords["repetitions"]
    assert {n * repetitions for (_, _, _, method), n in samples.items() if method == "uniform"} == {
        1000
    }
    assert {cell[0] for cell in samples} == {*coverage.POPULATIONS}
    for scenario in SPARSE:
        assert {cell[2] for cell in samples if cell[0] == scenario} == {*coverage.MEASURES}
    assert {cell[2] for cell in samples if cell[3] == "relplot"} == {"smooth_ece"}
    assert {cell[2] for cell in samples if cell[3] == "debiased"} == {"ece l2"}


def test_the_interval_of_relplot_reaches_equally_far_on_both_sides(run):
    naive, wide = (
        next(r for r in run.tables["blocks"] if (r.measure, r.method) == ("smooth_ece", method))
        for method in ("percentile", "relplot")
    )
    assert naive.centre == nearly(wide.centre)
    assert naive.width < wide.width


BLOCK = coverage.Block(
    *("rare", 50, "ece", "uniform", 0, 0.01, 50),
    covered=40,
    low_right=45,
    high_right=45,
    seconds=1.5,
    width=0.2,
    centre=0.02,
    sd=0.05,
)


def test_blocks_of_several_files_are_pooled_once(tmp_path):
    other = replace(BLOCK, block=1, repetitions=150, covered=150, width=0.4, sd=0.1)
    (tmp_path / "a.csv").write_bytes(to_csv([BLOCK]))
    (tmp_path / "b.csv").write_bytes(to_csv([BLOCK, other]))
    done = coverage.gather([tmp_path / "a.csv", tmp_path / "b.csv"], out=tmp_path)
    (row,) = done.tables["pooled"]
    assert (row.repetitions, row.covered, row.low_right, row.seconds) == (200, 190, 90, 3.0)
    assert row.width == pytest.approx((0.2 * 50 + 0.4 * 150) / 200)
    assert row.sd == pytest.approx(math.sqrt((0.05**2 * 50 + 0.1**2 * 150) / 200))
    assert "| rare | 95.0 |" in done.page.read_text()
    # The width, and the bias of the corrected value, in units of 3.92 standard deviations.
    assert "| rare | 0.99 (+0.03) |" in done.page.read_text()
    # A page made of pooled lines is the same page.
    again = coverage.gather([tmp_path / "coverage" / "pooled.csv"], out=tmp_path / "again")
    assert_same_text(again.page.read_text(), done.page.read_text())


def test_the_summary_tells_diffuse_from_sparse(tmp_path):
    rows = [
        BLOCK,
        replace(BLOCK, n=200, covered=47, width=0.4),
        replace(BLOCK, scenario="top", covered=49, width=0.1),
    ]
    (tmp_path / "a.csv").write_bytes(to_csv(rows))
    text = coverage.gather([tmp_path / "a.csv"], out=tmp_path).page.read_text()
    assert "- Diffuse errors, 2 cells: `estimate` covers 80.0% in the worst (ece, rare" in text
    assert "- Sparse errors, 1 cells: `estimate` covers 98.0% in the worst (ece, top" in text
    assert "in the middle cell is 1.53 times" in text


@pytest.mark.parametrize(("covered", "said"), [(186, "No coverage"), (150, "75.0% of 200 (-13.0)")])
def test_coverage_below_the_level_is_told(tmp_path, covered, said):
    (tmp_path / "a.csv").write_bytes(to_csv([replace(BLOCK, repetitions=200, covered=covered)]))
    page = coverage.gather([tmp_path / "a.csv"], out=tmp_path).page.read_text()
    assert said in page.partition("## Coverage below the level")[2]


def test_the_columns_of_a_block():
    assert to_csv([BLOCK]).decode().splitlines()[0] == (
        "scenario,n,measure,method,block,truth,repetitions,covered,low_right,high_right,"
        "seconds,width,centre,sd"
    )
    assert math.isclose(
        coverage.truth("shifted", "ece"), cb.datasets.SCENARIOS["shifted"].binned_ece(15)
    )


# Other intervals.


def test_the_debiased_interval_by_hand():
    # Two bins of two rows: mean residuals 1/4 and -1/4, mean squares 5/16, of which 1/4 is noise.
    y, p = np.array([0, 1, 0, 1.0]), np.array([0.25, 0.25, 0.75, 0.75])
    low, high, centre, value = coverage.debiased_l2_interval(y, p, level=0.95, n_bins=2)
    # Debiased: (2 / 16 - 5 / 16) / 1 in each, below 0.
    assert (low, centre) == (0, 0)
    assert value == pytest.approx(0.25)
    variance = 4 * 5 / 16 / 16 - 3 / 256 - 1 / 256
    assert high == pytest.approx(math.sqrt(1.959964 * math.sqrt(variance / 4)))


def test_the_debiased_interval_of_a_large_error_is_the_normal_one():
    # One bin with residual 0.3: its mean squared is known to 2 (0.3) sd.
    y, p = (np.arange(10_000) % 10 < 8).astype(float), np.full(10_000, 0.5)
    low, high, centre, _ = coverage.debiased_l2_interval(y, p, level=0.95, n_bins=1)
    half = 1.959964 * 0.4 / 100
    assert [low, centre, high] == pytest.approx([0.3 - half, 0.3, 0.3 + half], abs=2e-4)


@pytest.mark.parametrize("kind", ["overconfident", "tenths"])
@pytest.mark.parametrize("measure", ["smooth_ece", "ece l2", "ecce_r"])
@pytest.mark.parametrize("n", [80, 5000])
def test_percentiles_are_those_of_resampled_rows(kind, measure, n):
    name, options = coverage.MEASURES[measure]
    function = partial(getattr(cb, name), **options)
    y, p = cb.datasets.simulate(kind, n, rng=3)
    n_resamples = 300
    values = row_bootstrap(function, y, p, np.ones(n), n_resamples, np.random.default_rng(0))
    low, high, centre, value = coverage.percentile_interval(
        function, y, p, level=0.8, n_resamples=n_resamples, rng=np.random.default_rng(1)
    )
    expected = np.quantile(values, [0.1, 0.9])
    # Four standard errors of the difference of two tenth percentiles.
    near = 4 * 1.71 * math.sqrt(2 / n_resamples) * values.std()
    assert [low, high] == pytest.approx(expected, abs=near)
    assert value == function(y, p)
    assert centre == pytest.approx(max(2 * value - np.median(values), 0), abs=near)


@pytest.mark.parametrize("kind", ["overconfident", "tenths"])
def test_percentile_curves_are_those_of_resampled_rows(kind):
    y, p = cb.datasets.simulate(kind, 80, rng=3)
    rng = np.random.default_rng(5)
    curve = coverage.percentile_curve(y, p, level=0.95, n_resamples=400, rng=rng, bandwidth=0.1)
    at = np.flatnonzero(curve.density > 0.3)[::25]
    drawn = bootstrap_curves(curve.x[at], p, y, 0.1, 400, np.random.default_rng(6))
    expected = np.quantile(drawn, [0.025, 0.5, 0.975], axis=0) - curve.x[at]
    for found, quantile in zip((curve.low, curve.y, curve.high), expected, strict=True):
        # Four standard errors of the difference of two 2.5th percentiles.
        near = 4 * 2.67 * math.sqrt(2 / 400) * drawn.std(axis=0)
        assert np.all(np.abs(found[at] - quantile) < near)


def test_a_percentile_curve_without_events_has_no_band():
    _, p = cb.datasets.simulate("perfect", 50, rng=1)
    rng = np.random.default_rng(0)
    curve = coverage.percentile_curve(np.zeros(50), p, level=0.95, n_resamples=39, rng=rng)
    known = ~np.isnan(curve.y)
    assert curve.low[known] == pytest.approx(curve.high[known], abs=1e-9)

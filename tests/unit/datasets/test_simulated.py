"""Samples: the same seed gives the same bytes, and they follow the law they claim."""

import subprocess
import sys

import numpy as np
import pytest

from calibrant import CalibrantError
from calibrant.datasets import SCENARIOS, Scenario, Simulation, simulate
from calibrant.datasets.scenarios import BetaScores, LogitNormalScores, RoundedScores

NAMES = sorted(SCENARIOS)


@pytest.mark.parametrize("name", NAMES)
def test_shape_and_types(name):
    sample = simulate(name, 50)
    y_true, y_prob = sample
    assert isinstance(sample, Simulation)
    assert sample.n == len(y_true) == len(y_prob) == 50
    assert (y_true.dtype, y_prob.dtype) == (np.uint8, np.float64)
    assert not y_true.flags.writeable
    assert not y_prob.flags.writeable
    assert sample.truth is SCENARIOS[name]
    assert sample.truth.formula in sample.source


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_bytes(name):
    first, again, other = simulate(name, 99, rng=3), simulate(name, 99, rng=3), simulate(name, 99)
    assert first.y_true.tobytes() == again.y_true.tobytes()
    assert first.y_prob.tobytes() == again.y_prob.tobytes()
    assert first.y_prob.tobytes() != other.y_prob.tobytes()


def test_a_generator_moves_on():
    generator = np.random.default_rng(3)
    first, second = simulate("perfect", 9, rng=generator), simulate("perfect", 9, rng=generator)
    assert first.y_prob.tobytes() == simulate("perfect", 9, rng=3).y_prob.tobytes()
    assert first.y_prob.tobytes() != second.y_prob.tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_large_sample_follows_the_population(name):
    # Every binned sum of y - p against its population value: five standard errors each.
    n, n_bins = 400_000, 20
    y_true, y_prob = simulate(name, n, rng=1)
    points, masses = SCENARIOS[name].quadrature(np.arange(n_bins) / n_bins)
    residual = SCENARIOS[name].calibration(points) - points
    edges = np.arange(1, n_bins) / n_bins
    sample_bin = np.searchsorted(edges, y_prob, side="right")
    population_bin = np.searchsorted(edges, points, side="right")
    moments = [np.bincount(sample_bin, (y_true - y_prob) ** k, n_bins) / n for k in (1, 2)]
    expected = np.bincount(population_bin, masses * residual, n_bins)
    # A bin seen by fewer than a handful of rows has no usable standard error of its own.
    error = 5 * np.sqrt(moments[1] / n) + 5 / n
    assert (np.abs(moments[0] - expected) < error).all()


@pytest.mark.parametrize("name", NAMES)
def test_large_sample_has_the_true_ece(name):
    # E |P(y = 1 | p) - p| as a plain mean over a million drawn scores.
    truth = SCENARIOS[name]
    y_prob = simulate(name, 1_000_000, rng=2).y_prob
    gap = np.abs(truth.calibration(y_prob) - y_prob)
    assert truth.true_ece() == pytest.approx(gap.mean(), abs=5 * gap.std() / 1000 + 1e-12)


def test_tenths_are_correctly_rounded_tenths():
    assert set(simulate("tenths", 20_000).y_prob.tolist()) == {k / 10 for k in range(11)}


def test_rare_and_softmax_look_as_named():
    assert simulate("rare", 100_000).y_true.mean() == pytest.approx(0.01, abs=0.002)
    assert (simulate("softmax", 10_000).y_prob > 0.9).mean() > 0.4


def test_bad_options_are_refused():
    with pytest.raises(
        CalibrantError, match=r"scenario must be one of 'perfect', .* got 'prefect'"
    ):
        simulate("prefect", 10)
    with pytest.raises(CalibrantError, match="n must be a whole number of at least 1; got -3"):
        simulate("perfect", -3)
    with pytest.raises(CalibrantError, match=r"n must be a whole number of at least 1; got 10\.5"):
        simulate("perfect", 10.5)
    wild = Scenario("wild", BetaScores(2, 2), lambda p: p + 1)
    with pytest.raises(CalibrantError, match=r"calibration must give values in \[0, 1\]; got 1\."):
        simulate(wild, 10)


@pytest.mark.parametrize(
    "make",
    [
        lambda: BetaScores(0, 2),
        lambda: BetaScores(2, 0.5),
        lambda: LogitNormalScores(0, 0),
        lambda: LogitNormalScores(float("nan"), 1),
        lambda: RoundedScores(BetaScores(1, 1), 0),
    ],
)
def test_bad_score_distributions_are_refused(make):
    with pytest.raises(CalibrantError, match="; got "):
        make()


def test_import_is_light():
    code = (
        "import sys, calibrant.datasets\n"
        "sys.exit(' '.join({'scipy', 'matplotlib', 'pandas'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (0, "")

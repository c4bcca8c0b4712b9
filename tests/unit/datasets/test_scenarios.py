"""Population values against closed forms and against slow, independent integration."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from calibrant import CalibrantError
from calibrant.datasets import SCENARIOS, Scenario, simulate
from calibrant.datasets.scenarios import BetaScores, LogitNormalScores, RoundedScores
from tests.tolerances import ROUNDING

NAMES = sorted(SCENARIOS)
UNIFORM = BetaScores(1, 1)


def midpoints(scenario, n=200_000):
    """Scores standing for equal (or, with ties, for given) shares of the population."""
    from scipy import stats

    share = (np.arange(n) + 0.5) / n
    scores = scenario.scores
    if isinstance(scores, BetaScores):
        return stats.beta(scores.a, scores.b).ppf(share)
    if isinstance(scores, LogitNormalScores):
        return 1 / (1 + np.exp(-stats.norm(scores.mean, scores.sd).ppf(share)))
    assert isinstance(scores, RoundedScores)
    return np.rint(midpoints(replace(scenario, scores=scores.exact), n) * 10) / 10


def slow_smoothed_l1(scenario, scale):
    """smECE at a scale: the integral of |h| with the reflected Gaussian written out in images."""
    points, masses = scenario.quadrature()
    signed = masses * (scenario.calibration(points) - points)
    signs_and_shifts = [(sign, 2 * k) for k in range(-5, 6) for sign in (1, -1)]
    images = np.concatenate([sign * points + shift for sign, shift in signs_and_shifts])
    signed = np.tile(signed, len(signs_and_shifts))
    near = (images > -9 * scale) & (images < 1 + 9 * scale)
    images, signed = images[near], signed[near]
    # Five Gauss points in each of 200 panels; 1/2, where symmetric residuals turn, is an end.
    node, weight = np.polynomial.legendre.leggauss(5)
    t = ((np.arange(200)[:, None] + 0.5 + node / 2) / 200).ravel()
    h = [signed @ np.exp(-0.5 * ((x - images) / scale) ** 2) for x in t]
    return np.abs(h) @ np.tile(weight / 400, 200) / (scale * math.sqrt(2 * math.pi))


def test_quoted_values():
    quoted = {
        "perfect": 0,
        "slightly_overconfident": 0.0144,
        "shifted": 0.0300,
        "overconfident": 0.0616,
    }
    found = {name: round(SCENARIOS[name].smooth_ece(), 4) for name in quoted}
    assert found == quoted


def test_skewed_is_the_published_formula():
    p = np.linspace(0, 1, 101)
    z = 2 * p - 1
    published = (z + 0.2 * np.sin(4 * np.pi * z) + 1) / 2
    assert SCENARIOS["skewed"].calibration(p) == pytest.approx(published, abs=ROUNDING)
    assert SCENARIOS["skewed"].scores == UNIFORM


def test_skewed_in_closed_form():
    # A wave of height 0.1 with four periods under uniform scores: half-periods of area 0.1 / 4 pi.
    skewed = SCENARIOS["skewed"]
    assert skewed.true_ece() == pytest.approx(0.2 / math.pi, abs=ROUNDING)
    assert skewed.binned_ece(8) == pytest.approx(0.2 / math.pi, abs=ROUNDING)
    assert skewed.binned_ece(4) == pytest.approx(0, abs=ROUNDING)
    assert skewed.ecce_mad() == pytest.approx(0.1 / (4 * math.pi), abs=ROUNDING)
    assert skewed.ecce_r() == pytest.approx(0.1 / (4 * math.pi), abs=ROUNDING)


def test_rare_in_closed_form():
    # Beta(1, 99) survives x with chance (1 - x)^99, so E |p - 0.01| = 2 * 0.99^100 / 100.
    rare = SCENARIOS["rare"]
    assert rare.base_rate() == pytest.approx(0.01, abs=ROUNDING)
    assert rare.true_ece() == pytest.approx(0.99**100 / 100, abs=ROUNDING)
    assert rare.ecce_mad() == pytest.approx(0.99**100 / 200, abs=ROUNDING)


def test_shifted_in_closed_form():
    # The residual has one sign, so every measure is |E(y - p)|.
    d = 0.03
    missing = 6 * (d**3 / 2 - d**3 / 3 - d**4 / 3 + d**4 / 4)
    shifted = SCENARIOS["shifted"]
    for value in (
        shifted.true_ece(),
        shifted.binned_ece(7),
        shifted.ecce_mad(),
        shifted.ecce_r(),
        shifted.smooth_ece(),
        shifted.smooth_ece(0.2),
    ):
        assert value == pytest.approx(d - missing, abs=ROUNDING)


def test_tenths_by_hand():
    # Beta(2, 2) has distribution function 3 x^2 - 2 x^3.
    cuts = [0.0, *((k + 0.5) / 10 for k in range(10)), 1.0]
    below = [3 * x**2 - 2 * x**3 for x in cuts]
    levels, masses = SCENARIOS["tenths"].quadrature()
    assert levels.tolist() == [k / 10 for k in range(11)]
    assert masses == pytest.approx(np.diff(below), abs=ROUNDING)
    chance = [p**0.6 / (p**0.6 + (1 - p) ** 0.6) for p in levels]
    signed = masses * (chance - levels)
    assert SCENARIOS["tenths"].true_ece() == pytest.approx(np.abs(signed).sum(), abs=ROUNDING)
    # Ten bins put each level into its own bin, save that 1.0 shares the last with 0.9.
    assert SCENARIOS["tenths"].binned_ece(10) == pytest.approx(np.abs(signed).sum(), abs=ROUNDING)
    assert SCENARIOS["tenths"].ecce_r() == pytest.approx(np.ptp(signed.cumsum()), abs=ROUNDING)


def test_bins_are_closed_on_the_left_and_the_last_holds_one():
    # Too low up to 0.4, too high from 0.5 to 1.0: two bins part them only if 0.5 opens the second.
    split = replace(SCENARIOS["tenths"], calibration=lambda p: p + np.where(p < 0.45, 0.05, -0.05))
    assert split.binned_ece(2) == pytest.approx(0.05, abs=ROUNDING)
    assert split.true_ece() == pytest.approx(0.05, abs=ROUNDING)
    _, masses = split.quadrature()
    assert split.ecce_mad() == pytest.approx(0.05 * masses[:5].sum(), abs=ROUNDING)
    assert split.ecce_r() == pytest.approx(0.05 * masses[5:].sum(), abs=ROUNDING)


def test_perfect_is_zero_in_every_measure():
    perfect = SCENARIOS["perfect"]
    values = [perfect.true_ece(), perfect.binned_ece(), perfect.ecce_mad(), perfect.ecce_r()]
    assert [*values, perfect.smooth_ece(), perfect.smooth_ece(0.1)] == [0.0] * 6


@pytest.mark.parametrize(("height", "k"), [(0.1, 1), (0.02, 41)])
def test_a_single_cosine_is_damped_as_heat(height, k):
    # The k-th cosine under uniform scores: smECE_s = height (2 / pi) exp(-(pi k s)^2 / 2).
    cosine = Scenario("cosine", UNIFORM, lambda p: p + height * np.cos(np.pi * k * p))

    def expected(scale):
        return height * 2 / math.pi * math.exp(-((math.pi * k * scale) ** 2) / 2)

    for scale in (0.01, 0.1, 0.5, 1.0):
        # The integral of abs(h) from its values on a grid is right to 1e-11.
        assert cosine.smooth_ece(scale) == pytest.approx(expected(scale), abs=1e-11)
    fixed = cosine.smooth_ece()
    assert fixed == pytest.approx(expected(fixed), abs=1e-12)


def test_errors_that_alternate_smooth_away():
    # Outcomes 0 and 1 at every other hundredth: smoothing leaves 1/2 - p of a mean gap of 1/2.
    hundredths = RoundedScores(UNIFORM, 100)
    alternating = Scenario("alternating", hundredths, lambda p: np.rint(100 * p) % 2)
    assert alternating.true_ece() == pytest.approx(0.5, abs=0.01)
    fixed = alternating.smooth_ece()
    assert fixed < 0.5 * alternating.true_ece()
    assert fixed == pytest.approx(slow_smoothed_l1(alternating, fixed), abs=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_masses_are_probabilities(name):
    points, masses = SCENARIOS[name].quadrature()
    assert masses.min() >= 0
    assert masses.sum() == pytest.approx(1, abs=ROUNDING)
    assert (np.diff(points) > 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_cumulative_and_binned_values_by_brute_force(name):
    truth = SCENARIOS[name]
    p = midpoints(truth)
    residual = truth.calibration(p) - p
    # One step per distinct score: only the last of several tied rows ends a step.
    ends = np.append(np.diff(p) > 0, True)
    walk = np.append(0, np.cumsum(residual)[ends]) / len(p)
    # Moving every share by half of itself moves a sum by at most the variation of the residual.
    tolerance = 20 / len(p)
    assert truth.base_rate() == pytest.approx(truth.calibration(p).mean(), abs=tolerance)
    assert truth.true_ece() == pytest.approx(np.abs(residual).mean(), abs=tolerance)
    assert truth.ecce_mad() == pytest.approx(np.abs(walk).max(), abs=tolerance)
    assert truth.ecce_r() == pytest.approx(np.ptp(walk), abs=tolerance)
    for n_bins in (1, 3, 10, 15):
        bins = np.searchsorted(np.arange(1, n_bins) / n_bins, p, side="right")
        expected = np.abs(np.bincount(bins, residual)).sum() / len(p)
        assert truth.binned_ece(n_bins) == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("perfect", "tenths")])
def test_true_ece_by_independent_quadrature(name):
    from scipy import integrate, stats

    truth = SCENARIOS[name]
    if isinstance(truth.scores, BetaScores):
        law, to_score, ends = stats.beta(truth.scores.a, truth.scores.b), lambda x: x, (0, 1)
    else:
        law = stats.norm(truth.scores.mean, truth.scores.sd)
        to_score, ends = lambda x: 1 / (1 + np.exp(-x)), (-20, 24)

    def integrand(x):
        return law.pdf(x) * abs(truth.calibration(np.array([to_score(x)]))[0] - to_score(x))

    # Pieces end wherever a residual changes sign or has a kink.
    cuts = sorted({*ends, *(k / 8 for k in range(1, 8)), 0.01, 0.03, 0.1})
    pieces = itertools.pairwise(cuts)
    total = sum(integrate.quad(integrand, a, b, epsabs=1e-12, epsrel=1e-12)[0] for a, b in pieces)
    assert truth.true_ece() == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "scale"),
    [
        ("slightly_overconfident", 0.0144),
        ("overconfident", 0.0616),
        ("underconfident", 0.3),
        ("tenths", 0.03),
    ],
)
def test_smooth_ece_against_written_out_images(name, scale):
    # The only sign change is at 1/2, by symmetry, so the twin is exact too.
    truth = SCENARIOS[name]
    assert truth.smooth_ece(scale) == pytest.approx(slow_smoothed_l1(truth, scale), abs=1e-12)


@pytest.mark.parametrize(
    ("name", "scale"),
    [("sinusoidal", 0.02), ("rare", 0.01), ("softmax", 0.05), ("skewed", 0.04), ("skewed", 0.7)],
)
def test_smooth_ece_with_many_sign_changes(name, scale):
    # A kink of |h| within a panel costs the twin about its slope times the square of the panel.
    truth = SCENARIOS[name]
    assert truth.smooth_ece(scale) == pytest.approx(slow_smoothed_l1(truth, scale), abs=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_smooth_ece_is_its_own_bandwidth(name):
    truth = SCENARIOS[name]
    fixed = truth.smooth_ece()
    assert fixed == (0 if name == "perfect" else pytest.approx(truth.smooth_ece(fixed), abs=1e-12))
    assert (
        abs(truth.base_rate() - masses_mean(truth)) - 1e-12 <= fixed <= truth.true_ece() + ROUNDING
    )


def masses_mean(truth):
    points, masses = truth.quadrature()
    return float(masses @ points)


@pytest.mark.parametrize("name", NAMES)
def test_order_of_the_measures(name):
    truth = SCENARIOS[name]
    assert truth.ecce_mad() <= truth.ecce_r() + ROUNDING
    assert truth.ecce_r() <= truth.true_ece() + ROUNDING
    assert truth.binned_ece(2) <= truth.binned_ece(8) + ROUNDING
    assert truth.binned_ece(8) <= truth.true_ece() + ROUNDING
    if name != "perfect":
        assert truth.smooth_ece(0.2) <= truth.smooth_ece(0.1) + ROUNDING


@pytest.mark.parametrize("name", NAMES)
def test_the_table_in_the_docstring_is_true(name):
    truth = SCENARIOS[name]
    (row,) = [line for line in simulate.__doc__.splitlines() if line.split()[:1] == [name]]
    assert str(truth.scores) in row
    assert str(truth.calibration) in row
    ece, smooth = (float(cell) for cell in row.split()[-2:])
    assert (ece, smooth) == (round(truth.true_ece(), 4), round(truth.smooth_ece(), 4))


def test_scenarios_are_values():
    overconfident = SCENARIOS["overconfident"]
    assert replace(overconfident) == overconfident
    assert overconfident != SCENARIOS["underconfident"]
    assert all(SCENARIOS[name].name == name for name in SCENARIOS)
    with pytest.raises(TypeError):
        SCENARIOS["mine"] = overconfident


def test_formulas_are_readable():
    found = {name: str(SCENARIOS[name].calibration) for name in ("perfect", "shifted", "rare")}
    assert found == {"perfect": "p", "shifted": "clip(p - 0.03, 0, 1)", "rare": "0.5 p + 0.005"}
    assert SCENARIOS["skewed"].formula == "p ~ Beta(1, 1), P(y = 1 | p) = p + 0.1 sin(8 pi p)"
    assert str(SCENARIOS["tenths"].scores) == "Beta(2, 2) rounded to 1/10"
    assert str(SCENARIOS["softmax"].scores) == "sigmoid(N(2, 2^2))"


def test_bad_options_are_refused():
    with pytest.raises(CalibrantError, match="n_bins must be a whole number of at least 1; got 0"):
        SCENARIOS["rare"].binned_ece(0)
    for bandwidth in (0, -1.0, math.nan, math.inf):
        with pytest.raises(CalibrantError, match="bandwidth must be "):
            SCENARIOS["rare"].smooth_ece(bandwidth)

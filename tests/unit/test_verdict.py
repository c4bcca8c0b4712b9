"""Level, spread and shape; and the words of a verdict, for every combination of findings."""

import itertools
import math
import re

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import chi2

import calibrant as cb
from calibrant.assessment.verdict import Findings, ScoreRange
from calibrant.curves.reliability import Curve
from calibrant.curves.reliability_view import PointMasses
from calibrant.data.classes import one_problem
from calibrant.inference.cell_noise import Clusters
from calibrant.inference.estimate import Estimate
from calibrant.inference.level_spread_shape import Fault, Faults, find_faults


def faults_of(y, p, w=None, clusters=None):
    problem = one_problem(y, p, w, None, None, None)
    known = Clusters.read(clusters, w, problem, np.random.default_rng(0))
    return find_faults(problem, 0.05, known)


def log_likelihood(a, b, y, p, w=1.0):
    x = a + b * logit(p)
    return float(np.sum(w * (y * x - np.logaddexp(0, x))))


def some_rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    p = np.round(rng.beta(1.3, 2, n), 3).clip(0.001, 0.999)
    return (rng.random(n) < expit(0.7 * logit(p) - 0.4)) * 1.0, p


class TestFaults:
    def test_level_and_spread_are_likelihood_ratios(self):
        y, p = some_rows()
        level = minimize(lambda x: -log_likelihood(x[0], 1, y, p), [0.0])
        both = minimize(lambda x: -log_likelihood(*x, y, p), [0.0, 1.0])
        found = faults_of(y, p)
        deviance = 2 * (-level.fun - log_likelihood(0, 1, y, p))
        assert found.level.value == pytest.approx(level.x[0], abs=1e-4)
        assert found.level.deviance == pytest.approx(deviance - 1, abs=1e-5)
        assert found.level.p_value == pytest.approx(chi2.sf(deviance, 1), rel=1e-4)
        assert found.spread.value == pytest.approx(both.x[1], abs=1e-4)
        assert found.spread.deviance == pytest.approx(2 * (level.fun - both.fun) - 1, abs=1e-5)

    def test_standard_errors_are_those_of_the_slope_test(self):
        y, p = some_rows()
        fit = cb.calibration_slope_test(y, p)
        assert faults_of(y, p).spread.error == pytest.approx(fit.slope_error, rel=1e-5)

    def test_weights_that_count_and_weights_that_do_not(self):
        y, p = some_rows()
        once, halves = faults_of(y, p), faults_of(y, p, np.full(len(y), 0.5))
        assert halves.level.deviance == pytest.approx(once.level.deviance)
        assert halves.shape.p_value == pytest.approx(once.shape.p_value)
        assert halves.spread.error == pytest.approx(once.spread.error)

    def test_rows_that_come_in_clusters_count_once_each(self):
        y, p = some_rows()
        tripled = faults_of(*(np.repeat(v, 3) for v in (y, p)), clusters=np.repeat(range(400), 3))
        once, thrice = faults_of(y, p), faults_of(*(np.repeat(v, 3) for v in (y, p)))
        assert thrice.level.deviance + 1 == pytest.approx(3 * (once.level.deviance + 1))
        # Up to the noise of a variance estimated from 400 residuals.
        assert tripled.level.deviance == pytest.approx(once.level.deviance, rel=0.15)

    @pytest.mark.parametrize(
        ("curve", "name"),
        [
            (lambda p: expit(logit(p) - 0.4), "level"),
            (lambda p: p**1.2, "level"),
            (lambda p: expit(0.7 * logit(p)), "spread"),
            (lambda p: expit(1.4 * logit(p)), "spread"),
            (lambda p: np.clip(p + 0.1 * np.sin(6 * np.pi * p), 0, 1), "shape"),
            (lambda p: np.where((p > 0.6) & (p < 0.7), p - 0.3, p), "shape"),
        ],
    )
    def test_the_fault_that_was_made_explains_most(self, curve, name):
        rng = np.random.default_rng(5)
        p = rng.random(3000)
        found = faults_of(rng.random(3000) < curve(p), p).significant(0.05)
        assert found[0].name == name

    def test_shape_is_the_neyman_test_of_the_rest(self):
        # Components by Gram-Schmidt, one after the other.
        y, p = some_rows(120, seed=3)
        order = np.argsort(p, kind="stable")
        y, p = y[order], p[order]
        score, first = np.unique(p, return_index=True)
        rows, true = np.diff(first, append=len(p)), np.add.reduceat(y, first)
        fit = minimize(lambda x: -log_likelihood(*x, y, p), [0.0, 1.0], tol=1e-12)
        q = expit(fit.x[0] + fit.x[1] * logit(score))
        v = rows * q * (1 - q)
        u = (np.cumsum(v) - v / 2) / v.sum()
        basis, z = [np.ones_like(u), logit(score)], []
        for j in range(1, 13):
            basis.append(np.cos(np.pi * j * u))
        for k, one in enumerate(basis):
            for other in basis[:k]:
                one = one - (v @ (one * other)) / (v @ (other * other)) * other
            basis[k] = one
            z.append((true - rows * q) @ one / math.sqrt(v @ (one * one)))
        sums = np.cumsum(np.square(z[2:]) - 1)
        k = int((sums / np.sqrt(np.arange(1, 13))).argmax())
        found = faults_of(y, p).shape
        assert (found.value, found.deviance) == (k + 1, pytest.approx(sums[k], abs=1e-4))

    def test_calibrated_predictions_have_no_fault(self):
        rng, n_found = np.random.default_rng(0), np.zeros(3)
        for _ in range(300):
            p = rng.beta(0.8, 2, 500)
            found = faults_of(rng.random(500) < p, p)
            parts = (found.level, found.spread, found.shape)
            n_found += [one.p_value <= 0.05 for one in parts]
        # 5% of 300, and three standard errors.
        assert (n_found <= 26).all()
        assert (n_found >= 4).all()

    def test_what_recalibration_gains_on_other_rows(self):
        rng, gained = np.random.default_rng(1), []
        for _ in range(200):
            p = rng.random(1000)
            q = expit(0.7 * logit(p) - 0.3)
            gained.append(faults_of(rng.random(1000) < q, p).brier_gain - np.mean((p - q) ** 2))
        assert np.mean(gained) == pytest.approx(0, abs=0.0006)

    @pytest.mark.parametrize(
        ("y", "p"),
        [([1], [0.3]), ([0, 1], [0, 1]), ([0, 0, 0], [0.1, 0.2, 0.3]), ([1, 0], [0.5, 0.5])],
    )
    def test_too_little_to_split(self, y, p):
        found = faults_of(y, p)
        assert found.shape.p_value == 1
        assert found.spread.p_value == 1
        assert 0 <= found.level.p_value <= 1

    def test_a_sketch_splits_as_its_rows_do(self):
        y, p = some_rows(2000)
        rows, sketch = faults_of(y, p), faults_of(cb.Sketch().update(y, p), None)
        for name in ("level", "spread", "shape"):
            exact = getattr(rows, name).deviance
            assert getattr(sketch, name).deviance == pytest.approx(exact, rel=1e-3, abs=1e-3)


LEVEL = Fault("level", 50.0, 1e-9, -0.4, 0.05)
SPREAD = Fault("spread", 30.0, 1e-8, 0.7, 0.05)
SHAPE = Fault("shape", 20.0, 1e-4, 3)
NONE = {name: Fault(name, 0.0, 1.0, math.nan) for name in ("level", "spread", "shape")}
X = np.linspace(0, 1, 101)


def findings(**changed):
    y = expit(0.7 * logit(X.clip(1e-9, 1 - 1e-9)) - 0.4)
    nan = np.full_like(X, np.nan)
    faults = NONE | changed.pop("faults", {})
    usual = {
        "smooth": Estimate(0.055, 0.05, 0.03, 0.07, 0.95, 1000, 0.0, "smooth_ece", "uniform"),
        "is_significant": True,
        "p_value": 1e-5,
        "faults": Faults(-0.05, 0.01, **faults, brier_gain=0.004),
        "score": X,
        "weight": np.ones_like(X),
        "curve": Curve(X, y, np.ones_like(X), nan, nan, 0.1, 0.05, "smooth"),
        "masses": PointMasses(np.empty(0), np.empty(0), np.empty(0), False),
        "score_range": ScoreRange(0.2, 0.4, 0.2, -0.1),
        "smallest_detectable": 0.04,
        "means": (0.5, 0.45),
        "brier_score": 0.18,
        "tolerance": 0.01,
        "n": 1000,
        "n_clusters": None,
        "kind": "binary",
        "is_refuted": False,
        "is_hard": False,
    }
    return Findings(**(usual | changed))


def interval(low, high, centre=None):
    centre = (low + high) / 2 if centre is None else centre
    return Estimate(centre, centre, low, high, 0.95, 1000, 0.0, "smooth_ece", "uniform")


class TestWords:
    @pytest.mark.parametrize("kind", ["binary", "confidence", "soft"])
    @pytest.mark.parametrize("significant", [False, True])
    @pytest.mark.parametrize("ends", [(0.0, 0.004), (0.0, 0.05), (0.02, 0.05), (0.5, 0.5000001)])
    @pytest.mark.parametrize("chosen", list(itertools.product([0, 1], repeat=3)), ids=str)
    def test_every_combination_is_a_text(self, kind, significant, ends, chosen):
        kept = {f.name: f for f, on in zip((LEVEL, SPREAD, SHAPE), chosen, strict=True) if on}
        low = ends[0] if significant else 0.0
        for flags in itertools.product([False, True], repeat=2):
            found = findings(
                kind=kind,
                is_significant=significant,
                faults=kept,
                smooth=interval(low, ends[1]),
                is_refuted=flags[0],
                is_hard=flags[1],
                p_value=1e-5 if significant else 0.4,
            ).verdict()
            assert found.text == f"{found.heading}. {found.details}"
            assert re.fullmatch(r"[A-Z][^{}]*\.", found.text)
            assert not re.search(r"nan|inf|None|  |\.\.|(\d\S*) to \1[,)]", found.text)
            assert (found.direction == "none detected") is (not significant)
            assert (found.fault is None) is (not significant)

    @pytest.mark.parametrize(
        ("chosen", "kind", "heading", "direction"),
        [
            ([LEVEL], "binary", "Predictions are too high", "too high"),
            ([SPREAD], "binary", "Predictions are over-confident", "over-confident"),
            ([SHAPE], "binary", "Predictions are wrong in places", "mixed"),
            ([], "binary", "Predictions are wrong in places", "mixed"),
            ([LEVEL], "confidence", "Predictions are over-confident", "over-confident"),
            ([SPREAD], "confidence", "Predictions are wrong in places", "mixed"),
            (
                [LEVEL, SPREAD],
                "binary",
                "Predictions are too high, and over-confident",
                "too high",
            ),
            (
                [SPREAD, SHAPE],
                "binary",
                "Predictions are over-confident, and wrong in places",
                "over-confident",
            ),
        ],
    )
    def test_headings(self, chosen, kind, heading, direction):
        found = findings(faults={one.name: one for one in chosen}, kind=kind).verdict()
        assert (found.heading, found.direction) == (heading, direction)

    def test_a_small_second_fault_is_not_in_the_heading(self):
        small = Fault("spread", 4.0, 0.02, 0.9, 0.05)
        found = findings(faults={"level": LEVEL, "spread": small}).verdict()
        assert found.heading == "Predictions are too high"

    def test_sentences_of_a_level(self):
        found = findings(faults={"level": LEVEL}).verdict()
        assert found.text == (
            "Predictions are too high. Where it says 80%, it happens 64% of the time. On average "
            "50% was predicted and 45% observed. Predictions are off by 5.0 percentage points on "
            "average (smooth calibration error 0.050, 95% interval 0.030 to 0.070), more than the "
            "tolerance of 1 percentage point. The miscalibration is statistically significant "
            "(P < 0.001). Recalibrate: that would lower the Brier score from 0.1800 to about "
            "0.1760."
        )

    def test_near_certainty_is_not_rounded_to_certainty(self):
        few = PointMasses(np.array([0.9, 0.995]), np.array([0.9, 0.6]), np.array([0.5, 0.5]), True)
        found = findings(faults={"spread": SPREAD}, masses=few, kind="confidence").verdict()
        assert "Where it is 99.5% confident, it is right 60% of the time." in found.text

    def test_the_spread_of_confidence_goes_with_its_level(self):
        less = Fault("spread", 80.0, 1e-9, 0.6, 0.05)
        found = findings(faults={"spread": less, "level": LEVEL}, kind="confidence").verdict()
        assert found.heading == "Predictions are over-confident"

    def test_sentences_where_nothing_was_detected(self):
        found = findings(is_significant=False, p_value=0.3, smooth=interval(0.0, 0.05, 0.02))
        assert found.verdict().text == (
            "No miscalibration detected. Predictions are off by at most 5.0 percentage points on "
            "average (smooth calibration error 0.020, 95% interval 0 to 0.050); too uncertain to "
            "tell whether that is within the tolerance of 1 percentage point. The data are "
            "compatible with perfect calibration (P = 0.3). A shift of all predictions by 4 "
            "percentage points would be detected with 80% probability. About 25,000 rows are "
            "needed to tell whether the error is within the tolerance."
        )

    def test_rows_of_clusters_are_needed_in_clusters(self):
        found = findings(is_significant=False, smooth=interval(0.0, 0.05, 0.02), n_clusters=12)
        assert "About 25,000 rows in 300 clusters are needed" in found.verdict().text

    def test_detected_is_not_large(self):
        found = findings(faults={"level": LEVEL}, smooth=interval(0.002, 0.006)).verdict()
        assert found.detected
        assert found.answer == "within tolerance"
        assert found.heading == "Calibrated to within 1 percentage point"
        assert found.text.endswith("Nothing needs to be done.")

    @pytest.mark.parametrize("means", [(0.01, 0.005), (0.98, 0.99), (0.0, 0.0)])
    def test_a_tolerance_that_hides_large_relative_errors(self, means):
        found = findings(faults={"level": LEVEL}, smooth=interval(0.002, 0.006), means=means)
        assert found.verdict().text.endswith("of rows): set a smaller one.")

    @pytest.mark.parametrize(
        ("ends", "answer"),
        [
            ((0.0, 0.009), "within tolerance"),
            ((0.011, 0.02), "beyond tolerance"),
            ((0.0, 0.02), "cannot tell"),
            ((0.009, 0.011), "cannot tell"),
        ],
    )
    def test_answers(self, ends, answer):
        assert findings(smooth=interval(*ends)).verdict().answer == answer

    def test_a_test_that_sees_more_than_the_interval_is_explained(self):
        found = findings(faults={"spread": SPREAD}, smooth=interval(0.0, 0.05)).verdict()
        assert "The interval includes 0" in found.text

    def test_scores_that_are_few_are_spoken_of_one_by_one(self):
        few = PointMasses(np.array([0.3, 0.7]), np.array([0.31, 0.49]), np.array([0.5, 0.5]), True)
        found = findings(faults={"spread": SPREAD}, masses=few).verdict()
        assert "Where it says 70%, it happens 49% of the time." in found.text

    def test_small_probabilities_have_digits(self):
        x = np.linspace(0.0, 0.02, 101)
        nan = np.full_like(x, np.nan)
        weight = np.exp(-x / 0.005)
        found = findings(
            faults={"level": Fault("level", 50.0, 1e-9, 0.7, 0.05)},
            score=x,
            weight=weight,
            curve=Curve(x, 2 * x, weight, nan, nan, 0.1, 0.05, "smooth"),
            means=(0.005, 0.01),
        ).verdict()
        assert "Where it says 0.5%, it happens 1.0% of the time." in found.text
        assert "On average 0.5% was predicted and 1.0% observed." in found.text

    @pytest.mark.parametrize(
        ("score", "stated", "observed"),
        [
            # At the ends the curve is at 0.2 and 0.7.
            ([1e-9, 1 - 1e-9], "over 99.999%", "70%"),
            ([0.6 + 1e-7, 0.6 + 2e-7, 0.6 + 3e-7], "60%", "50%"),
            ([1e-300, 2e-300], "less than 0.001%", "20%"),
        ],
    )
    def test_scores_are_those_of_rows(self, score, stated, observed):
        nan = np.full_like(X, np.nan)
        found = findings(
            faults={"spread": SPREAD},
            score=np.array(score),
            weight=np.ones(len(score)),
            curve=Curve(X, 0.2 + X / 2, np.ones_like(X), nan, nan, 0.1, 0.05, "smooth"),
        ).verdict()
        assert f"Where it says {stated}, it happens {observed} of the time." in found.text

    def test_a_refuted_certainty_is_not_called_compatible_with_calibration(self):
        found = findings(is_significant=False, is_refuted=True, p_value=0.3).verdict()
        assert found.heading == "Predictions of 0 or 1 were contradicted by the outcome"
        assert "All other predictions are compatible with perfect calibration" in found.text

    def test_outcomes_alike_where_some_are_predicted_with_certainty(self):
        verdict = cb.assess([1] * 100, [0.5, 1.0] * 50, n_resamples=39).verdict
        assert "50%" in str(verdict)

    @pytest.mark.parametrize("p", [np.full(2000, 0.7), np.linspace(0.01, 0.99, 2000)])
    def test_outcomes_alike_or_separated_are_to_be_checked(self, p):
        y = np.ones(2000) if p[0] == p[1] else (p > 0.5).astype(float)
        found = cb.assess(y, p, n_resamples=100).verdict
        assert math.isnan(found.brier_gain)
        alike = "they are all alike" if p[0] == p[1] else "the predictions separate them perfectly"
        assert f"Check the outcomes: {alike}" in found.text
        assert "so few rows" not in found.text


def test_the_example_agrees_with_the_heading():
    # Too extreme and too high: at low scores outcomes are more frequent than predicted.
    rng = np.random.default_rng(3)
    p = rng.beta(0.8, 2.5, 20_000)
    y = rng.random(20_000) < expit(0.7 * logit(p) - 0.4)
    found = cb.assess(y, p, n_resamples=99).verdict
    assert found.heading == "Predictions are over-confident, and too high on average"
    said, seen = re.search(r"says ([\d.]+)%, it happens ([\d.]+)%", found.text).groups()
    assert float(said) > float(seen)


def test_outcomes_all_alike_are_not_smoothed():
    for y, said in ((1, "it happens 100% of the time"), (0, "it happens 0% of the time")):
        found = cb.assess(np.full(300, y), np.linspace(0.2, 0.8, 300), n_resamples=39)
        assert said in found.verdict.text

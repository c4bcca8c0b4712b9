"""Paired differences against their definitions, draw by draw, and against other packages.

With the same multipliers the two must agree to rounding where cells hold one score each. Smoothed
errors differ by the width of cells.
"""

import numpy as np
import pytest
from scipy import stats

from calibrant import compare
from calibrant.data.rows import Sample
from calibrant.inference.cell_noise import Clusters
from calibrant.inference.intervals import View
from calibrant.inference.paired import difference, joint_noise
from calibrant.measures.registry import measures
from calibrant.numerics.probability import benjamini_hochberg, holm
from tests.twins import paired as twin

N, DRAWS, LEVEL = 60, 79, 0.9
BINS = 10
NORMS = {
    "ece": (twin.l1, twin.l1_slope, twin.l1_least),
    "ecce_r": (twin.walk_range, twin.walk_range_slope, twin.walk_range_least),
}


def rows(seed, *, confidence=False, off=1.0):
    """Return outcomes of each model, and predictions that are one in the middle of each bin."""
    rng = np.random.default_rng(seed)
    chance = rng.random(N)
    y = (rng.random(N) < chance).astype(float)
    a = (np.floor(chance**off * BINS) + 0.5) / BINS
    b = (np.floor(np.clip(chance + rng.normal(0, 0.15, N), 0, 0.999) * BINS) + 0.5) / BINS
    if not confidence:
        return [y, y], [a, b]
    other = np.where(rng.random(N) < 0.3, 1 - y, y)
    return [y, other], [a, b]


def fast(measure, options, ys, ps, groups):
    error = measures()[measure].read(options)
    rng = np.random.default_rng(5)
    problems = [Sample(y, p) for y, p in zip(ys, ps, strict=True)]
    if groups is None:
        clusters = Clusters.single_rows(N, rng)
    else:
        clusters = Clusters.read(groups, None, problems[0], rng)
    views = [View.of(error, problem, error(problem), clusters) for problem in problems]
    return joint_noise(views, DRAWS, rng, clustered=groups is not None)


def slow(measure, image, ys, ps, groups):
    units = np.arange(N) if groups is None else groups
    seed = np.random.default_rng(5).integers(1 << 62)
    z = twin.multipliers(len(np.unique(units)), DRAWS, seed)
    models = []
    for y, p in zip(ys, ps, strict=True):
        noise = twin.noise_images(image, y - p, p, units, z)
        models.append((image(y - p, p), noise * twin.stretch(y - p, p, units)))
    norms = NORMS[measure]
    more = twin.least_difference(models[0], models[1], *norms, LEVEL)
    less = twin.least_difference(models[1], models[0], *norms, LEVEL)
    return more, less


def check(a, b, more, less, tolerance, p_tolerance):
    """Check both ends; a model that passes for calibrated is not worse than any other."""
    found = difference(a, b, LEVEL)
    for model, (least, p), low, p_found in (
        (a, more, found.low, found.p_greater),
        (b, less, -found.high, found.p_less),
    ):
        # Where it is small, it is found by trying.
        near = max(p_tolerance, 1 / DRAWS if p < 0.05 else 0.0)
        assert p_found == pytest.approx(max(p, model.p_calibrated), abs=near)
        if model.p_calibrated > (1 - LEVEL) / 2:
            least = min(least, 0.0)
        assert low == pytest.approx(least, abs=tolerance)


@pytest.mark.parametrize("measure", ["ece", "ecce_r"])
@pytest.mark.parametrize("kind", ["same outcomes", "own outcomes", "clusters"])
@pytest.mark.parametrize("off", [1.0, 2.5])
def test_draw_by_draw(measure, kind, off):
    ys, ps = rows(3, confidence=kind == "own outcomes", off=off)
    groups = np.arange(N) % 20 if kind == "clusters" else None
    options = {"n_bins": BINS} if measure == "ece" else {}
    image = twin.walk_image if measure == "ecce_r" else lambda r, p: twin.bin_image(r, p, BINS)
    a, b = fast(measure, options, ys, ps, groups)
    more, less = slow(measure, image, ys, ps, groups)
    check(a, b, more, less, 1e-9, 1e-12)


def test_smoothed():
    rng = np.random.default_rng(8)
    p_a = rng.beta(2, 2, N)
    p_b = np.clip(p_a + rng.normal(0, 0.1, N), 0, 1)
    y = (rng.random(N) < p_a**2).astype(float)
    scale = 0.15

    def image(r, p):
        return twin.smooth_image(r, p, scale, 32)

    a, b = fast("smooth_ece", {"bandwidth": scale}, [y, y], [p_a, p_b], None)
    seed = np.random.default_rng(5).integers(1 << 62)
    z = twin.multipliers(N, DRAWS, seed)
    models = []
    for p in (p_a, p_b):
        noise = twin.noise_images(image, y - p, p, np.arange(N), z)
        models.append((image(y - p, p), noise * twin.stretch(y - p, p, np.arange(N))))
    norms = NORMS["ece"]
    more = twin.least_difference(models[0], models[1], *norms, LEVEL)
    less = twin.least_difference(models[1], models[0], *norms, LEVEL)
    check(a, b, more, less, 0.003, 0.03)


def test_perfect_calibration_is_tested_with_outcomes_as_predicted():
    rng = np.random.default_rng(2)
    p = np.repeat([0.05, 0.35, 0.85], N // 3)
    y = (rng.random(N) < p * 0.7).astype(float)
    (a, _) = fast("ece", {"n_bins": BINS}, [y, y], [p, 1 - p], None)
    simulated = [twin.l1(twin.bin_image((rng.random(N) < p) - p, p, BINS)) for _ in range(4000)]
    values = np.quantile(simulated, [0.2, 0.5, 0.9])
    assert np.quantile(a.calibrated, [0.2, 0.5, 0.9]) == pytest.approx(values, abs=0.025)


class TestScores:
    def given(self, seed=1):
        rng = np.random.default_rng(seed)
        p = rng.beta(2, 2, 200)
        y = (rng.random(200) < p).astype(int)
        return y, np.clip(p + 0.05, 0.01, 0.99), np.clip(p + rng.normal(0, 0.2, 200), 0.01, 0.99)

    @pytest.mark.parametrize("measure", ["brier_score", "log_score"])
    def test_rows_like_the_paired_t_test(self, measure):
        y, a, b = self.given()
        if measure == "brier_score":
            loss_a, loss_b = (a - y) ** 2, (b - y) ** 2
        else:
            loss_a, loss_b = (-np.log(np.where(y == 1, p, 1 - p)) for p in (a, b))
        expected = stats.ttest_rel(loss_a, loss_b)
        interval = expected.confidence_interval(0.95)
        (found,) = compare(y, {"a": a, "b": b}, measure=measure).pairs
        assert found.p_value == pytest.approx(expected.pvalue, rel=1e-9)
        assert (found.low, found.high) == pytest.approx((interval.low, interval.high), rel=1e-9)
        assert found.difference == pytest.approx((loss_a - loss_b).mean(), rel=1e-12)

    def test_classes(self):
        rng = np.random.default_rng(4)
        a, b = rng.dirichlet([1, 1, 1], 150), rng.dirichlet([2, 2, 2], 150)
        y = np.array([rng.choice(3, p=p) for p in a])
        one = np.eye(3)[y]
        losses = {
            "brier_score": [((p - one) ** 2).sum(axis=1) for p in (a, b)],
            "log_score": [-np.log(p[np.arange(150), y]) for p in (a, b)],
        }
        for measure, (loss_a, loss_b) in losses.items():
            (found,) = compare(y, {"a": a, "b": b}, measure=measure).pairs
            expected = stats.ttest_rel(loss_a, loss_b)
            assert found.p_value == pytest.approx(expected.pvalue, rel=1e-9)

    def test_clusters_as_if_their_totals_were_the_rows(self):
        y, a, b = self.given()
        groups = np.arange(200) % 20
        w = np.random.default_rng(0).exponential(1, 200)
        gap = w * ((a - y) ** 2 - (b - y) ** 2)
        mean = gap.sum() / w.sum()
        totals = [(gap - w * mean)[groups == g].sum() for g in range(20)]
        fraction = [w[groups == g].sum() / w.sum() for g in range(20)]
        error = np.sqrt(np.sum(np.square(totals) / (1 - np.array(fraction)))) / w.sum()
        dof = 1 / np.sum(np.square(fraction)) - 1
        found = compare(
            *(y, {"a": a, "b": b}), measure="brier_score", clusters=groups, sample_weight=w
        ).pairs[0]
        assert found.p_value == pytest.approx(2 * stats.t.sf(abs(mean / error), dof), rel=1e-9)


class TestAdjustments:
    def test_holm(self):
        rng = np.random.default_rng(0)
        for m in range(1, 9):
            p = rng.random(m) ** 3
            assert holm(p) == pytest.approx(twin.holm_by_steps(p.tolist()), rel=1e-9)
        assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])

    def test_benjamini_hochberg_like_scipy(self):
        rng = np.random.default_rng(0)
        for m in range(1, 9):
            p = rng.random(m) ** 3
            assert benjamini_hochberg(p) == pytest.approx(stats.false_discovery_control(p))

    def test_questions_not_asked_do_not_count(self):
        p = [0.01, np.nan, 0.02]
        assert holm(p)[[0, 2]] == pytest.approx([0.02, 0.02])
        assert benjamini_hochberg(p)[[0, 2]] == pytest.approx([0.02, 0.02])
        assert np.isnan(holm(p)[1])
        assert holm([]).shape == (0,)
